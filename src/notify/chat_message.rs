//! A letter as pieces of a chat message; each robot says how a piece looks.

use crate::domain::notification::Letter;
use crate::domain::notification::event::Severity;
use crate::domain::text::clip;
use crate::notify::Message;

/// Most bytes of an error, a log or a list in a chat message; the rest is in the mail and in the logs.
const VERBATIM_MAX: usize = 1_200;
/// Most bytes of any other piece.
const PLAIN_MAX: usize = 800;
/// Most facts, notes or commands.
const LINES_MAX: usize = 20;

/// A piece of a message, in one language. Nothing in it is escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A sentence.
    Sentence(String),
    /// Labels and values, a line each.
    Facts(Vec<(String, String)>),
    /// Text as a machine said it, with a label.
    Verbatim(String, String),
    /// Where to look, with a label.
    Link(String, String),
}

/// The pieces of a message's letter, the most important first.
pub(super) fn pieces(message: &Message) -> Vec<Piece> {
    let (letter, lang) = (&message.letter, message.lang);
    let mut pieces = vec![Piece::Sentence(plain(letter.headline.pick(lang)))];
    for note in letter.notes.iter().take(LINES_MAX) {
        pieces.push(Piece::Sentence(plain(note.pick(lang))));
    }
    let facts = letter.facts.iter().take(LINES_MAX);
    let facts = facts.map(|fact| (fact.label.pick(lang).to_owned(), plain(&fact.value)));
    pieces.push(Piece::Facts(facts.collect()));
    if let Some(error) = &letter.error {
        pieces.push(verbatim(lang.pick("Error", "错误"), error));
    }
    if !letter.blocked.is_empty() {
        let label = format!("{} ({})", lang.pick("Blocked", "受阻作业"), letter.blocked.len());
        pieces.push(Piece::Facts(vec![(label, plain(&letter.blocked.join(", ")))]));
    }
    if !letter.items.is_empty() {
        let items: Vec<&str> = letter.items.iter().map(|item| item.pick(lang)).collect();
        pieces.push(verbatim(lang.pick("List", "列表"), &items.join("\n")));
    }
    let steps = letter.steps.iter().take(LINES_MAX);
    let steps = steps.map(|step| (step.label.pick(lang).to_owned(), plain(&step.command)));
    pieces.push(Piece::Facts(steps.collect()));
    if !letter.log.is_empty() {
        let label = lang.pick("Last lines of its log", "日志末尾");
        pieces.push(verbatim(label, &last(&letter.log)));
    }
    if let Some(link) = &letter.link {
        pieces.push(Piece::Link(lang.pick("Open", "打开").to_owned(), link.clone()));
    }
    pieces.retain(|piece| *piece != Piece::Facts(Vec::new()));
    pieces
}

/// The sign that stands before a subject where there are no colours.
pub(super) fn sign(letter: &Letter) -> &'static str {
    match letter.severity() {
        Severity::Good => "🟢",
        Severity::Warning => "🟠",
        Severity::Bad => "🔴",
    }
}

/// At most `max` bytes of whole lines of `text`, and a line that says that there was more.
pub(super) fn clip_lines(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let cut = &text[..text.floor_char_boundary(max.saturating_sub("\n…".len()))];
    let cut = cut.rsplit_once('\n').map_or(cut, |(lines, _)| lines);
    format!("{}\n…", cut.trim_end())
}

fn plain(text: &str) -> String {
    clip(&text.replace(|c: char| c.is_control(), " "), PLAIN_MAX)
}

fn verbatim(label: &str, text: &str) -> Piece {
    let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
    Piece::Verbatim(label.to_owned(), clip(&text, VERBATIM_MAX))
}

/// As many of the last lines as may stand there.
fn last(log: &[String]) -> String {
    let mut size = 0;
    let lines = log.iter().rev().take_while(|line| {
        size += line.len() + 1;
        size <= VERBATIM_MAX
    });
    let mut lines: Vec<&str> = lines.map(String::as_str).collect();
    lines.reverse();
    // A single line that is longer is clipped like any other text.
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
        let has_last = |p: &Piece| matches!(p, Piece::Verbatim(_, t) if t.ends_with("line 899"));
        assert!(pieces.iter().any(has_last), "{pieces:?}");
    }

    #[test]
    fn whole_lines_are_cut() {
        assert_eq!(clip_lines("one\ntwo\nthree", 12), "one\ntwo\n…");
        assert_eq!(clip_lines("短", 3), "短");
        assert_eq!(clip_lines("短短短", 8), "短\n…");
    }
}
