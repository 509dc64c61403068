//! Secret texts, and the mask that removes them from everything displayed or stored.

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Replacement text of a secret.
pub const MASK: &str = "***";
/// Minimum length of a secret in characters: a shorter one would be masked inside ordinary words,
/// or not at all.
pub const SHORTEST: usize = 4;
/// Prefix by which a batch parameter references a secret instead of containing it: `--param
/// pw=@secret:LEDGER`.
pub const BY_NAME: &str = "@secret:";

/// Whether any parameter of a request references a secret.
pub fn name_a_secret(params: &std::collections::BTreeMap<String, String>) -> bool {
    params.values().any(|value| value.starts_with(BY_NAME))
}

/// A secret that can be replaced while the program runs; clones share the value.
#[derive(Clone, Debug)]
pub struct SharedSecret(Arc<RwLock<SecretString>>);

impl SharedSecret {
    /// A shared secret with this value.
    pub fn new(value: SecretString) -> Self {
        Self(Arc::new(RwLock::new(value)))
    }

    /// The current value.
    pub fn get(&self) -> SecretString {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the value; returns whether it changed.
    pub fn replace(&self, value: SecretString) -> bool {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = held.expose_secret() != value.expose_secret();
        *held = value;
        is_new
    }

    /// The shared value itself, for libraries that do not know this type.
    pub fn shared_value(&self) -> Arc<RwLock<SecretString>> {
        Arc::clone(&self.0)
    }
}

impl From<SecretString> for SharedSecret {
    fn from(value: SecretString) -> Self {
        Self::new(value)
    }
}

impl From<&str> for SharedSecret {
    fn from(value: &str) -> Self {
        Self::new(value.into())
    }
}

/// A text that knows whether it may be shown. The raw text is available only through `expose`.
#[derive(Clone)]
pub enum MaskedValue {
    /// It may be shown.
    Open(String),
    /// It is never shown.
    Secret(SecretString),
}

impl MaskedValue {
    /// The raw text.
    pub fn expose(&self) -> &str {
        match self {
            Self::Open(text) => text,
            Self::Secret(text) => text.expose_secret(),
        }
    }

    /// The text, or `***` for a secret.
    pub fn shown(&self) -> &str {
        match self {
            Self::Open(text) => text,
            Self::Secret(_) => MASK,
        }
    }

    /// The same text as a secret.
    pub fn hidden(self) -> Self {
        match self {
            Self::Open(text) => Self::Secret(SecretString::from(text)),
            Self::Secret(text) => Self::Secret(text),
        }
    }

    /// Whether it is a secret.
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Secret(_))
    }
}

impl From<&str> for MaskedValue {
    fn from(text: &str) -> Self {
        Self::Open(text.to_owned())
    }
}

impl fmt::Debug for MaskedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

impl PartialEq for MaskedValue {
    fn eq(&self, other: &Self) -> bool {
        self.is_secret() == other.is_secret() && self.expose() == other.expose()
    }
}

impl Eq for MaskedValue {}

impl Serialize for MaskedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

/// The secrets to remove from everything that one attempt prints, raises or returns.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    /// Longest first, so that a secret contained in another leaves nothing of the longer one.
    texts: Vec<SecretString>,
}

/// Number of consecutive characters of a secret that count as a part of it.
const RUN: usize = 12;

/// Removes beginnings of a short secret at the end of the text or before an ellipsis.
fn without_beginning(text: &str, secret: &str, starts: &[usize]) -> String {
    let mut rest = text.to_owned();
    for at in starts.iter().skip(SHORTEST).rev() {
        let head = &secret[..*at];
        for mark in ["…", " …", "..."] {
            rest = rest.replace(&format!("{head}{mark}"), &format!("{MASK}{mark}"));
        }
        if rest.ends_with(head) {
            rest.truncate(rest.len() - head.len());
            rest.push_str(MASK);
        }
    }
    rest
}

impl Mask {
    /// A mask of these secrets: each verbatim, line by line (a log arrives in lines), and in its
    /// JSON and URL encodings.
    pub fn from_secrets<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for secret in secrets {
            let text = secret.expose_secret();
            texts.push(text.to_owned());
            texts.extend(text.lines().map(|line| line.trim().to_owned()));
            let json = serde_json::to_string(text).unwrap_or_default();
            texts.push(json.trim_matches('"').to_owned());
            let plus: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
            texts.push(plus.replace('+', "%20"));
            texts.push(plus);
        }
        texts.retain(|text| text.chars().count() >= SHORTEST);
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Self { texts: texts.into_iter().map(SecretString::from).collect() }
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// `text` with the secrets replaced.
    pub fn mask_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut masked = Cow::Borrowed(text);
        for secret in &self.texts {
            if masked.contains(secret.expose_secret()) {
                masked = Cow::Owned(masked.replace(secret.expose_secret(), MASK));
            }
        }
        masked
    }

    /// Whether a value contains a secret, or twelve consecutive characters of one. Shorter
    /// beginnings are not searched for, unlike in `remnants`: values are never truncated, and a
    /// year would be taken for the beginning of `2024spring`.
    pub fn is_in(&self, value: &str) -> bool {
        self.texts.iter().map(SecretString::expose_secret).any(|secret| {
            let starts: Vec<usize> = secret.char_indices().map(|(at, _)| at).collect();
            let end = |at: usize| starts.get(at + RUN).copied().unwrap_or(secret.len());
            value.contains(secret)
                || (starts.len() > RUN
                    && (0..=starts.len() - RUN)
                        .any(|at| value.contains(&secret[starts[at]..end(at)])))
        })
    }

    /// `text` without the secrets and without the rest of a secret in a text that was truncated
    /// before: a database quotes 64 characters of a value, a server's answer is kept in part.
    /// Twelve consecutive characters of a secret count as a part of it; of a shorter secret, a
    /// beginning at the end of the text or before an ellipsis.
    pub fn remnants(&self, text: &str) -> String {
        let mut rest = self.mask_text(text).into_owned();
        for secret in &self.texts {
            let secret = secret.expose_secret();
            let starts: Vec<usize> = secret.char_indices().map(|(at, _)| at).collect();
            for (i, at) in starts.iter().enumerate() {
                let Some(end) = starts
                    .get(i + RUN)
                    .copied()
                    .or_else(|| (i + RUN == starts.len()).then_some(secret.len()))
                else {
                    break;
                };
                while let Some(found) = rest.find(&secret[*at..end]) {
                    let same = rest[found..].chars().zip(secret[*at..].chars());
                    let run: usize =
                        same.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
                    rest.replace_range(found..found + run, MASK);
                }
            }
            if starts.len() < RUN {
                rest = without_beginning(&rest, secret, &starts);
            }
        }
        rest
    }

    /// A piece of a line that was split for its length, without the secrets: also without the part
    /// of a secret that the split left in this piece.
    pub fn piece(&self, text: &str, cut: Cut) -> String {
        let mut rest = self.mask_text(text).into_owned();
        let (before, after) = match cut {
            Cut::Before => (true, false),
            Cut::After => (false, true),
            Cut::Both => (true, true),
        };
        let part = |long: &str, fits: &dyn Fn(&str) -> bool, from: SecretEnd| {
            let cuts = long.char_indices().map(|(at, _)| at).filter(|at| *at > 0);
            let parts = cuts.map(|at| match from {
                SecretEnd::Start => long[..at].to_owned(),
                SecretEnd::Finish => long[at..].to_owned(),
            });
            parts.filter(|p| p.chars().count() >= SHORTEST && fits(p)).max_by_key(String::len)
        };
        for secret in &self.texts {
            let secret = secret.expose_secret();
            let head = part(secret, &|p| before && rest.starts_with(p), SecretEnd::Finish);
            if let Some(head) = head {
                rest.replace_range(..head.len(), MASK);
            }
            let tail = part(secret, &|p| after && rest.ends_with(p), SecretEnd::Start);
            if let Some(tail) = tail {
                rest.truncate(rest.len() - tail.len());
                rest.push_str(MASK);
            }
        }
        rest
    }
}

/// Position of a piece in a split line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The split is before it: the last piece.
    Before,
    /// The split is after it: the first piece.
    After,
    /// Splits on both sides: a middle piece.
    Both,
}

/// Which end of a secret is searched for.
#[derive(Clone, Copy)]
enum SecretEnd {
    Start,
    Finish,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_secret_value_is_not_shown() {
        let secret = MaskedValue::from("hunter22").hidden();
        assert_eq!(format!("{secret:?}"), "\"***\"");
        assert_eq!(serde_json::to_string(&secret).expect("json"), "\"***\"");
        assert_eq!((secret.shown(), secret.expose()), ("***", "hunter22"));
        let open = MaskedValue::from("x");
        assert_eq!(format!("{open:?}"), "\"x\"");
        assert_ne!(open, MaskedValue::from("x").hidden());
        assert_eq!(secret.clone().hidden(), secret);
    }

    #[test]
    fn what_a_cut_left_of_a_secret_is_taken_out_too() {
        let long = "Sup3rSecret-abcdefghijklmnopqrstuvwxyz-0123456789-end";
        let mask = Mask::from_secrets(&[SecretString::from(long), SecretString::from("hunter22")]);
        for (text, masked) in [
            // A server's answer truncated to its first characters.
            (format!("HTTP 500: yyy{}", &long[..50]), "HTTP 500: yyy***".to_owned()),
            (
                format!("found '{} … [42 bytes more]'", &long[..30]),
                "found '*** … [42 bytes more]'".to_owned(),
            ),
            (
                format!("Duplicate entry '{}...'", &long[..30]),
                "Duplicate entry '***...'".to_owned(),
            ),
            (format!("line 1: ...{}", &long[20..40]), "line 1: ...***".to_owned()),
            (format!("{0} and {0}", &long[3..20]), "*** and ***".to_owned()),
            ("it ends in hunter".to_owned(), "it ends in ***".to_owned()),
            ("hunt… and hunter2...".to_owned(), "***… and ***...".to_owned()),
            // Too short to be distinguished from an ordinary word.
            ("a hunter; Sup3rSecre".to_owned(), "a hunter; Sup3rSecre".to_owned()),
        ] {
            assert_eq!(mask.remnants(&text), masked);
        }
    }

    #[test]
    fn secrets_are_taken_out_in_every_spelling() {
        let secrets =
            ["pa ss\"w/d", "pa ss", "BEGIN\nline-two\nEND", "abc"].map(SecretString::from);
        let mask = Mask::from_secrets(&secrets);
        for (text, masked) in [
            ("it is pa ss\"w/d.", "it is ***."),
            ("{\"x\":\"pa ss\\\"w/d\"}", "{\"x\":\"***\"}"),
            ("?x=pa+ss%22w%2Fd&y", "?x=***&y"),
            ("?x=pa%20ss%22w%2Fd", "?x=***"),
            ("only pa ss here", "only *** here"),
            ("a line: line-two", "a line: ***"),
            // Too short to be masked; such a secret is refused earlier.
            ("abc END", "abc END"),
            ("pa ss\"w/dpa ss", "******"),
        ] {
            assert_eq!(mask.mask_text(text), masked, "{text}");
        }
        assert!(Mask::from_secrets(&[]).is_empty() && !mask.is_empty());
        let mask = Mask::from_secrets(&[
            SecretString::from("2024spring"),
            SecretString::from("abcdefghijklmnop"),
        ]);
        for (value, is_in) in [
            ("2024", false),
            ("x 2024spring", true),
            ("abcdefghijk", false),
            ("defghijklmno", true),
            ("efghijklmnop", true),
            ("", false),
        ] {
            assert_eq!(mask.is_in(value), is_in, "{value}");
        }
        assert!(!format!("{mask:?}").contains("pa ss"));
    }

    #[test]
    fn a_secret_that_a_cut_goes_through_is_taken_out_on_both_sides() {
        let mask = Mask::from_secrets(&[SecretString::from("hunter22-é")]);
        for (text, cut, masked) in [
            ("x hunter", Cut::After, "x ***"),
            ("x hunt", Cut::After, "x ***"),
            ("er22-é y", Cut::Before, "*** y"),
            ("er22-é hunt", Cut::Both, "*** ***"),
            ("hunter22-é hunter", Cut::After, "*** ***"),
            // Three characters are no secret, and without a split at that side a part is only a
            // word.
            ("x hun", Cut::After, "x hun"),
            ("x hunter", Cut::Before, "x hunter"),
        ] {
            assert_eq!(mask.piece(text, cut), masked, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_secret_is_left(
            secret in "[a-z]{4,12}", before in "[A-Z ]{0,20}", after in "[A-Z ]{0,20}"
        ) {
            let mask = Mask::from_secrets(&[SecretString::from(secret.clone())]);
            let masked = mask.mask_text(&format!("{before}{secret}{after}")).into_owned();
            prop_assert_eq!(masked, format!("{before}***{after}"));
        }
    }
}
