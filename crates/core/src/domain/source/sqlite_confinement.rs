//! Detects statements that let a SQLite session leave its own file, or affect the rest of the
//! process.
//!
//! The driver offers neither SQLite's authorizer nor `SQLITE_LIMIT_ATTACHED` without `unsafe`, so
//! the text is parsed before it is sent. That is sound because each of these statements begins with
//! a keyword that cannot be quoted and cannot occur in a trigger, view or function, and because
//! SQLite's tokenizer is context-free. The tokens here are cut exactly as SQLite cuts them
//! (`sqlite3GetToken`); `tests/it/sqlite_confinement.rs` compares both.

/// Pragmas whose setting applies to all connections of the process.
const PROCESS_PRAGMAS: [&str; 4] =
    ["temp_store_directory", "data_store_directory", "soft_heap_limit", "hard_heap_limit"];

/// A statement that a SQLite source may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForbiddenStatement {
    /// The line of the text on which it begins, counted from 1.
    pub line: u32,
    /// The kind of statement.
    pub kind: ForbiddenKind,
}

/// Why a statement is forbidden.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForbiddenKind {
    /// It opens a second file.
    #[error("ATTACH opens another database; a SQLite source may use its own file alone")]
    Attach,
    /// It writes a second file.
    #[error("VACUUM INTO writes another file; a SQLite source may use its own file alone")]
    VacuumInto,
    /// It changes what other connections of the process use.
    #[error("PRAGMA {0} is a setting of the whole process, not of one SQLite source")]
    ProcessPragma(&'static str),
}

impl ForbiddenKind {
    /// An alternative.
    pub fn hint_text(&self) -> &'static str {
        match self {
            Self::Attach => "declare a source for the other file and give it a job of its own",
            Self::VacuumInto => {
                "make the copy outside, for example in a SCRIPT job, or write VACUUM"
            }
            Self::ProcessPragma(_) => "take the statement out",
        }
    }
}

/// Accepts a text that stays within its file; otherwise returns the error.
pub fn confine_to_file(sql: &str) -> Result<(), String> {
    find_forbidden_statement(sql)
        .map_or(Ok(()), |found| Err(format!("{}; {}", found.kind, found.kind.hint_text())))
}

/// The first statement of `sql` that a SQLite source may not run.
pub fn find_forbidden_statement(sql: &str) -> Option<ForbiddenStatement> {
    let bytes = sql.as_bytes();
    let (mut at, mut line, mut statement) = (0, 1_u32, ConfinedStatement::Unread);
    let mut began = 1;
    while at < bytes.len() {
        let (token, end) = next_token(bytes, at);
        let text = &bytes[at..end];
        if token != ConfinementToken::Blank && statement == ConfinedStatement::Unread {
            began = line;
        }
        let (next, found) = statement.read_token(token, text);
        if let Some(kind) = found {
            return Some(ForbiddenStatement { line: began, kind });
        }
        statement = next;
        let newlines = text.iter().filter(|byte| **byte == b'\n').count();
        line = line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        at = end;
    }
    None
}

/// Parser state within a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConfinedStatement {
    /// Before the first token.
    Unread,
    Vacuum,
    Pragma,
    /// Any other statement.
    Other,
}

impl ConfinedStatement {
    /// Processes the next token. A semicolon starts a new statement wherever it occurs: in the body
    /// of a trigger, where SQLite continues, none of the forbidden statements could follow it
    /// anyway.
    fn read_token(self, token: ConfinementToken, text: &[u8]) -> (Self, Option<ForbiddenKind>) {
        match (self, token) {
            (_, ConfinementToken::Blank) => (self, None),
            (_, ConfinementToken::Semicolon) => (Self::Unread, None),
            (Self::Unread, ConfinementToken::Word) if text.eq_ignore_ascii_case(b"ATTACH") => {
                (Self::Other, Some(ForbiddenKind::Attach))
            }
            (Self::Unread, ConfinementToken::Word) if text.eq_ignore_ascii_case(b"VACUUM") => {
                (Self::Vacuum, None)
            }
            (Self::Unread, ConfinementToken::Word) if text.eq_ignore_ascii_case(b"PRAGMA") => {
                (Self::Pragma, None)
            }
            (Self::Unread | Self::Other, _) => (Self::Other, None),
            (Self::Vacuum, ConfinementToken::Word) if text.eq_ignore_ascii_case(b"INTO") => {
                (Self::Vacuum, Some(ForbiddenKind::VacuumInto))
            }
            (Self::Vacuum, _) => (self, None),
            (Self::Pragma, ConfinementToken::Word | ConfinementToken::Quoted) => {
                (self, process_pragma(text))
            }
            (Self::Pragma, ConfinementToken::Other) => (self, None),
        }
    }
}

/// A name may be quoted in four ways. These names contain nothing that needs doubling, so removing
/// the quotes suffices.
fn process_pragma(text: &[u8]) -> Option<ForbiddenKind> {
    let is_quote = |byte: &u8| b"'\"`[]".contains(byte);
    let name: Vec<u8> = text.iter().filter(|byte| !is_quote(byte)).copied().collect();
    let found =
        PROCESS_PRAGMAS.into_iter().find(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    found.map(ForbiddenKind::ProcessPragma)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConfinementToken {
    /// White space or a comment.
    Blank,
    Semicolon,
    /// A keyword or a bare name.
    Word,
    /// A string or a quoted name.
    Quoted,
    /// A number, a variable, a mark.
    Other,
}

/// Whether a byte may be part of a name: SQLite's `IdChar`.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// SQLite's `isspace`, which includes the vertical tab; `is_ascii_whitespace` does not.
fn is_space(byte: u8) -> bool {
    byte == 0x0b || byte.is_ascii_whitespace()
}

/// The token at `at`, which is inside `text`, and its end. Of two readings the one that allows more
/// statements to begin is used: a vertical tab and NUL, at which SQLite fails, are a space and a
/// semicolon.
fn next_token(text: &[u8], at: usize) -> (ConfinementToken, usize) {
    let rest = &text[at..];
    let (token, length) = match rest[0] {
        0 | b';' => (ConfinementToken::Semicolon, 1),
        byte if is_space(byte) => (ConfinementToken::Blank, length_while(rest, is_space)),
        b'-' if rest.starts_with(b"--") => {
            (ConfinementToken::Blank, length_while(rest, |b| b != b'\n'))
        }
        b'/' if rest.starts_with(b"/*") && rest.len() > 2 => {
            (ConfinementToken::Blank, comment_length(rest))
        }
        quote @ (b'\'' | b'"' | b'`') => (ConfinementToken::Quoted, quoted_length(rest, quote)),
        b'[' => {
            let end = rest.iter().position(|byte| *byte == b']');
            (ConfinementToken::Quoted, end.map_or(rest.len(), |end| end + 1))
        }
        b'$' | b'@' | b'#' | b':' => (ConfinementToken::Other, variable_length(rest)),
        b'x' | b'X' if rest.get(1) == Some(&b'\'') => {
            let end = rest[2..].iter().position(|byte| *byte == b'\'');
            (ConfinementToken::Quoted, end.map_or(rest.len(), |end| end + 3))
        }
        0xef if rest.starts_with(b"\xef\xbb\xbf") => (ConfinementToken::Blank, 3),
        byte if byte.is_ascii_digit() => {
            (ConfinementToken::Other, length_while(rest, is_name_byte))
        }
        byte if is_name_byte(byte) => (ConfinementToken::Word, length_while(rest, is_name_byte)),
        _ => (ConfinementToken::Other, 1),
    };
    (token, at + length)
}

fn length_while(rest: &[u8], fits: impl Fn(u8) -> bool) -> usize {
    rest.iter().take_while(|byte| fits(**byte)).count()
}

/// An unterminated comment extends to the end of the text.
fn comment_length(rest: &[u8]) -> usize {
    rest[2..].windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 4)
}

/// A doubled quote is part of the text.
fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        if rest[at] != quote {
            at += 1;
        } else if rest.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    rest.len()
}

/// `:name`, and Tcl's `$name::part(index)`: everything in those parentheses up to a space is part
/// of the token, including quotes and semicolons.
fn variable_length(rest: &[u8]) -> usize {
    let (mut at, mut named) = (1, false);
    while at < rest.len() {
        match rest[at] {
            byte if is_name_byte(byte) => named = true,
            b'(' if named => {
                let inside = length_while(&rest[at + 1..], |b| b != 0 && b != b')' && !is_space(b));
                let end = at + 1 + inside;
                return end + usize::from(rest.get(end) == Some(&b')'));
            }
            b':' if rest.get(at + 1) == Some(&b':') => at += 1,
            _ => break,
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_leave_the_file_are_found_with_their_line() {
        let pragma = ForbiddenKind::ProcessPragma;
        for (sql, line, kind) in [
            ("ATTACH 'x' AS y", 1, ForbiddenKind::Attach),
            ("SELECT 1;\n\n/* a */ attach\ndatabase 'x' AS y", 3, ForbiddenKind::Attach),
            ("--\n \u{b}ATTACH 'x' AS y", 2, ForbiddenKind::Attach),
            ("\u{feff}ATTACH 'x' AS y", 1, ForbiddenKind::Attach),
            ("SELECT ';'; ATTACH 'x' AS y", 1, ForbiddenKind::Attach),
            ("SELECT $a('); ATTACH 'x' AS y; --'", 1, ForbiddenKind::Attach),
            ("SELECT 1 /*/ ; */; ATTACH 'x' AS y", 1, ForbiddenKind::Attach),
            ("SELECT [a;'b]; ATTACH 'x' AS y", 1, ForbiddenKind::Attach),
            ("SELECT 1\0ATTACH 'x' AS y", 1, ForbiddenKind::Attach),
            ("VACUUM INTO 'x'", 1, ForbiddenKind::VacuumInto),
            ("vacuum main -- all\n into 'x'", 1, ForbiddenKind::VacuumInto),
            ("PRAGMA temp_store_directory = '/x'", 1, pragma("temp_store_directory")),
            ("PRAGMA main.[Hard_Heap_Limit] = 1", 1, pragma("hard_heap_limit")),
            ("PRAGMA \"soft_heap_limit\"(1)", 1, pragma("soft_heap_limit")),
        ] {
            assert_eq!(
                find_forbidden_statement(sql),
                Some(ForbiddenStatement { line, kind }),
                "{sql}"
            );
        }
    }

    #[test]
    fn ordinary_statements_are_let_through() {
        for sql in [
            "",
            "SELECT 'ATTACH', \"VACUUM INTO\" FROM attach",
            "SELECT 1 -- ; ATTACH 'x' AS y",
            "SELECT '; ATTACH ''x'' AS y;'",
            "SELECT $a(;ATTACH)",
            "VACUUM; INSERT INTO t VALUES (1)",
            "VACUUM \"into\"",
            "PRAGMA foreign_keys = ON; SELECT hard_heap_limit FROM t",
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM b; INSERT INTO c VALUES (1); END",
            "SELECT /",
        ] {
            assert_eq!(find_forbidden_statement(sql), None, "{sql}");
        }
    }
}
