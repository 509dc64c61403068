//! The databases on which bodies run: what is particular to each server family is in its folder or
//! file here, behind one trait.
//!
//! `docs/adding-a-database.md` describes how another one is added.

mod call;
mod capabilities;
pub(in crate::db) mod mysql;
pub(in crate::db) mod postgres;
pub(in crate::db) mod sqlite;
mod value;

pub use call::{CallArgument, CallError, CallResult, CallStep, CallValue, RoutineCall};
pub use capabilities::{Capabilities, StopMeans};
pub(in crate::db) use mysql::of_server;
pub use value::{InputDay, InputType, InputValue};

use crate::db::dialect::Dialect;
use crate::db::fault::SessionError;
use crate::db::routine::Routine;
use crate::db::session::{Arg, Session};
use futures_util::future::BoxFuture;
use std::fmt;

/// A server family: its capabilities and its texts.
pub trait TargetDatabase: fmt::Debug + Send + Sync {
    /// Its name in definitions and log lines: that of its SQL.
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> &'static Capabilities;

    /// `name` as a quoted identifier, whatever characters it contains.
    fn quote_name(&self, name: &str) -> String;

    /// A user as in a GRANT; `None` where there are no users.
    fn quote_user(&self, user: &str) -> Option<String>;

    /// The argument to bind for a value.
    fn bind_input(&self, value: &InputValue<'_>) -> Arg;

    /// Why the server has no such value in its type for the parameter: it would refuse it in the
    /// middle of the work, or take another one.
    fn input_fault(&self, value: &InputValue<'_>) -> Option<String>;

    /// Whether a routine's parameter of that type takes text byte by byte, so that `5` becomes 53
    /// without an error.
    fn takes_text_as_bits(&self, _server_type: &str) -> bool {
        false
    }

    /// The type to which a statement casts the text of a value; where values are bound with their
    /// types it is not used.
    fn cast_type(&self, _ty: InputType, _value: Option<&str>) -> &'static str {
        "text"
    }

    /// Calls a routine to its end, and reads what it returned and left behind.
    fn call_routine<'s>(
        &self,
        session: &'s mut Session,
        call: &'s RoutineCall<'_>,
    ) -> BoxFuture<'s, Result<CallResult, CallError>>;

    /// The end of the sentence that a routine does not exist, where another cause looks the same.
    fn missing_routine_hint(&self) -> &'static str {
        ""
    }

    /// The privileges of the session's user; `None` where a session need not know them: the server
    /// shows for each routine whether the user may call it, and lets it end its own sessions.
    fn read_privileges<'s>(
        &self,
        _: &'s mut Session,
    ) -> BoxFuture<'s, Result<Option<Box<dyn UserPrivileges>>, SessionError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// The grant that lets a user end sessions that run another user's routine; empty where none is
    /// needed.
    fn definer_stop_grant(&self, _user: Option<&str>) -> String {
        String::new()
    }

    /// The end of the sentence that a session was not ended because it runs another user's routine.
    fn not_stoppable_hint(&self) -> &'static str {
        ""
    }

    /// The grant without which the server does not show what a body left on a session; `None` where
    /// none is needed.
    fn reset_grant(&self, _user: Option<&str>) -> Option<String> {
        None
    }

    /// The grant that shows a user the text of routines in a schema; empty where every user sees it.
    fn hidden_routine_grant(&self, _schema: &str, _grantee: &str) -> String {
        String::new()
    }

    /// The statement that creates the ledger, without a semicolon.
    fn ledger_table(&self) -> &'static str;

    /// A query for state, attempt and outputs of a key (`?`) in the ledger, and the schema in which
    /// the ledger is; `None` where a body cannot change in which schema names are looked up.
    fn ledger_entry_query(&self) -> Option<&'static str> {
        None
    }

    /// Makes a session refuse changes.
    fn read_only_statement(&self) -> &'static str;

    /// Limits the waits of a session for locks on tables; `None` where there are no such locks.
    fn lock_wait_limit(&self, seconds: u32) -> Option<String>;

    /// Asks for the largest packet in bytes; `None` where there is no such limit.
    fn packet_limit_query(&self) -> Option<&'static str> {
        None
    }

    /// Whether the driver knows an option of a URL, or ignores those that it does not know without
    /// logging their values.
    fn takes_url_option(&self, _key: &str) -> bool {
        true
    }

    /// Whether the server may execute this statement while it parses it.
    fn runs_while_parsing(&self, _statement: &str) -> bool {
        false
    }

    /// A statement that runs for `seconds`, unless it is stopped. It leaves nothing on the server
    /// once its session has ended.
    fn trial_statement<'s>(
        &'s self,
        session: &'s mut Session,
        seconds: u64,
    ) -> BoxFuture<'s, TrialStatement>;

    /// The request that cancels the statement of a session, for the log.
    fn cancel_request(&self, number: i64) -> String {
        format!("cancel {number}")
    }

    /// The request that ends a session, for the log.
    fn end_request(&self, number: i64) -> String;
}

/// The privileges of a user, as its server shows them to it.
pub trait UserPrivileges: Send + Sync {
    /// Whether the user may end a session that acts as another user, as one does inside a SQL
    /// SECURITY DEFINER procedure.
    fn may_stop_other_users(&self) -> bool;

    /// Whether the user may execute a routine.
    fn may_execute(&self, routine: &Routine) -> bool;
}

/// A statement to be stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialStatement {
    pub text: String,
    /// Whether it runs with the privileges of its owner and swallows cancels.
    pub is_stubborn: bool,
}

/// The family of a URL's scheme. Products behind one protocol are told apart by `Session::database`.
pub fn of_url(url: &str) -> Option<&'static dyn TargetDatabase> {
    Dialect::of_url(url).map(of_dialect)
}

/// The family of a name, as `TargetDatabase::name` returns it.
pub fn named(name: &str) -> Option<&'static dyn TargetDatabase> {
    Dialect::ALL.into_iter().map(of_dialect).find(|database| database.name() == name)
}

/// The family of a dialect before its product is known.
pub(in crate::db) fn of_dialect(dialect: Dialect) -> &'static dyn TargetDatabase {
    match dialect {
        Dialect::Sqlite => sqlite::SQLITE,
        Dialect::Mysql => mysql::MYSQL,
        Dialect::Postgres => postgres::POSTGRES,
    }
}
