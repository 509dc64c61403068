//! Routes: each says what it needs of its caller, what it reads and what it answers; its description in
//! OpenAPI is made of the same words and types, so that the two cannot part.

use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::idempotency;
use crate::api::problem::Problem;
use crate::api::response_encoding::{EncodedAnswer, accepts_gzip};
use crate::api::second_person::{WaitingChange, file_change};
use crate::api::state::ApiState;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts as _, Path, Query, Request, State};
use axum::handler::Handler;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Longest body that is read, in bytes: definitions of 10,000 jobs are some 4 MiB.
const BODY_MAX: usize = 16 * 1024 * 1024;

/// How long a body may take to come.
const BODY_LIMIT: Duration = Duration::from_secs(60);

/// Where nothing is asked: no words in the path, no query, no body.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Makes the schema of a type.
type SchemaMaker = fn(&mut SchemaGenerator) -> Schema;

/// One route and its description.
pub struct Route {
    pub(super) method: Method,
    /// From `/api/v1` on: `/batches/{batch_id}`.
    pub(super) path: &'static str,
    pub(super) needs: CallerNeeds,
    /// One line.
    pub(super) summary: &'static str,
    pub(super) place: SchemaMaker,
    pub(super) query: Option<SchemaMaker>,
    pub(super) body: Option<SchemaMaker>,
    pub(super) answer: ResponseKind,
    /// What is answered with 202, where a change may have to wait for a second person.
    pub(super) waits: Option<SchemaMaker>,
    pub(super) service: MethodRouter<Arc<ApiState>>,
}

/// What is answered when all is well.
pub(super) enum ResponseKind {
    /// JSON of this shape.
    Json(SchemaMaker),
    /// Something else, of this media type.
    Media(&'static str),
}

impl ResponseKind {
    /// JSON, as a `T` is written.
    pub(super) fn json_of<T: JsonSchema>() -> Self {
        Self::Json(schema_of::<T>)
    }
}

impl Route {
    /// One whose place is a `P`, without a query and without a body.
    pub(super) fn new<P: JsonSchema, S, X: 'static>(
        method: Method,
        path: &'static str,
        needs: CallerNeeds,
        summary: &'static str,
        answer: ResponseKind,
        serve: S,
    ) -> Self
    where
        S: Handler<X, Arc<ApiState>>,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("a method that routes know");
        let (place, service) = (schema_of::<P> as SchemaMaker, on(filter, serve));
        Self {
            method,
            path,
            needs,
            summary,
            place,
            query: None,
            body: None,
            answer,
            waits: None,
            service,
        }
    }

    /// The same, with a query.
    fn asking<Q: JsonSchema>(self) -> Self {
        Self { query: Some(schema_of::<Q>), ..self }
    }

    /// The same, with a JSON body.
    pub(super) fn reading<B: JsonSchema>(self) -> Self {
        Self { body: Some(schema_of::<B>), ..self }
    }
}

/// Where the work of a route is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    /// Beside all other requests.
    Usual,
    /// In turn with others like it, on threads of their own (`read_limits`).
    Expensive,
}

impl Cost {
    async fn run_read<T: Send + 'static>(
        self,
        ask: &ApiRequest,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        match self {
            Self::Usual => work.await,
            Self::Expensive => ask.house.read_limits.run_in_turn(ask.caller()?.user_id, work).await,
        }
    }
}

/// Makes the answer of what was found, for a request with these headers.
type ResponseWriter<T> = fn(&HeaderMap, T) -> Result<Response, Problem>;

/// The routes about one thing; its name is their heading in the description.
pub struct Noun {
    /// Its heading.
    pub(super) name: &'static str,
    /// Its routes.
    pub(super) routes: Vec<Route>,
    /// Of the route that is added next.
    next_cost: Cost,
}

impl Noun {
    /// A heading without routes yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, routes: Vec::new(), next_cost: Cost::Usual }
    }

    /// The next route reads as much as a batch, a graph or a definition has: its requests take turns.
    pub(super) fn expensive(mut self) -> Self {
        self.next_cost = Cost::Expensive;
        self
    }

    /// `GET`: answers JSON, with an ETag of its bytes.
    pub fn get<P, Q, T, F, Fut>(
        self,
        path: &'static str,
        needs: CallerNeeds,
        summary: &'static str,
        f: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + 'static,
        F: Fn(ApiRequest, P, Q) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let write: ResponseWriter<T> = |headers, answer| tagged(headers, &answer);
        self.add_read(path, needs, summary, f, ResponseKind::json_of::<T>(), write)
    }

    /// `GET` that answers something else than JSON: a picture, a file, a stream of events.
    pub fn media<P, Q, F, Fut>(
        self,
        path: &'static str,
        media: &'static str,
        needs: CallerNeeds,
        summary: &'static str,
        f: F,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(ApiRequest, P, Q) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<Response, Problem>> + Send + 'static,
    {
        let write: ResponseWriter<Response> = |_, answer| Ok(answer);
        self.add_read(path, needs, summary, f, ResponseKind::Media(media), write)
    }

    /// `GET`, with what becomes of what `f` finds.
    fn add_read<P, Q, T, F, Fut>(
        self,
        path: &'static str,
        needs: CallerNeeds,
        summary: &'static str,
        f: F,
        answer: ResponseKind,
        write: ResponseWriter<T>,
    ) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        T: 'static,
        F: Fn(ApiRequest, P, Q) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let cost = self.next_cost;
        let serve = move |State(house): State<Arc<ApiState>>, request: Request| {
            let f = f.clone();
            async move {
                let (mut parts, _) = request.into_parts();
                let ask = ApiRequest::from_request(&house, &parts, needs).await?;
                let (place, query) =
                    (place(&mut parts, &house).await?, query(&mut parts, &house).await?);
                let (asked, headers) = (ask.clone(), parts.headers);
                // Writing a long answer is half of the work.
                let work = async move { write(&headers, f(asked, place, query).await?) };
                cost.run_read(&ask, work).await
            }
        };
        let get = Method::GET;
        self.with_route(
            Route::new::<P, _, _>(get, path, needs, summary, answer, serve).asking::<Q>(),
        )
    }

    /// A change: reads a JSON body, answers JSON. Done once when it is sent twice with one
    /// `Idempotency-Key`.
    pub fn change<P, B, T, F, Fut>(
        self,
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
        Fut: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let cost = self.next_cost;
        let serve = move |State(house): State<Arc<ApiState>>, request: Request| {
            let f = f.clone();
            async move {
                let (mut parts, sent) = request.into_parts();
                let ask = ApiRequest::from_request(&house, &parts, needs).await?;
                let place = place(&mut parts, &house).await?;
                let bytes = bytes(&parts.headers, sent).await?;
                let body = parse_body(&bytes)?;
                let keyed = match idempotency::key(&parts)? {
                    Some(key) => Some((key, idempotency::digest(&parts, ask.caller()?, &bytes))),
                    None => None,
                };
                let work = {
                    let (ask, method, uri) = (ask.clone(), parts.method, parts.uri);
                    async move {
                        // What a handler gives need not be Send, so it is gone before the next wait.
                        let held = match f(ask.clone(), place, body).await {
                            Ok(answer) => return Ok((StatusCode::OK, written(&answer)?)),
                            Err(Problem { held: Some(held), .. }) => held,
                            Err(problem) => return Err(problem),
                        };
                        file_change(&ask, &method, &uri, &bytes, *held).await
                    }
                };
                let runner = ask.clone();
                let work = async move { cost.run_read(&runner, work).await };
                match keyed {
                    None => {
                        let (status, bytes) = work.await?;
                        let kind = [(CONTENT_TYPE, "application/json")];
                        Ok((status, kind, bytes).into_response())
                    }
                    Some((key, request)) => {
                        idempotency::run_once(&ask, key, request, Box::pin(work)).await
                    }
                }
            }
        };
        let answer = ResponseKind::json_of::<T>();
        self.with_route(
            Route::new::<P, _, _>(method, path, needs, summary, answer, serve).reading::<B>(),
        )
    }

    /// The same, where the last change may have to wait for a second person.
    pub(super) fn guarded(mut self) -> Self {
        if let Some(route) = self.routes.last_mut() {
            route.waits = Some(schema_of::<WaitingChange>);
        }
        self
    }

    pub(super) fn with_route(mut self, route: Route) -> Self {
        self.next_cost = Cost::Usual;
        self.routes.push(route);
        self
    }
}

fn schema_of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

pub(super) async fn place<P: DeserializeOwned + Send>(
    parts: &mut Parts,
    house: &Arc<ApiState>,
) -> Result<P, Problem> {
    if parts.uri.path().contains("%00") {
        return Err(holds_nul("the path"));
    }
    let read = Path::<P>::from_request_parts(parts, house).await;
    // A name that cannot be one names nothing.
    read.map(|Path(place)| place).map_err(|refused| Problem::not_found(refused.body_text()))
}

async fn query<Q: DeserializeOwned>(
    parts: &mut Parts,
    house: &Arc<ApiState>,
) -> Result<Q, Problem> {
    if parts.uri.query().is_some_and(|query| query.contains("%00")) {
        return Err(holds_nul("the query"));
    }
    let read = Query::<Q>::from_request_parts(parts, house).await;
    read.map(|Query(query)| query).map_err(|refused| Problem::unreadable(refused.body_text()))
}

/// Reads a body, which is JSON or nothing.
async fn bytes(headers: &HeaderMap, sent: Body) -> Result<Bytes, Problem> {
    let too_long = |_| {
        let detail = format!(
            "the body is longer than the {BODY_MAX} bytes that a request may have; split a definition by groups, or store \
             it on the server with: procession apply"
        );
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-long", detail)
    };
    let reading = tokio::time::timeout(BODY_LIMIT, to_bytes(sent, BODY_MAX)).await;
    let bytes: Bytes = reading.map_err(|_| too_slow())?.map_err(too_long)?;
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|k| k.trim() == "application/json");
    if !is_json && !bytes.is_empty() {
        let detail = "send JSON, with the header Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", detail));
    }
    Ok(bytes)
}

/// 408: the body did not come in time.
pub(super) fn too_slow() -> Problem {
    let detail = "the body did not come in time; send it at once";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail)
}

/// Reads a JSON body; where nothing is sent, `{}` is meant.
pub(super) async fn read_body<B: DeserializeOwned>(
    headers: &HeaderMap,
    sent: Body,
) -> Result<B, Problem> {
    parse_body(&bytes(headers, sent).await?)
}

/// What a body says; where nothing is sent, `{}` is meant.
fn parse_body<B: DeserializeOwned>(bytes: &[u8]) -> Result<B, Problem> {
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    if has_escaped_nul(text) {
        return Err(holds_nul("the body"));
    }
    serde_json::from_slice(text).map_err(|e| Problem::unreadable(format!("the body: {e}")))
}

/// 400: no database takes a text with NUL in it.
fn holds_nul(place: &str) -> Problem {
    Problem::unreadable(format!("{place} holds a NUL character; leave it out"))
}

/// Whether JSON has `\u0000` in a text.
fn has_escaped_nul(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let after = rest.get(at + 1..).unwrap_or_default();
        if after.starts_with(b"u0000") {
            return true;
        }
        rest = after.get(1..).unwrap_or_default();
    }
    false
}

fn written<T: Serialize>(answer: &T) -> Result<Vec<u8>, Problem> {
    Ok(serde_json::to_vec(answer).map_err(anyhow::Error::from)?)
}

pub(super) fn json_response<T: Serialize>(answer: &T) -> Result<Response, Problem> {
    Ok(([(CONTENT_TYPE, "application/json")], written(answer)?).into_response())
}

/// JSON with an ETag; without a body when the caller has it already.
pub(super) fn tagged<T: Serialize>(headers: &HeaderMap, answer: &T) -> Result<Response, Problem> {
    let encoded = EncodedAnswer::of_json(answer).map_err(anyhow::Error::from)?;
    tagged_answer(headers, "application/json", encoded)
}

/// The same of anything else.
pub(super) fn tagged_as(
    headers: &HeaderMap,
    media: &'static str,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let encoded = EncodedAnswer::of_bytes(bytes).map_err(anyhow::Error::from)?;
    tagged_answer(headers, media, encoded)
}

fn tagged_answer(
    headers: &HeaderMap,
    media: &'static str,
    answer: EncodedAnswer,
) -> Result<Response, Problem> {
    let tag = format!("\"{}\"", answer.digest());
    let has = headers.get(IF_NONE_MATCH).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let same = has.split(',').any(|t| t.trim().trim_start_matches("W/") == tag);
    let (mut response, is_packed) = if same {
        (StatusCode::NOT_MODIFIED.into_response(), false)
    } else {
        let (body, is_packed) = answer.into_body(accepts_gzip(headers));
        (([(CONTENT_TYPE, media)], body).into_response(), is_packed)
    };
    // The same tag for other bytes is a weak one.
    let shown = if is_packed { format!("W/{tag}") } else { tag };
    let value = HeaderValue::from_str(&shown).map_err(anyhow::Error::from)?;
    response.headers_mut().insert(ETAG, value);
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if is_packed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}
