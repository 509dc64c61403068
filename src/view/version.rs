//! What groups were.

use crate::store::version;
use crate::view::change::Changed;
use schemars::JsonSchema;
use serde::Serialize;

/// A version in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Head {
    /// Counted from 1 within the group.
    pub version: u32,
    /// When it was stored.
    pub at: String,
    /// Who stored it.
    pub author: String,
    /// What was said about it.
    pub remark: Option<String>,
}

impl From<&version::Head> for Head {
    fn from(head: &version::Head) -> Self {
        Self {
            version: head.no,
            at: head.at.to_string(),
            author: head.author.clone(),
            remark: head.remark.clone(),
        }
    }
}

/// What lies between two versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Steps {
    /// Each thing that differs.
    pub changes: Vec<Changed>,
}
