//! A note of an import report: the place in the source, the outcome and a hint.

use crate::domain::text::lang::Lang;
use serde::Serialize;
use std::fmt;

/// The place of an item in the other system.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ImportOrigin {
    /// The file as the user gave it, or the table.
    pub file: String,
    /// The line, counted from 1, or the key of the row; 0 for the whole file.
    pub line: u64,
}

impl ImportOrigin {
    /// A line of a file; line 0 is the whole file.
    pub fn new(file: impl Into<String>, line: u64) -> Self {
        Self { file: file.into(), line }
    }
}

impl fmt::Display for ImportOrigin {
    /// `crontab:7`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 { write!(f, ":{}", self.line) } else { Ok(()) }
    }
}

/// Severity of a note; the most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It is not in the definition.
    LeftOut,
    /// It is imported, and a user has to complete or confirm it.
    Look,
    /// It is imported, and behaves slightly differently.
    Differs,
}

impl Level {
    /// Every level, most serious first.
    pub const ALL: [Self; 3] = [Self::LeftOut, Self::Look, Self::Differs];

    /// The display name.
    pub fn words(self, lang: Lang) -> &'static str {
        match self {
            Self::LeftOut => lang.select("left out", "未迁移"),
            Self::Look => lang.select("look at this", "需要确认"),
            Self::Differs => lang.select("carried over differently", "迁移后有差异"),
        }
    }
}

/// A sentence in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct BilingualSentence {
    /// In English.
    pub en: String,
    /// In Chinese.
    pub zh: String,
}

impl BilingualSentence {
    /// A sentence in both languages.
    pub fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }

    /// The sentence in a language.
    pub fn pick(&self, lang: Lang) -> &str {
        lang.select(&self.en, &self.zh)
    }
}

impl From<(&str, &str)> for BilingualSentence {
    fn from((en, zh): (&str, &str)) -> Self {
        Self::new(en, zh)
    }
}

impl From<(String, String)> for BilingualSentence {
    fn from((en, zh): (String, String)) -> Self {
        Self::new(en, zh)
    }
}

/// Something that differs from the other system, or is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Note {
    /// Severity.
    pub level: Level,
    /// Place in the source.
    pub origin: ImportOrigin,
    /// The code in the definition, or the name in the source.
    pub about: String,
    /// What happened, in a sentence.
    pub message: BilingualSentence,
    /// A hint; empty when there is nothing to do.
    pub fix: BilingualSentence,
}
