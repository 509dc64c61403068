//! The failed rules and checks of a batch.

use crate::cli::out;
use crate::domain::job::check::CheckGrade;
use crate::domain::text::lang::Lang;
use crate::view::batch::BatchView;

/// Prints them as a table; nothing when all succeeded.
pub(super) fn print(view: &BatchView, lang: Lang) {
    let mut rows = Vec::new();
    for row in &view.rows {
        let Some(outputs) = view.outputs.get(&row.queue_id.0) else { continue };
        let findings = outputs.rules.values().chain(outputs.checks.values());
        rows.extend(findings.filter(|finding| !finding.ok).map(|finding| {
            let grade = match finding.grade {
                CheckGrade::Warning => lang.select("warning", "警告"),
                CheckGrade::Error => lang.select("error", "错误"),
                CheckGrade::Fatal => lang.select("fatal", "致命"),
            };
            vec![
                row.job_code.to_string(),
                grade.to_owned(),
                out::brief(&out::message(&finding.said), 160),
            ]
        }));
    }
    if rows.is_empty() {
        return;
    }
    let header = match lang {
        Lang::En => ["JOB", "GRADE", "RULE OR CHECK THAT DOES NOT HOLD"],
        Lang::Zh => ["作业", "级别", "未通过的成功条件或检查"],
    };
    out::print_line(&out::table(&header, rows));
}
