//! Converts the output and errors of a body to text that every column can store.
//!
//! Recording an end must never fail because of its message: PostgreSQL refuses NUL, MariaDB refuses invalid UTF-8
//! (error 1300) and text longer than the column (error 1406). Each of these left a job RUNNING forever in the systems
//! that we studied.

pub mod did_you_mean;
pub mod lang;
pub mod translation;

/// Maximum length of a stored `error_message` in bytes; MySQL's TEXT holds 65,535.
pub const MESSAGE_MAX: usize = 16_000;
/// Maximum length of a stored log line in bytes.
pub const LINE_MAX: usize = 8_000;

/// Converts bytes of any origin to text: invalid UTF-8 and NUL become U+FFFD, other control
/// characters (but not tab and newline) become spaces, and at most `max` bytes remain.
pub fn storable(bytes: &[u8], max: usize) -> String {
    let text: String = String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| match c {
            '\0' => '\u{FFFD}',
            '\t' | '\n' => c,
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    truncate_text(&text, max)
}

/// At most `max` bytes of `text`, cut between characters; the number of dropped bytes is appended.
pub fn truncate_text(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(max.saturating_sub(40));
    format!("{} … [{} bytes more]", &text[..cut], text.len() - cut)
}

/// A number with its noun: `1 row`, `2 rows`, `3 dependencies`.
pub fn count_words(number: u64, thing: &str) -> String {
    match (number, thing.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o']))) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nul_and_bad_utf8_become_storable() {
        assert_eq!(
            storable(b"a\0b\xff\xfe\x1b[31mred\n", 100),
            "a\u{FFFD}b\u{FFFD}\u{FFFD} [31mred\n"
        );
        assert_eq!(truncate_text("月末结账", 3), " … [12 bytes more]");
    }

    proptest! {
        #[test]
        fn storable_is_always_short_and_clean(bytes: Vec<u8>, max in 60usize..200) {
            let text = storable(&bytes, max);
            prop_assert!(text.len() <= max);
            prop_assert!(!text.contains('\0'));
        }
    }
}
