//! `secret key | set | seal | rekey | list | check | remove`. No verb shows a secret, and none
//! takes one as an argument: arguments appear in process lists and in shell histories.

mod rekey;

use crate::app::secrets::{AskStores, SecretListing, SecretState};
use crate::app::{self, App, EmptyDatabase};
use crate::cli::group_access::AccessArgs;
use crate::cli::{BadInput, Global, VerbResult, batch, out};
use crate::domain::access::group_access::GroupAccess;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::attempt::secret_reader::usable;
use crate::engine::operate::operator_actions::operator_here;
use crate::engine::secrets::encryption::{self, KeyRing};
use crate::store::audit::AuditEntry;
use crate::store::secret::SealedSecret;
use crate::store::{self, audit};
use crate::view::secret::SecretDocument;
use anyhow::{Context as _, Result};
use clap::Subcommand;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Verbs of `secret`.
#[derive(Subcommand)]
pub(super) enum SecretVerb {
    /// Make a key for sealing; keep it in PROCESSION_SECRET_KEY or in a file that
    /// PROCESSION_SECRET_KEY_FILE names
    Key {
        /// Write it to this file, which its owner alone may read and which must not be there, and print nothing of it
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Seal a secret and store it; it is read from the terminal or from standard input
    Set {
        /// Name, as in ${secret.NAME}
        name: String,
        #[command(flatten)]
        access: AccessArgs,
        /// Why; stored in the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Say which groups may use a stored secret; its value stays
    Grant {
        /// Name
        name: String,
        #[command(flatten)]
        access: AccessArgs,
        /// Why; stored in the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Seal a secret and print the sealed text, for `secrets: NAME: {sealed: TEXT}`
    Seal {
        /// Name, as in ${secret.NAME}
        name: String,
    },
    /// Seal all that is stored again under the current key, and say whether a previous key is still needed
    Rekey {
        /// Change nothing; exit code 1 when a previous key is still needed
        #[arg(long)]
        check: bool,
        /// Why; stored in the audit log
        #[arg(long, value_name = "TEXT", conflicts_with = "check")]
        reason: Option<String>,
    },
    /// All secrets: where each comes from, for which groups, and whether this process can read it
    List,
    /// Read secrets where they are and say whether that works; nothing of a value is shown
    Check {
        /// Names; without any, all
        names: Vec<String>,
    },
    /// Remove a stored secret
    Remove {
        /// Name
        name: String,
        /// Why; stored in the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

pub(super) async fn secret(global: &Global, verb: SecretVerb) -> Result<VerbResult> {
    // A future until it is awaited: two of the verbs need no database.
    let app = global.open_app(EmptyDatabase::Refuse);
    match verb {
        SecretVerb::Key { out: file } => {
            let key = encryption::new_key().map_err(|e| BadInput(e.to_string()))?;
            match file {
                None => out::print_line(key.expose_secret()),
                Some(file) => write_key(&file, &key)?,
            }
        }
        SecretVerb::Seal { name } => out::print_line(&sealed(&name)?),
        SecretVerb::Set { name, access, reason } => {
            let access = access.access()?;
            refuse_configured(global, &name)?;
            let new = NewSecret { sealed: sealed(&name)?, access };
            let access = store(&app.await?, &name, new, reason).await?;
            out::eprint_line(&format!(
                "secret {name} is stored, sealed; for {}",
                access.describe()
            ));
            if access.is_for_every_group() {
                out::eprint_line("name the groups that may use it with --owner-group and --group");
            }
        }
        SecretVerb::Grant { name, access, reason } => {
            let Some(access) = access.access()? else {
                let message = "say who may use it: --owner-group, --group or --every-group";
                return Err(BadInput(message.to_owned()).into());
            };
            grant(&app.await?, &name, &access, reason).await?;
            out::eprint_line(&format!("secret {name} is for {}", access.describe()));
        }
        SecretVerb::Rekey { check, reason } => {
            return rekey::rekey(global, &app.await?, check, reason).await;
        }
        SecretVerb::List => list_secrets(global, &app.await?).await?,
        SecretVerb::Check { names } => return check(global, &app.await?, &names).await,
        SecretVerb::Remove { name, reason } => {
            remove(&app.await?, &name, reason).await?;
            out::eprint_line(&format!("secret {name} is removed"));
        }
    }
    Ok(VerbResult::Well)
}

/// Writes a key to a new file of mode 0600: an existing one may be the key under which everything
/// is sealed.
fn write_key(path: &Path, key: &SecretString) -> Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => BadInput(format!(
            "--out {}: there is a file already, and it is left as it is; name another one, or move that one away if \
             nothing is sealed under its key",
            path.display()
        )),
        _ => BadInput(format!("--out {}: {error}", path.display())),
    })?;
    let written = writeln!(file, "{}", key.expose_secret()).and_then(|()| file.sync_all());
    written.with_context(|| format!("write {}", path.display()))?;
    out::eprint_line(&format!(
        "the key is in {}, for its owner alone; name it in PROCESSION_SECRET_KEY_FILE, and keep a copy elsewhere: without \
         it nothing that is sealed can be read",
        path.display()
    ));
    Ok(())
}

fn sealed(name: &str) -> Result<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !name.chars().all(fits) || name.len() > 100 {
        let message = "use 1 to 100 ASCII letters, digits and '_', the first no digit";
        return Err(
            BadInput(format!("secret {name:?} has a name that cannot be used; {message}")).into()
        );
    }
    // Before the user types a secret for nothing.
    let key = KeyRing::from_environment().map_err(|e| BadInput(e.to_string()))?;
    let text = read_secret(name)?;
    usable(name, &text).map_err(BadInput)?;
    Ok(key.seal_text(name, &text).map_err(|e| BadInput(e.to_string()))?)
}

/// From the terminal, hidden and twice; or the first line of standard input.
fn read_secret(name: &str) -> Result<SecretString> {
    if std::io::stdin().is_terminal() {
        let ask = |words: &str| -> Result<SecretString> {
            out::eprint_line(&format!("{words} {name}:"));
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

/// A secret to store.
struct NewSecret {
    sealed: String,
    /// Which groups may use it; `None` leaves that unchanged.
    access: Option<GroupAccess>,
}

async fn store(
    app: &App,
    name: &str,
    new: NewSecret,
    reason: Option<String>,
) -> Result<GroupAccess> {
    let NewSecret { sealed, access } = new;
    let now = batch::server_now(app).await?;
    let mut tx = app.db.begin().await?;
    let access = store::secret::access_to_store(&mut tx, name, access).await?;
    let secret = SealedSecret { sealed, access };
    store::secret::put_secret(&mut tx, name, &secret, &app::whoami(), now).await?;
    let detail = json!({"secret": name, "for_groups": secret.access.describe()});
    record(&mut tx, "secret set", detail, reason, now).await?;
    tx.commit().await.context("store the secret")?;
    Ok(secret.access)
}

/// The same audit record as the API writes.
async fn record(
    tx: &mut store::Tx,
    action: &str,
    detail: serde_json::Value,
    reason: Option<String>,
    now: Millis,
) -> Result<()> {
    let entry = AuditEntry {
        action: action.to_owned(),
        group: None,
        batch: None,
        job: None,
        detail: Some(detail),
        reason: reason.map(|text| storable(text.as_bytes(), MESSAGE_MAX)),
    };
    audit::record(tx, &operator_here(&app::whoami()), &[entry], now).await
}

async fn grant(app: &App, name: &str, access: &GroupAccess, reason: Option<String>) -> Result<()> {
    let now = batch::server_now(app).await?;
    let mut tx = app.db.begin().await?;
    let Some(stored) = store::secret::find_secret(&mut tx, name).await? else {
        return Err(not_stored(name));
    };
    store::secret::set_access(&mut tx, name, access, now).await?;
    let (now_for, before) = (access.describe(), stored.access.describe());
    let detail = json!({"secret": name, "for_groups": now_for, "before": before});
    record(&mut tx, "secret grant", detail, reason, now).await?;
    tx.commit().await.context("say who may use the secret")
}

fn not_stored(name: &str) -> anyhow::Error {
    let message =
        format!("there is no stored secret {name}; procession secret list shows the names");
    BadInput(message).into()
}

async fn remove(app: &App, name: &str, reason: Option<String>) -> Result<()> {
    let now = batch::server_now(app).await?;
    let mut tx = app.db.begin().await?;
    if !store::secret::remove(&mut tx, name).await? {
        return Err(not_stored(name));
    }
    record(&mut tx, "secret remove", json!({"secret": name}), reason, now).await?;
    tx.commit().await.context("remove the secret")
}

/// A secret in the settings is read from its store, so a stored one of this name would have no
/// effect.
fn refuse_configured(global: &Global, name: &str) -> Result<()> {
    let stores = global.config()?.secret_stores()?;
    match stores.find_secret(name) {
        None => Ok(()),
        Some(secret) => Err(BadInput(format!(
            "secret {name} comes from {} (procession.toml); a stored one would not be used",
            stores.describe(secret)
        ))
        .into()),
    }
}

async fn list_secrets(global: &Global, app: &App) -> Result<()> {
    let all = app.secrets(None, AskStores::No).await?;
    print_secrets(global, &all)?;
    show_faults(global, &all);
    Ok(())
}

async fn check(global: &Global, app: &App, names: &[String]) -> Result<VerbResult> {
    let mut all = Vec::new();
    match names {
        [] => all = app.secrets(None, AskStores::Yes).await?,
        names => {
            for name in names {
                let found = app.secrets(Some(name), AskStores::Yes).await?;
                if found.is_empty() {
                    let words = format!(
                        "there is no secret {name}; procession secret list shows the names"
                    );
                    return Err(BadInput(words).into());
                }
                all.extend(found);
            }
        }
    }
    print_secrets(global, &all)?;
    show_faults(global, &all);
    let is_bad = |listing: &SecretListing| listing.state.fault().is_some();
    Ok(if all.iter().any(is_bad) { VerbResult::Unwell } else { VerbResult::Well })
}

/// Prints the faults of secrets, one sentence each; the table has no room for them.
fn show_faults(global: &Global, all: &[SecretListing]) {
    for listing in all.iter().filter(|_| !global.json) {
        if let Some(why) = listing.state.fault() {
            out::eprint_line(&format!(
                "secret {}: {}",
                listing.name,
                without_name(&listing.name, why)
            ));
        }
        if let Some(warning) = &listing.warning {
            out::eprint_line(&format!("secret {}: {warning}", listing.name));
        }
    }
}

/// A sentence without the name that it may begin with.
fn without_name<'t>(name: &str, text: &'t str) -> &'t str {
    text.strip_prefix(&format!("secret {name}: ")).unwrap_or(text)
}

fn print_secrets(global: &Global, all: &[SecretListing]) -> Result<()> {
    if global.json {
        let documents: Vec<_> = all.iter().map(SecretDocument::from).collect();
        return out::print_json(&json!(documents));
    }
    let row = |s: &SecretListing| {
        let state = match &s.state {
            SecretState::Ready => "ready".to_owned(),
            SecretState::PreviousKey => "ready, under a previous key".to_owned(),
            SecretState::NotAsked => "not asked (secret check)".to_owned(),
            SecretState::Overridden => "not used: another one goes before it".to_owned(),
            SecretState::Fault(_) => "cannot be read".to_owned(),
            SecretState::Away(_) => "its store is away".to_owned(),
        };
        let state = match &s.remark {
            Some(remark) => format!("{state}, {remark}"),
            None => state,
        };
        let by = s.sealed_by.clone().unwrap_or_default();
        let at = s.sealed_at.map(out::local_time).unwrap_or_default();
        vec![s.name.clone(), s.place.clone(), s.access.describe(), state, by, at]
    };
    out::print_line(&out::table(
        &["SECRET", "FROM", "FOR GROUPS", "STATE", "SEALED BY", "AT"],
        all.iter().map(row).collect(),
    ));
    Ok(())
}
