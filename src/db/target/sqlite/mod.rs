//! SQLite: a file that this process opens.

mod errors;

pub(in crate::db) use errors::read_error;

use crate::db::fault::SessionError;
use crate::db::session::{Arg, Session};
use crate::db::target::call::{CallError, CallResult, CallStep, RoutineCall};
use crate::db::target::value::is_whole;
use crate::db::target::{
    Capabilities, InputType, InputValue, StopMeans, TargetDatabase, TrialStatement,
};
use bigdecimal::BigDecimal;
use futures_util::future::BoxFuture;
use std::str::FromStr as _;

/// SQLite 3.
pub(super) const SQLITE: &dyn TargetDatabase = &SqliteDatabase;

#[derive(Debug)]
struct SqliteDatabase;

const LEDGER_TABLE: &str = "\
CREATE TABLE procession_ledger (
    idem_key TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL,
    batch_no TEXT NOT NULL,
    job_code TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    outputs TEXT,
    opened_at TEXT NOT NULL,
    done_at TEXT
)";

static CAPABILITIES: Capabilities = Capabilities {
    has_routines: false,
    is_file: true,
    has_socket_addresses: false,
    spans_databases: false,
    stop: StopMeans::Flag,
    stops_definers: true,
    folds_names: false,
    has_functions_named_as_procedures: false,
    omits_only_last_arguments: false,
    lets_bodies_end_transactions: false,
    sends_null_with_lock: false,
    sends_values_of_output_calls: true,
};

impl TargetDatabase for SqliteDatabase {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn capabilities(&self) -> &'static Capabilities {
        &CAPABILITIES
    }

    fn quote_name(&self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn quote_user(&self, _: &str) -> Option<String> {
        None
    }

    /// A decimal becomes the nearest number when it is bound.
    fn bind_input(&self, value: &InputValue<'_>) -> Arg {
        value.to_number_argument(|_| true)
    }

    fn input_fault(&self, value: &InputValue<'_>) -> Option<String> {
        match value.ty {
            InputType::Int => value.text.parse::<i64>().is_err().then(|| {
                "SQLite has whole numbers up to 9223372036854775807 and would take another number; \
                 declare it type: text"
                    .to_owned()
            }),
            InputType::Decimal => decimal_fault(value),
            InputType::Text
            | InputType::Date
            | InputType::Datetime
            | InputType::Bool
            | InputType::Bytes => None,
        }
    }

    fn call_routine<'s>(
        &self,
        _: &'s mut Session,
        call: &'s RoutineCall<'_>,
    ) -> BoxFuture<'s, Result<CallResult, CallError>> {
        let said = format!("SQLite has no routines, and so no {}", call.routine);
        let error = CallError::at(CallStep::Call)(SessionError::refused(said));
        Box::pin(std::future::ready(Err(error)))
    }

    fn ledger_table(&self) -> &'static str {
        LEDGER_TABLE
    }

    fn read_only_statement(&self) -> &'static str {
        "PRAGMA query_only = ON"
    }

    fn lock_wait_limit(&self, _: u32) -> Option<String> {
        None
    }

    /// Some PRAGMAs are.
    fn runs_while_parsing(&self, statement: &str) -> bool {
        statement.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("PRAGMA"))
    }

    /// About ten seconds of counting.
    fn trial_statement<'s>(&'s self, _: &'s mut Session, _: u64) -> BoxFuture<'s, TrialStatement> {
        let text =
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 50000000) \
                    SELECT COUNT(*) FROM n"
                .to_owned();
        Box::pin(std::future::ready(TrialStatement { text, is_stubborn: false }))
    }

    fn end_request(&self, _: i64) -> String {
        "an interrupt".to_owned()
    }
}

fn decimal_fault(value: &InputValue<'_>) -> Option<String> {
    let Ok(number) = BigDecimal::from_str(value.text) else {
        return (value.text == "NaN").then(|| {
            "SQLite has no NaN and would take NULL; declare it type: text, or return NULL"
                .to_owned()
        });
    };
    (!is_whole(&number) && !value.is_double(&number)).then(|| {
        format!(
            "SQLite has no exact decimals and would take another number for this value of {} \
             digits; declare it type: text, or hand on whole cents as type: int",
            number.digits()
        )
    })
}
