//! Limits on the size of a job's outputs. What exceeds a limit is an error or shown as left out,
//! never a truncated value.

/// The limits of `[outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes of one value that is kept inline; a longer one is stored aside.
    pub inline_bytes: usize,
    /// Bytes of one value, stored aside or not.
    pub max_value_bytes: usize,
    /// Number of named outputs of one script.
    pub max_count: usize,
    /// Rows kept of each result set.
    pub max_rows: usize,
    /// Total bytes of one job's values that are kept inline.
    pub max_total_bytes: usize,
    /// Total bytes of one job's values that are stored aside.
    pub max_stored_bytes: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            inline_bytes: 16_384,
            max_value_bytes: 67_108_864,
            max_count: 1_000,
            max_rows: 1_000,
            max_total_bytes: 4_194_304,
            max_stored_bytes: 134_217_728,
        }
    }
}

impl OutputLimits {
    /// Message: one value exceeds `max_value_bytes`.
    pub fn too_long(&self, what: &str, bytes: usize) -> String {
        format!(
            "{what} has {bytes} bytes, and {} is the most that is handed on; raise \
             outputs.max_value_bytes, or hand on a key or a path in its place",
            self.max_value_bytes
        )
    }

    /// Message: the large values of a job together exceed `max_stored_bytes`.
    pub fn too_long_together(&self, what: &str, bytes: usize) -> String {
        format!(
            "{what} has {bytes} bytes, and with it all values of the job that are stored aside have more \
             than {}; raise outputs.max_stored_bytes, or hand on less",
            self.max_stored_bytes
        )
    }

    /// Message: a script has more outputs than `max_count`.
    pub fn too_many(&self) -> String {
        format!(
            "it prints more than {} outputs by name; raise outputs.max_count, or print a list as one \
             output",
            self.max_count
        )
    }

    /// Message: the outputs together exceed `max_total_bytes`.
    pub fn too_large(&self, name: &str) -> String {
        format!(
            "with output {name} all outputs that are not stored aside have more than {} bytes together; raise \
             outputs.max_total_bytes, or hand on less",
            self.max_total_bytes
        )
    }
}
