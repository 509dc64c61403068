//! The catalogue of translations: `messages/*.zh.tsv`, one message a line.

use super::clauses::separators;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The files, each about one topic: its name and content.
const FILES: [(&str, &str); 6] = [
    ("definitions", include_str!("../messages/definitions.zh.tsv")),
    ("rules", include_str!("../messages/rules.zh.tsv")),
    ("commands", include_str!("../messages/commands.zh.tsv")),
    ("engine", include_str!("../messages/engine.zh.tsv")),
    ("application", include_str!("../messages/application.zh.tsv")),
    ("interfaces", include_str!("../messages/interfaces.zh.tsv")),
];
const COUNTS: &str = include_str!("../messages/counts.zh.tsv");

/// Templates with fewer letters of fixed text would match the words of others.
const FEWEST_LETTERS: usize = 3;

/// A line of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The file, by its topic.
    pub topic: &'static str,
    /// The line, counted from 1.
    pub line: usize,
    pub english: &'static str,
    pub chinese: &'static str,
}

/// The entries of all files but that of the counted nouns.
pub fn catalogue_entries() -> impl Iterator<Item = CatalogueEntry> {
    FILES.into_iter().flat_map(|(topic, content)| {
        rows(content).map(move |(line, english, chinese)| CatalogueEntry {
            topic,
            line,
            english,
            chinese,
        })
    })
}

fn rows(content: &'static str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    content.lines().enumerate().filter(|(_, row)| !row.starts_with('#')).filter_map(|(i, row)| {
        let (english, chinese) = row.split_once('\t')?;
        Some((i + 1, english, chinese))
    })
}

/// A part of a Chinese text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Text(&'static str),
    /// What the placeholder of this number has captured.
    Capture(usize),
}

/// A message with its translation.
#[derive(Debug)]
pub(super) struct Template {
    /// The fixed texts around the placeholders: one more than there are placeholders.
    fixed: Vec<&'static str>,
    chinese: Vec<Segment>,
    letters: usize,
    weight: usize,
    separators: usize,
    is_open: bool,
}

impl Template {
    /// `None` when it has too little fixed text, or its Chinese has other placeholders.
    pub(super) fn parse(english: &'static str, chinese: &'static str) -> Option<Self> {
        let fixed: Vec<&str> = english.split("{}").collect();
        let segments = parse_segments(chinese);
        let placeholders = fixed.len() - 1;
        let mut used: Vec<usize> = segments.iter().filter_map(Segment::number).collect();
        used.sort_unstable();
        let letters: usize =
            fixed.iter().map(|f| f.bytes().filter(u8::is_ascii_alphabetic).count()).sum();
        let is_sound = used.iter().copied().eq(0..placeholders)
            && letters >= FEWEST_LETTERS
            // Two placeholders side by side: nobody knows where the first one ends.
            && fixed.iter().skip(1).rev().skip(1).all(|f| !f.is_empty());
        let is_last = placeholders > 0
            && fixed.last().is_some_and(|f| f.is_empty())
            && segments.last() == Some(&Segment::Capture(placeholders - 1));
        let weight = fixed.iter().map(|f| f.len()).sum();
        let is_open = is_last && letters >= 8;
        // What the placeholders stand for has none.
        let separators = separators(english, usize::MAX).len();
        is_sound.then_some(Self { fixed, chinese: segments, letters, weight, separators, is_open })
    }

    pub(super) fn chinese(&self) -> &[Segment] {
        &self.chinese
    }

    /// Bytes of fixed text: of two templates that match, the longer one is the more specific.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether a placeholder stands between quotes, and so for a value of the user.
    pub(super) fn is_quoted(&self, number: usize) -> bool {
        let before = self.fixed.get(number).and_then(|fixed| fixed.chars().next_back());
        let behind = self.fixed.get(number + 1).and_then(|fixed| fixed.chars().next());
        before == behind && matches!(before, Some('\'' | '"' | '`'))
    }

    /// Separators between clauses that its fixed text has.
    pub(super) fn separators(&self) -> usize {
        self.separators
    }

    /// So many words may be captured untranslated.
    pub(super) fn most_words(&self) -> usize {
        match self.letters {
            0..8 => 1,
            8..14 => 4,
            _ => usize::MAX,
        }
    }

    /// Whether it cannot be a text of a server by chance.
    pub(super) fn is_certain(&self) -> bool {
        self.letters >= 12 && !self.fixed[0].is_empty()
    }

    /// What the placeholders stand for, if this is the whole text.
    pub(super) fn match_whole<'t>(&self, text: &'t str) -> Option<Vec<&'t str>> {
        let (first, rest) = self.fixed.split_first()?;
        let mut text = text.strip_prefix(first)?;
        let Some((last, between)) = rest.split_last() else {
            return text.is_empty().then(Vec::new);
        };
        text = text.strip_suffix(last)?;
        let mut captures = Vec::with_capacity(rest.len());
        for fixed in between {
            let (captured, behind) = text.split_once(fixed)?;
            captures.push(captured);
            text = behind;
        }
        captures.push(text);
        Some(captures)
    }

    /// The same for all placeholders but the last, with the length of what they take.
    pub(super) fn match_open<'t>(&self, text: &'t str) -> Option<(Vec<&'t str>, usize)> {
        let (first, rest) = self.fixed.split_first().filter(|_| self.is_open)?;
        let (_, between) = rest.split_last()?;
        let mut behind = text.strip_prefix(first)?;
        let mut captures = Vec::with_capacity(between.len());
        for fixed in between {
            let (captured, after) = behind.split_once(fixed)?;
            captures.push(captured);
            behind = after;
        }
        (!behind.is_empty()).then(|| (captures, text.len() - behind.len()))
    }

    /// The word that a text begins with if this template can match it.
    fn first_word(&self) -> Option<&'static str> {
        let first = self.fixed[0];
        match first.split_once(' ') {
            Some((word, _)) => Some(word),
            None if self.fixed.len() == 1 => Some(first),
            None => None,
        }
    }

    /// The word that it ends with.
    fn last_word(&self) -> Option<&'static str> {
        self.fixed.last().and_then(|last| last.rsplit_once(' ')).map(|(_, word)| word)
    }
}

impl Segment {
    fn number(&self) -> Option<usize> {
        match self {
            Self::Text(_) => None,
            Self::Capture(number) => Some(*number),
        }
    }
}

/// `{}` is the next placeholder, `{2}` the second one; any other brace is text.
fn parse_segments(chinese: &'static str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let (mut text, mut from, mut next) = (0, 0, 0);
    while let Some(open) = chinese[from..].find('{').map(|at| from + at) {
        let Some(close) = chinese[open..].find('}').map(|at| open + at) else { break };
        let inner = &chinese[open + 1..close];
        let number = if inner.is_empty() {
            next += 1;
            Some(next)
        } else {
            inner.parse::<usize>().ok().filter(|n| *n > 0)
        };
        from = open + 1;
        if let Some(number) = number {
            if text < open {
                segments.push(Segment::Text(&chinese[text..open]));
            }
            segments.push(Segment::Capture(number - 1));
            (text, from) = (close + 1, close + 1);
        }
    }
    if text < chinese.len() {
        segments.push(Segment::Text(&chinese[text..]));
    }
    segments
}

/// The templates, found by their first or last word.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    templates: Vec<Template>,
    by_first: HashMap<&'static str, Vec<usize>>,
    by_last: HashMap<&'static str, Vec<usize>>,
    others: Vec<usize>,
    /// Templates whose last placeholder is the rest of the text, and that begin with one.
    open_others: Vec<usize>,
    counts: HashMap<&'static str, &'static str>,
}

impl Catalogue {
    /// The one of this program.
    pub(super) fn chinese() -> &'static Self {
        static CHINESE: OnceLock<Catalogue> = OnceLock::new();
        CHINESE.get_or_init(|| {
            let pairs = catalogue_entries().map(|entry| (entry.english, entry.chinese));
            Self::new(pairs, rows(COUNTS).map(|(_, noun, chinese)| (noun, chinese)))
        })
    }

    pub(super) fn new(
        pairs: impl IntoIterator<Item = (&'static str, &'static str)>,
        counts: impl IntoIterator<Item = (&'static str, &'static str)>,
    ) -> Self {
        let mut catalogue = Self { counts: counts.into_iter().collect(), ..Self::default() };
        for (english, chinese) in pairs {
            if let Some(template) = Template::parse(english, chinese) {
                catalogue.add(template);
            }
        }
        catalogue
    }

    fn add(&mut self, template: Template) {
        let number = self.templates.len();
        match (template.first_word(), template.last_word()) {
            (Some(word), _) => self.by_first.entry(word).or_default().push(number),
            (None, Some(word)) => self.by_last.entry(word).or_default().push(number),
            (None, None) => self.others.push(number),
        }
        if template.is_open && template.first_word().is_none() {
            self.open_others.push(number);
        }
        self.templates.push(template);
    }

    /// Templates that could match this text.
    pub(super) fn candidates<'c>(&'c self, text: &str) -> impl Iterator<Item = &'c Template> {
        let first = self.by_first.get(text.split(' ').next().unwrap_or_default());
        let last = self.by_last.get(text.rsplit(' ').next().unwrap_or_default());
        let numbers = first.into_iter().chain(last).flatten().chain(&self.others);
        numbers.map(|number| &self.templates[*number])
    }

    /// Templates with an open end that the text could begin with.
    pub(super) fn open_candidates<'c>(&'c self, text: &str) -> impl Iterator<Item = &'c Template> {
        let first = self.by_first.get(text.split(' ').next().unwrap_or_default());
        let numbers = first.into_iter().flatten().chain(&self.open_others);
        numbers.map(|number| &self.templates[*number]).filter(|template| template.is_open)
    }

    /// `3 jobs`, `1 row, 2 changes` in Chinese; nothing else.
    pub(super) fn translate_counts(&self, text: &str) -> Option<String> {
        if !text.as_bytes().first()?.is_ascii_digit() {
            return None;
        }
        let parts: Option<Vec<String>> =
            text.split(", ").map(|part| self.translate_count(part)).collect();
        Some(parts?.join("，"))
    }

    fn translate_count(&self, text: &str) -> Option<String> {
        let (number, noun) = text.split_once(' ')?;
        if !number.bytes().all(|b| b.is_ascii_digit() || b == b',') {
            return None;
        }
        let singular = noun.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let chinese = self
            .counts
            .get(noun)
            .or_else(|| self.counts.get(noun.strip_suffix('s')?))
            .or_else(|| self.counts.get(singular?.as_str()))
            .or_else(|| self.counts.get(noun.strip_suffix("es")?))?;
        Some(format!("{number} {chinese}"))
    }
}
