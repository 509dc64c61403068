//! SQL: statements on a data source, one at a time.

use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::Session;
use crate::db::target::TargetDatabase;
use crate::domain::job::outcome::{AttemptOutcome, JobOutputs, Stream};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::job::{BodyPart, JobKind, TransactionMode};
use crate::domain::params::BoundParam;
use crate::domain::source::DialectName;
use crate::domain::source::statement::{
    SqlStatement, bind_names, is_change_alone, is_query_alone, is_transaction_word, split, unfit,
};
use crate::domain::text::count_words;
use crate::domain::time::span_words;
use crate::handler::log::RunLog;
use crate::handler::packet_limit::refuse_oversized;
use crate::handler::run_on_source::{self, BodyFault, SessionBody};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{AttemptTask, Context, WorkerHandler, bind, orphan};
use futures_util::future::BoxFuture;

/// Number of lines of a failed statement that are logged; the definition has the rest.
const FAILED_LINES: usize = 40;

/// The SQL handler.
pub(crate) struct Sql;

impl WorkerHandler for Sql {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "SQL",
            about: "Runs SQL statements on a data source, one after the other.",
            needs: &[BodyPart::Source, BodyPart::Sql],
            may_have: &[BodyPart::Transaction, BodyPart::Tx, BodyPart::Params],
            holds_session_lock: true,
            ..JobKind::PLAIN
        }
    }

    fn gets_ready(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(
            async move { run_on_source::run_on_source(task, ctx, &SqlBody { task, ctx }).await },
        )
    }

    fn end_orphan<'a>(
        &'a self,
        task: &'a AttemptTask,
        ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(orphan::end_orphan(task, ctx))
    }
}

struct SqlBody<'a> {
    task: &'a AttemptTask,
    ctx: &'a Context,
}

impl SessionBody for SqlBody<'_> {
    fn run<'s>(&'s self, session: &'s mut Session) -> BoxFuture<'s, Result<JobOutputs, BodyFault>> {
        Box::pin(async move {
            let run = self.statements(session)?;
            match self.task.job.transaction {
                // BEGIN and COMMIT were two round trips of three.
                TransactionMode::One if run.is_query_alone() => run.run_each(session).await,
                TransactionMode::One if run.is_change_alone() => run.alone(session).await,
                TransactionMode::One => run.in_one_transaction(session, |_| Ok(())).await,
                TransactionMode::Each => {
                    run.refuse_transaction_words("each")?;
                    run.run_each(session).await
                }
                TransactionMode::None => {
                    let outputs = run.run_each(session).await?;
                    refuse_open_transaction(session).await?;
                    Ok(outputs)
                }
            }
        })
    }

    fn run_inside<'s>(
        &'s self,
        session: &'s mut Session,
    ) -> BoxFuture<'s, Result<JobOutputs, BodyFault>> {
        Box::pin(async move {
            if self.task.job.transaction != TransactionMode::One {
                let tx = self.task.job.tx.as_str();
                return Err(BodyFault::Said(format!("tx: {tx} needs transaction: one")));
            }
            self.statements(session)?.inside(session, |_| Ok(())).await
        })
    }
}

impl SqlBody<'_> {
    fn statements(&self, session: &Session) -> Result<StatementRunner<'_>, BodyFault> {
        let dialect = dialect_of(session)?;
        let text = self.task.job.sql.as_ref().and_then(|sql| sql.text_for(dialect));
        let text =
            text.ok_or_else(|| BodyFault::Said(format!("the job has no SQL for {dialect}")))?;
        StatementRunner::new(text, &self.task.params, session, self.ctx)
    }
}

/// A body left a transaction open: closing the connection rolls it back, so it must not count as a
/// success.
async fn refuse_open_transaction(session: &mut Session) -> Result<(), BodyFault> {
    let at_end = |e| BodyFault::At("after the last statement".to_owned(), e);
    let is_open = session.has_open_transaction().await.map_err(at_end)?;
    if is_open { Err(undo_open_transaction(session).await?) } else { Ok(()) }
}

/// Rolls back what a body left open, and returns the fault.
pub(crate) async fn undo_open_transaction(session: &mut Session) -> Result<BodyFault, BodyFault> {
    let at_end = |e| BodyFault::At("after the last statement".to_owned(), e);
    session.rollback().await.map_err(at_end)?;
    let said = "the body left a transaction open and it was rolled back; end it with COMMIT";
    Ok(BodyFault::Said(said.to_owned()))
}

/// The SQL of the session's server.
fn dialect_of(session: &Session) -> Result<DialectName, BodyFault> {
    let named = bind::dialect_name(session.database());
    named.map_err(|error| BodyFault::before("reading the SQL", error))
}

/// Statements ready to be sent.
pub(crate) struct StatementRunner<'a> {
    statements: Vec<SqlStatement>,
    params: &'a [BoundParam],
    log: &'a RunLog,
    limits: OutputLimits,
    database: &'static dyn TargetDatabase,
    dialect: DialectName,
}

impl<'a> StatementRunner<'a> {
    /// Splits and checks the whole text, so that a fault in the last statement is found before the
    /// first one has run.
    pub(crate) fn new(
        text: &str,
        params: &'a [BoundParam],
        session: &Session,
        ctx: &'a Context,
    ) -> Result<Self, BodyFault> {
        let database = session.database();
        let name = dialect_of(session)?;
        let (log, limits) = (&ctx.log, ctx.options.outputs);
        let (statements, dialect) = (split(text, name), name);
        let run = Self { statements, params, log, limits, database, dialect };
        if run.statements.is_empty() {
            return Err(BodyFault::Said("the SQL text holds no statement".to_owned()));
        }
        for (at, statement) in run.statements.iter().enumerate() {
            if let Some(why) = unfit(statement, name) {
                return Err(BodyFault::Said(format!("{}: {why}", run.place(at))));
            }
            if statement.is_routine {
                continue;
            }
            let bound = bind_names(&statement.text, name, |_| "text");
            let missing = bound.names.iter().find(|n| run.param(n).is_none());
            if let Some(missing) = missing {
                let known: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
                return Err(BodyFault::Said(format!(
                    "{}: :{missing} is not among the job's parameters ({})",
                    run.place(at),
                    if known.is_empty() { "it has none".to_owned() } else { known.join(", ") },
                )));
            }
            for param in bound.names.iter().filter_map(|name| run.param(name)) {
                bind::refuse_unheld(param, database).map_err(|why| {
                    BodyFault::Said(format!("{}: {why}; nothing was run", run.place(at)))
                })?;
            }
        }
        Ok(run)
    }

    fn param(&self, name: &str) -> Option<&'a BoundParam> {
        self.params.iter().find(|p| p.name == name)
    }

    /// `statement 3 (line 14)`
    fn place(&self, at: usize) -> String {
        format!("statement {} (line {})", at + 1, self.statements[at].line)
    }

    /// The only statement, with its values; more than one is a fault.
    pub(crate) fn single_statement(
        &self,
    ) -> Result<(String, Vec<crate::db::session::Arg>), BodyFault> {
        match &self.statements[..] {
            [statement] => Ok(self.bound(statement)),
            all => {
                Err(BodyFault::Said(format!("one query is wanted, and there are {}", all.len())))
            }
        }
    }

    fn is_query_alone(&self) -> bool {
        matches!(&self.statements[..], [only] if is_query_alone(only, self.dialect))
    }

    /// Whether it is a single statement that is atomic without a transaction.
    pub(crate) fn is_change_alone(&self) -> bool {
        matches!(&self.statements[..], [only] if is_change_alone(only, self.dialect))
    }

    fn refuse_transaction_words(&self, mode: &str) -> Result<(), BodyFault> {
        let found = self.statements.iter().position(|s| is_transaction_word(s, self.dialect));
        found.map_or(Ok(()), |at| {
            Err(BodyFault::Said(format!(
                "{}: the statement ends or opens a transaction itself; that needs transaction: \
                 none, and this job says {mode}",
                self.place(at)
            )))
        })
    }

    /// Runs all statements in one transaction; `check` evaluates the outputs before the commit.
    pub(crate) async fn in_one_transaction(
        &self,
        session: &mut Session,
        check: impl FnOnce(&mut JobOutputs) -> Result<(), String> + Send,
    ) -> Result<JobOutputs, BodyFault> {
        self.refuse_transaction_words("one")?;
        session.begin().await.map_err(|e| BodyFault::before("opening the transaction", e))?;
        match self.inside(session, check).await {
            Ok(outputs) => match session.commit().await {
                Ok(()) => Ok(outputs),
                Err(error) => {
                    Err(self.roll_back(session, BodyFault::At("COMMIT".to_owned(), error)).await)
                }
            },
            Err(fault) => Err(self.roll_back(session, fault).await),
        }
    }

    /// Runs all statements in the open transaction; `check` evaluates the outputs.
    pub(crate) async fn inside(
        &self,
        session: &mut Session,
        check: impl FnOnce(&mut JobOutputs) -> Result<(), String> + Send,
    ) -> Result<JobOutputs, BodyFault> {
        self.refuse_transaction_words("one")?;
        let mut outputs = self.run_each(session).await?;
        check(&mut outputs).map_err(BodyFault::Said)?;
        Ok(outputs)
    }

    /// Rolls back after a fault; a connection that fails to do so rolls back when it ends.
    async fn roll_back(&self, session: &mut Session, fault: BodyFault) -> BodyFault {
        use SessionError::Lost;
        if !matches!(fault, BodyFault::At(_, Lost(_))) && session.rollback().await.is_ok() {
            self.log.add_line(Stream::System, "rolled back");
        }
        fault
    }

    /// Runs the single query, without logging it.
    pub(crate) async fn query(&self, session: &mut Session) -> Result<JobOutputs, BodyFault> {
        let [statement] = &self.statements[..] else {
            let count = self.statements.len();
            return Err(BodyFault::Said(format!(
                "it must be one query, and is {count} statements"
            )));
        };
        let (text, args) = self.bound(statement);
        let mut results = bind::results(self.limits);
        let ran = session.run_into(&text, &args, &mut results).await;
        ran.map_err(|error| BodyFault::At("query".to_owned(), error))?;
        Ok(bind::outputs(results, self.limits))
    }

    /// Runs the statements one after the other and logs the effect of each.
    async fn run_each(&self, session: &mut Session) -> Result<JobOutputs, BodyFault> {
        refuse_oversized(session, self.params).await?;
        let mut results = bind::results(self.limits);
        for (at, statement) in self.statements.iter().enumerate() {
            let (text, args) = self.bound(statement);
            let start = Stopwatch::start();
            let (read, changed) = (results.rows_read, results.rows_affected);
            session
                .run_into(&text, &args, &mut results)
                .await
                .map_err(|error| self.failed(at, error))?;
            self.log_statement(at, read, changed, &results, start.elapsed_ms());
            log_warnings(session, self.log).await.map_err(|e| BodyFault::At(self.place(at), e))?;
        }
        Ok(bind::outputs(results, self.limits))
    }

    /// Runs the single change, as a transaction by itself.
    pub(crate) async fn alone(&self, session: &mut Session) -> Result<JobOutputs, BodyFault> {
        refuse_oversized(session, self.params).await?;
        let (mut results, start) = (bind::results(self.limits), Stopwatch::start());
        let (text, args) = self.single_statement()?;
        let done = session.change_alone(&text, &args, &mut results).await;
        done.map_err(|error| self.failed(0, error))?;
        self.log_statement(0, 0, 0, &results, start.elapsed_ms());
        Ok(bind::outputs(results, self.limits))
    }

    /// The fault of the statement `at`. Its text is logged as written, with names in place of
    /// values: the message alone does not show which table or column is meant.
    fn failed(&self, at: usize, error: SessionError) -> BodyFault {
        let place = self.place(at);
        if matches!(error, SessionError::Braked) {
            // It was stopped; the log of the stop request mentions that.
            return BodyFault::At(place, error);
        }
        self.log.add_line(Stream::System, format!("{place} failed: {error}"));
        for line in self.statements[at].text.trim().lines().take(FAILED_LINES) {
            self.log.add_line(Stream::System, format!("    {line}"));
        }
        BodyFault::At(place, error)
    }

    /// Says what the statement `at` did; `read` and `changed` are the rows of the statements before it.
    fn log_statement(&self, at: usize, read: u64, changed: u64, results: &Results, took: i64) {
        let rows = match (results.rows_read - read, results.rows_affected - changed) {
            (0, changed) => format!("{} changed", count_words(changed, "row")),
            (read, 0) => count_words(read, "row"),
            (read, changed) => {
                format!("{}, {} changed", count_words(read, "row"), count_words(changed, "row"))
            }
        };
        let line = format!("{}: {rows} in {}", self.place(at), span_words(took));
        self.log.add_line(Stream::System, line);
    }

    fn bound(&self, statement: &SqlStatement) -> (String, Vec<crate::db::session::Arg>) {
        if statement.is_routine {
            return (statement.text.clone(), Vec::new());
        }
        let database = self.database;
        let cast = |n: &str| self.param(n).map_or("text", |p| bind::cast_type_of(p, database));
        let bound = bind_names(&statement.text, self.dialect, cast);
        let args = bound.names.iter().filter_map(|n| self.param(n));
        (bound.text, args.map(|p| bind::bind_argument(p, database)).collect())
    }
}

/// Logs the warnings of the last statement. They do not change the end of the job: whether a
/// warning is a failure is decided by a success rule of the job.
pub(crate) async fn log_warnings(session: &mut Session, log: &RunLog) -> Result<(), SessionError> {
    use SessionError::Lost;
    match session.warnings().await {
        Ok(warnings) => {
            say_warnings(&warnings, log);
            Ok(())
        }
        // Lost: the next statement would fail as well. Any other error only loses a warning.
        Err(Lost(why)) => Err(Lost(why)),
        Err(_) => Ok(()),
    }
}

/// Logs warnings.
pub(crate) fn say_warnings(warnings: &[(String, String, String)], log: &RunLog) {
    for (level, number, text) in warnings {
        log.add_line(Stream::Database, format!("{level} {number}: {text}"));
    }
}
