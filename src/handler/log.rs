//! The log of one running attempt: bounded in memory, however much a body prints. A line stays here
//! until its storage is acknowledged.

use crate::domain::job::outcome::Stream;
use crate::domain::job::secret::{Cut, Mask};
use crate::domain::text::{LINE_MAX, storable};
use crate::handler::stopwatch::Stopwatch;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// One line, numbered from 1 within its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLogLine {
    /// Its number; numbers of dropped lines are missing.
    pub number: u64,
    /// Milliseconds since the start of the attempt.
    pub at_ms: i64,
    pub stream: Stream,
    /// Its text, with unstorable characters replaced.
    pub text: String,
}

/// A handle that bodies write to and the worker drains; clones share the lines.
///
/// The first three quarters of the limit hold the first lines, the last quarter holds the newest
/// lines, and one line gives the number of dropped lines between them.
#[derive(Clone, Debug)]
pub struct RunLog {
    inner: Arc<Mutex<Buffer>>,
}

#[derive(Debug)]
struct Buffer {
    since: Stopwatch,
    mask: Mask,
    /// Streams whose last line was cut because of its length.
    cut: Vec<Stream>,
    head_left: usize,
    tail_max: usize,
    tail_bytes: usize,
    next: u64,
    left_out: u64,
    fresh: VecDeque<JobLogLine>,
    tail: VecDeque<JobLogLine>,
}

/// Maximum size of the log stored in one transaction.
#[derive(Clone, Copy, Debug)]
pub struct GroupLimit {
    pub lines: usize,
    pub bytes: usize,
}

/// The oldest lines of a log that are not stored yet.
#[derive(Clone, Debug, Default)]
pub struct LogGroup {
    pub lines: Vec<JobLogLine>,
    /// Whether more lines wait behind them.
    pub has_more: bool,
}

impl Buffer {
    /// A line without secrets; masked before it is made storable, because that may cut it once
    /// more. In a line that arrives in pieces (`handler::lines`), the remnants of a cut secret are
    /// masked too.
    fn masked(&mut self, stream: Stream, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        let before = self.cut.contains(&stream);
        self.cut.retain(|cut| *cut != stream);
        // A piece ends before a character that does not fit completely, at most 3 bytes early.
        let after = line.len() + 3 >= LINE_MAX;
        if after {
            self.cut.push(stream);
        }
        match (before, after) {
            // Values quoted by a database or by Procession may have been cut before; script output
            // was not, and may be a gigabyte.
            (false, false) if matches!(stream, Stream::Database | Stream::System) => {
                self.mask.remnants(&text)
            }
            (false, false) => self.mask.mask_text(&text).into_owned(),
            (true, false) => self.mask.piece(&text, Cut::Before),
            (false, true) => self.mask.piece(&text, Cut::After),
            (true, true) => self.mask.piece(&text, Cut::Both),
        }
    }
}

impl RunLog {
    /// An empty log that keeps about `max_bytes` of text.
    pub fn new(max_bytes: usize) -> Self {
        let tail_max = max_bytes / 4;
        let buffer = Buffer {
            since: Stopwatch::start(),
            mask: Mask::default(),
            cut: Vec::new(),
            head_left: max_bytes - tail_max,
            tail_max,
            tail_bytes: 0,
            next: 1,
            left_out: 0,
            fresh: VecDeque::new(),
            tail: VecDeque::new(),
        };
        Self { inner: Arc::new(Mutex::new(buffer)) }
    }

    /// Masks these secrets in every line from now on.
    pub fn add_mask(&self, mask: Mask) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).mask = mask;
    }

    /// Adds one line of arbitrary bytes; secrets are masked, long lines cut, unstorable characters
    /// replaced.
    pub fn bytes(&self, stream: Stream, line: &[u8]) {
        let mut buffer = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line.trim_ascii_end();
        let text = if buffer.mask.is_empty() {
            storable(line, LINE_MAX)
        } else {
            storable(buffer.masked(stream, line).as_bytes(), LINE_MAX)
        };
        let at_ms = buffer.since.elapsed_ms();
        let line = JobLogLine { number: buffer.next, at_ms, stream, text };
        buffer.next += 1;
        if buffer.tail.is_empty() && buffer.head_left >= line.text.len() {
            buffer.head_left -= line.text.len() + 1.min(buffer.head_left - line.text.len());
            buffer.fresh.push_back(line);
            return;
        }
        buffer.tail_bytes += line.text.len() + 1;
        buffer.tail.push_back(line);
        while buffer.tail_bytes > buffer.tail_max && buffer.tail.len() > 1 {
            if let Some(old) = buffer.tail.pop_front() {
                buffer.tail_bytes -= old.text.len() + 1;
                buffer.left_out += 1;
            }
        }
    }

    /// Adds one line of text.
    pub fn add_line(&self, stream: Stream, text: impl AsRef<str>) {
        self.bytes(stream, text.as_ref().as_bytes());
    }

    /// Takes the lines that can be stored while the body still runs.
    pub fn drain(&self) -> Vec<JobLogLine> {
        let mut buffer = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut buffer.fresh).into()
    }

    /// Copies the oldest lines that can be stored, at least one; they stay until `acknowledge`.
    pub fn next_group(&self, limit: GroupLimit) -> LogGroup {
        let buffer = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let fits = |line: &&JobLogLine| {
            let is_first = bytes == 0;
            bytes += line.text.len() + 1;
            is_first || bytes <= limit.bytes
        };
        let lines: Vec<JobLogLine> =
            buffer.fresh.iter().take(limit.lines.max(1)).take_while(fits).cloned().collect();
        LogGroup { has_more: lines.len() < buffer.fresh.len(), lines }
    }

    /// Forgets the lines up to this number: they are stored.
    pub fn acknowledge(&self, number: u64) {
        let mut buffer = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = buffer.fresh.partition_point(|line| line.number <= number);
        buffer.fresh.drain(..stored);
    }

    /// Takes all remaining lines when the body has ended.
    pub fn finish(&self) -> Vec<JobLogLine> {
        self.finish_lines();
        self.drain()
    }

    /// Makes the newest lines storable too, because the body has ended.
    pub fn finish_lines(&self) {
        let mut buffer = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = std::mem::take(&mut buffer.left_out);
        let tail = std::mem::take(&mut buffer.tail);
        if let (Some(first), 1..) = (tail.front(), left_out) {
            buffer.fresh.push_back(JobLogLine {
                number: first.number - 1,
                at_ms: first.at_ms,
                stream: Stream::System,
                text: format!("[{left_out} lines left out: the log of a try has a cap]"),
            });
        }
        buffer.fresh.extend(tail);
        buffer.tail_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_both_ends_are_kept() {
        let log = RunLog::new(4_000);
        for i in 0..100_000 {
            log.add_line(Stream::Stdout, format!("line {i}"));
        }
        let lines = log.finish();
        let bytes: usize = lines.iter().map(|l| l.text.len()).sum();
        assert!(bytes <= 4_100, "{bytes}");
        assert_eq!(lines[0].text, "line 0");
        assert_eq!(lines.last().map(|l| l.text.as_str()), Some("line 99999"));
        assert_eq!(lines.last().map(|l| l.number), Some(100_000));
        assert!(lines.iter().any(|l| l.stream == Stream::System && l.text.contains("left out")));
        assert!(lines.windows(2).all(|w| w[0].number < w[1].number), "numbers must be unique");
    }

    #[test]
    fn secrets_are_masked_before_a_line_is_cut() {
        let log = RunLog::new(40_000);
        log.add_mask(Mask::from_secrets(&[secrecy::SecretString::from("hunter22")]));
        log.add_line(Stream::Stdout, "pw hunter22 and hunter22");
        log.add_line(Stream::Database, format!("{}hunter22", "x".repeat(LINE_MAX - 44)));
        let mut lines = crate::handler::lines::LineSplitter::default();
        let long = format!("{}hunter22 and more\n", "x".repeat(LINE_MAX - 4));
        lines.feed_bytes(long.as_bytes(), |line| log.bytes(Stream::Stderr, line));
        let lines = log.finish();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].text.ends_with("x***"), "{}", &lines[2].text[LINE_MAX - 20..]);
        assert_eq!(lines[3].text, "*** and more");
        assert_eq!(lines[0].text, "pw *** and ***");
        assert!(!lines[1].text.contains("hun"), "{}", lines[1].text);
    }

    #[test]
    fn a_line_stays_until_it_is_acknowledged() {
        let log = RunLog::new(40_000);
        for i in 0..10 {
            log.add_line(Stream::Stdout, format!("line {i}"));
        }
        let numbers = |group: &LogGroup| group.lines.iter().map(|l| l.number).collect::<Vec<_>>();
        let limit = GroupLimit { lines: 4, bytes: 1_000 };
        let group = log.next_group(limit);
        assert_eq!((numbers(&group), group.has_more), (vec![1, 2, 3, 4], true));
        assert_eq!(numbers(&log.next_group(limit)), [1, 2, 3, 4], "they were not stored");
        log.acknowledge(4);
        let few_bytes = GroupLimit { lines: 4, bytes: 14 };
        assert_eq!(numbers(&log.next_group(few_bytes)), [5, 6]);
        let no_bytes = GroupLimit { lines: 4, bytes: 0 };
        assert_eq!(numbers(&log.next_group(no_bytes)), [5], "a long line goes by itself");
        log.acknowledge(8);
        let group = log.next_group(limit);
        assert_eq!((numbers(&group), group.has_more), (vec![9, 10], false));
        assert_eq!(log.finish().len(), 2, "what is not acknowledged goes with the end");
    }

    #[test]
    fn a_short_log_is_kept_whole() {
        let log = RunLog::new(4_000);
        log.add_line(Stream::Stdout, "one");
        assert_eq!(log.drain().len(), 1);
        log.bytes(Stream::Stderr, b"two\xff\n");
        let rest = log.finish();
        assert_eq!(rest.len(), 1);
        assert_eq!((rest[0].number, rest[0].text.as_str()), (2, "two\u{FFFD}"));
    }
}
