//! How much a job may hand on. What is over a limit is an error or shown as left out, never a part of a
//! value.

/// The limits of `[outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// Bytes of one value that stays among the outputs; a longer one is stored aside.
    pub inline_bytes: usize,
    /// Bytes of one value.
    pub max_value_bytes: usize,
    /// Outputs of one script, by name.
    pub max_count: usize,
    /// Rows of each result set that are kept.
    pub max_rows: usize,
    /// Bytes of all values of one job together that stay among its outputs.
    pub max_total_bytes: usize,
    /// Bytes of all values of one job together that are stored aside.
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
    /// Why a value cannot be handed on.
    pub fn too_long(&self, what: &str, bytes: usize) -> String {
        format!(
            "{what} has {bytes} bytes, and {} is the most that is handed on; raise \
             outputs.max_value_bytes, or hand on a key or a path in its place",
            self.max_value_bytes
        )
    }

    /// Why a value cannot be handed on beside the other large ones.
    pub fn too_long_together(&self, what: &str, bytes: usize) -> String {
        format!(
            "{what} has {bytes} bytes, and with it all values of the job that are stored aside have more \
             than {}; raise outputs.max_stored_bytes, or hand on less",
            self.max_stored_bytes
        )
    }

    /// Why a script's outputs are too many.
    pub fn too_many(&self) -> String {
        format!(
            "it prints more than {} outputs by name; raise outputs.max_count, or print a list as one \
             output",
            self.max_count
        )
    }

    /// Why outputs are too large together.
    pub fn too_large(&self, name: &str) -> String {
        format!(
            "with output {name} all outputs that are not stored aside have more than {} bytes together; raise \
             outputs.max_total_bytes, or hand on less",
            self.max_total_bytes
        )
    }
}
