//! Splits SQL text into statements and finds `:name` parameters in them, per dialect.
//!
//! Statements are sent one at a time, because PostgreSQL makes one implicit transaction of
//! several in one message (and then refuses COMMIT in a procedure, 2D000), MySQL does not know
//! `DELIMITER` at all, and because row counts, times and errors should name one statement.
//!
//! Bodies of routines: PostgreSQL's dollar quotes and `BEGIN ATOMIC`, SQLite's triggers and
//! MySQL's `BEGIN … END` bodies are kept whole. In MySQL `begin`, `end` and `case` are counted as
//! words, so a body that uses `end` as a bare column name, or whose outermost statement is an
//! `IF`, `LOOP` or `WHILE` without `BEGIN`, needs a `DELIMITER` line, as in the mysql client.

use crate::domain::source::DialectName;
use crate::domain::source::token::{SqlToken, is_word, token};

/// One statement of a SQL body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlStatement {
    /// Its text, from its first word on, without the delimiter.
    pub text: String,
    /// The line of the body on which it begins, counted from 1.
    pub line: u32,
    /// Whether it creates a routine or a trigger: such a statement takes no parameters.
    pub is_routine: bool,
}

/// A piece of a body; the pieces in order are the whole body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SqlPiece {
    kind: PieceKind,
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    /// Comments, white space, delimiters, `DELIMITER` lines.
    Between,
    Statement,
    Routine,
}

/// The statements of `sql`, in their order.
pub fn split(sql: &str, dialect: DialectName) -> Vec<SqlStatement> {
    let (mut line, mut seen) = (1, 0);
    let mut statements = Vec::new();
    for piece in pieces(sql, dialect) {
        if piece.kind == PieceKind::Between {
            continue;
        }
        let newlines = sql.as_bytes()[seen..piece.start].iter().filter(|b| **b == b'\n').count();
        line += u32::try_from(newlines).unwrap_or(u32::MAX);
        seen = piece.start;
        let text = sql[piece.start..piece.end].trim_end();
        // White space that the databases do not treat as such, for example a vertical tab, is not a
        // statement either.
        if text.is_empty() {
            continue;
        }
        statements.push(SqlStatement {
            text: text.to_owned(),
            line,
            is_routine: piece.kind == PieceKind::Routine,
        });
    }
    statements
}

/// Parser state within a statement.
#[derive(Default)]
struct StatementScanner {
    start: Option<usize>,
    create: bool,
    routine: bool,
    settled: bool,
    words: u32,
    depth: u32,
    parens: u32,
    before: String,
    ended: bool,
}

impl StatementScanner {
    /// Processes one word of the statement.
    fn read_word(&mut self, word: &str, dialect: DialectName) {
        let word = word.to_ascii_uppercase();
        self.words += 1;
        match word.as_str() {
            "CREATE" if self.words == 1 => self.create = true,
            "PROCEDURE" | "FUNCTION" | "TRIGGER" | "EVENT" | "PACKAGE"
                if self.create && !self.settled =>
            {
                (self.routine, self.settled) = (true, true);
            }
            "TABLE" | "VIEW" | "INDEX" | "USER" | "DATABASE" | "SCHEMA" | "ROLE" | "SERVER"
            | "SEQUENCE" => self.settled = true,
            "NOT" if self.words == 2 && self.before == "BEGIN" => self.depth = 1,
            "ATOMIC" if self.words == 3 && self.depth == 1 => self.routine = true,
            "ATOMIC" if self.routine && dialect == DialectName::Postgres => {
                self.depth += u32::from(self.before == "BEGIN");
            }
            _ => {}
        }
        if self.routine {
            self.track_nesting(&word, dialect);
        }
        self.before = word;
    }

    fn track_nesting(&mut self, word: &str, dialect: DialectName) {
        // `END IF` and similar ends close blocks that are not counted.
        if self.ended {
            self.ended = false;
            if !matches!(word, "IF" | "LOOP" | "WHILE" | "REPEAT" | "FOR") {
                self.depth = self.depth.saturating_sub(1);
            }
            if matches!(word, "IF" | "LOOP" | "WHILE" | "REPEAT" | "FOR" | "CASE") {
                return;
            }
        }
        match word {
            "BEGIN" if dialect != DialectName::Postgres => self.depth += 1,
            "CASE" if self.depth > 0 => self.depth += 1,
            "END" => self.ended = true,
            _ => {}
        }
    }

    /// A mark or a quoted piece follows: an `END` before it was complete.
    fn other(&mut self) {
        if std::mem::take(&mut self.ended) {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

fn pieces(sql: &str, dialect: DialectName) -> Vec<SqlPiece> {
    let bytes = sql.as_bytes();
    let mut found: Vec<SqlPiece> = Vec::new();
    let (mut delimiter, mut at) = (";", 0);
    let mut now = StatementScanner::default();
    while at < bytes.len() {
        if let (None, Some((name, end))) = (now.start, delimiter_line(sql, at, dialect)) {
            delimiter = name;
            push_piece(&mut found, PieceKind::Between, at, end);
            at = end;
            continue;
        }
        if sql[at..].starts_with(delimiter) {
            now.other();
            let inside = delimiter == ";" && (now.depth > 0 || now.parens > 0);
            let end = at + delimiter.len();
            if !inside {
                finish(&mut found, std::mem::take(&mut now), at);
                push_piece(&mut found, PieceKind::Between, at, end);
            }
            at = end;
            continue;
        }
        let (kind, mut end) = token(bytes, at, dialect);
        if kind == SqlToken::Word
            && let Some(cut) = sql[at..end].find(delimiter)
        {
            end = at + cut;
        }
        match kind {
            SqlToken::Blank if now.start.is_none() => {
                push_piece(&mut found, PieceKind::Between, at, end)
            }
            SqlToken::Blank => {}
            SqlToken::Word => now.read_word(&sql[at..end], dialect),
            SqlToken::Quoted | SqlToken::Mark => now.other(),
        }
        if kind == SqlToken::Mark && dialect == DialectName::Postgres {
            match bytes[at] {
                b'(' => now.parens += 1,
                b')' => now.parens = now.parens.saturating_sub(1),
                _ => {}
            }
        }
        if kind != SqlToken::Blank {
            now.start.get_or_insert(at);
        }
        at = end;
    }
    finish(&mut found, now, bytes.len());
    found
}

fn finish(found: &mut Vec<SqlPiece>, now: StatementScanner, end: usize) {
    if let Some(start) = now.start {
        let kind = if now.routine { PieceKind::Routine } else { PieceKind::Statement };
        found.push(SqlPiece { kind, start, end });
    }
}

fn push_piece(found: &mut Vec<SqlPiece>, kind: PieceKind, start: usize, end: usize) {
    match found.last_mut() {
        Some(last) if last.kind == PieceKind::Between && kind == PieceKind::Between => {
            last.end = end;
        }
        _ => found.push(SqlPiece { kind, start, end }),
    }
}

/// Parses `DELIMITER //` at the start of a line: the new delimiter, and the end of the line.
fn delimiter_line(sql: &str, at: usize, dialect: DialectName) -> Option<(&str, usize)> {
    if dialect != DialectName::Mysql {
        return None;
    }
    let before = sql.as_bytes()[..at].iter().rev().find(|b| !matches!(b, b' ' | b'\t'));
    let line = sql[at..].lines().next()?;
    let mut words = line.split_ascii_whitespace();
    let is_command = words.next()?.eq_ignore_ascii_case("delimiter")
        && before.is_none_or(|b| *b == b'\n')
        && line.starts_with(['d', 'D']);
    let name = words.next().filter(|_| is_command)?;
    Some((name, at + line.len()))
}

/// Whether a statement is a query: it begins as one that returns rows, and writes no file on the
/// server. Whether a function that it calls changes data is decided only by the server's read-only
/// session.
pub fn is_question(statement: &SqlStatement, dialect: DialectName) -> bool {
    const FIRST: [&str; 6] = ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN"];
    let words = words(&statement.text, dialect, usize::MAX);
    let is = |word: &&str, other: &str| word.eq_ignore_ascii_case(other);
    let asks = words.first().is_some_and(|word| FIRST.iter().any(|first| is(word, first)));
    let files = words
        .windows(2)
        .any(|pair| is(&pair[0], "INTO") && (is(&pair[1], "OUTFILE") || is(&pair[1], "DUMPFILE")));
    asks && !files
}

/// Why a statement may not be sent, if so: the sentence for the user.
///
/// `COPY … FROM STDIN` makes sqlx's connection hang forever after its error.
pub fn unfit(statement: &SqlStatement, dialect: DialectName) -> Option<&'static str> {
    let words = words(&statement.text, dialect, usize::MAX);
    let is = |at: usize, word: &str| words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word));
    let has = |word: &str| words.iter().any(|w| w.eq_ignore_ascii_case(word));
    (dialect == DialectName::Postgres && is(0, "COPY") && (has("STDIN") || has("STDOUT"))).then_some(
        "COPY FROM STDIN and TO STDOUT need a client that feeds them; use INSERT, COPY with a file \
         of the server, or a SCRIPT job with psql",
    )
}

/// Whether a statement begins or ends a transaction itself.
pub fn is_transaction_word(statement: &SqlStatement, dialect: DialectName) -> bool {
    let words = words(&statement.text, dialect, 3);
    let is = |at: usize, word: &str| words.get(at).is_some_and(|w| w.eq_ignore_ascii_case(word));
    is(0, "COMMIT")
        || (is(0, "BEGIN") && !is(1, "NOT"))
        || (is(0, "START") && is(1, "TRANSACTION"))
        || (is(0, "ROLLBACK") && !is(1, "TO") && !is(2, "TO"))
        || (is(0, "END") && dialect != DialectName::Mysql)
}

/// Whether BEGIN and COMMIT around the statement alone would add nothing: a query. A change keeps
/// them, so that a lost answer to its COMMIT can be distinguished from a lost answer to the change.
pub fn is_query_alone(statement: &SqlStatement, dialect: DialectName) -> bool {
    words(&statement.text, dialect, 1)
        .first()
        .is_some_and(|word| word.eq_ignore_ascii_case("SELECT"))
}

/// Whether the statement is a single change, which SQLite applies atomically and whose answer
/// cannot be lost, because there is no network. A change that returns rows may return them before
/// it is certain to be applied.
pub fn is_change_alone(statement: &SqlStatement, dialect: DialectName) -> bool {
    let is = |word: &&str, of: &[&str]| of.iter().any(|one| word.eq_ignore_ascii_case(one));
    let words = words(&statement.text, dialect, usize::MAX);
    dialect == DialectName::Sqlite
        && words.first().is_some_and(|word| is(word, &["INSERT", "UPDATE", "DELETE", "REPLACE"]))
        && !words.iter().any(|word| is(word, &["RETURNING"]))
}

/// The first `max` words outside quotes and comments.
pub fn words(text: &str, dialect: DialectName, max: usize) -> Vec<&str> {
    let (mut at, mut found) = (0, Vec::new());
    while at < text.len() && found.len() < max {
        let (kind, end) = token(text.as_bytes(), at, dialect);
        if kind == SqlToken::Word {
            found.push(&text[at..end]);
        }
        at = end;
    }
    found
}

/// A statement whose `:name` parameters are replaced by the dialect's placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The text to send.
    pub text: String,
    /// The name of the parameter for each placeholder, in the order of binding.
    pub names: Vec<String>,
}

/// Replaces the `:name` parameters of a statement, outside quotes and comments: by `?`, or on
/// PostgreSQL by `$n::text::TYPE` with the type given by `cast`, because PostgreSQL does not
/// convert texts implicitly and a text bound to an integer fails with "insufficient data left in
/// message".
///
/// A colon directly after a word, a bracket or a quote does not start a parameter (`a::date`,
/// `x[1:n]`, a label), nor does one followed by anything but a letter or `_` (`:=`, `: n`).
pub fn bind_names(text: &str, dialect: DialectName, cast: impl Fn(&str) -> &'static str) -> Bound {
    let bytes = text.as_bytes();
    let mut bound = Bound { text: String::with_capacity(text.len()), names: Vec::new() };
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end) = token(bytes, at, dialect);
        let Some(name) = (kind == SqlToken::Mark).then(|| name_at(text, at)).flatten() else {
            bound.text.push_str(&text[at..end]);
            at = end;
            continue;
        };
        at += 1 + name.len();
        if dialect != DialectName::Postgres {
            bound.text.push('?');
            bound.names.push(name.to_owned());
            continue;
        }
        let place = bound.names.iter().position(|known| known == name).unwrap_or_else(|| {
            bound.names.push(name.to_owned());
            bound.names.len() - 1
        });
        bound.text.push_str(&format!("CAST(${}::text AS {})", place + 1, cast(name)));
    }
    bound
}

fn name_at(text: &str, at: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let behind = |b: u8| is_word(b) || matches!(b, b':' | b']' | b')' | b'\'' | b'"' | b'`');
    if bytes[at] != b':' || (at > 0 && behind(bytes[at - 1])) {
        return None;
    }
    let name = &text[at + 1..];
    let len = name.bytes().take_while(|b| is_word(*b) && *b != b'$').count();
    let first = *name.as_bytes().first()?;
    (len > 0 && !first.is_ascii_digit()).then(|| &name[..len])
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
