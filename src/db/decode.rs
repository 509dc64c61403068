//! A value of any column type as text a person can read: never garbage, never a panic.
//!
//! Statements without arguments travel by the text protocol, where the server writes the text;
//! with arguments MySQL and PostgreSQL answer in binary, which is read here type by type. sqlx's
//! own decoders are not enough: PostgreSQL's `infinity` dates overflow, and its NUMERIC loses its
//! scale (`1.50` became `1.5000`).

use chrono::{NaiveDate, NaiveDateTime, TimeDelta, Timelike};
use sqlx::mysql::types::MySqlTime;
use sqlx::mysql::{MySql, MySqlRow};
use sqlx::postgres::{PgRow, PgTypeKind, PgValueFormat};
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Row, TypeInfo, ValueRef};

/// How the rows came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Each value as the server writes it.
    Text,
    /// Each value in the driver's binary form.
    Binary,
}

fn bytes_of<'r, R: Row>(row: &'r R, at: usize) -> Vec<u8>
where
    Vec<u8>: Decode<'r, R::Database>,
    usize: sqlx::ColumnIndex<R>,
{
    row.try_get_unchecked::<Vec<u8>, _>(at).unwrap_or_default()
}

/// Text if it reads as text, else hex: MySQL marks `utf8mb4_bin` columns as binary too.
fn text_or_hex(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(|c| c.is_control() && !c.is_whitespace()) => text.to_owned(),
        _ => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("0x{digits}")
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A value of SQLite, whose type is the value's own.
pub(crate) fn sqlite(row: &SqliteRow, at: usize) -> Option<String> {
    let name = {
        let raw = row.try_get_raw(at).ok()?;
        if raw.is_null() {
            return None;
        }
        raw.type_info().name().to_owned()
    };
    Some(
        match name.as_str() {
            "INTEGER" | "BOOLEAN" => row.try_get_unchecked::<i64, _>(at).map(|v| v.to_string()),
            "REAL" => row.try_get_unchecked::<f64, _>(at).map(|v| v.to_string()),
            "BLOB" => Ok(hex(&bytes_of(row, at))),
            _ => Ok(lossy(&bytes_of(row, at))),
        }
        .unwrap_or_else(|_| format!("<{name}>")),
    )
}

/// A value of MySQL or MariaDB.
pub(crate) fn mysql(row: &MySqlRow, at: usize, format: Format) -> Option<String> {
    let name = {
        let raw = row.try_get_raw(at).ok()?;
        if raw.is_null() {
            return None;
        }
        raw.type_info().name().to_owned()
    };
    let bytes = || bytes_of(row, at);
    let text = match (format, name.as_str()) {
        (Format::Text, "BIT" | "GEOMETRY") => Ok(hex(&bytes())),
        (Format::Text, _) => Ok(text_or_hex(&bytes())),
        (_, "BIT" | "GEOMETRY") => Ok(hex(&bytes())),
        (_, "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT") => {
            row.try_get_unchecked::<i64, _>(at).map(|v| v.to_string())
        }
        (_, name) if name.ends_with("UNSIGNED") || name == "YEAR" => {
            row.try_get_unchecked::<u64, _>(at).map(|v| v.to_string())
        }
        (_, "FLOAT") => row.try_get_unchecked::<f32, _>(at).map(|v| v.to_string()),
        (_, "DOUBLE") => row.try_get_unchecked::<f64, _>(at).map(|v| v.to_string()),
        (_, "DATE") => row.try_get_unchecked::<NaiveDate, _>(at).map(|v| v.to_string()),
        (_, "DATETIME" | "TIMESTAMP") => row.try_get_raw(at).map(|raw| {
            <NaiveDateTime as Decode<MySql>>::decode(raw)
                .map_or_else(|_| format!("<{name}>"), date_time)
        }),
        (_, "TIME") => row.try_get_unchecked::<MySqlTime, _>(at).map(|v| v.to_string()),
        _ => Ok(text_or_hex(&bytes())),
    };
    Some(text.unwrap_or_else(|_| format!("<{name}>")))
}

fn date_time(at: NaiveDateTime) -> String {
    match at.nanosecond() {
        0 => at.format("%Y-%m-%d %H:%M:%S").to_string(),
        _ => at.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
    }
}

/// A value of PostgreSQL.
pub(crate) fn postgres(row: &PgRow, at: usize) -> Option<String> {
    let raw = row.try_get_raw(at).ok()?;
    if raw.is_null() {
        return None;
    }
    let bytes = raw.as_bytes().unwrap_or_default();
    if raw.format() == PgValueFormat::Text {
        return Some(lossy(bytes));
    }
    let info = raw.type_info();
    let is_text = matches!(info.kind(), PgTypeKind::Enum(_));
    let name = info.name().to_ascii_uppercase();
    let readable = if is_text { Some(lossy(bytes)) } else { postgres_binary(&name, bytes) };
    Some(readable.unwrap_or_else(|| format!("<{}: cast it to text to see it>", info.name())))
}

fn postgres_binary(name: &str, bytes: &[u8]) -> Option<String> {
    Some(match name {
        "BOOL" => (if *bytes.first()? == 0 { "false" } else { "true" }).to_owned(),
        "INT2" => i16::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "INT4" => i32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "OID" => u32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "INT8" => i64::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "FLOAT4" => f32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "FLOAT8" => f64::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "NUMERIC" => numeric(bytes)?,
        "TEXT" | "VARCHAR" | "CHAR" | "BPCHAR" | "\"CHAR\"" | "NAME" | "UNKNOWN" | "JSON"
        | "XML" | "CITEXT" => lossy(bytes),
        "JSONB" => lossy(bytes.strip_prefix(&[1])?),
        "UUID" => uuid::Uuid::from_slice(bytes).ok()?.to_string(),
        "BYTEA" => hex(bytes),
        "VOID" => String::new(),
        "DATE" => match i32::from_be_bytes(bytes.try_into().ok()?) {
            i32::MAX => "infinity".to_owned(),
            i32::MIN => "-infinity".to_owned(),
            days => epoch()?.date().checked_add_signed(TimeDelta::days(days.into()))?.to_string(),
        },
        "TIMESTAMP" => moment(bytes, "")?,
        "TIMESTAMPTZ" => moment(bytes, "+00")?,
        "TIME" => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?);
            let at = epoch()?.checked_add_signed(TimeDelta::microseconds(micros))?;
            at.time().to_string()
        }
        "INTERVAL" => {
            let micros = i64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
            let days = i32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
            let months = i32::from_be_bytes(bytes.get(12..16)?.try_into().ok()?);
            format!(
                "{months} mons {days} days {}.{:06} s",
                micros / 1_000_000,
                (micros % 1_000_000).abs()
            )
        }
        _ => return None,
    })
}

/// PostgreSQL counts from here.
fn epoch() -> Option<NaiveDateTime> {
    NaiveDate::from_ymd_opt(2000, 1, 1)?.and_hms_opt(0, 0, 0)
}

fn moment(bytes: &[u8], zone: &str) -> Option<String> {
    Some(match i64::from_be_bytes(bytes.try_into().ok()?) {
        i64::MAX => "infinity".to_owned(),
        i64::MIN => "-infinity".to_owned(),
        micros => {
            let at = epoch()?.checked_add_signed(TimeDelta::microseconds(micros))?;
            // PostgreSQL writes no more digits than say something; MySQL as many as were declared.
            let text = date_time(at);
            let trimmed = if text.contains('.') { text.trim_end_matches('0') } else { &text };
            format!("{trimmed}{zone}")
        }
    })
}

/// NUMERIC: groups of four decimal digits, the weight of the first, and how many digits to show
/// after the point; exact, with the scale it was declared with.
fn numeric(bytes: &[u8]) -> Option<String> {
    let word =
        |at: usize| Some(u16::from_be_bytes(bytes.get(at * 2..at * 2 + 2)?.try_into().ok()?));
    let (groups, sign, scale) = (i32::from(word(0)?), word(2)?, usize::from(word(3)?));
    let weight = i32::from(i16::from_be_bytes(word(1)?.to_be_bytes()));
    match sign {
        0 | 0x4000 => {}
        0xD000 => return Some("infinity".to_owned()),
        0xF000 => return Some("-infinity".to_owned()),
        _ => return Some("NaN".to_owned()),
    }
    let group = |place: i32| -> Option<u16> {
        let at = weight - place;
        if at < 0 || at >= groups { Some(0) } else { word(4 + usize::try_from(at).ok()?) }
    };
    let mut whole = String::new();
    for place in (0..=weight.max(0)).rev() {
        whole.push_str(&format!("{:04}", group(place)?));
    }
    let mut fraction = String::new();
    let mut place = -1;
    while fraction.len() < scale {
        fraction.push_str(&format!("{:04}", group(place)?));
        place -= 1;
    }
    fraction.truncate(scale);
    let whole = whole.trim_start_matches('0');
    let minus = if sign == 0x4000 { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{minus}{}{point}{fraction}", if whole.is_empty() { "0" } else { whole }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    #[test]
    fn numerics_are_exact() {
        for (bytes, text) in [
            (words(&[2, 0, 0, 2, 1, 5000]), "1.50"),
            (words(&[0, 0, 0, 4]), "0.0000"),
            (words(&[1, 1, 0x4000, 0, 12]), "-120000"),
            (words(&[1, 0xFFFF, 0, 3, 10]), "0.001"),
            (words(&[1, 0xFFFE, 0, 8, 1]), "0.00000001"),
            (words(&[0, 0, 0xC000, 0]), "NaN"),
        ] {
            assert_eq!(numeric(&bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn ends_of_time_are_words() {
        assert_eq!(postgres_binary("DATE", &i32::MAX.to_be_bytes()).as_deref(), Some("infinity"));
        assert_eq!(
            postgres_binary("TIMESTAMP", &i64::MIN.to_be_bytes()).as_deref(),
            Some("-infinity")
        );
        assert_eq!(
            postgres_binary("TIMESTAMPTZ", &1i64.to_be_bytes()).as_deref(),
            Some("2000-01-01 00:00:00.000001+00")
        );
        assert_eq!(postgres_binary("INT4[]", &[0; 20]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            name in prop::sample::select(vec!["BOOL", "INT2", "INT8", "NUMERIC", "JSONB", "UUID",
                "DATE", "TIME", "TIMESTAMP", "INTERVAL", "FLOAT8"]),
            bytes in prop::collection::vec(any::<u8>(), 0..24),
        ) {
            let _readable = postgres_binary(name, &bytes);
        }
    }
}
