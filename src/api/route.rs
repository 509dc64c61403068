//! Routes: each declares its requirements, inputs and answer; the OpenAPI description is generated
//! from the same declarations and types, so that the two cannot differ.

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

/// Maximum size of a body in bytes: definitions of 10,000 jobs are some 4 MiB.
const BODY_MAX: usize = 16 * 1024 * 1024;

/// Time limit for receiving a body.
const BODY_LIMIT: Duration = Duration::from_secs(60);

/// No parameters: no path, query or body.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Generates the schema of a type.
type SchemaMaker = fn(&mut SchemaGenerator) -> Schema;

/// What a route is called and who may use it, as its description in OpenAPI says.
pub(super) struct Operation {
    /// Verb and noun, unique: `listBatches`. Generated clients name their functions after it.
    pub(super) id: &'static str,
    pub(super) method: Method,
    /// The path after `/api/v1`: `/batches/{batch_id}`.
    pub(super) path: &'static str,
    pub(super) needs: CallerNeeds,
    /// One line.
    pub(super) summary: &'static str,
}

/// One route and its description.
pub struct Route {
    pub(super) operation: Operation,
    pub(super) place: SchemaMaker,
    pub(super) query: Option<SchemaMaker>,
    pub(super) body: Option<SchemaMaker>,
    pub(super) answer: ResponseKind,
    /// The answer with status 202, where a change may have to wait for a second person.
    pub(super) waits: Option<SchemaMaker>,
    pub(super) service: MethodRouter<Arc<ApiState>>,
}

/// The answer of a successful request.
pub(super) enum ResponseKind {
    /// JSON of this schema.
    Json(SchemaMaker),
    /// Another media type.
    Media(&'static str),
}

impl ResponseKind {
    /// JSON with the schema of `T`.
    pub(super) fn json_of<T: JsonSchema>() -> Self {
        Self::Json(schema_of::<T>)
    }
}

impl Route {
    /// A route with path parameters `P`, without a query and without a body.
    pub(super) fn new<P: JsonSchema, S, X: 'static>(
        operation: Operation,
        answer: ResponseKind,
        serve: S,
    ) -> Self
    where
        S: Handler<X, Arc<ApiState>>,
    {
        let filter = MethodFilter::try_from(operation.method.clone());
        let filter = filter.expect("a method that routes know");
        let (place, service) = (schema_of::<P> as SchemaMaker, on(filter, serve));
        Self { operation, place, query: None, body: None, answer, waits: None, service }
    }

    /// Adds a query.
    fn asking<Q: JsonSchema>(self) -> Self {
        Self { query: Some(schema_of::<Q>), ..self }
    }

    /// Adds a JSON body.
    pub(super) fn reading<B: JsonSchema>(self) -> Self {
        Self { body: Some(schema_of::<B>), ..self }
    }
}

/// Where the work of a route runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    /// With all other requests.
    Usual,
    /// Limited, on threads of their own (`read_limits`).
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

/// Writes the answer from the result, for a request with these headers.
type ResponseWriter<T> = fn(&HeaderMap, T) -> Result<Response, Problem>;

/// The routes about one kind of object; its name is their tag in the description.
pub struct Noun {
    /// The tag.
    pub(super) name: &'static str,
    /// Its routes.
    pub(super) routes: Vec<Route>,
    /// The cost of the next route.
    next_cost: Cost,
}

impl Noun {
    /// A tag without routes yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, routes: Vec::new(), next_cost: Cost::Usual }
    }

    /// Marks the next route as expensive (a batch, a graph or a definition): its requests are
    /// limited.
    pub(super) fn expensive(mut self) -> Self {
        self.next_cost = Cost::Expensive;
        self
    }

    /// `GET`: answers JSON, with an ETag of its bytes.
    pub fn get<P, Q, T, F, Fut>(
        self,
        id: &'static str,
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
        let operation = Operation { id, method: Method::GET, path, needs, summary };
        self.add_read(operation, f, ResponseKind::json_of::<T>(), write)
    }

    /// `GET` with another media type than JSON: a picture, a file, a stream of events.
    pub fn media<P, Q, F, Fut>(
        self,
        id: &'static str,
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
        let operation = Operation { id, method: Method::GET, path, needs, summary };
        self.add_read(operation, f, ResponseKind::Media(media), write)
    }

    /// `GET`, with the writer of the result of `f`.
    fn add_read<P, Q, T, F, Fut>(
        self,
        operation: Operation,
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
        let (cost, needs) = (self.next_cost, operation.needs);
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
        self.with_route(Route::new::<P, _, _>(operation, answer, serve).asking::<Q>())
    }

    /// A change: reads a JSON body, answers JSON. Carried out once when it is sent twice with one
    /// `Idempotency-Key`.
    pub fn change<P, B, T, F, Fut>(
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
                        // A handler's result need not be Send, so it is dropped before the next
                        // await.
                        let held = match f(ask.clone(), place, body).await {
                            Ok(answer) => return Ok((StatusCode::OK, written(&answer)?)),
                            Err(Problem { held: Some(held), .. }) => held,
                            Err(problem) => return Err(problem),
                        };
                        file_change(&ask, (&method, &uri), &bytes, *held).await
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
                    Some(keyed) => idempotency::run_once(&ask, keyed, Box::pin(work)).await,
                }
            }
        };
        let answer = ResponseKind::json_of::<T>();
        let operation = Operation { id, method, path, needs, summary };
        self.with_route(Route::new::<P, _, _>(operation, answer, serve).reading::<B>())
    }

    /// Marks that the last change may have to wait for a second person.
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
    // A text that is no valid name names nothing.
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

/// Reads a body, which is JSON or empty.
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

/// 408: the body did not arrive in time.
pub(super) fn too_slow() -> Problem {
    let detail = "the body did not come in time; send it at once";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "too-slow", detail)
}

/// Reads a JSON body; an empty one means `{}`.
pub(super) async fn read_body<B: DeserializeOwned>(
    headers: &HeaderMap,
    sent: Body,
) -> Result<B, Problem> {
    parse_body(&bytes(headers, sent).await?)
}

/// Parses a body; an empty one means `{}`.
fn parse_body<B: DeserializeOwned>(bytes: &[u8]) -> Result<B, Problem> {
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    if has_escaped_nul(text) {
        return Err(holds_nul("the body"));
    }
    serde_json::from_slice(text).map_err(|e| Problem::unreadable(format!("the body: {e}")))
}

/// 400: no database accepts a text with NUL in it.
fn holds_nul(place: &str) -> Problem {
    Problem::unreadable(format!("{place} holds a NUL character; leave it out"))
}

/// Whether JSON contains `\u0000` in a text.
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

/// The same for other media types.
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
    // The same tag for different bytes must be a weak one.
    let shown = if is_packed { format!("W/{tag}") } else { tag };
    let value = HeaderValue::from_str(&shown).map_err(anyhow::Error::from)?;
    response.headers_mut().insert(ETAG, value);
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if is_packed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}
