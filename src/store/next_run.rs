//! `job_def.next_run_time`: the next firing of the schedules of a job's group.
//!
//! The value is always recomputed from `job_trigger_time`: code that changes a schedule names the
//! affected groups, and the present content of those tables is written.

use crate::db::{Row, SqlValue};
use crate::domain::id::GroupCode;
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Groups per statement.
const AT_ONCE: usize = 200;
/// Groups whose rows one transaction of the trigger core changes. Processes that end batches of
/// these groups wait for its commit.
const GROUPS_PER_TRANSACTION: usize = 20;

/// Groups whose next run may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaleGroups {
    /// These groups.
    These(BTreeSet<GroupCode>),
    /// Every group.
    All,
}

impl Default for StaleGroups {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl StaleGroups {
    /// The groups that these schedules open.
    pub fn of_schedules<'a>(defs: impl IntoIterator<Item = &'a TriggerDef>) -> Self {
        let mut stale = Self::default();
        defs.into_iter().for_each(|def| stale.add_schedule(def));
        stale
    }

    /// Adds the groups that a schedule opens; all groups if it opens them by type.
    pub fn add_schedule(&mut self, def: &TriggerDef) {
        match def.order.as_ref().map(|order| &order.group) {
            Some(Some(group)) => self.add_group(group),
            Some(None) => *self = Self::All,
            None => {}
        }
    }

    /// Adds one group.
    pub fn add_group(&mut self, group: &GroupCode) {
        if let Self::These(groups) = self {
            groups.insert(group.clone());
        }
    }

    /// Splits the groups into parts, one per transaction. All groups are one part.
    pub fn parts(&self) -> Vec<Self> {
        let Self::These(groups) = self else { return vec![self.clone()] };
        let groups: Vec<&GroupCode> = groups.iter().collect();
        let part = |some: &[&GroupCode]| Self::These(some.iter().copied().cloned().collect());
        groups.chunks(GROUPS_PER_TRANSACTION).map(part).collect()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::These(groups) if groups.is_empty())
    }
}

/// Writes the next run of the jobs of these groups, where it has changed. An inactive job has none.
///
/// Rows are changed group by group in the order of their codes, as in `batch::finish_all`. In any
/// other order the two deadlock: with 100 schedules firing every second PostgreSQL ended 13 passes
/// of the trigger core and 4 steps of the dispatcher in 70 s, each after a second of standstill.
pub async fn refresh(tx: &mut Tx, stale: &StaleGroups) -> Result<()> {
    let by_type = match stale.is_empty() {
        true => return Ok(()),
        false => next_by_type(tx).await?,
    };
    match stale {
        StaleGroups::All => refresh_groups(tx, &NamedGroups::all_groups(), &by_type).await,
        StaleGroups::These(groups) => {
            let groups: Vec<&GroupCode> = groups.iter().collect();
            for chunk in groups.chunks(AT_ONCE) {
                refresh_groups(tx, &NamedGroups::from_groups(chunk), &by_type).await?;
            }
            Ok(())
        }
    }
}

/// A condition on `group_code`, and its values.
struct NamedGroups {
    condition: String,
    values: Vec<SqlValue>,
}

impl NamedGroups {
    fn all_groups() -> Self {
        Self { condition: "group_code IS NOT NULL".to_owned(), values: Vec::new() }
    }

    fn from_groups(groups: &[&GroupCode]) -> Self {
        let places = vec!["?"; groups.len()].join(", ");
        let values = groups.iter().map(|group| group.as_str().into()).collect();
        Self { condition: format!("group_code IN ({places})"), values }
    }
}

/// The next time of schedules that open groups by type; the key `None` means all types.
type NextByType = BTreeMap<Option<String>, Millis>;

async fn next_by_type(tx: &mut Tx) -> Result<NextByType> {
    let sql = "SELECT t.body AS body, s.next_time AS next_time FROM job_trigger t \
               JOIN job_trigger_time s ON s.trigger_id = t.trigger_id \
               WHERE t.group_code IS NULL AND s.next_time IS NOT NULL";
    let mut found = NextByType::new();
    for row in tx.fetch_all(sql, &[]).await.context("read schedules that name no group")? {
        // A schedule that cannot be read never fires; the next pass ends it and notifies its owner.
        let Ok(def) = serde_json::from_str::<TriggerDef>(&row.get_text("body")?) else { continue };
        let Some(order) = def.order else { continue };
        let next: Millis = row.get_time("next_time")?.into();
        found.entry(order.batch_type).and_modify(|at| *at = next.min(*at)).or_insert(next);
    }
    Ok(found)
}

/// The stored next run of the jobs of a group.
struct StoredNextRun {
    group: String,
    /// The time that all its active jobs have; `None` where they differ.
    next: Option<Option<Millis>>,
}

async fn refresh_groups(tx: &mut Tx, groups: &NamedGroups, by_type: &NextByType) -> Result<()> {
    let NamedGroups { condition, values } = groups;
    let own = next_by_group(tx, groups).await?;
    let types = batch_types(tx, groups).await?;
    let mut written = written(tx, groups).await?;
    // In this program's order of codes, not that of the database's collation.
    written.sort_by(|one, other| one.group.cmp(&other.group));
    for StoredNextRun { group, next } in written {
        let batch_type = types.get(&group).cloned().flatten();
        let of_type = batch_type.and_then(|batch_type| by_type.get(&Some(batch_type)));
        let times = [own.get(&group), of_type, by_type.get(&None)];
        let wanted = times.into_iter().flatten().min().copied();
        if next == Some(wanted) {
            continue;
        }
        let sql = "UPDATE job_def SET next_run_time = ? WHERE group_code = ? AND is_active = 1";
        let values = [wanted.map(Millis::to_utc).into(), group.as_str().into()];
        tx.execute(sql, &values).await.context("write job_def.next_run_time")?;
    }
    let sql = format!(
        "UPDATE job_def SET next_run_time = NULL \
         WHERE is_active = 0 AND next_run_time IS NOT NULL AND {condition}"
    );
    tx.execute(&sql, values).await.context("clear job_def.next_run_time").map(drop)
}

/// The next time of the schedules that name a group.
async fn next_by_group(tx: &mut Tx, groups: &NamedGroups) -> Result<BTreeMap<String, Millis>> {
    let sql = format!(
        "SELECT t.group_code AS group_code, MIN(s.next_time) AS next_time FROM job_trigger t \
         JOIN job_trigger_time s ON s.trigger_id = t.trigger_id \
         WHERE s.next_time IS NOT NULL AND t.{} GROUP BY t.group_code",
        groups.condition
    );
    let rows = tx.fetch_all(&sql, &groups.values).await.context("read job_trigger_time")?;
    rows.iter()
        .map(|row| Ok((row.get_text("group_code")?, row.get_time("next_time")?.into())))
        .collect()
}

async fn batch_types(
    tx: &mut Tx,
    groups: &NamedGroups,
) -> Result<BTreeMap<String, Option<String>>> {
    let sql = format!("SELECT group_code, batch_type FROM job_group WHERE {}", groups.condition);
    let rows = tx.fetch_all(&sql, &groups.values).await.context("read job_group")?;
    rows.iter().map(|row| Ok((row.get_text("group_code")?, row.opt_text("batch_type")?))).collect()
}

async fn written(tx: &mut Tx, groups: &NamedGroups) -> Result<Vec<StoredNextRun>> {
    let sql = format!(
        "SELECT group_code, COUNT(*) AS jobs, COUNT(next_run_time) AS has_next, \
         MIN(next_run_time) AS first_time, MAX(next_run_time) AS last_time FROM job_def \
         WHERE is_active = 1 AND {} GROUP BY group_code ORDER BY group_code",
        groups.condition
    );
    let rows = tx.fetch_all(&sql, &groups.values).await.context("read job_def.next_run_time")?;
    let written = |row: &Row| -> Result<StoredNextRun> {
        let first = row.opt_time("first_time")?.map(Millis::from);
        let last = row.opt_time("last_time")?.map(Millis::from);
        let (jobs, has_next) = (row.get_int("jobs")?, row.get_int("has_next")?);
        let is_one = has_next == 0 || (has_next == jobs && first == last);
        Ok(StoredNextRun { group: row.get_text("group_code")?, next: is_one.then_some(first) })
    };
    rows.iter().map(written).collect()
}
