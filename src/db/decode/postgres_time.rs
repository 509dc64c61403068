//! Decodes binary times of PostgreSQL, for its range of years: 4714 BC to 294276.

use super::fraction;

const MICROS_OF_DAY: i64 = 86_400_000_000;
/// Days from 1970-01-01 to 2000-01-01, the server's epoch.
const EPOCH_DAYS: i64 = 10_957;

fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn read_i64(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// A date, and ` BC` for a year before Christ.
fn format_day(days: i64) -> (String, &'static str) {
    // Days of years that begin with March, by eras of 400 years.
    let from_march = days + EPOCH_DAYS + 719_468;
    let era = from_march.div_euclid(146_097);
    let of_era = from_march.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    match year {
        1.. => (format!("{year:04}-{month:02}-{day:02}"), ""),
        _ => (format!("{:04}-{month:02}-{day:02}", 1 - year), " BC"),
    }
}

/// `HH:MM:SS.ffffff` of a non-negative number of microseconds.
fn clock(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let rest = u32::try_from(micros % 1_000_000).unwrap_or_default();
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}{}", seconds % 60, fraction(rest))
}

pub(super) fn decode_date(bytes: &[u8]) -> Option<String> {
    Some(match (bytes.len() == 4).then(|| read_i32(bytes, 0))?? {
        i32::MAX => "infinity".to_owned(),
        i32::MIN => "-infinity".to_owned(),
        days => {
            let (day, era) = format_day(days.into());
            format!("{day}{era}")
        }
    })
}

pub(super) fn timestamp(bytes: &[u8]) -> Option<String> {
    moment(bytes, "")
}

pub(super) fn timestamp_with_zone(bytes: &[u8]) -> Option<String> {
    moment(bytes, "+00")
}

fn moment(bytes: &[u8], zone: &str) -> Option<String> {
    Some(match (bytes.len() == 8).then(|| read_i64(bytes, 0))?? {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => {
            let (day, era) = format_day(micros.div_euclid(MICROS_OF_DAY));
            format!("{day} {}{zone}{era}", clock(micros.rem_euclid(MICROS_OF_DAY)))
        }
    })
}

/// A time of day; `24:00:00` is valid.
pub(super) fn decode_time(bytes: &[u8]) -> Option<String> {
    let micros = (bytes.len() == 8).then(|| read_i64(bytes, 0))??;
    (0..=MICROS_OF_DAY).contains(&micros).then(|| clock(micros))
}

/// A time of day and its zone offset in seconds west of Greenwich.
pub(super) fn time_with_zone(bytes: &[u8]) -> Option<String> {
    let west = (bytes.len() == 12).then(|| read_i32(bytes, 8))??;
    let time = decode_time(&bytes[..8])?;
    let (sign, away) = (if west > 0 { '-' } else { '+' }, west.unsigned_abs());
    let (hours, minutes, seconds) = (away / 3_600, away / 60 % 60, away % 60);
    let mut zone = format!("{sign}{hours:02}");
    if minutes != 0 || seconds != 0 {
        zone.push_str(&format!(":{minutes:02}"));
    }
    if seconds != 0 {
        zone.push_str(&format!(":{seconds:02}"));
    }
    Some(format!("{time}{zone}"))
}

/// An interval: months, days and microseconds, each with its own sign, in the `IntervalStyle`
/// `postgres`.
pub(super) fn interval(bytes: &[u8]) -> Option<String> {
    let micros = (bytes.len() == 16).then(|| read_i64(bytes, 0))??;
    let (days, months) = (read_i32(bytes, 8)?, read_i32(bytes, 12)?);
    match (months, days, micros) {
        (i32::MAX, i32::MAX, i64::MAX) => return Some("infinity".to_owned()),
        (i32::MIN, i32::MIN, i64::MIN) => return Some("-infinity".to_owned()),
        _ => {}
    }
    let (mut text, mut is_before) = (String::new(), false);
    for (value, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if value == 0 {
            continue;
        }
        let blank = if text.is_empty() { "" } else { " " };
        let plus = if is_before && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        text.push_str(&format!("{blank}{plus}{value} {unit}{plural}"));
        is_before = value < 0;
    }
    if text.is_empty() || micros != 0 {
        let blank = if text.is_empty() { "" } else { " " };
        let sign = match micros {
            ..0 => "-",
            _ if is_before => "+",
            _ => "",
        };
        let away = i64::try_from(micros.unsigned_abs()).ok()?;
        text.push_str(&format!("{blank}{sign}{}", clock(away)));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(months: i32, days: i32, micros: i64) -> String {
        let bytes = [&micros.to_be_bytes()[..], &days.to_be_bytes(), &months.to_be_bytes()];
        interval(&bytes.concat()).expect("an interval")
    }

    #[test]
    fn intervals_keep_their_signs() {
        for (months, days, micros, text) in [
            (0, 0, 0, "00:00:00"),
            (0, 0, -500_000, "-00:00:00.5"),
            (0, 1, 0, "1 day"),
            (14, -3, 14_706_500_000, "1 year 2 mons -3 days +04:05:06.5"),
            (-14, 0, -1, "-1 years -2 mons -00:00:00.000001"),
            (1, 0, 3_600_000_000_000, "1 mon 1000:00:00"),
            (-1, 1, 0, "-1 mons +1 day"),
            (i32::MAX, i32::MAX, i64::MAX, "infinity"),
        ] {
            assert_eq!(span(months, days, micros), text);
        }
    }

    #[test]
    fn days_of_all_years() {
        let text = |days: i32| decode_date(&days.to_be_bytes()).expect("a date");
        for (days, expected) in [
            (0, "2000-01-01"),
            (8_825, "2024-02-29"),
            (-730_119, "0001-01-01"),
            (-730_120, "0001-12-31 BC"),
            (-2_451_545, "4714-11-24 BC"),
            (2_145_031_948, "5874897-12-31"),
            (i32::MAX, "infinity"),
            (i32::MIN, "-infinity"),
        ] {
            assert_eq!(text(days), expected);
        }
        let moment = |micros: i64| timestamp_with_zone(&micros.to_be_bytes()).expect("a moment");
        assert_eq!(moment(1), "2000-01-01 00:00:00.000001+00");
        assert_eq!(moment(-1), "1999-12-31 23:59:59.999999+00");
        assert_eq!(moment(-730_120 * MICROS_OF_DAY), "0001-12-31 00:00:00+00 BC");
    }

    #[test]
    fn times_of_day_end_at_24() {
        let with_zone = |micros: i64, west: i32| {
            time_with_zone(&[&micros.to_be_bytes()[..], &west.to_be_bytes()].concat())
        };
        assert_eq!(decode_time(&MICROS_OF_DAY.to_be_bytes()).as_deref(), Some("24:00:00"));
        assert_eq!(decode_time(&(-1i64).to_be_bytes()), None);
        assert_eq!(with_zone(1, -28_800).as_deref(), Some("00:00:00.000001+08"));
        assert_eq!(with_zone(0, 12_645).as_deref(), Some("00:00:00-03:30:45"));
        assert_eq!(with_zone(0, 0).as_deref(), Some("00:00:00+00"));
    }
}
