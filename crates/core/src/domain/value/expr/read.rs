//! Parses a condition: tokens to a syntax tree.

use super::lex::{ExprKeyword, ExprToken, Lexer, PlacedToken};
use super::{DEPTH_MAX, ExprError, ExprNode, ExprOperand, LENGTH_MAX, OperandKind, Sense};

/// Parser over a list of tokens.
pub(super) struct ExprParser {
    tokens: Vec<PlacedToken>,
    at: usize,
    depth: usize,
}

impl ExprParser {
    pub(super) fn new(text: &str) -> Result<Self, ExprError> {
        let length = text.chars().take(LENGTH_MAX + 1).count();
        if length > LENGTH_MAX {
            let what = format!("a condition has at most {LENGTH_MAX} characters");
            return Err(ExprError::new(
                LENGTH_MAX + 1,
                what,
                "let the job hand out one value to look at",
            ));
        }
        Ok(Self { tokens: Lexer::tokens(text)?, at: 0, depth: 0 })
    }

    pub(super) fn whole(mut self) -> Result<ExprNode, ExprError> {
        if self.current().token == ExprToken::End {
            return self.fault(
                "the condition is empty".to_owned(),
                "write one, for example p_status == 0",
            );
        }
        let node = self.parse_or()?;
        match &self.current().token {
            ExprToken::End => Ok(node),
            ExprToken::Close => self.fault("')' without '('".to_owned(), "remove it, or open it"),
            ExprToken::Compare(_) => self.fault(
                format!("{} follows a whole condition", self.current().spelling),
                "join two comparisons with and (1 < x and x < 9), and keep values out of parentheses",
            ),
            ExprToken::Name(_) | ExprToken::Number(_) | ExprToken::Text(_) | ExprToken::Word(_) | ExprToken::Open
            | ExprToken::Comma => self.fault(
                format!("{} follows a whole condition", self.current().spelling),
                "put and or or between two conditions",
            ),
        }
    }

    /// The current token. The list ends with `End`, which is never consumed.
    fn current(&self) -> &PlacedToken {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn accept_token(&mut self, token: &ExprToken) -> bool {
        let there = self.current().token == *token;
        if there {
            self.at += 1;
        }
        there
    }

    fn accept_word(&mut self, word: ExprKeyword) -> bool {
        self.accept_token(&ExprToken::Word(word))
    }

    fn fault<T>(&self, what: String, cure: &str) -> Result<T, ExprError> {
        Err(ExprError::new(self.current().column, what, cure))
    }

    fn found(&self) -> String {
        match self.current().token {
            ExprToken::End => "the condition ends here".to_owned(),
            _ => format!("{} stands here", self.current().spelling),
        }
    }

    fn parse_or(&mut self) -> Result<ExprNode, ExprError> {
        let first = self.parse_and()?;
        let mut nodes = vec![first];
        while self.accept_word(ExprKeyword::Or) {
            nodes.push(self.parse_and()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { ExprNode::Any(nodes) })
    }

    fn parse_and(&mut self) -> Result<ExprNode, ExprError> {
        let first = self.negation()?;
        let mut nodes = vec![first];
        while self.accept_word(ExprKeyword::And) {
            nodes.push(self.negation()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { ExprNode::All(nodes) })
    }

    fn deeper(&mut self) -> Result<(), ExprError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self
                .fault(format!("more than {DEPTH_MAX} levels deep"), "take parentheses out");
        }
        Ok(())
    }

    fn negation(&mut self) -> Result<ExprNode, ExprError> {
        if !self.accept_word(ExprKeyword::Not) {
            return self.predicate();
        }
        self.deeper()?;
        let node = self.negation()?;
        self.depth -= 1;
        Ok(ExprNode::Not(Box::new(node)))
    }

    fn predicate(&mut self) -> Result<ExprNode, ExprError> {
        if self.accept_token(&ExprToken::Open) {
            self.deeper()?;
            let node = self.parse_or()?;
            self.depth -= 1;
            if !self.accept_token(&ExprToken::Close) {
                return self
                    .fault(format!("')' is missing, {}", self.found()), "close the parenthesis");
            }
            return Ok(node);
        }
        let operand = self.operand()?;
        if let ExprToken::Compare(comparison) = self.current().token {
            self.at += 1;
            let right = self.operand()?;
            refuse_null(&operand)?;
            refuse_null(&right)?;
            return Ok(ExprNode::Compare(operand, comparison, right));
        }
        if self.accept_word(ExprKeyword::Is) {
            let sense =
                if self.accept_word(ExprKeyword::Not) { Sense::Negated } else { Sense::Plain };
            return match self.accept_word(ExprKeyword::Null) {
                true => Ok(ExprNode::Null(operand, sense)),
                false => self.fault(
                    format!("is wants null, {}", self.found()),
                    "write is null or is not null, and == for values",
                ),
            };
        }
        let sense = if self.accept_word(ExprKeyword::Not) { Sense::Negated } else { Sense::Plain };
        if self.accept_word(ExprKeyword::In) {
            return Ok(ExprNode::In(operand, sense, self.parse_list()?));
        }
        if self.accept_word(ExprKeyword::Between) {
            return self.between(operand, sense);
        }
        if sense == Sense::Negated {
            return self.fault(
                format!("not wants in or between, {}", self.found()),
                "write not in (…), or not before the whole condition",
            );
        }
        match operand.kind {
            OperandKind::Name(_) | OperandKind::Bool(_) => Ok(ExprNode::Holds(operand)),
            OperandKind::Number(_) | OperandKind::Text(_) | OperandKind::Null => {
                Err(ExprError::new(
                    operand.column,
                    "a value alone is not a condition",
                    "compare it with something, for example == p_status",
                ))
            }
        }
    }

    fn between(&mut self, operand: ExprOperand, sense: Sense) -> Result<ExprNode, ExprError> {
        let low = self.operand()?;
        if !self.accept_word(ExprKeyword::And) {
            return self
                .fault(format!("between wants and, {}", self.found()), "write between 1 and 9");
        }
        let high = self.operand()?;
        for part in [&operand, &low, &high] {
            refuse_null(part)?;
        }
        Ok(ExprNode::Between(operand, sense, low, high))
    }

    fn parse_list(&mut self) -> Result<Vec<ExprOperand>, ExprError> {
        if !self.accept_token(&ExprToken::Open) {
            return self.fault(format!("in wants a list, {}", self.found()), "write in (1, 2, 3)");
        }
        let mut list = Vec::new();
        loop {
            let operand = self.operand()?;
            refuse_null(&operand)?;
            list.push(operand);
            if self.accept_token(&ExprToken::Close) {
                return Ok(list);
            }
            if !self.accept_token(&ExprToken::Comma) {
                return self
                    .fault(format!("the list has no end, {}", self.found()), "write in (1, 2, 3)");
            }
        }
    }

    fn operand(&mut self) -> Result<ExprOperand, ExprError> {
        let column = self.current().column;
        let kind = match &self.current().token {
            ExprToken::Name(name) => OperandKind::Name(name.clone()),
            ExprToken::Number(number) => OperandKind::Number(number.clone()),
            ExprToken::Text(text) => OperandKind::Text(text.clone()),
            ExprToken::Word(ExprKeyword::True) => OperandKind::Bool(true),
            ExprToken::Word(ExprKeyword::False) => OperandKind::Bool(false),
            ExprToken::Word(ExprKeyword::Null) => OperandKind::Null,
            ExprToken::Open => {
                return self.fault(
                    "'(' stands where a value must be".to_owned(),
                    "parentheses go round conditions, not values",
                );
            }
            ExprToken::Word(_)
            | ExprToken::Compare(_)
            | ExprToken::Close
            | ExprToken::Comma
            | ExprToken::End => {
                return self.fault(
                    format!("a value is missing, {}", self.found()),
                    "write a name, a number or 'text'",
                );
            }
        };
        self.at += 1;
        Ok(ExprOperand { column, kind })
    }
}

/// Rejects `x == null`, which is never true and so never intended.
fn refuse_null(operand: &ExprOperand) -> Result<(), ExprError> {
    match operand.kind {
        OperandKind::Null => Err(ExprError::new(
            operand.column,
            "a comparison with null is never true",
            "write is null or is not null",
        )),
        OperandKind::Name(_)
        | OperandKind::Number(_)
        | OperandKind::Text(_)
        | OperandKind::Bool(_) => Ok(()),
    }
}
