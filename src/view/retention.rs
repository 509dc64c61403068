//! Retention: which old rows are removed, and why the others are kept.

use crate::engine::retention::{
    AgedGoes, DAY_MS, EndedBadly, GroupRetentionRule, GroupSurvey, RemovableBatches,
    RetentionOptions, RetentionSurvey,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What retention would remove now, and the result of its last pass.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RetentionPreview {
    /// Whether this process removes old rows at all.
    pub on: bool,
    /// The daily window: `22:00-04:00`; null: at any time.
    pub window: Option<String>,
    /// Each group that has batches.
    pub groups: Vec<GroupRetention>,
    /// Rows with an age limit of their own.
    pub tables_with_age_limit: Vec<AgedRows>,
    /// Batches that an earlier pass has partly removed, with the remaining rows.
    pub leftover: RemovableRows,
    /// Number of rows to remove, by table.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub rows: BTreeMap<&'static str, u64>,
    /// The result of the last pass; null before the first.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub last_pass: Option<Value>,
}

/// Removable and kept batches of a group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GroupRetention {
    /// The group code.
    pub group: String,
    /// The retention rule.
    pub rule: RetentionRule,
    /// Batches to remove.
    pub removable: RemovableRows,
    /// Kept batches whose log lines are removed.
    pub lines: RemovableRows,
    /// Number of kept batches, by the strongest reason of each.
    pub kept: BTreeMap<&'static str, u64>,
}

/// How long the batches of a group are kept. 0 days: forever.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RetentionRule {
    /// Days after which batches are removed.
    pub batches_days: i64,
    /// Number of the newest batches that are kept whatever their age.
    pub keep_batches: u32,
    /// Whether failed batches are kept.
    pub keep_failed: bool,
    /// Days after which log lines are removed.
    pub log_lines_days: i64,
}

/// Rows that would be removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RemovableRows {
    /// Number of batches.
    pub batches: u64,
    /// Number of rows by table.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub rows: BTreeMap<&'static str, u64>,
    /// When the first of the batches ended, UTC.
    pub oldest: Option<String>,
    /// When the last of them ended, UTC.
    pub newest: Option<String>,
}

/// Rows of a table with an age limit of its own.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgedRows {
    /// The table.
    pub table: &'static str,
    /// The rows to remove.
    pub removable: RemovableRows,
    /// Number of rows that are old enough but still needed.
    pub needed: u64,
}

impl RemovableRows {
    fn new(goes: &RemovableBatches) -> Self {
        Self {
            batches: goes.batches,
            rows: goes.rows.clone(),
            oldest: goes.oldest.map(|at| at.to_string()),
            newest: goes.newest.map(|at| at.to_string()),
        }
    }
}

impl RetentionRule {
    fn new(rule: GroupRetentionRule) -> Self {
        Self {
            batches_days: rule.batches_ms.unwrap_or(0) / DAY_MS,
            keep_batches: rule.keep,
            keep_failed: rule.badly == EndedBadly::Stay,
            log_lines_days: rule.lines_ms.unwrap_or(0) / DAY_MS,
        }
    }
}

impl GroupRetention {
    fn new(group: &GroupSurvey) -> Self {
        Self {
            group: group.group.to_string(),
            rule: RetentionRule::new(group.rule),
            removable: RemovableRows::new(&group.goes),
            lines: RemovableRows::new(&group.lines),
            kept: group.kept.iter().map(|(reason, n)| (reason.as_str(), *n)).collect(),
        }
    }
}

impl RetentionPreview {
    /// The document for these options, and the result of the last pass.
    pub fn new(options: &RetentionOptions, survey: &RetentionSurvey, last: Option<&str>) -> Self {
        let aged = |a: &AgedGoes| AgedRows {
            table: a.kind.table(),
            removable: RemovableRows::new(&a.goes),
            needed: a.needed,
        };
        Self {
            on: options.is_on(),
            window: options.window.map(|window| window.to_string()),
            groups: survey.groups.iter().map(GroupRetention::new).collect(),
            tables_with_age_limit: survey.aged.iter().map(aged).collect(),
            leftover: RemovableRows::new(&survey.leftover),
            rows: survey.totals(),
            last_pass: last.and_then(|text| serde_json::from_str(text).ok()),
        }
    }
}
