//! Translates the condition of a node: a macro over its parents' states becomes a trigger rule, the
//! rest an expression over outputs.

use super::FlowNode;
use crate::domain::id::JobCode;
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::value::expr::{Expr, ExprError};
use crate::import::draft::Draft;
use crate::import::note::{BilingualSentence, Level};
use std::collections::{BTreeSet, HashMap};

/// Result of translating a condition.
#[derive(Clone, Debug, Default)]
pub(super) struct ConditionRule {
    pub(super) rule: TriggerRule,
    pub(super) condition: Option<Expr>,
    /// Why the condition cannot be expressed, if so.
    pub(super) refused: Option<BilingualSentence>,
}

/// Reads a condition; one that Azkaban itself would refuse is a fault.
pub(super) fn read_condition(
    node: &FlowNode,
    nodes: &[FlowNode],
    codes: &HashMap<String, Vec<JobCode>>,
    draft: &mut Draft,
) -> ConditionRule {
    let Some((at, text)) = &node.condition else { return ConditionRule::default() };
    let parts: Vec<&str> = text.split("&&").map(str::trim).collect();
    let first = |p: &str| p.split([' ', '|']).next().unwrap_or_default().to_owned();
    let (rules, rest): (Vec<&str>, Vec<&str>) =
        parts.into_iter().partition(|p| TriggerRule::parse(&first(p)).is_some());
    let mut made = ConditionRule::default();
    if rules.iter().any(|r| r.contains("||")) && rules.len() == 1 {
        let why = format!("its condition joins states and outputs by ||: {text}");
        let zh = format!("其条件用 || 连接了状态与输出:{text}");
        return ConditionRule { refused: Some(BilingualSentence::new(why, zh)), ..made };
    }
    match rules[..] {
        [] => {}
        [one] => made.rule = TriggerRule::parse(one).unwrap_or_default(),
        [_, _, ..] => {
            let what =
                format!("{}: its condition has {} of the states' macros", node.name, rules.len());
            draft.fault(at, what, "one is the most; take the others out");
            return made;
        }
    }
    if rest.is_empty() {
        return made;
    }
    match expression(&rest.join(" and "), node, nodes, codes) {
        Ok(expr) => made.condition = Some(expr),
        Err((what, fix)) => draft.fault(at, what, fix),
    }
    draft.note(
        Level::Look,
        &node.at, &node.name,
        ("its condition asks outputs, which jobs there write as JSON to $JOB_OUTPUT_PROP_FILE; without the \
          output the branch is not taken",
         "其条件取决于输出;原系统的作业将 JSON 写入 $JOB_OUTPUT_PROP_FILE;没有该输出时分支不会执行"),
        ("let those jobs print a line such as ::output name=value",
         "请让这些作业输出一行 ::output 名称=值"),
    );
    made
}

/// The outputs of a condition as an expression; or the problem and a hint.
fn expression(
    text: &str,
    node: &FlowNode,
    nodes: &[FlowNode],
    codes: &HashMap<String, Vec<JobCode>>,
) -> Result<Expr, (String, String)> {
    let fix = "ask a job that runs before this one, as ${job:name}";
    let mut outputs = BTreeSet::new();
    let text = with_own_names(text, node, nodes, codes, &mut outputs)
        .map_err(|what| (what, fix.to_owned()))?;
    let wrong = |error: ExprError| {
        (format!("{}: {}", node.name, error.message()), error.hint_text().to_owned())
    };
    let expr = Expr::parse(&text).map_err(wrong)?;
    match expr.names().into_iter().find(|name| !outputs.contains(*name)) {
        Some(name) => {
            let what =
                format!("{}: its condition asks {name}, which is no job's output", node.name);
            Err((what, fix.to_owned()))
        }
        None => Ok(expr),
    }
}

/// Rewrites `${job:name} == 'x'` as `job.name == 'x'`, where every job must run before; `outputs` collects the names.
fn with_own_names(
    text: &str,
    node: &FlowNode,
    nodes: &[FlowNode],
    codes: &HashMap<String, Vec<JobCode>>,
    outputs: &mut BTreeSet<String>,
) -> Result<String, String> {
    let before = before(node, nodes);
    let text = text.replace("||", " or ").replace("!(", "not (").replace("!$", "not $");
    let mut made = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("${") {
        made.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let (inside, tail) =
            after.split_once('}').ok_or_else(|| format!("{}: ${{ has no end", node.name))?;
        let (job, name) = inside
            .split_once(':')
            .ok_or_else(|| format!("{}: ${{{inside}}} names no job's output", node.name))?;
        if !before.contains(job) {
            let what =
                format!("{}: its condition asks {job}, which does not run before it", node.name);
            return Err(what);
        }
        let code = codes.get(job).and_then(|c| c.first());
        let code = code.map_or(job, JobCode::as_str);
        let output = format!("{code}.{}", name.trim());
        made.push_str(&output);
        outputs.insert(output);
        rest = tail;
    }
    made.push_str(rest);
    Ok(made)
}

/// All predecessors of a node at its level.
fn before<'a>(node: &'a FlowNode, nodes: &'a [FlowNode]) -> BTreeSet<&'a str> {
    let by_name: HashMap<&str, &FlowNode> = nodes.iter().map(|n| (n.name.as_str(), n)).collect();
    let mut found = BTreeSet::new();
    let mut open: Vec<&FlowNode> = vec![node];
    while let Some(one) = open.pop() {
        for (_, parent) in &one.parents {
            if found.insert(parent.as_str()) {
                open.extend(by_name.get(parent.as_str()));
            }
        }
    }
    found
}
