//! The pages in Chinese keep in step with their English originals.
//!
//! The prose is the translator's. What must agree is what a reader looks up, types or follows: headings, fenced
//! blocks without their comments, rows of tables, names in code, and links.

use super::site::{anchors, links, markdown_under, prose, read, resolve};
use std::collections::BTreeSet;
use std::path::Path;

const FOLDER: &str = "docs/zh";

/// A part of a page, from one heading to the next.
#[derive(Default)]
struct Section {
    /// With its number signs; empty above the first heading.
    heading: String,
    blocks: Vec<CodeBlock>,
    /// All lines outside of fenced blocks but the one that leads to the other language.
    text: String,
}

struct CodeBlock {
    language: String,
    lines: Vec<String>,
}

impl Section {
    fn level(&self) -> usize {
        self.heading.chars().take_while(|c| *c == '#').count()
    }

    fn rows(&self) -> Vec<&str> {
        self.text.lines().filter(|line| line.starts_with('|')).collect()
    }

    fn languages(&self) -> Vec<&str> {
        self.blocks.iter().map(|block| block.language.as_str()).collect()
    }
}

impl CodeBlock {
    /// What a reader types or saves. Comments, and outputs of commands, are in the reader's language.
    fn typed(&self) -> Vec<String> {
        let mark = if self.language.starts_with("sql") { "-- " } else { "# " };
        match self.language.as_str() {
            "console" => self.lines.iter().filter(|line| line.starts_with("$ ")).cloned().collect(),
            "text" => vec![format!("{} lines", self.lines.len())],
            _ => self.lines.iter().map(|line| without_comment(line, mark).to_owned()).collect(),
        }
    }
}

fn without_comment<'a>(line: &'a str, mark: &str) -> &'a str {
    if line.trim_start().starts_with(mark) {
        return "";
    }
    let end = line.find(&format!(" {mark}")).unwrap_or(line.len());
    line[..end].trim_end()
}

fn sections(page: &str) -> Vec<Section> {
    let mut sections = vec![Section::default()];
    let mut open: Option<CodeBlock> = None;
    for line in page.lines() {
        let last = sections.last_mut().expect("the first is there");
        if let Some(language) = line.trim_start().strip_prefix("```") {
            match open.take() {
                None => {
                    open = Some(CodeBlock { language: language.to_owned(), lines: Vec::new() });
                }
                Some(block) => last.blocks.push(block),
            }
        } else if let Some(block) = &mut open {
            block.lines.push(line.to_owned());
        } else if line.starts_with('#') {
            sections.push(Section { heading: line.to_owned(), ..Section::default() });
        } else if !line.starts_with("中文版见[") && !line.starts_with("English: [") {
            last.text.push_str(line);
            last.text.push('\n');
        }
    }
    sections
}

/// The code between back-ticks, which is the same in both languages. Its order may differ.
fn code_spans(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Those of the code spans that are a name: a key, a setting, a table, a command. Others may hold placeholders, which
/// are in the reader's language.
fn names(text: &str) -> BTreeSet<&str> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.- ".contains(c);
    let is_name = |span: &&str| span.chars().all(is_plain);
    code_spans(text).into_iter().filter(is_name).collect()
}

fn cells(row: &str) -> usize {
    row.replace("\\|", "").matches('|').count()
}

/// The translation of a page of the repository, where there is one.
fn chinese_page(page: &str) -> Option<String> {
    if page == "README.md" {
        return Some("README.zh.md".to_owned());
    }
    let name = page.strip_prefix("docs/").filter(|name| !name.contains('/'))?;
    let chinese = format!("{FOLDER}/{name}");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(&chinese).is_file().then_some(chinese)
}

/// Where a link leads, from the root of the repository, with the heading.
fn target_of(page: &str, link: &str) -> (String, String) {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = if file.is_empty() { page.to_owned() } else { resolve(page, file) };
    (file, anchor.to_owned())
}

/// Where the translation of a link must lead: to the Chinese page and its heading at the same place.
fn translated_target(page: &str, link: &str) -> String {
    let (file, anchor) = target_of(page, link);
    let Some(chinese) = chinese_page(&file) else { return format!("{file}#{anchor}") };
    let place = anchors(&read(&file)).iter().position(|found| *found == anchor);
    let heading = place.and_then(|at| anchors(&read(&chinese)).get(at).cloned());
    format!("{chinese}#{}", heading.unwrap_or_default())
}

/// What of a translation differs from its original, with the headings where it does.
fn differences(english: &str, chinese: &str) -> Vec<String> {
    let (originals, translations) = (sections(&read(english)), sections(&read(chinese)));
    let mut found = Vec::new();
    for (original, translation) in originals.iter().zip(&translations) {
        let place = format!("{chinese}: {:?}", translation.heading);
        if original.level() != translation.level() {
            found.push(format!("{place} stands where {english} has {:?}", original.heading));
            return found;
        }
        compare_blocks(original, translation, &place, &mut found);
        compare_rows(original, translation, &place, &mut found);
        let (wanted, has) = (names(&original.text), names(&translation.text));
        if wanted != has {
            let differ: Vec<&&str> = wanted.symmetric_difference(&has).collect();
            found.push(format!("{place}: only one language names {differ:?}"));
        }
        let mut wanted: Vec<String> =
            links(&original.text).iter().map(|link| translated_target(english, link)).collect();
        let mut has: Vec<String> = links(&translation.text)
            .iter()
            .map(|link| target_of(chinese, link))
            .map(|(file, anchor)| format!("{file}#{anchor}"))
            .collect();
        wanted.sort();
        has.sort();
        if wanted != has {
            found.push(format!("{place}: links lead to {has:?}, must lead to {wanted:?}"));
        }
    }
    if originals.len() != translations.len() {
        found.push(format!(
            "{chinese}: {} headings, {english} has {}",
            translations.len() - 1,
            originals.len() - 1
        ));
    }
    found
}

fn compare_blocks(original: &Section, translation: &Section, place: &str, found: &mut Vec<String>) {
    let (wanted, has) = (original.languages(), translation.languages());
    if wanted != has {
        found.push(format!("{place}: fenced blocks of {has:?}, must be {wanted:?}"));
        return;
    }
    for (original, translation) in original.blocks.iter().zip(&translation.blocks) {
        let (wanted, has) = (original.typed(), translation.typed());
        let at = wanted.iter().zip(&has).take_while(|(a, b)| a == b).count();
        if wanted != has {
            let line = |lines: &[String]| lines.get(at).cloned().unwrap_or("(end)".to_owned());
            found.push(format!(
                "{place}: a block of {:?} has {:?}, must have {:?}",
                original.language,
                line(&has),
                line(&wanted)
            ));
        }
    }
}

fn compare_rows(original: &Section, translation: &Section, place: &str, found: &mut Vec<String>) {
    let (wanted, has) = (original.rows(), translation.rows());
    if wanted.len() != has.len() {
        found.push(format!("{place}: {} rows of tables, must be {}", has.len(), wanted.len()));
        return;
    }
    for (original, translation) in wanted.into_iter().zip(has) {
        let (code, translated) = (code_spans(original), code_spans(translation));
        if code != translated || cells(original) != cells(translation) {
            let differ: Vec<&&str> = code.symmetric_difference(&translated).collect();
            found.push(format!("{place}: {translation}\n  differs in {differ:?} from {original}"));
        }
    }
}

/// Each page in Chinese and the English page of the same name.
fn translations() -> Vec<(String, String)> {
    let pages = markdown_under(FOLDER);
    assert!(pages.len() > 30, "only {} pages in Chinese were found", pages.len());
    pages.into_iter().map(|chinese| (chinese.replacen(FOLDER, "docs", 1), chinese)).collect()
}

#[test]
fn translations_agree_with_their_originals() {
    let pages = translations();
    let found: Vec<String> =
        pages.iter().flat_map(|(english, chinese)| differences(english, chinese)).collect();
    assert!(
        found.is_empty(),
        "change the page in Chinese with its original:\n{}",
        found.join("\n")
    );
}

#[test]
fn each_language_leads_to_the_other() {
    for (english, chinese) in translations() {
        let leads = |page: &str, other: &str| {
            links(&read(page)).iter().any(|link| target_of(page, link).0 == other)
        };
        assert!(leads(&english, &chinese), "{english} has no link to {chinese}");
        assert!(leads(&chinese, &english), "{chinese} has no link to {english}");
    }
}

/// Punctuation between or after Chinese words is full-width.
#[test]
fn chinese_has_full_width_punctuation() {
    let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let mut found = Vec::new();
    for (_, chinese) in translations() {
        let text = prose(&read(&chinese));
        // Marks of the walk-through are for a program.
        for line in text.lines().filter(|line| !line.starts_with("<!--")) {
            let mut pairs = line.chars().zip(line.chars().skip(1));
            if pairs.any(|(a, b)| is_han(a) && ",;:!?".contains(b)) {
                found.push(format!("{chinese}: {line}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_are_not_compared_and_all_else_is() {
    assert_eq!(without_comment("a: 1   # one", "# "), "a: 1");
    assert_eq!(without_comment("    # alone", "# "), "");
    assert_eq!(without_comment("a: \"#1\"", "# "), "a: \"#1\"");
    let block = |text: &str| CodeBlock {
        language: "yaml".to_owned(),
        lines: text.lines().map(str::to_owned).collect(),
    };
    assert_eq!(block("a: 1 # one").typed(), block("a: 1 # 一").typed());
    assert_ne!(block("a: 1").typed(), block("a: 2").typed());
}
