//! Reads the files of a zip archive from its central directory; stored and deflated entries only, the default of zip
//! tools.

use flate2::read::DeflateDecoder;
use std::io::Read as _;

/// Maximum unpacked size of one archive; a zip bomb is refused, not unpacked.
const MOST_BYTES: u64 = 512 << 20;
const END: &[u8] = b"PK\x05\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";

/// Whether the bytes begin like a zip archive.
pub(crate) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(LOCAL) || bytes.starts_with(END)
}

/// Path and content of each file.
pub(crate) fn unzip(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    // The end record is 22 bytes and a comment of at most 65,535.
    let from = bytes.len().saturating_sub(22 + 65_535);
    let end = bytes[from..].windows(4).rposition(|w| w == END).map(|at| at + from);
    let end = end.ok_or("this zip has no end: it is cut off")?;
    let count = number(bytes, end + 10, 2)?;
    let mut at = number(bytes, end + 16, 4)?;
    let mut left = MOST_BYTES;
    let mut found = Vec::new();
    for _ in 0..count {
        if slice(bytes, at, 4)? != ENTRY {
            return Err("the directory of this zip is damaged".to_owned());
        }
        let (flags, method) = (number(bytes, at + 8, 2)?, number(bytes, at + 10, 2)?);
        let packed = number(bytes, at + 20, 4)?;
        let name_long = number(bytes, at + 28, 2)?;
        let behind = number(bytes, at + 30, 2)? + number(bytes, at + 32, 2)?;
        let local = number(bytes, at + 42, 4)?;
        let name = String::from_utf8_lossy(slice(bytes, at + 46, name_long)?).replace('\\', "/");
        at += 46 + name_long + behind;
        if name.ends_with('/') {
            continue;
        }
        if flags & 1 == 1 {
            return Err(format!("{name} in this zip has a password"));
        }
        let data = local + 30 + number(bytes, local + 26, 2)? + number(bytes, local + 28, 2)?;
        let content = unpacked(slice(bytes, data, packed)?, method, left)
            .map_err(|why| format!("{name} in this zip {why}"))?;
        left -= content.len() as u64;
        found.push((name, content));
    }
    found.sort();
    Ok(found)
}

fn unpacked(packed: &[u8], method: usize, left: u64) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let read = match method {
        0 => packed.take(left + 1).read_to_end(&mut content),
        8 => DeflateDecoder::new(packed).take(left + 1).read_to_end(&mut content),
        other => return Err(format!("is packed by method {other}, which is not read here")),
    };
    read.map_err(|error| format!("is damaged: {error}"))?;
    if content.len() as u64 > left {
        return Err(format!("makes it larger than {} MiB", MOST_BYTES >> 20));
    }
    Ok(content)
}

fn slice(bytes: &[u8], at: usize, long: usize) -> Result<&[u8], String> {
    let end = at.checked_add(long).ok_or("this zip is damaged")?;
    bytes.get(at..end).ok_or_else(|| "this zip is cut off".to_owned())
}

fn number(bytes: &[u8], at: usize, long: usize) -> Result<usize, String> {
    let bytes = slice(bytes, at, long)?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A zip archive with one stored file, built by hand.
    fn zip(name: &str, content: &[u8]) -> Vec<u8> {
        let two = |n: usize| (n as u16).to_le_bytes();
        let four = |n: usize| (n as u32).to_le_bytes();
        let mut made = LOCAL.to_vec();
        made.extend([0; 14]);
        made.extend([four(content.len()), four(content.len())].concat());
        made.extend([two(name.len()), two(0)].concat());
        made.extend(name.as_bytes());
        made.extend(content);
        let at = made.len();
        made.extend(ENTRY);
        made.extend([0; 16]);
        made.extend([four(content.len()), four(content.len())].concat());
        made.extend([two(name.len()), two(0), two(0), two(0), two(0)].concat());
        made.extend([four(0), four(0)].concat());
        made.extend(name.as_bytes());
        let long = made.len() - at;
        made.extend(END);
        made.extend([two(0), two(0), two(1), two(1)].concat());
        made.extend([four(long), four(at)].concat());
        made.extend(two(0));
        made
    }

    #[test]
    fn a_file_comes_out_as_it_went_in() {
        let found = unzip(&zip("a/b.job", b"type=noop\n")).expect("a zip");
        assert_eq!(found, [("a/b.job".to_owned(), b"type=noop\n".to_vec())]);
        let cut = &zip("a/b.job", b"type=noop\n")[..40];
        assert!(unzip(cut).expect_err("cut off").contains("cut off"));
    }

    proptest! {
        #[test]
        fn damage_is_an_error_and_no_panic(at in 0_usize..110, byte: u8) {
            let mut bytes = zip("a/b.job", b"type=noop\n");
            if let Some(one) = bytes.get_mut(at) {
                *one = byte;
            }
            let _any_answer = unzip(&bytes);
        }
    }
}
