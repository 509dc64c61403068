//! Preflight results as documents: checks of jobs before any of them is started.

use crate::domain::job::preflight::{
    JobPreflight, PreflightFinding, PreflightReport, PreflightSeverity, SourcePreflight,
};
use crate::domain::text::lang::Lang;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of a preflight.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PreflightDocument {
    /// Whether no job is known to fail; nothing is known about sources that were not reached.
    pub ok: bool,
    /// Number of errors: a batch with such a job is refused.
    pub errors: usize,
    /// Number of sources that were not reached.
    pub unreachable: usize,
    /// Number of warnings.
    pub warnings: usize,
    /// Errors and warnings.
    pub findings: Vec<FindingDocument>,
    /// The sources that were queried.
    pub sources: Vec<SourceDocument>,
    /// The jobs whose calls were looked up and are possible.
    pub calls: Vec<CallDocument>,
}

/// One finding.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindingDocument {
    /// The severity.
    severity: PreflightSeverity,
    /// `source_away`, `source_refused`, `password_missing`, `routine_missing`, `routine_made_before`, `params_misfit`, `execute_denied`,
    /// `definer_unstoppable`, `param_type_unusual`, `statement_refused`, `ledger_missing`, `ledger_unfit`,
    /// `source_not_stored`, `calendar_missing`.
    kind: &'static str,
    /// The group of the job.
    group: Option<String>,
    /// The job.
    job: Option<String>,
    /// The source.
    source: Option<String>,
    /// The message.
    message: InBothLanguages,
    /// The hint.
    hint: Option<InBothLanguages>,
}

/// A text in both languages.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InBothLanguages {
    /// English.
    en: String,
    /// Chinese.
    zh: String,
}

/// A source that was queried.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceDocument {
    /// The name of the source.
    source: String,
    /// Whether it answered.
    is_reached: bool,
    /// The server version.
    version: Option<String>,
    /// The user that jobs run as.
    user: Option<String>,
}

/// A job whose call was looked up and is possible.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CallDocument {
    /// The group code.
    group: String,
    /// The job code.
    job: String,
    /// The source it runs on.
    source: String,
    /// The routine that it calls, with its parameters.
    calls: String,
    /// The user with whose privileges it runs, if not the caller.
    runs_as: Option<String>,
    /// Whether it can be stopped while it runs; null when unknown.
    can_be_stopped: Option<bool>,
}

impl PreflightDocument {
    /// The document of a report.
    pub fn from_report(report: &PreflightReport) -> Self {
        let count = |severity| report.with_severity(severity).count();
        let errors = count(PreflightSeverity::Error);
        Self {
            ok: errors == 0,
            errors,
            unreachable: count(PreflightSeverity::Unreachable),
            warnings: count(PreflightSeverity::Warning),
            findings: report
                .findings
                .iter()
                .map(|one| FindingDocument::from_finding(one, report))
                .collect(),
            sources: report.sources.iter().map(SourceDocument::from_source).collect(),
            calls: report.jobs.iter().map(CallDocument::from_job).collect(),
        }
    }
}

impl FindingDocument {
    fn from_finding(finding: &PreflightFinding, report: &PreflightReport) -> Self {
        let PreflightFinding { severity, group, job, source, problem } = finding;
        let both =
            |say: &dyn Fn(Lang) -> String| InBothLanguages { en: say(Lang::En), zh: say(Lang::Zh) };
        let hint = |lang| finding.hint_text(lang).unwrap_or_default();
        Self {
            severity: *severity,
            kind: problem.kind(),
            group: group.as_ref().map(ToString::to_string),
            job: job.as_ref().map(ToString::to_string),
            source: source.as_ref().map(ToString::to_string),
            message: both(&|lang| finding.describe(lang, &report.shared_codes)),
            hint: finding.hint_text(Lang::En).map(|_| both(&hint)),
        }
    }
}

impl SourceDocument {
    fn from_source(found: &SourcePreflight) -> Self {
        Self {
            source: found.source.to_string(),
            is_reached: found.is_reached,
            version: found.version.clone(),
            user: found.user.clone(),
        }
    }
}

impl CallDocument {
    fn from_job(found: &JobPreflight) -> Self {
        Self {
            group: found.group.to_string(),
            job: found.job.to_string(),
            source: found.source.to_string(),
            calls: found.calls.clone(),
            runs_as: found.runs_as.clone(),
            can_be_stopped: found.can_be_stopped,
        }
    }
}
