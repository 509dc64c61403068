//! What the transaction of a recorded body takes from the engine: the time, and for class `same` the
//! statements that end its row together with its effect.

use crate::domain::id::{NodeId, QueueId};
use crate::domain::job::{Param, ParamMode, Secrecy};
use crate::domain::job_key::JobKey;
use crate::domain::outcome::{AttemptKey, End, Outcome, Outputs};
use crate::domain::queue::QueueStatus;
use crate::domain::secret::Mask;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::engine::attempt::run::{Job, Report, Surroundings, What};
use crate::engine::clock::Clock;
use crate::engine::db_retry::answered;
use crate::handler::{Record, Write};
use crate::store::log::{ExecutionLog, append_within};
use crate::store::{self, breach, output_value, within};

/// One try, as far as its record goes.
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

impl Job {
    /// What its values that are stored aside are found by.
    pub(in crate::engine) fn key(&self) -> AttemptKey {
        AttemptKey { queue_id: self.queue_id, attempt: self.attempt }
    }

    /// OUT parameters that are declared secret.
    pub(super) fn secret_outs(&self) -> Vec<String> {
        let comes_back = |p: &&Param| p.mode != ParamMode::In && p.secrecy == Secrecy::Secret;
        self.def.params.iter().filter(comes_back).map(|p| p.name.clone()).collect()
    }
}

impl Recording {
    /// Of a try, whose secrets `mask` takes out.
    pub(in crate::engine) fn of(job: &Job, around: &Surroundings, mask: Mask) -> Self {
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

/// The row of a report whose body wrote its end itself.
pub(in crate::engine) fn recorded(report: &Report) -> Option<QueueId> {
    let is_so = matches!(&report.what, What::Ended(outcome, _) if outcome.is_recorded);
    is_so.then_some(report.queue_id)
}

/// The state of a row whose body wrote its end itself.
pub(in crate::engine) fn state_of(outcome: &Outcome) -> QueueStatus {
    if outcome.end == End::Warning { QueueStatus::Warning } else { QueueStatus::Success }
}

/// The message and the outputs of an ended try, as rows hold them.
pub(in crate::engine) fn columns_of(outcome: &Outcome) -> (Option<String>, Option<String>) {
    let message = outcome.message.as_ref().map(|m| storable(m.as_bytes(), MESSAGE_MAX));
    let outputs = Some(&outcome.outputs).filter(|o| !o.is_empty());
    (message, outputs.and_then(|o| serde_json::to_string(o).ok()))
}

impl Record for Recording {
    fn now(&self) -> Millis {
        self.clock.now()
    }

    fn storable(&self, outputs: &Outputs) -> Outputs {
        let secret: Vec<&str> = self.secret_outs.iter().map(String::as_str).collect();
        Outcome::success(outputs.clone()).without(&secret).masked(&self.mask).outputs
    }

    fn home(&self) -> (String, String) {
        (store::INSTALLATION.to_owned(), self.installation.clone())
    }

    fn end(&self, outcome: &Outcome) -> Vec<Write> {
        let now = self.clock.now();
        let secret: Vec<&str> = self.secret_outs.iter().map(String::as_str).collect();
        let of = AttemptKey { queue_id: self.queue_id, attempt: self.attempt };
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
        let said = (message.as_deref(), outputs.as_deref());
        let row = within::end_within((self.queue_id, self.attempt, &self.owner), status, said, now);
        let write = |(sql, values)| Write { sql, values };
        let mut writes = vec![write(row), write(append_within(&log, now))];
        let large = output_value::inserts(outcome.large_values.unwritten(), now);
        writes.extend(large.into_iter().map(write));
        writes
    }
}

/// Refuses a recorded job that was caught committing by itself; others are not asked for.
pub(super) async fn refuse_marked(job: &Job, around: &Surroundings) -> Result<(), Outcome> {
    if !job.def.tx.is_recorded() {
        return Ok(());
    }
    let key = JobKey::of_definition(&job.def);
    let look = async || {
        let mut tx = around.db.read().await?;
        breach::of_job(&mut tx, &key).await
    };
    let outcome = match answered(&job.stop, look).await {
        Ok(None) => return Ok(()),
        Ok(Some(seen)) => Outcome::ended(
            End::Failed,
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
            Outcome::ended(End::Failed, format!("{said}; nothing was run"))
        }
    };
    Err(outcome.before_it_began())
}
