//! Administrators' actions on what belongs to no group: processes, secrets, data sources,
//! retention.

use crate::api::authorize;
use crate::api::batch_control::ReasonBody;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::group_access::requested_access;
use crate::api::path_params::NamePath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::secret_route::AnswerWithCookies;
use crate::app::preflight::check_jobs;
use crate::app::sources::LedgerState;
use crate::domain::access::Permission;
use crate::domain::job::JobDef;
use crate::domain::source::transport::SourceTransport;
use crate::domain::source::tx_class::TxClass;
use crate::engine::attempt::secret_reader::usable;
use crate::engine::retention::{self, ByTable, RemovalOrder};
use crate::engine::secrets::encryption::KeyRing;
use crate::store::node::{NodeMember, Stay};
use crate::store::secret::SealedSecret;
use crate::store::{self, audit};
use crate::view::preflight::PreflightDocument;
use axum::http::Method;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

pub(super) fn routes() -> Noun {
    let admins = CallerNeeds::Everywhere(Permission::Admin);
    Noun::new("administration")
        .change(
            "drainNode",
            Method::POST,
            "/nodes/{name}/drain",
            admins,
            "Drain a node: it takes no new batches and jobs and finishes what it has",
            async |ask, at, why| change_node(ask, at, why, Stay::Leaves).await,
        )
        .change(
            "undrainNode",
            Method::POST,
            "/nodes/{name}/undrain",
            admins,
            "Let a drained node take new work again",
            async |ask, at, why| change_node(ask, at, why, Stay::Stays).await,
        )
        .change(
            "checkSource",
            Method::POST,
            "/sources/{name}/check",
            admins,
            "Check a data source: connection, permissions, and whether running sessions can be \
             stopped",
            check,
        )
        .change(
            "runRetention",
            Method::POST,
            "/retention/run",
            admins,
            "Remove old rows now, for 30 seconds at most",
            sweep,
        )
        .secret(
            "putSecret",
            Method::PUT,
            "/secrets/{name}",
            admins,
            "Store a secret, encrypted",
            store_secret,
        )
        .secret(
            "deleteSecret",
            Method::DELETE,
            "/secrets/{name}",
            admins,
            "Delete a stored secret",
            forget,
        )
        .change(
            "updateSecretGroups",
            Method::PATCH,
            "/secrets/{name}",
            admins,
            "Set which groups may use a stored secret",
            grant,
        )
}

/// A drained or undrained node.
#[derive(Debug, Serialize, JsonSchema)]
struct NodeDrainState {
    /// The node name.
    name: String,
    /// The node id.
    id: String,
    /// Whether it takes no new work.
    draining: bool,
}

async fn change_node(
    ask: ApiRequest,
    at: NamePath,
    why: ReasonBody,
    stay: Stay,
) -> Result<NodeDrainState, Problem> {
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    let (now, which) = (authorize::now(&ask).await?, at.name.as_str());
    let mut tx = authorize::begin(&ask).await?;
    let members = store::node::members(&mut tx, now).await?;
    let named = |m: &&NodeMember| m.offer.name == which || m.node.node_id.0.starts_with(which);
    let serves = |m: &&NodeMember| !m.offer.roles.is_empty();
    let found: Vec<&NodeMember> = members.iter().filter(named).filter(serves).collect();
    let [member] = found[..] else {
        return Err(match found.len() {
            0 => Problem::not_found(format!("living node {which} that serves")),
            many => {
                let message = format!("{many} living nodes are called {which}; give the id of one");
                Problem::conflict("several", message)
            }
        });
    };
    store::node::set_draining(&mut tx, &member.node.node_id, stay).await?;
    let action = match stay {
        Stay::Leaves => "node drain",
        Stay::Stays => "node undrain",
    };
    let detail = json!({"node": member.offer.name, "id": member.node.node_id});
    audit::record(&mut tx, &by, &[authorize::entry(action, detail, reason)], now).await?;
    authorize::commit(tx, "mark the node").await?;
    Ok(NodeDrainState {
        name: member.offer.name.clone(),
        id: member.node.node_id.0.clone(),
        draining: matches!(stay, Stay::Leaves),
    })
}

/// A secret to store.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StoreSecretRequest {
    /// The value; it is never shown again.
    #[schemars(with = "String")]
    value: SecretString,
    /// The group that owns it. Without any setting of groups the permissions of a stored secret
    /// stay unchanged.
    owner_group: Option<String>,
    /// Other groups that may use it.
    groups: Option<Vec<String>>,
    /// Every group may use it.
    #[serde(default)]
    every_group: bool,
    /// The reason, for the audit log.
    reason: Option<String>,
}

/// Which groups may use a stored secret.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecretGrant {
    /// The group that owns it, which may always use it.
    owner_group: Option<String>,
    /// Other groups that may use it.
    groups: Option<Vec<String>>,
    /// Every group may use it, including later ones.
    #[serde(default)]
    every_group: bool,
    /// The reason, for the audit log.
    reason: Option<String>,
}

async fn grant(
    ask: ApiRequest,
    at: NamePath,
    sent: SecretGrant,
) -> Result<StoredSecretName, Problem> {
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    let access =
        requested_access(sent.owner_group.as_ref(), sent.groups.as_ref(), sent.every_group)?;
    let Some(access) = access else {
        return Err(Problem::refused(
            "say who may use it: owner_group, groups, or every_group: true",
        ));
    };
    let now = authorize::now(&ask).await?;
    let mut tx = authorize::begin(&ask).await?;
    let Some(stored) = store::secret::find_secret(&mut tx, &at.name).await? else {
        return Err(Problem::not_found(format!("stored secret {}", at.name)));
    };
    let detail = json!({
        "secret": at.name, "for_groups": access.describe(), "before": stored.access.describe(),
    });
    store::secret::set_access(&mut tx, &at.name, &access, now).await?;
    let entry = authorize::entry("secret grant", detail, reason);
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, "say who may use the secret").await?;
    Ok(StoredSecretName { name: at.name, stored: true })
}

/// A stored or removed secret.
#[derive(Debug, Serialize, JsonSchema)]
struct StoredSecretName {
    /// The name of the secret.
    name: String,
    /// Whether it is stored.
    stored: bool,
}

async fn store_secret(
    ask: ApiRequest,
    at: NamePath,
    sent: StoreSecretRequest,
) -> Result<AnswerWithCookies<StoredSecretName>, Problem> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = at.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || !at.name.chars().all(fits) || at.name.len() > 100 {
        let message = "name: use 1 to 100 ASCII letters, digits and '_', the first no digit";
        return Err(Problem::refused(message));
    }
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    if let Some(configured) = ask.house.app.secret_stores.find_secret(&at.name) {
        let place = ask.house.app.secret_stores.describe(configured);
        let message = format!(
            "secret {} comes from {place} (procession.toml); a stored one would not be used",
            at.name
        );
        return Err(Problem::refused(message));
    }
    let key = KeyRing::from_environment().map_err(|e| Problem::refused(e.to_string()))?;
    usable(&at.name, &sent.value).map_err(Problem::refused)?;
    let sealed =
        key.seal_text(&at.name, &sent.value).map_err(|e| Problem::refused(e.to_string()))?;
    let now = authorize::now(&ask).await?;
    let access =
        requested_access(sent.owner_group.as_ref(), sent.groups.as_ref(), sent.every_group)?;
    let mut tx = authorize::begin(&ask).await?;
    let access = store::secret::access_to_store(&mut tx, &at.name, access).await?;
    let for_groups = access.describe();
    let secret = SealedSecret { sealed, access };
    store::secret::put_secret(&mut tx, &at.name, &secret, &by.actor, now).await?;
    let detail = json!({"secret": at.name, "for_groups": for_groups});
    let entry = authorize::entry("secret set", detail, reason);
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, "store the secret").await?;
    Ok(StoredSecretName { name: at.name, stored: true }.into())
}

async fn forget(
    ask: ApiRequest,
    at: NamePath,
    why: ReasonBody,
) -> Result<AnswerWithCookies<StoredSecretName>, Problem> {
    let (by, reason) = (ask.operator()?, authorize::reason(why.reason.as_deref())?);
    let now = authorize::now(&ask).await?;
    let mut tx = authorize::begin(&ask).await?;
    if !store::secret::remove(&mut tx, &at.name).await? {
        return Err(Problem::not_found(format!("stored secret {}", at.name)));
    }
    let entry = authorize::entry("secret remove", json!({"secret": at.name}), reason);
    audit::record(&mut tx, &by, &[entry], now).await?;
    authorize::commit(tx, "remove the secret").await?;
    Ok(StoredSecretName { name: at.name, stored: false }.into())
}

/// The result of checking a data source.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct SourceCheckDetail {
    /// The name of the source.
    name: String,
    /// Whether it can be reached, and bodies can run there and be stopped.
    ok: bool,
    /// Why it cannot be reached.
    fault: Option<String>,
    /// The server version.
    version: Option<String>,
    /// The user that bodies run as.
    user: Option<String>,
    /// Why its sessions hold no lock against each other.
    session_lock_fault: Option<String>,
    /// Why a running statement there could not be stopped in the test.
    stops_sessions_fault: Option<String>,
    /// What was run and stopped in the test: `statement`, `definer_function`.
    stop_trial: Option<&'static str>,
    /// Whether a running procedure of another definer could be stopped; null when unknown.
    stops_definers: Option<bool>,
    /// The grant that would make that possible.
    stops_definers_grant: Option<String>,
    /// The grant that would allow sessions to be reused for the next job.
    keeps_sessions_grant: Option<String>,
    /// The state of its ledger: `absent`, `there`, `other`.
    ledger: Option<&'static str>,
    /// Whether a job there needs a ledger.
    ledger_is_needed: bool,
    /// What protects the connection to its server: `local`, `verified`, `unverified`,
    /// `maybe_clear`; null for a file.
    transport: Option<&'static str>,
    /// What an attacker between Procession and the server could do.
    transport_weakness: Option<String>,
    /// Faults of the jobs that run there.
    preflight: PreflightDocument,
}

async fn check(ask: ApiRequest, at: NamePath, _: ReasonBody) -> Result<SourceCheckDetail, Problem> {
    let app = &ask.house.app;
    let defs = app.definition().await?;
    let source = defs.sources.iter().find(|s| s.name.as_str() == at.name);
    let source = source.ok_or_else(|| Problem::not_found(format!("source {}", at.name)))?;
    let its = |job: &&JobDef| job.source.as_ref() == Some(&source.name);
    let classes: Vec<TxClass> = defs.jobs.iter().filter(its).map(|job| job.tx).collect();
    let ledger_is_needed = classes.contains(&TxClass::Ledger);
    let checked = match app.check_source(source, &classes).await {
        Ok(checked) => checked,
        Err(fault) => {
            let (name, fault) = (at.name, Some(fault.said));
            return Ok(SourceCheckDetail {
                name,
                fault,
                ledger_is_needed,
                ..SourceCheckDetail::default()
            });
        }
    };
    let ledger = match &checked.ledger {
        LedgerState::Absent => "absent",
        LedgerState::Fits => "there",
        LedgerState::Other(_) => "other",
    };
    // It can be read: the source has been reached.
    let source = app.with_password(source).await.unwrap_or_else(|_| source.clone());
    let report =
        check_jobs(&app.config, std::slice::from_ref(&source), &defs.jobs, &defs.dependencies);
    let report = report.await;
    let preflight = PreflightDocument::from_report(&report);
    Ok(SourceCheckDetail {
        name: at.name,
        ok: preflight.ok
            && checked.lock.is_ok()
            && checked.stops.gone.is_ok()
            && (!ledger_is_needed || ledger == "there"),
        fault: None,
        version: Some(checked.whom.version.to_string()),
        user: checked.whom.user.clone(),
        session_lock_fault: checked.lock.err(),
        stop_trial: Some(checked.stops.ran.as_str()),
        stops_definers: checked.stops.definers.is_possible(),
        stops_definers_grant: checked.stops.definers.grant().map(str::to_owned),
        keeps_sessions_grant: checked.keeps_sessions.err(),
        stops_sessions_fault: checked.stops.gone.err(),
        ledger: Some(ledger),
        ledger_is_needed,
        transport: checked.transport.as_ref().map(SourceTransport::as_str),
        transport_weakness: checked.transport.as_ref().and_then(SourceTransport::weakness),
        preflight,
    })
}

/// A request to remove old rows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunRetentionRequest {
    /// The reason; stored in the audit log with each batch.
    reason: Option<String>,
    /// Maximum number of batches; the oldest of each group first.
    limit: Option<u64>,
    /// Also outside of the configured window.
    #[serde(default)]
    now: bool,
}

/// The result of removing old rows.
#[derive(Debug, Serialize, JsonSchema)]
struct SweepResult {
    /// Number of removed rows, by table.
    removed: BTreeMap<String, u64>,
    /// Whether everything is removed that should be; otherwise repeat the request, or leave it to
    /// the serving processes.
    ended: bool,
}

/// How long one request removes rows, in milliseconds.
const SWEEP_MS: i64 = 30_000;

async fn sweep(
    ask: ApiRequest,
    _: Nothing,
    sent: RunRetentionRequest,
) -> Result<SweepResult, Problem> {
    let (by, reason) = (ask.operator()?, authorize::reason(sent.reason.as_deref())?);
    let app = &ask.house.app;
    let mut options = app.config.retention().map_err(anyhow::Error::from)?;
    if !options.is_on() {
        return Err(Problem::refused("nothing is to go: set [retention] in procession.toml"));
    }
    let now = authorize::now(&ask).await?;
    if let Some(window) = options.window.filter(|window| !sent.now && !window.is_open(now)) {
        let opens = window.opens(now);
        let message =
            format!("the window {window} is closed until {opens}; `now` removes all the same");
        return Err(Problem::conflict("closed", message));
    }
    options.window = None;
    let wish = RemovalOrder { by, reason: Some(reason.to_owned()), limit: sent.limit };
    match app.sweeper_by_hand(options, wish).sweep_for(Some(SWEEP_MS), |_| ()).await? {
        retention::SweepOutcome::Ended(removed) => Ok(swept(&removed, SweepEnd::Yes)),
        retention::SweepOutcome::Left(removed) => Ok(swept(&removed, SweepEnd::No)),
        retention::SweepOutcome::Rests(..) => {
            let message = "another process removes old rows at the moment; ask again later";
            Err(Problem::conflict("busy", message))
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SweepEnd {
    Yes,
    No,
}

fn swept(removed: &ByTable, ends: SweepEnd) -> SweepResult {
    let removed = removed.iter().map(|(table, n)| (table.to_string(), *n)).collect();
    SweepResult { removed, ended: ends == SweepEnd::Yes }
}
