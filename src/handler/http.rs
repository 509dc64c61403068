//! HTTP: one call of a registered host.
//!
//! No request goes anywhere else: a redirect is returned as an answer, proxies are not used, and
//! the URL stays below that of the host. A call that was sent and got no answer is UNKNOWN, because
//! the host may have done it; a GET or HEAD is not, because repeating it does no harm.

use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::domain::job::{BodyPart, JobKind};
use crate::domain::params::http_call;
use crate::domain::time::span_words;
use crate::handler::http_answer::HttpResponseBody;
use crate::handler::run_on_source::end_of;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{AttemptTask, Context, StopReason, WorkerHandler};
use crate::outbound::{self, TransportProtection, chain};
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tower::util::MapResponseLayer;
use url::Url;

/// The HTTP handler.
pub(crate) struct HttpHandler;

impl WorkerHandler for HttpHandler {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "HTTP",
            about: "Calls a registered host over HTTP.",
            needs: &[BodyPart::Http],
            may_have: &[BodyPart::Params],
            ..JobKind::PLAIN
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async move {
            match start(task, ctx).await {
                Ok(outcome) => outcome,
                Err(said) => {
                    AttemptOutcome::ended(AttemptEnd::Failed, format!("{said}; nothing was sent"))
                }
            }
        })
    }
}

async fn start(task: &AttemptTask, ctx: &Context) -> Result<AttemptOutcome, String> {
    let call = PreparedHttpCall::from_task(task)?;
    let sent = Arc::new(AtomicBool::new(false));
    let client = client(&call.url, ctx.options.connect_timeout, &sent).await?;
    tokio::select! {
        biased;
        reason = ctx.stopped() => {
            return Ok(AttemptOutcome::ended(end_of(reason), "stopped before it began"));
        }
        claimed = ctx.claimed() => claimed?,
    }
    ctx.log.add_line(Stream::System, &call.name);
    let outcome = tokio::select! {
        biased;
        reason = ctx.stopped() => call.stopped(reason, sent.load(Ordering::SeqCst)),
        outcome = exchange(&client, &call, ctx, &sent) => outcome,
    };
    Ok(outcome)
}

/// A call with all values resolved.
struct PreparedHttpCall<'a> {
    task: &'a AttemptTask,
    /// `POST core /loads/{branch}`: for display, without values, which may be secret.
    name: String,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<String>,
}

impl<'a> PreparedHttpCall<'a> {
    fn from_task(task: &'a AttemptTask) -> Result<Self, String> {
        let call = task.job.http.as_ref().ok_or("the job has no call")?;
        let host = task.host.as_ref().filter(|host| host.name == call.host);
        let host = host.ok_or_else(|| format!("host {} is not registered", call.host))?;
        let (text, whose) = match std::env::var(host.url_env()) {
            Ok(text) => (text, host.url_env()),
            Err(_) => (host.base_url.clone(), format!("host {}: base_url", host.name)),
        };
        let base = http_call::parse_base_url(&text).map_err(|fault| format!("{whose} {fault}"))?;
        let url = http_call::build_url(&base, call, &task.params)?;
        let method = Method::from_bytes(call.method.as_bytes());
        let method = method.map_err(|_| format!("{:?} is no method", call.method))?;
        let mut headers = HeaderMap::new();
        for (name, text) in host.headers.iter().chain(&call.headers) {
            let key = HeaderName::from_bytes(name.as_bytes());
            let key = key.map_err(|_| format!("{name:?} is not the name of a header"))?;
            let value = header_value(text, task);
            headers.insert(key, value.map_err(|fault| format!("header {name} {fault}"))?);
        }
        let body = http_call::build_body(call, &task.params).map(|(kind, text)| {
            let kind = HeaderValue::from_static(kind);
            headers.entry(CONTENT_TYPE).or_insert(kind);
            text
        });
        // The same for every attempt of this run, and unique across runs of any database.
        let key = HeaderValue::from_str(&http_call::key_value(&task.idem_key));
        let key = key.map_err(|_| "the idempotency key is no header")?;
        headers.entry(HeaderName::from_static(http_call::KEY_HEADER)).or_insert(key);
        if let Some(parent) = &task.traceparent {
            let parent = HeaderValue::from_str(parent).map_err(|_| "the trace is no header")?;
            headers.entry(HeaderName::from_static("traceparent")).or_insert(parent);
        }
        let name = format!("{method} {} {}", host.name, call.path);
        Ok(Self { task, name, method, url, headers, body })
    }

    fn request(&self) -> Request {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = self.body.clone().map(Into::into);
        request
    }

    /// The end of an abandoned call: its result is known only if the request was never sent, or if
    /// repeating it does no harm.
    fn outcome_unclear(&self, end: AttemptEnd, was_sent: bool, said: &str) -> AttemptOutcome {
        if was_sent && !http_call::is_safe(self.method.as_str()) {
            let said = format!("{}: {said}; whether it took effect is not known", self.name);
            return AttemptOutcome::ended(AttemptEnd::Unknown, said);
        }
        AttemptOutcome::ended(end, format!("{}: {said}", self.name))
    }

    fn stopped(&self, reason: StopReason, was_sent: bool) -> AttemptOutcome {
        let when = if was_sent { "after it was sent" } else { "before it was sent" };
        self.outcome_unclear(end_of(reason), was_sent, &format!("the call was given up {when}"))
    }

    /// The only place where a lost connection becomes an outcome.
    fn request_lost(&self, error: reqwest::Error, was_sent: bool) -> AttemptOutcome {
        let what = if error.is_connect() || !was_sent {
            "cannot connect"
        } else {
            "the connection was lost before the whole answer came"
        };
        self.outcome_unclear(AttemptEnd::Failed, was_sent, &format!("{what}: {}", chain(error)))
    }

    fn expects(&self, status: u16) -> bool {
        let expected = self.task.job.http.as_ref().map_or(&[][..], |call| &call.expect_status);
        if expected.is_empty() { (200..300).contains(&status) } else { expected.contains(&status) }
    }
}

/// The only place where the value of a header is built. It is never shown.
pub(crate) fn header_value(text: &str, task: &AttemptTask) -> Result<HeaderValue, String> {
    let secret = |name: &str| task.secrets.get(name).cloned();
    let text = http_call::header(text, &task.params, &secret)?;
    let value = HeaderValue::from_bytes(text.as_bytes());
    let mut value = value.map_err(|_| "holds characters that no header may have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

async fn exchange(
    client: &Client,
    call: &PreparedHttpCall<'_>,
    ctx: &Context,
    sent: &AtomicBool,
) -> AttemptOutcome {
    let since = Stopwatch::start();
    let was_sent = || sent.load(Ordering::SeqCst);
    let mut response = match client.execute(call.request()).await {
        Ok(response) => response,
        Err(error) => return call.request_lost(error, was_sent()),
    };
    let status = response.status();
    let mut answer = HttpResponseBody::new(status.as_u16());
    while !answer.is_full() {
        match response.chunk().await {
            Ok(Some(bytes)) => answer.take_bytes(&bytes),
            Ok(None) => break,
            Err(error) => return call.request_lost(error, was_sent()),
        }
    }
    let line = format!(
        "answered {status} in {}, {} bytes",
        span_words(since.elapsed_ms()),
        answer.size_read()
    );
    ctx.log.add_line(Stream::System, line);
    let first = answer.log_answer(&ctx.log);
    let outputs = answer.outputs(ctx.options.outputs);
    if call.expects(status.as_u16()) {
        return AttemptOutcome::success(outputs);
    }
    let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
    let first = if first.is_empty() { first } else { format!(": {first}") };
    let said = format!("{} answered {status}{hint}{first}", call.name);
    AttemptOutcome { outputs, ..AttemptOutcome::ended(AttemptEnd::Failed, said) }
}

/// A client for one call: without a pool, so that no connection of an earlier call can be found
/// dead, and without redirects, proxies and automatic retries.
async fn client(url: &Url, timeout: Duration, sent: &Arc<AtomicBool>) -> Result<Client, String> {
    let way = TransportProtection::for_url(url);
    let made = tokio::task::spawn_blocking(move || outbound::client(way)).await;
    let made = made.map_err(|error| format!("cannot prepare TLS: {error}"))??;
    let sent = sent.clone();
    // TCP and TLS are established: from here on the request may have been sent.
    let connected = MapResponseLayer::new(move |connection| {
        sent.store(true, Ordering::SeqCst);
        connection
    });
    let made = made.connector_layer(connected).connect_timeout(timeout);
    outbound::built(made.pool_max_idle_per_host(0))
}
