//! The REST API of a compute cluster: a registered host, called like the host of an HTTP job.

use crate::domain::job::body::HttpHost;
use crate::domain::params::http_call;
use crate::handler::AttemptTask;
use crate::handler::http::header_value;
use crate::outbound::{self, TransportProtection, chain};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder};
use std::time::Duration;
use url::{Host, Url};

/// Time limit of an answer. Flink runs the main method of a job while it answers.
const ANSWER: Duration = Duration::from_secs(120);
/// Maximum number of bytes read of an answer.
const READ: usize = 8 * 1024 * 1024;

/// A cluster and the client to call it.
pub(crate) struct ClusterApi {
    pub(crate) host: String,
    base: Url,
    ui: Option<Url>,
    headers: HeaderMap,
    client: Client,
}

/// An answer of a cluster.
pub(crate) struct ClusterAnswer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl ClusterAnswer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer.
pub(crate) struct NoAnswer {
    /// The cause, as a sentence.
    pub(crate) cause: String,
    /// Whether the request may have arrived.
    pub(crate) may_have_arrived: bool,
}

/// The body of a request.
pub(crate) struct RequestBody {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
}

impl RequestBody {
    pub(crate) fn json(value: &serde_json::Value) -> Self {
        let bytes = value.to_string().into_bytes();
        Self { content_type: "application/json".to_owned(), bytes }
    }
}

impl ClusterApi {
    /// Reads the address of the host and its headers; an error describes the fault of the
    /// definition.
    pub(crate) async fn open(
        host_name: &str,
        task: &AttemptTask,
        connect_timeout: Duration,
    ) -> Result<Self, String> {
        let host = task.host.as_ref().filter(|host| host.name == host_name);
        let host = host.ok_or_else(|| format!("host {host_name} is not registered"))?;
        let base = read_base(host)?;
        let ui = read_ui(host)?;
        let mut headers = HeaderMap::new();
        for (name, text) in &host.headers {
            let key = HeaderName::from_bytes(name.as_bytes());
            let key = key.map_err(|_| format!("{name:?} is not the name of a header"))?;
            let value = header_value(text, task);
            headers.insert(key, value.map_err(|fault| format!("header {name} {fault}"))?);
        }
        let way = TransportProtection::for_url(&base);
        let made = tokio::task::spawn_blocking(move || outbound::client(way)).await;
        let made = made.map_err(|error| format!("cannot prepare TLS: {error}"))??;
        // Without a connection pool no connection can be found dead, so a failure to connect means
        // that nothing was sent.
        let made = made.connect_timeout(connect_timeout).timeout(ANSWER).pool_max_idle_per_host(0);
        let client = outbound::built(made)?;
        Ok(Self { host: host.name.clone(), base, ui, headers, client })
    }

    /// A link for people.
    pub(crate) fn link(&self, path: &str) -> String {
        format!("{}/{path}", self.base.as_str().trim_end_matches('/'))
    }

    /// Whether the cluster is on this machine.
    pub(crate) fn is_here(&self) -> bool {
        is_loopback(&self.base)
    }

    /// A link into the cluster's web page, if its address is known.
    pub(crate) fn ui_link(&self, path: &str) -> Option<String> {
        let ui = self.ui.as_ref()?;
        Some(format!("{}/{path}", ui.as_str().trim_end_matches('/')))
    }

    /// Gets a page of the cluster's web page; `None` when its address is not known.
    pub(crate) async fn get_ui(&self, path: &str) -> Result<Option<ClusterAnswer>, String> {
        let Some(link) = self.ui_link(path) else { return Ok(None) };
        let request = self.client.get(link).headers(self.headers.clone());
        self.call(request).await.map(Some).map_err(|lost| lost.cause)
    }

    /// Gets a page at an address that the cluster named. It is called when it is on the host of the
    /// web page, without the headers; any other host is not called, and the answer is `None`.
    pub(crate) async fn get_named(
        &self,
        address: &str,
        path: &str,
    ) -> Result<Option<ClusterAnswer>, String> {
        let named = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let (Some(named), Some(ui)) = (named, &self.ui) else { return Ok(None) };
        let is_same = named.host() == ui.host() || (is_loopback(&named) && is_loopback(ui));
        if !is_same {
            return Ok(None);
        }
        let link = format!("{}/{path}", named.as_str().trim_end_matches('/'));
        self.call(self.client.get(link)).await.map(Some).map_err(|lost| lost.cause)
    }

    /// Sends one request. `path` contains no parameter of a job.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<RequestBody>,
    ) -> Result<ClusterAnswer, NoAnswer> {
        let mut request =
            self.client.request(method, self.link(path)).headers(self.headers.clone());
        if let Some(body) = body {
            let kind = HeaderValue::from_str(&body.content_type);
            if let Ok(kind) = kind {
                request = request.header(CONTENT_TYPE, kind);
            }
            request = request.body(body.bytes);
        }
        self.call(request).await
    }

    async fn call(&self, request: RequestBuilder) -> Result<ClusterAnswer, NoAnswer> {
        let mut response = request.send().await.map_err(|error| self.lost(error))?;
        let (status, mut bytes) = (response.status().as_u16(), Vec::new());
        while bytes.len() < READ {
            match response.chunk().await.map_err(|error| self.lost(error))? {
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None => break,
            }
        }
        Ok(ClusterAnswer { status, body: String::from_utf8_lossy(&bytes).into_owned() })
    }

    fn lost(&self, error: reqwest::Error) -> NoAnswer {
        let may_have_arrived = !error.is_connect();
        let what = if may_have_arrived { "gave no whole answer" } else { "cannot be reached" };
        NoAnswer { cause: format!("host {} {what}: {}", self.host, chain(error)), may_have_arrived }
    }
}

fn read_base(host: &HttpHost) -> Result<Url, String> {
    let (text, whose) = match std::env::var(host.url_env()) {
        Ok(text) => (text, host.url_env()),
        Err(_) => (host.base_url.clone(), format!("host {}: base_url", host.name)),
    };
    http_call::parse_base_url(&text).map_err(|fault| format!("{whose} {fault}"))
}

fn read_ui(host: &HttpHost) -> Result<Option<Url>, String> {
    let (text, whose) = match (std::env::var(host.ui_url_env()), &host.ui_url) {
        (Ok(text), _) => (text, host.ui_url_env()),
        (Err(_), Some(url)) => (url.clone(), format!("host {}: ui_url", host.name)),
        (Err(_), None) => return Ok(None),
    };
    http_call::parse_base_url(&text).map(Some).map_err(|fault| format!("{whose} {fault}"))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
