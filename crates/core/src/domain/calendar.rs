//! Calendars of working days: a weekend, the days that differ from it (holidays, and weekend days
//! that are worked in exchange), and the years for which the list of those is complete.
//!
//! A year without a list is not an error. The weekday rule is used for it and every result derived
//! from it is marked as *assumed*, because a day in the future is planned long before the
//! government has announced the holidays around it.

mod all;
mod change;
mod count;
mod error;
mod expiry_warning;
mod weekend;

pub use all::{Calendars, Covers};
pub use change::{DayChange, Difference, HeadChange, ImportScope, difference, merged};
pub use count::{Landing, Nth, Shift};
pub use error::CalendarError;
pub use expiry_warning::{CalendarGap, CalendarWarning, warnings};
pub use weekend::{BadWeekend, Weekend};

use crate::domain::id::CalendarCode;
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Whether a day is a working day.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CalendarDayKind")]
pub enum DayKind {
    /// A holiday.
    Off,
    /// A working day; in a list, a weekend day that is worked (调休).
    Work,
}

impl DayKind {
    /// The word in files, `off` or `work`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Work => "work",
        }
    }
}

/// Origin of the rule for a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CalendarDayOrigin")]
pub enum DayOrigin {
    /// The list of this year; 31 December may be in the list of the next. Importing a list for the
    /// year again removes or changes the day.
    List(i32),
    /// A user, for this one day; an import leaves it unchanged.
    Hand,
}

/// A calendar's rule for one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalendarDayRule {
    /// Off or working.
    pub kind: DayKind,
    /// Name of the holiday.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Origin of the rule.
    pub origin: DayOrigin,
}

/// Which members of a combined calendar must work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CombineRule")]
pub enum CombinationRule {
    /// A working day is one on which every member works.
    AllOf,
    /// A working day is one on which some member works.
    AnyOf,
}

impl CombinationRule {
    /// The word in files and tables, `all_of` or `any_of`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllOf => "all_of",
            Self::AnyOf => "any_of",
        }
    }
}

/// The parts of a combined calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CalendarCombination")]
pub struct Combine {
    /// Which members must work.
    pub how: CombinationRule,
    /// The members, in the order written.
    #[schemars(with = "Vec<String>")]
    pub members: Vec<CalendarCode>,
}

/// A calendar of working days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calendar {
    /// Unique code.
    pub code: CalendarCode,
    /// Display name.
    pub name: String,
    /// Days of the week that are off unless a day rule differs; unused in a combined calendar.
    pub weekend: Weekend,
    /// Rules for single days. Those of a combined calendar take precedence over its members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub days: BTreeMap<NaiveDate, CalendarDayRule>,
    /// Years for which the list of days is complete. A calendar without any is maintained by hand:
    /// its weekday rule is final.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub years: BTreeSet<i32>,
    /// Present if the calendar combines others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combines: Option<Combine>,
}

impl Calendar {
    /// A calendar with a weekend of Saturday and Sunday and nothing else.
    pub fn with_defaults(code: CalendarCode) -> Self {
        Self {
            name: code.to_string(),
            code,
            weekend: Weekend::default(),
            days: BTreeMap::new(),
            years: BTreeSet::new(),
            combines: None,
        }
    }

    /// Whether its days come in a list per year, so that a year can be missing.
    pub fn is_listed(&self) -> bool {
        !self.years.is_empty()
    }
}

/// Whether a day is worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Working {
    /// A working day.
    Working,
    /// A day off.
    Off,
}

/// Why a day is worked or off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DayBasis")]
pub enum DayBasis {
    /// A list contains the day; with the holiday's name, if any.
    Listed(Option<String>),
    /// The list of the year exists and does not contain the day: its weekday decides.
    Weekday,
    /// There is no list for the year: its weekday was used, which may turn out wrong.
    Assumed,
}

/// Whether everything that an answer depends on is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CalendarCertainty {
    /// Every day examined was in a year with a list, or in a calendar that needs none.
    Known,
    /// The weekday rule replaced a missing list.
    Assumed,
}

impl CalendarCertainty {
    /// Known only if both are.
    pub fn combine(self, other: Self) -> Self {
        self.max(other)
    }
}

/// The result of looking up a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DayLook {
    /// Working or off.
    pub working: Working,
    /// The reason.
    pub basis: DayBasis,
    /// The calendar that decided: a member of a combined one.
    pub by: CalendarCode,
}

impl DayLook {
    /// Whether the result depends on a missing list.
    pub fn certainty(&self) -> CalendarCertainty {
        match self.basis {
            DayBasis::Listed(_) | DayBasis::Weekday => CalendarCertainty::Known,
            DayBasis::Assumed => CalendarCertainty::Assumed,
        }
    }
}

/// Calendars that the parameters of a batch may use, and the one of its group.
#[derive(Clone, Copy, Debug)]
pub struct WorkingDays<'a> {
    calendars: Option<&'a Calendars>,
    own: Option<&'a CalendarCode>,
}

impl<'a> WorkingDays<'a> {
    /// No calendars.
    pub const NONE: Self = Self { calendars: None, own: None };

    /// These calendars, and the group's.
    pub fn new(calendars: &'a Calendars, own: Option<&'a CalendarCode>) -> Self {
        Self { calendars: Some(calendars), own }
    }

    /// The named calendar, otherwise the group's; or an error with a hint.
    pub fn resolve_calendar<'b>(
        self,
        named: Option<&'b CalendarCode>,
    ) -> Result<(&'a Calendars, &'b CalendarCode), String>
    where
        'a: 'b,
    {
        let code = named.or(self.own);
        let code = code.ok_or("name a calendar in it (add_workdays(DATE, 3, cn)), or give the group one (calendar: cn)")?;
        let calendars = self.calendars.ok_or("no calendar can be asked here")?;
        Ok((calendars, code))
    }
}

#[cfg(test)]
mod tests;
