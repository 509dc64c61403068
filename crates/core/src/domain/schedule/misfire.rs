//! Decides about planned times that have passed or are due within a few seconds: fired on time,
//! fired late, or missed, by the policy of their schedule.
//!
//! XXL-JOB ignores a firing that is more than 5 s late unless it is configured to fire it once, and
//! leaves a line in a log (its schedule thread; asks A5: a monthly cron ignored is a month lost).
//! Here a missed firing is a row.

use crate::domain::schedule::firing::{Firing, FiringStatus, NewFiring, Source, TriggerId};
use crate::domain::time::Millis;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Milliseconds after the planned time beyond which the misfire policy decides; until then a firing
/// is merely late.
pub const LATE_MS: i64 = 5_000;
/// Longest window in seconds: a month of 31 days.
pub const WINDOW_MAX_SEC: u32 = 31 * 24 * 3_600;
/// Default window in seconds: a day, because a batch that was missed at night is wanted the next
/// morning.
pub const WINDOW_SEC: u32 = 24 * 3_600;
/// Maximum number of rows that one schedule may add in one pass; the pass holds a lock.
pub const ROWS_MAX: usize = 1_000;

/// Which of the missed times are fired anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MisfirePolicy {
    /// None.
    Skip,
    /// The newest, once for all of them.
    #[default]
    Once,
    /// Each of them.
    All,
    /// The newest ones, this many.
    Newest(u32),
}

/// Misfire settings of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misfire {
    /// Which missed times are fired anyway.
    pub policy: MisfirePolicy,
    /// Seconds for which a missed time may still be fired.
    pub window_sec: u32,
}

impl Default for Misfire {
    fn default() -> Self {
        Self { policy: MisfirePolicy::Once, window_sec: WINDOW_SEC }
    }
}

/// A planned time of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTime {
    /// The planned time.
    pub at: Millis,
    /// The day before it was moved.
    pub nominal_date: Option<NaiveDate>,
    /// A remark for the user.
    pub note: Option<String>,
}

/// The changes for one schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisfirePlan {
    /// Rows to insert, in the order of their planned times.
    pub rows: Vec<NewFiring>,
    /// Its next planned time; `None` when there is none.
    pub next: Option<Millis>,
    /// The last planned time that has a row now.
    pub last: Option<Millis>,
}

/// Plans every time from `due` up to `horizon`, which lies a few seconds after `now`. `next_after`
/// gives the first planned time strictly later than a moment. Each planned time gets one row; those
/// older than the window share one. One call returns at most `ROWS_MAX` rows: then `next` is in the
/// past, and the next pass continues from there.
pub fn plan_firings<E>(
    trigger: TriggerId,
    handler: &str,
    due: PlannedTime,
    now: Millis,
    horizon: Millis,
    misfire: Misfire,
    mut next_after: impl FnMut(Millis) -> Result<Option<PlannedTime>, E>,
) -> Result<MisfirePlan, E> {
    let (first, mut rows) = (due.at, Vec::new());
    let edge = now.plus_ms(-i64::from(misfire.window_sec) * 1_000);
    let mut at = Some(due);
    if first < edge.min(now.plus_ms(-LATE_MS)) {
        let reason = OUTSIDE;
        let mut row = new_row(
            trigger,
            handler,
            at.take().expect("it was just put there"),
            FiringStatus::Misfired,
        );
        row.reason = Some(reason.to_owned());
        // One millisecond before the edge, so that a time at the edge still counts as inside.
        let within = next_after(edge.min(now.plus_ms(-LATE_MS)).plus_ms(-1))?;
        row.missed_until = Some(edge.min(now.plus_ms(-LATE_MS)).plus_ms(-1));
        rows.push(row);
        at = within;
    }
    let mut missed = 0;
    while let Some(planned) = at.take_if(|p| p.at <= horizon && rows.len() < ROWS_MAX) {
        let from = planned.at;
        let is_missed = now.since(from) > LATE_MS;
        missed += usize::from(is_missed);
        let status = if is_missed { FiringStatus::Misfired } else { FiringStatus::Pending };
        rows.push(new_row(trigger, handler, planned, status));
        at = next_after(from)?;
    }
    // Of very many missed times only the last pass knows which are the newest; the earlier passes
    // fire nothing unless the policy fires all.
    let is_all = at.as_ref().is_none_or(|next| now.since(next.at) <= LATE_MS);
    let fires = match misfire.policy {
        MisfirePolicy::Skip => 0,
        MisfirePolicy::All => missed,
        MisfirePolicy::Once => usize::from(is_all),
        MisfirePolicy::Newest(n) => {
            if is_all {
                usize::try_from(n).unwrap_or(usize::MAX)
            } else {
                0
            }
        }
    };
    decide(&mut rows, misfire.policy, fires, now);
    let last = rows.last().map(|row| row.missed_until.unwrap_or(row.planned_at));
    Ok(MisfirePlan { rows, next: at.map(|p| p.at), last })
}

/// Whether the misfire policy decides about a firing that was written in time and not executed: it
/// came from the clock, had no attempt yet, and is more than [`LATE_MS`] late.
pub fn is_missed(firing: &Firing, now: Millis) -> bool {
    firing.status == FiringStatus::Pending
        && firing.source == Source::Cron
        // A retried firing was in time once.
        && firing.attempt == 0
        && now.since(firing.planned_at) > LATE_MS
}

/// Whether a firing that was decided in time, and that no node executed, is fired anyway `age_ms`
/// after its planned time; `newer` of its schedule's planned times have passed since. `Err` is the
/// reason why not.
pub fn fires_late(misfire: Misfire, age_ms: i64, newer: usize) -> Result<(), &'static str> {
    if age_ms > i64::from(misfire.window_sec) * 1_000 {
        return Err(OUTSIDE);
    }
    match misfire.policy {
        MisfirePolicy::All => Ok(()),
        MisfirePolicy::Skip => Err(SKIPPED),
        MisfirePolicy::Once if newer == 0 => Ok(()),
        MisfirePolicy::Once => Err(JOINED),
        MisfirePolicy::Newest(n) if newer < usize::try_from(n).unwrap_or(usize::MAX) => Ok(()),
        MisfirePolicy::Newest(_) => Err(OLDER),
    }
}

const OUTSIDE: &str = "older than the misfire window of the schedule";
const SKIPPED: &str = "missed; the misfire policy is to skip";
const JOINED: &str = "missed; the misfire policy fires once for all that were missed";
const OLDER: &str = "missed; the misfire policy fires only the newest";
/// Reason in the row of a missed time that is fired anyway.
pub const LATE: &str = "missed its planned time; fired late by the misfire policy";

/// Lets the newest `fires` of the missed rows fire, and records the reason in the others.
fn decide(rows: &mut [NewFiring], policy: MisfirePolicy, fires: usize, now: Millis) {
    let missed = rows
        .iter_mut()
        .filter(|row| row.status == FiringStatus::Misfired && row.missed_until.is_none());
    for (place, row) in missed.rev().enumerate() {
        if place < fires {
            (row.status, row.source) = (FiringStatus::Pending, Source::Misfire);
            row.reason = Some(LATE.to_owned());
            continue;
        }
        row.fire_at = now;
        let said = match policy {
            MisfirePolicy::Skip => SKIPPED,
            MisfirePolicy::Once => JOINED,
            MisfirePolicy::All | MisfirePolicy::Newest(_) => OLDER,
        };
        row.reason = Some(said.to_owned());
    }
}

fn new_row(
    trigger_id: TriggerId,
    handler: &str,
    planned: PlannedTime,
    status: FiringStatus,
) -> NewFiring {
    NewFiring {
        trigger_id,
        planned_at: planned.at,
        nominal_date: planned.nominal_date,
        source: Source::Cron,
        handler: handler.to_owned(),
        status,
        fire_at: planned.at,
        params: None,
        parent_batch_id: None,
        missed_until: None,
        reason: planned.note,
    }
}

#[cfg(test)]
#[path = "misfire_tests.rs"]
mod tests;
