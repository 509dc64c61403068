//! One POST to a server of XXL-JOB, and its answer.
//!
//! Redirects are not followed and proxies are not used, because the token would go with them;
//! certificates are verified, which XXL-JOB's own client does not do.

use crate::domain::text::{storable, truncate_text};
use crate::outbound::{self, ClientTlsFiles, ReloadedClient, TransportProtection};
use crate::wire::xxl::{APP_NAME_HEADER, Reply, TOKEN_HEADER};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::error::Error;
use std::time::Duration;
use url::Url;

/// Maximum number of bytes read of an answer.
const ANSWER_MAX: usize = 65_536;
/// Maximum number of bytes shown of an answer.
const SHOWN_MAX: usize = 300;

/// A client with the access token.
pub(super) struct Poster {
    way: PosterWay,
    headers: HeaderMap,
    token: SecretString,
}

/// The client, by the protection of the connection.
enum PosterWay {
    Clear(Client),
    Tls(ReloadedClient),
}

impl Poster {
    pub(super) fn new(
        urls: &[Url],
        app_name: &str,
        token: &SecretString,
        tls: &ClientTlsFiles,
        limit: Duration,
    ) -> Result<Self, String> {
        let mut secret = HeaderValue::from_str(token.expose_secret())
            .map_err(|_| "the token has characters that no header may have".to_owned())?;
        secret.set_sensitive(true);
        let name = HeaderValue::from_str(app_name)
            .map_err(|_| "the appname has characters that no header may have".to_owned())?;
        let headers = HeaderMap::from_iter([
            (HeaderName::from_static(TOKEN_HEADER), secret),
            (HeaderName::from_static(APP_NAME_HEADER), name),
            (CONTENT_TYPE, HeaderValue::from_static("application/json;charset=UTF-8")),
        ]);
        // A call every half minute does not need a pooled connection, which may be found dead.
        let limited = move |client: ClientBuilder| {
            client.connect_timeout(limit).timeout(limit).pool_max_idle_per_host(0)
        };
        let way = match urls.iter().any(|url| url.scheme() == "https") {
            true => {
                let client = ReloadedClient::new(tls.clone(), limited);
                // Unusable files are a fault at the start, not at the first request.
                client.get()?;
                PosterWay::Tls(client)
            }
            false => PosterWay::Clear(outbound::built(limited(outbound::client(
                TransportProtection::Clear,
            )?))?),
        };
        Ok(Self { way, headers, token: token.clone() })
    }

    /// Posts JSON. Any refusal is an error with its text.
    pub(super) async fn post_json(&self, url: Url, body: &Value) -> Result<(), String> {
        let client = match &self.way {
            PosterWay::Clear(client) => client.clone(),
            PosterWay::Tls(client) => client.get()?,
        };
        let request = client.post(url).headers(self.headers.clone()).body(body.to_string());
        let mut response = request.send().await.map_err(|e| self.describe_error(e))?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.describe_error(e))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ANSWER_MAX {
                return Err(format!("answered more than {ANSWER_MAX} bytes"));
            }
        }
        if status != 200 {
            let more =
                if (300..400).contains(&status) { " (redirects are not followed)" } else { "" };
            return Err(self.describe_answer(&format!("answered HTTP {status}{more}"), &bytes));
        }
        match Reply::parse_body(&bytes) {
            Ok(reply) if reply.is_ok() => Ok(()),
            Ok(Reply { code, msg, .. }) => {
                let words = msg.unwrap_or_default();
                Err(self.describe_answer(&format!("answered code {code}"), words.as_bytes()))
            }
            Err(_) => Err(self.describe_answer("the answer is none of XXL-JOB's", &bytes)),
        }
    }

    /// Our text followed by the server's: on one line, short, without the token.
    fn describe_answer(&self, what: &str, words: &[u8]) -> String {
        let words = storable(words, ANSWER_MAX).replace(self.token.expose_secret(), "***");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = truncate_text(&words, SHOWN_MAX);
        if words.is_empty() { what.to_owned() } else { format!("{what}: {words}") }
    }

    fn describe_error(&self, error: reqwest::Error) -> String {
        let what = if error.is_connect() { "cannot connect" } else { "the connection was lost" };
        let error = error.without_url();
        let (mut words, mut cause) = (error.to_string(), error.source());
        while let Some(deeper) = cause {
            words = format!("{words}: {deeper}");
            cause = deeper.source();
        }
        self.describe_answer(what, words.as_bytes())
    }
}
