//! The only place that prints: tables and lines to stdout, errors to stderr.

use crate::domain::job::queue::QueueStatus;
use crate::domain::text::count_words;
use crate::domain::text::lang::Lang;
use crate::domain::text::translation::translate;
use crate::domain::time::Millis;
pub(super) use crate::view::act::state;
use anyhow::Result;
use chrono::{DateTime, Local};
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{BufWriter, Error, ErrorKind, IsTerminal as _, Write};
use std::sync::OnceLock;

/// The language of messages, set once for the process.
static LANGUAGE: OnceLock<Lang> = OnceLock::new();

/// Sets the language of messages. Before it is set they are English.
pub(super) fn set_language(lang: Lang) {
    let _set_before = LANGUAGE.set(lang);
}

/// A message of the program in the user's language; what was printed by a job is no message.
pub(super) fn message(text: &str) -> Cow<'_, str> {
    translate(text, language())
}

fn language() -> Lang {
    LANGUAGE.get().copied().unwrap_or_default()
}

/// Prints a line to stdout. A closed reader (`| head`) changes nothing: a batch continues, and the
/// exit code reports its result.
pub(super) fn print_line(text: &str) {
    let _reader_gone = writeln!(std::io::stdout(), "{}", clean(text));
}

/// Prints text of a file to stdout unchanged, because its format is the writer's. `false` when the
/// reader has closed the output.
pub(super) fn print_text(text: &str) -> bool {
    std::io::stdout().write_all(text.as_bytes()).is_ok()
}

/// Prints many lines to stdout in few writes: `apply` of a large file may print a million.
pub(super) fn lines(all: impl Iterator<Item = String>) {
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for text in all {
        if writeln!(out, "{}", clean(&text)).is_err() {
            // The reader has closed the output.
            return;
        }
    }
    let _reader_gone = out.flush();
}

/// Prints a line to stdout that contains colours and no foreign text.
pub(super) fn painted(text: &str) {
    let _reader_gone = writeln!(std::io::stdout(), "{text}");
}

/// Whether stdout is a terminal, and colours are welcome there (respects https://no-color.org).
pub(super) fn may_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Prints a message to stderr, in the user's language; a closed reader (pager, session) stops no
/// batch.
pub(super) fn eprint_line(text: &str) {
    match text.strip_prefix("warning: ") {
        Some(warning) => write_stderr(&labelled("warning: ", "警告：", warning)),
        None => write_stderr(&message(text)),
    }
}

/// Prints an error to stderr.
pub(super) fn error(text: &str) {
    write_stderr(&labelled("error: ", "错误：", text));
}

fn write_stderr(text: &str) {
    let _reader_gone = writeln!(std::io::stderr(), "{}", clean(text));
}

/// A message behind its label.
fn labelled(english: &'static str, chinese: &'static str, text: &str) -> String {
    format!("{}{}", language().select(english, chinese), message(text))
}

/// Removes what a terminal would execute or be confused by: control characters other than newline
/// and tab, and those that change the writing direction. A value in a business table must not be
/// able to repaint an operator's screen.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || turns(c);
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if obeyed(c) { '\u{FFFD}' } else { c }).collect())
}

fn turns(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Prints a JSON document to stdout.
pub(super) fn print_json(value: &serde_json::Value) -> Result<()> {
    document(value)
}

/// The same, written while it is serialised: that of a large graph has hundreds of megabytes.
pub(super) fn document<T: Serialize>(value: &T) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, Cleaned(std::io::stdout().lock()));
    match serde_json::to_writer_pretty(&mut out, value) {
        Err(e) if e.io_error_kind().is_none_or(|kind| kind == ErrorKind::InvalidData) => {
            return Err(e.into());
        }
        // The reader has closed the output.
        Err(_) => {}
        Ok(()) => {
            let _reader_gone = writeln!(out).and_then(|()| out.flush());
        }
    }
    Ok(())
}

/// Passes text on through `clean`. Texts arrive whole, because `BufWriter` never splits its input.
#[derive(Debug)]
struct Cleaned<W>(W);

impl<W: Write> Write for Cleaned<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = str::from_utf8(bytes).map_err(|e| Error::new(ErrorKind::InvalidData, e))?;
        self.0.write_all(clean(text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A table with a header; the width of wide characters is that of terminals.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    let rule = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(rule).bottom_border(rule));
    // On a terminal long texts are wrapped; tools that read a pipe need whole lines.
    match console::Term::stdout().size_checked() {
        Some((_, columns)) => {
            table.set_width(columns).set_content_arrangement(ContentArrangement::Dynamic)
        }
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(header);
    for row in rows {
        table.add_row(row.iter().map(|cell| clean(cell).replace(['\n', '\t'], " ")));
    }
    table.to_string()
}

/// Whether stderr is a terminal, and colours are welcome there (respects https://no-color.org).
pub(super) fn is_terminal() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A state in its colour, for terminals.
pub(super) fn coloured(status: QueueStatus) -> String {
    let colour = match status {
        QueueStatus::Success | QueueStatus::Forced => 32,
        QueueStatus::Warning | QueueStatus::RetryWait | QueueStatus::Killing => 33,
        QueueStatus::Failed | QueueStatus::Timeout | QueueStatus::Killed => 31,
        QueueStatus::Unknown => 35,
        QueueStatus::Running => 36,
        QueueStatus::UpstreamFailed | QueueStatus::Skipped | QueueStatus::NotTaken => 90,
        QueueStatus::Pending | QueueStatus::Held | QueueStatus::Queued => 37,
    };
    format!("\u{1b}[{colour}m{status}\u{1b}[0m")
}

/// `1 job`, `2 jobs`.
pub(super) fn count(number: usize, thing: &str) -> String {
    count_words(number as u64, thing)
}

/// A time, or a dash.
pub(super) fn moment(at: Option<Millis>) -> String {
    at.map_or_else(|| "-".to_owned(), local_time)
}

/// A time in the zone of whoever runs the command (`TZ`, else the machine's), with its offset:
/// `2026-12-31 18:00:00 +08:00`. Scripts read UTC from `--json`.
pub(super) fn local_time(at: Millis) -> String {
    at.to_utc().with_timezone(&Local).format("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// The same with milliseconds, for lines whose order matters.
pub(super) fn precise_local_time(at: Millis) -> String {
    at.to_utc().with_timezone(&Local).format("%Y-%m-%d %H:%M:%S%.3f %:z").to_string()
}

/// A text of an answer of the API: a time in UTC is shown as [`local_time`], any other text as it
/// is.
pub(super) fn local_text(text: &str) -> String {
    parse_utc(text).map_or_else(|| text.to_owned(), local_time)
}

/// A time as the API writes it; nothing else, and no time with another offset.
pub(super) fn parse_utc(text: &str) -> Option<Millis> {
    let at = DateTime::parse_from_rfc3339(text).ok().filter(|_| text.ends_with('Z'))?;
    Some(Millis(at.timestamp_millis()))
}

/// The first line of a text, cut to `max` characters.
pub(super) fn brief(text: &str, max: usize) -> String {
    let first = text.lines().next().unwrap_or_default();
    if first.chars().count() <= max {
        return first.to_owned();
    }
    let cut: String = first.chars().take(max.saturating_sub(1)).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::Cleaned;
    use crate::domain::time::Millis;
    use chrono::DateTime;
    use std::io::BufWriter;

    /// In whatever zone the tests run: the same moment, with an offset.
    #[test]
    fn times_are_local_and_name_their_offset() {
        let at = Millis::parse("2026-12-31T10:00:00.250Z").expect("a time");
        let read = |text: &str| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f %:z");
        let shown = read(&super::precise_local_time(at)).expect("a time with its offset");
        assert_eq!(shown.timestamp_millis(), at.0);
        let shown = read(&super::local_text("2026-12-31T10:00:00.250Z")).expect("the same");
        assert_eq!(shown.timestamp_millis(), at.0 - 250, "whole seconds");
        for text in ["202407", "2026-12-31", "2026-12-31T18:00:00+08:00", "LOAD_Z", ""] {
            assert_eq!(super::local_text(text), text);
        }
    }

    #[test]
    fn things_are_counted() {
        assert_eq!(super::count(1, "day"), "1 day");
        assert_eq!(super::count(2, "day"), "2 days");
        assert_eq!(super::count(0, "dependency"), "0 dependencies");
        assert_eq!(super::count(3, "job"), "3 jobs");
    }

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        let hostile = "a\u{1b}[2J\u{202E}b\r\nc\td";
        assert_eq!(super::clean(hostile), "a\u{FFFD}[2J\u{FFFD}b\u{FFFD}\nc\td");
        assert!(!super::table(&["X"], vec![vec![hostile.to_owned()]]).contains('\u{1b}'));
        assert_eq!(super::clean("月末 ok"), "月末 ok");
    }

    #[test]
    fn a_document_is_cleaned_on_its_way_and_no_character_is_cut() {
        let texts = vec!["月\u{202E}末\u{7f}"; 5_000];
        let plain = serde_json::to_string_pretty(&texts).expect("JSON");
        for capacity in [1, 7, 4_096] {
            let mut out = BufWriter::with_capacity(capacity, Cleaned(Vec::new()));
            serde_json::to_writer_pretty(&mut out, &texts).expect("written");
            let Cleaned(written) = out.into_inner().expect("flushed");
            assert_eq!(String::from_utf8(written).expect("text"), super::clean(&plain));
        }
    }
}
