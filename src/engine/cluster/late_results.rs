//! Results that arrive too late: they change no state, and are stored as evidence in the log of
//! their attempt.
//!
//! A process that was silent for longer than its lease finds its rows owned by another process, but
//! the effects of its bodies must remain traceable. A row that is UNKNOWN is not settled by a late
//! result either: its children were decided and its batch may have ended. `procession logs` shows
//! the result, and an operator settles the row with one command.

use crate::domain::cluster::lease::Uptime;
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::job::queue::QueueStatus;
use crate::domain::text::{LINE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::attempt::run::dated;
use crate::handler::log::JobLogLine;
use crate::store::hosted::{self, Reported};
use crate::store::log::NewLine;
use crate::store::queue::RowHolder;
use crate::store::{Db, Tx, log, queue};
use anyhow::{Context as _, Result};

/// A result that its row did not accept.
#[derive(Debug)]
pub(in crate::engine) struct Late {
    pub(in crate::engine) queue_id: QueueId,
    pub(in crate::engine) attempt: u32,
    /// The node that reported it, if it was another one.
    pub(in crate::engine) by: Option<NodeId>,
    pub(in crate::engine) outcome: AttemptOutcome,
    /// Log lines that were not stored yet.
    pub(in crate::engine) lines: Vec<JobLogLine>,
    /// When to try writing it again; set after a failed write.
    again_at: Option<Uptime>,
}

/// Pause before a failed write is repeated, in milliseconds.
const AGAIN_MS: i64 = 10_000;

impl Late {
    /// Sets the node that reported the result; `None` means this process.
    pub(in crate::engine) fn reported_by(self, by: Option<NodeId>) -> Self {
        Self { by, ..self }
    }

    /// Whether it is to be written now.
    pub(in crate::engine) fn is_due(&self, up: Uptime) -> bool {
        self.again_at.is_none_or(|at| at <= up)
    }

    /// Whether it was postponed because it could not be written.
    pub(in crate::engine) fn is_held(&self) -> bool {
        self.again_at.is_some()
    }

    /// Postpones it to some time after `up`, without its lines.
    pub(in crate::engine) fn held_until(self, up: Uptime) -> Self {
        Self { lines: Vec::new(), again_at: Some(up.plus_ms(AGAIN_MS)), ..self }
    }

    /// A late result of a body of this node.
    pub(in crate::engine) fn of_ours(
        queue_id: QueueId,
        attempt: u32,
        outcome: AttemptOutcome,
        lines: Vec<JobLogLine>,
    ) -> Self {
        Self { queue_id, attempt, by: None, outcome, lines, again_at: None }
    }
}

pub(in crate::engine) async fn store_late_result(
    db: &Db,
    late: &Late,
    me: &NodeId,
    now: Millis,
) -> Result<()> {
    let mut tx = db.begin().await?;
    if late.by.is_none() && deliver(&mut tx, late, me, now).await? {
        failpoint!("report.before_commit");
        tx.commit().await.context("report how a try ended")?;
        failpoint!("report.after_commit");
        return Ok(());
    }
    let there = queue::whose(&mut tx, late.queue_id).await?;
    if let Some(by) = &late.by {
        let runs = |s: &QueueStatus| matches!(s, QueueStatus::Running | QueueStatus::Killing);
        if there.as_ref().is_some_and(|row| {
            row.attempt == late.attempt && row.owner.as_ref() == Some(by) && runs(&row.status)
        }) {
            // The batch was lost before this was settled; the new owner finds the report there.
            return Ok(tx.rollback().await?);
        }
        hosted::remove(&mut tx, late.queue_id, late.attempt).await?;
    }
    let Some(there) = there else {
        return Ok(tx.commit().await?);
    };
    let said = describe_late_result(late, &there);
    // An earlier commit of the same text may have succeeded although its answer was lost.
    let known = log::of_entry(&mut tx, late.queue_id).await?.into_iter().any(|change| {
        change.log.attempt == late.attempt
            && change.log.status.as_str() == end_word(&late.outcome.end)
    });
    let last = log::last_line(&mut tx, late.queue_id, late.attempt).await?;
    if known || last.is_some_and(|(_, text)| text == said) {
        return Ok(tx.commit().await?);
    }
    let took = late.lines.iter().map(|line| line.at_ms).max().unwrap_or_default();
    let began = now.plus_ms(-took);
    let lines = late.lines.iter().map(|line| dated(line.clone(), began));
    let lines: Vec<NewLine> = lines.chain([(0, now, Stream::System, said)]).collect();
    log::append_after(&mut tx, late.queue_id, late.attempt, &lines).await?;
    tx.commit().await.context("keep a late result")
}

/// Reports the end of an attempt whose row still belongs to this node to the owner of the batch,
/// with the last log lines. `false` when the row belongs to another.
async fn deliver(tx: &mut Tx, late: &Late, me: &NodeId, now: Millis) -> Result<bool> {
    let reported = Reported {
        queue_id: late.queue_id,
        attempt: late.attempt,
        owner: me.clone(),
        outcome: late.outcome.clone(),
    };
    if !hosted::report(tx, &reported, now).await? {
        return Ok(false);
    }
    let took = late.lines.iter().map(|line| line.at_ms).max().unwrap_or_default();
    let lines: Vec<NewLine> =
        late.lines.iter().map(|line| dated(line.clone(), now.plus_ms(-took))).collect();
    // An earlier commit of the same may have succeeded although its answer was lost.
    let last = log::last_line(tx, late.queue_id, late.attempt).await?;
    let is_there = lines.last().zip(last).is_some_and(|(ours, (number, _))| number >= ours.0);
    if !is_there {
        log::append_lines(tx, late.queue_id, late.attempt, &lines).await?;
    }
    Ok(true)
}

fn describe_late_result(late: &Late, row: &RowHolder) -> String {
    let RowHolder { attempt, owner, status } = row;
    let node = owner.as_ref().and_then(|o| o.0.split('-').next()).unwrap_or("unknown");
    let why = if *attempt == late.attempt {
        format!("the row is {status}, by node {node}")
    } else {
        format!("the row belongs to attempt {attempt} of node {node}")
    };
    let end = end_word(&late.outcome.end);
    let message = late.outcome.message.as_deref().map_or_else(String::new, |m| format!("; {m}"));
    storable(format!("late result, changes nothing: {end} ({why}){message}").as_bytes(), LINE_MAX)
}

/// How an attempt ended, as a state name.
pub(in crate::engine) fn end_word(end: &AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Success => QueueStatus::Success.as_str(),
        AttemptEnd::Warning => QueueStatus::Warning.as_str(),
        AttemptEnd::Failed => QueueStatus::Failed.as_str(),
        AttemptEnd::TimedOut => QueueStatus::Timeout.as_str(),
        AttemptEnd::Killed => QueueStatus::Killed.as_str(),
        AttemptEnd::Returned => "HANDED BACK",
        AttemptEnd::Unknown => QueueStatus::Unknown.as_str(),
    }
}
