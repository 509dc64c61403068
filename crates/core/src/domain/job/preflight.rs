//! What is wrong with jobs before any of them is started: facts of their sources in, findings out.

mod makers;
mod words;

pub use makers::allow_made_routines;

use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::ParamType;
use crate::domain::source::DialectName;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// What became of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreflightReport {
    /// The sources that were asked.
    pub sources: Vec<SourcePreflight>,
    /// The jobs whose calls were looked up.
    pub jobs: Vec<JobPreflight>,
    /// What is wrong, or worth a look.
    pub findings: Vec<PreflightFinding>,
    /// Codes that jobs of several groups have: people are told the group as well.
    pub shared_codes: BTreeSet<JobCode>,
}

/// What people are told of a job: its code, or `group.CODE` where several groups have the code.
fn job_label(group: Option<&GroupCode>, job: &JobCode, shared_codes: &BTreeSet<JobCode>) -> String {
    match group {
        Some(group) if shared_codes.contains(job) => format!("{group}.{job}"),
        _ => job.to_string(),
    }
}

/// A source that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePreflight {
    /// Its name.
    pub source: SourceName,
    /// Whether it answered.
    pub is_reached: bool,
    /// Its server's version.
    pub version: Option<String>,
    /// The user that jobs run as.
    pub user: Option<String>,
}

/// A job whose call was looked up and can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPreflight {
    /// Its group.
    pub group: GroupCode,
    /// Its code.
    pub job: JobCode,
    /// Where it runs.
    pub source: SourceName,
    /// The routine that it calls, with its parameters.
    pub calls: String,
    /// The user with whose rights that runs, where it is not the caller.
    pub runs_as: Option<String>,
    /// Whether it can be stopped while it runs; null when that is not known.
    pub can_be_stopped: Option<bool>,
}

impl JobPreflight {
    /// What people are told of it.
    pub fn label(&self, shared_codes: &BTreeSet<JobCode>) -> String {
        job_label(Some(&self.group), &self.job, shared_codes)
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreflightSeverity {
    /// The job cannot end well as it stands: a batch with it is refused.
    Error,
    /// The source did not answer, so that nothing is known of its jobs.
    Unreachable,
    /// Worth a look.
    Warning,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightFinding {
    /// How much it matters.
    pub severity: PreflightSeverity,
    /// The group of the job.
    pub group: Option<GroupCode>,
    /// The job.
    pub job: Option<JobCode>,
    /// The source.
    pub source: Option<SourceName>,
    /// What it is.
    pub problem: PreflightProblem,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreflightProblem {
    /// The source does not answer now.
    SourceAway {
        /// What was said.
        why: String,
    },
    /// The source lets nobody in: its URL, the user, the password, the database.
    SourceRefused {
        /// What was said.
        why: String,
    },
    /// Its password is not there.
    PasswordMissing {
        /// The variable or file that should hold it.
        from: String,
    },
    /// There is no such routine, or none that this user may see.
    RoutineMissing {
        /// The name that the job says.
        routine: String,
        /// The one that was probably meant.
        meant: Option<String>,
        /// The whole sentence.
        why: String,
    },
    /// The routine is not there, or takes other parameters, and a job that runs before makes it.
    RoutineMadeBefore {
        /// That job.
        by: JobCode,
        /// What is so now.
        why: String,
    },
    /// No routine of the name takes the job's parameters.
    ParamsMisfit {
        /// The whole sentence, with the signatures there are.
        why: String,
    },
    /// The user may not call it.
    ExecuteDenied {
        /// The routine.
        routine: String,
        /// The statement that allows it.
        grant: String,
    },
    /// It runs with the rights of another user, and ours may not end such a session.
    DefinerUnstoppable {
        /// The routine.
        routine: String,
        /// That user.
        definer: String,
        /// The statement that allows it.
        grant: String,
    },
    /// The declared type of a parameter is of another kind than the routine's.
    ParamTypeUnusual {
        /// The parameter.
        param: String,
        /// What the job says.
        declared: ParamType,
        /// What the routine says.
        wanted: String,
    },
    /// The server does not take a statement as it stands.
    StatementRefused {
        /// Which statement of the job.
        place: String,
        /// What was said.
        why: String,
    },
    /// The table that `tx: ledger` needs is not there.
    LedgerMissing,
    /// It has another shape.
    LedgerUnfit {
        /// What is wrong with it.
        why: String,
    },
    /// The source is not stored as the definition says it, and only stored ones are asked.
    SourceNotStored,
    /// A schedule or group names a calendar that is not stored.
    CalendarMissing {
        /// Who names it: `schedule nightly`, `group month_end`.
        user: String,
        /// Its code.
        calendar: String,
    },
}

/// A routine that a job calls, as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// The server.
    pub dialect: DialectName,
    /// `fin.sp_close`
    pub path: String,
    /// Whether it is a function.
    pub is_function: bool,
    /// Whose it is, if that is known.
    pub definer: Option<String>,
    /// Whether it runs with the rights of that user.
    pub runs_as_definer: bool,
    /// Whether our user may call it, if that is known.
    pub may_execute: Option<bool>,
    /// Each parameter that the job gives: name, declared type, the routine's type.
    pub types: Vec<(String, ParamType, String)>,
}

/// The user that jobs run as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerFacts {
    /// The name, on MySQL with its host.
    pub user: Option<String>,
    /// The same as a GRANT names it.
    pub quoted: Option<String>,
    /// Whether it may end sessions of other users, if that is known.
    pub may_stop_others: Option<bool>,
    /// The statement that lets it.
    pub stop_grant: String,
}

impl CallerFacts {
    fn grantee(&self) -> &str {
        self.quoted.as_deref().unwrap_or("this user")
    }
}

/// The user with whose rights a call runs, where that is another one. MySQL compares names without hosts when it
/// asks whose session is to be ended.
pub fn other_definer<'a>(call: &'a CallFacts, caller: &CallerFacts) -> Option<&'a str> {
    let name = |user: &str| match call.dialect {
        DialectName::Mysql => user.rsplit_once('@').map_or(user, |(name, _)| name).to_owned(),
        DialectName::Postgres | DialectName::Sqlite => user.to_owned(),
    };
    let definer = call.definer.as_deref().filter(|_| call.runs_as_definer)?;
    let is_ours = caller.user.as_deref().is_some_and(|user| name(user) == name(definer));
    (!is_ours).then_some(definer)
}

/// Whether a call can be stopped while it runs. PostgreSQL lets a role end its own sessions whatever runs on them.
pub fn can_be_stopped(call: &CallFacts, caller: &CallerFacts) -> Option<bool> {
    match (call.dialect, other_definer(call, caller)) {
        (DialectName::Mysql, Some(_)) => caller.may_stop_others,
        (DialectName::Mysql, None) if call.definer.is_none() => None,
        (DialectName::Mysql | DialectName::Postgres | DialectName::Sqlite, _) => Some(true),
    }
}

/// What is wrong with a call that fits its routine.
pub fn judge_call(
    call: &CallFacts,
    caller: &CallerFacts,
) -> Vec<(PreflightSeverity, PreflightProblem)> {
    let mut found = Vec::new();
    if call.may_execute == Some(false) {
        let kind = if call.is_function { "FUNCTION" } else { "PROCEDURE" };
        let grant = format!("GRANT EXECUTE ON {kind} {} TO {}", call.path, caller.grantee());
        let routine = call.path.clone();
        let problem = PreflightProblem::ExecuteDenied { routine, grant };
        found.push((PreflightSeverity::Error, problem));
    }
    if let (Some(definer), Some(false)) =
        (other_definer(call, caller), can_be_stopped(call, caller))
    {
        let problem = PreflightProblem::DefinerUnstoppable {
            routine: call.path.clone(),
            definer: definer.to_owned(),
            grant: caller.stop_grant.clone(),
        };
        found.push((PreflightSeverity::Warning, problem));
    }
    for (param, declared, wanted) in &call.types {
        if is_unusual(call.dialect, *declared, wanted) {
            let (param, wanted) = (param.clone(), wanted.clone());
            let problem = PreflightProblem::ParamTypeUnusual { param, declared: *declared, wanted };
            found.push((PreflightSeverity::Warning, problem));
        }
    }
    found
}

/// What a type of a server holds, as far as it matters to a text that is converted to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeFamily {
    Number,
    Time,
    Bool,
    Any,
}

fn family_of(server_type: &str) -> TypeFamily {
    let lower = server_type.to_ascii_lowercase();
    let word = lower.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    match word {
        _ if lower.contains('[') => TypeFamily::Any,
        "smallint" | "int" | "integer" | "bigint" | "tinyint" | "mediumint" | "int2" | "int4"
        | "int8" | "numeric" | "decimal" | "dec" | "real" | "double" | "float" | "float4"
        | "float8" | "number" => TypeFamily::Number,
        "date" | "datetime" | "time" | "timestamp" | "timestamptz" | "timetz" => TypeFamily::Time,
        "boolean" | "bool" => TypeFamily::Bool,
        _ => TypeFamily::Any,
    }
}

/// Whether a value of the declared type would hardly become one of the routine's.
fn is_unusual(dialect: DialectName, declared: ParamType, wanted: &str) -> bool {
    let is_mysql = dialect == DialectName::Mysql;
    match (declared, family_of(wanted)) {
        (ParamType::Text, _) | (_, TypeFamily::Any) => false,
        (ParamType::Int | ParamType::Decimal, family) => {
            family == TypeFamily::Time || (family == TypeFamily::Bool && !is_mysql)
        }
        (ParamType::Date | ParamType::Datetime, family) => family != TypeFamily::Time,
        // MySQL's booleans are numbers.
        (ParamType::Bool, family) => {
            family == TypeFamily::Time || (family == TypeFamily::Number && !is_mysql)
        }
        (ParamType::Bytes, TypeFamily::Number | TypeFamily::Time | TypeFamily::Bool) => true,
    }
}

impl PreflightFinding {
    /// Whether jobs that run before may take it away: what one of them makes is not there yet.
    pub fn may_pass(&self) -> bool {
        let depends_on_jobs_before = matches!(
            self.problem,
            PreflightProblem::StatementRefused { .. } | PreflightProblem::RoutineMadeBefore { .. }
        );
        depends_on_jobs_before && self.severity == PreflightSeverity::Warning
    }
}

impl PreflightProblem {
    /// Its word in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SourceAway { .. } => "source_away",
            Self::SourceRefused { .. } => "source_refused",
            Self::PasswordMissing { .. } => "password_missing",
            Self::RoutineMissing { .. } => "routine_missing",
            Self::RoutineMadeBefore { .. } => "routine_made_before",
            Self::ParamsMisfit { .. } => "params_misfit",
            Self::ExecuteDenied { .. } => "execute_denied",
            Self::DefinerUnstoppable { .. } => "definer_unstoppable",
            Self::ParamTypeUnusual { .. } => "param_type_unusual",
            Self::StatementRefused { .. } => "statement_refused",
            Self::LedgerMissing => "ledger_missing",
            Self::LedgerUnfit { .. } => "ledger_unfit",
            Self::SourceNotStored => "source_not_stored",
            Self::CalendarMissing { .. } => "calendar_missing",
        }
    }
}

impl PreflightReport {
    /// The findings of a severity.
    pub fn with_severity(
        &self,
        severity: PreflightSeverity,
    ) -> impl Iterator<Item = &PreflightFinding> {
        self.findings.iter().filter(move |finding| finding.severity == severity)
    }

    /// Puts another check's findings behind these.
    pub fn extend(&mut self, other: Self) {
        self.sources.extend(other.sources);
        self.jobs.extend(other.jobs);
        self.findings.extend(other.findings);
        self.shared_codes.extend(other.shared_codes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(dialect: DialectName) -> CallFacts {
        CallFacts {
            dialect,
            path: "fin.sp_close".into(),
            is_function: false,
            definer: Some("root@localhost".into()),
            runs_as_definer: true,
            may_execute: Some(true),
            types: Vec::new(),
        }
    }

    fn caller(may: Option<bool>) -> CallerFacts {
        CallerFacts {
            user: Some("closer@%".into()),
            quoted: Some("'closer'@'%'".into()),
            may_stop_others: may,
            stop_grant: "GRANT CONNECTION ADMIN ON *.* TO 'closer'@'%'".into(),
        }
    }

    #[test]
    fn only_a_stranger_without_the_right_cannot_stop_a_definers_procedure() {
        use DialectName::{Mysql, Postgres};
        let own = CallFacts { definer: Some("closer@10.0.0.1".into()), ..call(Mysql) };
        let invoker = CallFacts { runs_as_definer: false, ..call(Mysql) };
        let unknown = CallFacts { definer: None, ..call(Mysql) };
        for (call, may, can, findings) in [
            (call(Mysql), Some(false), Some(false), 1),
            (call(Mysql), Some(true), Some(true), 0),
            (call(Mysql), None, None, 0),
            (own, Some(false), Some(true), 0),
            (invoker, Some(false), Some(true), 0),
            (unknown, Some(false), None, 0),
            (call(Postgres), Some(false), Some(true), 0),
        ] {
            assert_eq!(can_be_stopped(&call, &caller(may)), can, "{call:?} {may:?}");
            assert_eq!(judge_call(&call, &caller(may)).len(), findings, "{call:?} {may:?}");
        }
        let found = judge_call(&call(Mysql), &caller(Some(false)));
        assert_eq!(found[0].0, PreflightSeverity::Warning);
    }

    #[test]
    fn a_call_without_the_right_is_an_error_with_its_grant() {
        let denied = CallFacts { may_execute: Some(false), ..call(DialectName::Mysql) };
        let found = judge_call(&denied, &caller(Some(true)));
        let grant = "GRANT EXECUTE ON PROCEDURE fin.sp_close TO 'closer'@'%'".to_owned();
        let problem = PreflightProblem::ExecuteDenied { routine: "fin.sp_close".into(), grant };
        assert_eq!(found, [(PreflightSeverity::Error, problem)]);
        let unknown = CallFacts { may_execute: None, ..call(DialectName::Mysql) };
        assert!(judge_call(&unknown, &caller(Some(true))).is_empty());
    }

    #[test]
    fn types_of_another_kind_are_unusual() {
        use DialectName::{Mysql, Postgres};
        use ParamType as T;
        for (dialect, declared, wanted, unusual) in [
            (Postgres, T::Int, "bigint", false),
            (Postgres, T::Int, "numeric(10,2)", false),
            (Postgres, T::Int, "date", true),
            (Postgres, T::Int, "boolean", true),
            (Mysql, T::Int, "tinyint(1)", false),
            (Postgres, T::Date, "timestamp with time zone", false),
            (Postgres, T::Date, "integer", true),
            (Postgres, T::Bool, "integer", true),
            (Mysql, T::Bool, "tinyint(1)", false),
            (Mysql, T::Bool, "datetime(3)", true),
            (Postgres, T::Text, "date", false),
            (Postgres, T::Date, "character varying", false),
            (Postgres, T::Int, "integer[]", false),
            (Postgres, T::Decimal, "fin.amount", false),
        ] {
            assert_eq!(is_unusual(dialect, declared, wanted), unusual, "{declared:?} {wanted}");
        }
    }
}
