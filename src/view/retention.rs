//! Which old rows go, and why the others stay.

use crate::engine::retention::{
    AgedGoes, DAY_MS, EndedBadly, Goes, OfGroup, Options, Rule, Survey,
};
use serde_json::{Value, json};

fn goes_json(goes: &Goes) -> Value {
    json!({
        "batches": goes.batches, "rows": goes.rows,
        "oldest": goes.oldest.map(|at| at.to_string()),
        "newest": goes.newest.map(|at| at.to_string()),
    })
}

fn rule_json(rule: Rule) -> Value {
    json!({
        "batches_days": rule.batches_ms.unwrap_or(0) / DAY_MS, "keep_batches": rule.keep,
        "keep_failed": rule.badly == EndedBadly::Stay,
        "log_lines_days": rule.lines_ms.unwrap_or(0) / DAY_MS,
    })
}

/// What would go by these options, and what the last pass did.
pub fn as_json(options: &Options, survey: &Survey, last: Option<&str>) -> Value {
    let group = |g: &OfGroup| {
        let kept: serde_json::Map<String, Value> =
            g.kept.iter().map(|(kept, n)| (kept.as_str().to_owned(), json!(n))).collect();
        json!({
            "group": g.group, "rule": rule_json(g.rule), "goes": goes_json(&g.goes),
            "lines": goes_json(&g.lines), "kept": kept,
        })
    };
    let aged = |a: &AgedGoes| json!({"table": a.kind.table(), "goes": goes_json(&a.goes), "needed": a.needed});
    let last: Option<Value> = last.and_then(|text| serde_json::from_str(text).ok());
    json!({
        "on": options.is_on(),
        "window": options.window.map(|window| window.to_string()),
        "groups": survey.groups.iter().map(group).collect::<Vec<_>>(),
        "aged": survey.aged.iter().map(aged).collect::<Vec<_>>(),
        "leftover": goes_json(&survey.leftover),
        "rows": survey.totals(),
        "last_pass": last,
    })
}
