//! Path parameters of routes: `/batches/{group}/{batch_no}`, `/backfills/{id}`.

use schemars::JsonSchema;
use serde::Deserialize;

/// An object with a number.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct IdPath {
    /// The number.
    pub(super) id: i64,
}

/// An object with a code.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CodePath {
    /// The code.
    pub(super) code: String,
}

/// An object with a name.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NamePath {
    /// The name.
    pub(super) name: String,
}

/// A group.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GroupPath {
    /// The group code.
    pub(super) group: String,
}

/// A batch of a group.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BatchPath {
    /// The group code.
    pub(super) group: String,
    /// The batch number.
    pub(super) batch_no: String,
}
