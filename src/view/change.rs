//! Differences between two definitions.

use crate::definition::{DefinitionDifference, DefinitionFault, DifferenceKind};
use schemars::JsonSchema;
use serde::Serialize;

/// An object that is added, removed or changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DefinitionChangeDetail {
    /// The kind of object: `job`, `group`, `dependency` …
    pub entity: String,
    /// The code or name.
    pub code: String,
    /// `added`, `removed` or `changed`.
    pub how: &'static str,
    /// The fields that differ, with their complete values.
    pub fields: Vec<ChangedField>,
}

/// One field before and after.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangedField {
    /// The key as in a definition file, with dots for nested keys: `params.rate`.
    pub field: String,
    /// The value before; null when it had none.
    pub old: Option<String>,
    /// The value after.
    pub new: Option<String>,
}

impl DefinitionChangeDetail {
    /// The document of a difference.
    pub fn from_change(change: &DefinitionDifference) -> Self {
        let (how, fields) = match &change.how {
            DifferenceKind::Added => ("added", &[][..]),
            DifferenceKind::Removed => ("removed", &[][..]),
            DifferenceKind::Changed(fields) => ("changed", &fields[..]),
        };
        let field = |f: &crate::definition::FieldChange| ChangedField {
            field: f.field.clone(),
            old: f.old.clone(),
            new: f.new.clone(),
        };
        Self {
            entity: change.thing.to_string(),
            code: change.code.clone(),
            how,
            fields: fields.iter().map(field).collect(),
        }
    }
}

/// A fault or a warning of a definition.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FaultAt {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: u32,
    /// The fault.
    pub what: String,
    /// The hint.
    pub fix: String,
}

impl FaultAt {
    /// The document of a fault.
    pub fn from_fault(fault: &DefinitionFault) -> Self {
        let DefinitionFault { file, line, what, cure } = fault.clone();
        Self { file, line, what, fix: cure }
    }
}
