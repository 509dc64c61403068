//! The rows of `procession_ledger` in a data source: which bodies took effect, by idempotency key.

use crate::db::fault::SessionError;
use crate::db::ledger::TABLE;
use crate::db::results::{Results, Rows};
use crate::db::session::Session;
use crate::domain::job::outcome::JobOutputs;
use crate::domain::time::Millis;
use crate::handler::AttemptTask;

/// What is stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LedgerLookup {
    /// No attempt has taken effect.
    Nothing,
    /// An attempt opened it and committed before it was done.
    Open {
        /// The attempt that opened it.
        attempt: u32,
    },
    /// An attempt took effect.
    Done {
        /// The attempt that took effect.
        attempt: u32,
        /// The outputs stored with it.
        outputs: JobOutputs,
    },
}

/// The ledger of a session, as found before the body.
pub(crate) struct LedgerEntry<'a> {
    task: &'a AttemptTask,
    /// The table's SQL name: with its schema where a body may change the search path.
    table: String,
}

impl<'a> LedgerEntry<'a> {
    /// Finds the ledger and reads the task's key in one round trip.
    pub(crate) async fn find_entry(
        session: &mut Session,
        task: &'a AttemptTask,
    ) -> Result<(Self, LedgerLookup), SessionError> {
        let mut book = Self { task, table: TABLE.to_owned() };
        let Some(sql) = session.database().ledger_entry_query() else {
            let found = book.read_entry(session).await?;
            return Ok((book, found));
        };
        let mut answer = Results::uncut(1);
        session.run_internal(sql, &[task.idem_key.as_str().into()], &mut answer).await?;
        let row = answer.sets.first();
        // In SQL texts of this program a `?` is a placeholder, also within quotes.
        let schema = row.and_then(|row| row.first(3)).filter(|name| !name.contains('?'));
        if let Some(schema) = schema {
            book.table = format!("{}.{TABLE}", session.database().quote_name(schema));
        }
        Ok((book, row.map_or(LedgerLookup::Nothing, found)))
    }

    /// Reads what is stored under the task's key.
    pub(crate) async fn read_entry(
        &self,
        session: &mut Session,
    ) -> Result<LedgerLookup, SessionError> {
        let sql = format!("SELECT state, attempt, outputs FROM {} WHERE idem_key = ?", self.table);
        let mut answer = Results::uncut(1);
        session.run_internal(&sql, &[self.task.idem_key.as_str().into()], &mut answer).await?;
        Ok(answer.sets.first().map_or(LedgerLookup::Nothing, found))
    }

    /// Stores that an attempt has begun; visible to others only if something commits before it is
    /// done.
    pub(crate) async fn open_entry(
        &self,
        session: &mut Session,
        now: Millis,
    ) -> Result<(), SessionError> {
        let sql = format!(
            "INSERT INTO {} (idem_key, state, batch_no, job_code, attempt, opened_at) \
             VALUES (?, ?, ?, ?, ?, ?)",
            self.table
        );
        let values = [
            self.task.idem_key.as_str().into(),
            "open".into(),
            self.task.batch.batch_no.as_str().into(),
            self.task.job.code.as_str().into(),
            self.task.attempt.into(),
            now.to_utc().into(),
        ];
        session.execute(&sql, &values).await.map(|_| ())
    }

    /// Stores that it took effect; `false` when its row has changed or is missing.
    pub(crate) async fn close(
        &self,
        session: &mut Session,
        outputs: &JobOutputs,
        now: Millis,
    ) -> Result<bool, SessionError> {
        let sql = format!(
            "UPDATE {} SET state = ?, outputs = ?, attempt = ?, done_at = ? \
             WHERE idem_key = ? AND state = ?",
            self.table
        );
        let json =
            Some(outputs).filter(|o| !o.is_empty()).and_then(|o| serde_json::to_string(o).ok());
        let values = [
            "done".into(),
            json.into(),
            self.task.attempt.into(),
            now.to_utc().into(),
            self.task.idem_key.as_str().into(),
            "open".into(),
        ];
        Ok(session.execute(&sql, &values).await? == 1)
    }
}

/// Interprets a row of state, attempt and outputs. Unreadable outputs are dropped: the fact that it
/// took effect matters more.
fn found(row: &Rows) -> LedgerLookup {
    let Some(state) = row.first(0) else { return LedgerLookup::Nothing };
    let attempt = row.first(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    if state != "done" {
        return LedgerLookup::Open { attempt };
    }
    let outputs = row.first(2).and_then(|json| serde_json::from_str(json).ok());
    LedgerLookup::Done { attempt, outputs: outputs.unwrap_or_default() }
}
