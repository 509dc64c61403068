//! Definition changes: stored, kept as a version of each group they change, rolled back.

use crate::app::definition_uses::{refuse_foreign_passwords, refuse_uses};
use crate::app::guard::Guard;
use crate::app::{App, Apply, its_borrowed_part};
use crate::definition::{self, DefinitionDifference};
use crate::domain::id::{GroupCode, SourceName};
use crate::domain::job::borrowed::BorrowedDefinition;
use crate::domain::job::part;
use crate::domain::job::{Definition, JobDef};
use crate::domain::schedule::trigger::Trigger;
use crate::domain::time::Millis;
use crate::engine::host_name;
use crate::engine::trigger::schedule_actions::{self as schedules, ScheduleActionOrigin};
use crate::secret_store::SecretStores;
use crate::store::long_computation::compute;
use crate::store::next_run::{self, StaleGroups};
use crate::store::version::{NewVersion, Version};
use crate::store::{self, Tx, audit, trigger, version};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The author of a definition change, and the remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorship {
    /// The author, with host or address.
    pub by: audit::Operator,
    pub remark: Option<String>,
}

impl Authorship {
    /// The user of this process, without a remark.
    pub fn of_user() -> Self {
        Self { by: audit::Operator::new(whoami(), host_name()), remark: None }
    }
}

/// The result of a change.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    pub changes: Vec<DefinitionDifference>,
    /// The versions that were written.
    pub versions: BTreeMap<GroupCode, u32>,
}

/// Two writers changed one group at once.
#[derive(Debug, thiserror::Error)]
#[error("group {0} is being changed by somebody else; try again")]
pub struct BeingChanged(GroupCode);

/// A file that is run defines a data source of other groups differently. `apply` shows such a
/// change before it is made; a run would make it silently.
#[derive(Debug, thiserror::Error)]
#[error(
    "source {source_name} is defined otherwise by another file ({fields}), and jobs of group {group} run on \
     it; make both files say the same, give this one a name of its own, or change it for all: procession \
     apply FILE"
)]
pub struct SharedSource {
    source_name: SourceName,
    fields: String,
    group: GroupCode,
}

/// A pool or a host that another file declares otherwise.
#[derive(Debug, thiserror::Error)]
#[error(
    "{thing} {name} is defined otherwise by another file{values}, and job {job} of group {group} uses it; make both \
     files say the same, or give this one a name of its own"
)]
pub struct SharedThing {
    thing: &'static str,
    name: String,
    values: String,
    job: String,
    group: GroupCode,
}

/// Refuses a pool or a host that differs from the stored one while jobs of groups outside the file use it.
fn refuse_shared_things(stored: &Definition, wanted: &Definition) -> Result<(), SharedThing> {
    let is_outside = |job: &&JobDef| wanted.groups.iter().all(|g| g.code != job.group);
    let outside = || stored.jobs.iter().filter(is_outside);
    for pool in &wanted.shared.pools {
        let was = stored.shared.pools.iter().find(|p| p.name == pool.name && *p != pool);
        let user = outside().find(|job| job.pools.iter().any(|u| u.pool == pool.name));
        if let (Some(was), Some(job)) = (was, user) {
            let values = format!(" ({} slots there, {} here)", was.slots, pool.slots);
            return Err(SharedThing::new("pool", &pool.name, values, job));
        }
    }
    for host in &wanted.shared.hosts {
        let differs = stored.shared.hosts.iter().any(|h| h.name == host.name && h != host);
        let user = outside().find(|job| job.called_host() == Some(host.name.as_str()));
        if let Some(job) = user.filter(|_| differs) {
            return Err(SharedThing::new("host", &host.name, String::new(), job));
        }
    }
    Ok(())
}

impl SharedThing {
    fn new(thing: &'static str, name: &str, values: String, job: &JobDef) -> Self {
        let (job, group) = (job.code.to_string(), job.group.clone());
        Self { thing, name: name.to_owned(), values, job, group }
    }
}

/// Refuses a source that differs from the stored one while jobs of groups outside the file use it.
fn refuse_shared_source(stored: &Definition, wanted: &Definition) -> Result<(), SharedSource> {
    let is_outside = |group: &GroupCode| wanted.groups.iter().all(|g| g.code != *group);
    for source in &wanted.sources {
        let was = stored.sources.iter().find(|s| s.name == source.name && *s != source);
        let uses =
            |job: &&JobDef| job.source.as_ref() == Some(&source.name) && is_outside(&job.group);
        if let (Some(was), Some(job)) = (was, stored.jobs.iter().find(uses)) {
            let (name, group) = (source.name.clone(), job.group.clone());
            let fields = if was.url == source.url { "its settings" } else { "its url" };
            return Err(SharedSource { source_name: name, fields: fields.to_owned(), group });
        }
    }
    Ok(())
}

/// The user of this process: from the environment, else from the system (a service of cron or
/// systemd may have no `USER`), else the user id.
pub fn whoami() -> String {
    let named = |name: &str| std::env::var(name).ok().filter(|user| !user.trim().is_empty());
    let uid = nix::unistd::Uid::current();
    let of_system = || nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    named("USER").or_else(|| named("LOGNAME")).or_else(of_system).unwrap_or_else(|| uid.to_string())
}

impl App {
    /// `apply_as` in the name of this process's user; gives what changed.
    pub async fn apply(
        &self,
        wanted: &Definition,
        how: Apply,
    ) -> Result<Vec<DefinitionDifference>> {
        let mut changes = Vec::new();
        let mut tell = |change| changes.push(change);
        self.store_definition(wanted, how, &Authorship::of_user(), &mut tell).await?;
        Ok(changes)
    }

    /// Makes the tables say what `wanted` says, in one transaction that also writes a version of each
    /// group that changes; gives how much changed. With `DryRun` nothing is written. Schedules are left as
    /// they are.
    pub async fn apply_as(
        &self,
        wanted: &Definition,
        how: Apply,
        by: &Authorship,
    ) -> Result<usize> {
        self.store_definition(wanted, how, by, &mut |_| ()).await
    }

    /// As `apply_as`, and tells what changes.
    async fn store_definition(
        &self,
        wanted: &Definition,
        how: Apply,
        by: &Authorship,
        tell: TellChange<'_>,
    ) -> Result<usize> {
        let wanted = match wanted.schedules.is_empty() {
            true => Cow::Borrowed(wanted),
            false => Cow::Owned(Definition { schedules: Vec::new(), ..wanted.clone() }),
        };
        // Most files that are run are stored already, and this check needs no lock. Its result is
        // dropped before the second read: for 100,000 jobs it is 70 MB and more.
        {
            let mut tx = self.db.begin_read().await?;
            let mut tell_ahead = |change| {
                if how == Apply::DryRun {
                    tell(change);
                }
            };
            let (stored, changes) =
                compare(&mut tx, &self.secret_stores, &wanted, &[], &mut tell_ahead).await?;
            refuse_uses(&stored, &wanted, None)?;
            refuse_foreign_passwords(&self.secret_stores, &wanted)?;
            refuse_shared_source(&stored, &wanted)?;
            refuse_shared_things(&stored, &wanted)?;
            if how == Apply::DryRun || changes == 0 {
                return Ok(changes);
            }
        }
        let mut tx = self.db.begin().await?;
        let (stored, changes) = compare(&mut tx, &self.secret_stores, &wanted, &[], tell).await?;
        refuse_uses(&stored, &wanted, None)?;
        refuse_foreign_passwords(&self.secret_stores, &wanted)?;
        refuse_shared_source(&stored, &wanted)?;
        refuse_shared_things(&stored, &wanted)?;
        if changes > 0 {
            let now = self.clock.now();
            let versions = write(&mut tx, &stored, &wanted, by, now).await?;
            record(&mut tx, &versions, by, now).await?;
            tx.commit().await.context("apply the definition")?;
        }
        Ok(changes)
    }

    /// Like `apply_as`, and makes the schedules of its groups match `wanted`. An unchanged one
    /// keeps its next time, a paused one stays paused.
    pub async fn apply_all(
        &self,
        wanted: &Definition,
        how: Apply,
        by: &Authorship,
    ) -> Result<Vec<DefinitionDifference>> {
        Ok(self.apply_guarded(wanted, how, by, Guard::unrestricted()).await?.changes)
    }

    /// Like `apply_all`, with a guard.
    pub async fn apply_guarded(
        &self,
        wanted: &Definition,
        how: Apply,
        by: &Authorship,
        guard: Guard<'_>,
    ) -> Result<Applied> {
        let now = self.server_now().await?;
        // The schedule lock before any other, or two writers could deadlock.
        let mut tx = match how {
            Apply::Write => schedules::locked(&self.db, now).await?,
            Apply::DryRun => self.db.begin_read().await?,
        };
        let there = trigger::list_triggers(&mut tx).await?;
        let sees = |group: &GroupCode| guard.sees.is_none_or(|sees| sees(group));
        schedules::refuse_foreign(&there, wanted, &sees)?;
        let mut changes = Vec::new();
        let mut tell = |change| changes.push(change);
        let (stored, _) = compare(&mut tx, &self.secret_stores, wanted, &there, &mut tell).await?;
        // Before what names others: who may not do this hears nothing of them.
        guard.check_change(&mut tx, &stored, wanted).await?;
        refuse_uses(&stored, wanted, guard.sees)?;
        refuse_foreign_passwords(&self.secret_stores, wanted)?;
        if how == Apply::DryRun || changes.is_empty() {
            return Ok(Applied { changes, versions: BTreeMap::new() });
        }
        let versions = write(&mut tx, &stored, wanted, by, now).await?;
        record(&mut tx, &versions, by, now).await?;
        let deed = ScheduleActionOrigin { by: &by.by, reason: by.remark.as_deref(), now };
        let spoken_of: Vec<_> = part::schedules_of(&stored, wanted).into_iter().cloned().collect();
        schedules::apply_in(&mut tx, &there, wanted, &spoken_of, deed).await?;
        tx.commit().await.context("apply the definition")?;
        Ok(Applied { changes, versions })
    }

    /// Restores a group from an earlier version, as a new version; returns the changes.
    pub async fn rollback(
        &self,
        to: &Version,
        how: Apply,
        by: &Authorship,
        reason: &str,
    ) -> Result<Vec<DefinitionDifference>> {
        Ok(self.rollback_guarded(to, how, by, reason, Guard::unrestricted()).await?.changes)
    }

    /// Like `rollback`, with a guard.
    pub async fn rollback_guarded(
        &self,
        to: &Version,
        how: Apply,
        by: &Authorship,
        reason: &str,
        guard: Guard<'_>,
    ) -> Result<Applied> {
        let mut tx = self.db.begin().await?;
        let mut changes = Vec::new();
        let mut tell = |change| changes.push(change);
        let (stored, _) =
            compare(&mut tx, &self.secret_stores, &to.definition, &[], &mut tell).await?;
        guard.check_change(&mut tx, &stored, &to.definition).await?;
        refuse_uses(&stored, &to.definition, guard.sees)?;
        refuse_foreign_passwords(&self.secret_stores, &to.definition)?;
        if how == Apply::DryRun || changes.is_empty() {
            return Ok(Applied { changes, versions: BTreeMap::new() });
        }
        let now = self.clock.now();
        let remark = Some(format!("rollback to version {}: {reason}", to.no));
        let by = Authorship { remark, ..by.clone() };
        let versions = write(&mut tx, &stored, &to.definition, &by, now).await?;
        let words: Vec<String> = changes.iter().map(DefinitionDifference::to_string).collect();
        let entry = audit::AuditEntry {
            action: "rollback".to_owned(),
            group: Some(to.group.clone()),
            batch: None,
            job: None,
            detail: Some(json!({ "version": to.no, "changes": words })),
            reason: Some(reason.to_owned()),
        };
        audit::record(&mut tx, &by.by, &[entry], now).await?;
        tx.commit().await.context("roll the group back")?;
        Ok(Applied { changes, versions })
    }

    /// All versions of a group, oldest first.
    pub async fn versions(&self, group: &GroupCode) -> Result<Vec<Version>> {
        let mut tx = self.db.begin_read().await?;
        version::of_group(&mut tx, group).await
    }
}

/// Called with each change. All changes of a new file of 100,000 jobs with a million dependencies are 110 MB.
type TellChange<'a> = &'a mut (dyn FnMut(DefinitionDifference) + Send);

/// What is stored, with those of these schedules that files have or `wanted` names, and how much of it
/// `wanted` would change.
async fn compare(
    tx: &mut Tx,
    stores: &SecretStores,
    wanted: &Definition,
    schedules: &[Trigger],
    tell: TellChange<'_>,
) -> Result<(Definition, usize)> {
    let mut stored = stores.add_access(store::job::definition(tx).await?);
    let is_named = |t: &Trigger| wanted.schedules.iter().any(|def| def.code == t.def.code);
    let counts = |t: &&Trigger| t.origin == schedules::FROM_FILE || is_named(t);
    stored.schedules = schedules.iter().filter(counts).map(|t| t.def.clone()).collect();
    let changes = compute(wanted.jobs.len(), || {
        let (there, new) =
            (its_borrowed_part(&stored, wanted), BorrowedDefinition::from_definition(wanted));
        definition::visit_differences(&there, &new, tell)
    });
    Ok((stored, changes))
}

async fn write(
    tx: &mut Tx,
    stored: &Definition,
    wanted: &Definition,
    by: &Authorship,
    now: Millis,
) -> Result<BTreeMap<GroupCode, u32>> {
    store::job::apply(tx, stored, wanted, now).await?;
    let mut stale = StaleGroups::default();
    wanted.groups.iter().for_each(|group| stale.add_group(&group.code));
    next_run::refresh(tx, &stale).await?;
    let mut versions = BTreeMap::new();
    let (before, after) =
        (BorrowedDefinition::from_definition(stored), part::merged(stored, wanted));
    for group in &after.groups {
        let new = part::borrowed_group(&after, group);
        let old = stored.groups.iter().find(|g| g.code == group.code);
        let old = old.map(|group| part::borrowed_group(&before, group));
        let is_same = |old: &BorrowedDefinition<'_>| {
            definition::visit_differences(old, &new, &mut |_| ()) == 0
        };
        if old.as_ref().is_some_and(is_same) {
            continue;
        }
        // A group from before versions were kept: its old state is stored so that it can be
        // restored.
        if let Some(old) = &old
            && version::last_number(tx, &group.code).await? == 0
        {
            let remark = Some("as it was before its first change under versions");
            let author = &by.by.actor;
            add_version(
                tx,
                &NewVersion { group: &group.code, author, remark, definition: old },
                now,
            )
            .await?;
        }
        let (author, remark) = (by.by.actor.as_str(), by.remark.as_deref());
        let new = NewVersion { group: &group.code, author, remark, definition: &new };
        versions.insert(group.code.clone(), add_version(tx, &new, now).await?);
    }
    Ok(versions)
}

async fn add_version(tx: &mut Tx, new: &NewVersion<'_>, now: Millis) -> Result<u32> {
    match version::add_version(tx, new, now).await {
        Err(error) if store::is_taken(&error) => {
            Err(error.context(BeingChanged(new.group.clone())))
        }
        other => other,
    }
}

/// Records new versions; the changes are in them.
async fn record(
    tx: &mut Tx,
    versions: &BTreeMap<GroupCode, u32>,
    by: &Authorship,
    now: Millis,
) -> Result<()> {
    let entry = |(group, no): (&GroupCode, &u32)| audit::AuditEntry {
        action: "apply".to_owned(),
        group: Some(group.clone()),
        batch: None,
        job: None,
        detail: Some(json!({ "version": no })),
        reason: by.remark.clone(),
    };
    let entries: Vec<audit::AuditEntry> = versions.iter().map(entry).collect();
    audit::record(tx, &by.by, &entries, now).await
}
