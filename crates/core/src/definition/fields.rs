//! Reads the keys of a map one by one, each checked for its type; reports unknown keys.

use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::near::nearest;
use crate::definition::node::{NodeValue, SourceNode};
use crate::domain::schedule::due::BadDue;
use chrono::NaiveTime;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Keys of other tools (Airflow, XXL-JOB, DolphinScheduler, cron, Compose) and our corresponding keys; of several, the
/// first that is valid in the context.
const OTHER_TOOLS: &[(&[&str], &[&str])] = &[
    (&["retries", "retry", "max_retries", "attempts", "fail_retry_times"], &["retry_count"]),
    (
        &["timeout", "timeouts", "timeout_seconds", "timeout_s", "execution_timeout"],
        &["timeout_sec", "batch_timeout_sec"],
    ),
    (&["retry_delay", "retry_interval", "fail_retry_interval"], &["retry_delay_sec"]),
    (
        &[
            "depends",
            "depend",
            "dependencies",
            "dependency",
            "upstream",
            "needs",
            "parents",
            "requires",
        ],
        &["depends_on"],
    ),
    (&["cmd", "command", "commands", "bash", "bash_command", "shell", "run", "exec"], &["script"]),
    (&["proc", "procedure", "procedure_name", "stored_procedure", "sp", "call"], &["proc_name"]),
    (&["query", "statement", "statements"], &["sql"]),
    (&["schedule", "schedule_interval", "crontab", "cron_expression"], &["cron", "schedule_time"]),
    (&["email", "emails", "mail", "alarm_email", "notify_emails"], &["notify_email"]),
    (&["concurrency", "max_active_tasks", "max_active_runs", "parallelism"], &["max_parallel"]),
    (&["env", "environment", "args", "arguments", "parameters", "variables"], &["params"]),
    (&["enabled", "active", "is_enabled"], &["is_active"]),
    (&["condition", "only_if"], &["if", "when"]),
    (&["description", "desc", "title", "label"], &["name"]),
    (
        &["datasource", "data_source", "connection", "conn", "conn_id", "db", "database"],
        &["source"],
    ),
    (&["timezone", "tz", "zone"], &["time_zone"]),
    (&["pool"], &["pools"]),
    (&["start_date"], &["start"]),
    (&["end_date"], &["end"]),
    (&["cwd", "workdir", "directory"], &["working_dir"]),
    (&["id", "task_id", "job_id"], &["code"]),
];

/// Our key for a key of another tool.
fn of_other_tools(word: &str, known: &[&str]) -> Option<&'static str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    let (_, ours) = OTHER_TOOLS.iter().find(|(theirs, _)| theirs.contains(&word.as_str()))?;
    ours.iter().copied().find(|key| known.contains(key))
}

/// The keys of one map that have not been read yet.
pub(crate) struct Fields<'r> {
    /// The owner of the map: `job FX_LOAD`.
    pub whose: String,
    pub at: SourcePlace,
    entries: Vec<(Located<String>, SourceNode)>,
    pub report: &'r mut FaultReport,
}

impl<'r> Fields<'r> {
    /// Opens the map `node`. Unknown keys are reported; those without a value count as absent.
    pub(crate) fn open_fields(
        whose: impl Into<String>,
        node: SourceNode,
        known: &[&str],
        report: &'r mut FaultReport,
    ) -> Self {
        let whose = whose.into();
        let mut entries = match node.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Null => Vec::new(),
            NodeValue::Text(_) | NodeValue::List(_) => {
                let what = format!("{whose} is {}, not a map", node.value.kind());
                report.fault(
                    &node.at,
                    what,
                    format!("write its keys below it: {}", known.join(", ")),
                );
                Vec::new()
            }
        };
        entries.retain(|(key, _)| {
            let fits = known.contains(&key.value.as_str());
            if !fits {
                let meant = of_other_tools(&key.value, known)
                    .or_else(|| nearest(&key.value, known.iter().copied()));
                let cure = match meant {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("known keys are {}", known.join(", ")),
                };
                report.fault(&key.at, format!("{whose} has an unknown key {}", key.value), cure);
            }
            fits
        });
        entries.retain(|(_, node)| !matches!(node.value, NodeValue::Null));
        Self { whose, at: node.at, entries, report }
    }

    /// The value of a key, of any form.
    pub(crate) fn take_node(&mut self, key: &str) -> Option<SourceNode> {
        let at = self.entries.iter().position(|(k, _)| k.value == key)?;
        Some(self.entries.swap_remove(at).1)
    }

    /// Whether a key is absent or already read.
    pub(crate) fn is_without(&self, key: &str) -> bool {
        self.entries.iter().all(|(k, _)| k.value != key)
    }

    /// A single value as text.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<Located<String>> {
        let node = self.take_node(key)?;
        single(&format!("{}: {key}", self.whose), node, self.report)
    }

    /// A single non-blank value.
    pub(crate) fn take_word(&mut self, key: &str) -> Option<Located<String>> {
        let text = self.take_text(key)?;
        if text.value.trim().is_empty() {
            let what = format!("{}: {key} is empty", self.whose);
            self.report.fault(&text.at, what, "give it a value or remove it");
            return None;
        }
        Some(text)
    }

    /// A single line of at most `max` characters, which fits its column and a terminal.
    pub(crate) fn take_line(&mut self, key: &str, max: usize) -> Option<Located<String>> {
        let word = self.take_word(key)?;
        let long = word.value.chars().count();
        let cure = if long > max {
            format!("shorten it to {max} characters; it has {long}")
        } else if word.value.chars().any(char::is_control) {
            "write it on one line, without tabs and other control characters".to_owned()
        } else {
            return Some(word);
        };
        let what = format!("{}: {key} is not a short line of text", self.whose);
        self.report.fault(&word.at, what, cure);
        None
    }

    /// A whole number within `range`.
    pub(crate) fn number<T>(&mut self, key: &str, range: RangeInclusive<T>) -> Option<Located<T>>
    where
        T: FromStr + PartialOrd + Display + Copy,
    {
        let text = self.take_text(key)?;
        let number = text.value.parse::<T>().ok().filter(|n| range.contains(n));
        if number.is_none() {
            let what = format!("{}: {key} is {:?}", self.whose, text.value);
            let cure = format!("use a whole number from {} to {}", range.start(), range.end());
            self.report.fault(&text.at, what, cure);
        }
        number.map(|n| text.with_value(n))
    }

    /// A boolean, in any spelling of YAML and spreadsheets.
    pub(crate) fn take_flag(&mut self, key: &str) -> Option<Located<bool>> {
        let text = self.take_text(key)?;
        let flag = match text.value.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "y" | "1" => Some(true),
            "false" | "no" | "off" | "n" | "0" => Some(false),
            _ => None,
        };
        if flag.is_none() {
            let what = format!("{}: {key} is {:?}", self.whose, text.value);
            self.report.fault(&text.at, what, "use true or false");
        }
        flag.map(|f| text.with_value(f))
    }

    /// A time of day.
    pub(crate) fn take_time(&mut self, key: &str) -> Option<Located<NaiveTime>> {
        let text = self.take_text(key)?;
        let time = time_of_day(&text.value);
        if time.is_none() {
            let what = format!("{}: {key} is {:?}, not a time of day", self.whose, text.value);
            self.report.fault(&text.at, what, "write HH:MM or HH:MM:SS, such as \"22:30\"");
        }
        time.map(|t| text.with_value(t))
    }

    /// A due time, or a factor.
    pub(crate) fn parsed<T: FromStr<Err = BadDue>>(&mut self, key: &str) -> Option<Located<T>> {
        let text = self.take_text(key)?;
        let parsed = text.value.parse::<T>();
        parsed
            .map_err(|error| {
                let what = format!("{}: {key}: {}", self.whose, error.what);
                self.report.fault(&text.at, what, error.cure);
            })
            .ok()
            .map(|value| text.with_value(value))
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<Located<T>> {
        let text = self.take_text(key)?;
        let found = words.iter().find(|(word, _)| *word == text.value.to_ascii_lowercase());
        if found.is_none() {
            let what = format!("{}: {key} is {:?}", self.whose, text.value);
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.report.fault(&text.at, what, format!("use one of {}", known.join(", ")));
        }
        found.map(|(_, value)| text.with_value(*value))
    }

    /// A list of texts; a single text counts as a list of one.
    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<Located<String>>> {
        let node = self.take_node(key)?;
        let whose = format!("{}: {key}", self.whose);
        let items = match node.value {
            NodeValue::List(items) => items,
            value @ (NodeValue::Text(_) | NodeValue::Map(_) | NodeValue::Null) => {
                vec![SourceNode { at: node.at, value }]
            }
        };
        Some(items.into_iter().filter_map(|item| single(&whose, item, self.report)).collect())
    }

    /// A map of names to texts, in the order written.
    pub(crate) fn named_texts(&mut self, key: &str) -> Vec<(Located<String>, Located<String>)> {
        let Some(node) = self.take_node(key) else {
            return Vec::new();
        };
        named_texts(&format!("{}: {key}", self.whose), node, self.report)
    }
}

/// The entries of a map of names to texts.
pub(crate) fn named_texts(
    whose: &str,
    node: SourceNode,
    report: &mut FaultReport,
) -> Vec<(Located<String>, Located<String>)> {
    let entries = match node.value {
        NodeValue::Map(entries) => entries,
        NodeValue::Null => Vec::new(),
        NodeValue::Text(_) | NodeValue::List(_) => {
            let what = format!("{whose} is {}, not a map", node.value.kind());
            report.fault(&node.at, what, "write NAME: value, one per line");
            Vec::new()
        }
    };
    let one = |(key, node): (Located<String>, SourceNode)| {
        let text = single(&format!("{whose}.{}", key.value), node, report)?;
        Some((key, text))
    };
    entries.into_iter().filter_map(one).collect()
}

/// A node that must be a single value.
pub(crate) fn single(
    whose: &str,
    node: SourceNode,
    report: &mut FaultReport,
) -> Option<Located<String>> {
    match node.value {
        NodeValue::Text(text) => Some(Located { at: node.at, value: text }),
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => {
            let what = format!("{whose} is {}, not a single value", node.value.kind());
            report.fault(&node.at, what, "write one value");
            None
        }
    }
}

fn time_of_day(text: &str) -> Option<NaiveTime> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    let digits = |p: &&str| (1..=2).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit());
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(digits) {
        return None;
    }
    let part = |i: usize| parts.get(i).map_or(Some(0), |p| p.parse().ok());
    NaiveTime::from_hms_opt(part(0)?, part(1)?, part(2)?)
}
