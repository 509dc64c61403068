//! Errors of calendars and of queries about days.

use crate::domain::id::CalendarCode;
use chrono::NaiveDate;

/// Maximum nesting of combined calendars.
pub(super) const DEPTH_MAX: usize = 4;
/// Maximum number of members of one combined calendar.
pub(super) const MEMBERS_MAX: usize = 20;
/// Maximum number of consecutive days off (about two years); more is a mistake in the calendar.
pub(super) const RUN_MAX: u32 = 800;

/// Why a calendar or a query is refused; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// No calendar has this code.
    #[error(
        "there is no calendar {code}{}; import it: procession calendar import FILE --code {code}",
        listed(.known)
    )]
    Unknown {
        code: CalendarCode,
        /// Codes that exist.
        known: Vec<CalendarCode>,
    },
    /// Two calendars have this code.
    #[error("two calendars have the code {0}; give one of them another")]
    Twice(CalendarCode),
    /// A combined calendar names a member that does not exist.
    #[error(
        "calendar {code} combines {member}, which is not there; import {member}, or leave it out"
    )]
    NoMember { code: CalendarCode, member: CalendarCode },
    /// A combined calendar contains itself.
    #[error("calendar {} is made of itself: {}; take one of them out", .0[0], path(.0))]
    Cycle(Vec<CalendarCode>),
    /// Too few members, too many, or one twice.
    #[error("calendar {0} combines {1} calendars; name 1 to {MEMBERS_MAX}, each once")]
    Members(CalendarCode, usize),
    /// Combined calendars are nested too deeply.
    #[error(
        "calendar {0} is combined of combined ones more than {DEPTH_MAX} deep; combine the first ones directly"
    )]
    Deep(CalendarCode),
    /// A calendar that never has a working day.
    #[error(
        "calendar {code} has no working day in {RUN_MAX} days from {from}; look at its weekend and its \
         days: procession calendar show {code}"
    )]
    NeverWorks {
        code: CalendarCode,
        /// The day from which the search started.
        from: NaiveDate,
    },
    /// The 0th working day does not exist.
    #[error("there is no working day number 0; count from 1 (the first), or from -1 (the last)")]
    Zeroth,
    /// The result is outside the supported years (four digits).
    #[error("{0} working days from {1} lead out of the years 1 to 9999; use a smaller number")]
    OutOfTime(i64, NaiveDate),
    /// A batch keeps only the days around its date.
    #[error(
        "{date} is outside the days of calendar {code} that the batch keeps ({from} to {to}); use a date \
         nearer to the batch's own"
    )]
    NotKept {
        code: CalendarCode,
        date: NaiveDate,
        /// First day kept.
        from: NaiveDate,
        /// Last day kept.
        to: NaiveDate,
    },
}

fn listed(codes: &[CalendarCode]) -> String {
    if codes.is_empty() {
        return String::new();
    }
    let words: Vec<&str> = codes.iter().map(CalendarCode::as_str).collect();
    format!(" (there are: {})", words.join(", "))
}

fn path(codes: &[CalendarCode]) -> String {
    let words: Vec<&str> = codes.iter().map(CalendarCode::as_str).collect();
    words.join(" -> ")
}
