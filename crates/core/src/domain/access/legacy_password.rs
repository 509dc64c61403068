//! Passwords of users imported from XXL-JOB, of which only an unsalted digest exists: MD5 up to
//! 3.1, SHA-256 from 3.2 on. The digest itself is never stored; see `app::access::hashing`.

use md5::{Digest as _, Md5};
use ring::digest::{SHA256, digest as sha};
use secrecy::{ExposeSecret as _, SecretString};
use std::fmt::Write as _;

/// XXL-JOB's digest algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyDigestKind {
    /// Up to 3.1.
    Md5,
    /// From 3.2 on.
    Sha256,
}

/// A digest from XXL-JOB's table.
#[derive(Clone, Debug)]
pub struct Legacy {
    kind: LegacyDigestKind,
    /// In lower case, as XXL-JOB writes it.
    text: SecretString,
}

/// Well-known passwords: XXL-JOB's default for its first user, and common replacements.
const KNOWN: [&str; 20] = [
    "123456",
    "admin",
    "admin123",
    "admin123456",
    "Admin123",
    "admin@123",
    "xxl-job",
    "xxljob",
    "xxl-job-admin",
    "xxl123456",
    "password",
    "12345678",
    "123456789",
    "1234567890",
    "111111",
    "000000",
    "888888",
    "a123456",
    "abc123",
    "root",
];

impl LegacyDigestKind {
    fn hash_prefix(self) -> &'static str {
        match self {
            Self::Md5 => "$xxl-md5",
            Self::Sha256 => "$xxl-sha256",
        }
    }

    /// The digest that XXL-JOB would have stored for a password.
    pub fn digest(self, password: &SecretString) -> SecretString {
        let text = password.expose_secret().as_bytes();
        match self {
            Self::Md5 => encode_hex(&Md5::digest(text)).into(),
            Self::Sha256 => encode_hex(sha(&SHA256, text).as_ref()).into(),
        }
    }
}

impl Legacy {
    /// Parses a value of XXL-JOB's column `password`.
    pub fn parse(value: &SecretString) -> Option<Self> {
        let text = value.expose_secret().trim().to_ascii_lowercase();
        let kind = match text.len() {
            32 => LegacyDigestKind::Md5,
            64 => LegacyDigestKind::Sha256,
            _ => return None,
        };
        let is_hex = text.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex.then(|| Self { kind, text: text.into() })
    }

    /// Prefix of the stored hash of such a digest.
    pub fn hash_prefix(&self) -> &'static str {
        self.kind.hash_prefix()
    }

    /// The digest in lower case.
    pub fn digest(&self) -> &SecretString {
        &self.text
    }

    /// Whether the password is a well-known one, or the user's name with a short suffix.
    pub fn is_known(&self, user: &str) -> bool {
        let behind = ["", "123", "123456", "@123", "1234"];
        let own = behind.map(|end| format!("{user}{end}"));
        let words = KNOWN.into_iter().chain(own.iter().map(String::as_str));
        let digest = |word: &str| self.kind.digest(&word.into());
        words.map(digest).any(|d| d.expose_secret() == self.text.expose_secret())
    }
}

/// The digest kind of a stored hash, and the hash without its prefix.
pub fn kind_of(stored: &str) -> (Option<LegacyDigestKind>, &str) {
    let of = |kind: LegacyDigestKind| Some((Some(kind), stored.strip_prefix(kind.hash_prefix())?));
    of(LegacyDigestKind::Md5).or_else(|| of(LegacyDigestKind::Sha256)).unwrap_or((None, stored))
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all text");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(digest: &str, user: &str) -> Option<bool> {
        Legacy::parse(&digest.into()).map(|d| d.is_known(user))
    }

    #[test]
    fn digests_are_told_from_what_is_none() {
        let first = "e10adc3949ba59abbe56e057f20f883e";
        assert_eq!(known(first, "admin"), Some(true), "XXL-JOB's own");
        let sha = "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92";
        assert_eq!(known(&sha.to_uppercase(), "li.na"), Some(true));
        assert_eq!(known("", "admin"), None);
        assert_eq!(known("123456", "admin"), None, "in the clear");
        assert_eq!(known(&first.replace('e', "g"), "admin"), None);
        assert_eq!(known(&first[1..], "admin"), None);
        let own = LegacyDigestKind::Md5.digest(&"li.na123".into());
        assert_eq!(known(own.expose_secret(), "li.na"), Some(true), "the name with 123");
        assert_eq!(known(own.expose_secret(), "wang"), Some(false));
        let good = LegacyDigestKind::Sha256.digest(&"tuN9-glaze-orbit".into());
        assert_eq!(known(good.expose_secret(), "admin"), Some(false));
    }
}
