//! Access to the objects of a request: no object is accessed without a permission check for its
//! group.

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

/// Maximum length of a reason or remark, in characters; MySQL's TEXT holds 65,535 bytes.
const REASON_MAX: usize = 10_000;

/// The reason of a change, which is required.
pub(super) fn reason(given: Option<&str>) -> Result<&str, Problem> {
    let reason = given.unwrap_or_default().trim();
    if reason.is_empty() {
        return Err(Problem::refused("reason: say why; it is what others will read"));
    }
    check_text("reason", reason)
}

/// The optional remark on a definition change.
pub(super) fn remark(message: Option<&str>) -> Result<&str, Problem> {
    match message.map(str::trim).unwrap_or_default() {
        "" => Err(Problem::refused("remark: say what the change is for; the version keeps it")),
        message => check_text("remark", message),
    }
}

/// A text entered by people, of a length that can be stored completely.
pub(super) fn check_text<'a>(name: &str, text: &'a str) -> Result<&'a str, Problem> {
    if text.contains('\0') || text.chars().count() > REASON_MAX {
        return Err(Problem::refused(format!("{name}: write 1 to {REASON_MAX} characters")));
    }
    Ok(text)
}

/// Begins a read-only transaction.
pub(super) async fn open_read(ask: &ApiRequest) -> Result<Tx, Problem> {
    Ok(ask.house.app.db.begin_read().await.map_err(anyhow::Error::from)?)
}

/// Begins a transaction.
pub(super) async fn begin(ask: &ApiRequest) -> Result<Tx, Problem> {
    Ok(ask.house.app.db.begin().await.map_err(anyhow::Error::from)?)
}

/// Commits a transaction.
pub(super) async fn commit(tx: Tx, what: &'static str) -> Result<(), Problem> {
    Ok(tx.commit().await.context(what)?)
}

/// The audit entry of an action on something that belongs to no batch.
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

/// The present time by the database's clock.
pub(super) async fn now(ask: &ApiRequest) -> Result<Millis, Problem> {
    Ok(ask.house.app.server_now().await?)
}

/// Parses a group code and checks the permission in that group.
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

/// Finds the job that `word` (`CODE` or `group.CODE`) names, and checks the permission. Only jobs
/// visible to the caller are candidates.
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

/// Finds a batch and checks the permission.
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

/// Checks a permission in all of these groups. A caller who does not see one of them gets the same
/// answer as for a missing group.
pub(super) fn require_all<'a>(
    ask: &ApiRequest,
    permission: Permission,
    groups: impl IntoIterator<Item = &'a GroupCode>,
    what: impl std::fmt::Display,
) -> Result<(), Problem> {
    groups.into_iter().try_for_each(|group| ask.require(permission, group, &what))
}

/// Refuses order parameters that name secrets, unless the caller may give secrets to jobs of these
/// groups: only a user who may write what a job executes may have a secret passed to it.
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

/// Whether the caller sees a group.
pub(super) type Sees<'a> = &'a (dyn Fn(&GroupCode) -> bool + Sync);

/// Withholds a value that names groups from a caller who does not see all of them.
pub(super) fn unless_all_are_seen<'a>(
    ask: &ApiRequest,
    sees: Sees<'a>,
) -> Result<Option<Sees<'a>>, Problem> {
    let sees_all = ask.caller()?.grants.allow_everywhere(Permission::View);
    Ok(if sees_all { None } else { Some(sees) })
}

/// The part of a log that the caller sees: records about visible groups; records about no group
/// (users, secrets, settings, retention) only for administrators of all groups.
pub(super) fn audit_scope(ask: &ApiRequest) -> Result<AuditScope, Problem> {
    let grants = &ask.caller()?.grants;
    Ok(match grants.places(Permission::View) {
        None if grants.allow_everywhere(Permission::Admin) => AuditScope::All,
        None => AuditScope::AllGroups,
        Some(groups) => AuditScope::Groups(groups),
    })
}

/// Checks a permission for what belongs to no group.
pub(super) fn everywhere(ask: &ApiRequest, permission: Permission) -> Result<(), Problem> {
    match ask.caller()?.grants.allow_everywhere(permission) {
        true => Ok(()),
        false => Err(Problem::forbidden(permission, PermissionScope::AllGroups)),
    }
}
