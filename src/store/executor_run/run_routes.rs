//! The inputs of routing: the group with the addresses of its executors, and how often a job was
//! sent to each.

use crate::domain::access::group_access::GroupAccess;
use crate::domain::executor::route::{RouteState, RouteStrategy, Use};
use crate::domain::executor::{GONE_MS, GluePolicy, Spoken};
use crate::domain::job::job_key::JobKey;
use crate::domain::time::Millis;
use crate::domain::xxl::xxl_run::AppName;
use crate::store::{Tx, executor_registry, group_access};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, HashMap};

/// How long uses count, in milliseconds.
const DAY_MS: i64 = 86_400_000;

/// An executor group, as its runs need it.
#[derive(Clone, Debug)]
pub struct RunExecutorGroup {
    /// Addresses of its living executors, in alphabetical order.
    pub addresses: Vec<String>,
    /// The last known dialect of each executor, including those no longer alive.
    spoken: BTreeMap<String, Spoken>,
    /// Whether scripts may be sent to them.
    pub glue: GluePolicy,
    /// Which groups of jobs may use them.
    pub access: GroupAccess,
    /// Its sealed token.
    pub sealed: String,
}

impl RunExecutorGroup {
    /// The dialect of an executor; for one that has never shown its own, that of releases.
    pub fn spoken(&self, address: &str) -> Spoken {
        self.spoken.get(address).copied().unwrap_or(Spoken::Run)
    }
}

/// The group of this name; `None` when it does not exist.
pub async fn group(tx: &mut Tx, app: &AppName, now: Millis) -> Result<Option<RunExecutorGroup>> {
    let sql = "SELECT addresses, allows_glue, owner_group, allowed_groups, token_sealed FROM executor_group \
               WHERE app_name = ?";
    let row =
        tx.fetch_optional(sql, &[app.as_str().into()]).await.context("read executor_group")?;
    let Some(row) = row else { return Ok(None) };
    let said = executor_registry::list_executors(tx, Some(app)).await?;
    let addresses = match row.opt_text("addresses")? {
        Some(text) => {
            let mut all: Vec<String> =
                serde_json::from_str(&text).context("executor_group.addresses")?;
            all.sort();
            all
        }
        None => {
            let there = said.iter().filter(|said| said.is_there(now));
            there.map(|said| said.address.clone()).collect()
        }
    };
    let spoken = said.into_iter().map(|said| (said.address, said.dialect)).collect();
    let glue = if row.get_flag("allows_glue")? { GluePolicy::Allowed } else { GluePolicy::Refused };
    let access = group_access::access_of_row(&row)?;
    Ok(Some(RunExecutorGroup {
        addresses,
        spoken,
        glue,
        access,
        sealed: row.get_text("token_sealed")?,
    }))
}

/// Whether an executor has registered recently.
pub async fn address_is_seen(
    tx: &mut Tx,
    app: &AppName,
    address: &str,
    now: Millis,
) -> Result<bool> {
    let sql = "SELECT registry_id FROM executor_registry WHERE app_name = ? AND address = ? \
               AND update_time >= ?";
    let values = [app.as_str().into(), address.into(), now.plus_ms(-GONE_MS).to_utc().into()];
    Ok(tx.fetch_optional(sql, &values).await.context("read executor_registry")?.is_some())
}

/// The job's id for executors; assigned when it has none. The caller holds the lock.
pub async fn number(tx: &mut Tx, job: &JobKey) -> Result<i64> {
    let values = [job.group.as_str().into(), job.code.as_str().into()];
    let sql = "SELECT job_id FROM executor_job WHERE group_code = ? AND job_code = ?";
    let row = tx.fetch_optional(sql, &values).await.context("read executor_job")?;
    if let Some(row) = row {
        return Ok(row.get_int("job_id")?);
    }
    let sql = "INSERT INTO executor_job (group_code, job_code, rounds) VALUES (?, ?, 0)";
    tx.insert_id(sql, "job_id", &values).await.context("number a job")
}

/// How often jobs were routed, by their ids.
pub async fn rounds(tx: &mut Tx, jobs: &[i64]) -> Result<HashMap<i64, i64>> {
    let sql = "SELECT job_id, rounds FROM executor_job WHERE job_id";
    let rows = tx.fetch_in(sql, jobs, "").await.context("read executor_job")?;
    rows.iter().map(|row| Ok((row.get_int("job_id")?, row.get_int("rounds")?))).collect()
}

/// What the route of a job needs, given how often it was routed; runs no query for routes that need
/// nothing.
pub async fn route_state(
    tx: &mut Tx,
    job_id: i64,
    route: RouteStrategy,
    roll: u64,
    rounds: i64,
    now: Millis,
) -> Result<RouteState> {
    let mut state = RouteState { job_id, roll, rounds, ..RouteState::default() };
    match route {
        RouteStrategy::LeastFrequentlyUsed | RouteStrategy::LeastRecentlyUsed => {
            let sql =
                "SELECT address, uses, since_time, used_time FROM executor_use WHERE job_id = ?";
            let rows = tx.fetch_all(sql, &[job_id.into()]).await.context("read executor_use")?;
            for row in rows {
                let since = Millis::from(row.get_time("since_time")?);
                let uses = if now.since(since) < DAY_MS { row.get_int("uses")? } else { 0 };
                let used = row.get_time("used_time")?.into();
                state.uses.insert(row.get_text("address")?, Use { uses, used });
            }
        }
        RouteStrategy::First | RouteStrategy::Last => {}
        RouteStrategy::Random | RouteStrategy::Round => {}
        RouteStrategy::ConsistentHash | RouteStrategy::Failover => {}
        RouteStrategy::Busyover | RouteStrategy::ShardingBroadcast => {}
    }
    Ok(state)
}

/// Counts a routing for each of these jobs.
pub async fn took_turns(tx: &mut Tx, jobs: &[i64]) -> Result<()> {
    let sql = "UPDATE executor_job SET rounds = rounds + 1 WHERE job_id";
    tx.execute_in(sql, &[], jobs, "", &[]).await.context("count turns")?;
    Ok(())
}

/// Counts a run of a job on an executor; the count restarts each day.
pub async fn note_use(tx: &mut Tx, job_id: i64, address: &str, now: Millis) -> Result<()> {
    let sql = "SELECT uses, since_time FROM executor_use WHERE job_id = ? AND address = ?";
    let row = tx.fetch_optional(sql, &[job_id.into(), address.into()]).await;
    let row = row.context("read executor_use")?;
    let (mut uses, mut since) = (0, now);
    if let Some(row) = row {
        let at = Millis::from(row.get_time("since_time")?);
        if now.since(at) < DAY_MS {
            (uses, since) = (row.get_int("uses")?, at);
        }
    }
    let row = vec![
        job_id.into(),
        address.into(),
        (uses + 1).into(),
        since.to_utc().into(),
        now.to_utc().into(),
    ];
    let columns = ["job_id", "address", "uses", "since_time", "used_time"];
    tx.upsert_many("executor_use", "job_id, address", &columns, [row])
        .await
        .context("count a use of an executor")
}

/// Removes uses that no longer count.
pub async fn forget_uses(tx: &mut Tx, before: Millis) -> Result<u64> {
    let sql = "DELETE FROM executor_use WHERE used_time < ?";
    tx.execute(sql, &[before.to_utc().into()]).await.context("forget uses of executors")
}
