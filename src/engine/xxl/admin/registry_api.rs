//! The endpoint where executors register and report how their runs ended.
//!
//! A message is durable before it is answered. All waiting messages are written in one transaction;
//! none is delayed to be grouped. An executor without an answer sends the message again, which
//! changes nothing.

use crate::domain::access::network::Network;
use crate::domain::cluster::lease::Uptime;
use crate::domain::executor::address::{
    BadAddress, ExecutorUrl, HostPattern, name_allowed, own_or_allowed,
};
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::xxl::xxl_run::AppName;
use crate::engine::clock::Clock;
use crate::engine::secrets::executor_token;
use crate::engine::xxl::admin::write_batch::Batcher;
use crate::engine::xxl::rejected_access::{self, Knock};
use crate::store::audit::Operator;
use crate::store::executor_registry::There;
use crate::store::executor_run::ReportedRunEnd;
use crate::store::{Db, executor_group};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long cached tokens are trusted, in milliseconds. Writes check them again.
const BELIEVED_MS: i64 = 3_000;
/// How long an unknown token is remembered as unknown, in milliseconds.
const UNKNOWN_MS: i64 = 500;
/// Time limit of a name lookup.
const LOOKUP: Duration = Duration::from_secs(1);

/// What a token proves.
#[derive(Clone, Debug)]
pub struct VerifiedToken {
    /// The digest by which the token is found.
    pub(super) digest: String,
    /// The groups that share it, or the one that was named.
    apps: BTreeSet<AppName>,
    /// Whether an app name was sent, as 3.5 does.
    shows_app_name: bool,
}

/// Why a message is refused; the text is the answer to the executor. Sending it again does not
/// change the result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminApiRefusal {
    /// No token, an unknown one, or not that of the named group.
    #[error("The access token is wrong.")]
    Token,
    /// No client certificate, where executors must present one.
    #[error(
        "executors have to show a certificate here (http.tls_client_ca); ask the administrator of the server for one"
    )]
    Certificate,
    /// Not POST.
    #[error("invalid request, HttpMethod not support: only POST is")]
    Method,
    /// No such endpoint.
    #[error(
        "invalid request, uri-mapping not found: registry, registryRemove and callback are there"
    )]
    Path,
    /// The body cannot be parsed.
    #[error("the request cannot be read: {0}")]
    Unreadable(String),
    /// The body is too long.
    #[error("the request broke off, or has more than {0} bytes")]
    TooLong(usize),
    /// The body arrives too slowly.
    #[error("the request took too long to come")]
    TooSlow,
    /// Too many entries at once.
    #[error("{0} ends of runs at once; send {1} at most")]
    TooMany(usize, usize),
    /// The group does not exist, or has another token.
    #[error(
        "there is no executor group {0} with this token; an administrator adds it: procession \
         executor-group add"
    )]
    Group(String),
    /// The address that the executor sent is refused.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// The run belongs to another group.
    #[error("run {0} is not one of this executor's")]
    OtherRun(i64),
    /// No executor was sent this run.
    #[error("run {0} has not been asked for")]
    NotAsked(i64),
}

impl AdminApiRefusal {
    /// The value in the audit log.
    pub fn audit_label(&self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Certificate => "certificate",
            Self::Method => "method",
            Self::Path => "path",
            Self::Unreadable(_) => "unreadable",
            Self::TooLong(_) => "too-long",
            Self::TooSlow => "too-slow",
            Self::TooMany(..) => "too-many",
            Self::Group(_) => "group",
            Self::Address(_) => "address",
            Self::OtherRun(_) => "other-run",
            Self::NotAsked(_) => "not-asked",
        }
    }
}

/// A message of an executor.
#[derive(Clone, Debug)]
pub(super) enum ExecutorMessage {
    /// A registration.
    There(There),
    /// A deregistration.
    Gone(AppName, String),
    /// Ends of runs.
    Ends(Vec<ReportedRunEnd>, BTreeSet<AppName>),
}

/// The API for executors.
pub struct ExecutorApi {
    db: Db,
    clock: Clock,
    networks: Vec<Network>,
    /// Ports of this process, which cannot be an executor's.
    own_ports: Vec<u16>,
    batcher: Arc<Batcher>,
    known: Mutex<Option<(Uptime, GroupsByToken)>>,
    refused: rejected_access::RejectedAccesses,
}

/// The groups of each token, by its digest.
type GroupsByToken = Arc<BTreeMap<String, BTreeSet<AppName>>>;

impl ExecutorApi {
    /// An API on this database; executors may also have addresses in these networks.
    pub fn new(db: Db, clock: Clock, networks: Vec<Network>) -> Self {
        let batcher = Arc::new(Batcher::new(db.clone(), clock.clone()));
        let refused = rejected_access::RejectedAccesses::new(db.clone(), clock.clone());
        let own_ports = Vec::new();
        Self { db, clock, networks, own_ports, batcher, known: Mutex::default(), refused }
    }

    /// Excludes these ports of this machine as executor addresses, because this process listens on
    /// them.
    #[must_use]
    pub fn with_own_ports(self, own_ports: Vec<u16>) -> Self {
        Self { own_ports, ..self }
    }

    /// Refuses an address that leads back to this process.
    fn refuse_own(&self, url: &ExecutorUrl, address: IpAddr) -> Result<(), BadAddress> {
        refuse_own_port(url, address, &self.own_ports)
    }

    /// Checks a token and an app name. An error is a database error.
    pub async fn admit(
        &self,
        token: &[u8],
        name: Option<&[u8]>,
    ) -> Result<Result<VerifiedToken, AdminApiRefusal>> {
        if token.is_empty() {
            return Ok(Err(AdminApiRefusal::Token));
        }
        let digest = executor_token::digest(token);
        let tokens = self.tokens(&digest).await?;
        let Some(apps) = tokens.get(&digest) else { return Ok(Err(AdminApiRefusal::Token)) };
        let shown = |app: &&AppName| name.is_none_or(|name| name == app.as_str().as_bytes());
        let apps: BTreeSet<AppName> = apps.iter().filter(shown).cloned().collect();
        Ok(match apps.is_empty() {
            true => Err(AdminApiRefusal::Token),
            false => Ok(VerifiedToken { digest, apps, shows_app_name: name.is_some() }),
        })
    }

    /// Records a refusal, once a minute for each reason; `app` only when a token of that group was
    /// sent.
    pub async fn note_refused(
        &self,
        refused: &AdminApiRefusal,
        peer: IpAddr,
        pass: Option<&VerifiedToken>,
    ) {
        let names = pass.map(|pass| {
            let names: Vec<&str> = pass.apps.iter().map(AppName::as_str).collect();
            format!("executor {}", names.join(" ")).chars().take(200).collect()
        });
        let actor = names.unwrap_or_else(|| rejected_access::STRANGER.to_owned());
        let by = Operator::new(actor, peer.to_canonical().to_string());
        let detail = json!({ "message": refused.to_string() });
        self.refused.note_refusal(refused.audit_label(), Knock { by, detail }).await;
    }

    /// Registers an executor.
    pub async fn register(
        &self,
        pass: &VerifiedToken,
        key: &str,
        value: &str,
        peer: IpAddr,
    ) -> Result<Result<(), AdminApiRefusal>> {
        let (app, url) = match self.place(pass, key, value, peer).await {
            Ok(place) => place,
            Err(refused) => return Ok(Err(refused)),
        };
        let there =
            There { app_name: app, address: url.into(), shows_app_name: pass.shows_app_name };
        self.batcher.write(pass, ExecutorMessage::There(there)).await
    }

    /// Deregisters an executor.
    pub async fn remove(
        &self,
        pass: &VerifiedToken,
        key: &str,
        value: &str,
        peer: IpAddr,
    ) -> Result<Result<(), AdminApiRefusal>> {
        match self.place(pass, key, value, peer).await {
            Ok((app, url)) => {
                self.batcher.write(pass, ExecutorMessage::Gone(app, url.into())).await
            }
            Err(refused) => Ok(Err(refused)),
        }
    }

    /// Stores ends of runs. One that is known already, or that belongs to no run, changes nothing.
    pub async fn callback(
        &self,
        pass: &VerifiedToken,
        ends: Vec<ReportedRunEnd>,
    ) -> Result<Result<(), AdminApiRefusal>> {
        let mut seen = BTreeSet::new();
        let mut ends: Vec<ReportedRunEnd> = ends
            .into_iter()
            // 0 means that nothing is known of a run yet. Of two ends of one run the first counts.
            .filter(|end| end.code != 0 && seen.insert(end.log_id))
            .map(|end| ReportedRunEnd {
                msg: end.msg.map(|words| storable(words.as_bytes(), MESSAGE_MAX)),
                ..end
            })
            .collect();
        // Sorted in every process, to avoid deadlocks.
        ends.sort_by_key(|end| end.log_id);
        self.batcher.write(pass, ExecutorMessage::Ends(ends, pass.apps.clone())).await
    }

    /// Forgets cached tokens after a group or a token has changed in this process.
    pub fn forget_tokens(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Records refusals that were held back for a minute, until `stop`.
    pub async fn keep_refused(&self, stop: &CancellationToken) {
        self.refused.record_held_back(stop).await;
    }

    /// The same, once.
    pub async fn say_refused(&self) {
        self.refused.say_due().await;
    }

    /// Waits for writes under way, and records the remaining refusals.
    pub async fn close(&self) {
        self.batcher.close().await;
        self.refused.close().await;
    }

    /// The groups of every token; read again when the cache is old, or when it lacks this token.
    async fn tokens(&self, digest: &str) -> Result<GroupsByToken> {
        let now = self.clock.uptime();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, tokens)) = known {
            let most = if tokens.contains_key(digest) { BELIEVED_MS } else { UNKNOWN_MS };
            if now.since(at) < most {
                return Ok(tokens);
            }
        }
        let mut tx = self.db.begin_read().await.context("look for tokens of executors")?;
        let tokens = Arc::new(executor_group::tokens(&mut tx).await?);
        drop(tx);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, tokens.clone()));
        Ok(tokens)
    }

    /// The group and the address that an executor sent, if it is allowed.
    async fn place(
        &self,
        pass: &VerifiedToken,
        key: &str,
        value: &str,
        peer: IpAddr,
    ) -> Result<(AppName, ExecutorUrl), AdminApiRefusal> {
        let app = pass.apps.iter().find(|app| app.as_str() == key).cloned();
        let app = app.ok_or_else(|| AdminApiRefusal::Group(storable(key.as_bytes(), 64)))?;
        let mut url = ExecutorUrl::parse(value)?;
        match url.place() {
            HostPattern::At(address) => {
                own_or_allowed(address, peer, &self.networks)?;
                self.refuse_own(&url, address)?;
            }
            HostPattern::Named(name, port) => {
                let found = match self.networks.is_empty() {
                    // No address it might resolve to is allowed, so no lookup is made.
                    true => return Err(BadAddress::NoNames(name).into()),
                    false => look_up(&name, port).await,
                };
                name_allowed(&name, &found, peer, &self.networks)?;
                found.iter().try_for_each(|address| self.refuse_own(&url, *address))?;
                let found: BTreeSet<IpAddr> = found.iter().map(IpAddr::to_canonical).collect();
                let peer = peer.to_canonical();
                let at = found.get(&peer).or(found.first()).copied().unwrap_or(peer);
                url = url.found_at(at);
            }
        }
        Ok((app, url))
    }
}

/// Refuses a URL at an address of this machine whose port is one of these. A socket can be bound
/// only to an address of this machine, which is the test.
pub fn refuse_own_port(
    url: &ExecutorUrl,
    address: IpAddr,
    own_ports: &[u16],
) -> Result<(), BadAddress> {
    let port = url.port();
    match own_ports.contains(&port) && is_of_this_machine(address) {
        true => Err(BadAddress::OurOwn(port)),
        false => Ok(()),
    }
}

fn is_of_this_machine(address: IpAddr) -> bool {
    address.is_loopback() || std::net::UdpSocket::bind((address, 0)).is_ok()
}

/// The addresses of a name; empty when the lookup takes too long.
async fn look_up(name: &str, port: u16) -> Vec<IpAddr> {
    match tokio::time::timeout(LOOKUP, tokio::net::lookup_host((name, port))).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}
