//! Splits the body of a stored routine into statements and expressions that the SQL parser understands.
//!
//! It scans the tokens once and without recursion: the keywords that structure a body (BEGIN, IF, LOOP, DECLARE,
//! handlers, cursors, labels, EXCEPTION) are skipped at the start of a statement, and the text between them is passed
//! on. The text of a statement always ends at its semicolon.

use crate::domain::source::DialectName;
use crate::lineage::words::{TokenSlice, name_of};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A piece of a body.
#[derive(Clone, Debug)]
pub(super) enum BodyPiece<'t> {
    /// A SQL statement.
    Statement(&'t [TokenWithSpan]),
    /// An expression, and the variable that it sets.
    Expression { tokens: &'t [TokenWithSpan], target: Option<String> },
    /// A dynamic statement; the tokens are the expression of its text.
    Dynamic(&'t [TokenWithSpan]),
    /// The declaration of a variable without a value.
    Declared(String),
    /// A variable gets a value that is not tracked.
    Unknown(String),
}

/// Splits tokens into pieces.
pub(super) fn split_body(tokens: &[TokenWithSpan], dialect: DialectName) -> Vec<BodyPiece<'_>> {
    let mut splitter =
        Splitter { words: TokenSlice(tokens), all: tokens, at: 0, dialect, pieces: Vec::new() };
    while splitter.at < tokens.len() {
        let before = splitter.at;
        splitter.read_step();
        // Every step advances, whatever the text is.
        splitter.at = splitter.at.max(before + 1);
    }
    splitter.pieces
}

struct Splitter<'t> {
    words: TokenSlice<'t>,
    all: &'t [TokenWithSpan],
    at: usize,
    dialect: DialectName,
    pieces: Vec<BodyPiece<'t>>,
}

impl<'t> Splitter<'t> {
    fn read_step(&mut self) {
        let (words, at) = (self.words, self.at);
        if words.is_token(at, &Token::SemiColon) {
            self.at += 1;
        } else if words.is_token(at, &Token::Sharp) {
            // #variable_conflict use_column
            self.at += 3;
        } else if words.is_token(at, &Token::ShiftLeft) {
            // <<label>>
            self.at = words.find_from(at, |w, i| w.is_token(i, &Token::ShiftRight)) + 1;
        } else if words.is_token(at + 1, &Token::Colon) && words.word_at(at).is_some() {
            self.at += 2;
        } else if words.is_one_of(at, &["DECLARE"]) {
            self.declare();
        } else if !self.control() && !self.loops() && !self.assign() && !self.cursor() {
            self.statement();
        }
    }

    fn expression(&mut self, from: usize, to: usize, target: Option<String>) {
        let tokens = &self.all[from.min(to)..to];
        if !tokens.is_empty() {
            self.pieces.push(BodyPiece::Expression { tokens, target });
        }
    }

    fn name(&self, at: usize) -> Option<String> {
        name_of(&self.all.get(at)?.token, self.dialect).map(|name| name.to_lowercase())
    }

    /// A whole statement up to its semicolon.
    fn statement(&mut self) {
        let end = self.words.find_end(self.at);
        let tokens = &self.all[self.at..end];
        if self.words.is_word(self.at, "EXECUTE") || self.words.is_word(self.at, "PREPARE") {
            self.pieces.push(BodyPiece::Dynamic(tokens));
            self.fill_targets(self.at, end);
        } else {
            self.pieces.push(BodyPiece::Statement(tokens));
        }
        self.at = end + 1;
    }

    /// Handles BEGIN, END, IF, CASE, EXCEPTION and RETURN; returns whether it was one of them.
    fn control(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        let Some(word) = words.word_at(at) else { return false };
        match word.to_ascii_uppercase().as_str() {
            "BEGIN" => {
                self.at += 1;
                while words.is_one_of(self.at, &["NOT", "ATOMIC"]) {
                    self.at += 1;
                }
                // BEGIN TRANSACTION, BEGIN ISOLATION LEVEL …
                if words.is_one_of(self.at, &["TRANSACTION", "WORK", "ISOLATION", "IMMEDIATE"]) {
                    self.at = words.find_end(self.at) + 1;
                }
            }
            "END" => self.at = words.find_end(at) + 1,
            "ELSE" => self.at += 1,
            "IF" | "ELSEIF" | "ELSIF" => self.condition("THEN"),
            "CASE" if self.dialect != DialectName::Sqlite => {
                let when = words.find_from(at + 1, |w, i| w.is_word(i, "WHEN"));
                self.expression(at + 1, when, None);
                self.at = when;
            }
            "WHEN" => self.read_when(),
            "EXCEPTION" => self.at += 1,
            "UNTIL" => {
                let end = words.find_from(at + 1, |w, i| w.is_word(i, "END"));
                self.expression(at + 1, end, None);
                self.at = end;
            }
            "RETURN" => self.returned(),
            "RAISE" | "ASSERT" | "SIGNAL" | "RESIGNAL" => self.raised(),
            "LEAVE" | "ITERATE" | "NULL" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE"
            | "START" | "CLOSE" | "DEALLOCATE" | "UNLOCK" | "MOVE" => {
                self.at = words.find_end(at) + 1;
            }
            "GET" => {
                // GET DIAGNOSTICS a = ROW_COUNT, b = …
                let end = words.find_end(at);
                for place in at..end {
                    let is_sign = words.is_token(place + 1, &Token::Eq)
                        || words.is_token(place + 1, &Token::Assignment);
                    if let (true, Some(name)) = (is_sign, self.name(place)) {
                        self.pieces.push(BodyPiece::Unknown(name));
                    }
                }
                self.at = end + 1;
            }
            "EXIT" | "CONTINUE" => {
                let end = words.find_end(at);
                let when = words.find_from(at, |w, i| i >= end || w.is_word(i, "WHEN"));
                self.expression((when + 1).min(end), end, None);
                self.at = end + 1;
            }
            _ => return false,
        }
        true
    }

    /// An expression between this word and `stop`.
    fn condition(&mut self, stop: &str) {
        let end = self.words.find_from(self.at + 1, |w, i| w.is_word(i, stop));
        self.expression(self.at + 1, end, None);
        self.at = end + 1;
    }

    /// WHEN of a CASE statement, or of an exception handler, whose conditions are names.
    fn read_when(&mut self) {
        let (words, at) = (self.words, self.at);
        let end = words.find_from(at + 1, |w, i| w.is_word(i, "THEN"));
        let is_name = |i: usize| {
            words.word_at(i).is_some() || matches!(self.all[i].token, Token::SingleQuotedString(_))
        };
        let is_handler = (at + 1..end).all(is_name) && self.dialect == DialectName::Postgres;
        if !is_handler {
            self.expression(at + 1, end, None);
        }
        self.at = end + 1;
    }

    fn returned(&mut self) {
        let (words, at) = (self.words, self.at);
        let end = words.find_end(at);
        self.at = end + 1;
        if words.is_word(at + 1, "QUERY") && words.is_word(at + 2, "EXECUTE") {
            self.pieces.push(BodyPiece::Dynamic(&self.all[at + 2..end]));
        } else if words.is_word(at + 1, "QUERY") {
            self.pieces.push(BodyPiece::Statement(&self.all[(at + 2).min(end)..end]));
        } else {
            let from = if words.is_word(at + 1, "NEXT") { at + 2 } else { at + 1 };
            self.expression(from.min(end), end, None);
        }
    }

    /// RAISE level 'format', a, b USING x = c; SIGNAL SQLSTATE 's' SET MESSAGE_TEXT = e.
    fn raised(&mut self) {
        let (words, at) = (self.words, self.at);
        let end = words.find_end(at);
        self.at = end + 1;
        let separates = |w: TokenSlice<'_>, i: usize| {
            i >= end
                || w.is_token(i, &Token::Comma)
                || w.is_token(i, &Token::Eq)
                || w.is_word(i, "USING")
        };
        if words.is_word(at, "ASSERT") {
            self.expression(at + 1, end, None);
            return;
        }
        let mut from = words.find_from(at + 1, separates) + 1;
        while from < end {
            let to = words.find_from(from, separates).min(end);
            // `name =` before a value is not an expression of interest, and harmless if treated as one.
            self.expression(from, to, None);
            from = to + 1;
        }
    }

    /// Handles LOOP, WHILE, REPEAT, FOR, FOREACH; returns whether it was one of them.
    fn loops(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        let Some(word) = words.word_at(at) else { return false };
        let is_call = words.is_token(at + 1, &Token::LParen);
        match word.to_ascii_uppercase().as_str() {
            "LOOP" | "REPEAT" if !is_call => self.at += 1,
            "WHILE" => {
                let end = words.find_from(at + 1, |w, i| w.is_one_of(i, &["DO", "LOOP"]));
                self.expression(at + 1, end, None);
                self.at = end + 1;
            }
            "FOREACH" | "FOR" => self.for_loop(),
            _ => return false,
        }
        true
    }

    fn for_loop(&mut self) {
        let (words, at) = (self.words, self.at);
        let is_in = |w: TokenSlice<'_>, i: usize| w.is_word(i, "IN");
        let within = words.find_from(at + 1, is_in);
        let end = words.find_from(within, |w, i| w.is_one_of(i, &["LOOP", "DO"]));
        for place in at + 1..within {
            if let Some(name) = self.name(place) {
                self.pieces.push(BodyPiece::Unknown(name));
            }
        }
        let mut from = within + 1;
        while words.is_one_of(from, &["REVERSE", "ARRAY"]) {
            from += 1;
        }
        if words.is_word(from, "EXECUTE") {
            self.pieces.push(BodyPiece::Dynamic(&self.all[from..end]));
        } else if words.is_one_of(from, &["SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "VALUES"])
        {
            self.pieces.push(BodyPiece::Statement(&self.all[from..end]));
        } else if words.is_token(from, &Token::LParen)
            && words.is_one_of(from + 1, &["SELECT", "WITH"])
        {
            let close = words.after_brackets(from).saturating_sub(1);
            self.pieces
                .push(BodyPiece::Statement(&self.all[from + 1..close.min(end).max(from + 1)]));
        } else {
            self.range(from, end);
        }
        self.at = end + 1;
    }

    /// `a .. b BY c`, a cursor's name with its arguments, or an array.
    fn range(&mut self, from: usize, end: usize) {
        let mut start = from;
        for place in from..end {
            let is_dots = self.words.is_token(place, &Token::Period)
                && self.words.is_token(place + 1, &Token::Period);
            if is_dots || self.words.is_word(place, "BY") {
                self.expression(start, place, None);
                start = if is_dots { place + 2 } else { place + 1 };
            }
        }
        // The name of a cursor alone reads nothing: its query is at its declaration.
        let is_name = start == from && end == from + 1 && self.words.word_at(from).is_some();
        if !is_name && start < end {
            self.expression(start, end, None);
        }
    }

    /// Handles `x := e` and `x = e` of PL/pgSQL, and `SET x = e, y = f` of MySQL; returns whether it was one.
    fn assign(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        if words.is_word(at, "SET") && self.dialect != DialectName::Sqlite {
            return self.read_set();
        }
        if self.dialect != DialectName::Postgres || words.word_at(at).is_none() {
            return false;
        }
        let end = words.find_end(at);
        let is_sign = |w: TokenSlice<'_>, i: usize| {
            w.is_token(i, &Token::Assignment) || w.is_token(i, &Token::Eq)
        };
        // The target is a name with fields and array indexes: a second word means a statement.
        let sign = words.find_from(at, |w, i| i >= end || is_sign(w, i));
        let starts_target = sign == at + 1
            || words.is_token(at + 1, &Token::Period)
            || words.is_token(at + 1, &Token::LBracket);
        if sign >= end || !starts_target {
            return false;
        }
        if let Some(name) = self.name(at) {
            if sign == at + 1 {
                self.expression(sign + 1, end, Some(name));
            } else {
                self.pieces.push(BodyPiece::Unknown(name));
                self.expression(sign + 1, end, None);
            }
        }
        self.at = end + 1;
        true
    }

    fn read_set(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        let end = words.find_end(at);
        let plain = ["TRANSACTION", "NAMES", "CHARSET", "CHARACTER", "ROLE", "CONSTRAINTS"];
        if self.dialect == DialectName::Postgres || words.is_one_of(at + 1, &plain) {
            if (at..end).any(|place| words.is_word(place, "SEARCH_PATH")) {
                self.pieces.push(BodyPiece::Statement(&self.all[at..end]));
            }
            self.at = end + 1;
            return true;
        }
        if words.is_word(at + 1, "STATEMENT") {
            // MariaDB: SET STATEMENT max_statement_time = 5 FOR SELECT …
            let of = words.find_from(at + 1, |w, i| w.is_word(i, "FOR"));
            self.at = of + 1;
            return true;
        }
        let mut from = at + 1;
        while from < end {
            let to =
                words.find_from(from, |w, i| i >= end || w.is_token(i, &Token::Comma)).min(end);
            let sign = words
                .find_from(from, |w, i| {
                    i >= to || w.is_token(i, &Token::Eq) || w.is_token(i, &Token::Assignment)
                })
                .min(to);
            let target = if sign == from + 1 { self.name(from) } else { None };
            self.expression((sign + 1).min(to), to, target);
            from = to + 1;
        }
        self.at = end + 1;
        true
    }

    /// Handles OPEN, FETCH and PERFORM; returns whether it was one of them.
    fn cursor(&mut self) -> bool {
        let (words, at) = (self.words, self.at);
        let end = words.find_end(at);
        if words.is_word(at, "FETCH") {
            self.fill_targets(at, end);
        } else if words.is_word(at, "OPEN") {
            let query = words.find_from(at, |w, i| i >= end || w.is_word(i, "FOR"));
            if query < end && words.is_word(query + 1, "EXECUTE") {
                self.pieces.push(BodyPiece::Dynamic(&self.all[query + 1..end]));
            } else if query < end {
                self.pieces.push(BodyPiece::Statement(&self.all[query + 1..end]));
            } else if words.is_token(at + 2, &Token::LParen) {
                self.expression(at + 2, end, None);
            }
        } else if words.is_word(at, "PERFORM") && self.dialect == DialectName::Postgres {
            self.pieces.push(BodyPiece::Statement(&self.all[at..end]));
        } else {
            return false;
        }
        self.at = end + 1;
        true
    }

    /// The variables after INTO.
    fn fill_targets(&mut self, from: usize, end: usize) {
        let mut at = self.words.find_from(from, |w, i| i >= end || w.is_word(i, "INTO")) + 1;
        while at < end {
            if let Some(name) = self.name(at) {
                self.pieces.push(BodyPiece::Unknown(name));
            }
            if !self.words.is_token(at + 1, &Token::Comma) {
                break;
            }
            at += 2;
        }
    }

    /// A MySQL declaration, or the whole PL/pgSQL section up to BEGIN.
    fn declare(&mut self) {
        if self.dialect == DialectName::Postgres {
            self.at += 1;
            while self.at < self.words.len() && !self.words.is_word(self.at, "BEGIN") {
                let end = self.words.find_end(self.at);
                self.declared(self.at, end);
                self.at = end + 1;
                if self.words.is_word(self.at, "DECLARE") {
                    self.at += 1;
                }
            }
            return;
        }
        let (words, at) = (self.words, self.at);
        if words.is_word(at + 2, "HANDLER") {
            self.at = self.after_handler_conditions(at + 4);
            return;
        }
        let end = words.find_end(at);
        self.declared(at + 1, end);
        self.at = end + 1;
    }

    /// The index after `SQLSTATE VALUE '23000', 1062, NOT FOUND`, where the handler's statement begins.
    fn after_handler_conditions(&self, from: usize) -> usize {
        let (words, mut at) = (self.words, from);
        loop {
            if words.is_word(at, "SQLSTATE") {
                at += if words.is_word(at + 1, "VALUE") { 3 } else { 2 };
            } else if words.is_word(at, "NOT") {
                at += 2;
            } else {
                at += 1;
            }
            if !words.is_token(at, &Token::Comma) {
                return at;
            }
            at += 1;
        }
    }

    /// `a, b type DEFAULT e`, `c CURSOR FOR query`, `c CONDITION FOR …`, `x ALIAS FOR $1`.
    fn declared(&mut self, from: usize, end: usize) {
        let words = self.words;
        let is_cursor = |w: TokenSlice<'_>, i: usize| i >= end || w.is_word(i, "CURSOR");
        let cursor = words.find_from(from, is_cursor);
        if cursor < end {
            let query = words.find_from(cursor, |w, i| i >= end || w.is_one_of(i, &["FOR", "IS"]));
            // `c CURSOR;` gets its query when it is opened.
            if query < end {
                self.pieces.push(BodyPiece::Statement(&self.all[query + 1..end]));
            }
            return;
        }
        if words.is_one_of(from + 1, &["CONDITION", "ALIAS"]) {
            return;
        }
        let value = words.find_from(from, |w, i| {
            i >= end
                || w.is_word(i, "DEFAULT")
                || w.is_token(i, &Token::Assignment)
                || w.is_token(i, &Token::Eq)
        });
        let mut at = from;
        let mut names = Vec::new();
        while let Some(name) = self.name(at) {
            names.push(name);
            if !words.is_token(at + 1, &Token::Comma) {
                break;
            }
            at += 2;
        }
        for name in names {
            if value < end {
                self.expression(value + 1, end, Some(name));
            } else {
                self.pieces.push(BodyPiece::Declared(name));
            }
        }
    }
}
