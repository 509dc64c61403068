//! What a batch sees of other batches: their states, and the states and outputs of their jobs.

use crate::domain::batch::BatchStatus;
use crate::domain::batch_no::{Wanted, latest_up_to};
use crate::domain::external::{ExternalDependency, Seen};
use crate::domain::id::{BatchId, BatchNo, GroupCode};
use crate::domain::outcome::Outputs;
use crate::domain::queue::QueueStatus;
use crate::domain::trigger_rule::When;
use crate::store::{Tx, output_value};
use anyhow::{Context as _, Result};

/// The batches a dependency asks for, each as it stands. `me` is the batch that asks: it is not its
/// own predecessor.
pub async fn seen(
    tx: &mut Tx,
    external: &ExternalDependency,
    wanted: &Wanted,
    me: BatchId,
) -> Result<Vec<Seen>> {
    let numbers = match wanted {
        Wanted::These(numbers) => numbers.clone(),
        Wanted::LatestUpTo(base) => newest(tx, &external.group, base, me).await?,
    };
    let mut found = Vec::new();
    for batch_no in numbers {
        found.push(one(tx, external, batch_no).await?);
    }
    Ok(found)
}

async fn newest(
    tx: &mut Tx,
    group: &GroupCode,
    base: &BatchNo,
    me: BatchId,
) -> Result<Vec<BatchNo>> {
    let rows = tx
        .fetch_all(
            "SELECT batch_no FROM job_batch WHERE group_code = ? AND batch_id <> ?",
            &[group.as_str().into(), me.0.into()],
        )
        .await
        .context("look for the newest batch of a group")?;
    let numbers: Vec<BatchNo> = rows
        .iter()
        .map(|row| Ok(BatchNo::parse(&row.text("batch_no")?)?))
        .collect::<Result<_>>()?;
    Ok(latest_up_to(base, &numbers).cloned().into_iter().collect())
}

async fn one(tx: &mut Tx, external: &ExternalDependency, batch_no: BatchNo) -> Result<Seen> {
    let key = [batch_no.as_str().into(), external.group.as_str().into()];
    let there = tx
        .fetch_optional(
            "SELECT batch_id, status FROM job_batch WHERE batch_no = ? AND group_code = ?",
            &key,
        )
        .await
        .with_context(|| format!("look at batch {batch_no} of group {}", external.group))?;
    let Some(row) = there else { return Ok(Seen { batch_no, status: None, holds: false }) };
    let Some(job) = &external.depends_on else {
        let word = row.text("status")?;
        let status = BatchStatus::parse(&word)
            .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?;
        return Ok(Seen { batch_no, status: Some(status.as_job()), holds: false });
    };
    let row = tx
        .fetch_optional(
            "SELECT status, skip_kind, outputs FROM job_queue WHERE batch_id = ? AND job_code = ?",
            &[row.int("batch_id")?.into(), job.as_str().into()],
        )
        .await
        .with_context(|| format!("look at job {job} of batch {batch_no}"))?;
    let Some(row) = row else { return Ok(Seen { batch_no, status: None, holds: false }) };
    let status = QueueStatus::stored(&row.text("status")?, row.opt_text("skip_kind")?.as_deref())
        .with_context(|| format!("the state of job {job} in batch {batch_no}"))?;
    let holds = match &external.when {
        When::Output(expr) => {
            let json = row.opt_text("outputs")?;
            let mut outputs: Outputs =
                json.map(|t| serde_json::from_str(&t)).transpose()?.unwrap_or_default();
            for reference in
                expr.names().into_iter().flat_map(|n| outputs.stored_for(n)).collect::<Vec<_>>()
            {
                if let Ok(text) = output_value::load(tx, &reference).await? {
                    outputs.restore(&reference, &text);
                }
            }
            expr.eval(&|name| outputs.output(name)).unwrap_or(false)
        }
        When::Success | When::Failure | When::Done | When::Skipped => false,
    };
    Ok(Seen { batch_no, status: Some(status), holds })
}
