//! `::output name=value` lines of a script: each is complete, or the script fails.

use crate::domain::job::output_limits::OutputLimits;
use crate::handler::lines::{LinePiece, PiecePosition};
use std::collections::BTreeMap;

/// The prefix of an output line.
const PREFIX: &[u8] = b"::output ";

/// The outputs of a script.
pub(crate) struct ScriptOutputs {
    limits: OutputLimits,
    values: BTreeMap<String, Option<String>>,
    inline_total: usize,
    large_total: usize,
    /// The output line that is being read, without its prefix.
    line: Option<LineInProgress>,
    /// The first output that could not be accepted.
    fault: Option<String>,
}

#[derive(Default)]
struct LineInProgress {
    bytes: Vec<u8>,
    /// Total number of bytes, including those that are not kept.
    length: usize,
}

/// The result of the last output line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// There was none, or it was handled.
    Done,
    /// It has no name.
    NotNamed,
}

impl ScriptOutputs {
    pub(crate) fn new(limits: OutputLimits) -> Self {
        let values = BTreeMap::new();
        Self { limits, values, inline_total: 0, large_total: 0, line: None, fault: None }
    }

    /// Adds a piece of a line. Only a line's start can begin an output: the middle of a long line
    /// may look like one.
    pub(crate) fn take_piece(&mut self, piece: LinePiece<'_>) {
        let bytes = match piece.place {
            PiecePosition::Start => match piece.bytes.strip_prefix(PREFIX) {
                Some(rest) => {
                    self.line = Some(LineInProgress::default());
                    rest
                }
                None => return,
            },
            PiecePosition::Middle => piece.bytes,
        };
        let Some(line) = &mut self.line else { return };
        line.length += bytes.len();
        // The name is needed for the error message, so what is there already is kept.
        if line.length <= self.limits.max_value_bytes + NAME_MAX {
            line.bytes.extend_from_slice(bytes);
        }
    }

    /// Ends the line that was read last.
    pub(crate) fn close(&mut self) -> Closed {
        let Some(line) = self.line.take() else { return Closed::Done };
        let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
        let Some(at) = bytes.iter().position(|byte| *byte == b'=') else { return Closed::NotNamed };
        let name = String::from_utf8_lossy(&bytes[..at]).trim().to_owned();
        if name.is_empty() {
            return Closed::NotNamed;
        }
        // In a line that was not kept completely, the missing part belongs to the value.
        let length = bytes.len() - at - 1 + (line.length - line.bytes.len());
        if let Err(fault) = self.keep_output(name, &bytes[at + 1..], length) {
            self.fault.get_or_insert(fault);
        }
        Closed::Done
    }

    fn keep_output(&mut self, name: String, value: &[u8], length: usize) -> Result<(), String> {
        let what = format!("output {name}");
        if length > self.limits.max_value_bytes {
            return Err(self.limits.too_long(&what, length));
        }
        let Ok(text) = std::str::from_utf8(value) else {
            return Err(format!("{what} is not UTF-8; print it as UTF-8, or as base64"));
        };
        if self.values.len() >= self.limits.max_count && !self.values.contains_key(&name) {
            return Err(self.limits.too_many());
        }
        let before = self.values.get(&name).and_then(Option::as_ref).map_or(0, String::len);
        *self.total_for(before) -= before;
        *self.total_for(length) += length;
        if self.inline_total > self.limits.max_total_bytes {
            return Err(self.limits.too_large(&name));
        }
        if self.large_total > self.limits.max_stored_bytes {
            return Err(self.limits.too_long_together(&what, length));
        }
        self.values.insert(name, Some(text.to_owned()));
        Ok(())
    }

    /// The total that a value of this length counts towards.
    fn total_for(&mut self, length: usize) -> &mut usize {
        match length > self.limits.inline_bytes {
            true => &mut self.large_total,
            false => &mut self.inline_total,
        }
    }

    /// The outputs, or why the script fails: incomplete outputs would be taken for complete.
    pub(crate) fn finish(self) -> Result<BTreeMap<String, Option<String>>, String> {
        self.fault.map_or(Ok(self.values), Err)
    }
}

/// Maximum length of a name besides a value of maximum length, in bytes.
const NAME_MAX: usize = 8_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::lines::LineSplitter;

    fn limits() -> OutputLimits {
        OutputLimits { max_value_bytes: 20_000, max_count: 3, ..OutputLimits::default() }
    }

    fn read(text: &[u8]) -> Result<BTreeMap<String, Option<String>>, String> {
        let mut outputs = ScriptOutputs::new(limits());
        let mut lines = LineSplitter::default();
        let take = |outputs: &mut ScriptOutputs, piece: LinePiece<'_>| {
            if piece.place == PiecePosition::Start {
                outputs.close();
            }
            outputs.take_piece(piece);
        };
        // As pipes deliver it: in chunks that end anywhere.
        for chunk in text.chunks(777) {
            lines.feed_pieces(chunk, |piece| take(&mut outputs, piece));
        }
        lines.finish_pieces(|piece| take(&mut outputs, piece));
        outputs.close();
        outputs.finish()
    }

    #[test]
    fn a_long_output_is_whole_and_no_part_of_it_is_another() {
        let long = format!("{}\t ", "::output x=1,".repeat(1_000));
        let text = format!("::output all={long}\nnoise ::output y=2\n::output b=\r\n");
        let found = read(text.as_bytes()).expect("outputs");
        assert_eq!(found["all"].as_deref(), Some(long.as_str()));
        assert_eq!(found["b"].as_deref(), Some(""));
        assert_eq!(found.len(), 2);
        // A long line that is no output, with something that looks like one where it is cut.
        let noise = format!("{}::output z=1\n", "x".repeat(crate::domain::text::LINE_MAX));
        assert_eq!(read(noise.as_bytes()), Ok(BTreeMap::new()));
    }

    #[test]
    fn what_is_over_a_limit_fails_by_name() {
        let long = format!("::output big={}\n::output n=1\n", "x".repeat(20_001));
        let fault = read(long.as_bytes()).expect_err("too long");
        assert!(fault.starts_with("output big has 20001 bytes"), "{fault}");
        assert!(fault.contains("outputs.max_value_bytes"), "{fault}");
        let huge = format!("::output big={}", "x".repeat(100_000));
        assert!(read(huge.as_bytes()).expect_err("huge").contains("100000 bytes"));
        let many = "::output a=1\n::output b=1\n::output c=1\n::output a=2\n";
        assert_eq!(read(many.as_bytes()).expect("three")["a"].as_deref(), Some("2"));
        let fault = read(format!("{many}::output d=1\n").as_bytes()).expect_err("four");
        assert!(fault.contains("more than 3 outputs"), "{fault}");
        let fault = read(b"::output raw=\xff\n").expect_err("no UTF-8");
        assert!(fault.contains("output raw is not UTF-8"), "{fault}");
    }
}
