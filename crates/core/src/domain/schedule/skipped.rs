//! Occurrences skipped because of a blackout or a day off.

use super::walk::OccurrencePreview;
use super::{Anchor, ScheduleError, Swallowed, Timing};
use crate::domain::calendar::{Calendars, DayBasis, Shift, Working};
use crate::domain::id::CalendarCode;
use crate::domain::time::Millis;
use crate::domain::time::local_time::shown;
use crate::domain::time::local_time::wall_at;
use chrono::{NaiveDate, NaiveTime};
use serde::Serialize;
use std::ops::Range;

/// An occurrence that does not take place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// When it would fire.
    pub planned: Millis,
    /// The day that it would cover.
    pub nominal: NaiveDate,
    /// The reason.
    pub why: Swallowed,
}

/// A period in which nothing fires.
struct Stretch {
    from: Millis,
    until: Millis,
    why: Swallowed,
}

impl Timing {
    /// Occurrences later than `range.start` and earlier than `range.end` that a blackout or a day
    /// off (`shift: skip`) removes, in order, at most `limit`. The cost depends on those periods
    /// only, not on the time between them.
    ///
    /// # Errors
    /// As [`Timing::next_after`].
    pub fn skipped_between(
        &self,
        calendars: &Calendars,
        range: Range<Millis>,
        anchor: Anchor,
        limit: usize,
    ) -> Result<Vec<Skipped>, ScheduleError> {
        let bare = Self { shift: self.bare_shift(), blackouts: Vec::new(), ..self.clone() };
        let mut found: Vec<Skipped> = Vec::new();
        let mut after = range.start;
        for stretch in self.stretches(calendars, &range)? {
            let until = stretch.until.min(range.end);
            after = after.max(stretch.from.plus_ms(-1));
            let mut inside: OccurrencePreview = bare.preview(calendars, after, anchor);
            while let Some(next) = inside.next().transpose()?.filter(|o| o.planned < until) {
                after = next.planned;
                let why = stretch.why.clone();
                found.push(Skipped { planned: next.planned, nominal: next.nominal, why });
                if found.len() >= limit {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Whether a firing that is not caused by the clock (an event, the end of a batch) is
    /// suppressed at `at`: the reason, or `None`.
    ///
    /// # Errors
    /// The calendar does not exist.
    pub fn swallows(
        &self,
        calendars: &Calendars,
        at: Millis,
    ) -> Result<Option<Swallowed>, ScheduleError> {
        let moment = |wall: Option<_>| wall.map(|wall| shown(wall, self.zone).planned());
        let (start, end) = (moment(self.start), moment(self.end));
        if start.is_some_and(|start| at < start) || end.is_some_and(|end| at >= end) {
            return Ok(Some(Swallowed::Window));
        }
        if let Some(code) = self.skips()
            && let Some(off) = day_off(calendars, code, wall_at(at, self.zone).date())?
        {
            return Ok(Some(off));
        }
        let blackout = self.blackouts.iter().find(|b| b.end_if_in(at, self.zone).is_some());
        Ok(blackout.map(|b| b.swallowed()))
    }

    fn bare_shift(&self) -> Shift {
        match self.shift {
            Shift::Run | Shift::Skip => Shift::Run,
            Shift::Next => Shift::Next,
            Shift::Previous => Shift::Previous,
        }
    }

    fn stretches(
        &self,
        calendars: &Calendars,
        range: &Range<Millis>,
    ) -> Result<Vec<Stretch>, ScheduleError> {
        let (from, to) = (range.start, range.end);
        let mut found = Vec::new();
        for blackout in &self.blackouts {
            let why = || blackout.swallowed();
            let all = blackout.stretches(from, to, self.zone).into_iter();
            found.extend(all.map(|(from, until)| Stretch { from, until, why: why() }));
        }
        if let Some(code) = self.skips() {
            let last = wall_at(to, self.zone).date();
            let midnight =
                |day: NaiveDate| shown(day.and_time(NaiveTime::MIN), self.zone).planned();
            let days = wall_at(from, self.zone).date().iter_days();
            for day in days.take_while(|day| *day <= last) {
                if let Some(why) = day_off(calendars, code, day)? {
                    let until = day.succ_opt().map_or(to, midnight);
                    found.push(Stretch { from: midnight(day), until, why });
                }
            }
        }
        found.sort_by_key(|stretch| (stretch.from, stretch.until));
        Ok(found)
    }
}

fn day_off(
    calendars: &Calendars,
    code: &CalendarCode,
    day: NaiveDate,
) -> Result<Option<Swallowed>, ScheduleError> {
    let look = calendars.classify_day(code, day)?;
    if look.working == Working::Working {
        return Ok(None);
    }
    let holiday = match look.basis {
        DayBasis::Listed(holiday) => holiday,
        DayBasis::Weekday | DayBasis::Assumed => None,
    };
    Ok(Some(Swallowed::DayOff { day, holiday }))
}
