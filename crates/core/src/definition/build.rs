//! Builds the definition from the raw one: resolves names, embeds files and runs all checks. Output: the definition,
//! and faults and warnings in the report.

use crate::definition::check;
use crate::definition::declare;
use crate::definition::external::{self, RawExternalDependency, is_external};
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::files::DefinitionFiles;
use crate::definition::group_access;
use crate::definition::job::{self, JobContext};
use crate::definition::job_kinds;
use crate::definition::job_names::{JobNames, NamedParent, QualifiedName};
use crate::definition::limits;
use crate::definition::numbering_check::Numbering;
use crate::definition::owner;
use crate::definition::raw::{Raw, RawDependency, RawGroup, RawJob, RawListed, RawParent};
use crate::definition::schedules::{self, SchedulePlaces};
use crate::definition::source;
use crate::definition::workdays;
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::job::body::HttpHost;
use crate::domain::job::shared_definitions::SecretSource;
use crate::domain::job::{Definition, Group, JobDef, JobKind, Shared};
use crate::domain::permission::access_rules::AccessRules;
use crate::domain::source::DataSource;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The default group of a file that defines no group.
const DEFAULT_GROUP: &str = "default";

/// Builds a definition; it is valid if the report contains no fault.
pub(crate) fn build(
    mut raw: Raw,
    whole: &SourcePlace,
    files: &DefinitionFiles<'_>,
    kinds: &[JobKind],
    report: &mut FaultReport,
) -> (Definition, SchedulePlaces) {
    set_groups(&mut raw);
    each_once(&mut raw, report);
    owner::check(&raw, report);
    let owners = owner::owners(&raw.owners);
    let hosts = job_kinds::hosts(std::mem::take(&mut raw.hosts), report);
    let sources: Vec<_> =
        raw.sources.into_iter().filter_map(|s| source::source(s, files, report)).collect();
    let pools = limits::pools(raw.pools, report);
    let places: Vec<Located<String>> = raw.groups.iter().map(|g| g.code.clone()).collect();
    let mut groups: Vec<Group> = raw.groups.into_iter().filter_map(|g| group(g, report)).collect();
    if places.is_empty() {
        groups.extend(bare_group(DEFAULT_GROUP));
    }
    if raw.jobs.is_empty() {
        report.fault(whole, "no job is defined", "add jobs:");
    }
    let codes: Vec<GroupCode> = groups.iter().map(|g| g.code.clone()).collect();
    let known: Vec<Arc<str>> = codes.iter().map(|code| Arc::from(code.as_str())).collect();
    let names = JobNames::collect(&raw.jobs, &known, report);
    let (waits, outside) = waits(&mut raw.jobs, raw.dependencies, &names, report);
    names.resolve_aliases(&mut raw.jobs);
    let secrets = declare::secrets(raw.secrets, report);
    let access = access_rules(&sources, &secrets, &hosts);
    report_group_uses(&groups, &places, &access, report);
    let around = |defaults| JobContext {
        defaults,
        kinds,
        sources: &sources,
        groups: &codes,
        pools: &pools,
        files,
        hosts: &hosts,
        access: &access,
    };
    let rings = job_kinds::Opens::from_jobs(&raw.jobs);
    let mut jobs = Vec::with_capacity(raw.jobs.len());
    for job in raw.jobs {
        let defaults = raw.own_defaults.get(&job.code.at.file).unwrap_or(&raw.defaults);
        jobs.extend(job::make_job(job, &around(defaults), report));
    }
    let dependencies = check::dependencies(waits, &jobs, &names, report);
    check::outputs(&jobs, &dependencies, report);
    workdays::of_jobs(&jobs, &groups, report);
    workdays::of_decls(&raw.params, None, report);
    rings.refuse_rings(&jobs, report);
    let (schedules, schedule_places) = schedules::schedules(raw.schedules, &groups, report);
    let numbering = Numbering { groups: &groups, schedules: &schedules };
    let externals = external::externals(outside, &jobs, &dependencies, &numbering, report);
    warn_of_empty(&places, &jobs, report);
    let mut jobs: Vec<JobDef> = jobs.into_iter().map(|j| j.def).collect();
    names.settle_aliases(&mut jobs);
    let shared = Shared {
        params: declare::decls(&raw.params, report),
        secrets,
        hosts: hosts.into_iter().map(|h| h.value).collect(),
        pools,
        owners,
    };
    let made = Definition { sources, groups, jobs, dependencies, ..Definition::default() };
    (Definition { externals, shared, schedules, ..made }, schedule_places)
}

/// Reports secrets in the parameters of groups that the groups may not use.
fn report_group_uses(
    groups: &[Group],
    places: &[Located<String>],
    access: &AccessRules,
    report: &mut FaultReport,
) {
    for group in groups {
        if let Some(place) = places.iter().find(|place| place.value == group.code.as_str()) {
            group_access::report_uses(&access.forbidden_uses_of_group(group), &place.at, report);
        }
    }
}

/// The access rules in the file itself, for its data sources, its secrets and the hosts that receive them.
fn access_rules(
    sources: &[DataSource],
    secrets: &[SecretSource],
    hosts: &[Located<HttpHost>],
) -> AccessRules {
    let hosts = hosts.iter().map(|host| host.value.clone()).collect();
    let shared = Shared { secrets: secrets.to_vec(), hosts, ..Shared::default() };
    let defs = Definition { sources: sources.to_vec(), shared, ..Definition::default() };
    AccessRules::collect(&defs)
}

fn warn_of_empty(places: &[Located<String>], jobs: &[job::CheckedJob], report: &mut FaultReport) {
    let used: HashSet<&str> = jobs.iter().map(|j| j.def.group.as_str()).collect();
    for empty in places.iter().filter(|g| !used.contains(g.value.as_str())) {
        let what = format!("group {} has no job", empty.value);
        report.add_warning(&empty.at, what, "give it one or remove it");
    }
}

/// Keeps only the first of several list entries with the same name.
fn each_once(raw: &mut Raw, report: &mut FaultReport) {
    drop_doubles("source", &mut raw.sources, |s| &s.name, report);
    drop_doubles("group", &mut raw.groups, |g| &g.code, report);
    drop_doubles("pool", &mut raw.pools, |p| &p.name, report);
    drop_double_jobs(&mut raw.jobs, report);
    drop_doubles("owner", &mut raw.owners, |o| &o.code, report);
    drop_doubles("schedule", &mut raw.schedules, |s| &s.code, report);
}

/// Sets the group of each job: its own, else the default of its file. If neither is given or the group does not exist,
/// the first group is used and `make_job::make_job` reports the fault.
fn set_groups(raw: &mut Raw) {
    let groups: Vec<Arc<str>> = match &raw.groups[..] {
        [] => vec![Arc::from(DEFAULT_GROUP)],
        groups => groups.iter().map(|g| Arc::from(g.code.value.as_str())).collect(),
    };
    for job in &mut raw.jobs {
        let defaults = raw.own_defaults.get(&job.code.at.file).unwrap_or(&raw.defaults);
        let word = job.settings.group.as_ref().or(defaults.group.as_ref());
        let found = word.and_then(|word| groups.iter().find(|group| ***group == *word.value));
        job.group = Arc::clone(found.unwrap_or(&groups[0]));
    }
}

/// Keeps only the first of several jobs of a group with the same code.
fn drop_double_jobs(jobs: &mut Vec<RawJob>, report: &mut FaultReport) {
    let mut places: HashMap<Arc<str>, HashMap<String, SourcePlace>> = HashMap::new();
    jobs.retain(|job| {
        let code = &job.code;
        let own = places.entry(Arc::clone(&job.group)).or_default();
        let Some(first) = own.get(&code.value) else {
            own.insert(code.value.clone(), code.at.clone());
            return true;
        };
        report_double("job", code, first, report);
        false
    });
}

fn report_double(one: &str, code: &Located<String>, first: &SourcePlace, report: &mut FaultReport) {
    let first = first.seen_from(&code.at);
    let what = format!("{one} {} is defined twice, first {first}", code.value);
    report.fault(&code.at, what, "rename one of the two or remove it");
}

/// Dependencies within a group, and dependencies on other batches.
type BuiltDependencies = (Vec<RawDependency>, Vec<RawExternalDependency>);

/// All dependencies: first those of each job in its order, then those of the separate list. They are moved out of the
/// jobs, so that a million of them are not held twice.
fn waits(
    jobs: &mut [RawJob],
    others: Vec<RawListed>,
    names: &JobNames,
    report: &mut FaultReport,
) -> BuiltDependencies {
    let count = jobs.iter().map(|job| job.depends_on.len()).sum();
    let (mut own, mut outside) = (Vec::with_capacity(count), Vec::new());
    for job in jobs {
        let code: Arc<str> = Arc::from(job.code.value.as_str());
        let group = &job.group;
        for (order, mut parent) in (1..).zip(std::mem::take(&mut job.depends_on)) {
            if is_external(&parent) {
                name_external(&mut parent, group, names);
                outside.push(RawExternalDependency {
                    group: Arc::clone(group),
                    job: code.to_string(),
                    parent,
                });
                continue;
            }
            let Some(word) = parent.job() else { continue };
            let named = match names.parent(group, &word.value) {
                NamedParent::Own(code) => code,
                NamedParent::Foreign(name) => {
                    let at = word.at.clone();
                    parent.point_to(&at, name);
                    let job = code.to_string();
                    outside.push(RawExternalDependency { group: Arc::clone(group), job, parent });
                    continue;
                }
            };
            let depends_on = Located::new(&word.at, named);
            let (group, job) = (Arc::clone(group), Arc::clone(&code));
            let when = parent.condition().cloned().map(Box::new);
            own.push(RawDependency { group, job, depends_on, order, when });
        }
    }
    for listed in others {
        match listed_job(&listed.job, names, report) {
            Some(name) => listed_wait(name, listed, names, &mut own, &mut outside),
            None => continue,
        }
    }
    (own, outside)
}

/// Resolves the code and group of the job in a dependency on another batch.
fn name_external(parent: &mut RawParent, own: &Arc<str>, names: &JobNames) {
    let Some(word) = parent.job() else { return };
    let code = match parent.group() {
        Some(group) => names.code_in(&group.value, &word.value).map(str::to_owned),
        None => match names.parent(own, &word.value) {
            NamedParent::Own(code) => Some(code),
            NamedParent::Foreign(name) => {
                let group = Located::new(&word.at, name.group.to_string());
                if let Some(more) = parent.more_mut() {
                    more.group = Some(group);
                }
                Some(name.code)
            }
        },
    };
    if let (Some(word), Some(code)) = (parent.job_mut(), code) {
        word.value = code;
    }
}

/// The waiting job of an entry in the separate list, if it states no group.
fn listed_job(
    word: &Located<String>,
    names: &JobNames,
    report: &mut FaultReport,
) -> Option<QualifiedName> {
    let found = names.candidates(&word.value);
    match &found[..] {
        [] => Some(QualifiedName { group: Arc::from(""), code: word.value.clone() }),
        [one] => Some(one.clone()),
        several => {
            let groups: Vec<&str> = several.iter().map(|name| &*name.group).collect();
            let full: Vec<String> =
                several.iter().map(|name| format!("{}.{}", name.group, name.code)).collect();
            let what = format!("{} is in groups {}", word.value, groups.join(" and "));
            report.fault(&word.at, what, format!("write {}", full.join(" or ")));
            None
        }
    }
}

fn listed_wait(
    name: QualifiedName,
    listed: RawListed,
    names: &JobNames,
    own: &mut Vec<RawDependency>,
    outside: &mut Vec<RawExternalDependency>,
) {
    let RawListed { mut depends_on, order, when, .. } = listed;
    let QualifiedName { group, code } = name;
    match names.parent(&group, &depends_on.value) {
        NamedParent::Own(parent) => {
            depends_on.value = parent;
            own.push(RawDependency { group, job: Arc::from(code), depends_on, order, when });
        }
        NamedParent::Foreign(foreign) => {
            let mut parent = RawParent::Plain(depends_on.clone());
            parent.point_to(&depends_on.at, foreign);
            if let (Some(more), Some(when)) = (parent.more_mut(), when) {
                more.when = Some(*when);
            }
            outside.push(RawExternalDependency { group, job: code, parent });
        }
    }
}

/// Keeps the first entry of each code. A map by code cannot contain duplicates; a list can.
fn drop_doubles<T>(
    one: &str,
    items: &mut Vec<T>,
    code: impl Fn(&T) -> &Located<String>,
    report: &mut FaultReport,
) {
    let mut places: HashMap<String, SourcePlace> = HashMap::new();
    items.retain(|item| {
        let code = code(item);
        let Some(first) = places.get(&code.value) else {
            places.insert(code.value.clone(), code.at.clone());
            return true;
        };
        report_double(one, code, first, report);
        false
    });
}

fn bare_group(code: &str) -> Option<Group> {
    Some(Group::with_defaults(GroupCode::parse(code).ok()?))
}

fn group(raw: RawGroup, report: &mut FaultReport) -> Option<Group> {
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
        ..Group::with_defaults(code)
    })
}
