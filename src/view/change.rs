//! What differs between two definitions.

use crate::definition::{DefinitionDifference, DefinitionFault, DifferenceKind};
use schemars::JsonSchema;
use serde::Serialize;

/// A thing that is added, removed or changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DefinitionChangeDetail {
    /// What kind of thing: `job`, `group`, `dependency` …
    pub thing: String,
    /// Its code or name.
    pub code: String,
    /// `added`, `removed` or `changed`.
    pub how: &'static str,
    /// The fields that differ, whole.
    pub fields: Vec<ChangedField>,
}

/// One field before and after.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChangedField {
    /// Its key as in a definition file, with a dot where it lies deeper: `params.rate`.
    pub field: String,
    /// Its value before; none when it had none.
    pub old: Option<String>,
    /// Its value after.
    pub new: Option<String>,
}

impl DefinitionChangeDetail {
    /// Of a change.
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
            thing: change.thing.to_string(),
            code: change.code.clone(),
            how,
            fields: fields.iter().map(field).collect(),
        }
    }
}

/// One thing wrong with a definition, or worth a look.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FaultAt {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1; 0 when the file as a whole is meant.
    pub line: u32,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub cure: String,
}

impl FaultAt {
    /// Of a fault.
    pub fn from_fault(fault: &DefinitionFault) -> Self {
        let DefinitionFault { file, line, what, cure } = fault.clone();
        Self { file, line, what, cure }
    }
}
