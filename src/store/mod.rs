//! store: remembers. In: a transaction and domain values. Out: domain values.
//! May name: domain, db. Never: the clock, a task, a decision.
//! Invariant: a status changes only by compare-and-set, with its log row in the same transaction.
//! One file per table family of the spec.

pub mod action;
pub mod api_token;
pub mod approval;
pub mod audit;
pub mod audit_seal;
pub mod backfill;
pub mod batch;
pub mod batch_end_schedules;
pub mod breach;
pub mod calendar;
pub mod change_request;
pub mod changed;
pub mod claim;
mod columns;
mod dependency;
pub mod epoch;
pub mod event_key;
pub mod executor_group;
pub mod executor_registry;
pub mod executor_run;
pub mod fired;
pub mod firing;
pub mod glance;
mod group_access;
pub mod hint;
pub mod history;
pub mod hosted;
pub mod idempotency_key;
pub mod job;
pub mod job_list;
pub mod lock;
pub mod log;
pub mod login_attempt;
pub mod long_computation;
pub mod metadata_gap;
pub mod next_run;
pub mod node;
pub mod oidc_login;
pub mod outbox;
pub mod output_value;
pub mod outside;
mod packed;
pub mod queue;
pub mod retention;
pub mod run_mode;
pub mod scheduler_tables;
pub mod sealed_text;
pub mod search;
pub mod second_factor;
pub mod secret;
pub mod seen;
pub mod shared;
pub mod trigger;
pub mod user;
pub mod user_session;
pub mod version;
pub mod within;
pub mod xxl_admin;
pub mod xxl_run;

pub use crate::db::single_round_trip::{CountedStatement, Together};
pub use crate::db::{Counts, Db, Dialect, Tx};

use crate::db::{self, SqlValue};
use crate::domain::cluster::lease::Writers;
use crate::domain::job::job_key::JobFilter;

/// Whether an error of this floor came from a database that asks to try again, or from a lost
/// connection; then the whole transaction may be tried anew.
pub fn is_transient(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.downcast_ref::<db::Error>().is_some_and(db::Error::is_transient))
}

/// Whether an error of this floor came from a database that works and asks to try again: another session had what was
/// wanted, or there is no space.
pub fn asks_again(error: &anyhow::Error) -> bool {
    let again = |e: &db::Error| matches!(e, db::Error::TryAgain(_) | db::Error::NoSpace(_));
    error.chain().any(|e| e.downcast_ref::<db::Error>().is_some_and(again))
}

/// What kept something from being written, as far as the answer tells; no address, name or value is in it.
pub fn obstacle(error: &anyhow::Error) -> &'static str {
    match error.chain().find_map(|e| e.downcast_ref::<db::Error>()) {
        Some(db::Error::NoSpace(_)) => "the database has no space left",
        Some(db::Error::TryAgain(_)) => {
            "the database is locked by another session, or asks to wait"
        }
        Some(db::Error::Lost(_)) => "the connection was lost, or there was no answer",
        _ => "the database refuses it; the log of this process says why",
    }
}

/// Who else can write while one waits for its turn to.
pub fn writers(db: &Db) -> Writers {
    match db.dialect() {
        db::Dialect::Sqlite => Writers::One,
        db::Dialect::Mysql | db::Dialect::Postgres => Writers::Many,
    }
}

/// Whether an error of this floor is a taken unique key.
pub fn is_taken(error: &anyhow::Error) -> bool {
    error.chain().any(|e| matches!(e.downcast_ref::<db::Error>(), Some(db::Error::Unique(_))))
}

/// Someone else changed a row meanwhile: what this process knows of the batch is stale and has to
/// be read anew. Not a failure of the database.
#[derive(Debug, thiserror::Error)]
pub enum Stale {
    /// Rows of `job_queue` are not in the state they were known in.
    #[error(
        "{expected} rows of job_queue were to change, {found} did: another process changed them"
    )]
    Rows {
        /// How many were to change.
        expected: u64,
        /// How many did.
        found: u64,
    },
    /// The row of `job_batch` names another owner.
    #[error("the batch belongs to another process now")]
    Batch,
    /// An operator changed the batch or its rows.
    #[error("an operator has changed the batch meanwhile")]
    Revised,
}

/// Where any session on this database finds the name of its installation; one row, one value.
pub const INSTALLATION: &str = "SELECT value FROM procession_meta WHERE name = 'installation'";

/// Characters of the installation's name that locks and idempotency keys have.
pub const INSTALLATION_CHARS: usize = 12;

/// The name of this installation as locks and idempotency keys have it; none before the first
/// process has joined.
pub async fn installation(tx: &mut Tx) -> anyhow::Result<Option<String>> {
    let sql = "SELECT value FROM procession_meta WHERE name = ?";
    let row = tx.fetch_optional(sql, &["installation".into()]).await?;
    let name = row.map(|row| row.get_text("value")).transpose()?;
    Ok(name.map(|name| name.chars().take(INSTALLATION_CHARS).collect()))
}

/// The condition on rows with `group_code` and `job_code` that a filter means, and its values.
pub(crate) fn job_condition(filter: &JobFilter) -> (String, Vec<SqlValue>) {
    let (mut texts, mut values): (Vec<&str>, Vec<SqlValue>) = (Vec::new(), Vec::new());
    if let Some(code) = &filter.code {
        texts.push("job_code = ?");
        values.push(code.as_str().into());
    }
    for key in &filter.keys {
        texts.push("job_code = ? AND group_code = ?");
        values.extend([key.code.as_str().into(), key.group.as_str().into()]);
    }
    (format!("({})", texts.join(" OR ")), values)
}

/// A fact about this installation, kept from the first call on; `fresh` is used when there is none.
pub async fn meta_or_insert(tx: &mut Tx, name: &str, fresh: &str) -> anyhow::Result<String> {
    let read = "SELECT value FROM procession_meta WHERE name = ?";
    if let Some(row) = tx.fetch_optional(read, &[name.into()]).await? {
        return Ok(row.get_text("value")?);
    }
    tx.execute(
        "INSERT INTO procession_meta (name, value) VALUES (?, ?)",
        &[name.into(), fresh.into()],
    )
    .await?;
    Ok(fresh.to_owned())
}

/// Forgets a fact, if it is still this one; whether it was.
pub async fn meta_taken(tx: &mut Tx, name: &str, value: &str) -> anyhow::Result<bool> {
    let sql = "DELETE FROM procession_meta WHERE name = ? AND value = ?";
    Ok(tx.execute(sql, &[name.into(), value.into()]).await? > 0)
}

/// A fact about this installation, if it is known.
pub async fn find_meta(tx: &mut Tx, name: &str) -> anyhow::Result<Option<String>> {
    let sql = "SELECT value FROM procession_meta WHERE name = ?";
    let row = tx.fetch_optional(sql, &[name.into()]).await?;
    Ok(row.map(|row| row.get_text("value")).transpose()?)
}

/// Writes a fact about this installation; `false` when it said the same before. Its row is locked to the
/// end of the transaction, so that of two processes one is told that it is new.
pub async fn meta_is_new(tx: &mut Tx, name: &str, value: &str) -> anyhow::Result<bool> {
    let lock = tx.dialect().for_update();
    let sql = format!("SELECT value FROM procession_meta WHERE name = ?{lock}");
    let row = tx.fetch_optional(&sql, &[name.into()]).await?;
    if row.map(|row| row.get_text("value")).transpose()?.as_deref() == Some(value) {
        return Ok(false);
    }
    let row = vec![name.into(), value.into()];
    tx.upsert_many("procession_meta", "name", &["name", "value"], [row]).await?;
    Ok(true)
}
