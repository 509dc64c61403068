//! The call of a routine, as the caller orders it and as it ended.

use crate::db::cell::Cell;
use crate::db::fault::{DatabaseError, SessionError};
use crate::db::results::{ResultLimits, Results};
use crate::db::routine::{Routine, RoutineParam, RoutineParamMode};
use crate::db::session::Arg;

/// A routine with the values for its parameters.
#[derive(Debug)]
pub struct RoutineCall<'a> {
    pub routine: &'a Routine,
    /// One for each of its parameters that a call has, in order.
    pub arguments: Vec<CallArgument<'a>>,
    /// Whether a transaction is open in which it must run.
    pub is_in_transaction: bool,
    pub limits: ResultLimits,
}

/// The argument for one parameter.
#[derive(Debug)]
pub struct CallArgument<'a> {
    pub param: &'a RoutineParam,
    /// `None`: its default.
    pub value: Option<CallValue>,
}

/// A value for a parameter, which an output parameter does not use.
#[derive(Clone, Debug, PartialEq)]
pub struct CallValue {
    /// Its number among the values that may have been sent with the lock.
    pub number: usize,
    pub arg: Arg,
}

impl CallArgument<'_> {
    pub(super) fn is_output_only(&self) -> bool {
        self.param.mode == RoutineParamMode::Out
    }

    pub(super) fn is_input_only(&self) -> bool {
        self.param.mode == RoutineParamMode::In
    }
}

/// A call that succeeded.
#[derive(Debug, Default)]
pub struct CallResult {
    /// What it returned besides its output values.
    pub results: Results,
    /// The rows of the cursors that it returned.
    pub cursors: Results,
    /// The values of its output parameters, in their order; those of a function are a row of
    /// `results`.
    pub outputs: Vec<Cell>,
    /// Level, number and text of each warning of its last statement.
    pub warnings: Vec<(String, String, String)>,
    /// Whether it left a transaction open.
    pub has_open_transaction: bool,
}

/// A call that failed.
#[derive(Debug)]
pub struct CallError {
    pub step: CallStep,
    pub error: SessionError,
    /// Whether what it did is rolled back already.
    pub is_rolled_back: bool,
}

/// What failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStep {
    /// Sending the arguments; nothing was run.
    Arguments,
    /// Opening a transaction for it; nothing was run.
    Opening,
    /// The call.
    Call,
    /// The call, which this user may not make; nothing was run.
    Denied,
    /// Reading the rows of the cursor of that name.
    Cursor(String),
    /// The commit of the transaction that was opened for it.
    Commit,
}

impl CallError {
    /// An error of the call itself; `is_denied` tells whether the user may not make it at all.
    pub(super) fn of_call(
        is_denied: impl FnOnce(&DatabaseError) -> bool,
    ) -> impl FnOnce(SessionError) -> Self {
        |error| {
            let is_denied = matches!(&error, SessionError::Database(error) if is_denied(error));
            let step = if is_denied { CallStep::Denied } else { CallStep::Call };
            Self { step, error, is_rolled_back: false }
        }
    }

    pub(super) fn at(step: CallStep) -> impl FnOnce(SessionError) -> Self {
        move |error| Self { step, error, is_rolled_back: false }
    }
}
