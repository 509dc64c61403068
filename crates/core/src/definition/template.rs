//! Templates: common keys of several jobs, written once. A job's own keys take precedence, key by key.
//!
//! Keys are copied, never text: nothing is replaced inside a value.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::single;
use crate::definition::include::named;
use crate::definition::near::did_you_mean;
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::read;
use std::collections::{HashMap, HashSet};

/// Keys of which a job has only one; its own replaces the template's other one.
const EITHER: &[[&str; 2]] = &[["sql", "sql_file"], ["script", "script_file"]];

type TemplateEntries = Vec<(Located<String>, SourceNode)>;

/// Merges each job's template into the job, and removes `templates`.
pub(crate) fn expand(tree: SourceNode, report: &mut FaultReport) -> SourceNode {
    let NodeValue::Map(mut top) = tree.value else { return tree };
    let section = top.iter().position(|(key, _)| key.value == "templates").map(|at| top.remove(at));
    let written = section.map_or_else(Vec::new, |(_, node)| named("templates", node, report));
    let templates = JobTemplates::from_entries(written, report);
    if let Some((_, jobs)) = top.iter_mut().find(|(key, _)| key.value == "jobs") {
        templates.apply(jobs, report);
    }
    SourceNode { at: tree.at, value: NodeValue::Map(top) }
}

/// Templates by name, each including the keys of the templates that it names.
struct JobTemplates {
    whole: HashMap<String, TemplateEntries>,
    /// All written templates, including invalid ones.
    names: Vec<Located<String>>,
}

impl JobTemplates {
    fn from_entries(written: TemplateEntries, report: &mut FaultReport) -> Self {
        let mut own = HashMap::new();
        let mut names = Vec::new();
        for (name, node) in written {
            own.insert(name.value.clone(), sound(&name, node, report));
            names.push(name);
        }
        let mut templates = Self { whole: HashMap::new(), names };
        for name in templates.names.clone() {
            templates.complete(&name, &mut own, &mut Vec::new(), report);
        }
        templates
    }

    /// Completes a template: its own keys, and those of the template that it names.
    fn complete(
        &mut self,
        name: &Located<String>,
        own: &mut HashMap<String, TemplateEntries>,
        open: &mut Vec<String>,
        report: &mut FaultReport,
    ) {
        let Some(mut entries) = own.remove(&name.value) else { return };
        open.push(name.value.clone());
        let whose = format!("template {}", name.value);
        if let Some(base) = take_template(&whose, &mut entries, report) {
            if let Some(from) = open.iter().position(|o| *o == base.value) {
                let ring = open[from..].iter().chain([&base.value]).map(String::as_str);
                let ring = ring.collect::<Vec<_>>().join(" -> ");
                let what = format!("these templates extend one another in a ring: {ring}");
                report.fault(&base.at, what, "remove one of these lines");
            } else {
                self.complete(&base, own, open, report);
                if let Some(base) = self.find_template(&whose, &base, report) {
                    let copied = base.iter().map(|(_, node)| node.count_values()).sum();
                    if !report.may_copy(copied, &name.at) {
                        open.pop();
                        return;
                    }
                    entries = merged(entries, base);
                }
            }
        }
        open.pop();
        self.whole.insert(name.value.clone(), entries);
    }

    fn find_template(
        &self,
        whose: &str,
        name: &Located<String>,
        report: &mut FaultReport,
    ) -> Option<&TemplateEntries> {
        let found = self.whole.get(&name.value);
        if found.is_none() && self.names.iter().all(|n| n.value != name.value) {
            let hint = did_you_mean(&name.value, self.names.iter().map(|n| n.value.as_str()));
            let what = format!("{whose}: template {} is not defined", name.value);
            report.fault(&name.at, what, format!("{hint}define it under templates"));
        }
        found
    }

    /// Adds the keys of its template to each job that lacks them.
    fn apply(&self, jobs: &mut SourceNode, report: &mut FaultReport) {
        let each: Vec<(String, &mut SourceNode)> = match &mut jobs.value {
            NodeValue::Map(entries) => entries
                .iter_mut()
                .map(|(code, node)| (format!("job {}", code.value), node))
                .collect(),
            NodeValue::List(items) => {
                items.iter_mut().map(|item| ("a job".to_owned(), item)).collect()
            }
            NodeValue::Null | NodeValue::Text(_) => Vec::new(),
        };
        for (whose, job) in each {
            let NodeValue::Map(entries) = &mut job.value else { continue };
            let Some(name) = take_template(&whose, entries, report) else { continue };
            if let Some(base) = self.find_template(&whose, &name, report) {
                let copied = base.iter().map(|(_, node)| node.count_values()).sum();
                if !report.may_copy(copied, &name.at) {
                    return;
                }
                *entries = merged(std::mem::take(entries), base);
            }
        }
    }
}

fn take_template(
    whose: &str,
    entries: &mut TemplateEntries,
    report: &mut FaultReport,
) -> Option<Located<String>> {
    let at = entries.iter().position(|(key, _)| key.value == "template")?;
    let (_, node) = entries.remove(at);
    if matches!(node.value, NodeValue::Null) {
        return None;
    }
    single(&format!("{whose}: template"), node, report)
}

/// The valid keys of a template. Each is checked here, so that a mistake is reported once and not for each job that
/// uses it.
fn sound(name: &Located<String>, node: SourceNode, report: &mut FaultReport) -> TemplateEntries {
    let whose = format!("template {}", name.value);
    let entries = match node.value {
        NodeValue::Map(entries) => entries,
        NodeValue::Null => Vec::new(),
        NodeValue::Text(_) | NodeValue::List(_) => {
            let what = format!("{whose} is {}, not a map", node.value.kind());
            report.fault(&node.at, what, "write the keys of a job below it");
            Vec::new()
        }
    };
    let fits = |(key, node): &(Located<String>, SourceNode)| {
        if key.value == "code" {
            let what = format!("{whose} has a code, which belongs to one job");
            report.fault(&key.at, what, "remove it");
            return false;
        }
        let mut trial = FaultReport::within(report.budget().clone());
        let alone = NodeValue::Map(vec![(key.clone(), node.clone())]);
        let alone = SourceNode { at: node.at.clone(), value: alone };
        read::job_named(whose.clone(), name.clone(), alone, &mut trial);
        report.absorb(trial)
    };
    let mut entries = entries;
    entries.retain(fits);
    entries
}

/// `own`, and the entries of `base` that `own` lacks.
fn merged(own: TemplateEntries, base: &TemplateEntries) -> TemplateEntries {
    let mut all: TemplateEntries =
        own.into_iter().filter(|(_, node)| !matches!(node.value, NodeValue::Null)).collect();
    let said: HashSet<String> = all.iter().map(|(key, _)| key.value.clone()).collect();
    let void = |key: &str| {
        let other = EITHER.iter().find(|pair| pair.contains(&key));
        other.is_some_and(|pair| pair.iter().any(|k| said.contains(*k)))
    };
    for (key, node) in base {
        if key.value == "params"
            && let Some((_, params)) = all.iter_mut().find(|(k, _)| k.value == "params")
        {
            merge_params(params, node);
        } else if !said.contains(&key.value) && !void(&key.value) {
            all.push((key.clone(), node.clone()));
        }
    }
    all
}

/// Parameters by name: the template's first and in its order, each with the job's values.
fn merge_params(own: &mut SourceNode, base: &SourceNode) {
    let (NodeValue::List(mine), NodeValue::List(theirs)) = (&mut own.value, &base.value) else {
        return;
    };
    let mut mine = std::mem::take(mine);
    let mut all = Vec::new();
    for param in theirs {
        let same = name_of(param)
            .and_then(|name| mine.iter().position(|m| name_of(m) == Some(name.clone())));
        all.push(match same {
            Some(at) => with_rest(mine.remove(at), param),
            None => param.clone(),
        });
    }
    all.append(&mut mine);
    own.value = NodeValue::List(all);
}

/// Names are case-insensitive, as in the database.
fn name_of(param: &SourceNode) -> Option<String> {
    let NodeValue::Map(entries) = &param.value else { return None };
    let (_, name) = entries.iter().find(|(key, _)| key.value == "name")?;
    match &name.value {
        NodeValue::Text(name) => Some(name.to_ascii_lowercase()),
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
    }
}

fn with_rest(own: SourceNode, base: &SourceNode) -> SourceNode {
    let (NodeValue::Map(mine), NodeValue::Map(theirs)) = (own.value, &base.value) else {
        return base.clone();
    };
    SourceNode { at: own.at, value: NodeValue::Map(merged(mine, theirs)) }
}
