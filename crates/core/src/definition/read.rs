//! Reads the raw definition from the tree and checks the form of every key.

use crate::definition::application;
use crate::definition::declare::{read_decl, read_secret};
use crate::definition::executor;
use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::{Fields, named_texts, single};
use crate::definition::group_access;
use crate::definition::include::OwnDefaults;
use crate::definition::keys::{
    DELAY_MAX, DEPENDENCY, GROUP, JOB, OWNER, PARALLEL_MAX, PRIORITY_MAX, RETRIES_MAX, SETTINGS,
    SOURCE, TIMEOUT_MAX, TOP,
};
use crate::definition::near::nearest;
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::raw::{
    JobSettings, Raw, RawDecl, RawGroup, RawJob, RawListed, RawOwner, RawSource, RawSql,
};
use crate::definition::read_audience::{addresses, rules};
use crate::definition::read_checks::{checks, success};
use crate::definition::read_kinds;
use crate::definition::read_limits::{locks, on_failure, pool_uses, read_pool, retry};
use crate::definition::read_lineage::lineage;
use crate::definition::read_params::params;
use crate::definition::read_parents::parents;
use crate::definition::read_schedules::schedule;
use crate::domain::batch_no::NumberGrammar;
use crate::domain::job::TransactionMode;
use crate::domain::job::trigger_rule::TriggerRule;
use crate::domain::source::tx_class::{OnUnknown, TxClass};
use crate::domain::text::lang::Lang;
use std::sync::Arc;

/// Reads the tree of a whole definition.
pub(crate) fn read_root(
    root: SourceNode,
    own_defaults: OwnDefaults,
    report: &mut FaultReport,
) -> Raw {
    let mut top = Fields::open_fields("the definition", root, TOP, report);
    let mut raw = Raw::default();
    if let Some(node) = top.take_node("defaults") {
        let mut fields = Fields::open_fields("defaults", node, SETTINGS, top.report);
        raw.defaults = settings(&mut fields);
    }
    for (file, node) in own_defaults {
        let node =
            node.unwrap_or_else(|| SourceNode { at: top.at.clone(), value: NodeValue::Null });
        let mut fields = Fields::open_fields("defaults", node, SETTINGS, top.report);
        raw.own_defaults.insert(file, settings(&mut fields));
    }
    for (name, node) in entries("source", "sources", "name", top.take_node("sources"), top.report) {
        raw.sources.push(source(name, node, top.report));
    }
    for (name, node) in entries("pool", "pools", "name", top.take_node("pools"), top.report) {
        raw.pools.extend(read_pool(name, node, top.report));
    }
    for (code, node) in entries("group", "groups", "code", top.take_node("groups"), top.report) {
        raw.groups.push(group(code, node, top.report));
    }
    let jobs = entries("job", "jobs", "code", top.take_node("jobs"), top.report);
    // A job takes 2 KB: the spare capacity of a growing list was 130 MB for 100,000 jobs.
    raw.jobs.reserve_exact(jobs.len());
    for (code, node) in jobs {
        raw.jobs.push(read_job(code, node, top.report));
    }
    for (name, node) in entries("host", "hosts", "name", top.take_node("hosts"), top.report) {
        raw.hosts.extend(read_kinds::read_host(name, node, top.report));
    }
    if let Some(node) = top.take_node("dependencies") {
        dependencies(node, &mut raw.dependencies, top.report);
    }
    raw.params = decls("", top.take_node("params"), top.report);
    for (name, node) in entries("secret", "secrets", "name", top.take_node("secrets"), top.report) {
        raw.secrets.push(read_secret(name, node, top.report));
    }
    for (code, node) in entries("owner", "owners", "code", top.take_node("owners"), top.report) {
        raw.owners.push(owner(code, node, top.report));
    }
    let schedules = top.take_node("schedules");
    for (code, node) in entries("schedule", "schedules", "code", schedules, top.report) {
        raw.schedules.push(schedule(code, node, top.report));
    }
    raw
}

fn decls(whose: &str, node: Option<SourceNode>, report: &mut FaultReport) -> Vec<RawDecl> {
    let all = entries("parameter", "params", "name", node, report);
    all.into_iter().map(|(name, node)| read_decl(whose, name, node, report)).collect()
}

/// The entries of a map by code, or of a list of maps that contain their code.
pub(crate) fn entries(
    one: &str,
    many: &str,
    key: &str,
    node: Option<SourceNode>,
    report: &mut FaultReport,
) -> Vec<(Located<String>, SourceNode)> {
    let Some(node) = node else { return Vec::new() };
    match node.value {
        NodeValue::Map(entries) => entries,
        NodeValue::Null => Vec::new(),
        NodeValue::List(items) => {
            items.into_iter().filter_map(|item| coded(one, key, item, report)).collect()
        }
        NodeValue::Text(_) => {
            let what = format!("{many} is a single value, not a map");
            report.fault(&node.at, what, format!("write one {one} per {key} below it"));
            Vec::new()
        }
    }
}

fn coded(
    one: &str,
    key: &str,
    item: SourceNode,
    report: &mut FaultReport,
) -> Option<(Located<String>, SourceNode)> {
    if let NodeValue::Map(entries) = &item.value
        && let Some((_, code)) = entries.iter().find(|(k, _)| k.value == key)
    {
        let code = single(&format!("{one}: {key}"), code.clone(), report)?;
        return Some((code, item));
    }
    report.fault(&item.at, format!("a {one} without {key}"), format!("add {key}: to this {one}"));
    None
}

/// A map by code may repeat the code inside, but not contradict it.
pub(crate) fn same_code(fields: &mut Fields<'_>, key: &str, code: &Located<String>) {
    if let Some(inner) = fields.take_text(key).filter(|inner| inner.value != code.value) {
        let what = format!("{} says {key}: {}", fields.whose, inner.value);
        fields.report.fault(&inner.at, what, format!("remove {key}, or make the two the same"));
    }
}

fn source(name: Located<String>, node: SourceNode, report: &mut FaultReport) -> RawSource {
    let mut fields = Fields::open_fields(format!("source {}", name.value), node, SOURCE, report);
    same_code(&mut fields, "name", &name);
    RawSource {
        name,
        url: fields.take_word("url"),
        password_env: fields.take_line("password_env", 255),
        password_file: fields.take_word("password_file"),
        password_secret: fields.take_line("password_secret", 100),
        max_parallel: fields.number("max_parallel", 1..=PARALLEL_MAX),
        procedures: fields.named_texts("procedures"),
        procedures_file: fields.take_word("procedures_file"),
        access: group_access::read_access(&mut fields),
    }
}

fn group(code: Located<String>, node: SourceNode, report: &mut FaultReport) -> RawGroup {
    let mut fields = Fields::open_fields(format!("group {}", code.value), node, GROUP, report);
    same_code(&mut fields, "code", &code);
    let whose = fields.whose.clone();
    RawGroup {
        code,
        name: fields.take_line("name", 255),
        batch_type: batch_type(&mut fields),
        owner: fields.take_line("owner", 255),
        notify_email: addresses(&mut fields, "notify_email").unwrap_or_default(),
        max_parallel: fields.number("max_parallel", 1..=PARALLEL_MAX),
        time_zone: fields.take_word("time_zone"),
        calendar: fields.take_word("calendar"),
        params: decls(&format!("{whose}: "), fields.take_node("params"), fields.report),
        on_failure: on_failure(&mut fields),
        batch_timeout_sec: fields.number("batch_timeout_sec", 1..=TIMEOUT_MAX),
        warn_after_sec: fields.number("warn_after_sec", 1..=TIMEOUT_MAX),
        notify: rules(&mut fields).map(|rules| rules.value).unwrap_or_default(),
        due: fields.parsed("due"),
        slow_after: fields.parsed("slow_after"),
        held_after_sec: fields.number("held_after_sec", 1..=TIMEOUT_MAX),
    }
}

/// The type of a group, or of the groups that a schedule opens. Types that decide which batch numbers a group accepts
/// are normalized.
pub(crate) fn batch_type(fields: &mut Fields<'_>) -> Option<Located<String>> {
    let word = fields.take_line("type", 64)?;
    let written = word.value.as_str();
    let lower = written.to_lowercase();
    let near = match lower.as_str() {
        "day" => Some("daily"),
        "month" => Some("monthly"),
        "quarter" => Some("quarterly"),
        "year" | "annual" | "annually" => Some("yearly"),
        _ => nearest(written, NumberGrammar::type_words()),
    };
    let whose = fields.whose.clone();
    match near {
        Some(near) if near == written => {}
        Some(near) if near == lower => {
            let what = format!("{whose}: type is {written:?}");
            fields.report.fault(&word.at, what, format!("write {near}, in small letters"));
        }
        Some(near) => {
            let what = format!("{whose}: type {written:?} takes any batch number");
            fields.report.add_warning(&word.at, what, format!("did you mean {near}?"));
        }
        None => {}
    }
    Some(word)
}

fn settings(fields: &mut Fields<'_>) -> JobSettings {
    let transactions = [
        ("one", TransactionMode::One),
        ("each", TransactionMode::Each),
        ("none", TransactionMode::None),
    ];
    let trigger_rules = TriggerRule::ALL.map(|rule| (rule.as_str(), rule));
    JobSettings {
        group: fields.take_word("group").map(Box::new),
        source: fields.take_word("source").map(Box::new),
        job_type: fields.take_word("type").map(Box::new),
        timeout_sec: fields.number("timeout_sec", 1..=TIMEOUT_MAX).map(Box::new),
        retry_count: fields.number("retry_count", 0..=RETRIES_MAX).map(Box::new),
        retry_delay_sec: fields.number("retry_delay_sec", 0..=DELAY_MAX).map(Box::new),
        priority: fields.number("priority", -PRIORITY_MAX..=PRIORITY_MAX).map(Box::new),
        idempotent: fields.take_flag("idempotent").map(Box::new),
        tx: fields.choice("tx", &TxClass::ALL.map(|class| (class.as_str(), class))).map(Box::new),
        on_unknown: fields
            .choice("on_unknown", &OnUnknown::ALL.map(|p| (p.as_str(), p)))
            .map(Box::new),
        is_active: fields.take_flag("is_active").map(Box::new),
        schedule_time: fields.take_time("schedule_time").map(Box::new),
        notify_email: addresses(fields, "notify_email"),
        owner: fields.take_line("owner", 255).map(Box::new),
        tags: read_tags(fields),
        transaction: fields.choice("transaction", &transactions).map(Box::new),
        interpreter: fields.take_word("interpreter").map(Box::new),
        working_dir: fields.take_word("working_dir").map(Box::new),
        trigger_rule: fields.choice("trigger_rule", &trigger_rules).map(Box::new),
        success: success(fields),
        checks: checks(fields),
        retry: retry(fields).map(Box::new),
        pools: pool_uses(fields),
        locks: locks(fields),
        lineage: lineage(fields).map(Box::new),
        worker: fields.take_word("worker").map(Box::new),
        warn_after_sec: fields.number("warn_after_sec", 1..=TIMEOUT_MAX).map(Box::new),
        notify: rules(fields).map(Box::new),
        start_by: fields.parsed("start_by").map(Box::new),
        due: fields.parsed("due").map(Box::new),
        slow_after: fields.parsed("slow_after").map(Box::new),
    }
}

/// Tags are stored in one column, separated by commas.
fn read_tags(fields: &mut Fields<'_>) -> Option<Vec<Located<String>>> {
    let tags = fields.texts("tags")?;
    let splits = |c: char| c == ',' || c == ';' || c.is_control();
    for tag in tags.iter().filter(|t| t.value.trim().is_empty() || t.value.contains(splits)) {
        let what = format!("{}: {:?} is not a tag", fields.whose, tag.value);
        fields.report.fault(&tag.at, what, "write each tag as an item of its own: [a, b]");
    }
    Some(tags)
}

fn owner(code: Located<String>, node: SourceNode, report: &mut FaultReport) -> RawOwner {
    let mut fields = Fields::open_fields(format!("owner {}", code.value), node, OWNER, report);
    same_code(&mut fields, "code", &code);
    // The same limits as for `owner` of a job, which refers to this code.
    if code.value.chars().count() > 255 || code.value.chars().any(char::is_control) {
        let what = format!("owner {:?} is not a short line of text", code.value);
        fields.report.fault(&code.at, what, "use at most 255 characters, no control characters");
    }
    RawOwner {
        name: fields.take_line("name", 255),
        email: addresses(&mut fields, "email").unwrap_or_default(),
        lang: fields.choice("lang", &Lang::ALL.map(|lang| (lang.as_str(), lang))),
        code,
    }
}

fn read_job(code: Located<String>, node: SourceNode, report: &mut FaultReport) -> RawJob {
    job_named(format!("job {}", code.value), code, node, report)
}

/// Reads a job, or a template, which has the same keys; `whose` is its name in faults.
pub(crate) fn job_named(
    whose: String,
    code: Located<String>,
    node: SourceNode,
    report: &mut FaultReport,
) -> RawJob {
    let known: Vec<&str> = JOB.iter().chain(SETTINGS).copied().collect();
    let mut fields = Fields::open_fields(whose, node, &known, report);
    same_code(&mut fields, "code", &code);
    RawJob {
        group: Arc::from(""),
        code,
        name: fields.take_line("name", 255).map(Box::new),
        settings: settings(&mut fields),
        depends_on: parents(&mut fields),
        condition: fields.take_word("if").map(Box::new),
        proc_name: fields.take_line("proc_name", 255).map(Box::new),
        sql: read_sql(&mut fields).map(Box::new),
        sql_file: fields.take_word("sql_file").map(Box::new),
        script: fields.take_word("script").map(Box::new),
        script_file: fields.take_word("script_file").map(Box::new),
        params: params(&mut fields).map(Box::new),
        aliases: fields.texts("aliases").unwrap_or_default(),
        http: read_kinds::read_http(&mut fields).map(Box::new),
        sensor: read_kinds::sensor(&mut fields).map(Box::new),
        sub_batch: read_kinds::sub_batch(&mut fields).map(Box::new),
        executor: executor::read_call(&mut fields).map(Box::new),
        application: application::read_application(&mut fields).map(Box::new),
        approval: read_kinds::approval(&mut fields).map(Box::new),
        for_each: read_kinds::for_each(&mut fields).map(Box::new),
    }
}

pub(crate) fn read_sql(fields: &mut Fields<'_>) -> Option<RawSql> {
    let node = fields.take_node("sql")?;
    let whose = format!("{}: sql", fields.whose);
    match node.value {
        NodeValue::Map(_) => {
            let at = node.at.clone();
            Some(RawSql::Per(at, named_texts(&whose, node, fields.report)))
        }
        NodeValue::Text(_) | NodeValue::List(_) | NodeValue::Null => {
            let text = single(&whose, node, fields.report)?;
            if text.value.trim().is_empty() {
                fields.report.fault(&text.at, format!("{whose} is empty"), "write the statements");
                return None;
            }
            Some(RawSql::Same(text))
        }
    }
}

fn dependencies(node: SourceNode, found: &mut Vec<RawListed>, report: &mut FaultReport) {
    let NodeValue::List(items) = node.value else {
        let what = format!("dependencies is {}, not a list", node.value.kind());
        report.fault(&node.at, what, "write - { job_code: B, depends_on: A }, one per line");
        return;
    };
    for (order, item) in (1..).zip(items) {
        let mut fields = Fields::open_fields("a dependency", item, DEPENDENCY, report);
        let when = fields.take_word("when").map(Box::new);
        let given = fields.number("dependency_order", 0..=i32::MAX);
        let (job, depends_on) = (fields.take_word("job_code"), fields.take_word("depends_on"));
        if let (Some(job), Some(depends_on)) = (job, depends_on) {
            let order = given.map_or(order, |g| g.value);
            found.push(RawListed { job, depends_on, order, when });
        } else {
            let at = fields.at.clone();
            let what = "a dependency without job_code or depends_on";
            fields.report.fault(&at, what, "say which job waits for which");
        }
    }
}
