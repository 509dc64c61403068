//! Calendars of working days: a weekend, the days that differ from it (holidays, and the weekend days
//! that are worked for them), and for which years the list of those is complete.
//!
//! A year without a list is not an error. The weekday rule is taken for it and everything that was
//! worked out so says that it was *assumed*, because a day in the future is planned long before the
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

/// Whether people work on a day.
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

/// Who said so about a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "CalendarDayOrigin")]
pub enum DayOrigin {
    /// The list of this year; 31 December may stand in the list of the next. Importing a list for the
    /// year again takes the day away or changes it.
    List(i32),
    /// A person, for this one day; an import leaves it alone.
    Hand,
}

/// What a calendar says of one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalendarDayRule {
    /// Off or worked.
    pub kind: DayKind,
    /// The holiday's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Who said so.
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

/// What a combined calendar is made of.
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
    /// Name for people.
    pub name: String,
    /// Days of the week that are off unless a day says otherwise; of a combined calendar not used.
    pub weekend: Weekend,
    /// Days that say otherwise. Those of a combined calendar win over its members.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub days: BTreeMap<NaiveDate, CalendarDayRule>,
    /// Years for which the list of days is complete. A calendar without any is kept by hand: its
    /// weekday rule is the rule, and nobody waits for a list.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub years: BTreeSet<i32>,
    /// Set on a calendar that is made of others.
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

    /// Whether its days come in a list for every year, so that a year can be missing.
    pub fn is_listed(&self) -> bool {
        !self.years.is_empty()
    }
}

/// Whether a day is worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Working {
    /// People work.
    Working,
    /// They do not.
    Off,
}

/// Why a day is worked or off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DayBasis")]
pub enum DayBasis {
    /// A list names the day, with the holiday's name where it has one.
    Listed(Option<String>),
    /// The list of the year is there and does not name the day: its weekday decides.
    Weekday,
    /// There is no list for the year: its weekday was taken, which may turn out wrong.
    Assumed,
}

/// Whether all that an answer rests on is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CalendarCertainty {
    /// Every day looked at was in a year with a list, or in a calendar that needs none.
    Known,
    /// The weekday rule stood in for a list that is not there.
    Assumed,
}

impl CalendarCertainty {
    /// Known only when both are.
    pub fn combine(self, other: Self) -> Self {
        self.max(other)
    }
}

/// What was found about a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DayLook {
    /// Worked or off.
    pub working: Working,
    /// Why.
    pub basis: DayBasis,
    /// The calendar that decided: a member of a combined one.
    pub by: CalendarCode,
}

impl DayLook {
    /// Whether the answer rests on a list.
    pub fn certainty(&self) -> CalendarCertainty {
        match self.basis {
            DayBasis::Listed(_) | DayBasis::Weekday => CalendarCertainty::Known,
            DayBasis::Assumed => CalendarCertainty::Assumed,
        }
    }
}

/// Calendars that the parameters of a batch may ask, and the one that its group names.
#[derive(Clone, Copy, Debug)]
pub struct WorkingDays<'a> {
    calendars: Option<&'a Calendars>,
    own: Option<&'a CalendarCode>,
}

impl<'a> WorkingDays<'a> {
    /// No calendars, where nothing can ask for one.
    pub const NONE: Self = Self { calendars: None, own: None };

    /// These, and that of the group.
    pub fn new(calendars: &'a Calendars, own: Option<&'a CalendarCode>) -> Self {
        Self { calendars: Some(calendars), own }
    }

    /// The calendar that is named, else that of the group; or what to do.
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
