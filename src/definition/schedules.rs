//! What schedules mean: read, and held against the rest of the definition.

use crate::definition::fault::{At, Fault, Faults, Place, Report};
use crate::definition::load::Loaded;
use crate::definition::near::did_you_mean;
use crate::definition::read_schedules::{Form, RawSchedule};
use crate::domain::id::TriggerCode;
use crate::domain::job::{Definition, Group};
use crate::domain::time::Millis;
use crate::domain::schedule::read_zone;
use crate::domain::trigger::{TriggerDef, TriggerWords};
use crate::domain::trigger_check::{self, Around, Finding, Grade};
use chrono_tz::Tz;
use std::collections::{BTreeMap, HashMap};

/// Where each key of a schedule stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(HashMap<TriggerCode, (Place, HashMap<&'static str, Place>)>);

impl Places {
    /// The place of a key; of one that is not written, that of the schedule.
    fn of(&self, code: &TriggerCode, key: &str) -> Option<&Place> {
        let (own, keys) = self.0.get(code)?;
        // What an order says stands in handler_param where that is written.
        let order = ["batch_no", "group", "type", "params"].contains(&key);
        let raw = || keys.get("handler_param").filter(|_| order);
        Some(keys.get(key).or_else(raw).unwrap_or(own))
    }
}

/// Makes schedules of what the user said.
pub(crate) fn schedules(
    raw: Vec<RawSchedule>,
    groups: &[Group],
    report: &mut Report,
) -> (Vec<TriggerDef>, Places) {
    let (mut made, mut places) = (Vec::new(), Places::default());
    for raw in raw {
        let RawSchedule { code, words, places: keys, form, .. } = raw;
        // A value that could not be read is missing now; that would be said as well.
        if form == Form::Wrong {
            continue;
        }
        unknown_group(&code, &words, &keys, groups, report);
        match words.clone().read(zone(&words, groups)) {
            Ok(def) => {
                places.0.insert(def.code.clone(), (code.at, keys));
                made.push(def);
            }
            Err(faults) => {
                for fault in faults.0 {
                    let at = keys.get(fault.key).unwrap_or(&code.at);
                    let what = format!("schedule {}: {}", code.value, fault.what);
                    report.fault(at, what, fault.cure);
                }
            }
        }
    }
    (made, places)
}

/// The zone of the groups that it opens; of groups with several, it has to say one itself.
fn zone(words: &TriggerWords, groups: &[Group]) -> Option<Tz> {
    let opens = |g: &&Group| {
        words.group.as_ref().is_none_or(|code| *code == g.code)
            && words.batch_type.as_ref().is_none_or(|ty| g.batch_type.as_ref() == Some(ty))
    };
    let zones = groups.iter().filter(opens).map(|g| g.time_zone.as_deref().unwrap_or("UTC"));
    let mut zones: Vec<&str> = zones.collect();
    zones.sort_unstable();
    zones.dedup();
    match zones[..] {
        // A fault of the group's own, where that is said.
        [one] => Some(read_zone(one).unwrap_or(Tz::UTC)),
        [] => Some(Tz::UTC),
        [_, _, ..] => None,
    }
}

fn unknown_group(
    code: &At<String>,
    words: &TriggerWords,
    keys: &HashMap<&'static str, Place>,
    groups: &[Group],
    report: &mut Report,
) {
    let Some(group) = &words.group else { return };
    if groups.iter().any(|g| g.code == *group) {
        return;
    }
    let hint = did_you_mean(group.as_str(), groups.iter().map(|g| g.code.as_str()));
    let what = format!("schedule {}: group {group} is not defined in this file", code.value);
    let at = keys.get("group").unwrap_or(&code.at);
    report.fault(at, what, format!("{hint}define it here, or use procession schedule add"));
}

/// Holds the schedules against the definition, whose own faults would only be said again.
pub(crate) fn check(made: &Definition, places: &Places, now: Millis, report: &mut Report) {
    if made.schedules.is_empty() || report.has_faults() {
        return;
    }
    let expected = BTreeMap::new();
    let around = Around { defs: made, calendars: None, now, expected: &expected };
    let each = made.schedules.iter().flat_map(|def| {
        trigger_check::check(def, &around).into_iter().map(|found| (def.code.clone(), found))
    });
    let found: Vec<_> = each.chain(trigger_check::rings(&made.schedules, made)).collect();
    for (code, Finding { fault, grade }) in found {
        let Some(at) = places.of(&code, fault.key) else { continue };
        let what = format!("schedule {code}: {}", fault.what);
        match grade {
            Grade::Refused => report.fault(at, what, fault.cure),
            Grade::Warned => report.warn(at, what, fault.cure),
        }
    }
}

impl Loaded {
    /// What was found about its schedules elsewhere, said at their lines: first what refuses them, then
    /// what is worth a look. `Err` when there is anything of the first kind.
    ///
    /// # Errors
    /// The faults.
    pub fn placed(&self, found: Vec<(TriggerCode, Finding)>) -> Result<Vec<Fault>, Faults> {
        let mut report = Report::default();
        for (code, Finding { fault, grade }) in found {
            let whole = Place::new(&"schedules".into(), 0);
            let at = self.places.of(&code, fault.key).unwrap_or(&whole);
            let what = format!("schedule {code}: {}", fault.what);
            match grade {
                Grade::Refused => report.fault(at, what, fault.cure),
                Grade::Warned => report.warn(at, what, fault.cure),
            }
        }
        report.finish()
    }
}
