//! The API of an XXL-JOB executor: requests of its admin to this process.
//!
//! A request without the token is answered before its body is read. Every answer has HTTP status
//! 200, because an admin shows its users the text of no other answer.

use crate::api::connection_limit::Peer;
use crate::domain::executor::block::BlockStrategy;
use crate::domain::xxl::xxl_run::{XxlJobId, XxlLogId};
use crate::engine::xxl::executor::{Executor, ExecutorReply, LogEnd, RunAsked};
use crate::wire::xxl::{APP_NAME_HEADER, JobAsk, LogAsk, LogPage, Reply, RunAsk, TOKEN_HEADER};
use anyhow::Result;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse as _, Response};
use ring::hmac;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorRequestLimits {
    /// Maximum size of a body in bytes.
    pub body: usize,
    /// Time limit for receiving a body.
    pub patience: Duration,
}

impl Default for ExecutorRequestLimits {
    /// An admin's script may have megabytes, but none is run here.
    fn default() -> Self {
        Self { body: 262_144, patience: Duration::from_secs(10) }
    }
}

/// Answers the admin's requests.
pub struct ExecutorEndpoint {
    executor: Arc<Executor>,
    /// The token signed with itself: comparing signatures takes constant time.
    token: (hmac::Key, hmac::Tag),
    limits: ExecutorRequestLimits,
}

impl ExecutorEndpoint {
    /// Answers for this executor to requests with this token.
    pub fn new(
        executor: Arc<Executor>,
        token: &SecretString,
        limits: ExecutorRequestLimits,
    ) -> Self {
        let token = token.expose_secret().as_bytes();
        let key = hmac::Key::new(hmac::HMAC_SHA256, token);
        let tag = hmac::sign(&key, token);
        Self { executor, token: (key, tag), limits }
    }

    /// The HTTP router.
    pub fn router(self) -> Router {
        Router::new().fallback(asked).with_state(Arc::new(self))
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let (key, tag) = &self.token;
        let shown = headers.get(TOKEN_HEADER).map(|value| value.as_bytes()).unwrap_or_default();
        let is_right = hmac::verify(key, shown, tag.as_ref()).is_ok();
        // Since 3.5 an admin also sends the name of the executor.
        let name = headers.get(APP_NAME_HEADER).map(|value| value.as_bytes());
        let own = self.executor.app_name().as_str().as_bytes();
        is_right && name.is_none_or(|name| name == own)
    }
}

async fn asked(
    State(desk): State<Arc<ExecutorEndpoint>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let reply = match desk.reply(peer, request).await {
        Ok(reply) => reply,
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "an XXL-JOB admin could not be answered");
            Reply::failure("this executor's database gives no answer; its log says more")
        }
    };
    // Each request uses a connection of its own, so that none is closed because an earlier request
    // took long.
    let headers = [(CONTENT_TYPE, "application/json;charset=UTF-8"), (CONNECTION, "close")];
    (headers, reply.to_json()).into_response()
}

impl ExecutorEndpoint {
    async fn reply(&self, Peer(peer): Peer, request: Request) -> Result<Reply> {
        let (parts, body) = request.into_parts();
        // A proxy in front may leave a path before the endpoint, and some admins send a second
        // slash.
        let word = parts.uri.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if !self.admits(&parts.headers) {
            self.executor.note_refused(&peer.ip().to_string(), word).await;
            return Ok(Reply::failure("The access token is wrong."));
        }
        if parts.method != Method::POST {
            return Ok(Reply::failure("invalid request, HttpMethod not support: only POST is"));
        }
        // Its body differs between versions, and has no content.
        if word == "beat" {
            return Ok(Reply::success(Value::Null));
        }
        let bytes = match self.read_body(body).await {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Reply::failure(why)),
        };
        match word {
            "run" | "trigger" => self.handle_run(&bytes).await,
            "idleBeat" => self.handle_idle_beat(&bytes).await,
            "kill" => self.handle_kill(&bytes).await,
            "log" => self.handle_log(&bytes).await,
            _ => Ok(Reply::failure("invalid request, uri-mapping not found")),
        }
    }

    async fn read_body(&self, body: Body) -> Result<Bytes, String> {
        let ExecutorRequestLimits { body: most, patience } = self.limits;
        match tokio::time::timeout(patience, to_bytes(body, most)).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(_)) => Err(format!("the request broke off, or has more than {most} bytes")),
            Err(_) => Err("the request took too long to come".to_owned()),
        }
    }

    async fn handle_run(&self, bytes: &[u8]) -> Result<Reply> {
        let ask: RunAsk = match parse_body(bytes) {
            Ok(ask) => ask,
            Err(reply) => return Ok(reply),
        };
        Ok(match self.executor.run_job(&wanted(ask)).await? {
            ExecutorReply::Taken(words) => Reply::noted(words),
            ExecutorReply::Refused(why) => Reply::failure(why),
        })
    }

    async fn handle_idle_beat(&self, bytes: &[u8]) -> Result<Reply> {
        let JobAsk { job_id } = match parse_body(bytes) {
            Ok(ask) => ask,
            Err(reply) => return Ok(reply),
        };
        Ok(match self.executor.is_busy(XxlJobId(job_id)).await? {
            true => Reply::failure("job thread is running or has trigger queue."),
            false => Reply::success(Value::Null),
        })
    }

    async fn handle_kill(&self, bytes: &[u8]) -> Result<Reply> {
        let JobAsk { job_id } = match parse_body(bytes) {
            Ok(ask) => ask,
            Err(reply) => return Ok(reply),
        };
        Ok(match self.executor.kill_job(XxlJobId(job_id)).await? {
            0 => Reply::noted("nothing of this job runs"),
            1 => Reply::noted("its batch is being stopped"),
            runs => Reply::noted(format!("{runs} runs are being stopped")),
        })
    }

    async fn handle_log(&self, bytes: &[u8]) -> Result<Reply> {
        let ask: LogAsk = match parse_body(bytes) {
            Ok(ask) => ask,
            Err(reply) => return Ok(reply),
        };
        let from = ask.from_line_num.unwrap_or(1);
        let page = self.executor.read_log(XxlLogId(ask.log_id), from).await?;
        let page = LogPage {
            from_line_num: page.from,
            to_line_num: page.to,
            log_content: page.text,
            is_end: page.end == LogEnd::Reached,
        };
        Ok(Reply::success(serde_json::to_value(page)?))
    }
}

fn parse_body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Reply> {
    // The parser's message may repeat what was sent; a position is sufficient.
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Reply::failure(format!("the request is none of XXL-JOB's (line {line}, column {column})"))
    })
}

/// The request, with defaults for missing fields.
fn wanted(ask: RunAsk) -> RunAsked {
    let strategy = ask.executor_block_strategy.unwrap_or_default();
    let timeout = ask.executor_timeout.unwrap_or_default();
    RunAsked {
        job_id: XxlJobId(ask.job_id),
        log_id: XxlLogId(ask.log_id),
        log_date_time: ask.log_date_time.unwrap_or_default(),
        kind: ask.glue_type.unwrap_or_else(|| "BEAN".to_owned()),
        handler: ask.executor_handler.unwrap_or_default(),
        params: ask.executor_params.unwrap_or_default(),
        block: BlockStrategy::parse(&strategy),
        timeout_sec: u32::try_from(timeout).ok().filter(|sec| *sec > 0),
        shard: (ask.broadcast_index.unwrap_or(0), ask.broadcast_total.unwrap_or(1)),
    }
}
