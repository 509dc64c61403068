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

impl Session {
    /// Asks behind a CALL for its warnings, whether it left a transaction open, and the values of session
    /// variables of ours: on MariaDB in one journey of what are three.
    pub async fn called(&mut self, variables: &[String]) -> Result<Called, SessionError> {
        // MySQL has no `@@in_transaction`.
        if self.traces.counted.is_none() {
            let warnings = self.warnings().await?;
            let has_open_transaction = self.has_open_transaction().await?;
            let values = match variables {
                [] => Vec::new(),
                some => {
                    let values = self.rows(&format!("SELECT {}", some.join(", ")), &[]).await?;
                    values.rows.into_iter().next().unwrap_or_default()
                }
            };
            return Ok(Called { warnings, has_open_transaction, values });
        }
        let mut wanted = vec!["@@in_transaction"];
        wanted.extend(variables.iter().map(String::as_str));
        let sql = format!("SHOW WARNINGS; SELECT {}", wanted.join(", "));
        let mut results = Results::keeping(1_000, 2);
        self.send(&sql, &[], &mut results).await?;
        let mut row = results.sets.pop().and_then(|set| set.rows.into_iter().next());
        let values = row.as_mut().map(|row| row.split_off(1.min(row.len()))).unwrap_or_default();
        let is_open = row.as_ref().and_then(|row| row.first()?.as_deref()).map(|one| one == "1");
        let warnings = results.sets.pop().map(|set| set.warnings()).unwrap_or_default();
        Ok(Called { warnings, has_open_transaction: is_open, values })
    }
}
