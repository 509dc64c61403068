//! `[secret_stores]`: secret stores, and which groups may use their secrets.

use super::{BadConfig, Config};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::script_isolation::ANY_GROUP;
use crate::outbound::is_here;
use crate::secret_store::secret_file::resolve_path;
use crate::secret_store::vault::{CredentialSource, VaultAuth, VaultClient, VaultOptions};
use crate::secret_store::{SecretEntry, SecretStores, StoreBackend, StoreOptions};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// `[secret_stores.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretStoreSettings {
    /// folder or vault.
    #[serde(rename = "type")]
    pub kind: String,
    /// For a folder: its path.
    #[serde(default)]
    pub path: PathBuf,
    /// For a Vault: its URL.
    #[serde(default)]
    pub address: String,
    /// For a Vault: its namespace; empty: the root.
    #[serde(default)]
    pub namespace: String,
    /// For a Vault: the mount path of KV version 2.
    #[serde(default = "kv_mount")]
    pub mount: String,
    /// For a Vault: approle or token.
    #[serde(default = "approle")]
    pub auth: String,
    /// For a Vault: the mount path of AppRole.
    #[serde(default = "approle")]
    pub auth_mount: String,
    /// For a Vault: the role id.
    #[serde(default)]
    pub role_id: String,
    /// A file with the role id.
    #[serde(default)]
    pub role_id_file: PathBuf,
    /// The file with the secret id; empty: the environment.
    #[serde(default)]
    pub secret_id_file: PathBuf,
    /// The file with a token; empty: the environment.
    #[serde(default)]
    pub token_file: PathBuf,
    /// A PEM file; empty: the machine's authorities.
    #[serde(default)]
    pub tls_ca: PathBuf,
    /// Whether a server on another machine may be accessed without TLS.
    #[serde(default)]
    pub allow_http: bool,
    /// Time limit of an answer, in seconds.
    #[serde(default = "timeout_sec")]
    pub timeout_sec: u32,
    /// The secrets, by their names in definitions.
    pub secrets: BTreeMap<String, SecretEntrySettings>,
}

/// `[secret_stores.NAME.secrets]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretEntrySettings {
    /// A file's name, or `PATH#FIELD`; empty: the secret's name.
    #[serde(default)]
    pub key: String,
    /// The group that owns it; empty: none.
    #[serde(default)]
    pub owner_group: String,
    /// Other groups that may use it; `*` means every group.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Data sources that may use it as their password.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Whether settings of Procession may use it as their password: `database.password_secret` and
    /// similar ones.
    #[serde(default)]
    pub for_procession: bool,
}

fn kv_mount() -> String {
    "secret".to_owned()
}

fn approle() -> String {
    "approle".to_owned()
}

fn timeout_sec() -> u32 {
    5
}

/// The position of a fault in the settings.
struct StoreFault<'a> {
    store: &'a str,
}

impl StoreFault<'_> {
    fn for_key(&self, key: &str, words: impl std::fmt::Display) -> BadConfig {
        BadConfig(format!("secret_stores.{}.{key} {words}", self.store))
    }
}

impl SecretStoreSettings {
    fn options(&self, name: &str) -> Result<StoreOptions, BadConfig> {
        let fault = StoreFault { store: name };
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 40 || !name.chars().all(fits) {
            let words = "use 1 to 40 letters, digits, '_' or '-'";
            return Err(BadConfig(format!("secret_stores has {name:?}; {words}")));
        }
        let backend = match self.kind.as_str() {
            "folder" => StoreBackend::Folder(self.folder(&fault)?),
            "vault" => StoreBackend::Vault(Box::new(self.vault(name, &fault)?)),
            other => {
                return Err(fault.for_key("type", format!("is {other:?}; write folder or vault")));
            }
        };
        let mut secrets = BTreeMap::new();
        for (secret, entry) in &self.secrets {
            secrets.insert(secret.clone(), entry.parse_entry(secret, &self.kind, &fault)?);
        }
        Ok(StoreOptions { name: name.to_owned(), backend, secrets })
    }

    fn folder(&self, fault: &StoreFault<'_>) -> Result<PathBuf, BadConfig> {
        let path = &self.path;
        if path.as_os_str().is_empty() {
            return Err(
                fault.for_key("path", "is empty; name the folder with a file for each secret")
            );
        }
        if !path.is_absolute() && !path.starts_with("$CREDENTIALS_DIRECTORY") {
            let words = "it must be an absolute path, or $CREDENTIALS_DIRECTORY";
            return Err(fault.for_key("path", format!("is {}; {words}", path.display())));
        }
        Ok(path.clone())
    }

    fn vault(&self, name: &str, fault: &StoreFault<'_>) -> Result<VaultOptions, BadConfig> {
        if !(1..=60).contains(&self.timeout_sec) {
            let words = format!("is {}; it may be 1 to 60", self.timeout_sec);
            return Err(fault.for_key("timeout_sec", words));
        }
        let mount = self.mount.trim_matches('/');
        let auth_mount = self.auth_mount.trim_matches('/');
        for (key, text) in [("mount", mount), ("auth_mount", auth_mount)] {
            if !is_path(text) {
                return Err(fault.for_key(key, format!("is {text:?}; write a path such as secret")));
            }
        }
        let namespace = Some(self.namespace.clone()).filter(|text| !text.is_empty());
        Ok(VaultOptions {
            address: self.address(fault)?,
            namespace,
            mount: mount.to_owned(),
            auth: self.vault_login(name, auth_mount, fault)?,
            tls_ca: Some(self.tls_ca.clone()).filter(|path| !path.as_os_str().is_empty()),
            timeout: Duration::from_secs(self.timeout_sec.into()),
        })
    }

    fn address(&self, fault: &StoreFault<'_>) -> Result<Url, BadConfig> {
        // The text is not repeated: it may contain a password.
        let url = Url::parse(&self.address).ok().filter(|url| url.has_host());
        let Some(url) = url else {
            let words = "is not a URL; write one such as https://vault.bank.example:8200";
            return Err(fault.for_key("address", words));
        };
        let has_more = url.query().is_some() || url.fragment().is_some();
        if !url.username().is_empty() || url.password().is_some() || has_more {
            return Err(fault.for_key("address", "may hold no user, password, query or fragment"));
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if is_here(&url) || self.allow_http => Ok(url),
            "http" => Err(fault.for_key(
                "address",
                "is http:// to another machine, so anyone on the way could read every secret; write https://, or \
                 allow_http = true",
            )),
            other => Err(fault.for_key("address", format!("begins with {other}; write https://"))),
        }
    }

    fn vault_login(
        &self,
        name: &str,
        auth_mount: &str,
        fault: &StoreFault<'_>,
    ) -> Result<VaultAuth, BadConfig> {
        let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let store: String = name.chars().map(upper).collect();
        let source = |file: &PathBuf, what: &str| match file.as_os_str().is_empty() {
            true => CredentialSource::Variable(format!("PROCESSION_VAULT_{store}_{what}")),
            false => CredentialSource::File(file.clone()),
        };
        match self.auth.as_str() {
            "token" => Ok(VaultAuth::Token(source(&self.token_file, "TOKEN"))),
            "approle" => {
                let role_id = match (self.role_id.is_empty(), self.role_id_file.as_os_str()) {
                    (false, _) => CredentialSource::Text(self.role_id.clone()),
                    (true, file) if !file.is_empty() => {
                        CredentialSource::File(self.role_id_file.clone())
                    }
                    (true, _) => {
                        return Err(fault.for_key("role_id", "is empty; write it, or role_id_file"));
                    }
                };
                let secret_id = source(&self.secret_id_file, "SECRET_ID");
                Ok(VaultAuth::AppRole { mount: auth_mount.to_owned(), role_id, secret_id })
            }
            other => Err(fault.for_key("auth", format!("is {other:?}; write approle or token"))),
        }
    }
}

/// Whether a text is a path of segments without `.` and `..`.
fn is_path(text: &str) -> bool {
    text.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        && !text.chars().any(|c| c.is_control() || "?#%\\".contains(c))
}

impl SecretEntrySettings {
    fn parse_entry(
        &self,
        name: &str,
        kind: &str,
        fault: &StoreFault<'_>,
    ) -> Result<SecretEntry, BadConfig> {
        let at = format!("secrets.{name}");
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts || !name.chars().all(fits) || name.len() > 100 {
            let words = "has a name that cannot be used: 1 to 100 ASCII letters, digits and '_', the first no digit";
            return Err(fault.for_key(&at, words));
        }
        let key = match self.key.is_empty() {
            true => name.to_owned(),
            false => self.key.clone(),
        };
        let is_usable = match kind {
            "vault" => {
                let (path, field) = key.split_once('#').unwrap_or((&key, "value"));
                is_path(path) && !field.is_empty()
            }
            _ => is_path(&key) && !key.contains('/'),
        };
        if !is_usable {
            let form = if kind == "vault" { "PATH#FIELD" } else { "the name of a file" };
            return Err(fault.for_key(&format!("{at}.key"), format!("is {key:?}; write {form}")));
        }
        let sources = self.sources.iter().map(|text| {
            let parsed = SourceName::parse(text);
            parsed.map_err(|_| {
                fault.for_key(&at, format!("has {text:?}, which is no name of a data source"))
            })
        });
        let sources = sources.collect::<Result<_, _>>()?;
        let for_procession = self.for_procession;
        Ok(SecretEntry { key, access: self.access(&at, fault)?, sources, for_procession })
    }

    /// A secret of a store may be used only as the settings allow.
    fn access(&self, at: &str, fault: &StoreFault<'_>) -> Result<GroupAccess, BadConfig> {
        let code = |text: &str| {
            let parsed = GroupCode::parse(text);
            parsed.map_err(|_| {
                fault.for_key(at, format!("has {text:?}, which is no code of a group"))
            })
        };
        if self.owner_group.is_empty() && self.groups.is_empty() {
            if !self.sources.is_empty() || self.for_procession {
                return Ok(GroupAccess { owner_group: None, groups: Some(Vec::new()) });
            }
            let words = "names no group; write groups = [\"GROUP\"] or owner_group, or groups = [\"*\"] for every \
                         group; or sources = [\"SOURCE\"] for the password of a data source";
            return Err(fault.for_key(at, words));
        }
        if self.groups.iter().any(|group| group == ANY_GROUP) {
            if self.groups.len() > 1 || !self.owner_group.is_empty() {
                return Err(fault.for_key(at, "has \"*\" and groups; keep one of the two"));
            }
            return Ok(GroupAccess::default());
        }
        let owner_group = match self.owner_group.is_empty() {
            true => None,
            false => Some(code(&self.owner_group)?),
        };
        let groups: Vec<GroupCode> =
            self.groups.iter().map(|text| code(text)).collect::<Result<_, _>>()?;
        Ok(GroupAccess { owner_group, groups: (!groups.is_empty()).then_some(groups) })
    }
}

impl Config {
    /// The secret stores; empty when there are no such settings.
    pub fn secret_stores(&self) -> Result<SecretStores, BadConfig> {
        Ok(SecretStores::new(self.store_options()?))
    }

    fn store_options(&self) -> Result<Vec<StoreOptions>, BadConfig> {
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        for (name, settings) in &self.secret_stores {
            let options = settings.options(name)?;
            for secret in options.secrets.keys() {
                if !seen.insert(secret.clone()) {
                    let words = "is in another secret store too; keep one of the two";
                    let fault = StoreFault { store: name };
                    return Err(fault.for_key(&format!("secrets.{secret}"), words));
                }
            }
            all.push(options);
        }
        Ok(all)
    }

    /// Directories and files with secrets of the stores, or with their credentials: hidden from
    /// scripts.
    pub(super) fn secret_store_files(&self) -> Vec<PathBuf> {
        let options = self.store_options().unwrap_or_default();
        let folder = |store: StoreOptions| match store.backend {
            StoreBackend::Folder(path) => resolve_path(&path).ok(),
            StoreBackend::Vault(_) => None,
        };
        let mut files = self.store_login_files();
        files.extend(options.into_iter().filter_map(folder));
        files
    }

    /// Files with the credentials of secret stores.
    pub(super) fn store_login_files(&self) -> Vec<PathBuf> {
        let options = self.store_options().unwrap_or_default();
        let files = |store: StoreOptions| match store.backend {
            StoreBackend::Folder(_) => Vec::new(),
            StoreBackend::Vault(vault) => VaultClient::credential_files(&vault),
        };
        options.into_iter().flat_map(files).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VAULT: &str = "[secret_stores.corp]\ntype = 'vault'\n";

    fn read(text: &str) -> Result<Config, anyhow::Error> {
        Config::parse_text(text)
    }

    #[test]
    fn secrets_of_stores_are_for_the_groups_that_the_settings_name() {
        let text = "
            [secret_stores.k8s]
            type = 'folder'
            path = '/etc/secrets'
            secrets.LEDGER_PW = { key = 'ledger-password', owner_group = 'fin', groups = ['risk'] }
            secrets.OPEN = { groups = ['*'] }
            [secret_stores.corp]
            type = 'vault'
            address = 'https://vault.bank.example:8200'
            role_id = 'r'
            secret_id_file = '/etc/vault/secret-id'
            secrets.FX = { key = 'batch/fx#password', groups = ['fx'] }
        ";
        let config = read(text).expect("settings");
        let stores = config.secret_stores().expect("stores");
        let words = |name: &str| {
            let found = stores.find_secret(name).expect(name);
            (stores.describe(found), found.entry.access.describe())
        };
        assert_eq!(
            words("LEDGER_PW"),
            ("folder k8s, file ledger-password".to_owned(), "fin (owner), risk".to_owned())
        );
        assert_eq!(words("OPEN"), ("folder k8s, file OPEN".to_owned(), "every group".to_owned()));
        assert_eq!(words("FX"), ("vault corp, batch/fx#password".to_owned(), "fx".to_owned()));
        let hidden = config.secret_store_files();
        assert_eq!(hidden, ["/etc/vault/secret-id", "/etc/secrets"].map(PathBuf::from));
        // Paths and names of secrets are not secret.
        let shown = config.shown();
        let corp = &shown["secret_stores"]["corp"];
        assert_eq!(corp["secret_id_file"], "/etc/vault/secret-id");
        assert_eq!(corp["secrets"]["FX"]["groups"][0], "fx");
        assert!(read("").expect("settings").secret_stores().expect("none").secrets().is_empty());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let folder = |entry: &str| {
            format!("[secret_stores.k8s]\ntype = 'folder'\npath = '/x'\nsecrets.PW = {entry}\n")
        };
        let vault = |lines: &str| format!("{VAULT}{lines}\nsecrets = {{}}\n");
        for (text, words) in [
            (folder("{}"), "secret_stores.k8s.secrets.PW names no group"),
            (folder("{ groups = ['*', 'a'] }"), "has \"*\" and groups"),
            (folder("{ groups = ['a b'] }"), "has \"a b\", which is no code"),
            (folder("{ key = '../pw', groups = ['a'] }"), "write the name of a file"),
            (folder("{ key = '..', groups = ['a'] }"), "write the name of a file"),
            (
                "[secret_stores.k8s]\ntype = 'folder'\npath = 'x'\nsecrets = {}\n".to_owned(),
                "must be an absolute path",
            ),
            (
                "[secret_stores.a]\ntype = 'folder'\npath = '/x'\nsecrets.PW = {groups = ['*']}\n\
                 [secret_stores.b]\ntype = 'folder'\npath = '/y'\nsecrets.PW = {groups = ['*']}\n"
                    .to_owned(),
                "secret_stores.b.secrets.PW is in another secret store too",
            ),
            (vault("address = 'vault:8200'"), "address is not a URL"),
            (vault("address = 'http://vault.bank.example:8200'"), "http:// to another machine"),
            (vault("address = 'https://u:p@vault.bank.example'"), "may hold no user"),
            (vault("address = 'https://v.example'"), "role_id is empty"),
            (
                vault("address = 'https://v.example'\nauth = 'ldap'"),
                "auth is \"ldap\"; write approle or token",
            ),
            (
                vault("address = 'https://v.example'\nrole_id = 'r'\ntimeout_sec = 0"),
                "timeout_sec is 0",
            ),
            (
                vault("address = 'https://v.example'\nrole_id = 'r'\nmount = 'a/../b'"),
                "mount is \"a/../b\"",
            ),
            ("[secret_stores.x]\ntype = 'aws'\nsecrets = {}\n".to_owned(), "type is \"aws\""),
            ("[secret_stores.x]\ntype = 'vault'\ntoken = 's.x'\n".to_owned(), "unknown field"),
        ] {
            let error = format!("{:#}", read(&text).expect_err(&text));
            assert!(error.contains(words), "{error}");
        }
        let clear =
            vault("address = 'http://vault.bank.example:8200'\nallow_http = true\nauth = 'token'");
        assert!(read(&clear).is_ok(), "meant");
        assert!(read(&vault("address = 'http://127.0.0.1:8200'\nauth = 'token'")).is_ok());
    }
}
