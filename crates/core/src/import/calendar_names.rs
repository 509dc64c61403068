//! Names of days and months, and the times on other days at which a schedule does not fire.

use crate::domain::schedule::{Blackout, BlackoutTime};
use chrono::{NaiveTime, Weekday, WeekdaySet};

/// Days of the week with their names in crons, from Sunday on, as schedulers number them.
pub(crate) const WEEK: [(Weekday, &str); 7] = [
    (Weekday::Sun, "SUN"),
    (Weekday::Mon, "MON"),
    (Weekday::Tue, "TUE"),
    (Weekday::Wed, "WED"),
    (Weekday::Thu, "THU"),
    (Weekday::Fri, "FRI"),
    (Weekday::Sat, "SAT"),
];

/// Months with their names in crons.
pub(crate) const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// The other days of the week, on which a schedule does not fire.
pub(crate) fn blackout_of_other_days(days: WeekdaySet) -> Blackout {
    let others = WEEK.iter().map(|(day, _)| *day).filter(|day| !days.contains(*day)).collect();
    let (from, until) = (NaiveTime::MIN, NaiveTime::MIN);
    let because = Some("a day of the week that its schedule does not name".to_owned());
    Blackout { time: BlackoutTime::Weekly { from, until, days: others }, because }
}
