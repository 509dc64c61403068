//! `data_source`, `job_group`, `job_def`, `job_dependency`: the definition.

use crate::db::Row;
use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::shared_definitions::Owner;
use crate::domain::job::{Definition, Group, JobDef};
use crate::domain::source::DataSource;
use crate::domain::time::Millis;
use crate::store::columns::{RowColumns, insert, joined, other_fields, spliced, update, upsert};
use crate::store::dependency::{condition, condition_text};
use crate::store::long_computation::compute;
use crate::store::{
    Tx, breach, calendar, dependency, epoch, executor_group, group_access, secret, shared,
};
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The fields of a job with columns of their own; all others are JSON in `job_def.body`.
const JOB_COLUMNS: &[&str] = &[
    "code",
    "name",
    "group",
    "type",
    "source",
    "proc_name",
    "schedule_time",
    "timeout_sec",
    "retry_count",
    "retry_delay_sec",
    "priority",
    "idempotent",
    "is_active",
    "notify_email",
    "owner",
    "tags",
    "trigger_rule",
];
/// The same for a group; all others are JSON in `job_group.options`.
const GROUP_COLUMNS: &[&str] =
    &["code", "name", "type", "owner", "notify_email", "max_parallel", "time_zone", "params"];

/// Rows of `job_def` read or written at a time: a row and its bound values take more memory than
/// what is read from it, and there may be 100,000.
const AT_ONCE: u32 = 4_096;

/// The complete definition, in the order in which it was first written; schedules are in `trigger`.
pub async fn definition(tx: &mut Tx) -> Result<Definition> {
    let (mut defs, first) = read_tables(tx, &dependency::first_query()).await?;
    let rest = dependency::read_dependencies(tx, &defs.jobs, first);
    defs.dependencies = rest.await.context("read job_dependency")?;
    Ok(defs)
}

/// The same without dependencies within groups, which may be a million rows.
pub async fn without_dependencies(tx: &mut Tx) -> Result<Definition> {
    Ok(read_tables(tx, "SELECT 1 AS none").await?.0)
}

/// Only what all groups share and what belongs to the installation: no groups, no jobs.
pub async fn shared_alone(tx: &mut Tx) -> Result<Definition> {
    let [owners, pools, hosts, declared, params] = shared::QUERIES;
    let [days, calendars] = calendar::QUERIES;
    let (stored, executors) = (secret::LIST_QUERY, executor_group::ACCESS_QUERY);
    let queries =
        [SOURCE_QUERY, owners, pools, hosts, declared, params, days, calendars, stored, executors];
    let [sources, owners, pools, hosts, declared, params, days, calendars, stored, executors] =
        tx.fetch_sets(queries).await.context("read what all groups share")?;
    Ok(Definition {
        sources: sources.iter().map(source).collect::<Result<_>>().context("read data_source")?,
        shared: shared::from_rows(&[owners, pools, hosts, declared, params])?,
        calendars: calendar::from_rows(&days, &calendars)?,
        stored_secrets: secret::access_of(&stored)?,
        executor_groups: executor_group::access_of(&executors)?,
        ..Definition::default()
    })
}

const SOURCE_QUERY: &str = "SELECT * FROM data_source ORDER BY source_id";
const GROUP_QUERY: &str = "SELECT * FROM job_group ORDER BY group_id";
const EXTERNAL_QUERY: &str = "SELECT * FROM job_external_dependency ORDER BY id";

/// Reads all tables of the definition in one round trip, with the first rows of `job_def`, and the
/// result of the query `dependencies`.
async fn read_tables(tx: &mut Tx, dependencies: &str) -> Result<(Definition, Vec<Row>)> {
    let first_jobs = format!("SELECT * FROM job_def ORDER BY job_id LIMIT {AT_ONCE}");
    let [owners, pools, hosts, declared, params] = shared::QUERIES;
    let [days, calendars] = calendar::QUERIES;
    let [
        sources,
        groups,
        first_jobs,
        externals,
        owners,
        pools,
        hosts,
        declared,
        params,
        days,
        calendars,
        stored,
        executors,
        first,
    ] = tx
        .fetch_sets([
            SOURCE_QUERY,
            GROUP_QUERY,
            &first_jobs,
            EXTERNAL_QUERY,
            owners,
            pools,
            hosts,
            declared,
            params,
            days,
            calendars,
            secret::LIST_QUERY,
            executor_group::ACCESS_QUERY,
            dependencies,
        ])
        .await
        .context("read the definitions")?;
    let jobs = read_jobs(tx, &first_jobs).await.context("read job_def")?;
    let defs = Definition {
        sources: sources.iter().map(source).collect::<Result<_>>().context("read data_source")?,
        groups: groups.iter().map(group).collect::<Result<_>>().context("read job_group")?,
        jobs,
        dependencies: Vec::new(),
        externals: externals
            .iter()
            .map(external)
            .collect::<Result<_>>()
            .context("read job_external_dependency")?,
        shared: shared::from_rows(&[owners, pools, hosts, declared, params])?,
        schedules: Vec::new(),
        calendars: calendar::from_rows(&days, &calendars)?,
        stored_secrets: secret::access_of(&stored)?,
        configured_secrets: BTreeMap::new(),
        executor_groups: executor_group::access_of(&executors)?,
    };
    Ok((defs, first))
}

/// All jobs, of which the first rows have been read.
async fn read_jobs(tx: &mut Tx, first: &[Row]) -> Result<Vec<JobDef>> {
    let sql = "SELECT * FROM job_def WHERE job_id > ? ORDER BY job_id LIMIT ?";
    let read = |rows: &[Row]| {
        compute(rows.len(), || rows.iter().map(job_of_row).collect::<Result<Vec<_>>>())
    };
    let mut found = read(first)?;
    let (mut count, mut last) = (first.len(), first.last().map(|row| row.get_int("job_id")));
    while let Some(id) = last.take().filter(|_| count == AT_ONCE as usize) {
        let rows = tx.fetch_all(sql, &[id?.into(), AT_ONCE.into()]).await?;
        found.extend(read(&rows)?);
        (count, last) = (rows.len(), rows.last().map(|row| row.get_int("job_id")));
    }
    Ok(found)
}

/// Groups and owners: the recipients of notifications.
pub async fn audience(tx: &mut Tx) -> Result<(Vec<Group>, Vec<Owner>)> {
    let [groups, owners] = tx.fetch_sets([GROUP_QUERY, shared::OWNER_QUERY]).await?;
    let groups = groups.iter().map(group).collect::<Result<_>>().context("read job_group")?;
    Ok((groups, shared::owners(&owners)?))
}

fn parse_json<T: serde::de::DeserializeOwned + Default>(text: Option<String>) -> Result<T> {
    text.map_or_else(|| Ok(T::default()), |t| Ok(serde_json::from_str(&t)?))
}

fn words(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split([',', ';']).map(str::trim).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

fn opt_u32(row: &Row, column: &str) -> Result<Option<u32>> {
    Ok(row.opt_int(column)?.map(u32::try_from).transpose()?)
}

fn source(row: &Row) -> Result<DataSource> {
    Ok(DataSource {
        name: SourceName::parse(&row.get_text("source_name")?)?,
        url: row.get_text("url")?,
        password_env: row.opt_text("password_env")?,
        password_file: row.opt_text("password_file")?,
        password_secret: row.opt_text("password_secret")?,
        read_password: Default::default(),
        max_parallel: opt_u32(row, "max_parallel")?,
        procedures: parse_json(row.opt_text("procedures")?)?,
        access: group_access::access_of_row(row)?,
    })
}

fn group(row: &Row) -> Result<Group> {
    let params: Option<Json> =
        row.opt_text("params")?.map(|t| serde_json::from_str(&t)).transpose()?;
    let columns = serde_json::json!({
        "code": row.get_text("group_code")?,
        "name": row.get_text("group_name")?,
        "type": row.opt_text("batch_type")?,
        "owner": row.opt_text("owner")?,
        "notify_email": words(row.opt_text("notify_email")?),
        "max_parallel": opt_u32(row, "max_parallel")?,
        "time_zone": row.opt_text("time_zone")?,
        "params": params,
    });
    joined(row.opt_text("options")?, columns)
}

pub(super) fn job_of_row(row: &Row) -> Result<JobDef> {
    let code = JobCode::parse(&row.get_text("job_code")?)?;
    job_of(row, &code).with_context(|| format!("job {code}"))
}

fn job_of(row: &Row, code: &JobCode) -> Result<JobDef> {
    let (job_type, group) = (row.get_text("job_type")?, row.get_text("group_code")?);
    let (name, trigger_rule) = (row.get_text("job_name")?, row.get_text("trigger_rule")?);
    let columns = JobColumns {
        code,
        name: &name,
        group: &group,
        job_type: &job_type,
        source: row.opt_text("source_name")?,
        proc_name: row.opt_text("proc_name")?,
        schedule_time: row.opt_text("schedule_time")?,
        timeout_sec: row.get_int("timeout_sec")?,
        retry_count: row.get_int("retry_count")?,
        retry_delay_sec: row.get_int("retry_delay_sec")?,
        priority: row.get_int("priority")?,
        idempotent: row.get_flag("is_idempotent")?,
        is_active: row.get_flag("is_active")?,
        notify_email: words(row.opt_text("notify_email")?),
        owner: row.opt_text("owner")?,
        tags: words(row.opt_text("tags")?),
        trigger_rule: &trigger_rule,
    };
    spliced(&row.get_text("body")?, &columns)
}

/// The fields in `JOB_COLUMNS` as JSON.
#[derive(Serialize)]
struct JobColumns<'a> {
    code: &'a JobCode,
    name: &'a str,
    group: &'a str,
    #[serde(rename = "type")]
    job_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proc_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_time: Option<String>,
    timeout_sec: i64,
    retry_count: i64,
    retry_delay_sec: i64,
    priority: i64,
    idempotent: bool,
    is_active: bool,
    notify_email: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    tags: Vec<String>,
    trigger_rule: &'a str,
}

pub(super) fn external(row: &Row) -> Result<ExternalDependency> {
    Ok(ExternalDependency {
        waiting_group: GroupCode::parse(&row.get_text("waiting_group")?)?,
        job_code: JobCode::parse(&row.get_text("job_code")?)?,
        group: GroupCode::parse(&row.get_text("group_code")?)?,
        depends_on: row.opt_text("depends_on")?.map(|c| JobCode::parse(&c)).transpose()?,
        batch: serde_json::from_value(Json::String(row.get_text("batch_expr")?))?,
        when: condition(row)?,
        missing: serde_json::from_value(Json::String(row.get_text("missing")?))?,
        wait_sec: opt_u32(row, "wait_sec")?,
    })
}

/// A job by its group and code, as a key of maps that borrow from the definition.
type KeyRef<'a> = (&'a GroupCode, &'a JobCode);

fn key(job: &JobDef) -> KeyRef<'_> {
    (&job.group, &job.code)
}

/// Makes the tables match what `wanted` says about its own sources, groups and jobs: adds, changes,
/// and removes jobs of its groups that it no longer has. Other groups are not touched. `stored` is
/// the result of `definition` in the same transaction, so that only differences are written.
pub async fn apply(
    tx: &mut Tx,
    stored: &Definition,
    wanted: &Definition,
    now: Millis,
) -> Result<()> {
    for source in &wanted.sources {
        if stored.sources.iter().all(|s| s != source) {
            upsert(tx, "data_source", "source_name", source_row(source)?, now).await?;
        }
    }
    for group in &wanted.groups {
        if stored.groups.iter().all(|g| g != group) {
            upsert(tx, "job_group", "group_code", group_row(group)?, now).await?;
        }
    }
    shared::write(tx, &stored.shared, &wanted.shared, now).await?;
    remove_jobs(tx, stored, wanted).await?;
    breach::clear_settled(tx, stored, wanted).await?;
    write_jobs(tx, stored, wanted, now).await?;
    dependency::write(tx, stored, wanted).await?;
    write_externals(tx, stored, wanted).await?;
    epoch::bump_epoch(tx, epoch::Epoch::Definition).await
}

async fn remove_jobs(tx: &mut Tx, stored: &Definition, wanted: &Definition) -> Result<()> {
    let groups: HashSet<&GroupCode> = wanted.groups.iter().map(|g| &g.code).collect();
    let keep: HashSet<KeyRef<'_>> = wanted.jobs.iter().map(key).collect();
    let gone = stored.jobs.iter().filter(|j| groups.contains(&j.group) && !keep.contains(&key(j)));
    for job in gone {
        let values = [job.group.as_str().into(), job.code.as_str().into()];
        for (table, group) in [
            ("job_def", "group_code"),
            ("job_dependency", "group_code"),
            ("job_external_dependency", "waiting_group"),
        ] {
            let sql = format!("DELETE FROM {table} WHERE {group} = ? AND job_code = ?");
            tx.execute(&sql, &values).await?;
        }
    }
    Ok(())
}

async fn write_jobs(
    tx: &mut Tx,
    stored: &Definition,
    wanted: &Definition,
    now: Millis,
) -> Result<()> {
    let before: HashMap<KeyRef<'_>, &JobDef> = stored.jobs.iter().map(|j| (key(j), j)).collect();
    fn waits(defs: &Definition) -> HashSet<KeyRef<'_>> {
        defs.dependencies.iter().map(|d| (&d.group, &d.job_code)).collect()
    }
    let (waited, waits) = (waits(stored), waits(wanted));
    let mut fresh = Vec::new();
    for job in &wanted.jobs {
        if fresh.len() == AT_ONCE as usize {
            insert(tx, "job_def", std::mem::take(&mut fresh), now).await?;
        }
        let row = || job_row(job, waits.contains(&key(job)));
        let same_wait = waited.contains(&key(job)) == waits.contains(&key(job));
        match before.get(&key(job)) {
            None => fresh.push(row()?),
            Some(old) if *old == job && same_wait => {}
            Some(_) => update(tx, "job_def", &["group_code", "job_code"], row()?, now).await?,
        }
    }
    insert(tx, "job_def", fresh, now).await?;
    tx.look_over("job_def", wanted.jobs.len()).await.context("look over job_def")
}

/// If the list of a job differs, all its entries are written again, which keeps their order.
async fn write_externals(tx: &mut Tx, stored: &Definition, wanted: &Definition) -> Result<()> {
    fn by_job(defs: &Definition) -> HashMap<KeyRef<'_>, Vec<&ExternalDependency>> {
        let mut found: HashMap<_, Vec<_>> = HashMap::new();
        for external in &defs.externals {
            found.entry((&external.waiting_group, &external.job_code)).or_default().push(external);
        }
        found
    }
    let (mut stored, mut wanting) = (by_job(stored), by_job(wanted));
    let mut fresh = Vec::new();
    for job in &wanted.jobs {
        let of = |all: &mut HashMap<_, Vec<_>>| all.remove(&key(job)).unwrap_or_default();
        let (before, after) = (of(&mut stored), of(&mut wanting));
        if before == after {
            continue;
        }
        if !before.is_empty() {
            let sql =
                "DELETE FROM job_external_dependency WHERE waiting_group = ? AND job_code = ?";
            let values = [job.group.as_str().into(), job.code.as_str().into()];
            tx.execute(sql, &values).await?;
        }
        fresh.extend(after);
    }
    let columns = [
        "waiting_group",
        "job_code",
        "group_code",
        "depends_on",
        "batch_expr",
        "edge_condition",
        "missing",
        "wait_sec",
    ];
    let word = |value: Result<Json, serde_json::Error>| {
        value.ok().and_then(|v| v.as_str().map(str::to_owned))
    };
    let rows = fresh.iter().map(|e| {
        vec![
            e.waiting_group.as_str().into(),
            e.job_code.as_str().into(),
            e.group.as_str().into(),
            e.depends_on.as_ref().map(JobCode::as_str).into(),
            word(serde_json::to_value(&e.batch)).into(),
            condition_text(&e.when).into(),
            word(serde_json::to_value(e.missing)).into(),
            e.wait_sec.into(),
        ]
    });
    tx.insert_many("job_external_dependency", &columns, rows)
        .await
        .context("write job_external_dependency")
}

fn source_row(source: &DataSource) -> Result<RowColumns> {
    Ok(vec![
        ("source_name", source.name.as_str().into()),
        ("url", source.url.as_str().into()),
        ("password_env", source.password_env.as_deref().into()),
        ("password_file", source.password_file.as_deref().into()),
        ("password_secret", source.password_secret.as_deref().into()),
        ("max_parallel", source.max_parallel.into()),
        ("procedures", serde_json::to_string(&source.procedures)?.into()),
        ("owner_group", source.access.owner_group.as_ref().map(GroupCode::as_str).into()),
        ("allowed_groups", group_access::allowed_groups_text(&source.access)?.into()),
    ])
}

fn group_row(group: &Group) -> Result<RowColumns> {
    Ok(vec![
        ("group_code", group.code.as_str().into()),
        ("group_name", group.name.as_str().into()),
        ("batch_type", group.batch_type.as_deref().into()),
        ("owner", group.owner.as_deref().into()),
        ("notify_email", group.notify_email.join(",").into()),
        ("max_parallel", group.max_parallel.into()),
        ("time_zone", group.time_zone.as_deref().into()),
        ("params", serde_json::to_string(&group.params)?.into()),
        ("options", other_fields(group, GROUP_COLUMNS)?.into()),
    ])
}

fn job_row(job: &JobDef, waits: bool) -> Result<RowColumns> {
    Ok(vec![
        ("group_code", job.group.as_str().into()),
        ("job_code", job.code.as_str().into()),
        ("job_name", job.name.as_str().into()),
        ("proc_name", job.proc_name.as_deref().into()),
        ("job_type", job.job_type.as_str().into()),
        ("schedule_time", job.schedule_time.map(|t| t.format("%H:%M:%S").to_string()).into()),
        ("timeout_sec", job.timeout_sec.into()),
        ("retry_count", job.retry_count.into()),
        ("notify_email", job.notify_email.join(",").into()),
        ("is_depend", waits.into()),
        ("is_active", job.is_active.into()),
        ("source_name", job.source.as_ref().map(SourceName::as_str).into()),
        ("retry_delay_sec", job.retry_delay_sec.into()),
        ("priority", job.priority.into()),
        ("is_idempotent", job.idempotent.into()),
        ("owner", job.owner.as_deref().into()),
        ("tags", job.tags.join(",").into()),
        ("trigger_rule", job.trigger_rule.as_str().into()),
        ("body", other_fields(job, JOB_COLUMNS)?.into()),
    ])
}
