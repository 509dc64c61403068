//! Checks jobs before any of them starts: takes facts about their sources, returns findings. It
//! queries no source itself.

mod makers;
mod words;

pub use makers::allow_made_routines;

use crate::domain::id::{GroupCode, JobCode, SourceName};
use crate::domain::job::ParamType;
use crate::domain::source::DialectName;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Result of a preflight check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreflightReport {
    /// The sources that were queried.
    pub sources: Vec<SourcePreflight>,
    /// The jobs whose calls were looked up.
    pub jobs: Vec<JobPreflight>,
    /// Errors and warnings.
    pub findings: Vec<PreflightFinding>,
    /// Codes that occur in several groups: messages qualify them with the group.
    pub shared_codes: BTreeSet<JobCode>,
}

/// The displayed name of a job: its code, or `group.CODE` where several groups have the code.
fn job_label(group: Option<&GroupCode>, job: &JobCode, shared_codes: &BTreeSet<JobCode>) -> String {
    match group {
        Some(group) if shared_codes.contains(job) => format!("{group}.{job}"),
        _ => job.to_string(),
    }
}

/// Result for one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePreflight {
    /// Its name.
    pub source: SourceName,
    /// Whether it answered.
    pub is_reached: bool,
    /// Version of its server.
    pub version: Option<String>,
    /// The database user that jobs run as.
    pub user: Option<String>,
}

/// A job whose call was looked up and is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPreflight {
    /// Its group.
    pub group: GroupCode,
    /// Its code.
    pub job: JobCode,
    /// Its data source.
    pub source: SourceName,
    /// The routine that it calls, with its parameters.
    pub calls: String,
    /// The user whose privileges the routine runs with, when that is not the caller.
    pub runs_as: Option<String>,
    /// Whether the call can be stopped while it runs; null when unknown.
    pub can_be_stopped: Option<bool>,
}

impl JobPreflight {
    /// The displayed name of the job.
    pub fn label(&self, shared_codes: &BTreeSet<JobCode>) -> String {
        job_label(Some(&self.group), &self.job, shared_codes)
    }
}

/// Severity of a preflight finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreflightSeverity {
    /// The job cannot succeed as it stands: a batch that contains it is refused.
    Error,
    /// The source did not answer, so nothing is known of its jobs.
    Unreachable,
    /// Possibly a problem; does not stop a batch.
    Warning,
}

/// One preflight finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreflightFinding {
    /// Severity of the finding.
    pub severity: PreflightSeverity,
    /// Group of the job; none when the finding concerns a source.
    pub group: Option<GroupCode>,
    /// The job; none when the finding concerns a source.
    pub job: Option<JobCode>,
    /// The source.
    pub source: Option<SourceName>,
    /// The problem.
    pub problem: PreflightProblem,
}

/// Problems that preflight can find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreflightProblem {
    /// The source does not answer at present.
    SourceAway {
        /// Error text.
        why: String,
    },
    /// The source refuses the connection: URL, user, password or database.
    SourceRefused {
        /// Error text.
        why: String,
    },
    /// The source's password is not available.
    PasswordMissing {
        /// The environment variable or file that should hold it.
        from: String,
    },
    /// The routine does not exist, or is not visible to this user.
    RoutineMissing {
        /// The name in the definition.
        routine: String,
        /// The routine that was probably meant.
        meant: Option<String>,
        /// The complete message.
        why: String,
    },
    /// The routine is missing or takes other parameters, and an earlier job of the batch creates
    /// it.
    RoutineMadeBefore {
        /// The job that creates it.
        by: JobCode,
        /// The current problem.
        why: String,
    },
    /// No routine of this name takes the job's parameters.
    ParamsMisfit {
        /// The complete message, with the existing signatures.
        why: String,
    },
    /// The user may not execute the routine.
    ExecuteDenied {
        /// The routine.
        routine: String,
        /// The GRANT statement that allows it.
        grant: String,
    },
    /// The routine runs with another user's privileges, and the job's user may not end such a
    /// session.
    DefinerUnstoppable {
        /// The routine.
        routine: String,
        /// The other user.
        definer: String,
        /// The GRANT statement that allows it.
        grant: String,
    },
    /// The declared type of a parameter differs in kind from the routine's.
    ParamTypeUnusual {
        /// The parameter.
        param: String,
        /// The type in the definition.
        declared: ParamType,
        /// The type in the routine.
        wanted: String,
    },
    /// The server rejects a statement.
    StatementRefused {
        /// The statement's position in the job.
        place: String,
        /// Error text.
        why: String,
    },
    /// The table that `tx: ledger` needs does not exist.
    LedgerMissing,
    /// The ledger table has another shape.
    LedgerUnfit {
        /// The difference.
        why: String,
    },
    /// The source is not stored as the definition declares it; only stored sources are queried.
    SourceNotStored,
    /// A schedule or group names a calendar that is not stored.
    CalendarMissing {
        /// The referrer: `schedule nightly`, `group month_end`.
        user: String,
        /// Code of the calendar.
        calendar: String,
    },
}

/// A routine that a job calls, as described by the server's catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// The server's dialect.
    pub dialect: DialectName,
    /// `fin.sp_close`
    pub path: String,
    /// Whether it is a function.
    pub is_function: bool,
    /// Its owner or definer, if known.
    pub definer: Option<String>,
    /// Whether it runs with the privileges of that user.
    pub runs_as_definer: bool,
    /// Whether the job's user may execute it, if known.
    pub may_execute: Option<bool>,
    /// For each parameter that the job passes: name, declared type, the routine's type.
    pub types: Vec<(String, ParamType, String)>,
}

/// The database user that jobs run as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerFacts {
    /// Name; on MySQL with its host.
    pub user: Option<String>,
    /// The name quoted for a GRANT.
    pub quoted: Option<String>,
    /// Whether the user may end sessions of other users, if known.
    pub may_stop_others: Option<bool>,
    /// The statement that grants this.
    pub stop_grant: String,
}

impl CallerFacts {
    fn grantee(&self) -> &str {
        self.quoted.as_deref().unwrap_or("this user")
    }
}

/// The user whose privileges a call runs with, when that is not the caller. MySQL compares names
/// without hosts when it decides whose session may be ended.
pub fn other_definer<'a>(call: &'a CallFacts, caller: &CallerFacts) -> Option<&'a str> {
    let name = |user: &str| match call.dialect {
        DialectName::Mysql => user.rsplit_once('@').map_or(user, |(name, _)| name).to_owned(),
        DialectName::Postgres | DialectName::Sqlite => user.to_owned(),
    };
    let definer = call.definer.as_deref().filter(|_| call.runs_as_definer)?;
    let is_ours = caller.user.as_deref().is_some_and(|user| name(user) == name(definer));
    (!is_ours).then_some(definer)
}

/// Whether a call can be stopped while it runs. PostgreSQL lets a role end its own sessions
/// whatever they execute.
pub fn can_be_stopped(call: &CallFacts, caller: &CallerFacts) -> Option<bool> {
    match (call.dialect, other_definer(call, caller)) {
        (DialectName::Mysql, Some(_)) => caller.may_stop_others,
        (DialectName::Mysql, None) if call.definer.is_none() => None,
        (DialectName::Mysql | DialectName::Postgres | DialectName::Sqlite, _) => Some(true),
    }
}

/// Problems of a call whose parameters match its routine.
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

/// The kind of values of a server's type, as far as converting a text to it is concerned.
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

/// Whether a value of the declared type is unlikely to convert to the routine's type.
fn is_unusual(dialect: DialectName, declared: ParamType, wanted: &str) -> bool {
    let is_mysql = dialect == DialectName::Mysql;
    match (declared, family_of(wanted)) {
        // MySQL and MariaDB would take the bytes of the text: `5` becomes 53. The call is refused.
        (ParamType::Text | ParamType::Date | ParamType::Datetime, TypeFamily::Any)
            if is_mysql && wanted.to_ascii_lowercase().starts_with("bit") =>
        {
            true
        }
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
    /// Whether a job that runs earlier may remove the problem: an object that it creates does not
    /// exist yet.
    pub fn may_pass(&self) -> bool {
        let depends_on_jobs_before = matches!(
            self.problem,
            PreflightProblem::StatementRefused { .. } | PreflightProblem::RoutineMadeBefore { .. }
        );
        depends_on_jobs_before && self.severity == PreflightSeverity::Warning
    }
}

impl PreflightProblem {
    /// Tag of the problem in JSON.
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
    /// Returns the findings of one severity.
    pub fn with_severity(
        &self,
        severity: PreflightSeverity,
    ) -> impl Iterator<Item = &PreflightFinding> {
        self.findings.iter().filter(move |finding| finding.severity == severity)
    }

    /// Appends the findings of another check.
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
            (Mysql, T::Text, "bit(8)", true),
            (Mysql, T::Int, "bit(8)", false),
            (Postgres, T::Text, "bit(8)", false),
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
