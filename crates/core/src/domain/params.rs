//! Parameters: which layer a value comes from, and what the `${…}` in it become.
//!
//! There is no template engine, no nesting and no code: the text of a parameter's value is the
//! only place where `${…}` means anything, and what comes out of it reaches SQL as a bound value
//! and a script as an environment variable, never as text of either.

pub mod fan_out;
mod fault;
pub mod http_call;
pub mod order_params;
pub mod param_expressions;
mod taken;
mod work;

pub use fault::{DateParts, ParamError, check_text};

use crate::domain::calendar::WorkingDays;
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::outcome::OutputValue;
use crate::domain::job::secret::MaskedValue;
use crate::domain::job::{JobDef, Param, ParamDecl, ParamMode, ParamType};
use crate::domain::params::param_expressions::{BadReference, ParamPiece};
use crate::domain::source::tx_class::{IdemKey, KeyForm};
use chrono::NaiveDate;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use work::ParamResolution;

pub use crate::domain::params::param_expressions::{CalendarQuestion as AskedCalendar, Reference};

/// Values that the jobs of one batch share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchValues {
    /// `${batch_no}`
    pub batch_no: BatchNo,
    /// `${group}`
    pub group: GroupCode,
    /// `${business_date}`, `YYYY-MM-DD`; none when the batch number does not imply one and none
    /// was given.
    pub business_date: Option<NaiveDate>,
    /// The batch's own parameters; those of the group and of all groups stand in its snapshot.
    pub params: BTreeMap<String, String>,
}

/// A parameter with its value worked out, ready to be bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoundParam {
    /// Name, as in the definition.
    pub name: String,
    /// Which way it travels.
    pub mode: ParamMode,
    /// Its type.
    pub ty: ParamType,
    /// Its text; `None` is NULL.
    pub value: Option<MaskedValue>,
    /// The output that it is; none of a value that was given or put together.
    #[serde(skip)]
    pub origin: Option<ValueOrigin>,
}

/// An output that became the value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueOrigin {
    /// The job that takes it.
    pub taker: JobCode,
    /// The job that returned it.
    pub job: String,
    /// Its name.
    pub output: String,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${{jobs.{}.{}}}", self.job, self.output)
    }
}

impl BoundParam {
    /// A text of ours, that may be shown.
    pub fn public_text(name: &str, value: Option<String>) -> Self {
        let value = value.map(MaskedValue::Open);
        Self {
            name: name.to_owned(),
            mode: ParamMode::In,
            ty: ParamType::Text,
            value,
            origin: None,
        }
    }

    /// Its text, secret or not, for whoever binds it.
    pub fn expose_text(&self) -> Option<&str> {
        self.value.as_ref().map(MaskedValue::expose)
    }
}

/// Where a value comes from, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ParamLayer")]
pub enum Layer {
    /// The batch's own parameter: `--param`, the order.
    Batch,
    /// The job's own `value`.
    Job,
    /// An output of that name of a direct parent.
    Upstream,
    /// The group's parameter.
    Group,
    /// The parameter of all groups.
    Global,
}

/// The order of the layers, for people.
pub const PRECEDENCE: &str = "batch > job > upstream outputs > group > global";

impl Layer {
    /// Every layer, strongest first.
    pub const ALL: [Self; 5] = [Self::Batch, Self::Job, Self::Upstream, Self::Group, Self::Global];

    /// The word in `PRECEDENCE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Job => "job",
            Self::Upstream => "upstream outputs",
            Self::Group => "group",
            Self::Global => "global",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is known of one try of a job only, and not of its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// `${idem_key}`
    pub idem_key: IdemKey,
    /// `${attempt}`
    pub attempt: u32,
}

impl Start {
    /// The first try of a job in a batch that is only shown; the key's first part, which names the
    /// installation, is not known without a database.
    pub fn shown(batch: &BatchValues, job: &JobCode) -> Self {
        let form = KeyForm::WithGroup(&batch.group, &batch.batch_no);
        Self { idem_key: IdemKey::for_run("(installation)", form, job, 1), attempt: 1 }
    }
}

/// The layers around the parameters of one job.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// The try; none where a parameter is worked out before there is one.
    pub start: Option<&'a Start>,
    /// The batch, with its own parameters.
    pub batch: &'a BatchValues,
    /// Jobs that this one depends on directly.
    pub parents: &'a [JobCode],
    /// What the group declares.
    pub group: &'a [ParamDecl],
    /// What is declared for all groups.
    pub global: &'a [ParamDecl],
    /// Calendars that are kept for the batch.
    pub days: WorkingDays<'a>,
}

/// An output of a job: `None` when it has none of that name.
pub type OutputOf<'a> = &'a dyn Fn(&JobCode, &str) -> Option<OutputValue>;
/// A secret by its name.
pub type SecretOf<'a> = &'a dyn Fn(&str) -> Option<SecretString>;

/// What parameters ask of the world.
#[derive(Clone, Copy)]
pub struct ParamSources<'a> {
    /// Outputs of other jobs.
    pub output: OutputOf<'a>,
    /// Secrets. Without them, values that hold one are masked and not checked for their type.
    pub secret: Option<SecretOf<'a>>,
}

/// A parameter that was worked out, and the layer that gave its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The parameter.
    pub param: BoundParam,
    /// Where its value comes from; none: no layer has one.
    pub layer: Option<Layer>,
}

fn pieces(param: &str, text: &str) -> Result<Vec<ParamPiece>, ParamError> {
    let param = param.to_owned();
    param_expressions::pieces(text).map_err(|bad| match bad {
        BadReference::Unclosed => ParamError::Unclosed { param, text: text.to_owned() },
        BadReference::Unknown(name) => ParamError::UnknownName { param, name },
        BadReference::Wrong(name, said) => ParamError::WrongFunction { param, name, said },
    })
}

fn references_in(param: &str, text: &str) -> Result<Vec<(String, Reference)>, ParamError> {
    let named = |piece| match piece {
        ParamPiece::Name(name, reference) => Some((name, reference)),
        ParamPiece::Text(_) => None,
    };
    Ok(pieces(param, text)?.into_iter().filter_map(named).collect())
}

/// The names a parameter's value refers to; what `check` looks at without any batch.
pub fn references(param: &Param) -> Result<Vec<Reference>, ParamError> {
    let found = references_in(&param.name, param.value.as_deref().unwrap_or_default())?;
    Ok(found.into_iter().map(|(_, reference)| reference).collect())
}

/// The calendars that a value asks; none of one that cannot be read.
pub fn calendars_asked(value: Option<&str>) -> Vec<AskedCalendar> {
    let pieces = param_expressions::pieces(value.unwrap_or_default()).unwrap_or_default();
    let asked = |piece| match piece {
        ParamPiece::Name(_, reference) => reference.calendars(),
        ParamPiece::Text(_) => Vec::new(),
    };
    pieces.into_iter().flat_map(asked).collect()
}

/// Checks a value that refers to nothing against the declared type; values with `${…}` can only
/// be checked when they are known.
pub fn check_literal(param: &Param) -> Result<(), ParamError> {
    match &param.value {
        Some(text) if references(param)?.is_empty() => check_text(&param.name, param.ty, text),
        _ => Ok(()),
    }
}

/// Checks the value that a group, or the definition for all groups, declares.
pub fn check_declared(decl: &ParamDecl) -> Result<(), ParamError> {
    let Some(text) = &decl.value else { return Ok(()) };
    let found = references_in(&decl.name, text)?;
    if let Some((name, _)) = found.iter().find(|(_, r)| !may_be_declared(r)) {
        return Err(ParamError::NotHere { param: decl.name.clone(), name: name.clone() });
    }
    if found.is_empty() { check_text(&decl.name, decl.ty, text) } else { Ok(()) }
}

fn may_be_declared(reference: &Reference) -> bool {
    match reference {
        Reference::BatchNo | Reference::Batch(_) | Reference::Group => true,
        Reference::Date(_) | Reference::Format(..) | Reference::Secret(_) => true,
        Reference::JobCode | Reference::Item => false,
        Reference::IdemKey | Reference::Attempt => false,
        Reference::Param(_) | Reference::Output(..) => false,
    }
}

/// The secrets that the text of a value names.
pub fn secret_names(text: &str) -> Vec<String> {
    let found = param_expressions::pieces(text).unwrap_or_default();
    let secret = |piece| match piece {
        ParamPiece::Name(_, Reference::Secret(name)) => Some(name),
        ParamPiece::Name(..) | ParamPiece::Text(_) => None,
    };
    found.into_iter().filter_map(secret).collect()
}

/// Whether the text of a value holds a secret, so that the value is one.
pub fn names_a_secret(text: &str) -> bool {
    !secret_names(text).is_empty()
}

/// Works out every parameter of `job`.
pub fn resolve(
    job: &JobDef,
    layers: Layers<'_>,
    outside: ParamSources<'_>,
) -> Result<Vec<BoundParam>, ParamError> {
    resolve_each(job, layers, outside).into_iter().map(|r| r.map(|r| r.param)).collect()
}

/// Works out every parameter of `job` by itself, with the layer it comes from.
pub fn resolve_each(
    job: &JobDef,
    layers: Layers<'_>,
    outside: ParamSources<'_>,
) -> Vec<Result<Resolved, ParamError>> {
    let work = ParamResolution { job, layers, outside };
    job.params.iter().map(|param| work.resolve(param)).collect()
}

/// The secrets that `job` needs, by name; found by working its parameters out without any.
pub fn secrets_needed(
    job: &JobDef,
    layers: Layers<'_>,
    output: OutputOf<'_>,
) -> Result<BTreeSet<String>, ParamError> {
    let work = ParamResolution { job, layers, outside: ParamSources { output, secret: None } };
    let mut names = BTreeSet::new();
    for param in &job.params {
        let asked = RefCell::new(BTreeSet::new());
        work.resolve_value(param, &asked)?;
        names.append(&mut asked.into_inner());
    }
    Ok(names)
}

/// Outputs of other jobs that the parameters of `job` may ask for.
pub fn outputs_asked(job: &JobDef, parents: &[JobCode]) -> Vec<(JobCode, String)> {
    let mut asked = Vec::new();
    for param in &job.params {
        if takes_upstream(param) {
            asked.extend(parents.iter().map(|parent| (parent.clone(), param.name.clone())));
        }
        for reference in references(param).unwrap_or_default() {
            if let Reference::Output(code, name) = reference {
                asked.push((code, name));
            }
        }
    }
    asked
}

/// Whether a parameter may take its value from an output of a parent.
pub fn takes_upstream(param: &Param) -> bool {
    param.mode != ParamMode::Out && param.value.is_none()
}

#[cfg(test)]
mod tests;
