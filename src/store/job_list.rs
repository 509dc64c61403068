//! Pages of `job_def`, and one job with its neighbours, without reading all 100,000 jobs.

use crate::db::SqlValue;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::job_key::{self, JobKey, JobNameError, split_qualified};
use crate::domain::job::{Definition, JobDef, JobDependency};
use crate::store::Tx;
use crate::store::dependency::condition;
use crate::store::job::{external, job_of_row};
use crate::store::seen::{among, holds};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A filter for jobs; a `None` field does not restrict.
#[derive(Clone, Debug, Default)]
pub struct JobListFilter {
    /// A text contained in code, name, owner, tags or an alias.
    pub text: Option<String>,
    pub group: Option<GroupCode>,
    pub tag: Option<String>,
    pub job_type: Option<String>,
    pub is_active: Option<bool>,
}

/// Jobs of visible groups, by code and group, after the job `after`.
pub async fn list_page(
    tx: &mut Tx,
    filter: &JobListFilter,
    seen: Option<&BTreeSet<GroupCode>>,
    after: Option<&JobKey>,
    limit: usize,
) -> Result<Vec<JobDef>> {
    let (mut sql, mut values) = (String::new(), Vec::new());
    let mut also = |(text, its): (String, Vec<SqlValue>)| {
        sql.push_str(&text);
        values.extend(its);
    };
    also(among("group_code", seen));
    let is = |column: &str, value: Option<&str>| match value {
        Some(value) => (format!(" AND {column} = ?"), vec![SqlValue::from(value)]),
        None => (String::new(), Vec::new()),
    };
    also(is("group_code", filter.group.as_ref().map(GroupCode::as_str)));
    also(is("job_type", filter.job_type.as_deref()));
    also(match filter.is_active {
        Some(true) => (" AND is_active = 1".to_owned(), Vec::new()),
        Some(false) => (" AND is_active = 0".to_owned(), Vec::new()),
        None => (String::new(), Vec::new()),
    });
    if let Some(tag) = &filter.tag {
        // Tags are in one column, separated by commas.
        also(holds(&["CONCAT(',', tags, ',')"], &format!(",{tag},")));
    }
    if let Some(text) = &filter.text {
        also(holds(&["job_code", "job_name", "tags", "owner", ALIASES], text));
    }
    also(match after {
        Some(JobKey { group, code }) => (
            " AND job_code >= ? AND (job_code > ? OR group_code > ?)".to_owned(),
            vec![code.as_str().into(), code.as_str().into(), group.as_str().into()],
        ),
        None => (String::new(), Vec::new()),
    });
    let sql =
        format!("SELECT * FROM job_def WHERE 1 = 1{sql} ORDER BY job_code, group_code LIMIT ?");
    values.push(i64::try_from(limit)?.into());
    let rows = tx.fetch_all(&sql, &values).await.context("read job_def")?;
    rows.iter().map(job_of_row).collect()
}

/// The aliases of a job, as far as SQL can select them: they are part of the JSON body.
pub(super) const ALIASES: &str = "CASE WHEN body LIKE '%\"aliases\":[%' THEN body END";

/// The one job that `word` (`CODE` or `group.CODE`) names by code or alias, in visible groups.
pub async fn find_named(
    tx: &mut Tx,
    word: &str,
    seen: Option<&BTreeSet<GroupCode>>,
) -> Result<Result<JobDef, JobNameError>> {
    let word = word.trim();
    let mut codes: Vec<String> = split_qualified(word).map(|key| key.code.to_string()).collect();
    codes.push(word.to_owned());
    let places = vec!["?"; codes.len()].join(", ");
    let mut values: Vec<SqlValue> = codes.iter().map(|code| code.as_str().into()).collect();
    let (whose, its) = among("group_code", seen);
    values.extend(its.clone());
    let sql = format!("SELECT * FROM job_def WHERE job_code IN ({places}){whose}");
    let rows = tx.fetch_all(&sql, &values).await.context("read job_def")?;
    let jobs: Vec<JobDef> = rows.iter().map(job_of_row).collect::<Result<_>>()?;
    match job_key::find_named(&jobs, word) {
        Err(JobNameError::Unknown(_)) => {}
        found => return Ok(found.cloned()),
    }
    let mut jobs = Vec::new();
    for code in &codes {
        let (condition, mut values) = holds(&[ALIASES], &format!("\"{code}\""));
        values.extend(its.clone());
        let sql = format!("SELECT * FROM job_def WHERE 1 = 1{condition}{whose}");
        for row in tx.fetch_all(&sql, &values).await.context("read job_def")? {
            let job = job_of_row(&row)?;
            if jobs.iter().all(|other: &JobDef| other.key() != job.key()) {
                jobs.push(job);
            }
        }
    }
    Ok(job_key::find_named(&jobs, word).cloned())
}

/// A job with its edges to parents and children, and its dependencies on other batches.
pub async fn around(tx: &mut Tx, job: JobDef) -> Result<Definition> {
    let (group, code) = (job.group.as_str(), job.code.as_str());
    let sql = "SELECT * FROM job_dependency WHERE group_code = ? AND (job_code = ? OR depends_on = ?) \
               ORDER BY id";
    let rows = tx.fetch_all(sql, &[group.into(), code.into(), code.into()]).await;
    let edge = |row: &crate::db::Row| -> Result<JobDependency> {
        Ok(JobDependency {
            group: job.group.clone(),
            job_code: JobCode::parse(&row.get_text("job_code")?)?,
            depends_on: JobCode::parse(&row.get_text("depends_on")?)?,
            dependency_order: i32::try_from(row.get_int("dependency_order")?)?,
            when: condition(row)?,
        })
    };
    let dependencies =
        rows.context("read job_dependency")?.iter().map(edge).collect::<Result<_>>()?;
    let sql = "SELECT * FROM job_external_dependency WHERE waiting_group = ? AND job_code = ? \
               ORDER BY id";
    let externals = tx
        .fetch_all(sql, &[group.into(), code.into()])
        .await
        .context("read job_external_dependency")?;
    let externals = externals.iter().map(external).collect::<Result<_>>()?;
    Ok(Definition { jobs: vec![job], dependencies, externals, ..Definition::default() })
}

/// Number of jobs of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub all: u64,
    /// Number of active ones.
    pub active: u64,
}

/// The numbers for each group that has jobs.
pub async fn counts(tx: &mut Tx) -> Result<BTreeMap<String, Count>> {
    let sql = "SELECT group_code, COUNT(*) AS n, COUNT(CASE WHEN is_active = 1 THEN 1 END) AS active \
               FROM job_def GROUP BY group_code";
    let rows = tx.fetch_all(sql, &[]).await.context("count jobs")?;
    let of = |row: &crate::db::Row| -> Result<_> {
        let count = |name| -> Result<u64> { Ok(u64::try_from(row.get_int(name)?)?) };
        Ok((row.get_text("group_code")?, Count { all: count("n")?, active: count("active")? }))
    };
    rows.iter().map(of).collect()
}
