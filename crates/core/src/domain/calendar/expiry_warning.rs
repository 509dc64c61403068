//! Finds calendars in use whose lists of days end too soon.

use super::{CalendarError, Calendars};
use crate::domain::id::CalendarCode;
use crate::domain::text::lang::Lang;
use chrono::{Datelike as _, NaiveDate};
use serde::Serialize;
use std::collections::BTreeSet;

/// The month from which a missing list of the next year is reported: the government announces it in October or
/// November, and the first batch that needs it runs in January.
const ASKED_FROM: u32 = 10;

/// What a calendar lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CalendarGap {
    /// The calendar itself does not exist.
    Calendar,
    /// The list of the current year: some days are wrong already.
    ThisYear(i32),
    /// The list of the next year.
    NextYear(i32),
}

/// A calendar in use that lacks something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CalendarWarning {
    /// The calendar to import: for a combined calendar, the member.
    pub calendar: CalendarCode,
    pub lack: CalendarGap,
}

impl CalendarWarning {
    /// The warning as a sentence.
    pub fn words(&self, lang: Lang) -> String {
        let code = &self.calendar;
        match self.lack {
            CalendarGap::Calendar => match lang {
                Lang::En => format!(
                    "calendar {code} is in use and not there; import it: procession calendar import \
                     FILE --code {code}"
                ),
                Lang::Zh => format!(
                    "日历 {code} 在使用中却不存在；请导入：procession calendar import 文件 --code {code}"
                ),
            },
            CalendarGap::ThisYear(year) => match lang {
                Lang::En => format!(
                    "calendar {code} has no days for {year}: weekends are taken for days off and \
                     holidays are not known; import the days of {year}: procession calendar import \
                     FILE --code {code}"
                ),
                Lang::Zh => format!(
                    "日历 {code} 没有 {year} 年的节假日：只按周末判断，节假日和调休未知；请导入 {year} \
                     年的数据：procession calendar import 文件 --code {code}"
                ),
            },
            CalendarGap::NextYear(year) => match lang {
                Lang::En => format!(
                    "calendar {code} has no days for {year} yet; import the next year's days: \
                     procession calendar import FILE --code {code}"
                ),
                Lang::Zh => format!(
                    "日历 {code} 还没有 {year} 年的节假日；请导入下一年的数据：procession calendar \
                     import 文件 --code {code}"
                ),
            },
        }
    }
}

impl std::fmt::Display for CalendarWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words(Lang::En))
    }
}

/// What the calendars in use lack on `today`: the list of the current year at any time, that of the next year from
/// October on. A calendar that is maintained by hand lacks nothing.
pub fn warnings(
    calendars: &Calendars,
    used: &BTreeSet<CalendarCode>,
    today: NaiveDate,
) -> Vec<CalendarWarning> {
    let mut found = BTreeSet::new();
    let year = today.year();
    for code in used {
        let leaves = match calendars.leaves(code) {
            Ok(leaves) => leaves,
            Err(CalendarError::Unknown { code, .. }) => {
                found.insert(CalendarWarning { calendar: code, lack: CalendarGap::Calendar });
                continue;
            }
            Err(_) => continue,
        };
        for leaf in leaves.into_iter().filter(|leaf| leaf.is_listed()) {
            let calendar = leaf.code.clone();
            if !leaf.years.contains(&year) {
                found.insert(CalendarWarning { calendar, lack: CalendarGap::ThisYear(year) });
            } else if today.month() >= ASKED_FROM && !leaf.years.contains(&(year + 1)) {
                found.insert(CalendarWarning { calendar, lack: CalendarGap::NextYear(year + 1) });
            }
        }
    }
    found.into_iter().collect()
}
