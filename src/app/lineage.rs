//! Reads the effects of jobs on tables of their data sources, and compares jobs that no dependency
//! orders.

use crate::config::Config;
use crate::domain::dag::Dag;
use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::check::Expect;
use crate::domain::job::{Definition, JobDef, SqlText};
use crate::handler::lineage::{read_catalogue, server_of};
use crate::lineage::{ConflictReport, JobLineage, LineageTarget, find_conflicts, job_lineage};
use anyhow::{Context as _, Result};
use futures_util::future::join_all;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The lineage of a group's jobs.
#[derive(Debug, Serialize)]
pub struct GroupLineage {
    pub group: GroupCode,
    /// Its conflicts, and what is unknown.
    #[serde(flatten)]
    pub report: ConflictReport,
    /// The effects of each job, in the order of the definition.
    #[serde(skip)]
    pub jobs: Vec<JobLineage>,
}

/// The lineage of a definition.
#[derive(Debug, Serialize)]
pub struct DefinitionLineage {
    /// Each group that has active jobs.
    pub groups: Vec<GroupLineage>,
    /// Sources that could not be read, with the reason.
    pub unread_sources: BTreeMap<SourceName, String>,
}

/// Reads the catalogues of all sources that active jobs use, analyses every job, and compares the
/// jobs of each group. Changes nothing on any source.
pub async fn check_lineage(config: &Config, defs: &Definition) -> Result<DefinitionLineage> {
    let targets = read_targets(config, defs).await;
    let mut groups = Vec::new();
    for group in &defs.groups {
        let is_own = |job: &&JobDef| job.group == group.code && job.is_active;
        let active: Vec<&JobDef> = defs.jobs.iter().filter(is_own).collect();
        if active.is_empty() {
            continue;
        }
        let codes: Vec<JobCode> = active.iter().map(|job| job.code.clone()).collect();
        let known: BTreeSet<&JobCode> = codes.iter().collect();
        let dependencies: Vec<_> = defs
            .dependencies
            .iter()
            .filter(|one| one.group == group.code)
            .filter(|one| known.contains(&one.job_code) && known.contains(&one.depends_on))
            .cloned()
            .collect();
        let dag = Dag::build(&codes, &dependencies)
            .with_context(|| format!("build the DAG of group {}", group.code))?;
        let jobs: Vec<JobLineage> = active.iter().map(|job| job_lineage(job, &targets)).collect();
        let report = find_conflicts(&jobs, &dag);
        groups.push(GroupLineage { group: group.code.clone(), report, jobs });
    }
    let unread = targets.into_iter().filter_map(|(name, target)| {
        let why = target.catalogue.err()?;
        Some((name, why))
    });
    Ok(DefinitionLineage { groups, unread_sources: unread.collect() })
}

/// The catalogues of all sources that active jobs use, read concurrently.
async fn read_targets(config: &Config, defs: &Definition) -> BTreeMap<SourceName, LineageTarget> {
    let options = config.handlers();
    let texts = texts_by_source(defs);
    let used = defs.sources.iter().filter(|source| texts.contains_key(&source.name));
    let reads = used.map(|source| {
        let (options, texts) = (&options, &texts[&source.name]);
        async move {
            let catalogue = read_catalogue(source, options, texts).await;
            let target = LineageTarget {
                server: server_of(source),
                catalogue,
                procedures: source.procedures.clone(),
            };
            (source.name.clone(), target)
        }
    });
    let mut targets: BTreeMap<_, _> = join_all(reads).await.into_iter().collect();
    targets.values_mut().for_each(use_stand_ins);
    targets
}

/// Bodies in place of procedures exist only for SQLite.
pub(super) fn use_stand_ins(target: &mut LineageTarget) {
    let is_sqlite = target
        .catalogue
        .as_ref()
        .is_ok_and(|one| one.dialect == crate::domain::source::DialectName::Sqlite);
    if !is_sqlite {
        target.procedures.clear();
    }
}

/// The names and statements of active jobs, by source.
fn texts_by_source(defs: &Definition) -> BTreeMap<SourceName, Vec<String>> {
    let mut texts: BTreeMap<SourceName, Vec<String>> = BTreeMap::new();
    let all = |sql: &SqlText| match sql {
        SqlText::Same(text) => vec![text.clone()],
        SqlText::Per(texts) => texts.values().cloned().collect(),
    };
    for job in defs.jobs.iter().filter(|job| job.is_active) {
        if let Some(source) = &job.source {
            let own = texts.entry(source.clone()).or_default();
            own.extend(job.proc_name.clone());
            own.extend(job.sql.iter().flat_map(&all));
        }
        for check in &job.checks {
            let at = check.source.as_ref().or(job.source.as_ref());
            if let Some(source) = at {
                texts.entry(source.clone()).or_default().extend(all(&check.sql));
            }
            if let Expect::Equals { source, sql, .. } = &check.expect
                && let Some(source) = source.as_ref().or(at)
            {
                texts.entry(source.clone()).or_default().extend(all(sql));
            }
        }
    }
    texts
}
