//! Converts the days and repetitions of a job: `When`, `Rerun` and `RerunSpecificTimes`.

use crate::definition::SourceNode;
use crate::domain::schedule::{Blackout, BlackoutTime, TimingWords};
use crate::import::calendar_names::{MONTHS, WEEK, blackout_of_other_days};
use crate::import::control_m::keys;
use crate::import::draft::Draft;
use crate::import::keys::check_keys;
use crate::import::note::BilingualSentence;
use crate::import::tree::{entries, get, items, list, plain, word};
use chrono::{NaiveDate, NaiveTime, WeekdaySet};

/// The times of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CtmDays {
    on: DaySet,
    often: Often,
    start: Option<NaiveDate>,
    end: Option<NaiveDate>,
    /// Earliest time of day.
    pub(super) from: Option<NaiveTime>,
    to: Option<NaiveTime>,
}

/// The days.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DaySet {
    /// Days by name; none means any.
    Named {
        weekdays: Option<Vec<String>>,
        monthdays: Option<Vec<u32>>,
        months: Vec<usize>,
        both: DayCombination,
    },
    /// No day: the job is ordered by hand.
    Never,
    /// There is no equivalent.
    Unknown(BilingualSentence),
}

/// Whether a day must match both the month and the week conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayCombination {
    Either,
    Together,
}

/// Repetition within a day.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Often {
    Once,
    /// This many seconds after the start of the previous run.
    FromStart(i64),
    /// This many seconds after the end of the previous run.
    FromEnd(i64),
    At(Vec<NaiveTime>),
    Unknown(BilingualSentence),
}

impl CtmDays {
    /// Reads the innermost of several maps.
    pub(super) fn read_days(scopes: &[&SourceNode], about: &str, draft: &mut Draft) -> Self {
        let find = |key: &str| scopes.iter().find_map(|scope| get(scope, key));
        let when = find("When");
        let often = scopes.first().map_or(Often::Once, |own| often(own));
        if let Some(own) = scopes.first().and_then(|own| get(own, "When")) {
            let is_cycle = matches!(often, Often::FromStart(_) | Often::FromEnd(_));
            let of_cycle = if is_cycle { keys::CYCLE_WHEN } else { &[] };
            check_keys(own, &[of_cycle, keys::WHEN], about, draft);
        }
        let date = |key: &str| {
            let text = when.and_then(|when| word(when, key))?;
            NaiveDate::parse_from_str(text.trim(), "%Y%m%d").ok()
        };
        let time = |key: &str| when.and_then(|when| word(when, key)).and_then(read_time);
        Self {
            on: when.map_or_else(every_day, day_set),
            often,
            start: date("StartDate"),
            end: date("EndDate"),
            from: time("FromTime"),
            to: time("ToTime"),
        }
    }

    pub(super) fn is_cyclic(&self) -> bool {
        self.often != Often::Once
    }

    /// The key that jobs of one group share; a job that runs several times a day has its own group.
    pub(super) fn group_key(&self, name: &str) -> String {
        match self.often {
            Often::Once => format!("{:?} {:?} {:?}", self.on, self.start, self.end),
            Often::FromStart(_) | Often::FromEnd(_) | Often::At(_) | Often::Unknown(_) => {
                format!("cyclic {name}")
            }
        }
    }

    /// The title of a further group of a folder.
    pub(super) fn title(&self, name: &str) -> String {
        match (&self.often, &self.on) {
            (Often::Once, DaySet::Named { weekdays, monthdays, months, .. }) => {
                let months: Vec<&str> = months.iter().map(|month| MONTHS[*month]).collect();
                let monthdays = monthdays.iter().flatten().map(|day| format!("day{day}"));
                let words = weekdays.iter().flatten().cloned().chain(monthdays);
                let words: Vec<String> =
                    words.chain(months.into_iter().map(str::to_owned)).take(4).collect();
                if words.is_empty() { "daily".to_owned() } else { words.join("_") }
            }
            (Often::Once, DaySet::Never) => "by_hand".to_owned(),
            (Often::Once, DaySet::Unknown(_)) => "calendar".to_owned(),
            (Often::FromStart(_) | Often::FromEnd(_) | Often::At(_) | Often::Unknown(_), _) => {
                name.to_owned()
            }
        }
    }

    /// The schedules, or why there is none.
    pub(super) fn timings(&self) -> Result<Vec<TimingWords>, BilingualSentence> {
        let mut made = match &self.often {
            Often::Once => vec![self.on.timing("0 0 0")?],
            Often::At(times) => {
                let at = |time: &NaiveTime| self.on.timing(&time.format("0 %-M %-H").to_string());
                times.iter().map(at).collect::<Result<Vec<_>, _>>()?
            }
            Often::FromStart(sec) => vec![TimingWords {
                every_sec: Some(*sec),
                blackouts: self.cyclic_blackouts()?,
                ..TimingWords::default()
            }],
            Often::FromEnd(sec) => vec![TimingWords {
                delay_sec: Some(*sec),
                blackouts: self.cyclic_blackouts()?,
                ..TimingWords::default()
            }],
            Often::Unknown(why) => return Err(why.clone()),
        };
        for timing in &mut made {
            timing.start = self.start.map(|day| day.to_string());
            // In Control-M the end is the last day.
            timing.end = self.end.and_then(|day| day.succ_opt()).map(|day| day.to_string());
        }
        Ok(made)
    }

    /// The times that a cycle excludes: other days of the week, and the time before FromTime and after ToTime.
    fn cyclic_blackouts(&self) -> Result<Vec<Blackout>, BilingualSentence> {
        let DaySet::Named { weekdays, monthdays: None, months, .. } = &self.on else {
            return Err(not_sayable("a cycle on days of the month, or on no days"));
        };
        if !months.is_empty() {
            return Err(not_sayable("a cycle in some months"));
        }
        let mut made: Vec<Blackout> =
            weekdays.iter().map(|days| blackout_of_other_days(week_set(Some(days)))).collect();
        if self.from.is_some() || self.to.is_some() {
            let (from, until) =
                (self.to.unwrap_or(NaiveTime::MIN), self.from.unwrap_or(NaiveTime::MIN));
            if from != until {
                let time = BlackoutTime::Weekly { from, until, days: WeekdaySet::ALL };
                let because = Some("after ToTime or before FromTime".to_owned());
                made.push(Blackout { time, because });
            }
        }
        Ok(made)
    }
}

impl DaySet {
    /// A cron expression of these days; `time` is its first three fields.
    fn timing(&self, time: &str) -> Result<TimingWords, BilingualSentence> {
        let (weekdays, monthdays, months, both) = match self {
            Self::Named { weekdays, monthdays, months, both } => {
                (weekdays, monthdays, months, both)
            }
            Self::Never => return Ok(TimingWords { manual: Some(true), ..TimingWords::default() }),
            Self::Unknown(why) => return Err(why.clone()),
        };
        let month = if months.is_empty() {
            "*".to_owned()
        } else {
            months.iter().map(|month| (month + 1).to_string()).collect::<Vec<_>>().join(",")
        };
        let days = monthdays
            .as_ref()
            .map(|days| days.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        let week = weekdays.as_ref().map(|days| days.join(","));
        let mut blackouts = Vec::new();
        let cron = match (days, week, both) {
            (None, None, _) => format!("{time} * {month} ?"),
            (Some(days), None, _) => format!("{time} {days} {month} ?"),
            (None, Some(week), _) => format!("{time} ? {month} {week}"),
            // With both kinds of days, five fields mean either.
            (Some(days), Some(week), DayCombination::Either) => {
                let time = time.strip_prefix("0 ").unwrap_or(time);
                format!("{time} {days} {month} {week}")
            }
            (Some(days), Some(_), DayCombination::Together) => {
                blackouts.push(blackout_of_other_days(week_set(weekdays.as_deref())));
                format!("{time} {days} {month} ?")
            }
        };
        Ok(TimingWords { cron: Some(cron), blackouts, ..TimingWords::default() })
    }
}

fn week_set(days: Option<&[String]>) -> WeekdaySet {
    let is_named = |name: &str| days.unwrap_or_default().iter().any(|word| word == name);
    WEEK.iter().filter(|(_, name)| is_named(name)).map(|(day, _)| *day).collect()
}

fn every_day() -> DaySet {
    DaySet::Named {
        weekdays: None,
        monthdays: None,
        months: Vec::new(),
        both: DayCombination::Either,
    }
}

fn not_sayable(what: &str) -> BilingualSentence {
    BilingualSentence::new(
        format!("its schedule is left out: {what} cannot be said by a schedule here"),
        format!("其调度未迁移:此处的调度无法表达({what})"),
    )
}

/// Parses `1530` as a time of day; `None` for `>` and anything else.
fn read_time(text: &str) -> Option<NaiveTime> {
    let text = text.trim();
    let (hour, minute) = (text.get(..2)?.parse().ok()?, text.get(2..4)?.parse().ok()?);
    (text.len() == 4).then(|| NaiveTime::from_hms_opt(hour, minute, 0)).flatten()
}

fn day_set(when: &SourceNode) -> DaySet {
    if word(when, "Schedule") == Some("Never") {
        return DaySet::Never;
    }
    for key in ["WeekDaysCalendar", "MonthDaysCalendar", "ConfirmationCalendars"] {
        if get(when, key).is_some() {
            return DaySet::Unknown(by_calendar(key));
        }
    }
    if let Some(rules) = get(when, "RuleBasedCalendars") {
        return rule_based(rules);
    }
    if get(when, "SpecificDates").is_some() {
        return DaySet::Unknown(not_sayable("SpecificDates"));
    }
    named_days(when)
}

/// The words of a list, in capitals; `None` if the key is absent.
fn day_words(when: &SourceNode, key: &str) -> Option<Vec<String>> {
    let found = get(when, key)?;
    let all = match plain(found) {
        Some(one) => vec![one],
        None => list(found).iter().filter_map(plain).collect(),
    };
    Some(all.into_iter().map(|word| word.trim().to_ascii_uppercase()).collect())
}

/// WeekDays, MonthDays and Months by their names.
fn named_days(when: &SourceNode) -> DaySet {
    let has = |words: &Option<Vec<String>>, word: &str| words.iter().flatten().any(|w| w == word);
    let (weekdays, monthdays) = (day_words(when, "WeekDays"), day_words(when, "MonthDays"));
    let months = day_words(when, "Months").filter(|months| !months.iter().any(|m| m == "ALL"));
    let months = months.unwrap_or_default();
    let place = |name: &String| MONTHS.iter().position(|month| month == name);
    let Some(months) = months.iter().map(place).collect::<Option<Vec<usize>>>() else {
        return DaySet::Unknown(not_sayable("Months"));
    };
    if has(&weekdays, "NONE") && has(&monthdays, "NONE") {
        return DaySet::Never;
    }
    let both = if word(when, "DaysRelation") == Some("AND") {
        DayCombination::Together
    } else {
        DayCombination::Either
    };
    let is_every = has(&weekdays, "ALL") || has(&monthdays, "ALL");
    if is_every && both == DayCombination::Either {
        return DaySet::Named { weekdays: None, monthdays: None, months, both };
    }
    // If one of them is ALL, NONE or absent, the other decides.
    let named = |words: Option<Vec<String>>| {
        words.filter(|words| !words.iter().any(|w| w == "NONE" || w == "ALL"))
    };
    let weekdays = named(weekdays);
    if weekdays.iter().flatten().any(|day| !WEEK.iter().any(|(_, name)| name == day)) {
        return DaySet::Unknown(not_sayable("WeekDays with counted days"));
    }
    let day = |word: &String| word.parse().ok().filter(|day| (1..=31).contains(day));
    let days = named(monthdays).map(|days| days.iter().map(day).collect::<Option<Vec<u32>>>());
    match days {
        Some(None) => DaySet::Unknown(not_sayable("MonthDays with counted days")),
        Some(Some(days)) => DaySet::Named { weekdays, monthdays: Some(days), months, both },
        None => DaySet::Named { weekdays, monthdays: None, months, both },
    }
}

fn by_calendar(key: &str) -> BilingualSentence {
    BilingualSentence::new(
        format!(
            "its schedule is left out: {key} names a calendar, which decides the days: import that calendar \
             (procession calendar import) and write a schedule with calendar: CODE and shift: skip, or a rule"
        ),
        format!(
            "其调度未迁移:{key} 由日历决定日期:请用 procession calendar import 导入日历,并编写带 calendar 与 shift: skip 的调度或 rule"
        ),
    )
}

/// A calendar that is written out, or EVERYDAY.
fn rule_based(rules: &SourceNode) -> DaySet {
    let included: Vec<&str> = items(rules, "Included").iter().filter_map(plain).collect();
    let excluded = items(rules, "Excluded").len();
    match (&included[..], excluded) {
        ([one], 0) if one.eq_ignore_ascii_case("EVERYDAY") => every_day(),
        ([one], 0) => {
            let inline = entries(rules)
                .find(|(name, _)| name == one)
                .and_then(|(_, node)| get(node, "When"));
            inline.map_or_else(|| DaySet::Unknown(by_calendar("RuleBasedCalendars")), day_set)
        }
        _ => DaySet::Unknown(by_calendar("RuleBasedCalendars")),
    }
}

/// The job's own repetition.
fn often(job: &SourceNode) -> Often {
    if let Some(rerun) = get(job, "Rerun") {
        let every = word(rerun, "Every").and_then(|text| text.trim().parse::<i64>().ok());
        let unit = match word(rerun, "Units").unwrap_or("Minutes").to_ascii_lowercase().as_str() {
            "seconds" => 1,
            "minutes" => 60,
            "hours" => 3_600,
            "days" => 86_400,
            _ => 0,
        };
        let seconds = every.and_then(|every| every.checked_mul(unit)).unwrap_or(0);
        if seconds > 0 {
            let is_start = matches!(word(rerun, "From"), Some("Start" | "RunTarget" | "Target"));
            return if is_start { Often::FromStart(seconds) } else { Often::FromEnd(seconds) };
        }
        if every != Some(0) {
            return Often::Unknown(not_sayable("Rerun"));
        }
    }
    if get(job, "RerunIntervals").is_some() {
        return Often::Unknown(not_sayable("RerunIntervals"));
    }
    let Some(times) = get(job, "RerunSpecificTimes") else { return Often::Once };
    let all: Option<Vec<NaiveTime>> =
        items(times, "At").iter().map(|at| plain(at).and_then(read_time)).collect();
    match all {
        Some(all) if !all.is_empty() => Often::At(all),
        Some(_) | None => Often::Unknown(not_sayable("RerunSpecificTimes")),
    }
}
