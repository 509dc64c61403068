//! Translates messages into Chinese, as gettext does: the English text is the key.
//!
//! A message is made of clauses, joined by `: `, `; ` or a full stop, and each clause is made from
//! a template: `group {} has no job`. The catalogue has the templates with their Chinese. The
//! translation of a text is the one in which the templates cover the most; what no template matches
//! stays as it is, and so does the text of a database server.

mod catalogue;
mod clauses;
#[cfg(test)]
mod tests;

use crate::domain::text::lang::Lang;
use catalogue::{Catalogue, Segment, Template};
use clauses::{Separator, is_foreign_head, separators};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub use catalogue::catalogue_entries;

/// A template spans at most so many clauses.
const SPAN: usize = 8;
/// A clause that is longer is text of somebody else.
const LONGEST_CLAUSE: usize = 4_000;
/// What is captured is translated in turn, so deep.
const DEEPEST: u8 = 4;
/// So many lines of a text, and so many clauses of it, are translated; the rest stays English.
const MAX_LINES: usize = 200;
const MAX_CLAUSES: usize = 200;

/// The text in a language; messages are written in English.
///
/// ```
/// use procession_core::domain::text::lang::Lang;
/// use procession_core::domain::text::translation::translate;
///
/// let text = "dag.yaml:3: job A: type PRC does not exist; did you mean PROC?";
/// assert_eq!(translate(text, Lang::Zh), "dag.yaml:3：作业 A：类型 PRC 不存在；是否想写 PROC？");
/// assert_eq!(translate(text, Lang::En), text);
/// ```
pub fn translate(text: &str, lang: Lang) -> Cow<'_, str> {
    match lang {
        Lang::En => Cow::Borrowed(text),
        Lang::Zh => translate_lines(Catalogue::chinese(), text),
    }
}

fn translate_lines<'t>(catalogue: &Catalogue, text: &'t str) -> Cow<'t, str> {
    let mut translated = String::with_capacity(text.len());
    let mut budget = MAX_CLAUSES;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let content = line.trim_end_matches('\n');
        let body = content.trim_start();
        translated.push_str(&content[..content.len() - body.len()]);
        if number < MAX_LINES && budget > 0 && body.bytes().any(|b| b.is_ascii_alphabetic()) {
            let clauses = separators(body, budget);
            budget = budget.saturating_sub(clauses.len() + 1);
            translated.push_str(&Line::new(catalogue, body, clauses, 0).translate());
        } else {
            translated.push_str(body);
        }
        translated.push_str(&line[content.len()..]);
    }
    if translated == text { Cow::Borrowed(text) } else { Cow::Owned(translated) }
}

/// How the rest of a line is best translated, from one place on.
#[derive(Clone)]
struct Choice<'c, 't> {
    /// Bytes of the line that templates cover.
    covered: usize,
    step: Step<'c, 't>,
}

#[derive(Clone)]
enum Step<'c, 't> {
    /// The clause stays as it is, up to this place.
    Keep { end: usize },
    /// A template matches up to this place.
    Whole { template: &'c Template, captures: Vec<&'t str>, end: usize },
    /// A template that ends with a placeholder: what follows is translated by itself.
    Open { template: &'c Template, captures: Vec<&'t str>, rest: usize },
    /// A number of things, up to this place.
    Count { chinese: String, end: usize },
}

/// Who wrote a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Program,
    /// A database server or a script: it is behind `error 1146 (42S02): ` or `exit code 3: `, and
    /// never translated.
    Foreign,
    /// Behind a `; ` in such a text: theirs, or a hint of the program.
    Either,
}

/// A line while it is translated.
struct Line<'c, 't> {
    catalogue: &'c Catalogue,
    text: &'t str,
    separators: Vec<Separator>,
    depth: u8,
    choices: HashMap<usize, Choice<'c, 't>>,
}

impl<'c, 't> Line<'c, 't> {
    fn new(catalogue: &'c Catalogue, text: &'t str, found: Vec<Separator>, depth: u8) -> Self {
        Self { catalogue, text, separators: found, depth, choices: HashMap::new() }
    }

    fn translate(mut self) -> String {
        // From the end, so that what follows a place is known when the place is reached.
        let starts: Vec<usize> = self.separators.iter().rev().map(|s| s.end).collect();
        for start in starts {
            self.choose(start);
        }
        self.choose(0);
        self.render()
    }

    /// The best choice from `start` on, and what it covers.
    fn choose(&mut self, start: usize) -> usize {
        if start >= self.text.len() {
            return 0;
        }
        if let Some(known) = self.choices.get(&start) {
            return known.covered;
        }
        let ends = self.ends_after(start);
        let first = ends.first().copied().unwrap_or(self.text.len());
        let origin = self.origin(start);
        let mut best = Choice { covered: 0, step: Step::Keep { end: first } };
        best.covered = self.covered_after(first);
        if origin != Origin::Foreign {
            for (separators, &end) in ends.iter().enumerate() {
                self.try_whole(start..end, separators, origin, &mut best);
            }
        }
        if origin == Origin::Program {
            self.try_open(start, ends.last().copied().unwrap_or(first), &mut best);
        }
        let covered = best.covered;
        self.choices.insert(start, best);
        covered
    }

    /// Tries the templates that have so many separators themselves.
    fn try_whole(
        &mut self,
        place: Range<usize>,
        separators: usize,
        origin: Origin,
        best: &mut Choice<'c, 't>,
    ) {
        let (text, end) = (&self.text[place.clone()], place.end);
        if text.len() > LONGEST_CLAUSE {
            return;
        }
        if let Some(chinese) = self.catalogue.translate_counts(text) {
            let covered = text.len() + self.covered_after(end);
            if covered > best.covered {
                *best = Choice { covered, step: Step::Count { chinese, end } };
            }
        }
        for template in self.catalogue.candidates(text) {
            if template.separators() != separators
                || (origin == Origin::Either && !template.is_certain())
            {
                continue;
            }
            let covered = template.weight() + self.covered_after(end);
            if covered <= best.covered {
                continue;
            }
            if let Some(captures) = template.match_whole(text).filter(|c| self.suit(template, c)) {
                *best = Choice { covered, step: Step::Whole { template, captures, end } };
            }
        }
    }

    fn try_open(&mut self, start: usize, window: usize, best: &mut Choice<'c, 't>) {
        let text = &self.text[start..window];
        if text.len() > LONGEST_CLAUSE {
            return;
        }
        for template in self.catalogue.open_candidates(text) {
            let Some((captures, length)) = template.match_open(text) else { continue };
            if !self.suit(template, &captures) {
                continue;
            }
            let rest = start + length;
            let covered = template.weight() + self.choose(rest);
            if covered > best.covered {
                *best = Choice { covered, step: Step::Open { template, captures, rest } };
            }
        }
    }

    /// Whether these can be what the placeholders stand for: no clauses of their own, and beside
    /// little fixed text only short values.
    fn suit(&self, template: &Template, captures: &[&str]) -> bool {
        captures.iter().enumerate().all(|(number, captured)| {
            let words = captured.split_whitespace().count();
            template.is_quoted(number)
                || (separators(captured, 1).is_empty()
                    && (words <= template.most_words()
                        || is_quoted(captured)
                        || self.translate_part(captured).is_some()))
        })
    }

    /// The translation of something captured, if there is one.
    fn translate_part(&self, text: &str) -> Option<String> {
        if self.depth >= DEEPEST || !text.bytes().any(|b| b.is_ascii_alphabetic()) {
            return None;
        }
        let line = Line::new(self.catalogue, text, separators(text, SPAN), self.depth + 1);
        Some(line.translate()).filter(|translated| translated != text)
    }

    fn render(&self) -> String {
        let mut chinese = String::with_capacity(self.text.len());
        let mut place = 0;
        let mut is_translated = false;
        let mut is_after_separator = false;
        while let Some(Choice { step, .. }) = self.choices.get(&place) {
            let (end, is_now) = match step {
                Step::Keep { end } => (*end, false),
                Step::Whole { end, .. } | Step::Count { end, .. } => (*end, true),
                Step::Open { rest, .. } => (*rest, true),
            };
            if is_after_separator {
                self.push_separator(&mut chinese, place, is_translated || is_now);
            }
            match step {
                Step::Keep { end } => chinese.push_str(&self.text[place..*end]),
                Step::Count { chinese: count, .. } => chinese.push_str(count),
                Step::Whole { template, captures, .. } | Step::Open { template, captures, .. } => {
                    self.push_template(&mut chinese, template, captures);
                }
            }
            is_translated = is_now;
            let is_open = matches!(step, Step::Open { .. });
            let follows = self.separators.iter().find(|s| !is_open && s.start == end);
            is_after_separator = follows.is_some();
            place = follows.map_or(end, |separator| separator.end);
        }
        chinese
    }

    /// The separator before a clause, of full width where the text around it is Chinese.
    fn push_separator(&self, chinese: &mut String, place: usize, is_wide: bool) {
        if let Some(separator) = self.separators.iter().find(|s| s.end == place) {
            let narrow = &self.text[separator.start..separator.end];
            chinese.push_str(if is_wide { separator.wide } else { narrow });
        }
    }

    fn push_template(&self, chinese: &mut String, template: &Template, captures: &[&str]) {
        for segment in template.chinese() {
            match segment {
                Segment::Text(text) => chinese.push_str(text),
                Segment::Capture(number) => {
                    // The last one of an open template follows by itself.
                    if let Some(captured) = captures.get(*number) {
                        let is_value = template.is_quoted(*number);
                        let part = self.translate_part(captured).filter(|_| !is_value);
                        chinese.push_str(part.as_deref().unwrap_or(captured));
                    }
                }
            }
        }
    }

    /// Where a template that begins at `start` may end.
    fn ends_after(&self, start: usize) -> Vec<usize> {
        let from = self.separators.partition_point(|s| s.start < start);
        let mut ends: Vec<usize> =
            self.separators[from..].iter().take(SPAN).map(|s| s.start).collect();
        if ends.len() < SPAN {
            ends.push(self.text.len());
        }
        ends
    }

    /// What is covered behind the clause that ends here.
    fn covered_after(&mut self, end: usize) -> usize {
        match self.separators.iter().find(|s| s.start == end).map(|s| s.end) {
            Some(next) => self.choose(next),
            None => 0,
        }
    }

    /// Whose the clause is that begins here.
    fn origin(&self, start: usize) -> Origin {
        let mut origin = Origin::Program;
        let mut clause = 0;
        for separator in self.separators.iter().take_while(|s| s.end <= start) {
            let is_joined = separator.wide == "；";
            origin = match origin {
                Origin::Program if is_foreign_head(&self.text[clause..separator.start]) => {
                    Origin::Foreign
                }
                Origin::Program => Origin::Program,
                Origin::Foreign | Origin::Either if is_joined => Origin::Either,
                Origin::Foreign | Origin::Either => Origin::Foreign,
            };
            clause = separator.end;
        }
        origin
    }
}

fn is_quoted(text: &str) -> bool {
    let mut letters = text.chars();
    match (letters.next(), letters.next_back()) {
        (Some(first), Some(last)) => first == last && matches!(first, '\'' | '"' | '`'),
        _ => false,
    }
}
