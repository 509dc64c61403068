//! Checks that dates counted in working days have a calendar: their own, or their group's.

use crate::definition::fault::FaultReport;
use crate::definition::job::CheckedJob;
use crate::definition::raw::RawDecl;
use crate::domain::id::CalendarCode;
use crate::domain::job::Group;
use crate::domain::params::{AskedCalendar, calendars_asked};
use std::collections::HashMap;

const WHAT: &str = "counts working days, and no calendar says which these are";

/// Whether a value needs the calendar of the group.
pub(crate) fn asks_own(value: Option<&str>) -> bool {
    calendars_asked(value).contains(&AskedCalendar::Own)
}

/// Rejects parameters of jobs that need a calendar which their group does not have.
pub(crate) fn of_jobs(jobs: &[CheckedJob], groups: &[Group], report: &mut FaultReport) {
    let has: HashMap<_, bool> = groups.iter().map(|g| (&g.code, g.calendar.is_some())).collect();
    for job in jobs.iter().filter(|j| !j.asks.days.is_empty()) {
        if has.get(&job.def.group).is_none_or(|has| *has) {
            continue;
        }
        for param in &job.asks.days {
            let what = format!("job {}: parameter {} {WHAT}", job.def.code, param.value);
            let cure = format!("give group {} one (calendar: cn), {NAME}", job.def.group);
            report.fault(&param.at, what, cure);
        }
    }
}

const NAME: &str = "or name one: ${add_workdays(business_date, 3, cn)}";

/// The same for parameters of a group, or of all groups, which share no calendar.
pub(crate) fn of_decls(raw: &[RawDecl], calendar: Option<&CalendarCode>, report: &mut FaultReport) {
    for decl in raw.iter().filter(|_| calendar.is_none()) {
        let Some(value) = &decl.value else { continue };
        if asks_own(Some(&value.value)) {
            let what = format!("{} {WHAT}", decl.whose);
            report.fault(&value.at, what, format!("give the group one (calendar: cn), {NAME}"));
        }
    }
}
