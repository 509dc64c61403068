//! Cron expressions. The first line of an input is the expression, the second may name a zone.

use super::text_of;
use chrono_tz::Tz;
use procession::domain::schedule::cron::{Cron, YEAR_MAX};
use procession::domain::text::lang::Lang;
use procession::domain::time::Millis;

/// Where firings are looked for: before and after a change of the clock, a leap day, both ends of time.
const STARTS: [i64; 7] = [
    i64::MIN,
    -1,
    1_709_164_799_999,
    1_711_846_799_000,
    1_761_440_400_000,
    7_258_118_399_000,
    i64::MAX,
];
/// Firings that are followed from each start.
const FOLLOWED: usize = 25;

/// Firing times grow strictly and are those of the expression read again; a refusal repeats the text and says what to
/// write.
pub(super) fn check(input: &[u8]) {
    let Some(text) = text_of(input) else { return };
    let mut lines = text.lines();
    let expression = lines.next().unwrap_or_default();
    let zone = lines.next().and_then(|name| name.trim().parse().ok()).unwrap_or(Tz::Europe__London);
    check_refusal(text);
    let Some(cron) = check_refusal(expression) else { return };
    assert_eq!(Cron::parse(cron.as_str()).as_ref(), Ok(&cron), "written and read again");
    for lang in Lang::ALL {
        assert!(!cron.sentence(lang).trim().is_empty(), "{expression:?} has no sentence");
    }
    for start in STARTS {
        check_firings(&cron, zone, Millis(start));
    }
    if let Err(disagreement) = cron.compare_with_crate(Millis(1_709_164_799_999), zone) {
        panic!("{disagreement}");
    }
}

/// The expression, where it is one.
fn check_refusal(text: &str) -> Option<Cron> {
    match Cron::parse(text) {
        Ok(cron) => Some(cron),
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("cron '"), "{said}");
            assert!(said.contains("; "), "a refusal without a fix: {said}");
            assert!(said.len() < 1_000, "a refusal repeats the whole text: {} bytes", said.len());
            None
        }
    }
}

fn check_firings(cron: &Cron, zone: Tz, start: Millis) {
    let mut after = start;
    for _ in 0..FOLLOWED {
        let Some(at) = cron.next_after(after, zone) else { return };
        assert!(at > after, "'{cron}' in {zone}: the firing after {after:?} is {at:?}");
        assert_eq!(at.0 % 1_000, 0, "'{cron}' in {zone} fires at a fraction of a second: {at:?}");
        let again = cron.next_after(Millis(at.0 - 1), zone);
        assert_eq!(again, Some(at), "'{cron}' in {zone}: seen from one millisecond before");
        let year = chrono::Datelike::year(&at.to_utc());
        assert!(year <= YEAR_MAX + 1, "'{cron}' in {zone} fires in {year}");
        after = at;
    }
}
