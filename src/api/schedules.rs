//! Schedules: what fires when, what became of it, and what a timing would do.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::page::{self, Page, PageQuery};
use crate::api::path_params::CodePath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::app::FromGroups;
use crate::domain::access::Permission;
use crate::domain::id::{CalendarCode, TriggerCode};
use crate::domain::job::{Definition, Group};
use crate::domain::notification::BilingualText;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::firing::FiringId;
use crate::domain::schedule::trigger::{NumberRule, Trigger, TriggerStatus, TriggerWords};
use crate::domain::schedule::{self, Timing, read_zone};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::store::{self, Tx};
use crate::view::schedule::{FiringDetail, ScheduleDetail, describe_timing, opens};
use crate::view::schedule_next::{self, FiringPreviewRequest, MOST, SchedulePreview};
use axum::http::Method;
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) fn routes() -> Noun {
    let needs = CallerNeeds::Somewhere(Permission::View);
    Noun::new("schedules")
        .get(
            "/schedules",
            needs,
            "Schedules of groups that the caller sees, by code",
            list_schedules,
        )
        .get(
            "/schedules/{code}",
            needs,
            "A schedule, where it stands, and what it means",
            get_schedule,
        )
        .get("/schedules/{code}/next", needs, "When it fires next, and what is left out", next)
        .get("/schedules/{code}/firings", needs, "What became of its planned times", firings)
        .change(
            Method::POST,
            "/schedules/preview",
            needs,
            "When a schedule would fire that is not stored; changes nothing",
            preview,
        )
        .get(
            "/cron/preview",
            needs,
            "What a cron expression means, and when it fires next",
            preview_cron,
        )
}

/// Which schedules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListSchedulesQuery {
    /// Code, name or owner hold this text.
    q: Option<String>,
    /// Those that open this group.
    group: Option<String>,
    /// ENABLED, PAUSED or ENDED.
    status: Option<String>,
    /// How many, 1 to 500; 50 when it is left out.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Schedules that are read at a time, to be picked from.
const AT_ONCE: u32 = 500;

/// Whether the caller sees a schedule: one of the groups that it opens; of one that opens none, all
/// groups.
fn is_visible(ask: &ApiRequest, t: &Trigger, groups: &[Group]) -> bool {
    let opened = opens(&t.def, groups);
    let all = || ask.caller().is_ok_and(|c| c.grants.allow_everywhere(Permission::View));
    opened.iter().any(|group| ask.allows(Permission::View, group)) || (opened.is_empty() && all())
}

/// A schedule of a list.
#[derive(Debug, Serialize, JsonSchema)]
struct ScheduleSummary {
    #[serde(flatten)]
    detail: ScheduleDetail,
    /// What it means.
    sentence: BilingualText,
}

/// A schedule, and what it opens.
#[derive(Debug, Serialize, JsonSchema)]
struct Schedule {
    #[serde(flatten)]
    summary: ScheduleSummary,
    /// The groups whose batches it opens, as far as the caller sees them.
    opens: Vec<String>,
}

/// When a schedule fires next, and what it means.
#[derive(Debug, Serialize, JsonSchema)]
struct NextFirings {
    #[serde(flatten)]
    preview: SchedulePreview,
    /// What it means.
    sentence: BilingualText,
}

/// What a cron expression means, and when it fires next.
#[derive(Debug, Serialize, JsonSchema)]
struct CronPreview {
    #[serde(flatten)]
    firings: NextFirings,
    /// The expression.
    expression: String,
    /// How it was read: `quartz` or `classic`.
    dialect: String,
    /// What the expression alone means.
    cron_sentence: BilingualText,
}

async fn list_schedules(
    ask: ApiRequest,
    _: Nothing,
    which: ListSchedulesQuery,
) -> Result<Page<ScheduleSummary>, Problem> {
    let limit = page::limit(which.limit)?;
    let status = which.status.as_deref().map(|word| {
        let found = TriggerStatus::ALL.into_iter().find(|s| s.as_str() == word);
        found.ok_or_else(|| Problem::unreadable("status: write ENABLED, PAUSED or ENDED"))
    });
    let status = status.transpose()?;
    let group = which.group.as_deref().map(|w| authorize::group(&ask, Permission::View, w));
    let group = group.transpose()?;
    let text = which.q.map(|q| q.trim().to_lowercase());
    let after: Option<String> = page::read_cursor(which.cursor.as_deref())?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let (groups, _) = store::job::audience(&mut tx).await?;
    let wanted = |t: &Trigger| {
        let owner = t.def.owner.as_deref().unwrap_or_default();
        let words = [t.def.code.as_str(), &t.def.name, owner];
        status.is_none_or(|s| t.status == s)
            && text.as_deref().is_none_or(|q| words.iter().any(|w| w.to_lowercase().contains(q)))
            && group.as_ref().is_none_or(|g| opens(&t.def, &groups).contains(&g))
            && is_visible(&ask, t, &groups)
    };
    let mut found: Vec<Trigger> = Vec::new();
    let mut place = after.unwrap_or_default();
    while found.len() <= limit {
        let some = store::trigger::list_page(&mut tx, &place, AT_ONCE).await?;
        let Some(last) = some.last() else { break };
        place = last.def.code.to_string();
        found.extend(some.into_iter().filter(|t| wanted(t)));
    }
    found.truncate(limit + 1);
    let place = |t: &Trigger| t.def.code.to_string();
    let Page { items, next } = Page::from_items(found, limit, place);
    let mut summaries = Vec::new();
    for t in &items {
        summaries.push(summary(&mut tx, t).await?);
    }
    Ok(Page { items: summaries, next })
}

/// A schedule with its last firing and what it means.
async fn summary(tx: &mut Tx, t: &Trigger) -> Result<ScheduleSummary, Problem> {
    let last = store::firing::of_trigger(tx, t.trigger_id, 1).await?.pop();
    let detail = ScheduleDetail::from_trigger(t, last.as_ref());
    Ok(ScheduleSummary { detail, sentence: describe_timing(&t.def.timing) })
}

/// The schedule that is meant, if the caller sees it.
async fn found(ask: &ApiRequest, tx: &mut Tx, at: &CodePath) -> Result<Trigger, Problem> {
    let missing = || Problem::not_found(format!("schedule {}", at.code));
    let code = TriggerCode::parse(&at.code).map_err(|_| missing())?;
    let found = store::trigger::find_trigger(tx, &code).await?.ok_or_else(missing)?;
    let (groups, _) = store::job::audience(tx).await?;
    if is_visible(ask, &found, &groups) { Ok(found) } else { Err(missing()) }
}

async fn get_schedule(ask: ApiRequest, at: CodePath, _: Nothing) -> Result<Schedule, Problem> {
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let t = found(&ask, &mut tx, &at).await?;
    let (groups, _) = store::job::audience(&mut tx).await?;
    let seen = opens(&t.def, &groups).into_iter().filter(|g| ask.allows(Permission::View, g));
    let opens = seen.map(ToString::to_string).collect();
    Ok(Schedule { summary: summary(&mut tx, &t).await?, opens })
}

/// How far to look.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewRange {
    /// How many firings, 1 to 1,000; 20 when it is left out.
    n: Option<u32>,
    /// From this day or time of the schedule's zone on, 2025-01-01; from now on when it is left out.
    from: Option<String>,
}

async fn next(ask: ApiRequest, at: CodePath, ahead: PreviewRange) -> Result<NextFirings, Problem> {
    let now = authorize::now(&ask).await?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let t = found(&ask, &mut tx, &at).await?;
    let asked = FiringPreviewRequest::stored(&mut tx, &t.def.code, now).await?;
    drop(tx);
    shown(&ask, &asked, ahead.n, ahead.from.as_deref(), now).await
}

/// What fires, and what does not.
async fn shown(
    ask: &ApiRequest,
    asked: &FiringPreviewRequest,
    n: Option<u32>,
    from: Option<&str>,
    now: Millis,
) -> Result<NextFirings, Problem> {
    let count = match n.unwrap_or(20) {
        n @ 1..=MOST => n as usize,
        n => return Err(Problem::unreadable(format!("n is {n}; it may be 1 to {MOST}"))),
    };
    let refused = || Problem::unreadable("from: write 2026-12-31 or 2026-12-31T18:00");
    let after = match from {
        Some(text) => {
            schedule_next::moment(text, asked.timing.zone).ok_or_else(refused)?.plus_ms(-1)
        }
        None => now,
    };
    let calendars = ask.house.app.calendars().await?;
    asked.check(after, now, &calendars).map_err(anyhow::Error::from)?;
    let preview = match asked.timing.schedule.is_clocked() {
        true => {
            let shown = schedule_next::find_firings(asked, &calendars, after, count)?;
            SchedulePreview::from_firings(asked, &shown)
        }
        false => SchedulePreview::empty(asked),
    };
    Ok(NextFirings { preview, sentence: describe_timing(&asked.timing) })
}

async fn firings(
    ask: ApiRequest,
    at: CodePath,
    past: PageQuery,
) -> Result<Page<FiringDetail>, Problem> {
    let limit = page::limit(past.limit)?;
    let before: Option<(i64, i64)> = page::read_cursor(past.cursor.as_deref())?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let t = found(&ask, &mut tx, &at).await?;
    let more = u32::try_from(limit + 1).unwrap_or(u32::MAX);
    let (id, zone) = (t.trigger_id, t.def.timing.zone);
    let all = match before {
        None => store::firing::of_trigger(&mut tx, id, more).await?,
        Some((planned, firing)) => {
            let (planned, firing) = (Millis(planned), FiringId(firing));
            store::firing::of_trigger_before(&mut tx, id, planned, firing, more).await?
        }
    };
    let Page { items, next } = Page::from_items(all, limit, |f| (f.planned_at.0, f.firing_id.0));
    Ok(Page { items: items.iter().map(|f| FiringDetail::from_firing(f, zone)).collect(), next })
}

/// A schedule that is not stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UnstoredSchedule {
    /// Its keys as in a file: exactly one of cron, every_sec, delay_sec, once_at, rule (with at), event,
    /// manual, after; beside it time_zone, calendar, shift, start, end, blackouts, and group, whose zone
    /// and calendar hold where none is said, and batch_no.
    words: Value,
    /// How many firings, 1 to 1,000; 20 when it is left out.
    n: Option<u32>,
    /// From this day or time of its zone on; from now on when it is left out.
    from: Option<String>,
}

async fn preview(
    ask: ApiRequest,
    _: Nothing,
    tried: UnstoredSchedule,
) -> Result<NextFirings, Problem> {
    let now = authorize::now(&ask).await?;
    let unreadable = |e: serde_json::Error| Problem::refused(format!("words: {e}"));
    let words: TriggerWords = serde_json::from_value(tried.words).map_err(unreadable)?;
    let mut tx = ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let (groups, _) = store::job::audience(&mut tx).await?;
    drop(tx);
    // What the caller does not see lends nothing.
    let groups = groups.into_iter().filter(|g| ask.allows(Permission::View, &g.code)).collect();
    let defs = Definition { groups, ..Definition::default() };
    let from_groups = FromGroups::from_words(&words, &defs);
    let zone = from_groups.zone;
    let words = from_groups.calendar_into(words);
    let timing = words.timing.parse_timing(zone.or(Some(Tz::UTC))).map_err(anyhow::Error::from)?;
    let number = words.batch_no.as_deref().map(NumberRule::parse).transpose();
    let number = number.map_err(anyhow::Error::from)?;
    let asked = FiringPreviewRequest::written(timing, number, now);
    shown(&ask, &asked, tried.n, tried.from.as_deref(), now).await
}

/// A cron expression.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Expression {
    /// Quartz cron of 6 or 7 fields, or classic cron of 5.
    expr: String,
    /// IANA time zone; UTC when it is left out.
    zone: Option<String>,
    /// Code of a calendar of working days, by which what is assumed is told.
    calendar: Option<String>,
    /// How many firings, 1 to 1,000; 20 when it is left out.
    n: Option<u32>,
}

async fn preview_cron(
    ask: ApiRequest,
    _: Nothing,
    asked: Expression,
) -> Result<CronPreview, Problem> {
    let cron = Cron::parse(&asked.expr).map_err(|e| Problem::refused(e.to_string()))?;
    let zone = asked.zone.as_deref().map(read_zone).transpose();
    let zone = zone.map_err(anyhow::Error::from)?.unwrap_or(Tz::UTC);
    let calendar = asked.calendar.as_deref().map(CalendarCode::parse).transpose();
    let calendar = calendar.map_err(anyhow::Error::from)?;
    let cron_sentence = BilingualText { en: cron.sentence(Lang::En), zh: cron.sentence(Lang::Zh) };
    let dialect = format!("{:?}", cron.dialect()).to_lowercase();
    let timing = Timing { calendar, ..Timing::plain(schedule::FiringRule::Cron(cron), zone) };
    let now = authorize::now(&ask).await?;
    let asked_for = FiringPreviewRequest::written(timing, None, now);
    let firings = shown(&ask, &asked_for, asked.n, None, now).await?;
    Ok(CronPreview { firings, expression: asked.expr, dialect, cron_sentence })
}
