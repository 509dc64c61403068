//! Makes changes idempotent: a request sent twice with one `Idempotency-Key` is carried out once,
//! and answered twice (draft-ietf-httpapi-idempotency-key-header).

use crate::api::caller::{ApiRequest, Caller, CallerProof};
use crate::api::problem::Problem;
use crate::app::App;
use crate::app::task::as_task;
use crate::domain::time::Millis;
use crate::store::idempotency_key::{self as kept, IdempotencyKey, StoredAnswer};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use std::pin::Pin;

/// Marks an answer as a repeated one.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// How long a key is remembered, in milliseconds.
const DAY_MS: i64 = 86_400_000;

/// Maximum length of a key, in characters.
const KEY_MAX: usize = 200;

/// Seconds after which a request whose change is in progress may be repeated.
const SOON: u32 = 2;

/// A change in progress: its status and text, or the refusal.
pub(super) type IdempotentChange =
    Pin<Box<dyn Future<Output = Result<(StatusCode, Vec<u8>), Problem>> + Send>>;

/// The key of a request.
pub(super) fn key(parts: &Parts) -> Result<Option<String>, Problem> {
    let Some(value) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let bare = value.to_str().unwrap_or_default().trim().trim_matches('"');
    if bare.is_empty() || bare.len() > KEY_MAX || bare.contains(|c: char| !c.is_ascii_graphic()) {
        let message = format!("Idempotency-Key: write 1 to {KEY_MAX} visible ASCII characters");
        return Err(Problem::unreadable(message));
    }
    Ok(Some(bare.to_owned()))
}

/// Number of digest characters that identify the request; the rest identify the caller's
/// permissions.
const REQUEST_DIGITS: usize = 40;
/// Length of a stored digest.
const DIGITS: usize = 64;

/// A digest of the request, of the credential, because another token of the same user may have
/// other permissions, and of the caller's permissions, so that an answer is not repeated after they
/// have changed.
pub(super) fn digest(parts: &Parts, caller: &Caller, body: &[u8]) -> String {
    let proof = match &caller.proof {
        CallerProof::Session(_) => "a session".to_owned(),
        CallerProof::Token(id) => format!("token {id}"),
        CallerProof::Approved => "an approved change".to_owned(),
    };
    let mut all = ring::digest::Context::new(&ring::digest::SHA256);
    for part in [parts.method.as_str(), &parts.uri.to_string(), &proof] {
        all.update(part.as_bytes());
        all.update(b"\n");
    }
    all.update(body);
    let rights = format!("{:?}", caller.grants);
    let rights = ring::digest::digest(&ring::digest::SHA256, rights.as_bytes());
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (mut request, rights) = (hex(all.finish().as_ref()), hex(rights.as_ref()));
    request.truncate(REQUEST_DIGITS);
    request.push_str(&rights[..DIGITS - REQUEST_DIGITS]);
    request
}

/// Carries a change out once for this key, or returns the first answer.
pub(super) async fn run_once(
    ask: &ApiRequest,
    key: String,
    request: String,
    work: IdempotentChange,
) -> Result<Response, Problem> {
    let of = IdempotencyKey { user: ask.caller()?.user_id, key: &key };
    let app = &ask.house.app;
    let now = app.server_now().await?;
    if !begin(app, of, &request, now).await? {
        return before(app, of, &request, now).await;
    }
    let (house, user) = (ask.house.clone(), of.user);
    // A task of its own: what was begun is ended and its answer kept, also when nobody waits any more.
    let done = as_task(async move {
        let done = work.await;
        let of = IdempotencyKey { user, key: &key };
        store_answer(&house.app, of, &done).await.map(|()| done)
    });
    done.await?.and_then(|(status, bytes)| answer(status, bytes))
}

async fn begin(
    app: &App,
    key: IdempotencyKey<'_>,
    request: &str,
    now: Millis,
) -> Result<bool, Problem> {
    let mut tx = app.db.begin().await.map_err(anyhow::Error::from)?;
    kept::expire(&mut tx, key, now.plus_ms(-DAY_MS)).await?;
    tx.commit().await.map_err(anyhow::Error::from)?;
    let mut tx = app.db.begin().await.map_err(anyhow::Error::from)?;
    let is_first = kept::begin(&mut tx, key, request, now).await?;
    match is_first {
        true => tx.commit().await.map_err(anyhow::Error::from)?,
        // After an error PostgreSQL accepts no further statement in a transaction.
        false => tx.rollback().await.map_err(anyhow::Error::from)?,
    }
    Ok(is_first)
}

/// Stores the answer of a change. A refusal changes nothing and need not be stored: a client that
/// fixes the cause sends the same request again. The effect of a failure is unknown, so it is not
/// repeated under this key.
async fn store_answer(
    app: &App,
    key: IdempotencyKey<'_>,
    done: &Result<(StatusCode, Vec<u8>), Problem>,
) -> Result<(), Problem> {
    let mut tx = app.db.begin().await.map_err(anyhow::Error::from)?;
    match done {
        Ok((status, bytes)) => {
            let text = String::from_utf8_lossy(bytes);
            let answer = StoredAnswer { status: status.as_u16(), text: &text };
            kept::store_answer(&mut tx, key, answer).await?;
        }
        Err(problem) if problem.status.is_server_error() => {
            let text = problem.document().to_string();
            let answer = StoredAnswer { status: problem.status.as_u16(), text: &text };
            kept::store_answer(&mut tx, key, answer).await?;
        }
        Err(_) => kept::forget(&mut tx, key).await?,
    }
    Ok(tx.commit().await.map_err(anyhow::Error::from)?)
}

/// The first answer.
async fn before(
    app: &App,
    key: IdempotencyKey<'_>,
    request: &str,
    now: Millis,
) -> Result<Response, Problem> {
    let mut tx = app.db.begin_read().await.map_err(anyhow::Error::from)?;
    let begun = || {
        let message = "the same change is being done, or its process died with it; ask again in a few \
                    seconds, and if this stays, look what became of it and send another key";
        Problem { retry_after: Some(SOON), ..Problem::conflict("begun", message) }
    };
    // Gone between two looks: it was refused, and may be sent again.
    let Some(there) = kept::find_key(&mut tx, key, now.plus_ms(-DAY_MS)).await? else {
        return Err(begun());
    };
    if there.request.get(..REQUEST_DIGITS) == request.get(..REQUEST_DIGITS)
        && there.request != request
    {
        let message = "your rights have changed since this was sent first, so its answer is not shown again; \
                    read what became of it, and ask an administrator if you miss a right";
        return Err(Problem::new(StatusCode::FORBIDDEN, "rights-changed", message));
    }
    if there.request != request {
        let message = "this Idempotency-Key was sent with another request; send another key";
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return Err(Problem::new(status, "key-reused", message));
    }
    let (status, text) = there.answer.ok_or_else(begun)?;
    let status = StatusCode::from_u16(status).map_err(anyhow::Error::from)?;
    let mut response = answer(status, text.into_bytes())?;
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

fn answer(status: StatusCode, bytes: Vec<u8>) -> Result<Response, Problem> {
    let kind = match status.is_success() {
        true => "application/json",
        false => "application/problem+json",
    };
    Ok((status, [(CONTENT_TYPE, kind)], bytes).into_response())
}
