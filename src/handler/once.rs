//! One transaction with a body and the record of it: opened, filled, and committed or undone.

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::session::Session;
use crate::domain::outcome::{End, Outcome, Outputs};
use crate::handler::book::{Book, Found};
use crate::handler::ledger::{Desk, known};
use crate::handler::target::{Body, Fault, classed, under_way};
use crate::handler::{NOT_OURS, checks};

const COMMIT: &str = "COMMIT";
/// Where the ledger is written.
pub(crate) const LEDGER: &str = "writing procession_ledger";

/// A recorded task with its body.
pub(crate) struct Once<'a> {
    desk: Desk<'a>,
    body: &'a dyn Body,
    book: Book<'a>,
    /// A savepoint that lives exactly as long as the transaction that we opened. No two tries have
    /// one of the same name, so that no body can set it again.
    canary: String,
}

/// What ended a transaction that was ours.
enum EndedBy {
    /// A commit of the body's own.
    Commit,
    /// A ROLLBACK of the body's own, or a deadlock that it swallowed: nothing is left of it.
    Rollback,
}

impl<'a> Once<'a> {
    pub(crate) fn new(desk: Desk<'a>, body: &'a dyn Body, book: Book<'a>) -> Self {
        let canary = format!("procession_{}", uuid::Uuid::new_v4().simple());
        Self { desk, body, book, canary }
    }

    /// Runs the transaction once. A fault leaves nothing behind but what its outcome says.
    pub(crate) async fn run(&self, session: &mut Session) -> Result<Outcome, Fault> {
        let ended = match self.open(session).await {
            Ok(()) => {
                failpoint!("ledger.opened");
                match under_way(self.body.run_inside(session)).await {
                    Ok(outputs) => self.close(session, outputs).await,
                    Err(fault) => Err(fault),
                }
            }
            Err(fault) => Err(fault),
        };
        match ended {
            Ok(outcome) => Ok(outcome),
            Err(fault) => self.undo(session, fault).await,
        }
    }

    /// On MySQL without autocommit: what a body does after a ROLLBACK of its own, or after a
    /// deadlock that it swallowed, is then undone with the rest and not kept statement by statement.
    async fn open(&self, session: &mut Session) -> Result<(), Fault> {
        let begun = match session.dialect() {
            Dialect::Mysql => session.run("SET autocommit = 0", &[]).await.map(|_| ()),
            Dialect::Sqlite | Dialect::Postgres => session.begin().await,
        };
        begun.map_err(|e| Fault::before("opening the transaction", e))?;
        let now = self.desk.ctx.record.now();
        self.book.open(session, now).await.map_err(|e| Fault::before(LEDGER, e))?;
        if session.dialect() == Dialect::Mysql {
            let set = session.run(&format!("SAVEPOINT {}", self.canary), &[]).await;
            set.map_err(|e| Fault::before("setting a savepoint", e))?;
        }
        Ok(())
    }

    /// After a body that ended well: looks whether the transaction is still ours, asks the success
    /// rules, writes the record and commits.
    async fn close(&self, session: &mut Session, outputs: Outputs) -> Result<Outcome, Fault> {
        let (task, record) = (self.desk.task, &self.desk.ctx.record);
        if let Some(ended_by) = self.ended_inside(session).await? {
            return self.loose(session, outputs, ended_by).await;
        }
        let outcome = checks::ruled(task, self.desk.ctx, Outcome::success(outputs));
        if outcome.end == End::Failed {
            return Err(known(outcome));
        }
        let at = |place: &str| {
            let place = place.to_owned();
            move |e| Fault::At(place, e)
        };
        let kept = record.storable(&outcome.outputs);
        if !self.book.close(session, &kept, record.now()).await.map_err(at(LEDGER))? {
            let said = "its row of procession_ledger was changed while it ran; rolled back";
            return Err(Fault::Said(said.to_owned()));
        }
        let is_recorded = self.desk.ends_row();
        let writes = if is_recorded { record.end(&outcome) } else { Vec::new() };
        for write in writes {
            let found = session.execute(&write.sql, &write.values).await;
            if found.map_err(at("writing its end"))? != 1 {
                let said = format!("{NOT_OURS}; it was rolled back and nothing took effect");
                return Err(known(Outcome::ended(End::Failed, said)));
            }
        }
        failpoint!("ledger.before_commit");
        session.commit().await.map_err(at(COMMIT))?;
        failpoint!("ledger.after_commit");
        Ok(Outcome { is_recorded, ..outcome })
    }

    /// Whether the transaction that we opened has ended while its body ran. Only on MySQL can it:
    /// PostgreSQL refuses COMMIT in a routine, and such words in SQL are refused by us.
    async fn ended_inside(&self, session: &mut Session) -> Result<Option<EndedBy>, Fault> {
        let at = |e| Fault::At("after the body".to_owned(), e);
        if session.dialect() != Dialect::Mysql {
            return Ok(None);
        }
        match session.run(&format!("RELEASE SAVEPOINT {}", self.canary), &[]).await {
            Ok(_) => return Ok(None),
            Err(SessionError::Database(error)) if error.is_no_savepoint() => {}
            Err(error) => return Err(at(error)),
        }
        let found = self.book.read(session).await.map_err(at)?;
        let is_there = found != Found::Nothing;
        if is_there || session.has_committed().await.map_err(at)? {
            return Ok(Some(EndedBy::Commit));
        }
        Ok(Some(EndedBy::Rollback))
    }

    /// The body ended well, but not in our transaction: what it did is there and is not tied to its
    /// record. What it left uncommitted is committed too, as it would be outside of a transaction.
    async fn loose(
        &self,
        session: &mut Session,
        outputs: Outputs,
        ended_by: EndedBy,
    ) -> Result<Outcome, Fault> {
        if matches!(ended_by, EndedBy::Rollback) {
            let said = "the transaction was rolled back inside the body (a deadlock that it \
                        swallowed, or a ROLLBACK of its own), so nothing of it is kept";
            return Err(Fault::Said(said.to_owned()));
        }
        let at = |e| Fault::At("after a commit of the body's own".to_owned(), e);
        self.leave_evidence(session).await.map_err(at)?;
        let said = "the body committed by itself, so its effect is there but is not tied to its \
                    record";
        Ok(Outcome { end: End::Warning, ..Outcome::success(outputs) }.caught(said))
    }

    /// The key stays `open`, so that no later try runs the body again.
    async fn leave_evidence(&self, session: &mut Session) -> Result<(), SessionError> {
        if self.book.read(session).await? == Found::Nothing {
            self.book.open(session, self.desk.ctx.record.now()).await?;
        }
        session.commit().await
    }

    /// Rolls back, and reads the key to learn what that left. Of a lost connection nothing can be
    /// asked; the next try will.
    async fn undo(&self, session: &mut Session, fault: Fault) -> Result<Outcome, Fault> {
        match &fault {
            Fault::Before(place, error @ SessionError::Lost(_)) => {
                return Err(Fault::At(place.clone(), error.clone()));
            }
            Fault::At(_, SessionError::Lost(_)) => return Err(fault),
            _ => {}
        }
        match session.rollback().await {
            Ok(()) => self.desk.say("rolled back"),
            Err(error @ SessionError::Lost(_)) => return Err(Fault::At("ROLLBACK".into(), error)),
            // SQLite may have rolled back already.
            Err(SessionError::Database(_) | SessionError::Braked) => {}
        }
        if matches!(fault, Fault::At(_, SessionError::Braked)) {
            return Err(fault);
        }
        let at = |e| Fault::At("after the rollback".to_owned(), e);
        let is_commit = matches!(&fault, Fault::At(place, _) if place == COMMIT);
        match self.book.read(session).await {
            Ok(Found::Done { attempt, outputs }) => Ok(self.desk.resolved(attempt, outputs)),
            Ok(Found::Open { .. }) => Err(known(torn(fault))),
            Ok(Found::Nothing) if is_commit => Err(fault),
            Ok(Found::Nothing) => {
                if session.has_committed().await.map_err(at)? {
                    self.leave_evidence(session).await.map_err(at)?;
                    return Err(known(torn(fault)));
                }
                Err(refused(fault))
            }
            Err(SessionError::Database(error)) => {
                let said = format!("what it left could not be looked up: {error}");
                Err(known(Outcome::ended(End::Unknown, said)))
            }
            Err(error) => Err(at(error)),
        }
    }
}

/// A body that failed after it had committed a part of its work.
fn torn(fault: Fault) -> Outcome {
    let said =
        "the body had committed a part of its work by itself, which a rollback does not undo";
    let outcome = match fault {
        Fault::At(place, error) | Fault::Before(place, error) => {
            classed(Outcome::ended(End::Unknown, format!("{place}: {error}")), &error)
        }
        Fault::Said(what) => Outcome::ended(End::Unknown, what),
        Fault::Known(outcome) => Outcome { end: End::Unknown, ..*outcome },
    };
    outcome.caught(said)
}

/// PostgreSQL refuses to end our transaction inside a routine, every time.
fn refused(fault: Fault) -> Fault {
    match fault {
        Fault::At(place, SessionError::Database(error)) if error.is_end_refused() => {
            let said = "the body ends its transaction by itself, which the server refused; nothing \
                        took effect";
            known(Outcome::ended(End::Failed, format!("{place}: {error}")).caught(said))
        }
        other => other,
    }
}
