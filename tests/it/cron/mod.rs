//! P-07: cron expressions against an expander by brute force, against the crate `cron`, and those
//! that are to be refused. `PROCESSION_LONG=1` compares every firing instead of windows.

mod expander;
pub(crate) mod generator;

use chrono::{NaiveDate, TimeZone as _, Utc};
use chrono_tz::Tz;
use expander::{Expanded, Zone, written};
use generator::Dice;
use procession::domain::schedule::cron::{Cron, CronDialect, CronError};
use procession::domain::time::Millis;
use std::collections::BTreeSet;
use std::str::FromStr as _;

const ZONES: [Tz; 6] = [
    Tz::Asia__Shanghai,
    Tz::America__New_York,
    Tz::Europe__London,
    Tz::Australia__Lord_Howe,
    Tz::Africa__Cairo,
    Tz::UTC,
];

/// Expressions by hand: one for each form and each trap known from other libraries.
const BY_HAND: &str = include_str!("by_hand.txt");
/// Expressions of other projects, see the README beside them.
const PUBLIC: &str = include_str!("../../data/cron/public.json");
const EXPRESSIONS: usize = 2_000;

fn by_hand() -> impl Iterator<Item = String> {
    BY_HAND
        .lines()
        .map(|l| l.split("//").next().unwrap_or("").trim().to_owned())
        .filter(|l| !l.is_empty())
}

fn public() -> Vec<String> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(PUBLIC).expect("JSON");
    rows.iter().map(|row| row["cron"].as_str().expect("text").to_owned()).collect()
}

fn all_expressions() -> Vec<String> {
    let mut dice = Dice(7);
    let mut all: Vec<String> = by_hand().chain(public()).collect();
    while all.len() < EXPRESSIONS {
        all.push(if dice.below(5) == 0 { dice.classic() } else { dice.quartz() });
    }
    all
}

fn midnight(year: i32, month: u32, day: u32) -> i64 {
    Utc.with_ymd_and_hms(year, month, day, 0, 0, 0).single().expect("a day").timestamp()
}

/// One expression in one zone, and where it is looked at.
struct Case<'a> {
    text: &'a str,
    cron: &'a Cron,
    expanded: &'a Expanded,
    zone: &'a Zone,
}

impl Case<'_> {
    /// Compares all firings between two moments; what differs, in words.
    fn compare(&self, from: i64, until: i64) -> Result<usize, String> {
        let expected = self.expanded.firings(self.zone, from, until);
        let mut at = from;
        for (n, wanted) in expected.iter().map(Some).chain([None]).enumerate() {
            let found = self.cron.next_after(Millis(at * 1_000), self.zone.tz);
            let found = found.map(|at| at.0 / 1_000).filter(|at| *at < until);
            if found.as_ref() != wanted {
                let word =
                    |at: Option<i64>| at.map_or("none".to_owned(), |at| written(at, self.zone.tz));
                return Err(format!(
                    "'{}' in {} after {}: firing {n} is {}, by the rules {}",
                    self.text,
                    self.zone.tz,
                    written(at, self.zone.tz),
                    word(found),
                    word(wanted.copied())
                ));
            }
            at = wanted.copied().unwrap_or(at);
        }
        Ok(expected.len())
    }

    /// Half the length of a window in which about so many firings are expected.
    fn half(&self, firings: i64) -> i64 {
        let per_day = i64::try_from(self.expanded.per_day()).expect("small");
        (86_400 * firings / 2 / per_day).clamp(20, 3 * 86_400)
    }

    /// Windows around `moment`; where fine ones would miss the far end of a change, three.
    fn around(&self, moment: i64, change: i64) -> Vec<(i64, i64)> {
        let half = self.half(28);
        let centres = if half < change.abs() {
            vec![moment - change.abs(), moment, moment + change.abs()]
        } else {
            vec![moment]
        };
        centres.into_iter().map(|centre| (centre - half, centre + half)).collect()
    }

    fn windows(&self, dice: &mut Dice) -> Vec<(i64, i64)> {
        let mut windows = Vec::new();
        let changes: Vec<_> =
            self.zone.changes().iter().filter(|(at, _)| *at > midnight(2020, 1, 5)).collect();
        // Changes that follow each other: to summer and back, and again.
        if !changes.is_empty() {
            let first = usize::try_from(dice.below(changes.len() as u64)).expect("small");
            for (at, change) in changes.iter().cycle().skip(first).take(3) {
                windows.extend(self.around(*at, *change));
            }
        }
        let local = |utc: i64| utc - self.zone.ahead(utc);
        let year = i32::try_from(2020 + dice.below(15)).expect("a year");
        let month = u32::try_from(1 + dice.below(12)).expect("a month");
        let leap = *dice.of(&[2020, 2024, 2028, 2032]);
        let moment = midnight(2020, 2, 1)
            + i64::try_from(dice.below(15 * 365 * 86_400)).expect("seconds of 15 years");
        for centre in [local(midnight(year, month, 1)), local(midnight(leap, 2, 29)), moment] {
            windows.extend(self.around(centre, 0));
        }
        windows
    }
}

fn is_long() -> bool {
    std::env::var_os("PROCESSION_LONG").is_some()
}

/// What is compared of one expression, in every zone.
fn compare(at: usize, text: &str, zones: &[Zone]) -> Result<usize, String> {
    let cron = Cron::parse(text).map_err(|error| error.to_string())?;
    let expanded = Expanded::of(text);
    let total = expanded.per_day() * expanded.days_named();
    let whole = (midnight(2020, 1, 2), midnight(2035, 12, 30));
    let mut dice = Dice(at as u64);
    let mut compared = 0;
    for (n, zone) in zones.iter().enumerate() {
        let case = Case { text, cron: &cron, expanded: &expanded, zone };
        if is_long() && total <= 1_000_000
            || total <= 150
            || total <= 1_500 && at % zones.len() == n
        {
            compared += case.compare(whole.0, whole.1)?;
            continue;
        }
        for (from, until) in case.windows(&mut dice) {
            compared += case.compare(from, until)?;
        }
        if is_long() {
            for (moment, change) in zone.changes() {
                if *moment > whole.0 {
                    for (from, until) in case.around(*moment, *change) {
                        compared += case.compare(from, until)?;
                    }
                }
            }
        }
    }
    Ok(compared)
}

#[test]
fn two_thousand_expressions_in_six_zones_fire_by_the_rules() {
    let zones = ZONES.map(Zone::scan);
    let expressions = all_expressions();
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let work = |worker: usize| {
            let (zones, expressions) = (&zones, &expressions);
            scope.spawn(move || {
                let mine = expressions.iter().enumerate().skip(worker).step_by(workers);
                mine.map(|(at, text)| compare(at, text, zones)).collect::<Vec<_>>()
            })
        };
        let running: Vec<_> = (0..workers).map(work).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    let faults: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let compared: usize = results.iter().filter_map(|result| result.as_ref().ok()).sum();
    let first: Vec<&str> = faults.iter().take(20).map(|fault| fault.as_str()).collect();
    assert!(faults.is_empty(), "{} differ; the first:\n{}", faults.len(), first.join("\n"));
    assert_eq!(results.len(), EXPRESSIONS);
    assert!(compared > 500_000, "only {compared} firings were compared");
}

/// What the expressions must contain, so that the comparison is about everything.
#[test]
fn the_expressions_have_every_form() {
    let all = all_expressions();
    let fields = |text: &str, n: usize| -> String {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let at = if parts.len() == 5 { n.checked_sub(1) } else { Some(n) };
        at.and_then(|at| parts.get(at)).map_or(String::new(), |part| part.to_uppercase())
    };
    let count = |what: &dyn Fn(&str) -> bool| all.iter().filter(|text| what(text)).count();
    let day = |test: fn(&str) -> bool| count(&|t| fields(t, 3).split(',').any(test));
    let week = |test: fn(&str) -> bool| count(&|t| fields(t, 5).split(',').any(test));
    let wraps = |range: &str| {
        let ends = range.split('/').next().unwrap_or("").split_once('-');
        ends.is_some_and(
            |(a, b)| matches!((a.parse::<u32>(), b.parse::<u32>()), (Ok(a), Ok(b)) if a > b),
        )
    };
    for (form, found) in [
        ("L", day(|i| i == "L")),
        ("L-n", day(|i| i.starts_with("L-") && !i.ends_with('W'))),
        ("LW", day(|i| i == "LW")),
        ("L-nW", day(|i| i.starts_with("L-") && i.ends_with('W'))),
        ("nW", day(|i| i.ends_with('W') && !i.starts_with('L'))),
        ("Saturday L", week(|i| i == "L")),
        ("nL", week(|i| i.len() > 1 && i.ends_with('L'))),
        ("n#k", week(|i| i.contains('#'))),
        ("name", week(|i| i.contains("FRI"))),
        ("wrapped weekdays", count(&|t| fields(t, 5).split(',').any(wraps))),
        ("wrapped hours", count(&|t| fields(t, 2).split(',').any(wraps))),
        ("wrapped months", count(&|t| fields(t, 4).split(',').any(wraps))),
        ("wrapped days", count(&|t| fields(t, 3).split(',').any(wraps))),
        ("step", count(&|t| t.contains('/'))),
        ("list", count(&|t| t.contains(','))),
        ("year", count(&|t| t.split_whitespace().count() == 7)),
        ("classic", count(&|t| t.split_whitespace().count() == 5)),
    ] {
        assert!(found >= 20, "{form}: {found} expressions");
    }
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len() * 100 / all.len(), 98, "mostly distinct");
}

#[test]
fn expressions_of_other_projects_are_read() {
    let public = public();
    let dialect = |text: &String| Cron::parse(text).expect(text).dialect();
    let quartz = public.iter().filter(|text| dialect(text) == CronDialect::Quartz).count();
    assert_eq!((public.len(), quartz), (49, 39));
}

/// The crate `cron` reads part of the grammar and knows no rule for gaps, so it is asked in UTC.
#[test]
fn the_crate_cron_is_of_the_same_opinion_where_it_has_one() {
    let from = Utc.with_ymd_and_hms(2024, 2, 27, 22, 0, 0).single().expect("a moment");
    let mut agreed = 0;
    for text in all_expressions() {
        if text.split_whitespace().count() == 5 {
            continue;
        }
        let Ok(theirs) = cron::Schedule::from_str(&text) else { continue };
        let ours = Cron::parse(&text).expect("read");
        let mut at = Millis::from(from);
        for other in theirs.after(&from).take(8).take_while(|other| {
            *other < Utc.with_ymd_and_hms(2099, 1, 1, 0, 0, 0).single().expect("a moment")
        }) {
            at = ours.next_after(at, Tz::UTC).unwrap_or_default();
            assert_eq!(at, Millis::from(other), "{text}");
        }
        agreed += 1;
    }
    assert!(agreed > 300, "the crate reads only {agreed}");
}

/// What `check` and `schedule add` compare: the same expressions in every zone, as long as 50 firings, from days before
/// changes of the clock as well.
#[test]
fn no_expression_is_refused_for_the_opinion_of_the_crate() {
    let days = [(2026, 11, 24), (2027, 3, 12), (2027, 10, 30)];
    let starts = days.map(|(year, month, day)| Millis(midnight(year, month, day) * 1_000 + 1));
    let mut compared = 0;
    for text in all_expressions() {
        let ours = Cron::parse(&text).expect("read");
        for (start, zone) in starts.iter().flat_map(|start| ZONES.map(|zone| (*start, zone))) {
            let found = ours.compare_with_crate(start, zone);
            assert!(found.is_ok(), "{}", found.expect_err("a difference"));
        }
        compared += usize::from(cron::Schedule::from_str(&text).is_ok());
    }
    assert!(compared > 300, "the crate reads only {compared}");
}

/// What must be refused, and words that the refusal must contain: what is wrong, and the cure.
const REFUSED: &[(&str, &[&str])] = &[
    ("", &["0 field(s)", "write 6"]),
    ("* * *", &["3 field(s)"]),
    ("0 0 0 * * ? * *", &["8 field(s)"]),
    ("0 0 0 1 * MON", &["day of week 'MON'", "both day fields", "write ?"]),
    ("0 0 0 * * *", &["day of month '*'", "both day fields", "write ?"]),
    ("0 0 0 ? * ?", &["names no day", "write *"]),
    ("? 0 0 * * ?", &["second '?'", "stands alone"]),
    ("0 0 ? * * ?", &["hour '?'"]),
    ("0 0 0 1,? * ?", &["day of month '?'"]),
    ("60 0 0 * * ?", &["second '60'", "out of range", "0 to 59"]),
    ("0 60 0 * * ?", &["minute '60'"]),
    ("0 0 24 * * ?", &["hour '24'", "0 to 23"]),
    ("0 0 0 0 * ?", &["day of month '0'", "1 to 31"]),
    ("0 0 0 32 * ?", &["day of month '32'"]),
    ("0 0 0 1 13 ?", &["month '13'", "JAN to DEC"]),
    ("0 0 0 1 0 ?", &["month '0'"]),
    ("0 0 0 ? * 0", &["day of week '0'", "1 is Sunday"]),
    ("0 0 0 ? * 8", &["day of week '8'"]),
    ("0 0 0 ? * MONDAY", &["'MONDAY' is not a name", "write MON"]),
    ("0 0 0 ? * XYZ", &["'XYZ' is not understood", "SUN to SAT"]),
    ("0/60 * * * * ?", &["second '0/60'", "a step is 1 to 59"]),
    ("0/70 * * * * ?", &["a step of 70"]),
    ("0 0 0/24 * * ?", &["hour '0/24'", "1 to 23"]),
    ("0 0 0 ? * 2/8", &["1 to 7"]),
    ("0 0 0 1 1/13 ?", &["1 to 12"]),
    ("0 0/0 * * * ?", &["a step of 0"]),
    ("0 0/x * * * ?", &["the step, a number"]),
    ("0 0/ * * * ?", &["the step, a number"]),
    ("0 0 0/2/3 * * ?", &["the step, a number"]),
    ("0 1- * * * ?", &["a value is missing"]),
    ("0 1,,2 * * * ?", &["a value is missing"]),
    ("0 1-2-3 * * * ?", &["'2-3' is not understood"]),
    ("0 -5 * * * ?", &["a value is missing"]),
    ("0 0 0 L-31 * ?", &["day of month 'L-31'", "L-1 to L-30"]),
    ("0 0 0 L3 * ?", &["L-1 to L-30"]),
    ("0 0 0 32W * ?", &["day of month '32W'"]),
    ("0 0 0 W * ?", &["a value is missing"]),
    ("0 0 0 1-5W * ?", &["day of month '1-5W'"]),
    ("0 0 0 1#2 * ?", &["L and # to the day of week"]),
    ("0 0 0 ? * 15W", &["L and W belong to the day of month"]),
    ("0 0 0 ? * L-3", &["day of week 'L-3'"]),
    ("0 0 0 ? * 6#6", &["no such week", "#1 to #5"]),
    ("0 0 0 ? * 6#0", &["no such week"]),
    ("0 0 0 ? * 6#", &["no such week"]),
    ("0 0 0 ? * #3", &["a value is missing"]),
    ("0 0 0 ? * MON-FRI#2", &["day of week 'MON-FRI#2'"]),
    ("0 0 L * * ?", &["hour 'L'", "L and W belong to the day of month"]),
    ("0 0 0 1 * ? 1969", &["year '1969'", "1970 to 2199"]),
    ("0 0 0 1 * ? 2200", &["year '2200'"]),
    ("0 0 0 1 * ? 2030-2028", &["ends before it begins", "swap"]),
    ("@daily", &["write 0 0 0 * * ?"]),
    ("@Hourly", &["write 0 0 * * * ?"]),
    ("@reboot", &["0 0 2 * * ?"]),
    ("@every 5m", &["every_sec"]),
    ("0 0 2 * * ？", &["'？' has no meaning", "write ?"]),
    ("0 0 2 1，15 * ?", &["write ,"]),
    ("0 2 * * 8", &["0 and 7 are Sunday"]),
    ("0 2 ? * 1", &["day of month '?'"]),
    ("0 2 L * *", &["six fields"]),
    ("0 2 * * 5#3", &["six fields"]),
    ("0 99999999999 * * * ?", &["is not understood"]),
];

#[test]
fn what_is_no_expression_is_refused_with_its_cure() {
    for (text, said) in REFUSED {
        let error = Cron::parse(text).map(|_| ()).expect_err(text).to_string();
        for words in *said {
            assert!(error.contains(words), "'{text}' is refused with: {error}; missing: {words}");
        }
    }
    let long = "1,".repeat(400) + "1 * * * * ?";
    assert!(Cron::parse(&long).expect_err("long").to_string().contains("too many"));
}

#[test]
fn what_can_never_fire_is_found_when_it_is_saved() {
    let now = Millis(midnight(2026, 11, 21) * 1_000);
    for (text, said) in [
        ("0 0 0 31 2 ?", "no day up to the year 2199"),
        ("0 0 0 30 FEB ?", "check day and month"),
        ("0 0 0 31 4,6,9,11 ?", "no day"),
        ("0 0 0 L-30 FEB ?", "no day"),
        ("0 0 0 31W 6 ?", "no day"),
        ("0 0 0 1 1 ? 2025", "its last year is 2025, and it is 2026"),
        ("0 0 0 1 1 ? 2026", "no moment that is left up to the end of 2026"),
        ("0 0 0 29 2 ? 2027", "up to the end of 2027"),
        ("0 0 31 2 *", "no day"),
    ] {
        let cron = Cron::parse(text).expect(text);
        assert_eq!(cron.next_after(now, Tz::Asia__Shanghai), None, "{text}");
        let error = cron.fires_after(now, Tz::Asia__Shanghai).expect_err(text);
        assert!(matches!(error, CronError::NeverFires { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    let leap = Cron::parse("0 0 0 29 2 ?").expect("read");
    let next = leap.fires_after(now, Tz::UTC).expect("2028");
    assert_eq!(next.to_utc().date_naive(), NaiveDate::from_ymd_opt(2028, 2, 29).expect("a day"));
}
