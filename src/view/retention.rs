//! Which old rows go, and why the others stay.

use crate::engine::retention::{
    AgedGoes, DAY_MS, EndedBadly, GroupRetentionRule, GroupSurvey, RemovableBatches,
    RetentionOptions, RetentionSurvey,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What retention would remove now, and what its last pass did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RetentionPreview {
    /// Whether this process removes old rows at all.
    pub on: bool,
    /// The hours in which it does: `22:00-04:00`; null: at any time.
    pub window: Option<String>,
    /// Each group that has batches.
    pub groups: Vec<GroupRetention>,
    /// Rows that go by an age of their own.
    pub aged: Vec<AgedRows>,
    /// Batches that an earlier pass has begun to remove, with what is left of them.
    pub leftover: RemovableRows,
    /// Rows that would go, by table.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub rows: BTreeMap<&'static str, u64>,
    /// What the last pass did; null before the first.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub last_pass: Option<Value>,
}

/// What goes and what stays of a group.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GroupRetention {
    /// Its code.
    pub group: String,
    /// Its rule.
    pub rule: RetentionRule,
    /// Batches that go.
    pub goes: RemovableRows,
    /// Batches that stay and lose the lines of their logs.
    pub lines: RemovableRows,
    /// How many batches stay, by the strongest reason of each.
    pub kept: BTreeMap<&'static str, u64>,
}

/// How long the batches of a group are kept. 0 days: for ever.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RetentionRule {
    /// Batches go after so many days.
    pub batches_days: i64,
    /// So many of the newest stay however old they are.
    pub keep_batches: u32,
    /// Whether batches that ended badly stay.
    pub keep_failed: bool,
    /// Lines of logs go after so many days.
    pub log_lines_days: i64,
}

/// Rows that would be removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RemovableRows {
    /// How many batches.
    pub batches: u64,
    /// Rows by table.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub rows: BTreeMap<&'static str, u64>,
    /// When the first of the batches ended, UTC.
    pub oldest: Option<String>,
    /// When the last of them ended, UTC.
    pub newest: Option<String>,
}

/// Rows of a table that go by an age of their own.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AgedRows {
    /// The table.
    pub table: &'static str,
    /// How many go.
    pub goes: RemovableRows,
    /// How many that are old enough stay, because something needs them.
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
            goes: RemovableRows::new(&group.goes),
            lines: RemovableRows::new(&group.lines),
            kept: group.kept.iter().map(|(reason, n)| (reason.as_str(), *n)).collect(),
        }
    }
}

impl RetentionPreview {
    /// What would go by these options, and what the last pass did.
    pub fn new(options: &RetentionOptions, survey: &RetentionSurvey, last: Option<&str>) -> Self {
        let aged = |a: &AgedGoes| AgedRows {
            table: a.kind.table(),
            goes: RemovableRows::new(&a.goes),
            needed: a.needed,
        };
        Self {
            on: options.is_on(),
            window: options.window.map(|window| window.to_string()),
            groups: survey.groups.iter().map(GroupRetention::new).collect(),
            aged: survey.aged.iter().map(aged).collect(),
            leftover: RemovableRows::new(&survey.leftover),
            rows: survey.totals(),
            last_pass: last.and_then(|text| serde_json::from_str(text).ok()),
        }
    }
}
