//! What a recorded body's transaction needs from the engine: the time and, for class `same`, the
//! statements that end the row together with the body's effect.

use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::job_key::JobKey;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs, StoredOutputsKey};
use crate::domain::job::queue::QueueStatus;
use crate::domain::job::secret::Mask;
use crate::domain::job::{Param, ParamMode, Secrecy};
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::attempt::run::{AttemptOrder, AttemptReport, Surroundings, What};
use crate::engine::clock::Clock;
use crate::engine::db_retry::answered;
use crate::handler::{LedgerContext, LedgerWrite};
use crate::store::log::{ExecutionLog, append_within};
use crate::store::{self, breach, output_value, within};

/// One attempt, as far as its record is concerned.
pub(super) struct Recording {
    clock: Clock,
    queue_id: QueueId,
    attempt: u32,
    owner: NodeId,
    began: Millis,
    try_count: u32,
    installation: String,
    secret_outs: Vec<String>,
    mask: Mask,
    inline_bytes: usize,
}

impl AttemptOrder {
    /// The key of its stored large values.
    pub(in crate::engine) fn key(&self) -> StoredOutputsKey {
        StoredOutputsKey { queue_id: self.queue_id, attempt: self.attempt }
    }

    /// OUT parameters declared secret.
    pub(super) fn secret_outs(&self) -> Vec<String> {
        let comes_back = |p: &&Param| p.mode != ParamMode::In && p.secrecy == Secrecy::Secret;
        self.def.params.iter().filter(comes_back).map(|p| p.name.clone()).collect()
    }
}

impl Recording {
    /// For an attempt, whose secrets `mask` removes.
    pub(in crate::engine) fn for_attempt(
        job: &AttemptOrder,
        around: &Surroundings,
        mask: Mask,
    ) -> Self {
        Self {
            clock: around.clock.clone(),
            queue_id: job.queue_id,
            attempt: job.attempt,
            owner: around.owner.clone(),
            began: job.began,
            try_count: job.try_count,
            installation: around.installation.clone(),
            secret_outs: job.secret_outs(),
            mask,
            inline_bytes: around.handlers.outputs.inline_bytes,
        }
    }
}

/// The row of a report whose body wrote its own end.
pub(in crate::engine) fn recorded(report: &AttemptReport) -> Option<QueueId> {
    let is_so = matches!(&report.what, What::Ended(outcome, _) if outcome.is_recorded);
    is_so.then_some(report.queue_id)
}

/// The state of a row whose body wrote its own end.
pub(in crate::engine) fn state_of(outcome: &AttemptOutcome) -> QueueStatus {
    if outcome.end == AttemptEnd::Warning { QueueStatus::Warning } else { QueueStatus::Success }
}

/// The message and the outputs of an ended attempt, as stored in its row.
pub(in crate::engine) fn columns_of(outcome: &AttemptOutcome) -> (Option<String>, Option<String>) {
    let message = outcome.message.as_ref().map(|m| storable(m.as_bytes(), MESSAGE_MAX));
    let outputs = Some(&outcome.outputs).filter(|o| !o.is_empty());
    (message, outputs.and_then(|o| serde_json::to_string(o).ok()))
}

impl LedgerContext for Recording {
    fn now(&self) -> Millis {
        self.clock.now()
    }

    fn storable(&self, outputs: &JobOutputs) -> JobOutputs {
        let secret: Vec<&str> = self.secret_outs.iter().map(String::as_str).collect();
        AttemptOutcome::success(outputs.clone()).without(&secret).masked(&self.mask).outputs
    }

    fn installation_and_key(&self) -> (String, String) {
        (store::INSTALLATION.to_owned(), self.installation.clone())
    }

    fn end_writes(&self, outcome: &AttemptOutcome) -> Vec<LedgerWrite> {
        let now = self.clock.now();
        let secret: Vec<&str> = self.secret_outs.iter().map(String::as_str).collect();
        let of = StoredOutputsKey { queue_id: self.queue_id, attempt: self.attempt };
        let outcome = outcome.clone().without(&secret).masked(&self.mask);
        let outcome = outcome.with_values_aside(of, self.inline_bytes);
        let (message, outputs) = columns_of(&outcome);
        let status = state_of(&outcome);
        let log = ExecutionLog {
            queue_id: self.queue_id,
            status,
            start_time: Some(self.began),
            end_time: Some(now),
            error_message: message.clone(),
            notified: false,
            try_count: self.try_count,
            attempt: self.attempt,
            owner: Some(self.owner.clone()),
        };
        let (queue_id, attempt) = (self.queue_id, self.attempt);
        let (said, values) = (message.as_deref(), outputs.as_deref());
        let row = within::end_within(queue_id, attempt, &self.owner, status, said, values, now);
        let write = |(sql, values)| LedgerWrite { sql, values };
        let mut writes = vec![write(row), write(append_within(&log, now))];
        let large = output_value::inserts(outcome.large_values.unwritten(), now);
        writes.extend(large.into_iter().map(write));
        writes
    }
}

/// Refuses a job of class `same` or `ledger` that is marked for having committed by itself. Jobs of
/// class `none` are not checked.
pub(super) async fn refuse_marked(
    job: &AttemptOrder,
    around: &Surroundings,
) -> Result<(), AttemptOutcome> {
    if !job.def.tx.is_recorded() {
        return Ok(());
    }
    let key = JobKey::of_definition(&job.def);
    let look = async || {
        let mut tx = around.db.begin_read().await?;
        breach::of_job(&mut tx, &key).await
    };
    let outcome = match answered(&job.stop, look).await {
        Ok(None) => return Ok(()),
        Ok(Some(seen)) => AttemptOutcome::ended(
            AttemptEnd::Failed,
            format!(
                "job {key} was caught committing by itself in batch {} (try {}: {}); declare \
                 tx: none, or mend it and: procession job trust {key} --reason …; nothing \
                 was run",
                seen.batch_no, seen.attempt, seen.said
            ),
        )
        .for_good(),
        Err(error) => {
            let said = format!("cannot ask whether job {key} may be trusted: {error:#}");
            AttemptOutcome::ended(AttemptEnd::Failed, format!("{said}; nothing was run"))
        }
    };
    Err(outcome.before_it_began())
}
