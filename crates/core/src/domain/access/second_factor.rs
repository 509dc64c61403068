//! Second factors: time-based one-time codes (TOTP, RFC 6238) and recovery codes. Decides which
//! codes are accepted, when the next attempt is permitted, and the form of recovery codes.

use crate::domain::time::Millis;

/// Seconds for which one code is displayed.
pub const STEP_SEC: i64 = 30;
/// Number of steps before and after the current one whose codes are accepted: clocks of telephones
/// differ, and typing takes time.
const STEPS_AROUND: i64 = 1;
/// Digits of a one-time code.
pub const DIGITS: usize = 6;
/// Number of recovery codes issued to a user.
pub const RECOVERY_CODES: usize = 10;
/// Characters of a recovery code without its hyphens; 80 bits.
pub const RECOVERY_LETTERS: usize = 16;
/// Consecutive wrong codes before a delay applies.
const FREE_FAILURES: u32 = 5;
/// First delay in milliseconds; doubled by each further wrong code.
const FIRST_WAIT_MS: i64 = 60_000;
/// Longest delay in milliseconds. It leaves an attacker who knows the password 24 guesses a day at
/// three accepted codes of a million: one in 13,000.
const LONGEST_WAIT_MS: i64 = 3_600_000;

/// A second factor as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedCode {
    /// Six digits.
    OneTime(String),
    /// A recovery code, in lower case without hyphens.
    Recovery(String),
}

impl TypedCode {
    /// Parses the typed text, ignoring blanks and hyphens. None when it has neither form.
    pub fn parse(typed: &str) -> Option<Self> {
        let bare: String = typed
            .chars()
            .filter(|c| !c.is_whitespace() && *c != '-')
            .collect::<String>()
            .to_lowercase();
        if bare.len() == DIGITS && bare.bytes().all(|b| b.is_ascii_digit()) {
            return Some(Self::OneTime(bare));
        }
        let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let fits = bare.len() == RECOVERY_LETTERS && bare.bytes().all(is_letter);
        fits.then_some(Self::Recovery(bare))
    }
}

/// Formats a recovery code in groups of four.
pub fn group_letters(code: &str) -> String {
    let letters: Vec<char> = code.chars().collect();
    let groups: Vec<String> = letters.chunks(4).map(|group| group.iter().collect()).collect();
    groups.join("-")
}

/// The steps whose codes are accepted now: only those after `last`, the newest step whose code was
/// accepted before. So each code works once, and a code that was observed does not work again.
pub fn steps_taken(now: Millis, last: Option<i64>) -> impl Iterator<Item = i64> {
    let present = now.0.div_euclid(STEP_SEC * 1_000);
    let first = present - STEPS_AROUND;
    (first..=present + STEPS_AROUND).filter(move |step| last.is_none_or(|last| *step > last))
}

/// Milliseconds for which no code is accepted after this many consecutive wrong ones; none when one
/// may be tried.
pub fn code_wait_ms(failures: u32, last_failure: Option<Millis>, now: Millis) -> Option<i64> {
    let beyond = failures.checked_sub(FREE_FAILURES)?;
    let wait = FIRST_WAIT_MS.saturating_mul(1 << beyond.min(16)).min(LONGEST_WAIT_MS);
    let left = last_failure?.plus_ms(wait).since(now);
    (left > 0).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let digits = Some(TypedCode::OneTime("012345".to_owned()));
        for typed in ["012345", " 012 345 ", "012-345"] {
            assert_eq!(TypedCode::parse(typed), digits, "{typed}");
        }
        let recovery = Some(TypedCode::Recovery("abcdefgh23456789".to_owned()));
        assert_eq!(TypedCode::parse("ABCD-efgh-2345-6789"), recovery);
        assert_eq!(group_letters("abcdefgh23456789"), "abcd-efgh-2345-6789");
        for typed in ["", "12345", "1234567", "12345a", "abcd-efgh", "äbcdefgh23456789"] {
            assert_eq!(TypedCode::parse(typed), None, "{typed}");
        }
    }

    #[test]
    fn a_code_is_taken_within_a_step_of_its_time_and_once() {
        let now = Millis(100 * 30_000 + 5_000);
        assert_eq!(steps_taken(now, None).collect::<Vec<_>>(), [99, 100, 101]);
        assert_eq!(steps_taken(now, Some(98)).collect::<Vec<_>>(), [99, 100, 101]);
        assert_eq!(steps_taken(now, Some(100)).collect::<Vec<_>>(), [101]);
        assert_eq!(steps_taken(now, Some(101)).count(), 0);
        let next = now.plus_ms(30_000);
        assert_eq!(steps_taken(next, Some(101)).collect::<Vec<_>>(), [102]);
    }

    #[test]
    fn wrong_codes_in_a_row_cost_longer_and_longer() {
        let at = Millis(1_000_000);
        for failures in 0..5 {
            assert_eq!(code_wait_ms(failures, Some(at), at), None, "{failures}");
        }
        for (failures, minutes) in
            [(5, 1), (6, 2), (7, 4), (10, 32), (11, 60), (40, 60), (u32::MAX, 60)]
        {
            assert_eq!(code_wait_ms(failures, Some(at), at), Some(minutes * 60_000), "{failures}");
            let over = at.plus_ms(minutes * 60_000);
            assert_eq!(code_wait_ms(failures, Some(at), over), None, "{failures}");
        }
        // One day of guesses by an attacker who knows the password.
        let (mut now, mut failures, mut last) = (at, 0, None);
        let end = at.plus_ms(86_400_000);
        while now < end {
            match code_wait_ms(failures, last, now) {
                Some(wait) => now = now.plus_ms(wait),
                None => (failures, last) = (failures + 1, Some(now)),
            }
        }
        assert!(failures <= 5 + 6 + 24, "{failures}");
    }
}
