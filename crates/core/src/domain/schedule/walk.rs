//! Computes the next occurrence of a schedule.

use super::days::DayPlan;
use super::{Anchor, ClockPass, FiringRule, Occurrence, OccurrenceReason, ScheduleError, Timing};
use crate::domain::calendar::{CalendarCertainty, Calendars, DayBasis, Landing, Shift};
use crate::domain::id::CalendarCode;
use crate::domain::schedule::cron::WallClockRule;
use crate::domain::schedule::cron::YEAR_MAX;
use crate::domain::time::Millis;
use crate::domain::time::local_time::WallClockMoments;
use crate::domain::time::local_time::next_planned;
use crate::domain::time::local_time::next_shown;
use crate::domain::time::local_time::shown;
use crate::domain::time::local_time::wall_at;
use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime};

/// Number of consecutive blackouts or days off that are skipped before a schedule counts as never
/// firing again; of nightly ones, some three years.
const WALK_MAX: usize = 1_000;

/// A moment, and the local time that it implements.
type WalkedMoment = Option<(Millis, NaiveDateTime)>;

impl Timing {
    /// The first occurrence later than `after`; `None` when there is none, or none caused by the
    /// clock (an event, by hand, after another batch, a fixed delay whose batch is still running).
    /// A fixed delay that was due by `after` is due the second after it.
    ///
    /// # Errors
    /// The calendar does not exist, has no working days, or is needed and not named.
    pub fn next_after(
        &self,
        calendars: &Calendars,
        after: Millis,
        anchor: Anchor,
    ) -> Result<Option<Occurrence>, ScheduleError> {
        let moment = |wall: Option<NaiveDateTime>| wall.map(|w| shown(w, self.zone).planned());
        let (start, end) = (moment(self.start), moment(self.end));
        let mut after = start.map_or(after, |start| after.max(start.plus_ms(-1)));
        for _ in 0..WALK_MAX {
            let Some((planned, wall)) = self.next_bare(calendars, after, anchor)? else {
                return Ok(None);
            };
            if end.is_some_and(|end| planned >= end) || wall.year() > YEAR_MAX {
                return Ok(None);
            }
            match self.blackouts.iter().filter_map(|b| b.end_if_in(planned, self.zone)).max() {
                Some(over) => after = over.plus_ms(-1),
                None => return self.explained(calendars, planned, wall).map(Some),
            }
        }
        Ok(None)
    }

    /// The occurrences later than `after`, one by one; of a fixed delay as if each batch took no
    /// time.
    pub fn preview<'a>(
        &'a self,
        calendars: &'a Calendars,
        after: Millis,
        anchor: Anchor,
    ) -> OccurrencePreview<'a> {
        OccurrencePreview { timing: self, calendars, after: Some(after), anchor }
    }

    /// The next occurrence, ignoring window and blackouts.
    fn next_bare(
        &self,
        calendars: &Calendars,
        after: Millis,
        anchor: Anchor,
    ) -> Result<WalkedMoment, ScheduleError> {
        let from = next_second(after);
        match &self.schedule {
            FiringRule::FixedRate { every_sec } => {
                let (first, step) = self.first_and_step(anchor, *every_sec);
                self.next_tick(calendars, after, |after| {
                    let steps = (after.since(first).div_euclid(step) + 1).max(0);
                    Some(first.plus_ms(steps.saturating_mul(step)))
                })
            }
            FiringRule::FixedDelay { every_sec } => {
                let due = self.delayed(anchor, *every_sec);
                self.next_tick(calendars, after, |after| Some(due?.max(next_second(after))))
            }
            FiringRule::Cron(_) | FiringRule::Once { .. } | FiringRule::Rule { .. } => {
                let Some(plan) = DayPlan::from_timing(self, calendars) else { return Ok(None) };
                match plan.clock() {
                    WallClockRule::AsShown => {
                        next_shown(from, self.zone, |wall| plan.wall_from(wall))
                    }
                    WallClockRule::AsPlanned => {
                        next_planned(from, self.zone, |wall| plan.wall_from(wall))
                    }
                }
            }
            FiringRule::Event { .. } | FiringRule::Manual | FiringRule::After { .. } => Ok(None),
        }
    }

    /// The first tick later than `after` that is not on a skipped day; such days are jumped over,
    /// because a holiday may have 86,400 ticks.
    fn next_tick(
        &self,
        calendars: &Calendars,
        mut after: Millis,
        tick: impl Fn(Millis) -> Option<Millis>,
    ) -> Result<WalkedMoment, ScheduleError> {
        for _ in 0..WALK_MAX {
            let Some(planned) = tick(after) else { return Ok(None) };
            let wall = wall_at(planned, self.zone);
            let Some(code) = self.skips() else { return Ok(Some((planned, wall))) };
            let Landing::Moved(day) = calendars.shift(code, wall.date(), Shift::Next)?.0 else {
                return Ok(Some((planned, wall)));
            };
            after = shown(day.and_time(NaiveTime::MIN), self.zone).planned().plus_ms(-1);
        }
        Ok(None)
    }

    /// The calendar on whose days off nothing fires.
    pub(super) fn skips(&self) -> Option<&CalendarCode> {
        self.calendar.as_ref().filter(|_| self.shift == Shift::Skip)
    }

    /// Start and step (milliseconds) of a fixed rate.
    fn first_and_step(&self, anchor: Anchor, every_sec: i64) -> (Millis, i64) {
        let step = every_sec.max(1).saturating_mul(1_000);
        let first = match self.start {
            Some(start) => shown(start, self.zone).planned(),
            None => next_second(anchor.created.plus_ms(-1)).plus_ms(step),
        };
        (first, step)
    }

    /// When a fixed delay ends; `None` while the last batch is running.
    fn delayed(&self, anchor: Anchor, every_sec: i64) -> Option<Millis> {
        let (first, step) = self.first_and_step(anchor, every_sec);
        match (anchor.last_planned, anchor.last_finished) {
            (None, None) => Some(first),
            (Some(_), None) => None,
            (Some(planned), Some(finished)) if finished < planned => None,
            (_, Some(finished)) => Some(next_second(finished.plus_ms(-1)).plus_ms(step)),
        }
    }

    /// An occurrence with the day it covers and its remarks.
    fn explained(
        &self,
        calendars: &Calendars,
        planned: Millis,
        wall: NaiveDateTime,
    ) -> Result<Occurrence, ScheduleError> {
        let day = wall.date();
        let Some(plan) = DayPlan::from_timing(self, calendars) else {
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
        if let Some(rule) = plan.day_rule() {
            why.push(OccurrenceReason::Rule { text: rule.words_for(nominal) });
            let counted = plan.named_from(nominal)?.map(|nth| nth.certainty);
            if let Some(code) =
                self.calendar.as_ref().filter(|_| counted == Some(CalendarCertainty::Assumed))
            {
                doubt = Some(OccurrenceReason::Assumed {
                    calendar: code.clone(),
                    year: nominal.year(),
                });
            }
        }
        if let Some(code) = self.calendar.as_ref().filter(|_| self.shift != Shift::Run) {
            if nominal != day {
                let holiday = match calendars.classify_day(code, nominal)?.basis {
                    DayBasis::Listed(holiday) => holiday,
                    DayBasis::Weekday | DayBasis::Assumed => None,
                };
                why.push(OccurrenceReason::Shifted { from: nominal, holiday });
            }
            if !stands.others.is_empty() {
                why.push(OccurrenceReason::AlsoFor { days: stands.others });
            }
            doubt = assumed(calendars, code, &[nominal, day])?.or(doubt);
        }
        why.extend(doubt);
        why.extend(clock_reason(planned, wall, shown(wall, self.zone)));
        Ok(Occurrence { planned, nominal, why })
    }
}

/// A remark if one of the days was judged without calendar data.
fn assumed(
    calendars: &Calendars,
    code: &CalendarCode,
    days: &[NaiveDate],
) -> Result<Option<OccurrenceReason>, ScheduleError> {
    for day in days {
        let look = calendars.classify_day(code, *day)?;
        if look.certainty() == CalendarCertainty::Assumed {
            return Ok(Some(OccurrenceReason::Assumed { calendar: look.by, year: day.year() }));
        }
    }
    Ok(None)
}

fn clock_reason(
    planned: Millis,
    wall: NaiveDateTime,
    shown: WallClockMoments,
) -> Option<OccurrenceReason> {
    match shown {
        WallClockMoments::Once(_) => None,
        WallClockMoments::Never(_) => Some(OccurrenceReason::Gap { wall }),
        WallClockMoments::Twice(first, _) if planned == first => {
            Some(OccurrenceReason::Overlap { pass: ClockPass::First })
        }
        WallClockMoments::Twice(..) => Some(OccurrenceReason::Overlap { pass: ClockPass::Second }),
    }
}

/// The first whole second later than `after`.
fn next_second(after: Millis) -> Millis {
    Millis(after.0.div_euclid(1_000).saturating_add(1).saturating_mul(1_000))
}

/// An iterator over occurrences, see [`Timing::preview`]. Ends after an error.
#[derive(Debug)]
pub struct OccurrencePreview<'a> {
    timing: &'a Timing,
    calendars: &'a Calendars,
    after: Option<Millis>,
    anchor: Anchor,
}

impl Iterator for OccurrencePreview<'_> {
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
