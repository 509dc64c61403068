//! Tokenizes SQL text as far as needed to tell code from quotes and comments.
//!
//! Bytes suffice: every significant mark is ASCII, and no byte of a UTF-8 sequence is.

use crate::domain::source::DialectName;

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SqlToken {
    /// White space or a comment.
    Blank,
    /// A string, a quoted name, a dollar quote, a `/*! */` hint: its content is not interpreted.
    Quoted,
    /// A word or a number.
    Word,
    /// One character of anything else.
    Mark,
}

/// Whether a byte may be part of a word; `$` may, so that `a$b$c` is not a dollar quote.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// The token that begins at `at`, which must be inside `text`, and its end.
pub(crate) fn token(text: &[u8], at: usize, dialect: DialectName) -> (SqlToken, usize) {
    let rest = &text[at..];
    let (kind, len) = match rest[0] {
        b if b.is_ascii_whitespace() => {
            (SqlToken::Blank, rest.iter().take_while(|b| b.is_ascii_whitespace()).count())
        }
        b'-' if is_dash_comment(rest, dialect) => (SqlToken::Blank, line_len(rest)),
        b'#' if dialect == DialectName::Mysql => (SqlToken::Blank, line_len(rest)),
        b'/' if rest.starts_with(b"/*") => block_comment(rest, dialect),
        b'\'' => {
            let after_e = at > 0 && matches!(text[at - 1], b'e' | b'E');
            let own_word = at < 2 || !is_word(text[at - 2]);
            let escapes = match dialect {
                DialectName::Mysql => true,
                DialectName::Postgres => after_e && own_word,
                DialectName::Sqlite => false,
            };
            (SqlToken::Quoted, quoted_len(rest, b'\'', escapes))
        }
        b'"' => (SqlToken::Quoted, quoted_len(rest, b'"', dialect == DialectName::Mysql)),
        b'`' if dialect != DialectName::Postgres => {
            (SqlToken::Quoted, quoted_len(rest, b'`', false))
        }
        b'[' if dialect == DialectName::Sqlite => (
            SqlToken::Quoted,
            rest.iter().position(|b| *b == b']').map_or(rest.len(), |end| end + 1),
        ),
        b'$' if dialect == DialectName::Postgres => dollar(rest),
        b if is_word(b) => (SqlToken::Word, rest.iter().take_while(|b| is_word(**b)).count()),
        _ => (SqlToken::Mark, 1),
    };
    (kind, at + len)
}

/// MySQL requires white space after `--`, so that `5--1` is arithmetic there.
fn is_dash_comment(rest: &[u8], dialect: DialectName) -> bool {
    rest.starts_with(b"--")
        && (dialect != DialectName::Mysql
            || rest.get(2).is_none_or(|b| b.is_ascii_whitespace() || b.is_ascii_control()))
}

fn line_len(rest: &[u8]) -> usize {
    rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
}

/// PostgreSQL's comments nest; MySQL executes the content of `/*! */`, so that is code.
fn block_comment(rest: &[u8], dialect: DialectName) -> (SqlToken, usize) {
    let hint =
        dialect == DialectName::Mysql && (rest.starts_with(b"/*!") || rest.starts_with(b"/*M!"));
    let kind = if hint { SqlToken::Quoted } else { SqlToken::Blank };
    let (mut depth, mut at) = (1_u32, 2);
    while at < rest.len() {
        match rest.get(at..at + 2) {
            Some(b"*/") if depth == 1 => return (kind, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            Some(b"/*") if dialect == DialectName::Postgres => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
    }
    (kind, rest.len())
}

/// Length of a quoted piece that begins at `rest[0]`; an unterminated one extends to the end.
fn quoted_len(rest: &[u8], quote: u8, backslash: bool) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if backslash => at += 2,
            b if b == quote && rest.get(at + 1) == Some(&quote) => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `$$…$$` or `$tag$…$tag$`; a lone `$` (as in `$1`) is a mark.
fn dollar(rest: &[u8]) -> (SqlToken, usize) {
    let name = rest[1..].iter().take_while(|b| is_word(**b) && **b != b'$').count();
    let opens = rest.get(name + 1) == Some(&b'$') && !rest[1].is_ascii_digit();
    if !opens {
        return (SqlToken::Mark, 1);
    }
    let tag = &rest[..name + 2];
    let body = &rest[tag.len()..];
    let end = body.windows(tag.len()).position(|window| window == tag);
    (SqlToken::Quoted, end.map_or(rest.len(), |end| tag.len() + end + tag.len()))
}
