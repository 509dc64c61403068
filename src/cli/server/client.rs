//! The HTTP client of a server's API: with a token and verified TLS, and without redirects.

use crate::cli::server::change_requests::ChangeWaits;
use crate::cli::{BadInput, out};
use crate::domain::text::lang::Lang;
use crate::outbound::{
    self, ClientTlsFiles, NamedFile, TransportProtection, chain, client_with, is_here,
};
use anyhow::{Context as _, Result, anyhow};
use reqwest::header::{ACCEPT_LANGUAGE, AUTHORIZATION, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::error::Error;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// The environment variable with the token, if no file is given.
const TOKEN: &str = "PROCESSION_TOKEN";
/// The environment variable that allows plain HTTP over a network.
const PLAIN: &str = "PROCESSION_SERVER_PLAIN";
/// Number of attempts of a change without an answer; its idempotency key makes that safe.
const TRIES: u32 = 3;
/// Time limit of an answer: pictures of large batches, definitions of 10,000 jobs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server, with the client to call it.
pub(super) struct ServerClient {
    base: Url,
    token: SecretString,
    client: Client,
    /// The language of the output.
    pub(super) lang: Lang,
}

/// Files for the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerFiles<'a> {
    /// The file with the token; `None`: the environment.
    pub(super) token: Option<&'a Path>,
    /// The file with certificate authorities; `None`: those of the machine.
    pub(super) authorities: Option<&'a Path>,
}

/// A refusal of the server: its kind, its message, and all other members.
#[derive(Debug)]
pub(super) struct ServerRefusal {
    pub(super) status: u16,
    pub(super) document: Value,
}

impl std::fmt::Display for ServerRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message =
            self.document["detail"].as_str().unwrap_or("the server refused and did not say why");
        write!(f, "{message}")?;
        match self.status {
            401 => write!(f, " (the token comes from {TOKEN} or --token-file)"),
            _ => Ok(()),
        }
    }
}

impl Error for ServerRefusal {}

impl ServerRefusal {
    /// Whether the object does not exist.
    pub(super) fn is_missing(&self) -> bool {
        self.status == 404
    }

    /// The end of its type: `moved`.
    pub(super) fn kind(&self) -> &str {
        self.document["type"].as_str().and_then(|t| t.rsplit(':').next()).unwrap_or_default()
    }
}

impl ServerClient {
    /// The client of the server at this address.
    pub(super) fn new(address: &str, files: ServerFiles<'_>, lang: Lang) -> Result<Self> {
        let bad = |message: String| {
            anyhow::Error::from(BadInput(format!("--server {address}: {message}")))
        };
        let mut base = Url::parse(address.trim()).map_err(|error| bad(error.to_string()))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(bad(format!("no user and no password here; a token in {TOKEN}")));
        }
        match base.scheme() {
            "https" => {}
            "http" if is_here(&base) => {}
            "http" if std::env::var(PLAIN).is_ok_and(|word| word == "1") => out::eprint_line(lang.select(
                "warning: PROCESSION_SERVER_PLAIN=1: the token and all answers pass the network in plain \
                 text; whoever listens may do what you may",
                "警告：PROCESSION_SERVER_PLAIN=1:令牌和全部内容以明文经过网络，窃听者将拥有与您相同的权限",
            )),
            "http" => {
                return Err(bad(format!(
                    "use https; http only to this machine, or with {PLAIN}=1 where everybody on the way \
                     may read the token"
                )));
            }
            other => return Err(bad(format!("write https://…, and not {other}"))),
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let token = token(files.token)?;
        let client = client(&base, files.authorities).map_err(BadInput)?;
        Ok(Self { base, token, client, lang })
    }

    fn api_url(&self, path: &[&str], query: &[(&str, String)]) -> Result<Url> {
        let mut url = self.base.join("api/v1").context("the address of the API")?;
        url.path_segments_mut().map_err(|()| anyhow!("the address has no path"))?.extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// Sends a request; all attempts of a change have the same key.
    async fn send_request(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<Response> {
        let key = uuid::Uuid::new_v4().to_string();
        let mut tries = 1;
        loop {
            let bearer = format!("Bearer {}", self.token.expose_secret());
            let mut bearer = HeaderValue::from_str(&bearer)
                .map_err(|_| BadInput("the token is not one line of ASCII".to_owned()))?;
            bearer.set_sensitive(true);
            let mut request = self.client.request(method.clone(), url.clone());
            request = request.header(AUTHORIZATION, bearer);
            request = request.header(ACCEPT_LANGUAGE, self.lang.as_str());
            if let Some(body) = body {
                let text = serde_json::to_vec(body)?;
                request = request.header("content-type", "application/json").body(text);
                request = request.header("idempotency-key", &key);
            }
            let lost = match request.send().await {
                Ok(response) => return error_for_status(response).await,
                Err(error) => error,
            };
            if tries >= TRIES {
                let at = self.base.origin().ascii_serialization();
                let words = chain(lost);
                let fix = match words.contains("UnknownIssuer") {
                    true => "; name the file of its authority with --tls-ca",
                    false => "",
                };
                return Err(anyhow!("no answer from the server {at}: {words}{fix}"));
            }
            tries += 1;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Gets a document.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Value> {
        let response = self.send_request(Method::GET, self.api_url(path, query)?, None).await?;
        read_json(response).await
    }

    /// Gets an answer unchanged.
    pub(super) async fn get_text(&self, path: &[&str], query: &[(&str, String)]) -> Result<String> {
        let response = self.send_request(Method::GET, self.api_url(path, query)?, None).await?;
        response.text().await.context("read the answer")
    }

    /// Sends a change.
    pub(super) async fn change(
        &self,
        method: Method,
        path: &[&str],
        body: &Value,
    ) -> Result<Value> {
        let response = self.send_request(method, self.api_url(path, &[])?, Some(body)).await?;
        let waits = response.status() == StatusCode::ACCEPTED;
        let document = read_json(response).await?;
        if waits { Err(ChangeWaits(document).into()) } else { Ok(document) }
    }

    /// Sends a change by POST.
    pub(super) async fn post_json(&self, path: &[&str], body: &Value) -> Result<Value> {
        self.change(Method::POST, path, body).await
    }

    /// The items of a list, page by page, at most `most`.
    pub(super) async fn list_items(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        most: usize,
    ) -> Result<Vec<Value>> {
        let (mut items, mut next) = (Vec::new(), None::<String>);
        loop {
            let left = (most - items.len()).clamp(1, 500);
            let mut query = query.to_vec();
            query.push(("limit", left.to_string()));
            query.extend(next.take().map(|next| ("cursor", next)));
            let mut page = self.get(path, &query).await?;
            match page["items"].take() {
                Value::Array(some) => items.extend(some),
                _ => return Err(anyhow!("the server answered no list; is it another version?")),
            }
            next = page["next"].as_str().map(str::to_owned);
            if next.is_none() || items.len() >= most {
                return Ok(items);
            }
        }
    }
}

/// An answer that is not a refusal.
async fn error_for_status(response: Response) -> Result<Response> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.text().await.unwrap_or_default();
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let refused = ServerRefusal { status: status.as_u16(), document };
    match refused.status {
        400..=499 => Err(refused.into()),
        300..=399 => Err(anyhow!("the server leads elsewhere ({status}), which is not followed")),
        _ => Err(anyhow!("the server failed ({status}): {refused}")),
    }
}

async fn read_json(response: Response) -> Result<Value> {
    let bytes = response.bytes().await.context("read the answer")?;
    serde_json::from_slice(&bytes).context("the server answered no JSON; is it Procession?")
}

/// The token: from a file, else from the environment; never from an argument, which other users can
/// read.
fn token(file: Option<&Path>) -> Result<SecretString> {
    let text = match file {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| BadInput(format!("--token-file {}: {error}", path.display())))?,
        None => std::env::var(TOKEN).map_err(|_| {
            let message = "--server needs a token: make one in the console or with procession user token, and \
                        set PROCESSION_TOKEN, or name its file with --token-file";
            BadInput(message.to_owned())
        })?,
    };
    Ok(SecretString::from(text.trim()))
}

fn client(url: &Url, authorities: Option<&Path>) -> Result<Client, String> {
    let authorities = authorities.and_then(|path| NamedFile::from_setting("--tls-ca", path));
    let files = ClientTlsFiles { authorities, identity: None };
    let client = client_with(TransportProtection::for_url(url), &files)?
        .connect_timeout(Duration::from_secs(10));
    outbound::built(client.timeout(PATIENCE))
}
