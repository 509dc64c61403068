//! Definitions: check, compare, apply, roll back.

use crate::api::authorize;
use crate::api::caller::{ApiRequest, CallerNeeds};
use crate::api::path_params::GroupPath;
use crate::api::problem::Problem;
use crate::api::route::{Nothing, Noun};
use crate::api::second_person::{GuardedChange, changed_since, fingerprint_of};
use crate::api::uploaded_definition::UploadedDefinition;
use crate::app::{
    Applied, Apply, Authorship, DefinitionChange, ForbiddenUses, ForeignPassword, Guard,
    NoCalendar, UnknownUses,
};
use crate::definition::{DefinitionDifference, DifferenceKind, Loaded, Thing};
use crate::domain::access::Permission;
use crate::domain::id::GroupCode;
use crate::domain::job::job_key::JobKey;
use crate::domain::job::{Definition, JobDef};
use crate::domain::permission::four_eyes::GuardedAction;
use crate::domain::permission::required_permissions::Demands;
use crate::view::change::{DefinitionChangeDetail, FaultAt};
use crate::view::preflight::PreflightDocument;
use anyhow::Result as Done;
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) fn routes() -> Noun {
    let edits = CallerNeeds::Somewhere(Permission::Edit);
    Noun::new("definitions")
        .expensive()
        .change(
            "checkDefinition",
            Method::POST,
            "/definition/check",
            CallerNeeds::Somewhere(Permission::View),
            "Check a definition for faults, each with its line",
            check,
        )
        .expensive()
        .change(
            "preflightDefinition",
            Method::POST,
            "/definition/preflight",
            edits,
            "Check the jobs of a definition against the data sources: routines, parameters, \
             permissions",
            preflight,
        )
        .expensive()
        .change(
            "diffDefinition",
            Method::POST,
            "/definition/diff",
            CallerNeeds::Somewhere(Permission::View),
            "Compare a definition with what is stored, and list the permissions that storing it \
             needs",
            diff_definition,
        )
        .expensive()
        .change(
            "applyDefinition",
            Method::POST,
            "/definition/apply",
            edits,
            "Store a definition",
            apply,
        )
        .guarded()
        .expensive()
        .change(
            "rollbackGroup",
            Method::POST,
            "/groups/{group}/rollback",
            edits,
            "Roll a group back to an earlier version",
            rollback,
        )
        .guarded()
}

/// A definition, with a remark.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DefinitionRequest {
    #[serde(flatten)]
    sent: UploadedDefinition,
    /// The purpose of the change, for the versions and the audit log.
    remark: Option<String>,
    /// Same as `remark`.
    reason: Option<String>,
    /// The versions of groups that the author has seen: the change is refused (412) when one of
    /// them is no longer the last.
    #[serde(default)]
    if_versions: BTreeMap<String, u32>,
    /// Only preview the changes.
    #[serde(default)]
    dry_run: bool,
}

/// The result of checking a definition.
#[derive(Debug, Serialize, JsonSchema)]
struct DefinitionCheckResult {
    /// Whether there are no faults.
    ok: bool,
    /// All faults.
    faults: Vec<FaultAt>,
    /// Settings that are allowed but probably unintended.
    warnings: Vec<FaultAt>,
    /// Number of groups.
    groups: usize,
    /// Number of jobs.
    jobs: usize,
    /// Number of dependencies.
    dependencies: usize,
    /// Number of data sources.
    sources: usize,
    /// Number of schedules.
    schedules: usize,
}

/// The changes, planned or made.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DefinitionChangeResult {
    /// Whether they are stored.
    applied: bool,
    /// The changes.
    changes: Vec<DefinitionChangeDetail>,
    /// The versions of groups that were written.
    versions: BTreeMap<String, u32>,
    /// The permissions that the change requires.
    needs: NeededPermissions,
    /// Settings that are allowed but probably unintended.
    warnings: Vec<FaultAt>,
}

/// Permissions that a change requires.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct NeededPermissions {
    /// In these groups.
    groups: BTreeMap<String, Vec<&'static str>>,
    /// In all groups.
    everywhere: Vec<&'static str>,
}

impl NeededPermissions {
    fn from_demands(demands: &Demands) -> Self {
        let words = |all: &BTreeSet<Permission>| all.iter().map(|p| p.as_str()).collect::<Vec<_>>();
        Self {
            groups: demands.groups.iter().map(|(g, all)| (g.to_string(), words(all))).collect(),
            everywhere: words(&demands.everywhere),
        }
    }
}

/// Checks that the caller has all permissions that a change demands.
pub(super) fn require_all(ask: &ApiRequest, demands: &Demands) -> Result<(), Problem> {
    for (group, all) in &demands.groups {
        for permission in all {
            ask.require(*permission, group, format!("group {group}"))?;
        }
    }
    demands.everywhere.iter().try_for_each(|p| authorize::everywhere(ask, *p))
}

/// Checks that the caller sees every group that a change touches.
fn require_visible(ask: &ApiRequest, demands: &Demands) -> Result<(), Problem> {
    let see = |group: &GroupCode| ask.require(Permission::View, group, format!("group {group}"));
    demands.groups.keys().try_for_each(see)
}

async fn check(
    ask: ApiRequest,
    _: Nothing,
    wanted: DefinitionRequest,
) -> Result<DefinitionCheckResult, Problem> {
    let bad = |faults| DefinitionCheckResult {
        ok: false,
        faults,
        warnings: Vec::new(),
        groups: 0,
        jobs: 0,
        dependencies: 0,
        sources: 0,
        schedules: 0,
    };
    let file = wanted.sent.main_name();
    let loaded = match wanted.sent.load_definition(&ask).await? {
        Ok(loaded) => loaded,
        Err(faults) => return Ok(bad(faults)),
    };
    let unknown = match look_at_uses(&ask, &loaded.definition, &file).await? {
        Ok(unknown) => unknown,
        Err(faults) => return Ok(bad(faults)),
    };
    let looked = match ask.house.app.look_at_schedules(&loaded).await {
        Ok(warnings) => warnings,
        Err(error) => match error.downcast::<crate::definition::Faults>() {
            Ok(faults) => {
                return Ok(bad(faults.as_slice().iter().map(FaultAt::from_fault).collect()));
            }
            Err(error) => return Err(error.into()),
        },
    };
    let defs = &loaded.definition;
    Ok(DefinitionCheckResult {
        ok: true,
        faults: Vec::new(),
        warnings: (loaded.warnings.iter().chain(&looked).map(FaultAt::from_fault))
            .chain(unknown)
            .collect(),
        groups: defs.groups.len(),
        jobs: defs.jobs.len(),
        dependencies: defs.dependencies.len(),
        sources: defs.sources.len(),
        schedules: defs.schedules.len(),
    })
}

/// Checks what a definition uses of objects from other files and administrators: returns secrets
/// that do not exist yet, or the faults for which `apply` would refuse it.
async fn look_at_uses(
    ask: &ApiRequest,
    defs: &Definition,
    file: &str,
) -> Result<Result<Vec<FaultAt>, Vec<FaultAt>>, Problem> {
    let sees = |group: &GroupCode| ask.allows(Permission::View, group);
    let sees = authorize::unless_all_are_seen(ask, &sees)?;
    let at =
        |what: String, cure: String| FaultAt { file: file.to_owned(), line: 0, what, fix: cure };
    let error = match ask.house.app.look_at_uses(defs, sees).await {
        Ok(unknown) => {
            let warnings = unknown.iter().map(|secret| at(secret.describe(), secret.fix()));
            return Ok(Ok(warnings.collect()));
        }
        Err(error) => error,
    };
    if let Some(forbidden) = error.downcast_ref::<ForbiddenUses>() {
        let faults = forbidden.uses().iter().map(|found| at(found.to_string(), found.hint_text()));
        return Ok(Err(faults.collect()));
    }
    // The other errors contain their own hints.
    let is_of_definition =
        error.is::<UnknownUses>() || error.is::<ForeignPassword>() || error.is::<NoCalendar>();
    match is_of_definition {
        true => Ok(Err(vec![at(error.to_string(), String::new())])),
        false => Err(error.into()),
    }
}

/// Checks jobs of groups that the caller may change; statements that are not stored are sent to no
/// server for a caller who may not have them executed.
async fn preflight(
    ask: ApiRequest,
    _: Nothing,
    wanted: DefinitionRequest,
) -> Result<PreflightDocument, Problem> {
    let loaded = wanted.sent.sound(&ask).await?;
    let (app, defs) = (&ask.house.app, &loaded.definition);
    let stored = app.definition().await?;
    let stored: HashMap<JobKey, &JobDef> = stored.jobs.iter().map(|job| (job.key(), job)).collect();
    let may = |job: &&JobDef| {
        let may = |permission| ask.require(permission, &job.group, "").is_ok();
        let is_stored = stored.get(&job.key()).is_some_and(|there| there == job);
        may(Permission::Edit) && (may(Permission::Script) || is_stored)
    };
    let report = app.check_sent_jobs(defs, defs.jobs.iter().filter(may)).await?;
    Ok(PreflightDocument::from_report(&report))
}

async fn diff_definition(
    ask: ApiRequest,
    _: Nothing,
    mut wanted: DefinitionRequest,
) -> Result<DefinitionChangeResult, Problem> {
    let loaded = std::mem::take(&mut wanted.sent).sound(&ask).await?;
    store(&ask, &loaded, &wanted, Apply::DryRun, require_visible).await
}

async fn apply(
    ask: ApiRequest,
    _: Nothing,
    mut wanted: DefinitionRequest,
) -> Result<DefinitionChangeResult, Problem> {
    let loaded = std::mem::take(&mut wanted.sent).sound(&ask).await?;
    let how = if wanted.dry_run { Apply::DryRun } else { Apply::Write };
    store(&ask, &loaded, &wanted, how, require_all).await
}

/// The author and the remark of a change.
fn authorship(ask: &ApiRequest, remark: Option<&str>) -> Result<Authorship, Problem> {
    Ok(Authorship { by: ask.operator()?, remark: remark.map(str::to_owned) })
}

impl DefinitionRequest {
    fn remark_text(&self) -> Option<&str> {
        self.remark.as_deref().or(self.reason.as_deref())
    }
}

async fn store(
    ask: &ApiRequest,
    loaded: &Loaded,
    wanted: &DefinitionRequest,
    how: Apply,
    look: fn(&ApiRequest, &Demands) -> Result<(), Problem>,
) -> Result<DefinitionChangeResult, Problem> {
    let remark = match how {
        Apply::Write => Some(authorize::remark(wanted.remark_text())?),
        Apply::DryRun => None,
    };
    let seen = versions(&wanted.if_versions)?;
    let looked = ask.house.app.look_at_schedules(loaded).await?;
    let noted = NotedChange::new(ask);
    let allow = |change: DefinitionChange<'_>| noted.note_change(change, look);
    seen.keys().try_for_each(|g| ask.require(Permission::View, g, format!("group {g}")))?;
    let sees = |group: &GroupCode| ask.allows(Permission::View, group);
    let guard =
        Guard { allow: &allow, seen: &seen, sees: authorize::unless_all_are_seen(ask, &sees)? };
    let by = authorship(ask, remark)?;
    let (app, defs) = (&ask.house.app, &loaded.definition);
    if how == Apply::Write && ask.is_guarded() {
        let ahead = app.apply_guarded(defs, Apply::DryRun, &by, guard).await?;
        let groups: Vec<&str> = defs.groups.iter().map(|group| group.code.as_str()).collect();
        let summary = format!("store a definition of {}", groups.join(", "));
        noted.pass_four_eyes(&ahead, &summary, remark.unwrap_or_default())?;
    }
    let mut done = app.apply_guarded(defs, how, &by, guard).await?;
    let needs = NeededPermissions::from_demands(&noted.demands());
    if !ask.caller()?.grants.allow_everywhere(Permission::Admin) {
        hide_shared_things(&mut done.changes);
    }
    let warnings = loaded.warnings.iter().chain(&looked).map(FaultAt::from_fault).collect();
    Ok(outcome(done, how, needs, warnings))
}

/// The last computed form of a definition change: during the preview, or within the transaction.
struct NotedChange<'a> {
    ask: &'a ApiRequest,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    demands: Demands,
    fingerprint: String,
    /// The digest that it must still have when it is written.
    passed: Option<String>,
}

impl<'a> NotedChange<'a> {
    fn new(ask: &'a ApiRequest) -> Self {
        Self { ask, noted: Mutex::default() }
    }

    fn lock_noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the caller's permissions for a change and, if it was approved, that it is unchanged.
    fn note_change(
        &self,
        change: DefinitionChange<'_>,
        look: fn(&ApiRequest, &Demands) -> Result<(), Problem>,
    ) -> Done<()> {
        let mut noted = self.lock_noted();
        noted.demands = change.demands.clone();
        if self.ask.is_guarded() {
            let text = |defs| serde_json::to_string(defs);
            noted.fingerprint = fingerprint_of(&[&text(change.was)?, &text(change.is)?]);
            if noted.passed.as_ref().is_some_and(|passed| *passed != noted.fingerprint) {
                return Err(changed_since().into());
            }
        }
        Ok(look(self.ask, change.demands)?)
    }

    fn demands(&self) -> Demands {
        self.lock_noted().demands.clone()
    }

    /// Checks that the previewed change needs no second person, or was approved.
    fn pass_four_eyes(&self, ahead: &Applied, summary: &str, reason: &str) -> Result<(), Problem> {
        let mut noted = self.lock_noted();
        noted.passed = Some(noted.fingerprint.clone());
        if ahead.changes.is_empty() {
            return Ok(());
        }
        let changes: Vec<DefinitionChangeDetail> =
            ahead.changes.iter().map(DefinitionChangeDetail::from_change).collect();
        self.ask.pass_four_eyes(GuardedChange {
            action: GuardedAction::Apply,
            demands: noted.demands.clone(),
            summary: format!("{summary} ({} changes)", changes.len()),
            reason: reason.to_owned(),
            effect: serde_json::json!({ "changes": changes }),
            fingerprint: noted.fingerprint.clone(),
        })
    }
}

/// Data sources, secrets and hosts belong to administrators, with their addresses and owners. For
/// other users a sent one is shown as new, whether or not one of this name exists.
fn hide_shared_things(changes: &mut [DefinitionDifference]) {
    for change in changes {
        if matches!(change.thing, Thing::Source | Thing::Secret | Thing::Host) {
            change.how = DifferenceKind::Added;
        }
    }
}

fn outcome(
    done: Applied,
    how: Apply,
    needs: NeededPermissions,
    warnings: Vec<FaultAt>,
) -> DefinitionChangeResult {
    DefinitionChangeResult {
        applied: how == Apply::Write,
        changes: done.changes.iter().map(DefinitionChangeDetail::from_change).collect(),
        versions: done.versions.into_iter().map(|(group, no)| (group.to_string(), no)).collect(),
        needs,
        warnings,
    }
}

fn versions(asked: &BTreeMap<String, u32>) -> Result<BTreeMap<GroupCode, u32>, Problem> {
    let one = |(group, no): (&String, &u32)| -> Result<_, Problem> {
        Ok((GroupCode::parse(group).map_err(anyhow::Error::from)?, *no))
    };
    asked.iter().map(one).collect()
}

/// A rollback to an earlier version.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RollbackRequest {
    /// The version to restore.
    to: u32,
    /// The reason, which is stored.
    reason: Option<String>,
    /// Same as `reason`.
    remark: Option<String>,
    /// The version that the author has seen; refused (412) when it is no longer the last.
    if_version: Option<u32>,
    /// Only preview the changes.
    #[serde(default)]
    dry_run: bool,
}

async fn rollback(
    ask: ApiRequest,
    at: GroupPath,
    back: RollbackRequest,
) -> Result<DefinitionChangeResult, Problem> {
    let group = authorize::group(&ask, Permission::Edit, &at.group)?;
    let how = if back.dry_run { Apply::DryRun } else { Apply::Write };
    let reason = match how {
        Apply::Write => authorize::reason(back.reason.as_deref().or(back.remark.as_deref()))?,
        Apply::DryRun => "",
    };
    let all = ask.house.app.versions(&group).await?;
    let to = all.iter().find(|version| version.no == back.to).ok_or_else(|| {
        let last = all.last().map_or(0, |v| v.no);
        Problem::refused(format!("there is no version {}; the versions are 1 to {last}", back.to))
    })?;
    let seen = back.if_version.map(|no| (group.clone(), no)).into_iter().collect();
    let noted = NotedChange::new(&ask);
    let allow = |change: DefinitionChange<'_>| noted.note_change(change, require_all);
    let sees = |group: &GroupCode| ask.allows(Permission::View, group);
    let guard =
        Guard { allow: &allow, seen: &seen, sees: authorize::unless_all_are_seen(&ask, &sees)? };
    let by = authorship(&ask, None)?;
    let app = &ask.house.app;
    if how == Apply::Write && ask.is_guarded() {
        let ahead = app.rollback_guarded(to, Apply::DryRun, &by, reason, guard).await?;
        noted.pass_four_eyes(
            &ahead,
            &format!("roll group {group} back to version {}", to.no),
            reason,
        )?;
    }
    let done = app.rollback_guarded(to, how, &by, reason, guard).await?;
    let needs = NeededPermissions::from_demands(&noted.demands());
    Ok(outcome(done, how, needs, Vec::new()))
}
