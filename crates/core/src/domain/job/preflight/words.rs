//! The texts of findings in English and Chinese.

use crate::domain::id::JobCode;
use crate::domain::job::preflight::{
    PreflightFinding, PreflightProblem, PreflightSeverity, job_label,
};
use crate::domain::text::lang::Lang;
use std::collections::BTreeSet;

impl PreflightSeverity {
    /// Label that precedes a finding.
    pub fn label(self, lang: Lang) -> &'static str {
        match self {
            Self::Error => lang.select("error", "错误"),
            Self::Unreachable => lang.select("unreachable", "无法连接"),
            Self::Warning => lang.select("warning", "警告"),
        }
    }
}

impl PreflightFinding {
    /// Subject and problem: `GL_POST (source ledger): there is no procedure …`. A job of
    /// `shared_codes` is named with its group.
    pub fn describe(&self, lang: Lang, shared_codes: &BTreeSet<JobCode>) -> String {
        let what = self.problem.describe(lang);
        let job = self.job.as_ref().map(|job| job_label(self.group.as_ref(), job, shared_codes));
        match (&job, &self.source, lang) {
            (Some(job), Some(source), Lang::En) => format!("{job} (source {source}): {what}"),
            (Some(job), Some(source), Lang::Zh) => format!("{job}（数据源 {source}）：{what}"),
            (Some(job), None, Lang::En) => format!("{job}: {what}"),
            (Some(job), None, Lang::Zh) => format!("{job}:{what}"),
            (None, Some(source), Lang::En) => format!("source {source}: {what}"),
            (None, Some(source), Lang::Zh) => format!("数据源 {source}：{what}"),
            (None, None, _) => what,
        }
    }

    /// How to fix the problem, if there is advice.
    pub fn hint_text(&self, lang: Lang) -> Option<String> {
        let source = self.source.as_ref().map_or("", |source| source.as_str());
        self.problem.hint_text(source, lang)
    }
}

impl PreflightProblem {
    /// The problem in words.
    pub fn describe(&self, lang: Lang) -> String {
        match lang {
            Lang::En => self.describe_in_english(),
            Lang::Zh => self.describe_in_chinese(),
        }
    }

    fn describe_in_english(&self) -> String {
        match self {
            Self::SourceAway { why } => {
                format!("not reached, so nothing is known of its jobs: {why}")
            }
            Self::PasswordMissing { from } => {
                format!("its password should be in {from}, which is not there")
            }
            Self::SourceRefused { why }
            | Self::RoutineMissing { why, .. }
            | Self::ParamsMisfit { why } => why.clone(),
            Self::RoutineMadeBefore { by, why } => {
                format!("{why}; {by}, which runs before, makes it")
            }
            Self::ExecuteDenied { routine, .. } => format!("this user may not execute {routine}"),
            Self::DefinerUnstoppable { routine, definer, .. } => format!(
                "{routine} runs with the rights of {definer} (SQL SECURITY DEFINER), and this user may not end a session \
                 of {definer}: while it runs it cannot be stopped; a time-out or kill would end UNKNOWN"
            ),
            Self::ParamTypeUnusual { param, declared, wanted } => format!(
                "parameter {param} is declared type: {}, and the routine takes {wanted}",
                declared.as_str()
            ),
            Self::StatementRefused { place, why } => format!("{place}: {why}"),
            Self::LedgerMissing => {
                "tx: ledger needs the table procession_ledger, which is not there".to_owned()
            }
            Self::LedgerUnfit { why } => format!("procession_ledger has another shape: {why}"),
            Self::SourceNotStored => {
                "it is not stored as it stands here, so it was not asked".to_owned()
            }
            Self::CalendarMissing { user, calendar } => {
                format!(
                    "{user} names calendar {calendar}, which is not stored in this installation"
                )
            }
        }
    }

    fn describe_in_chinese(&self) -> String {
        match self {
            Self::SourceAway { why } => format!("无法连接，其作业未检查：{why}"),
            Self::SourceRefused { why } => format!("无法登录：{why}"),
            Self::PasswordMissing { from } => format!("密码应在 {from} 中，但未设置"),
            Self::RoutineMissing { routine, meant, .. } => {
                let meant =
                    meant.as_ref().map_or(String::new(), |meant| format!("；是否为 {meant}?"));
                format!("没有过程 {routine}，或该用户无权执行{meant}")
            }
            Self::ParamsMisfit { why } => format!("参数与过程不符：{why}"),
            Self::RoutineMadeBefore { by, why } => format!("{why}；先运行的作业 {by} 会创建它"),
            Self::ExecuteDenied { routine, .. } => format!("该用户无权执行 {routine}"),
            Self::DefinerUnstoppable { routine, definer, .. } => format!(
                "{routine} 以 {definer} 的权限运行(SQL SECURITY DEFINER),该用户无权终止 {definer} 的会话：\
                 运行中无法停止，超时或终止后结果为 UNKNOWN"
            ),
            Self::ParamTypeUnusual { param, declared, wanted } => {
                format!("参数 {param} 声明为 {}，过程的类型为 {wanted}", declared.as_str())
            }
            Self::StatementRefused { place, why } => format!("{place}:{why}"),
            Self::LedgerMissing => "tx: ledger 需要 procession_ledger 表，但该表不存在".to_owned(),
            Self::LedgerUnfit { why } => format!("procession_ledger 结构不符：{why}"),
            Self::SourceNotStored => "与已保存的定义不同，因此未检查".to_owned(),
            Self::CalendarMissing { user, calendar } => {
                format!("{user} 使用的日历 {calendar} 在本系统中不存在")
            }
        }
    }

    fn hint_text(&self, source: &str, lang: Lang) -> Option<String> {
        Some(match self {
            Self::SourceAway { .. } => lang
                .select(
                    "start the server or correct the URL; jobs wait for it when they are run",
                    "请启动服务器或更正 URL；运行时作业会等待",
                )
                .to_owned(),
            Self::SourceRefused { .. } => lang
                .select("correct its URL, user, password or rights", "请更正 URL、用户、密码或权限")
                .to_owned(),
            Self::PasswordMissing { from } => match lang {
                Lang::En => format!("set {from} where procession runs"),
                Lang::Zh => format!("请在运行 procession 的环境中设置 {from}"),
            },
            Self::RoutineMissing { .. } => lang
                .select(
                    "correct proc_name, make the procedure, or GRANT EXECUTE on it",
                    "请更正 proc_name、创建过程或授予 EXECUTE",
                )
                .to_owned(),
            Self::ParamsMisfit { .. } => lang
                .select(
                    "correct proc_name or params of the job",
                    "请更正作业的 proc_name 或 params",
                )
                .to_owned(),
            Self::ExecuteDenied { grant, .. } | Self::DefinerUnstoppable { grant, .. } => {
                grant.clone()
            }
            Self::ParamTypeUnusual { .. } => {
                lang.select("correct the type of the parameter", "请更正参数类型").to_owned()
            }
            Self::LedgerMissing => format!("procession source prepare {source}"),
            Self::LedgerUnfit { .. } => match lang {
                Lang::En => format!("rename that table, then: procession source prepare {source}"),
                Lang::Zh => format!("请先将该表改名，然后执行：procession source prepare {source}"),
            },
            Self::SourceNotStored => lang
                .select(
                    "store it first, or on the machine itself: procession check FILE --connect",
                    "请先保存，或在本机执行：procession check FILE --connect",
                )
                .to_owned(),
            Self::CalendarMissing { .. } => "procession calendar import FILE".to_owned(),
            Self::StatementRefused { .. } | Self::RoutineMadeBefore { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{GroupCode, SourceName};

    #[test]
    fn findings_name_job_and_source_in_both_languages() {
        let finding = PreflightFinding {
            severity: PreflightSeverity::Warning,
            group: GroupCode::parse("gl").ok(),
            job: JobCode::parse("GL_POST").ok(),
            source: SourceName::parse("ledger").ok(),
            problem: PreflightProblem::DefinerUnstoppable {
                routine: "fin.sp".into(),
                definer: "root@localhost".into(),
                grant: "GRANT X".into(),
            },
        };
        for lang in Lang::ALL {
            let said = finding.describe(lang, &BTreeSet::new());
            assert!(said.starts_with("GL_POST"), "{said}");
            let shared = finding.job.iter().cloned().collect();
            assert!(finding.describe(lang, &shared).starts_with("gl.GL_POST"), "{said}");
            for part in ["GL_POST", "ledger", "fin.sp", "root@localhost", "UNKNOWN"] {
                assert!(said.contains(part), "{part}: {said}");
            }
            assert_eq!(finding.hint_text(lang).as_deref(), Some("GRANT X"));
        }
    }
}
