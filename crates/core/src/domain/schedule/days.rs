//! Schedules of days and times of day: the days they name, the days to which a calendar moves them,
//! and the times on them.

use super::{DayRule, FiringRule, ScheduleError, Timing};
use crate::domain::calendar::{CalendarCertainty, Calendars, Landing, Nth, Shift};
use crate::domain::id::CalendarCode;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::cron::WallClockRule;
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};

/// Number of consecutive days off that are skipped before a schedule counts as never firing again;
/// at one per week, 19 years of them.
const WALK_MAX: usize = 1_000;

/// A schedule of days and times, with the calendar that moves its days.
#[derive(Clone, Copy)]
pub(super) struct DayPlan<'a> {
    named: DaySource<'a>,
    calendar: Option<&'a CalendarCode>,
    shift: Shift,
    calendars: &'a Calendars,
}

/// What names the days.
#[derive(Clone, Copy)]
enum DaySource<'a> {
    Cron(&'a Cron),
    Once(NaiveDateTime),
    Rule(DayRule, NaiveTime),
}

/// The named days that one firing covers.
pub(super) struct CoveredDays {
    /// The one nearest to the day of the firing.
    pub(super) nominal: NaiveDate,
    /// All others, in order.
    pub(super) others: Vec<NaiveDate>,
}

impl<'a> DayPlan<'a> {
    /// `None` for schedules that name no days.
    pub(super) fn from_timing(timing: &'a Timing, calendars: &'a Calendars) -> Option<Self> {
        let named = match &timing.schedule {
            FiringRule::Cron(cron) => DaySource::Cron(cron),
            FiringRule::Once { at } => DaySource::Once(*at),
            FiringRule::Rule { rule, at } => DaySource::Rule(*rule, *at),
            FiringRule::FixedRate { .. }
            | FiringRule::FixedDelay { .. }
            | FiringRule::Event { .. }
            | FiringRule::Manual
            | FiringRule::After { .. } => return None,
        };
        let (calendar, shift) = (timing.calendar.as_ref(), timing.shift);
        Some(Self { named, calendar, shift, calendars })
    }

    pub(super) fn clock(&self) -> WallClockRule {
        match self.named {
            DaySource::Cron(cron) => cron.clock(),
            DaySource::Once(_) | DaySource::Rule(..) => WallClockRule::AsPlanned,
        }
    }

    /// The day rule, if one names the days.
    pub(super) fn day_rule(&self) -> Option<DayRule> {
        match self.named {
            DaySource::Rule(rule, _) => Some(rule),
            DaySource::Cron(_) | DaySource::Once(_) => None,
        }
    }

    /// The first local time at or after `from` at which it fires.
    pub(super) fn wall_from(
        &self,
        from: NaiveDateTime,
    ) -> Result<Option<NaiveDateTime>, ScheduleError> {
        let first = |day: NaiveDate| Some(day.and_time(self.time_from(NaiveTime::MIN)?));
        let Some(day) = self.landed_from(from.date())? else { return Ok(None) };
        if day > from.date() {
            return Ok(first(day));
        }
        if let Some(time) = self.time_from(from.time()) {
            return Ok(Some(day.and_time(time)));
        }
        let Some(tomorrow) = day.succ_opt() else { return Ok(None) };
        Ok(self.landed_from(tomorrow)?.and_then(first))
    }

    /// The first time of day at or after `from`; the times are the same on each day.
    fn time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        match self.named {
            DaySource::Cron(cron) => cron.time_from(from),
            DaySource::Once(at) => Some(at.time()).filter(|time| *time >= from),
            DaySource::Rule(_, at) => Some(at).filter(|time| *time >= from),
        }
    }

    /// The first named day on or after `from`, before a calendar moves it.
    pub(super) fn named_from(&self, from: NaiveDate) -> Result<Option<Nth>, ScheduleError> {
        let sure = |date| Nth { date, certainty: CalendarCertainty::Known };
        match self.named {
            DaySource::Cron(cron) => Ok(cron.day_from(from).map(sure)),
            DaySource::Once(at) => Ok(Some(at.date()).filter(|day| *day >= from).map(sure)),
            DaySource::Rule(rule, _) => rule.day_from(self.calendars, self.calendar, from),
        }
    }

    /// The first day on or after `from` on which it fires. A later named day is never moved to an
    /// earlier day than an earlier one.
    fn landed_from(&self, from: NaiveDate) -> Result<Option<NaiveDate>, ScheduleError> {
        let mut open = match (self.calendar, self.shift) {
            (Some(code), Shift::Next) => self.after_last_work(code, from)?,
            (Some(_), Shift::Run | Shift::Skip | Shift::Previous) | (None, _) => from,
        };
        for _ in 0..WALK_MAX {
            let Some(named) = self.named_from(open)? else { return Ok(None) };
            let landing = match self.calendar {
                Some(code) if self.shift != Shift::Run => {
                    self.calendars.shift(code, named.date, self.shift)?.0
                }
                Some(_) | None => Landing::Stays,
            };
            match landing {
                Landing::Stays => return Ok(Some(named.date)),
                Landing::Moved(day) if day >= from => return Ok(Some(day)),
                Landing::Moved(_) | Landing::Skipped => {}
            }
            let Some(next) = named.date.succ_opt() else { return Ok(None) };
            open = next;
        }
        Ok(None)
    }

    /// The first day whose next working day is `day` or later.
    fn after_last_work(
        &self,
        code: &CalendarCode,
        day: NaiveDate,
    ) -> Result<NaiveDate, ScheduleError> {
        let Some(before) = day.pred_opt() else { return Ok(day) };
        Ok(match self.calendars.shift(code, before, Shift::Previous)?.0 {
            Landing::Stays | Landing::Skipped => day,
            Landing::Moved(worked) => worked.succ_opt().unwrap_or(day),
        })
    }

    /// The last day whose working day before is `day` or earlier.
    fn before_next_work(
        &self,
        code: &CalendarCode,
        day: NaiveDate,
    ) -> Result<NaiveDate, ScheduleError> {
        let Some(after) = day.succ_opt() else { return Ok(day) };
        Ok(match self.calendars.shift(code, after, Shift::Next)?.0 {
            Landing::Stays | Landing::Skipped => day,
            Landing::Moved(worked) => worked.pred_opt().unwrap_or(day),
        })
    }

    /// The named days that a firing on `day` covers. Days moved to one day share its moments, since
    /// every day of a schedule has the same times.
    pub(super) fn stands(&self, day: NaiveDate) -> Result<CoveredDays, ScheduleError> {
        let (first, last) = match (self.calendar, self.shift) {
            (Some(code), Shift::Next) => (self.after_last_work(code, day)?, day),
            (Some(code), Shift::Previous) => (day, self.before_next_work(code, day)?),
            (Some(_), Shift::Run | Shift::Skip) | (None, _) => (day, day),
        };
        let mut found = Vec::new();
        let mut open = first;
        while let Some(named) = self.named_from(open)?.filter(|nth| nth.date <= last) {
            found.push(named.date);
            let Some(next) = named.date.checked_add_days(Days::new(1)) else { break };
            open = next;
        }
        let nearest = (0..found.len()).min_by_key(|at| (found[*at] - day).abs());
        let nominal = nearest.map_or(day, |at| found.remove(at));
        Ok(CoveredDays { nominal, others: found })
    }
}
