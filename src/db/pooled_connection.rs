//! A checked-out connection, and the state in which it is returned.

use crate::db::error::{self, ConnectionDisposition};
use crate::db::pool::{Birth, Driver, PING, PoolConfig, PoolEndpoint, PoolShared};
use crate::db::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::error::Elapsed;

/// Time limit for rolling back a dropped transaction, after which its connection is closed.
const UNDO: Duration = Duration::from_secs(5);

/// The known state of a checked-out connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckoutState {
    /// No transaction is open.
    Clean,
    /// A transaction is open and all of its statements were answered.
    Open,
    /// A statement of the transaction failed: it can only be rolled back.
    Failed,
    /// A statement was sent and not answered. If dropped now, the connection is closed.
    Asked,
    /// The connection must not be used again.
    Gone,
}

/// A connection and its slot in the pool.
pub(in crate::db) struct Loan<DB: Driver> {
    pub(in crate::db) conn: DB::Connection,
    pub(in crate::db) birth: Birth,
    pub(in crate::db) place: OwnedSemaphorePermit,
}

/// A checked-out connection. Dropped in the middle of an operation, it is closed and never reused;
/// dropped in a transaction, that is rolled back first.
pub(in crate::db) struct PooledConnection<DB: Driver> {
    /// `Some` until it is dropped.
    loan: Option<Loan<DB>>,
    home: Arc<PoolShared<DB>>,
    state: CheckoutState,
    scope: StatementScope,
    /// It was idle for a while and has not been verified.
    is_cold: bool,
}

/// What the statements on a checked-out connection belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatementScope {
    /// A transaction, which the caller opens and ends.
    Transaction,
    /// Nothing: each is a transaction of its own, and there is nothing to roll back.
    Statement,
}

impl<DB: Driver> std::fmt::Debug for PooledConnection<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("connection")
    }
}

impl<DB: Driver> PooledConnection<DB> {
    /// A connection without an open transaction.
    pub(in crate::db) fn new(loan: Loan<DB>, home: Arc<PoolShared<DB>>) -> Self {
        let (state, scope) = (CheckoutState::Clean, StatementScope::Transaction);
        Self { loan: Some(loan), home, state, scope, is_cold: false }
    }

    /// Marks a connection that may have been lost since it was used.
    pub(in crate::db) fn mark_cold(mut self) -> Self {
        self.is_cold = true;
        self
    }

    /// Whether it may have been lost since it was used, and no statement was sent since.
    pub(in crate::db) fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// For statements that are not one transaction.
    pub(in crate::db) fn without_transaction(mut self) -> Self {
        self.scope = StatementScope::Statement;
        self
    }

    /// Whether the connection is known to be lost, so that the last statement was not executed if
    /// it was the first one.
    pub(in crate::db) fn is_gone(&self) -> bool {
        self.state == CheckoutState::Gone
    }

    /// Whether its statements are part of a transaction.
    pub(in crate::db) fn is_transaction(&self) -> bool {
        self.scope == StatementScope::Transaction
    }

    /// The connection, and the time limit of its answer. The caller passes the answer to
    /// `answered`; until then the connection's state is unknown.
    pub(in crate::db) fn connection(&mut self) -> Result<(Duration, &mut DB::Connection)> {
        if self.state == CheckoutState::Failed {
            // MySQL has rolled back the whole transaction after a deadlock, and later statements
            // would commit by themselves; after a lock timeout it would commit a half.
            return Err(Error::Database(
                "a statement of this transaction failed; it can only be undone".to_owned(),
            ));
        }
        let loan = self.loan.as_mut().ok_or(Error::Missing("the connection"))?;
        self.state = CheckoutState::Asked;
        self.home.asked();
        Ok((self.home.plan.limit, &mut loan.conn))
    }

    /// Evaluates the answer, and the state of the connection after it.
    pub(in crate::db) fn answered<T>(
        &mut self,
        answer: std::result::Result<sqlx::Result<T>, Elapsed>,
    ) -> Result<T> {
        match answer {
            Ok(Ok(value)) => {
                self.is_cold = false;
                self.state = match self.scope {
                    StatementScope::Transaction => CheckoutState::Open,
                    StatementScope::Statement => CheckoutState::Clean,
                };
                Ok(value)
            }
            Ok(Err(error)) => {
                self.home.refused();
                self.state = match error::connection_fate(&error) {
                    ConnectionDisposition::Stays => CheckoutState::Failed,
                    ConnectionDisposition::Goes => CheckoutState::Gone,
                    ConnectionDisposition::AllGo => {
                        self.home.discard_older();
                        CheckoutState::Gone
                    }
                };
                Err(error.into())
            }
            Err(_) => {
                self.home.refused();
                self.home.discard_older();
                let PoolConfig { limit, shown, .. } = &self.home.plan;
                Err(Error::Lost(format!("{shown}: no answer within {limit:?}")))
            }
        }
    }

    /// Runs a statement that returns nothing. The first statement on an unverified connection must
    /// be answered as fast as a ping.
    pub(in crate::db) async fn run_statement(&mut self, sql: &'static str) -> Result<()> {
        let is_cold = self.is_cold;
        let (limit, conn) = self.connection()?;
        let limit = if is_cold { limit.min(PING) } else { limit };
        let answer = tokio::time::timeout(limit, DB::run_statement(conn, sql)).await;
        self.answered(answer)
    }

    /// Commits the transaction. When the connection is lost, the result is unknown: PostgreSQL may
    /// report its shutdown after it has committed.
    pub(in crate::db) async fn commit(mut self) -> Result<()> {
        if self.scope == StatementScope::Statement {
            return Ok(());
        }
        failpoint_or!("db.commit.before", self.lost_by_a_failpoint());
        match self.run_statement("COMMIT").await {
            Ok(()) => {}
            Err(Error::TryAgain(said)) if self.state == CheckoutState::Gone && self.is_server() => {
                return Err(Error::Lost(format!("in the middle of COMMIT: {said}")));
            }
            Err(error) => return Err(error),
        }
        self.home.committed();
        failpoint_or!("db.commit.after", self.lost_by_a_failpoint());
        self.state = CheckoutState::Clean;
        Ok(())
    }

    /// Sends one statement that is a transaction of its own. When the connection is lost, it is
    /// unknown whether it was committed, as for `commit`.
    pub(in crate::db) async fn alone<T>(
        mut self,
        ask: impl AsyncFnOnce(&mut DB::Connection) -> sqlx::Result<T>,
    ) -> Result<T> {
        failpoint_or!("db.commit.before", self.lost_by_a_failpoint());
        let (limit, conn) = self.connection()?;
        let answer = tokio::time::timeout(limit, ask(conn)).await;
        let answer = match self.answered(answer) {
            Err(Error::TryAgain(said)) if self.state == CheckoutState::Gone && self.is_server() => {
                return Err(Error::Lost(format!("in the middle of a commit: {said}")));
            }
            other => other?,
        };
        self.home.committed();
        failpoint_or!("db.commit.after", self.lost_by_a_failpoint());
        self.state = CheckoutState::Clean;
        Ok(answer)
    }

    fn is_server(&self) -> bool {
        self.home.plan.end == PoolEndpoint::Server
    }

    #[cfg(debug_assertions)]
    fn lost_by_a_failpoint(&mut self) -> Error {
        self.state = CheckoutState::Gone;
        Error::Lost("a failpoint says so".to_owned())
    }

    /// Rolls back the transaction, and waits for the end of the rollback.
    pub(in crate::db) async fn rollback(mut self) -> Result<()> {
        if self.state == CheckoutState::Failed {
            self.state = CheckoutState::Open;
        }
        if self.scope == StatementScope::Statement {
            return Ok(());
        }
        self.run_statement("ROLLBACK").await?;
        self.state = CheckoutState::Clean;
        Ok(())
    }

    /// The connection, for longer work without a time limit; until `mark_clean` is called its state
    /// is unknown.
    pub(in crate::db) fn raw_connection(&mut self) -> Result<&mut DB::Connection> {
        self.connection().map(|(_, conn)| conn)
    }

    /// Closes it, whatever is open on it.
    pub(in crate::db) fn give_up(mut self) {
        self.state = CheckoutState::Gone;
    }

    /// Marks that nothing is open on it.
    pub(in crate::db) fn mark_clean(mut self) {
        self.state = CheckoutState::Clean;
    }
}

impl<DB: Driver> Drop for PooledConnection<DB> {
    fn drop(&mut self) {
        let Some(loan) = self.loan.take() else { return };
        let home = Arc::clone(&self.home);
        match self.state {
            CheckoutState::Clean => loan.give_back(&home),
            CheckoutState::Open | CheckoutState::Failed
                if self.scope == StatementScope::Statement =>
            {
                loan.give_back(&home)
            }
            CheckoutState::Open | CheckoutState::Failed => loan.roll_back(home),
            CheckoutState::Asked | CheckoutState::Gone if home.plan.end == PoolEndpoint::Memory => {
                loan.roll_back(home)
            }
            // The server ends the session, and with it the transaction, when it notices the closed
            // connection.
            CheckoutState::Asked | CheckoutState::Gone => {}
        }
    }
}

impl<DB: Driver> Loan<DB> {
    fn give_back(self, home: &PoolShared<DB>) {
        home.take_back(self.conn, self.birth);
        // Only now: the next borrower waits for this slot.
        drop(self.place);
    }

    /// Rolls back what is open and returns the connection, in the background. `close` waits for it,
    /// because it keeps its slot meanwhile.
    fn roll_back(mut self, home: Arc<PoolShared<DB>>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            home.asked();
            let undone =
                tokio::time::timeout(UNDO, DB::run_statement(&mut self.conn, "ROLLBACK")).await;
            if matches!(undone, Ok(Ok(()))) || home.plan.end == PoolEndpoint::Memory {
                self.give_back(&home);
            }
        });
    }
}
