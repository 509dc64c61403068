//! One transaction with a body and its ledger record: opened, filled, and committed or rolled back.

use crate::db::fault::{ErrorCondition, SessionError};
use crate::db::implicit_commit::CommitEvidence;
use crate::db::session::Session;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs};
use crate::handler::ledger::{RecordedTask, known};
use crate::handler::ledger_table::{LedgerEntry, LedgerLookup};
use crate::handler::packet_limit::packet_fault;
use crate::handler::run_on_source::{BodyFault, SessionBody, classed, under_way};
use crate::handler::{NOT_OURS, checks};

const COMMIT: &str = "COMMIT";
/// The label of ledger writes in errors.
pub(crate) const LEDGER: &str = "writing procession_ledger";

/// A recorded task with its body.
pub(crate) struct Once<'a> {
    desk: RecordedTask<'a>,
    body: &'a dyn SessionBody,
    book: LedgerEntry<'a>,
    /// A savepoint that exists exactly as long as the transaction that we opened. Its name is
    /// unique to the attempt, so that no body can set it again.
    canary: String,
}

/// What ended our transaction.
enum EndedBy {
    /// A commit by the body.
    Commit,
    /// A ROLLBACK by the body, or a deadlock that it swallowed: nothing is left of it.
    Rollback,
    /// A rollback, and then statements of these kinds, which may have committed what followed it.
    PossibleCommit(Vec<String>),
}

impl<'a> Once<'a> {
    pub(crate) fn new(
        desk: RecordedTask<'a>,
        body: &'a dyn SessionBody,
        book: LedgerEntry<'a>,
    ) -> Self {
        let canary = format!("procession_{}", uuid::Uuid::new_v4().simple());
        Self { desk, body, book, canary }
    }

    /// Runs the transaction once. A fault leaves nothing behind except what its outcome states.
    pub(crate) async fn run_once(
        &self,
        session: &mut Session,
    ) -> Result<AttemptOutcome, BodyFault> {
        if let Err(fault) = self.open_transaction(session).await {
            return self.roll_back(session, fault, CommitEvidence::None).await;
        }
        failpoint!("ledger.opened");
        match under_way(self.body.run_inside(session)).await {
            Ok(outputs) => match self.close(session, outputs).await {
                Ok(outcome) => Ok(outcome),
                // The ledger check looked for commits of the body, and removed the savepoint.
                Err(fault) => self.roll_back(session, fault, CommitEvidence::None).await,
            },
            Err(fault) => match self.find_commit_behind_rollback(session, &fault).await {
                Ok(committed) => self.roll_back(session, fault, committed).await,
                Err(lost) => self.roll_back(session, lost, CommitEvidence::None).await,
            },
        }
    }

    async fn open_transaction(&self, session: &mut Session) -> Result<(), BodyFault> {
        let begun = session.begin_recorded().await;
        begun.map_err(|e| BodyFault::before("opening the transaction", e))?;
        let now = self.desk.ctx.record.now();
        self.book.open_entry(session, now).await.map_err(|e| BodyFault::before(LEDGER, e))?;
        if session.database().capabilities().lets_bodies_end_transactions {
            let set = session.run_statement(&format!("SAVEPOINT {}", self.canary), &[]).await;
            set.map_err(|e| BodyFault::before("setting a savepoint", e))?;
        }
        Ok(())
    }

    /// After a successful body: checks that the transaction is still ours, evaluates the success
    /// rules, writes the record and commits.
    async fn close(
        &self,
        session: &mut Session,
        outputs: JobOutputs,
    ) -> Result<AttemptOutcome, BodyFault> {
        let (task, record) = (self.desk.task, &self.desk.ctx.record);
        if let Some(ended_by) = self.ended_inside(session).await? {
            return self.loose(session, outputs, ended_by).await;
        }
        let outcome = checks::ruled(task, self.desk.ctx, AttemptOutcome::success(outputs));
        if outcome.end == AttemptEnd::Failed {
            return Err(known(outcome));
        }
        let at = |place: &str| {
            let place = place.to_owned();
            move |e| BodyFault::At(place, e)
        };
        let kept = record.storable(&outcome.outputs);
        let bytes = serde_json::to_string(&kept).map_or(0, |json| json.len());
        let fault = packet_fault(session, "what the job returned, as JSON,", bytes).await;
        if let Some(why) = fault.map_err(at(LEDGER))? {
            let said = format!("procession_ledger cannot hold it: {why}; rolled back");
            return Err(known(AttemptOutcome::ended(AttemptEnd::Failed, said).for_good()));
        }
        if !self.book.close(session, &kept, record.now()).await.map_err(at(LEDGER))? {
            let said = "its row of procession_ledger was changed while it ran; rolled back";
            return Err(BodyFault::Said(said.to_owned()));
        }
        let is_recorded = self.desk.ends_row();
        let writes = if is_recorded { record.end_writes(&outcome) } else { Vec::new() };
        for write in writes {
            let found = session.execute(&write.sql, &write.values).await;
            if found.map_err(at("writing its end"))? != 1 {
                let said = format!("{NOT_OURS}; it was rolled back and nothing took effect");
                return Err(known(AttemptOutcome::ended(AttemptEnd::Failed, said).of_lost_row()));
            }
        }
        failpoint!("ledger.before_commit");
        session.commit().await.map_err(at(COMMIT))?;
        failpoint!("ledger.after_commit");
        Ok(AttemptOutcome { is_recorded, ..outcome })
    }

    /// Whether our transaction has ended while its body ran. That is possible only on MySQL:
    /// PostgreSQL refuses COMMIT in a routine, and such statements in SQL are refused by us.
    async fn ended_inside(&self, session: &mut Session) -> Result<Option<EndedBy>, BodyFault> {
        let at = |e| BodyFault::At("after the body".to_owned(), e);
        if self.is_transaction_ours(session).await.map_err(at)? {
            return Ok(None);
        }
        let found = self.book.read_entry(session).await.map_err(at)?;
        if found != LedgerLookup::Nothing {
            return Ok(Some(EndedBy::Commit));
        }
        Ok(Some(match session.find_commit_evidence().await.map_err(at)? {
            CommitEvidence::Certain => EndedBy::Commit,
            CommitEvidence::Possible(statements) => EndedBy::PossibleCommit(statements),
            CommitEvidence::None => EndedBy::Rollback,
        }))
    }

    /// For a failed body: what it may have committed after it ended our transaction. A commit
    /// within our transaction needs no search: it left the key.
    async fn find_commit_behind_rollback(
        &self,
        session: &mut Session,
        fault: &BodyFault,
    ) -> Result<CommitEvidence, BodyFault> {
        // A session that is gone, or that is to be stopped, cannot be queried.
        if let BodyFault::Before(..)
        | BodyFault::At(_, SessionError::Lost(_) | SessionError::Braked) = fault
        {
            return Ok(CommitEvidence::None);
        }
        let at = |e| BodyFault::At("after the body".to_owned(), e);
        match self.is_transaction_ours(session).await.map_err(at)? {
            true => Ok(CommitEvidence::None),
            false => session.find_commit_evidence().await.map_err(at),
        }
    }

    /// Whether our savepoint still exists.
    async fn is_transaction_ours(&self, session: &mut Session) -> Result<bool, SessionError> {
        if !session.database().capabilities().lets_bodies_end_transactions {
            return Ok(true);
        }
        match session.run_statement(&format!("RELEASE SAVEPOINT {}", self.canary), &[]).await {
            Ok(_) => Ok(true),
            Err(error) if error.is(ErrorCondition::NoSavepoint) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The body succeeded, but not in our transaction: its effects are not tied to its record. What
    /// it left uncommitted is committed too, as it would be outside of a transaction.
    async fn loose(
        &self,
        session: &mut Session,
        outputs: JobOutputs,
        ended_by: EndedBy,
    ) -> Result<AttemptOutcome, BodyFault> {
        if matches!(ended_by, EndedBy::Rollback) {
            let said = "the transaction was rolled back inside the body (a deadlock that it \
                        swallowed, or a ROLLBACK of its own), so nothing of it is kept";
            return Err(BodyFault::Said(said.to_owned()));
        }
        let at = |e| BodyFault::At("after a commit of the body's own".to_owned(), e);
        self.leave_evidence(session).await.map_err(at)?;
        if let EndedBy::PossibleCommit(statements) = ended_by {
            let reason = possibly_committed(&statements);
            return Ok(AttemptOutcome {
                breach: Some(reason.clone()),
                ..AttemptOutcome::ended(AttemptEnd::Unknown, reason)
            }
            .for_good());
        }
        let said = "the body committed by itself, so its effect is there but is not tied to its \
                    record";
        Ok(AttemptOutcome { end: AttemptEnd::Warning, ..AttemptOutcome::success(outputs) }
            .caught(said))
    }

    /// The key stays `open`, so that no later attempt runs the body again.
    async fn leave_evidence(&self, session: &mut Session) -> Result<(), SessionError> {
        if self.book.read_entry(session).await? == LedgerLookup::Nothing {
            self.book.open_entry(session, self.desk.ctx.record.now()).await?;
        }
        session.commit().await
    }

    /// Rolls back, and reads the key to learn what remains; `committed` is what the body committed
    /// after it had ended our transaction. After a lost connection nothing can be read; the next
    /// attempt will.
    async fn roll_back(
        &self,
        session: &mut Session,
        fault: BodyFault,
        committed: CommitEvidence,
    ) -> Result<AttemptOutcome, BodyFault> {
        match &fault {
            BodyFault::Before(place, error @ SessionError::Lost(_)) => {
                return Err(BodyFault::At(place.clone(), error.clone()));
            }
            BodyFault::At(_, SessionError::Lost(_)) => return Err(fault),
            _ => {}
        }
        match session.rollback().await {
            Ok(()) => self.desk.log_line("rolled back"),
            Err(error @ SessionError::Lost(_)) => {
                return Err(BodyFault::At("ROLLBACK".into(), error));
            }
            // SQLite may have rolled back already.
            Err(SessionError::Database(_) | SessionError::Braked) => {}
        }
        if matches!(fault, BodyFault::At(_, SessionError::Braked)) {
            return Err(fault);
        }
        let at = |e| BodyFault::At("after the rollback".to_owned(), e);
        let is_commit = matches!(&fault, BodyFault::At(place, _) if place == COMMIT);
        match self.book.read_entry(session).await {
            Ok(LedgerLookup::Done { attempt, outputs }) => Ok(self.desk.resolved(attempt, outputs)),
            Ok(LedgerLookup::Open { .. }) => Err(known(committed_early(fault))),
            Ok(LedgerLookup::Nothing) if is_commit => Err(fault),
            Ok(LedgerLookup::Nothing) => match committed {
                CommitEvidence::Certain => {
                    self.leave_evidence(session).await.map_err(at)?;
                    Err(known(committed_early(fault)))
                }
                // Also of a deadlock's victim: the body may have rolled back and committed by a
                // DDL statement before the deadlock (18 effects of one job on MySQL 9.7).
                CommitEvidence::Possible(statements) => {
                    self.leave_evidence(session).await.map_err(at)?;
                    Err(known(possibly_torn(fault, &statements)))
                }
                CommitEvidence::None => Err(refused(fault)),
            },
            Err(SessionError::Database(error)) => {
                let said = format!("what it left could not be looked up: {error}");
                Err(known(AttemptOutcome::ended(AttemptEnd::Unknown, said)))
            }
            Err(error) => Err(at(error)),
        }
    }
}

/// A failed body that had committed a part of its work.
fn committed_early(fault: BodyFault) -> AttemptOutcome {
    let said =
        "the body had committed a part of its work by itself, which a rollback does not undo";
    as_unknown(fault).caught(said)
}

/// A failed body of which it is unknown whether it had committed a part of its work.
fn possibly_torn(fault: BodyFault, statements: &[String]) -> AttemptOutcome {
    as_unknown(fault).caught(&possibly_committed(statements))
}

fn possibly_committed(statements: &[String]) -> String {
    format!(
        "the transaction was rolled back inside the body, and MySQL does not tell whether a {} of it \
         committed what came after the rollback (one for a temporary table does not); leave ROLLBACK out of \
         the body: it is rolled back when it fails",
        statements.join(" or a ")
    )
}

fn as_unknown(fault: BodyFault) -> AttemptOutcome {
    match fault {
        BodyFault::At(place, error) | BodyFault::Before(place, error) => {
            classed(AttemptOutcome::ended(AttemptEnd::Unknown, format!("{place}: {error}")), &error)
        }
        BodyFault::Said(what) => AttemptOutcome::ended(AttemptEnd::Unknown, what),
        BodyFault::Known(outcome) => AttemptOutcome { end: AttemptEnd::Unknown, ..*outcome },
    }
}

/// PostgreSQL always refuses to end our transaction inside a routine.
fn refused(fault: BodyFault) -> BodyFault {
    match fault {
        BodyFault::At(place, error) if error.is(ErrorCondition::EndRefused) => {
            let said = "the body ends its transaction by itself, which the server refused; nothing \
                        took effect";
            known(
                AttemptOutcome::ended(AttemptEnd::Failed, format!("{place}: {error}")).caught(said),
            )
        }
        other => other,
    }
}
