//! Reads pools, locks, retries and the policy after a failure.

use crate::definition::fault::{FaultReport, Located};
use crate::definition::fields::{Fields, single};
use crate::definition::keys::{DELAY_MAX, LOCK_USE, PARALLEL_MAX, POOL, POOL_USE, RETRY};
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::raw::{RawPool, RawUses};
use crate::definition::read::same_code;
use crate::domain::job::GroupFailurePolicy;
use crate::domain::job::pool::LockMode;
use crate::domain::job::retry::{ErrorClass, RetryPolicy};
use std::collections::BTreeMap;

/// Maximum growth of a delay, in percent: tenfold.
const BACKOFF_MAX: u32 = 1_000;

const LOCK_MODES: [(&str, LockMode); 2] =
    [("exclusive", LockMode::Exclusive), ("shared", LockMode::Shared)];

/// `pools: { NAME: slots }`, or a map or list of `{ name, slots }`.
pub(crate) fn read_pool(
    name: Located<String>,
    node: SourceNode,
    report: &mut FaultReport,
) -> Option<RawPool> {
    let whose = format!("pool {}", name.value);
    let slots = if let NodeValue::Text(_) = &node.value {
        let text = single(&whose, node, report)?;
        whole_number(&format!("{whose}: slots"), &text, PARALLEL_MAX, report)?
    } else {
        let mut fields = Fields::open_fields(whose, node, POOL, report);
        same_code(&mut fields, "name", &name);
        if fields.is_without("slots") {
            let what = format!("{} has no slots", fields.whose);
            fields.report.fault(&name.at, what, "say how many: slots: 4");
            return None;
        }
        fields.number("slots", 1..=PARALLEL_MAX)?.value
    };
    Some(RawPool { name, slots })
}

fn whole_number(
    what: &str,
    text: &Located<String>,
    max: u32,
    report: &mut FaultReport,
) -> Option<u32> {
    let number = text.value.parse().ok().filter(|n| (1..=max).contains(n));
    if number.is_none() {
        let cure = format!("use a whole number from 1 to {max}");
        report.fault(&text.at, format!("{what} is {:?}", text.value), cure);
    }
    number
}

/// The keys for a job's uses: `pools`, and in it `pool` and `weight`.
struct UseKeys {
    list: &'static str,
    name: &'static str,
    how: &'static str,
}

/// A job's `pools`: `{ NAME: weight }`, a list of names (one slot each) or of `{ pool, weight }`.
pub(crate) fn pool_uses(fields: &mut Fields<'_>) -> Option<RawUses<u32>> {
    let keys = UseKeys { list: "pools", name: "pool", how: "weight" };
    let weight = |what: &str, text: Located<String>, report: &mut FaultReport| {
        whole_number(what, &text, PARALLEL_MAX, report).map(|n| text.with_value(n))
    };
    read_uses(fields, &keys, POOL_USE, 1, weight)
}

/// A job's `locks`: `{ NAME: exclusive | shared }`, a list of names (exclusive) or of
/// `{ lock, mode }`.
pub(crate) fn locks(fields: &mut Fields<'_>) -> Option<RawUses<LockMode>> {
    let keys = UseKeys { list: "locks", name: "lock", how: "mode" };
    let mode = |what: &str, text: Located<String>, report: &mut FaultReport| {
        let found = LOCK_MODES.iter().find(|(word, _)| *word == text.value.to_ascii_lowercase());
        if found.is_none() {
            let what = format!("{what} is {:?}", text.value);
            report.fault(&text.at, what, "use exclusive or shared");
        }
        found.map(|(_, mode)| text.with_value(*mode))
    };
    read_uses(fields, &keys, LOCK_USE, LockMode::Exclusive, mode)
}

fn read_uses<T: Copy>(
    fields: &mut Fields<'_>,
    keys: &UseKeys,
    known: &[&str],
    usual: T,
    read: impl Fn(&str, Located<String>, &mut FaultReport) -> Option<Located<T>>,
) -> Option<RawUses<T>> {
    let UseKeys { list: key, name: name_key, how: how_key } = keys;
    let whose = fields.whose.clone();
    let node = fields.take_node(key)?;
    let report = &mut *fields.report;
    let how = |name: &Located<String>, text: Option<Located<String>>, report: &mut FaultReport| {
        match text {
            Some(text) => {
                read(&format!("{whose}: {name_key} {}: {how_key}", name.value), text, report)
            }
            None => Some(name.with_value(usual)),
        }
    };
    let items = match node.value {
        NodeValue::Map(entries) => {
            let one = |(name, node): (Located<String>, SourceNode)| {
                let text = match node.value {
                    NodeValue::Null => None,
                    NodeValue::Text(_) | NodeValue::List(_) | NodeValue::Map(_) => {
                        Some(single(&format!("{whose}: {key}.{}", name.value), node, report)?)
                    }
                };
                let how = how(&name, text, report)?;
                Some((name, how))
            };
            return Some(entries.into_iter().filter_map(one).collect());
        }
        NodeValue::List(items) => items,
        value @ (NodeValue::Text(_) | NodeValue::Null) => vec![SourceNode { at: node.at, value }],
    };
    let one = |item: SourceNode| {
        if !matches!(item.value, NodeValue::Map(_)) {
            let name = single(&format!("{whose}: {key}"), item, report)?;
            let how = name.with_value(usual);
            return Some((name, how));
        }
        let mut fields = Fields::open_fields(format!("{whose}: {key}"), item, known, report);
        let (name, text) = (fields.take_word(name_key), fields.take_word(how_key));
        let Some(name) = name else {
            let (at, what) = (fields.at.clone(), format!("{whose}: {key}: no {name_key}"));
            fields.report.fault(&at, what, format!("add {name_key}: NAME"));
            return None;
        };
        let how = how(&name, text, fields.report)?;
        Some((name, how))
    };
    Some(items.into_iter().filter_map(one).collect())
}

/// `retry`: how the delay grows and what is retried.
pub(crate) fn retry(fields: &mut Fields<'_>) -> Option<Located<RetryPolicy>> {
    let node = fields.take_node("retry")?;
    let at = node.at.clone();
    let whose = format!("{}: retry", fields.whose);
    let mut own = Fields::open_fields(whose, node, RETRY, fields.report);
    let words: BTreeMap<&str, ErrorClass> = ErrorClass::WORDS.into_iter().collect();
    let mut policy = RetryPolicy {
        backoff_percent: percent(&mut own, "backoff", "backoff_percent", 100..=BACKOFF_MAX),
        max_delay_sec: own.number("max_delay_sec", 1..=DELAY_MAX).map(|n| n.value),
        jitter_percent: percent(&mut own, "jitter", "jitter_percent", 0..=100),
        on: Vec::new(),
        on_sqlstate: sqlstates(&mut own, "on_sqlstate"),
        never_on_sqlstate: sqlstates(&mut own, "never_on_sqlstate"),
    };
    for word in own.texts("on").unwrap_or_default() {
        match words.get(word.value.as_str()) {
            Some(class) if policy.on.contains(class) => {
                let what = format!("{}: on lists {} twice", own.whose, word.value);
                own.report.fault(&word.at, what, "list it once");
            }
            Some(class) => policy.on.push(*class),
            None => {
                let what = format!("{}: on has no class {:?}", own.whose, word.value);
                let known: Vec<&str> = ErrorClass::WORDS.iter().map(|(word, _)| *word).collect();
                own.report.fault(&word.at, what, format!("use {}", known.join(", ")));
            }
        }
    }
    Some(Located::new(&at, policy))
}

/// A factor such as `1.5`, or the same in percent, as an export writes it.
fn percent(
    fields: &mut Fields<'_>,
    factor: &str,
    percent: &str,
    range: std::ops::RangeInclusive<u32>,
) -> Option<u32> {
    let (low, high) = (*range.start(), *range.end());
    let in_percent = fields.number(percent, range.clone());
    let Some(text) = fields.take_word(factor) else {
        return in_percent.map(|n| n.value);
    };
    if in_percent.is_some() {
        let what = format!("{} has both {factor} and {percent}", fields.whose);
        fields.report.fault(&text.at, what, "keep one of the two");
    }
    let found = hundredths(&text.value).filter(|n| range.contains(n));
    if found.is_none() {
        let what = format!("{}: {factor} is {:?}", fields.whose, text.value);
        let cure = format!(
            "use a number from {}.0 to {}.0 with at most two decimals",
            low / 100,
            high / 100
        );
        fields.report.fault(&text.at, what, cure);
    }
    found
}

/// Parses `1.5` as 150; not through a float, which cannot represent 1.1.
fn hundredths(text: &str) -> Option<u32> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 4 || rest.len() > 2 || !digits(whole) || !digits(rest) {
        return None;
    }
    let cents: u32 = format!("{rest:0<2}").parse().ok()?;
    Some(whole.parse::<u32>().ok()? * 100 + cents)
}

fn sqlstates(fields: &mut Fields<'_>, key: &str) -> Vec<String> {
    let all = fields.texts(key).unwrap_or_default();
    let fits = |code: &str| {
        let known = |b: u8| b.is_ascii_digit() || b.is_ascii_uppercase();
        matches!(code.len(), 2 | 5) && code.bytes().all(known)
    };
    for code in all.iter().filter(|c| !fits(&c.value)) {
        let what = format!("{}: {key}: {:?} is not a SQLSTATE", fields.whose, code.value);
        let cure =
            "write its 5 digits and capitals, such as \"40001\", or 2 for a whole class, \"08\"";
        fields.report.fault(&code.at, what, cure);
    }
    all.into_iter().map(|c| c.value).collect()
}

/// `on_failure: go_on | stop`, or `fail_fast: true`.
pub(crate) fn on_failure(fields: &mut Fields<'_>) -> GroupFailurePolicy {
    let words = [("go_on", GroupFailurePolicy::GoOn), ("stop", GroupFailurePolicy::Stop)];
    let said = fields.choice("on_failure", &words);
    let Some(fast) = fields.take_flag("fail_fast") else {
        return said.map_or(GroupFailurePolicy::GoOn, |s| s.value);
    };
    let meant = if fast.value { GroupFailurePolicy::Stop } else { GroupFailurePolicy::GoOn };
    if said.is_some_and(|said| said.value != meant) {
        let what = format!("{}: fail_fast contradicts on_failure", fields.whose);
        fields.report.fault(&fast.at, what, "keep on_failure and remove fail_fast");
    }
    meant
}
