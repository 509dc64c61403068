//! The user's own second factor: enrolled with password and code, shown as a QR code, disabled.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::session::Confirmation;
use crate::app::access::{Credentials, PresentedCredential};
use crate::domain::access::Permission;
use crate::domain::access::user::UserName;
use axum::http::Method;
use qrcode::QrCode;
use qrcode::render::svg;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

/// Minimum size of the QR code in pixels.
const QR_SIZE: u32 = 220;

pub(super) fn routes() -> Noun {
    let at = "/session/second-factor";
    Noun::new("second factors")
        .get(
            "getSecondFactor",
            at,
            CallerNeeds::Login,
            "Get whether one has a second factor",
            get_second_factor,
        )
        .secret(
            "enrolSecondFactor",
            Method::POST,
            "/session/second-factor/enrol",
            CallerNeeds::Login,
            "Begin a second factor: its one-time-code secret is shown in this answer only",
            enrol,
        )
        .secret(
            "confirmSecondFactor",
            Method::POST,
            "/session/second-factor/confirm",
            CallerNeeds::Login,
            "Confirm a second factor by a first code; recovery codes are shown in this answer only",
            confirm,
        )
        .secret(
            "renewRecoveryCodes",
            Method::POST,
            "/session/second-factor/recovery-codes",
            CallerNeeds::Login,
            "Replace the recovery codes",
            renew,
        )
        .secret(
            "disableSecondFactor",
            Method::POST,
            "/session/second-factor/disable",
            CallerNeeds::Login,
            "Disable one's second factor, with password and code",
            disable,
        )
        .secret(
            "resetSecondFactor",
            Method::POST,
            "/users/{name}/second-factor-reset",
            CallerNeeds::Everywhere(Permission::Admin),
            "Remove the second factor of a user who has lost it; all sessions of the user end",
            reset,
        )
}

/// The state of the user's second factor.
#[derive(Debug, Serialize, JsonSchema)]
struct SecondFactorDocument {
    /// Whether a login requires it.
    active: bool,
    /// Whether every user with a password needs one here.
    required: bool,
    /// Number of unused recovery codes.
    recovery_codes_left: usize,
}

async fn get_second_factor(
    ask: ApiRequest,
    _: Nothing,
    _: Nothing,
) -> Result<SecondFactorDocument, Problem> {
    let state = ask.house.porter.second_factor(ask.caller()?.known.user.id).await?;
    Ok(SecondFactorDocument {
        active: state.is_active,
        required: ask.house.porter.requires_second_factor(),
        recovery_codes_left: state.codes_left,
    })
}

/// The user's password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PasswordProof {
    /// The login password.
    #[schemars(with = "String")]
    password: SecretString,
}

/// A secret to be confirmed.
#[derive(Serialize, JsonSchema)]
struct EnrolmentDocument {
    /// The secret in base 32, for manual entry.
    secret: String,
    /// The same as a link: `otpauth://totp/…`.
    link: String,
    /// The link as a QR code, an SVG.
    qr_svg: String,
}

/// The caller's session; a token has no second factor.
fn own_session(ask: &ApiRequest) -> Result<i64, Problem> {
    match &ask.caller()?.known.by {
        PresentedCredential::Session(session) => Ok(session.id),
        PresentedCredential::Token(_) | PresentedCredential::Approval => {
            Err(Problem::refused("a second factor is changed in a session, not with a token"))
        }
    }
}

async fn enrol(
    ask: ApiRequest,
    _: Nothing,
    sent: PasswordProof,
) -> Result<AnswerWithCookies<EnrolmentDocument>, Problem> {
    own_session(&ask)?;
    let from = ask.way.stranger(&ask.headers);
    let name = ask.caller()?.user_name();
    let made = ask.house.porter.enrol_second_factor(name, sent.password, &from).await?;
    let code = QrCode::new(made.link.expose_secret()).map_err(anyhow::Error::from)?;
    let qr_svg = code.render::<svg::Color<'_>>().min_dimensions(QR_SIZE, QR_SIZE).build();
    Ok(EnrolmentDocument {
        secret: made.secret.expose_secret().to_owned(),
        link: made.link.expose_secret().to_owned(),
        qr_svg,
    }
    .into())
}

/// A one-time code.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecondFactorCode {
    /// Six digits.
    #[schemars(with = "String")]
    code: SecretString,
}

/// Recovery codes.
#[derive(Serialize, JsonSchema)]
struct RecoveryCodes {
    /// Each can be used once in place of a one-time code.
    recovery_codes: Vec<String>,
}

impl RecoveryCodes {
    fn from_codes(codes: &[SecretString]) -> Self {
        Self { recovery_codes: codes.iter().map(|c| c.expose_secret().to_owned()).collect() }
    }
}

async fn confirm(
    ask: ApiRequest,
    _: Nothing,
    sent: SecondFactorCode,
) -> Result<AnswerWithCookies<RecoveryCodes>, Problem> {
    let session = own_session(&ask)?;
    let from = ask.way.stranger(&ask.headers);
    let name = ask.caller()?.user_name();
    let porter = &ask.house.porter;
    let codes = porter.confirm_second_factor(name, (&sent.code, session), &from).await?;
    Ok(RecoveryCodes::from_codes(&codes).into())
}

/// Password and code.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecondFactorProofs {
    /// The login password.
    #[schemars(with = "String")]
    password: SecretString,
    /// A one-time code, or a recovery code.
    #[schemars(with = "String")]
    code: SecretString,
}

impl SecondFactorProofs {
    fn credentials(self) -> Credentials {
        Credentials { password: self.password, code: Some(self.code) }
    }
}

async fn renew(
    ask: ApiRequest,
    _: Nothing,
    sent: SecondFactorProofs,
) -> Result<AnswerWithCookies<RecoveryCodes>, Problem> {
    own_session(&ask)?;
    let from = ask.way.stranger(&ask.headers);
    let name = ask.caller()?.user_name();
    let codes = ask.house.porter.renew_recovery_codes(name, sent.credentials(), &from).await?;
    Ok(RecoveryCodes::from_codes(&codes).into())
}

async fn disable(
    ask: ApiRequest,
    _: Nothing,
    sent: SecondFactorProofs,
) -> Result<AnswerWithCookies<Confirmation>, Problem> {
    own_session(&ask)?;
    let from = ask.way.stranger(&ask.headers);
    let name = ask.caller()?.user_name();
    ask.house.porter.disable_second_factor(name, sent.credentials(), &from).await?;
    Ok(Confirmation { done: true }.into())
}

/// A user.
#[derive(Debug, Deserialize, JsonSchema)]
struct UserPath {
    /// The login name.
    name: String,
}

async fn reset(
    ask: ApiRequest,
    of: UserPath,
    _: Nothing,
) -> Result<AnswerWithCookies<Confirmation>, Problem> {
    let missing = || Problem::not_found(format!("user {}", of.name));
    let name = UserName::parse(&of.name).map_err(|_| missing())?;
    match ask.house.porter.reset_second_factor(&ask.authority()?, &name).await? {
        true => Ok(Confirmation { done: true }.into()),
        false => Err(Problem::conflict("is-so", format!("user {name} has no second factor"))),
    }
}
