//! `[outputs]`: limits of outputs.

use crate::domain::job::output_limits::OutputLimits;
use anyhow::Result;
use serde::Deserialize;

/// `[outputs]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSettings {
    /// Maximum size of a value kept among the outputs, in bytes.
    pub inline_bytes: usize,
    /// Maximum size of a value, in bytes.
    pub max_value_bytes: usize,
    /// Maximum number of outputs.
    pub max_count: usize,
    /// Maximum number of rows of a result set.
    pub max_rows: usize,
    /// Maximum total size of the values kept among the outputs, in bytes.
    pub max_total_bytes: usize,
    /// Maximum total size of large values, in bytes.
    pub max_stored_bytes: usize,
}

/// Upper limit of the values that stay among the outputs of one job, in bytes: they are one value
/// of one row of the metadata database, and MariaDB accepts statements of 16 MiB by default.
const TOTAL_MOST: usize = 12 * 1024 * 1024;
/// Upper limit of a value that stays among the outputs, in bytes.
const INLINE_MOST: usize = 1024 * 1024;
/// Upper limit of a value, in bytes: a process holds it in memory, several times while it is bound.
const VALUE_MOST: usize = 512 * 1024 * 1024;

impl OutputSettings {
    pub(super) fn check(&self) -> Result<()> {
        let limits = [
            ("inline_bytes", self.inline_bytes, 256),
            ("max_value_bytes", self.max_value_bytes, 1_000),
            ("max_count", self.max_count, 1),
            ("max_rows", self.max_rows, 1),
        ];
        for (key, value, least) in limits {
            anyhow::ensure!(value >= least, "outputs.{key} is {value}; it must be {least} or more");
        }
        let most = [
            ("inline_bytes", self.inline_bytes, INLINE_MOST),
            ("max_value_bytes", self.max_value_bytes, VALUE_MOST),
        ];
        for (key, value, most) in most {
            anyhow::ensure!(value <= most, "outputs.{key} is {value}; it must be {most} or less");
        }
        let (least, most) = (self.inline_bytes, TOTAL_MOST);
        anyhow::ensure!(
            (least..=most).contains(&self.max_total_bytes),
            "outputs.max_total_bytes is {}; it must be from outputs.inline_bytes ({least}) to {most}",
            self.max_total_bytes
        );
        anyhow::ensure!(
            self.max_stored_bytes >= self.max_value_bytes,
            "outputs.max_stored_bytes is {}; it must be outputs.max_value_bytes ({}) or more",
            self.max_stored_bytes,
            self.max_value_bytes
        );
        Ok(())
    }

    pub(super) fn limits(&self) -> OutputLimits {
        OutputLimits {
            inline_bytes: self.inline_bytes,
            max_value_bytes: self.max_value_bytes,
            max_count: self.max_count,
            max_rows: self.max_rows,
            max_total_bytes: self.max_total_bytes,
            max_stored_bytes: self.max_stored_bytes,
        }
    }
}
