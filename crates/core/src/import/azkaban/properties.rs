//! Parses a Java properties file, keeping the line of each key.

/// A key with its value and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::import) struct Property {
    pub(in crate::import) key: String,
    pub(in crate::import) value: String,
    pub(in crate::import) line: u64,
}

/// Parses a text; of repeated keys the last one counts, as in Java.
pub(in crate::import) fn properties(text: &str) -> Vec<Property> {
    let mut found: Vec<Property> = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((line, first)) = lines.next() {
        let start = first.trim_start();
        if start.is_empty() || start.starts_with(['#', '!']) {
            continue;
        }
        let mut whole = start.to_owned();
        while ends_open(&whole) {
            whole.pop();
            let Some((_, more)) = lines.next() else { break };
            whole.push_str(more.trim_start());
        }
        let (key, value) = split(&whole);
        found.retain(|p| p.key != key);
        found.push(Property { key, value, line });
    }
    found
}

/// Whether a line continues on the next: it ends with an odd number of backslashes.
fn ends_open(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// Key and value, separated by the first unescaped `=`, `:` or blank.
fn split(line: &str) -> (String, String) {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, c)| {
        let parts = !escaped && (matches!(c, '=' | ':') || c.is_whitespace());
        escaped = !escaped && *c == '\\';
        parts
    });
    let Some((at, _)) = end else { return (plain(line), String::new()) };
    let rest = line[at..].trim_start();
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (plain(&line[..at]), plain(rest.trim_start()).trim_end().to_owned())
}

/// Removes the escapes.
fn plain(text: &str) -> String {
    let mut made = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            made.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => made.push('\n'),
            Some('t') => made.push('\t'),
            Some('r') => made.push('\r'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                made.push(code.unwrap_or('\u{FFFD}'));
            }
            Some(other) => made.push(other),
            None => {}
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_java_reads_them() {
        let text = "# x\n! y\ntype=command\ncommand = echo a=b \\\n    c\nk\\=1: v\nempty\nzh=\\u6708\\u672b\n\
                    type = noop\n";
        let found: Vec<(String, String, u64)> =
            properties(text).into_iter().map(|p| (p.key, p.value, p.line)).collect();
        let wanted = [
            ("command", "echo a=b c", 4),
            ("k=1", "v", 6),
            ("empty", "", 7),
            ("zh", "月末", 8),
            ("type", "noop", 9),
        ];
        let wanted: Vec<(String, String, u64)> =
            wanted.iter().map(|(k, v, l)| ((*k).to_owned(), (*v).to_owned(), *l)).collect();
        assert_eq!(found, wanted);
    }
}
