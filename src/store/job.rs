//! `data_source`, `job_group`, `job_def`, `job_dependency`: what may run.

use crate::db::{Row, Value};
use crate::domain::id::{GroupCode, JobCode, JobType, SourceName};
use crate::domain::job::{
    Definition, Group, JobDef, JobDependency, Param, SqlText, TransactionMode,
};
use crate::domain::source::Source;
use crate::domain::time::Millis;
use crate::store::Tx;
use anyhow::{Context as _, Result};
use chrono::NaiveTime;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// The parts of a job that no operator queries by column, as JSON in `job_def.body`.
#[derive(Serialize, Deserialize)]
struct Body {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sql: Option<SqlText>,
    transaction: TransactionMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    script: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    working_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    params: Vec<Param>,
}

/// Everything that is defined, in the order it was first written.
pub async fn definition(tx: &mut Tx) -> Result<Definition> {
    let sources = tx.fetch_all("SELECT * FROM data_source ORDER BY source_id", &[]).await?;
    let groups = tx.fetch_all("SELECT * FROM job_group ORDER BY group_id", &[]).await?;
    let jobs = tx.fetch_all("SELECT * FROM job_def ORDER BY job_id", &[]).await?;
    let dependencies = tx
        .fetch_all(
            "SELECT job_code, depends_on, dependency_order FROM job_dependency ORDER BY id",
            &[],
        )
        .await?;
    Ok(Definition {
        sources: sources.iter().map(source).collect::<Result<_>>().context("read data_source")?,
        groups: groups.iter().map(group).collect::<Result<_>>().context("read job_group")?,
        jobs: jobs.iter().map(job).collect::<Result<_>>().context("read job_def")?,
        dependencies: dependencies
            .iter()
            .map(dependency)
            .collect::<Result<_>>()
            .context("read job_dependency")?,
    })
}

fn json<T: serde::de::DeserializeOwned + Default>(text: Option<String>) -> Result<T> {
    text.map_or_else(|| Ok(T::default()), |t| Ok(serde_json::from_str(&t)?))
}

fn words(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split([',', ';']).map(str::trim).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

fn opt_u32(row: &Row, column: &str) -> Result<Option<u32>> {
    Ok(row.opt_int(column)?.map(u32::try_from).transpose()?)
}

fn source(row: &Row) -> Result<Source> {
    Ok(Source {
        name: SourceName::parse(&row.text("source_name")?)?,
        url: row.text("url")?,
        password_env: row.opt_text("password_env")?,
        password_file: row.opt_text("password_file")?,
        max_parallel: opt_u32(row, "max_parallel")?,
        procedures: json(row.opt_text("procedures")?)?,
    })
}

fn group(row: &Row) -> Result<Group> {
    Ok(Group {
        code: GroupCode::parse(&row.text("group_code")?)?,
        name: row.text("group_name")?,
        batch_type: row.opt_text("batch_type")?,
        owner: row.opt_text("owner")?,
        notify_email: words(row.opt_text("notify_email")?),
        max_parallel: opt_u32(row, "max_parallel")?,
        time_zone: row.opt_text("time_zone")?,
        params: json(row.opt_text("params")?)?,
    })
}

fn job(row: &Row) -> Result<JobDef> {
    let code = JobCode::parse(&row.text("job_code")?)?;
    job_of(row, &code).with_context(|| format!("job {code}"))
}

fn job_of(row: &Row, code: &JobCode) -> Result<JobDef> {
    let body: Body = serde_json::from_str(&row.text("body")?).context("column body")?;
    let time = row.opt_text("schedule_time")?;
    Ok(JobDef {
        code: code.clone(),
        name: row.text("job_name")?,
        group: GroupCode::parse(&row.text("group_code")?)?,
        job_type: JobType::parse(&row.text("job_type")?)?,
        source: row.opt_text("source_name")?.map(|s| SourceName::parse(&s)).transpose()?,
        proc_name: row.opt_text("proc_name")?,
        sql: body.sql,
        transaction: body.transaction,
        script: body.script,
        interpreter: body.interpreter,
        working_dir: body.working_dir,
        params: body.params,
        schedule_time: time
            .map(|t| NaiveTime::parse_from_str(&t, "%H:%M:%S").context("column schedule_time"))
            .transpose()?,
        timeout_sec: u32::try_from(row.int("timeout_sec")?)?,
        retry_count: u32::try_from(row.int("retry_count")?)?,
        retry_delay_sec: u32::try_from(row.int("retry_delay_sec")?)?,
        priority: i32::try_from(row.int("priority")?)?,
        idempotent: row.flag("is_idempotent")?,
        is_active: row.flag("is_active")?,
        notify_email: words(row.opt_text("notify_email")?),
        owner: row.opt_text("owner")?,
        tags: words(row.opt_text("tags")?),
    })
}

fn dependency(row: &Row) -> Result<JobDependency> {
    Ok(JobDependency {
        job_code: JobCode::parse(&row.text("job_code")?)?,
        depends_on: JobCode::parse(&row.text("depends_on")?)?,
        dependency_order: i32::try_from(row.int("dependency_order")?)?,
    })
}

/// Makes the tables say what `wanted` says about its own sources, groups and jobs: adds, changes,
/// and removes jobs of its groups that it no longer has. Other groups are left alone. `stored` is
/// what `definition` gave in the same transaction, so that only differences are written.
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
    remove_jobs(tx, stored, wanted).await?;
    write_jobs(tx, stored, wanted, now).await?;
    write_dependencies(tx, stored, wanted).await
}

async fn remove_jobs(tx: &mut Tx, stored: &Definition, wanted: &Definition) -> Result<()> {
    let groups: HashSet<&GroupCode> = wanted.groups.iter().map(|g| &g.code).collect();
    let keep: HashSet<&JobCode> = wanted.jobs.iter().map(|j| &j.code).collect();
    let gone = stored.jobs.iter().filter(|j| groups.contains(&j.group) && !keep.contains(&j.code));
    for job in gone {
        tx.execute("DELETE FROM job_def WHERE job_code = ?", &[job.code.as_str().into()]).await?;
        tx.execute("DELETE FROM job_dependency WHERE job_code = ?", &[job.code.as_str().into()])
            .await?;
    }
    Ok(())
}

async fn write_jobs(
    tx: &mut Tx,
    stored: &Definition,
    wanted: &Definition,
    now: Millis,
) -> Result<()> {
    let before: BTreeMap<&JobCode, &JobDef> = stored.jobs.iter().map(|j| (&j.code, j)).collect();
    let waits = |d: &Definition| -> HashSet<JobCode> {
        d.dependencies.iter().map(|d| d.job_code.clone()).collect()
    };
    let (waited, waits) = (waits(stored), waits(wanted));
    let mut fresh = Vec::new();
    for job in &wanted.jobs {
        let row = job_row(job, waits.contains(&job.code))?;
        let same_wait = waited.contains(&job.code) == waits.contains(&job.code);
        match before.get(&job.code) {
            None => fresh.push(row),
            Some(old) if *old == job && same_wait => {}
            Some(_) => update(tx, "job_def", "job_code", row, now).await?,
        }
    }
    insert(tx, "job_def", fresh, now).await
}

async fn write_dependencies(tx: &mut Tx, stored: &Definition, wanted: &Definition) -> Result<()> {
    let ours: HashSet<&JobCode> = wanted.jobs.iter().map(|j| &j.code).collect();
    let before: HashSet<&JobDependency> =
        stored.dependencies.iter().filter(|d| ours.contains(&d.job_code)).collect();
    let after: HashSet<&JobDependency> = wanted.dependencies.iter().collect();
    for gone in before.difference(&after) {
        tx.execute(
            "DELETE FROM job_dependency WHERE job_code = ? AND depends_on = ?",
            &[gone.job_code.as_str().into(), gone.depends_on.as_str().into()],
        )
        .await?;
    }
    let columns = ["job_code", "depends_on", "dependency_order"];
    let rows = wanted.dependencies.iter().filter(|d| !before.contains(d)).map(|d| {
        vec![
            d.job_code.as_str().into(),
            d.depends_on.as_str().into(),
            i64::from(d.dependency_order).into(),
        ]
    });
    tx.insert_many("job_dependency", &columns, rows).await.context("write job_dependency")
}

type Columns = Vec<(&'static str, Value)>;

fn source_row(source: &Source) -> Result<Columns> {
    Ok(vec![
        ("source_name", source.name.as_str().into()),
        ("url", source.url.as_str().into()),
        ("password_env", source.password_env.as_deref().into()),
        ("password_file", source.password_file.as_deref().into()),
        ("max_parallel", source.max_parallel.into()),
        ("procedures", serde_json::to_string(&source.procedures)?.into()),
    ])
}

fn group_row(group: &Group) -> Result<Columns> {
    Ok(vec![
        ("group_code", group.code.as_str().into()),
        ("group_name", group.name.as_str().into()),
        ("batch_type", group.batch_type.as_deref().into()),
        ("owner", group.owner.as_deref().into()),
        ("notify_email", group.notify_email.join(",").into()),
        ("max_parallel", group.max_parallel.into()),
        ("time_zone", group.time_zone.as_deref().into()),
        ("params", serde_json::to_string(&group.params)?.into()),
    ])
}

fn job_row(job: &JobDef, waits: bool) -> Result<Columns> {
    let body = Body {
        sql: job.sql.clone(),
        transaction: job.transaction,
        script: job.script.clone(),
        interpreter: job.interpreter.clone(),
        working_dir: job.working_dir.clone(),
        params: job.params.clone(),
    };
    Ok(vec![
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
        ("group_code", job.group.as_str().into()),
        ("source_name", job.source.as_ref().map(SourceName::as_str).into()),
        ("retry_delay_sec", job.retry_delay_sec.into()),
        ("priority", job.priority.into()),
        ("is_idempotent", job.idempotent.into()),
        ("owner", job.owner.as_deref().into()),
        ("tags", job.tags.join(",").into()),
        ("body", serde_json::to_string(&body)?.into()),
    ])
}

async fn upsert(tx: &mut Tx, table: &str, key: &str, columns: Columns, now: Millis) -> Result<()> {
    let value = columns[0].1.clone();
    let sql = format!("SELECT {key} FROM {table} WHERE {key} = ?");
    if tx.fetch_optional(&sql, &[value]).await?.is_some() {
        return update(tx, table, key, columns, now).await;
    }
    insert(tx, table, vec![columns], now).await
}

/// The first column is the key.
async fn update(tx: &mut Tx, table: &str, key: &str, columns: Columns, now: Millis) -> Result<()> {
    let sets: Vec<String> = columns[1..].iter().map(|(name, _)| format!("{name} = ?")).collect();
    let mut values: Vec<Value> = columns[1..].iter().map(|(_, value)| value.clone()).collect();
    values.extend([now.to_utc().into(), columns[0].1.clone()]);
    let sql = format!("UPDATE {table} SET {}, update_time = ? WHERE {key} = ?", sets.join(", "));
    tx.execute(&sql, &values).await.with_context(|| format!("write {table}"))?;
    Ok(())
}

async fn insert(tx: &mut Tx, table: &str, rows: Vec<Columns>, now: Millis) -> Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut names: Vec<&str> = first.iter().map(|(name, _)| *name).collect();
    names.extend(["create_time", "update_time"]);
    let values = rows.into_iter().map(|columns| {
        let mut row: Vec<Value> = columns.into_iter().map(|(_, value)| value).collect();
        row.extend([now.to_utc().into(), now.to_utc().into()]);
        row
    });
    tx.insert_many(table, &names, values).await.with_context(|| format!("write {table}"))
}
