//! A notification as parts of a chat message; each chat bot formats the parts.

use crate::domain::notification::Notification;
use crate::domain::notification::event::Severity;
use crate::domain::text::truncate_text;
use crate::notify::Message;

/// Maximum size of an error, a log or a list in a chat message, in bytes; the rest is in the e-mail
/// and in the logs.
const VERBATIM_MAX: usize = 1_200;
/// Maximum size of any other part, in bytes.
const PLAIN_MAX: usize = 800;
/// Maximum number of facts, notes or commands.
const LINES_MAX: usize = 20;

/// A part of a message, in one language, unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MessagePiece {
    /// A sentence.
    Sentence(String),
    /// Labels and values, one per line.
    Facts(Vec<(String, String)>),
    /// Verbatim machine output, with a label.
    Verbatim(String, String),
    /// A link, with a label.
    Link(String, String),
}

/// The parts of a message, the most important first.
pub(super) fn pieces(message: &Message) -> Vec<MessagePiece> {
    let (letter, lang) = (&message.letter, message.lang);
    let mut pieces = vec![MessagePiece::Sentence(plain(letter.headline.text_in(lang)))];
    for note in letter.notes.iter().take(LINES_MAX) {
        pieces.push(MessagePiece::Sentence(plain(note.text_in(lang))));
    }
    let facts = letter.facts.iter().take(LINES_MAX);
    let facts = facts.map(|fact| (fact.label.text_in(lang).to_owned(), plain(&fact.value)));
    pieces.push(MessagePiece::Facts(facts.collect()));
    if let Some(error) = &letter.error {
        pieces.push(verbatim(lang.select("Error", "错误"), error));
    }
    if !letter.blocked.is_empty() {
        let label = format!("{} ({})", lang.select("Blocked", "受阻作业"), letter.blocked.len());
        pieces.push(MessagePiece::Facts(vec![(label, plain(&letter.blocked.join(", ")))]));
    }
    if !letter.items.is_empty() {
        let items: Vec<&str> = letter.items.iter().map(|item| item.text_in(lang)).collect();
        pieces.push(verbatim(lang.select("List", "列表"), &items.join("\n")));
    }
    let steps = letter.steps.iter().take(LINES_MAX);
    let steps = steps.map(|step| (step.label.text_in(lang).to_owned(), plain(&step.command)));
    pieces.push(MessagePiece::Facts(steps.collect()));
    if !letter.log.is_empty() {
        let label = lang.select("Last lines of its log", "日志末尾");
        pieces.push(verbatim(label, &last_lines(&letter.log)));
    }
    if let Some(link) = &letter.link {
        pieces.push(MessagePiece::Link(lang.select("Open", "打开").to_owned(), link.clone()));
    }
    pieces.retain(|piece| *piece != MessagePiece::Facts(Vec::new()));
    pieces
}

/// The symbol before a subject where there are no colours.
pub(super) fn severity_icon(letter: &Notification) -> &'static str {
    match letter.severity() {
        Severity::Good => "🟢",
        Severity::Warning => "🟠",
        Severity::Bad => "🔴",
    }
}

/// At most `max` bytes of whole lines of `text`, and a line that mentions the omitted rest.
pub(super) fn clip_lines(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let cut = &text[..text.floor_char_boundary(max.saturating_sub("\n…".len()))];
    let cut = cut.rsplit_once('\n').map_or(cut, |(lines, _)| lines);
    format!("{}\n…", cut.trim_end())
}

fn plain(text: &str) -> String {
    truncate_text(&text.replace(|c: char| c.is_control(), " "), PLAIN_MAX)
}

fn verbatim(label: &str, text: &str) -> MessagePiece {
    let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
    MessagePiece::Verbatim(label.to_owned(), truncate_text(&text, VERBATIM_MAX))
}

/// As many of the last lines as fit.
fn last_lines(log: &[String]) -> String {
    let mut size = 0;
    let lines = log.iter().rev().take_while(|line| {
        size += line.len() + 1;
        size <= VERBATIM_MAX
    });
    let mut lines: Vec<&str> = lines.map(String::as_str).collect();
    lines.reverse();
    // A single longer line is cut like any other text.
    if lines.is_empty() { log.last().cloned().unwrap_or_default() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::sample;

    #[test]
    fn a_letter_of_any_size_stays_small() {
        let mut message = sample::message();
        let long = "长".repeat(50_000);
        message.letter.error = Some(long.clone());
        message.letter.log = (0..900).map(|n| format!("line {n}")).collect();
        message.letter.blocked = vec![long; 9];
        let pieces = pieces(&message);
        let size: usize = pieces.iter().map(|piece| format!("{piece:?}").len()).sum();
        assert!(size < 12_000, "{size}");
        let has_last =
            |p: &MessagePiece| matches!(p, MessagePiece::Verbatim(_, t) if t.ends_with("line 899"));
        assert!(pieces.iter().any(has_last), "{pieces:?}");
    }

    #[test]
    fn whole_lines_are_cut() {
        assert_eq!(clip_lines("one\ntwo\nthree", 12), "one\ntwo\n…");
        assert_eq!(clip_lines("短", 3), "短");
        assert_eq!(clip_lines("短短短", 8), "短\n…");
    }
}
