//! SQL text: one for every dialect, or one each.

use crate::domain::source::DialectName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// SQL text, the same for every dialect or one per dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SqlText {
    /// One text for every dialect.
    Same(String),
    /// A text per dialect, so that one DAG runs on a laptop and on the team's server.
    Per(BTreeMap<DialectName, String>),
}

impl SqlText {
    /// The text for `dialect`, if there is one.
    pub fn text_for(&self, dialect: DialectName) -> Option<&str> {
        match self {
            Self::Same(text) => Some(text),
            Self::Per(texts) => texts.get(&dialect).map(String::as_str),
        }
    }
}

/// How the statements of a SQL body are grouped into transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum TransactionMode {
    /// All statements in one transaction; an error rolls all back.
    #[default]
    One,
    /// Each statement in its own transaction.
    Each,
    /// None is opened: the statements contain BEGIN and COMMIT themselves.
    None,
}
