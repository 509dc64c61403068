//! Keys of source formats. Every key of a file is either read by the importer or reported as not
//! imported; unknown keys are reported as well.

use crate::definition::{NodeValue, SourceNode};
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::tree::{entries, origin};

/// Treatment of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// The importer reads it, and reports itself what it cannot import.
    Read,
    /// It has no equivalent: a note names every value except these defaults of the other system.
    Noted { harmless: &'static [&'static str], hint: Hint },
    /// It describes a row or a drawing of the other system; one note per file names all such keys.
    Record,
}

/// What to do about a key, in both languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) en: &'static str,
    pub(crate) zh: &'static str,
}

/// A key of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownKey {
    pub(crate) name: &'static str,
    pub(crate) rule: KeyRule,
}

pub(crate) const fn read_key(name: &'static str) -> KnownKey {
    KnownKey { name, rule: KeyRule::Read }
}

pub(crate) const fn record(name: &'static str) -> KnownKey {
    KnownKey { name, rule: KeyRule::Record }
}

pub(crate) const fn noted(
    name: &'static str,
    harmless: &'static [&'static str],
    hint: Hint,
) -> KnownKey {
    KnownKey { name, rule: KeyRule::Noted { harmless, hint } }
}

pub(crate) const fn hint(en: &'static str, zh: &'static str) -> Hint {
    Hint { en, zh }
}

/// Maximum length of a value in a note.
const LONGEST_VALUE: usize = 60;

/// Checks the keys of a map against tables; `about` is the job, chain or workflow.
pub(crate) fn check_keys(
    node: &SourceNode,
    tables: &[&[KnownKey]],
    about: &str,
    draft: &mut Draft,
) {
    for (key, value) in entries(node) {
        if is_empty(value) {
            // Nothing is lost.
            continue;
        }
        check_key(key, value, tables, about, draft);
    }
}

fn check_key(
    key: &str,
    value: &SourceNode,
    tables: &[&[KnownKey]],
    about: &str,
    draft: &mut Draft,
) {
    let at = origin(value);
    let known = tables.iter().flat_map(|table| table.iter()).find(|known| known.name == key);
    match known.map(|known| known.rule) {
        Some(KeyRule::Read) => {}
        Some(KeyRule::Record) => draft.note_record_key(&at.file, key),
        Some(KeyRule::Noted { harmless, hint }) => {
            let text = shown(value);
            if !harmless.contains(&text.as_str()) {
                draft.note_key(KeyNote { at: &at, about, key, value: Some(&text) }, hint);
            }
        }
        None => draft.note_unknown_key(&at, about, key),
    }
}

/// A key to report.
pub(crate) struct KeyNote<'a> {
    pub(crate) at: &'a ImportOrigin,
    pub(crate) about: &'a str,
    pub(crate) key: &'a str,
    /// Its value, if it may be shown.
    pub(crate) value: Option<&'a str>,
}

impl Draft {
    /// Reports a known key without an equivalent.
    pub(crate) fn note_key(&mut self, note: KeyNote<'_>, hint: Hint) {
        let KeyNote { at, about, key, value } = note;
        let value: String = value.unwrap_or_default().chars().take(LONGEST_VALUE).collect();
        let said = match value.as_str() {
            "" => BilingualSentence::new(format!("{key} is left out"), format!("{key} 未迁移")),
            value => BilingualSentence::new(
                format!("{key}: {value} is left out"),
                format!("{key}:{value} 未迁移"),
            ),
        };
        self.note(Level::LeftOut, at, about, said, (hint.en, hint.zh));
    }

    /// Reports an unknown key. Its value is not shown, because it may be a password.
    pub(crate) fn note_unknown_key(&mut self, at: &ImportOrigin, about: &str, key: &str) {
        let key: String = key.chars().take(LONGEST_VALUE).collect();
        let said = (
            format!("key {key:?} is left out: it is none that is known here"),
            format!("键 {key:?} 未迁移:无法识别"),
        );
        let cure = (
            "see what it does there, and write it by hand if it is needed",
            "请确认其作用,需要时手工补充",
        );
        self.note(Level::LeftOut, at, about, said, cure);
    }
}

/// Whether a value is empty: no text, no item, or only empty items.
fn is_empty(node: &SourceNode) -> bool {
    match &node.value {
        NodeValue::Null => true,
        NodeValue::Text(text) => matches!(text.trim(), "" | "null" | "{}" | "[]"),
        NodeValue::List(items) => items.iter().all(is_empty),
        NodeValue::Map(entries) => entries.iter().all(|(_, value)| is_empty(value)),
    }
}

/// A value on one line.
fn shown(node: &SourceNode) -> String {
    match &node.value {
        NodeValue::Null => String::new(),
        NodeValue::Text(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        NodeValue::List(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        NodeValue::Map(entries) => {
            let all = entries.iter().map(|(key, value)| format!("{}: {}", key.value, shown(value)));
            format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
        }
    }
}
