//! Cuts a message into its clauses.

/// What stands between two clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Separator {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The same in Chinese.
    pub(super) wide: &'static str,
}

/// The first separators of a line, at most so many. Those between quotes belong to a value.
pub(super) fn separators(line: &str, most: usize) -> Vec<Separator> {
    let bytes = line.as_bytes();
    let mut found = Vec::new();
    let mut place = 0;
    while place < bytes.len() && found.len() < most {
        if let Some(end) = end_of_quote(bytes, place) {
            place = end;
            continue;
        }
        let wide = match (bytes[place], bytes.get(place + 1)) {
            (b':', Some(b' ')) => "：",
            (b';', Some(b' ')) => "；",
            (b'.', Some(b' ')) if bytes.get(place + 2).is_some_and(u8::is_ascii_uppercase) => "。",
            _ => {
                place += 1;
                continue;
            }
        };
        // Nothing before it, or nothing behind it: it belongs to what is there.
        if place > 0 && place + 2 < bytes.len() {
            found.push(Separator { start: place, end: place + 2, wide });
        }
        place += 2;
    }
    found
}

/// The place behind a quoted text that begins here; an apostrophe within a word begins none.
fn end_of_quote(bytes: &[u8], start: usize) -> Option<usize> {
    /// A longer one is no name or value, and a search for its end would be repeated too often.
    const LONGEST: usize = 300;
    let quote = *bytes.get(start).filter(|b| matches!(b, b'\'' | b'"' | b'`'))?;
    if start > 0 && is_of_word(bytes[start - 1]) {
        return None;
    }
    let is_end =
        |at: usize| bytes[at] == quote && bytes.get(at + 1).is_none_or(|next| !is_of_word(*next));
    (start + 1..bytes.len().min(start + LONGEST)).find(|at| is_end(*at)).map(|at| at + 1)
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// Whether what follows this clause is the text of others: `error 1146 (42S02)`, `error 42P01` and
/// the server's words, `exit code 3` and the last line of a script.
pub(super) fn is_foreign_head(clause: &str) -> bool {
    let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    if let Some(at) = clause.rfind("exit code ") {
        return is_digits(&clause[at + "exit code ".len()..]);
    }
    let Some(at) = clause.rfind("error ") else { return false };
    let is_code = |word: &str| {
        word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
            && word.bytes().any(|b| b.is_ascii_digit())
    };
    let mut words = clause[at + "error ".len()..].split(' ');
    let number = words.next().is_some_and(is_code);
    let state = words.next().is_none_or(|word| {
        word.strip_prefix('(').and_then(|w| w.strip_suffix(')')).is_some_and(is_code)
    });
    number && state && words.next().is_none()
}
