//! What groups were.

use crate::store::version;
use crate::view::change::DefinitionChangeDetail;
use schemars::JsonSchema;
use serde::Serialize;

/// A version in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VersionSummary {
    /// Counted from 1 within the group.
    pub version: u32,
    /// When it was stored.
    pub at: String,
    /// Who stored it.
    pub author: String,
    /// What was said about it.
    pub remark: Option<String>,
}

impl From<&version::VersionHead> for VersionSummary {
    fn from(head: &version::VersionHead) -> Self {
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
pub struct VersionDiff {
    /// Each thing that differs.
    pub changes: Vec<DefinitionChangeDetail>,
}
