//! Second factors, each user's own: enrolled with password and code, shown with a QR code that is drawn here, disabled.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::api::session::Done;
use crate::app::access::{Credentials, PresentedCredential};
use crate::domain::access::Permission;
use crate::domain::access::user::UserName;
use axum::http::Method;
use qrcode::QrCode;
use qrcode::render::svg;
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

/// Pixels of the picture, at least.
const QR_SIZE: u32 = 220;

pub(super) fn routes() -> Noun {
    let at = "/session/second-factor";
    Noun::new("second factors")
        .get(at, CallerNeeds::Login, "Whether one has a second factor", get_second_factor)
        .secret(
            Method::POST, "/session/second-factor/enrol",
            CallerNeeds::Login,
            "Begin a second factor: a secret for one-time codes, shown in this answer and never again",
            enrol,
        )
        .secret(
            Method::POST, "/session/second-factor/confirm",
            CallerNeeds::Login,
            "Make it count by a first code; recovery codes are shown in this answer and never again",
            confirm,
        )
        .secret(
            Method::POST, "/session/second-factor/recovery-codes",
            CallerNeeds::Login,
            "New recovery codes in the place of those that are left",
            renew,
        )
        .secret(
            Method::POST, "/session/second-factor/disable",
            CallerNeeds::Login,
            "Disable one's second factor, with password and code",
            disable,
        )
        .secret(
            Method::POST, "/users/{name}/second-factor-reset",
            CallerNeeds::Everywhere(Permission::Admin),
            "Remove the second factor of a user who has lost it; all sessions of the user end",
            reset,
        )
}

/// How far one is with a second factor.
#[derive(Debug, Serialize, JsonSchema)]
struct SecondFactorDocument {
    /// Whether it is asked for at the log-in.
    active: bool,
    /// Whether everybody who logs in with a password needs one here.
    required: bool,
    /// Recovery codes that are left.
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

/// One's password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnPassword {
    /// The password that one logs in with.
    #[schemars(with = "String")]
    password: SecretString,
}

/// A secret to be confirmed.
#[derive(Serialize, JsonSchema)]
struct EnrolmentDocument {
    /// The secret in base 32, to be typed where no picture can be taken.
    secret: String,
    /// The same as a link: `otpauth://totp/…`.
    link: String,
    /// The link as a QR code, an SVG.
    qr_svg: String,
}

/// The session that asks; a token has no second factor.
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
    sent: OwnPassword,
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
struct OwnCode {
    /// Six digits.
    #[schemars(with = "String")]
    code: SecretString,
}

/// Recovery codes.
#[derive(Serialize, JsonSchema)]
struct RecoveryCodes {
    /// Each works once, in the place of a one-time code.
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
    sent: OwnCode,
) -> Result<AnswerWithCookies<RecoveryCodes>, Problem> {
    let session = own_session(&ask)?;
    let from = ask.way.stranger(&ask.headers);
    let name = ask.caller()?.user_name();
    let porter = &ask.house.porter;
    let codes = porter.confirm_second_factor(name, &sent.code, session, &from).await?;
    Ok(RecoveryCodes::from_codes(&codes).into())
}

/// Password and code.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnProofs {
    /// The password that one logs in with.
    #[schemars(with = "String")]
    password: SecretString,
    /// A one-time code, or a recovery code.
    #[schemars(with = "String")]
    code: SecretString,
}

impl OwnProofs {
    fn credentials(self) -> Credentials {
        Credentials { password: self.password, code: Some(self.code) }
    }
}

async fn renew(
    ask: ApiRequest,
    _: Nothing,
    sent: OwnProofs,
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
    sent: OwnProofs,
) -> Result<AnswerWithCookies<Done>, Problem> {
    own_session(&ask)?;
    let from = ask.way.stranger(&ask.headers);
    let name = ask.caller()?.user_name();
    ask.house.porter.disable_second_factor(name, sent.credentials(), &from).await?;
    Ok(Done { done: true }.into())
}

/// A user.
#[derive(Debug, Deserialize, JsonSchema)]
struct OfUser {
    /// The name to log in with.
    name: String,
}

async fn reset(
    ask: ApiRequest,
    of: OfUser,
    _: Nothing,
) -> Result<AnswerWithCookies<Done>, Problem> {
    let missing = || Problem::not_found(format!("user {}", of.name));
    let name = UserName::parse(&of.name).map_err(|_| missing())?;
    match ask.house.porter.reset_second_factor(&ask.authority()?, &name).await? {
        true => Ok(Done { done: true }.into()),
        false => Err(Problem::conflict("is-so", format!("user {name} has no second factor"))),
    }
}
