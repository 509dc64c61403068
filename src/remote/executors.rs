//! Calls to the XXL-JOB executors of which this installation is the admin.
//!
//! Connections are kept for a minute. The number of concurrent calls is limited, in total and per
//! address, so that an executor that does not answer blocks no other.

use crate::domain::executor::Spoken;
use crate::domain::text::{storable, truncate_text};
use crate::domain::xxl::xxl_run::AppName;
use crate::outbound::{self, ReloadedClient, TransportProtection};
use crate::wire::xxl::{APP_NAME_HEADER, Reply, TOKEN_HEADER};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, RequestBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

pub use crate::outbound::ClientTlsFiles;
pub use crate::wire::xxl::{JobAsk, LogAsk, LogPage, RunAsk, read_log};

/// Maximum number of concurrent calls.
const AT_ONCE: usize = 64;
/// Maximum number of concurrent calls per address.
const AT_ONCE_EACH: usize = 16;
/// Number of addresses whose counts are kept.
const ADDRESSES: usize = 1_024;
/// Time limit for connecting, and for an answer.
const LIMIT: Duration = Duration::from_secs(3);
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);
/// Maximum number of bytes read of an answer.
const ANSWER_MAX: usize = 1 << 20;
/// Maximum number of bytes shown of an answer.
const SHOWN_MAX: usize = 300;

/// One executor.
#[derive(Clone, Debug)]
pub struct ExecutorAddress {
    pub address: String,
    pub app: AppName,
    /// The token it requires.
    pub token: SecretString,
    /// Its protocol dialect.
    pub spoken: Spoken,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorResponse {
    /// Accepted, with the answer.
    Yes(Reply),
    /// Refused, with its message.
    No(String),
    /// Nothing was sent, and why.
    NotSent(String),
    /// It was sent, and the result is unknown.
    Unclear(String),
}

/// The client for all executors of a process.
pub struct ExecutorClient {
    clear: OnceLock<Result<Client, String>>,
    tls: ReloadedClient,
    turns: AddressSemaphores,
}

struct AddressSemaphores {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for AddressSemaphores {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(AT_ONCE)), each: Mutex::default() }
    }
}

impl ExecutorClient {
    /// A client with these TLS files.
    pub fn new(tls: ClientTlsFiles) -> Self {
        let tls = ReloadedClient::new(tls, limited);
        Self { clear: OnceLock::new(), tls, turns: AddressSemaphores::default() }
    }

    /// Asks whether the executor is alive. A body of `{}` is accepted by every client.
    pub async fn send_beat(&self, to: &ExecutorAddress) -> ExecutorResponse {
        self.send_request(to, "beat", &json!({})).await
    }

    /// Asks whether the executor does not run this job.
    pub async fn idle_beat(&self, to: &ExecutorAddress, job_id: i64) -> ExecutorResponse {
        self.send_request(to, "idleBeat", &JobAsk { job_id }).await
    }

    /// Requests a stop of everything it runs of this job.
    pub async fn send_kill(&self, to: &ExecutorAddress, job_id: i64) -> ExecutorResponse {
        self.send_request(to, "kill", &JobAsk { job_id }).await
    }

    /// Requests a run, unless its permit comes too late: `may` is called last.
    pub async fn send_run(
        &self,
        to: &ExecutorAddress,
        ask: &RunAsk,
        may: impl Fn() -> bool + Send,
    ) -> ExecutorResponse {
        let name = match to.spoken {
            Spoken::Run => "run",
            Spoken::Trigger => "trigger",
        };
        let _turn = self.turns.take_turn(&to.address).await;
        if !may() {
            return ExecutorResponse::NotSent(
                "too many executors gave no answer in time".to_owned(),
            );
        }
        self.post_request(to, name, ask).await
    }

    /// Requests lines of the log of a run, from this one on.
    pub async fn fetch_log(
        &self,
        to: &ExecutorAddress,
        log_id: i64,
        at: i64,
        from: i64,
    ) -> Option<LogPage> {
        let (tim, time) = match to.spoken {
            Spoken::Run => (Some(at), None),
            Spoken::Trigger => (None, Some(at)),
        };
        let ask =
            LogAsk { log_id, from_line_num: Some(from), log_date_tim: tim, log_date_time: time };
        match self.send_request(to, "log", &ask).await {
            ExecutorResponse::Yes(reply) => read_log(&reply),
            ExecutorResponse::No(_)
            | ExecutorResponse::NotSent(_)
            | ExecutorResponse::Unclear(_) => None,
        }
    }

    async fn send_request<T: Serialize + Sync>(
        &self,
        to: &ExecutorAddress,
        name: &str,
        body: &T,
    ) -> ExecutorResponse {
        let _turn = self.turns.take_turn(&to.address).await;
        self.post_request(to, name, body).await
    }

    async fn post_request<T: Serialize + Sync>(
        &self,
        to: &ExecutorAddress,
        name: &str,
        body: &T,
    ) -> ExecutorResponse {
        let request = match self.request(to, name, body) {
            Ok(request) => request,
            Err(message) => return ExecutorResponse::NotSent(message),
        };
        match tokio::time::timeout(LIMIT * 2, answered(request)).await {
            Ok(Ok((status, bytes))) => judged(to, status, &bytes),
            Ok(Err(Lost { is_sent: false, message })) => {
                ExecutorResponse::NotSent(shown(to, "", &message))
            }
            Ok(Err(Lost { is_sent: true, message })) => {
                ExecutorResponse::Unclear(shown(to, "", &message))
            }
            Err(_) => ExecutorResponse::Unclear("no answer within 6 s".to_owned()),
        }
    }

    fn request<T: Serialize>(
        &self,
        to: &ExecutorAddress,
        name: &str,
        body: &T,
    ) -> Result<RequestBuilder, String> {
        let url = format!("{}/{name}", to.address.trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|error| format!("{} is no URL: {error}", to.address))?;
        let client = match TransportProtection::for_url(&url) {
            TransportProtection::Clear => self.clear.get_or_init(clear_client).clone()?,
            TransportProtection::Tls => self.tls.get()?,
        };
        let text = serde_json::to_string(body).map_err(|error| error.to_string())?;
        Ok(client.post(url).headers(headers(to)?).body(text))
    }
}

impl AddressSemaphores {
    async fn take_turn(&self, address: &str) -> [Option<tokio::sync::OwnedSemaphorePermit>; 2] {
        let each = {
            let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
            if each.len() >= ADDRESSES {
                each.retain(|_, turns| Arc::strong_count(turns) > 1);
            }
            let turns = each.entry(address.to_owned());
            turns.or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE_EACH))).clone()
        };
        // The semaphores are never closed.
        let each = each.acquire_owned().await.ok();
        [each, self.all.clone().acquire_owned().await.ok()]
    }
}

fn limited(client: ClientBuilder) -> ClientBuilder {
    let client = client.connect_timeout(LIMIT).read_timeout(LIMIT);
    client.pool_idle_timeout(IDLE).tcp_nodelay(true)
}

fn clear_client() -> Result<Client, String> {
    outbound::built(limited(outbound::client(TransportProtection::Clear)?))
}

fn headers(to: &ExecutorAddress) -> Result<HeaderMap, String> {
    let bad =
        |what: &str| format!("the {what} of {} has characters that no header may have", to.app);
    let mut token = HeaderValue::from_str(to.token.expose_secret()).map_err(|_| bad("token"))?;
    token.set_sensitive(true);
    let mut headers = HeaderMap::from_iter([
        (HeaderName::from_static(TOKEN_HEADER), token),
        (CONTENT_TYPE, HeaderValue::from_static("application/json;charset=UTF-8")),
    ]);
    if to.spoken == Spoken::Trigger {
        let name = HeaderValue::from_str(to.app.as_str()).map_err(|_| bad("name"))?;
        headers.insert(HeaderName::from_static(APP_NAME_HEADER), name);
    }
    Ok(headers)
}

struct Lost {
    is_sent: bool,
    message: String,
}

async fn answered(request: RequestBuilder) -> Result<(u16, Vec<u8>), Lost> {
    let lost = |error: reqwest::Error| {
        let is_sent = !(error.is_connect() || error.is_builder());
        let what = if is_sent { "the connection was lost" } else { "cannot connect" };
        Lost { is_sent, message: format!("{what}: {}", outbound::chain(error)) }
    };
    let mut response = request.send().await.map_err(lost)?;
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_MAX {
            let message = format!("answered more than {ANSWER_MAX} bytes");
            return Err(Lost { is_sent: true, message });
        }
    }
    Ok((status, bytes))
}

/// The meaning of an answer. The answer of a gateway in place of the executor tells nothing.
fn judged(to: &ExecutorAddress, status: u16, bytes: &[u8]) -> ExecutorResponse {
    let message = |what: &str, words: &[u8]| shown(to, what, &storable(words, 4 * SHOWN_MAX));
    match (status, Reply::parse_body(bytes)) {
        (200, Ok(reply)) if reply.is_ok() => ExecutorResponse::Yes(reply),
        (200, Ok(Reply { code, msg, content })) => {
            let content = if let Value::String(words) = content { Some(words) } else { None };
            let words = msg.or(content);
            ExecutorResponse::No(message(
                &format!("code {code}"),
                words.unwrap_or_default().as_bytes(),
            ))
        }
        (200, Err(_)) => {
            ExecutorResponse::Unclear(message("the answer is none of XXL-JOB's", bytes))
        }
        (502 | 504, _) => {
            ExecutorResponse::Unclear(message(&format!("a gateway answered HTTP {status}"), bytes))
        }
        (300..400, _) => ExecutorResponse::No(message(
            &format!("HTTP {status}, and redirects are not followed"),
            b"",
        )),
        (_, _) => ExecutorResponse::No(message(&format!("HTTP {status}"), bytes)),
    }
}

/// Our text followed by the executor's: on one line, short, without the token.
fn shown(to: &ExecutorAddress, what: &str, words: &str) -> String {
    let words = words.replace(to.token.expose_secret(), "***");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = truncate_text(&words, SHOWN_MAX);
    match (what.is_empty(), words.is_empty()) {
        (_, true) => what.to_owned(),
        (true, false) => words.to_string(),
        (false, false) => format!("{what}: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_yes_a_no_or_neither() {
        let to = ExecutorAddress {
            address: "http://10.0.0.1:9999/".to_owned(),
            app: AppName::parse("pay-executor").expect("name"),
            token: "0123456789abcdef".into(),
            spoken: Spoken::Run,
        };
        for (status, body, wanted) in [
            (200, r#"{"code":200,"msg":null}"#, "yes"),
            (200, r#"{"code":500,"msg":"busy 0123456789abcdef"}"#, "no code 500: busy ***"),
            (200, r#"{"code":500,"content":"no"}"#, "no code 500: no"),
            (200, "<html>", "unclear the answer is none of XXL-JOB's: <html>"),
            (400, "<html>", "no HTTP 400: <html>"),
            (500, "", "no HTTP 500"),
            (504, "slow", "unclear a gateway answered HTTP 504: slow"),
            (302, "x", "no HTTP 302, and redirects are not followed"),
        ] {
            let message = match judged(&to, status, body.as_bytes()) {
                ExecutorResponse::Yes(_) => "yes".to_owned(),
                ExecutorResponse::No(message) => format!("no {message}"),
                ExecutorResponse::NotSent(message) => format!("not sent {message}"),
                ExecutorResponse::Unclear(message) => format!("unclear {message}"),
            };
            assert_eq!(message, wanted);
        }
    }
}
