//! The board of deadlines: the batches of the last day, those under way and those that are planned,
//! each with its deadline, its forecast and how it stands.

use crate::app::App;
use crate::domain::batch::run_record::DurationBand;
use crate::domain::batch::{BatchStatus, zone_of};
use crate::domain::calendar::{Calendars, WorkingDays};
use crate::domain::forecast::deadline_standing::{DeadlineStanding, DeadlineTimes};
use crate::domain::id::{BatchId, GroupCode};
use crate::domain::job::Group;
use crate::domain::schedule::due::DueContext;
use crate::domain::time::Millis;
use crate::store;
use crate::store::batch::BatchFilter;
use crate::store::run_facts::{self, BatchFact};
use crate::view::batches::{self, Listed, Prospect};
use crate::view::schedule::opens;
use anyhow::Result;
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of batches that are looked at.
const BATCHES: u32 = 500;
/// Maximum number of ended batches of one group that are shown, the latest.
const ENDED: usize = 3;
/// Maximum number of planned times that are looked at.
const FIRINGS: u32 = 500;
/// Number of past batches from which the duration of a planned one is estimated.
const PAST: u32 = 20;
/// Minimum number of successful ones for an estimate.
const PAST_NEEDED: usize = 5;

/// A batch, past, present or planned.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeadlineEntry {
    /// The group code.
    pub group: String,
    /// The name of the group.
    pub name: String,
    /// The batch number; null for a planned batch.
    pub batch_no: Option<String>,
    /// The state of the batch; null for a planned one.
    pub status: Option<String>,
    /// The schedule that will open it; null for a batch that is there.
    pub schedule: Option<String>,
    /// When it was opened, or is planned to be.
    pub start: String,
    /// Its deadline. For a batch that has ended or is planned: by the rule that the group has now.
    pub due: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// When it is expected to end; null where nothing says so.
    pub expected_end: Option<String>,
    /// By how many milliseconds it is, was or will be late.
    pub late_by_ms: Option<i64>,
    /// How it stands.
    pub standing: DeadlineStanding,
}

/// The board.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeadlineBoard {
    /// When this was read.
    pub now: String,
    /// Ended batches were opened since then.
    pub from: String,
    /// Planned ones are opened until then.
    pub until: String,
    /// Number of entries with each standing.
    pub counts: BTreeMap<String, usize>,
    /// The entries; what needs attention first.
    pub items: Vec<DeadlineEntry>,
    /// Number of ended batches that are left out: of each group the last three are shown.
    pub left_out: usize,
}

/// What a board is about.
pub struct BoardRequest {
    pub now: Millis,
    pub from: Millis,
    pub until: Millis,
    /// The groups; `None` means all.
    pub groups: Option<Vec<GroupCode>>,
}

/// The groups with what decides their deadlines.
struct BoardGroups {
    groups: Vec<Group>,
    calendars: Calendars,
}

impl BoardGroups {
    fn name(&self, code: &GroupCode) -> String {
        let found = self.groups.iter().find(|group| group.code == *code);
        found.map_or_else(|| code.to_string(), |group| group.name.clone())
    }

    /// The deadline of a batch of this group that is opened then.
    fn due(&self, code: &GroupCode, at: Millis) -> Option<Millis> {
        let group = self.groups.iter().find(|group| group.code == *code)?;
        let zone = zone_of(group).unwrap_or(Tz::UTC);
        let days = WorkingDays::new(&self.calendars, group.calendar.as_ref());
        Some(group.due?.moment(DueContext { at, zone, days }))
    }
}

/// The batches that are open, and those that were opened since `from`, newest first.
pub async fn list_batches(app: &App, wanted: &BoardRequest) -> Result<Vec<Listed>> {
    let statuses = vec![BatchStatus::Running, BatchStatus::Killing];
    let groups = wanted.groups.clone();
    let asked = BatchFilter { groups: groups.clone(), statuses, ..BatchFilter::default() };
    let mut all = batches::list_page(app, &asked, BATCHES).await?;
    let asked = BatchFilter { groups, from: Some(wanted.from), ..BatchFilter::default() };
    let seen: BTreeSet<BatchId> = all.iter().map(|one| one.batch.batch_id).collect();
    let lately = batches::list_page(app, &asked, BATCHES).await?;
    all.extend(lately.into_iter().filter(|one| !seen.contains(&one.batch.batch_id)));
    Ok(all)
}

/// The board of these batches, and of what is planned.
pub async fn read_board(
    app: &App,
    wanted: &BoardRequest,
    listed: &[Listed],
    prospects: &HashMap<BatchId, Prospect>,
) -> Result<DeadlineBoard> {
    let mut tx = app.db.begin_read().await?;
    let (groups, _) = store::job::audience(&mut tx).await?;
    let calendars = store::calendar::list_calendars(&mut tx).await?;
    drop(tx);
    let around = BoardGroups { groups, calendars };
    let mut shown: BTreeMap<&GroupCode, usize> = BTreeMap::new();
    let mut items = Vec::new();
    let mut left_out = 0;
    for one in listed {
        let is_over = one.batch.status.is_final();
        let before = shown.entry(&one.batch.values.group).or_default();
        if is_over && *before >= ENDED {
            left_out += 1;
            continue;
        }
        *before += usize::from(is_over);
        let prospect = prospects.get(&one.batch.batch_id).copied();
        items.push(entry_of_batch(one, prospect, &around, wanted.now));
    }
    items.extend(planned(app, wanted, &around).await?);
    items.sort_by(|a, b| (a.standing, &a.start, &a.group).cmp(&(b.standing, &b.start, &b.group)));
    let mut counts = BTreeMap::new();
    for item in &items {
        *counts.entry(word_of(item.standing)).or_default() += 1;
    }
    Ok(DeadlineBoard {
        now: wanted.now.to_string(),
        from: wanted.from.to_string(),
        until: wanted.until.to_string(),
        counts,
        items,
        left_out,
    })
}

fn word_of(standing: DeadlineStanding) -> String {
    let word = serde_json::to_value(standing).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

fn entry_of_batch(
    one: &Listed,
    prospect: Option<Prospect>,
    around: &BoardGroups,
    now: Millis,
) -> DeadlineEntry {
    let batch = &one.batch;
    let group = &batch.values.group;
    let ended = batch.end_time.filter(|_| batch.status.is_final());
    let times = DeadlineTimes {
        due: match prospect {
            Some(prospect) => prospect.due,
            None => around.due(group, batch.create_time),
        },
        ended,
        has_failed: batch.status.is_final() && !batch.status.is_success(),
        expected_end: prospect.and_then(|prospect| prospect.expected_end),
        bad_end: None,
    };
    DeadlineEntry {
        batch_no: Some(batch.values.batch_no.to_string()),
        status: Some(batch.status.as_str().to_owned()),
        ..entry(group, around, (batch.create_time, times), now)
    }
}

fn entry(
    group: &GroupCode,
    around: &BoardGroups,
    (start, times): (Millis, DeadlineTimes),
    now: Millis,
) -> DeadlineEntry {
    let standing = times.standing(now);
    let reached = times.ended.or(times.expected_end.max(Some(now)));
    let late_by = times.due.zip(reached).map(|(due, end)| end.since(due)).filter(|ms| *ms > 0);
    let words = |at: Option<Millis>| at.map(|at| at.to_string());
    DeadlineEntry {
        group: group.to_string(),
        name: around.name(group),
        batch_no: None,
        status: None,
        schedule: None,
        start: start.to_string(),
        due: words(times.due),
        end: words(times.ended),
        expected_end: words(times.expected_end),
        late_by_ms: late_by,
        standing,
    }
}

/// The next planned time of each schedule until the end of the board, once for each of its groups.
async fn planned(
    app: &App,
    wanted: &BoardRequest,
    around: &BoardGroups,
) -> Result<Vec<DeadlineEntry>> {
    let mut tx = app.db.begin_read().await?;
    let due = store::trigger::list_due(&mut tx, wanted.until, FIRINGS).await?;
    let ids: Vec<_> = due.iter().map(|one| one.trigger_id).collect();
    let found = store::trigger::by_ids(&mut tx, &ids).await?;
    let times: HashMap<_, Millis> = due.iter().map(|one| (one.trigger_id, one.next_time)).collect();
    let mut usual: BTreeMap<&GroupCode, Option<DurationBand>> = BTreeMap::new();
    let mut items = Vec::new();
    for (id, trigger) in found {
        let (Some(at), Ok(trigger)) = (times.get(&id), trigger) else { continue };
        for group in opens(&trigger.def, &around.groups) {
            if wanted.groups.as_ref().is_some_and(|seen| !seen.contains(group)) {
                continue;
            }
            if !usual.contains_key(group) {
                let past = run_facts::last_batches(&mut tx, group, PAST).await?;
                usual.insert(group, band_of(&past));
            }
            let band = usual.get(group).copied().flatten();
            let times = DeadlineTimes {
                due: around.due(group, *at),
                expected_end: band.map(|band| at.plus_ms(band.p50)),
                bad_end: band.map(|band| at.plus_ms(band.p95)),
                ..DeadlineTimes::default()
            };
            items.push(DeadlineEntry {
                schedule: Some(trigger.def.code.to_string()),
                ..entry(group, around, (*at, times), wanted.now)
            });
        }
    }
    Ok(items)
}

/// How long the last successful batches took; `None` with too few.
fn band_of(past: &[BatchFact]) -> Option<DurationBand> {
    let good = past.iter().filter(|fact| fact.status.is_success());
    let took: Vec<i64> = good.filter_map(|fact| Some(fact.ended?.since(fact.opened))).collect();
    if took.len() < PAST_NEEDED { None } else { DurationBand::from_durations(took) }
}
