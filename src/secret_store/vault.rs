//! HashiCorp Vault and OpenBao: secrets of the KV version 2 engine, read with a login by AppRole or
//! with a token.
//!
//! The login is kept for the duration that the server granted, renewed after two thirds of it, and
//! repeated when it cannot be renewed or the server no longer knows it. Its own secrets (secret id,
//! token) are read again each time they are needed, so they can be replaced while the program runs.
//! The API is described at developer.hashicorp.com/vault/api-docs and in OpenBao's
//! `website/content/api-docs`.

use crate::domain::cluster::lease::Uptime;
use crate::outbound::{self, ClientTlsFiles, ReloadedClient, TransportProtection, chain, is_here};
use crate::secret_store::secret_file::{SecretFile, resolve_path};
use crate::secret_store::vault_answer::{
    KvSecret, TokenState, VaultAnswer, VaultLogin, VaultVerdict,
};
use crate::secret_store::{ReadSecret, SecretStoreError};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{ClientBuilder, Method};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

/// Settings of one server.
#[derive(Clone, Debug)]
pub struct VaultOptions {
    /// `https://vault.bank.example:8200`.
    pub address: Url,
    /// The namespace; `None`: the root.
    pub namespace: Option<String>,
    /// The mount path of the KV version 2 engine.
    pub mount: String,
    pub auth: VaultAuth,
    /// A PEM file with authorities for the server's certificate; `None`: those of the machine.
    pub tls_ca: Option<PathBuf>,
    /// Time limit of one answer.
    pub timeout: Duration,
}

/// How to log in.
#[derive(Clone, Debug)]
pub enum VaultAuth {
    /// With a role id and a secret id.
    AppRole {
        /// The mount path of this method.
        mount: String,
        /// The role id.
        role_id: CredentialSource,
        /// The secret id.
        secret_id: CredentialSource,
    },
    /// With a token issued elsewhere, such as by Vault Agent.
    Token(CredentialSource),
}

/// The place of a credential.
#[derive(Clone, Debug)]
pub enum CredentialSource {
    /// In the settings; for credentials that are not secret.
    Text(String),
    /// In the first line of a file.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

impl CredentialSource {
    async fn read_credential(&self, what: &str) -> Result<SecretString, String> {
        let text = match self {
            Self::Text(text) => SecretString::from(text.as_str()),
            Self::File(path) => {
                let file = SecretFile::read_aside(path).await;
                file.map_err(|error| format!("{what}: {error}"))?.first_line()
            }
            Self::Variable(name) => match std::env::var(name) {
                Ok(text) => text.into(),
                Err(_) => {
                    return Err(format!(
                        "{what}: the environment variable {name} is not set; set it, or name a file in {what}_file"
                    ));
                }
            },
        };
        let text: SecretString = text.expose_secret().trim().into();
        match text.expose_secret().is_empty() {
            true => Err(format!("{what} is empty")),
            false => Ok(text),
        }
    }
}

/// Maximum number of concurrent requests to one server: a thousand jobs that begin together must
/// not send a thousand requests at once.
const REQUESTS_AT_ONCE: usize = 16;
/// Maximum size of an answer in bytes.
const ANSWER_MAX: usize = 1 << 20;
/// Maximum number of fields named in a message.
const FIELDS_SHOWN: usize = 20;

/// A login that is valid for a time.
#[derive(Clone)]
struct VaultSession {
    token: SecretString,
    /// The duration first granted, in milliseconds; 0 means unlimited.
    lease_ms: i64,
    renewable: bool,
    /// When it should be renewed; `None`: never.
    renew_at: Option<Uptime>,
    /// When it expires; `None`: never.
    ends_at: Option<Uptime>,
}

impl VaultSession {
    fn new(token: SecretString, lease_sec: i64, renewable: bool, now: Uptime) -> Self {
        let lease_ms = lease_sec.max(0).saturating_mul(1_000);
        let mut session = Self { token, lease_ms, renewable, renew_at: None, ends_at: None };
        session.extend(lease_ms, now);
        session
    }

    fn extend(&mut self, lease_ms: i64, now: Uptime) {
        let is_endless = self.lease_ms == 0;
        self.renew_at = (!is_endless).then(|| now.plus_ms(lease_ms / 3 * 2));
        self.ends_at = (!is_endless).then(|| now.plus_ms(lease_ms));
    }

    fn holds(&self, now: Uptime) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }

    fn is_due(&self, now: Uptime) -> bool {
        self.renew_at.is_some_and(|at| at <= now)
    }
}

/// Whether a token was created for the request that uses it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenAge {
    Fresh,
    Kept,
}

/// A token for one request.
struct RequestToken {
    text: SecretString,
    age: TokenAge,
}

/// One server, with its login.
pub struct VaultClient {
    store: String,
    options: VaultOptions,
    client: ReloadedClient,
    session: tokio::sync::Mutex<Option<VaultSession>>,
    turns: Semaphore,
}

impl std::fmt::Debug for VaultClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VaultClient").field("store", &self.store).finish_non_exhaustive()
    }
}

impl VaultClient {
    pub(super) fn new(store: String, options: VaultOptions) -> Self {
        let turns = Semaphore::new(REQUESTS_AT_ONCE);
        let files = ClientTlsFiles::of_authorities(
            "tls_ca",
            options.tls_ca.as_deref().unwrap_or(Path::new("")),
        );
        let timeout = options.timeout;
        let limited =
            move |builder: ClientBuilder| builder.timeout(timeout).connect_timeout(timeout);
        let client =
            ReloadedClient::for_way(TransportProtection::for_url(&options.address), files, limited);
        Self { store, options, client, session: Default::default(), turns }
    }

    /// What an attacker between this process and the server could do.
    pub(super) fn weakness(&self) -> Option<String> {
        let url = &self.options.address;
        (url.scheme() == "http" && !is_here(url)).then(|| {
            format!(
                "secret store {} is asked in clear (allow_http = true): one on the way could read every secret",
                self.store
            )
        })
    }

    /// Reads `PATH#FIELD`. A login that the server no longer knows is repeated once.
    pub(super) async fn read_secret(
        &self,
        key: &str,
        now: Uptime,
    ) -> Result<ReadSecret, SecretStoreError> {
        let (path, field) = key.split_once('#').unwrap_or((key, "value"));
        let _turn = self.turns.acquire().await;
        let mut token = self.token(now).await?;
        let mut answer = self.ask_secret(path, &token.text).await?;
        let is_denied = answer.verdict() == VaultVerdict::Denied;
        if is_denied && token.age == TokenAge::Kept && !self.is_known(&token.text).await {
            self.forget(&token.text).await;
            token = self.token(now).await?;
            answer = self.ask_secret(path, &token.text).await?;
        }
        self.secret_of(&answer, path, field)
    }

    async fn ask_secret(
        &self,
        path: &str,
        token: &SecretString,
    ) -> Result<VaultAnswer, SecretStoreError> {
        let segments: Vec<&str> = self.options.mount.split('/').collect();
        let segments: Vec<&str> =
            segments.into_iter().chain(["data"]).chain(path.split('/')).collect();
        self.send_request(Method::GET, &segments, Some(token), None).await
    }

    fn secret_of(
        &self,
        answer: &VaultAnswer,
        path: &str,
        field: &str,
    ) -> Result<ReadSecret, SecretStoreError> {
        let mount = &self.options.mount;
        let (place, words) = (format!("{mount}/data/{path}"), answer.words());
        match answer.verdict() {
            VaultVerdict::Well | VaultVerdict::Absent => {}
            VaultVerdict::Denied => {
                return Err(self.unusable(format!(
                    "its login may not read {place} ({words}); give its policy: path \"{place}\" {{ capabilities = \
                     [\"read\"] }}"
                )));
            }
            VaultVerdict::Refused => {
                return Err(self.unusable(format!("it refused to read {place} ({words})")));
            }
            VaultVerdict::Away => return Err(self.away_by_answer(answer)),
        }
        let Some(KvSecret { data, metadata }) = answer.secret() else {
            return Err(self.unusable(format!(
                "it has nothing at {place} ({words}); check the path and that {mount} is mounted as KV version 2"
            )));
        };
        let version = metadata.as_ref().map_or(0, |found| found.version);
        let Some(data) = data else {
            let how = match metadata {
                Some(found) if found.destroyed => "destroyed".to_owned(),
                Some(found) => format!("deleted since {}", found.deletion_time),
                None => "empty".to_owned(),
            };
            return Err(self
                .unusable(format!("version {version} of {place} is {how}; write it anew there")));
        };
        let value = match data.get(field) {
            Some(Value::String(text)) => SecretString::from(text.as_str()),
            Some(Value::Number(number)) => SecretString::from(number.to_string()),
            Some(_) => {
                return Err(
                    self.unusable(format!("field {field} of {place} is neither text nor a number"))
                );
            }
            None => {
                let names: Vec<&str> = data.keys().take(FIELDS_SHOWN).map(String::as_str).collect();
                return Err(self.unusable(format!(
                    "{place} has no field {field}; its fields are: {}",
                    names.join(", ")
                )));
            }
        };
        Ok(ReadSecret { value, remark: Some(format!("version {version}")), warning: None })
    }

    /// Renews the login when it is due; a token issued elsewhere even before anything is read with
    /// it.
    pub(super) async fn renew_login(&self, now: Uptime) -> Result<(), SecretStoreError> {
        let has_session = self.session.lock().await.is_some();
        let by_token = matches!(self.options.auth, VaultAuth::Token(_));
        if has_session || by_token {
            self.token(now).await?;
        }
        Ok(())
    }

    /// A valid token: the cached one, renewed when it is due, or that of a new login.
    async fn token(&self, now: Uptime) -> Result<RequestToken, SecretStoreError> {
        let mut kept = self.session.lock().await;
        if let VaultAuth::Token(source) = &self.options.auth {
            let given =
                source.read_credential("token").await.map_err(|error| self.unusable(error))?;
            let same = |s: &VaultSession| s.token.expose_secret() == given.expose_secret();
            if !kept.as_ref().is_some_and(same) {
                *kept = Some(self.adopt(given.clone(), now).await?);
                return Ok(RequestToken { text: given, age: TokenAge::Fresh });
            }
        }
        if let Some(session) = kept.as_mut().filter(|session| session.holds(now)) {
            if session.is_due(now) {
                self.renew(session, now).await;
            }
            // A failed renewal leaves the old login, which may still be valid.
            if session.holds(now) && !session.is_due(now) {
                return Ok(RequestToken { text: session.token.clone(), age: TokenAge::Kept });
            }
        }
        let left = kept.as_ref().filter(|session| session.holds(now)).cloned();
        match (self.log_in(now).await, left) {
            (Ok(session), _) => {
                let text = session.token.clone();
                *kept = Some(session);
                Ok(RequestToken { text, age: TokenAge::Fresh })
            }
            // The rest of the old login is better than nothing.
            (Err(SecretStoreError::Away(_)), Some(left)) => {
                Ok(RequestToken { text: left.token, age: TokenAge::Kept })
            }
            (Err(error), _) => {
                *kept = None;
                Err(error)
            }
        }
    }

    /// Whether the server still knows a token. A path that the policy denies is no reason for a new
    /// login: the server stores each login until it expires.
    async fn is_known(&self, token: &SecretString) -> bool {
        let asked =
            self.send_request(Method::GET, &["auth", "token", "lookup-self"], Some(token), None);
        asked.await.is_ok_and(|answer| answer.verdict() == VaultVerdict::Well)
    }

    /// Drops a login that the server no longer knows, unless another request has created a new one
    /// meanwhile.
    async fn forget(&self, token: &SecretString) {
        let mut kept = self.session.lock().await;
        let is_it = |s: &VaultSession| s.token.expose_secret() == token.expose_secret();
        if kept.as_ref().is_some_and(is_it) {
            *kept = None;
        }
    }

    /// Renews a login. One that expires for good, or for which the server grants ever less, is
    /// repeated by the next request.
    async fn renew(&self, session: &mut VaultSession, now: Uptime) {
        if !session.renewable {
            return;
        }
        let segments = ["auth", "token", "renew-self"];
        let asked =
            self.send_request(Method::POST, &segments, Some(&session.token), Some(json!({}))).await;
        let login =
            asked.ok().filter(|a| a.verdict() == VaultVerdict::Well).and_then(|a| a.login());
        let Some(VaultLogin { lease_duration, .. }) = login else { return };
        let lease_ms = lease_duration.max(0).saturating_mul(1_000);
        let by_role = matches!(self.options.auth, VaultAuth::AppRole { .. });
        if by_role && lease_ms < session.lease_ms / 3 {
            return;
        }
        session.extend(lease_ms, now);
    }

    async fn log_in(&self, now: Uptime) -> Result<VaultSession, SecretStoreError> {
        let (mount, role_id, secret_id) = match &self.options.auth {
            VaultAuth::AppRole { mount, role_id, secret_id } => (mount, role_id, secret_id),
            VaultAuth::Token(source) => {
                let token =
                    source.read_credential("token").await.map_err(|error| self.unusable(error))?;
                return self.adopt(token, now).await;
            }
        };
        let role =
            role_id.read_credential("role_id").await.map_err(|error| self.unusable(error))?;
        let secret =
            secret_id.read_credential("secret_id").await.map_err(|error| self.unusable(error))?;
        let body = json!({"role_id": role.expose_secret(), "secret_id": secret.expose_secret()});
        let segments: Vec<&str> =
            ["auth"].into_iter().chain(mount.split('/')).chain(["login"]).collect();
        let answer = self.send_request(Method::POST, &segments, None, Some(body)).await?;
        match (answer.verdict(), answer.login()) {
            (VaultVerdict::Well, Some(VaultLogin { client_token, lease_duration, renewable })) => {
                Ok(VaultSession::new(client_token, lease_duration, renewable, now))
            }
            (VaultVerdict::Away, _) => Err(self.away_by_answer(&answer)),
            (_, _) => Err(self.unusable(format!(
                "it refused the login by AppRole ({}); check role_id, the secret id and auth_mount",
                answer.words()
            ))),
        }
    }

    /// Takes over a token issued elsewhere. One without permission to look itself up is used as it
    /// is.
    async fn adopt(
        &self,
        token: SecretString,
        now: Uptime,
    ) -> Result<VaultSession, SecretStoreError> {
        let segments = ["auth", "token", "lookup-self"];
        let answer = self.send_request(Method::GET, &segments, Some(&token), None).await?;
        if answer.verdict() == VaultVerdict::Away {
            return Err(self.away_by_answer(&answer));
        }
        let unknown = TokenState { ttl: 0, renewable: false };
        let TokenState { ttl, renewable } = answer.token_state().unwrap_or(unknown);
        Ok(VaultSession::new(token, ttl, renewable, now))
    }

    async fn send_request(
        &self,
        method: Method,
        segments: &[&str],
        token: Option<&SecretString>,
        body: Option<Value>,
    ) -> Result<VaultAnswer, SecretStoreError> {
        let client = self.client.get().map_err(|error| self.unusable(error))?;
        let mut url = self.options.address.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("v1").extend(segments);
        }
        let headers = self.headers(token).map_err(|error| self.unusable(error))?;
        let mut request = client.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let mut response = request.send().await.map_err(|error| self.request_lost(error))?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.request_lost(error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ANSWER_MAX {
                return Err(self.unusable(format!("its answer has more than {ANSWER_MAX} bytes")));
            }
        }
        Ok(VaultAnswer { status, body: bytes })
    }

    fn headers(&self, token: Option<&SecretString>) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        // An agent may require it: no page in a browser can send it.
        headers
            .insert(HeaderName::from_static("x-vault-request"), HeaderValue::from_static("true"));
        if let Some(namespace) = &self.options.namespace {
            let value = HeaderValue::from_str(namespace);
            let value = value.map_err(|_| "the namespace cannot be the value of a header")?;
            headers.insert(HeaderName::from_static("x-vault-namespace"), value);
        }
        if let Some(token) = token {
            let value = HeaderValue::from_str(token.expose_secret());
            let mut value =
                value.map_err(|_| "the token holds characters that no token may have")?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static("x-vault-token"), value);
        }
        Ok(headers)
    }

    fn whose(&self) -> String {
        format!(
            "secret store {} at {}",
            self.store,
            self.options.address.as_str().trim_end_matches('/')
        )
    }

    fn unusable(&self, why: impl std::fmt::Display) -> SecretStoreError {
        SecretStoreError::Unusable(format!("{}: {why}", self.whose()))
    }

    fn away_by_answer(&self, answer: &VaultAnswer) -> SecretStoreError {
        let words = answer.words();
        let hint = match answer.status {
            300..=399 => {
                "; it is a standby or another address is meant: redirects are not followed"
            }
            503 => "; unseal it, or wait until it has a leader",
            _ => "",
        };
        SecretStoreError::Away(format!("{}: it cannot answer now ({words}){hint}", self.whose()))
    }

    /// A request without an answer. A refused certificate will be refused by a retry too.
    fn request_lost(&self, error: reqwest::Error) -> SecretStoreError {
        let is_refused = outbound::is_certificate_fault(&error);
        let what = if error.is_connect() { "cannot connect" } else { "no answer" };
        let words = format!("{}: {what}: {}", self.whose(), chain(error));
        match is_refused {
            true => SecretStoreError::Unusable(format!("{words}; name its authority in tls_ca")),
            false => SecretStoreError::Away(words),
        }
    }

    /// The files with the credentials of the login.
    pub fn credential_files(options: &VaultOptions) -> Vec<PathBuf> {
        let sources = match &options.auth {
            VaultAuth::AppRole { role_id, secret_id, .. } => vec![role_id, secret_id],
            VaultAuth::Token(token) => vec![token],
        };
        let file = |source: &CredentialSource| match source {
            CredentialSource::File(path) => resolve_path(path).ok(),
            CredentialSource::Text(_) | CredentialSource::Variable(_) => None,
        };
        sources.into_iter().filter_map(file).collect()
    }
}
