//! The resolved parameters of a job of a batch.

use crate::app::App;
use crate::domain::id::{JobCode, QueueId};
use crate::domain::job::Param;
use crate::domain::job::outcome::JobOutputs;
use crate::domain::job::secret;
use crate::domain::params::{
    Layer, ParamError, ParamSources, Resolved, Start, outputs_asked, resolve_each,
};
use crate::store;
use crate::view::batch::BatchView;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// A parameter of a job of a batch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResolvedParam {
    /// The name.
    pub name: String,
    /// The value for display: a secret is masked; null is NULL, or a fault.
    pub value: Option<String>,
    /// The layer of the value.
    pub layer: Option<Layer>,
    /// Why it has no value.
    pub fault: Option<String>,
}

/// The parameters of a job, resolved from the present state of the batch.
pub async fn of_job(app: &App, view: &BatchView, at: usize) -> Result<Vec<ResolvedParam>> {
    let (job, row) = (&view.snapshot.jobs[at], &view.rows[at]);
    let parents = view.snapshot.parents(&job.code);
    let asked = outputs_asked(job, &parents);
    let of: HashMap<i64, &JobCode> = view
        .rows
        .iter()
        .filter(|r| r.status.is_final() && asked.iter().any(|(code, _)| *code == r.job_code))
        .map(|r| (r.queue_id.0, &r.job_code))
        .collect();
    let ids: Vec<_> = of.keys().map(|id| QueueId(*id)).collect();
    let mut tx = app.db.begin_read().await?;
    let mut outputs: HashMap<&JobCode, JobOutputs> = HashMap::new();
    for (id, text) in store::queue::outputs(&mut tx, &ids).await? {
        if let Some(code) = of.get(&id.0) {
            outputs.insert(code, serde_json::from_str(&text)?);
        }
    }
    let values = &view.batch.values;
    let mut start = Start::shown(values, &job.code);
    start.attempt = row.attempt.max(1);
    if let Some(name) = store::installation(&mut tx).await? {
        start.idem_key = row.idem_key(&name, &values.group, &values.batch_no);
    }
    drop(tx);
    let output = |code: &JobCode, name: &str| outputs.get(code)?.output(name);
    let outside = ParamSources { output: &output, secret: None };
    let found = resolve_each(job, view.snapshot.layers(values, &parents, &start), outside);
    let shown = |(param, found): (&Param, &Result<_, _>)| {
        let (value, layer, fault) = match found {
            Ok(Resolved { param: bound, layer, .. }) => {
                let value =
                    bound.value.as_ref().map(|value| secret::MaskedValue::shown(value).to_owned());
                (value, *layer, None)
            }
            Err(ParamError::NotLoaded { what, .. }) => {
                (Some(format!("<{what}>")), Some(Layer::Upstream), None)
            }
            Err(error) => (None, None, Some(ParamError::to_string(error))),
        };
        ResolvedParam { name: param.name.clone(), value, layer, fault }
    };
    Ok(job.params.iter().zip(&found).map(shown).collect())
}
