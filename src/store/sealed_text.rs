//! All texts sealed under the installation's key: the values of `sealed_secret` and
//! `executor_group`, which a new key re-seals, and `secrets: NAME: {sealed: TEXT}` in definitions,
//! their versions and batches, which only a changed definition replaces.

use crate::db::{Row, SqlValue};
use crate::domain::job::shared_definitions::{SecretFrom, SecretSource};
use crate::domain::xxl::xxl_run::AppName;
use crate::store::{Tx, packed, shared};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A row whose sealed text can be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealedRow {
    /// A stored secret, by name.
    StoredSecret(String),
    /// The token of an executor group.
    ExecutorToken(AppName),
    /// The second factor of a user, by the user's key.
    SecondFactor(i64),
}

/// A sealed text with its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedTextRow {
    pub row: SealedRow,
    pub sealed: String,
}

/// Where a definition with sealed texts is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionCopy {
    /// The present definition.
    Current,
    /// A version of a group.
    Version,
    /// A batch that has not ended.
    OpenBatch,
    /// A batch that has ended and may be rerun.
    EndedBatch,
}

/// A sealed text in a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinedSeal {
    /// Where it is stored.
    pub copy: DefinitionCopy,
    pub name: String,
    pub sealed: String,
}

/// The replaceable sealed texts, in a fixed order, so that two processes that replace them cannot
/// deadlock.
pub async fn replaceable(tx: &mut Tx) -> Result<Vec<SealedTextRow>> {
    let secrets = "SELECT secret_name, sealed FROM sealed_secret ORDER BY secret_name";
    let tokens = "SELECT app_name, token_sealed FROM executor_group ORDER BY app_name";
    let factors = "SELECT user_id, secret_sealed FROM user_second_factor ORDER BY user_id";
    let [secrets, tokens, factors] =
        tx.fetch_sets([secrets, tokens, factors]).await.context("read the sealed texts")?;
    let secret = |row: &Row| -> Result<SealedTextRow> {
        let name = SealedRow::StoredSecret(row.get_text("secret_name")?);
        Ok(SealedTextRow { row: name, sealed: row.get_text("sealed")? })
    };
    let token = |row: &Row| -> Result<SealedTextRow> {
        let app = AppName::parse(&row.get_text("app_name")?)?;
        Ok(SealedTextRow {
            row: SealedRow::ExecutorToken(app),
            sealed: row.get_text("token_sealed")?,
        })
    };
    let factor = |row: &Row| -> Result<SealedTextRow> {
        let user = SealedRow::SecondFactor(row.get_int("user_id")?);
        Ok(SealedTextRow { row: user, sealed: row.get_text("secret_sealed")? })
    };
    let all = secrets.iter().map(secret).chain(tokens.iter().map(token));
    all.chain(factors.iter().map(factor)).collect()
}

/// The sealed texts of stored secrets, by name.
pub async fn stored_secrets(tx: &mut Tx) -> Result<BTreeMap<String, String>> {
    let sql = "SELECT secret_name, sealed FROM sealed_secret ORDER BY secret_name";
    let rows = tx.fetch_all(sql, &[]).await.context("read the sealed texts")?;
    rows.iter().map(|row| Ok((row.get_text("secret_name")?, row.get_text("sealed")?))).collect()
}

/// Replaces a sealed text; returns whether it was still there. Who sealed the value and when does
/// not change, because the value does not.
pub async fn replace(tx: &mut Tx, old: &SealedTextRow, sealed: &str) -> Result<bool> {
    let (sql, key): (_, SqlValue) = match &old.row {
        SealedRow::StoredSecret(name) => (
            "UPDATE sealed_secret SET sealed = ? WHERE secret_name = ? AND sealed = ?",
            name.as_str().into(),
        ),
        SealedRow::ExecutorToken(app) => (
            "UPDATE executor_group SET token_sealed = ? WHERE app_name = ? AND token_sealed = ?",
            app.as_str().into(),
        ),
        SealedRow::SecondFactor(user) => (
            "UPDATE user_second_factor SET secret_sealed = ? WHERE user_id = ? AND secret_sealed = ?",
            (*user).into(),
        ),
    };
    let values = [sealed.into(), key, old.sealed.as_str().into()];
    Ok(tx.execute(sql, &values).await.context("replace a sealed text")? > 0)
}

/// The sealed texts of the present definition.
pub async fn of_definition(tx: &mut Tx) -> Result<Vec<DefinedSeal>> {
    let secrets = shared::declared_secrets(tx).await?;
    Ok(seals(DefinitionCopy::Current, secrets).collect())
}

/// A page of sealed texts, and where to continue.
#[derive(Debug, Default)]
pub struct SealPage {
    pub found: Vec<DefinedSeal>,
    /// The id of the last row; `None` when there is no more.
    pub last: Option<i64>,
}

/// Rows read at a time: each may hold a definition of megabytes.
const PAGE: u32 = 20;

/// The sealed texts of one page of versions, after the row `after`.
pub async fn of_versions(tx: &mut Tx, after: i64) -> Result<SealPage> {
    let sql = "SELECT version_id AS id, definition AS body FROM definition_version \
               WHERE version_id > ? AND (definition LIKE 'gzip:%' OR definition LIKE '%\"sealed\"%') \
               ORDER BY version_id LIMIT ?";
    let rows = tx.fetch_all(sql, &[after.into(), PAGE.into()]).await;
    seal_page(&rows.context("read definition_version")?, |_| Ok(DefinitionCopy::Version))
}

/// The sealed texts of one page of batches, after the row `after`.
pub async fn of_batches(tx: &mut Tx, after: i64) -> Result<SealPage> {
    let sql = "SELECT batch_id AS id, snapshot AS body, end_time FROM job_batch \
               WHERE batch_id > ? AND (snapshot LIKE 'gzip:%' OR snapshot LIKE '%\"sealed\"%') \
               ORDER BY batch_id LIMIT ?";
    let values: [SqlValue; 2] = [after.into(), PAGE.into()];
    let rows = tx.fetch_all(sql, &values).await.context("read job_batch")?;
    seal_page(&rows, |row| {
        Ok(match row.opt_time("end_time")? {
            Some(_) => DefinitionCopy::EndedBatch,
            None => DefinitionCopy::OpenBatch,
        })
    })
}

/// The secrets of a stored definition.
#[derive(Deserialize)]
struct SecretsOnly {
    #[serde(default)]
    secrets: Vec<SecretSource>,
}

fn seal_page(rows: &[Row], copy: impl Fn(&Row) -> Result<DefinitionCopy>) -> Result<SealPage> {
    let mut page = SealPage::default();
    for row in rows {
        let body: SecretsOnly =
            packed::unpack(&row.get_text("body")?).context("read a definition")?;
        page.found.extend(seals(copy(row)?, body.secrets));
        page.last = Some(row.get_int("id")?);
    }
    if rows.len() < PAGE as usize {
        page.last = None;
    }
    Ok(page)
}

fn seals(copy: DefinitionCopy, secrets: Vec<SecretSource>) -> impl Iterator<Item = DefinedSeal> {
    secrets.into_iter().filter_map(move |secret| match secret.from {
        SecretFrom::Sealed(sealed) => Some(DefinedSeal { copy, name: secret.name, sealed }),
        SecretFrom::Env(_) | SecretFrom::File(_) => None,
    })
}
