//! The token that an executor group shares with this installation. It is stored sealed, because it
//! is sent to executors, and as a digest, by which an incoming token is found.

use crate::domain::executor::token::{BadToken, validate_token};
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::secrets::encryption::{KeyRing, SealError};
use crate::store::executor_group::KeptToken;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest as sha};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};

/// A token that cannot be stored or read; the message contains no part of it.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The text is not acceptable as a token.
    #[error(transparent)]
    Bad(#[from] BadToken),
    /// It cannot be sealed.
    #[error("the token of executors is kept sealed: {0}")]
    Seal(SealError),
    /// It does not open with the key of this process.
    #[error(
        "the token of executor group {0} does not open with the key of this process; start it with the key \
         that the token was sealed with, or give the group a token anew: procession executor-group token {0}"
    )]
    OtherKey(AppName),
    /// It cannot be opened.
    #[error("the token of executor group {app} cannot be read: {cause}")]
    Open {
        /// The executor group.
        app: AppName,
        cause: SealError,
    },
}

/// Generates a token of 256 bits.
pub fn fresh() -> Result<SecretString, TokenError> {
    let mut bytes = [0_u8; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| TokenError::Seal(SealError::NoRandom))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes).into())
}

/// The digest by which a token is found.
pub fn digest(token: &[u8]) -> String {
    sha(&SHA256, token).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A token in its stored form. Needs the installation's key.
pub fn seal_token(app: &AppName, token: &SecretString) -> Result<KeptToken, TokenError> {
    validate_token(token.expose_secret())?;
    let key = KeyRing::from_environment().map_err(TokenError::Seal)?;
    let sealed = key.seal_text(&named(app), token).map_err(TokenError::Seal)?;
    Ok(KeptToken { sealed, digest: digest(token.expose_secret().as_bytes()) })
}

/// Opens the stored token of a group. Needs the installation's key.
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

/// The name under which it is sealed: a token moved to another group does not open.
pub fn named(app: &AppName) -> String {
    format!("executor-group:{app}")
}
