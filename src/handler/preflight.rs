//! Checks jobs against their sources without running them: calls against the server's catalogue,
//! statements as far as the server parses them, privileges, ledgers. Changes nothing there.
//!
//! Each source is queried for all its jobs at once. What the catalogue's one answer does not settle
//! is looked up as the job itself would do it, so that nothing is refused that a run would find.

use crate::db::connect_error::Hope;
use crate::db::fault::{ErrorCondition, ServerErrorKind, SessionError};
use crate::db::ledger::LedgerState;
use crate::db::routine::{Routine, RoutineParamMode};
use crate::db::routine_catalogue::{CatalogueEntry, WantedRoutine};
use crate::db::session::Session;
use crate::db::sqlite_file::is_absent;
use crate::db::target::{Capabilities, UserPrivileges};
use crate::domain::job::dependency::JobDependency;
use crate::domain::job::preflight::{
    CallFacts, CallerFacts, JobPreflight, PreflightFinding, PreflightProblem, PreflightReport,
    PreflightSeverity, SourcePreflight, allow_made_routines, can_be_stopped, judge_call,
    other_definer,
};
use crate::domain::job::{JobDef, Param, ParamType};
use crate::domain::params::BoundParam;
use crate::domain::source::DataSource;
use crate::domain::source::statement::{bind_names, split, unfit};
use crate::domain::source::tx_class::TxClass;
use crate::domain::text::did_you_mean::nearest;
use crate::handler::bind;
use crate::handler::routine_lookup::{LookupError, find_routine, prefer_procedures, spellings};
use crate::handler::run_on_source::reach;
use crate::handler::signature::{Name, arrange, choose, parse_name, refuse_gap};
use crate::handler::source::{Password, place};
use crate::handler::{HandlerOptions, address};
use futures_util::future::join_all;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of one source for all its jobs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the server may wait for a lock on objects that a statement names, in seconds.
const LOCK_SECONDS: u32 = 3;

/// A source with the jobs to check.
#[derive(Clone, Debug)]
pub struct PreflightSource<'a> {
    pub source: &'a DataSource,
    /// Jobs whose statements or calls run there.
    pub jobs: Vec<&'a JobDef>,
    /// Their dependencies; those of other jobs may be included.
    pub dependencies: &'a [JobDependency],
}

/// Checks the jobs of several sources, all sources concurrently.
pub async fn check_sources(
    sources: &[PreflightSource<'_>],
    options: &HandlerOptions,
) -> PreflightReport {
    let checks = sources.iter().map(|one| check_source(one, options));
    let mut report = PreflightReport::default();
    for one in join_all(checks).await {
        report.extend(one);
    }
    report
}

async fn check_source(asked: &PreflightSource<'_>, options: &HandlerOptions) -> PreflightReport {
    let mut visit = Visit::new(asked.source);
    if let Ok(open) = visit.open_session(options).await {
        let looked = timeout(PATIENCE, visit.check_one_source(open, asked)).await;
        let why = match looked {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {PATIENCE:?}")),
        };
        if let Some(why) = why {
            visit.add_finding(
                None,
                PreflightSeverity::Unreachable,
                PreflightProblem::SourceAway { why },
            );
        }
    }
    visit.report
}

/// The check of one source.
struct Visit<'a> {
    source: &'a DataSource,
    caller: CallerFacts,
    privileges: Option<Box<dyn UserPrivileges>>,
    report: PreflightReport,
}

/// The reason is in a finding.
struct NotOpened;

impl<'a> Visit<'a> {
    fn new(source: &'a DataSource) -> Self {
        let of_source = SourcePreflight {
            source: source.name.clone(),
            is_reached: false,
            version: None,
            user: None,
        };
        let report = PreflightReport { sources: vec![of_source], ..PreflightReport::default() };
        Self { source, caller: CallerFacts::default(), privileges: None, report }
    }

    fn add_finding(
        &mut self,
        job: Option<&JobDef>,
        severity: PreflightSeverity,
        problem: PreflightProblem,
    ) {
        self.report.findings.push(PreflightFinding {
            severity,
            group: job.map(|job| job.group.clone()),
            job: job.map(|job| job.code.clone()),
            source: Some(self.source.name.clone()),
            problem,
        });
    }

    fn refuse(&mut self, job: &JobDef, problem: PreflightProblem) {
        self.add_finding(Some(job), PreflightSeverity::Error, problem);
    }

    async fn open_session(&mut self, options: &HandlerOptions) -> Result<Session, NotOpened> {
        use PreflightSeverity::{Error, Unreachable};
        if let Some((from, Password::Missing)) = place(self.source).password {
            self.add_finding(None, Error, PreflightProblem::PasswordMissing { from });
            return Err(NotOpened);
        }
        let (target, at) = match reach(self.source, "preflight".to_owned(), options) {
            Ok(reached) => reached,
            Err(why) => {
                self.add_finding(None, Error, PreflightProblem::SourceRefused { why });
                return Err(NotOpened);
            }
        };
        // Unlike a job, a check must not create a missing file.
        if is_absent(&target.url) {
            return Err(NotOpened);
        }
        match Session::open_session(&target).await {
            Ok(session) => Ok(session),
            Err(none) => {
                let why = format!("{at}: {}", address::opening(none.to_string()));
                match none.hope {
                    Hope::None => {
                        self.add_finding(None, Error, PreflightProblem::SourceRefused { why })
                    }
                    Hope::Soon | Hope::Here | Hope::Once => {
                        self.add_finding(None, Unreachable, PreflightProblem::SourceAway { why });
                    }
                }
                Err(NotOpened)
            }
        }
    }

    async fn check_one_source(
        &mut self,
        mut session: Session,
        asked: &PreflightSource<'_>,
    ) -> Result<(), SessionError> {
        let jobs = &asked.jobs[..];
        let dialect = bind::dialect_name(session.database())?;
        self.learn_caller(&mut session).await?;
        limit_waiting(&mut session).await?;
        let calls: Vec<&JobDef> = jobs.iter().copied().filter(|j| j.proc_name.is_some()).collect();
        if !session.database().capabilities().has_routines {
            for job in calls {
                self.look_at_named_body(&mut session, job).await?;
            }
        } else {
            self.look_at_calls(&mut session, &calls).await?;
            allow_made_routines(&mut self.report, dialect, jobs, asked.dependencies);
        }
        for job in jobs.iter().filter(|job| job.sql.is_some()) {
            match job.sql.as_ref().and_then(|sql| sql.text_for(dialect)) {
                Some(text) => self.look_at_statements(&mut session, job, text).await?,
                None => {
                    let (place, why) =
                        ("its SQL".to_owned(), format!("the job has none for {dialect}"));
                    self.refuse(job, PreflightProblem::StatementRefused { place, why });
                }
            }
        }
        self.look_at_ledger(&mut session, jobs).await?;
        session.close().await;
        Ok(())
    }

    async fn learn_caller(&mut self, session: &mut Session) -> Result<(), SessionError> {
        let whom = session.server_identity().await?;
        let quoted = whom.user.as_deref().and_then(|user| session.database().quote_user(user));
        self.privileges = session.read_privileges().await?;
        self.caller = CallerFacts {
            user: whom.user.clone(),
            quoted,
            may_stop_others: self.privileges.as_ref().map(|own| own.may_stop_other_users()),
            stop_grant: session.database().definer_stop_grant(whom.user.as_deref()),
        };
        if let Some(of_source) = self.report.sources.first_mut() {
            of_source.is_reached = true;
            (of_source.version, of_source.user) = (Some(whom.version), whom.user);
        }
        Ok(())
    }

    async fn look_at_calls(
        &mut self,
        session: &mut Session,
        jobs: &[&JobDef],
    ) -> Result<(), SessionError> {
        let mut wanted = Vec::new();
        let asked: Vec<Option<(Name, Vec<usize>)>> = jobs
            .iter()
            .map(|job| {
                let name = parse_name(job.proc_name.as_deref()?).ok()?;
                let spellings = spell(&name, session.database().capabilities(), &mut wanted);
                Some((name, spellings))
            })
            .collect();
        let found = session.find_routines(&wanted).await?;
        for (job, asked) in jobs.iter().zip(asked) {
            let params = without_values(&job.params);
            let fitting = asked.and_then(|(name, spellings)| {
                choose_entry(&name, session.database().capabilities(), &spellings, &found, &params)
            });
            match fitting {
                Some(entry) => self.judge(session, job, &params, entry).await?,
                None => self.look_up_alone(session, job, &params, &found).await?,
            }
        }
        Ok(())
    }

    /// Looks up the routine as the job itself would: defaults of MariaDB, packages, and the text of
    /// a refusal.
    async fn look_up_alone(
        &mut self,
        session: &mut Session,
        job: &JobDef,
        params: &[BoundParam],
        found: &[CatalogueEntry],
    ) -> Result<(), SessionError> {
        let name = job.proc_name.as_deref().unwrap_or_default();
        let routine = match find_routine(session, name, params).await {
            Ok(routine) => routine,
            Err(LookupError::Asking(error)) => return Err(error),
            Err(LookupError::Missing { why, meant }) => {
                let routine = name.to_owned();
                self.refuse(job, PreflightProblem::RoutineMissing { routine, meant, why });
                return Ok(());
            }
            Err(LookupError::Misfit(why)) => {
                self.refuse(job, PreflightProblem::ParamsMisfit { why });
                return Ok(());
            }
        };
        let omits_last = session.database().capabilities().omits_only_last_arguments;
        let fits = arrange(&routine, params).and_then(|slots| match omits_last {
            true => refuse_gap(&routine, &slots).map(drop),
            false => Ok(()),
        });
        if let Err(why) = fits {
            self.refuse(job, PreflightProblem::ParamsMisfit { why });
            return Ok(());
        }
        let is_it = |entry: &&CatalogueEntry| {
            (&entry.routine.schema, &entry.routine.name, entry.routine.is_function)
                == (&routine.schema, &routine.name, routine.is_function)
        };
        let whose = match (&routine.package, found.iter().find(is_it)) {
            (Some(package), _) => session.package_definer(&routine.schema, package).await?,
            (None, Some(entry)) => Some((entry.definer.clone(), entry.runs_as_definer)),
            (None, None) => None,
        };
        let (definer, runs_as_definer) = whose.map_or((None, false), |(d, r)| (Some(d), r));
        let facts = self.facts(session, routine, params, definer, runs_as_definer, None);
        let (facts, signature) = facts.await?;
        self.judge_facts(job, &facts, &signature);
        Ok(())
    }

    async fn judge(
        &mut self,
        session: &mut Session,
        job: &JobDef,
        params: &[BoundParam],
        entry: CatalogueEntry,
    ) -> Result<(), SessionError> {
        let CatalogueEntry { routine, definer, runs_as_definer, may_execute, .. } = entry;
        let facts =
            self.facts(session, routine, params, Some(definer), runs_as_definer, may_execute);
        let (facts, signature) = facts.await?;
        self.judge_facts(job, &facts, &signature);
        Ok(())
    }

    /// Where the grants of a user do not show that it may call a routine, it is tried: on
    /// some servers privileges come from elsewhere (PUBLIC, an anonymous user).
    async fn facts(
        &self,
        session: &mut Session,
        routine: Routine,
        params: &[BoundParam],
        definer: Option<String>,
        runs_as_definer: bool,
        may_execute: Option<bool>,
    ) -> Result<(CallFacts, String), SessionError> {
        let by_grants = self.privileges.as_ref().map(|own| own.may_execute(&routine));
        let may_execute = match by_grants {
            None => may_execute,
            Some(true) => Some(true),
            Some(false) if routine.package.is_some() => None,
            Some(false) => Some(!session.is_execute_refused(&routine).await?),
        };
        let dialect = bind::dialect_name(session.database())?;
        let types = types_of(&routine, params);
        let package =
            routine.package.as_ref().map_or(String::new(), |package| format!("{package}."));
        let facts = CallFacts {
            dialect,
            path: format!("{}.{package}{}", routine.schema, routine.name),
            is_function: routine.is_function,
            definer,
            runs_as_definer,
            may_execute,
            types,
        };
        Ok((facts, routine.to_string()))
    }

    fn judge_facts(&mut self, job: &JobDef, facts: &CallFacts, signature: &str) {
        let stops = can_be_stopped(facts, &self.caller);
        self.report.jobs.push(JobPreflight {
            group: job.group.clone(),
            job: job.code.clone(),
            source: self.source.name.clone(),
            calls: signature.to_owned(),
            runs_as: other_definer(facts, &self.caller).map(str::to_owned),
            can_be_stopped: stops,
        });
        for (severity, problem) in judge_call(facts, &self.caller) {
            self.add_finding(Some(job), severity, problem);
        }
    }

    /// SQLite has no procedures; a body of that name in the source replaces it.
    async fn look_at_named_body(
        &mut self,
        session: &mut Session,
        job: &JobDef,
    ) -> Result<(), SessionError> {
        let name = job.proc_name.as_deref().unwrap_or_default();
        if let Some(text) = self.source.procedures.get(name) {
            return self.look_at_statements(session, job, text).await;
        }
        let known: Vec<&str> = self.source.procedures.keys().map(String::as_str).collect();
        let meant = nearest(name, known.iter().copied()).map(str::to_owned);
        let why = format!(
            "SQLite has no procedures and the source has no body '{name}' in `procedures`; it has: {}",
            known.join(", ")
        );
        let routine = name.to_owned();
        self.refuse(job, PreflightProblem::RoutineMissing { routine, meant, why });
        Ok(())
    }

    /// Lets the server parse each statement, up to the first one it refuses: those after it may
    /// need its effect.
    async fn look_at_statements(
        &mut self,
        session: &mut Session,
        job: &JobDef,
        text: &str,
    ) -> Result<(), SessionError> {
        let dialect = bind::dialect_name(session.database())?;
        let database = session.database();
        let cast = |name: &str| {
            let param = job.params.iter().find(|p| p.name == name);
            param.map_or("text", |p| bind::cast_type(p.ty, database))
        };
        for (at, statement) in split(text, dialect).iter().enumerate() {
            let place = format!("statement {} (line {})", at + 1, statement.line);
            if let Some(why) = unfit(statement, dialect) {
                let why = why.to_owned();
                self.refuse(job, PreflightProblem::StatementRefused { place, why });
                return Ok(());
            }
            if statement.is_routine || database.runs_while_parsing(&statement.text) {
                continue;
            }
            let bound = bind_names(&statement.text, dialect, cast);
            let error = match session.probe_statement(&bound.text).await {
                Ok(()) => continue,
                Err(error @ (SessionError::Lost(_) | SessionError::Braked)) => return Err(error),
                Err(SessionError::Database(error)) => error,
            };
            // A lock that is held now, and statements that MySQL parses only when it runs them.
            if error.kind == ServerErrorKind::LockWait
                || error.condition == ErrorCondition::NotPreparable
            {
                continue;
            }
            let is_certain = at == 0 && error.condition == ErrorCondition::Syntax;
            let severity = match is_certain {
                true => PreflightSeverity::Error,
                false => PreflightSeverity::Warning,
            };
            let why = error.to_string();
            self.add_finding(
                Some(job),
                severity,
                PreflightProblem::StatementRefused { place, why },
            );
            return Ok(());
        }
        Ok(())
    }

    async fn look_at_ledger(
        &mut self,
        session: &mut Session,
        jobs: &[&JobDef],
    ) -> Result<(), SessionError> {
        let Some(first) = jobs.iter().find(|job| job.tx == TxClass::Ledger) else { return Ok(()) };
        match session.ledger().await? {
            LedgerState::Fits => {}
            LedgerState::Absent => self.refuse(first, PreflightProblem::LedgerMissing),
            LedgerState::Other(why) => self.refuse(first, PreflightProblem::LedgerUnfit { why }),
        }
        Ok(())
    }
}

/// Checking a statement takes the locks that its tables need.
async fn limit_waiting(session: &mut Session) -> Result<(), SessionError> {
    match session.database().lock_wait_limit(LOCK_SECONDS) {
        Some(sql) => session.run_statement(&sql, &[]).await.map(drop),
        None => Ok(()),
    }
}

/// Adds the spellings of a name to the wanted routines; returns their indexes.
fn spell(name: &Name, can: &Capabilities, wanted: &mut Vec<WantedRoutine>) -> Vec<usize> {
    if name.package.is_some() {
        return Vec::new();
    }
    let mut places = Vec::new();
    for name in spellings(name, can) {
        let one = WantedRoutine { schema: name.schema, name: name.name };
        let place = wanted.iter().position(|there| *there == one).unwrap_or_else(|| {
            wanted.push(one);
            wanted.len() - 1
        });
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The routine that a job's parameters fit; `None` where that is ambiguous.
fn choose_entry(
    name: &Name,
    can: &Capabilities,
    spellings: &[usize],
    found: &[CatalogueEntry],
    params: &[BoundParam],
) -> Option<CatalogueEntry> {
    let of = |place: usize| found.iter().filter(move |entry| entry.wanted == place);
    let place = *spellings.iter().find(|place| of(**place).next().is_some())?;
    let mut routines: Vec<Routine> = of(place).map(|entry| entry.routine.clone()).collect();
    prefer_procedures(&mut routines, can);
    name.retain_types(&mut routines);
    let chosen = choose(routines, params).ok()?;
    let slots = arrange(&chosen, params).ok()?;
    if can.omits_only_last_arguments && refuse_gap(&chosen, &slots).is_err() {
        return None;
    }
    of(place).find(|entry| entry.routine == chosen).cloned()
}

fn without_values(params: &[Param]) -> Vec<BoundParam> {
    let one = |param: &Param| BoundParam {
        name: param.name.clone(),
        mode: param.mode,
        ty: param.ty,
        value: None,
        origin: None,
    };
    params.iter().map(one).collect()
}

/// Name, declared type and the routine's type of each input value.
fn types_of(routine: &Routine, params: &[BoundParam]) -> Vec<(String, ParamType, String)> {
    let slots = arrange(routine, params).unwrap_or_default();
    slots
        .iter()
        .filter(|slot| slot.param_mode() != RoutineParamMode::Out)
        .filter_map(|slot| {
            let param = slot.param?;
            Some((param.name.clone(), param.ty, slot.routine.ty.clone()))
        })
        .collect()
}
