//! Imports an XXL-JOB admin: its jobs become pipelines of handlers on executors, its executors and users become ours.
//! Story order: pipelines (who runs with whom), schedule (when), executors, work (what a job does), users.

mod executors;
mod pipelines;
mod schedule;
mod users;
mod work;

pub use executors::NewExecutors;
pub use pipelines::ChildJoin;
pub use users::ImportedUser;

use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::trigger_rule::{EdgeCondition, TriggerRule};
use crate::domain::job::{JobDef, JobKind};
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::xxl::xxl_tables::{UnreadColumn, XxlJob, XxlTables};
use crate::import::ImportRequest;
use crate::import::draft::Draft;
use crate::import::finish::{ImportError, Imported};
use crate::import::note::{ImportOrigin, Level, Note};
use crate::import::tally::{CountedKind, ItemId};
use executors::ImportedExecutors;
use pipelines::{Links, Pipeline, PipelinePlan, Stray, is_scheduled};
use std::collections::{BTreeMap, BTreeSet};

/// The table of jobs, to which most notes refer.
const JOBS: &str = "xxl_job_info";

/// Columns that do not affect what runs: timestamps of rows, the last trigger, sessions.
const RECORD_COLUMNS: &[&str] = &[
    "add_time",
    "update_time",
    "glue_remark",
    "glue_updatetime",
    "trigger_last_time",
    "token",
    "order",
];

/// Treatment of executors and users, which no definition file can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// The report tells how to create them.
    Told,
    /// They are written with the definition.
    Written,
}

/// Options in addition to those of every import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XxlAsked {
    /// The join of a child with several parents.
    pub children: ChildJoin,
    /// Treatment of executors and users.
    pub beyond: Beyond,
}

/// The result of importing an admin's tables.
#[derive(Debug)]
pub struct XxlImport {
    /// The definition and the report.
    pub imported: Imported,
    /// Executor groups, by name.
    pub executors: Vec<NewExecutors>,
    /// Users, by name.
    pub users: Vec<ImportedUser>,
}

/// Converts an admin's tables to a definition.
///
/// # Errors
/// What no definition can express.
pub fn xxl_job(
    tables: &XxlTables,
    asked: &ImportRequest,
    wish: XxlAsked,
    kinds: &[JobKind],
) -> Result<XxlImport, ImportError> {
    let (zone, doubt) = schedule::find_zone(tables, asked.zone);
    let mut draft = Draft::new(ImportRequest { zone: Some(zone), ..asked.clone() });
    if let Some((said, cure)) = doubt {
        draft.note(Level::Look, &ImportOrigin::new(JOBS, 0), zone.name(), said, cure);
    }
    if tables.jobs.is_empty() {
        let fix = "give the database of an admin that has jobs";
        draft.fault(&ImportOrigin::new(JOBS, 0), "there is no job in this table", fix);
    }
    let links = Links::from_jobs(&tables.jobs);
    let executors = ImportedExecutors::from_tables(tables, wish.beyond, &mut draft);
    let mut reached: BTreeMap<GroupCode, BTreeSet<i64>> = BTreeMap::new();
    match pipelines::plan_links(&tables.jobs, &links, wish.children) {
        Ok(plan) => {
            let mut house = XxlConverter {
                tables,
                links: &links,
                executors: &executors,
                items: tables.jobs.iter().map(|job| ItemsOfJob::begin(job, &mut draft)).collect(),
                copies: vec![Vec::new(); tables.jobs.len()],
            };
            for pipeline in &plan.pipelines {
                let code = house.pipeline(pipeline, &mut draft);
                let apps = pipeline.members.iter().map(|&at| tables.jobs[at].job_group);
                reached.insert(code, apps.collect());
            }
            house.report_plan(&plan, &mut draft);
        }
        Err(pipelines::TooMany) => {
            let what = format!(
                "with a copy of each child in each pipeline these are more than {} jobs",
                pipelines::MOST
            );
            let cure = "import with --children all, or cut child ids there first";
            draft.fault(&ImportOrigin::new(JOBS, 0), what, cure);
        }
    }
    say_endless(tables, &mut draft);
    note_unread_columns(tables, &mut draft);
    executors.report_executors(&mut draft);
    let users = users::users(tables, &reached, wish.beyond, &mut draft);
    let mut imported = draft.finish(kinds)?;
    say_days(&mut imported);
    Ok(XxlImport { imported, executors: executors.into_new(), users })
}

/// Adds one note for all schedules that number their batches by day: in XXL-JOB such a job could be started by hand any
/// number of times.
fn say_days(imported: &mut Imported) {
    let of_day = |trigger: &&TriggerDef| {
        trigger.order.as_ref().is_some_and(|order| order.batch_no.to_string() == "day(0)")
    };
    let schedules = &imported.definition.schedules;
    let Some(first) = schedules.iter().find(of_day) else { return };
    let (count, code) = (schedules.iter().filter(of_day).count(), first.code.clone());
    let said = (
        format!(
            "{count} schedules fire once a day at most and have one batch a day: started by hand as well, the \
             day has its batch, and the firing that comes after it is SKIPPED"
        ),
        format!(
            "{count} 个调度每天最多触发一次,每天一个批次:若当天已手动执行,之后的定时触发将被跳过(SKIPPED)"
        ),
    );
    let cure = (
        format!(
            "start a further run under a number of its own: procession batch open --group GROUP --batch-no \
             NUMBER; or number each firing apart: batch_no: \"time(%Y%m%d-%H%M%S)\" at {code}"
        ),
        format!(
            "额外执行请使用单独的批次号:procession batch open --group 作业组 --batch-no 批次号;或在 {code} 中改为 \
             batch_no: \"time(%Y%m%d-%H%M%S)\",使每次触发各有批次号"
        ),
    );
    imported.notes.push(Note {
        level: Level::Differs,
        origin: ImportOrigin::new(JOBS, 0),
        about: String::new(),
        message: said.into(),
        fix: cure.into(),
    });
    imported.notes.sort();
}

/// Adds one note for all jobs without a time-out: most have none.
fn say_endless(tables: &XxlTables, draft: &mut Draft) {
    let count = tables.jobs.iter().filter(|job| job.timeout <= 0).count();
    if count > 0 {
        let said = (
            format!("{count} jobs had no time-out; here it is 30 days, the longest there is"),
            format!("{count} 个任务没有超时限制;这里为 30 天(上限)"),
        );
        let cure = ("write timeout_sec to what they may take", "请按实际情况填写 timeout_sec");
        draft.note(Level::Differs, &ImportOrigin::new(JOBS, 0), "", said, cure);
    }
}

/// Reports unread columns: those of a release are records of the admin itself, others belong to a fork.
fn note_unread_columns(tables: &XxlTables, draft: &mut Draft) {
    for UnreadColumn { table, column } in &tables.unread {
        if RECORD_COLUMNS.contains(&column.as_str()) {
            draft.note_record_key(table, column);
        } else {
            draft.note_unknown_key(&ImportOrigin::new(*table, 0), "", column);
        }
    }
}

fn origin(job: &XxlJob) -> ImportOrigin {
    ImportOrigin::new(JOBS, u64::try_from(job.id).unwrap_or(0))
}

/// Display name of a job.
fn title(job: &XxlJob) -> String {
    let title = job.title.trim();
    if title.is_empty() { format!("job_{}", job.id) } else { title.to_owned() }
}

/// The counted items of a row: the job and its schedule, if any.
struct ItemsOfJob {
    job: ItemId,
    schedule: Option<ItemId>,
}

impl ItemsOfJob {
    fn begin(row: &XxlJob, draft: &mut Draft) -> Self {
        let (at, title) = (origin(row), title(row));
        let job = draft.begin_item(CountedKind::Job, &at, &title);
        let schedule =
            is_scheduled(row).then(|| draft.begin_item(CountedKind::Schedule, &at, &title));
        draft.end_item();
        Self { job, schedule }
    }
}

struct XxlConverter<'a> {
    tables: &'a XxlTables,
    links: &'a Links,
    executors: &'a ImportedExecutors,
    items: Vec<ItemsOfJob>,
    /// The codes of each job, one per pipeline that contains it.
    copies: Vec<Vec<JobCode>>,
}

impl XxlConverter<'_> {
    fn pipeline(&mut self, pipeline: &Pipeline, draft: &mut Draft) -> GroupCode {
        let jobs = &self.tables.jobs;
        let first = &jobs[pipeline.roots[0]];
        let group = draft.group(&title(first));
        if let Some(made) = draft.group_mut(&group) {
            made.owner = work::owner(first);
        }
        let mut made: BTreeMap<usize, JobDef> = BTreeMap::new();
        let mut fixed = BTreeMap::new();
        for &at in &pipeline.members {
            let job = &jobs[at];
            draft.resume_item(self.items[at].job);
            let def = draft.job(&origin(job), &group, &title(job), "HANDLER");
            self.copies[at].push(def.code.clone());
            made.insert(at, work::fill_job(def, job, self.executors, &mut fixed, draft));
        }
        draft.end_item();
        self.join_jobs(pipeline, &mut made, draft);
        for (parent, child) in &pipeline.edges {
            draft.depends(&made[child].code, &made[parent].code, EdgeCondition::Success);
        }
        for at in &pipeline.members {
            made.remove(at).into_iter().for_each(|def| draft.push(def));
        }
        if let Some(group) = draft.group_mut(&group) {
            group.params = fixed.keys().map(|name| work::required(name)).collect();
        }
        if let Some(item) = self.items[pipeline.roots[0]].schedule {
            draft.resume_item(item);
            schedule::add_schedule(first, &group, fixed, draft);
            // The schedules of the other roots are the same: one schedule starts all of them.
            for other in pipeline.roots.iter().filter_map(|&at| self.items[at].schedule).skip(1) {
                draft.resume_item(other);
                draft.carry_item();
            }
            draft.end_item();
        } else if !fixed.is_empty() {
            let names: Vec<&str> = fixed.keys().map(String::as_str).collect();
            work::say_fixed(first, &names, draft);
        }
        group
    }

    /// Sets the join of children with several parents.
    fn join_jobs(
        &self,
        pipeline: &Pipeline,
        made: &mut BTreeMap<usize, JobDef>,
        draft: &mut Draft,
    ) {
        let mut parents: BTreeMap<usize, usize> = BTreeMap::new();
        for (_, child) in &pipeline.edges {
            *parents.entry(*child).or_default() += 1;
        }
        for (child, count) in parents.into_iter().filter(|(_, count)| *count > 1) {
            let Some(def) = made.get_mut(&child) else { continue };
            let about = def.code.to_string();
            let (said, cure) = match pipeline.join {
                ChildJoin::Any => {
                    def.trigger_rule = TriggerRule::OneSuccess;
                    (
                        (
                            format!(
                                "each of its {count} parents started it there, up to {count} times; here it runs once, after the first of them that succeeds"
                            ),
                            format!(
                                "原系统中它的 {count} 个父任务各触发一次(最多 {count} 次);这里只运行一次,在第一个成功的父任务之后"
                            ),
                        ),
                        (
                            "remove trigger_rule: one_success if it should wait for all of them, or import with --children all",
                            "如应等待全部父任务,请删除 trigger_rule: one_success,或用 --children all 导入",
                        ),
                    )
                }
                ChildJoin::All => (
                    (
                        format!(
                            "each of its {count} parents started it there; here it runs once, after all of them"
                        ),
                        format!(
                            "原系统中它的 {count} 个父任务各触发一次;这里只运行一次,在全部父任务成功之后"
                        ),
                    ),
                    ("", ""),
                ),
            };
            let at = origin(&self.tables.jobs[child]);
            draft.resume_item(self.items[child].job);
            draft.note(Level::Differs, &at, &about, said, cure);
        }
        draft.end_item();
    }

    /// Reports the translation of the links between jobs.
    fn report_plan(&self, plan: &PipelinePlan, draft: &mut Draft) {
        let jobs = &self.tables.jobs;
        for (at, stray) in &self.links.strays {
            let said = match stray {
                Stray::Missing(id) => (
                    format!("its child id {id} is left out: there is no such job"),
                    format!("子任务 ID {id} 不存在,已忽略"),
                ),
                Stray::Word(word) => {
                    let word: String = word.chars().take(40).collect();
                    (
                        format!("its child id {word:?} is left out: it is no number"),
                        format!("子任务 ID {word:?} 不是数字,已忽略"),
                    )
                }
                Stray::Itself => (
                    "it names itself as its child, which is left out, as XXL-JOB does".to_owned(),
                    "子任务 ID 是任务自身,已忽略(与 XXL-JOB 相同)".to_owned(),
                ),
                Stray::Twice(id) => (
                    format!("its child id {id} stands there twice; here it starts that job once"),
                    format!("子任务 ID {id} 重复;这里只触发一次"),
                ),
            };
            draft.resume_item(self.items[*at].job);
            draft.note(Level::LeftOut, &origin(&jobs[*at]), &self.job_code(*at), said, ("", ""));
        }
        for (parent, child) in &plan.circles {
            let (from, to) = (&jobs[*parent], &jobs[*child]);
            let said = (
                format!(
                    "its child {} ({}) is left out: that job leads back to it, and the two would run for ever",
                    to.id,
                    title(to)
                ),
                format!("子任务 {}({})已忽略:它又回到本任务,形成循环", to.id, title(to)),
            );
            let cure = ("check which of the two comes first", "请确认二者的先后顺序");
            draft.resume_item(self.items[*parent].job);
            draft.note(Level::LeftOut, &origin(from), &self.job_code(*parent), said, cure);
        }
        for at in &plan.apart {
            let said = (
                "what it and other jobs start together has several schedules, so each schedule became a pipeline of its own, in which a child waits for its first parent only",
                "与其他任务共享子任务,但调度不同,因此按调度拆成多个流水线;子任务只等待第一个成功的父任务",
            );
            draft.resume_item(self.items[*at].job);
            draft.note(Level::Differs, &origin(&jobs[*at]), &self.job_code(*at), said, ("", ""));
        }
        self.say_copies(plan, draft);
        draft.end_item();
    }

    fn say_copies(&self, plan: &PipelinePlan, draft: &mut Draft) {
        let jobs = &self.tables.jobs;
        for (at, codes) in self.copies.iter().enumerate().filter(|(_, codes)| codes.len() > 1) {
            let list: Vec<&str> = codes.iter().map(JobCode::as_str).take(20).collect();
            let said = (
                format!(
                    "it stands in {} pipelines, because so many lead to it: {}; its block strategy keeps the runs \
                     of each of them apart, and not those of one from those of another",
                    codes.len(),
                    list.join(", ")
                ),
                format!(
                    "它出现在 {} 个流水线中:{};阻塞策略只在各流水线内生效,不跨流水线",
                    codes.len(),
                    list.join("、")
                ),
            );
            draft.resume_item(self.items[at].job);
            draft.note(Level::Differs, &origin(&jobs[at]), &self.job_code(at), said, ("", ""));
        }
        for pipeline in &plan.pipelines {
            let led_to = |at: &&usize| pipeline.edges.iter().any(|(_, child)| child == *at);
            for at in pipeline.roots.iter().filter(led_to) {
                let said = (
                    "it had a schedule of its own and was a child as well; here it runs once, after its parents",
                    "它既有自己的调度又是子任务;这里只在父任务之后运行一次",
                );
                draft.resume_item(self.items[*at].job);
                draft.note(
                    Level::Differs,
                    &origin(&jobs[*at]),
                    &self.job_code(*at),
                    said,
                    ("", ""),
                );
            }
        }
    }

    /// The code of a job in its first pipeline.
    fn job_code(&self, at: usize) -> String {
        let first = self.copies[at].first();
        first.map_or_else(|| title(&self.tables.jobs[at]), ToString::to_string)
    }
}
