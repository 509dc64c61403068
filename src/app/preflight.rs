//! Checks jobs on their data sources before any of them is started.

pub use crate::domain::job::preflight::{
    JobPreflight, PreflightFinding, PreflightReport, PreflightSeverity, SourcePreflight,
};

use crate::app::App;
use crate::app::calendars::used_by;
use crate::config::Config;
use crate::domain::calendar::Calendars;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::dependency::JobDependency;
use crate::domain::job::preflight::PreflightProblem;
use crate::domain::job::{Definition, JobDef};
use crate::domain::source::DataSource;
use crate::handler::preflight::{PreflightSource, check_sources};
use anyhow::Result;
use std::collections::{BTreeSet, HashMap};

/// Checks the calls and statements of these jobs on their sources. Inactive jobs are skipped. What
/// a job creates for those that `dependencies` order after it need not exist yet.
pub async fn check_jobs(
    config: &Config,
    sources: &[DataSource],
    jobs: impl IntoIterator<Item = &JobDef>,
    dependencies: &[JobDependency],
) -> PreflightReport {
    let active: Vec<&JobDef> = jobs.into_iter().filter(|job| job.is_active).collect();
    let asked: Vec<PreflightSource<'_>> = sources
        .iter()
        .map(|source| {
            let its = |job: &&JobDef| job.source.as_ref() == Some(&source.name);
            let jobs = active.iter().copied().filter(its).collect();
            PreflightSource { source, jobs, dependencies }
        })
        .filter(|one| !one.jobs.is_empty())
        .collect();
    let mut report = check_sources(&asked, &config.handlers()).await;
    report.shared_codes = shared_codes(&active);
    report
}

/// Codes that jobs of several groups share.
fn shared_codes(jobs: &[&JobDef]) -> BTreeSet<JobCode> {
    let mut groups: HashMap<&JobCode, &GroupCode> = HashMap::new();
    let mut shared = BTreeSet::new();
    for job in jobs {
        if *groups.entry(&job.code).or_insert(&job.group) != &job.group {
            shared.insert(job.code.clone());
        }
    }
    shared
}

impl App {
    /// The same for jobs sent by a client: only stored sources are queried, because another address
    /// would receive this installation's passwords.
    pub async fn check_sent_jobs(
        &self,
        defs: &Definition,
        jobs: impl IntoIterator<Item = &JobDef>,
    ) -> Result<PreflightReport> {
        let (stored, calendars) = (self.definition().await?, self.calendars().await?);
        let is_stored = |source: &DataSource| stored.sources.contains(source);
        let used: Vec<&JobDef> = jobs.into_iter().collect();
        let is_used =
            |source: &DataSource| used.iter().any(|job| job.source.as_ref() == Some(&source.name));
        let mut asked = Vec::new();
        for source in defs.sources.iter().filter(|source| is_stored(source)) {
            // An unreadable password is reported when the source is queried.
            asked.push(self.with_password(source).await.unwrap_or_else(|_| source.clone()));
        }
        let mut report =
            check_jobs(&self.config, &asked, used.iter().copied(), &defs.dependencies).await;
        for source in defs.sources.iter().filter(|source| !is_stored(source) && is_used(source)) {
            report.findings.push(PreflightFinding {
                severity: PreflightSeverity::Warning,
                group: None,
                job: None,
                source: Some(source.name.clone()),
                problem: PreflightProblem::SourceNotStored,
            });
        }
        report.findings.extend(check_calendars(&calendars, defs));
        Ok(report)
    }
}

/// The calendars that a definition and its schedules name, and that are not stored.
pub fn check_calendars(stored: &Calendars, defs: &Definition) -> Vec<PreflightFinding> {
    let groups = used_by(defs).into_iter().flat_map(|(calendar, groups)| {
        groups
            .into_iter()
            .map(move |group| (calendar.clone(), format!("group {group}"), Some(group)))
    });
    let schedules = defs.schedules.iter().filter_map(|schedule| {
        Some((schedule.timing.calendar.clone()?, format!("schedule {}", schedule.code), None))
    });
    let missing = groups.chain(schedules).filter(|(calendar, ..)| stored.get(calendar).is_err());
    missing
        .map(|(calendar, user, group)| PreflightFinding {
            severity: PreflightSeverity::Error,
            group,
            job: None,
            source: None,
            problem: PreflightProblem::CalendarMissing { user, calendar: calendar.to_string() },
        })
        .collect()
}
