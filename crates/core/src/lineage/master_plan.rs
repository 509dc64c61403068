//! Defines the plan of a serial master procedure: its steps in order, and its other statements.

use crate::lineage::access::{CatalogueParam, ObjectName};
use crate::lineage::master_value::MasterValue;

/// Why a step is ordered relative to all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// It runs only under a condition.
    Condition { text: String, line: u32 },
    /// It runs once per iteration of a loop.
    Loop { text: String, line: u32 },
    /// It is in a block with an exception handler.
    Handler { line: u32 },
}

/// An action of the master itself that cannot become a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GateReason {
    /// Dynamic SQL.
    Dynamic,
    /// It may abort the master with an error.
    Abort,
    /// It may end the master early.
    EarlyEnd,
    /// A statement that cannot be converted.
    Statement { why: String },
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MasterArgument {
    /// The name of its parameter, if given.
    pub(super) name: Option<String>,
    /// Its value.
    pub(super) value: MasterValue,
}

/// A variable in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatementValue {
    /// Its name, in lower case.
    pub(super) name: String,
    /// Its declared type; empty if unknown.
    pub(super) type_name: String,
    /// Its value.
    pub(super) value: MasterValue,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepAction {
    /// A call of a routine.
    Call { routine: ObjectName, arguments: Vec<MasterArgument> },
    /// A statement of the master itself, with `:name` in place of variables.
    Statement { text: String, values: Vec<StatementValue> },
    /// Another action, kept as a placeholder in the order.
    Gate { reason: GateReason, text: String },
}

/// A step of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MasterStep {
    pub(super) line: u32,
    pub(super) action: StepAction,
    pub(super) barriers: Vec<Barrier>,
}

/// A property of the master besides its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MasterHabit {
    /// It has an exception handler; with the routines that the handler calls.
    Handler { line: u32, calls: Vec<String> },
    /// It controls transactions.
    Transaction { line: u32 },
}

/// The plan of a master.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MasterPlan {
    pub(super) steps: Vec<MasterStep>,
    pub(super) habits: Vec<MasterHabit>,
}

/// The parameter that receives an argument.
pub(super) fn param_at<'p>(
    params: &'p [CatalogueParam],
    place: usize,
    name: Option<&str>,
) -> Option<&'p CatalogueParam> {
    let Some(name) = name else { return params.get(place) };
    params.iter().find(|one| one.name.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(name)))
}
