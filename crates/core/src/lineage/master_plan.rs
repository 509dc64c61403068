//! The plan of a serial master procedure, as values: its steps in order, and its other statements.

use crate::lineage::access::{CatalogueParam, ObjectName};
use crate::lineage::master_value::MasterValue;

/// Why a step is ordered against all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// It runs only under a condition.
    Condition { text: String, line: u32 },
    /// It runs as often as a loop goes round.
    Loop { text: String, line: u32 },
    /// It stands in a block with a handler of failures.
    Handler { line: u32 },
}

/// Something that the master does itself, and that no job can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GateReason {
    /// SQL that is made at run time.
    Dynamic,
    /// It may stop the master with an error.
    Abort,
    /// It may end the master early.
    EarlyEnd,
    /// A statement that cannot be taken over.
    Statement { why: String },
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MasterArgument {
    /// The parameter it is for, where it is named.
    pub(super) name: Option<String>,
    /// What it is.
    pub(super) value: MasterValue,
}

/// A variable in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatementValue {
    /// Its name, in lower case.
    pub(super) name: String,
    /// Its type as the master declares it; empty where that is not known.
    pub(super) type_name: String,
    /// What it holds.
    pub(super) value: MasterValue,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepAction {
    /// Calls a routine.
    Call { routine: ObjectName, arguments: Vec<MasterArgument> },
    /// Runs a statement of the master's own, with `:name` in place of variables.
    Statement { text: String, values: Vec<StatementValue> },
    /// Something else, which is kept as a place in the order.
    Gate { reason: GateReason, text: String },
}

/// A step of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MasterStep {
    pub(super) line: u32,
    pub(super) action: StepAction,
    pub(super) barriers: Vec<Barrier>,
}

/// What the master does besides its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MasterHabit {
    /// It handles failures; what its handler calls.
    Handler { line: u32, calls: Vec<String> },
    /// It says where transactions begin and end.
    Transaction { line: u32 },
}

/// A master that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MasterPlan {
    pub(super) steps: Vec<MasterStep>,
    pub(super) habits: Vec<MasterHabit>,
}

/// The parameter that an argument is for.
pub(super) fn param_at<'p>(
    params: &'p [CatalogueParam],
    place: usize,
    name: Option<&str>,
) -> Option<&'p CatalogueParam> {
    let Some(name) = name else { return params.get(place) };
    params.iter().find(|one| one.name.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(name)))
}
