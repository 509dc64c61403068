//! Reads a condition: tokens to a tree.

use super::lex::{Lexer, Placed, Token, Word};
use super::{DEPTH_MAX, ExprError, LENGTH_MAX, Node, Operand, OperandKind, Sense};

/// Tokens on their way to becoming a tree.
pub(super) struct Reader {
    tokens: Vec<Placed>,
    at: usize,
    depth: usize,
}

impl Reader {
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

    pub(super) fn whole(mut self) -> Result<Node, ExprError> {
        if self.here().token == Token::End {
            return self.fault(
                "the condition is empty".to_owned(),
                "write one, for example p_status == 0",
            );
        }
        let node = self.any()?;
        match &self.here().token {
            Token::End => Ok(node),
            Token::Close => self.fault("')' without '('".to_owned(), "remove it, or open it"),
            Token::Compare(_) => self.fault(
                format!("{} follows a whole condition", self.here().spelling),
                "join two comparisons with and (1 < x and x < 9), and keep values out of parentheses",
            ),
            Token::Name(_) | Token::Number(_) | Token::Text(_) | Token::Word(_) | Token::Open
            | Token::Comma => self.fault(
                format!("{} follows a whole condition", self.here().spelling),
                "put and or or between two conditions",
            ),
        }
    }

    /// The tokens end with `End`, which is never taken.
    fn here(&self) -> &Placed {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn take(&mut self, token: &Token) -> bool {
        let there = self.here().token == *token;
        if there {
            self.at += 1;
        }
        there
    }

    fn word(&mut self, word: Word) -> bool {
        self.take(&Token::Word(word))
    }

    fn fault<T>(&self, what: String, cure: &str) -> Result<T, ExprError> {
        Err(ExprError::new(self.here().column, what, cure))
    }

    fn found(&self) -> String {
        match self.here().token {
            Token::End => "the condition ends here".to_owned(),
            _ => format!("{} stands here", self.here().spelling),
        }
    }

    fn any(&mut self) -> Result<Node, ExprError> {
        let first = self.all()?;
        let mut nodes = vec![first];
        while self.word(Word::Or) {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self) -> Result<Node, ExprError> {
        let first = self.negation()?;
        let mut nodes = vec![first];
        while self.word(Word::And) {
            nodes.push(self.negation()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::All(nodes) })
    }

    fn deeper(&mut self) -> Result<(), ExprError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self
                .fault(format!("more than {DEPTH_MAX} levels deep"), "take parentheses out");
        }
        Ok(())
    }

    fn negation(&mut self) -> Result<Node, ExprError> {
        if !self.word(Word::Not) {
            return self.predicate();
        }
        self.deeper()?;
        let node = self.negation()?;
        self.depth -= 1;
        Ok(Node::Not(Box::new(node)))
    }

    fn predicate(&mut self) -> Result<Node, ExprError> {
        if self.take(&Token::Open) {
            self.deeper()?;
            let node = self.any()?;
            self.depth -= 1;
            if !self.take(&Token::Close) {
                return self
                    .fault(format!("')' is missing, {}", self.found()), "close the parenthesis");
            }
            return Ok(node);
        }
        let operand = self.operand()?;
        if let Token::Compare(comparison) = self.here().token {
            self.at += 1;
            let right = self.operand()?;
            refuse_null(&operand)?;
            refuse_null(&right)?;
            return Ok(Node::Compare(operand, comparison, right));
        }
        if self.word(Word::Is) {
            let sense = if self.word(Word::Not) { Sense::Negated } else { Sense::Plain };
            return match self.word(Word::Null) {
                true => Ok(Node::Null(operand, sense)),
                false => self.fault(
                    format!("is wants null, {}", self.found()),
                    "write is null or is not null, and == for values",
                ),
            };
        }
        let sense = if self.word(Word::Not) { Sense::Negated } else { Sense::Plain };
        if self.word(Word::In) {
            return Ok(Node::In(operand, sense, self.list()?));
        }
        if self.word(Word::Between) {
            return self.between(operand, sense);
        }
        if sense == Sense::Negated {
            return self.fault(
                format!("not wants in or between, {}", self.found()),
                "write not in (…), or not before the whole condition",
            );
        }
        match operand.kind {
            OperandKind::Name(_) | OperandKind::Bool(_) => Ok(Node::Holds(operand)),
            OperandKind::Number(_) | OperandKind::Text(_) | OperandKind::Null => {
                Err(ExprError::new(
                    operand.column,
                    "a value alone is not a condition",
                    "compare it with something, for example == p_status",
                ))
            }
        }
    }

    fn between(&mut self, operand: Operand, sense: Sense) -> Result<Node, ExprError> {
        let low = self.operand()?;
        if !self.word(Word::And) {
            return self
                .fault(format!("between wants and, {}", self.found()), "write between 1 and 9");
        }
        let high = self.operand()?;
        for part in [&operand, &low, &high] {
            refuse_null(part)?;
        }
        Ok(Node::Between(operand, sense, low, high))
    }

    fn list(&mut self) -> Result<Vec<Operand>, ExprError> {
        if !self.take(&Token::Open) {
            return self.fault(format!("in wants a list, {}", self.found()), "write in (1, 2, 3)");
        }
        let mut list = Vec::new();
        loop {
            let operand = self.operand()?;
            refuse_null(&operand)?;
            list.push(operand);
            if self.take(&Token::Close) {
                return Ok(list);
            }
            if !self.take(&Token::Comma) {
                return self
                    .fault(format!("the list has no end, {}", self.found()), "write in (1, 2, 3)");
            }
        }
    }

    fn operand(&mut self) -> Result<Operand, ExprError> {
        let column = self.here().column;
        let kind = match &self.here().token {
            Token::Name(name) => OperandKind::Name(name.clone()),
            Token::Number(number) => OperandKind::Number(number.clone()),
            Token::Text(text) => OperandKind::Text(text.clone()),
            Token::Word(Word::True) => OperandKind::Bool(true),
            Token::Word(Word::False) => OperandKind::Bool(false),
            Token::Word(Word::Null) => OperandKind::Null,
            Token::Open => {
                return self.fault(
                    "'(' stands where a value must be".to_owned(),
                    "parentheses go round conditions, not values",
                );
            }
            Token::Word(_) | Token::Compare(_) | Token::Close | Token::Comma | Token::End => {
                return self.fault(
                    format!("a value is missing, {}", self.found()),
                    "write a name, a number or 'text'",
                );
            }
        };
        self.at += 1;
        Ok(Operand { column, kind })
    }
}

/// `x == null` is never true, which is never what was meant.
fn refuse_null(operand: &Operand) -> Result<(), ExprError> {
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
