//! `[script]`: interpreters, accounts, limits and isolation of scripts.

use crate::config::Config;
use crate::db::sqlite_file::{metadata_file, with_companions};
use crate::domain::id::GroupCode;
use crate::domain::job::script_isolation::{ANY_GROUP, IsolationPolicy, ScriptUsers};
use crate::domain::job::script_limits::{CgroupPolicy, ScriptLimitSettings, ScriptLimits};
use crate::engine::secrets::encryption::KEY_FILE_VARIABLE;
use crate::handler::cgroup_tree::CgroupTree;
use crate::handler::script_confinement::ScriptFiles;
use crate::secret_store::secret_file::resolve_path;
use anyhow::Result;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `[script]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSettings {
    /// Names of inherited environment variables.
    pub inherit_env: Vec<String>,
    /// Maximum number of processes per script; 0: no limit.
    pub max_processes: u32,
    /// Memory limit of one script in MiB; 0: no limit.
    pub max_memory_mib: u32,
    /// Processor limit of one script; 0: no limit.
    pub max_cpus: f64,
    /// "off", "auto" or "required".
    pub cgroups: String,
    /// A directory of the cgroup v2 hierarchy; empty: where `serve` was started.
    pub cgroup_parent: PathBuf,
    /// Limits by group.
    pub limits: BTreeMap<String, GroupLimits>,
    /// "off", "auto" or "required".
    pub isolation: String,
    /// Absolute paths of readable files.
    pub read: Vec<PathBuf>,
    /// Absolute paths of writable files.
    pub write: Vec<PathBuf>,
    /// "environment" or "files".
    pub secrets: String,
    /// User by group, or by `*`.
    pub run_as: BTreeMap<String, String>,
    /// Absolute path by name.
    pub interpreters: BTreeMap<String, PathBuf>,
    /// The program that supervises scripts; not a setting. It is this very program, even if another
    /// has been installed in its place since.
    #[serde(skip, default = "running_program")]
    pub supervisor: Option<PathBuf>,
}

/// `[script.limits.GROUP]`: omitted values are those of all groups.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupLimits {
    /// 0 is no limit.
    pub max_processes: Option<u32>,
    /// MiB; 0 is no limit.
    pub max_memory_mib: Option<u32>,
    /// 0 is no limit.
    pub max_cpus: Option<f64>,
}

/// Minimum and maximum number of processors: what the kernel accepts, and what a machine may have.
const CPUS: (f64, f64) = (0.01, 4_096.0);
/// Minimum memory in MiB with which an interpreter starts.
const LEAST_MEMORY_MIB: u32 = 4;

/// In hundredths of a processor, after validation.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0.01 to 4,096 was checked"
)]
fn cpu_percent(cpus: f64) -> Option<u32> {
    (cpus > 0.0).then(|| (cpus * 100.0).round() as u32)
}

/// The file of this process, through the kernel's own link to it.
fn running_program() -> Option<PathBuf> {
    cfg!(target_os = "linux").then(|| PathBuf::from("/proc/self/exe"))
}

impl ScriptSettings {
    /// Refuses invalid settings.
    pub(super) fn check(&self) -> Result<()> {
        let named =
            self.interpreters.iter().map(|(name, path)| (format!("interpreters.{name}"), path));
        let read = self.read.iter().map(|path| ("read".to_owned(), path));
        let write = self.write.iter().map(|path| ("write".to_owned(), path));
        for (key, path) in named.chain(read).chain(write) {
            anyhow::ensure!(
                path.is_absolute(),
                "script.{key} is {}; it must be an absolute path",
                path.display()
            );
        }
        anyhow::ensure!(
            IsolationPolicy::parse(&self.isolation).is_some(),
            "script.isolation is {:?}; write \"auto\", \"required\" or \"off\"",
            self.isolation
        );
        anyhow::ensure!(
            ["environment", "files"].contains(&self.secrets.as_str()),
            "script.secrets is {:?}; write \"environment\" or \"files\"",
            self.secrets
        );
        self.check_limits()?;
        for (group, user) in &self.run_as {
            anyhow::ensure!(
                group == ANY_GROUP || GroupCode::parse(group).is_ok(),
                "script.run_as has {group:?}; name a group, or \"*\" for all others"
            );
            anyhow::ensure!(
                !user.is_empty() && user != "root",
                "script.run_as.{group} is {user:?}; name a user of this machine that owns nothing of Procession"
            );
        }
        Ok(())
    }
}

impl ScriptSettings {
    fn check_limits(&self) -> Result<()> {
        anyhow::ensure!(
            CgroupPolicy::parse(&self.cgroups).is_some(),
            "script.cgroups is {:?}; write \"auto\", \"required\" or \"off\"",
            self.cgroups
        );
        anyhow::ensure!(
            self.cgroup_parent.as_os_str().is_empty() || self.cgroup_parent.is_absolute(),
            "script.cgroup_parent is {}; it must be an absolute path below /sys/fs/cgroup",
            self.cgroup_parent.display()
        );
        let all = ("script".to_owned(), Some(self.max_memory_mib), Some(self.max_cpus));
        let own = self.limits.iter().map(|(group, limits)| {
            (format!("script.limits.{group}"), limits.max_memory_mib, limits.max_cpus)
        });
        for (key, memory, cpus) in own.chain([all]) {
            let (memory, cpus) = (memory.unwrap_or(0), cpus.unwrap_or(0.0));
            anyhow::ensure!(
                memory == 0 || memory >= LEAST_MEMORY_MIB,
                "{key}.max_memory_mib is {memory}; no interpreter starts with less than {LEAST_MEMORY_MIB}, and 0 is no limit"
            );
            anyhow::ensure!(
                cpus == 0.0 || (CPUS.0..=CPUS.1).contains(&cpus),
                "{key}.max_cpus is {cpus}; write a number of processors between {} and {}, such as 1.5, or 0 for no limit",
                CPUS.0,
                CPUS.1
            );
        }
        for group in self.limits.keys() {
            anyhow::ensure!(
                GroupCode::parse(group).is_ok(),
                "script.limits has {group:?}; name a group, and write limits for all others in [script] itself"
            );
        }
        Ok(())
    }
}

impl Config {
    /// The resource limits of scripts.
    pub fn script_limits(&self) -> ScriptLimitSettings {
        let script = &self.script;
        let limits = |memory: u32, processes: u32, cpus| ScriptLimits {
            memory_mib: (memory > 0).then_some(memory),
            processes: (processes > 0).then_some(processes),
            cpu_percent: cpu_percent(cpus),
        };
        let by_group = script.limits.iter().map(|(group, own)| {
            let own = limits(
                own.max_memory_mib.unwrap_or(script.max_memory_mib),
                own.max_processes.unwrap_or(script.max_processes),
                own.max_cpus.unwrap_or(script.max_cpus),
            );
            (group.clone(), own)
        });
        ScriptLimitSettings {
            default: limits(script.max_memory_mib, script.max_processes, script.max_cpus),
            by_group: by_group.collect(),
            cgroups: CgroupPolicy::parse(&script.cgroups).unwrap_or_default(),
        }
    }

    /// The control groups that enforce them.
    pub fn script_cgroups(&self) -> CgroupTree {
        let parent = &self.script.cgroup_parent;
        let parent = (!parent.as_os_str().is_empty()).then(|| parent.clone());
        CgroupTree::new(CgroupPolicy::parse(&self.script.cgroups).unwrap_or_default(), parent)
    }

    /// The accounts of scripts, and their isolation.
    pub fn script_users(&self) -> ScriptUsers {
        let policy = IsolationPolicy::parse(&self.script.isolation).unwrap_or_default();
        ScriptUsers { by_group: self.script.run_as.clone(), policy }
    }

    /// The files that isolated scripts may use, and those of Procession that are hidden from them.
    pub fn script_files(&self) -> ScriptFiles {
        let database = metadata_file(self.database.url.expose_secret());
        let database = database.iter().flat_map(|file| with_companions(file));
        let key = std::env::var_os(KEY_FILE_VARIABLE).map(PathBuf::from);
        let channels = self.notify.channels.values().flat_map(|c| [&c.url_file, &c.secret_file]);
        let named = [
            &self.file,
            &self.database.password_file,
            &self.ldap.bind_password_file,
            &self.http.oidc.client_secret_file,
            &self.notify.mail.password_file,
            &self.trace.headers_file,
            &self.http.tls_key,
            &self.executors.tls_key,
        ];
        let named = named.into_iter().chain(channels).filter(|path| !path.as_os_str().is_empty());
        // Made absolute: a script runs in another directory.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let hidden = named.cloned().chain(database).chain(key).map(|path| absolute(&path));
        let credentials = resolve_path(Path::new("$CREDENTIALS_DIRECTORY")).ok();
        let hidden = hidden.chain(self.secret_store_files()).chain(credentials);
        ScriptFiles {
            hidden: hidden.collect(),
            read: self.script.read.clone(),
            write: self.script.write.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::domain::id::GroupCode;

    #[test]
    fn a_group_has_what_it_does_not_say_from_all_groups() {
        let text = "[script]\nmax_memory_mib = 512\nmax_cpus = 2\n[script.limits.gl]\nmax_memory_mib = 0\nmax_processes = 9\n";
        let limits = Config::parse_text(text).expect("config").script_limits();
        let of = |code: &str| limits.choose(&GroupCode::parse(code).expect("a group")).describe();
        assert_eq!(of("ar").as_deref(), Some("memory 512 MiB, 2 processors"));
        assert_eq!(of("gl").as_deref(), Some("9 processes, 2 processors"));
        assert!(!Config::parse_text("").expect("config").script_limits().is_any());
    }
    #[test]
    fn limits_that_cannot_be_are_refused_with_their_key() {
        for (text, message) in [
            ("[script]\ncgroups = 'yes'\n", "script.cgroups is \"yes\""),
            ("[script]\nmax_cpus = 0.001\n", "script.max_cpus is 0.001"),
            ("[script]\nmax_memory_mib = 1\n", "script.max_memory_mib is 1"),
            ("[script.limits.gl]\nmax_cpus = -1\n", "script.limits.gl.max_cpus is -1"),
            ("[script.limits.'*']\nmax_cpus = 1\n", "in [script] itself"),
        ] {
            let error = Config::parse_text(text).expect_err(text);
            assert!(format!("{error:#}").contains(message), "{error:#}");
        }
    }
}
