//! Reads owners, and checks that the owners that jobs and groups name exist.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::near::did_you_mean;
use crate::definition::raw::{JobSettings, Raw, RawOwner};
use crate::domain::job::shared_definitions::Owner;

/// The declared owners.
pub(crate) fn owners(raw: &[RawOwner]) -> Vec<Owner> {
    let owner = |raw: &RawOwner| Owner {
        code: raw.code.value.clone(),
        name: raw.name.as_ref().unwrap_or(&raw.code).value.clone(),
        email: raw.email.iter().map(|e| e.value.clone()).collect(),
        lang: raw.lang.as_ref().map(|l| l.value),
    };
    raw.iter().map(owner).collect()
}

/// If owners are declared, a name that is not among them is a typing error. Without a section `owners` the name is free
/// text.
pub(crate) fn check(raw: &Raw, report: &mut FaultReport) {
    if raw.owners.is_empty() {
        return;
    }
    let of_settings = |whose: &str, said: &JobSettings| {
        Some((whose.to_owned(), Located::clone(said.owner.as_deref()?)))
    };
    let groups = raw
        .groups
        .iter()
        .filter_map(|g| Some((format!("group {}", g.code.value), g.owner.clone()?)));
    let jobs =
        raw.jobs.iter().filter_map(|j| of_settings(&format!("job {}", j.code.value), &j.settings));
    let defaults = raw.all_defaults().filter_map(|d| of_settings("defaults", d));
    let schedules = raw
        .schedules
        .iter()
        .filter_map(|s| Some((format!("schedule {}", s.code.value), s.owner.clone()?)));
    let said: Vec<(String, Located<String>)> =
        groups.chain(jobs).chain(defaults).chain(schedules).collect();
    for (whose, word) in said {
        let codes = || raw.owners.iter().map(|o| o.code.value.as_str());
        if codes().all(|code| code != word.value) {
            let hint = did_you_mean(&word.value, codes());
            let what = format!("{whose}: owner {} is not defined", word.value);
            report.fault(&word.at, what, format!("{hint}define it under owners"));
        }
    }
}
