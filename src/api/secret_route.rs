//! Routes of changes with secrets: neither request nor answer is stored for an `Idempotency-Key`,
//! and the bodies of unauthenticated clients must be short.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::problem::Problem;
use crate::api::route::{
    Noun, Operation, ResponseKind, Route, json_response, place, read_body, too_slow,
};
use crate::api::state::ApiState;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a body in bytes.
const SHORT: usize = 65_536;
/// Time limit for receiving it: the client is not authenticated yet.
const SHORT_LIMIT: Duration = Duration::from_secs(10);

/// An answer with cookies.
pub(super) struct AnswerWithCookies<T> {
    /// The document.
    pub(super) answer: T,
    /// Values of `Set-Cookie`.
    pub(super) cookies: Vec<String>,
}

impl<T> From<T> for AnswerWithCookies<T> {
    fn from(answer: T) -> Self {
        Self { answer, cookies: Vec::new() }
    }
}

impl Noun {
    /// A change with a secret in it.
    pub(super) fn secret<P, B, T, F, Fut>(
        self,
        id: &'static str,
        method: Method,
        path: &'static str,
        needs: CallerNeeds,
        summary: &'static str,
        f: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        B: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + 'static,
        F: Fn(ApiRequest, P, B) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<AnswerWithCookies<T>, Problem>> + Send + 'static,
    {
        let serve = move |State(house): State<Arc<ApiState>>, request: Request| {
            let f = f.clone();
            async move {
                let (mut parts, sent) = request.into_parts();
                let ask = ApiRequest::from_request(&house, &parts, needs).await?;
                if needs == CallerNeeds::Nothing {
                    // No cookie identifies the caller here; still, only our own page may log a user
                    // in.
                    ask.way.require_same_site(&parts.headers)?;
                }
                let place = place(&mut parts, &house).await?;
                let body = read_body(&parts.headers, short(sent).await?).await?;
                let answered = f(ask, place, body).await?;
                let mut response = json_response(&answered.answer)?;
                for cookie in &answered.cookies {
                    let value = HeaderValue::from_str(cookie).map_err(anyhow::Error::from)?;
                    response.headers_mut().append(SET_COOKIE, value);
                }
                Ok::<_, Problem>(response)
            }
        };
        let answer = ResponseKind::json_of::<T>();
        let operation = Operation { id, method, path, needs, summary };
        self.with_route(Route::new::<P, _, _>(operation, answer, serve).reading::<B>())
    }
}

async fn short(sent: Body) -> Result<Body, Problem> {
    let reading = tokio::time::timeout(SHORT_LIMIT, to_bytes(sent, SHORT)).await;
    let bytes = reading.map_err(|_| too_slow())?.map_err(|_| {
        let detail = format!("the body is longer than {SHORT} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-long", detail)
    })?;
    Ok(Body::from(bytes))
}
