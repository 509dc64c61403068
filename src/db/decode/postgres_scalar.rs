//! Decodes binary scalar values of PostgreSQL.

use super::postgres_time::{
    decode_date, decode_time, interval, time_with_zone, timestamp, timestamp_with_zone,
};
use super::{float, float4, hex_digits};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The text of a value of the named type (upper case); `None` for an unsupported type, and for
/// invalid bytes.
pub(super) fn scalar(name: &str, bytes: &[u8]) -> Option<String> {
    Some(match name {
        // The form inside arrays; at top level they are words.
        "BOOL" => if *bytes.first()? == 0 { "f" } else { "t" }.to_owned(),
        "BYTEA" => format!("\\x{}", hex_digits(bytes)),
        "INT2" => i16::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "INT4" => i32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "INT8" => i64::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "OID" | "XID" | "CID" => u32::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "XID8" => u64::from_be_bytes(bytes.try_into().ok()?).to_string(),
        "FLOAT4" => float4(f32::from_be_bytes(bytes.try_into().ok()?)),
        "FLOAT8" => float(f64::from_be_bytes(bytes.try_into().ok()?)),
        "NUMERIC" => numeric(bytes)?,
        "TEXT" | "VARCHAR" | "CHAR" | "BPCHAR" | "NAME" | "UNKNOWN" | "JSON" | "XML" | "CITEXT" => {
            String::from_utf8(bytes.to_vec()).ok()?
        }
        "JSONB" => String::from_utf8(bytes.strip_prefix(&[1])?.to_vec()).ok()?,
        "\"CHAR\"" => one_byte(bytes)?,
        "UUID" => uuid::Uuid::from_slice(bytes).ok()?.to_string(),
        "VOID" => String::new(),
        "BIT" | "VARBIT" => decode_bits(bytes)?,
        "INET" | "CIDR" => network(bytes)?,
        "MACADDR" | "MACADDR8" if matches!(bytes.len(), 6 | 8) => {
            bytes.iter().map(|byte| hex_digits(&[*byte])).collect::<Vec<_>>().join(":")
        }
        "PG_LSN" => {
            let place = u64::from_be_bytes(bytes.try_into().ok()?);
            format!("{:X}/{:X}", place >> 32, place & 0xFFFF_FFFF)
        }
        "DATE" => decode_date(bytes)?,
        "TIME" => decode_time(bytes)?,
        "TIMETZ" => time_with_zone(bytes)?,
        "TIMESTAMP" => timestamp(bytes)?,
        "TIMESTAMPTZ" => timestamp_with_zone(bytes)?,
        "INTERVAL" => interval(bytes)?,
        _ => return None,
    })
}

/// The name of a built-in type by its catalogue number: rows without a declared type have only
/// numbers.
pub(super) fn built_in(oid: u32) -> Option<&'static str> {
    Some(match oid {
        16 => "BOOL",
        17 => "BYTEA",
        18 => "\"CHAR\"",
        19 => "NAME",
        20 => "INT8",
        21 => "INT2",
        23 => "INT4",
        25 => "TEXT",
        26 => "OID",
        114 => "JSON",
        650 => "CIDR",
        700 => "FLOAT4",
        701 => "FLOAT8",
        705 => "UNKNOWN",
        829 => "MACADDR",
        869 => "INET",
        1042 => "BPCHAR",
        1043 => "VARCHAR",
        1082 => "DATE",
        1083 => "TIME",
        1114 => "TIMESTAMP",
        1184 => "TIMESTAMPTZ",
        1186 => "INTERVAL",
        1266 => "TIMETZ",
        1560 => "BIT",
        1562 => "VARBIT",
        1700 => "NUMERIC",
        2950 => "UUID",
        3802 => "JSONB",
        _ => return None,
    })
}

/// The type `"char"`: a byte, or empty. Non-ASCII bytes have a different form in each version.
fn one_byte(bytes: &[u8]) -> Option<String> {
    match bytes {
        [] | [0] => Some(String::new()),
        [byte] if byte.is_ascii() => Some(char::from(*byte).to_string()),
        _ => None,
    }
}

fn decode_bits(bytes: &[u8]) -> Option<String> {
    let length = usize::try_from(i32::from_be_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
    let held = bytes.get(4..)?;
    if held.len() != length.div_ceil(8) {
        return None;
    }
    let is_one = |at: usize| held[at / 8] >> (7 - at % 8) & 1 == 1;
    Some((0..length).map(|at| if is_one(at) { '1' } else { '0' }).collect())
}

/// An address with the length of its network, unless that is the full length.
fn network(bytes: &[u8]) -> Option<String> {
    let [_family, length, is_cidr, _count, address @ ..] = bytes else { return None };
    let (address, whole) = match address.len() {
        4 => (Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).to_string(), 32),
        16 => (format_ipv6(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?)), 128),
        _ => return None,
    };
    let is_plain = *is_cidr == 0 && *length == whole;
    Some(if is_plain { address } else { format!("{address}/{length}") })
}

/// The standard form, except that the server also writes the old `::a.b.c.d` with dots.
fn format_ipv6(address: Ipv6Addr) -> String {
    let groups = address.segments();
    match groups {
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            format!("::{}", Ipv4Addr::new(a, b, c, d))
        }
        _ => address.to_string(),
    }
}

/// NUMERIC: groups of four decimal digits, the weight of the first, and the number of digits to
/// show after the point; exact, with the declared scale.
fn numeric(bytes: &[u8]) -> Option<String> {
    let word =
        |at: usize| Some(u16::from_be_bytes(bytes.get(at * 2..at * 2 + 2)?.try_into().ok()?));
    let (groups, sign, scale) = (i32::from(word(0)?), word(2)?, usize::from(word(3)?));
    let weight = i32::from(i16::from_be_bytes(word(1)?.to_be_bytes()));
    match sign {
        0 | 0x4000 => {}
        0xD000 => return Some("Infinity".to_owned()),
        0xF000 => return Some("-Infinity".to_owned()),
        0xC000 => return Some("NaN".to_owned()),
        _ => return None,
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
            (words(&[0, 0, 0xF000, 0]), "-Infinity"),
        ] {
            assert_eq!(numeric(&bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn addresses_have_their_network_where_it_says_something() {
        let six = |text: &str| text.parse::<Ipv6Addr>().expect(text).octets();
        for (head, address, text) in [
            ([2, 32, 0, 4], &[10, 0, 0, 1][..], "10.0.0.1"),
            ([2, 24, 0, 4], &[10, 0, 0, 1], "10.0.0.1/24"),
            ([2, 32, 1, 4], &[10, 0, 0, 1], "10.0.0.1/32"),
            ([3, 128, 0, 16], &six("2001:db8::1"), "2001:db8::1"),
            ([3, 128, 0, 16], &six("::ffff:1.2.3.4"), "::ffff:1.2.3.4"),
            ([3, 128, 0, 16], &six("::1.2.3.4"), "::1.2.3.4"),
            ([3, 64, 1, 16], &six("::1"), "::1/64"),
        ] {
            assert_eq!(network(&[&head[..], address].concat()).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_not_carried_has_no_text() {
        for (name, bytes) in [("MONEY", &[0; 8][..]), ("TSVECTOR", &[0; 4]), ("REFCURSOR", b"c")] {
            assert_eq!(scalar(name, bytes), None, "{name}");
        }
        assert_eq!(scalar("TEXT", &[0xff]), None, "no UTF-8");
        assert_eq!(scalar("BIT", &[0, 0, 0, 4, 0b0101_0000]).as_deref(), Some("0101"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            name in prop::sample::select(vec!["BOOL", "INT2", "INT8", "NUMERIC", "JSONB", "UUID", "BIT", "INET",
                "DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "FLOAT8", "MACADDR", "\"CHAR\""]),
            bytes in prop::collection::vec(any::<u8>(), 0..24),
        ) {
            let _text = scalar(name, &bytes);
        }
    }
}
