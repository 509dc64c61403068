//! Business calendars, and days with their past and future events.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::Page;
use crate::api::path_params::CodePath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::domain::access::Permission;
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::schedule::read_zone;
use crate::store;
use crate::view::calendar::{CalendarSummary, CalendarYear};
use crate::view::month::{MonthDay, MonthRequest, add_firings, read_days};
use crate::view::schedule::opens;
use chrono::{Datelike as _, NaiveDate};
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("calendars")
        .get(
            "listCalendars",
            "/calendars",
            needs,
            "List calendars and what uses each",
            list_calendars,
        )
        .get(
            "getCalendar",
            "/calendars/{code}",
            needs,
            "Get a year of a calendar, day by day",
            get_calendar,
        )
        .get(
            "listCalendarDays",
            "/calendar",
            needs,
            "List the days of a month with their batches, planned firings and working days",
            month,
        )
}

/// Which year.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetCalendarQuery {
    /// 1970 to 2199; default the present year.
    year: Option<i32>,
}

async fn list_calendars(
    ask: ApiRequest,
    _: Nothing,
    _: Nothing,
) -> Result<Page<CalendarSummary>, Problem> {
    let app = &ask.house.app;
    let (all, mut used) = (app.calendars().await?, app.calendars_used().await?);
    // The users of a calendar are named: groups and schedules, which not every caller sees.
    if !ask.caller()?.grants.allow_everywhere(Permission::View) {
        used.clear();
    }
    Ok(Page::whole(all.iter().map(|c| CalendarSummary::from_calendar(c, &used)).collect()))
}

async fn get_calendar(
    ask: ApiRequest,
    at: CodePath,
    year: GetCalendarQuery,
) -> Result<CalendarYear, Problem> {
    let missing = || Problem::not_found(format!("calendar {}", at.code));
    let code = CalendarCode::parse(&at.code).map_err(|_| missing())?;
    let year = match year.year {
        Some(year @ 1970..=2199) => year,
        Some(year) => {
            return Err(Problem::unreadable(format!("year is {year}; it may be 1970 to 2199")));
        }
        None => authorize::now(&ask).await?.to_utc().year(),
    };
    let all = ask.house.app.calendars().await?;
    if !all.contains(&code) {
        return Err(missing());
    }
    Ok(CalendarYear::for_year(&all, &code, year)?)
}

/// Which days.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CalendarDaysQuery {
    /// First day, 2026-07-01.
    from: String,
    /// Last day; at most 62 days in all.
    to: String,
    /// Only batches and schedules of this group, with its calendar and time zone.
    group: Option<String>,
    /// The calendar of working days; default that of the group.
    calendar: Option<String>,
    /// IANA zone in which days begin; default that of the group, else UTC.
    zone: Option<String>,
}

/// Maximum number of days.
const DAYS: i64 = 62;

async fn month(
    ask: ApiRequest,
    _: Nothing,
    asked: CalendarDaysQuery,
) -> Result<Page<MonthDay>, Problem> {
    let day = |name: &str, text: &str| {
        let read = text.parse::<NaiveDate>();
        read.map_err(|_| Problem::unreadable(format!("{name}: write a day, 2026-07-01")))
    };
    let (from, to) = (day("from", &asked.from)?, day("to", &asked.to)?);
    if to < from || (to - from).num_days() >= DAYS {
        let message =
            format!("to: write a day that is not before from, and {DAYS} days in all at most");
        return Err(Problem::unreadable(message));
    }
    let group = asked.group.as_deref().map(|w| authorize::group(&ask, Permission::View, w));
    let group = group.transpose()?;
    let now = authorize::now(&ask).await?;
    let calendars = ask.house.app.calendars().await?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let (groups, _) = store::job::audience(&mut tx).await?;
    let its = groups.iter().find(|g| Some(&g.code) == group.as_ref());
    let calendar = asked.calendar.as_deref().map(CalendarCode::parse).transpose();
    let calendar = calendar.map_err(anyhow::Error::from)?;
    let calendar = calendar.or_else(|| its.and_then(|g| g.calendar.clone()));
    if let Some(code) = calendar.as_ref().filter(|code| !calendars.contains(code)) {
        return Err(Problem::refused(format!("calendar: there is no calendar {code}")));
    }
    let zone = asked.zone.as_deref().or_else(|| its.and_then(|g| g.time_zone.as_deref()));
    let zone = zone.map(read_zone).transpose().map_err(anyhow::Error::from)?.unwrap_or(Tz::UTC);
    let seen = ask.caller()?.grants.places(Permission::View);
    let only = group.clone().map(|g| vec![g]).or(seen.map(|s| s.into_iter().collect()));
    let span = MonthRequest { from, to, zone, calendar: calendar.as_ref(), groups: only };
    let mut found = read_days(&mut tx, &span, &calendars).await?;
    for t in store::trigger::readable(&mut tx).await? {
        let told = |g: &&GroupCode| {
            ask.allows(Permission::View, g) && group.as_ref().is_none_or(|only| only == *g)
        };
        let groups: Vec<String> =
            opens(&t.def, &groups).into_iter().filter(told).map(GroupCode::to_string).collect();
        if !groups.is_empty() {
            add_firings(&mut found, &span, &calendars, &t, groups, now)?;
        }
    }
    Ok(Page::whole(found.into_values().collect()))
}
