//! The token that a group of executors shares with us: sealed, because executors are shown it, and as a
//! digest, by which it is known when they show it.

use crate::domain::executor::token::{BadToken, validate_token};
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::secrets::encryption::{KeyRing, SealError};
use crate::store::executor_group::KeptToken;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest as sha};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};

/// A token that cannot be kept or read; nothing of it is in the text.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be one.
    #[error(transparent)]
    Bad(#[from] BadToken),
    /// It cannot be sealed.
    #[error("the token of executors is kept sealed: {0}")]
    Seal(SealError),
    /// It does not open with the key that this process has.
    #[error(
        "the token of executor group {0} does not open with the key of this process; start it with the key \
         that the token was sealed with, or give the group a token anew: procession executor-group token {0}"
    )]
    OtherKey(AppName),
    /// It cannot be opened.
    #[error("the token of executor group {app} cannot be read: {cause}")]
    Open {
        /// Whose.
        app: AppName,
        /// Why.
        cause: SealError,
    },
}

/// A new token: 256 bits.
pub fn fresh() -> Result<SecretString, TokenError> {
    let mut bytes = [0_u8; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| TokenError::Seal(SealError::NoRandom))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes).into())
}

/// By which a token is known.
pub fn digest(token: &[u8]) -> String {
    sha(&SHA256, token).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A token as it is kept. Needs the installation's key.
pub fn seal_token(app: &AppName, token: &SecretString) -> Result<KeptToken, TokenError> {
    validate_token(token.expose_secret())?;
    let key = KeyRing::from_environment().map_err(TokenError::Seal)?;
    let sealed = key.seal_text(&named(app), token).map_err(TokenError::Seal)?;
    Ok(KeptToken { sealed, digest: digest(token.expose_secret().as_bytes()) })
}

/// The token that was sealed for a group. Needs the installation's key.
pub fn open_token(app: &AppName, sealed: &str) -> Result<SecretString, TokenError> {
    let opened = KeyRing::from_environment().and_then(|key| key.open_sealed(&named(app), sealed));
    opened.map_err(|cause| match cause {
        SealError::DoesNotOpen(_) => TokenError::OtherKey(app.clone()),
        SealError::NoKey
        | SealError::KeyFile(_)
        | SealError::BadKey { .. }
        | SealError::NoRandom => TokenError::Open { app: app.clone(), cause },
    })
}

/// The name that is bound to it: one that is moved to another group does not open.
pub fn named(app: &AppName) -> String {
    format!("executor-group:{app}")
}
