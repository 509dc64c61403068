//! Re-seals all secrets under the current key, and finds those that still need a previous one.
//!
//! All rows are re-sealed in one transaction. A process that is killed in the middle has changed
//! nothing, and the old texts still open with the previous key.

use crate::domain::time::Millis;
use crate::engine::secrets::encryption::{KeyRing, SealError, SealedUnder, second_factor_name};
use crate::engine::secrets::executor_token;
use crate::store::audit::{self, Operator};
use crate::store::sealed_text::{
    self, DefinedSeal, DefinitionCopy, SealPage, SealedRow, SealedTextRow,
};
use crate::store::{Db, Tx};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::collections::BTreeMap;

/// The result of re-sealing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Stored secrets that were re-sealed under the current key.
    pub secrets: u64,
    /// Tokens of executor groups that were re-sealed.
    pub executor_tokens: u64,
    /// Second factors of users that were re-sealed.
    pub second_factors: u64,
    /// Rows that were under the current key before.
    pub current: u64,
    /// Sealed texts that open with none of the given keys, as `stored secret NAME`.
    pub not_opened: Vec<String>,
}

/// Number of sealed texts of one kind, by the key they open with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUse {
    /// Under the current key.
    pub current: u64,
    /// Under a previous key.
    pub previous: u64,
    /// Under none of the given keys.
    pub unknown: u64,
}

impl KeyUse {
    fn count(&mut self, under: SealedUnder) {
        match under {
            SealedUnder::CurrentKey => self.current += 1,
            SealedUnder::PreviousKey => self.previous += 1,
            SealedUnder::UnknownKey => self.unknown += 1,
        }
    }
}

/// A secret of the present definition that is sealed with a previous key, with its replacement text
/// for the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacementText {
    pub name: String,
    /// The secret, sealed with the current key.
    pub sealed: String,
}

/// Which keys are in use where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySurvey {
    /// Stored secrets.
    pub stored_secrets: KeyUse,
    /// Tokens of executor groups.
    pub executor_tokens: KeyUse,
    /// Second factors of users.
    pub second_factors: KeyUse,
    /// Sealed texts of definitions.
    pub definitions: BTreeMap<DefinitionCopy, KeyUse>,
    /// Replacement texts for the files of the present definition.
    pub replacements: Vec<ReplacementText>,
}

impl KeySurvey {
    fn key_uses(&self) -> impl Iterator<Item = &KeyUse> {
        [&self.stored_secrets, &self.executor_tokens, &self.second_factors]
            .into_iter()
            .chain(self.definitions.values())
    }

    /// Whether any text needs a previous key.
    pub fn needs_previous_key(&self) -> bool {
        self.key_uses().any(|each| each.previous > 0)
    }

    /// Number of sealed texts that open with none of the given keys.
    pub fn unknown(&self) -> u64 {
        self.key_uses().map(|each| each.unknown).sum()
    }
}

/// The name that a text is sealed under, and its name in messages.
fn names(row: &SealedRow) -> (String, String) {
    match row {
        SealedRow::StoredSecret(name) => (name.clone(), format!("stored secret {name}")),
        SealedRow::ExecutorToken(app) => {
            (executor_token::named(app), format!("token of executor group {app}"))
        }
        SealedRow::SecondFactor(user) => {
            (second_factor_name(*user), format!("second factor of the user with the key {user}"))
        }
    }
}

/// Re-seals every row in one transaction.
pub async fn reseal(
    db: &Db,
    keys: &KeyRing,
    by: &Operator,
    reason: Option<String>,
    now: Millis,
) -> Result<Resealed> {
    let mut tx = db.begin().await?;
    let mut done = Resealed::default();
    for old in sealed_text::replaceable(&mut tx).await? {
        reseal_row(&mut tx, keys, &old, &mut done).await?;
        failpoint!("rekey.row");
    }
    if done.secrets + done.executor_tokens + done.second_factors > 0 {
        let detail = json!({
            "secrets": done.secrets, "executor_tokens": done.executor_tokens,
            "second_factors": done.second_factors,
            "not_opened": done.not_opened,
        });
        let entry = audit::AuditEntry {
            action: "secret rekey".to_owned(),
            group: None,
            batch: None,
            job: None,
            detail: Some(detail),
            reason,
        };
        audit::record(&mut tx, by, &[entry], now).await?;
    }
    tx.commit().await.context("seal the secrets again")?;
    Ok(done)
}

async fn reseal_row(
    tx: &mut Tx,
    keys: &KeyRing,
    old: &SealedTextRow,
    done: &mut Resealed,
) -> Result<()> {
    let (name, called) = names(&old.row);
    match keys.sealed_under(&name, &old.sealed) {
        SealedUnder::CurrentKey => done.current += 1,
        SealedUnder::UnknownKey => done.not_opened.push(called),
        SealedUnder::PreviousKey => {
            let sealed = seal_again(keys, &name, &old.sealed)?;
            // A value that was set meanwhile is sealed with the current key of its own process.
            if sealed_text::replace(tx, old, &sealed).await? {
                match old.row {
                    SealedRow::StoredSecret(_) => done.secrets += 1,
                    SealedRow::ExecutorToken(_) => done.executor_tokens += 1,
                    SealedRow::SecondFactor(_) => done.second_factors += 1,
                }
            }
        }
    }
    Ok(())
}

fn seal_again(keys: &KeyRing, name: &str, sealed: &str) -> Result<String, SealError> {
    keys.open_sealed(name, sealed).and_then(|text| keys.seal_text(name, &text))
}

/// Reads which keys are in use, everywhere.
pub async fn survey(db: &Db, keys: &KeyRing) -> Result<KeySurvey> {
    let mut survey = KeySurvey::default();
    let mut tx = db.begin_read().await?;
    for stored in sealed_text::replaceable(&mut tx).await? {
        let under = keys.sealed_under(&names(&stored.row).0, &stored.sealed);
        match stored.row {
            SealedRow::StoredSecret(_) => survey.stored_secrets.count(under),
            SealedRow::ExecutorToken(_) => survey.executor_tokens.count(under),
            SealedRow::SecondFactor(_) => survey.second_factors.count(under),
        }
    }
    for seal in sealed_text::of_definition(&mut tx).await? {
        if count(&mut survey, keys, &seal) == SealedUnder::PreviousKey {
            let sealed = seal_again(keys, &seal.name, &seal.sealed)?;
            survey.replacements.push(ReplacementText { name: seal.name, sealed });
        }
    }
    let mut after = Some(0);
    while let Some(id) = after {
        let SealPage { found, last } = sealed_text::of_versions(&mut tx, id).await?;
        found.iter().for_each(|seal| {
            count(&mut survey, keys, seal);
        });
        after = last;
    }
    let mut after = Some(0);
    while let Some(id) = after {
        let SealPage { found, last } = sealed_text::of_batches(&mut tx, id).await?;
        found.iter().for_each(|seal| {
            count(&mut survey, keys, seal);
        });
        after = last;
    }
    Ok(survey)
}

fn count(survey: &mut KeySurvey, keys: &KeyRing, seal: &DefinedSeal) -> SealedUnder {
    let under = keys.sealed_under(&seal.name, &seal.sealed);
    survey.definitions.entry(seal.copy).or_default().count(under);
    under
}
