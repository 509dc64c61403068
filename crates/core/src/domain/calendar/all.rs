//! The set of all calendars, validated against each other, and queries about a day.

use super::error::{CalendarError, DEPTH_MAX, MEMBERS_MAX};
use super::{Calendar, CombinationRule, Combine, DayBasis, DayKind, DayLook, Working};
use crate::domain::id::CalendarCode;
use chrono::{Datelike as _, NaiveDate};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Calendars in which every member of a combined calendar exists and no calendar contains itself.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "StoredCalendars", into = "StoredCalendars")]
pub struct Calendars {
    all: BTreeMap<CalendarCode, Calendar>,
    kept: Option<(i32, i32)>,
}

/// The form stored in a snapshot.
#[derive(Serialize, Deserialize)]
struct StoredCalendars {
    calendars: Vec<Calendar>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<(i32, i32)>,
}

impl TryFrom<StoredCalendars> for Calendars {
    type Error = CalendarError;
    fn try_from(stored: StoredCalendars) -> Result<Self, CalendarError> {
        let made = Self::new(stored.calendars).map_err(|faults| faults[0].clone())?;
        Ok(Self { kept: stored.kept, ..made })
    }
}

impl From<Calendars> for StoredCalendars {
    fn from(calendars: Calendars) -> Self {
        Self { calendars: calendars.all.into_values().collect(), kept: calendars.kept }
    }
}

impl Calendars {
    /// Validates the calendars against each other. On failure returns all errors, at least one.
    pub fn new(list: Vec<Calendar>) -> Result<Self, Vec<CalendarError>> {
        let mut faults = Vec::new();
        let mut all = BTreeMap::new();
        for calendar in list {
            let code = calendar.code.clone();
            if all.insert(code.clone(), calendar).is_some() {
                faults.push(CalendarError::Twice(code));
            }
        }
        let made = Self { all, kept: None };
        for (code, combine) in
            made.all.values().filter_map(|c| Some((&c.code, c.combines.as_ref()?)))
        {
            let distinct: BTreeSet<_> = combine.members.iter().collect();
            let count = combine.members.len();
            if !(1..=MEMBERS_MAX).contains(&count) || distinct.len() != count {
                faults.push(CalendarError::Members(code.clone(), count));
            }
            let absent = combine.members.iter().filter(|m| !made.all.contains_key(*m));
            faults.extend(
                absent.map(|m| CalendarError::NoMember { code: code.clone(), member: m.clone() }),
            );
        }
        if faults.is_empty() {
            let nesting = made.all.keys().filter_map(|c| made.nesting_fault(&mut vec![c.clone()]));
            let mut nesting: Vec<_> = nesting.collect();
            // A cycle is found from each calendar in it and also makes the calendars above it too deep; the cycle alone
            // is reported.
            nesting.sort_by_key(|fault| !matches!(fault, CalendarError::Cycle(_)));
            faults.extend(nesting.into_iter().take(1));
        }
        if faults.is_empty() { Ok(made) } else { Err(faults) }
    }

    fn nesting_fault(&self, path: &mut Vec<CalendarCode>) -> Option<CalendarError> {
        let members = self.all.get(path.last()?)?.combines.iter().flat_map(|c| &c.members);
        for member in members {
            if path[0] == *member {
                path.push(member.clone());
                return Some(CalendarError::Cycle(path.clone()));
            }
            if path.len() > DEPTH_MAX {
                return Some(CalendarError::Deep(path[0].clone()));
            }
            path.push(member.clone());
            let fault = self.nesting_fault(path);
            if fault.is_some() {
                return fault;
            }
            path.pop();
        }
        None
    }

    /// Whether there are no calendars.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every calendar, ordered by code.
    pub fn iter(&self) -> impl Iterator<Item = &Calendar> {
        self.all.values()
    }

    /// The calendar with this code.
    pub fn get(&self, code: &CalendarCode) -> Result<&Calendar, CalendarError> {
        let unknown = || CalendarError::Unknown {
            code: code.clone(),
            known: self.all.keys().cloned().collect(),
        };
        self.all.get(code).ok_or_else(unknown)
    }

    /// Whether a calendar with this code exists.
    pub fn contains(&self, code: &CalendarCode) -> bool {
        self.all.contains_key(code)
    }

    /// Whether the day is a working day, and why. For a combined calendar, the deciding member is named; if several
    /// decide, one that knows takes precedence over one that assumes.
    pub fn classify_day(
        &self,
        code: &CalendarCode,
        date: NaiveDate,
    ) -> Result<DayLook, CalendarError> {
        if let Some((from, to)) =
            self.kept.filter(|(from, to)| !(*from..=*to).contains(&date.year()))
        {
            let end = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).unwrap_or(date);
            let (from, to) = (end(from, 1, 1), end(to, 12, 31));
            return Err(CalendarError::NotKept { code: code.clone(), date, from, to });
        }
        self.look_in(self.get(code)?, date)
    }

    fn look_in(&self, calendar: &Calendar, date: NaiveDate) -> Result<DayLook, CalendarError> {
        let look = |working, basis| DayLook { working, basis, by: calendar.code.clone() };
        if let Some(day) = calendar.days.get(&date) {
            return Ok(look(working(day.kind), DayBasis::Listed(day.label.clone())));
        }
        if let Some(combine) = &calendar.combines {
            return self.look_combined(combine, date);
        }
        let kind = if calendar.weekend.has_day_of(date) { Working::Off } else { Working::Working };
        let is_complete = !calendar.is_listed() || calendar.years.contains(&date.year());
        Ok(look(kind, if is_complete { DayBasis::Weekday } else { DayBasis::Assumed }))
    }

    /// With all-of, one member that is off decides; with any-of, one that works; of several the most certain one is
    /// named. If no single member decides, all do, and the result is as certain as the least certain of them.
    fn look_combined(&self, combine: &Combine, date: NaiveDate) -> Result<DayLook, CalendarError> {
        let looks = combine.members.iter().map(|m| self.look_in(self.get(m)?, date));
        let looks = looks.collect::<Result<Vec<_>, _>>()?;
        let deciding = match combine.how {
            CombinationRule::AllOf => Working::Off,
            CombinationRule::AnyOf => Working::Working,
        };
        let one = looks.iter().filter(|l| l.working == deciding).min_by_key(|l| doubt(&l.basis));
        let found = one.or_else(|| {
            let assumed = looks.iter().find(|l| l.basis == DayBasis::Assumed);
            assumed.or_else(|| looks.iter().min_by_key(|l| doubt(&l.basis)))
        });
        Ok(found.expect("a combined calendar has a member, or was refused").clone())
    }

    /// Whether the list of `year` exists; for a combined calendar, for every member.
    pub fn covers(&self, code: &CalendarCode, year: i32) -> Result<Covers, CalendarError> {
        let lacking = self.leaves(code)?.into_iter().filter(|c| lacks(c, year));
        let lacking: Vec<_> = lacking.map(|c| c.code.clone()).collect();
        Ok(if lacking.is_empty() { Covers::Yes } else { Covers::Lacking(lacking) })
    }

    /// Years of the range that have no list, ascending.
    pub fn missing_years(
        &self,
        code: &CalendarCode,
        years: RangeInclusive<i32>,
    ) -> Result<Vec<i32>, CalendarError> {
        let leaves = self.leaves(code)?;
        Ok(years.filter(|year| leaves.iter().any(|c| lacks(c, *year))).collect())
    }

    /// The plain calendars that `code` consists of, each once; a plain calendar consists of itself.
    pub fn leaves(&self, code: &CalendarCode) -> Result<Vec<&Calendar>, CalendarError> {
        let within = self.within(code)?;
        Ok(within.into_values().filter(|c| c.combines.is_none()).collect())
    }

    fn within(
        &self,
        code: &CalendarCode,
    ) -> Result<BTreeMap<&CalendarCode, &Calendar>, CalendarError> {
        let mut found = BTreeMap::new();
        let mut open = vec![code];
        while let Some(code) = open.pop() {
            let calendar = self.get(code)?;
            if found.insert(&calendar.code, calendar).is_none() {
                open.extend(calendar.combines.iter().flat_map(|c| &c.members));
            }
        }
        Ok(found)
    }

    /// Combined calendars that have `code` as a direct member.
    pub fn users_of(&self, code: &CalendarCode) -> Vec<&CalendarCode> {
        let uses = |c: &&Calendar| c.combines.iter().any(|combine| combine.members.contains(code));
        self.all.values().filter(uses).map(|c| &c.code).collect()
    }

    /// The subset that a batch stores: these calendars with all members, and their days in these years. A query about
    /// another year is an error, never a wrong result.
    pub fn subset_for(
        &self,
        codes: &BTreeSet<CalendarCode>,
        years: RangeInclusive<i32>,
    ) -> Result<Self, CalendarError> {
        let mut all = BTreeMap::new();
        for code in codes {
            for (code, calendar) in self.within(code)? {
                let days = calendar.days.iter().filter(|(date, _)| years.contains(&date.year()));
                let days = days.map(|(date, day)| (*date, day.clone())).collect();
                all.insert(code.clone(), Calendar { days, ..calendar.clone() });
            }
        }
        Ok(Self { all, kept: Some((*years.start(), *years.end())) })
    }
}

/// Whether the lists of a calendar cover a year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Covers {
    /// They do, or the calendar needs no lists.
    Yes,
    /// These members have no list for the year.
    Lacking(Vec<CalendarCode>),
}

fn lacks(calendar: &Calendar, year: i32) -> bool {
    calendar.is_listed() && !calendar.years.contains(&year)
}

fn working(kind: DayKind) -> Working {
    match kind {
        DayKind::Off => Working::Off,
        DayKind::Work => Working::Working,
    }
}

/// Uncertainty of a basis: the higher, the less certain.
fn doubt(basis: &DayBasis) -> u8 {
    match basis {
        DayBasis::Listed(_) => 0,
        DayBasis::Weekday => 1,
        DayBasis::Assumed => 2,
    }
}
