//! Tracks data flow: where the value of an expression comes from, and what equalities imply for columns.
//!
//! The conditions of a statement become constraints of the form "this column has one of the values of that flow". They
//! are solved together, so that `a.batch_no = p AND b.batch_no = a.batch_no` constrains both tables.

use crate::lineage::slice::{SliceValue, ValueSet};
use std::collections::HashMap;

/// Maximum number of solving rounds; a longer chain of equalities is cut, which only widens slices.
const ROUNDS_MAX: usize = 12;

/// Maximum number of values and columns of one expression; more count as any value. A common table expression that is
/// the union of another with itself would double them at each step.
const PARTS_MAX: usize = 256;

/// A column of a table of the statement: index of the table, name.
pub(super) type ColumnRef = (usize, String);

/// The possible values of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueFlow {
    pub(super) known: ValueSet,
    pub(super) from: Vec<ColumnRef>,
    pub(super) is_unknown: bool,
}

impl ValueFlow {
    pub(super) fn unknown() -> Self {
        Self { is_unknown: true, ..Self::default() }
    }

    pub(super) fn value(value: SliceValue) -> Self {
        Self { known: ValueSet::from([value]), ..Self::default() }
    }

    pub(super) fn column(column: ColumnRef) -> Self {
        Self { from: vec![column], ..Self::default() }
    }

    /// The union of two flows.
    pub(super) fn either(mut self, other: Self) -> Self {
        self.is_unknown |= other.is_unknown;
        let is_large = self.known.len() + other.known.len() > PARTS_MAX
            || self.from.len() + other.from.len() > PARTS_MAX;
        if self.is_unknown || is_large {
            return Self::unknown();
        }
        self.known.extend(other.known);
        self.from.extend(other.from);
        self
    }

    pub(super) fn any_of(flows: impl IntoIterator<Item = Self>) -> Self {
        flows.into_iter().fold(Self::default(), Self::either)
    }
}

/// A column that a condition may narrow. With a guard, only if the common table expression of that number is used once:
/// a condition on one use does not apply to the rows of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NarrowedColumn {
    pub(super) column: ColumnRef,
    pub(super) guards: Vec<usize>,
}

/// A parsed expression: its possible values, and the columns that an equality with it narrows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowOperand {
    pub(super) flow: ValueFlow,
    pub(super) targets: Vec<NarrowedColumn>,
}

impl FlowOperand {
    pub(super) fn unknown() -> Self {
        Self::from_flow(ValueFlow::unknown())
    }

    pub(super) fn from_flow(flow: ValueFlow) -> Self {
        Self { flow, targets: Vec::new() }
    }
}

/// A constraint: in the relevant rows, this column has one of the values of a flow.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) target: NarrowedColumn,
    pub(super) flow: ValueFlow,
}

/// The conditions found for each column; all of them hold.
pub(super) type Solution = HashMap<ColumnRef, Vec<ValueSet>>;

/// Solves constraints. `uses` counts how often each common table expression is read.
pub(super) fn solve(constraints: &[Constraint], uses: &[usize]) -> Solution {
    let may_push =
        |target: &NarrowedColumn| target.guards.iter().all(|guard| uses.get(*guard) == Some(&1));
    let mut solution = Solution::new();
    for _ in 0..ROUNDS_MAX {
        let mut is_new = false;
        for Constraint { target, flow } in constraints.iter().filter(|one| may_push(&one.target)) {
            let Some(values) = values_of(flow, &solution) else { continue };
            let conditions = solution.entry(target.column.clone()).or_default();
            if conditions.len() < 4 && !conditions.contains(&values) {
                conditions.push(values);
                is_new = true;
            }
        }
        if !is_new {
            break;
        }
    }
    solution
}

/// The values of a flow; `None` if it may be anything.
pub(super) fn values_of(flow: &ValueFlow, solution: &Solution) -> Option<ValueSet> {
    if flow.is_unknown {
        return None;
    }
    let mut values = flow.known.clone();
    for column in &flow.from {
        let conditions = solution.get(column)?;
        let is_constant = |values: &&ValueSet| {
            !values.iter().any(|one| matches!(one, SliceValue::Param(_) | SliceValue::Symbol(_)))
        };
        let best = conditions.iter().find(is_constant).or(conditions.first())?;
        values.extend(best.iter().cloned());
    }
    (!values.is_empty()).then_some(values)
}
