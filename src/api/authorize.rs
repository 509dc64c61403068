//! How a request reaches what it changes: nothing is reached without a look at the group it belongs to.

use crate::api::caller::ApiRequest;
use crate::api::problem::{PermissionScope, Problem};
use crate::domain::access::Permission;
use crate::domain::batch::Batch;
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::JobDef;
use crate::domain::job::secret::name_a_secret;
use crate::domain::time::Millis;
use crate::store::audit::AuditEntry;
use crate::store::seen::AuditScope;
use crate::store::{self, Tx, job_list};
use anyhow::Context as _;
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest reason or remark, in characters; MySQL's TEXT holds 65,535 bytes.
const REASON_MAX: usize = 10_000;

/// Why something is done; nothing is changed without.
pub(super) fn reason(said: Option<&str>) -> Result<&str, Problem> {
    let said = said.unwrap_or_default().trim();
    if said.is_empty() {
        return Err(Problem::refused("reason: say why; it is what others will read"));
    }
    check_text("reason", said)
}

/// What is said about a change of a definition.
pub(super) fn remark(said: Option<&str>) -> Result<&str, Problem> {
    match said.map(str::trim).unwrap_or_default() {
        "" => Err(Problem::refused("remark: say what the change is for; the version keeps it")),
        said => check_text("remark", said),
    }
}

/// A text that people write, of a length that is kept whole.
pub(super) fn check_text<'a>(name: &str, said: &'a str) -> Result<&'a str, Problem> {
    if said.contains('\0') || said.chars().count() > REASON_MAX {
        return Err(Problem::refused(format!("{name}: write 1 to {REASON_MAX} characters")));
    }
    Ok(said)
}

/// A look into the tables.
pub(super) async fn open_read(ask: &ApiRequest) -> Result<Tx, Problem> {
    Ok(ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?)
}

/// A transaction.
pub(super) async fn begin(ask: &ApiRequest) -> Result<Tx, Problem> {
    Ok(ask.house.app.db.begin().await.map_err(anyhow::Error::from)?)
}

/// Ends a transaction well.
pub(super) async fn commit(tx: Tx, what: &'static str) -> Result<(), Problem> {
    Ok(tx.commit().await.context(what)?)
}

/// The record of something done to what belongs to no batch.
pub(super) fn entry(action: &str, detail: Value, reason: &str) -> AuditEntry {
    AuditEntry {
        action: action.to_owned(),
        group: None,
        batch: None,
        job: None,
        detail: Some(detail),
        reason: Some(reason.to_owned()),
    }
}

/// The present moment by the database's clock.
pub(super) async fn now(ask: &ApiRequest) -> Result<Millis, Problem> {
    Ok(ask.house.app.server_now().await?)
}

/// A group, to do this in.
pub(super) fn group(
    ask: &ApiRequest,
    permission: Permission,
    word: &str,
) -> Result<GroupCode, Problem> {
    let what = format!("group {word}");
    let code = GroupCode::parse(word).map_err(|_| Problem::not_found(&what))?;
    ask.require(permission, &code, what)?;
    Ok(code)
}

/// The job that `word` names, `CODE` or `group.CODE`, to do this to. Only jobs that the caller sees are candidates.
pub(super) async fn find_job(
    ask: &ApiRequest,
    tx: &mut Tx,
    permission: Permission,
    word: &str,
) -> Result<JobDef, Problem> {
    let seen = ask.caller()?.grants.places(Permission::View);
    let job = job_list::find_named(tx, word, seen.as_ref()).await?.map_err(anyhow::Error::from)?;
    ask.require(permission, &job.group, format!("job {word}"))?;
    Ok(job)
}

/// A batch, to do this to.
pub(super) async fn batch(
    ask: &ApiRequest,
    permission: Permission,
    group: &str,
    no: &str,
) -> Result<Batch, Problem> {
    let missing = || Problem::not_found(format!("batch {no} of group {group}"));
    let group = GroupCode::parse(group).map_err(|_| missing())?;
    let number = BatchNo::parse(no).map_err(|_| missing())?;
    ask.require(permission, &group, format!("batch {no} of group {group}"))?;
    let mut tx = open_read(ask).await?;
    let found = store::batch::find_batch(&mut tx, &number, &group).await?;
    found.ok_or_else(missing)
}

/// Passes when this may be done in all of these groups. Who does not see one of them hears that there is
/// no such thing, as if it were not there.
pub(super) fn require_all<'a>(
    ask: &ApiRequest,
    permission: Permission,
    groups: impl IntoIterator<Item = &'a GroupCode>,
    what: impl std::fmt::Display,
) -> Result<(), Problem> {
    groups.into_iter().try_for_each(|group| ask.require(permission, group, &what))
}

/// Passes when the parameters of an order name no secret, or the caller may give jobs of these groups
/// secrets: who may write what a job executes, and nobody else, may have a secret handed to it.
pub(super) async fn secret_params(
    ask: &ApiRequest,
    groups: &[&GroupCode],
    params: &BTreeMap<String, String>,
) -> Result<(), Problem> {
    if !name_a_secret(params) {
        return Ok(());
    }
    let what = "group whose jobs are given a secret";
    require_all(ask, Permission::Script, groups.iter().copied(), what)?;
    let sees = |group: &GroupCode| ask.allows(Permission::View, group);
    match unless_all_are_seen(ask, &sees)? {
        Some(sees) => Ok(ask.house.app.refuse_unknown_secrets(groups, params, sees).await?),
        None => Ok(()),
    }
}

/// Which groups somebody sees.
pub(super) type Sees<'a> = &'a (dyn Fn(&GroupCode) -> bool + Sync);

/// What names groups is kept from who does not see all of them.
pub(super) fn unless_all_are_seen<'a>(
    ask: &ApiRequest,
    sees: Sees<'a>,
) -> Result<Option<Sees<'a>>, Problem> {
    let sees_all = ask.caller()?.grants.allow_everywhere(Permission::View);
    Ok(if sees_all { None } else { Some(sees) })
}

/// What of a log the caller is told: what is about groups that it sees; what is about no group (users,
/// secrets, settings, old rows) only who administers all.
pub(super) fn audit_scope(ask: &ApiRequest) -> Result<AuditScope, Problem> {
    let grants = &ask.caller()?.grants;
    Ok(match grants.places(Permission::View) {
        None if grants.allow_everywhere(Permission::Admin) => AuditScope::All,
        None => AuditScope::AllGroups,
        Some(groups) => AuditScope::Groups(groups),
    })
}

/// Passes when this may be done to what belongs to no group.
pub(super) fn everywhere(ask: &ApiRequest, permission: Permission) -> Result<(), Problem> {
    match ask.caller()?.grants.allow_everywhere(permission) {
        true => Ok(()),
        false => Err(Problem::forbidden(permission, PermissionScope::AllGroups)),
    }
}
