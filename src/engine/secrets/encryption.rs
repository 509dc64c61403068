//! Sealing: encrypts a secret with the installation's key, so that a table or a file may hold it.
//!
//! ChaCha20-Poly1305 with a fresh random nonce each time; the secret's name is authenticated data,
//! so a sealed text that is moved to another name does not open.
//!
//! An installation has one current key, which seals, and any number of previous keys, which only
//! open. A sealed text contains no key id: each key is tried, and authentication shows which one is
//! right.

use crate::secret_store::secret_file::{SecretFile, SecretFileError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;

/// The environment variable that holds the key.
pub const KEY_VARIABLE: &str = "PROCESSION_SECRET_KEY";
/// The environment variable that names a file with the key.
pub const KEY_FILE_VARIABLE: &str = "PROCESSION_SECRET_KEY_FILE";

const KEY_LEN: usize = 32;
/// The prefix of a sealed text; another scheme will have another.
const FORM: &str = "v1:";

/// Why sealing or opening failed; `Display` is the message for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Neither environment variable is set.
    #[error(
        "there is no key for sealed secrets; make one (procession secret key), unless this installation has \
         one, and give it in {KEY_VARIABLE}, or the path of a file with it in {KEY_FILE_VARIABLE}"
    )]
    NoKey,
    /// The key file cannot be read.
    #[error("the key in {KEY_FILE_VARIABLE}: {0}")]
    KeyFile(String),
    /// The text is not a valid key.
    #[error(
        "key {number} in {variable} is not 32 bytes in base64; take the text that procession secret key printed"
    )]
    BadKey {
        /// The environment variable it came from.
        variable: &'static str,
        /// Its position there, counted from 1.
        number: usize,
    },
    /// Sealed with another key or under another name, or damaged.
    #[error(
        "the sealed secret {0} does not open with this key, nor with a previous one that is given: it was sealed \
         with another key or under another name, or it is damaged; seal it again (procession secret set {0})"
    )]
    DoesNotOpen(String),
    /// The system provides no random bytes.
    #[error("the system gives no random bytes; try again")]
    NoRandom,
}

/// The name under which a user's second factor is sealed, so that it opens for no other user.
pub fn second_factor_name(user_id: i64) -> String {
    format!("second factor of user {user_id}")
}

/// One key.
struct EncryptionKey(LessSafeKey);

/// Generates a key, as text.
pub fn new_key() -> Result<SecretString, SealError> {
    let mut bytes = [0u8; KEY_LEN];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SealError::NoRandom)?;
    Ok(SecretString::from(STANDARD.encode(bytes)))
}

impl EncryptionKey {
    fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok().map(|key| Self(LessSafeKey::new(key)))
    }

    fn seal_text(&self, name: &str, text: &SecretString) -> Result<String, SealError> {
        let mut nonce = [0u8; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| SealError::NoRandom)?;
        let mut bytes = text.expose_secret().as_bytes().to_vec();
        let (nonce_used, name) = (Nonce::assume_unique_for_key(nonce), Aad::from(name.as_bytes()));
        self.0
            .seal_in_place_append_tag(nonce_used, name, &mut bytes)
            .map_err(|_| SealError::NoRandom)?;
        Ok(format!("{FORM}{}", STANDARD.encode([&nonce[..], &bytes].concat())))
    }

    fn open_sealed(&self, name: &str, sealed: &str) -> Option<SecretString> {
        let bytes = STANDARD.decode(sealed.trim().strip_prefix(FORM)?).ok()?;
        let (nonce, rest) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut rest = rest.to_vec();
        let text = self.0.open_in_place(nonce, Aad::from(name.as_bytes()), &mut rest).ok()?;
        String::from_utf8(text.to_vec()).ok().map(SecretString::from)
    }
}

/// The keys of the installation.
pub struct KeyRing {
    current: EncryptionKey,
    previous: Vec<EncryptionKey>,
}

/// The key that a sealed text opens with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedUnder {
    /// The key that seals.
    CurrentKey,
    /// A key that only opens.
    PreviousKey,
    /// None of the given keys.
    UnknownKey,
}

impl KeyRing {
    /// The keys from the environment: a variable, or a file that a variable names. They are read
    /// each time, so that a changed file takes effect at once.
    pub fn from_environment() -> Result<Self, SealError> {
        if let Ok(text) = std::env::var(KEY_VARIABLE)
            && !text.trim().is_empty()
        {
            return Self::parse(&SecretString::from(text), KEY_VARIABLE);
        }
        match std::env::var(KEY_FILE_VARIABLE) {
            Ok(path) if !path.is_empty() => Self::from_file(Path::new(&path)),
            Ok(_) | Err(_) => Err(SealError::NoKey),
        }
    }

    fn from_file(path: &Path) -> Result<Self, SealError> {
        let read = SecretFile::read_file(path);
        let file = read.map_err(|e: SecretFileError| SealError::KeyFile(e.to_string()))?;
        Self::parse(&file.whole(), KEY_FILE_VARIABLE)
    }

    /// Parses keys separated by white space: the current one first, then the previous ones.
    /// `variable` is their origin, for error messages.
    pub fn parse(text: &SecretString, variable: &'static str) -> Result<Self, SealError> {
        let mut keys = Vec::new();
        for (at, word) in text.expose_secret().split_whitespace().enumerate() {
            let bad = SealError::BadKey { variable, number: at + 1 };
            keys.push(EncryptionKey::parse(word).ok_or(bad)?);
        }
        if keys.is_empty() {
            return Err(SealError::BadKey { variable, number: 1 });
        }
        let previous = keys.split_off(1);
        let current = keys.pop().ok_or(SealError::BadKey { variable, number: 1 })?;
        Ok(Self { current, previous })
    }

    /// Number of previous keys.
    pub fn previous_keys(&self) -> usize {
        self.previous.len()
    }

    /// Seals a text under a name, with the current key.
    pub fn seal_text(&self, name: &str, text: &SecretString) -> Result<String, SealError> {
        self.current.seal_text(name, text)
    }

    /// Opens a text sealed under that name, with any of the keys.
    pub fn open_sealed(&self, name: &str, sealed: &str) -> Result<SecretString, SealError> {
        let mut keys = std::iter::once(&self.current).chain(&self.previous);
        let opened = keys.find_map(|key| key.open_sealed(name, sealed));
        opened.ok_or_else(|| SealError::DoesNotOpen(name.to_owned()))
    }

    /// The key that a text opens with.
    pub fn sealed_under(&self, name: &str, sealed: &str) -> SealedUnder {
        match self.current.open_sealed(name, sealed) {
            Some(_) => SealedUnder::CurrentKey,
            None if self.open_sealed(name, sealed).is_ok() => SealedUnder::PreviousKey,
            None => SealedUnder::UnknownKey,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&SecretString]) -> KeyRing {
        let words: Vec<&str> = texts.iter().map(|text| text.expose_secret()).collect();
        KeyRing::parse(&words.join("\n").into(), KEY_VARIABLE).expect("keys")
    }

    fn key() -> KeyRing {
        keys(&[&new_key().expect("random")])
    }

    #[test]
    fn what_was_sealed_opens_with_its_key_and_name_only() {
        let (key, text) = (key(), SecretString::from("p@ss ✓"));
        let sealed = key.seal_text("LEDGER", &text).expect("sealed");
        assert!(sealed.starts_with("v1:") && !sealed.contains("p@ss"));
        assert_eq!(key.open_sealed("LEDGER", &sealed).expect("opens").expose_secret(), "p@ss ✓");
        assert_ne!(sealed, key.seal_text("LEDGER", &text).expect("sealed"), "a nonce of its own");
        let mut damaged = sealed.clone().into_bytes();
        damaged[20] = if damaged[20] == b'A' { b'B' } else { b'A' };
        let damaged = String::from_utf8(damaged).expect("ASCII");
        let short = "v1:AAAA".to_owned();
        let mut not_opened =
            vec![key.open_sealed("OTHER", &sealed), self::key().open_sealed("LEDGER", &sealed)];
        not_opened
            .extend([damaged, short, "v2:x".to_owned()].map(|s| key.open_sealed("LEDGER", &s)));
        for result in not_opened {
            let error = result.expect_err("must not open").to_string();
            assert!(error.contains("does not open with this key"), "{error}");
        }
    }

    #[test]
    fn a_previous_key_opens_and_does_not_seal() {
        let (old, new) = (new_key().expect("random"), new_key().expect("random"));
        let text = SecretString::from("hunter22");
        let sealed = keys(&[&old]).seal_text("PW", &text).expect("sealed");
        let ring = keys(&[&new, &old]);
        assert_eq!(ring.previous_keys(), 1);
        assert_eq!(ring.open_sealed("PW", &sealed).expect("opens").expose_secret(), "hunter22");
        assert_eq!(ring.sealed_under("PW", &sealed), SealedUnder::PreviousKey);
        let anew = ring.seal_text("PW", &text).expect("sealed");
        assert_eq!(ring.sealed_under("PW", &anew), SealedUnder::CurrentKey);
        assert_eq!(keys(&[&old]).sealed_under("PW", &anew), SealedUnder::UnknownKey);
        assert!(keys(&[&new]).open_sealed("PW", &anew).is_ok());
        assert_eq!(ring.sealed_under("OTHER", &anew), SealedUnder::UnknownKey);
    }

    #[test]
    fn a_bad_key_is_refused_without_showing_it() {
        let good = new_key().expect("key");
        for (text, number) in [
            ("".to_owned(), 1),
            ("short".to_owned(), 1),
            ("notbase64!".to_owned(), 1),
            ("c2hvcnQ=".to_owned(), 1),
            (format!("{}\nshort\n", good.expose_secret()), 2),
        ] {
            let Err(error) = KeyRing::parse(&SecretString::from(text), KEY_VARIABLE) else {
                panic!("it is no key");
            };
            let said = format!("key {number} in PROCESSION_SECRET_KEY is not 32 bytes in base64");
            assert!(error.to_string().starts_with(&said), "{error}");
        }
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("key");
        let Err(error) = KeyRing::from_file(&file) else { panic!("no such file") };
        let said = "the key in PROCESSION_SECRET_KEY_FILE: the file";
        assert!(error.to_string().starts_with(said), "{error}");
        std::fs::write(&file, format!("{}\n", good.expose_secret())).expect("file");
        assert!(KeyRing::from_file(&file).is_ok());
    }
}
