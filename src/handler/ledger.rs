//! Runs a body exactly once: in one transaction with a record of it, `tx: same` and `tx: ledger`.
//!
//! On the body's one connection, under its session lock: read the key; if nothing is stored under
//! it, open a transaction, write the key as `open`, run the body, write it as `done`, and for class
//! `same` end the row of `job_queue` too; commit. Whatever fails in between, the next attempt reads
//! the key and knows the outcome: the holder of the lock is alone, and the orphan before it is
//! gone.
//!
//! A key that is `open` outside of its own transaction proves that the body ended that transaction.
//! Such a body cannot be run exactly once, so its job is marked and refused from then on.

use crate::db::fault::{ErrorCondition, ServerErrorKind, SessionError};
use crate::db::session::{Session, SessionTarget};
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, AttemptStage, JobOutputs, Stream};
use crate::domain::source::tx_class::TxClass;
use crate::handler::ledger_table::{LedgerEntry, LedgerLookup};
use crate::handler::run_on_source::{BodyFault, SessionBody, classed};
use crate::handler::transactional_body::{LEDGER, Once};
use crate::handler::{AttemptTask, Context};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often a transaction that was rolled back because of another is repeated within one attempt.
const AGAIN: u32 = 5;
/// Pause before the first repetition, in milliseconds; doubled each time, with jitter.
const PAUSE_MS: u64 = 50;
/// Maximum pause between two repetitions, in milliseconds.
const PAUSE_MAX_MS: u64 = 2_000;

/// Runs `body` on a session that holds its lock and whose claim was checked.
pub(crate) async fn run_recorded(
    task: &AttemptTask,
    ctx: &Context,
    body: &dyn SessionBody,
    session: &mut Session,
) -> Result<JobOutputs, BodyFault> {
    let desk = RecordedTask { task, ctx };
    if task.job.tx == TxClass::Same {
        desk.ask_home(session).await?;
    }
    let (book, found) =
        LedgerEntry::find_entry(session, task).await.map_err(|e| desk.unread(&e))?;
    match found {
        LedgerLookup::Nothing if task.is_unresolved => {
            desk.log_line("no earlier try took effect (ledger); runs it");
        }
        LedgerLookup::Nothing => {}
        LedgerLookup::Done { attempt, outputs } => {
            return Err(known(desk.resolved(attempt, outputs)));
        }
        LedgerLookup::Open { attempt } => return Err(known(desk.committed_early(attempt))),
    }
    let once = Once::new(desk, body, book);
    let mut again = 0;
    loop {
        let fault = match once.run_once(session).await {
            Ok(outcome) => return Err(known(outcome)),
            Err(fault) => fault,
        };
        let Some(words) = victim(&fault).filter(|_| again < AGAIN) else {
            return Err(looked(desk.refused(fault)));
        };
        again += 1;
        let pause = Duration::from_millis(pause_ms(again));
        let ms = pause.as_millis();
        desk.log_line(format!(
            "{words}: rolled back; runs once more in {ms} ms ({again} of {AGAIN})"
        ));
        tokio::select! {
            biased;
            // The session lock is held meanwhile, so a lost lease is no reason to stop.
            _ = ctx.stopped_for_good() => {
                let place = "between two runs of its transaction".to_owned();
                return Err(BodyFault::At(place, SessionError::Braked));
            }
            () = sleep(pause) => {}
        }
    }
}

/// The real result of a stop: the body may have committed before the stop arrived. Queried on a
/// connection of its own, once the body's is gone.
pub(crate) async fn after_stop(
    task: &AttemptTask,
    ctx: &Context,
    target: &SessionTarget,
    outcome: AttemptOutcome,
) -> AttemptOutcome {
    let was_stopped =
        matches!(outcome.end, AttemptEnd::TimedOut | AttemptEnd::Killed | AttemptEnd::Returned);
    if !was_stopped || outcome.reach == AttemptStage::Before {
        return outcome;
    }
    let desk = RecordedTask { task, ctx };
    match desk.read_ledger(target).await {
        Ok(LedgerLookup::Nothing) => outcome,
        Ok(LedgerLookup::Done { attempt, outputs }) => {
            desk.log_line("it had ended by itself before the stop reached it");
            desk.resolved(attempt, outputs)
        }
        Ok(LedgerLookup::Open { attempt }) => desk.committed_early(attempt),
        Err(error) => desk.unseen(outcome, &error),
    }
}

/// The result of an attempt whose worker died and of which nothing runs any more according to
/// `outcome`: what has not taken effect by now never will.
pub(crate) async fn after_orphan(
    task: &AttemptTask,
    ctx: &Context,
    target: &SessionTarget,
    outcome: AttemptOutcome,
) -> AttemptOutcome {
    let desk = RecordedTask { task, ctx };
    match desk.read_ledger(target).await {
        Ok(LedgerLookup::Nothing) => AttemptOutcome::ended(
            AttemptEnd::Killed,
            "its worker died; nothing of it took effect (ledger)",
        ),
        // The caller ends the row, whatever its class.
        Ok(LedgerLookup::Done { attempt, outputs }) => {
            AttemptOutcome { is_recorded: false, ..desk.resolved(attempt, outputs) }
        }
        Ok(LedgerLookup::Open { attempt }) => desk.committed_early(attempt),
        Err(error) => desk.unseen(outcome, &error),
    }
}

/// Reads the key on a connection of its own.
async fn read_ledger(
    task: &AttemptTask,
    target: &SessionTarget,
) -> Result<LedgerLookup, SessionError> {
    let mut session = Session::open_session(target).await.map_err(SessionError::from)?;
    let found = LedgerEntry::find_entry(&mut session, task).await;
    session.close().await;
    found.map(|(_, found)| found)
}

/// Wraps an outcome as a fault, because the outcome contains all that is known of the attempt.
pub(crate) fn known(outcome: AttemptOutcome) -> BodyFault {
    BodyFault::Known(Box::new(outcome))
}

/// A failed query before the body, for an attempt that knows the results of earlier ones: the body
/// did not run, and nothing is left to be looked up.
fn looked(fault: BodyFault) -> BodyFault {
    match fault {
        BodyFault::Before(what, error) => {
            let said = format!("{what}: {error}; nothing was run");
            known(classed(AttemptOutcome::ended(AttemptEnd::Failed, said), &error))
        }
        other => other,
    }
}

/// The word for a transaction that the server rolled back because of another.
fn victim(fault: &BodyFault) -> Option<&'static str> {
    let (BodyFault::At(_, error) | BodyFault::Before(_, error)) = fault else { return None };
    match error.kind() {
        ServerErrorKind::Deadlock => Some("a deadlock's victim"),
        ServerErrorKind::Serialization => Some("a serialization failure"),
        ServerErrorKind::LockWait => Some("a lock was not granted in time"),
        ServerErrorKind::Lost | ServerErrorKind::Other => None,
    }
}

fn pause_ms(again: u32) -> u64 {
    let base = (PAUSE_MS << (again - 1)).min(PAUSE_MAX_MS);
    base / 2 + u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * base / 512
}

/// A recorded task, and the messages about it.
#[derive(Clone, Copy)]
pub(crate) struct RecordedTask<'a> {
    pub(crate) task: &'a AttemptTask,
    pub(crate) ctx: &'a Context,
}

impl RecordedTask<'_> {
    pub(crate) fn log_line(self, text: impl AsRef<str>) {
        self.ctx.log.add_line(Stream::System, text);
    }

    /// Class `same` ends the row in the body's transaction, unless checks follow.
    pub(crate) fn ends_row(self) -> bool {
        self.task.job.tx == TxClass::Same && self.task.job.checks.is_empty()
    }

    /// An attempt that took effect, according to the ledger. Its row says so as well only if that
    /// was this very attempt: an older one belongs to a claim that is gone.
    pub(crate) fn resolved(self, attempt: u32, outputs: JobOutputs) -> AttemptOutcome {
        self.log_line(format!("took effect in try {attempt} (ledger); not run again"));
        let is_recorded = self.ends_row() && attempt == self.task.attempt;
        AttemptOutcome { is_recorded, ..AttemptOutcome::success(outputs) }
    }

    /// An attempt that committed before it was done.
    fn committed_early(self, attempt: u32) -> AttemptOutcome {
        let said = format!(
            "try {attempt} committed before it was done ({} is open in procession_ledger)",
            self.task.idem_key
        );
        AttemptOutcome::ended(AttemptEnd::Unknown, "how much of its work is done is not known")
            .caught(&said)
    }

    /// Why the key could not be read: no statement of the body was sent and nothing was learnt. A
    /// connection that breaks here broke in the middle: the outcome is unknown, and no retry is
    /// charged.
    fn unread(self, error: &SessionError) -> BodyFault {
        let source = self.source_name();
        let SessionError::Database(said) = error else {
            return BodyFault::At("reading procession_ledger".to_owned(), error.clone());
        };
        let failed = |words: String| AttemptOutcome::ended(AttemptEnd::Failed, words);
        let outcome = match self.task.is_unresolved {
            // A new table would report for each effect that it did not happen.
            true if said.condition == ErrorCondition::MissingTable => failed(format!(
                "procession_ledger is gone from source '{source}', and what became of the tries \
                 before try {} cannot be looked up; restore it, or look at the data yourself and \
                 force-success / force-failure; nothing was run",
                self.task.attempt
            ))
            .for_good(),
            false if said.condition == ErrorCondition::MissingTable => failed(format!(
                "source '{source}' has no procession_ledger; run: procession source prepare \
                 {source}; nothing was run"
            ))
            .for_good(),
            // An open outcome is looked up again: the privilege may come back.
            false if said.condition == ErrorCondition::Denied => {
                self.denied("read", error).for_good()
            }
            true if said.condition == ErrorCondition::Denied => self.denied("read", error),
            true | false => failed(format!(
                "cannot read procession_ledger in source '{source}': {error}; nothing was run"
            )),
        };
        known(classed(outcome, error).before_it_began())
    }

    /// A fault; for a ledger that cannot be written with the hint, because no retry would succeed.
    fn refused(self, fault: BodyFault) -> BodyFault {
        match fault {
            BodyFault::At(place, error) | BodyFault::Before(place, error)
                if place == LEDGER && error.is(ErrorCondition::Denied) =>
            {
                known(classed(self.denied("write", &error).for_good(), &error))
            }
            other => other,
        }
    }

    fn denied(self, verb: &str, error: &SessionError) -> AttemptOutcome {
        let source = self.source_name();
        let said = format!(
            "not allowed to {verb} procession_ledger in source '{source}': {error}; nothing took \
             effect; procession source check {source} tells what to grant"
        );
        AttemptOutcome::ended(AttemptEnd::Failed, said)
    }

    /// Reads the key on a connection of its own, within `kill_confirm`: the table may be locked,
    /// and an address may swallow packets without limit.
    async fn read_ledger(self, target: &SessionTarget) -> Result<LedgerLookup, String> {
        self.log_line("looks in the ledger");
        let limit = self.ctx.options.kill_confirm;
        match timeout(limit, read_ledger(self.task, target)).await {
            Ok(found) => found.map_err(|e| e.to_string()),
            Err(_) => Err(format!("no answer within {limit:?}")),
        }
    }

    /// An attempt whose key could not be read after its end, which `outcome` describes.
    fn unseen(self, outcome: AttemptOutcome, error: &str) -> AttemptOutcome {
        let said = outcome.message.map_or_else(String::new, |said| format!("{said}; "));
        let source = self.source_name();
        let said = format!(
            "{said}it could not be looked up what became of it (source '{source}'): {error}"
        );
        AttemptOutcome::ended(AttemptEnd::Unknown, said)
    }

    fn source_name(self) -> String {
        self.task.source.as_ref().map_or(String::new(), |s| s.name.to_string())
    }

    /// Class `same` needs a session on Procession's own database; proves that with a query that no
    /// other database answers in the same way.
    async fn ask_home(self, session: &mut Session) -> Result<(), BodyFault> {
        let (sql, answer) = self.ctx.record.installation_and_key();
        if session.answers(&sql, &answer).await.map_err(|error| self.unread(&error))? {
            return Ok(());
        }
        let said = format!(
            "tx: same needs a source on Procession's own database; source '{}' is another; use \
             tx: ledger; nothing was run",
            self.source_name()
        );
        Err(known(AttemptOutcome::ended(AttemptEnd::Failed, said).for_good().before_it_began()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_at_two_seconds() {
        for (again, least, most) in [(1, 25, 50), (2, 50, 100), (5, 400, 800), (9, 1_000, 2_000)] {
            let ms = pause_ms(again);
            assert!((least..=most).contains(&ms), "{again}: {ms}");
        }
    }
}
