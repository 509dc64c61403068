//! Previews the parameters of a batch's jobs before any has run: their values, and why some cannot
//! have one.

use crate::domain::batch::Snapshot;
use crate::domain::id::JobCode;
use crate::domain::job::outcome::OutputValue;
use crate::domain::job::secret::MaskedValue;
use crate::domain::job::{JobDef, Param, ParamMode, ParamNeed, ParamType};
use crate::domain::params::{
    BatchValues, ParamSources, Reference, Start, references, resolve, takes_upstream,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// A parameter for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ShownParam {
    /// Its name.
    pub name: String,
    /// Direction.
    #[schemars(with = "String")]
    pub mode: ParamMode,
    /// Its type.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    pub ty: ParamType,
    /// Value; `None` is NULL, or a value that the body will return.
    pub value: Option<String>,
}

/// Inputs from which the parameters of a batch are previewed.
#[derive(Debug)]
pub struct ParamPreview<'a> {
    snapshot: &'a Snapshot,
    values: &'a BatchValues,
    parents: HashMap<&'a JobCode, Vec<JobCode>>,
    /// Names of the outputs that each job declares.
    outputs: HashMap<&'a JobCode, HashSet<&'a str>>,
}

impl<'a> ParamPreview<'a> {
    /// The preview of a batch with these values. Its edges are visited once, because there may be a
    /// million.
    pub fn new(snapshot: &'a Snapshot, values: &'a BatchValues) -> Self {
        let mut parents: HashMap<&JobCode, Vec<JobCode>> = HashMap::new();
        for edge in &snapshot.dependencies {
            parents.entry(&edge.job_code).or_default().push(edge.depends_on.clone());
        }
        let declared = |job: &'a JobDef| {
            let outputs = job.params.iter().filter(|p| p.mode != ParamMode::In);
            (&job.code, outputs.map(|p| p.name.as_str()).collect())
        };
        Self { snapshot, values, parents, outputs: snapshot.jobs.iter().map(declared).collect() }
    }

    /// The parameters of a job as they would be bound, and the faults of those that cannot be. The
    /// outputs of earlier jobs are not known yet; they are shown by name.
    pub fn preview_job(&self, job: &JobDef) -> (Vec<ShownParam>, Vec<String>) {
        let (mut shown, mut faults) = (Vec::new(), Vec::new());
        for param in &job.params {
            let value = self.resolve(job, param).unwrap_or_else(|fault| {
                faults.push(fault);
                None
            });
            let Param { name, mode, ty, .. } = param.clone();
            shown.push(ShownParam { name, mode, ty, value });
        }
        (shown, faults)
    }

    /// The faults of a job's parameters.
    pub fn faults(&self, job: &JobDef) -> Vec<String> {
        job.params.iter().filter_map(|param| self.resolve(job, param).err()).collect()
    }

    /// Resolves one parameter; each separately, so that one fault does not hide the next. A secret
    /// is masked.
    fn resolve(&self, job: &JobDef, param: &Param) -> Result<Option<String>, String> {
        let names = references(param).map_err(|e| e.to_string())?;
        if job.for_each.is_some() && names.contains(&Reference::Item) {
            // The items of a list from an output are not known yet.
            return Ok(Some("(item)".to_owned()));
        }
        let parents = self.parents.get(&job.code).map_or(&[][..], Vec::as_slice);
        let (group, job_type) = (job.group.clone(), job.job_type.clone());
        let mut alone = JobDef::with_defaults(job.code.clone(), group, job_type);
        alone.fan_out.clone_from(&job.fan_out);
        alone.params = vec![param.clone()];
        // Outputs with the parameter's own name are known only if a parent declares them.
        let declares = |code: &JobCode| {
            let of = self.outputs.get(code);
            takes_upstream(param) && of.is_some_and(|names| names.contains(param.name.as_str()))
        };
        let refers = |name: &Reference| matches!(name, Reference::Output(..));
        if names.iter().any(refers) || parents.iter().any(declares) {
            // Its type can be checked only once the output exists.
            alone.params[0].ty = ParamType::Text;
        }
        if takes_upstream(param) && !parents.is_empty() {
            // A parent may return it; only the attempt itself can tell.
            alone.params[0].need = ParamNeed::Optional;
        }
        let output = |code: &JobCode, name: &str| {
            let asked = Reference::Output(code.clone(), name.to_owned());
            let known = names.contains(&asked) || declares(code);
            known.then(|| OutputValue::Text(format!("(output {name} of {code})")))
        };
        let start = Start::shown(self.values, &job.code);
        let layers = self.snapshot.layers(self.values, parents, &start);
        let outside = ParamSources { output: &output, secret: None };
        let mut bound = resolve(&alone, layers, outside).map_err(|e| e.to_string())?;
        Ok(bound.pop().and_then(|b| b.value).as_ref().map(MaskedValue::shown).map(str::to_owned))
    }
}
