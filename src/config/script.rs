//! `[script]`: what scripts may be run with, as whom, and how far they are isolated.

use crate::config::Config;
use crate::db::sqlite_file::{metadata_file, with_companions};
use crate::domain::id::GroupCode;
use crate::domain::script_isolation::{ANY_GROUP, IsolationPolicy, ScriptUsers};
use crate::engine::secret_encryption::KEY_FILE_VARIABLE;
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
pub struct Script {
    /// Names of variables.
    pub inherit_env: Vec<String>,
    /// Processes of one script; 0 is no limit.
    pub max_processes: u32,
    /// "off", "auto" or "required".
    pub isolation: String,
    /// Absolute paths.
    pub read: Vec<PathBuf>,
    /// Absolute paths.
    pub write: Vec<PathBuf>,
    /// "environment" or "files".
    pub secrets: String,
    /// Group, or `*`, to user.
    pub run_as: BTreeMap<String, String>,
    /// Name to absolute path.
    pub interpreters: BTreeMap<String, PathBuf>,
    /// The program that supervises scripts; no setting. It is this very program, also when another has been
    /// installed in its place since.
    #[serde(skip, default = "running_program")]
    pub supervisor: Option<PathBuf>,
}

/// The file that this process runs, by the kernel's own link to it.
fn running_program() -> Option<PathBuf> {
    cfg!(target_os = "linux").then(|| PathBuf::from("/proc/self/exe"))
}

impl Script {
    /// Refuses what cannot be used.
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

impl Config {
    /// As whom scripts run, and how far they are isolated.
    pub fn script_users(&self) -> ScriptUsers {
        let policy = IsolationPolicy::parse(&self.script.isolation).unwrap_or_default();
        ScriptUsers { by_group: self.script.run_as.clone(), policy }
    }

    /// The files that isolated scripts may use, and those of Procession that they do not see.
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
        // Where this process is now: a script works elsewhere.
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
