//! SQL Server Agent, from exported rows of msdb: a job is a group, its steps are jobs that follow one another as their actions on
//! success and failure say, and each of its schedules is one here.
//! Story order: columns, times (when schedules fire), steps (what they run).

pub(super) mod columns;
mod steps;
mod times;

use crate::domain::id::GroupCode;
use crate::domain::notification::recipient::Recipient;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::source::scheduler_tables::SchedulerRow;
use crate::import::Given;
use crate::import::batch_numbers::SameMoment;
use crate::import::columns::{RowPlace, check_columns};
use crate::import::draft::Draft;
use crate::import::exported_rows::{ExportedRow, ExportedTables, TableNames};
use crate::import::keys::KnownKey;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::schedule::SourceScheduleState;
use crate::import::step_flow::{StepCondition, StepEnd, StepFlow, StepRun};
use crate::import::step_jobs::{FlowPlace, StepJob, describe_fault, push_blocked, push_plan};
use crate::import::tally::{CountedKind, ItemId};
use chrono_tz::Tz;
use times::{AgentClock, AgentSchedules, read_date, read_time};

const JOBS: &str = "sysjobs";
const STEPS: &str = "sysjobsteps";
const SCHEDULES: &str = "sysschedules";
const JOB_SCHEDULES: &str = "sysjobschedules";
const JOB_SERVERS: &str = "sysjobservers";
const CATEGORIES: &str = "syscategories";
const OPERATORS: &str = "sysoperators";

const TABLES: TableNames = TableNames {
    known: &[JOBS, STEPS, SCHEDULES, JOB_SCHEDULES, JOB_SERVERS, CATEGORIES, OPERATORS],
    prefixes: &[],
};

/// Reads exported tables of msdb.
pub(super) fn read_jobs(given: &[Given], draft: &mut Draft) {
    let tables = ExportedTables::read_files(given, TABLES, draft);
    let whole = given.first().map_or_else(ImportOrigin::default, |f| ImportOrigin::new(&f.path, 0));
    for needed in [JOBS, STEPS] {
        if draft.is_sound() && tables.rows(needed).is_empty() {
            let fix = "export it as docs/import.md says";
            draft.fault(&whole, format!("there is no row of {needed}"), fix);
        }
    }
    if !draft.is_sound() {
        return;
    }
    check_other_tables(&tables, draft);
    // It refuses to start a job that runs.
    draft.same_moment = SameMoment::OneRun;
    for row in tables.rows(JOBS) {
        AgentJob { row, tables: &tables }.import(draft);
    }
    leave_out_unattached(&tables, draft);
    note_whole(&whole, draft);
}

/// Columns of the tables that are read beside others.
fn check_other_tables(tables: &ExportedTables, draft: &mut Draft) {
    let others: [(&str, &[KnownKey], &str); 4] = [
        (JOB_SCHEDULES, columns::JOB_SCHEDULES, "schedule_id"),
        (JOB_SERVERS, columns::JOB_SERVERS, "job_id"),
        (CATEGORIES, columns::CATEGORIES, "name"),
        (OPERATORS, columns::OPERATORS, "name"),
    ];
    for (table, known, name) in others {
        for ExportedRow { at, row } in tables.rows(table) {
            check_columns(row, known, RowPlace { at, about: row.trimmed_value(name) }, draft);
        }
    }
}

/// Steps and schedules of no job.
fn leave_out_unattached(tables: &ExportedTables, draft: &mut Draft) {
    let is_job = |id: &str| {
        tables.rows(JOBS).iter().any(|job| job.row.trimmed_value("job_id").eq_ignore_ascii_case(id))
    };
    let left_out = |kind, row: &ExportedRow, title: &str, why: (&str, &str), draft: &mut Draft| {
        draft.begin_item(kind, &row.at, title);
        draft.note(Level::LeftOut, &row.at, title, why, ("", ""));
        draft.end_item();
    };
    for step in tables.rows(STEPS).iter().filter(|s| !is_job(s.row.trimmed_value("job_id"))) {
        let why = ("its job is not among the rows of sysjobs", "sysjobs 中没有它的作业");
        left_out(CountedKind::Job, step, step.row.trimmed_value("step_name"), why, draft);
    }
    let links = tables.rows(JOB_SCHEDULES);
    for schedule in tables.rows(SCHEDULES) {
        let id = schedule.row.trimmed_value("schedule_id");
        let is_of = |link: &&ExportedRow| {
            link.row.trimmed_value("schedule_id") == id && is_job(link.row.trimmed_value("job_id"))
        };
        if !links.iter().any(|link| is_of(&link)) {
            let why = ("no job has it in sysjobschedules", "sysjobschedules 中没有作业使用它");
            let title = schedule.row.trimmed_value("name");
            left_out(CountedKind::Schedule, schedule, title, why, draft);
        }
    }
}

fn note_whole(whole: &ImportOrigin, draft: &mut Draft) {
    draft.end_item();
    if draft.asked.zone.is_none() {
        draft.note(
            Level::Look,
            whole, "",
            (
                "SQL Server Agent goes by the clock of its server, whose zone no table names: times here are UTC",
                "SQL Server Agent 使用服务器的时区,表中没有记录:此处时间按 UTC 计",
            ),
            (
                "import again with --zone, such as --zone Asia/Shanghai",
                "请加 --zone 重新导入,例如 --zone Asia/Shanghai",
            ),
        );
    }
    draft.note(
        Level::Differs,
        whole, "",
        (
            "SQL Server Agent limits no run: time-outs are 30 days here, the longest there is; a time that was missed is not made \
             up for (misfire: skip), and a job that still runs is not started again (overlap: skip), as there",
            "SQL Server Agent 不限制运行时长:此处超时设为上限 30 天;错过的时间不补跑(misfire: skip),仍在运行时不再启动\
             (overlap: skip),与原系统一致",
        ),
        ("set timeout_sec to what a run may take", "请将 timeout_sec 设为合理时长"),
    );
}

struct AgentJob<'a> {
    row: &'a ExportedRow,
    tables: &'a ExportedTables,
}

/// A schedule of a job, with the times at which it fires.
struct FoundSchedule<'a> {
    item: ItemId,
    schedule: &'a ExportedRow,
    name: String,
    found: AgentSchedules,
}

/// What a job does after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepAction {
    Quit(StepRun),
    /// The place of the step in the job.
    GoTo(usize),
    /// A step that is not there.
    Nowhere(i64),
}

impl<'a> AgentJob<'a> {
    fn at(&self) -> &'a ImportOrigin {
        &self.row.at
    }

    fn title(&self) -> String {
        match self.row.row.trimmed_value("name") {
            "" => format!("job_{}", self.row.row.trimmed_value("job_id")),
            name => name.to_owned(),
        }
    }

    /// Rows of a table that name this job, in the order of a number.
    fn own(&self, table: &str, order: &str) -> Vec<&'a ExportedRow> {
        let id = self.row.row.trimmed_value("job_id");
        let is_own = |row: &&ExportedRow| row.row.trimmed_value("job_id").eq_ignore_ascii_case(id);
        let mut own: Vec<&ExportedRow> = self.tables.rows(table).iter().filter(is_own).collect();
        own.sort_by_key(|row| row.row.number(order).unwrap_or(0));
        own
    }

    fn import(&self, draft: &mut Draft) {
        draft.end_item();
        let title = self.title();
        let place = RowPlace { at: self.at(), about: &title };
        check_columns(&self.row.row, columns::JOBS, place, draft);
        let steps = self.own(STEPS, "step_id");
        if steps.is_empty() {
            draft.begin_item(CountedKind::Job, self.at(), &title);
            let why = (
                "it has no steps, so it does nothing, there, too",
                "它没有步骤,原系统中也不做任何事",
            );
            draft.note(Level::LeftOut, self.at(), &title, why, ("", ""));
            draft.end_item();
            return;
        }
        let group = draft.group(&title);
        self.describe_group(&group, draft);
        self.note_servers(&title, draft);
        let jobs = self.make_jobs(&steps, &group, draft);
        self.join_steps(&steps, jobs, &group, draft);
        draft.end_item();
        self.add_schedules(&title, &group, draft);
        draft.end_item();
    }

    fn describe_group(&self, group: &GroupCode, draft: &mut Draft) {
        let row = &self.row.row;
        let line =
            row.trimmed_value("description").split_whitespace().collect::<Vec<_>>().join(" ");
        let is_told = !line.is_empty() && line != "No description available.";
        // 1: on success, 2: on failure, 3: at each end.
        let level = row.number("notify_level_email").unwrap_or(0);
        let id = row.trimmed_value("notify_email_operator_id");
        let operator = self.tables.rows(OPERATORS).iter().find(|o| o.row.trimmed_value("id") == id);
        let addresses: Vec<String> = operator
            .filter(|operator| {
                operator.row.value("enabled").is_none_or(|_| operator.row.is_true("enabled"))
            })
            .map(|operator| operator.row.trimmed_value("email_address"))
            .unwrap_or_default()
            .split([';', ','])
            .map(str::trim)
            .filter(|address| Recipient::parse(address).is_ok())
            .map(str::to_owned)
            .collect();
        if level > 0 && (level != 2 || addresses.is_empty()) {
            let said = (
                format!(
                    "notify_level_email {level} of operator {id} is not carried over as it was: mails here tell of failures, to the addresses in sysoperators"
                ),
                format!(
                    "notify_level_email {level}(操作员 {id})未完全迁移:此处只在失败时发邮件给 sysoperators 中的地址"
                ),
            );
            draft.note(
                Level::Look,
                self.at(),
                group.as_str(),
                said,
                ("write notify_email of the group", "请填写作业组的 notify_email"),
            );
        }
        if let Some(made) = draft.group_mut(group) {
            if is_told {
                made.name = line.chars().filter(|c| !c.is_control()).take(200).collect();
            }
            if level >= 2 {
                made.notify_email = addresses;
            }
        }
    }

    /// A job of a master server runs on its targets.
    fn note_servers(&self, title: &str, draft: &mut Draft) {
        let others: Vec<&str> = self
            .own(JOB_SERVERS, "server_id")
            .into_iter()
            .map(|row| row.row.trimmed_value("server_id"))
            .filter(|id| !matches!(*id, "" | "0"))
            .collect();
        if others.is_empty() {
            return;
        }
        let said = (
            format!("it runs on target servers {} of this master", others.join(", ")),
            format!("它在主服务器的目标服务器 {} 上运行", others.join("、")),
        );
        let cure = (
            "write a group for each of them, with its own value of the parameter sql_server",
            "请为每台目标服务器各建一个作业组,并分别填写参数 sql_server",
        );
        draft.note(Level::Look, self.at(), title, said, cure);
    }

    /// The category as a tag.
    fn tags(&self) -> Vec<String> {
        let id = self.row.row.trimmed_value("category_id");
        let row =
            self.tables.rows(CATEGORIES).iter().find(|c| c.row.trimmed_value("category_id") == id);
        let name = row.map_or("", |row| row.row.trimmed_value("name"));
        let word: String = name
            .chars()
            .filter(|c| !"[]()".contains(*c))
            .map(|c| if c.is_alphanumeric() { c } else { '_' })
            .take(40)
            .collect();
        let is_none = word.is_empty() || word.starts_with("Uncategorized");
        if is_none { Vec::new() } else { vec![format!("category:{word}")] }
    }

    fn make_jobs(
        &self,
        rows: &[&ExportedRow],
        group: &GroupCode,
        draft: &mut Draft,
    ) -> Vec<StepJob> {
        let tags = self.tags();
        let mut jobs = Vec::new();
        for row in rows {
            let name = row.row.trimmed_value("step_name");
            let id = row.row.trimmed_value("step_id");
            let name = if name.is_empty() { id } else { name };
            let title = format!("{}_{name}", self.title());
            draft.begin_item(CountedKind::Job, &row.at, &title);
            let mut job = steps::make_step(row, group, &title, draft);
            job.tags.clone_from(&tags);
            jobs.push(StepJob { job, at: row.at.clone(), name: name.to_owned() });
        }
        draft.end_item();
        jobs
    }

    /// Lets the jobs of the steps follow one another.
    fn join_steps(
        &self,
        rows: &[&ExportedRow],
        jobs: Vec<StepJob>,
        group: &GroupCode,
        draft: &mut Draft,
    ) {
        let first = self.row.row.number("start_step_id").unwrap_or(1);
        let start = rows.iter().position(|row| row.row.number("step_id") == Some(first));
        let actions = step_actions(rows);
        let flow = step_flow(&actions, start);
        let nowhere = actions.iter().flatten().find_map(|action| match action {
            StepAction::Nowhere(id) => Some(*id),
            StepAction::Quit(_) | StepAction::GoTo(_) => None,
        });
        let title = self.title();
        let place = FlowPlace { group, at: self.at(), title: &title };
        let plan = match (nowhere, start) {
            (Some(id), _) => Err(no_step(id)),
            (None, None) => Err(no_step(first)),
            (None, Some(_)) => flow.plan().map_err(|fault| describe_fault(&fault, &jobs)),
        };
        let (plan, start) = match (plan, start) {
            (Ok(plan), Some(start)) => (plan, start),
            (Err(why), _) => return push_blocked(&why, jobs, place, draft),
            (Ok(_), None) => return,
        };
        let mut differs = false;
        let is_visited =
            flow.visit_runs(&mut |runs| differs |= is_other_end(runs, &actions, start));
        if differs || !is_visited {
            self.note_other_end(group, draft);
        }
        push_plan(plan, jobs, place, draft);
    }

    fn note_other_end(&self, group: &GroupCode, draft: &mut Draft) {
        draft.end_item();
        let said = (
            "there the action of the last step decides how the job ends; here its batch ends FAILED when a step failed, and \
             SUCCESS when none did",
            "原系统由最后一步的动作决定作业结果;此处有步骤失败则批次为 FAILED,否则为 SUCCESS",
        );
        let cure = (
            "who waits for this group waits for its last job in place of the batch",
            "依赖此组的请改为依赖其最后一个作业",
        );
        draft.note(Level::Differs, self.at(), group.as_str(), said, cure);
    }

    fn add_schedules(&self, title: &str, group: &GroupCode, draft: &mut Draft) {
        let zone = draft.asked.zone.unwrap_or(Tz::UTC);
        let mut made = Vec::new();
        for link in self.own(JOB_SCHEDULES, "schedule_id") {
            let id = link.row.trimmed_value("schedule_id");
            let is_it = |row: &&ExportedRow| row.row.trimmed_value("schedule_id") == id;
            let Some(schedule) = self.tables.rows(SCHEDULES).iter().find(is_it) else {
                draft.begin_item(CountedKind::Schedule, &link.at, title);
                let said = (
                    format!("its schedule {id} is not among the rows of sysschedules"),
                    format!("sysschedules 中没有它的调度 {id}"),
                );
                draft.note(Level::LeftOut, &link.at, title, said, ("", ""));
                draft.end_item();
                continue;
            };
            let name = format!("{title}_{}", schedule.row.trimmed_value("name"));
            let item = draft.begin_item(CountedKind::Schedule, &schedule.at, &name);
            let place = RowPlace { at: &schedule.at, about: &name };
            check_columns(&schedule.row, columns::SCHEDULES, place, draft);
            let next_run = next_run(&link.row);
            let clock = AgentClock { zone, now: draft.asked.now, next_run };
            match times::schedules(&schedule.row, clock) {
                Ok(found) => made.push(FoundSchedule { item, schedule, name, found }),
                Err(why) => {
                    let cure = (
                        format!("procession schedule add CODE --group {group} …"),
                        format!("请另行添加:procession schedule add CODE --group {group} …"),
                    );
                    draft.note(Level::LeftOut, &schedule.at, &name, why, cure);
                }
            }
        }
        self.push_schedules(made, group, draft);
    }

    fn push_schedules(&self, made: Vec<FoundSchedule<'_>>, group: &GroupCode, draft: &mut Draft) {
        let is_on = self.row.row.is_true("enabled");
        for FoundSchedule { item, schedule, name, found } in made {
            draft.resume_item(item);
            for said in found.differs {
                draft.note(Level::Differs, &schedule.at, &name, said, ("", ""));
            }
            for said in found.look {
                let cure = (
                    "compare procession schedule next with the next runs there",
                    "请将 procession schedule next 与原系统的下次运行时间核对",
                );
                draft.note(Level::Look, &schedule.at, &name, said, cure);
            }
            let state = if is_on && schedule.row.is_true("enabled") {
                SourceScheduleState::On
            } else {
                SourceScheduleState::Off
            };
            for timing in found.timings {
                let words = TriggerWords {
                    code: name.clone(),
                    group: Some(group.clone()),
                    timing,
                    misfire: Some(MisfirePolicy::Skip),
                    overlap: Some(Overlap::Skip),
                    ..TriggerWords::default()
                };
                draft.schedule(&schedule.at, words, state);
            }
        }
    }
}

/// What the job does after each step, on success and on failure.
fn step_actions(rows: &[&ExportedRow]) -> Vec<[StepAction; 2]> {
    let place = |id: i64| rows.iter().position(|row| row.row.number("step_id") == Some(id));
    let action = |at: usize, action: &str, target: &str, default: i64| {
        let row = &rows[at].row;
        match row.number(action).unwrap_or(default) {
            1 => StepAction::Quit(StepRun::Succeeded),
            3 if at + 1 < rows.len() => StepAction::GoTo(at + 1),
            // There is none after the last one: the job ends as the step did.
            3 if action == "on_success_action" => StepAction::Quit(StepRun::Succeeded),
            4 => {
                let id = row.number(target).unwrap_or(0);
                place(id).map_or(StepAction::Nowhere(id), StepAction::GoTo)
            }
            _ => StepAction::Quit(StepRun::Failed),
        }
    };
    let both = |at: usize| {
        [
            action(at, "on_success_action", "on_success_step_id", 1),
            action(at, "on_fail_action", "on_fail_step_id", 2),
        ]
    };
    (0..rows.len()).map(both).collect()
}

/// Which step starts after which end of another one.
fn step_flow(actions: &[[StepAction; 2]], start: Option<usize>) -> StepFlow {
    let mut flow = StepFlow::of_ways(vec![Vec::new(); actions.len()]);
    if let Some(start) = start {
        flow.ways[start].push(Vec::new());
    }
    for (step, both) in actions.iter().enumerate() {
        for (action, end) in both.iter().zip([StepEnd::Succeeded, StepEnd::Failed]) {
            if let StepAction::GoTo(next) = action {
                flow.ways[*next].push(vec![StepCondition { step, end }]);
            }
        }
    }
    flow
}

/// `next_run_date`, `next_run_time` as a moment; 0 is none.
fn next_run(row: &SchedulerRow) -> Option<chrono::NaiveDateTime> {
    let day = read_date(row.number("next_run_date")?)?;
    let second = read_time(row.number("next_run_time").unwrap_or(0))?;
    day.and_hms_opt(second / 3_600, second / 60 % 60, second % 60)
}

fn no_step(id: i64) -> BilingualSentence {
    BilingualSentence::new(
        format!("an action goes to step {id}, which is not there"),
        format!("动作指向步骤 {id},但该步骤不存在"),
    )
}

/// Whether the job ended other there than a batch does, which fails when a step fails.
fn is_other_end(runs: &[StepRun], actions: &[[StepAction; 2]], start: usize) -> bool {
    let mut at = start;
    for _ in 0..=runs.len() {
        let action = match runs[at] {
            StepRun::Succeeded => actions[at][0],
            StepRun::Failed => actions[at][1],
            StepRun::NotRun => return false,
        };
        match action {
            StepAction::GoTo(next) => at = next,
            StepAction::Quit(end) => {
                let batch = if runs.contains(&StepRun::Failed) {
                    StepRun::Failed
                } else {
                    StepRun::Succeeded
                };
                return batch != end;
            }
            StepAction::Nowhere(_) => return false,
        }
    }
    false
}
