//! Reads the keys of the job types: hosts, calls, sensors, sub-batches, approvals, lists.

use crate::definition::budget::Limit;
use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::{Fields, single};
use crate::definition::keys::{
    APPROVAL, FOR_EACH, HOST, HTTP, ITEMS, PARALLEL_MAX, POLL_MAX, SENSOR, SUB_BATCH,
};
use crate::definition::node::{NodeValue, SourceNode};
use crate::domain::access::approval::ApprovalRule;
use crate::domain::access::user::UserName;
use crate::domain::access::{Permission, Role};
use crate::domain::batch_no::BatchExpr;
use crate::domain::id::GroupCode;
use crate::domain::job::body::{ForEach, HttpBody, HttpCall, HttpHost, Items, Sensor, SubBatch};
use crate::domain::params::http_call::METHODS;

/// `NAME: https://…`, or a map with `base_url`.
pub(crate) fn read_host(
    name: Located<String>,
    node: SourceNode,
    report: &mut FaultReport,
) -> Option<Located<HttpHost>> {
    let whose = format!("host {}", name.value);
    let bare = |base_url: String| HttpHost {
        name: name.value.clone(),
        base_url,
        ui_url: None,
        headers: Default::default(),
        max_parallel: None,
    };
    if let NodeValue::Text(url) = node.value {
        return Some(Located::new(&node.at, bare(url)));
    }
    let mut fields = Fields::open_fields(whose, node, HOST, report);
    let at = fields.at.clone();
    if let Some(inner) = fields.take_text("name").filter(|inner| inner.value != name.value) {
        let what = format!("{} says name: {}", fields.whose, inner.value);
        fields.report.fault(&inner.at, what, "remove name, or make the two the same");
    }
    let headers = fields.named_texts("headers");
    let max_parallel = fields.number("max_parallel", 1..=PARALLEL_MAX).map(|m| m.value);
    let Some(url) = fields.take_word("base_url") else {
        let what = format!("{} has no base_url", fields.whose);
        fields.report.fault(&name.at, what, "add base_url: https://host");
        return None;
    };
    let ui_url = fields.take_word("ui_url").map(|url| url.value);
    let headers = headers.into_iter().map(|(key, text)| (key.value, text.value)).collect();
    Some(Located::new(&at, HttpHost { headers, ui_url, max_parallel, ..bare(url.value) }))
}

/// `http: {host, method, path, …}`.
pub(crate) fn read_http(fields: &mut Fields<'_>) -> Option<Located<HttpCall>> {
    let node = fields.take_node("http")?;
    let at = node.at.clone();
    let mut fields =
        Fields::open_fields(format!("{}: http", fields.whose), node, HTTP, fields.report);
    let methods = METHODS.map(|method| (method, method));
    let bodies = [("none", HttpBody::None), ("json", HttpBody::Json), ("form", HttpBody::Form)];
    let method = fields.take_text("method").map(|m| m.with_value(m.value.trim().to_uppercase()));
    let method = method.unwrap_or_else(|| Located::new(&at, "GET".to_owned()));
    if !METHODS.contains(&method.value.as_str()) {
        let what = format!("{}: method is {:?}", fields.whose, method.value);
        let known = methods.map(|(word, _)| word).join(", ");
        fields.report.fault(&method.at, what, format!("use one of {known}"));
    }
    let send = fields.choice("send", &bodies);
    if let Some(send) = send.as_ref().filter(|s| s.value != HttpBody::None)
        && matches!(method.value.as_str(), "GET" | "HEAD")
    {
        let what = format!("{}: {} sends no body", fields.whose, method.value);
        fields.report.fault(&send.at, what, "remove send, or use method: POST");
    }
    let expect_status = statuses(&mut fields);
    let headers = fields.named_texts("headers");
    let (host, path) = (fields.take_word("host"), fields.take_text("path"));
    let (Some(host), Some(path)) = (host, path) else {
        let what = format!("{} without host or path", fields.whose);
        fields.report.fault(&at, what, "write http: { host: NAME, path: /… }");
        return None;
    };
    Some(Located::new(
        &at,
        HttpCall {
            host: host.value,
            method: method.value,
            path: path.value,
            headers: headers.into_iter().map(|(key, text)| (key.value, text.value)).collect(),
            send: send.map_or(HttpBody::None, |s| s.value),
            expect_status,
        },
    ))
}

fn statuses(fields: &mut Fields<'_>) -> Vec<u16> {
    let texts = fields.texts("expect_status").unwrap_or_default();
    let whose = fields.whose.clone();
    let mut one = |text: Located<String>| {
        let status = text.value.trim().parse::<u16>().ok().filter(|s| (200..=599).contains(s));
        if status.is_none() {
            let what = format!("{whose}: expect_status has {:?}", text.value);
            fields.report.fault(&text.at, what, "use statuses from 200 to 599, such as [200, 404]");
        }
        status
    };
    texts.into_iter().filter_map(&mut one).collect()
}

/// `sensor: {poll_sec: 30}`.
pub(crate) fn sensor(fields: &mut Fields<'_>) -> Option<Located<Sensor>> {
    let node = fields.take_node("sensor")?;
    let at = node.at.clone();
    let mut fields =
        Fields::open_fields(format!("{}: sensor", fields.whose), node, SENSOR, fields.report);
    let poll = fields.number("poll_sec", 1..=POLL_MAX);
    Some(Located::new(&at, Sensor { poll_sec: poll.map_or(Sensor::POLL_SEC, |p| p.value) }))
}

/// `sub_batch: {group, batch}`.
pub(crate) fn sub_batch(fields: &mut Fields<'_>) -> Option<Located<SubBatch>> {
    let node = fields.take_node("sub_batch")?;
    let at = node.at.clone();
    let whose = format!("{}: sub_batch", fields.whose);
    let mut fields = Fields::open_fields(whose, node, SUB_BATCH, fields.report);
    let batch = fields.take_word("batch").map(|text| {
        let read = BatchExpr::parse(&text.value);
        match read {
            Ok(expr) if expr.gives_one() => expr,
            Ok(expr) => {
                let what = format!("{}: batch {expr} does not give one batch number", fields.whose);
                let cure = "write same, prev(n), next(n), month(n) or a batch number; for several, \
                            add for_each";
                fields.report.fault(&text.at, what, cure);
                BatchExpr::Same
            }
            Err(error) => {
                fields.report.fault(&text.at, format!("{}: batch: {error}", fields.whose), "");
                BatchExpr::Same
            }
        }
    });
    let Some(group) = fields.take_word("group") else {
        let what = format!("{} names no group", fields.whose);
        fields.report.fault(&at, what, "add group: the code of the group to run");
        return None;
    };
    let code = GroupCode::parse(&group.value)
        .map_err(|error| fields.report.fault(&group.at, error.to_string(), ""))
        .ok()?;
    let batch = batch.unwrap_or(BatchExpr::Same);
    Some(Located::new(&group.at, SubBatch { group: code, batch }))
}

/// Maximum length of the question to approvers, in characters.
const QUESTION_MAX: usize = 1_000;

/// `approval: {role, permission, users, four_eyes, question}`.
pub(crate) fn approval(fields: &mut Fields<'_>) -> Option<Located<ApprovalRule>> {
    let node = fields.take_node("approval")?;
    let at = node.at.clone();
    let whose = format!("{}: approval", fields.whose);
    let mut fields = Fields::open_fields(whose, node, APPROVAL, fields.report);
    let roles = Role::ALL.map(|role| (role.as_str(), role));
    let permissions = Permission::ALL.map(|permission| (permission.as_str(), permission));
    let question = fields.take_text("question");
    if let Some(long) = question.as_ref().filter(|q| q.value.chars().count() > QUESTION_MAX) {
        let what = format!("{}: question is longer than {QUESTION_MAX} characters", fields.whose);
        fields.report.fault(&long.at, what, "say where to look in place of quoting it");
    }
    let mut users = Vec::new();
    for name in fields.texts("users").unwrap_or_default() {
        match UserName::parse(name.value.trim()) {
            Ok(user) => users.push(user),
            Err(error) => {
                let what = format!("{}: users has {:?}", fields.whose, name.value);
                fields.report.fault(&name.at, what, error.to_string());
            }
        }
    }
    let rule = ApprovalRule {
        role: fields.choice("role", &roles).map(|role| role.value),
        permission: fields.choice("permission", &permissions).map(|p| p.value),
        users,
        four_eyes: fields.take_flag("four_eyes").is_none_or(|flag| flag.value),
        question: question.map(|q| q.value.trim().to_owned()).filter(|q| !q.is_empty()),
    };
    if !rule.names_approvers() {
        let what = format!("{} names nobody who may approve", fields.whose);
        let cure = "add role: operator, permission: force or users: [NAME]";
        fields.report.fault(&at, what, cure);
    }
    Some(Located::new(&at, rule))
}

/// `for_each: [A, B]`, or a map with `items`, `param` or `output`.
pub(crate) fn for_each(fields: &mut Fields<'_>) -> Option<Located<ForEach>> {
    let node = fields.take_node("for_each")?;
    let (at, whose) = (node.at.clone(), format!("{}: for_each", fields.whose));
    if let NodeValue::List(list) = node.value {
        if !fields.report.is_within(Limit::ForEachItems, list.len(), &at) {
            return None;
        }
        let items = Items::List(texts(&whose, list, fields.report));
        return Some(Located::new(&at, ForEach { items, max_parallel: None }));
    }
    let mut fields = Fields::open_fields(whose, node, FOR_EACH, fields.report);
    let max_parallel = fields.number("max_parallel", 1..=PARALLEL_MAX).map(|m| m.value);
    let listed = fields.take_node("items");
    let mut found: Vec<Items> = named(&mut fields).into_iter().collect();
    match listed {
        None => {}
        Some(SourceNode { at, value: NodeValue::List(list) }) => {
            if !fields.report.is_within(Limit::ForEachItems, list.len(), &at) {
                return None;
            }
            found.push(Items::List(texts(&fields.whose, list, fields.report)));
        }
        Some(node @ SourceNode { value: NodeValue::Map(_), .. }) => {
            let whose = format!("{}: items", fields.whose);
            found.extend(named(&mut Fields::open_fields(whose, node, ITEMS, fields.report)));
        }
        Some(node) => {
            let what = format!("{}: items is a single value, not a list", fields.whose);
            fields.report.fault(&node.at, what, "write items: [A, B]");
            return None;
        }
    }
    if found.len() != 1 {
        let what = format!("{} has {} lists", fields.whose, found.len());
        let cure = "write one of items: [A, B], param: NAME or output: JOB.name";
        fields.report.fault(&at, what, cure);
    }
    Some(Located::new(&at, ForEach { items: found.into_iter().next()?, max_parallel }))
}

fn named(fields: &mut Fields<'_>) -> Option<Items> {
    let (param, output) = (fields.take_word("param"), fields.take_word("output"));
    if let (Some(_), Some(output)) = (&param, &output) {
        let what = format!("{} has both param and output", fields.whose);
        fields.report.fault(&output.at, what, "keep one of the two");
    }
    if let Some(param) = param {
        return Some(Items::Param(param.value));
    }
    let output = output?;
    Items::output(&output.value)
        .map_err(|error| {
            let what = format!("{}: output: {error}", fields.whose);
            fields.report.fault(&output.at, what, "write output: JOB.name");
        })
        .ok()
}

fn texts(whose: &str, list: Vec<SourceNode>, report: &mut FaultReport) -> Vec<String> {
    let one = |node| single(whose, node, report).map(|text| text.value);
    list.into_iter().filter_map(one).collect()
}
