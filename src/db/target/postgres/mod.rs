//! PostgreSQL.

mod call;
mod errors;
mod value;

pub(in crate::db) use errors::read_error;

use crate::db::routine::Routine;
use crate::db::session::{Arg, Session};
use crate::db::target::call::{CallError, CallResult, RoutineCall};
use crate::db::target::{
    Capabilities, InputType, InputValue, StopMeans, TargetDatabase, TrialStatement,
};
use futures_util::future::BoxFuture;

/// PostgreSQL 13 and later.
pub(super) const POSTGRES: &dyn TargetDatabase = &PostgresDatabase;

#[derive(Debug)]
struct PostgresDatabase;

/// Options of a URL that the driver knows. It logs all others with their values.
const URL_OPTIONS: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
    "charset",
];

const LEDGER_TABLE: &str = "\
CREATE TABLE procession_ledger (
    idem_key VARCHAR(255) NOT NULL PRIMARY KEY,
    state VARCHAR(10) NOT NULL,
    batch_no VARCHAR(64) NOT NULL,
    job_code VARCHAR(100) NOT NULL,
    attempt INTEGER NOT NULL,
    outputs TEXT,
    opened_at TIMESTAMPTZ(3) NOT NULL,
    done_at TIMESTAMPTZ(3)
)";

/// With the schema, because a body may `SET search_path`.
const LEDGER_ENTRY: &str = "SELECT l.state, l.attempt, l.outputs, n.nspname::text \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN procession_ledger l ON l.idem_key = ? \
    WHERE c.oid = pg_catalog.to_regclass('procession_ledger')";

static CAPABILITIES: Capabilities = Capabilities {
    has_routines: true,
    is_file: false,
    has_socket_addresses: true,
    spans_databases: false,
    stop: StopMeans::CancelFirst,
    stops_definers: true,
    folds_names: true,
    has_functions_named_as_procedures: false,
    omits_only_last_arguments: false,
    lets_bodies_end_transactions: false,
    sends_null_with_lock: false,
    sends_values_of_output_calls: false,
};

impl TargetDatabase for PostgresDatabase {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn quote_name(&self, name: &str) -> String {
        quote_name(name)
    }

    fn quote_user(&self, user: &str) -> Option<String> {
        Some(self.quote_name(user))
    }

    /// Text, which the statement casts.
    fn bind_input(&self, value: &InputValue<'_>) -> Arg {
        value.to_text_argument()
    }

    fn input_fault(&self, value: &InputValue<'_>) -> Option<String> {
        value::input_fault(value)
    }

    fn cast_type(&self, ty: InputType, value: Option<&str>) -> &'static str {
        value::cast_type(ty, value)
    }

    fn call_routine<'s>(
        &self,
        session: &'s mut Session,
        call: &'s RoutineCall<'_>,
    ) -> BoxFuture<'s, Result<CallResult, CallError>> {
        Box::pin(call::call_routine(session, call))
    }

    fn ledger_table(&self) -> &'static str {
        LEDGER_TABLE
    }

    fn ledger_entry_query(&self) -> Option<&'static str> {
        Some(LEDGER_ENTRY)
    }

    fn read_only_statement(&self) -> &'static str {
        "SET default_transaction_read_only = on"
    }

    fn lock_wait_limit(&self, seconds: u32) -> Option<String> {
        Some(format!("SET lock_timeout = '{seconds}s'"))
    }

    fn trial_statement<'s>(
        &'s self,
        session: &'s mut Session,
        seconds: u64,
    ) -> BoxFuture<'s, TrialStatement> {
        Box::pin(trial_statement(session, seconds))
    }

    fn takes_url_option(&self, key: &str) -> bool {
        URL_OPTIONS.contains(&key) || key.starts_with("options[")
    }

    fn cancel_request(&self, number: i64) -> String {
        format!("pg_cancel_backend({number})")
    }

    fn end_request(&self, number: i64) -> String {
        format!("pg_terminate_backend({number})")
    }
}

fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The quoted path of a routine.
fn routine_path(routine: &Routine) -> String {
    format!("{}.{}", quote_name(&routine.schema), quote_name(&routine.name))
}

/// A call of a function in the schema for temporary objects, which goes with its session, where the
/// user may create one; else a plain statement.
async fn trial_statement(session: &mut Session, seconds: u64) -> TrialStatement {
    let make = "CREATE FUNCTION pg_temp.procession_stop_trial(seconds double precision) RETURNS void \
                LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN LOOP BEGIN \
                PERFORM pg_catalog.pg_sleep(seconds); RETURN; \
                EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$";
    let is_stubborn = session.run_statement(make, &[]).await.is_ok();
    let function =
        if is_stubborn { "pg_temp.procession_stop_trial" } else { "pg_catalog.pg_sleep" };
    TrialStatement { text: format!("SELECT {function}({seconds})"), is_stubborn }
}
