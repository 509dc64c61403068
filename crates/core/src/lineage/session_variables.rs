//! Finds session variables (MySQL's `@x`) that one procedure sets and another reads: jobs have separate sessions, so
//! the values are lost.

use crate::domain::source::DialectName;
use crate::lineage::catalogue::{BodyText, Catalogue};
use crate::lineage::words::{TokenSlice, tokenize};
use sqlparser::tokenizer::Token;
use std::collections::BTreeSet;

/// The session variables in some texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionVariables {
    /// Variables that are set.
    pub(super) set: BTreeSet<String>,
    /// All variables that occur.
    mentioned: BTreeSet<String>,
}

impl SessionVariables {
    /// The variables in the bodies of routines, given by full names.
    pub(super) fn of_bodies(bodies: &BTreeSet<String>, catalogue: &Catalogue) -> Self {
        let mut found = Self::default();
        if catalogue.dialect != DialectName::Mysql {
            return found;
        }
        for routine in catalogue.routines().filter(|one| bodies.contains(&one.name.to_string())) {
            if let BodyText::Text(text) = &routine.body {
                found.add_text(text);
            }
        }
        found
    }

    /// Adds the variables of a MySQL text.
    pub(super) fn add_text(&mut self, text: &str) {
        let Ok(tokens) = tokenize(text, DialectName::Mysql, 1) else { return };
        let words = TokenSlice(&tokens);
        let mut is_into = false;
        for at in 0..tokens.len() {
            let Some(word) = words.word_at(at) else {
                is_into &= words.is_token(at, &Token::Comma);
                continue;
            };
            if word.eq_ignore_ascii_case("INTO") {
                is_into = true;
                continue;
            }
            if !word.starts_with('@') || word.starts_with("@@") {
                is_into &= word.starts_with('@');
                continue;
            }
            let name = word.to_lowercase();
            let is_set = words.is_token(at + 1, &Token::Assignment)
                || words.is_token(at + 1, &Token::Eq)
                    && at > 0
                    && (words.is_word(at - 1, "SET") || words.is_token(at - 1, &Token::Comma));
            if is_set || is_into {
                self.set.insert(name.clone());
            }
            self.mentioned.insert(name);
        }
    }

    /// Variables that are read without being set.
    pub(super) fn taken(&self) -> impl Iterator<Item = &String> {
        self.mentioned.difference(&self.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_told_from_what_is_only_read() {
        let mut found = SessionVariables::default();
        found.add_text(
            "BEGIN SET @a = 1, @b = @c; SELECT x, y INTO @d, @E FROM t WHERE z = @f; SET @@sql_mode = ''; \
             PREPARE s FROM @a; END",
        );
        let set: Vec<&str> = found.set.iter().map(String::as_str).collect();
        assert_eq!(set, ["@a", "@b", "@d", "@e"]);
        assert_eq!(found.taken().collect::<Vec<_>>(), ["@c", "@f"]);
    }
}
