//! PostgreSQL.

mod value;

use crate::db::session::Arg;
use crate::db::target::{Capabilities, InputType, InputValue, StopMeans, TargetDatabase};

/// PostgreSQL 13 and later.
pub(super) const POSTGRES: &dyn TargetDatabase = &PostgresDatabase;

#[derive(Debug)]
struct PostgresDatabase;

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
        format!("\"{}\"", name.replace('"', "\"\""))
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

    fn cancel_request(&self, number: i64) -> String {
        format!("pg_cancel_backend({number})")
    }

    fn end_request(&self, number: i64) -> String {
        format!("pg_terminate_backend({number})")
    }
}
