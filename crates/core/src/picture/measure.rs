//! Computes the size of a job's box from its lines of text.

use crate::domain::time::span_words;
use crate::picture::view::{DagView, JobState, PictureNode, PictureNodeKind};
use unicode_width::UnicodeWidthChar as _;

/// Height of a line of text in a box.
pub(super) const LINE: f64 = 16.0;
/// Space left and right of the text in a box.
pub(super) const PAD: f64 = 12.0;
const NARROWEST: f64 = 120.0;
/// Minimum width of a box in a steady picture: `UPSTREAM_FAILED`, or a state with its duration.
const STEADY: f64 = 168.0;
/// Maximum width. A code is only cut beyond this, because readers search by code; a name may be cut earlier.
const WIDEST: f64 = 340.0;
const WIDEST_NAME: f64 = 260.0;

/// The text in a box: `code` in bold, the other lines below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxText {
    pub(super) head: String,
    pub(super) name: Option<String>,
    pub(super) state: Option<String>,
}

impl BoxText {
    pub(super) fn of_item(item: &PictureNode) -> Self {
        let stands_for_others = match item.kind {
            PictureNodeKind::Job => false,
            PictureNodeKind::External | PictureNodeKind::Group | PictureNodeKind::Tag => true,
        };
        let (head, name) = if stands_for_others {
            (item.name.clone(), count_words(item))
        } else {
            (item.code.clone(), (item.name != item.code).then(|| item.name.clone()))
        };
        Self { head, name, state: state_line(item) }
    }

    pub(super) fn all_lines(&self) -> impl Iterator<Item = &str> {
        let below = [&self.name, &self.state].into_iter().flatten().map(String::as_str);
        std::iter::once(self.head.as_str()).chain(below)
    }
}

fn count_words(item: &PictureNode) -> Option<String> {
    match item.members.values().sum::<usize>() {
        0 => None,
        1 => Some("1 job".to_owned()),
        jobs => Some(format!("{jobs} jobs")),
    }
}

/// State, duration and number of attempts; before the end, the expected duration.
fn state_line(item: &PictureNode) -> Option<String> {
    let expected = item.timing.est_ms.map(|ms| format!("≈ {}", span_words(ms)));
    let Some(state) = &item.state else { return expected };
    let expected = expected.filter(|_| !state.status.is_final());
    let words = state_words(state);
    Some(expected.map_or_else(|| words.clone(), |expected| format!("{words} {expected}")))
}

fn state_words(state: &JobState) -> String {
    let took = state.time_taken().map(|ms| format!(" {}", span_words(ms)));
    let again = if state.attempt > 1 { format!(" (try {})", state.attempt) } else { String::new() };
    format!("{}{}{again}", state.status, took.unwrap_or_default())
}

/// A width and a height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) w: f64,
    pub(super) h: f64,
}

/// The boxes of a view: as wide as their text within limits, all of the same height.
pub(super) fn sizes(view: &DagView) -> Vec<Size> {
    let lines: Vec<BoxText> = view.nodes.iter().map(BoxText::of_item).collect();
    let most = lines.iter().map(|l| l.all_lines().count()).max().unwrap_or(1);
    let height = 12.0 + LINE * most as f64;
    lines.iter().map(|lines| Size { w: box_width(lines), h: height }).collect()
}

/// The width of a box with these lines.
fn box_width(lines: &BoxText) -> f64 {
    let head = width(&lines.head, 12.5);
    let rest = lines.all_lines().skip(1).map(|line| width(line, 11.0));
    let rest = rest.fold(0.0, f64::max).min(WIDEST_NAME - 2.0 * PAD);
    let widest = head.max(rest) + 2.0 * PAD;
    (widest / 4.0).ceil().clamp(NARROWEST / 4.0, WIDEST / 4.0) * 4.0
}

/// The boxes of a view with space for the text of any state.
pub(super) fn steady_sizes(view: &DagView) -> Vec<Size> {
    let lines: Vec<BoxText> =
        view.nodes.iter().map(|item| BoxText { state: None, ..BoxText::of_item(item) }).collect();
    let most = lines.iter().map(|l| l.all_lines().count()).max().unwrap_or(1) + 1;
    let height = 12.0 + LINE * most as f64;
    lines.iter().map(|lines| Size { w: box_width(lines).max(STEADY), h: height }).collect()
}

/// Approximate width of `text` in a sans-serif font of `size` pixels; Chinese characters are as wide as they are high.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|c| char_width(c) * size).sum()
}

fn char_width(c: char) -> f64 {
    match (c.width(), c) {
        (None | Some(0), _) => 0.0,
        (Some(1), 'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ') => 0.32,
        (Some(1), 'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '-') => 0.42,
        (Some(1), 'm' | 'w' | 'M' | 'W' | '@' | '%') => 0.92,
        (Some(1), 'A'..='Z') => 0.71,
        (Some(1), _) => 0.6,
        (Some(_), _) => 1.05,
    }
}

/// Shortens `text` to `room` pixels by cutting in the middle: codes differ at both ends, and the part that tells one of
/// a series apart is usually at the end.
pub(super) fn clipped(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut left = room - size;
    let chars: Vec<char> = text.chars().collect();
    let (mut head, mut tail) = (0, chars.len());
    while head < tail {
        let is_head = head <= chars.len() - tail;
        let next = if is_head { chars[head] } else { chars[tail - 1] };
        left -= char_width(next) * size;
        if left < 0.0 {
            break;
        }
        if is_head { head += 1 } else { tail -= 1 }
    }
    let (head, tail) = (&chars[..head], &chars[tail..]);
    head.iter().copied().chain(std::iter::once('…')).chain(tail.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_in_the_middle() {
        let name = "stg_netsuite2__consolidated_exchange_rates_by_accounting_period";
        assert_eq!(clipped(name, 12.0, 2_000.0), name);
        let cut = clipped(name, 12.0, 150.0);
        assert!(cut.starts_with("stg_") && cut.ends_with("_period") && cut.contains('…'), "{cut}");
        assert!(width(&cut, 12.0) <= 150.0 + 12.0, "{cut}");
        assert_eq!(clipped("资产负债表检查", 12.0, 60.0), "资产…查");
        assert_eq!(clipped("abc", 12.0, 1.0), "…");
    }
}
