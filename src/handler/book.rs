//! The rows of `procession_ledger` in a data source: which bodies took effect, by their key.

use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::Session;
use crate::domain::outcome::Outputs;
use crate::domain::time::Millis;
use crate::handler::Task;

/// What is written under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: no try has taken effect.
    Nothing,
    /// A try that opened it and committed before it was done.
    Open {
        /// Which.
        attempt: u32,
    },
    /// A try that took effect.
    Done {
        /// Which.
        attempt: u32,
        /// What it handed on.
        outputs: Outputs,
    },
}

/// What is written under the task's key. Outputs that cannot be read are none: that it took effect
/// counts more.
pub(crate) async fn read(session: &mut Session, task: &Task) -> Result<Found, SessionError> {
    let sql = "SELECT state, attempt, outputs FROM procession_ledger WHERE idem_key = ?";
    let mut found = Results::uncut(1);
    session.ask(sql, &[task.idem_key.as_str().into()], &mut found).await?;
    let Some(row) = found.sets.first() else { return Ok(Found::Nothing) };
    let attempt = row.first(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    if row.first(0) != Some("done") {
        return Ok(Found::Open { attempt });
    }
    let outputs = row.first(2).and_then(|json| serde_json::from_str(json).ok());
    Ok(Found::Done { attempt, outputs: outputs.unwrap_or_default() })
}

/// Writes that a try has begun; seen by others only if something commits before it is done.
pub(crate) async fn open(
    session: &mut Session,
    task: &Task,
    now: Millis,
) -> Result<(), SessionError> {
    let sql = "INSERT INTO procession_ledger \
               (idem_key, state, batch_no, job_code, attempt, opened_at) VALUES (?, ?, ?, ?, ?, ?)";
    let values = [
        task.idem_key.as_str().into(),
        "open".into(),
        task.batch.batch_no.as_str().into(),
        task.job.code.as_str().into(),
        task.attempt.into(),
        now.to_utc().into(),
    ];
    session.execute(sql, &values).await.map(|_| ())
}

/// Writes that it took effect; `false` when its row is not there as it was left.
pub(crate) async fn close(
    session: &mut Session,
    task: &Task,
    outputs: &Outputs,
    now: Millis,
) -> Result<bool, SessionError> {
    let sql = "UPDATE procession_ledger SET state = ?, outputs = ?, attempt = ?, done_at = ? \
               WHERE idem_key = ? AND state = ?";
    let json = Some(outputs).filter(|o| !o.is_empty()).and_then(|o| serde_json::to_string(o).ok());
    let values = [
        "done".into(),
        json.into(),
        task.attempt.into(),
        now.to_utc().into(),
        task.idem_key.as_str().into(),
        "open".into(),
    ];
    Ok(session.execute(sql, &values).await? == 1)
}
