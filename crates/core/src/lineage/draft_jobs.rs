//! Builds the jobs of a draft: codes, names, parameters, bodies, order, and the comments on them.

use crate::domain::dag::Dag;
use crate::domain::id::{BadName, GroupCode, JobCode, JobType, SourceName};
use crate::domain::job::{JobDef, JobDependency, ParamDecl, ParamMode};
use crate::domain::source::DialectName;
use crate::domain::source::routine_name::is_plain_part;
use crate::domain::source::sql_text::SqlText;
use crate::lineage::access::{CallKind, CatalogueParam, ObjectName};
use crate::lineage::catalogue::{BodyText, Catalogue, CatalogueRoutine, RoutineLanguage};
use crate::lineage::conflict::{JobLineage, LineageCoverage, accesses_meet, find_conflicts};
use crate::lineage::data_order::{DataDirection, order_by_data};
use crate::lineage::draft_edges::fewest_parents;
use crate::lineage::draft_note::{DraftMatter, DraftNote, GateMatter};
use crate::lineage::draft_params::{DraftedParams, HandedIn, ParamDrafter, param_type};
use crate::lineage::job::{LineageTarget, job_lineage};
use crate::lineage::master_plan::{
    Barrier, GateReason, MasterArgument, MasterHabit, MasterPlan, MasterStep, StepAction, param_at,
};
use crate::lineage::reader::{BodyKind, SourceText, read_body};
use crate::lineage::session_variables::SessionVariables;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of undecided orders listed for one job; the others are counted.
const ORDERS_LISTED: usize = 8;

/// Where the procedures are, and what is drafted from them.
#[derive(Clone, Copy, Debug)]
pub struct DraftPlace<'a> {
    pub source: &'a SourceName,
    /// The group of the jobs.
    pub group: &'a GroupCode,
    /// The source's catalogue.
    pub target: &'a LineageTarget,
    /// The schema (on MySQL: database).
    pub schema: &'a str,
}

/// A draft of a definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionDraft {
    /// The drafted jobs.
    pub jobs: Vec<JobDef>,
    /// The order of the jobs.
    pub dependencies: Vec<JobDependency>,
    /// The parameters that each batch must provide.
    pub params: Vec<ParamDecl>,
    /// Questions and remarks for the user.
    pub notes: Vec<DraftNote>,
    /// How complete the lineage of the jobs is.
    pub coverage: LineageCoverage,
}

/// Why there is no draft.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// No procedure of that schema matches the pattern.
    #[error("{0}")]
    NoProcedure(String),
    /// The master does not exist.
    #[error("{0}")]
    NoMaster(String),
    /// The master cannot be analysed.
    #[error("{0}")]
    UnreadMaster(String),
    /// A code that no job may have.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The source has no catalogue.
    #[error("{0}")]
    SourceAway(String),
}

/// Builds the jobs, their order and the comments.
pub(super) struct Drafter<'a> {
    place: DraftPlace<'a>,
    catalogue: &'a Catalogue,
    params: ParamDrafter,
    codes: BTreeSet<String>,
    jobs: Vec<JobDef>,
    lineages: Vec<JobLineage>,
    parents: Vec<Vec<usize>>,
    notes: Vec<DraftNote>,
}

impl<'a> Drafter<'a> {
    pub(super) fn new(place: DraftPlace<'a>, catalogue: &'a Catalogue) -> Self {
        Self {
            place,
            catalogue,
            params: ParamDrafter::new(catalogue.dialect),
            codes: BTreeSet::new(),
            jobs: Vec::new(),
            lineages: Vec::new(),
            parents: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn add_note(&mut self, job: Option<&JobCode>, matter: DraftMatter) {
        self.notes.push(DraftNote { job: job.cloned(), matter });
    }

    /// Derives `FX_LOAD` from `sp_fx_load`; with a number if the code is taken.
    fn make_code(&mut self, name: &str) -> Result<JobCode, DiscoveryError> {
        let lower = name.to_lowercase();
        let stem = ["usp_", "proc_", "prc_", "sp_", "pr_", "p_"]
            .iter()
            .find_map(|prefix| lower.strip_prefix(prefix))
            .filter(|stem| stem.starts_with(char::is_alphanumeric))
            .unwrap_or(&lower);
        let is_fit = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let code: String = stem.chars().take(90).map(|c| if is_fit(c) { c } else { '_' }).collect();
        let code = code.to_uppercase();
        let mut numbered = code.clone();
        for number in 2_u32.. {
            if self.codes.insert(numbered.clone()) {
                break;
            }
            numbered = format!("{code}_{number}");
        }
        Ok(JobCode::parse(&numbered)?)
    }

    fn bare_job(&self, code: JobCode, job_type: &str) -> Result<JobDef, DiscoveryError> {
        let mut job =
            JobDef::with_defaults(code, self.place.group.clone(), JobType::parse(job_type)?);
        if job_type != "NOOP" {
            job.source = Some(self.place.source.clone());
        }
        Ok(job)
    }

    /// Adds a job, analyses it, and adds comments on its unknown parts.
    fn add_job(&mut self, job: JobDef, matters: Vec<DraftMatter>) {
        let targets = BTreeMap::from([(self.place.source.clone(), self.place.target.clone())]);
        let lineage = job_lineage(&job, &targets);
        let code = job.code.clone();
        for matter in matters {
            self.add_note(Some(&code), matter);
        }
        if !lineage.reading.dynamic.is_empty() {
            let places = lineage.reading.dynamic.clone();
            self.add_note(Some(&code), DraftMatter::Dynamic { places });
        }
        for part in &lineage.reading.opaque {
            let (place, reason) = (part.place.clone(), part.reason.clone());
            self.add_note(Some(&code), DraftMatter::Opaque { place, reason });
        }
        self.jobs.push(job);
        self.lineages.push(lineage);
        self.parents.push(Vec::new());
    }

    // --- All procedures of a schema ------------------------------------------------------------------

    /// The procedures that become jobs: not those that only call others, and not those that others call.
    pub(super) fn leave_out_parts(
        &mut self,
        found: &[&'a CatalogueRoutine],
    ) -> Vec<&'a CatalogueRoutine> {
        let facts: Vec<(BTreeSet<usize>, bool)> =
            found.iter().map(|one| self.calls_of(one, found)).collect();
        let is_master = |at: usize| facts[at].0.len() > 1 && facts[at].1;
        let mut kept = Vec::new();
        for (at, routine) in found.iter().enumerate() {
            let callers: Vec<String> = (0..found.len())
                .filter(|one| *one != at && !is_master(*one) && facts[*one].0.contains(&at))
                .map(|one| found[one].name.name.clone())
                .collect();
            let routine_name = routine.name.name.clone();
            if is_master(at) {
                let calls = facts[at].0.len();
                self.add_note(None, DraftMatter::OnlyCalls { routine: routine_name, calls });
            } else if callers.is_empty() {
                kept.push(*routine);
            } else {
                self.add_note(None, DraftMatter::CalledByOthers { routine: routine_name, callers });
            }
        }
        // A cycle of calls would leave none of its procedures.
        if kept.is_empty() { found.to_vec() } else { kept }
    }

    /// Which of these procedures a procedure calls, and whether it does nothing else.
    fn calls_of(
        &self,
        routine: &CatalogueRoutine,
        all: &[&CatalogueRoutine],
    ) -> (BTreeSet<usize>, bool) {
        let (BodyText::Text(text), RoutineLanguage::Procedural | RoutineLanguage::Sql) =
            (&routine.body, &routine.language)
        else {
            return (BTreeSet::new(), false);
        };
        let path =
            routine.search_path.clone().unwrap_or_else(|| self.catalogue.search_path.clone());
        let kind = match routine.language {
            RoutineLanguage::Sql => BodyKind::Sql,
            _ => BodyKind::Procedural,
        };
        let body = SourceText { text, first_line: 1, kind, params: &routine.params, path: &path };
        let facts = read_body(&body, self.catalogue);
        let mut called = BTreeSet::new();
        for call in facts.calls.iter().filter(|call| call.kind == CallKind::Procedure) {
            let meant = self.catalogue.resolve_routine(&call.routine, call.arguments.len(), &path);
            called.extend(all.iter().enumerate().filter_map(|(at, one)| {
                meant.iter().any(|meant| std::ptr::eq(*meant, *one)).then_some(at)
            }));
        }
        let is_pure = facts.accesses.is_empty() && facts.dynamic.is_empty();
        (called, is_pure && facts.unreadable.is_empty())
    }

    pub(super) fn add_procedure(
        &mut self,
        routine: &CatalogueRoutine,
    ) -> Result<(), DiscoveryError> {
        let code = self.make_code(&routine.name.name)?;
        match self.params.draft(&code, routine, |_| HandedIn::ByName) {
            Ok(DraftedParams { params, matters, .. }) => {
                let mut job = self.bare_job(code, "PROC")?;
                job.proc_name = Some(self.written_name(routine));
                job.params = params;
                self.add_job(job, matters);
            }
            Err(why) => {
                let routine = routine.name.name.clone();
                self.add_note(None, DraftMatter::NoJob { routine, why });
            }
        }
        Ok(())
    }

    /// The name as a job must write it: with its schema if the search path does not find it, with its types if it is
    /// overloaded.
    fn written_name(&self, routine: &CatalogueRoutine) -> String {
        let dialect = self.catalogue.dialect;
        let quote = |part: &str| {
            let is_folded = dialect != DialectName::Postgres || part.to_lowercase() == part;
            match (is_plain_part(part) && is_folded, dialect) {
                (true, _) => part.to_owned(),
                (false, DialectName::Mysql) => format!("`{}`", part.replace('`', "``")),
                (false, _) => format!("\"{}\"", part.replace('"', "\"\"")),
            }
        };
        let name = quote(&routine.name.name);
        let schema = routine.name.schema.as_deref().unwrap_or_default();
        let bare = ObjectName::bare(&routine.name.name);
        let path = &self.catalogue.search_path;
        let found = self.catalogue.resolve_routine(&bare, routine.params.len(), path);
        let is_found = found.iter().any(|one| one.name == routine.name);
        let full = if is_found { name } else { format!("{}.{name}", quote(schema)) };
        let of_name = self.catalogue.routines().filter(|one| one.name == routine.name).count();
        if of_name < 2 || dialect != DialectName::Postgres {
            return full;
        }
        let inputs = routine.params.iter().filter(|param| param.is_input);
        let types: Vec<&str> = inputs.map(|param| param.type_name.as_str()).collect();
        format!("{full}({})", types.join(", "))
    }

    /// Suggests an output with the name and type of an unknown value, if exactly one job has it.
    pub(super) fn offer_outputs(&mut self) {
        for note in &mut self.notes {
            let DraftMatter::UnknownValue { param, offered, .. } = &mut note.matter else {
                continue;
            };
            let gives = |job: &&JobDef| {
                note.job.as_ref() != Some(&job.code)
                    && job.params.iter().any(|own| {
                        own.mode != ParamMode::In && own.name.eq_ignore_ascii_case(param)
                    })
            };
            let givers: Vec<&JobDef> = self.jobs.iter().filter(gives).collect();
            if let [one] = givers.as_slice() {
                *offered = Some((one.code.clone(), param.clone()));
            }
        }
    }

    /// Adds comments on session variables that one job reads and another one, or the master, sets.
    pub(super) fn note_session_variables(&mut self, master: Option<&str>) {
        let of =
            |one: &JobLineage| SessionVariables::of_bodies(&one.reading.bodies, self.catalogue);
        let found: Vec<SessionVariables> = self.lineages.iter().map(of).collect();
        let mut of_master = SessionVariables::default();
        if let Some(text) = master.filter(|_| self.catalogue.dialect == DialectName::Mysql) {
            of_master.add_text(text);
        }
        let mut notes = Vec::new();
        for (job, own) in self.jobs.iter().zip(&found) {
            for variable in own.taken() {
                let sets = |at: &usize| found[*at].set.contains(variable);
                let set_by: Vec<JobCode> =
                    (0..found.len()).filter(sets).map(|at| self.jobs[at].code.clone()).collect();
                if !set_by.is_empty() || of_master.set.contains(variable) {
                    let variable = variable.clone();
                    let matter = DraftMatter::SessionVariable { variable, set_by };
                    notes.push(DraftNote { job: Some(job.code.clone()), matter });
                }
            }
        }
        self.notes.extend(notes);
    }

    pub(super) fn order_by_data(&mut self) {
        let order = order_by_data(&self.lineages);
        let mut place = vec![0; self.jobs.len()];
        for (at, job) in order.sequence.iter().enumerate() {
            place[*job] = at;
        }
        let pairs: BTreeSet<(usize, usize)> =
            order.pairs.iter().map(|one| (place[one.second], place[one.first])).collect();
        let parents =
            fewest_parents(self.jobs.len(), |later, earlier| pairs.contains(&(later, earlier)));
        for (at, own) in parents.into_iter().enumerate() {
            let own = own.into_iter().map(|parent| order.sequence[parent]).collect();
            self.parents[order.sequence[at]] = own;
        }
        let code = |at: usize| self.jobs[at].code.clone();
        let mut notes = Vec::new();
        for cycle in &order.cycles {
            let jobs = cycle.iter().map(|at| code(*at)).collect();
            notes.push(DraftNote { job: None, matter: DraftMatter::Cycle { jobs } });
        }
        let mut listed: BTreeMap<usize, usize> = BTreeMap::new();
        for pair in &order.pairs {
            let (other, table) = (code(pair.first), pair.table.clone());
            let matter = match pair.direction {
                DataDirection::Certain => continue,
                DataDirection::Likely => DraftMatter::LikelyOrder { other, table },
                DataDirection::Open => DraftMatter::OpenOrder { other, table },
            };
            let count = listed.entry(pair.second).or_default();
            *count += 1;
            if *count <= ORDERS_LISTED {
                notes.push(DraftNote { job: Some(code(pair.second)), matter });
            }
        }
        for (job, count) in listed {
            if let Some(count) = count.checked_sub(ORDERS_LISTED).filter(|count| *count > 0) {
                let matter = DraftMatter::MoreOrders { count };
                notes.push(DraftNote { job: Some(code(job)), matter });
            }
        }
        self.notes.extend(notes);
    }

    // --- A master --------------------------------------------------------------------------------------

    pub(super) fn add_plan(
        &mut self,
        master: &CatalogueRoutine,
        plan: &MasterPlan,
    ) -> Result<(), DiscoveryError> {
        let typed = master.params.iter().filter_map(|param| {
            Some((param.name.as_ref()?.to_lowercase(), param_type(&param.type_name)))
        });
        self.params.master_types = typed.collect();
        self.note_habits(plan);
        // Steps, by the index of their jobs; and which steps pass values to which.
        let mut is_barrier = Vec::new();
        let mut handed: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut job_of_step: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, step) in plan.steps.iter().enumerate() {
            let later = self.jobs.len();
            let (job, mut matters, takes, is_gate) = self.job_of_step(step)?;
            for taken in takes {
                if let Some(earlier) = job_of_step.get(&taken) {
                    handed.insert((later, *earlier));
                }
            }
            let is_call = job.proc_name.is_some();
            self.params.codes.push(is_call.then(|| job.code.clone()));
            matters.extend(step.barriers.iter().map(matter_of_barrier));
            job_of_step.insert(number, later);
            self.add_job(job, matters);
            let is_whole = self.lineages[later].reading.is_whole();
            is_barrier.push(is_gate || !step.barriers.is_empty() || !is_whole);
        }
        let lineages = &self.lineages;
        let must_wait = |later: usize, earlier: usize| {
            is_barrier[later]
                || is_barrier[earlier]
                || handed.contains(&(later, earlier))
                || do_meet(&lineages[later], &lineages[earlier])
        };
        self.parents = fewest_parents(self.jobs.len(), must_wait);
        Ok(())
    }

    fn note_habits(&mut self, plan: &MasterPlan) {
        let mut has_transaction = false;
        for habit in &plan.habits {
            let matter = match habit {
                MasterHabit::Handler { line, calls } => {
                    DraftMatter::Handler { line: *line, calls: calls.clone() }
                }
                MasterHabit::Transaction { line } => {
                    has_transaction = true;
                    DraftMatter::Transaction { line: Some(*line) }
                }
            };
            self.add_note(None, matter);
        }
        // PostgreSQL runs a procedure in one transaction unless the procedure controls transactions.
        if !has_transaction && self.catalogue.dialect == DialectName::Postgres {
            self.add_note(None, DraftMatter::Transaction { line: None });
        }
    }

    /// The job of a step, its comments, the steps whose outputs it uses, and whether it is only a placeholder.
    fn job_of_step(&mut self, step: &MasterStep) -> Result<DraftedStep, DiscoveryError> {
        match &step.action {
            StepAction::Call { routine, arguments } => self.call_job(step, routine, arguments),
            StepAction::Statement { text, values } => {
                let code = self.make_code(&format!("line_{}", step.line))?;
                match self.params.draft_values(&code, values) {
                    Ok(DraftedParams { params, matters, steps }) => {
                        let mut job = self.bare_job(code, "SQL")?;
                        job.sql = Some(SqlText::Same(dedent(text)));
                        job.params = params;
                        Ok((job, matters, steps, false))
                    }
                    Err(why) => self.add_gate(code, GateMatter::Statement(why), text, step.line),
                }
            }
            StepAction::Gate { reason, text } => {
                let what = match reason {
                    GateReason::Dynamic => GateMatter::Dynamic,
                    GateReason::Abort => GateMatter::Abort,
                    GateReason::EarlyEnd => GateMatter::EarlyEnd,
                    GateReason::Statement { why } => GateMatter::Statement(why.clone()),
                };
                let code = self.make_code(&format!("line_{}", step.line))?;
                self.add_gate(code, what, text, step.line)
            }
        }
    }

    fn add_gate(
        &self,
        code: JobCode,
        what: GateMatter,
        text: &str,
        line: u32,
    ) -> Result<DraftedStep, DiscoveryError> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let matters = vec![DraftMatter::Gate { what, text, line }];
        Ok((self.bare_job(code, "NOOP")?, matters, Vec::new(), true))
    }

    fn call_job(
        &mut self,
        step: &MasterStep,
        name: &ObjectName,
        arguments: &[MasterArgument],
    ) -> Result<DraftedStep, DiscoveryError> {
        let code = self.make_code(&name.name)?;
        let path = &self.catalogue.search_path;
        let found = self.catalogue.resolve_routine(name, arguments.len(), path);
        let drafted = match found.first() {
            Some(routine) => {
                let handed_in = |param: &CatalogueParam| {
                    let its = |(at, one): (usize, &MasterArgument)| {
                        let meant = param_at(&routine.params, at, one.name.as_deref())?;
                        std::ptr::eq(meant, param).then(|| one.value.clone())
                    };
                    let value = arguments.iter().enumerate().find_map(its);
                    value.map_or(HandedIn::Default, HandedIn::Value)
                };
                let written = self.written_name(routine);
                self.params.draft(&code, routine, handed_in).map(|made| (written, made))
            }
            None => Err(format!("there is no procedure {name}, or this user may not see it")),
        };
        match drafted {
            Ok((written, DraftedParams { params, matters, steps })) => {
                let mut job = self.bare_job(code, "PROC")?;
                job.proc_name = Some(written);
                job.params = params;
                Ok((job, matters, steps, false))
            }
            Err(why) => {
                let text = format!("CALL {name}");
                self.add_gate(code, GateMatter::Statement(why), &text, step.line)
            }
        }
    }

    /// Combines the comments on parameters that are assumed to be the batch number: one per name instead of one per
    /// job.
    fn gather_batch_numbers(&mut self) {
        let mut names: BTreeMap<String, DraftMatter> = BTreeMap::new();
        self.notes.retain(|note| match &note.matter {
            DraftMatter::TakenForBatchNo { param } => {
                names.insert(param.to_lowercase(), note.matter.clone());
                false
            }
            _ => true,
        });
        for matter in names.into_values() {
            self.add_note(None, matter);
        }
    }

    pub(super) fn finish(mut self) -> DefinitionDraft {
        self.gather_batch_numbers();
        let mut dependencies = Vec::new();
        for (job, parents) in self.jobs.iter().zip(&self.parents) {
            for (order, parent) in (1..).zip(parents) {
                let (code, parent) = (job.code.clone(), self.jobs[*parent].code.clone());
                dependencies.push(JobDependency::plain(self.place.group, code, parent, order));
            }
        }
        let codes: Vec<JobCode> = self.jobs.iter().map(|job| job.code.clone()).collect();
        let coverage = Dag::build(&codes, &dependencies)
            .map(|dag| find_conflicts(&self.lineages, &dag).coverage)
            .unwrap_or_default();
        DefinitionDraft {
            jobs: self.jobs,
            dependencies,
            params: self.params.declared(),
            notes: self.notes,
            coverage,
        }
    }
}

/// A job, its comments, the steps whose outputs it uses, and whether it is only a placeholder.
type DraftedStep = (JobDef, Vec<DraftMatter>, Vec<usize>, bool);

fn matter_of_barrier(barrier: &Barrier) -> DraftMatter {
    match barrier {
        Barrier::Condition { text, line } => {
            DraftMatter::Conditional { text: text.clone(), line: *line }
        }
        Barrier::Loop { text, line } => DraftMatter::Looped { text: text.clone(), line: *line },
        Barrier::Handler { line } => DraftMatter::Guarded { line: *line },
    }
}

fn do_meet(one: &JobLineage, two: &JobLineage) -> bool {
    let theirs = &two.reading.accesses;
    one.reading.accesses.iter().any(|a| theirs.iter().any(|b| accesses_meet(a, b)))
}

/// Removes the common indentation of a statement's lines; the first line has none.
fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let rest = || text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let least = rest().map(indent).min().unwrap_or(0);
    let lines = text.lines().enumerate().map(|(at, line)| match at {
        0 => line.trim_end(),
        _ => line.get(least..).unwrap_or_default().trim_end(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
