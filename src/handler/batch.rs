//! BATCH: opens a batch of another group and waits for its end.
//!
//! It takes no slot, because the jobs of the other batch need those. A second start continues with
//! the batch that the first one opened, so it is always safe.

use crate::domain::batch::{BatchOrder, BatchStatus};
use crate::domain::id::BatchId;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, Stream};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::secret::MaskedValue;
use crate::domain::job::{AfterCrash, BodyPart, JobKind, Takes};
use crate::domain::params::BoundParam;
use crate::handler::run_on_source::end_of;
use crate::handler::{AttemptTask, ChildBatchEnd, Context, StopReason, WorkerHandler};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;

/// The BATCH handler.
pub(crate) struct BatchHandler;

/// Maximum number of jobs named in a message.
const NAMED: usize = 10;

impl WorkerHandler for BatchHandler {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "BATCH",
            about: "Opens a batch of another group and ends as that batch ends.",
            needs: &[BodyPart::SubBatch],
            may_have: &[BodyPart::Params],
            takes: Takes::Nothing,
            after_crash: AfterCrash::StartsAgain,
            holds_session_lock: false,
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async move {
            match open_and_wait(task, ctx).await {
                Ok(outcome) => outcome,
                Err(said) => AttemptOutcome::ended(AttemptEnd::Failed, said),
            }
        })
    }
}

async fn open_and_wait(task: &AttemptTask, ctx: &Context) -> Result<AttemptOutcome, String> {
    let order = order(task)?;
    let name = format!("batch {} of group {}", order.batch_no, words(&order));
    ctx.claimed().await?;
    let id = tokio::select! {
        biased;
        reason = ctx.stopped() => {
            return Ok(AttemptOutcome::ended(end_of(reason), "stopped before it began"));
        }
        id = ctx.batches.open_batch(order.clone()) => id?,
    };
    ctx.log.add_line(Stream::System, format!("{name} runs as batch {}", id.0));
    let mut reason = None;
    let end = tokio::select! {
        biased;
        end = ctx.batches.ended(id) => end?,
        why = ctx.stopped() => {
            reason = Some(why);
            let said = match why {
                StopReason::TimedOut => format!("job {} ran out of time", task.job.code),
                StopReason::Killed => format!("job {}, which opened it, was stopped", task.job.code),
                // The batch is independent; the next attempt finds it.
                StopReason::HandedBack | StopReason::Fenced | StopReason::Disowned => {
                    let said = format!("{name} goes on; this process does not wait for it any more");
                    return Ok(AttemptOutcome::ended(AttemptEnd::Returned, said).before_it_began());
                }
            };
            ctx.log.add_line(Stream::System, format!("{name} is being stopped: {said}"));
            ctx.batches.kill_batch(id, said);
            ctx.batches.ended(id).await?
        }
    };
    ctx.log.add_line(Stream::System, format!("{name} ended {}", end.status));
    Ok(outcome(&order, id, &name, &end, reason))
}

fn words(order: &BatchOrder) -> &str {
    order.group.as_ref().map_or("", |group| group.as_str())
}

/// The order of the other batch: its number relative to this one, and this job's parameters as its
/// parameters.
fn order(task: &AttemptTask) -> Result<BatchOrder, String> {
    let sub = task.job.sub_batch.as_ref().ok_or("the job names no batch to open")?;
    let own = &task.batch;
    let batch_no = sub.batch.one_from(&own.batch_no, own.business_date);
    let batch_no = batch_no.map_err(|error| format!("sub_batch: {error}"))?;
    let business_date = own.business_date.filter(|_| batch_no == own.batch_no);
    let hidden = |p: &&BoundParam| p.value.as_ref().is_some_and(MaskedValue::is_secret);
    if let Some(param) = task.params.iter().find(hidden) {
        return Err(format!(
            "parameter {} is secret, and the parameters of a batch are stored as they are; let the \
             jobs of group {} ask for it themselves: ${{secret.NAME}}",
            param.name, sub.group
        ));
    }
    let given =
        task.params.iter().filter_map(|p| Some((p.name.clone(), p.expose_text()?.to_owned())));
    Ok(BatchOrder {
        batch_no,
        batch_type: None,
        group: Some(sub.group.clone()),
        business_date,
        params: given.collect(),
        free_text: false,
    })
}

fn outcome(
    order: &BatchOrder,
    id: BatchId,
    name: &str,
    end: &ChildBatchEnd,
    reason: Option<StopReason>,
) -> AttemptOutcome {
    let mut values = BTreeMap::from([
        ("batch_no".to_owned(), Some(order.batch_no.to_string())),
        ("batch_id".to_owned(), Some(id.0.to_string())),
        ("status".to_owned(), Some(end.status.to_string())),
    ]);
    let count = |of: &dyn Fn(QueueStatus) -> bool| -> u64 {
        end.counts.iter().filter(|(status, _)| of(*status)).map(|(_, n)| n).sum()
    };
    let well = count(&|status| status.lets_children_run());
    for (key, n) in [("jobs", count(&|_| true)), ("ended_well", well)] {
        values.insert(key.to_owned(), Some(n.to_string()));
    }
    values.insert("failed".to_owned(), Some(end.failed.len().to_string()));
    let outputs = JobOutputs { values, ..JobOutputs::default() };
    let named = end.failed.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = end.failed.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let said = match named.as_str() {
        "" => format!("{name} ended {}", end.status),
        _ => format!("{name} ended {}: {named}{more}", end.status),
    };
    let (end, message) = match (end.status, reason) {
        (BatchStatus::Success, _) => (AttemptEnd::Success, None),
        (BatchStatus::Warning, _) => (AttemptEnd::Warning, Some(said)),
        (_, Some(reason)) => (end_of(reason), Some(said)),
        (
            BatchStatus::Failed | BatchStatus::Killed | BatchStatus::Running | BatchStatus::Killing,
            None,
        ) => (AttemptEnd::Failed, Some(said)),
    };
    let message: Option<String> = message;
    AttemptOutcome { message, outputs, ..AttemptOutcome::ended(end, "") }
}
