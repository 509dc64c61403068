//! Extracts the part of a definition that belongs to one group, and moves it to other data sources.

use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::borrowed::BorrowedDefinition;
use crate::domain::job::check::Expect;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::{Definition, Group, JobDef, Shared};
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::source::DataSource;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

/// A group with its jobs, their dependencies, and the sources and shared declarations that they
/// reference.
pub fn of_group(defs: &Definition, group: &Group) -> Definition {
    Definition {
        calendars: defs.calendars.clone(),
        stored_secrets: defs.stored_secrets.clone(),
        configured_secrets: defs.configured_secrets.clone(),
        executor_groups: defs.executor_groups.clone(),
        ..borrowed_group(&BorrowedDefinition::from_definition(defs), group).to_definition()
    }
}

/// As [`of_group`], without a copy of it.
pub fn borrowed_group<'a>(
    defs: &BorrowedDefinition<'a>,
    group: &'a Group,
) -> BorrowedDefinition<'a> {
    let mut part = BorrowedDefinition {
        schedules: Vec::new(),
        ..defs.clone().with_groups(|code| *code == group.code)
    };
    part.groups = vec![group];
    let named: HashSet<&SourceName> = part.jobs.iter().flat_map(|job| sources_of(job)).collect();
    part.sources.retain(|source| named.contains(&source.name));
    if *part.shared != Shared::default() {
        part.shared = Cow::Owned(shared_of(&part.shared, &part));
    }
    part
}

/// The stored definition after `wanted` has been applied over `stored`: everything that `wanted`
/// names takes its form, jobs of its groups that it does not contain are removed, the rest is
/// unchanged. This is what `store::job::apply` writes, computed without reading a million rows
/// back.
///
/// In the order in which it is stored: what was there keeps its place, what is new comes behind it. Versions
/// are compared by their text, and the same file in another order is no other version.
pub fn merged<'a>(stored: &'a Definition, wanted: &'a Definition) -> BorrowedDefinition<'a> {
    let groups: HashSet<&GroupCode> = wanted.groups.iter().map(|g| &g.code).collect();
    let stays = |group: &GroupCode| !groups.contains(group);
    // The dependencies of one job are rewritten together.
    type Key<'a> = (&'a GroupCode, &'a JobCode);
    fn key(e: &ExternalDependency) -> Key<'_> {
        (&e.waiting_group, &e.job_code)
    }
    let waiting: HashSet<Key<'_>> = wanted.externals.iter().map(key).collect();
    let is_same = |job: &Key<'_>| {
        let (old, new) = (stored.externals.iter(), wanted.externals.iter());
        old.filter(|e| key(e) == *job).eq(new.filter(|e| key(e) == *job))
    };
    let same: HashSet<Key<'_>> = waiting.into_iter().filter(is_same).collect();
    let kept = stored.externals.iter();
    let kept = kept.filter(|e| stays(&e.waiting_group) || same.contains(&key(e)));
    let written = wanted.externals.iter().filter(|e| !same.contains(&key(e)));
    let (old, new) = (&stored.shared, &wanted.shared);
    BorrowedDefinition {
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
        externals: kept.chain(written).collect(),
        shared: Cow::Owned(Shared {
            owners: copied(&old.owners, &new.owners, |o| &o.code),
            pools: copied(&old.pools, &new.pools, |p| &p.name),
            hosts: copied(&old.hosts, &new.hosts, |h| &h.name),
            secrets: copied(&old.secrets, &new.secrets, |s| &s.name),
            params: copied(&old.params, &new.params, |p| &p.name),
        }),
        schedules: Vec::new(),
    }
}

/// Those of `stored` in their places, in the words of `wanted` where that has them, then what is new.
fn merge_by_key<'a, T, K: Eq + Hash>(
    stored: &'a [T],
    wanted: &'a [T],
    key: impl Fn(&'a T) -> K,
    stays: impl Fn(&'a T) -> bool,
) -> Vec<&'a T> {
    let mut new: HashMap<K, &'a T> = wanted.iter().map(|w| (key(w), w)).collect();
    let old = stored.iter();
    let mut all: Vec<&'a T> =
        old.filter_map(|s| new.remove(&key(s)).or_else(|| stays(s).then_some(s))).collect();
    all.extend(wanted.iter().filter(|w| new.contains_key(&key(w))));
    all
}

/// The same as copies, of lists that are short.
fn copied<'a, T: Clone, K: Eq + Hash>(
    stored: &'a [T],
    wanted: &'a [T],
    key: impl Fn(&'a T) -> K,
) -> Vec<T> {
    merge_by_key(stored, wanted, key, |_| true).into_iter().cloned().collect()
}

/// The schedules of `stored` that `wanted` speaks about: those that open one of its groups, and those of
/// a type all of whose groups are among them.
pub fn schedules_of<'a>(stored: &'a Definition, wanted: &Definition) -> Vec<&'a TriggerDef> {
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
    stored.schedules.iter().filter(|def| speaks(def) || is_there(def)).collect()
}

/// The group with this code and everything that belongs to it, if it exists.
pub fn of_code(defs: &Definition, code: &GroupCode) -> Option<Definition> {
    defs.groups.iter().find(|g| g.code == *code).map(|group| of_group(defs, group))
}

/// What of the shared things the part names. A thing too many does no harm, so names are looked for
/// in the stored form: a field added to a type is searched without a word here.
fn shared_of(shared: &Shared, part: &BorrowedDefinition<'_>) -> Shared {
    // Without the dependencies, which name jobs and their outputs alone: a million of them were a text of 140 MB.
    let own = serialize_item(&(&part.sources, &part.groups, &part.jobs, &part.externals));
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
