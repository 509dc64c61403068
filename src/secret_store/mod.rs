//! secret_store: reads secrets from files and HashiCorp Vault. In: a name, the time. Out: a secret, or the error.
//! May name: domain, outbound. Never: the database, a wait, a log line with a value.
//! Invariant: a value is read again for each request, and no error contains any part of one.

pub mod secret_file;
pub mod vault;
mod vault_answer;

use crate::domain::access::group_access::GroupAccess;
use crate::domain::cluster::lease::Uptime;
use crate::domain::id::SourceName;
use crate::domain::job::Definition;
use crate::secret_store::secret_file::SecretFile;
use crate::secret_store::vault::{VaultClient, VaultOptions};
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings of one secret store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub name: String,
    /// The kind of store.
    pub backend: StoreBackend,
    /// The secrets that are read from it, by their names in definitions.
    pub secrets: BTreeMap<String, SecretEntry>,
}

/// A kind of secret store.
#[derive(Clone, Debug)]
pub enum StoreBackend {
    /// A directory with a file for each secret: credentials of systemd, a mount of Kubernetes.
    Folder(PathBuf),
    /// A server of HashiCorp Vault, or a compatible one.
    Vault(Box<VaultOptions>),
}

/// One secret of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEntry {
    /// Its key in the store: a file name, or `PATH#FIELD`.
    pub key: String,
    /// Which groups may use it.
    pub access: GroupAccess,
    /// Data sources that may use it as their password.
    pub sources: Vec<SourceName>,
    /// Whether settings of Procession itself may use it as their password.
    pub for_procession: bool,
}

/// Why a secret cannot be read; `Display` is the message for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretStoreError {
    /// A retry will fail in the same way until something is changed.
    #[error("{0}")]
    Unusable(String),
    /// The store is unavailable: it may answer in a moment.
    #[error("{0}")]
    Away(String),
}

/// A secret that was just read.
#[derive(Debug)]
pub struct ReadSecret {
    pub value: SecretString,
    /// A remark for operators: `version 3`.
    pub remark: Option<String>,
    /// Who else may read it in its place.
    pub warning: Option<String>,
}

/// A secret of a configured store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredSecret {
    pub store: String,
    /// Its key in the store, and its permissions.
    pub entry: SecretEntry,
}

/// The configured secret stores. Clones are the same stores.
#[derive(Clone, Debug, Default)]
pub struct SecretStores(Arc<StoreSet>);

#[derive(Debug, Default)]
struct StoreSet {
    backends: BTreeMap<String, SecretBackend>,
    secrets: BTreeMap<String, ConfiguredSecret>,
}

#[derive(Debug)]
enum SecretBackend {
    Folder(PathBuf),
    Vault(Box<VaultClient>),
}

impl SecretStores {
    /// The stores of these settings, which are validated already.
    pub fn new(all: Vec<StoreOptions>) -> Self {
        let mut stores = StoreSet::default();
        for StoreOptions { name, backend, secrets } in all {
            let configured = |(secret, entry)| {
                let store = name.clone();
                (secret, ConfiguredSecret { store, entry })
            };
            stores.secrets.extend(secrets.into_iter().map(configured));
            let backend = match backend {
                StoreBackend::Folder(path) => SecretBackend::Folder(path),
                StoreBackend::Vault(options) => {
                    SecretBackend::Vault(Box::new(VaultClient::new(name.clone(), *options)))
                }
            };
            stores.backends.insert(name, backend);
        }
        Self(Arc::new(stores))
    }

    /// The place of a secret; `None` when the settings do not name it.
    pub fn find_secret(&self, name: &str) -> Option<&ConfiguredSecret> {
        self.0.secrets.get(name)
    }

    /// All secrets that the settings name.
    pub fn secrets(&self) -> &BTreeMap<String, ConfiguredSecret> {
        &self.0.secrets
    }

    /// Which groups may use which of them.
    pub fn access(&self) -> BTreeMap<String, GroupAccess> {
        let each = self.0.secrets.iter();
        each.map(|(name, secret)| (name.clone(), secret.entry.access.clone())).collect()
    }

    /// Adds the access rules of the settings to a definition read from the tables.
    pub fn add_access(&self, defs: Definition) -> Definition {
        Definition { configured_secrets: self.access(), ..defs }
    }

    /// A description of a secret's place: `folder k8s, file ledger-password`.
    pub fn describe(&self, secret: &ConfiguredSecret) -> String {
        let (store, key) = (&secret.store, &secret.entry.key);
        match self.0.backends.get(store) {
            Some(SecretBackend::Vault(_)) => format!("vault {store}, {key}"),
            Some(SecretBackend::Folder(_)) | None => format!("folder {store}, file {key}"),
        }
    }

    /// Whether reading a secret needs another machine.
    pub fn is_remote(&self, secret: &ConfiguredSecret) -> bool {
        matches!(self.0.backends.get(&secret.store), Some(SecretBackend::Vault(_)))
    }

    /// Reads a secret. `now` decides whether a login is still valid.
    pub async fn read_secret(
        &self,
        secret: &ConfiguredSecret,
        now: Uptime,
    ) -> Result<ReadSecret, SecretStoreError> {
        match self.0.backends.get(&secret.store) {
            Some(SecretBackend::Folder(folder)) => read_of_folder(folder, secret).await,
            Some(SecretBackend::Vault(vault)) => vault.read_secret(&secret.entry.key, now).await,
            None => Err(SecretStoreError::Unusable(format!("there is no store {}", secret.store))),
        }
    }

    /// Renews logins that would expire otherwise; returns the errors.
    pub async fn renew_logins(&self, now: Uptime) -> Vec<SecretStoreError> {
        let mut errors = Vec::new();
        for backend in self.0.backends.values() {
            if let SecretBackend::Vault(vault) = backend {
                errors.extend(vault.renew_login(now).await.err());
            }
        }
        errors
    }

    /// Whether there is a login to renew.
    pub fn has_logins(&self) -> bool {
        self.0.backends.values().any(|backend| matches!(backend, SecretBackend::Vault(_)))
    }

    /// Warnings for operators: files that others may read, a server accessed without TLS.
    pub async fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for backend in self.0.backends.values() {
            if let SecretBackend::Vault(vault) = backend {
                warnings.extend(vault.weakness());
            }
        }
        for secret in self.0.secrets.values() {
            if let Some(SecretBackend::Folder(folder)) = self.0.backends.get(&secret.store) {
                match read_of_folder(folder, secret).await {
                    Ok(read) => warnings.extend(read.warning),
                    Err(error) => warnings.push(error.to_string()),
                }
            }
        }
        warnings
    }
}

async fn read_of_folder(
    folder: &Path,
    secret: &ConfiguredSecret,
) -> Result<ReadSecret, SecretStoreError> {
    let path = folder.join(&secret.entry.key);
    let file = SecretFile::read_aside(&path).await;
    let file = file.map_err(|error| {
        SecretStoreError::Unusable(format!("secret store {}: {error}", secret.store))
    })?;
    Ok(ReadSecret { value: file.whole(), remark: None, warning: file.permission_warning(&path) })
}
