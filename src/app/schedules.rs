//! Checks schedules against the tables before they are saved.

use crate::app::App;
use crate::definition::{DefinitionFault, Loaded, ScheduleCheckContext};
use crate::domain::batch::{BatchPlan, plan};
use crate::domain::forecast::eta;
use crate::domain::id::{BatchNo, CalendarCode, GroupCode};
use crate::domain::job::{Definition, Group};
use crate::domain::schedule::order::BatchOrder;
use crate::domain::schedule::read_zone;
use crate::domain::schedule::trigger::{TriggerDef, TriggerWords};
use crate::domain::time::Millis;
use crate::store;
use anyhow::{Context as _, Result};
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};

/// What a schedule inherits from the groups that it opens, where it sets nothing itself; the same
/// as for one written in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromGroups {
    /// Their time zone; UTC when they set none. `None` when they differ, and the schedule must set
    /// one.
    pub zone: Option<Tz>,
    /// Their calendar, when all have the same one.
    pub calendar: Option<CalendarCode>,
}

impl FromGroups {
    /// The values of the groups that a schedule opens.
    pub fn from_words(words: &TriggerWords, defs: &Definition) -> Self {
        let opened = |g: &&Group| words.opens(&g.code, g.batch_type.as_deref());
        let groups: Vec<&Group> = defs.groups.iter().filter(opened).collect();
        let zones: BTreeSet<&str> =
            groups.iter().map(|g| g.time_zone.as_deref().unwrap_or("UTC")).collect();
        let zone = match zones.len() {
            // An unreadable zone is a fault of the group, and reported there.
            0 | 1 => Some(zones.first().and_then(|z| read_zone(z).ok()).unwrap_or(Tz::UTC)),
            _ => None,
        };
        let calendars: BTreeSet<Option<&CalendarCode>> =
            groups.iter().map(|g| g.calendar.as_ref()).collect();
        let calendar = match calendars.len() {
            1 => calendars.first().copied().flatten().cloned(),
            _ => None,
        };
        Self { zone, calendar }
    }

    /// Sets the calendar of a schedule that counts days and names none.
    pub fn calendar_into(self, mut words: TriggerWords) -> TriggerWords {
        let counts = words.timing.rule.is_some() || words.timing.shift.is_some();
        if counts && words.timing.calendar.is_none() {
            words.timing.calendar = self.calendar;
        }
        words
    }
}

impl App {
    /// The present time by the database's clock, by which schedules fire.
    pub async fn server_now(&self) -> Result<Millis> {
        let mut tx = self.db.begin_read().await?;
        let asked = self.clock.uptime();
        let now = tx.server_time().await.context("ask the database for its time")?;
        if let Some(measured) = self.clock.measure(asked, now.into()) {
            self.clock.follow(measured.base_ms);
        }
        Ok(self.clock.now())
    }

    /// The stored definition with its schedules.
    pub async fn definition_with_schedules(&self) -> Result<Definition> {
        let mut tx = self.db.begin_read().await?;
        let schedules =
            store::trigger::list_triggers(&mut tx).await?.into_iter().map(|t| t.def).collect();
        let defs = self.secret_stores.add_access(store::job::definition(&mut tx).await?);
        Ok(Definition { schedules, ..defs })
    }

    /// The expected duration of the next batches of the groups that these schedules open, in
    /// milliseconds, as far as the history shows.
    pub async fn expected(
        &self,
        defs: &Definition,
        schedules: &[TriggerDef],
        now: Millis,
    ) -> Result<BTreeMap<GroupCode, i64>> {
        let mut found = BTreeMap::new();
        for def in schedules {
            let Some(order) = &def.order else { continue };
            let order = BatchOrder {
                batch_no: BatchNo::parse("expected")?,
                batch_type: order.batch_type.clone(),
                group: order.group.clone(),
                business_date: None,
                params: order.params.clone(),
                free_text: true,
            };
            // A fault of the order is reported where it is checked.
            for plan in plan(defs, &order, now).unwrap_or_default() {
                let group = plan.snapshot.group.code.clone();
                if !found.contains_key(&group)
                    && let Some(ms) = self.expected_of(&plan, now).await?
                {
                    found.insert(group, ms);
                }
            }
        }
        Ok(found)
    }

    async fn expected_of(&self, plan: &BatchPlan, now: Millis) -> Result<Option<i64>> {
        let history = self.history(&plan.snapshot.group.code).await?;
        let (dag, total) = (plan.snapshot.build_dag()?, self.config.engine.max_parallel);
        let forecast = eta::of_plan(plan, &dag, &history, total, now);
        // A forecast from guesses alone is no reason to refuse anything.
        Ok(forecast.filter(|f| f.assumed.is_empty()).map(|f| f.remaining()))
    }

    /// Checks the schedules of a file against the calendars, the history and the stored schedules;
    /// returns warnings.
    ///
    /// # Errors
    ///
    /// Every fault, at its line.
    pub async fn look_at_schedules(&self, loaded: &Loaded) -> Result<Vec<DefinitionFault>> {
        if loaded.definition.schedules.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.server_now().await?;
        let stored = self.definition_with_schedules().await?.schedules;
        let calendars = self.calendars().await?;
        let defs = Definition { calendars: calendars.clone(), ..loaded.definition.clone() };
        let expected = self.expected(&defs, &defs.schedules, now).await?;
        let look = ScheduleCheckContext {
            calendars: Some(&calendars),
            now,
            expected: &expected,
            stored: &stored,
        };
        Ok(loaded.look_at_schedules(look)?)
    }
}

/// Checks the schedules of a file against the present time; calendars are unknown here.
///
/// # Errors
///
/// Every fault, at its line.
pub fn look_at_schedules(loaded: &Loaded, now: Millis) -> Result<Vec<DefinitionFault>> {
    let look =
        ScheduleCheckContext { calendars: None, now, expected: &BTreeMap::new(), stored: &[] };
    Ok(loaded.look_at_schedules(look)?)
}
