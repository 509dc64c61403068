//! trace: sends spans to a collector, over OTLP/HTTP. In: spans. Out: whether they were accepted.
//! May name: domain, outbound. Never: a clock, a queue, the content of a span.
//! Invariant: nothing is sent except to the one configured address, and no error contains a secret.

mod otlp;

use crate::domain::batch::span::Span;
use crate::outbound::{self, TransportProtection, chain, is_here};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use std::time::Duration;
use url::Url;

/// Settings of the connection to a collector.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The URL: `http://collector:4318/v1/traces`.
    pub endpoint: String,
    /// `name=value,name=value`: additional headers for the collector, such as a token.
    pub headers: Option<SecretString>,
    /// The name of this installation (`service.name`).
    pub service: String,
    /// The name of this process (`service.instance.id`).
    pub node: String,
    /// Time limit of an answer.
    pub timeout: Duration,
}

/// Invalid settings; displayed, they contain a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadCollector(String);

/// Why spans were not accepted; displayed, it is the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceExportError {
    /// A retry may succeed.
    #[error("{0}")]
    Later(String),
    /// No retry would succeed.
    #[error("{0}")]
    Never(String),
}

/// The connection to a collector.
pub struct Exporter {
    client: Client,
    url: Url,
    headers: HeaderMap,
    service: String,
    node: String,
}

impl Exporter {
    /// Builds the exporter, without contacting the collector.
    pub fn open_exporter(options: TraceOptions) -> Result<Self, BadCollector> {
        let url = Url::parse(options.endpoint.trim())
            .map_err(|error| bad_setting(format!("trace.endpoint is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() {
            let example = "http://127.0.0.1:4318/v1/traces";
            return Err(bad_setting(format!(
                "trace.endpoint must be a URL of http or https without a user, such as {example}"
            )));
        }
        let headers = headers(options.headers.as_ref())?;
        if !headers.is_empty() && url.scheme() == "http" && !is_here(&url) {
            return Err(bad_setting(
                "headers for the collector hold secrets, and trace.endpoint would carry them in clear; use \
                 https, or a collector on this machine",
            ));
        }
        let client = client(&url, options.timeout)?;
        let TraceOptions { service, node, .. } = options;
        Ok(Self { client, url, headers, service, node })
    }

    /// Sends spans. If it is cut off they may have arrived; a collector accepts the same span
    /// twice.
    pub async fn send_spans(&self, spans: &[Span]) -> Result<(), TraceExportError> {
        let body = otlp::request(&self.service, &self.node, spans);
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body);
        let answer = request.send().await.map_err(|error| TraceExportError::Later(chain(error)))?;
        let status = answer.status();
        let said = format!("the collector answered {status}");
        match status {
            _ if status.is_success() => Ok(()),
            // According to the protocol; all others are permanent.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(TraceExportError::Later(said)),
            _ => Err(TraceExportError::Never(said)),
        }
    }
}

fn bad_setting(text: impl Into<String>) -> BadCollector {
    BadCollector(text.into())
}

fn headers(text: Option<&SecretString>) -> Result<HeaderMap, BadCollector> {
    let mut headers = HeaderMap::new();
    let text = text.map(|text| text.expose_secret()).unwrap_or_default();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let fault = "the headers for the collector must be name=value,name=value";
        let (name, value) = pair.split_once('=').ok_or_else(|| bad_setting(fault))?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| bad_setting(fault))?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| bad_setting(fault))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn client(url: &Url, timeout: Duration) -> Result<Client, BadCollector> {
    let made = outbound::client(TransportProtection::for_url(url));
    let made = made.map(|client| client.connect_timeout(timeout).timeout(timeout));
    made.and_then(outbound::built).map_err(|fault| bad_setting(format!("trace.endpoint: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(endpoint: &str, headers: Option<&str>) -> Result<Exporter, String> {
        let options = TraceOptions {
            endpoint: endpoint.to_owned(),
            headers: headers.map(SecretString::from),
            service: "procession".to_owned(),
            node: "here".to_owned(),
            timeout: Duration::from_secs(1),
        };
        Exporter::open_exporter(options).map_err(|error| error.to_string())
    }

    #[test]
    fn a_bad_address_is_refused_with_what_to_do() {
        for (endpoint, headers, said) in [
            ("collector:4318", None, "must be a URL of http or https"),
            ("ftp://collector/x", None, "must be a URL of http or https"),
            ("http://me:secret@collector/x", None, "without a user"),
            ("http://collector/x", Some("authorization=Bearer hunter2"), "in clear"),
            ("http://127.0.0.1:1/x", Some("hunter2"), "name=value"),
        ] {
            let error = opened(endpoint, headers).err().expect("refused");
            assert!(error.contains(said) && !error.contains("hunter2"), "{error}");
        }
        assert!(opened("http://collector:4318/v1/traces", None).is_ok());
        assert!(opened("http://127.0.0.1:4318/v1/traces", Some("a=b, c=d=")).is_ok());
    }
}
