//! Secrets that are made here: long, by chance, shown once, and kept as a digest only.

use anyhow::{Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest as sha};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};

/// Letters and digits that are not taken for each other.
const PLAIN: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

pub(super) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow!("this machine gives no random numbers"))?;
    Ok(bytes)
}

/// 256 bits, for machines.
pub fn fresh() -> Result<SecretString> {
    Ok(URL_SAFE_NO_PAD.encode(bytes::<32>()?).into())
}

/// Letters and digits by chance, five bits each.
pub(super) fn letters<const N: usize>() -> Result<[char; N]> {
    Ok(bytes::<N>()?.map(|b| char::from(PLAIN[usize::from(b % 32)])))
}

/// 125 bits in five groups, for people to copy.
pub(super) fn legible() -> Result<SecretString> {
    let letters = letters::<25>()?;
    let groups: Vec<String> = letters.chunks(5).map(|g| g.iter().collect()).collect();
    Ok(groups.join("-").into())
}

/// What is stored of a secret. They are long and random, so that a fast digest is enough.
pub fn digest(secret: &str) -> String {
    sha(&SHA256, secret.as_bytes()).as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

/// Another secret that whoever has this one can work out, and nobody else.
pub fn derived(secret: &SecretString, purpose: &str) -> String {
    let text = format!("procession {purpose}\0{}", secret.expose_secret());
    URL_SAFE_NO_PAD.encode(sha(&SHA256, text.as_bytes()))
}

/// Whether two secrets are one, in a time that does not tell where they differ.
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
