//! Reads secrets just before a body starts: from the places that the settings or the definition
//! name, or from the sealed ones in the database. Secrets are read again for each attempt, so that
//! a replaced secret counts from the next attempt on.

use crate::domain::access::group_access::GroupAccess;
use crate::domain::cluster::lease::Uptime;
use crate::domain::id::GroupCode;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome};
use crate::domain::job::secret::SHORTEST;
use crate::domain::job::shared_definitions::{SecretFrom, SecretSource};
use crate::domain::permission::access_rules::{ForbiddenUse, SharedResource};
use crate::domain::source::{DataSource, ReadPassword};
use crate::engine::attempt::run::{AttemptOrder, Surroundings};
use crate::engine::attempt::secret_store_wait::AwaitedStore;
use crate::engine::db_retry::answered;
use crate::engine::secrets::encryption::KeyRing;
use crate::handler::StopReason;
use crate::secret_store::secret_file::SecretFile;
use crate::secret_store::{ConfiguredSecret, SecretStores};
use crate::store::secret::SealedSecret;
use crate::store::{self, Db};
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tokio::sync::watch;

/// Reads the secrets of one attempt.
pub(in crate::engine) struct SecretReader<'a> {
    pub(in crate::engine) job: &'a AttemptOrder,
    /// State shared by all attempts of this process.
    pub(in crate::engine) around: &'a Surroundings,
    /// Places of secrets that the batch's definition declares.
    pub(in crate::engine) declared: &'a [SecretSource],
}

impl SecretReader<'_> {
    /// The present values of the named secrets. `Err` is the outcome of the attempt; it says what
    /// is missing and where it was looked up. The settings take precedence over the definition, and
    /// the definition over stored secrets.
    pub(super) async fn fetch(
        &self,
        names: BTreeSet<String>,
    ) -> Result<BTreeMap<String, SecretString>, AttemptOutcome> {
        let mut found = BTreeMap::new();
        for name in names {
            let secret = match self.around.secret_stores.find_secret(&name) {
                Some(configured) => self.of_store(&name, configured).await?,
                None => self.read_own(&name).await.map_err(failed)?,
            };
            usable(&name, &secret).map_err(failed)?;
            found.insert(name, secret);
        }
        Ok(found)
    }

    /// The sources with their present passwords.
    pub(in crate::engine) async fn read_passwords(
        &self,
        sources: &mut [DataSource],
    ) -> Result<(), AttemptOutcome> {
        for source in sources {
            let Some(name) = source.password_secret.clone() else { continue };
            let read = match self.around.secret_stores.find_secret(&name) {
                Some(configured) => {
                    refuse_foreign_source(&name, configured, source).map_err(failed)?;
                    let mut store = AwaitedStore::new(self.job, self.around, &configured.store);
                    store.read_secret(&name, configured).await?
                }
                None => match self.declared.iter().find(|declared| declared.name == name) {
                    Some(declared) => from_definition(&name, &declared.from).await,
                    None => stored(&self.around.db, &name, &self.job.stop)
                        .await
                        .and_then(|found| unseal_secret(&name, &found.sealed)),
                }
                .map_err(|why| failed(format!("source '{}': its password: {why}", source.name)))?,
            };
            source.read_password = ReadPassword(Some(read));
        }
        Ok(())
    }

    async fn of_store(
        &self,
        name: &str,
        secret: &ConfiguredSecret,
    ) -> Result<SecretString, AttemptOutcome> {
        refuse_foreign_group(name, &secret.entry.access, &self.job.def.group).map_err(failed)?;
        AwaitedStore::new(self.job, self.around, &secret.store).read_secret(name, secret).await
    }

    /// From the definition, else from the stored secrets.
    async fn read_own(&self, name: &str) -> Result<SecretString, String> {
        let group = &self.job.def.group;
        if let Some(source) = self.declared.iter().find(|source| source.name == name) {
            refuse_foreign_group(name, &source.access, group)?;
            return from_definition(name, &source.from).await;
        }
        let found = stored(&self.around.db, name, &self.job.stop).await?;
        refuse_foreign_group(name, &found.access, group)?;
        unseal_secret(name, &found.sealed)
    }
}

/// A secret of a secret store is for no source unless the settings allow it: the definition does
/// not decide who may use the source.
pub fn refuse_foreign_source(
    name: &str,
    secret: &ConfiguredSecret,
    source: &DataSource,
) -> Result<(), String> {
    if secret.entry.sources.contains(&source.name) {
        return Ok(());
    }
    Err(format!(
        "source '{source}': its password is the secret {name}, which is not for this source; add sources = \
         [\"{source}\"] to secret_stores.{store}.secrets.{name} in procession.toml of every node",
        source = source.name,
        store = secret.store,
    ))
}

/// Like `read_passwords` for a caller without an attempt: one source with its password, read once.
pub async fn read_source_password(
    db: &Db,
    stores: &SecretStores,
    now: Uptime,
    source: &DataSource,
) -> Result<DataSource, String> {
    let Some(name) = source.password_secret.as_deref() else { return Ok(source.clone()) };
    let of_source = |why: String| format!("source '{}': its password: {why}", source.name);
    let read = match stores.find_secret(name) {
        Some(configured) => {
            refuse_foreign_source(name, configured, source)?;
            let read = stores.read_secret(configured, now).await;
            read.map_err(|error| of_source(format!("secret {name}: {error}")))?.value
        }
        None => {
            let found = async {
                let mut tx = db.begin_read().await?;
                let declared = store::shared::declared_secrets(&mut tx).await?;
                anyhow::Ok((declared, store::secret::find_secret(&mut tx, name).await?))
            };
            let (declared, stored) = found
                .await
                .map_err(|error| of_source(format!("secret {name} cannot be read: {error:#}")))?;
            let declared = declared.iter().find(|declared| declared.name == name);
            match (declared, stored) {
                (Some(declared), _) => from_definition(name, &declared.from).await,
                (None, Some(stored)) => unseal_secret(name, &stored.sealed),
                (None, None) => Err(unknown_secret(name)),
            }
            .map_err(of_source)?
        }
    };
    Ok(DataSource { read_password: ReadPassword(Some(read)), ..source.clone() })
}

fn unknown_secret(name: &str) -> String {
    format!(
        "secret {name} is not known; define it under secrets: in the definition, store it (procession secret \
         set {name}), or name it under [secret_stores] in procession.toml of every node"
    )
}

fn failed(words: String) -> AttemptOutcome {
    AttemptOutcome::ended(AttemptEnd::Failed, words)
}

/// Reads a secret from the place that a definition names.
pub async fn from_definition(name: &str, from: &SecretFrom) -> Result<SecretString, String> {
    match from {
        SecretFrom::Env(variable) => from_environment(name, variable),
        SecretFrom::File(path) => from_file(name, path).await,
        SecretFrom::Sealed(text) => unseal_secret(name, text),
    }
}

/// Refuses a secret of another group. A definition that uses one is refused before it runs; this
/// check covers what only an attempt knows: a parameter of all groups, and a rule that was changed
/// meanwhile.
fn refuse_foreign_group(name: &str, access: &GroupAccess, group: &GroupCode) -> Result<(), String> {
    let resource = SharedResource::Secret(name.to_owned());
    ForbiddenUse::check(group, resource, access)
        .map_err(|found| format!("{found}; {}", found.hint_text()))
}

fn from_environment(name: &str, variable: &str) -> Result<SecretString, String> {
    std::env::var(variable).map(SecretString::from).map_err(|_| {
        format!(
            "secret {name}: the environment variable {variable} is not set; set it for the process \
             that runs Procession"
        )
    })
}

/// Reads the first line of a file, because other tools write secrets with a newline at the end.
async fn from_file(name: &str, path: &str) -> Result<SecretString, String> {
    let file = SecretFile::read_aside(Path::new(path)).await;
    Ok(file.map_err(|error| format!("secret {name}: {error}"))?.first_line())
}

async fn stored(
    db: &Db,
    name: &str,
    stop: &watch::Receiver<Option<StopReason>>,
) -> Result<SealedSecret, String> {
    let read = || async {
        let mut tx = db.begin_read().await?;
        store::secret::find_secret(&mut tx, name).await
    };
    let found = answered(stop, read)
        .await
        .map_err(|error| format!("secret {name} cannot be read: {error:#}"))?;
    found.ok_or_else(|| unknown_secret(name))
}

fn unseal_secret(name: &str, sealed: &str) -> Result<SecretString, String> {
    let opened = KeyRing::from_environment().and_then(|key| key.open_sealed(name, sealed));
    opened.map_err(|error| format!("secret {name}: {error}"))
}

/// Refuses a text that cannot be masked: it would appear in logs.
pub fn usable(name: &str, secret: &SecretString) -> Result<(), String> {
    if secret.expose_secret().trim().chars().count() < SHORTEST {
        return Err(format!(
            "secret {name} has fewer than {SHORTEST} characters, so it could not be masked in logs; \
             use a longer one"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_missing_is_said_with_its_place() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("pw");
        let path = file.display().to_string();
        let error = from_file("PW", &path).await.expect_err("no file");
        assert!(
            error.starts_with(&format!("secret PW: the file {path} cannot be read (")),
            "{error}"
        );
        std::fs::write(&file, "hunter22\nsecond line\n").expect("file");
        let read = from_file("PW", &path).await.expect("first line");
        assert_eq!(read.expose_secret(), "hunter22");
        let error = from_environment("PW", "PROCESSION_TEST_NOT_SET").expect_err("not set");
        assert!(
            error.starts_with(
                "secret PW: the environment variable PROCESSION_TEST_NOT_SET is not set"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_short_secret_is_refused() {
        for text in ["", "abc", "   abc   "] {
            let error = usable("PW", &SecretString::from(text)).expect_err(text);
            assert!(
                error.contains("fewer than 4 characters, so it could not be masked"),
                "{error}"
            );
        }
        assert_eq!(usable("PW", &SecretString::from("abcd")), Ok(()));
    }
}
