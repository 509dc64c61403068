//! What MySQL and MariaDB say behind a CALL.

use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::Session;

/// What a CALL left behind.
#[derive(Debug, Default)]
pub struct Called {
    /// Level, number and text of each warning of its last statement.
    pub warnings: Vec<(String, String, String)>,
    /// Whether a transaction is open; `None` where the server cannot tell.
    pub has_open_transaction: Option<bool>,
    /// The variables that were asked for.
    pub values: Vec<Option<String>>,
}

/// What the first column of our own row behind a CALL is called.
const MARK: &str = "procession_called";

impl Session {
    /// Runs a CALL without arguments of its own to its very end (see `run_into`), and asks behind it for its
    /// warnings, whether it left a transaction open, and the values of session variables of ours: on MariaDB
    /// in the same journey, unless there are warnings.
    pub async fn call(
        &mut self,
        call: &str,
        variables: &[String],
        into: &mut Results,
    ) -> Result<Called, SessionError> {
        // MySQL has no `@@in_transaction`.
        if self.traces.counted.is_none() {
            self.run_into(call, &[], into).await?;
            return self.called(variables).await;
        }
        let mut wanted = vec!["@@in_transaction"];
        wanted.extend(variables.iter().map(String::as_str));
        let wanted = wanted.join(", ");
        into.set_apart(MARK);
        let text = format!("{call}; SELECT @@warning_count AS {MARK}, {wanted}");
        self.run_into(&text, &[], into).await?;
        // A body may have had names sent to us in an encoding in which this one is not known.
        let Some(row) = into.take_marked() else { return self.called(variables).await };
        let mut row = row.into_iter();
        let has_warnings = row.next().flatten().is_none_or(|count| count != "0");
        let has_open_transaction = row.next().flatten().map(|is_open| is_open == "1");
        // A query of variables alone leaves them to be shown.
        let warnings = if has_warnings { self.warnings().await? } else { Vec::new() };
        Ok(Called { warnings, has_open_transaction, values: row.collect() })
    }

    /// The same, asked one by one.
    async fn called(&mut self, variables: &[String]) -> Result<Called, SessionError> {
        let warnings = self.warnings().await?;
        let has_open_transaction = self.has_open_transaction().await?;
        let values = match variables {
            [] => Vec::new(),
            some => {
                let values = self.rows(&format!("SELECT {}", some.join(", ")), &[]).await?;
                values.rows.into_iter().next().unwrap_or_default()
            }
        };
        Ok(Called { warnings, has_open_transaction, values })
    }
}
