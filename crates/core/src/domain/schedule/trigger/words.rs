//! The written form of a schedule in files, in JSON and in its row: every key flat, defaults left
//! out.

use super::{
    HANDLERS, NOOP, NumberRule, QUEUE_DISPATCHER, RETRIES, RETRY_DELAY_SEC, ScheduledOrder,
    TIMEOUT_SEC, TriggerDef,
};
use crate::domain::id::{GroupCode, TriggerCode};
use crate::domain::schedule::misfire::{Misfire, MisfirePolicy, WINDOW_MAX_SEC, WINDOW_SEC};
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::{RuleError, ScheduleError, Timing, TimingWords};
use crate::domain::text::did_you_mean::nearest;
use chrono::NaiveDate;
use chrono_tz::Tz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The keys of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ScheduleDefinition")]
pub struct TriggerWords {
    /// Its unique code.
    pub code: String,
    /// Its display name; the code when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The group that it opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub group: Option<GroupCode>,
    /// The batch type whose groups it opens.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub batch_type: Option<String>,
    /// How its batches are numbered: `month(-1)`, `time(%Y%m%d-%H%M)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_no: Option<String>,
    /// The accounting date of all its batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub business_date: Option<NaiveDate>,
    /// Parameters of its batches.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Whether its batch numbers may deviate from the type of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_text: Option<bool>,
    /// The handler, by its XXL-JOB name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// The request as XXL-JOB users write it; in place of `group`, `type`, `batch_no`, `params`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler_param: Option<String>,
    /// When it fires.
    #[serde(flatten)]
    pub timing: TimingWords,
    /// `skip`, `once`, `all` or `{newest: N}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfire: Option<MisfirePolicy>,
    /// Seconds for which a missed time may still be fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfire_window_sec: Option<u32>,
    /// `queue`, `skip`, `parallel` or `replace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// Number of retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u32>,
    /// Seconds between two attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_delay_sec: Option<u32>,
    /// Timeout of one attempt in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_sec: Option<u32>,
    /// Addresses notified of misfires and failures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notify_email: Vec<String>,
    /// Who is responsible for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it is paused when it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A fault of a schedule: its key, the problem and a hint. `Display` is the sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}{cure}", if .cure.is_empty() { "" } else { "; " })]
pub struct WordFault {
    /// The key concerned.
    pub key: &'static str,
    /// The problem.
    pub what: String,
    /// A hint; empty where `what` includes it.
    pub cure: String,
}

/// All faults of a schedule; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct WordFaults(pub Vec<WordFault>);

impl WordFault {
    /// A fault at a key.
    pub fn new(key: &'static str, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { key, what: what.into(), cure: cure.into() }
    }

    /// The fault for an error of the timing.
    pub fn of_timing(error: &ScheduleError, timing_key: &'static str) -> Self {
        Self::new(key_of(error, timing_key), error.to_string(), "")
    }
}

impl TriggerWords {
    /// Validates and parses; `zone` is used when `time_zone` is absent.
    ///
    /// # Errors
    /// All faults, each at its key. What depends on other definitions, calendars and the present
    /// time is checked later (`trigger_check`).
    pub fn parse_trigger(self, zone: Option<Tz>) -> Result<TriggerDef, WordFaults> {
        let mut faults = Vec::new();
        let code = TriggerCode::parse(&self.code)
            .map_err(|e| faults.push(WordFault::new("code", e.to_string(), "")));
        let timing = timing(self.timing.clone(), zone, &mut faults);
        let handler = self.handler.clone().unwrap_or_else(|| QUEUE_DISPATCHER.to_owned());
        if !HANDLERS.contains(&handler.as_str()) {
            let near = nearest(&handler, HANDLERS);
            let cure = near.map_or_else(
                || format!("handlers are {}", HANDLERS.join(" and ")),
                |near| format!("did you mean {near}?"),
            );
            faults.push(WordFault::new("handler", format!("there is no handler {handler}"), cure));
        }
        let order = self.order(&handler, &mut faults);
        let window_sec = self.misfire_window_sec.unwrap_or(WINDOW_SEC);
        if !(1..=WINDOW_MAX_SEC).contains(&window_sec) {
            let what = format!("misfire_window_sec is {window_sec}");
            let cure = format!("write whole seconds from 1 to {WINDOW_MAX_SEC}, which is 31 days");
            faults.push(WordFault::new("misfire_window_sec", what, cure));
        }
        if self.misfire == Some(MisfirePolicy::Newest(0)) {
            let cure = "write skip, or a number from 1 on";
            faults.push(WordFault::new("misfire", "misfire: newest 0 fires nothing", cure));
        }
        match (code, timing) {
            (Ok(code), Some(timing)) if faults.is_empty() => Ok(TriggerDef {
                name: self.name.unwrap_or_else(|| code.to_string()),
                code,
                timing,
                handler,
                order,
                misfire: Misfire { policy: self.misfire.unwrap_or_default(), window_sec },
                overlap: self.overlap.unwrap_or_default(),
                retry_count: self.retry_count.unwrap_or(RETRIES),
                retry_delay_sec: self.retry_delay_sec.unwrap_or(RETRY_DELAY_SEC),
                timeout_sec: self.timeout_sec.unwrap_or(TIMEOUT_SEC),
                notify_email: self.notify_email,
                owner: self.owner,
                starts_paused: self.paused.unwrap_or_default(),
            }),
            _ => Err(WordFaults(faults)),
        }
    }

    fn order(&self, handler: &str, faults: &mut Vec<WordFault>) -> Option<ScheduledOrder> {
        let said = self.order_keys();
        if handler == NOOP {
            if let Some(key) =
                said.first().copied().or(self.handler_param.as_ref().map(|_| "handler_param"))
            {
                let what = format!("{key} is for {QUEUE_DISPATCHER}, and {NOOP} opens nothing");
                faults.push(WordFault::new(key, what, "remove one of the two"));
            }
            return None;
        }
        if let Some(json) = &self.handler_param {
            if let Some(key) = said.first() {
                let what = format!("both handler_param and {key} say what is opened");
                let cure = "keep handler_param alone, or write its parts as keys";
                faults.push(WordFault::new(key, what, cure));
            }
            let read = serde_json::from_str(json).map_err(|e| {
                let what = format!("handler_param cannot be read: {e}");
                let cure = "write JSON such as {\"batchNo\":\"month(-1)\",\"type\":\"monthly\"}";
                faults.push(WordFault::new("handler_param", what, cure));
            });
            let order: ScheduledOrder = read.ok()?;
            if order.group.is_none() && order.batch_type.is_none() {
                let what = "handler_param names neither group nor type";
                faults.push(WordFault::new("handler_param", what, "add \"group\" or \"type\""));
            }
            return Some(order);
        }
        if self.group.is_none() && self.batch_type.is_none() {
            let cure = format!("add group: CODE or type: WORD, or handler: {NOOP} for a trial");
            faults.push(WordFault::new("code", "it says neither group nor type to open", cure));
        }
        let Some(number) = &self.batch_no else {
            let cure = "add batch_no: month(-1), day(0), time(%Y%m%d-%H%M) or the like";
            faults.push(WordFault::new("code", "it does not say how batches are numbered", cure));
            return None;
        };
        let batch_no = NumberRule::parse(number)
            .map_err(|e| faults.push(WordFault::new("batch_no", format!("batch_no: {e}"), "")))
            .ok()?;
        Some(ScheduledOrder {
            batch_no,
            batch_type: self.batch_type.clone(),
            group: self.group.clone(),
            business_date: self.business_date,
            params: self.params.clone(),
            free_text: self.free_text.unwrap_or_default(),
        })
    }

    /// Whether it opens a group of this code and type.
    pub fn opens(&self, code: &GroupCode, batch_type: Option<&str>) -> bool {
        let raw = self.handler_param.as_deref().map(serde_json::from_str::<ScheduledOrder>);
        let (group, ty) = match raw {
            Some(Ok(order)) => (order.group, order.batch_type),
            Some(Err(_)) | None => (self.group.clone(), self.batch_type.clone()),
        };
        (group.is_some() || ty.is_some())
            && group.is_none_or(|group| group == *code)
            && ty.is_none_or(|ty| batch_type == Some(ty.as_str()))
    }

    /// The request keys that are present.
    fn order_keys(&self) -> Vec<&'static str> {
        let keys = [
            ("batch_no", self.batch_no.is_some()),
            ("group", self.group.is_some()),
            ("type", self.batch_type.is_some()),
            ("params", !self.params.is_empty()),
            ("business_date", self.business_date.is_some()),
            ("free_text", self.free_text.is_some()),
        ];
        keys.into_iter().filter(|(_, said)| *said).map(|(key, _)| key).collect()
    }
}

/// Maximum number of faults reported for one timing; each is repaired to find the next.
const TIMING_FAULTS: usize = 8;

/// Parses the timing. Each fault is repaired temporarily, so that later faults are found as well.
fn timing(mut words: TimingWords, zone: Option<Tz>, faults: &mut Vec<WordFault>) -> Option<Timing> {
    let mut sound = true;
    for _ in 0..TIMING_FAULTS {
        let error = match words.clone().parse_timing(zone) {
            Ok(timing) => return sound.then_some(timing),
            Err(error) => error,
        };
        sound = false;
        let fault = WordFault::of_timing(&error, kind_key(&words));
        let key = fault.key;
        faults.push(fault);
        match key {
            "time_zone" => words.time_zone = Some("UTC".to_owned()),
            "start" => words.start = None,
            "end" => words.end = None,
            _ => {
                let TimingWords { time_zone, calendar, shift, start, end, blackouts, .. } = words;
                words = TimingWords {
                    time_zone,
                    calendar,
                    shift,
                    start,
                    end,
                    blackouts,
                    manual: Some(true),
                    ..TimingWords::default()
                };
            }
        }
    }
    None
}

/// The key that selects the kind of schedule, as far as one is present.
fn kind_key(words: &TimingWords) -> &'static str {
    let kinds = [
        ("cron", words.cron.is_some()),
        ("every_sec", words.every_sec.is_some()),
        ("delay_sec", words.delay_sec.is_some()),
        ("once_at", words.once_at.is_some()),
        ("rule", words.rule.is_some()),
        ("event", words.event.is_some()),
        ("after", words.after.is_some()),
        ("manual", words.manual.is_some()),
    ];
    kinds.into_iter().find(|(_, said)| *said).map_or("code", |(key, _)| key)
}

/// The key at which an error of a timing is reported.
fn key_of(error: &ScheduleError, kind: &'static str) -> &'static str {
    match error {
        ScheduleError::Cron(_) => "cron",
        ScheduleError::Rule(RuleError { .. }) => "rule",
        ScheduleError::Calendar(_) => "calendar",
        ScheduleError::Zone { .. } | ScheduleError::NoZone => "time_zone",
        ScheduleError::Time { key, .. } | ScheduleError::Every { key, .. } => key,
        ScheduleError::Window { .. } => "end",
        ScheduleError::Blackout { .. } => "blackouts",
        ScheduleError::NeedsCalendar(_)
        | ScheduleError::Kinds(_)
        | ScheduleError::Key { .. }
        | ScheduleError::NeverFires { .. } => kind,
    }
}

impl TryFrom<TriggerWords> for TriggerDef {
    type Error = WordFaults;
    fn try_from(words: TriggerWords) -> Result<Self, WordFaults> {
        words.parse_trigger(None)
    }
}

impl From<TriggerDef> for TriggerWords {
    fn from(def: TriggerDef) -> Self {
        fn unusual<T: PartialEq>(value: T, usual: T) -> Option<T> {
            (value != usual).then_some(value)
        }
        let mut words = Self {
            name: unusual(def.name, def.code.to_string()),
            code: def.code.to_string(),
            handler: unusual(def.handler, QUEUE_DISPATCHER.to_owned()),
            timing: def.timing.into(),
            misfire: unusual(def.misfire.policy, MisfirePolicy::default()),
            misfire_window_sec: unusual(def.misfire.window_sec, WINDOW_SEC),
            overlap: unusual(def.overlap, Overlap::default()),
            retry_count: unusual(def.retry_count, RETRIES),
            retry_delay_sec: unusual(def.retry_delay_sec, RETRY_DELAY_SEC),
            timeout_sec: unusual(def.timeout_sec, TIMEOUT_SEC),
            notify_email: def.notify_email,
            owner: def.owner,
            paused: unusual(def.starts_paused, false),
            ..Self::default()
        };
        if let Some(order) = def.order {
            words.batch_no = Some(order.batch_no.to_string());
            words.batch_type = order.batch_type;
            words.group = order.group;
            words.business_date = order.business_date;
            words.params = order.params;
            words.free_text = unusual(order.free_text, false);
        }
        words
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
