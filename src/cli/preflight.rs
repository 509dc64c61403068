//! Output of preflight findings.

use crate::app::preflight::{PreflightFinding, PreflightReport, PreflightSeverity};
use crate::cli::{BadInput, VerbResult, out};
use crate::domain::text::lang::Lang;
use anyhow::{Result, anyhow};

/// Which findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownFindings {
    All,
    /// Without statements that a server may accept once earlier jobs have run.
    Certain,
}

/// Prints the sources, the calls and the findings.
pub(super) fn print(report: &PreflightReport, lang: Lang) {
    for source in &report.sources {
        let message = match (&source.version, &source.user) {
            (None, _) => lang.select("not reached", "未连接").to_owned(),
            (Some(version), None) => version.clone(),
            (Some(version), Some(user)) => {
                format!("{version}, {} {user}", lang.select("user", "用户"))
            }
        };
        out::print_line(&format!("{}: {message}", source.source));
        for job in report.jobs.iter().filter(|job| job.source == source.source) {
            let runs_as = job
                .runs_as
                .as_ref()
                .map_or(String::new(), |user| format!(" {} {user}", lang.select("as", "以权限：")));
            out::print_line(&format!(
                "  {} → {}{runs_as}",
                job.label(&report.shared_codes),
                job.calls
            ));
        }
    }
    print_findings(report, ShownFindings::All, lang);
}

/// Prints only the findings, to stderr.
pub(super) fn print_findings(report: &PreflightReport, shown: ShownFindings, lang: Lang) {
    for finding in &report.findings {
        if shown == ShownFindings::Certain && finding.may_pass() {
            continue;
        }
        out::eprint_line(&describe(finding, report, lang));
    }
}

fn describe(finding: &PreflightFinding, report: &PreflightReport, lang: Lang) -> String {
    let message = finding.describe(lang, &report.shared_codes);
    let word = finding.severity.label(lang);
    let hint = finding.hint_text(lang).map_or(String::new(), |hint| format!("\n  → {hint}"));
    format!("{word}{}{message}{hint}", lang.select(": ", "："))
}

/// The result of a check with these findings: errors are the user's; an unavailable source does not
/// fail it.
pub(super) fn check_result(report: &PreflightReport, lang: Lang) -> Result<VerbResult> {
    let count = |severity| report.with_severity(severity).count();
    let errors = count(PreflightSeverity::Error);
    let away = count(PreflightSeverity::Unreachable);
    if errors > 0 {
        let message = match lang {
            Lang::En => format!("{} would keep jobs from running", out::count(errors, "fault")),
            Lang::Zh => format!("{errors} 处错误会使作业无法运行"),
        };
        return Err(BadInput(message).into());
    }
    if away > 0 {
        return Err(match lang {
            Lang::En => anyhow!("{} could not be reached", out::count(away, "source")),
            Lang::Zh => anyhow!("{away} 个数据源无法连接"),
        });
    }
    Ok(VerbResult::Well)
}
