//! Computes the difference between two definitions.

use crate::domain::id::GroupCode;
use crate::domain::job::borrowed::BorrowedDefinition;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::{Definition, JobDef, JobDependency};
use serde::Serialize;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

/// Maximum length of a value in a line of the difference, in characters.
const SHOWN: usize = 80;

/// The kind of element that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A data source.
    Source,
    /// A group.
    Group,
    /// A job.
    Job,
    /// A dependency, named `B <- A` for "B waits for A".
    Dependency,
    /// A dependency on another batch or group.
    External,
    /// An owner.
    Owner,
    /// A resource pool.
    Pool,
    /// A host of HTTP jobs.
    Host,
    /// A source of a secret.
    Secret,
    /// A parameter of all groups.
    Param,
    /// A schedule.
    Schedule,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Source => "source",
            Self::Group => "group",
            Self::Job => "job",
            Self::Dependency => "dependency",
            Self::External => "external dependency",
            Self::Owner => "owner",
            Self::Pool => "pool",
            Self::Host => "host",
            Self::Secret => "secret",
            Self::Param => "param",
            Self::Schedule => "schedule",
        })
    }
}

/// How an element differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It is only in the new definition.
    Added,
    /// It is only in the old definition.
    Removed,
    /// It is in both and differs in these fields.
    Changed(Vec<FieldChange>),
}

/// The old and new value of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The key as in a definition file, with dots for nested keys: `params.rate`.
    pub field: String,
    /// The old value as text; `None` if it had none.
    pub old: Option<String>,
    /// The new value.
    pub new: Option<String>,
}

/// One element that is added, removed or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionDifference {
    /// Kind of the element.
    pub thing: Thing,
    /// Code or name of the element.
    pub code: String,
    /// What happens to it.
    pub how: DifferenceKind,
}

/// All differences: first sources, then groups, jobs and dependencies, each by code. The order in which elements are
/// defined does not matter.
pub fn diff_definitions(old: &Definition, new: &Definition) -> Vec<DefinitionDifference> {
    let mut found = Vec::new();
    let borrowed = BorrowedDefinition::from_definition;
    visit_differences(&borrowed(old), &borrowed(new), &mut |difference| found.push(difference));
    found
}

/// Passes each difference to `found`, like [`diff_definitions`], and returns their number. For a new file with a
/// million dependencies, the list alone would take 110 MB.
pub fn visit_differences(
    old: &BorrowedDefinition<'_>,
    new: &BorrowedDefinition<'_>,
    found: &mut dyn FnMut(DefinitionDifference),
) -> usize {
    let mut count = 0;
    let found = &mut |difference| {
        count += 1;
        found(difference);
    };
    let name = |word: &&str| (*word).to_owned();
    compare(Thing::Source, &old.sources, &new.sources, |s| s.name.as_str(), name, found);
    compare(Thing::Group, &old.groups, &new.groups, |g| g.code.as_str(), name, found);
    let labels = JobLabels::from_both(old, new);
    let words = |(code, group): &(&str, &str)| labels.job_label(group, code);
    compare(Thing::Job, &old.jobs, &new.jobs, code_and_group, words, found);
    let (before, after) = (&old.dependencies, &new.dependencies);
    let words = |(job, parent, group): &(&str, &str, &str)| {
        format!("{} <- {parent}", labels.job_label(group, job))
    };
    compare(Thing::Dependency, before, after, edge_key, words, found);
    compare(
        Thing::External,
        &old.externals,
        &new.externals,
        |e| external(e, &labels),
        String::clone,
        found,
    );
    let (a, b) = (old.shared.as_ref(), new.shared.as_ref());
    compare(Thing::Owner, &refs(&a.owners), &refs(&b.owners), |o| o.code.as_str(), name, found);
    compare(Thing::Pool, &refs(&a.pools), &refs(&b.pools), |p| p.name.as_str(), name, found);
    compare(Thing::Host, &refs(&a.hosts), &refs(&b.hosts), |h| h.name.as_str(), name, found);
    compare(Thing::Secret, &refs(&a.secrets), &refs(&b.secrets), |s| s.name.as_str(), name, found);
    let (before, after) = (&old.schedules, &new.schedules);
    compare(Thing::Schedule, before, after, |s| s.code.as_str(), name, found);
    compare(Thing::Param, &refs(&a.params), &refs(&b.params), |p| p.name.as_str(), name, found);
    count
}

/// The name of a job: with its group if several groups have its code.
struct JobLabels<'a>(HashSet<&'a str>);

impl<'a> JobLabels<'a> {
    fn from_both(old: &BorrowedDefinition<'a>, new: &BorrowedDefinition<'a>) -> Self {
        let mut groups: HashMap<&str, &GroupCode> = HashMap::new();
        let mut several = HashSet::new();
        for job in old.jobs.iter().chain(&new.jobs).copied() {
            if *groups.entry(job.code.as_str()).or_insert(&job.group) != &job.group {
                several.insert(job.code.as_str());
            }
        }
        Self(several)
    }

    fn job_label(&self, group: &str, code: &str) -> String {
        if self.0.contains(code) { format!("{group}.{code}") } else { code.to_owned() }
    }
}

fn code_and_group(job: &JobDef) -> (&str, &str) {
    (job.code.as_str(), job.group.as_str())
}

/// Job, parent and group of a dependency.
fn edge_key(d: &JobDependency) -> (&str, &str, &str) {
    (d.job_code.as_str(), d.depends_on.as_str(), d.group.as_str())
}

fn external(e: &ExternalDependency, labels: &JobLabels<'_>) -> String {
    let what = e.depends_on.as_ref().map_or("its batch".to_owned(), ToString::to_string);
    let batch = serde_json::to_value(&e.batch).unwrap_or_default();
    let batch = batch.as_str().unwrap_or_default();
    format!(
        "{} <- {what} of group {} in batch {batch}",
        labels.job_label(e.waiting_group.as_str(), e.job_code.as_str()),
        e.group
    )
}

fn refs<T>(all: &[T]) -> Vec<&T> {
    all.iter().collect()
}

/// Compares by borrowed keys, because a file may have a million dependencies and mostly nothing differs.
fn compare<'a, T: Serialize + PartialEq, K: Ord + 'a>(
    thing: Thing,
    old: &[&'a T],
    new: &[&'a T],
    key: impl Fn(&'a T) -> K,
    words: impl Fn(&K) -> String,
    found: &mut dyn FnMut(DefinitionDifference),
) {
    if old == new {
        return;
    }
    let (before, after) = (in_order(old, &key), in_order(new, &key));
    let mut before = before.into_iter().map(|item| (key(item), item)).peekable();
    let mut after = after.into_iter().map(|item| (key(item), item)).peekable();
    loop {
        let order = match (before.peek(), after.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let was = before.next_if(|_| order.is_le());
        let is = after.next_if(|_| order.is_ge());
        let (key, how) = match (was, is) {
            (Some((_, a)), Some((_, b))) if a == b => continue,
            (Some((key, a)), Some((_, b))) => (key, DifferenceKind::Changed(fields(a, b))),
            (Some((key, _)), None) => (key, DifferenceKind::Removed),
            (None, Some((key, _))) => (key, DifferenceKind::Added),
            (None, None) => return,
        };
        found(DefinitionDifference { thing, code: words(&key), how });
    }
}

/// The elements in the order of their keys; of two with the same key, the last one. The keys are not stored, because
/// they take six times the memory.
fn in_order<'a, T, K: Ord>(all: &[&'a T], key: impl Fn(&'a T) -> K) -> Vec<&'a T> {
    let mut sorted = all.to_vec();
    // A stable sort; elements that are already in order cost almost nothing.
    sorted.sort_by_key(|item| key(item));
    sorted.reverse();
    sorted.dedup_by(|a, b| key(a) == key(b));
    sorted.reverse();
    sorted
}

/// The fields in which two values differ, taken from the stored form, so that a new field of a type needs no change
/// here.
fn fields(old: &impl Serialize, new: &impl Serialize) -> Vec<FieldChange> {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    flatten("", serde_json::to_value(old).unwrap_or_default(), &mut before);
    flatten("", serde_json::to_value(new).unwrap_or_default(), &mut after);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| FieldChange {
            field: name.clone(),
            old: before.get(name).cloned(),
            new: after.get(name).cloned(),
        })
        .collect()
}

fn flatten(path: &str, value: Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() { key } else { format!("{path}.{key}") };
                flatten(&path, value, into);
            }
        }
        Value::Null => {}
        Value::String(text) => drop(into.insert(path.to_owned(), text)),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            into.insert(path.to_owned(), other.to_string());
        }
    }
}

impl fmt::Display for DefinitionDifference {
    /// `+ job A`, `- job B`, or `~ job C` with a line per field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (thing, code) = (self.thing, &self.code);
        match &self.how {
            DifferenceKind::Added => write!(f, "+ {thing} {code}"),
            DifferenceKind::Removed => write!(f, "- {thing} {code}"),
            DifferenceKind::Changed(fields) => {
                write!(f, "~ {thing} {code}")?;
                fields.iter().try_for_each(|field| write!(f, "\n    {field}"))
            }
        }
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.field;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) if is_long(old) || is_long(new) => write_long(f, name, old, new),
            (old, new) => {
                let words = |v: &Option<String>| v.as_deref().map_or("(none)".to_owned(), shown);
                write!(f, "{name}: {} -> {}", words(old), words(new))
            }
        }
    }
}

fn is_long(text: &str) -> bool {
    text.contains('\n') || text.chars().count() > SHOWN
}

fn shown(text: &str) -> String {
    if !is_long(text) {
        return text.to_owned();
    }
    let first: String = text.lines().next().unwrap_or_default().chars().take(SHOWN).collect();
    format!("{first} … ({} lines)", text.lines().count())
}

/// A long text: only the first line that differs, because the whole text would hide the rest of the list.
fn write_long(f: &mut fmt::Formatter<'_>, name: &str, old: &str, new: &str) -> fmt::Result {
    let count = old.lines().count().max(new.lines().count());
    let line = |text: &str, i: usize| text.lines().nth(i).map(str::to_owned);
    let Some(i) = (0..count).find(|i| line(old, *i) != line(new, *i)) else {
        return write!(f, "{name}: differs in line ends");
    };
    // Starts shortly before the first difference, which may be far to the right.
    let (a, b) = (line(old, i).unwrap_or_default(), line(new, i).unwrap_or_default());
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let cut = |text: &str| -> String {
        let from = same.saturating_sub(20);
        let head = if from > 0 { "…" } else { "" };
        let rest: String = text.chars().skip(from).take(SHOWN).collect();
        let tail = if text.chars().count() > from + SHOWN { "…" } else { "" };
        format!("{head}{rest}{tail}")
    };
    write!(f, "{name}, line {}: {:?} -> {:?}", i + 1, cut(&a), cut(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{GroupCode, JobCode, JobType, SourceName};
    use crate::domain::job::{JobDef, JobDependency, Param, ParamMode, ParamType, SqlText};
    use crate::domain::source::DataSource;

    fn job(code: &str) -> JobDef {
        let code = JobCode::parse(code).expect("code");
        let group = GroupCode::parse("g").expect("group");
        JobDef::with_defaults(code, group, JobType::parse("SQL").expect("type"))
    }

    fn edge(job: &JobDef, parent: &JobDef, order: i32) -> JobDependency {
        let (job_code, depends_on) = (job.code.clone(), parent.code.clone());
        JobDependency::plain(&job.group, job_code, depends_on, order)
    }

    fn said(old: &Definition, new: &Definition) -> String {
        diff_definitions(old, new)
            .iter()
            .map(DefinitionDifference::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn every_kind_of_change_is_named() {
        let source = |limit, body: &str| DataSource {
            name: SourceName::parse("led").expect("name"),
            url: "sqlite:x".to_owned(),
            password_env: None,
            password_file: None,
            password_secret: None,
            read_password: Default::default(),
            max_parallel: limit,
            procedures: BTreeMap::from([("sp".to_owned(), body.to_owned())]),
            access: crate::domain::access::group_access::GroupAccess::default(),
        };
        let (a, mut b, c) = (job("A"), job("B"), job("C"));
        let old = Definition {
            sources: vec![source(None, "SELECT 1;\nSELECT 2;\n")],
            jobs: vec![a.clone(), b.clone()],
            dependencies: vec![edge(&b, &a, 1)],
            ..Definition::default()
        };
        b.retry_count = 3;
        b.sql = Some(SqlText::Same("SELECT 9".to_owned()));
        b.params = vec![Param {
            name: "p".to_owned(),
            mode: ParamMode::In,
            ty: ParamType::Int,
            value: Some("1".to_owned()),
            ..Param::default()
        }];
        let new = Definition {
            sources: vec![source(Some(2), "SELECT 1;\nSELECT 3;\n")],
            jobs: vec![b.clone(), c.clone()],
            dependencies: vec![edge(&c, &b, 1)],
            ..Definition::default()
        };
        let wanted = "\
~ source led
    max_parallel: (none) -> 2
    procedures.sp, line 2: \"SELECT 2;\" -> \"SELECT 3;\"
- job A
~ job B
    params: (none) -> [{\"mode\":\"in\",\"name\":\"p\",\"type\":\"int\",\"value\":\"1\"}]
    retry_count: 0 -> 3
    sql: (none) -> SELECT 9
+ job C
- dependency B <- A
+ dependency C <- B";
        assert_eq!(said(&old, &new), wanted);
        assert!(diff_definitions(&new, &new).is_empty());
    }

    #[test]
    fn order_does_not_count_and_long_lines_are_cut() {
        let (a, b) = (job("A"), job("B"));
        let one = Definition { jobs: vec![a.clone(), b.clone()], ..Definition::default() };
        let two = Definition { jobs: vec![b, a.clone()], ..Definition::default() };
        assert!(diff_definitions(&one, &two).is_empty());
        let with = |tail: &str| {
            let mut job = a.clone();
            job.sql = Some(SqlText::Same(format!("{}{tail}", "月".repeat(200))));
            Definition { jobs: vec![job], ..Definition::default() }
        };
        let said = said(&with("1"), &with("2"));
        assert!(said.contains("sql, line 1: \"…月月"), "{said}");
        assert!(said.ends_with("月2\"") && said.chars().count() < 120, "{said}");
    }
}
