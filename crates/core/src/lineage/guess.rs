//! Guesses accesses from the literals of a body with dynamic SQL: tables that it may touch, never a complete list.

use crate::domain::source::DialectName;
use crate::lineage::access::Access;
use crate::lineage::fallback::{read_by_words, read_definition};
use crate::lineage::words::{TokenSlice, name_of, tokenize};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Maximum number of guesses.
const GUESSES_MAX: usize = 1_000;

/// The accesses in those literals of a body that look like SQL.
pub(super) fn guess_from_literals(body: &[TokenWithSpan], dialect: DialectName) -> Vec<Access> {
    let mut found: Vec<Access> = Vec::new();
    for (at, one) in body.iter().enumerate() {
        let text = match &one.token {
            Token::SingleQuotedString(text)
            | Token::DoubleQuotedString(text)
            | Token::EscapedStringLiteral(text) => text,
            Token::DollarQuotedString(text) => &text.value,
            _ => continue,
        };
        let line = u32::try_from(one.span.start.line).unwrap_or(1);
        let Ok(tokens) = tokenize(text, dialect, line) else { continue };
        let words = TokenSlice(&tokens);
        let verbs = [
            "SELECT", "INSERT", "UPDATE", "DELETE", "FROM", "JOIN", "INTO", "TRUNCATE", "DROP",
            "CREATE", "ALTER", "REPLACE", "MERGE", "WITH", "CALL", "RENAME",
        ];
        if tokens.len() < 2 || !words.is_one_of(0, &verbs) {
            continue;
        }
        let goes_on = matches!(
            body.get(at + 1).map(|next| &next.token),
            Some(Token::StringConcat | Token::Comma)
        );
        let is_cut = goes_on && !text.ends_with(char::is_whitespace);
        let mut accesses = read_by_words(&tokens, dialect).accesses;
        accesses.extend(read_definition(&tokens, dialect).0.accesses);
        let last = tokens.last().and_then(|token| name_of(&token.token, dialect));
        accesses.retain(|access| !(is_cut && last.as_ref() == Some(&access.table.name)));
        for access in accesses {
            let is_known = |one: &Access| one.table == access.table && one.mode == access.mode;
            if found.len() < GUESSES_MAX && !found.iter().any(is_known) {
                found.push(access);
            }
        }
    }
    found
}
