//! The parameters of a job in an existing or possible batch, and the layer of each value.

use crate::app::App;
use crate::domain::batch::{BatchOrder, Snapshot, plan};
use crate::domain::id::{BatchNo, GroupCode, JobCode};
use crate::domain::job::Definition;
use crate::domain::job::outcome::JobOutputs;
use crate::domain::job::secret::MaskedValue;
use crate::domain::params::{
    BatchValues, Layer, ParamError, ParamSources, Resolved, Start, resolve_each,
};
use crate::domain::time::Millis;
use crate::store;
use anyhow::Result;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// A parameter.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobParamView {
    /// The name.
    pub name: String,
    /// The value; `***` for a secret, null for NULL.
    pub value: Option<String>,
    /// The layer of the value: batch, job, upstream, group or global.
    #[schemars(with = "Option<String>")]
    pub layer: Option<Layer>,
    /// Why it has no usable value.
    pub fault: Option<String>,
}

/// Which batch.
#[derive(Debug)]
pub struct JobParamsRequest {
    pub group: GroupCode,
    pub batch_no: BatchNo,
    /// The business date of a possible batch.
    pub business_date: Option<NaiveDate>,
    /// Parameters of a possible batch.
    pub params: BTreeMap<String, String>,
}

/// Whether the batch exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPresence {
    /// It exists.
    There,
    /// It could be opened.
    Possible,
}

/// The inputs for resolving parameters.
pub struct World {
    /// Whether the batch exists.
    pub batch: BatchPresence,
    values: BatchValues,
    snapshot: Snapshot,
    outputs: HashMap<JobCode, JobOutputs>,
    start: Start,
}

impl World {
    /// Reads the inputs.
    pub async fn read_world(
        app: &App,
        defs: &Definition,
        code: &JobCode,
        asked: JobParamsRequest,
    ) -> Result<Self> {
        let JobParamsRequest { group, batch_no, business_date, params } = asked;
        let mut tx = app.db.begin_read().await?;
        let Some(batch) = store::batch::find_batch(&mut tx, &batch_no, &group).await? else {
            let group = Some(group);
            let (batch_type, free_text) = (None, true);
            let order =
                BatchOrder { batch_no, batch_type, group, business_date, params, free_text };
            let plan = plan(defs, &order, Millis::default())?.remove(0);
            let start = Start::shown(&plan.values, code);
            let (values, snapshot, outputs) = (plan.values, plan.snapshot, HashMap::new());
            return Ok(Self { batch: BatchPresence::Possible, values, snapshot, outputs, start });
        };
        let snapshot = store::batch::snapshot(&mut tx, batch.batch_id).await?;
        let rows = store::queue::of_batch(&mut tx, batch.batch_id).await?;
        let ended: Vec<_> =
            rows.iter().filter(|r| r.status.is_final()).map(|r| r.queue_id).collect();
        let mut outputs = HashMap::new();
        for (id, text) in store::queue::outputs(&mut tx, &ended).await? {
            if let Some(row) = rows.iter().find(|r| r.queue_id == id) {
                outputs.insert(row.job_code.clone(), serde_json::from_str(&text)?);
            }
        }
        let mut start = Start::shown(&batch.values, code);
        if let Some(row) = rows.iter().find(|row| row.job_code == *code) {
            start.attempt = row.attempt.max(1);
            if let Some(name) = store::installation(&mut tx).await? {
                start.idem_key = row.idem_key(&name, &batch.values.group, &batch.values.batch_no);
            }
        }
        Ok(Self { batch: BatchPresence::There, values: batch.values, snapshot, outputs, start })
    }

    /// The parameters of a job; `None` when the batch has no such job.
    pub fn params(&self, code: &JobCode) -> Option<Vec<JobParamView>> {
        let job = self.snapshot.jobs.iter().find(|j| j.code == *code)?;
        let parents = self.snapshot.parents(code);
        let output = |code: &JobCode, name: &str| self.outputs.get(code)?.output(name);
        let outside = ParamSources { output: &output, secret: None };
        let layers = self.snapshot.layers(&self.values, &parents, &self.start);
        let found = resolve_each(job, layers, outside);
        let names = job.params.iter().map(|p| p.name.as_str());
        Some(names.zip(&found).map(|(name, found)| shown(name, found)).collect())
    }
}

fn shown(name: &str, found: &Result<Resolved, ParamError>) -> JobParamView {
    let (value, layer, fault) = match found {
        Ok(found) => {
            let value = found.param.value.as_ref().map(MaskedValue::shown);
            (value.map(str::to_owned), found.layer, None)
        }
        Err(ParamError::NotLoaded { what, .. }) => (Some(format!("<{what}>")), None, None),
        Err(error) => (None, None, Some(error.to_string())),
    };
    JobParamView { name: name.to_owned(), value, layer, fault }
}
