//! Checks whether a definition or an order uses data sources, secrets or executors that its group may not use. Inputs:
//! the access rules of the installation and the definition. Output: each forbidden use with a hint.

use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::body::HttpHost;
use crate::domain::job::secret::BY_NAME;
use crate::domain::job::{Definition, Group, JobDef};
use crate::domain::params::http_call;
use crate::domain::params::secret_names;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Something that several groups may share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedResource {
    /// A data source.
    Source(String),
    /// A secret.
    Secret(String),
    /// A secret in the headers of a host.
    HostSecret {
        /// The name of the host.
        host: String,
        /// The name of the secret.
        secret: String,
    },
    /// An executor group, by its app name.
    ExecutorGroup(String),
}

impl fmt::Display for SharedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(name) => write!(f, "data source {name}"),
            Self::Secret(name) => write!(f, "secret {name}"),
            Self::HostSecret { host, secret } => {
                write!(f, "secret {secret} (of the headers of host {host})")
            }
            Self::ExecutorGroup(name) => write!(f, "executor group {name}"),
        }
    }
}

/// A use in a definition that the access rules forbid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForbiddenUse {
    /// The group of the job.
    pub group: GroupCode,
    /// The job; none: a parameter of the group.
    pub job: Option<JobCode>,
    /// The resource that is used.
    pub resource: SharedResource,
    /// The groups that may use it.
    pub access: GroupAccess,
}

impl ForbiddenUse {
    /// Whether this rule permits the group to use the resource.
    pub fn check(
        group: &GroupCode,
        resource: SharedResource,
        access: &GroupAccess,
    ) -> Result<(), Self> {
        match access.allows(group) {
            true => Ok(()),
            false => {
                let (group, access) = (group.clone(), access.clone());
                Err(Self { group, job: None, resource, access })
            }
        }
    }

    /// How to get the permission.
    pub fn hint_text(&self) -> String {
        let how = match &self.resource {
            SharedResource::Source(_) => "add the group to groups: of the source",
            SharedResource::Secret(_) | SharedResource::HostSecret { .. } => {
                "add the group to groups: of the secret (in its definition or in procession.toml), or store it anew with --group"
            }
            SharedResource::ExecutorGroup(_) => {
                "let the group use it (procession executor-group set NAME --group GROUP, or the page Executors)"
            }
        };
        // Also where a group owns the resource: an administrator of that group may use it, but not share it.
        format!("ask an administrator of all groups to {how}")
    }
}

impl fmt::Display for ForbiddenUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.job {
            Some(job) => write!(f, "job {job} of group {}", self.group)?,
            None => write!(f, "group {}", self.group)?,
        }
        write!(f, " may not use {}, which is for {}", self.resource, self.access.describe())
    }
}

impl std::error::Error for ForbiddenUse {}

/// The access rules of one installation.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    sources: BTreeMap<String, GroupAccess>,
    secrets: BTreeMap<String, GroupAccess>,
    /// Rules of secrets in the settings; they take precedence over all others.
    configured_secrets: BTreeMap<String, GroupAccess>,
    executor_groups: BTreeMap<String, GroupAccess>,
    /// The secrets in the headers of each host; every call to the host sends them.
    host_secrets: BTreeMap<String, BTreeSet<String>>,
}

impl AccessRules {
    /// Collects the rules of a definition and of the secrets that come with it. A secret declared in the definition is
    /// not looked up among the stored ones; a secret from the settings is looked up nowhere else.
    pub fn collect(defs: &Definition) -> Self {
        let mut rules = Self {
            sources: BTreeMap::new(),
            secrets: defs.stored_secrets.clone(),
            configured_secrets: defs.configured_secrets.clone(),
            executor_groups: defs.executor_groups.clone(),
            host_secrets: BTreeMap::new(),
        };
        rules.merge_definition(defs);
        rules
    }

    /// Replaces rules by those of another definition with the same names.
    pub fn merge_definition(&mut self, defs: &Definition) {
        let sources = defs.sources.iter().map(|s| (s.name.to_string(), s.access.clone()));
        self.sources.extend(sources);
        let secrets = defs.shared.secrets.iter().map(|s| (s.name.clone(), s.access.clone()));
        self.secrets.extend(secrets);
        let hosts = defs.shared.hosts.iter();
        self.host_secrets.extend(hosts.map(|host| (host.name.clone(), secrets_of_host(host))));
    }

    /// The secrets that a definition names and that do not exist, with the places that use each.
    pub fn unknown_secrets(&self, defs: &Definition) -> BTreeMap<String, BTreeSet<String>> {
        let is_known = |name: &String| self.access(&SharedResource::Secret(name.clone())).is_some();
        uses_of_secrets(defs).into_iter().filter(|(name, _)| !is_known(name)).collect()
    }

    /// The rule of a resource; `None` if it is unknown.
    pub fn access(&self, resource: &SharedResource) -> Option<&GroupAccess> {
        match resource {
            SharedResource::Source(name) => self.sources.get(name),
            SharedResource::Secret(name) | SharedResource::HostSecret { secret: name, .. } => {
                self.configured_secrets.get(name).or_else(|| self.secrets.get(name))
            }
            SharedResource::ExecutorGroup(name) => self.executor_groups.get(name),
        }
    }

    /// Resources that groups of a definition use and that either do not exist, or are forbidden by a rule that names a
    /// group which the user may not see. Both cases look the same to that user, so that a group's existence is not
    /// disclosed.
    pub fn unknown_uses(
        &self,
        defs: &Definition,
        sees: &dyn Fn(&GroupCode) -> bool,
    ) -> BTreeSet<(GroupCode, SharedResource)> {
        let of_group = |group: &Group| {
            let values = group.params.iter().filter_map(|param| param.value.as_deref());
            let names = values.flat_map(secret_names).map(SharedResource::Secret);
            names.map(|used| (group.code.clone(), used)).collect::<Vec<_>>()
        };
        let of_job = |job: &JobDef| {
            let used = self.used_by_job(job).into_iter();
            used.map(|used| (job.group.clone(), used)).collect::<Vec<_>>()
        };
        let all = defs.groups.iter().flat_map(of_group).chain(defs.jobs.iter().flat_map(of_job));
        let mut found: BTreeSet<_> =
            all.filter(|(group, used)| self.is_unknown(group, used, sees)).collect();
        for order in defs.schedules.iter().filter_map(|schedule| schedule.order.as_ref()) {
            let groups = order.group.iter();
            found.extend(groups.flat_map(|g| self.unknown_params(g, &order.params, sees)));
        }
        found
    }

    /// The same for secrets that the parameters of an order name.
    pub fn unknown_params(
        &self,
        group: &GroupCode,
        params: &BTreeMap<String, String>,
        sees: &dyn Fn(&GroupCode) -> bool,
    ) -> BTreeSet<(GroupCode, SharedResource)> {
        let names = params.values().filter_map(|value| value.strip_prefix(BY_NAME));
        let used = names.map(|name| (group.clone(), SharedResource::Secret(name.to_owned())));
        used.filter(|(group, used)| self.is_unknown(group, used, sees)).collect()
    }

    fn is_unknown(
        &self,
        group: &GroupCode,
        used: &SharedResource,
        sees: &dyn Fn(&GroupCode) -> bool,
    ) -> bool {
        let access = self.access(used);
        access.is_none_or(|access| !access.allows(group) && access.names_unseen_group(sees))
    }

    /// Checks whether a group may use a resource. An unknown resource is permitted here: a different check reports it
    /// as missing.
    pub fn check(&self, group: &GroupCode, resource: SharedResource) -> Result<(), ForbiddenUse> {
        let access = self.access(&resource);
        access.map_or(Ok(()), |access| ForbiddenUse::check(group, resource.clone(), access))
    }

    /// Everything that a job uses: what it names, and the secrets sent to the host that it calls.
    fn used_by_job(&self, job: &JobDef) -> BTreeSet<SharedResource> {
        let mut used = named_by_job(job);
        if let Some(host) = job.called_host() {
            let secrets = self.host_secrets.get(host).into_iter().flatten();
            let of_host = |secret: &String| SharedResource::HostSecret {
                host: host.to_owned(),
                secret: secret.clone(),
            };
            used.extend(secrets.map(of_host));
        }
        used
    }

    /// The forbidden uses of a job.
    pub fn forbidden_uses_of_job(&self, job: &JobDef) -> Vec<ForbiddenUse> {
        let uses = self.used_by_job(job).into_iter();
        let forbidden = uses.filter_map(|resource| self.check(&job.group, resource).err());
        forbidden.map(|found| ForbiddenUse { job: Some(job.code.clone()), ..found }).collect()
    }

    /// The forbidden uses in the parameters of a group.
    pub fn forbidden_uses_of_group(&self, group: &Group) -> Vec<ForbiddenUse> {
        let values = group.params.iter().filter_map(|param| param.value.as_deref());
        let names: BTreeSet<String> = values.flat_map(secret_names).collect();
        let check = |name| self.check(&group.code, SharedResource::Secret(name)).err();
        names.into_iter().filter_map(check).collect()
    }

    /// All forbidden uses by the jobs and parameters of a definition's groups.
    pub fn forbidden_uses(&self, defs: &Definition) -> Vec<ForbiddenUse> {
        let of_groups = defs.groups.iter().flat_map(|group| self.forbidden_uses_of_group(group));
        of_groups.chain(defs.jobs.iter().flat_map(|job| self.forbidden_uses_of_job(job))).collect()
    }

    /// Secrets in the parameters of an order that its group may not use.
    pub fn forbidden_params(
        &self,
        group: &GroupCode,
        params: &BTreeMap<String, String>,
    ) -> Vec<ForbiddenUse> {
        let names = params.values().filter_map(|value| value.strip_prefix(BY_NAME));
        let check = |name: &str| self.check(group, SharedResource::Secret(name.to_owned())).err();
        names.filter_map(check).collect()
    }
}

/// The places that use each secret of a definition, as text: `job LOAD (month_end)`, `group month_end`, `source
/// ledger`, `host core`, `all groups`.
pub fn uses_of_secrets(defs: &Definition) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |name: String, user: String| uses.entry(name).or_default().insert(user);
    for job in &defs.jobs {
        for used in named_by_job(job) {
            if let SharedResource::Secret(name) = used {
                add(name, format!("job {} ({})", job.code, job.group));
            }
        }
    }
    for group in &defs.groups {
        let values = group.params.iter().filter_map(|param| param.value.as_deref());
        for name in values.flat_map(secret_names) {
            add(name, format!("group {}", group.code));
        }
    }
    for param in defs.shared.params.iter().filter_map(|param| param.value.as_deref()) {
        for name in secret_names(param) {
            add(name, "all groups".to_owned());
        }
    }
    for host in &defs.shared.hosts {
        for name in secrets_of_host(host) {
            add(name, format!("host {}", host.name));
        }
    }
    for source in &defs.sources {
        if let Some(name) = &source.password_secret {
            add(name.clone(), format!("source {}", source.name));
        }
    }
    for schedule in &defs.schedules {
        let params = schedule.order.iter().flat_map(|order| order.params.values());
        for name in params.filter_map(|value| value.strip_prefix(BY_NAME)) {
            add(name.to_owned(), format!("schedule {}", schedule.code));
        }
    }
    uses
}

/// The secrets in the headers of a host.
fn secrets_of_host(host: &HttpHost) -> BTreeSet<String> {
    host.headers.values().flat_map(|value| secret_names(value)).collect()
}

/// The data sources, secrets and executors that a job names itself. Secrets that reach it through a parameter of its
/// group or of all groups are checked when an attempt resolves them.
fn named_by_job(job: &JobDef) -> BTreeSet<SharedResource> {
    let own = job.source.iter().chain(job.checks.iter().filter_map(|check| check.source.as_ref()));
    let sources = own.map(|name| SharedResource::Source(name.to_string()));
    let values = job.params.iter().filter_map(|param| param.value.as_deref());
    let secrets = values.flat_map(secret_names).chain(http_call::secrets(job.http.as_ref(), None));
    let executors = job.executor.iter().map(|call| call.app.to_string());
    let executors = executors.map(SharedResource::ExecutorGroup);
    sources.chain(secrets.map(SharedResource::Secret)).chain(executors).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{JobType, SourceName};
    use crate::domain::job::body::{HttpBody, HttpCall};
    use crate::domain::job::shared_definitions::{SecretFrom, SecretSource};
    use crate::domain::job::{Param, ParamDecl, ParamNeed, ParamType, Secrecy};
    use crate::domain::source::DataSource;

    fn group(code: &str) -> GroupCode {
        GroupCode::parse(code).expect("a code")
    }

    fn access(owner: Option<&str>, groups: Option<&[&str]>) -> GroupAccess {
        GroupAccess {
            owner_group: owner.map(group),
            groups: groups.map(|codes| codes.iter().map(|code| group(code)).collect()),
        }
    }

    fn definition() -> Definition {
        let source = |name: &str, access| DataSource {
            name: SourceName::parse(name).expect("a name"),
            url: "sqlite:x".to_owned(),
            password_env: None,
            password_file: None,
            password_secret: None,
            read_password: Default::default(),
            max_parallel: None,
            procedures: BTreeMap::new(),
            access,
        };
        let secret = |name: &str, access| SecretSource {
            name: name.to_owned(),
            from: SecretFrom::Env(name.to_owned()),
            access,
        };
        let mut defs = Definition {
            groups: vec![Group::with_defaults(group("a")), Group::with_defaults(group("b"))],
            sources: vec![
                source("open", GroupAccess::default()),
                source("of_a", access(Some("a"), None)),
            ],
            ..Definition::default()
        };
        defs.shared.secrets = vec![secret("A_PW", access(Some("a"), None))];
        defs
    }

    #[test]
    fn each_way_of_using_something_is_found() {
        let mut defs = definition();
        defs.stored_secrets = BTreeMap::from([("SEALED".to_owned(), access(None, Some(&["a"])))]);
        let rules = AccessRules::collect(&defs);
        for code in ["a", "b"] {
            let name = JobCode::parse(&format!("J_{code}")).expect("a code");
            let ty = JobType::parse("SQL").expect("a type");
            let mut job = JobDef::with_defaults(name, group(code), ty);
            job.source = Some(SourceName::parse("of_a").expect("a name"));
            let value = Some("x${secret.SEALED}".to_owned());
            job.params = vec![Param { name: "pw".to_owned(), value, ..Param::default() }];
            defs.jobs.push(job);
        }
        defs.groups[1].params.push(ParamDecl {
            name: "pw".to_owned(),
            ty: ParamType::Text,
            value: Some("${secret.A_PW}".to_owned()),
            need: ParamNeed::Optional,
            secrecy: Secrecy::Secret,
        });
        let found: Vec<String> =
            rules.forbidden_uses(&defs).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "group b may not use secret A_PW, which is for a (owner)",
                "job J_b of group b may not use data source of_a, which is for a (owner)",
                "job J_b of group b may not use secret SEALED, which is for a",
            ]
        );
        let given = BTreeMap::from([
            ("x".to_owned(), "@secret:A_PW".to_owned()),
            ("y".to_owned(), "A_PW".to_owned()),
        ]);
        assert_eq!(rules.forbidden_params(&group("a"), &given), []);
        assert_eq!(rules.forbidden_params(&group("b"), &given).len(), 1);
        // An unknown name is missing, which another check reports.
        assert_eq!(rules.check(&group("b"), SharedResource::Secret("NONE".to_owned())), Ok(()));
    }

    #[test]
    fn what_a_called_host_is_sent_is_used_by_its_callers() {
        let mut defs = definition();
        let headers = BTreeMap::from([("token".to_owned(), "x ${secret.A_PW}".to_owned())]);
        defs.shared.hosts = vec![HttpHost {
            name: "core".to_owned(),
            base_url: "https://core".to_owned(),
            ui_url: None,
            headers,
            max_parallel: None,
        }];
        let rules = AccessRules::collect(&defs);
        let mut job = JobDef::with_defaults(
            JobCode::parse("CALL").expect("a code"),
            group("b"),
            JobType::parse("HTTP").expect("a type"),
        );
        job.http = Some(Box::new(HttpCall {
            host: "core".to_owned(),
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: BTreeMap::new(),
            send: HttpBody::None,
            expect_status: Vec::new(),
        }));
        let found: Vec<String> =
            rules.forbidden_uses_of_job(&job).iter().map(ToString::to_string).collect();
        let words = "job CALL of group b may not use secret A_PW (of the headers of host core), which is for a (owner)";
        assert_eq!(found, [words]);
        job.group = group("a");
        assert_eq!(rules.forbidden_uses_of_job(&job), []);
    }

    /// Executors belong to the installation: their rules are passed in with the definition.
    #[test]
    fn executors_of_another_group_are_found() {
        let mut defs = definition();
        defs.executor_groups =
            BTreeMap::from([("pay-executor".to_owned(), access(Some("a"), None))]);
        let rules = AccessRules::collect(&defs);
        let used = || SharedResource::ExecutorGroup("pay-executor".to_owned());
        let found = rules.check(&group("b"), used()).expect_err("it is another group's");
        assert_eq!(
            found.to_string(),
            "group b may not use executor group pay-executor, which is for a (owner)"
        );
        assert!(
            found.hint_text().contains("procession executor-group set"),
            "{}",
            found.hint_text()
        );
        assert_eq!(rules.check(&group("a"), used()), Ok(()));
    }

    #[test]
    fn what_the_settings_say_of_a_secret_goes_before_all_else() {
        let mut defs = definition();
        let only_b = || access(None, Some(&["b"]));
        defs.stored_secrets = BTreeMap::from([("SEALED".to_owned(), GroupAccess::default())]);
        defs.configured_secrets =
            BTreeMap::from(["A_PW", "SEALED"].map(|name| (name.to_owned(), only_b())));
        let mut rules = AccessRules::collect(&defs);
        // Declaring it again in a file grants nothing.
        rules.merge_definition(&definition());
        for name in ["A_PW", "SEALED"] {
            let secret = || SharedResource::Secret(name.to_owned());
            assert!(rules.check(&group("a"), secret()).is_err(), "{name}");
            assert_eq!(rules.check(&group("b"), secret()), Ok(()), "{name}");
        }
    }
}
