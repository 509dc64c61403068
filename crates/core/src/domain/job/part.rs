//! Extracts the part of a definition that belongs to one group, and moves it to other data sources.

use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::check::Expect;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::{Definition, Group, JobDef, Shared};
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::source::DataSource;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

/// A group with its jobs, their dependencies, and the sources and shared declarations that they
/// reference.
pub fn of_group(defs: &Definition, group: &Group) -> Definition {
    let part = Definition {
        sources: defs.sources.clone(),
        groups: Vec::new(),
        jobs: cloned_where(&defs.jobs, |job| job.group == group.code),
        dependencies: cloned_where(&defs.dependencies, |d| d.group == group.code),
        externals: cloned_where(&defs.externals, |e| e.waiting_group == group.code),
        shared: defs.shared.clone(),
        schedules: Vec::new(),
        calendars: defs.calendars.clone(),
        stored_secrets: defs.stored_secrets.clone(),
        configured_secrets: defs.configured_secrets.clone(),
        executor_groups: defs.executor_groups.clone(),
    };
    into_group(part, group)
}

/// As [`of_group`], but consumes the definition instead of copying from it.
pub fn into_group(mut defs: Definition, group: &Group) -> Definition {
    defs.jobs.retain(|job| job.group == group.code);
    defs.dependencies.retain(|dependency| dependency.group == group.code);
    let (jobs, dependencies) =
        (std::mem::take(&mut defs.jobs), std::mem::take(&mut defs.dependencies));
    // References are collected without copying the jobs.
    let named: HashSet<&SourceName> = jobs.iter().flat_map(sources_of).collect();
    defs.sources.retain(|source| named.contains(&source.name));
    drop(named);
    defs.groups = vec![group.clone()];
    defs.externals.retain(|external| external.waiting_group == group.code);
    defs.schedules = Vec::new();
    let shared = std::mem::take(&mut defs.shared);
    defs.jobs = jobs;
    if shared != Shared::default() {
        // Dependencies are skipped, because they name only jobs and outputs: a million of them were
        // two texts of 140 MB.
        defs.shared = shared_of(&shared, &defs);
    }
    defs.dependencies = dependencies;
    defs
}

/// Clones the matching elements into a list of exact capacity; a growing list may have twice as
/// much: 100,000 jobs are 66 MB.
pub fn cloned_where<T: Clone>(all: &[T], fits: impl Fn(&T) -> bool) -> Vec<T> {
    let fitting: Vec<&T> = all.iter().filter(|one| fits(one)).collect();
    fitting.into_iter().cloned().collect()
}

/// The stored definition after `wanted` has been applied over `stored`: everything that `wanted`
/// names takes its form, jobs of its groups that it does not contain are removed, the rest is
/// unchanged. This is what `store::job::apply` writes, computed without reading a million rows
/// back.
///
/// In storage order: existing elements keep their position, new ones are appended. Versions are
/// compared by their text, and the same file in another order must not be another version.
pub fn merged(stored: &Definition, wanted: &Definition) -> Definition {
    fn merge_by_key<'a, T: Clone, K: Eq + Hash>(
        stored: &'a [T],
        wanted: &'a [T],
        key: impl Fn(&'a T) -> K,
        stays: impl Fn(&'a T) -> bool,
    ) -> Vec<T> {
        let mut new: HashMap<K, &'a T> = wanted.iter().map(|w| (key(w), w)).collect();
        let old = stored.iter();
        let mut all: Vec<&'a T> =
            old.filter_map(|s| new.remove(&key(s)).or_else(|| stays(s).then_some(s))).collect();
        all.extend(wanted.iter().filter(|w| new.contains_key(&key(w))));
        all.into_iter().cloned().collect()
    }
    let groups: HashSet<&GroupCode> = wanted.groups.iter().map(|g| &g.code).collect();
    let stays = |group: &GroupCode| !groups.contains(group);
    // The dependencies of one job are rewritten together.
    type Key<'a> = (&'a GroupCode, &'a JobCode);
    fn key(e: &ExternalDependency) -> Key<'_> {
        (&e.waiting_group, &e.job_code)
    }
    let of = |all: &Definition, job: &Key<'_>| -> Vec<ExternalDependency> {
        all.externals.iter().filter(|e| key(e) == *job).cloned().collect()
    };
    let waiting: HashSet<Key<'_>> = wanted.externals.iter().map(key).collect();
    let is_same = |job: &Key<'_>| of(stored, job) == of(wanted, job);
    let same: HashSet<Key<'_>> = waiting.into_iter().filter(is_same).collect();
    let kept = stored.externals.iter();
    let kept = kept.filter(|e| stays(&e.waiting_group) || same.contains(&key(e)));
    let written = wanted.externals.iter().filter(|e| !same.contains(&key(e)));
    let (old, new) = (&stored.shared, &wanted.shared);
    Definition {
        sources: merge_by_key(&stored.sources, &wanted.sources, |s| &s.name, |_| true),
        groups: merge_by_key(&stored.groups, &wanted.groups, |g| &g.code, |_| true),
        jobs: merge_by_key(
            &stored.jobs,
            &wanted.jobs,
            |j| (&j.group, &j.code),
            |j| stays(&j.group),
        ),
        // An element with any other value counts as a different element.
        dependencies: merge_by_key(
            &stored.dependencies,
            &wanted.dependencies,
            |d| d,
            |d| stays(&d.group),
        ),
        externals: kept.chain(written).cloned().collect(),
        shared: Shared {
            owners: merge_by_key(&old.owners, &new.owners, |o| &o.code, |_| true),
            pools: merge_by_key(&old.pools, &new.pools, |p| &p.name, |_| true),
            hosts: merge_by_key(&old.hosts, &new.hosts, |h| &h.name, |_| true),
            secrets: merge_by_key(&old.secrets, &new.secrets, |s| &s.name, |_| true),
            params: merge_by_key(&old.params, &new.params, |p| &p.name, |_| true),
        },
        schedules: Vec::new(),
        calendars: stored.calendars.clone(),
        stored_secrets: stored.stored_secrets.clone(),
        configured_secrets: stored.configured_secrets.clone(),
        executor_groups: stored.executor_groups.clone(),
    }
}

/// The schedules of `stored` that `wanted` covers: those that open one of its groups, and those of
/// a batch type all of whose groups are among them.
pub fn schedules_of(stored: &Definition, wanted: &Definition) -> Vec<TriggerDef> {
    let has = |code: &GroupCode| wanted.groups.iter().any(|g| g.code == *code);
    let speaks = |def: &&TriggerDef| {
        let Some(order) = &def.order else { return false };
        match (&order.group, &order.batch_type) {
            (Some(code), _) => has(code),
            (None, Some(ty)) => {
                let mut of_type = stored.groups.iter().chain(&wanted.groups);
                let mut any = of_type.clone().filter(|g| g.batch_type.as_ref() == Some(ty));
                any.next().is_some()
                    && of_type.all(|g| g.batch_type.as_ref() != Some(ty) || has(&g.code))
            }
            (None, None) => false,
        }
    };
    let is_there = |def: &&TriggerDef| wanted.schedules.iter().any(|w| w.code == def.code);
    stored.schedules.iter().filter(|def| speaks(def) || is_there(def)).cloned().collect()
}

/// The group with this code and everything that belongs to it, if it exists.
pub fn of_code(defs: &Definition, code: &GroupCode) -> Option<Definition> {
    defs.groups.iter().find(|g| g.code == *code).map(|group| of_group(defs, group))
}

/// The shared declarations that the part references. One too many does no harm, so names are
/// searched in the serialized form: a new field of a type is covered without a change here.
fn shared_of(shared: &Shared, part: &Definition) -> Shared {
    let own = serialize_item(part);
    let hosts: Vec<_> =
        shared.hosts.iter().filter(|h| own.contains(&quoted(&h.name))).cloned().collect();
    let secret = |all: &str, name: &str| all.contains(&format!("secret.{name}"));
    let params: Vec<_> = shared
        .params
        .iter()
        .filter(|p| own.contains(&quoted(&p.name)) || own.contains(&format!("params.{}", p.name)))
        .cloned()
        .collect();
    let all = format!("{own}{}{}", serialize_item(&hosts), serialize_item(&params));
    Shared {
        owners: shared.owners.iter().filter(|o| own.contains(&quoted(&o.code))).cloned().collect(),
        pools: shared.pools.iter().filter(|p| own.contains(&quoted(&p.name))).cloned().collect(),
        secrets: shared.secrets.iter().filter(|s| secret(&all, &s.name)).cloned().collect(),
        hosts,
        params,
    }
}

fn serialize_item(item: &impl Serialize) -> String {
    // Types of this crate with text keys: serializing cannot fail.
    serde_json::to_string(item).unwrap_or_default()
}

fn quoted(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

/// Every source that a job references.
fn sources_of(job: &JobDef) -> Vec<&SourceName> {
    let mut found: Vec<&SourceName> = job.source.iter().collect();
    for check in &job.checks {
        found.extend(&check.source);
        match &check.expect {
            Expect::Equals { source, .. } => found.extend(source),
            Expect::ZeroRows | Expect::Between { .. } | Expect::Drift { .. } => {}
        }
    }
    found
}

fn sources_of_mut(job: &mut JobDef) -> Vec<&mut SourceName> {
    let mut found: Vec<&mut SourceName> = job.source.iter_mut().collect();
    for check in &mut job.checks {
        found.extend(&mut check.source);
        match &mut check.expect {
            Expect::Equals { source, .. } => found.extend(source),
            Expect::ZeroRows | Expect::Between { .. } | Expect::Drift { .. } => {}
        }
    }
    found
}

/// A source that is to be replaced does not exist; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no source {name} to {wanted}; the sources are {known}")]
pub struct NoSuchSource {
    name: SourceName,
    wanted: &'static str,
    known: String,
}

/// The same definition on other sources: each name on the left of `moves` becomes the name on the
/// right. If the right-hand name exists in `stored`, that source is used; otherwise the source
/// itself is renamed. `urls` are set afterwards.
pub fn on_other_sources(
    mut defs: Definition,
    moves: &BTreeMap<SourceName, SourceName>,
    urls: &BTreeMap<SourceName, String>,
    stored: &[DataSource],
) -> Result<Definition, NoSuchSource> {
    for from in moves.keys() {
        require(&defs.sources, from, "map")?;
    }
    for name in defs.jobs.iter_mut().flat_map(sources_of_mut) {
        if let Some(to) = moves.get(name) {
            name.clone_from(to);
        }
    }
    let mut sources: Vec<DataSource> = Vec::new();
    for source in defs.sources {
        let name = moves.get(&source.name).cloned();
        let moved = match name {
            Some(name) => match stored.iter().find(|s| s.name == name) {
                Some(there) if !moves.contains_key(&there.name) => there.clone(),
                _ => DataSource { name, ..source },
            },
            None => source,
        };
        // Two sources may be merged into one.
        if sources.iter().all(|s| s.name != moved.name) {
            sources.push(moved);
        }
    }
    for (name, url) in urls {
        require(&sources, name, "set the URL of")?;
        for source in sources.iter_mut().filter(|s| s.name == *name) {
            source.url.clone_from(url);
        }
    }
    defs.sources = sources;
    Ok(defs)
}

fn require(
    sources: &[DataSource],
    name: &SourceName,
    wanted: &'static str,
) -> Result<(), NoSuchSource> {
    if sources.iter().any(|s| s.name == *name) {
        return Ok(());
    }
    let known: Vec<&str> = sources.iter().map(|s| s.name.as_str()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(NoSuchSource { name: name.clone(), wanted, known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition() -> Definition {
        let job = |code: &str, group: &str, more: serde_json::Value| {
            let code = JobCode::parse(code).expect("code");
            let group = GroupCode::parse(group).expect("group");
            let bare = JobDef::with_defaults(
                code,
                group,
                crate::domain::id::JobType::parse("SQL").expect("type"),
            );
            let mut value = serde_json::to_value(&bare).expect("JSON");
            let fields = value.as_object_mut().expect("a map");
            fields.extend(more.as_object().expect("a map").clone());
            value
        };
        let source = |name: &str| json!({"name": name, "url": format!("sqlite:{name}")});
        serde_json::from_value(json!({
            "sources": [source("dev"), source("twin"), source("prod"), source("idle")],
            "groups": [{"code": "g", "name": "g", "owner": "gl"}, {"code": "h", "name": "h"}],
            "jobs": [
                job("A", "g", json!({
                    "source": "dev",
                    "pools": [{"pool": "ORA", "weight": 1}],
                    "params": [{"name": "x", "value": "${secret.pw} ${params.rate}"}],
                    "checks": [
                        {"name": "c", "source": "dev", "sql": "1",
                         "expect": {"equals": {"source": "twin", "sql": "1"}}}
                    ],
                })),
                job("B", "h", json!({"source": "prod", "http": {"host": "api", "method": "GET", "path": "/"}})),
            ],
            "dependencies": [],
            "externals": [{"waiting_group": "g", "job_code": "A", "group": "h", "batch": "same"}],
            "owners": [{"code": "gl", "name": "GL"}, {"code": "fx", "name": "FX"}],
            "pools": [{"name": "ORA", "slots": 1}, {"name": "IDLE", "slots": 1}],
            "hosts": [{"name": "api", "base_url": "https://x", "headers": {"A": "${secret.key}"}}],
            "secrets": [{"name": "pw", "env": "PW"}, {"name": "key", "env": "K"}],
            "params": [{"name": "rate", "value": "1"}, {"name": "idle", "value": "2"}],
        }))
        .expect("a definition")
    }

    fn names(part: &Definition) -> String {
        let shared = &part.shared;
        let of = |names: Vec<&str>| names.join(" ");
        [
            of(part.jobs.iter().map(|j| j.code.as_str()).collect()),
            of(part.externals.iter().map(|e| e.group.as_str()).collect()),
            of(part.sources.iter().map(|s| s.name.as_str()).collect()),
            of(shared.owners.iter().map(|o| o.code.as_str()).collect()),
            of(shared.pools.iter().map(|p| p.name.as_str()).collect()),
            of(shared.hosts.iter().map(|h| h.name.as_str()).collect()),
            of(shared.secrets.iter().map(|s| s.name.as_str()).collect()),
            of(shared.params.iter().map(|p| p.name.as_str()).collect()),
        ]
        .join(" | ")
    }

    #[test]
    fn a_group_takes_what_it_names_along() {
        let part = |code| of_code(&definition(), &GroupCode::parse(code).expect("code"));
        assert_eq!(names(&part("g").expect("g")), "A | h | dev twin | gl | ORA |  | pw | rate");
        assert_eq!(names(&part("h").expect("h")), "B |  | prod |  |  | api | key | ");
        assert!(part("x").is_none());
    }

    fn moved(moves: &[(&str, &str)], urls: &[(&str, &str)]) -> Result<String, String> {
        let name = |word: &str| SourceName::parse(word).expect("name");
        let moves = moves.iter().map(|(a, b)| (name(a), name(b))).collect();
        let urls = urls.iter().map(|(a, b)| (name(a), (*b).to_owned())).collect();
        let part = of_code(&definition(), &GroupCode::parse("g").expect("code")).expect("g");
        let stored = definition().sources;
        let moved = on_other_sources(part, &moves, &urls, &stored).map_err(|e| e.to_string())?;
        let used: Vec<&str> =
            moved.jobs.iter().flat_map(sources_of).map(SourceName::as_str).collect();
        let there: Vec<String> =
            moved.sources.iter().map(|s| format!("{}={}", s.name, s.url)).collect();
        Ok(format!("{} | {}", used.join(" "), there.join(" ")))
    }

    #[test]
    fn a_source_is_moved_wherever_it_is_named() {
        for (moves, urls, wanted) in [
            (&[][..], &[][..], "dev dev twin | dev=sqlite:dev twin=sqlite:twin"),
            // A name that is stored already means that source; a new name renames the old source.
            (&[("dev", "prod")], &[], "prod prod twin | prod=sqlite:prod twin=sqlite:twin"),
            (&[("dev", "new")], &[], "new new twin | new=sqlite:dev twin=sqlite:twin"),
            (&[("dev", "twin")], &[], "twin twin twin | twin=sqlite:twin"),
            (
                &[("dev", "twin"), ("twin", "dev")],
                &[],
                "twin twin dev | twin=sqlite:dev dev=sqlite:twin",
            ),
            (
                &[("dev", "new")],
                &[("new", "sqlite:n")],
                "new new twin | new=sqlite:n twin=sqlite:twin",
            ),
        ] {
            assert_eq!(moved(moves, urls).as_deref(), Ok(wanted), "{moves:?}");
        }
        assert_eq!(
            moved(&[("idle", "prod")], &[]),
            Err("there is no source idle to map; the sources are dev, twin".to_owned())
        );
        assert_eq!(
            moved(&[], &[("prod", "sqlite:x")]),
            Err("there is no source prod to set the URL of; the sources are dev, twin".to_owned())
        );
    }
}
