//! Computes the permissions that a change of a definition requires, per group. What jobs execute needs a permission of
//! its own, so that one person may configure jobs and another write what they execute.

use crate::domain::access::Permission;
use crate::domain::id::{GroupCode, JobType, SourceName};
use crate::domain::job::check::Expect;
use crate::domain::job::job_key::JobKey;
use crate::domain::job::secret::name_a_secret;
use crate::domain::job::{Definition, Group, JobDef, JobDependency};
use crate::domain::params::names_a_secret;
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::source::sql_text::SqlText;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The permissions that a change requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demands {
    /// Per group.
    pub groups: BTreeMap<GroupCode, BTreeSet<Permission>>,
    /// In all groups, because the changed object belongs to none.
    pub everywhere: BTreeSet<Permission>,
}

impl Demands {
    /// The permissions to change `was` into `is`, given the whole stored definition.
    pub fn for_change(stored: &Definition, was: &Definition, is: &Definition) -> Self {
        let mut all = Self::default();
        for (old, new) in changed(&was.groups, &is.groups, |g| &g.code) {
            let group = old.or(new);
            group.iter().for_each(|g| all.within(&g.code, Permission::Edit));
            let secrets = |group: Option<&'_ Group>| group.map(secret_values).unwrap_or_default();
            if let Some(new) = new.filter(|new| {
                let is = secret_values(new);
                !is.is_empty() && is != secrets(old)
            }) {
                all.within(&new.code, Permission::Script);
            }
        }
        all.add_job_changes(was, is);
        all.edges(was, is);
        all.shared(was, is);
        for (old, new) in changed(&was.schedules, &is.schedules, |s| &s.code) {
            for def in [old, new].into_iter().flatten() {
                all.schedule(def, [stored, is]);
            }
        }
        all
    }

    /// The permissions to create, change or remove a schedule: `edit` in each group that it opens.
    pub fn of_schedule(def: &TriggerDef, stored: &Definition) -> Self {
        let mut all = Self::default();
        all.schedule(def, [stored, stored]);
        all
    }

    /// Combines the demands of two changes.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        other.groups.into_iter().for_each(|(g, p)| self.groups.entry(g).or_default().extend(p));
        self.everywhere.extend(other.everywhere);
        self
    }

    fn within(&mut self, group: &GroupCode, permission: Permission) {
        match self.groups.get_mut(group) {
            Some(all) => drop(all.insert(permission)),
            None => drop(self.groups.insert(group.clone(), BTreeSet::from([permission]))),
        }
    }

    fn add_job_changes(&mut self, was: &Definition, is: &Definition) {
        for (old, new) in changed(&was.jobs, &is.jobs, |j| (&j.group, &j.code)) {
            for job in [old, new].into_iter().flatten() {
                self.within(&job.group, Permission::Edit);
            }
            let Some(new) = new else { continue };
            // A moved job is a new job: it runs the same body under another group.
            let same =
                old.is_some_and(|old| ExecutedParts::from_job(old) == ExecutedParts::from_job(new));
            if !same && !ExecutedParts::from_job(new).is_nothing() {
                self.within(&new.group, Permission::Script);
            }
            // A sub-batch runs the jobs of its group, so opening one requires the permission to run them.
            let opens = |job: &JobDef| job.sub_batch.as_ref().map(|s| s.group.clone());
            if let Some(group) = opens(new).filter(|_| old.and_then(opens) != opens(new)) {
                self.within(&group, Permission::Run);
            }
        }
    }

    fn edges(&mut self, was: &Definition, is: &Definition) {
        let key = |d: &JobDependency| (d.group.clone(), d.job_code.clone(), d.depends_on.clone());
        let edges = changed(&was.dependencies, &is.dependencies, key);
        for edge in edges.into_iter().filter_map(|(old, new)| new.or(old)) {
            self.within(&edge.group, Permission::Edit);
            self.within(&edge.group, Permission::View);
        }
        let waits = |all: &Definition| {
            let mut of: BTreeMap<JobKey, Vec<_>> = BTreeMap::new();
            for e in &all.externals {
                let job = JobKey { group: e.waiting_group.clone(), code: e.job_code.clone() };
                of.entry(job).or_default().push(e.clone());
            }
            of
        };
        let (old, new) = (waits(was), waits(is));
        for job in old.keys().chain(new.keys()).filter(|job| old.get(*job) != new.get(*job)) {
            self.within(&job.group, Permission::Edit);
            // A dependency discloses whether the other group's batch has ended.
            let others = new.get(job).into_iter().flatten();
            others.for_each(|e| self.within(&e.group, Permission::View));
        }
    }

    /// Where bodies run, what they may do and which hosts they may call is decided by administrators.
    fn shared(&mut self, was: &Definition, is: &Definition) {
        let (a, b) = (&was.shared, &is.shared);
        let admin = !changed(&was.sources, &is.sources, |s| &s.name).is_empty()
            || !changed(&a.hosts, &b.hosts, |h| &h.name).is_empty()
            || !changed(&a.secrets, &b.secrets, |s| &s.name).is_empty();
        let edit = !changed(&a.owners, &b.owners, |o| &o.code).is_empty()
            || !changed(&a.pools, &b.pools, |p| &p.name).is_empty()
            || !changed(&a.params, &b.params, |p| &p.name).is_empty();
        self.everywhere.extend(admin.then_some(Permission::Admin));
        self.everywhere.extend(edit.then_some(Permission::Edit));
        let texts = |all: &Definition| -> BTreeMap<SourceName, BTreeMap<String, String>> {
            all.sources.iter().map(|s| (s.name.clone(), s.procedures.clone())).collect()
        };
        let (old, new) = (texts(was), texts(is));
        let is_new = |(name, of): (&SourceName, &BTreeMap<String, String>)| {
            !of.is_empty() && old.get(name) != Some(of)
        };
        self.everywhere.extend(new.iter().any(is_new).then_some(Permission::Script));
    }

    fn schedule(&mut self, def: &TriggerDef, known: [&Definition; 2]) {
        use crate::domain::schedule::FiringRule;
        if let FiringRule::After { group, .. } = &def.timing.schedule {
            self.within(group, Permission::View);
        }
        let Some(order) = &def.order else {
            self.everywhere.insert(Permission::Edit);
            return;
        };
        // The schedule passes the secret to every batch that it opens.
        if name_a_secret(&order.params) {
            match &order.group {
                Some(group) => self.within(group, Permission::Script),
                None => drop(self.everywhere.insert(Permission::Script)),
            }
        }
        match (&order.group, &order.batch_type) {
            (Some(group), _) => self.within(group, Permission::Edit),
            (None, Some(of)) => {
                let groups = known.iter().flat_map(|defs| &defs.groups);
                let those = groups.filter(|g| g.batch_type.as_ref() == Some(of));
                let those: BTreeSet<&GroupCode> = those.map(|g| &g.code).collect();
                those.iter().for_each(|group| self.within(group, Permission::Edit));
                // A type that no group has yet will match future groups.
                self.everywhere.extend(those.is_empty().then_some(Permission::Edit));
            }
            (None, None) => drop(self.everywhere.insert(Permission::Edit)),
        }
    }
}

/// The parameters of a group that pass a secret to its jobs, with their values.
fn secret_values(group: &Group) -> BTreeMap<String, String> {
    let named = group.params.iter().filter_map(|param| {
        let value = param.value.clone().filter(|value| names_a_secret(value))?;
        Some((param.name.clone(), value))
    });
    named.collect()
}

/// Each changed element with its old and new value.
fn changed<'a, T: PartialEq, K: Ord + 'a>(
    was: &'a [T],
    is: &'a [T],
    key: impl Fn(&'a T) -> K,
) -> Vec<(Option<&'a T>, Option<&'a T>)> {
    let mut all: BTreeMap<K, (Option<&'a T>, Option<&'a T>)> = BTreeMap::new();
    was.iter().for_each(|t| all.entry(key(t)).or_default().0 = Some(t));
    is.iter().for_each(|t| all.entry(key(t)).or_default().1 = Some(t));
    all.into_values().filter(|(old, new)| old != new).collect()
}

/// What a job executes: its text and type, where it runs, which host it calls and which secrets it receives.
#[derive(PartialEq, Eq)]
struct ExecutedParts<'a> {
    /// The same text only queries as a SENSOR and changes data as SQL.
    job_type: &'a JobType,
    source: Option<&'a SourceName>,
    proc_name: Option<&'a str>,
    sql: Option<&'a SqlText>,
    script: Option<(&'a str, Option<&'a str>, Option<&'a str>)>,
    http: Option<&'a crate::domain::job::body::HttpCall>,
    executor: Option<&'a crate::domain::executor::ExecutorCall>,
    application: Option<&'a crate::domain::job::application::ApplicationCall>,
    checks: Vec<(Option<&'a SourceName>, &'a SqlText, &'a Expect)>,
    secrets: Vec<(&'a str, &'a str)>,
}

impl<'a> ExecutedParts<'a> {
    fn from_job(job: &'a JobDef) -> Self {
        let script = job.script.as_deref();
        let secrets = job.params.iter().filter_map(|p| {
            let value = p.value.as_deref().filter(|v| v.contains("secret"))?;
            Some((p.name.as_str(), value))
        });
        Self {
            job_type: &job.job_type,
            source: job.source.as_ref(),
            proc_name: job.proc_name.as_deref(),
            sql: job.sql.as_ref(),
            script: script.map(|s| (s, job.interpreter.as_deref(), job.working_dir.as_deref())),
            http: job.http.as_deref(),
            executor: job.executor.as_deref(),
            application: job.application.as_deref(),
            checks: job.checks.iter().map(|c| (c.source.as_ref(), &c.sql, &c.expect)).collect(),
            secrets: secrets.collect(),
        }
    }

    fn is_nothing(&self) -> bool {
        self.proc_name.is_none()
            && self.sql.is_none()
            && self.script.is_none()
            && self.http.is_none()
            && self.executor.is_none()
            && self.application.is_none()
            && self.checks.is_empty()
            && self.secrets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobCode;
    use crate::domain::job::{Param, ParamDecl};

    fn code(word: &str) -> GroupCode {
        GroupCode::parse(word).expect("a code")
    }

    fn job(name: &str, group: &str) -> JobDef {
        let name = JobCode::parse(name).expect("a code");
        JobDef::with_defaults(name, code(group), JobType::parse("SCRIPT").expect("a type"))
    }

    fn stored() -> Definition {
        let (mut a, mut b) = (job("A", "gl"), job("B", "gl"));
        a.script = Some("echo a".to_owned());
        b.script = Some("echo b".to_owned());
        Definition {
            groups: vec![Group::with_defaults(code("gl")), Group::with_defaults(code("ar"))],
            jobs: vec![a, b, job("C", "ar")],
            ..Definition::default()
        }
    }

    /// Sets a parameter of the group gl.
    fn give(defs: &mut Definition, value: &str) {
        let shared: ParamDecl =
            serde_json::from_value(serde_json::json!({"name": "pw", "value": value}))
                .expect("a parameter");
        defs.groups[0].params.push(shared);
    }

    fn said(change: impl Fn(&mut Definition)) -> String {
        let (was, mut is) = (stored(), stored());
        change(&mut is);
        let all = Demands::for_change(&was, &was, &is);
        let words =
            |of: &BTreeSet<Permission>| of.iter().map(|p| p.as_str()).collect::<Vec<_>>().join("+");
        let mut each: Vec<String> =
            all.groups.iter().map(|(g, of)| format!("{g}:{}", words(of))).collect();
        each.extend((!all.everywhere.is_empty()).then(|| format!("*:{}", words(&all.everywhere))));
        each.join(" ")
    }

    /// A SENSOR's text only queries; as SQL it changes data.
    #[test]
    fn the_same_text_as_another_type_is_executed_anew() {
        let as_type = |at: usize, name: &'static str| {
            said(move |d| d.jobs[at].job_type = JobType::parse(name).expect("a type"))
        };
        assert_eq!(as_type(0, "SQL"), "gl:edit+script");
        assert_eq!(as_type(2, "NOOP"), "ar:edit", "without a text");
    }

    #[test]
    fn what_is_executed_is_asked_for_apart() {
        type Case = (&'static str, fn(&mut Definition), &'static str);
        let cases: [Case; 17] = [
            ("a parameter of a group", |d| give(d, "7"), "gl:edit"),
            ("a secret of a group", |d| give(d, "x${secret.PW}"), "gl:edit+script"),
            ("nothing", |_| {}, ""),
            ("a time", |d| d.jobs[0].timeout_sec = 7, "gl:edit"),
            ("a script", |d| d.jobs[0].script = Some("rm".to_owned()), "gl:edit+script"),
            ("an interpreter", |d| d.jobs[0].interpreter = Some("x".to_owned()), "gl:edit+script"),
            ("a procedure", |d| d.jobs[2].proc_name = Some("p".to_owned()), "ar:edit+script"),
            ("a body taken away", |d| d.jobs[0].script = None, "gl:edit"),
            ("a job taken away", |d| drop(d.jobs.remove(0)), "gl:edit"),
            ("a job without a body", |d| d.jobs.push(job("D", "ar")), "ar:edit"),
            ("a job moved", |d| d.jobs[0].group = code("ar"), "ar:edit+script gl:edit"),
            (
                "another source",
                |d| d.jobs[0].source = SourceName::parse("led").ok(),
                "gl:edit+script",
            ),
            (
                "a secret",
                |d| {
                    let value = Some("${secret.KEY}".to_owned());
                    d.jobs[0].params = vec![Param { value, ..Param::default() }];
                },
                "gl:edit+script",
            ),
            ("a group's name", |d| d.groups[1].name = "Receivables".to_owned(), "ar:edit"),
            (
                "an edge",
                |d| {
                    let (a, b) = (d.jobs[0].code.clone(), d.jobs[1].code.clone());
                    d.dependencies.push(JobDependency::plain(&code("gl"), b, a, 1));
                },
                "gl:view+edit",
            ),
            ("a parameter of all", |d| d.shared.params.push(ParamDecl::plain("P", "1")), "*:edit"),
            (
                "a source",
                |d| {
                    d.sources.push(crate::domain::source::DataSource {
                        name: SourceName::parse("led").expect("a name"),
                        url: "sqlite:x".to_owned(),
                        password_env: None,
                        password_file: None,
                        password_secret: None,
                        read_password: Default::default(),
                        max_parallel: None,
                        procedures: BTreeMap::new(),
                        access: crate::domain::access::group_access::GroupAccess::default(),
                    });
                },
                "*:admin",
            ),
        ];
        for (what, change, wanted) in cases {
            assert_eq!(said(change), wanted, "{what}");
        }
    }
}
