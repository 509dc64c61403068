//! What stands in the paths of routes: `/batches/{group}/{batch_no}`, `/backfills/{id}`.

use schemars::JsonSchema;
use serde::Deserialize;

/// Something with a number.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct IdPath {
    /// Its number.
    pub(super) id: i64,
}

/// Something with a code.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CodePath {
    /// Its code.
    pub(super) code: String,
}

/// Something with a name.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NamePath {
    /// Its name.
    pub(super) name: String,
}

/// A group.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GroupPath {
    /// The group's code.
    pub(super) group: String,
}

/// A batch of a group.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BatchPath {
    /// The group's code.
    pub(super) group: String,
    /// The batch number.
    pub(super) batch_no: String,
}
