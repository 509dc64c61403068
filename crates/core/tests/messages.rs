//! The catalogue of Chinese messages against the sources: a message that was changed is noticed, and
//! most messages have a translation.

use procession_core::domain::text::lang::Lang;
use procession_core::domain::text::translation::{catalogue_entries, translate};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A clause is joined with so many that follow it.
const JOINED: usize = 9;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources below a folder, without tests.
fn sources(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() && name != "tests" {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            found.push(without_tests(&text).to_owned());
        }
    }
    found
}

/// What stands before the module of tests at the end of a file.
fn without_tests(text: &str) -> &str {
    let is_module = |at: &usize| {
        let line = text[*at..].split('\n').find(|line| line.starts_with("mod "));
        line.is_some_and(|line| line.ends_with('{'))
    };
    let end = text.match_indices("\n#[cfg(test)]\n").map(|(at, _)| at).find(is_module);
    &text[..end.unwrap_or(text.len())]
}

/// The string literals of a source, with their escapes resolved and line breaks joined.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, here) = rest.split_at(at);
        rest = match here.as_bytes() {
            [b'/', b'/', ..] => here.split_once('\n').map_or("", |(_, after)| after),
            [b'"', ..] => match raw_hashes(before) {
                Some(hashes) => {
                    let end = format!("\"{hashes}");
                    let (text, after) = here[1..].split_once(&end).unwrap_or((&here[1..], ""));
                    found.push(text.to_owned());
                    after
                }
                None => {
                    let (text, after) = unescape(&here[1..]);
                    found.push(text);
                    after
                }
            },
            // A character; else a lifetime.
            [b'\'', b'\\', ..] => here[2..].find('\'').map_or("", |end| &here[end + 3..]),
            [b'\'', ..] => {
                let mut letters = here[1..].char_indices().skip(1);
                match letters.next() {
                    Some((end, '\'')) => &here[1 + end + 1..],
                    _ => &here[1..],
                }
            }
            _ => &here[1..],
        };
    }
    found
}

/// The hashes of a raw literal that begins behind this text.
fn raw_hashes(before: &str) -> Option<&str> {
    let start = before.trim_end_matches('#').len();
    let is_raw = before[..start].strip_suffix('r').is_some_and(|head| {
        !head.ends_with(|c: char| c.is_alphanumeric() || c == '_') || head.ends_with(['b', 'c'])
    });
    is_raw.then(|| &before[start..])
}

fn unescape(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (out, &text[at + 1..]),
            '\\' => match letters.next().map(|(_, c)| c) {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('\n') => {
                    let behind = letters.as_str().trim_start();
                    letters = text[text.len() - behind.len()..].char_indices();
                    let (more, after) = unescape(letters.as_str());
                    out.push_str(&more);
                    return (out, after);
                }
                Some('u') => {
                    let code: String =
                        letters.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
                    let code = u32::from_str_radix(code.trim_start_matches('{'), 16);
                    out.extend(code.ok().and_then(char::from_u32));
                }
                Some(other) => out.push(other),
                None => break,
            },
            other => out.push(other),
        }
    }
    (out, "")
}

/// The text with `{}` for each placeholder, as the catalogue has it.
fn with_placeholders(literal: &str) -> String {
    // Braces that are text, while placeholders are looked for.
    const OPEN: char = '\u{1}';
    const CLOSE: char = '\u{2}';
    let mut out = String::new();
    let mut letters = literal.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('{', Some('{')) => {
                letters.next();
                out.push(OPEN);
            }
            ('}', Some('}')) => {
                letters.next();
                out.push(CLOSE);
            }
            ('{', _) => {
                letters.by_ref().find(|c| *c == '}');
                out.push_str("{}");
            }
            _ => out.push(letter),
        }
    }
    for (from, to) in [("\u{1}{}\u{2}", "{}"), ("\u{1}{}", "{}"), ("{}\u{2}", "{}")] {
        out = out.replace(from, to);
    }
    while out.contains("{}{}") {
        out = out.replace("{}{}", "{}");
    }
    out.replace(OPEN, "{").replace(CLOSE, "}")
}

/// Its clauses, each with the separator behind it.
fn clauses(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let (mut start, mut place) = (0, 0);
    while place < text.len() {
        let behind = &text[place..];
        let length = match behind.as_bytes() {
            [b';' | b':', b' ', ..] => 2,
            [b'\n', ..] => 1,
            [b'.', b' ', next, ..] if next.is_ascii_uppercase() => 2,
            _ => 0,
        };
        if length > 0 {
            found.push((&text[start..place], &behind[..length]));
            start = place + length;
            place = start;
        } else {
            place += behind.chars().next().map_or(1, char::len_utf8);
        }
    }
    found.push((&text[start..], ""));
    found
}

/// Without the placeholders and spaces at its ends, which another literal may fill.
fn bare(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let inner = text.strip_prefix("{}").unwrap_or(text);
        let inner = inner.strip_suffix("{}").unwrap_or(inner).trim();
        if inner.len() == text.len() {
            return text;
        }
        text = inner;
    }
}

/// Every run of clauses of the program's literals.
fn messages_of_the_program() -> HashSet<String> {
    let mut all = HashSet::new();
    for source in
        sources(&root().join("src")).iter().chain(&sources(&root().join("crates/core/src")))
    {
        for literal in literals(source) {
            let text = with_placeholders(&literal);
            let clauses = clauses(&text);
            for first in 0..clauses.len() {
                let mut joined = String::new();
                for (clause, separator) in clauses[first..].iter().take(JOINED) {
                    joined.push_str(clause);
                    all.insert(bare(&joined).to_owned());
                    all.insert(bare(joined.trim_end_matches(':')).to_owned());
                    joined.push_str(separator);
                }
            }
        }
    }
    all
}

#[test]
fn every_translated_message_is_one_of_the_program() {
    let program = messages_of_the_program();
    assert!(program.len() > 10_000, "only {} texts were found in the sources", program.len());
    let gone: Vec<String> = catalogue_entries()
        .filter(|entry| !program.contains(bare(entry.english)))
        .map(|entry| {
            format!(
                "messages/{}.zh.tsv:{}: no source says `{}`; change the line with the message",
                entry.topic, entry.line, entry.english
            )
        })
        .collect();
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

#[test]
fn a_message_is_translated_once_and_with_all_its_values() {
    let mut known: HashMap<&str, String> = HashMap::new();
    let mut wrong = Vec::new();
    for entry in catalogue_entries() {
        let place = format!("messages/{}.zh.tsv:{}", entry.topic, entry.line);
        if let Some(before) = known.insert(entry.english, place.clone()) {
            wrong.push(format!("{place}: `{}` is translated in {before} too", entry.english));
        }
        // Each placeholder with a value of its own, which the translation has to hold.
        let mut text = String::new();
        let parts: Vec<&str> = entry.english.split("{}").collect();
        for (number, part) in parts.iter().enumerate() {
            text.push_str(part);
            if number + 1 < parts.len() {
                text.push_str(&format!("V{number}X"));
            }
        }
        let translated = translate(&text, Lang::Zh);
        let holds_all = (0..parts.len() - 1).all(|n| translated.contains(&format!("V{n}X")));
        if translated == text || !holds_all {
            wrong.push(format!("{place}: `{text}` becomes `{translated}`"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The faults of definitions are what a user meets first: nearly all are translated.
#[test]
fn faults_of_definitions_are_translated() {
    let mut all = 0;
    let mut missing = Vec::new();
    for source in faults_of(&root().join("crates/core/src/definition")) {
        for literal in source {
            let text = with_placeholders(&literal);
            for (clause, _) in clauses(&text) {
                let words = clause
                    .split(' ')
                    .filter(|w| w.len() > 1 && w.bytes().all(|b| b.is_ascii_lowercase()));
                if words.count() < 2 {
                    continue;
                }
                all += 1;
                let filled = clause.replace("{}", "V1X");
                if translate(&text.replace("{}", "V1X"), Lang::Zh).contains(filled.trim()) {
                    missing.push(clause.to_owned());
                }
            }
        }
    }
    let share = 100 * (all - missing.len()) / all.max(1);
    assert!(all > 400, "only {all} clauses of faults were found");
    assert!(
        share >= 90,
        "{share} % of {all} have a translation; without one:\n{}",
        missing.join("\n")
    );
}

/// The literals of the sources that report faults.
fn faults_of(folder: &Path) -> Vec<Vec<String>> {
    let reports = |source: &&String| source.contains("fault(") || source.contains("add_warning(");
    let is_schema = |source: &&String| !source.contains("JSON Schema");
    sources(folder).iter().filter(reports).filter(is_schema).map(|s| literals(s)).collect()
}
