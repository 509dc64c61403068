//! Reads a `JOB_DATA` column: properties as text, or a serialized Java object that only its program can read.

use crate::import::azkaban::properties::properties;

/// The first bytes of every serialized Java object.
const SERIALIZED: &[u8] = &[0xac, 0xed, 0x00, 0x05];
/// The class that holds the pairs of a map.
const HASH_MAP: &[u8] = b"java.util.HashMap";
/// Eight bytes follow it: the capacity of the table, and the number of pairs.
const BLOCK_OF_EIGHT: &[u8] = &[0x77, 0x08];

/// The data of a job or a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JobData {
    /// Pairs by key; empty without data.
    Pairs(Vec<(String, String)>),
    /// Data in a serialized Java object.
    Serialized,
}

impl JobData {
    /// Parses the column, given in hexadecimal.
    pub(super) fn read(hex: &str) -> Self {
        let Some(bytes) = unhex(hex) else { return Self::Serialized };
        if bytes.starts_with(SERIALIZED) {
            return if is_empty_map(&bytes) { Self::Pairs(Vec::new()) } else { Self::Serialized };
        }
        // Java writes properties in ISO 8859-1 and the rest as \u escapes.
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let mut pairs: Vec<(String, String)> =
            properties(&text).into_iter().map(|property| (property.key, property.value)).collect();
        pairs.sort();
        Self::Pairs(pairs)
    }

    /// The pairs; empty if the data cannot be read.
    pub(super) fn pairs(&self) -> &[(String, String)] {
        match self {
            Self::Pairs(pairs) => pairs,
            Self::Serialized => &[],
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks(2);
    pairs.map(|pair| if let [high, low] = pair { Some(high * 16 + low) } else { None }).collect()
}

/// Whether the only map in a serialized object is empty.
fn is_empty_map(bytes: &[u8]) -> bool {
    let find = |text: &[u8], from: usize| {
        let rest = bytes.get(from..)?;
        rest.windows(text.len()).position(|window| window == text).map(|at| from + at)
    };
    let Some(map) = find(HASH_MAP, 0) else { return false };
    let Some(block) = find(BLOCK_OF_EIGHT, map) else { return false };
    bytes.get(block + 6..block + 10) == Some(&[0, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A serialized `JobDataMap` with this many pairs.
    fn serialized(pairs: u8) -> String {
        let mut bytes = SERIALIZED.to_vec();
        bytes.extend(b"sr\0\x15org.quartz.JobDataMap");
        bytes.extend(b"sr\0\x11");
        bytes.extend(HASH_MAP);
        bytes.extend([0x05, 0x07, 0xda, 0xc1, 0xc3, 0x16, 0x60, 0xd1, 0x03, 0x00, 0x02]);
        bytes.extend(b"F\0\x0aloadFactorI\0\x09thresholdxp?@\0\0\0\0\0\x0c");
        bytes.extend(BLOCK_OF_EIGHT);
        bytes.extend([0, 0, 0, 16, 0, 0, 0, pairs]);
        bytes.extend(if pairs == 0 { b"x\0".as_slice() } else { b"t\0\x01at\0\x01bx\0" });
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn data_is_properties_or_an_object_that_is_empty_or_not() {
        let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
        let pairs = |all: &[(&str, &str)]| {
            JobData::Pairs(all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
        };
        assert_eq!(JobData::read(""), pairs(&[]));
        assert_eq!(JobData::read(&hex("#\n#Mon Sep 21 00:00:00 CST 2026\n")), pairs(&[]));
        let text = "#\nday=\\u6708\\u672B\npath=C\\:\\\\x\n";
        assert_eq!(JobData::read(&hex(text)), pairs(&[("day", "月末"), ("path", "C:\\x")]));
        assert_eq!(JobData::read(&serialized(0)), pairs(&[]));
        assert_eq!(JobData::read(&serialized(1)), JobData::Serialized);
        assert_eq!(JobData::read("xyz"), JobData::Serialized);
        assert_eq!(JobData::read("ABC"), JobData::Serialized);
    }
}
