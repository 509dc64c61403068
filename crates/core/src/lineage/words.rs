//! Tokenizes a text without blanks and comments, and provides the predicates that the splitter needs.

use crate::domain::source::DialectName;
use sqlparser::dialect::{Dialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Word};

/// Maximum length of a text, in bytes.
pub(super) const TEXT_MAX: usize = 1 << 20;

/// The parser's dialect.
pub(super) fn parser_dialect(dialect: DialectName) -> &'static dyn Dialect {
    match dialect {
        DialectName::Mysql => &MySqlDialect {},
        DialectName::Postgres => &PostgreSqlDialect {},
        DialectName::Sqlite => &SQLiteDialect {},
    }
}

/// Why a text cannot be tokenized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoTokens {
    pub(super) line: u32,
    pub(super) why: String,
}

/// Tokenizes a text, or returns the error with its line. Lines are counted from `first_line`.
pub(super) fn tokenize(
    text: &str,
    dialect: DialectName,
    first_line: u32,
) -> Result<Vec<TokenWithSpan>, NoTokens> {
    if text.len() > TEXT_MAX {
        let why = format!("{} bytes are too long to be read; the limit is {TEXT_MAX}", text.len());
        return Err(NoTokens { line: first_line, why });
    }
    let mut tokens = Vec::new();
    let mut tokenizer = Tokenizer::new(parser_dialect(dialect), text);
    let ended = tokenizer.tokenize_with_location_into_buf(&mut tokens);
    let offset = u64::from(first_line.saturating_sub(1));
    if let Err(error) = ended {
        let line = u32::try_from(error.location.line + offset).unwrap_or(u32::MAX);
        return Err(NoTokens { line, why: error.message });
    }
    tokens.retain(|one| !matches!(one.token, Token::Whitespace(_) | Token::EOF));
    if offset > 0 {
        for one in &mut tokens {
            one.span.start.line += offset;
            one.span.end.line += offset;
        }
    }
    Ok(tokens)
}

/// An unquoted word.
pub(super) fn bare_word(token: &Token) -> Option<&str> {
    match token {
        Token::Word(Word { value, quote_style: None, .. }) => Some(value),
        _ => None,
    }
}

/// A name: a quoted or unquoted word.
pub(super) fn name_of(token: &Token, dialect: DialectName) -> Option<String> {
    match token {
        Token::Word(word) => Some(fold_name(&word.value, word.quote_style, dialect)),
        _ => None,
    }
}

/// A name as the server stores it: PostgreSQL folds unquoted names.
pub(super) fn fold_name(value: &str, quote: Option<char>, dialect: DialectName) -> String {
    match (dialect, quote) {
        (DialectName::Postgres, None) => value.to_lowercase(),
        (DialectName::Postgres, Some(_)) | (DialectName::Mysql | DialectName::Sqlite, _) => {
            value.to_owned()
        }
    }
}

/// The line of a span, counted from 1.
pub(super) fn line_of(span: Span) -> u32 {
    u32::try_from(span.start.line).unwrap_or(u32::MAX)
}

/// A slice of tokens with predicates.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenSlice<'t>(pub(super) &'t [TokenWithSpan]);

impl<'t> TokenSlice<'t> {
    /// Whether the token at this index is the unquoted word.
    pub(super) fn is_word(self, at: usize, word: &str) -> bool {
        self.word_at(at).is_some_and(|found| found.eq_ignore_ascii_case(word))
    }

    /// Whether the token at this index is one of these unquoted words.
    pub(super) fn is_one_of(self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(at, word))
    }

    /// The unquoted word at this index.
    pub(super) fn word_at(self, at: usize) -> Option<&'t str> {
        bare_word(&self.0.get(at)?.token)
    }

    /// Whether the token at this index equals `token`.
    pub(super) fn is_token(self, at: usize, token: &Token) -> bool {
        self.0.get(at).is_some_and(|found| found.token == *token)
    }

    /// The line of the token at this index; beyond the end, of the last one.
    pub(super) fn line_at(self, at: usize) -> u32 {
        self.0.get(at).or(self.0.last()).map_or(1, |token| line_of(token.span))
    }

    /// Number of tokens.
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    /// The first index from `from` on, outside of parentheses and CASE … END, where `stop` holds; else the end.
    pub(super) fn find_from(self, from: usize, stop: impl Fn(Self, usize) -> bool) -> usize {
        let (mut depth, mut cases) = (0_usize, 0_usize);
        for at in from..self.len() {
            if depth == 0 && cases == 0 && stop(self, at) {
                return at;
            }
            match &self.0[at].token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                _ if self.is_word(at, "CASE") => cases += 1,
                _ if self.is_word(at, "END") => cases = cases.saturating_sub(1),
                _ => {}
            }
        }
        self.len()
    }

    /// The semicolon that ends the statement at `from`, or the end.
    pub(super) fn find_end(self, from: usize) -> usize {
        (from..self.len()).find(|at| self.is_token(*at, &Token::SemiColon)).unwrap_or(self.len())
    }

    /// The index after the parenthesis that closes the one at `from`.
    pub(super) fn after_brackets(self, from: usize) -> usize {
        let mut depth = 0_usize;
        for at in from..self.len() {
            match &self.0[at].token {
                Token::LParen => depth += 1,
                Token::RParen => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
        self.len()
    }
}
