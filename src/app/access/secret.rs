//! Secrets generated here: long, random, shown once, and stored only as a digest.

use anyhow::{Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest as sha};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};

/// Letters and digits that are not easily confused.
const PLAIN: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

pub(super) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow!("this machine gives no random numbers"))?;
    Ok(bytes)
}

/// 256 random bits, for machines.
pub fn fresh() -> Result<SecretString> {
    Ok(URL_SAFE_NO_PAD.encode(bytes::<32>()?).into())
}

/// Random letters and digits, five bits each.
pub(super) fn letters<const N: usize>() -> Result<[char; N]> {
    Ok(bytes::<N>()?.map(|b| char::from(PLAIN[usize::from(b % 32)])))
}

/// 125 random bits in five groups, for people to copy.
pub(super) fn legible() -> Result<SecretString> {
    let letters = letters::<25>()?;
    let groups: Vec<String> = letters.chunks(5).map(|g| g.iter().collect()).collect();
    Ok(groups.join("-").into())
}

/// The stored form of a secret. Secrets are long and random, so a fast digest is sufficient.
pub fn digest(secret: &str) -> String {
    sha(&SHA256, secret.as_bytes()).as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// Another secret, which can be derived only from this one.
pub fn derived(secret: &SecretString, purpose: &str) -> String {
    let text = format!("procession {purpose}\0{}", secret.expose_secret());
    URL_SAFE_NO_PAD.encode(sha(&SHA256, text.as_bytes()))
}

/// Compares two secrets in constant time.
pub fn are_equal(one: &str, other: &str) -> bool {
    let (one, other) = (digest(one), digest(other));
    one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_never_the_same() {
        let (one, other) = (fresh().expect("chance"), fresh().expect("chance"));
        assert_eq!(one.expose_secret().len(), 43);
        assert!(!are_equal(one.expose_secret(), other.expose_secret()));
        assert!(are_equal(one.expose_secret(), one.clone().expose_secret()));
        assert_eq!(legible().expect("chance").expose_secret().len(), 29);
        assert_eq!(digest("x").len(), 64);
        assert_ne!(derived(&one, "a"), derived(&one, "b"));
    }
}
