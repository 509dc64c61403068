//! Measures the nesting depth of a statement before parsing it: its tree is walked by recursion,
//! and a thread's stack is small.

use crate::lineage::words::TokenSlice;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Deepest nesting of operators and brackets that the parser is given: its tree is walked by recursion.
const NESTING_MAX: usize = 150;
/// Deepest nesting of brackets. The parser needs up to 100 KB of stack for a bracket in FROM (debug build), and a
/// thread has 2 MB; brackets that hold a query or another bracket count as `BRACKET_COST`, others as one.
const BRACKETS_MAX: usize = 30;
/// Depth counted for a bracket that contains a query, or precedes another bracket.
const BRACKET_COST: usize = 3;

/// Whether the parser's tree stays shallow: an estimate from brackets and operators.
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

/// What is between an open bracket and its end.
#[derive(Clone, Copy, Default)]
struct NestingLevel {
    /// What the bracket itself costs.
    cost: usize,
    /// Operators since the last comma.
    operators: usize,
    /// The deepest part so far.
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
