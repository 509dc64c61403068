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
pub mod failure;
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
pub mod run_facts;
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

/// Whether an error of this layer is transient: the database asks to retry, or the connection was
/// lost; then the whole transaction may be retried.
pub fn is_transient(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.downcast_ref::<db::Error>().is_some_and(db::Error::is_transient))
}

/// Whether an error of this layer comes from a working database that asks to retry: another session
/// holds a lock, or there is no space.
pub fn asks_again(error: &anyhow::Error) -> bool {
    let again = |e: &db::Error| matches!(e, db::Error::TryAgain(_) | db::Error::NoSpace(_));
    error.chain().any(|e| e.downcast_ref::<db::Error>().is_some_and(again))
}

/// What prevented a write, as far as the error tells; without addresses, names or values.
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

/// Who else can write while this process waits to write.
pub fn writers(db: &Db) -> Writers {
    match db.dialect() {
        db::Dialect::Sqlite => Writers::One,
        db::Dialect::Mysql | db::Dialect::Postgres => Writers::Many,
    }
}

/// Whether an error of this layer is a duplicate key.
pub fn is_taken(error: &anyhow::Error) -> bool {
    error.chain().any(|e| matches!(e.downcast_ref::<db::Error>(), Some(db::Error::Unique(_))))
}

/// Another process changed a row meanwhile: the batch in memory is out of date and must be read
/// again. Not a failure of the database.
#[derive(Debug, thiserror::Error)]
pub enum Stale {
    /// Rows of `job_queue` are not in the expected state.
    #[error(
        "{expected} rows of job_queue were to change, {found} did: another process changed them"
    )]
    Rows {
        /// Number of rows to change.
        expected: u64,
        /// Number of rows changed.
        found: u64,
    },
    /// The row of `job_batch` names another owner.
    #[error("the batch belongs to another process now")]
    Batch,
    /// An operator changed the batch or its rows.
    #[error("an operator has changed the batch meanwhile")]
    Revised,
}

/// The query for the name of the installation, for any session on this database; one row, one
/// value.
pub const INSTALLATION: &str = "SELECT value FROM procession_meta WHERE name = 'installation'";

/// Number of characters of the installation's name in locks and idempotency keys.
pub const INSTALLATION_CHARS: usize = 12;

/// The name of this installation as used in locks and idempotency keys; `None` before the first
/// process has joined.
pub async fn installation(tx: &mut Tx) -> anyhow::Result<Option<String>> {
    let sql = "SELECT value FROM procession_meta WHERE name = ?";
    let row = tx.fetch_optional(sql, &["installation".into()]).await?;
    let name = row.map(|row| row.get_text("value")).transpose()?;
    Ok(name.map(|name| name.chars().take(INSTALLATION_CHARS).collect()))
}

/// The condition on `group_code` and `job_code` for a filter, and its values.
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

/// A fact about this installation, stored by the first call; `fresh` is used when there is none.
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

/// Removes a fact, if it has this value; returns whether it had.
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

/// Stores a fact about this installation; `false` when it had this value before. Its row is locked
/// until the end of the transaction, so that only one of two processes gets `true`.
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
