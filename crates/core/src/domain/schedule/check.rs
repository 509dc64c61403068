//! Checks of a schedule when it is saved.

use super::blackout::BlackoutTime;
use super::words::EVERY_MAX;
use super::{Anchor, Counted, FiringRule, ScheduleError, Timing};
use crate::domain::calendar::{Calendars, Shift};
use crate::domain::time::Millis;
use crate::domain::time::local_time::shown;

impl Timing {
    /// All faults of a schedule that is saved at `now`: what can be known without firing it, and
    /// whether it ever fires.
    ///
    /// # Errors
    /// All faults at once, at least one.
    pub fn check(&self, now: Millis, calendars: &Calendars) -> Result<(), Vec<ScheduleError>> {
        let mut faults = Vec::new();
        faults.extend(self.interval_fault());
        faults.extend(self.window_fault());
        faults.extend(self.calendar_fault(calendars));
        faults.extend(self.blackouts.iter().filter_map(|blackout| match blackout.time {
            BlackoutTime::Range { from, until } if until <= from => Some(ScheduleError::Blackout {
                what: format!("ends at {until}, not after {from}"),
                cure: "swap them",
            }),
            BlackoutTime::Weekly { days, .. } if days.is_empty() => Some(ScheduleError::Blackout {
                what: "has no days".to_owned(),
                cure: "name its days of the week, or leave days away for all",
            }),
            BlackoutTime::Range { .. } | BlackoutTime::Weekly { .. } => None,
        }));
        if faults.is_empty() {
            faults.extend(self.never(now, calendars).err());
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    fn interval_fault(&self) -> Option<ScheduleError> {
        let (key, sec) = match self.schedule {
            FiringRule::FixedRate { every_sec } => ("every_sec", every_sec),
            FiringRule::FixedDelay { every_sec } => ("delay_sec", every_sec),
            FiringRule::Cron(_)
            | FiringRule::Once { .. }
            | FiringRule::Rule { .. }
            | FiringRule::Event { .. }
            | FiringRule::Manual
            | FiringRule::After { .. } => return None,
        };
        let fits = (1..=EVERY_MAX).contains(&sec);
        (!fits).then_some(ScheduleError::Every { key, sec, max: EVERY_MAX })
    }

    fn window_fault(&self) -> Option<ScheduleError> {
        let (start, end) = (self.start?, self.end?);
        (end <= start).then_some(ScheduleError::Window { start, end })
    }

    fn calendar_fault(&self, calendars: &Calendars) -> Option<ScheduleError> {
        if let Some(code) = &self.calendar {
            if let Err(unknown) = calendars.get(code) {
                return Some(unknown.into());
            }
        } else if self.shift != Shift::Run {
            return Some(ScheduleError::NeedsCalendar(format!("shift: {}", self.shift.as_str())));
        } else if let FiringRule::Rule { rule, .. } = &self.schedule
            && rule.counted == Counted::WorkingDays
        {
            return Some(ScheduleError::NeedsCalendar(format!("rule '{rule}'")));
        }
        let moves = matches!(self.shift, Shift::Next | Shift::Previous);
        (moves && !self.has_days()).then(|| ScheduleError::Key {
            what: format!("shift: {} moves days, and this schedule has none", self.shift.as_str()),
            cure: "use shift: skip, or shift with cron, once_at or rule",
        })
    }

    /// Whether it names days, which a calendar can move.
    fn has_days(&self) -> bool {
        match self.schedule {
            FiringRule::Cron(_) | FiringRule::Once { .. } | FiringRule::Rule { .. } => true,
            FiringRule::FixedRate { .. }
            | FiringRule::FixedDelay { .. }
            | FiringRule::Event { .. }
            | FiringRule::Manual
            | FiringRule::After { .. } => false,
        }
    }

    fn never(&self, now: Millis, calendars: &Calendars) -> Result<(), ScheduleError> {
        let never = |why: String, cure| Err(ScheduleError::NeverFires { why, cure });
        let end = self.end.filter(|end| shown(*end, self.zone).planned() <= now);
        if let Some(end) = end {
            return never(format!("its end, {end}, is over"), "write a later end, or leave it out");
        }
        if !self.schedule.is_clocked()
            || self.next_after(calendars, now, Anchor::new(now))?.is_some()
        {
            return Ok(());
        }
        match &self.schedule {
            FiringRule::Cron(cron) => {
                cron.fires_after(now, self.zone)?;
            }
            FiringRule::Once { at } if shown(*at, self.zone).planned() <= now => {
                return never(format!("once_at, {at}, is over"), "write a later time");
            }
            FiringRule::Rule { rule, .. } => {
                let from = crate::domain::time::day_in(now, self.zone);
                if rule.day_from(calendars, self.calendar.as_ref(), from)?.is_none() {
                    let why = format!("there is never a {rule}");
                    return never(why, "write a smaller number");
                }
            }
            FiringRule::Once { .. }
            | FiringRule::FixedRate { .. }
            | FiringRule::FixedDelay { .. }
            | FiringRule::Event { .. }
            | FiringRule::Manual
            | FiringRule::After { .. } => {}
        }
        never(
            "window, calendar or blackouts leave nothing of it".to_owned(),
            "look at start, end, shift and blackouts",
        )
    }
}
