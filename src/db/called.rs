//! What MySQL and MariaDB say behind a CALL.

use crate::db::fault::SessionError;
use crate::db::results::Results;
use crate::db::session::{Arg, Session};

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

/// What is between a body's text and ours: the text may end in a comment.
const NEXT: &str = "\n; ";

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

    /// Runs a statement of a body as `run_into` does. Gives whether there are warnings of it, where that
    /// comes in the same journey: on MariaDB, without values.
    pub async fn run_counting(
        &mut self,
        sql: &str,
        args: &[Arg],
        into: &mut Results,
    ) -> Result<Option<bool>, SessionError> {
        if self.traces.counted.is_none() || !args.is_empty() {
            self.run_into(sql, args, into).await?;
            return Ok(None);
        }
        into.set_apart(MARK);
        let question = format!("{NEXT}SELECT @@warning_count AS {MARK}");
        let text = format!("{sql}{question}");
        let ran = self.run_into(&text, args, into).await;
        ran.map_err(|error| without(error, &question))?;
        let row = into.take_marked();
        Ok(row.map(|row| row.first().is_none_or(|count| count.as_deref() != Some("0"))))
    }

    /// What `call` asks for, one by one.
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

/// An error whose message quotes what was sent ("near '…'", 80 characters of it), without what of that is ours.
fn without(error: SessionError, ours: &str) -> SessionError {
    let SessionError::Database(mut error) = error else { return error };
    if let Some(at) = error.message.find(NEXT) {
        let quoted = &error.message[at..];
        let length =
            quoted.bytes().zip(ours.bytes()).take_while(|(one, other)| one == other).count();
        error.message.replace_range(at..at + length, "");
    }
    SessionError::Database(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::fault::DatabaseError;

    #[test]
    fn an_error_quotes_nothing_of_ours() {
        for (said, shown) in [
            ("near 'FORM t\n; SELECT @@warn' at line 1", "near 'FORM t' at line 1"),
            ("near '\n; SELECT @@warning_count AS c' at line 2", "near '' at line 2"),
            ("near 'FORM t\n; ", "near 'FORM t"),
            ("Table 't' doesn't exist", "Table 't' doesn't exist"),
        ] {
            let error = DatabaseError { message: said.to_owned(), ..DatabaseError::default() };
            let SessionError::Database(error) =
                without(SessionError::Database(error), "\n; SELECT @@warning_count AS c")
            else {
                panic!("it was the server's")
            };
            assert_eq!(error.message, shown);
        }
    }
}
