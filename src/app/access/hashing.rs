//! Password hashing: slow on purpose, and a few at a time, so that an attacker who guesses can use
//! only a limited amount of memory.

use crate::app::access::secret::bytes;
use crate::domain::access::legacy_password::{Legacy, kind_of};
use anyhow::{Context as _, Result, anyhow};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// OWASP's first choice for argon2id: 19 MiB, 2, 1.
const COST: HashCost = HashCost { memory_kib: 19_456, rounds: 2, lanes: 1 };
/// Hashes at once.
const AT_ONCE: usize = 2;
/// Length of a salt, and of a hash, in bytes.
const SALT: usize = 16;
const HASH: usize = 32;

/// What one hash costs.
#[derive(Clone, Copy)]
struct HashCost {
    memory_kib: u32,
    rounds: u32,
    lanes: u32,
}

/// Hashes and compares passwords.
#[derive(Clone)]
pub(super) struct Hashing {
    places: Arc<Semaphore>,
    /// The cost of all hashes so far, in KiB of memory times rounds.
    spent: Arc<AtomicU64>,
}

impl Hashing {
    pub(super) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)), spent: Arc::default() }
    }

    /// The cost of all hashes so far.
    pub(super) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// The stored form of a password, in the common format (`$argon2id$…`).
    pub(super) async fn hash(&self, password: SecretString) -> Result<String> {
        let salt = bytes::<SALT>()?;
        let hash = self.run_hash(password, salt, COST).await?;
        let HashCost { memory_kib: m, rounds: t, lanes: p } = COST;
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        Ok(format!("$argon2id$v=19$m={m},t={t},p={p}${salt}${hash}"))
    }

    /// The stored form of a password of which another program left only a fast digest: a slow hash
    /// of that digest, so that our table does not reveal such digests.
    pub(super) async fn wrap_legacy(&self, digest: &Legacy) -> Result<String> {
        Ok(format!("{}{}", digest.hash_prefix(), self.hash(digest.digest().clone()).await?))
    }

    /// Whether a password matches the stored one. Without a stored one the same work is done, so
    /// that the time does not reveal whether the user exists.
    pub(super) async fn verify_password(
        &self,
        stored: Option<&SecretString>,
        password: SecretString,
    ) -> Result<bool> {
        let Some(stored) = stored else {
            self.run_hash(password, [0; SALT], COST).await?;
            return Ok(false);
        };
        let (kind, stored) = kind_of(stored.expose_secret());
        // The digest costs nothing compared with the hash, so the time does not reveal which kind
        // of password it is.
        let password = kind.map_or_else(|| password.clone(), |kind| kind.digest(&password));
        let (cost, salt, wanted) = parse(stored).context("app_user has a hash that is none")?;
        let hash = self.run_hash(password, salt, cost).await?;
        Ok(hash.iter().zip(&wanted).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0)
    }

    async fn run_hash(
        &self,
        password: SecretString,
        salt: [u8; SALT],
        cost: HashCost,
    ) -> Result<[u8; HASH]> {
        let HashCost { memory_kib: m, rounds: t, lanes: p } = cost;
        let place = self.places.clone().acquire_owned().await?;
        self.spent.fetch_add(u64::from(m) * u64::from(t), Ordering::Relaxed);
        let hashed = tokio::task::spawn_blocking(move || {
            let _place = place;
            let params = Params::new(m, t, p, Some(HASH)).map_err(|e| anyhow!("{e}"))?;
            let mut hash = [0; HASH];
            let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            let text = password.expose_secret().as_bytes();
            argon.hash_password_into(text, &salt, &mut hash).map_err(|e| anyhow!("{e}"))?;
            Ok(hash)
        });
        hashed.await.context("hash a password")?
    }
}

type HashParts = (HashCost, [u8; SALT], [u8; HASH]);

fn parse(stored: &str) -> Option<HashParts> {
    let rest = stored.strip_prefix("$argon2id$v=19$")?;
    let [cost, salt, hash] = rest.split('$').collect::<Vec<_>>().try_into().ok()?;
    let mut cost = cost.split(',').filter_map(|part| part.split_once('=')?.1.parse().ok());
    let (memory_kib, rounds, lanes) = (cost.next()?, cost.next()?, cost.next()?);
    let cost = HashCost { memory_kib, rounds, lanes };
    let salt = STANDARD_NO_PAD.decode(salt).ok()?.try_into().ok()?;
    Some((cost, salt, STANDARD_NO_PAD.decode(hash).ok()?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_known_by_its_hash() {
        let hashing = Hashing::new();
        let hash = hashing.hash("tuN9-glaze-orbit".into()).await.expect("hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        let stored = SecretString::from(hash);
        assert!(
            hashing
                .verify_password(Some(&stored), "tuN9-glaze-orbit".into())
                .await
                .expect("compare")
        );
        assert!(
            !hashing
                .verify_password(Some(&stored), "tuN9-glaze-orbis".into())
                .await
                .expect("compare")
        );
        assert!(!hashing.verify_password(None, "tuN9-glaze-orbit".into()).await.expect("compare"));
    }

    #[tokio::test]
    async fn a_password_of_xxl_job_is_known_by_the_hash_of_its_digest() {
        let hashing = Hashing::new();
        let sha = "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92";
        for (digest, mark) in
            [("E10ADC3949BA59ABBE56E057F20F883E", "$xxl-md5"), (sha, "$xxl-sha256")]
        {
            let digest = Legacy::parse(&digest.into()).expect("a digest");
            let stored = hashing.wrap_legacy(&digest).await.expect("wrap");
            assert!(stored.starts_with(&format!("{mark}$argon2id$v=19$")), "{stored}");
            assert!(stored.len() <= 255, "the column's length");
            assert!(!stored.contains(&*digest.digest().expose_secret().to_lowercase()), "{stored}");
            let stored = SecretString::from(stored);
            let spent = hashing.spent();
            assert!(
                hashing.verify_password(Some(&stored), "123456".into()).await.expect("compare")
            );
            assert_eq!(hashing.spent() - spent, 2 * 19_456, "as much as any password");
            assert!(
                !hashing.verify_password(Some(&stored), "123457".into()).await.expect("compare")
            );
            // The digest alone is no password.
            let digest = digest.digest().clone();
            assert!(!hashing.verify_password(Some(&stored), digest).await.expect("compare"));
        }
    }
}
