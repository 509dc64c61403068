//! Reads warnings, transaction state and output values after a CALL on MySQL and MariaDB.

use crate::db::cell::Cell;
use crate::db::decode::as_declared;
use crate::db::fault::SessionError;
use crate::db::mysql_server::MysqlServer;
use crate::db::results::{ResultLimits, Results, Rows};
use crate::db::session::Session;
use crate::db::session_reset::MYSQL_TRANSACTION_PROBE;

/// A session variable that holds a value of a CALL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallVariable {
    /// Its name, with the @.
    pub name: String,
    /// The declared type of the parameter.
    pub type_name: String,
}

/// The state after a CALL.
#[derive(Debug, Default)]
pub struct Called {
    /// Level, number and text of each warning of its last statement.
    pub warnings: Vec<(String, String, String)>,
    /// Whether a transaction is open.
    pub has_open_transaction: bool,
    /// The values of the requested variables.
    pub values: Vec<Cell>,
}

/// The name of the first column of our own row after a CALL.
const MARK: &str = "procession_called";
/// MySQL's name of the column of `SHOW COUNT(*) WARNINGS`, the only query that keeps the warnings
/// readable.
const WARNING_COUNT: &str = "@@session.warning_count";

impl Session {
    /// Runs a CALL without arguments of its own to its end (see `run_into`), and then reads its
    /// warnings, whether it left a transaction open, and the values of our session variables: in
    /// the same round trip, unless MariaDB has warnings.
    pub async fn call(
        &mut self,
        call: &str,
        variables: &[CallVariable],
        into: &mut Results,
    ) -> Result<Called, SessionError> {
        let called = match self.server() {
            Some(MysqlServer::MariaDb) => self.call_mariadb(call, variables, into).await?,
            Some(MysqlServer::Mysql) => self.call_mysql(call, variables, into).await?,
            Some(MysqlServer::OceanBase) | None => {
                self.run_into(call, &[], into).await?;
                None
            }
        };
        let mut called = match called {
            Some(called) => called,
            // A body may have changed the encoding of results to one in which our column names are
            // garbled.
            None => self.ask_one_by_one(variables).await?,
        };
        for (cell, variable) in called.values.iter_mut().zip(variables) {
            *cell = as_declared(std::mem::replace(cell, Cell::Null), &variable.type_name);
        }
        Ok(called)
    }

    async fn call_mariadb(
        &mut self,
        call: &str,
        variables: &[CallVariable],
        into: &mut Results,
    ) -> Result<Option<Called>, SessionError> {
        into.set_apart(MARK);
        let wanted = selected("@@in_transaction", variables);
        let text = format!("{call}; SELECT @@warning_count AS {MARK}, {wanted}");
        self.run_into(&text, &[], into).await?;
        let Some(row) = into.take_own().into_iter().next() else { return Ok(None) };
        let has_warnings = row.first(0).is_none_or(|count| count != "0");
        let has_open_transaction = row.first(1).is_none_or(|is_open| is_open != "0");
        // A query that only reads variables keeps the warnings readable.
        let warnings = if has_warnings { self.warnings().await? } else { Vec::new() };
        let values = row.first_cells().into_iter().skip(2).collect();
        Ok(Some(Called { warnings, has_open_transaction, values }))
    }

    /// MySQL reveals an open transaction by refusing the last statement, after everything else.
    async fn call_mysql(
        &mut self,
        call: &str,
        variables: &[CallVariable],
        into: &mut Results,
    ) -> Result<Option<Called>, SessionError> {
        into.set_apart(WARNING_COUNT);
        let wanted = selected(&format!("1 AS {MARK}"), variables);
        let text = format!(
            "{call}; SHOW COUNT(*) WARNINGS; SHOW WARNINGS; SELECT {wanted}; {MYSQL_TRANSACTION_PROBE}"
        );
        let ran = self.run_into(&text, &[], into).await;
        let mut own = into.take_own();
        let values = own.pop().filter(|set| set.columns.first().is_some_and(|name| name == MARK));
        let has_open_transaction = match (ran, &values) {
            (Ok(()), _) => false,
            (Err(error), Some(_)) if error.is_transaction_open() => true,
            (Err(error), _) => return Err(error),
        };
        self.traces.own_sets += 1;
        let Some(values) = values else { return Ok(None) };
        // Without a warning the result set is missing.
        let warnings = own.get(1).map(Rows::warnings).unwrap_or_default();
        let values = values.first_cells().into_iter().skip(1).collect();
        Ok(Some(Called { warnings, has_open_transaction, values }))
    }

    async fn ask_one_by_one(&mut self, variables: &[CallVariable]) -> Result<Called, SessionError> {
        let warnings = self.warnings().await?;
        let values = match variables {
            [] => Vec::new(),
            _ => {
                let limits = ResultLimits { rows: 1, sets: 1, ..ResultLimits::uncut() };
                let mut asked = Results::of_body(limits);
                let names: Vec<&str> = variables.iter().map(|v| v.name.as_str()).collect();
                self.send_statement(&format!("SELECT {}", names.join(", ")), &[], &mut asked)
                    .await?;
                asked.sets.first().map(Rows::first_cells).unwrap_or_default()
            }
        };
        let has_open_transaction = self.has_open_transaction().await?;
        Ok(Called { warnings, has_open_transaction, values })
    }
}

fn selected(first: &str, variables: &[CallVariable]) -> String {
    let mut all = vec![first];
    all.extend(variables.iter().map(|variable| variable.name.as_str()));
    all.join(", ")
}
