//! From one occurrence to the next.

use super::days::DayPlan;
use super::{Anchor, Occurrence, Pass, Reason, Schedule, ScheduleError, Timing};
use crate::domain::calendar::{Basis, Calendars, Certainty, Landing, Shift};
use crate::domain::id::CalendarCode;
use crate::domain::schedule::cron::Clock;
use crate::domain::schedule::cron::YEAR_MAX;
use crate::domain::time::Millis;
use crate::domain::time::local_time::WallClockMoments;
use crate::domain::time::local_time::next_planned;
use crate::domain::time::local_time::next_shown;
use crate::domain::time::local_time::shown;
use crate::domain::time::local_time::wall_at;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime};

/// How many blackouts or days off in a row are left behind before a schedule counts as one that never
/// fires again; of nightly ones, some three years.
const WALK_MAX: usize = 1_000;

/// A moment, and the time of the wall clock that it carries out.
type Found = Option<(Millis, NaiveDateTime)>;

impl Timing {
    /// The first occurrence later than `after`; `None` when there is none, or none that the clock
    /// makes (an event, by hand, after another batch, a fixed delay whose batch still runs). A fixed
    /// delay that was due by `after` is due the second after it.
    ///
    /// # Errors
    /// The calendar is not there, has no working days, or is needed and not named.
    pub fn next_after(
        &self,
        calendars: &Calendars,
        after: Millis,
        anchor: Anchor,
    ) -> Result<Option<Occurrence>, ScheduleError> {
        let moment = |wall: Option<NaiveDateTime>| wall.map(|w| shown(w, self.zone).planned());
        let (start, end) = (moment(self.start), moment(self.end));
        let mut after = start.map_or(after, |start| after.max(start.plus(-1)));
        for _ in 0..WALK_MAX {
            let Some((planned, wall)) = self.next_bare(calendars, after, anchor)? else {
                return Ok(None);
            };
            if end.is_some_and(|end| planned >= end) || wall.year() > YEAR_MAX {
                return Ok(None);
            }
            match self.blackouts.iter().filter_map(|b| b.end_if_in(planned, self.zone)).max() {
                Some(over) => after = over.plus(-1),
                None => return self.explained(calendars, planned, wall).map(Some),
            }
        }
        Ok(None)
    }

    /// The occurrences later than `after`, one after the other; of a fixed delay as if each batch
    /// took no time.
    pub fn preview<'a>(
        &'a self,
        calendars: &'a Calendars,
        after: Millis,
        anchor: Anchor,
    ) -> Preview<'a> {
        Preview { timing: self, calendars, after: Some(after), anchor }
    }

    /// Without regard to window and blackouts.
    fn next_bare(
        &self,
        calendars: &Calendars,
        after: Millis,
        anchor: Anchor,
    ) -> Result<Found, ScheduleError> {
        let from = next_second(after);
        match &self.schedule {
            Schedule::FixedRate { every_sec } => {
                let (first, step) = self.grid(anchor, *every_sec);
                self.next_tick(calendars, after, |after| {
                    let steps = (after.since(first).div_euclid(step) + 1).max(0);
                    Some(first.plus(steps.saturating_mul(step)))
                })
            }
            Schedule::FixedDelay { every_sec } => {
                let due = self.delayed(anchor, *every_sec);
                self.next_tick(calendars, after, |after| Some(due?.max(next_second(after))))
            }
            Schedule::Cron(_) | Schedule::Once { .. } | Schedule::Rule { .. } => {
                let Some(plan) = DayPlan::of(self, calendars) else { return Ok(None) };
                match plan.clock() {
                    Clock::AsShown => next_shown(from, self.zone, |wall| plan.wall_from(wall)),
                    Clock::AsPlanned => next_planned(from, self.zone, |wall| plan.wall_from(wall)),
                }
            }
            Schedule::Event { .. } | Schedule::Manual | Schedule::After { .. } => Ok(None),
        }
    }

    /// The first tick later than `after` that is not on a day left out; ticks on such days are not
    /// counted through, a holiday has 86,400 of them.
    fn next_tick(
        &self,
        calendars: &Calendars,
        mut after: Millis,
        tick: impl Fn(Millis) -> Option<Millis>,
    ) -> Result<Found, ScheduleError> {
        for _ in 0..WALK_MAX {
            let Some(planned) = tick(after) else { return Ok(None) };
            let wall = wall_at(planned, self.zone);
            let Some(code) = self.skips() else { return Ok(Some((planned, wall))) };
            let Landing::Moved(day) = calendars.shift(code, wall.date(), Shift::Next)?.0 else {
                return Ok(Some((planned, wall)));
            };
            after = shown(day.and_time(NaiveTime::MIN), self.zone).planned().plus(-1);
        }
        Ok(None)
    }

    /// The calendar on whose days off nothing fires.
    pub(super) fn skips(&self) -> Option<&CalendarCode> {
        self.calendar.as_ref().filter(|_| self.shift == Shift::Skip)
    }

    /// First moment and step (milliseconds) of a fixed rate.
    fn grid(&self, anchor: Anchor, every_sec: i64) -> (Millis, i64) {
        let step = every_sec.max(1).saturating_mul(1_000);
        let first = match self.start {
            Some(start) => shown(start, self.zone).planned(),
            None => next_second(anchor.created.plus(-1)).plus(step),
        };
        (first, step)
    }

    /// When a fixed delay is over; `None` while the last batch runs.
    fn delayed(&self, anchor: Anchor, every_sec: i64) -> Option<Millis> {
        let (first, step) = self.grid(anchor, every_sec);
        match (anchor.last_planned, anchor.last_finished) {
            (None, None) => Some(first),
            (Some(_), None) => None,
            (Some(planned), Some(finished)) if finished < planned => None,
            (_, Some(finished)) => Some(next_second(finished.plus(-1)).plus(step)),
        }
    }

    /// With the day it stands for and what is to be said about it.
    fn explained(
        &self,
        calendars: &Calendars,
        planned: Millis,
        wall: NaiveDateTime,
    ) -> Result<Occurrence, ScheduleError> {
        let day = wall.date();
        let Some(plan) = DayPlan::of(self, calendars) else {
            let why = self.skips().map(|code| assumed(calendars, code, &[day])).transpose()?;
            return Ok(Occurrence {
                planned,
                nominal: day,
                why: why.into_iter().flatten().collect(),
            });
        };
        let stands = plan.stands(day)?;
        let nominal = stands.nominal;
        let mut why = Vec::new();
        let mut doubt = None;
        if let Some(rule) = plan.rule() {
            why.push(Reason::Rule { text: rule.words_for(nominal) });
            let counted = plan.named_from(nominal)?.map(|nth| nth.certainty);
            if let Some(code) =
                self.calendar.as_ref().filter(|_| counted == Some(Certainty::Assumed))
            {
                doubt = Some(Reason::Assumed { calendar: code.clone(), year: nominal.year() });
            }
        }
        if let Some(code) = self.calendar.as_ref().filter(|_| self.shift != Shift::Run) {
            if nominal != day {
                let holiday = match calendars.look(code, nominal)?.basis {
                    Basis::Listed(holiday) => holiday,
                    Basis::Weekday | Basis::Assumed => None,
                };
                why.push(Reason::Shifted { from: nominal, holiday });
            }
            if !stands.others.is_empty() {
                why.push(Reason::AlsoFor { days: stands.others });
            }
            doubt = assumed(calendars, code, &[nominal, day])?.or(doubt);
        }
        why.extend(doubt);
        why.extend(clock_reason(planned, wall, shown(wall, self.zone)));
        Ok(Occurrence { planned, nominal, why })
    }
}

/// That one of the days was judged without a list.
fn assumed(
    calendars: &Calendars,
    code: &CalendarCode,
    days: &[NaiveDate],
) -> Result<Option<Reason>, ScheduleError> {
    for day in days {
        let look = calendars.look(code, *day)?;
        if look.certainty() == Certainty::Assumed {
            return Ok(Some(Reason::Assumed { calendar: look.by, year: day.year() }));
        }
    }
    Ok(None)
}

fn clock_reason(planned: Millis, wall: NaiveDateTime, shown: WallClockMoments) -> Option<Reason> {
    match shown {
        WallClockMoments::Once(_) => None,
        WallClockMoments::Never(_) => Some(Reason::Gap { wall }),
        WallClockMoments::Twice(first, _) if planned == first => {
            Some(Reason::Overlap { pass: Pass::First })
        }
        WallClockMoments::Twice(..) => Some(Reason::Overlap { pass: Pass::Second }),
    }
}

/// The first whole second later than `after`.
fn next_second(after: Millis) -> Millis {
    Millis(after.0.div_euclid(1_000).saturating_add(1).saturating_mul(1_000))
}

/// Occurrences one after the other, see [`Timing::preview`]. Ends after an error.
#[derive(Debug)]
pub struct Preview<'a> {
    timing: &'a Timing,
    calendars: &'a Calendars,
    after: Option<Millis>,
    anchor: Anchor,
}

impl Iterator for Preview<'_> {
    type Item = Result<Occurrence, ScheduleError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.timing.next_after(self.calendars, self.after?, self.anchor).transpose();
        self.after = match &found {
            Some(Ok(occurrence)) => Some(occurrence.planned),
            Some(Err(_)) | None => None,
        };
        self.anchor.last_planned = self.after.or(self.anchor.last_planned);
        self.anchor.last_finished = self.anchor.last_planned;
        found
    }
}
