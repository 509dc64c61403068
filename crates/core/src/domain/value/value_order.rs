//! Compares a typed value with a text by meaning, for types whose texts sort in another order than their values.

use crate::domain::value::ValueType;
use chrono::{NaiveDate, NaiveTime, Timelike as _};
use std::cmp::Ordering;

/// Result of comparing a typed value with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypedOrder {
    /// The order of the values.
    Known(Ordering),
    /// No special order: they are compared as texts or numbers.
    Plain,
    /// They may be equal as texts, but have no order.
    Unordered,
}

/// Compares a value of type `ty` with another text.
pub fn compare(ty: ValueType, value: &str, other: &str) -> TypedOrder {
    let by = |read: fn(&str) -> Option<i128>| match (read(value), read(other)) {
        (Some(value), Some(other)) => TypedOrder::Known(value.cmp(&other)),
        (_, _) => TypedOrder::Unordered,
    };
    match ty {
        ValueType::Text
        | ValueType::Int
        | ValueType::Decimal
        | ValueType::Bool
        | ValueType::Json => TypedOrder::Plain,
        ValueType::Date | ValueType::Timestamp | ValueType::TimestampTz => by(moment),
        ValueType::Time => by(clock),
        ValueType::Interval | ValueType::Bytes | ValueType::Array => TypedOrder::Unordered,
    }
}

/// Microseconds of a date or timestamp; without a time zone, UTC is assumed.
fn moment(text: &str) -> Option<i128> {
    match text {
        "infinity" => return Some(i128::MAX),
        "-infinity" => return Some(i128::MIN),
        _ => {}
    }
    let (day, rest) = text.split_at_checked(10)?;
    let day: NaiveDate = day.parse().ok()?;
    let midnight = i128::from(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_micros());
    if rest.is_empty() {
        return Some(midnight);
    }
    let rest = rest.strip_prefix([' ', 'T'])?;
    let (time, zone) = match rest.find(['+', '-', 'Z']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    // Hours beyond 24 occur only in intervals.
    let time_of_day = NaiveTime::parse_from_str(time, "%H:%M:%S%.f").ok()?;
    (time_of_day.nanosecond() < 1_000_000_000).then_some(())?;
    Some(midnight + clock(time)? - offset(zone)?)
}

/// Offset of a time zone east of Greenwich in microseconds.
fn offset(zone: &str) -> Option<i128> {
    if matches!(zone, "" | "Z") {
        return Some(0);
    }
    let (sign, away) = match zone.split_at_checked(1)? {
        ("+", away) => (1, away),
        ("-", away) => (-1, away),
        _ => return None,
    };
    let (hours, minutes) = away.split_once(':').unwrap_or((away, "0"));
    let minutes = number(hours)? * 60 + number(minutes)?;
    Some(sign * minutes * 60_000_000)
}

fn number(digits: &str) -> Option<i128> {
    let is_short = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    is_short.then(|| digits.parse().ok()).flatten()
}

/// Microseconds of `10:11:12.5`, which may be negative or longer than a day.
fn clock(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut parts = whole.split(':').map(number);
    let (hours, minutes, seconds) =
        (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || fraction.len() > 6 || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let micros: i128 = format!("{fraction:0<6}").parse().ok()?;
    Some(sign * (((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        use Ordering::{Equal, Greater, Less};
        for (ty, value, other, expected) in [
            (ValueType::Time, "-00:00:02", "-00:00:01", Some(Less)),
            (ValueType::Time, "100:00:00", "99:59:59.999999", Some(Greater)),
            (ValueType::Time, "10:00:00.5", "10:00:00.500", Some(Equal)),
            (ValueType::Time, "10:00:00", "10:00", Some(Equal)),
            (ValueType::Time, "10:00:00+08", "10:00:00", None),
            (ValueType::Timestamp, "2024-02-29 00:00:00", "2024-02-29", Some(Equal)),
            (
                ValueType::Timestamp,
                "2024-02-29 10:11:12.5",
                "2024-02-29 10:11:12.45",
                Some(Greater),
            ),
            (
                ValueType::TimestampTz,
                "2024-02-29 02:11:12+00",
                "2024-02-29 10:11:12+08",
                Some(Equal),
            ),
            (ValueType::TimestampTz, "2024-02-29 02:11:12+00", "2024-02-29T02:11:13Z", Some(Less)),
            (ValueType::TimestampTz, "infinity", "9999-12-31", Some(Greater)),
            (ValueType::Date, "-infinity", "0001-01-01", Some(Less)),
            (ValueType::Date, "0044-03-15 BC", "2024-01-01", None),
            (ValueType::Date, "2024-02-29", "31.12.2024", None),
            (ValueType::Interval, "1 day", "2 hours", None),
            (ValueType::Bytes, "0x00", "0x01", None),
        ] {
            let expected = expected.map_or(TypedOrder::Unordered, TypedOrder::Known);
            assert_eq!(compare(ty, value, other), expected, "{value} {other}");
        }
        assert_eq!(compare(ValueType::Int, "1", "2"), TypedOrder::Plain);
    }
}
