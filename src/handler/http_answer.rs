//! The answer of a host, with bounded memory use.

use crate::domain::job::outcome::{JobOutputs, Stream};
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::text::storable;
use crate::handler::lines::LineSplitter;
use crate::handler::log::RunLog;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum number of bytes read; the connection is closed after that.
const READ: usize = 1024 * 1024;
/// Maximum number of bytes shown in the log.
const KEPT: usize = 64 * 1024;
/// Maximum number of characters of the answer in a message.
const SHOWN: usize = 200;

/// An answer that is being received.
pub(crate) struct HttpResponseBody {
    status: u16,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl HttpResponseBody {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, bytes: Vec::new(), is_cut: false }
    }

    /// Adds received bytes; those beyond the limit are dropped.
    pub(crate) fn take_bytes(&mut self, bytes: &[u8]) {
        let room = READ - self.bytes.len();
        self.is_cut |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.is_cut
    }

    /// Number of bytes read.
    pub(crate) fn size_read(&self) -> usize {
        self.bytes.len()
    }

    fn kept_bytes(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().min(KEPT)]
    }

    /// Writes the answer to the log; returns its beginning, for a message.
    pub(crate) fn log_answer(&self, log: &RunLog) -> String {
        let mut lines = LineSplitter::default();
        lines.feed_bytes(self.kept_bytes(), |line| log.bytes(Stream::Stdout, line));
        lines.finish(|line| log.bytes(Stream::Stdout, line));
        if self.is_cut {
            log.add_line(
                Stream::System,
                format!("the answer is longer; {READ} bytes of it were read"),
            );
        }
        let text =
            String::from_utf8_lossy(&self.kept_bytes()[..self.kept_bytes().len().min(4 * SHOWN)]);
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        first.chars().take(SHOWN).collect()
    }

    /// `status`, the body, and the plain fields of a JSON object. A field named like one of the
    /// first two becomes `json_status` or `json_body`.
    pub(crate) fn outputs(&self, limits: OutputLimits) -> JobOutputs {
        let mut outputs = JobOutputs::default();
        for (at, (name, value)) in self.fields().into_iter().enumerate() {
            let taken = matches!(name.as_str(), "status" | "body");
            let name = if taken { format!("json_{name}") } else { name };
            let length = value.as_ref().map_or(0, String::len);
            if at >= limits.max_count {
                let reason =
                    "the answer has more fields than outputs.max_count; raise it".to_owned();
                outputs.unusable.insert(name, reason);
            } else if length > limits.max_value_bytes {
                let reason = limits.too_long(&format!("field {name} of the answer"), length);
                outputs.unusable.insert(name, reason);
            } else {
                outputs.values.insert(name, value);
            }
        }
        outputs.values.insert("status".to_owned(), Some(self.status.to_string()));
        if !self.bytes.is_empty() {
            match self.whole_body(limits) {
                Ok(text) => {
                    outputs.values.insert("body".to_owned(), Some(text));
                }
                Err(reason) => {
                    outputs.unusable.insert("body".to_owned(), reason);
                }
            }
        }
        outputs
    }

    /// The complete body, or why it is not an output.
    fn whole_body(&self, limits: OutputLimits) -> Result<String, String> {
        if self.is_cut {
            return Err(format!("the body of the answer has more than {READ} bytes"));
        }
        if self.bytes.len() > limits.max_value_bytes {
            return Err(limits.too_long("the body of the answer", self.bytes.len()));
        }
        let text = std::str::from_utf8(&self.bytes);
        text.map(str::to_owned).map_err(|_| "the body of the answer is not UTF-8".to_owned())
    }

    /// Numbers keep every digit, which floating point would lose.
    fn fields(&self) -> Vec<(String, Option<String>)> {
        let object: Result<BTreeMap<String, Box<RawValue>>, _> =
            serde_json::from_slice(&self.bytes);
        let plain = |(name, raw): (String, Box<RawValue>)| {
            let value = match raw.get().as_bytes().first()? {
                b'{' | b'[' => return None,
                b'n' => None,
                b'"' => Some(serde_json::from_str(raw.get()).ok()?),
                _ => Some(raw.get().to_owned()),
            };
            Some((storable(name.as_bytes(), SHOWN), value))
        };
        object.unwrap_or_default().into_iter().filter_map(plain).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(bytes: &[u8]) -> BTreeMap<String, Option<String>> {
        let mut answer = HttpResponseBody::new(200);
        answer.take_bytes(bytes);
        answer.outputs(OutputLimits::default()).values
    }

    #[test]
    fn plain_fields_are_handed_on_with_every_digit() {
        let body = br#"{"amount": 12345678901234567.10, "id": "A\u00e91", "ok": true, "none": null,
            "deep": {"x": 1}, "list": [1], "status": "queued"}"#;
        let values = answered(body);
        let value = |name: &str| values.get(name).map(|v| v.as_deref().unwrap_or("NULL"));
        assert_eq!(value("amount"), Some("12345678901234567.10"));
        assert_eq!(
            (value("id"), value("ok"), value("none")),
            (Some("Aé1"), Some("true"), Some("NULL"))
        );
        assert_eq!((value("status"), value("json_status")), (Some("200"), Some("queued")));
        assert_eq!((value("deep"), value("list")), (None, None));
        assert_eq!(answered(b"[1]").len(), 2);
        assert_eq!(answered(b"").len(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut answer = HttpResponseBody::new(200);
        let chunk = vec![b'x'; 300_000];
        for _ in 0..3 {
            answer.take_bytes(&chunk);
            assert!(!answer.is_full());
        }
        answer.take_bytes(&chunk);
        assert!(answer.is_full());
        answer.take_bytes(&chunk);
        assert_eq!(answer.size_read(), READ);
        let outputs = answer.outputs(OutputLimits::default());
        assert!(!outputs.values.contains_key("body"), "a part of a body is no body");
        assert!(outputs.unusable["body"].contains("more than 1048576 bytes"), "{outputs:?}");
    }

    #[test]
    fn a_body_is_handed_on_whole_or_not_at_all() {
        let mut answer = HttpResponseBody::new(200);
        answer.take_bytes(
            format!("{{\"a\": \"\\u0001b\", \"long\": \"{}\"}}", "x".repeat(2_000)).as_bytes(),
        );
        let outputs = answer.outputs(OutputLimits::default());
        assert_eq!(outputs.value("body").map(|body| body.len()), Some(answer.size_read()));
        assert_eq!(outputs.value("a").as_deref(), Some("\u{1}b"));
        let tight = OutputLimits { max_value_bytes: 1_000, ..OutputLimits::default() };
        let outputs = answer.outputs(tight);
        assert!(outputs.unusable["body"].contains("outputs.max_value_bytes"), "{outputs:?}");
        assert!(outputs.unusable["long"].contains("2000 bytes"), "{outputs:?}");
    }
}
