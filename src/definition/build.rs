//! What the whole definition means: names looked up, files embedded, everything checked.

use crate::definition::alias::Aliases;
use crate::definition::check;
use crate::definition::declare;
use crate::definition::external::{self, Outside, is_external};
use crate::definition::fault::{At, Place, Report};
use crate::definition::files::Files;
use crate::definition::job::{self, Around};
use crate::definition::job_kinds;
use crate::definition::limits;
use crate::definition::owner;
use crate::definition::raw::{Raw, RawDependency, RawGroup, RawJob};
use crate::definition::schedules::{self, Places};
use crate::definition::source;
use crate::definition::workdays;
use crate::domain::calendar::Calendars;
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::job::{Definition, Group, JobKind, Shared};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The group of a file that defines none.
const DEFAULT_GROUP: &str = "default";

/// Makes a definition of what the user said; it is sound when the report holds no fault.
pub(crate) fn build(
    mut raw: Raw,
    whole: &Place,
    files: &Files<'_>,
    kinds: &[JobKind],
    report: &mut Report,
) -> (Definition, Places) {
    each_once(&mut raw, report);
    owner::check(&raw, report);
    let owners = owner::owners(&raw.owners);
    let hosts = job_kinds::hosts(std::mem::take(&mut raw.hosts), report);
    let sources: Vec<_> =
        raw.sources.into_iter().filter_map(|s| source::source(s, files, report)).collect();
    let pools = limits::pools(raw.pools, report);
    let places: Vec<At<String>> = raw.groups.iter().map(|g| g.code.clone()).collect();
    let mut groups: Vec<Group> = raw.groups.into_iter().filter_map(|g| group(g, report)).collect();
    if places.is_empty() {
        groups.extend(bare_group(DEFAULT_GROUP));
    }
    if raw.jobs.is_empty() {
        report.fault(whole, "no job is defined", "add jobs:");
    }
    let codes: Vec<GroupCode> = groups.iter().map(|g| g.code.clone()).collect();
    let written: HashSet<String> = raw.jobs.iter().map(|j| j.code.value.clone()).collect();
    let (mut waits, mut outside) = waits(&mut raw.jobs, raw.dependencies);
    let aliases = Aliases::collect(&raw.jobs, report);
    aliases.resolve(&mut raw.jobs, &mut waits, &mut outside);
    let around = |defaults| Around {
        defaults,
        kinds,
        sources: &sources,
        groups: &codes,
        pools: &pools,
        files,
        hosts: &hosts,
    };
    let rings = job_kinds::Opens::of(&raw.jobs);
    let mut jobs = Vec::new();
    for job in raw.jobs {
        let defaults = raw.own_defaults.get(&job.code.at.file).unwrap_or(&raw.defaults);
        jobs.extend(job::job(job, &around(defaults), report));
    }
    let dependencies = check::dependencies(waits, &jobs, &written, report);
    check::outputs(&jobs, &dependencies, report);
    workdays::of_jobs(&jobs, &groups, report);
    workdays::of_decls(&raw.params, None, report);
    rings.refuse_rings(&jobs, report);
    let externals = external::externals(outside, &jobs, &dependencies, &codes, report);
    warn_of_empty(&places, &jobs, report);
    let jobs = jobs.into_iter().map(|j| j.def).collect();
    let shared = Shared {
        params: declare::decls(&raw.params, report),
        secrets: declare::secrets(raw.secrets, report),
        hosts: hosts.into_iter().map(|h| h.value).collect(),
        pools,
        owners,
    };
    let (schedules, places) = schedules::schedules(raw.schedules, &groups, report);
    let calendars = Calendars::default();
    let mut made =
        Definition { sources, groups, jobs, dependencies, externals, shared, schedules, calendars };
    aliases.settle(&mut made);
    (made, places)
}

fn warn_of_empty(places: &[At<String>], jobs: &[job::Made], report: &mut Report) {
    let used: HashSet<&str> = jobs.iter().map(|j| j.def.group.as_str()).collect();
    for empty in places.iter().filter(|g| !used.contains(g.value.as_str())) {
        let what = format!("group {} has no job", empty.value);
        report.warn(&empty.at, what, "give it one or remove it");
    }
}

/// Of what a list holds twice under one name only the first is kept.
fn each_once(raw: &mut Raw, report: &mut Report) {
    drop_doubles("source", &mut raw.sources, |s| &s.name, report);
    drop_doubles("group", &mut raw.groups, |g| &g.code, report);
    drop_doubles("pool", &mut raw.pools, |p| &p.name, report);
    drop_doubles("job", &mut raw.jobs, |j| &j.code, report);
    drop_doubles("owner", &mut raw.owners, |o| &o.code, report);
    drop_doubles("schedule", &mut raw.schedules, |s| &s.code, report);
}

/// All dependencies: those of each job in its order, then those of the list of their own. And those on
/// other batches. They are taken out of the jobs: a million of them are not held twice.
fn waits(jobs: &mut [RawJob], others: Vec<RawDependency>) -> (Vec<RawDependency>, Vec<Outside>) {
    let (mut own, mut outside) = (Vec::new(), Vec::new());
    for job in jobs {
        let code: Arc<str> = Arc::from(job.code.value.as_str());
        for (order, parent) in (1..).zip(std::mem::take(&mut job.depends_on)) {
            if is_external(&parent) {
                outside.push((job.code.value.clone(), parent));
                continue;
            }
            let Some(depends_on) = parent.job else { continue };
            let when = parent.more.and_then(|more| more.when).map(Box::new);
            own.push(RawDependency { job: Arc::clone(&code), depends_on, order, when });
        }
    }
    own.extend(others);
    (own, outside)
}

/// Keeps the first of each code. A map by code cannot hold two; a list can.
fn drop_doubles<T>(
    one: &str,
    items: &mut Vec<T>,
    code: impl Fn(&T) -> &At<String>,
    report: &mut Report,
) {
    let mut places: HashMap<String, Place> = HashMap::new();
    items.retain(|item| {
        let code = code(item);
        let Some(first) = places.get(&code.value) else {
            places.insert(code.value.clone(), code.at.clone());
            return true;
        };
        let first = first.seen_from(&code.at);
        let what = format!("{one} {} is defined twice, first {first}", code.value);
        report.fault(&code.at, what, "rename one of the two or remove it");
        false
    });
}

fn bare_group(code: &str) -> Option<Group> {
    Some(Group::bare(GroupCode::parse(code).ok()?))
}

fn group(raw: RawGroup, report: &mut Report) -> Option<Group> {
    let whose = format!("group {}", raw.code.value);
    let params = declare::decls(&raw.params, report);
    if let Some(zone) = raw.time_zone.as_ref().filter(|z| z.value.parse::<chrono_tz::Tz>().is_err())
    {
        let what = format!("{whose}: time zone {:?} is not known", zone.value);
        report.fault(&zone.at, what, "use an IANA name such as Asia/Shanghai");
    }
    let calendar = raw.calendar.as_ref().and_then(|c| {
        let parsed = CalendarCode::parse(&c.value);
        parsed.map_err(|error| report.fault(&c.at, format!("{whose}: {error}"), "")).ok()
    });
    workdays::of_decls(&raw.params, calendar.as_ref(), report);
    limits::group(&whose, &raw, report);
    let code = GroupCode::parse(&raw.code.value)
        .map_err(|error| report.fault(&raw.code.at, error.to_string(), ""))
        .ok()?;
    Some(Group {
        name: raw.name.map_or(code.to_string(), |n| n.value),
        batch_type: raw.batch_type.map(|t| t.value),
        owner: raw.owner.map(|o| o.value),
        notify_email: raw.notify_email.into_iter().map(|a| a.value).collect(),
        max_parallel: raw.max_parallel.map(|m| m.value),
        time_zone: raw.time_zone.map(|z| z.value),
        calendar,
        params,
        on_failure: raw.on_failure,
        batch_timeout_sec: raw.batch_timeout_sec.map(|t| t.value),
        warn_after_sec: raw.warn_after_sec.map(|t| t.value),
        notify: raw.notify,
        due: raw.due.map(|d| d.value),
        slow_after: raw.slow_after.map(|f| f.value),
        held_after_sec: raw.held_after_sec.map(|t| t.value),
        ..Group::bare(code)
    })
}
