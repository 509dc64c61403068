//! The dashboard: running, failed, late and upcoming work.

use crate::app::App;
use crate::domain::batch::BatchStatus;
use crate::domain::id::{BatchId, GroupCode};
use crate::domain::job::queue::QueueStatus;
use crate::domain::schedule::trigger::Trigger;
use crate::domain::time::Millis;
use crate::store;
use crate::store::batch::BatchFilter;
use crate::view::batches::{self, Listed};
use crate::view::schedule::opens;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of batches in a list.
const BATCHES: u32 = 100;
/// Maximum number of upcoming firings.
const FIRINGS: u32 = 30;
/// How far ahead firings are searched, in milliseconds: a year-end close is announced for months. A
/// schedule appears once, with its next time, and the list is short, so that a long range costs
/// nothing.
const AHEAD_MS: i64 = 400 * 86_400_000;

/// A failed job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailedJobSummary {
    /// The group code.
    pub group: String,
    /// The batch number.
    pub batch_no: String,
    /// The job code.
    pub job: String,
    /// FAILED, TIMEOUT or UNKNOWN.
    pub status: String,
    /// The error message.
    pub error: Option<String>,
    /// When it ended.
    pub at: Option<String>,
    /// Whether somebody has acknowledged it.
    pub is_acknowledged: bool,
    /// Who looks after it.
    pub assignee: Option<String>,
}

/// A planned time of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UpcomingFiring {
    /// The schedule code.
    pub schedule: String,
    /// The groups whose batches it opens, as far as the caller sees them.
    pub groups: Vec<String>,
    /// The planned time.
    pub planned_at: String,
}

/// A day of the last month.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DashboardDay {
    /// The day.
    pub day: String,
    /// Number of batches opened on it that succeeded.
    pub success: u64,
    /// Number of batches opened on it that failed.
    pub failed: u64,
    /// Number of batches opened on it that are still open.
    pub running: u64,
}

/// Open batches, batches opened since a time, and their failures.
pub struct Lately {
    /// Open batches, newest first.
    pub open: Vec<Listed>,
    /// Batches opened since then, open or not.
    pub since: Vec<Listed>,
    /// Failed jobs of both.
    pub failures: Vec<FailedJobSummary>,
}

/// Reads the open batches and those opened since a time, of these groups.
pub async fn lately(app: &App, groups: Option<Vec<GroupCode>>, since: Millis) -> Result<Lately> {
    let statuses = vec![BatchStatus::Running, BatchStatus::Killing];
    let asked = BatchFilter { groups: groups.clone(), statuses, ..BatchFilter::default() };
    let open = batches::list_page(app, &asked, BATCHES).await?;
    let asked = BatchFilter { groups, from: Some(since), ..BatchFilter::default() };
    let since = batches::list_page(app, &asked, BATCHES).await?;
    let is_bad = |s: &QueueStatus| {
        matches!(s, QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Unknown)
    };
    let bad = |l: &&Listed| l.counts.keys().any(is_bad);
    let named: HashMap<BatchId, &Listed> =
        open.iter().chain(&since).filter(bad).map(|l| (l.batch.batch_id, l)).collect();
    let mut ids: Vec<BatchId> = named.keys().copied().collect();
    ids.sort();
    let mut tx = app.db.begin_read().await?;
    let rows = store::glance::failures(&mut tx, &ids).await?;
    let row_ids: Vec<_> = rows.iter().map(|row| row.queue_id).collect();
    let marks = store::failure::marks_of(&mut tx, &row_ids).await?;
    drop(tx);
    let mut failures: Vec<(Option<Millis>, FailedJobSummary)> = Vec::new();
    for row in rows {
        let Some(of) = named.get(&row.batch_id) else { continue };
        // What was said about an earlier failure of the job is not about this one.
        let mark = marks.get(&row.queue_id).filter(|mark| mark.attempt == row.attempt);
        let failure = FailedJobSummary {
            group: of.batch.values.group.to_string(),
            batch_no: of.batch.values.batch_no.to_string(),
            job: row.job_code.to_string(),
            status: row.status.as_str().to_owned(),
            error: row.error_message,
            at: row.end_time.map(|at| at.to_string()),
            is_acknowledged: mark.is_some_and(|mark| mark.acknowledged.is_some()),
            assignee: mark.and_then(|mark| mark.assignee.clone()),
        };
        failures.push((row.end_time, failure));
    }
    failures.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let failures = failures.into_iter().map(|(_, failure)| failure).take(BATCHES as usize);
    Ok(Lately { failures: failures.collect(), open, since })
}

/// Whether the caller sees what belongs to no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Everywhere {
    Seen,
    Unseen,
}

/// The next planned times of schedules that the caller sees.
pub async fn coming(
    app: &App,
    now: Millis,
    sees: impl Fn(&GroupCode) -> bool,
    everywhere: Everywhere,
) -> Result<Vec<UpcomingFiring>> {
    let mut tx = app.db.begin_read().await?;
    let pending = store::glance::pending_first(&mut tx, FIRINGS).await?;
    let due = store::trigger::list_due(&mut tx, now.plus_ms(AHEAD_MS), FIRINGS).await?;
    let mut times: Vec<_> =
        pending.into_iter().chain(due.iter().map(|d| (d.next_time, d.trigger_id))).collect();
    times.sort();
    times.dedup();
    times.truncate(FIRINGS as usize);
    if times.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids: Vec<_> = times.iter().map(|(_, id)| *id).collect();
    ids.sort();
    ids.dedup();
    let found = store::trigger::by_ids(&mut tx, &ids).await?;
    let (groups, _) = store::job::audience(&mut tx).await?;
    drop(tx);
    let readable: BTreeMap<_, Trigger> =
        found.into_iter().filter_map(|(id, found)| Some((id, found.ok()?))).collect();
    let coming = |(at, id): (Millis, _)| {
        let trigger = readable.get(&id)?;
        let opened = opens(&trigger.def, &groups);
        let seen: Vec<String> = opened.iter().filter(|g| sees(g)).map(|g| g.to_string()).collect();
        let shown = match everywhere {
            Everywhere::Seen => opened.is_empty() || !seen.is_empty(),
            Everywhere::Unseen => !seen.is_empty(),
        };
        shown.then(|| UpcomingFiring {
            schedule: trigger.def.code.to_string(),
            groups: seen,
            planned_at: at.to_string(),
        })
    };
    Ok(times.into_iter().filter_map(coming).collect())
}

/// The results of the batches of each day; `days` are the starts of the days with their names.
pub async fn read_days(
    app: &App,
    days: &[(Millis, String)],
    groups: Option<&[GroupCode]>,
) -> Result<Vec<DashboardDay>> {
    let begins: Vec<Millis> = days.iter().map(|(at, _)| *at).collect();
    let mut tx = app.db.begin_read().await?;
    let counts = store::glance::spans(&mut tx, &begins, groups).await?;
    let day = |(counts, (_, day)): (&BTreeMap<BatchStatus, u64>, &(Millis, String))| {
        let sum = |is: &dyn Fn(BatchStatus) -> bool| {
            counts.iter().filter(|(s, _)| is(**s)).map(|(_, n)| n).sum()
        };
        DashboardDay {
            day: day.clone(),
            success: sum(&|s| s.is_success()),
            failed: sum(&|s| s.is_final() && !s.is_success()),
            running: sum(&|s| !s.is_final()),
        }
    };
    Ok(counts.iter().zip(days).map(day).collect())
}
