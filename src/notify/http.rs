//! Requests to a chat bot or webhook: one POST to one configured URL, and the meaning of its
//! answer.
//!
//! Nothing is sent elsewhere: redirects are not followed and proxies are not used. The URL of a
//! chat bot is its password, so no error text contains it, nor any part of it that an answer
//! repeats.

use crate::domain::text::truncate_text;
use crate::notify::NotSent;
use crate::notify::options::ChannelOptions;
use crate::outbound::{self, TransportProtection, chain, is_here};
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// Maximum number of bytes read of an answer; chat bots answer with some hundred.
const ANSWER_MAX: usize = 16_384;
/// Maximum number of bytes shown of an answer.
const SHOWN_MAX: usize = 300;

/// The target of a channel.
#[derive(Clone)]
pub(super) struct ChannelTarget {
    kind: String,
    url: Url,
    secret: Option<SecretString>,
    client: Client,
    /// What must be removed from a shown answer.
    hidden: Vec<String>,
}

/// The answer of the server.
pub(super) struct ChannelResponse {
    status: u16,
    retry_after: Option<String>,
    body: String,
}

/// Where a chat bot's answer contains its result code, and which codes are transient.
pub(super) struct VerdictCodes {
    /// The field with the code; 0 means sent.
    pub(super) code: &'static str,
    /// The field with the message.
    pub(super) words: &'static str,
    /// Codes after which a retry is useful.
    pub(super) later: &'static [i64],
    /// Hints for codes without a clear message.
    pub(super) hints: &'static [(i64, &'static str)],
}

impl ChannelTarget {
    /// Checks the URL and builds its client.
    pub(super) fn new(options: &ChannelOptions, timeout: Duration) -> Result<Self, String> {
        // The parser's message would repeat the URL.
        let url = Url::parse(options.url.expose_secret().trim());
        let url = url.map_err(|error| format!("the url is not one: {error}"))?;
        match url.scheme() {
            "https" => {}
            "http" if is_here(&url) => {}
            "http" => return Err("the url must be https; http only to this machine".to_owned()),
            other => return Err(format!("the url must be https and not {other}")),
        }
        let client = client(&url, timeout)?;
        let secret = options.secret.clone().filter(|s| !s.expose_secret().is_empty());
        let hidden = hidden(&url, secret.as_ref());
        Ok(Self { kind: options.kind.clone(), url, secret, client, hidden })
    }

    /// The URL, to be extended.
    pub(super) fn base_url(&self) -> Url {
        self.url.clone()
    }

    /// The signing secret.
    pub(super) fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.expose_secret())
    }

    /// Posts JSON; an answer of any status is returned.
    pub(super) async fn post_json(
        &self,
        url: Url,
        headers: HeaderMap,
        body: String,
    ) -> Result<ChannelResponse, NotSent> {
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        let request = self.client.post(url).headers(headers).header(CONTENT_TYPE, json).body(body);
        let mut response = request.send().await.map_err(|error| self.connection_lost(error))?;
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while bytes.len() < ANSWER_MAX {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(self.connection_lost(error)),
            }
        }
        bytes.truncate(ANSWER_MAX);
        let body = String::from_utf8_lossy(&bytes).into_owned();
        Ok(ChannelResponse { status, retry_after, body })
    }

    /// The result, from the status alone.
    pub(super) fn by_status(&self, answer: &ChannelResponse) -> Result<(), NotSent> {
        let words = self.words(&answer.body);
        let message =
            |more: &str| format!("{}: answered {}{more}{words}", self.kind, answer.status);
        match answer.status {
            200..=299 => Ok(()),
            429 => {
                let wait = answer.retry_after.as_deref().unwrap_or("some");
                Err(NotSent::Later(message(&format!(" (too many messages; wait {wait} seconds)"))))
            }
            408 | 425 | 500.. => Err(NotSent::Later(message(""))),
            300..=399 => Err(NotSent::Never(message(" (redirects are not followed)"))),
            _ => Err(NotSent::Never(message(""))),
        }
    }

    /// The result, from the code in the answer, whatever its status.
    pub(super) fn by_code(
        &self,
        answer: &ChannelResponse,
        codes: &VerdictCodes,
    ) -> Result<(), NotSent> {
        let parsed: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let code = parsed.get(codes.code).and_then(Value::as_i64);
        let Some(code) = code.filter(|_| answer.status != 429 && answer.status < 500) else {
            self.by_status(answer)?;
            // Something in between answered, such as a captive portal.
            let words = self.words(&answer.body);
            let message = format!("{}: the answer has no {}{words}", self.kind, codes.code);
            return Err(NotSent::Later(message));
        };
        if code == 0 {
            return self.by_status(answer);
        }
        let words = self.words(parsed.get(codes.words).and_then(Value::as_str).unwrap_or(""));
        let hint = codes.hints.iter().find(|(known, _)| *known == code);
        let hint = hint.map(|(_, hint)| format!(" ({hint})")).unwrap_or_default();
        let message = format!("{}: answered {} {code}{words}{hint}", self.kind, codes.code);
        let is_passing = codes.later.contains(&code);
        Err(if is_passing { NotSent::Later(message) } else { NotSent::Never(message) })
    }

    /// A message that cannot be encoded; never happens with valid settings.
    pub(super) fn unfit(&self, what: &str) -> NotSent {
        NotSent::Never(format!("{}: {what}", self.kind))
    }

    fn connection_lost(&self, error: reqwest::Error) -> NotSent {
        let what = match self.url.host_str().filter(|_| error.is_connect()) {
            Some(host) => format!("cannot connect to {host}"),
            None => "the connection was lost".to_owned(),
        };
        NotSent::Later(format!("{}: {what}: {}", self.kind, self.clean(&chain(error))))
    }

    /// The server's message after `: `, on one line, short, and without secrets.
    fn words(&self, text: &str) -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = truncate_text(&self.clean(&text), SHOWN_MAX).replace(char::is_control, " ");
        if text.is_empty() { text } else { format!(": {text}") }
    }

    fn clean(&self, text: &str) -> String {
        self.hidden.iter().fold(text.to_owned(), |text, hidden| text.replace(hidden, "***"))
    }
}

/// The parts of a URL worth hiding, the longest first.
fn hidden(url: &Url, secret: Option<&SecretString>) -> Vec<String> {
    let mut hidden = vec![url.as_str().to_owned(), url.path().to_owned()];
    hidden.extend(url.query().map(str::to_owned));
    hidden.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    hidden.extend(url.path_segments().into_iter().flatten().map(str::to_owned));
    hidden.extend(url.password().map(str::to_owned));
    // `robot` and `send` occur in every answer.
    hidden.retain(|text| text.len() >= 8);
    hidden.extend(secret.map(|secret| secret.expose_secret().to_owned()));
    hidden.sort_by_key(|text| std::cmp::Reverse(text.len()));
    hidden
}

/// A client for one server: no redirects, no proxies, TLS verified.
fn client(url: &Url, timeout: Duration) -> Result<Client, String> {
    // A message a minute does not need a pooled connection, which may be found dead.
    let client = outbound::client(TransportProtection::for_url(url))?
        .connect_timeout(timeout)
        .pool_max_idle_per_host(0);
    outbound::built(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<ChannelTarget, String> {
        let options = ChannelOptions {
            kind: "wecom".to_owned(),
            url: url.into(),
            secret: Some("s3cr3t".into()),
        };
        ChannelTarget::new(&options, Duration::from_secs(1))
    }

    #[test]
    fn only_https_leaves_the_machine() {
        for url in ["http://127.0.0.1:1/x", "http://localhost/x", "http://[::1]:8/x"] {
            assert!(target(url).is_ok(), "{url}");
        }
        for url in ["http://robots.example/tok3n-tok3n", "ftp://x/tok3n", "tok3n-tok3n", ""] {
            let message = target(url).err().expect(url);
            assert!(!message.contains("tok3n"), "{message}");
        }
    }

    #[test]
    fn answers() {
        let target = target("http://127.0.0.1:1/hook/tok3n-tok3n?key=k3y-k3y-k3y").expect("target");
        let codes = VerdictCodes {
            code: "errcode",
            words: "errmsg",
            later: &[45_009],
            hints: &[(93_000, "look at the url")],
        };
        let later = |message: &str| Err(NotSent::Later(message.to_owned()));
        let never = |message: &str| Err(NotSent::Never(message.to_owned()));
        for (status, body, wanted) in [
            (200, r#"{"errcode":0,"errmsg":"ok"}"#, Ok(())),
            (
                200,
                r#"{"errcode":45009,"errmsg":"slow"}"#,
                later("wecom: answered errcode 45009: slow"),
            ),
            (
                200,
                r#"{"errcode":93000,"errmsg":"bad k3y-k3y-k3y\nof s3cr3t"}"#,
                never("wecom: answered errcode 93000: bad *** of *** (look at the url)"),
            ),
            (502, r#"{"errcode":93000}"#, later(r#"wecom: answered 502: {"errcode":93000}"#)),
            (
                200,
                "<html>Log in</html>",
                later("wecom: the answer has no errcode: <html>Log in</html>"),
            ),
            (404, "no /hook/tok3n-tok3n here", never("wecom: answered 404: no *** here")),
            (302, "", never("wecom: answered 302 (redirects are not followed)")),
            (429, "", later("wecom: answered 429 (too many messages; wait 30 seconds)")),
        ] {
            let retry_after = Some("30".to_owned());
            let answer = ChannelResponse { status, retry_after, body: body.to_owned() };
            assert_eq!(target.by_code(&answer, &codes), wanted, "{status} {body}");
        }
    }
}
