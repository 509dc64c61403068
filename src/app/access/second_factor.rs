//! Second factors of users who log in with a password, of Procession or of the directory:
//! enrolment, check at the login, removal. Users of another provider have theirs there, and tokens
//! are for programs.

use crate::app::access::ldap::LDAP_ISSUER;
use crate::app::access::login::{Credentials, NotIn, Stranger};
use crate::app::access::{Authority, Porter, find_user, record, secret};
use crate::domain::access::second_factor::{
    DIGITS, RECOVERY_CODES, RECOVERY_LETTERS, STEP_SEC, TypedCode, code_wait_ms, group_letters,
    steps_taken,
};
use crate::domain::access::user::{UserId, UserName};
use crate::domain::time::Millis;
use crate::engine::secrets::encryption::{KeyRing, SealError, second_factor_name};
use crate::store::second_factor::{self, SecondFactor};
use crate::store::user::User;
use crate::store::user_session;
use anyhow::{Result, anyhow};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::sync::Arc;
use totp_rs::{Algorithm, Builder, Secret, Totp};
use url::Url;

/// Length of a secret in bytes: that of a SHA-1 digest, as RFC 4226 requires.
const SECRET_BYTES: usize = 20;
/// The issuer name shown by authenticator apps.
const ISSUER: &str = "Procession";

/// Why a change of a second factor is refused.
#[derive(Debug, thiserror::Error)]
pub enum SecondFactorRefused {
    /// The user logs in elsewhere.
    #[error("you log in at another provider, and a second factor belongs there")]
    Elsewhere,
    /// A second factor is active already.
    #[error("there is a second factor already; disable it before you enrol another")]
    Active,
    /// No enrolment was started.
    #[error("there is no second factor to confirm; enrol first")]
    NotBegun,
    /// There is no second factor, or it was never confirmed.
    #[error("there is no second factor")]
    None,
    /// The code does not match.
    #[error(
        "the code is not right, or was used before; nothing was changed. Is the clock of your device right?"
    )]
    WrongCode,
    /// Too many wrong codes.
    #[error("there were too many wrong codes; try again in {0} seconds")]
    Wait(u32),
    /// Secrets cannot be sealed here.
    #[error("second factors cannot be kept on this server: {0}")]
    NoKey(SealError),
}

/// A secret that its user has yet to confirm.
pub struct Enrolment {
    /// The secret in base 32, to be typed.
    pub secret: SecretString,
    /// The same as a link, for a QR code.
    pub link: SecretString,
}

/// The state of a user's second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondFactorState {
    /// Whether a login requires it.
    pub is_active: bool,
    /// Number of unused recovery codes.
    pub codes_left: usize,
}

fn totp_of(secret: Secret) -> Result<Totp> {
    let digits = u8::try_from(DIGITS)?;
    let builder = Builder::new().with_algorithm(Algorithm::SHA1).with_digits(digits);
    let builder = builder.with_step_duration(u64::try_from(STEP_SEC)?);
    builder.with_secret(secret).build().map_err(|e| anyhow!("make one-time codes: {e}"))
}

/// The time step of a code, among those accepted now.
fn step_of(
    factor: &SecondFactor,
    secret: &SecretString,
    code: &str,
    now: Millis,
) -> Result<Option<i64>> {
    let secret = Secret::try_from_base32(secret.expose_secret());
    let totp = totp_of(secret.map_err(|e| anyhow!("read the secret of one-time codes: {e}"))?)?;
    let mut found = None;
    for step in steps_taken(now, factor.last_step) {
        let right = totp.generate(u64::try_from(step * STEP_SEC)?).to_string();
        // All of them are compared, so that the time does not reveal which one matched.
        if secret::are_equal(&right, code) {
            found = Some(step);
        }
    }
    Ok(found)
}

impl Porter {
    /// Uses these keys for the secrets of second factors, in place of those of the environment.
    #[must_use]
    pub fn with_keys(self, keys: KeyRing) -> Self {
        Self { keys: Some(Arc::new(keys)), ..self }
    }

    /// Succeeds when a user with a correct password has no second factor, or has given a valid
    /// code.
    pub(super) async fn check_second_factor(
        &self,
        user: &User,
        code: Option<&SecretString>,
        proof: &str,
        from: &Stranger,
    ) -> Result<()> {
        let found = second_factor::find_factor(&mut self.db.begin_read().await?, user.id).await?;
        let Some(factor) = found.filter(|factor| factor.is_active) else { return Ok(()) };
        let Some(code) = code else { return Err(NotIn::CodeNeeded.into()) };
        match self.take_code(&factor, code.expose_secret()).await {
            Ok(()) => Ok(()),
            Err(error) => match error.downcast_ref() {
                Some(SecondFactorRefused::Wait(seconds)) => Err(NotIn::Wait(*seconds).into()),
                Some(SecondFactorRefused::NoKey(why)) => {
                    tracing::error!("one-time codes cannot be checked: {why}");
                    Err(NotIn::CodesUnavailable.into())
                }
                Some(_) => {
                    self.refuse(user.name.as_str(), proof, "wrong code", from).await?;
                    Err(NotIn::WrongCode.into())
                }
                None => Err(error),
            },
        }
    }

    /// Uses a one-time code or a recovery code. It is counted as wrong before it is checked, so
    /// that a thousand concurrent ones cannot bypass the limit; a correct one resets the count.
    async fn take_code(&self, factor: &SecondFactor, typed: &str) -> Result<()> {
        use SecondFactorRefused as Refused;
        let now = self.clock.now();
        if let Some(wait) = code_wait_ms(factor.failures, factor.last_failure, now) {
            return Err(Refused::Wait(u32::try_from((wait + 999) / 1_000).unwrap_or(3_600)).into());
        }
        let Some(typed) = TypedCode::parse(typed) else { return Err(Refused::WrongCode.into()) };
        let mut tx = self.db.begin().await?;
        let counted = second_factor::count_failure(&mut tx, factor, now).await?;
        tx.commit().await?;
        if !counted {
            // Another code of this user is being checked.
            return Err(Refused::Wait(1).into());
        }
        let mut tx = self.db.begin().await?;
        let is_taken = match typed {
            TypedCode::Recovery(code) => {
                second_factor::take_code(&mut tx, factor.user, &secret::digest(&code), now).await?
            }
            TypedCode::OneTime(code) => {
                let opened = self.open_secret(factor).map_err(Refused::NoKey)?;
                match step_of(factor, &opened, &code, now)? {
                    Some(step) => second_factor::take_step(&mut tx, factor.user, step).await?,
                    None => false,
                }
            }
        };
        tx.commit().await?;
        if is_taken { Ok(()) } else { Err(Refused::WrongCode.into()) }
    }

    fn open_secret(&self, factor: &SecondFactor) -> Result<SecretString, SealError> {
        let name = second_factor_name(factor.user.0);
        self.with_keys_of_secrets(|keys| keys.open_sealed(&name, &factor.sealed))
    }

    /// Calls `f` with the given keys, else with those of the environment, which are read each time.
    fn with_keys_of_secrets<T>(
        &self,
        work: impl FnOnce(&KeyRing) -> Result<T, SealError>,
    ) -> Result<T, SealError> {
        match &self.keys {
            Some(keys) => work(keys),
            None => work(&KeyRing::from_environment()?),
        }
    }

    /// The state of a user's second factor.
    pub async fn second_factor(&self, user: UserId) -> Result<SecondFactorState> {
        let mut tx = self.db.begin_read().await?;
        let found = second_factor::find_factor(&mut tx, user).await?;
        let is_active = found.is_some_and(|factor| factor.is_active);
        let codes_left = second_factor::codes_left(&mut tx, user).await?;
        Ok(SecondFactorState { is_active, codes_left })
    }

    /// Creates a secret for a user who gives the password. It is active once confirmed by a code.
    pub async fn enrol_second_factor(
        &self,
        name: &UserName,
        password: SecretString,
        from: &Stranger,
    ) -> Result<Enrolment> {
        let user = self.proved_user(name, password, from).await?;
        let secret = Secret::from(secret::bytes::<SECRET_BYTES>()?).to_base32();
        let secret = SecretString::from(secret);
        let name = second_factor_name(user.id.0);
        let sealed = self.with_keys_of_secrets(|keys| keys.seal_text(&name, &secret));
        let sealed = sealed.map_err(SecondFactorRefused::NoKey)?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        if !second_factor::begin(&mut tx, user.id, &sealed, now).await? {
            return Err(SecondFactorRefused::Active.into());
        }
        let detail = json!({ "user": user.name });
        let by = from.operator(user.name.as_str());
        record(&mut tx, &by, "second factor begin", detail, now).await?;
        tx.commit().await?;
        let link = link_of(&user.name, &secret)?;
        Ok(Enrolment { secret, link })
    }

    /// Activates a second factor after a code of it; returns the recovery codes, which are shown
    /// once. All other sessions end.
    pub async fn confirm_second_factor(
        &self,
        name: &UserName,
        code: &SecretString,
        session: i64,
        from: &Stranger,
    ) -> Result<Vec<SecretString>> {
        let mut tx = self.db.begin_read().await?;
        let user = find_user(&mut tx, name).await?;
        let found = second_factor::find_factor(&mut tx, user.id).await?;
        drop(tx);
        let factor = match found {
            Some(factor) if factor.is_active => return Err(SecondFactorRefused::Active.into()),
            Some(factor) => factor,
            None => return Err(SecondFactorRefused::NotBegun.into()),
        };
        self.take_code(&factor, code.expose_secret()).await?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        if !second_factor::activate(&mut tx, user.id, now).await? {
            return Err(SecondFactorRefused::NotBegun.into());
        }
        let codes = new_codes()?;
        second_factor::replace_codes(&mut tx, user.id, &digests_of(&codes)).await?;
        let ended = user_session::end_others(&mut tx, user.id, Some(session)).await?;
        let detail = json!({ "user": user.name, "sessions_ended": ended });
        let by = from.operator(user.name.as_str());
        record(&mut tx, &by, "second factor enrol", detail, now).await?;
        tx.commit().await?;
        Ok(grouped(&codes))
    }

    /// Removes the second factor of a user who gives password and code.
    pub async fn disable_second_factor(
        &self,
        name: &UserName,
        credentials: Credentials,
        from: &Stranger,
    ) -> Result<()> {
        let user = self.proved_with_code(name, credentials, from).await?;
        let now = self.clock.now();
        let mut tx = self.db.begin().await?;
        second_factor::remove(&mut tx, user.id).await?;
        let by = from.operator(user.name.as_str());
        record(&mut tx, &by, "second factor disable", json!({ "user": user.name }), now).await?;
        Ok(tx.commit().await?)
    }

    /// Replaces the recovery codes of a user who gives password and code.
    pub async fn renew_recovery_codes(
        &self,
        name: &UserName,
        credentials: Credentials,
        from: &Stranger,
    ) -> Result<Vec<SecretString>> {
        let user = self.proved_with_code(name, credentials, from).await?;
        let codes = new_codes()?;
        let mut tx = self.db.begin().await?;
        second_factor::replace_codes(&mut tx, user.id, &digests_of(&codes)).await?;
        let by = from.operator(user.name.as_str());
        let detail = json!({ "user": user.name });
        record(&mut tx, &by, "recovery codes renew", detail, self.clock.now()).await?;
        tx.commit().await?;
        Ok(grouped(&codes))
    }

    /// Removes a lost second factor of a user; all its sessions end. Returns whether there was one.
    pub async fn reset_second_factor(&self, by: &Authority, name: &UserName) -> Result<bool> {
        let mut tx = self.db.begin().await?;
        let user = find_user(&mut tx, name).await?;
        let was_there = second_factor::remove(&mut tx, user.id).await?;
        if was_there {
            let ended = user_session::end_others(&mut tx, user.id, None).await?;
            let detail = json!({ "user": name, "sessions_ended": ended });
            record(&mut tx, &by.operator, "second factor reset", detail, self.clock.now()).await?;
        }
        tx.commit().await?;
        Ok(was_there)
    }

    async fn proved_with_code(
        &self,
        name: &UserName,
        credentials: Credentials,
        from: &Stranger,
    ) -> Result<User> {
        let Credentials { password, code } = credentials;
        let user = self.proved_user(name, password, from).await?;
        let found = second_factor::find_factor(&mut self.db.begin_read().await?, user.id).await?;
        let factor = found.filter(|f| f.is_active).ok_or(SecondFactorRefused::None)?;
        let code = code.ok_or(SecondFactorRefused::WrongCode)?;
        self.take_code(&factor, code.expose_secret()).await?;
        Ok(user)
    }

    /// A user with a password, after checking it.
    async fn proved_user(
        &self,
        name: &UserName,
        password: SecretString,
        from: &Stranger,
    ) -> Result<User> {
        let user = find_user(&mut self.db.begin_read().await?, name).await?;
        let is_of_directory = user.oidc.as_ref().is_some_and(|(issuer, _)| issuer == LDAP_ISSUER);
        if user.password.is_none() && !is_of_directory {
            return Err(SecondFactorRefused::Elsewhere.into());
        }
        self.check_own_password(&user, password, from).await?;
        Ok(user)
    }
}

fn new_codes() -> Result<Vec<String>> {
    let letters =
        |_| -> Result<String> { Ok(secret::letters::<RECOVERY_LETTERS>()?.into_iter().collect()) };
    (0..RECOVERY_CODES).map(letters).collect()
}

fn digests_of(codes: &[String]) -> Vec<String> {
    codes.iter().map(|code| secret::digest(code)).collect()
}

fn grouped(codes: &[String]) -> Vec<SecretString> {
    codes.iter().map(|code| SecretString::from(group_letters(code))).collect()
}

/// `otpauth://totp/Procession:li.na?secret=…`, the format of authenticator apps.
fn link_of(name: &UserName, secret: &SecretString) -> Result<SecretString> {
    let mut link = Url::parse(&format!("otpauth://totp/{ISSUER}:{name}"))?;
    link.query_pairs_mut()
        .append_pair("secret", secret.expose_secret())
        .append_pair("issuer", ISSUER)
        .append_pair("algorithm", "SHA1")
        .append_pair("digits", &DIGITS.to_string())
        .append_pair("period", &STEP_SEC.to_string());
    Ok(SecretString::from(String::from(link)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B; our six digits are the last of its eight.
    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = SecretString::from(Secret::from(*b"12345678901234567890").to_base32());
        let factor = SecondFactor {
            user: UserId(1),
            sealed: String::new(),
            is_active: true,
            last_step: None,
            failures: 0,
            last_failure: None,
        };
        for (second, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
        ] {
            let now = Millis(second * 1_000);
            let step = step_of(&factor, &secret, code, now).expect("a step");
            assert_eq!(step, Some(second / STEP_SEC), "{second}");
            let used = SecondFactor { last_step: step, ..factor.clone() };
            assert_eq!(step_of(&used, &secret, code, now).expect("a step"), None, "once");
            let later = now.plus_ms(3 * STEP_SEC * 1_000);
            assert_eq!(step_of(&factor, &secret, code, later).expect("a step"), None, "late");
        }
    }

    #[test]
    fn a_link_names_user_and_parameters() {
        let name = UserName::parse("li.na@bank").expect("a name");
        let link = link_of(&name, &SecretString::from("ABC")).expect("a link");
        let wanted = "otpauth://totp/Procession:li.na@bank?secret=ABC&issuer=Procession&algorithm=SHA1&digits=6&period=30";
        assert_eq!(link.expose_secret(), wanted);
    }
}
