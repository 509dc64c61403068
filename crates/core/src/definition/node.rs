//! Parses a YAML or JSON text into a tree in which each value keeps its line and its original spelling.
//!
//! It does not use serde structs: a struct stops at the first unknown key or wrong type, so a user with ten mistakes
//! would need ten attempts. Scalars remain text (`007` is not 7, `NO` is not false); they are interpreted where the
//! expected type is known.

use crate::definition::budget::Limit;
use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::shape::{AT_LINE, line_of, parse_yaml};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DuplicateKeyPolicy, Error};
use std::sync::Arc;

/// A value with its place in the file.
#[derive(Clone, Debug)]
pub struct SourceNode {
    pub at: SourcePlace,
    pub value: NodeValue,
}

/// The content of a value.
#[derive(Clone, Debug)]
pub enum NodeValue {
    Null,
    Text(String),
    List(Vec<SourceNode>),
    Map(Vec<(Located<String>, SourceNode)>),
}

impl NodeValue {
    /// The kind as a word for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Text(_) => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl SourceNode {
    /// The number of values, including nested ones.
    pub fn count_values(&self) -> usize {
        match &self.value {
            NodeValue::Null | NodeValue::Text(_) => 1,
            NodeValue::List(items) => 1 + items.iter().map(Self::count_values).sum::<usize>(),
            NodeValue::Map(entries) => {
                1 + entries.iter().map(|(_, node)| node.count_values()).sum::<usize>()
            }
        }
    }

    pub fn from_text(at: &SourcePlace, text: impl Into<String>) -> Self {
        Self { at: at.clone(), value: NodeValue::Text(text.into()) }
    }
}

/// Parses `text`; returns `None` and reports a fault if it is not valid YAML.
pub fn parse(file: &Arc<str>, text: &str, report: &mut FaultReport) -> Option<SourceNode> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let whole = SourcePlace::new(file, 0);
    let bytes = report.add_bytes(text.len());
    if !report.is_within(Limit::Bytes, bytes, &whole) || !report.has_time(&whole) {
        return None;
    }
    let seen = match parse_yaml(text, DuplicateKeyPolicy::Error, report.budget()) {
        Err(error) => {
            report_error(file, &error, report);
            let again = matches!(error.without_snippet(), Error::DuplicateMappingKey { .. });
            // Parsing continues after a duplicate key, to find further faults.
            if again {
                parse_yaml(text, DuplicateKeyPolicy::FirstWins, report.budget()).ok()
            } else {
                None
            }
        }
        Ok(seen) => Some(seen),
    };
    seen.map(|s| s.into_node(file, text))
}

fn report_error(file: &Arc<str>, error: &Error, report: &mut FaultReport) {
    let line = error.location().map(|l| line_of(l.line())).or_else(|| line_in_text(error));
    let at = SourcePlace::new(file, line.unwrap_or(0));
    if let Error::DuplicateMappingKey { key, .. } = error.without_snippet() {
        let key = key.as_deref().map_or(String::new(), |k| format!("{k} "));
        report.fault(&at, format!("{key}is defined twice in the same map"), "keep one of the two");
        return;
    }
    if let Some(limit) = passed_limit(error) {
        report.refuse_beyond(limit, &at);
        return;
    }
    let said = error.without_snippet().to_string();
    // Our own line already starts with the location.
    let said = said.split(AT_LINE).next().unwrap_or(&said).replace('\n', " ");
    report.fault(
        &at,
        format!("this is not readable as YAML or JSON: {said}"),
        cure_of(text_hint(&said)),
    );
}

/// The line number in the text of an error.
fn line_in_text(error: &Error) -> Option<u32> {
    let said = error.without_snippet().to_string();
    let (_, line) = said.rsplit_once(AT_LINE)?;
    line.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The limit of the budget that a text exceeds. Inside a value, the parser passes on only the text of its error.
fn passed_limit(error: &Error) -> Option<Limit> {
    match error.without_snippet() {
        Error::AliasReplayLimitExceeded { .. } | Error::AliasReplayCounterOverflow { .. } => {
            return Some(Limit::Aliases);
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => return Some(Limit::Depth),
        Error::Budget {
            breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. }, ..
        } => return Some(Limit::Nodes),
        _ => {}
    }
    let said = error.without_snippet().to_string();
    let limits = [
        ("alias replay limit exceeded", Limit::Aliases),
        ("budget breached: Depth", Limit::Depth),
        ("budget breached: Nodes", Limit::Nodes),
        ("budget breached: Events", Limit::Nodes),
    ];
    limits.into_iter().find(|(text, _)| said.starts_with(text)).map(|(_, limit)| limit)
}

fn text_hint(said: &str) -> bool {
    said.contains("indent") || said.contains("tab")
}

fn cure_of(indentation: bool) -> &'static str {
    if indentation {
        "indent with spaces, the same number for keys of one map"
    } else {
        "check the indentation, the quotes and the colons of this line and the one above"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(node: &SourceNode) -> String {
        match &node.value {
            NodeValue::Null => "~".to_owned(),
            NodeValue::Text(text) => format!("{}:{text:?}", node.at.line),
            NodeValue::List(items) => {
                format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" "))
            }
            NodeValue::Map(entries) => {
                let entry = |(k, v): &(Located<String>, SourceNode)| {
                    format!("{}:{}={}", k.at.line, k.value, shown(v))
                };
                format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn tree(text: &str) -> Result<String, String> {
        let mut report = FaultReport::default();
        let node = parse(&Arc::from("dag.yaml"), text, &mut report);
        report.finish().map_err(|f| f.to_string())?;
        Ok(shown(&node.expect("no fault, so a tree")))
    }

    #[test]
    fn scalars_keep_their_spelling_and_line() {
        for (text, seen) in [
            ("a: 007\nb: NO\n", r#"{1:a=1:"007" 2:b=2:"NO"}"#),
            ("a: 1.50 # rate\nb: 22:30\nc: 0x1F\n", r#"{1:a=1:"1.50" 2:b=2:"22:30" 3:c=3:"0x1F"}"#),
            ("\u{FEFF}月: 1e999\nn: null\n", r#"{1:月=1:"1e999" 2:n=~}"#),
            ("x: &r 010\ny: *r\n", r#"{1:x=1:"010" 2:y=2:"010"}"#),
            (
                "b: &b {t: 00}\nc:\n  <<: *b\n  u: 'q'\n",
                r#"{1:b={1:t=1:"00"} 2:c={4:u=4:"q" 3:t=3:"00"}}"#,
            ),
            ("{\n\t\"a\": [1.0,\n\t\ttrue, \"中\"]\n}", r#"{2:a=[2:"1.0" 3:"true" 3:"中"]}"#),
            ("a: 007\r\nb: |\r\n  x\r\n  y\r\n", r#"{1:a=1:"007" 2:b=3:"x\ny\n"}"#),
            ("- ''\n- \"~\"\n- ~\n", r#"[1:"" 2:"~" ~]"#),
        ] {
            assert_eq!(tree(text).as_deref(), Ok(seen), "{text}");
        }
    }

    #[test]
    fn unreadable_text_names_its_line() {
        for (text, said) in [
            ("a: 1\na: 2\n", "dag.yaml:2: a is defined twice in the same map; keep one"),
            ("a: [1\nb: 2\n", "is not readable as YAML"),
            ("a:\n\t- x\n", "dag.yaml:2: "),
            ("a: 1\n---\nb: 1\n", "is not readable"),
            ("a: *nowhere\n", "dag.yaml:1: "),
            (
                "a: 1\n\"\": 2\n",
                "dag.yaml:2: this is not readable as YAML or JSON: a key is empty; ",
            ),
        ] {
            let fault = tree(text).expect_err(text);
            assert!(fault.contains(said), "{text:?}: {fault}");
        }
        let deep = "[".repeat(2_000);
        assert!(tree(&deep).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ -~\\n\\t:&*!{}\\[\\]<|>'\"\u{4e00}-\u{4e10}]{0,200}") {
            let _ = tree(&text);
        }
    }
}
