//! Reads `schedules` and checks the form of every key.

use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::fields::{Fields, single};
use crate::definition::keys::{
    AFTER, BLACKOUT, DELAY_MAX, NEWEST, RETRIES_MAX, SCHEDULE, TIMEOUT_MAX,
};
use crate::definition::node::{NodeValue, SourceNode};
use crate::definition::read::{batch_type, same_code};
use crate::definition::read_audience::addresses;
use crate::domain::calendar::Shift;
use crate::domain::id::{BadName, CalendarCode, GroupCode};
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::schedule::{AfterWords, BatchEndFilter, Blackout, TimingWords};
use std::collections::HashMap;

/// A schedule as the user wrote it.
#[derive(Debug)]
pub(crate) struct RawSchedule {
    pub code: Located<String>,
    pub words: TriggerWords,
    pub owner: Option<Located<String>>,
    /// The place of each key.
    pub places: HashMap<&'static str, SourcePlace>,
    /// Whether every value could be read.
    pub form: FormValidity,
}

/// Whether the form of all values is valid; only then is their meaning checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormValidity {
    Right,
    Wrong,
}

/// Reads one schedule.
pub(crate) fn schedule(
    code: Located<String>,
    node: SourceNode,
    report: &mut FaultReport,
) -> RawSchedule {
    let whose = format!("schedule {}", code.value);
    let places = places(&node);
    let mut own = FaultReport::default();
    let mut fields = Fields::open_fields(whose, node, SCHEDULE, &mut own);
    same_code(&mut fields, "code", &code);
    let owner = fields.take_line("owner", 255);
    let words = TriggerWords {
        code: code.value.clone(),
        name: text_of(fields.take_line("name", 255)),
        group: named(&mut fields, "group", GroupCode::parse),
        batch_type: text_of(batch_type(&mut fields)),
        batch_no: text_of(fields.take_word("batch_no")),
        business_date: read_date(&mut fields),
        params: params(&mut fields),
        free_text: value(fields.take_flag("free_text")),
        handler: text_of(fields.take_word("handler")),
        handler_param: text_of(fields.take_word("handler_param")),
        timing: timing(&mut fields),
        misfire: misfire(&mut fields),
        misfire_window_sec: value(fields.number("misfire_window_sec", 1..=u32::MAX)),
        overlap: value(fields.choice("overlap", &Overlap::ALL.map(|o| (o.as_str(), o)))),
        retry_count: value(fields.number("retry_count", 0..=RETRIES_MAX)),
        retry_delay_sec: value(fields.number("retry_delay_sec", 1..=DELAY_MAX)),
        timeout_sec: value(fields.number("timeout_sec", 1..=TIMEOUT_MAX)),
        notify_email: addresses(&mut fields, "notify_email")
            .unwrap_or_default()
            .into_iter()
            .map(|address| address.value)
            .collect(),
        owner: owner.as_ref().map(|owner| owner.value.clone()),
        paused: value(fields.take_flag("paused")),
    };
    let form = if report.absorb(own) { FormValidity::Right } else { FormValidity::Wrong };
    RawSchedule { code, words, owner, places, form }
}

fn places(node: &SourceNode) -> HashMap<&'static str, SourcePlace> {
    let NodeValue::Map(entries) = &node.value else { return HashMap::new() };
    let known = |key: &str| SCHEDULE.iter().copied().find(|k| *k == key);
    entries.iter().filter_map(|(key, node)| Some((known(&key.value)?, node.at.clone()))).collect()
}

fn text_of(word: Option<Located<String>>) -> Option<String> {
    word.map(|word| word.value)
}

fn value<T>(number: Option<Located<T>>) -> Option<T> {
    number.map(|number| number.value)
}

fn named<T>(
    fields: &mut Fields<'_>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, BadName>,
) -> Option<T> {
    let word = fields.take_word(key)?;
    parse(&word.value)
        .map_err(|error| {
            let what = format!("{}: {key}: {error}", fields.whose);
            fields.report.fault(&word.at, what, "");
        })
        .ok()
}

fn read_date(fields: &mut Fields<'_>) -> Option<chrono::NaiveDate> {
    let word = fields.take_word("business_date")?;
    let date = word.value.trim().parse().ok();
    if date.is_none() {
        let what = format!("{}: business_date is {:?}, not a date", fields.whose, word.value);
        fields.report.fault(&word.at, what, "write YYYY-MM-DD");
    }
    date
}

fn params(fields: &mut Fields<'_>) -> std::collections::BTreeMap<String, String> {
    let all = fields.named_texts("params");
    all.into_iter().map(|(name, text)| (name.value, text.value)).collect()
}

fn timing(fields: &mut Fields<'_>) -> TimingWords {
    TimingWords {
        cron: text_of(fields.take_word("cron")),
        every_sec: value(fields.number("every_sec", i64::MIN..=i64::MAX)),
        delay_sec: value(fields.number("delay_sec", i64::MIN..=i64::MAX)),
        once_at: text_of(fields.take_word("once_at")),
        rule: text_of(fields.take_word("rule")),
        at: text_of(fields.take_word("at")),
        event: text_of(fields.take_word("event")),
        manual: value(fields.take_flag("manual")),
        after: after(fields),
        time_zone: text_of(fields.take_word("time_zone")),
        calendar: named(fields, "calendar", CalendarCode::parse),
        shift: value(fields.choice("shift", &Shift::ALL.map(|s| (s.as_str(), s)))),
        start: text_of(fields.take_word("start")),
        end: text_of(fields.take_word("end")),
        blackouts: blackouts(fields),
    }
}

fn after(fields: &mut Fields<'_>) -> Option<AfterWords> {
    let node = fields.take_node("after")?;
    let whose = format!("{}: after", fields.whose);
    if !matches!(node.value, NodeValue::Map(_)) {
        let word = single(&whose, node, fields.report)?;
        let group = GroupCode::parse(&word.value)
            .map_err(|error| fields.report.fault(&word.at, format!("{whose}: {error}"), ""));
        return group.ok().map(AfterWords::Group);
    }
    let at = node.at.clone();
    let mut inner = Fields::open_fields(whose.clone(), node, AFTER, fields.report);
    let on =
        inner.choice("on", &[("success", BatchEndFilter::Success), ("end", BatchEndFilter::End)]);
    let Some(group) = inner.take_word("group") else {
        fields.report.fault(&at, format!("{whose} names no group"), "add group: CODE");
        return None;
    };
    let code = GroupCode::parse(&group.value)
        .map_err(|error| fields.report.fault(&group.at, format!("{whose}: {error}"), ""));
    Some(AfterWords::Full { group: code.ok()?, on: on.map(|on| on.value).unwrap_or_default() })
}

fn misfire(fields: &mut Fields<'_>) -> Option<MisfirePolicy> {
    let node = fields.take_node("misfire")?;
    let whose = format!("{}: misfire", fields.whose);
    if matches!(node.value, NodeValue::Map(_)) {
        let mut inner = Fields::open_fields(whose, node, NEWEST, fields.report);
        return inner.number("newest", 1..=u32::MAX).map(|n| MisfirePolicy::Newest(n.value));
    }
    let word = single(&whose, node, fields.report)?;
    match word.value.trim() {
        "skip" => Some(MisfirePolicy::Skip),
        "once" => Some(MisfirePolicy::Once),
        "all" => Some(MisfirePolicy::All),
        other => {
            let cure = "use one of skip, once, all, or {newest: 3}";
            fields.report.fault(&word.at, format!("{whose} is {other:?}"), cure);
            None
        }
    }
}

fn blackouts(fields: &mut Fields<'_>) -> Vec<Blackout> {
    let Some(node) = fields.take_node("blackouts") else { return Vec::new() };
    let whose = format!("{}: blackouts", fields.whose);
    let items = match node.value {
        NodeValue::List(items) => items,
        value @ (NodeValue::Text(_) | NodeValue::Map(_) | NodeValue::Null) => {
            vec![SourceNode { at: node.at, value }]
        }
    };
    items.into_iter().filter_map(|item| blackout(&whose, item, fields.report)).collect()
}

fn blackout(whose: &str, item: SourceNode, report: &mut FaultReport) -> Option<Blackout> {
    let at = item.at.clone();
    let mut fields = Fields::open_fields(whose, item, BLACKOUT, report);
    let mut words = serde_json::Map::new();
    for key in BLACKOUT {
        if let Some(word) = fields.take_text(key) {
            words.insert((*key).to_owned(), word.value.into());
        }
    }
    let read = serde_json::from_value(serde_json::Value::Object(words));
    read.map_err(|error| report.fault(&at, format!("{whose}: {error}"), "")).ok()
}
