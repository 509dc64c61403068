//! Sealing: a secret under the installation's key, so that a table or a file may hold it.
//!
//! ChaCha20-Poly1305 with a fresh random nonce each time; the secret's name is bound to it, so a sealed
//! text that is moved to another name does not open.

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
/// What a sealed text starts with; another way of sealing will have another.
const FORM: &str = "v1:";

/// Why something cannot be sealed or opened; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Neither variable is set.
    #[error(
        "there is no key for sealed secrets; make one (procession secret key), unless this installation has \
         one, and give it in {KEY_VARIABLE}, or the path of a file with it in {KEY_FILE_VARIABLE}"
    )]
    NoKey,
    /// The file cannot be read.
    #[error("the key file {0} ({KEY_FILE_VARIABLE}) cannot be read: {1}")]
    KeyFile(String, String),
    /// Not a key.
    #[error(
        "the key in {0} is not 32 bytes in base64; take the text that procession secret key printed"
    )]
    BadKey(&'static str),
    /// Another key, another name, or a damaged text.
    #[error(
        "the sealed secret {0} does not open with this key: it was sealed with another key or under \
         another name, or it is damaged; seal it again (procession secret set {0})"
    )]
    DoesNotOpen(String),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes; try again")]
    NoRandom,
}

/// The installation's key.
pub struct Key(LessSafeKey);

/// A new key as text.
pub fn new_key() -> Result<SecretString, SealError> {
    let mut bytes = [0u8; KEY_LEN];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SealError::NoRandom)?;
    Ok(SecretString::from(STANDARD.encode(bytes)))
}

impl Key {
    /// The key that the environment gives, in a variable or in a file that one names.
    pub fn from_environment() -> Result<Self, SealError> {
        if let Ok(text) = std::env::var(KEY_VARIABLE)
            && !text.is_empty()
        {
            return Self::parse(&SecretString::from(text), KEY_VARIABLE);
        }
        match std::env::var(KEY_FILE_VARIABLE) {
            Ok(path) if !path.is_empty() => Self::from_file(Path::new(&path)),
            Ok(_) | Err(_) => Err(SealError::NoKey),
        }
    }

    fn from_file(path: &Path) -> Result<Self, SealError> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| SealError::KeyFile(path.display().to_string(), e.to_string()))?;
        Self::parse(&SecretString::from(text), KEY_FILE_VARIABLE)
    }

    /// Reads a key; `from` is where it came from, for the message.
    pub fn parse(text: &SecretString, from: &'static str) -> Result<Self, SealError> {
        let bytes = STANDARD.decode(text.expose_secret().trim()).ok();
        let key = bytes.and_then(|bytes| UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok());
        key.map(|key| Self(LessSafeKey::new(key))).ok_or(SealError::BadKey(from))
    }

    /// Seals a text under a name.
    pub fn seal(&self, name: &str, text: &SecretString) -> Result<String, SealError> {
        let mut nonce = [0u8; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| SealError::NoRandom)?;
        let mut bytes = text.expose_secret().as_bytes().to_vec();
        let (nonce_used, name) = (Nonce::assume_unique_for_key(nonce), Aad::from(name.as_bytes()));
        self.0
            .seal_in_place_append_tag(nonce_used, name, &mut bytes)
            .map_err(|_| SealError::NoRandom)?;
        Ok(format!("{FORM}{}", STANDARD.encode([&nonce[..], &bytes].concat())))
    }

    /// Opens what was sealed under that name.
    pub fn open(&self, name: &str, sealed: &str) -> Result<SecretString, SealError> {
        let opened = || -> Option<SecretString> {
            let bytes = STANDARD.decode(sealed.trim().strip_prefix(FORM)?).ok()?;
            let (nonce, rest) = bytes.split_at_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut rest = rest.to_vec();
            let text = self.0.open_in_place(nonce, Aad::from(name.as_bytes()), &mut rest).ok()?;
            String::from_utf8(text.to_vec()).ok().map(SecretString::from)
        };
        opened().ok_or_else(|| SealError::DoesNotOpen(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::parse(&new_key().expect("random"), KEY_VARIABLE).expect("a key")
    }

    #[test]
    fn what_was_sealed_opens_with_its_key_and_name_only() {
        let (key, text) = (key(), SecretString::from("p@ss ✓"));
        let sealed = key.seal("LEDGER", &text).expect("sealed");
        assert!(sealed.starts_with("v1:") && !sealed.contains("p@ss"));
        assert_eq!(key.open("LEDGER", &sealed).expect("opens").expose_secret(), "p@ss ✓");
        assert_ne!(sealed, key.seal("LEDGER", &text).expect("sealed"), "a nonce of its own");
        let mut damaged = sealed.clone().into_bytes();
        damaged[20] = if damaged[20] == b'A' { b'B' } else { b'A' };
        let damaged = String::from_utf8(damaged).expect("ASCII");
        let short = "v1:AAAA".to_owned();
        let mut not_opened = vec![key.open("OTHER", &sealed), self::key().open("LEDGER", &sealed)];
        not_opened.extend([damaged, short, "v2:x".to_owned()].map(|s| key.open("LEDGER", &s)));
        for result in not_opened {
            let error = result.expect_err("must not open").to_string();
            assert!(error.contains("does not open with this key"), "{error}");
        }
    }

    #[test]
    fn a_bad_key_is_refused_without_showing_it() {
        for text in ["", "short", "not base64 !", "c2hvcnQ="] {
            let Err(error) = Key::parse(&SecretString::from(text), KEY_VARIABLE) else {
                panic!("{text} is no key");
            };
            let said = "the key in PROCESSION_SECRET_KEY is not 32 bytes in base64";
            assert!(error.to_string().starts_with(said), "{error}");
        }
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("key");
        let Err(error) = Key::from_file(&file) else { panic!("no such file") };
        assert!(
            error.to_string().contains("(PROCESSION_SECRET_KEY_FILE) cannot be read"),
            "{error}"
        );
        std::fs::write(&file, format!("{}\n", new_key().expect("key").expose_secret()))
            .expect("file");
        assert!(Key::from_file(&file).is_ok());
    }
}
