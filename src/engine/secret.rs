//! Fetches secrets where the definition says they are, or from the sealed ones, just before a body.

use crate::domain::access_rules::{ForbiddenUse, SharedResource};
use crate::domain::group_access::GroupAccess;
use crate::domain::id::GroupCode;
use crate::domain::secret::SHORTEST;
use crate::domain::shared_definitions::{SecretFrom, SecretSource};
use crate::engine::db_retry::answered;
use crate::engine::secret_encryption::KeyRing;
use crate::handler::StopReason;
use crate::store::secret::SealedSecret;
use crate::store::{self, Db};
use secrecy::{ExposeSecret as _, SecretString};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::watch;

/// The secrets of these names; else the sentence for the user, which says what is missing and where it
/// was looked for.
pub(super) async fn fetch(
    db: &Db,
    sources: &[SecretSource],
    names: BTreeSet<String>,
    group: &GroupCode,
    stop: &watch::Receiver<Option<StopReason>>,
) -> Result<BTreeMap<String, SecretString>, String> {
    let mut found = BTreeMap::new();
    for name in names {
        let declared = sources.iter().find(|source| source.name == name);
        let secret = match declared {
            Some(source) => {
                refuse_foreign_group(&name, &source.access, group)?;
                match &source.from {
                    SecretFrom::Env(variable) => from_environment(&name, variable)?,
                    SecretFrom::File(path) => from_file(&name, path).await?,
                    SecretFrom::Sealed(text) => open(&name, text)?,
                }
            }
            None => {
                let found = stored(db, &name, stop).await?;
                refuse_foreign_group(&name, &found.access, group)?;
                open(&name, &found.sealed)?
            }
        };
        usable(&name, &secret)?;
        found.insert(name, secret);
    }
    Ok(found)
}

/// A definition that uses a secret of other groups is refused before it runs. This holds for the ways
/// that only an attempt knows: a parameter of all groups, and a rule that was changed meanwhile.
fn refuse_foreign_group(name: &str, access: &GroupAccess, group: &GroupCode) -> Result<(), String> {
    let resource = SharedResource::Secret(name.to_owned());
    ForbiddenUse::check(group, resource, access)
        .map_err(|found| format!("{found}; {}", found.fix()))
}

fn from_environment(name: &str, variable: &str) -> Result<SecretString, String> {
    std::env::var(variable).map(SecretString::from).map_err(|_| {
        format!(
            "secret {name}: the environment variable {variable} is not set; set it for the process \
             that runs Procession"
        )
    })
}

/// The first line of a file, as other tools write secrets with a newline at the end.
async fn from_file(name: &str, path: &str) -> Result<SecretString, String> {
    let text = tokio::fs::read_to_string(path).await.map(SecretString::from);
    let text = text.map_err(|error| {
        format!(
            "secret {name}: the file {path} cannot be read ({error}); mend the path or its rights"
        )
    })?;
    let line = text.expose_secret().lines().next().unwrap_or_default();
    Ok(SecretString::from(line))
}

async fn stored(
    db: &Db,
    name: &str,
    stop: &watch::Receiver<Option<StopReason>>,
) -> Result<SealedSecret, String> {
    let read = || async {
        let mut tx = db.read().await?;
        store::secret::find(&mut tx, name).await
    };
    let found = answered(stop, read)
        .await
        .map_err(|error| format!("secret {name} cannot be read: {error:#}"))?;
    found.ok_or_else(|| {
        format!(
            "secret {name} is not known; define it under secrets: in the definition, or store it: \
             procession secret set {name}"
        )
    })
}

fn open(name: &str, sealed: &str) -> Result<SecretString, String> {
    let opened = KeyRing::from_environment().and_then(|key| key.open(name, sealed));
    opened.map_err(|error| format!("secret {name}: {error}"))
}

/// Whether a text can be a secret: one that cannot be masked would stand in logs.
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
