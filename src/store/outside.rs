//! Other batches as a batch sees them: their states, and the states and outputs of their jobs.

use crate::db::{Row, SqlValue};
use crate::domain::batch::BatchStatus;
use crate::domain::batch_no::{RelativeBatch, latest_up_to};
use crate::domain::id::{BatchId, BatchNo, GroupCode};
use crate::domain::job::external::{AwaitedBatch, ExternalDependency};
use crate::domain::job::outcome::JobOutputs;
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::store::{Tx, output_value};
use anyhow::{Context as _, Result};
use std::collections::HashMap;

/// The batches that a dependency refers to, each with its state. `me` is the dependent batch: it is
/// not its own predecessor.
pub async fn find_awaited(
    tx: &mut Tx,
    external: &ExternalDependency,
    wanted: &RelativeBatch,
    me: BatchId,
) -> Result<Vec<AwaitedBatch>> {
    let numbers = match wanted {
        RelativeBatch::These(numbers) => numbers.clone(),
        RelativeBatch::LatestUpTo(base) => newest(tx, &external.group, base, me).await?,
    };
    let mut found = Vec::new();
    for numbers in numbers.chunks(AT_ONCE) {
        found.extend(at_once(tx, external, numbers).await?);
    }
    Ok(found)
}

/// Batch numbers per statement: a dependency on all days of a month is one query, not 31 per
/// second.
const AT_ONCE: usize = 500;

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
        .map(|row| Ok(BatchNo::parse(&row.get_text("batch_no")?)?))
        .collect::<Result<_>>()?;
    Ok(latest_up_to(base, &numbers).cloned().into_iter().collect())
}

async fn at_once(
    tx: &mut Tx,
    external: &ExternalDependency,
    numbers: &[BatchNo],
) -> Result<Vec<AwaitedBatch>> {
    let places = vec!["?"; numbers.len()].join(", ");
    let mut values: Vec<SqlValue> = Vec::new();
    let sql = match &external.depends_on {
        None => format!(
            "SELECT batch_no, status FROM job_batch WHERE group_code = ? AND batch_no IN ({places})"
        ),
        Some(job) => {
            values.push(job.as_str().into());
            format!(
                "SELECT b.batch_no AS batch_no, q.status AS status, q.skip_kind AS skip_kind, q.outputs AS outputs \
                 FROM job_batch b JOIN job_queue q ON q.batch_id = b.batch_id AND q.job_code = ? \
                 WHERE b.group_code = ? AND b.batch_no IN ({places})"
            )
        }
    };
    values.push(external.group.as_str().into());
    values.extend(numbers.iter().map(|number| SqlValue::from(number.as_str())));
    let rows = tx
        .fetch_all(&sql, &values)
        .await
        .with_context(|| format!("look at batches of group {}", external.group))?;
    let mut found = HashMap::new();
    for row in &rows {
        let number = row.get_text("batch_no")?;
        let seen = stored(tx, external, row)
            .await
            .with_context(|| format!("look at batch {number} of group {}", external.group))?;
        found.insert(number, seen);
    }
    let seen = |batch_no: &BatchNo| {
        let known = found.remove(batch_no.as_str());
        let (status, holds) = known.map_or((None, false), |(status, holds)| (Some(status), holds));
        AwaitedBatch { batch_no: batch_no.clone(), status, holds }
    };
    Ok(numbers.iter().map(seen).collect())
}

/// The state in a row, of a batch or of its job, and whether the dependency's condition on outputs
/// holds.
async fn stored(
    tx: &mut Tx,
    external: &ExternalDependency,
    row: &Row,
) -> Result<(QueueStatus, bool)> {
    let word = row.get_text("status")?;
    if external.depends_on.is_none() {
        let status = BatchStatus::parse(&word)
            .with_context(|| format!("job_batch.status holds {word:?}, which is no state"))?;
        return Ok((status.as_job(), false));
    }
    let status = QueueStatus::stored(&word, row.opt_text("skip_kind")?.as_deref())
        .with_context(|| format!("job_queue.status holds {word:?}, which is no state"))?;
    let EdgeCondition::Output(expr) = &external.when else { return Ok((status, false)) };
    let json = row.opt_text("outputs")?;
    let mut outputs: JobOutputs =
        json.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default();
    let references: Vec<_> =
        expr.names().into_iter().flat_map(|name| outputs.stored_for(name)).collect();
    for reference in references {
        if let Ok(text) = output_value::load_value(tx, &reference).await? {
            outputs.restore(&reference, &text);
        }
    }
    let holds = expr.evaluate(&|name| outputs.output(name)).unwrap_or(false);
    Ok((status, holds))
}
