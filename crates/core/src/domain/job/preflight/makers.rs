//! Routines that do not exist yet because an earlier job of the same batch creates them: a SQL job
//! with `CREATE PROCEDURE`, ordered before the job that calls it, as in a close that installs its
//! own procedures.

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::JobDef;
use crate::domain::job::dependency::JobDependency;
use crate::domain::job::preflight::{PreflightProblem, PreflightReport, PreflightSeverity};
use crate::domain::source::DialectName;
use crate::domain::source::routine_name::RoutineName;
use crate::domain::source::statement::split;
use crate::domain::source::token::{SqlToken, token};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Downgrades to a warning each error about a missing or mismatched routine that an earlier job of
/// the batch creates, for jobs of one source.
pub fn allow_made_routines(
    report: &mut PreflightReport,
    dialect: DialectName,
    jobs: &[&JobDef],
    dependencies: &[JobDependency],
) {
    let makers = Makers::from_jobs(dialect, jobs);
    if makers.by_routine.is_empty() {
        return;
    }
    let parents = parents_by_job(dependencies);
    for finding in &mut report.findings {
        let (PreflightProblem::RoutineMissing { why, .. } | PreflightProblem::ParamsMisfit { why }) =
            &finding.problem
        else {
            continue;
        };
        let is_it = |job: &&&JobDef| {
            Some(&job.code) == finding.job.as_ref() && Some(&job.group) == finding.group.as_ref()
        };
        let Some(job) = jobs.iter().find(is_it) else { continue };
        let Some(by) = makers.before(job, &parents) else { continue };
        finding.severity = PreflightSeverity::Warning;
        finding.problem = PreflightProblem::RoutineMadeBefore { by, why: why.clone() };
    }
}

/// The jobs of a source that create routines.
struct Makers<'a> {
    /// Creating jobs by the routine's name, without schema and in lower case.
    by_routine: BTreeMap<String, Vec<&'a JobDef>>,
}

impl<'a> Makers<'a> {
    fn from_jobs(dialect: DialectName, jobs: &[&'a JobDef]) -> Self {
        let mut by_routine: BTreeMap<String, Vec<&JobDef>> = BTreeMap::new();
        for job in jobs {
            let text = job.sql.as_ref().and_then(|sql| sql.text_for(dialect)).unwrap_or_default();
            for routine in split(text, dialect).iter().filter_map(|s| made_by(&s.text, dialect)) {
                by_routine.entry(routine).or_default().push(job);
            }
        }
        Self { by_routine }
    }

    /// The job that creates the routine called here and that has ended when the caller starts.
    fn before<'j>(&self, job: &'j JobDef, parents: &ParentsByJob<'j>) -> Option<JobCode> {
        let name = RoutineName::parse(job.proc_name.as_deref()?)?;
        let makers = self.by_routine.get(&name.parts.last()?.to_lowercase())?;
        let ancestors = ancestors(job, parents);
        let is_before =
            |maker: &&&JobDef| maker.group == job.group && ancestors.contains(&maker.code);
        makers.iter().find(is_before).map(|maker| maker.code.clone())
    }
}

/// The parents of each job, by group and code.
type ParentsByJob<'a> = HashMap<(&'a GroupCode, &'a JobCode), Vec<&'a JobCode>>;

/// Built once: a close has hundreds of calls, and the ancestors of each caller are searched.
fn parents_by_job(dependencies: &[JobDependency]) -> ParentsByJob<'_> {
    let mut parents = ParentsByJob::new();
    for one in dependencies {
        parents.entry((&one.group, &one.job_code)).or_default().push(&one.depends_on);
    }
    parents
}

/// The direct and indirect parents of a job within its group.
fn ancestors<'a>(job: &'a JobDef, parents: &ParentsByJob<'a>) -> BTreeSet<&'a JobCode> {
    let mut found = BTreeSet::new();
    let mut unread = vec![&job.code];
    while let Some(code) = unread.pop() {
        let next = parents.get(&(&job.group, code)).into_iter().flatten().copied();
        unread.extend(next.filter(|parent| found.insert(*parent)));
    }
    found
}

/// The routine that a statement creates, without its schema and in lower case.
fn made_by(statement: &str, dialect: DialectName) -> Option<String> {
    let bytes = statement.as_bytes();
    let mut at = 0;
    let mut words = std::iter::from_fn(|| {
        while at < bytes.len() {
            let start = at;
            let (kind, end) = token(bytes, at, dialect);
            at = end;
            if kind != SqlToken::Blank {
                return Some((kind, start, end));
            }
        }
        None
    });
    let says =
        |range: (usize, usize), word: &str| statement[range.0..range.1].eq_ignore_ascii_case(word);
    let (_, start, end) = words.next()?;
    if !says((start, end), "CREATE") {
        return None;
    }
    // OR REPLACE, DEFINER = user and AGGREGATE may come between.
    words.find(|(_, start, end)| {
        ["PROCEDURE", "FUNCTION"].iter().any(|kind| says((*start, *end), kind))
    })?;
    let (mut start, mut end) = words.next().map(|(_, start, end)| (start, end))?;
    if says((start, end), "IF") {
        let [_not, _exists] = [words.next()?, words.next()?];
        (start, end) = words.next().map(|(_, start, end)| (start, end))?;
    }
    // A qualified name: each dot is followed by another part.
    while let Some((SqlToken::Mark, dot, dot_end)) = words.next()
        && says((dot, dot_end), ".")
    {
        end = words.next()?.2;
    }
    let name = RoutineName::parse(&statement[start..end])?;
    Some(name.parts.last()?.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_tells_which_routine_it_makes() {
        use DialectName::{Mysql, Postgres};
        for (statement, dialect, made) in [
            ("CREATE PROCEDURE sp_close(IN p INT) BEGIN END", Mysql, Some("sp_close")),
            (
                "create or replace procedure fin.Sp_Close (p int) language sql as $$$$",
                Postgres,
                Some("sp_close"),
            ),
            (
                "CREATE DEFINER = `root`@`localhost` PROCEDURE `fin`.`SP`() BEGIN END",
                Mysql,
                Some("sp"),
            ),
            ("CREATE FUNCTION IF NOT EXISTS f() RETURNS INT RETURN 1", Mysql, Some("f")),
            ("CREATE /* PROCEDURE a */ FUNCTION b() RETURNS INT RETURN 1", Mysql, Some("b")),
            ("CREATE TABLE procedures (a INT)", Mysql, None),
            ("DROP PROCEDURE sp_close", Mysql, None),
            ("CALL sp_close(1)", Postgres, None),
        ] {
            assert_eq!(made_by(statement, dialect).as_deref(), made, "{statement}");
        }
    }
}
