//! User accounts: names, password rules, and delays after wrong passwords.

use crate::domain::time::Millis;
use serde::{Deserialize, Serialize};
use std::fmt;
use zxcvbn::{Score, zxcvbn};

/// Primary key of an `app_user` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserId(pub i64);

/// Login name. `Alice` and `alice` are the same; scripts may not be mixed, because names that look
/// alike allow one person to pose as another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct UserName(String);

/// Why a word is not a user name, or a password is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Malformed name.
    #[error("a user name has 1 to 64 ASCII letters, digits, '.', '_', '-' or '@'; choose another")]
    Name,
    /// Wrong password length.
    #[error("the password has {0} characters; use {MIN} to {MAX}")]
    Length(usize),
    /// Guessable password.
    #[error("the password is easy to guess{}; use a few unrelated words, or let a program make one", because(.0))]
    Guessable(String),
    /// Same as the current password.
    #[error("the new password is the old one; choose another")]
    Same,
}

/// Minimum length of a password in characters.
const MIN: usize = 12;
/// Maximum length: hashing costs time that anonymous callers could make the server spend.
const MAX: usize = 128;

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(" ({why})") }
}

impl UserName {
    /// Parses a name.
    pub fn parse(word: &str) -> Result<Self, Unfit> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
        match (1..=64).contains(&word.len()) && word.chars().all(fits) {
            true => Ok(Self(word.to_ascii_lowercase())),
            false => Err(Unfit::Name),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for UserName {
    type Error = Unfit;
    fn try_from(word: String) -> Result<Self, Unfit> {
        Self::parse(&word)
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Checks a password for a user.
pub fn password(user: &UserName, password: &str) -> Result<(), Unfit> {
    let length = password.chars().count();
    if !(MIN..=MAX).contains(&length) {
        return Err(Unfit::Length(length));
    }
    // A password that is mostly the user's name counts as a short one.
    let parts = user.as_str().split(['.', '_', '-', '@']);
    let joined: String = parts.clone().collect();
    let known: Vec<&str> =
        parts.chain([user.as_str(), &joined, "procession", "month-end"]).collect();
    let guessed = zxcvbn(password, &known);
    if guessed.score() >= Score::Three {
        return Ok(());
    }
    let why = guessed.feedback().and_then(|f| f.warning()).map(|w| w.to_string());
    Err(Unfit::Guessable(why.unwrap_or_default().trim_end_matches('.').to_owned()))
}

/// Recent failed logins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// For this name from this address, within a minute; and the time of the first.
    pub of_both: (u32, Option<Millis>),
    /// From this address, for any name, within a minute; and the time of the first.
    pub of_address: (u32, Option<Millis>),
    /// For this name from anywhere, within ten minutes.
    pub of_name: u32,
    /// The time of the last of those.
    pub last_of_name: Option<Millis>,
    /// Whether the user of this name has a session from this address.
    pub is_familiar: bool,
}

/// Window in milliseconds for failures of one address.
pub const MINUTE_MS: i64 = 60_000;
/// Window in milliseconds for failures of one name.
pub const WIDE_MS: i64 = 10 * MINUTE_MS;

/// Minimum milliseconds between two logins for a name from unfamiliar addresses, after this many
/// failures: many addresses together guess no faster than this.
fn pace_ms(wrong: u32) -> i64 {
    match wrong {
        0..30 => 0,
        30..100 => 2_000,
        100..500 => 10_000,
        500.. => 30_000,
    }
}

/// Milliseconds until the next login is permitted; `None`: immediately. A name is never locked,
/// only slowed down, and a user with a session from this address is not slowed down by failures
/// elsewhere.
pub fn wait_ms(tries: &Tries, now: Millis) -> Option<i64> {
    // When a hundred addresses guess one name, each of them gets fewer attempts.
    let for_both = if tries.of_name >= 100 { 2 } else { 10 };
    let over = |(count, first): (u32, Option<Millis>), most: u32| {
        (count >= most).then(|| first.map_or(MINUTE_MS, |at| MINUTE_MS - now.since(at)).max(1_000))
    };
    let rest = tries.last_of_name.map(|last| pace_ms(tries.of_name) - now.since(last));
    let rest = rest.filter(|rest| *rest > 0 && !tries.is_familiar);
    over(tries.of_both, for_both).max(over(tries.of_address, 60)).max(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(UserName::parse("Li.Na@GL").expect("name").as_str(), "li.na@gl");
        for word in ["", "a b", "李娜", "a/b", "a\n", &"a".repeat(65)] {
            assert_eq!(UserName::parse(word), Err(Unfit::Name), "{word}");
        }
    }

    #[test]
    fn passwords_are_long_and_not_guessable() {
        let user = UserName::parse("margaret.hamilton").expect("name");
        for weak in [
            "short",
            "password1234",
            "123456789012",
            "aaaaaaaaaaaaaaaa",
            "margaret.hamilton",
            "margarethamilton1",
            "qwertyuiop12",
        ] {
            assert!(password(&user, weak).is_err(), "{weak}");
        }
        for good in ["correct horse battery staple", "tuN9-glaze-orbit", "中文口令也可以用十二字"]
        {
            let checked = password(&user, good);
            assert!(checked.is_ok() || good.chars().count() < MIN, "{good}: {checked:?}");
        }
        assert_eq!(password(&user, &"x".repeat(129)), Err(Unfit::Length(129)));
    }

    #[test]
    fn who_guesses_waits_and_nobody_else() {
        let now = Millis(1_000_000);
        let first = Some(now.plus_ms(-20_000));
        let tries = |both, address, name| Tries {
            of_both: (both, first),
            of_address: (address, first),
            of_name: name,
            last_of_name: Some(now.plus_ms(-500)),
            is_familiar: true,
        };
        let stranger = |name| Tries { is_familiar: false, ..tries(0, 0, name) };
        assert_eq!(wait_ms(&stranger(29), now), None);
        assert_eq!(wait_ms(&stranger(30), now), Some(1_500), "many addresses guess one name");
        assert_eq!(wait_ms(&stranger(5_000), now), Some(29_500));
        let rested = Tries { last_of_name: Some(now.plus_ms(-30_000)), ..stranger(5_000) };
        assert_eq!(wait_ms(&rested, now), None, "it is never locked");
        assert_eq!(wait_ms(&tries(9, 9, 9), now), None);
        assert_eq!(wait_ms(&tries(10, 10, 10), now), Some(40_000));
        assert_eq!(wait_ms(&tries(0, 60, 0), now), Some(40_000), "many names from one address");
        assert_eq!(wait_ms(&tries(0, 0, 5_000), now), None, "another address is not locked out");
        assert_eq!(wait_ms(&tries(1, 1, 5_000), now), None, "who mistypes once may try again");
        assert_eq!(wait_ms(&tries(2, 2, 5_000), now), Some(40_000));
    }
}
