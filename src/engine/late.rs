//! Results that come too late: they change nothing, and are kept as evidence in the log of their try.
//!
//! A process that was silent for longer than its lease finds its rows in other hands; what its bodies
//! did all the same, somebody may have to know. Also a row that says UNKNOWN is not settled by it: its
//! children were decided and its batch may have ended; `procession logs` shows what came, and an
//! operator settles it with one command.

use crate::domain::id::{NodeId, QueueId};
use crate::domain::outcome::{End, Outcome, Stream};
use crate::domain::queue::QueueStatus;
use crate::domain::text::{LINE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::dispatcher::QueueDispatcher;
use crate::engine::worker::{Report, What, dated};
use crate::handler::log::Line;
use crate::store::log::NewLine;
use crate::store::{self, Db, log, queue};
use anyhow::{Context as _, Result};

/// A result that the row did not take.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) queue_id: QueueId,
    pub(super) attempt: u32,
    pub(super) outcome: Outcome,
    /// What of its log was not stored yet.
    pub(super) lines: Vec<Line>,
}

impl QueueDispatcher {
    /// What has been reported so far is in the rows; what no row took is evidence.
    pub(super) fn settled(&mut self) {
        for report in std::mem::take(&mut self.waiting) {
            let Report { queue_id, attempt, what: What::Ended(outcome, lines) } = report else {
                continue;
            };
            self.measure_end(queue_id, &outcome);
            if !self.heard.contains(&(queue_id, attempt)) {
                self.late.push(Late { queue_id, attempt, outcome, lines });
            }
        }
        self.heard.clear();
    }

    /// Keeps the late results of this beat as evidence. Not in the beat's own transaction: that
    /// belongs to batches of ours, and these may be anybody's. A database that is away is waited for.
    pub(super) async fn keep_late(&mut self) {
        let now = self.clock.now();
        let mut waiting = std::mem::take(&mut self.late).into_iter();
        while let Some(late) = waiting.next() {
            let row = late.queue_id.0;
            match keep(&self.db, &late, now).await {
                Ok(()) => {}
                // The next one would wait as long for the same answer, and the beat with it.
                Err(error) if store::is_transient(&error) => {
                    self.late.extend(std::iter::once(late).chain(waiting));
                    return;
                }
                Err(error) => tracing::warn!(
                    queue_id = row,
                    attempt = late.attempt,
                    error = format!("{error:#}"),
                    "a late result could not be kept in the log of its try: {}",
                    word(&late.outcome.end)
                ),
            }
        }
    }
}

async fn keep(db: &Db, late: &Late, now: Millis) -> Result<()> {
    let mut tx = db.begin().await?;
    let Some(there) = queue::whose(&mut tx, late.queue_id).await? else {
        return Ok(tx.rollback().await?);
    };
    let said = said(late, &there);
    // The answer to the commit of what says the same may have been lost.
    let known = log::of_entry(&mut tx, late.queue_id).await?.into_iter().any(|change| {
        change.log.attempt == late.attempt && change.log.status.as_str() == word(&late.outcome.end)
    });
    let last = log::last_line(&mut tx, late.queue_id, late.attempt).await?;
    if known || last.is_some_and(|(_, text)| text == said) {
        return Ok(tx.rollback().await?);
    }
    let took = late.lines.iter().map(|line| line.at_ms).max().unwrap_or_default();
    let began = now.plus(-took);
    let lines = late.lines.iter().map(|line| dated(line.clone(), began));
    let lines: Vec<NewLine> = lines.chain([(0, now, Stream::System, said)]).collect();
    log::append_after(&mut tx, late.queue_id, late.attempt, &lines).await?;
    tx.commit().await.context("keep a late result")
}

fn said(late: &Late, (attempt, owner, status): &(u32, Option<NodeId>, QueueStatus)) -> String {
    let node = owner.as_ref().and_then(|o| o.0.split('-').next()).unwrap_or("unknown");
    let why = if *attempt == late.attempt {
        format!("the row is {status}, by node {node}")
    } else {
        format!("the row belongs to attempt {attempt} of node {node}")
    };
    let end = word(&late.outcome.end);
    let message = late.outcome.message.as_deref().map_or_else(String::new, |m| format!("; {m}"));
    storable(format!("late result, changes nothing: {end} ({why}){message}").as_bytes(), LINE_MAX)
}

/// How a try ended, in the words of the states.
fn word(end: &End) -> &'static str {
    match end {
        End::Success => QueueStatus::Success.as_str(),
        End::Warning => QueueStatus::Warning.as_str(),
        End::Failed => QueueStatus::Failed.as_str(),
        End::TimedOut => QueueStatus::Timeout.as_str(),
        End::Killed => QueueStatus::Killed.as_str(),
        End::Returned => "HANDED BACK",
        End::Unknown => QueueStatus::Unknown.as_str(),
    }
}
