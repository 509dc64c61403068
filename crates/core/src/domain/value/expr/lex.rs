//! Splits the text of a condition into tokens.

use super::CompareOperator;
use super::ExprError;
use super::number;
use bigdecimal::BigDecimal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExprToken {
    Name(String),
    Number(BigDecimal),
    Text(String),
    Word(ExprKeyword),
    Compare(CompareOperator),
    Open,
    Close,
    Comma,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExprKeyword {
    And,
    Or,
    Not,
    In,
    Is,
    Null,
    Between,
    True,
    False,
}

const WORDS: [(&str, ExprKeyword); 9] = [
    ("and", ExprKeyword::And),
    ("or", ExprKeyword::Or),
    ("not", ExprKeyword::Not),
    ("in", ExprKeyword::In),
    ("is", ExprKeyword::Is),
    ("null", ExprKeyword::Null),
    ("between", ExprKeyword::Between),
    ("true", ExprKeyword::True),
    ("false", ExprKeyword::False),
];

/// Operators, longer ones first.
const COMPARISONS: [(&str, CompareOperator); 8] = [
    ("==", CompareOperator::Equal),
    ("!=", CompareOperator::NotEqual),
    ("<>", CompareOperator::NotEqual),
    ("<=", CompareOperator::LessOrEqual),
    (">=", CompareOperator::GreaterOrEqual),
    ("=", CompareOperator::Equal),
    ("<", CompareOperator::Less),
    (">", CompareOperator::Greater),
];

/// Operators of other languages, and what to write instead.
const FOREIGN: [(&str, &str); 8] = [
    ("===", "write =="),
    ("=>", "write >="),
    ("=<", "write <="),
    ("&&", "write and"),
    ("||", "write or"),
    ("!", "write not, or != between two values"),
    ("${", "write the bare name, without ${ }"),
    ("`", "put text in single or double quotes"),
];

pub(super) struct PlacedToken {
    /// Position of the first character, counted from 1.
    pub(super) column: usize,
    pub(super) token: ExprToken,
    /// The token as written, for messages.
    pub(super) spelling: String,
}

pub(super) struct Lexer {
    chars: Vec<char>,
    at: usize,
}

impl Lexer {
    pub(super) fn tokens(text: &str) -> Result<Vec<PlacedToken>, ExprError> {
        let mut lexer = Self { chars: text.chars().collect(), at: 0 };
        let mut found = Vec::new();
        loop {
            while lexer.peek().is_some_and(char::is_whitespace) {
                lexer.at += 1;
            }
            let start = lexer.at;
            let token = lexer.token()?;
            let spelling = lexer.chars[start..lexer.at].iter().collect();
            let last = token == ExprToken::End;
            found.push(PlacedToken { column: start + 1, token, spelling });
            if last {
                return Ok(found);
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn starts(&self, sign: &str) -> bool {
        sign.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn fault<T>(&self, start: usize, what: String, cure: &str) -> Result<T, ExprError> {
        Err(ExprError::new(start + 1, what, cure))
    }

    fn token(&mut self) -> Result<ExprToken, ExprError> {
        let Some(first) = self.peek() else { return Ok(ExprToken::End) };
        match first {
            '(' | ')' | ',' => {
                self.at += 1;
                Ok(match first {
                    '(' => ExprToken::Open,
                    ')' => ExprToken::Close,
                    _ => ExprToken::Comma,
                })
            }
            '\'' | '"' => self.quoted(first),
            c if c.is_ascii_digit() || c == '-' => self.digits(),
            c if c.is_alphabetic() || c == '_' => self.name(),
            _ => self.read_operator(first),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<ExprToken, ExprError> {
        let start = self.at;
        let mut text = String::new();
        self.at += 1;
        while let Some(c) = self.peek() {
            self.at += 1;
            if c != quote {
                text.push(c);
            } else if self.peek() == Some(quote) {
                text.push(quote);
                self.at += 1;
            } else {
                return Ok(ExprToken::Text(text));
            }
        }
        let cure = format!("end it with {quote}; a {quote} inside it is written twice");
        self.fault(start, "the text in quotes has no end".to_owned(), &cure)
    }

    fn digits(&mut self) -> Result<ExprToken, ExprError> {
        let start = self.at;
        self.at += 1;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '_') {
            self.at += 1;
        }
        let spelling: String = self.chars[start..self.at].iter().collect();
        match number(&spelling) {
            Some(number) => Ok(ExprToken::Number(number)),
            None => self.fault(
                start,
                format!("{spelling} is not a number"),
                "write it as 1234.50 or -3, or in quotes if it is text",
            ),
        }
    }

    fn name(&mut self) -> Result<ExprToken, ExprError> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            self.at += 1;
        }
        let name: String = self.chars[start..self.at].iter().collect();
        if name.ends_with('.') || name.contains("..") {
            let what = format!("{name} is not a name");
            return self.fault(start, what, "write a word, or words joined by one dot each");
        }
        let word = WORDS.iter().find(|(spelling, _)| name.eq_ignore_ascii_case(spelling));
        Ok(word.map_or(ExprToken::Name(name), |(_, word)| ExprToken::Word(*word)))
    }

    fn read_operator(&mut self, first: char) -> Result<ExprToken, ExprError> {
        // Longer operators first, also across both lists: === before ==, != before !.
        let (start, known) = (self.at, COMPARISONS.iter().find(|(sign, _)| self.starts(sign)));
        let foreign = FOREIGN.iter().find(|(sign, _)| self.starts(sign));
        if let Some((sign, cure)) = foreign
            && known.is_none_or(|(better, _)| sign.len() > better.len())
        {
            return self.fault(start, format!("{sign} is not known here"), cure);
        }
        if let Some((sign, comparison)) = known {
            self.at += sign.len();
            return Ok(ExprToken::Compare(*comparison));
        }
        let what = format!("{first:?} is not known here");
        self.fault(start, what, "a condition is names, numbers, 'texts' and == != < <= > >=, in, between, is null, and, or, not, ( )")
    }
}
