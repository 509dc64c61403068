//! The two languages of the user interface. Technical terms (states, column names) are the same in both.

use serde::{Deserialize, Serialize};

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Lang {
    /// Both languages.
    pub const ALL: [Self; 2] = [Self::En, Self::Zh];

    /// The language code.
    pub fn as_str(self) -> &'static str {
        self.select("en", "zh")
    }

    /// Parses a code or locale such as `zh`, `zh_CN.UTF-8` or `en`; `None` for other languages.
    pub fn from_code(code: &str) -> Option<Self> {
        match code.split(['_', '-', '.']).next() {
            Some("zh") => Some(Self::Zh),
            Some("en") => Some(Self::En),
            _ => None,
        }
    }

    /// Selects the text in this language.
    pub fn select<'a>(self, en: &'a str, zh: &'a str) -> &'a str {
        match self {
            Self::En => en,
            Self::Zh => zh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lang;

    #[test]
    fn locales() {
        assert_eq!(Lang::from_code("zh_CN.UTF-8"), Some(Lang::Zh));
        assert_eq!(Lang::from_code("zh-TW"), Some(Lang::Zh));
        assert_eq!(Lang::from_code("en"), Some(Lang::En));
        assert_eq!(Lang::from_code("C.UTF-8"), None);
    }
}
