//! Results of a job's checks in earlier batches.

use crate::domain::batch::Batch;
use crate::domain::job::JobDef;
use crate::domain::job::check::DataCheck;
use crate::domain::job::outcome::JobOutputs;
use crate::domain::job::success_rules::{self, Earlier};
use crate::store::{Db, queue};
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;

/// Maximum number of earlier batches searched for a check result: a check without one in a year of
/// monthly batches starts over.
const LOOK_BACK: usize = 12;

/// For each check that compares with an earlier batch: its number in the nearest earlier batch of
/// the group in which this job succeeded. Runs no query when no check compares.
pub(super) async fn last_checks(
    db: &Db,
    batch: &Batch,
    job: &JobDef,
) -> Result<BTreeMap<String, Earlier>> {
    let mut found = BTreeMap::new();
    let looking = job.checks.iter().filter(|c| DataCheck::looks_back(c));
    let names: Vec<&str> = looking.map(|c| c.name.as_str()).collect();
    if names.is_empty() {
        return Ok(found);
    }
    let mut tx = db.begin_read().await?;
    let ended = queue::ended_well(&mut tx, &batch.values.group, &job.code).await?;
    let earlier = success_rules::before(&batch.values.batch_no, ended);
    for (batch_no, row) in earlier.into_iter().take(LOOK_BACK) {
        for (_, text) in queue::outputs(&mut tx, &[row]).await? {
            let outputs: JobOutputs = serde_json::from_str(&text)
                .with_context(|| format!("read the outputs of job {} in {batch_no}", job.code))?;
            success_rules::remember(&mut found, &names, &batch_no, &outputs);
        }
        if found.len() == names.len() {
            break;
        }
    }
    Ok(found)
}
