//! The dashboard of the console.

use crate::api::batches::{briefs, seen_groups};
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::GroupCode;
use crate::domain::schedule::misfire::LATE_MS;
use crate::domain::time::{Millis, at_wall_clock, day_in};
use crate::store;
use crate::view::batches::BatchSummary;
use crate::view::dashboard::{self, DashboardDay, Everywhere, FailedJobSummary, UpcomingFiring};
use crate::view::node::{Members, NodeDetail};
use chrono::{Days, NaiveTime};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of days shown.
const DAYS: u64 = 30;

pub(super) fn routes() -> Noun {
    Noun::new("dashboard").get(
        "getDashboard",
        "/dashboard",
        CallerNeeds::Somewhere(Permission::View),
        "Get what runs, failed, is late and comes next, and the last thirty days",
        get_dashboard,
    )
}

/// Filter of the dashboard.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct DashboardQuery {
    /// Time zone in which days begin: `Asia/Shanghai`; default UTC.
    zone: Option<String>,
    /// Only these groups, separated by commas.
    group: Option<String>,
}

/// The dashboard.
#[derive(Debug, Serialize, JsonSchema)]
struct Dashboard {
    /// When this was read.
    now: String,
    /// Batches opened today.
    today: TodayBatches,
    /// Open batches, newest first, at most 100.
    running: Vec<BatchSummary>,
    /// Failed jobs of open batches and of those of today, latest first, at most 100.
    failures: Vec<FailedJobSummary>,
    /// Open batches that are late or will be.
    late: Vec<BatchSummary>,
    /// The next planned times of schedules.
    next_firings: Vec<UpcomingFiring>,
    /// By how many seconds the planned time that has waited longest is overdue, over all schedules
    /// of the installation; null when it is 5 s or less. Beyond that the misfire policy decides
    /// what fires.
    overdue_sec: Option<i64>,
    /// The living processes.
    nodes: Vec<NodeDetail>,
    /// Number of notifications that wait and that were given up; empty for users who do not see all
    /// groups.
    outbox: BTreeMap<String, i64>,
    /// The last thirty days, oldest first.
    days: Vec<DashboardDay>,
}

/// Batches opened today.
#[derive(Debug, Serialize, JsonSchema)]
struct TodayBatches {
    /// The latest of them, at most 100.
    batches: Vec<BatchSummary>,
    /// Number of those in each state.
    counts: BTreeMap<String, u64>,
}

async fn get_dashboard(
    ask: ApiRequest,
    _: Nothing,
    from: DashboardQuery,
) -> Result<Dashboard, Problem> {
    let app = &ask.house.app;
    let now = app.server_now().await?;
    let days = recent_days(now, parse_zone(from.zone.as_deref())?);
    let groups = seen_groups(&ask, from.group.as_deref())?;
    let midnight = days.last().map_or(now, |(at, _)| *at);
    let lately = dashboard::lately(app, groups.clone(), midnight).await?;
    let running = briefs(&ask, &lately.open).await?;
    let today = briefs(&ask, &lately.since).await?;
    let mut counts = BTreeMap::new();
    today.iter().for_each(|b| *counts.entry(b.status.clone()).or_default() += 1);
    let is_everywhere = ask.caller()?.grants.allow_everywhere(Permission::View);
    let everywhere = if is_everywhere { Everywhere::Seen } else { Everywhere::Unseen };
    let wanted = |group: &GroupCode| groups.as_ref().is_none_or(|seen| seen.contains(group));
    let next_firings = dashboard::coming(app, now, wanted, everywhere).await?;
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let nodes = Members::read_members(&mut tx, 0, now).await?.details();
    let delay_ms = store::trigger::outlook(&mut tx).await?.delay_ms(now);
    let outbox = match is_everywhere {
        true => store::outbox::counts(&mut tx).await?,
        false => Vec::new(),
    };
    drop(tx);
    Ok(Dashboard {
        now: now.to_string(),
        late: running.iter().filter(|b| b.is_late || b.will_be_late).cloned().collect(),
        today: TodayBatches { batches: today, counts },
        running,
        failures: lately.failures,
        next_firings,
        overdue_sec: (delay_ms > LATE_MS).then_some(delay_ms / 1_000),
        nodes,
        outbox: outbox.into_iter().map(|(s, n)| (s.as_str().to_owned(), n)).collect(),
        days: dashboard::read_days(app, &days, groups.as_deref()).await?,
    })
}

fn parse_zone(name: Option<&str>) -> Result<Tz, Problem> {
    let name = name.unwrap_or("UTC");
    let refused = |_| {
        let how = "write it as the tz database has it, Asia/Shanghai";
        Problem::unreadable(format!("zone: {name} is no time zone; {how}"))
    };
    name.parse().map_err(refused)
}

/// The last days and today, each with its start.
fn recent_days(now: Millis, zone: Tz) -> Vec<(Millis, String)> {
    let today = day_in(now, zone);
    let back = (0..DAYS).rev().filter_map(|n| today.checked_sub_days(Days::new(n)));
    back.map(|day| (at_wall_clock(day, NaiveTime::MIN, zone), day.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_midnight_of_their_zone() {
        // 2024-07-31T18:00:00Z is two o'clock at night in Shanghai.
        let days = recent_days(Millis(1_722_448_800_000), chrono_tz::Asia::Shanghai);
        assert_eq!(days.len(), 30);
        let (at, day) = days.last().expect("today");
        assert_eq!(
            (at.to_string().as_str(), day.as_str()),
            ("2024-07-31T16:00:00.000Z", "2024-08-01")
        );
    }
}
