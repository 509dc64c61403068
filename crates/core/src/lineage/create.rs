//! Parses `CREATE PROCEDURE`, `CREATE FUNCTION` and `CREATE TRIGGER`. Output: the name, the parameters and the text of
//! the body.

use crate::domain::source::DialectName;
use crate::lineage::access::{CatalogueParam, ObjectName};
use crate::lineage::catalogue::{BodyText, CatalogueRoutine, RoutineLanguage};
use crate::lineage::fallback::read_name;
use crate::lineage::words::{TokenSlice, line_of, name_of, tokenize};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// A routine or trigger in a CREATE statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedRoutine {
    /// The routine with its parameters and body; a trigger has no parameters.
    pub routine: CatalogueRoutine,
    /// The table of a trigger.
    pub trigger_table: Option<ObjectName>,
    /// Line of the statement on which the body begins, counted from 1.
    pub body_line: u32,
}

/// Keywords that can begin the body of a MySQL routine.
const BODY_STARTS: [&str; 25] = [
    "BEGIN", "RETURN", "SELECT", "INSERT", "UPDATE", "DELETE", "CALL", "IF", "CASE", "WHILE",
    "REPEAT", "LOOP", "WITH", "TRUNCATE", "REPLACE", "SIGNAL", "EXECUTE", "PREPARE", "DROP",
    "CREATE", "ALTER", "RENAME", "DO", "LOAD", "GET",
];

/// Parses a statement; `None` if it creates no routine or trigger, or cannot be parsed.
pub fn parse_routine(text: &str, dialect: DialectName) -> Option<CreatedRoutine> {
    let tokens = tokenize(text, dialect, 1).ok()?;
    let words = TokenSlice(&tokens);
    if !words.is_word(0, "CREATE") {
        return None;
    }
    let kinds = ["PROCEDURE", "FUNCTION", "TRIGGER"];
    let kind = (1..tokens.len().min(16)).find(|at| words.is_one_of(*at, &kinds))?;
    let mut at = kind + 1;
    while words.is_one_of(at, &["IF", "NOT", "EXISTS"]) {
        at += 1;
    }
    let (name, after) = read_name(&tokens, at, dialect)?;
    if words.is_word(kind, "TRIGGER") {
        return parse_trigger(text, &tokens, name, after, dialect);
    }
    let close = words.after_brackets(after);
    let params = read_params(&tokens[after..close], words.is_word(kind, "FUNCTION"), dialect);
    let (language, body, body_line) = match dialect {
        DialectName::Postgres => postgres_body(text, &tokens, close)?,
        DialectName::Mysql | DialectName::Sqlite => {
            let start = mysql_body(words, close)?;
            let from = byte_of(text, tokens[start].span.start)?;
            let line = line_of(tokens[start].span);
            (RoutineLanguage::Procedural, text[from..].to_owned(), line)
        }
    };
    let body = BodyText::Text(body);
    let is_function = words.is_word(kind, "FUNCTION");
    let routine = CatalogueRoutine { name, is_function, params, language, body, search_path: None };
    Some(CreatedRoutine { routine, trigger_table: None, body_line })
}

fn parse_trigger(
    text: &str,
    tokens: &[TokenWithSpan],
    name: ObjectName,
    after: usize,
    dialect: DialectName,
) -> Option<CreatedRoutine> {
    let words = TokenSlice(tokens);
    let on = words.find_from(after, |w, i| w.is_word(i, "ON"));
    let (table, after_table) = read_name(tokens, on + 1, dialect)?;
    let start = (after_table..tokens.len()).find(|at| {
        let is_set = words.is_word(*at, "SET") && dialect == DialectName::Mysql;
        words.is_one_of(*at, &BODY_STARTS) || is_set
    })?;
    let from = byte_of(text, tokens[start].span.start)?;
    let routine = CatalogueRoutine {
        name,
        is_function: false,
        params: Vec::new(),
        language: RoutineLanguage::Procedural,
        body: BodyText::Text(text[from..].to_owned()),
        search_path: None,
    };
    let body_line = line_of(tokens[start].span);
    Some(CreatedRoutine { routine, trigger_table: Some(table), body_line })
}

/// The parameters in parentheses.
fn read_params(
    tokens: &[TokenWithSpan],
    is_function: bool,
    dialect: DialectName,
) -> Vec<CatalogueParam> {
    let words = TokenSlice(tokens);
    let end = tokens.len().saturating_sub(1);
    let mut params = Vec::new();
    let mut from = 1;
    while from < end {
        let to = words.find_from(from, |w, i| i >= end || w.is_token(i, &Token::Comma)).min(end);
        let mut at = from;
        let (mut is_input, mut is_output) = (true, false);
        loop {
            if words.is_word(at, "OUT") {
                (is_input, is_output) =
                    (is_input && at > from && words.is_word(at - 1, "IN"), true);
            } else if words.is_word(at, "INOUT") {
                is_output = true;
            } else if !words.is_one_of(at, &["IN", "VARIADIC"]) {
                break;
            }
            at += 1;
        }
        // A type without a name: `f(integer)`.
        let has_name = at + 1 < to && !words.is_token(at + 1, &Token::LParen);
        let name = tokens.get(at).and_then(|token| name_of(&token.token, dialect));
        if is_input || !is_function || dialect != DialectName::Postgres {
            let has_default = (at..to).any(|at| {
                words.is_word(at, "DEFAULT")
                    || words.is_token(at, &Token::Eq)
                    || words.is_token(at, &Token::Assignment)
            });
            params.push(CatalogueParam {
                name: name.filter(|_| has_name),
                is_input,
                is_output,
                type_name: String::new(),
                has_default,
            });
        }
        from = to + 1;
    }
    params
}

/// The index at which the body of a MySQL routine begins.
fn mysql_body(words: TokenSlice<'_>, from: usize) -> Option<usize> {
    (from..words.len()).find(|at| {
        let is_label = words.word_at(*at).is_some() && words.is_token(at + 1, &Token::Colon);
        let is_set = words.is_word(*at, "SET") && !words.is_word(at - 1, "CHARACTER");
        is_label || is_set || words.is_one_of(*at, &BODY_STARTS)
    })
}

/// The language and the body of a PostgreSQL routine.
fn postgres_body(
    text: &str,
    tokens: &[TokenWithSpan],
    from: usize,
) -> Option<(RoutineLanguage, String, u32)> {
    let words = TokenSlice(tokens);
    let language = (from..tokens.len()).find(|at| words.is_word(*at, "LANGUAGE"));
    let language = language.and_then(|at| match &tokens.get(at + 1)?.token {
        Token::Word(word) => Some(word.value.to_lowercase()),
        Token::SingleQuotedString(text) => Some(text.to_lowercase()),
        _ => None,
    });
    let language = language_of(language.as_deref().unwrap_or("sql"));
    for at in from..tokens.len() {
        let line = line_of(tokens[at].span);
        if words.is_word(at, "AS") {
            match &tokens.get(at + 1)?.token {
                Token::DollarQuotedString(body) => {
                    return Some((language, body.value.clone(), line));
                }
                Token::SingleQuotedString(body) | Token::EscapedStringLiteral(body) => {
                    return Some((language, body.clone(), line));
                }
                _ => {}
            }
        } else if words.is_word(at, "RETURN") || words.is_word(at, "BEGIN") {
            let start = byte_of(text, tokens[at].span.start)?;
            return Some((language, text[start..].to_owned(), line));
        }
    }
    None
}

/// How a PostgreSQL language is analysed.
pub fn language_of(name: &str) -> RoutineLanguage {
    match name {
        "plpgsql" => RoutineLanguage::Procedural,
        "sql" => RoutineLanguage::Sql,
        "c" | "internal" => RoutineLanguage::Native,
        other => RoutineLanguage::Other(other.to_owned()),
    }
}

/// The byte offset of a line and column.
pub(super) fn byte_of(text: &str, place: Location) -> Option<usize> {
    let mut start = 0;
    for _ in 1..place.line {
        start += text[start..].find('\n')? + 1;
    }
    let column = usize::try_from(place.column).ok()?.saturating_sub(1);
    text[start..].char_indices().nth(column).map(|(at, _)| start + at)
}
