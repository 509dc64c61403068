//! Scans a statement for keywords when the parser refuses it; also used for data definition, which needs no more.
//!
//! Tables are the names after FROM, JOIN, INTO, UPDATE and TABLE, with all rows and columns. The result therefore
//! contains too much rather than too little.

use crate::domain::source::DialectName;
use crate::lineage::access::{Access, AccessMode, Argument, CallKind, ObjectName, RoutineCall};
use crate::lineage::words::{TokenSlice, name_of};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::collections::BTreeSet;

/// The findings of a scan.
#[derive(Clone, Debug, Default)]
pub(super) struct WordFacts {
    pub(super) accesses: Vec<Access>,
    pub(super) calls: Vec<RoutineCall>,
    pub(super) temporary: BTreeSet<String>,
}

/// Maximum number of tokens between a function's parenthesis and its FROM: `extract(year FROM x)`.
const LOOK_BACK: usize = 60;
/// Maximum length of a statement in which arguments are counted, in tokens.
const COUNTED_MAX: usize = 2_000;

/// Keywords before `(` that are not function calls.
const NO_FUNCTIONS: [&str; 34] = [
    "IN",
    "VALUES",
    "VALUE",
    "AND",
    "OR",
    "NOT",
    "EXISTS",
    "ANY",
    "ALL",
    "SOME",
    "SELECT",
    "FROM",
    "WHERE",
    "ON",
    "USING",
    "AS",
    "OVER",
    "PARTITION",
    "BY",
    "SET",
    "WHEN",
    "THEN",
    "ELSE",
    "CASE",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "WITH",
    "INTO",
    "KEY",
    "CONFLICT",
    "INDEX",
    "TABLE",
    "RETURNING",
];

/// First keywords of statements in which TABLE precedes what is defined, not what is read.
const DEFINES: [&str; 7] = ["TRUNCATE", "DROP", "CREATE", "ALTER", "RENAME", "LOAD", "LOCK"];

/// Scans a query or a change of rows.
pub(super) fn read_by_words(tokens: &[TokenWithSpan], dialect: DialectName) -> WordFacts {
    let mut reader = WordReader {
        words: TokenSlice(tokens),
        tokens,
        dialect,
        closes: closing_brackets(tokens),
        common: BTreeSet::new(),
        found: WordFacts::default(),
    };
    reader.common_tables();
    for at in 0..tokens.len() {
        reader.read_at(at);
    }
    reader.found
}

struct WordReader<'t> {
    words: TokenSlice<'t>,
    tokens: &'t [TokenWithSpan],
    dialect: DialectName,
    /// For each parenthesis, the index after its end.
    closes: Vec<usize>,
    common: BTreeSet<String>,
    found: WordFacts,
}

/// The index after the end of each opening parenthesis, in one pass: a scan for each would take quadratic time.
fn closing_brackets(tokens: &[TokenWithSpan]) -> Vec<usize> {
    let mut closes = vec![tokens.len(); tokens.len()];
    let mut open = Vec::new();
    for (at, one) in tokens.iter().enumerate() {
        match one.token {
            Token::LParen => open.push(at),
            Token::RParen => {
                if let Some(start) = open.pop() {
                    closes[start] = at + 1;
                }
            }
            _ => {}
        }
    }
    closes
}

impl WordReader<'_> {
    fn after_brackets(&self, at: usize) -> usize {
        self.closes.get(at).copied().unwrap_or(self.tokens.len())
    }

    /// Names before `AS (`: common table expressions.
    fn common_tables(&mut self) {
        if !(0..self.words.len()).any(|at| self.words.is_word(at, "WITH")) {
            return;
        }
        for at in 0..self.words.len() {
            let Some(name) = self.tokens.get(at).and_then(|t| name_of(&t.token, self.dialect))
            else {
                continue;
            };
            let mut next = at + 1;
            if self.words.is_token(next, &Token::LParen) {
                next = self.after_brackets(next);
            }
            if self.words.is_word(next, "AS") {
                next += 1;
                while self.words.is_one_of(next, &["NOT", "MATERIALIZED"]) {
                    next += 1;
                }
                if self.words.is_token(next, &Token::LParen) {
                    self.common.insert(name.to_lowercase());
                }
            }
        }
    }

    fn read_at(&mut self, at: usize) {
        let words = self.words;
        if words.is_word(at, "FROM")
            || words.is_word(at, "JOIN")
            || words.is_word(at, "STRAIGHT_JOIN")
        {
            let mode = if words.is_one_of(at.wrapping_sub(1), &["DELETE", "QUICK", "IGNORE"]) {
                AccessMode::Delete
            } else {
                AccessMode::Read
            };
            // extract(year FROM x), trim(a FROM b), IS DISTINCT FROM
            if self.is_from_of_function(at) || words.is_word(at.wrapping_sub(1), "DISTINCT") {
                return;
            }
            self.read_list(at + 1, mode);
        } else if words.is_word(at, "TABLE") && !words.is_one_of(0, &DEFINES) {
            // INSERT INTO t TABLE s
            self.read_list(at + 1, AccessMode::Read);
        } else if words.is_word(at, "USING") && !words.is_token(at + 1, &Token::LParen) {
            self.read_list(at + 1, AccessMode::Read);
        } else if words.is_word(at, "INTO")
            && words.is_one_of(at.wrapping_sub(1), &["INSERT", "REPLACE", "MERGE", "IGNORE"])
        {
            self.read_list(at + 1, AccessMode::Upsert);
        } else if words.is_word(at, "UPDATE")
            && !words.is_one_of(at.wrapping_sub(1), &["FOR", "KEY", "DO", "ON", "THEN"])
        {
            self.read_list(at + 1, AccessMode::Update);
        } else if words.is_token(at, &Token::LParen) && at > 0 {
            self.function(at - 1);
        } else if words.is_word(at, "CALL") {
            self.called(at + 1, CallKind::Procedure);
        }
    }

    fn is_from_of_function(&self, at: usize) -> bool {
        let mut depth = 0_usize;
        for place in (at.saturating_sub(LOOK_BACK)..at).rev() {
            match &self.tokens[place].token {
                Token::RParen => depth += 1,
                Token::LParen if depth == 0 => {
                    return self.words.is_one_of(
                        place.wrapping_sub(1),
                        &["EXTRACT", "TRIM", "SUBSTRING", "OVERLAY", "POSITION"],
                    );
                }
                Token::LParen => depth -= 1,
                _ if depth == 0 && self.words.is_word(place, "SELECT") => return false,
                _ => {}
            }
        }
        false
    }

    /// A list of tables with aliases: `a x, (b, c), (SELECT …) z`. The ends of parentheses are kept on a stack.
    fn read_list(&mut self, from: usize, mode: AccessMode) {
        let words = self.words;
        let mut outer = Vec::new();
        let mut at = from;
        loop {
            while words.is_one_of(at, &["ONLY", "LATERAL", "TABLE", "IGNORE", "LOW_PRIORITY"]) {
                at += 1;
            }
            let is_query = words.is_one_of(at + 1, &["SELECT", "WITH", "VALUES"]);
            if words.is_token(at, &Token::LParen) && !is_query {
                outer.push(self.after_brackets(at));
                at += 1;
                continue;
            }
            at = match self.name(at) {
                // The scan reaches a query by itself.
                _ if words.is_token(at, &Token::LParen) => self.after_brackets(at),
                Some((name, next)) => self.listed(name, at, next, mode),
                None => match outer.pop() {
                    Some(end) => end,
                    None => return,
                },
            };
            loop {
                at = self.after_alias(at);
                if words.is_token(at, &Token::Comma) && mode != AccessMode::Upsert {
                    at += 1;
                    break;
                }
                match outer.pop() {
                    Some(end) => at = end,
                    None => return,
                }
            }
        }
    }

    /// A name in such a list; returns the index after it.
    fn listed(&mut self, name: ObjectName, at: usize, next: usize, mode: AccessMode) -> usize {
        if self.words.is_token(next, &Token::LParen) && mode == AccessMode::Read {
            // A function.
            return self.after_brackets(next);
        }
        let is_common = name.schema.is_none() && self.common.contains(&name.name.to_lowercase());
        if !is_common {
            self.found.accesses.push(Access::new(name, mode, self.words.line_at(at)));
        }
        next
    }

    fn after_alias(&self, at: usize) -> usize {
        let words = self.words;
        let ends = [
            "WHERE",
            "JOIN",
            "LEFT",
            "RIGHT",
            "INNER",
            "CROSS",
            "FULL",
            "NATURAL",
            "ON",
            "USING",
            "SET",
            "GROUP",
            "ORDER",
            "HAVING",
            "LIMIT",
            "UNION",
            "EXCEPT",
            "INTERSECT",
            "FOR",
            "RETURNING",
            "WINDOW",
            "VALUES",
            "SELECT",
            "FROM",
            "STRAIGHT_JOIN",
            "LOOP",
            "DO",
            "WITH",
        ];
        let mut at = at;
        if words.is_word(at, "AS") {
            at += 1;
        }
        let is_alias =
            matches!(self.tokens.get(at).map(|token| &token.token), Some(Token::Word(_)))
                && !words.is_one_of(at, &ends);
        if is_alias {
            at += 1;
            if words.is_token(at, &Token::LParen) {
                at = self.after_brackets(at);
            }
        }
        at
    }

    /// A name of up to three parts, and the index after it.
    fn name(&self, at: usize) -> Option<(ObjectName, usize)> {
        read_name(self.tokens, at, self.dialect)
    }

    fn function(&mut self, last: usize) {
        let words = self.words;
        if words.is_one_of(last, &NO_FUNCTIONS) {
            return;
        }
        let mut first = last;
        while first >= 2 && words.is_token(first - 1, &Token::Period) {
            first -= 2;
        }
        // INSERT INTO t (a, b) and CREATE TABLE t (…) are not calls.
        let before = ["INTO", "TABLE", "EXISTS", "AS", "UPDATE", "JOIN"];
        if first > 0 && words.is_one_of(first - 1, &before) && !words.is_word(first - 1, "JOIN") {
            return;
        }
        self.called(first, CallKind::Function);
    }

    fn called(&mut self, at: usize, kind: CallKind) {
        let Some((routine, next)) = self.name(at) else { return };
        let mut arguments = Vec::new();
        // The number of arguments only selects between overloaded routines.
        if self.words.is_token(next, &Token::LParen) && self.tokens.len() <= COUNTED_MAX {
            let end = self.after_brackets(next).saturating_sub(1);
            let mut from = next + 1;
            while from < end {
                let to =
                    self.words.find_from(from, |w, i| i >= end || w.is_token(i, &Token::Comma));
                arguments.push(Argument { name: None, values: None });
                from = to.min(end) + 1;
            }
        }
        self.found.calls.push(RoutineCall {
            routine,
            kind,
            arguments,
            line: self.words.line_at(at),
        });
    }
}

/// A name of up to three parts, and the index after it.
pub(super) fn read_name(
    tokens: &[TokenWithSpan],
    from: usize,
    dialect: DialectName,
) -> Option<(ObjectName, usize)> {
    let words = TokenSlice(tokens);
    let mut parts = vec![name_of(&tokens.get(from)?.token, dialect)?];
    let mut at = from + 1;
    while words.is_token(at, &Token::Period) {
        let Some(part) = tokens.get(at + 1).and_then(|token| name_of(&token.token, dialect)) else {
            break;
        };
        parts.push(part);
        at += 2;
    }
    let name = parts.pop()?;
    Some((ObjectName { schema: parts.pop(), name }, at))
}

/// Scans TRUNCATE, DROP, CREATE, ALTER, RENAME, LOAD DATA, COPY, ANALYZE …: whole tables that change. Returns the index
/// of a query within the statement (`CREATE TABLE t AS SELECT …`), if there is one.
pub(super) fn read_definition(
    tokens: &[TokenWithSpan],
    dialect: DialectName,
) -> (WordFacts, Option<usize>) {
    let words = TokenSlice(tokens);
    let mut found = WordFacts::default();
    let query = words.find_from(0, |w, i| w.is_one_of(i, &["SELECT", "WITH"]) && i > 0);
    let is_table = words.is_word(0, "CREATE") && (1..5).any(|at| words.is_word(at, "TABLE"));
    let mut with_query = (is_table && query < words.len()).then_some(query);
    let is_open = query > 0 && words.is_token(query - 1, &Token::LParen);
    if is_open {
        with_query = None;
    }
    // CREATE TABLE t (SELECT …) AS … has its query in parentheses.
    let in_brackets = (1..tokens.len().saturating_sub(1)).find(|at| {
        words.is_token(*at, &Token::LParen) && words.is_one_of(at + 1, &["SELECT", "WITH"])
    });
    if let (true, None, Some(at)) = (is_table, with_query, in_brackets) {
        with_query = Some(at);
    }
    let is_temporary = words.is_one_of(1, &["TEMPORARY", "TEMP"])
        || words.is_one_of(2, &["TEMPORARY", "TEMP"])
        || words.is_one_of(3, &["TEMPORARY", "TEMP"]) && words.is_word(1, "OR");
    let end = with_query.unwrap_or(tokens.len());
    for (at, mode) in definition_places(&words, end) {
        let mut next = at;
        loop {
            while words.is_one_of(next, &["IF", "NOT", "EXISTS", "ONLY", "TABLE"]) {
                next += 1;
            }
            let Some((name, after)) = read_name(tokens, next, dialect) else { break };
            let is_made = mode != AccessMode::Read;
            if is_made && (is_temporary || name.schema.as_deref() == Some("pg_temp")) {
                found.temporary.insert(name.name.to_lowercase());
            } else {
                found.accesses.push(Access::new(name, mode, words.line_at(next)));
            }
            next = after;
            let goes_on = words.is_one_of(0, &["DROP", "TRUNCATE", "ANALYZE"])
                && words.is_token(next, &Token::Comma);
            if !goes_on {
                break;
            }
            next += 1;
        }
    }
    (found, with_query)
}

/// The indexes of tables in a data definition statement.
fn definition_places(words: &TokenSlice<'_>, end: usize) -> Vec<(usize, AccessMode)> {
    let mut places = Vec::new();
    let first = words.word_at(0).unwrap_or_default().to_ascii_uppercase();
    match first.as_str() {
        "TRUNCATE" => places.push((1, AccessMode::Whole)),
        "COPY" => {
            let mode = if (1..end).any(|at| words.is_word(at, "FROM")) {
                AccessMode::Insert
            } else {
                AccessMode::Read
            };
            places.push((1, mode));
        }
        "LOAD" => {
            let into = (0..end).find(|at| words.is_word(*at, "TABLE"));
            places.extend(into.map(|at| (at + 1, AccessMode::Upsert)));
        }
        "REFRESH" => {
            let view = (0..end).find(|at| words.is_word(*at, "VIEW"));
            let skip = |at: usize| if words.is_word(at, "CONCURRENTLY") { at + 1 } else { at };
            places.extend(view.map(|at| (skip(at + 1), AccessMode::Whole)));
        }
        "CREATE" if (1..5).any(|at| words.is_word(at, "INDEX")) => {}
        "CREATE" | "DROP" | "ALTER" | "RENAME" => {
            let kinds = ["TABLE", "VIEW", "SEQUENCE"];
            for at in 1..end {
                // EXCHANGE PARTITION p WITH TABLE t, RENAME TABLE a TO b, RENAME TO c, ATTACH PARTITION t,
                // CREATE TABLE t LIKE s.
                let is_table = words.is_one_of(at, &kinds[..2]);
                let is_renamed = words.is_word(at, "TO")
                    && (first == "RENAME" || words.is_word(at - 1, "RENAME"));
                let is_partition = words.is_word(at, "PARTITION")
                    && words.is_one_of(at - 1, &["ATTACH", "DETACH"]);
                let is_next = first == "RENAME" && words.is_token(at, &Token::Comma);
                if is_table || is_renamed || is_partition || is_next {
                    places.push((at + 1, AccessMode::Whole));
                } else if words.is_word(at, "LIKE") && first == "CREATE" {
                    places.push((at + 1, AccessMode::Read));
                }
            }
        }
        _ => {}
    }
    places
}
