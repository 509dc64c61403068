//! `secret key | set | seal | list | remove`. No verb shows a secret, and none takes one as an argument:
//! arguments stand in process lists and in the history of shells.

use crate::app::{self, App, EmptyDatabase};
use crate::cli::{BadInput, Ended, Global, batch, out};
use crate::engine::seal::{self, Key};
use crate::engine::secret::usable;
use crate::store;
use crate::view::secret::Named;
use anyhow::{Context as _, Result};
use clap::Subcommand;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};

/// Verbs of `secret`.
#[derive(Subcommand)]
pub(super) enum SecretVerb {
    /// Make a key for sealing; keep it in PROCESSION_SECRET_KEY or in a file that
    /// PROCESSION_SECRET_KEY_FILE names
    Key,
    /// Seal a secret and store it; it is read from the terminal or from standard input
    Set {
        /// Name, as in ${secret.NAME}
        name: String,
    },
    /// Seal a secret and print the sealed text, for `secrets: NAME: {sealed: TEXT}`
    Seal {
        /// Name, as in ${secret.NAME}
        name: String,
    },
    /// The names of the stored secrets
    List,
    /// Remove a stored secret
    Remove {
        /// Name
        name: String,
    },
}

pub(super) async fn secret(global: &Global, verb: SecretVerb) -> Result<Ended> {
    // A future until it is awaited: two of the verbs need no database.
    let app = global.open(EmptyDatabase::Refuse);
    match verb {
        SecretVerb::Key => {
            let key = seal::new_key().map_err(|e| BadInput(e.to_string()))?;
            out::line(key.expose_secret());
        }
        SecretVerb::Seal { name } => out::line(&sealed(&name)?),
        SecretVerb::Set { name } => {
            let sealed = sealed(&name)?;
            store(&app.await?, &name, &sealed).await?;
            out::note(&format!("secret {name} is stored, sealed"));
        }
        SecretVerb::List => list(global, &app.await?).await?,
        SecretVerb::Remove { name } => {
            remove(&app.await?, &name).await?;
            out::note(&format!("secret {name} is removed"));
        }
    }
    Ok(Ended::Well)
}

fn sealed(name: &str) -> Result<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(fits) || name.len() > 100 {
        let said = "use 1 to 100 ASCII letters, digits and '_', the first no digit";
        return Err(
            BadInput(format!("secret {name:?} has a name that cannot be used; {said}")).into()
        );
    }
    // Before anybody types a secret for nothing.
    let key = Key::from_environment().map_err(|e| BadInput(e.to_string()))?;
    let text = read(name)?;
    usable(name, &text).map_err(BadInput)?;
    Ok(key.seal(name, &text).map_err(|e| BadInput(e.to_string()))?)
}

/// From the terminal, unseen and twice; or the first line of standard input.
fn read(name: &str) -> Result<SecretString> {
    if std::io::stdin().is_terminal() {
        let ask = |words: &str| -> Result<SecretString> {
            out::note(&format!("{words} {name}:"));
            let typed = console::Term::stderr().read_secure_line();
            Ok(SecretString::from(typed.context("read the secret from the terminal")?))
        };
        let (first, second) = (ask("secret")?, ask("once more")?);
        if first.expose_secret() != second.expose_secret() {
            return Err(BadInput("the two are not the same; nothing was stored".to_owned()).into());
        }
        return Ok(first);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("read the secret from standard input")?;
    Ok(SecretString::from(line.trim_end_matches(['\r', '\n'])))
}

async fn store(app: &App, name: &str, sealed: &str) -> Result<()> {
    let now = batch::server_now(app).await?;
    let mut tx = app.db.begin().await?;
    store::secret::put(&mut tx, name, sealed, &app::whoami(), now).await?;
    tx.commit().await.context("store the secret")
}

async fn remove(app: &App, name: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    if !store::secret::remove(&mut tx, name).await? {
        let said =
            format!("there is no stored secret {name}; procession secret list shows the names");
        return Err(BadInput(said).into());
    }
    tx.commit().await.context("remove the secret")
}

async fn list(global: &Global, app: &App) -> Result<()> {
    let mut tx = app.db.read().await?;
    let all = store::secret::list(&mut tx).await?;
    if global.json {
        let documents: Vec<_> = all.iter().map(Named::from).collect();
        return out::json(&json!(documents));
    }
    let rows = all.iter().map(|s| vec![s.name.clone(), s.by.clone(), s.at.to_string()]).collect();
    out::line(&out::table(&["SECRET", "SEALED BY", "AT"], rows));
    Ok(())
}
