//! All calendars together, checked, and what they say of one day.

use super::error::{CalendarError, DEPTH_MAX, MEMBERS_MAX};
use super::{Calendar, CombinationRule, Combine, DayBasis, DayKind, DayLook, Working};
use crate::domain::id::CalendarCode;
use chrono::{Datelike as _, NaiveDate};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Calendars of which every member of a combined one is there, and none is made of itself.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "StoredCalendars", into = "StoredCalendars")]
pub struct Calendars {
    all: BTreeMap<CalendarCode, Calendar>,
    kept: Option<(i32, i32)>,
}

/// As it stands in a snapshot.
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
    /// Checks them against each other; every fault at once, at least one.
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
            // A circle is found from each calendar in it and makes those before it too deep: one tells.
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

    /// No calendars at all.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every calendar, by code.
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

    /// Whether there is one with this code.
    pub fn contains(&self, code: &CalendarCode) -> bool {
        self.all.contains_key(code)
    }

    /// Whether the day is worked, and why. A combined calendar answers with the member that decided;
    /// where several did, with one that knows.
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

    /// One member that is off decides for all-of, one that works for any-of, and the surest of them
    /// answers. When none is, all decide together and are as sure as the least sure.
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

    /// Whether the list of days for `year` is there: of every member, for a combined calendar.
    pub fn covers(&self, code: &CalendarCode, year: i32) -> Result<Covers, CalendarError> {
        let lacking = self.leaves(code)?.into_iter().filter(|c| lacks(c, year));
        let lacking: Vec<_> = lacking.map(|c| c.code.clone()).collect();
        Ok(if lacking.is_empty() { Covers::Yes } else { Covers::Lacking(lacking) })
    }

    /// Years of the range without a list, ascending.
    pub fn missing_years(
        &self,
        code: &CalendarCode,
        years: RangeInclusive<i32>,
    ) -> Result<Vec<i32>, CalendarError> {
        let leaves = self.leaves(code)?;
        Ok(years.filter(|year| leaves.iter().any(|c| lacks(c, *year))).collect())
    }

    /// The calendars that are not combined of which `code` is made, or itself; each once.
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

    /// Combined calendars that `code` is a member of, directly.
    pub fn users_of(&self, code: &CalendarCode) -> Vec<&CalendarCode> {
        let uses = |c: &&Calendar| c.combines.iter().any(|combine| combine.members.contains(code));
        self.all.values().filter(uses).map(|c| &c.code).collect()
    }

    /// What a batch keeps: these calendars with all they are made of, and their days in these years. A
    /// question about another year is refused then, and never answered wrongly.
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

/// Whether the lists of a calendar reach a year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Covers {
    /// They do, or it needs none.
    Yes,
    /// These, of which it is made, have no list for it.
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

/// The more, the less sure.
fn doubt(basis: &DayBasis) -> u8 {
    match basis {
        DayBasis::Listed(_) => 0,
        DayBasis::Weekday => 1,
        DayBasis::Assumed => 2,
    }
}
