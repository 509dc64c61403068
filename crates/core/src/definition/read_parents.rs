//! Reads `depends_on`: codes, or maps with conditions.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::{Fields, single};
use crate::definition::keys::{PARENT, WAIT_MAX};
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::raw::{RawFullParent, RawMore, RawParent};
use crate::domain::job::external::Missing;

/// The dependencies of a job, one per entry.
pub(crate) fn parents(fields: &mut Fields<'_>) -> Vec<RawParent> {
    let Some(node) = fields.take_node("depends_on") else { return Vec::new() };
    let whose = fields.whose.clone();
    let items = match node.value {
        NodeValue::List(items) => items,
        value @ (NodeValue::Text(_) | NodeValue::Map(_) | NodeValue::Null) => {
            vec![SourceNode { at: node.at, value }]
        }
    };
    items.into_iter().filter_map(|item| parent(&whose, item, fields.report)).collect()
}

fn parent(whose: &str, item: SourceNode, report: &mut FaultReport) -> Option<RawParent> {
    let item = match item {
        // Before the text of a fault is built: there may be a million entries.
        SourceNode { at, value: NodeValue::Text(value) } => {
            return Some(RawParent::Plain(Located { at, value }));
        }
        other => other,
    };
    if !matches!(item.value, NodeValue::Map(_)) {
        return single(&format!("{whose}: depends_on"), item, report).map(RawParent::Plain);
    }
    let mut fields = Fields::open_fields(format!("{whose}: depends_on"), item, PARENT, report);
    let missing = [("wait", Missing::Wait), ("fail", Missing::Fail), ("pass", Missing::Pass)];
    let job = fields.take_word("job");
    let more = RawMore {
        when: fields.take_word("when"),
        group: fields.take_word("group"),
        batch: fields.take_word("batch"),
        missing: fields.choice("missing", &missing),
        wait_sec: fields.number("wait_sec", 1..=WAIT_MAX),
    };
    let (at, elsewhere) = (fields.at.clone(), more.group.is_some() || more.batch.is_some());
    if job.is_none() && !elsewhere {
        let what = format!("{whose}: a dependency without job");
        fields.report.fault(&at, what, "add job: CODE, or group: and batch: for a whole batch");
        return None;
    }
    let alone = more.missing.as_ref().map(|m| &m.at).or(more.wait_sec.as_ref().map(|w| &w.at));
    if let Some(alone) = alone.filter(|_| !elsewhere) {
        let what = format!("{whose}: missing and wait_sec are for other batches");
        fields.report.fault(alone, what, "add batch: (and group:), or remove them");
    }
    Some(RawParent::Full(Box::new(RawFullParent { at, job, more })))
}
