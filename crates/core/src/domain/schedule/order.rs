//! The order to run: which batch number of which groups, with which parameters.

use crate::domain::batch_no::BatchExpr;
use crate::domain::id::{BatchNo, GroupCode};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request to run: what a schedule, an operator or the API hands to `queueDispatcher`, as
/// `{"batchNo":"202407","type":"monthly"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BatchOrder<N = BatchNo> {
    /// The batch number.
    pub batch_no: N,
    /// Which groups: those of this type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub batch_type: Option<String>,
    /// Which group: this one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupCode>,
    /// The accounting day; taken from the batch number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business_date: Option<NaiveDate>,
    /// Parameters that win over the group's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Open it although its number does not fit the group's type; that is put on record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

/// An order as it is written: its batch number may be an expression, `month(-1)`.
pub type AskedOrder = BatchOrder<BatchExpr>;
