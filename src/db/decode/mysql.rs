//! Values of MySQL and MariaDB.
//!
//! A string is text unless its character set is `binary`; the flag BINARY does not tell that,
//! because it is set for `utf8mb4_bin` as well. Times have no zone on the wire: a TIMESTAMP is in
//! that of the session.

use super::{Purpose, RowFormat, bytes_cell, float, fraction, hex_digits, utf8_cell};
use crate::db::cell::{Cell, CellType, UnreadableValue};
use sqlx::mysql::{MySql, MySqlRow, MySqlTypeInfo};
use sqlx::{Row as _, TypeInfo as _};

/// The value of a column.
pub(crate) fn mysql(row: &MySqlRow, at: usize, format: RowFormat, purpose: Purpose) -> Cell {
    let raw = match row.try_get_raw(at) {
        Ok(raw) => raw,
        Err(error) => return unreadable(format!("cannot be read: {error}")),
    };
    let info = sqlx::ValueRef::type_info(&raw).into_owned();
    // Not `is_null`, which is true for zero dates as well.
    let Ok(bytes) = <&[u8] as sqlx::Decode<MySql>>::decode(raw) else { return Cell::Null };
    let shape =
        ColumnShape { name: info.name(), is_text: is_text(&info), is_unsigned: is_unsigned(&info) };
    decode_cell(shape, bytes, format, purpose)
}

/// The value of a variable that received an OUT parameter, by the declared type of the parameter: a
/// variable keeps only numbers and strings.
pub(crate) fn as_declared(cell: Cell, declared: &str) -> Cell {
    let word = declared.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let (ty, text) = match cell {
        Cell::Value(ty, text) => (ty, text),
        Cell::Null | Cell::Unreadable(_) => return cell,
        Cell::TooLong(_) | Cell::TooLongTogether(_) => return cell,
    };
    match word.to_ascii_lowercase().as_str() {
        "date" => Cell::Value(CellType::Date, text),
        "datetime" | "timestamp" => Cell::Value(CellType::Timestamp, trimmed(&text)),
        "time" => Cell::Value(CellType::Time, trimmed(&text)),
        "year" => Cell::Value(CellType::Int, format!("{text:0>4}")),
        "json" => Cell::Value(CellType::Json, text),
        "bit" if ty == CellType::Bytes => {
            let number = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
            let number = number.and_then(Result::ok).map(|number| number.to_string());
            Cell::Value(CellType::Int, number.unwrap_or(text))
        }
        _ => Cell::Value(ty, text),
    }
}

/// The server's name of a column's type: sqlx decides by the flag BINARY.
pub(crate) fn mysql_type_name(info: &MySqlTypeInfo) -> &str {
    const NAMES: [(&str, &str); 6] = [
        ("BINARY", "CHAR"),
        ("VARBINARY", "VARCHAR"),
        ("TINYBLOB", "TINYTEXT"),
        ("BLOB", "TEXT"),
        ("MEDIUMBLOB", "MEDIUMTEXT"),
        ("LONGBLOB", "LONGTEXT"),
    ];
    let name = info.name();
    let is_text = is_text(info);
    let pair = NAMES.iter().find(|(bytes, text)| [*bytes, *text].contains(&name));
    pair.map_or(name, |(bytes, text)| if is_text { text } else { bytes })
}

/// Whether it is a string in a character set other than `binary`.
fn is_text(info: &MySqlTypeInfo) -> bool {
    <str as sqlx::Type<MySql>>::compatible(info)
}

fn is_unsigned(info: &MySqlTypeInfo) -> bool {
    <u64 as sqlx::Type<MySql>>::compatible(info)
}

/// The properties of a column.
#[derive(Clone, Copy)]
struct ColumnShape<'a> {
    name: &'a str,
    is_text: bool,
    is_unsigned: bool,
}

fn unreadable(reason: impl Into<String>) -> Cell {
    Cell::Unreadable(UnreadableValue::new(reason))
}

fn decode_cell(shape: ColumnShape<'_>, bytes: &[u8], format: RowFormat, purpose: Purpose) -> Cell {
    let binary = format == RowFormat::Binary;
    let read = match shape.name {
        "NULL" => return Cell::Null,
        "JSON" => return utf8_cell(CellType::Json, bytes),
        "GEOMETRY" => return bytes_cell(bytes),
        "FLOAT" => return six_digits(bytes, format, purpose),
        "BIT" => decode_bits(bytes).map(|number| (CellType::Int, number.to_string())),
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT"
        | "TINYINT UNSIGNED" | "SMALLINT UNSIGNED" | "MEDIUMINT UNSIGNED" | "INT UNSIGNED"
        | "BIGINT UNSIGNED" => {
            let number =
                if binary { decode_int(bytes, shape.is_unsigned) } else { plain_number(bytes) };
            number.map(|number| (CellType::Int, number))
        }
        "DECIMAL" => plain_number(bytes).map(|number| (CellType::Decimal, number)),
        "DOUBLE" => double(bytes, format).map(|number| (CellType::Decimal, float(number))),
        "YEAR" if binary => {
            let year = bytes.try_into().ok().map(u16::from_le_bytes);
            year.map(|year| (CellType::Int, format!("{year:04}")))
        }
        "YEAR" => decode_text(bytes).map(|year| (CellType::Int, year)),
        "DATE" => {
            let date =
                if binary { moment(bytes).map(|(date, _)| date) } else { decode_text(bytes) };
            date.map(|date| (CellType::Date, date))
        }
        "DATETIME" | "TIMESTAMP" => {
            let written = || decode_text(bytes).map(|written| trimmed(&written));
            let both = if binary {
                moment(bytes).map(|(date, time)| format!("{date} {time}"))
            } else {
                written()
            };
            both.map(|both| (CellType::Timestamp, both))
        }
        "TIME" => {
            let time = if binary {
                decode_time(bytes)
            } else {
                decode_text(bytes).map(|written| trimmed(&written))
            };
            time.map(|time| (CellType::Time, time))
        }
        _ if shape.is_text => return utf8_cell(CellType::Text, bytes),
        // Information about the server may be sent as a binary string.
        _ if purpose == Purpose::Own => {
            return match std::str::from_utf8(bytes) {
                Ok(text) => Cell::from_text(text),
                Err(_) => bytes_cell(bytes),
            };
        }
        _ => return bytes_cell(bytes),
    };
    match read {
        Some((ty, text)) => Cell::Value(ty, text),
        None => unreadable(format!("cannot be read (0x{}); cast it to CHAR", hex_digits(bytes))),
    }
}

/// A FLOAT: the server writes six digits of it, whatever its precision.
fn six_digits(bytes: &[u8], format: RowFormat, purpose: Purpose) -> Cell {
    let shown = match format {
        RowFormat::Text => decode_text(bytes),
        RowFormat::Binary => bytes.try_into().ok().map(|b| f32::from_le_bytes(b).to_string()),
    };
    match (purpose, shown) {
        (Purpose::Own, Some(shown)) => Cell::from_text(shown),
        (_, shown) => Cell::Unreadable(UnreadableValue {
            shown,
            reason: "has more digits than the server writes; return it as CAST(… AS DOUBLE) or as DECIMAL"
                .to_owned(),
        }),
    }
}

fn decode_text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Up to 64 bits, most significant byte first, by either protocol.
fn decode_bits(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn decode_int(bytes: &[u8], is_unsigned: bool) -> Option<String> {
    Some(match (bytes.len(), is_unsigned) {
        (1, true) => u8::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (1, false) => i8::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (2, true) => u16::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (2, false) => i16::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (4, true) => u32::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (4, false) => i32::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (8, true) => u64::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (8, false) => i64::from_le_bytes(bytes.try_into().ok()?).to_string(),
        (_, _) => return None,
    })
}

/// Without the leading zeros of ZEROFILL.
fn plain_number(bytes: &[u8]) -> Option<String> {
    let text = decode_text(bytes)?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let kept = digits.trim_start_matches('0');
    let zero = if kept.is_empty() || kept.starts_with('.') { "0" } else { "" };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_number.then(|| format!("{sign}{zero}{kept}"))
}

fn double(bytes: &[u8], format: RowFormat) -> Option<f64> {
    match format {
        RowFormat::Text => std::str::from_utf8(bytes).ok()?.parse().ok(),
        RowFormat::Binary => bytes.try_into().ok().map(f64::from_le_bytes),
    }
}

/// `10:11:12.500000` without trailing zeros.
fn trimmed(text: &str) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    }
}

/// Date and time of a binary DATE, DATETIME or TIMESTAMP: its length, year, month, day, hour,
/// minute, second and microseconds, up to the last non-zero part.
fn moment(bytes: &[u8]) -> Option<(String, String)> {
    let (length, rest) = bytes.split_first()?;
    if rest.len() != usize::from(*length) || !matches!(length, 0 | 4 | 7 | 11) {
        return None;
    }
    let byte = |at: usize| rest.get(at).copied().unwrap_or(0);
    let year = u16::from_le_bytes([byte(0), byte(1)]);
    let micros = u32::from_le_bytes([byte(7), byte(8), byte(9), byte(10)]);
    let date = format!("{year:04}-{:02}-{:02}", byte(2), byte(3));
    Some((date, format!("{:02}:{:02}:{:02}{}", byte(4), byte(5), byte(6), fraction(micros))))
}

/// A binary TIME: its length, its sign, days, hour, minute, second and microseconds.
fn decode_time(bytes: &[u8]) -> Option<String> {
    let (length, rest) = bytes.split_first()?;
    if rest.len() != usize::from(*length) || !matches!(length, 0 | 8 | 12) {
        return None;
    }
    let byte = |at: usize| rest.get(at).copied().unwrap_or(0);
    let days = u32::from_le_bytes([byte(1), byte(2), byte(3), byte(4)]);
    let hours = u64::from(days) * 24 + u64::from(byte(5));
    let micros = u32::from_le_bytes([byte(8), byte(9), byte(10), byte(11)]);
    let sign = if byte(0) == 0 { "" } else { "-" };
    Some(format!("{sign}{hours:02}:{:02}:{:02}{}", byte(6), byte(7), fraction(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(name: &str, bytes: &[u8], format: RowFormat) -> Cell {
        let shape = ColumnShape { name, is_text: false, is_unsigned: name.ends_with("UNSIGNED") };
        decode_cell(shape, bytes, format, Purpose::Body)
    }

    #[test]
    fn both_protocols_give_one_text() {
        for (name, text, binary, expected) in [
            ("TINYINT", &b"-5"[..], &[251][..], "-5"),
            ("TINYINT UNSIGNED", b"251", &[251], "251"),
            ("INT UNSIGNED", b"0000000042", &42u32.to_le_bytes(), "42"),
            ("DECIMAL", b"00012.50", b"12.50", "12.50"),
            ("DECIMAL", b"0.00", b"0.00", "0.00"),
            ("DECIMAL", b"-0.50", b"-0.50", "-0.50"),
            ("DOUBLE", b"1e20", &1e20f64.to_le_bytes(), "100000000000000000000"),
            ("YEAR", b"0000", &0u16.to_le_bytes(), "0000"),
            ("BIT", &[1, 5], &[1, 5], "261"),
            ("DATE", b"0000-00-00", &[0], "0000-00-00"),
            ("DATE", b"2024-00-00", &[4, 0xe8, 7, 0, 0], "2024-00-00"),
            ("DATETIME", b"2024-02-29 00:00:00.000", &[4, 0xe8, 7, 2, 29], "2024-02-29 00:00:00"),
            (
                "TIMESTAMP",
                b"2024-02-29 10:11:12.500000",
                &[11, 0xe8, 7, 2, 29, 10, 11, 12, 0x20, 0xa1, 7, 0],
                "2024-02-29 10:11:12.5",
            ),
            ("TIME", b"00:00:00.000", &[0], "00:00:00"),
            (
                "TIME",
                b"-00:00:00.500000",
                &[12, 1, 0, 0, 0, 0, 0, 0, 0, 0x20, 0xa1, 7, 0],
                "-00:00:00.5",
            ),
            ("TIME", b"838:59:59", &[8, 0, 34, 0, 0, 0, 22, 59, 59], "838:59:59"),
        ] {
            for (bytes, format) in [(text, RowFormat::Text), (binary, RowFormat::Binary)] {
                match read(name, bytes, format) {
                    Cell::Value(_, found) => assert_eq!(found, expected, "{name} {format:?}"),
                    other => panic!("{name} {format:?}: {other:?}"),
                }
            }
        }
        for format in [RowFormat::Text, RowFormat::Binary] {
            let read = read("FLOAT", b"1.50", format);
            assert!(matches!(read, Cell::Unreadable(_)), "{format:?}: {read:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            name in prop::sample::select(vec!["INT", "BIGINT UNSIGNED", "DECIMAL", "DOUBLE", "FLOAT", "BIT",
                "DATE", "DATETIME", "TIME", "YEAR", "BLOB", "JSON"]),
            bytes in prop::collection::vec(any::<u8>(), 0..24),
            binary in any::<bool>(),
        ) {
            let _read = read(name, &bytes, if binary { RowFormat::Binary } else { RowFormat::Text });
        }
    }
}
