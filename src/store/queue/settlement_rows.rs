//! Writes ends of attempts into `job_queue`.

use crate::db::SqlValue;
use crate::db::single_round_trip::CountedStatement;
use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::outcome::LargeValues;
use crate::domain::job::queue::QueueStatus;
use crate::domain::time::Millis;
use crate::store::queue::expect_all;
use crate::store::{Tx, output_value};
use anyhow::{Context as _, Result};
use std::collections::HashSet;

/// The new values of a row whose attempt has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledRow {
    pub queue_id: QueueId,
    /// The ended attempt; a late result of an older one changes nothing.
    pub attempt: u32,
    /// The process that owned it; a row that was taken over meanwhile is not changed.
    pub owner: Option<NodeId>,
    /// The expected present state.
    pub from: QueueStatus,
    /// The new state.
    pub to: QueueStatus,
    /// Retries so far.
    pub try_count: u32,
    /// The earliest time of the next start.
    pub not_before: Option<Millis>,
    pub error_message: Option<String>,
    /// Outputs as JSON text.
    pub outputs: Option<String>,
    /// The values that the outputs only refer to.
    pub large_values: LargeValues,
    /// Number of consecutive worker deaths while it ran.
    pub crash_count: u32,
    /// Number of consecutive attempts whose outcome is open.
    pub unresolved: u32,
}

impl SettledRow {
    /// Whether it differs from another only in its row and outputs.
    fn ends_as(&self, other: &Self) -> bool {
        let but_row = |s: &Self| Self {
            queue_id: QueueId(0),
            outputs: None,
            large_values: LargeValues::default(),
            ..s.clone()
        };
        but_row(self) == but_row(other)
    }
}

/// Maximum number of rows per statement: each row with outputs is a CASE branch in it.
const SETTLED_MOST: usize = 128;

/// Stores the end of an attempt. Accepted only for the present attempt, owner and state.
pub async fn settle(tx: &mut Tx, settled: &SettledRow, now: Millis) -> Result<()> {
    settle_all(tx, std::slice::from_ref(settled), now).await
}

/// Stores ends of attempts, in order. Each is accepted only for the row's present attempt, owner
/// and state.
pub async fn settle_all(tx: &mut Tx, settled: &[SettledRow], now: Millis) -> Result<()> {
    for group in groups(settled) {
        let found = tx.run_statement(alike(group, now)).await;
        let of = || format!("settle queue row {}", group.first().map_or(0, |s| s.queue_id.0));
        expect_all(group.len(), found.with_context(of)?)?;
    }
    for one in settled {
        output_value::replace(tx, one.large_values.unwritten(), now).await?;
    }
    Ok(())
}

/// The statements of `settle_all`.
pub fn settled_alike(
    settled: &[SettledRow],
    now: Millis,
) -> impl Iterator<Item = CountedStatement> + '_ {
    groups(settled).map(move |group| alike(group, now))
}

/// Groups rows that differ only in their outputs: of 8 bodies that end during a commit most end
/// alike. A row may take two steps in one tick, and one statement would apply only one of them.
fn groups(settled: &[SettledRow]) -> impl Iterator<Item = &[SettledRow]> {
    let mut rest = settled;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut seen = HashSet::new();
        let fits = |s: &&SettledRow| s.ends_as(first) && seen.insert(s.queue_id);
        let count = rest.iter().take_while(fits).take(SETTLED_MOST).count();
        let (group, others) = rest.split_at(count);
        rest = others;
        Some(group)
    })
}

/// Settles rows that differ only in their outputs.
fn alike(group: &[SettledRow], now: Millis) -> CountedStatement {
    let like = group.first().expect("a group has a first row");
    let ended = (like.to != QueueStatus::Killing).then_some(now.to_utc());
    let mut first: Vec<SqlValue> = vec![
        like.to.as_str().into(),
        like.try_count.into(),
        like.not_before.map(Millis::to_utc).into(),
        like.error_message.as_deref().into(),
        like.crash_count.into(),
        like.unresolved.into(),
        ended.into(),
        now.to_utc().into(),
    ];
    // A row that is being stopped still runs on its node. No effect on a row that was never hosted.
    let home = if ended.is_some() { ", hosted_by = NULL" } else { "" };
    // Padded to a power of two with branches that match no row, for the reason given at
    // `insert_many`.
    let mut outputs = "NULL".to_owned();
    let with_outputs: Vec<&SettledRow> = group.iter().filter(|s| s.outputs.is_some()).collect();
    if !with_outputs.is_empty() {
        let size = with_outputs.len().next_power_of_two();
        outputs = format!("CASE queue_id{} END", " WHEN ? THEN ?".repeat(size));
        for at in 0..size {
            let one = with_outputs.get(at).copied();
            first.push(one.map_or(0, |s| s.queue_id.0).into());
            first.push(one.and_then(|s| s.outputs.as_deref()).into());
        }
    }
    CountedStatement::OnEach {
        before: format!(
            "UPDATE job_queue SET status = ?, try_count = ?, not_before = ?, error_message = ?, \
             crash_count = ?, unresolved = ?, waits_on = NULL, end_time = ?, update_time = ?, \
             outputs = {outputs}{home} WHERE queue_id"
        ),
        first,
        ids: group.iter().map(|s| s.queue_id.0).collect(),
        after: "AND attempt = ? AND owner = ? AND status = ?".to_owned(),
        last: vec![
            like.attempt.into(),
            like.owner.as_ref().map_or("", |o| o.0.as_str()).into(),
            like.from.as_str().into(),
        ],
    }
}
