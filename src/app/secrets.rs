//! All secrets of the installation: where each comes from, who may use it, and whether it can be
//! read from here.

use crate::app::App;
use crate::config::{BadConfig, Config};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::cluster::lease::Uptime;
use crate::domain::job::shared_definitions::{SecretFrom, SecretSource};
use crate::domain::permission::access_rules::uses_of_secrets;
use crate::domain::time::Millis;
use crate::engine::attempt::secret_reader::{from_definition, usable};
use crate::engine::clock::Clock;
use crate::engine::secrets::encryption::{KeyRing, SealError, SealedUnder};
use crate::secret_store::secret_file::SecretFile;
use crate::secret_store::{ConfiguredSecret, SecretStoreError, SecretStores};
use crate::store::secret::StoredSecretInfo;
use crate::store::{self, sealed_text};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The kind of place a secret comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretOrigin {
    /// A configured secret store.
    SecretStore,
    /// `secrets:` of the definition.
    Definition,
    /// The table `sealed_secret`.
    Stored,
}

impl SecretOrigin {
    /// The value in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SecretStore => "secret_store",
            Self::Definition => "definition",
            Self::Stored => "stored",
        }
    }
}

/// The state of a secret, as seen by this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretState {
    /// It can be read.
    Ready,
    /// It can be read, and is sealed under a previous key.
    PreviousKey,
    /// Its store is on another machine, and was not queried.
    NotAsked,
    /// Another secret of this name takes precedence.
    Overridden,
    /// It cannot be read, and why.
    Fault(String),
    /// Its store is unavailable at present, and why.
    Away(String),
}

impl SecretState {
    /// The value in documents.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::PreviousKey => "previous_key",
            Self::NotAsked => "not_asked",
            Self::Overridden => "overridden",
            Self::Fault(_) => "fault",
            Self::Away(_) => "away",
        }
    }

    /// Why it cannot be read.
    pub fn fault(&self) -> Option<&str> {
        match self {
            Self::Fault(why) | Self::Away(why) => Some(why),
            Self::Ready | Self::PreviousKey | Self::NotAsked | Self::Overridden => None,
        }
    }
}

/// A secret without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretListing {
    pub name: String,
    /// The kind of place it comes from.
    pub origin: SecretOrigin,
    /// A description of the place: `vault corp, batch/fx#password`.
    pub place: String,
    /// Which groups may use it.
    pub access: GroupAccess,
    pub state: SecretState,
    /// A remark for operators: `version 3`.
    pub remark: Option<String>,
    /// Who else may read it in its place.
    pub warning: Option<String>,
    /// Who sealed a stored one.
    pub sealed_by: Option<String>,
    /// When it was sealed.
    pub sealed_at: Option<Millis>,
    /// Descriptions of its uses; filled only for the effective one of a name.
    pub used_by: Vec<String>,
}

/// Whether stores on other machines are queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskStores {
    Yes,
    /// Only this machine is checked.
    No,
}

impl App {
    /// All secrets, by name; of one name the effective one comes first. With `only`, those of this
    /// name.
    pub async fn secrets(&self, only: Option<&str>, ask: AskStores) -> Result<Vec<SecretListing>> {
        let (declared, stored, seals) = {
            let mut tx = self.db.begin_read().await?;
            let declared = store::shared::declared_secrets(&mut tx).await?;
            let stored = store::secret::list_secrets(&mut tx).await?;
            (declared, stored, sealed_text::stored_secrets(&mut tx).await?)
        };
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for (name, secret) in self.secret_stores.secrets() {
            if wanted(name) {
                seen.insert(name.clone());
                all.push(self.of_store(name, secret, ask).await);
            }
        }
        for source in declared.iter().filter(|source| wanted(&source.name)) {
            let listing = of_definition(source).await;
            all.push(overridden_unless(seen.insert(source.name.clone()), listing));
        }
        let keys = KeyRing::from_environment();
        for secret in stored.into_iter().filter(|secret| wanted(&secret.name)) {
            let is_first = seen.insert(secret.name.clone());
            let sealed = seals.get(&secret.name).map(String::as_str).unwrap_or_default();
            let state = state_of_seal(&keys, &secret.name, sealed);
            all.push(overridden_unless(is_first, of_table(secret, state)));
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let uses = self.uses_of_secrets().await?;
        for listing in all.iter_mut().filter(|one| one.state != SecretState::Overridden) {
            let used_by = uses.get(&listing.name).into_iter().flatten();
            listing.used_by = used_by.cloned().collect();
        }
        Ok(all)
    }

    /// The uses of each secret: in definitions, and in these settings.
    async fn uses_of_secrets(&self) -> Result<BTreeMap<String, BTreeSet<String>>> {
        let mut uses = uses_of_secrets(&self.definition().await?);
        for (key, setting) in self.config.secret_settings() {
            if let Some(name) = setting.name() {
                uses.entry(name.to_owned()).or_default().insert(format!("setting {key}"));
            }
        }
        Ok(uses)
    }

    async fn of_store(
        &self,
        name: &str,
        secret: &ConfiguredSecret,
        ask: AskStores,
    ) -> SecretListing {
        let place = self.secret_stores.describe(secret);
        let access = secret.entry.access.clone();
        let mut listing = listing(name, SecretOrigin::SecretStore, place, access);
        if self.secret_stores.is_remote(secret) && ask == AskStores::No {
            listing.state = SecretState::NotAsked;
            return listing;
        }
        match self.secret_stores.read_secret(secret, self.clock.uptime()).await {
            Ok(read) => {
                listing.state = match usable(name, &read.value) {
                    Ok(()) => SecretState::Ready,
                    Err(why) => SecretState::Fault(why),
                };
                (listing.remark, listing.warning) = (read.remark, read.warning);
            }
            Err(SecretStoreError::Unusable(why)) => listing.state = SecretState::Fault(why),
            Err(SecretStoreError::Away(why)) => listing.state = SecretState::Away(why),
        }
        listing
    }

    /// Keeps the logins to secret stores valid while this process serves.
    pub fn login_renewal(&self) -> LoginRenewal {
        let config = self.config.clone();
        LoginRenewal { config, stores: self.secret_stores.clone(), clock: self.clock.clone() }
    }

    /// Warnings about places of secrets: files that others may read, a store accessed without TLS.
    pub async fn warn_of_secrets(&self) -> Result<Vec<String>> {
        let declared = {
            let mut tx = self.db.begin_read().await?;
            store::shared::declared_secrets(&mut tx).await?
        };
        let mut warnings = self.secret_stores.warnings().await;
        for source in &declared {
            if let SecretFrom::File(path) = &source.from {
                warnings.extend(warning_of_file(path).await);
            }
        }
        Ok(warnings)
    }
}

/// Interval at which due renewals are checked, so that a login of one minute is renewed in time.
const RENEW_EVERY: Duration = Duration::from_secs(15);

/// Renews logins to secret stores. Attempts renew them too; this covers times without attempts,
/// after which a token issued elsewhere would have expired.
pub struct LoginRenewal {
    config: Config,
    stores: SecretStores,
    clock: Clock,
}

impl LoginRenewal {
    /// Runs until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let has_settings =
            self.config.secret_settings().iter().any(|(_, one)| one.name().is_some());
        if !self.stores.has_logins() && !has_settings {
            return;
        }
        // The last logged error of each unavailable store; logged again only when it differs.
        let mut logged: Vec<SecretStoreError> = Vec::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(RENEW_EVERY) => {}
            }
            let mut errors = self.stores.renew_logins(self.clock.uptime()).await;
            for error in errors.iter().filter(|error| !logged.contains(error)) {
                tracing::warn!("a login to a secret store cannot be kept: {error}");
            }
            errors.extend(self.renew_settings(&logged).await);
            logged = errors;
        }
    }

    /// Reads the passwords of settings again, so that a new connection uses a replaced one.
    async fn renew_settings(&self, logged: &[SecretStoreError]) -> Vec<SecretStoreError> {
        let mut errors = Vec::new();
        for (key, setting) in self.config.secret_settings() {
            let Some(secret) = setting.name().and_then(|name| self.stores.find_secret(name)) else {
                continue;
            };
            match self.stores.read_secret(secret, self.clock.uptime()).await {
                Ok(read) => {
                    if setting.replace(read.value) {
                        tracing::info!("{key} was read anew: the secret has been replaced");
                    }
                }
                Err(error) => {
                    if !logged.contains(&error) {
                        tracing::warn!("{key} stays as it was read last: {error}");
                    }
                    errors.push(error);
                }
            }
        }
        errors
    }
}

/// Whether nothing can start without it.
fn is_needed(key: &str) -> bool {
    key.starts_with("database.") || key.starts_with("notify.")
}

/// Reads the passwords of settings that are secrets. Nothing can start without those of the
/// database and the mail server; the others are retried while `serve` runs.
pub async fn read_secret_settings(
    config: &Config,
    stores: &SecretStores,
    now: Uptime,
) -> Result<()> {
    for (key, setting) in config.secret_settings() {
        let Some(name) = setting.name() else { continue };
        let Some(secret) = stores.find_secret(name) else { continue };
        match stores.read_secret(secret, now).await {
            Ok(read) => {
                setting.replace(read.value);
            }
            // An unavailable store is no wrong setting: the service manager restarts the service.
            Err(error @ SecretStoreError::Away(_)) if is_needed(key) => {
                anyhow::bail!("{key}: secret {name}: {error}");
            }
            Err(error @ SecretStoreError::Unusable(_)) if is_needed(key) => {
                return Err(BadConfig::new(format!("{key}: secret {name}: {error}")).into());
            }
            Err(error) => tracing::warn!("{key}: secret {name}: {error}"),
        }
    }
    Ok(())
}

fn listing(name: &str, origin: SecretOrigin, place: String, access: GroupAccess) -> SecretListing {
    SecretListing {
        name: name.to_owned(),
        origin,
        place,
        access,
        state: SecretState::Ready,
        remark: None,
        warning: None,
        sealed_by: None,
        sealed_at: None,
        used_by: Vec::new(),
    }
}

fn overridden_unless(is_first: bool, listing: SecretListing) -> SecretListing {
    match is_first {
        true => listing,
        false => SecretListing { state: SecretState::Overridden, ..listing },
    }
}

async fn of_definition(source: &SecretSource) -> SecretListing {
    let (name, access) = (&source.name, source.access.clone());
    let place = match &source.from {
        SecretFrom::Env(variable) => format!("variable {variable}"),
        SecretFrom::File(path) => format!("file {path}"),
        SecretFrom::Sealed(_) => "sealed in the definition".to_owned(),
    };
    let mut listing = listing(name, SecretOrigin::Definition, place, access);
    listing.state = match &source.from {
        SecretFrom::Sealed(sealed) => state_of_seal(&KeyRing::from_environment(), name, sealed),
        from @ (SecretFrom::Env(_) | SecretFrom::File(_)) => {
            let read = from_definition(name, from).await;
            match read.and_then(|value| usable(name, &value)) {
                Ok(()) => SecretState::Ready,
                Err(why) => SecretState::Fault(why),
            }
        }
    };
    if let SecretFrom::File(path) = &source.from {
        listing.warning = warning_of_file(path).await;
    }
    listing
}

fn of_table(secret: StoredSecretInfo, state: SecretState) -> SecretListing {
    let StoredSecretInfo { name, by, at, access } = secret;
    SecretListing {
        state,
        sealed_by: Some(by),
        sealed_at: Some(at),
        ..listing(&name, SecretOrigin::Stored, "stored, sealed".to_owned(), access)
    }
}

async fn warning_of_file(path: &str) -> Option<String> {
    let path = Path::new(path);
    SecretFile::read_aside(path).await.ok()?.permission_warning(path)
}

fn state_of_seal(keys: &Result<KeyRing, SealError>, name: &str, sealed: &str) -> SecretState {
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => return SecretState::Fault(error.to_string()),
    };
    match keys.sealed_under(name, sealed) {
        SealedUnder::CurrentKey => SecretState::Ready,
        SealedUnder::PreviousKey => SecretState::PreviousKey,
        SealedUnder::UnknownKey => {
            SecretState::Fault(SealError::DoesNotOpen(name.to_owned()).to_string())
        }
    }
}
