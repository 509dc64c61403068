//! `job_dependency`: which job runs after which, up to a million rows.

use crate::db::Row;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::EdgeCondition;
use crate::domain::job::{Definition, JobDef, JobDependency};
use crate::store::Tx;
use crate::store::long_computation::compute;
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};

/// Rows of `job_dependency` read or written at a time.
const AT_ONCE: u32 = 32_768;

/// All dependencies, in the order in which they were first written. Read in portions, because a row
/// takes more memory than what is read from it and there may be a million; and each row as one
/// text, because every column costs the driver time. `first` are the rows that `FIRST_QUERY`
/// returned.
pub(super) async fn read_dependencies(
    tx: &mut Tx,
    jobs: &[JobDef],
    first: Vec<Row>,
) -> Result<Vec<JobDependency>> {
    let known = InternedNames {
        groups: jobs.iter().map(|j| (j.group.as_str(), &j.group)).collect(),
        codes: jobs.iter().map(|j| (j.code.as_str(), &j.code)).collect(),
    };
    let sql = format!("{EDGES} WHERE id > ? ORDER BY id LIMIT ?");
    let (mut found, mut last) = (Vec::new(), i64::MIN);
    let mut rows = first;
    loop {
        compute(rows.len(), || -> Result<()> {
            for row in &rows {
                let text = row.get_text("edge")?;
                let (id, dependency) =
                    dependency(&text, &known).with_context(|| format!("row {text:?}"))?;
                found.push(dependency);
                last = id;
            }
            Ok(())
        })?;
        if rows.len() < AT_ONCE as usize {
            return Ok(found);
        }
        rows = tx.fetch_all(&sql, &[last.into(), AT_ONCE.into()]).await?;
    }
}

const EDGES: &str = "SELECT CONCAT(id, ' ', group_code, ' ', job_code, ' ', depends_on, ' ', dependency_order, ' ', \
                     COALESCE(edge_condition, '')) AS edge FROM job_dependency";
/// The query for the first rows.
pub(super) fn first_query() -> String {
    format!("{EDGES} ORDER BY id LIMIT {AT_ONCE}")
}

/// Names that are shared instead of being stored once per dependency.
struct InternedNames<'a> {
    groups: HashMap<&'a str, &'a GroupCode>,
    codes: HashMap<&'a str, &'a JobCode>,
}

impl InternedNames<'_> {
    fn group(&self, word: &str) -> Result<GroupCode> {
        match self.groups.get(word) {
            Some(group) => Ok((*group).clone()),
            None => Ok(GroupCode::parse(word)?),
        }
    }

    fn job_code(&self, word: &str) -> Result<JobCode> {
        match self.codes.get(word) {
            Some(code) => Ok((*code).clone()),
            None => Ok(JobCode::parse(word)?),
        }
    }
}

/// Parses `id group job parent order condition`; a code has no space, and the condition is last.
fn dependency(text: &str, known: &InternedNames<'_>) -> Result<(i64, JobDependency)> {
    let mut words = text.splitn(6, ' ');
    let mut word = || words.next().context("it is cut short");
    let id: i64 = word()?.parse()?;
    let group = known.group(word()?)?;
    let (job_code, depends_on) = (known.job_code(word()?)?, known.job_code(word()?)?);
    let dependency_order = word()?.parse()?;
    let when = match word()? {
        "" => EdgeCondition::Success,
        text => EdgeCondition::parse(text).context("column edge_condition")?,
    };
    Ok((id, JobDependency { group, job_code, depends_on, dependency_order, when }))
}

pub(super) fn condition(row: &Row) -> Result<EdgeCondition> {
    let text = row.opt_text("edge_condition")?;
    text.map_or(Ok(EdgeCondition::Success), |t| {
        EdgeCondition::parse(&t).context("column edge_condition")
    })
}

/// The stored form: `None` for the default condition.
pub(super) fn condition_text(when: &EdgeCondition) -> Option<String> {
    (*when != EdgeCondition::Success).then(|| when.to_string())
}

/// Dependencies by the dependent job.
type ByJob<'a> = HashMap<(&'a GroupCode, &'a JobCode), Vec<&'a JobDependency>>;

fn by_job(defs: &Definition) -> ByJob<'_> {
    let mut found = ByJob::new();
    for dependency in &defs.dependencies {
        found.entry((&dependency.group, &dependency.job_code)).or_default().push(dependency);
    }
    found
}

/// Writes the differences; jobs that are not in `wanted` are not touched.
pub(super) async fn write(tx: &mut Tx, stored: &Definition, wanted: &Definition) -> Result<()> {
    let (before, after) = (by_job(stored), by_job(wanted));
    // Job by job, and sets only within a job that differs: there may be a million in all.
    let mut changed: HashMap<(&GroupCode, &JobCode), HashSet<&JobDependency>> = HashMap::new();
    for job in &wanted.jobs {
        let key = (&job.group, &job.code);
        let old = before.get(&key).map_or(&[][..], Vec::as_slice);
        let new = after.get(&key).map_or(&[][..], Vec::as_slice);
        if old == new {
            continue;
        }
        changed.insert(key, old.iter().copied().collect());
        let wanted: HashSet<&JobDependency> = new.iter().copied().collect();
        let gone: Vec<&JobDependency> =
            old.iter().copied().filter(|d| !wanted.contains(d)).collect();
        remove(tx, job, &gone, old.len()).await?;
    }
    let is_new = |d: &&JobDependency| {
        changed.get(&(&d.group, &d.job_code)).is_some_and(|old| !old.contains(d))
    };
    let fresh: Vec<&JobDependency> = wanted.dependencies.iter().filter(is_new).collect();
    let columns = ["group_code", "job_code", "depends_on", "dependency_order", "edge_condition"];
    for fresh in fresh.chunks(AT_ONCE as usize) {
        let rows = fresh.iter().map(|d| {
            vec![
                d.group.as_str().into(),
                d.job_code.as_str().into(),
                d.depends_on.as_str().into(),
                i64::from(d.dependency_order).into(),
                condition_text(&d.when).into(),
            ]
        });
        tx.insert_many("job_dependency", &columns, rows).await.context("write job_dependency")?;
    }
    tx.look_over("job_dependency", fresh.len()).await.context("look over job_dependency")
}

/// Removes dependencies of a job that had `all`; if none remain, in one statement.
async fn remove(tx: &mut Tx, job: &JobDef, gone: &[&JobDependency], all: usize) -> Result<()> {
    let (group, code) = (job.group.as_str(), job.code.as_str());
    if !gone.is_empty() && gone.len() == all {
        let sql = "DELETE FROM job_dependency WHERE group_code = ? AND job_code = ?";
        tx.execute(sql, &[group.into(), code.into()]).await?;
        return Ok(());
    }
    for d in gone {
        let sql =
            "DELETE FROM job_dependency WHERE group_code = ? AND job_code = ? AND depends_on = ?";
        tx.execute(sql, &[group.into(), code.into(), d.depends_on.as_str().into()]).await?;
    }
    Ok(())
}
