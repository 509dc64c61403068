//! Formats a tree of values as YAML or JSON text for human readers.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_saphyr::{DoubleQuoted, FlowMap, FlowSeq};

/// Maximum length of a list or map on one line, in characters.
const LINE: usize = 90;

/// The formats of a definition file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionFormat {
    /// YAML, with long texts as block scalars.
    Yaml,
    /// JSON.
    Json,
}

/// A value to be formatted. A map keeps its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Plain(serde_json::Value),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// Formats a tree. Characters that a terminal would interpret are escaped, so that the displayed text equals the stored
/// one.
pub(crate) fn write_text(tree: &Tree, format: DefinitionFormat) -> Result<String, String> {
    let text = match format {
        DefinitionFormat::Yaml => {
            let options = serde_saphyr::ser_options! {
                prefer_block_scalars: true,
                // Folding would hide where a line of SQL really ends.
                folded_wrap_chars: usize::MAX,
                min_fold_chars: usize::MAX,
            };
            let mut text = String::new();
            serde_saphyr::to_fmt_writer_with_options(&mut text, &Styled(tree), options)
                .map_err(|e| e.to_string())?;
            text
        }
        DefinitionFormat::Json => {
            serde_json::to_string_pretty(&Styled(tree)).map_err(|e| e.to_string())? + "\n"
        }
    };
    Ok(escaped(&text))
}

/// The text that `escaped` inserts is between double quotes, where the escape has the same meaning.
fn escaped(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) { said.push_str(&format!("\\u{:04x}", u32::from(c))) } else { said.push(c) }
    }
    said
}

/// Control characters, bidirectional controls and invisible characters.
fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

struct Styled<'a>(&'a Tree);

impl Serialize for Styled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Tree::Plain(value) => value.serialize(serializer),
            Tree::Text(text) if text.contains(is_obeyed) => {
                DoubleQuoted(text).serialize(serializer)
            }
            Tree::Text(text) => serializer.serialize_str(text),
            Tree::List(items) if fits_line(self.0) => {
                FlowSeq(items.iter().map(Styled).collect::<Vec<_>>()).serialize(serializer)
            }
            Tree::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(&ListItem(item)))?;
                list.end()
            }
            Tree::Map(_) => Block(self.0).serialize(serializer),
        }
    }
}

/// A list item: a small map is written on its line.
struct ListItem<'a>(&'a Tree);

impl Serialize for ListItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if matches!(self.0, Tree::Map(_)) && fits_line(self.0) {
            return FlowMap(Block(self.0)).serialize(serializer);
        }
        Styled(self.0).serialize(serializer)
    }
}

/// A map with one entry per line.
struct Block<'a>(&'a Tree);

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = match self.0 {
            Tree::Map(entries) => entries.as_slice(),
            Tree::Plain(_) | Tree::Text(_) | Tree::List(_) => &[],
        };
        let mut map = serializer.serialize_map(Some(entries.len()))?;
        entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, &Styled(value)))?;
        map.end()
    }
}

/// Whether a list or map of single values fits on one line.
fn fits_line(tree: &Tree) -> bool {
    length(tree, 1).is_some_and(|length| length <= LINE)
}

fn length(tree: &Tree, levels: usize) -> Option<usize> {
    match tree {
        Tree::Plain(value) => Some(value.to_string().len()),
        Tree::Text(text) if text.contains('\n') => None,
        Tree::Text(text) => Some(text.chars().count()),
        Tree::List(_) | Tree::Map(_) if levels == 0 => None,
        Tree::List(items) => items.iter().map(|i| Some(length(i, levels - 1)? + 2)).sum(),
        Tree::Map(entries) => {
            let one =
                |(k, v): &(String, Tree)| Some(k.chars().count() + length(v, levels - 1)? + 4);
            entries.iter().map(one).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::fault::FaultReport;
    use crate::definition::node::{NodeValue, SourceNode, parse};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn read(text: &str) -> SourceNode {
        let mut report = FaultReport::default();
        let node = parse(&Arc::from("x.yaml"), text, &mut report);
        report.finish().unwrap_or_else(|e| panic!("{e}\n{text}"));
        node.expect("no fault, so a tree")
    }

    fn value_of(text: &str, format: DefinitionFormat) -> Tree {
        let inner = Tree::Map(vec![("k".to_owned(), Tree::Text(text.to_owned()))]);
        let list = Tree::List(vec![Tree::Text(text.to_owned()), inner.clone()]);
        let tree = Tree::Map(vec![("a".to_owned(), list), ("b".to_owned(), inner)]);
        let written = super::write_text(&tree, format).expect("written");
        assert!(!written.contains(is_obeyed), "{written:?}");
        back(&read(&written))
    }

    fn back(node: &SourceNode) -> Tree {
        match &node.value {
            NodeValue::Null => Tree::Plain(serde_json::Value::Null),
            NodeValue::Text(text) => Tree::Text(text.clone()),
            NodeValue::List(items) => Tree::List(items.iter().map(back).collect()),
            NodeValue::Map(all) => {
                Tree::Map(all.iter().map(|(k, v)| (k.value.clone(), back(v))).collect())
            }
        }
    }

    fn assert_survives(text: &str, format: DefinitionFormat) {
        let inner = Tree::Map(vec![("k".to_owned(), Tree::Text(text.to_owned()))]);
        let list = Tree::List(vec![Tree::Text(text.to_owned()), inner.clone()]);
        let wanted = Tree::Map(vec![("a".to_owned(), list), ("b".to_owned(), inner)]);
        assert_eq!(value_of(text, format), wanted, "{text:?} as {format:?}");
    }

    #[test]
    fn texts_that_yaml_likes_to_spoil_survive() {
        for text in [
            "",
            " ",
            "\n",
            "\n\n",
            " \n",
            "no",
            "NO",
            "007",
            "1e3",
            "~",
            "null",
            "22:30",
            "0x1F",
            "-",
            "- a",
            "a: b",
            "a #b",
            "#",
            "|",
            ">",
            "&a",
            "*a",
            "!x",
            "%x",
            "@x",
            "`x`",
            "{x",
            "[x",
            "it's",
            "\"q\"",
            "\\n",
            "a\r\nb\r\n",
            "a\rb",
            "\ta\n",
            "a\t",
            " a\n b\n",
            "a\n  \n",
            "a\n\n\n",
            "a\nb",
            "\u{FEFF}a",
            "a\u{85}b",
            "a\u{2028}b\n",
            "\u{1b}[31m",
            "a\u{202e}b\nc",
            "\u{0}",
            "月末\n结账 🧾\n",
            "---\n",
            "...\n",
            "? a",
            "<<",
            "=",
            "${batch_no}",
            "a\u{200B}b",
            "\u{7f}",
            "\u{9f}x\ny",
        ] {
            assert_survives(text, DefinitionFormat::Yaml);
            assert_survives(text, DefinitionFormat::Json);
        }
    }

    #[test]
    fn it_is_what_a_person_would_write() {
        let text = |t: &str| Tree::Text(t.to_owned());
        let map = |entries: Vec<(&str, Tree)>| {
            Tree::Map(entries.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
        };
        let params = Tree::List(vec![map(vec![("name", text("p")), ("value", text("007"))])]);
        let job = map(vec![
            ("timeout_sec", Tree::Plain(60.into())),
            ("depends_on", Tree::List(vec![text("A"), text("B")])),
            ("params", params),
            ("sql", text("SELECT 1;\n  -- 月末\nSELECT 2;\n")),
        ]);
        let tree = map(vec![("jobs", map(vec![("C", job)]))]);
        let wanted = "\
jobs:
  C:
    timeout_sec: 60
    depends_on: [A, B]
    params:
    - {name: p, value: \"007\"}
    sql: |
      SELECT 1;
        -- 月末
      SELECT 2;
";
        assert_eq!(super::write_text(&tree, DefinitionFormat::Yaml).as_deref(), Ok(wanted));
    }

    proptest! {
        #[test]
        fn any_text_survives(text: String) {
            assert_survives(&text, DefinitionFormat::Yaml);
            assert_survives(&text, DefinitionFormat::Json);
        }

        #[test]
        fn any_text_of_hard_characters_survives(
            text in "[ \\n\\r\\t:#'\"|>&*!%@`{}\\[\\],?\\-~\\\\a0-9\u{85}\u{2028}\u{feff}月]{0,24}"
        ) {
            assert_survives(&text, DefinitionFormat::Yaml);
        }
    }
}
