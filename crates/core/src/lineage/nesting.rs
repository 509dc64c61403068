//! Measures the nesting depth of a statement before parsing it: the parser's tree is traversed recursively, and a
//! thread's stack is small.

use crate::lineage::words::TokenSlice;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Maximum nesting of operators and parentheses for the parser: its tree is traversed recursively.
const NESTING_MAX: usize = 150;
/// Maximum nesting of parentheses. The parser needs up to 100 KB of stack for a parenthesis in FROM (debug build), and
/// a thread has 2 MB. A parenthesis that contains a query or another parenthesis counts as `BRACKET_COST`, any other as
/// one.
const BRACKETS_MAX: usize = 30;
/// Depth of a parenthesis that contains a query, or precedes another parenthesis.
const BRACKET_COST: usize = 3;

/// Whether the parser's tree stays shallow: an estimate from parentheses and operators.
pub(super) fn is_shallow(tokens: &[TokenWithSpan]) -> bool {
    let words = TokenSlice(tokens);
    let mut levels = vec![NestingLevel::default()];
    for (at, one) in tokens.iter().enumerate() {
        match &one.token {
            Token::LParen | Token::LBracket => {
                let holds_query = words.is_one_of(at + 1, &["SELECT", "WITH"])
                    || words.is_token(at + 1, &Token::LParen);
                let cost = if holds_query { BRACKET_COST } else { 1 };
                levels.push(NestingLevel { cost, ..NestingLevel::default() });
            }
            Token::RParen | Token::RBracket if levels.len() > 1 => {
                let inner = levels.pop().unwrap_or_default();
                if let Some(outer) = levels.last_mut() {
                    outer.deepest = outer.deepest.max(inner.operators + inner.deepest + 1);
                }
            }
            token => {
                if let Some(level) = levels.last_mut() {
                    level.count(token);
                }
            }
        }
        let brackets: usize = levels.iter().map(|level| level.cost).sum();
        let depth: usize = levels.iter().map(|level| level.operators + level.deepest).sum();
        if brackets > BRACKETS_MAX || depth > NESTING_MAX {
            return false;
        }
    }
    true
}

/// The content of an open parenthesis.
#[derive(Clone, Copy, Default)]
struct NestingLevel {
    /// The depth of the parenthesis itself.
    cost: usize,
    /// Number of operators since the last comma.
    operators: usize,
    /// The maximum depth so far.
    deepest: usize,
}

impl NestingLevel {
    fn count(&mut self, token: &Token) {
        let deepens = ["AND", "OR", "UNION", "EXCEPT", "INTERSECT", "CASE", "NOT", "LIKE"];
        match token {
            Token::Comma => self.operators = 0,
            Token::Word(word) => {
                let is_deep = deepens.iter().any(|deep| word.value.eq_ignore_ascii_case(deep));
                self.operators += usize::from(is_deep);
            }
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Period => {}
            _ => self.operators += 1,
        }
    }
}
