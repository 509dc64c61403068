//! `[retention]`: which old rows are removed, and when.

use super::{BadConfig, Config};
use crate::engine::retention::{
    DAY_MS, EndedBadly, GroupCode, GroupRetentionRule, LeftTables, RetentionOptions, Window,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// `[retention]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionSettings {
    /// Days; 0: never.
    pub batches_days: u32,
    /// Number of batches that are always kept.
    pub keep_batches: u32,
    /// Whether failed batches are kept.
    pub keep_failed: bool,
    /// Days; 0: with the batch.
    pub log_lines_days: u32,
    /// Days; 0: never.
    pub firings_days: u32,
    /// Days; 0: with the batch.
    pub mails_days: u32,
    /// Days; 0: never.
    pub audit_days: u32,
    /// From and to; empty: always.
    pub window: String,
    /// The time zone of the window.
    pub time_zone: String,
    /// Rows per step.
    pub rows_per_step: u32,
    /// Pause between steps, in milliseconds.
    pub pause_ms: u32,
    /// Partitioned tables that are left alone.
    pub leave: Vec<String>,
    /// Other values for single groups.
    pub groups: BTreeMap<String, GroupRetentionSettings>,
}

/// `[retention.groups.CODE]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRetentionSettings {
    /// Days; 0: never.
    pub batches_days: Option<u32>,
    /// Number of batches that are always kept.
    pub keep_batches: Option<u32>,
    /// Whether failed batches are kept.
    pub keep_failed: Option<bool>,
    /// Days; 0: with the batch.
    pub log_lines_days: Option<u32>,
}

/// Maximum number of rows of one step: a larger transaction would make others wait.
const STEP_MOST: u32 = 20_000;

fn days_in_ms(days: u32) -> Option<i64> {
    (days > 0).then(|| i64::from(days) * DAY_MS)
}

fn at_least_one(key: &str, value: u32) -> Result<u32, BadConfig> {
    if value == 0 {
        return Err(BadConfig(format!("{key} is 0; it must be 1 or more")));
    }
    Ok(value)
}

impl RetentionSettings {
    fn parse_rule(
        &self,
        key: &str,
        of: Option<&GroupRetentionSettings>,
    ) -> Result<GroupRetentionRule, BadConfig> {
        let keep = of.and_then(|of| of.keep_batches).unwrap_or(self.keep_batches);
        let stay = of.and_then(|of| of.keep_failed).unwrap_or(self.keep_failed);
        let batches = of.and_then(|of| of.batches_days).unwrap_or(self.batches_days);
        let lines = of.and_then(|of| of.log_lines_days).unwrap_or(self.log_lines_days);
        Ok(GroupRetentionRule {
            batches_ms: days_in_ms(batches),
            keep: at_least_one(&format!("{key}.keep_batches"), keep)?,
            badly: if stay { EndedBadly::Stay } else { EndedBadly::Go },
            lines_ms: days_in_ms(lines),
        })
    }

    fn removal_times(&self) -> Result<LeftTables, BadConfig> {
        let mut left = LeftTables::default();
        for table in &self.leave {
            match table.as_str() {
                "job_execution_logs" => left.logs = true,
                "job_log_line" => left.lines = true,
                other => {
                    return Err(BadConfig(format!(
                        "retention.leave has {other:?}; what can be left to partitions are \
                         job_execution_logs and job_log_line"
                    )));
                }
            }
        }
        Ok(left)
    }
}

impl Config {
    /// Settings of the sweeper.
    pub fn retention(&self) -> Result<RetentionOptions, BadConfig> {
        let words = &self.retention;
        let mut groups = BTreeMap::new();
        for (code, of) in &words.groups {
            let key = format!("retention.groups.{code}");
            let group =
                GroupCode::parse(code).map_err(|error| BadConfig(format!("{key}: {error}")))?;
            groups.insert(group, words.parse_rule(&key, Some(of))?);
        }
        // Parsed also when it is empty, so that an invalid time zone is found.
        let text = words.window.trim();
        let read = if text.is_empty() { "00:00-12:00" } else { text };
        let window = Window::parse(read, &words.time_zone)
            .map_err(|error| BadConfig(format!("retention.window: {error}")))?;
        let rows = at_least_one("retention.rows_per_step", words.rows_per_step)?;
        if rows > STEP_MOST {
            let message = format!(
                "retention.rows_per_step is {rows}; others wait for such a step: at most {STEP_MOST}"
            );
            return Err(BadConfig(message));
        }
        Ok(RetentionOptions {
            rule: words.parse_rule("retention", None)?,
            groups,
            firings_ms: days_in_ms(words.firings_days),
            mails_ms: days_in_ms(words.mails_days),
            audit_ms: days_in_ms(words.audit_days),
            left: words.removal_times()?,
            window: (!text.is_empty()).then_some(window),
            rows_per_step: rows,
            pause_ms: words.pause_ms.into(),
        })
    }
}
