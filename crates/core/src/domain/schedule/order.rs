//! The request to open batches: which batch number of which groups, with which parameters.

use crate::domain::batch_no::BatchExpr;
use crate::domain::id::{BatchNo, GroupCode};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A batch request: what a schedule, an operator or the API passes to `queueDispatcher`, as
/// `{"batchNo":"202407","type":"monthly"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BatchOrder<N = BatchNo> {
    /// The batch number.
    pub batch_no: N,
    /// The batch type: all groups of this type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub batch_type: Option<String>,
    /// The group: this one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupCode>,
    /// The accounting date; derived from the batch number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business_date: Option<NaiveDate>,
    /// Parameters that take precedence over the group's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Opens the batch although its number does not fit the group's type; this is recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

/// A batch request as written: its batch number may be an expression, `month(-1)`.
pub type AskedOrder = BatchOrder<BatchExpr>;
