//! Versions of groups.

use crate::store::version;
use crate::view::change::DefinitionChangeDetail;
use schemars::JsonSchema;
use serde::Serialize;

/// A version in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VersionSummary {
    /// The version number, counted from 1 within the group.
    pub version: u32,
    /// When it was stored.
    pub at: String,
    /// The author.
    pub author: String,
    /// The remark.
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

/// The differences between two versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VersionDiff {
    /// The differences.
    pub changes: Vec<DefinitionChangeDetail>,
}
