//! The flags of `schedule add`, `edit` and `next`.

use crate::cli::BadInput;
use crate::domain::calendar::Shift;
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::notification::recipient::Recipient;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::schedule::{AfterWords, BatchEndFilter, Blackout, TimingWords};
use anyhow::Result;
use chrono::NaiveDate;
use clap::Args;
use std::collections::BTreeMap;

/// When it fires: exactly one of --cron, --every, --delay, --once-at, --rule, --event, --manual, --after.
#[derive(Args, Default)]
pub(super) struct TimingFlags {
    /// Quartz cron of 6 or 7 fields, or classic cron of 5: '0 0 2 1 * ?'
    #[arg(long, value_name = "CRON")]
    cron: Option<String>,
    /// At a fixed rate: 5m, 90s, 1h30m
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    every: Option<u32>,
    /// So long after the batch before has ended
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    delay: Option<u32>,
    /// Once: 2026-12-31T18:00
    #[arg(long, value_name = "TIME")]
    once_at: Option<String>,
    /// A counted day, with --at: 'last working day of quarter', '3rd working day of month'
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Time of day of --rule: 18:00
    #[arg(long, value_name = "HH:MM")]
    at: Option<String>,
    /// When this event is sent (procession event send NAME)
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// By hand alone (procession schedule fire-now)
    #[arg(long)]
    manual: bool,
    /// When a batch of this group ends
    #[arg(long, value_name = "GROUP")]
    after: Option<String>,
    /// Which ends of --after count: success or end [default: success]
    #[arg(long, value_name = "ENDS", value_parser = ending, requires = "after")]
    on: Option<BatchEndFilter>,
    /// IANA time zone, Asia/Shanghai [default: that of the group]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Calendar of working days
    #[arg(long, value_name = "CODE")]
    calendar: Option<String>,
    /// On a day off: run, skip, next or previous (working day)
    #[arg(long, value_name = "POLICY", value_parser = shift)]
    shift: Option<Shift>,
    /// Nothing fires before: 2026-01-01 or 2026-01-01T08:00
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// Nothing fires from here on
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
    /// Nothing fires in: '22:00-06:00', '22:00-06:00 mon-fri' or '2026-12-31T18:00..2027-01-02T08:00';
    /// may be given several times
    #[arg(long = "blackout", value_name = "WHEN")]
    blackouts: Vec<String>,
}

/// What it opens, and how.
#[derive(Args, Default)]
pub(super) struct OrderFlags {
    /// Name for people
    #[arg(long)]
    name: Option<String>,
    /// The group it opens
    #[arg(long)]
    group: Option<String>,
    /// The type of the groups it opens
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "group")]
    batch_type: Option<String>,
    /// Number of its batches: 'month(-1)', 'quarter(0)', 'day(0)', 'time(%Y%m%d-%H%M)'
    #[arg(long, value_name = "EXPR")]
    batch_no: Option<String>,
    /// Accounting day of all its batches
    #[arg(long, value_name = "YYYY-MM-DD")]
    business_date: Option<NaiveDate>,
    /// Its batch numbers need not fit the type of the group; each that does not is put on record
    #[arg(long)]
    free_text: bool,
    /// Parameter of its batches, NAME=VALUE; may hold ${planned_at}, ${nominal_date}, ${schedule}
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// queueDispatcherHandler, or noopHandler for a trial [default: queueDispatcherHandler]
    #[arg(long, value_name = "NAME")]
    handler: Option<String>,
    /// The order as XXL-JOB has it: {"batchNo":"month(-1)","type":"monthly"}
    #[arg(long, value_name = "JSON",
        conflicts_with_all = ["group", "batch_type", "batch_no", "business_date", "free_text", "params"])]
    handler_param: Option<String>,
    /// Missed times: skip, once, all or newest:N [default: once]
    #[arg(long, value_name = "POLICY", value_parser = misfire)]
    misfire: Option<MisfirePolicy>,
    /// How long a missed time is worth firing: 24h, 3d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    misfire_window: Option<u32>,
    /// While the batch before still runs: queue, skip, parallel or replace [default: queue]
    #[arg(long, value_name = "POLICY", value_parser = overlap)]
    overlap: Option<Overlap>,
    /// Tries after the first to open its batches
    #[arg(long, value_name = "N")]
    retry_count: Option<u32>,
    /// Time between two of them
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    retry_delay: Option<u32>,
    /// Time one of them may take
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<u32>,
    /// Address that hears of misses and failures; may be given several times
    #[arg(long = "notify", value_name = "MAIL", value_parser = address)]
    notify: Vec<String>,
    /// Who answers for it
    #[arg(long)]
    owner: Option<String>,
}

/// `5m`, `90s`, `1h30m`, `2d`, or plain seconds.
pub(super) fn seconds(text: &str) -> Result<u32, String> {
    let bad = || format!("'{text}' is not a time; write 90s, 5m, 1h30m, 2d or whole seconds");
    if let Ok(plain) = text.parse::<u32>() {
        return Ok(plain).and_then(|n| if n > 0 { Ok(n) } else { Err(bad()) });
    }
    let (mut total, mut digits) = (0u32, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c.to_ascii_lowercase() {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(bad()),
        };
        let part = digits.parse::<u32>().ok().and_then(|n| n.checked_mul(unit)).ok_or_else(bad)?;
        total = total.checked_add(part).ok_or_else(bad)?;
        digits.clear();
    }
    if total == 0 || !digits.is_empty() { Err(bad()) } else { Ok(total) }
}

fn ending(word: &str) -> Result<BatchEndFilter, String> {
    match word {
        "success" => Ok(BatchEndFilter::Success),
        "end" => Ok(BatchEndFilter::End),
        _ => Err("write success, or end for any end".to_owned()),
    }
}

fn shift(word: &str) -> Result<Shift, String> {
    let found = Shift::ALL.into_iter().find(|s| s.as_str() == word);
    found.ok_or_else(|| "write run, skip, next or previous".to_owned())
}

fn overlap(word: &str) -> Result<Overlap, String> {
    let found = Overlap::ALL.into_iter().find(|o| o.as_str() == word);
    found.ok_or_else(|| "write queue, skip, parallel or replace".to_owned())
}

fn misfire(word: &str) -> Result<MisfirePolicy, String> {
    let newest = word.strip_prefix("newest:").and_then(|n| n.parse().ok());
    match (word, newest) {
        ("skip", _) => Ok(MisfirePolicy::Skip),
        ("once", _) => Ok(MisfirePolicy::Once),
        ("all", _) => Ok(MisfirePolicy::All),
        (_, Some(n)) => Ok(MisfirePolicy::Newest(n)),
        (_, None) => Err("write skip, once, all or newest:3".to_owned()),
    }
}

fn address(word: &str) -> Result<String, String> {
    Recipient::parse(word).map(|_| word.to_owned()).map_err(|error| error.to_string())
}

fn blackout(text: &str) -> Result<Blackout> {
    let words = match (text.split_once(".."), text.trim().split_once(' ')) {
        (Some((from, until)), _) => serde_json::json!({"from": from.trim(), "until": until.trim()}),
        (None, Some((daily, days))) => serde_json::json!({"daily": daily, "days": days.trim()}),
        (None, None) => serde_json::json!({"daily": text.trim()}),
    };
    Ok(serde_json::from_value(words).map_err(|e| BadInput(format!("--blackout {text}: {e}")))?)
}

/// `NAME=VALUE` pairs.
pub(super) fn pairs(given: &[String]) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for pair in given {
        let split = pair.split_once('=').filter(|(name, _)| !name.is_empty());
        let Some((name, value)) = split else {
            return Err(BadInput(format!("--param {pair}: write NAME=VALUE")).into());
        };
        if found.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(BadInput(format!("--param says twice what {name} is")).into());
        }
    }
    Ok(found)
}

impl TimingFlags {
    /// Whether a kind of timing is given.
    pub(super) fn names_a_kind(&self) -> bool {
        self.cron.is_some()
            || self.every.is_some()
            || self.delay.is_some()
            || self.once_at.is_some()
            || self.rule.is_some()
            || self.event.is_some()
            || self.manual
            || self.after.is_some()
    }

    /// Overrides the present values with the given ones. A given kind replaces the present one.
    pub(super) fn apply_to(&self, mut words: TimingWords) -> Result<TimingWords> {
        if self.names_a_kind() {
            let kept_at = words.at.take().filter(|_| words.rule.is_some() && self.rule.is_some());
            words = TimingWords {
                cron: self.cron.clone(),
                every_sec: self.every.map(i64::from),
                delay_sec: self.delay.map(i64::from),
                once_at: self.once_at.clone(),
                rule: self.rule.clone(),
                at: kept_at,
                event: self.event.clone(),
                manual: self.manual.then_some(true),
                after: self.after()?,
                ..words
            };
        }
        let put = |there: &mut Option<String>, given: &Option<String>| {
            if given.is_some() {
                there.clone_from(given);
            }
        };
        put(&mut words.at, &self.at);
        put(&mut words.time_zone, &self.zone);
        put(&mut words.start, &self.start);
        put(&mut words.end, &self.end);
        if let Some(code) = &self.calendar {
            words.calendar = Some(CalendarCode::parse(code)?);
        }
        words.shift = self.shift.or(words.shift);
        if !self.blackouts.is_empty() {
            words.blackouts = self.blackouts.iter().map(|t| blackout(t)).collect::<Result<_>>()?;
        }
        Ok(words)
    }

    fn after(&self) -> Result<Option<AfterWords>> {
        let Some(group) = &self.after else { return Ok(None) };
        let group = GroupCode::parse(group)?;
        Ok(Some(AfterWords::Full { group, on: self.on.unwrap_or_default() }))
    }
}

impl OrderFlags {
    /// Overrides the present values with the given ones.
    pub(super) fn apply_to(&self, mut words: TriggerWords) -> Result<TriggerWords> {
        if self.handler_param.is_some() {
            words = TriggerWords {
                group: None,
                batch_type: None,
                batch_no: None,
                business_date: None,
                params: BTreeMap::new(),
                free_text: None,
                handler_param: self.handler_param.clone(),
                ..words
            };
        }
        if let Some(group) = &self.group {
            (words.group, words.batch_type) = (Some(GroupCode::parse(group)?), None);
        }
        if self.batch_type.is_some() {
            (words.group, words.batch_type) = (None, self.batch_type.clone());
        }
        words.params.extend(pairs(&self.params)?);
        words.name = self.name.clone().or(words.name);
        words.batch_no = self.batch_no.clone().or(words.batch_no);
        words.business_date = self.business_date.or(words.business_date);
        words.free_text = self.free_text.then_some(true).or(words.free_text);
        words.handler = self.handler.clone().or(words.handler);
        words.misfire = self.misfire.or(words.misfire);
        words.misfire_window_sec = self.misfire_window.or(words.misfire_window_sec);
        words.overlap = self.overlap.or(words.overlap);
        words.retry_count = self.retry_count.or(words.retry_count);
        words.retry_delay_sec = self.retry_delay.or(words.retry_delay_sec);
        words.timeout_sec = self.timeout.or(words.timeout_sec);
        words.owner = self.owner.clone().or(words.owner);
        if !self.notify.is_empty() {
            words.notify_email.clone_from(&self.notify);
        }
        Ok(words)
    }
}

/// Keys that `schedule edit --clear` removes.
pub(super) const CLEARED: [&str; 10] = [
    "start",
    "end",
    "calendar",
    "shift",
    "blackouts",
    "params",
    "notify",
    "owner",
    "business-date",
    "free-text",
];

/// Removes a key.
pub(super) fn clear(mut words: TriggerWords, key: &str) -> TriggerWords {
    match key {
        "start" => words.timing.start = None,
        "end" => words.timing.end = None,
        "calendar" => words.timing.calendar = None,
        "shift" => words.timing.shift = None,
        "blackouts" => words.timing.blackouts.clear(),
        "params" => words.params.clear(),
        "notify" => words.notify_email.clear(),
        "owner" => words.owner = None,
        "free-text" => words.free_text = None,
        // clap allows no other value.
        _ => words.business_date = None,
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_units_people_write() {
        for (text, wanted) in [
            ("90", 90),
            ("90s", 90),
            ("5m", 300),
            ("1h30m", 5_400),
            ("2d", 172_800),
            ("24H", 86_400),
        ] {
            assert_eq!(seconds(text), Ok(wanted), "{text}");
        }
        for text in ["", "0", "0m", "5x", "m", "1h30", "-5m", "99999999d", "4294967296"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn blackouts_are_told_apart_by_their_form() {
        for (text, shown) in [
            ("22:00-06:00", "22:00-06:00"),
            ("22:00-06:00 mon-fri", "22:00-06:00 mon,tue,wed,thu,fri"),
            ("2026-12-31T18:00..2027-01-02T08:00", "2026-12-31T18:00:00 to 2027-01-02T08:00:00"),
        ] {
            assert_eq!(blackout(text).expect(text).time.to_string(), shown);
        }
        assert!(blackout("at night").is_err());
    }
}
