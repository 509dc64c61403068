//! Reads Rust as far as the rules of the architecture need it: no comments, no literals, no tests.

/// What follows each place where `word` stands as a whole word.
pub(super) fn after<'a>(code: &'a str, word: &str) -> Vec<&'a str> {
    code.match_indices(word)
        .filter(|(at, _)| !code[..*at].ends_with(|c| is_name(c) || c == '$'))
        .map(|(at, _)| &code[at + word.len()..])
        .filter(|rest| !(word.ends_with(is_name) && rest.starts_with(is_name)))
        .collect()
}

pub(super) fn first_word(code: &str) -> &str {
    &code[..code.find(|c| !is_name(c)).unwrap_or(code.len())]
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text with comments and the insides of literals blanked; lines stay where they are.
pub(super) fn code_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let blank = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => literal(rest),
            'r' if !out.trim_end_matches('b').ends_with(is_name) => raw_literal(rest),
            '\'' => character(rest),
            _ => 0,
        };
        let taken = if blank == 0 { c.len_utf8() } else { blank };
        let (piece, left) = rest.split_at(taken);
        if blank == 0 {
            out.push(c);
        } else {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = left;
    }
    out
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn literal(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of a raw string that begins here, 0 when none does.
fn raw_literal(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|b| *b == b'#').count();
    if rest.as_bytes().get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = hashes + 2;
    rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len())
}

/// Length of a character literal that begins here, 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(0, |at| at + 4),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// `code` without the items that are marked `#[cfg(test)]`.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        let item = &rest[at..];
        let end = item_end(item);
        out.extend(item[..end].chars().filter(|c| *c == '\n'));
        rest = &item[end..];
    }
    out + rest
}

/// Where the item ends: at its closing brace, or at a semicolon before any brace.
fn item_end(item: &str) -> usize {
    let mut depth = 0;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// Lines of the file, comments included, without the lines of its tests.
pub(super) fn code_lines(text: &str, everything: &str, code: &str) -> usize {
    let filled = |s: &str| s.lines().map(|l| !l.trim().is_empty()).collect::<Vec<_>>();
    let (all, kept) = (filled(everything), filled(code));
    let in_tests = all.iter().zip(&kept).filter(|(all, kept)| **all && !**kept).count();
    text.lines().count() - in_tests
}

/// Every path of every `use`, with its braces multiplied out.
pub(super) fn use_paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in after(code, "use ") {
        let tree: String =
            rest.chars().take_while(|c| *c != ';').filter(|c| !c.is_whitespace()).collect();
        expand("", &tree, &mut found);
    }
    found
}

fn expand(before: &str, tree: &str, found: &mut Vec<String>) {
    let Some((head, group)) = tree.split_once('{') else {
        found.push(format!("{before}{tree}"));
        return;
    };
    let before = format!("{before}{head}");
    let mut depth = 0;
    let mut start = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                expand(&before, &group[start..at], found);
                start = at + 1;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}
