//! config: the settings in the user's terms. In: defaults, a file, flags and environment. Out: each module's `Options`.
//! May name: domain, db, outbound, secret_store, handler, remote, notify, trace, engine. Never: a connection, a task.
//! Invariant: a `Config` that leaves this module has been checked as a whole; unknown keys are
//! errors.

mod executors;
mod four_eyes;
mod http;
mod ldap;
mod limits;
mod notify;
mod outputs;
mod retention;
mod script;
mod secret_setting;
mod secret_stores;
mod shown;
mod tls;
mod trace;
mod users;

pub use executors::ExecutorSettings;
pub use four_eyes::FourEyesSettings;
pub use http::{Doorway, HttpSettings, ListeningOptions, Oidc, OidcGrant};
pub use ldap::{Ldap, LdapGrant, LdapPassword};
pub use limits::{ConnectionLimits, LimitSettings};
pub use notify::{ChannelSettings, MailSettings, Notify};
pub use outputs::OutputSettings;
pub use retention::{GroupRetentionSettings, RetentionSettings};
pub use script::ScriptSettings;
pub use secret_setting::SecretSetting;
pub use secret_stores::{SecretEntrySettings, SecretStoreSettings};
pub use tls::{ClientCertificateRule, ListenerTlsConfig, ListenerTlsFiles};
pub use trace::Trace;
pub use users::Users;

use crate::db;
use crate::db::sqlite_file::{ProtectedFile, ProtectedFiles, metadata_file};
use crate::domain::source::transport::{SourceTransport, with_verified_tls};
use crate::engine;
use crate::engine::secrets::encryption::KEY_FILE_VARIABLE;
use crate::handler;
use crate::handler::isolation_probe::IsolationProbe;
use crate::secret_store::SecretStores;
use anyhow::{Context as _, Result};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The reference manual of the settings.
pub const DEFAULTS: &str = include_str!("config.default.toml");

/// All settings. `config.default.toml` documents each key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseSettings,
    /// The identity of this process in the cluster.
    pub node: NodeSettings,
    pub engine: Engine,
    pub trigger: TriggerSettings,
    pub retention: RetentionSettings,
    pub notify: Notify,
    /// Logs of attempts.
    pub log: Log,
    /// Limits of outputs.
    pub outputs: OutputSettings,
    pub stop: StopSettings,
    pub source: SourceSettings,
    pub script: ScriptSettings,
    /// The HTTP server, health and metrics.
    pub http: HttpSettings,
    /// A directory that users log in with.
    pub ldap: Ldap,
    /// Requirements on users.
    pub users: Users,
    /// Changes that need the approval of a second person, by group; `*` means all others.
    pub four_eyes: BTreeMap<String, FourEyesSettings>,
    /// Limits of clients.
    pub limits: LimitSettings,
    pub executors: ExecutorSettings,
    pub trace: Trace,
    /// Secret stores by name.
    pub secret_stores: BTreeMap<String, SecretStoreSettings>,
    /// All settings as read, for display.
    #[serde(skip)]
    tree: toml::Table,
    /// The file they were read from.
    #[serde(skip)]
    file: PathBuf,
}

/// `[database]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// The URL; a secret, because some people put passwords there.
    pub url: SecretString,
    /// The file with the password; empty: the environment.
    pub password_file: PathBuf,
    /// A secret of `[secret_stores]`; empty: none.
    pub password_secret: SecretSetting,
    /// The password, once it is read.
    #[serde(skip)]
    pub password: Option<SecretString>,
    /// Maximum number of connections.
    pub max_connections: u32,
    /// Time limit for connecting, in seconds.
    pub connect_timeout_sec: u64,
    /// Time limit of a statement, in seconds.
    pub statement_timeout_sec: u64,
    /// Whether a server on another machine must present a verifiable certificate.
    pub verify_tls: bool,
}

/// `[node]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSettings {
    /// The node name; empty: the host name.
    pub name: String,
    /// The roles of `serve`.
    pub roles: Vec<String>,
    /// Labels that jobs may require.
    pub labels: Vec<String>,
    /// Whether this process serves, or runs one order.
    #[serde(skip)]
    pub duty: Duty,
    /// The address of its HTTP server; known once its listener is open.
    #[serde(skip)]
    pub address: Option<String>,
}

/// The purpose of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duty {
    /// One order: the node has no role, and is given no jobs.
    #[default]
    Order,
    /// Serving, in its roles.
    Serve,
}

/// `[engine]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Maximum number of jobs at once.
    pub max_parallel: u32,
    /// Waiting time per point of priority, in seconds.
    pub ageing_sec: u32,
    /// Lease duration in seconds.
    pub lease_sec: u32,
    /// Number of worker deaths after which a job is parked.
    pub park_after: u32,
}

/// `[trigger]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerSettings {
    /// Maximum number of firings of fast schedules under way.
    pub fast: u32,
    /// Maximum number of firings of slow schedules under way.
    pub slow: u32,
}

/// `[log]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Maximum log size per attempt, in bytes.
    pub max_bytes_per_try: usize,
    /// Interval of storing lines, in milliseconds.
    pub flush_ms: u64,
}

/// `[stop]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopSettings {
    /// Grace period in seconds.
    pub grace_sec: u64,
    /// Time to confirm the end, in seconds.
    pub confirm_sec: u64,
    /// Shutdown time limit in seconds.
    pub drain_sec: u32,
}

/// `[source]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// Time limit for connecting, in seconds.
    pub connect_timeout_sec: u64,
    /// How long an unavailable source is waited for, in seconds.
    pub away_sec: u64,
    /// Idle time of a session, in seconds.
    pub idle_sec: u64,
    /// Interval of liveness probes, in seconds.
    pub look_sec: u64,
    /// Whether a SQLite source may be the metadata database.
    pub allow_metadata_file: bool,
    /// Whether servers on other machines must present verifiable certificates.
    pub verify_tls: bool,
}

/// An invalid setting; the message names the key and the hint.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadConfig(String);

impl BadConfig {
    /// An error with the setting, the fault and the hint.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl NodeSettings {
    /// Refuses invalid roles, labels and names; flags are checked here too.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(
            !self.roles.is_empty(),
            "node.roles is empty; name scheduler, worker, or both"
        );
        for role in &self.roles {
            anyhow::ensure!(
                engine::NodeRole::parse(role).is_some(),
                "node.roles has {role:?}; the roles are scheduler and worker"
            );
        }
        let fits = |word: &str| {
            let usable = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
            !word.is_empty() && word.chars().count() <= 100 && word.chars().all(usable)
        };
        for label in &self.labels {
            anyhow::ensure!(
                fits(label),
                "node.labels has {label:?}; use 1 to 100 letters, digits, '_', '-', '.' or ':'"
            );
        }
        anyhow::ensure!(
            self.name.is_empty() || fits(&self.name),
            "node.name is {:?}; use 1 to 100 letters, digits, '_', '-', '.' or ':'",
            self.name
        );
        Ok(())
    }

    fn options(&self) -> engine::NodeOptions {
        let roles = self.roles.iter().filter_map(|role| engine::NodeRole::parse(role));
        let roles = match self.duty {
            Duty::Serve => roles.collect(),
            Duty::Order => engine::Roles::new(),
        };
        let (name, labels) = (self.name.clone(), self.labels.clone());
        let address = self.address.clone();
        engine::NodeOptions { name, roles, labels, address }
    }
}

impl Config {
    /// The defaults overridden by `file`; without one, by `procession.toml` if it exists.
    pub fn load_file(file: Option<&Path>) -> Result<Self> {
        let path = file.unwrap_or(Path::new("procession.toml"));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(cause) if file.is_none() && cause.kind() == std::io::ErrorKind::NotFound => {
                String::new()
            }
            Err(cause) => {
                return Err(BadConfig(format!("{}: {cause}", path.display())).into());
            }
        };
        let read = Self::parse_text(&text);
        let mut config = read.map_err(|e| BadConfig(format!("{}: {e:#}", path.display())))?;
        config.file = path.to_owned();
        Ok(config)
    }

    fn parse_text(text: &str) -> Result<Self> {
        let mut tree: toml::Table = DEFAULTS.parse().context("the built-in defaults")?;
        overlay(&mut tree, text.parse().map_err(|e| place(text, &e))?);
        let mut config = Self::deserialize(toml::Value::Table(tree.clone()))?;
        config.tree = tree;
        config.validate()?;
        Ok(config)
    }

    fn validate(&self) -> Result<()> {
        let at_least_one = [
            ("database.max_connections", u64::from(self.database.max_connections)),
            ("engine.max_parallel", self.engine.max_parallel.into()),
            ("engine.lease_sec", self.engine.lease_sec.into()),
            ("engine.ageing_sec", self.engine.ageing_sec.into()),
            ("trigger.fast", self.trigger.fast.into()),
            ("trigger.slow", self.trigger.slow.into()),
            ("log.flush_ms", self.log.flush_ms),
            ("engine.park_after", self.engine.park_after.into()),
            ("database.statement_timeout_sec", self.database.statement_timeout_sec),
            ("source.idle_sec", self.source.idle_sec),
            ("source.look_sec", self.source.look_sec),
            ("http.stalled_sec", self.http.stalled_sec.into()),
        ];
        for (key, value) in at_least_one {
            anyhow::ensure!(value >= 1, "{key} is {value}; it must be 1 or more");
        }
        anyhow::ensure!(
            self.log.max_bytes_per_try >= 1_000,
            "log.max_bytes_per_try is {}; it must be 1,000 or more",
            self.log.max_bytes_per_try
        );
        self.outputs.check()?;
        self.listening_options()?;
        self.http.check()?;
        self.ldap.check()?;
        self.users.check()?;
        self.limits.check()?;
        self.executor_networks()?;
        self.check_executor_tls()?;
        self.retention()?;
        self.notify.check()?;
        self.trace.check()?;
        anyhow::ensure!(
            self.notify.timeout_sec < self.http.stalled_sec,
            "notify.timeout_sec is {}; it must be less than http.stalled_sec ({}), or a mail server that \
             hangs would look like a process that does",
            self.notify.timeout_sec,
            self.http.stalled_sec
        );
        self.node.check()?;
        self.script.check()?;
        self.secret_stores()?;
        self.four_eyes()?;
        self.check_secret_settings()?;
        Ok(())
    }

    /// Settings of the metadata database.
    pub fn database_settings(&self) -> db::ConnectSettings {
        db::ConnectSettings {
            url: self.database_url(),
            password: match self.database.password_secret.value() {
                Some(secret) => Some(secret.get()),
                None => self.database.password.clone(),
            },
            rotated_password: self
                .database
                .password_secret
                .value()
                .map(|secret| secret.shared_value()),
            max_connections: self.database.max_connections,
            connect_timeout: Duration::from_secs(self.database.connect_timeout_sec),
            statement_timeout: Duration::from_secs(self.database.statement_timeout_sec),
            may_create: false,
            keeping: db::SessionTimeouts::Usual,
        }
    }

    /// The URL of the metadata database with the required options of its server.
    fn database_url(&self) -> SecretString {
        match self.database.verify_tls {
            true => with_verified_tls(self.database.url.expose_secret()).into(),
            false => self.database.url.clone(),
        }
    }

    /// What an attacker between this process and the metadata database could do.
    pub fn database_weakness(&self) -> Option<String> {
        SourceTransport::of_url(self.database_url().expose_secret())?.weakness()
    }

    /// Maximum numbers of firings under way.
    pub fn triggers(&self) -> engine::trigger::pools::Widths {
        let width = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        engine::trigger::pools::Widths {
            fast: width(self.trigger.fast),
            slow: width(self.trigger.slow),
        }
    }

    /// Settings of the engine.
    pub fn engine(&self) -> engine::EngineOptions {
        engine::EngineOptions {
            max_parallel: self.engine.max_parallel,
            ageing_ms: i64::from(self.engine.ageing_sec) * 1_000,
            lease_ms: i64::from(self.engine.lease_sec) * 1_000,
            log_flush_ms: self.log.flush_ms,
            log_max_bytes: self.log.max_bytes_per_try,
            park_after: self.engine.park_after,
            drain_ms: i64::from(self.stop.drain_sec) * 1_000,
            executor_tls: self.executors.client_files(),
            node: self.node.options(),
            secret_stores: SecretStores::default(),
        }
    }

    /// Settings of the handlers.
    pub fn handlers(&self) -> handler::HandlerOptions {
        handler::HandlerOptions {
            interpreters: self.script.interpreters.clone(),
            script_env: self.script.inherit_env.clone(),
            kill_grace: Duration::from_secs(self.stop.grace_sec),
            kill_confirm: Duration::from_secs(self.stop.confirm_sec),
            connect_timeout: Duration::from_secs(self.source.connect_timeout_sec),
            away: Duration::from_secs(self.source.away_sec),
            idle: Duration::from_secs(self.source.idle_sec),
            look_every: Duration::from_secs(self.source.look_sec),
            verify_tls: self.source.verify_tls,
            // A tenth less than what others wait for. The supervisor counts from the answer of a
            // renewal, so that tenth is also the longest an answer may take before a script can
            // outlast the lease.
            script_lease: Duration::from_millis(u64::from(self.engine.lease_sec) * 900),
            keeper: self.script.supervisor.clone(),
            script_limits: self.script_limits(),
            script_cgroups: self.script_cgroups(),
            script_users: self.script_users(),
            script_files: self.script_files(),
            isolation_probe: IsolationProbe::default(),
            secrets_in_files: self.script.secrets == "files",
            protected_files: self.protected_files(),
            outputs: self.outputs.limits(),
        }
    }
}

impl Config {
    /// Files that a SQLite source could be directed to and must not open.
    pub fn protected_files(&self) -> ProtectedFiles {
        let mut files = Vec::new();
        if !self.source.allow_metadata_file
            && let Some(path) = metadata_file(self.database.url.expose_secret())
        {
            let role = "Procession's own database (source.allow_metadata_file is false)";
            files.push(ProtectedFile { role, path });
        }
        let key = std::env::var_os(KEY_FILE_VARIABLE).map(PathBuf::from);
        files.extend(key.map(|path| ProtectedFile { role: "the key of sealed secrets", path }));
        let password = &self.database.password_file;
        if !password.as_os_str().is_empty() {
            let role = "the password of Procession's own database";
            files.push(ProtectedFile { role, path: password.clone() });
        }
        let password = &self.ldap.bind_password_file;
        if !password.as_os_str().is_empty() {
            let role = "the password for the directory";
            files.push(ProtectedFile { role, path: password.clone() });
        }
        let role = "what opens a secret store";
        let others = self.store_login_files().into_iter();
        files.extend(others.map(|path| ProtectedFile { role, path }));
        for (path, role) in [
            (&self.http.tls_key, "the private key of the listener"),
            (&self.executors.tls_key, "the private key that is shown to executors"),
        ] {
            if !path.as_os_str().is_empty() {
                files.push(ProtectedFile { role, path: path.clone() });
            }
        }
        ProtectedFiles::new(files)
    }
}

/// A fault of the file by line and column. The library would show the line itself, which most often
/// contains a database URL with its password.
fn place(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.get(..start).unwrap_or_default();
    let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
    let column = before.lines().last().map_or(0, |l| l.chars().count()) + 1;
    anyhow::anyhow!("line {line}, column {column}: {}", error.message())
}

fn overlay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        // Interpreters are one list: a file that names some means only those.
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above))
                if key != "interpreters" =>
            {
                overlay(below, above);
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_wins_over_the_defaults_key_by_key() {
        let config = Config::parse_text("[engine]\nmax_parallel = 2\n").expect("config");
        assert_eq!(config.engine.max_parallel, 2);
        assert_eq!(config.engine.lease_sec, 15);
        let only = Config::parse_text("[script.interpreters]\nsh = '/bin/sh'\n").expect("config");
        assert_eq!(only.script.interpreters.len(), 1);
    }

    #[test]
    fn limits_of_outputs_have_one_default() {
        use crate::domain::job::output_limits::OutputLimits;
        let config = Config::parse_text("").expect("the defaults");
        assert_eq!(config.handlers().outputs, OutputLimits::default());
    }

    #[test]
    fn a_remote_database_is_asked_for_its_certificate() {
        let url = "postgres://u@db.bank.example/d";
        let read = |more: &str| {
            Config::parse_text(&format!("[database]\nurl = '{url}'\n{more}")).expect("config")
        };
        let config = read("");
        let asked_for = format!("{url}?sslmode=verify-full");
        assert_eq!(config.database_settings().url.expose_secret(), asked_for);
        assert!(config.handlers().verify_tls && config.database_weakness().is_none());
        let config = read("verify_tls = false\n[source]\nverify_tls = false\n");
        assert_eq!(config.database_settings().url.expose_secret(), url);
        let weakness = config.database_weakness().expect("it may be in clear");
        assert!(!config.handlers().verify_tls && weakness.contains("verify_tls = false"));
    }

    #[test]
    fn a_remote_source_is_asked_for_its_certificate() {
        use crate::handler::run_on_source::reach;
        let reached = |url: &str, settings: &str| {
            let json = serde_json::json!({"name": "remote_source_of_a_test", "url": url});
            let source = serde_json::from_value(json).expect("a source");
            let options = Config::parse_text(settings).expect("config").handlers();
            reach(&source, "test".to_owned(), &options).expect("a target").0.url
        };
        let (remote, local) = ("mysql://u@db.bank.example:3306/d", "mysql://u@127.0.0.1:3306/d");
        assert_eq!(reached(remote, ""), format!("{remote}?ssl-mode=VERIFY_IDENTITY"));
        assert_eq!(reached(local, ""), local);
        assert_eq!(reached(remote, "[source]\nverify_tls = false\n"), remote);
    }

    #[test]
    fn a_fault_does_not_show_the_line() {
        let text = "[database]\nurl = mysql://root:hunter2@h/db\n";
        let error = format!("{:#}", Config::parse_text(text).expect_err("no quotes"));
        assert!(error.contains("line 2") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn letters_lead_to_the_console_unless_another_page_is_said() {
        let links = |text: &str| {
            Config::parse_text(text).expect("settings").outbox().expect("options").links
        };
        assert!(links("").is_empty(), "nobody said where the console is");
        let console = "[http]\npublic_url = 'https://p.example'\n";
        assert_eq!(links(console)[1], "https://p.example/#/batches/{group}/{batch_no}");
        assert_eq!(
            links(&format!("{console}[notify]\nlink = 'https://w/{{job}}'\n")),
            ["https://w/{job}"]
        );
    }

    #[test]
    fn faults_name_the_key() {
        for (text, said) in [
            ("[engine]\nmax_paralel = 2\n", "max_paralel"),
            ("[engine]\nmax_parallel = 0\n", "engine.max_parallel is 0"),
            ("[engine\n", "line 1"),
            ("[script.interpreters]\nsh = 'sh'\n", "must be an absolute path"),
            ("[script]\nisolation = 'yes'\n", "write \"auto\", \"required\" or \"off\""),
            ("[script]\nread = ['data']\n", "script.read is data; it must be an absolute path"),
            ("[script]\nsecrets = 'both'\n", "write \"environment\" or \"files\""),
            ("[script.run_as]\n'a b' = 'etl'\n", "name a group"),
            ("[script.run_as]\nar = 'root'\n", "owns nothing of Procession"),
            ("[http]\nlisten = '8088'\n", "http.listen is 8088"),
            ("[http]\nlisten = 'localhost:8088'\n", "http.listen is localhost:8088"),
            ("[http]\nstalled_sec = 0\n", "http.stalled_sec is 0"),
            ("[http]\nsession_idle_min = 0\n", "http.session_idle_min is 0"),
            ("[http]\nsession_max_hours = 169\n", "http.session_max_hours is 169"),
            ("[http]\npublic_url = 'p.example'\n", "http.public_url is p.example"),
            ("[http]\ntrusted_proxies = ['proxy']\n", "http.trusted_proxies has \"proxy\""),
            ("[http.oidc]\nissuer = 'http://idp.example'\n", "http.oidc.issuer is http://idp"),
            ("[http.oidc]\nissuer = 'https://idp.example'\n", "http.oidc.client_id is empty"),
            (
                "[[http.oidc.grants]]\nclaim = 'a'\ngroup = '*'\nrole = 'root'\n",
                "http.oidc.grants: role \"root\"",
            ),
            (
                "[[http.oidc.grants]]\nclaim = 'a'\ngroup = '*'\nrole = 'admin'\nrights = ['run']\n",
                "http.oidc.grants: right \"run\"",
            ),
            ("[outputs]\nmax_rows = 0\n", "outputs.max_rows is 0"),
            ("[outputs]\nmax_value_bytes = 10\n", "outputs.max_value_bytes is 10"),
            ("[outputs]\nmax_total_bytes = 1000\n", "outputs.max_total_bytes is 1000"),
            ("[outputs]\ninline_bytes = 100\n", "outputs.inline_bytes is 100"),
            ("[outputs]\ninline_bytes = 2_000_000\n", "outputs.inline_bytes is 2000000"),
            ("[outputs]\nmax_stored_bytes = 1000\n", "outputs.max_stored_bytes is 1000"),
            ("[outputs]\nmax_value_bytes = 900_000_000\n", "outputs.max_value_bytes is 900000000"),
            ("[outputs]\nmax_total_bytes = 99_000_000\n", "outputs.max_total_bytes is 99000000"),
            ("[retention]\nkeep_batches = 0\n", "retention.keep_batches is 0"),
            ("[retention]\nrows_per_step = 0\n", "retention.rows_per_step is 0"),
            ("[retention]\nwindow = 'night'\n", "retention.window: \"night\" is no time of day"),
            ("[retention]\ntime_zone = 'Shanghai'\n", "retention.window"),
            ("[retention]\nleave = ['job_queue']\n", "retention.leave has \"job_queue\""),
            ("[retention.groups.a]\nkeep_batches = 0\n", "retention.groups.a.keep_batches is 0"),
            ("[retention.groups.a]\nwindow = ''\n", "unknown field `window`"),
            ("[notify.mail]\ntransport = 'fax'\n", "notify.mail.transport is \"fax\""),
            ("[notify.mail]\ntransport = 'smtp'\n", "notify.mail.host is empty"),
            ("[notify.mail]\ntransport = 'file'\nfrom = 'me'\n", "notify.mail.from is \"me\""),
            ("[notify]\ndigest_at = '8'\n", "notify.digest_at is \"8\"; write HH:MM"),
            ("[notify]\ntimeout_sec = 120\n", "it must be less than http.stalled_sec (120)"),
            ("[notify]\nlang = 'fr'\n", "notify.lang is \"fr\""),
            (
                "[notify]\noperators = ['ops']\n",
                "notify.operators: \"ops\" is not an e-mail address",
            ),
            ("[notify.channels.x]\ntype = 'fax'\n", "notify.channels.x.type is \"fax\""),
            ("[notify.channels.'a b']\ntype = 'slack'\n", "notify.channels has \"a b\""),
            ("[retention.groups.'a b']\nkeep_batches = 1\n", "retention.groups"),
        ] {
            let error = format!("{:#}", Config::parse_text(text).expect_err(text));
            assert!(error.contains(said), "{error}");
        }
    }
}
