//! Imports pgAgent: a job becomes a group, its steps become jobs one after the other, and each of its schedules becomes
//! a schedule.

mod times;

use crate::domain::id::GroupCode;
use crate::domain::job::JobDef;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::schedule::{Blackout, BlackoutTime, TimingWords};
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerTables, TablePresence, WantedTable, WantedTables,
};
use crate::domain::time::local_time::wall_at;
use crate::import::batch_numbers::SameMoment;
use crate::import::body::{failing, quoted};
use crate::import::columns::{RowPlace, check_columns, refuse_empty, row_origin};
use crate::import::draft::Draft;
use crate::import::interval::{second_after, wall_text};
use crate::import::keys::{KnownKey, hint, noted, read_key, record};
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::pg_timetable::task::connect_string_source;
use crate::import::routine_parameters::{
    CallPlace, OF_POSTGRES, is_of_database, name_parameters, without_names,
};
use crate::import::schedule::SourceScheduleState;
use crate::import::scheduler_source::{ServerDatabase, set_sql};
use crate::import::sql_statement::SqlForm;
use crate::import::step_flow::StepEnd;
use crate::import::step_jobs::{FlowPlace, StepJob, push_chain};
use crate::import::tally::CountedKind;
use chrono::{NaiveDate, NaiveTime, TimeDelta, WeekdaySet};
use chrono_tz::Tz;
use times::{AgentTimes, moment, zone};

const JOBS: &str = "pgagent.pga_job";
const STEPS: &str = "pgagent.pga_jobstep";
const SCHEDULES: &str = "pgagent.pga_schedule";
const EXCEPTIONS: &str = "pgagent.pga_exception";
const CLASSES: &str = "pgagent.pga_jobclass";

const fn wanted(table: &'static str, order: &'static [&'static str]) -> WantedTable {
    WantedTable { schema: "pgagent", table, order, condition: "", presence: TablePresence::Needed }
}

/// Procedures are resolved by the search path of the session.
const HOME: CallPlace<'_> = CallPlace { dialect: DialectName::Postgres, schema: None };

/// The tables and columns read from pgAgent's database, which is often `postgres`.
pub(crate) const WANTED: WantedTables = WantedTables {
    system: "pgAgent",
    dialects: &[DialectName::Postgres],
    tables: &[
        wanted("pga_job", &["jobid"]),
        // pgAgent runs them in this order, sorted by the server's collation.
        wanted("pga_jobstep", &["jstjobid", "jstname", "jstid"]),
        wanted("pga_schedule", &["jscjobid", "jscid"]),
        wanted("pga_exception", &["jexscid", "jexid"]),
        wanted("pga_jobclass", &["jclid"]),
        OF_POSTGRES,
    ],
    settings: &[],
};

/// Columns of a job.
pub(super) const JOB_COLUMNS: &[KnownKey] = &[
    read_key("jobid"),
    read_key("jobjclid"),
    read_key("jobname"),
    read_key("jobdesc"),
    noted(
        "jobhostagent",
        &[],
        hint(
            "there it runs on that host alone: worker: LABEL on its jobs, and a node with that label, do so here",
            "原系统只在该主机上运行:可用作业的 worker: 标签 和带该标签的节点实现",
        ),
    ),
    read_key("jobenabled"),
    record("jobcreated"),
    record("jobchanged"),
    record("jobagentid"),
    read_key("jobnextrun"),
    record("joblastrun"),
];

/// Columns of a step.
pub(super) const STEP_COLUMNS: &[KnownKey] = &[
    read_key("jstid"),
    read_key("jstjobid"),
    read_key("jstname"),
    read_key("jstdesc"),
    read_key("jstenabled"),
    read_key("jstkind"),
    read_key("jstcode"),
    read_key("jstconnstr"),
    read_key("jstdbname"),
    read_key("jstonerror"),
    record("jscnextrun"),
];

/// Columns of a schedule.
pub(super) const SCHEDULE_COLUMNS: &[KnownKey] = &[
    read_key("jscid"),
    read_key("jscjobid"),
    read_key("jscname"),
    read_key("jscdesc"),
    read_key("jscenabled"),
    read_key("jscstart"),
    read_key("jscend"),
    read_key("jscminutes"),
    read_key("jschours"),
    read_key("jscweekdays"),
    read_key("jscmonthdays"),
    read_key("jscmonths"),
];

/// Columns of an exception.
pub(super) const EXCEPTION_COLUMNS: &[KnownKey] =
    &[record("jexid"), read_key("jexscid"), read_key("jexdate"), read_key("jextime")];

/// Imports the jobs of a server.
pub(crate) fn read(tables: &SchedulerTables, draft: &mut Draft) {
    let fix = "name the database in which the schema pgagent is, often postgres";
    refuse_empty(tables, JOBS, fix, draft);
    let (zone, is_sure) = zone(tables, draft);
    // A job has one next run, the earliest of its schedules.
    draft.same_moment = SameMoment::OneRun;
    for row in tables.table_rows(JOBS) {
        AgentJob::new(row, tables, zone).import(draft);
    }
    if draft.defs.jobs.is_empty() {
        return;
    }
    draft.end_item();
    let whole = ImportOrigin::new(JOBS, 0);
    if !is_sure {
        draft.note(
            Level::Look,
            &whole, zone.name(),
            (
                format!("pgAgent goes by the time zone of its session, which no table names: times here are in {zone}"),
                format!("pgAgent 按其会话的时区触发,表中没有记录:此处时间按 {zone} 计"),
            ),
            (
                "compare with the next run of a job in pgAdmin, and import again with --zone if it is another",
                "请与 pgAdmin 中任务的下次运行时间核对,不符时加 --zone 重新导入",
            ),
        );
    }
    draft.note(
        Level::Differs,
        &whole, "",
        (
            "pgAgent limits no run: time-outs are 30 days here, the longest there is; a time that was missed is made up for \
             once (misfire: once), and a job that still runs is not started again (overlap: skip), as there",
            "pgAgent 不限制运行时长:此处超时设为上限 30 天;错过的时间补跑一次(misfire: once),仍在运行时不再启动\
             (overlap: skip),与原系统一致",
        ),
        ("set timeout_sec to what a run may take", "请将 timeout_sec 设为合理时长"),
    );
}

struct AgentJob<'a> {
    row: &'a SchedulerRow,
    tables: &'a SchedulerTables,
    zone: Tz,
    at: ImportOrigin,
    title: String,
}

impl<'a> AgentJob<'a> {
    fn new(row: &'a SchedulerRow, tables: &'a SchedulerTables, zone: Tz) -> Self {
        let id = row.number("jobid").unwrap_or(0);
        let name = row.trimmed_value("jobname");
        let title = if name.is_empty() { format!("job_{id}") } else { name.to_owned() };
        Self { row, tables, zone, at: row_origin(JOBS, id), title }
    }

    /// Rows of a table that reference this job.
    fn own(&self, table: &str, column: &'static str) -> impl Iterator<Item = &'a SchedulerRow> {
        let id = self.row.trimmed_value("jobid");
        self.tables.table_rows(table).iter().filter(move |row| row.trimmed_value(column) == id)
    }

    fn import(&self, draft: &mut Draft) {
        draft.end_item();
        check_columns(self.row, JOB_COLUMNS, RowPlace { at: &self.at, about: &self.title }, draft);
        let steps: Vec<&SchedulerRow> = self.own(STEPS, "jstjobid").collect();
        if steps.is_empty() {
            draft.begin_item(CountedKind::Job, &self.at, &self.title);
            draft.note(
                Level::LeftOut,
                &self.at,
                &self.title,
                (
                    "it has no steps, so it does nothing, there, too",
                    "它没有步骤,原系统中也不做任何事",
                ),
                ("", ""),
            );
            draft.end_item();
            return;
        }
        let group = draft.group(&self.title);
        let description = self.row.trimmed_value("jobdesc");
        if !description.is_empty()
            && let Some(made) = draft.group_mut(&group)
        {
            let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
            made.name = line.chars().filter(|c| !c.is_control()).take(200).collect();
        }
        let chain = steps.into_iter().filter_map(|row| self.step(row, &group, draft)).collect();
        push_chain(chain, FlowPlace { group: &group, at: &self.at, title: &self.title }, draft);
        for row in self.own(SCHEDULES, "jscjobid") {
            self.schedule(row, &group, draft);
        }
        draft.end_item();
    }

    /// The class of the job, as a tag.
    fn class(&self) -> Option<String> {
        let of_job =
            |row: &&SchedulerRow| row.trimmed_value("jclid") == self.row.trimmed_value("jobjclid");
        let name = self.tables.table_rows(CLASSES).iter().find(of_job)?.trimmed_value("jclname");
        let word: String =
            name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).take(40).collect();
        (!word.is_empty()).then(|| format!("class:{word}"))
    }

    /// Converts a step: its job, and the end after which the next step runs; `None` if the job skips it.
    fn step(
        &self,
        row: &SchedulerRow,
        group: &GroupCode,
        draft: &mut Draft,
    ) -> Option<(StepJob, StepEnd)> {
        let at = row_origin(STEPS, row.number("jstid").unwrap_or(0));
        let title = format!("{}_{}", self.title, row.trimmed_value("jstname"));
        draft.begin_item(CountedKind::Job, &at, &title);
        check_columns(row, STEP_COLUMNS, RowPlace { at: &at, about: &title }, draft);
        let mut job = draft.job(
            &at,
            group,
            &title,
            if row.trimmed_value("jstkind") == "b" { "SCRIPT" } else { "SQL" },
        );
        let description = row.trimmed_value("jstdesc");
        if !description.is_empty() {
            job.name = description
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .chars()
                .take(200)
                .collect();
        }
        job.tags = self.class().into_iter().collect();
        job.timeout_sec = draft.timeout(&at, &title, 0);
        let code = job.code.clone();
        let made = match row.trimmed_value("jstkind") {
            "b" => batch(row, job.clone()),
            "s" => self.sql(row, &at, job.clone(), draft),
            kind => Err(BilingualSentence::new(
                format!("its kind {kind:?} is none of pgAgent's"),
                format!("步骤类型 {kind:?} 无法识别"),
            )),
        };
        let mut job = match made {
            Ok(made) => made,
            Err(why) => failing(draft, &at, job, &why),
        };
        let is_enabled = row.is_true("jstenabled");
        if !is_enabled {
            job.is_active = false;
            draft.note(
                Level::Differs,
                &at,
                code.as_str(),
                (
                    "it is disabled: it is not active here, and the job goes past it, as there",
                    "已停用:此处为未启用,任务跳过它,与原系统一致",
                ),
                ("", ""),
            );
        }
        if !is_enabled {
            draft.push(job);
            return None;
        }
        let end = on_error(row, &at, code.as_str(), draft);
        Some((StepJob { job, at, name: row.trimmed_value("jstname").to_owned() }, end))
    }

    fn sql(
        &self,
        row: &SchedulerRow,
        at: &ImportOrigin,
        mut job: JobDef,
        draft: &mut Draft,
    ) -> Result<JobDef, BilingualSentence> {
        let text = row.value("jstcode").unwrap_or_default();
        let form = SqlForm::read(text, DialectName::Postgres);
        let form = if is_of_database(&self.tables.server, row.trimmed_value("jstdbname")) {
            name_parameters(form, self.tables, HOME)
        } else {
            without_names(form)
        };
        if let Some(why) = form.fault() {
            return Err(why);
        }
        match form {
            SqlForm::Call { name, params } => {
                (job.proc_name, job.params) = (Some(name), params);
                job.job_type = crate::domain::id::JobType::parse("PROC").expect("a job type");
            }
            _ => set_sql(&mut job, text, DialectName::Postgres),
        }
        let address = row.trimmed_value("jstconnstr");
        job.source = Some(if address.is_empty() {
            let database = ServerDatabase {
                server: &self.tables.server,
                dialect: DialectName::Postgres,
                database: row.trimmed_value("jstdbname"),
                user: None,
            };
            database.source(at, draft)
        } else {
            connect_string_source(address, at, draft).ok_or_else(|| {
                BilingualSentence::from((
                    "its connection string cannot be read",
                    "无法读取其连接串",
                ))
            })?
        });
        Ok(job)
    }

    fn schedule(&self, row: &SchedulerRow, group: &GroupCode, draft: &mut Draft) {
        let at = row_origin(SCHEDULES, row.number("jscid").unwrap_or(0));
        let title = format!("{}_{}", self.title, row.trimmed_value("jscname"));
        draft.begin_item(CountedKind::Schedule, &at, &title);
        check_columns(row, SCHEDULE_COLUMNS, RowPlace { at: &at, about: &title }, draft);
        let mut timing = AgentTimes::read(row).timing();
        let wall = |text: &str| moment(text).map(|at| (at, wall_at(at, self.zone)));
        // pgAgent ignores seconds.
        let start = wall(row.trimmed_value("jscstart")).filter(|(at, _)| *at > draft.asked.now);
        timing.start = start.map(|(_, wall)| wall.format("%Y-%m-%dT%H:%M:00").to_string());
        // In pgAgent the end is the last moment at which it may fire.
        timing.end = wall(row.trimmed_value("jscend"))
            .and_then(|(_, wall)| second_after(wall))
            .map(wall_text);
        timing.time_zone = Some(self.zone.name().to_owned());
        self.add_exceptions(row, &mut timing, draft);
        let description = row.trimmed_value("jscdesc");
        let words = TriggerWords {
            code: title.clone(),
            name: (!description.is_empty()).then(|| description.to_owned()),
            group: Some(group.clone()),
            timing,
            misfire: Some(MisfirePolicy::Once),
            overlap: Some(Overlap::Skip),
            ..TriggerWords::default()
        };
        let is_on = self.row.is_true("jobenabled") && row.is_true("jscenabled");
        draft.schedule(
            &at,
            words,
            if is_on { SourceScheduleState::On } else { SourceScheduleState::Off },
        );
    }

    /// Converts exceptions to blackouts: a day, a minute of a day, or a minute of every day.
    fn add_exceptions(&self, schedule: &SchedulerRow, timing: &mut TimingWords, draft: &mut Draft) {
        let id = schedule.trimmed_value("jscid");
        let today = wall_at(draft.asked.now, self.zone).date();
        for row in self
            .tables
            .table_rows(EXCEPTIONS)
            .iter()
            .filter(|row| row.trimmed_value("jexscid") == id)
        {
            let at = row_origin(EXCEPTIONS, row.number("jexid").unwrap_or(0));
            check_columns(row, EXCEPTION_COLUMNS, RowPlace { at: &at, about: &self.title }, draft);
            let date = row.trimmed_value("jexdate").parse::<NaiveDate>().ok();
            let time = NaiveTime::parse_from_str(row.trimmed_value("jextime"), "%H:%M:%S").ok();
            if date.is_some_and(|date| date < today) {
                continue;
            }
            let minute = TimeDelta::minutes(1);
            let time = match (date, time) {
                (Some(date), Some(time)) => {
                    let from = date.and_time(time);
                    let Some(until) = from.checked_add_signed(minute) else { continue };
                    BlackoutTime::Range { from, until }
                }
                (Some(date), None) => {
                    let from = date.and_time(NaiveTime::MIN);
                    let Some(next) = date.succ_opt() else { continue };
                    BlackoutTime::Range { from, until: next.and_time(NaiveTime::MIN) }
                }
                (None, Some(time)) => BlackoutTime::Weekly {
                    from: time,
                    until: time.overflowing_add_signed(minute).0,
                    days: WeekdaySet::ALL,
                },
                (None, None) => continue,
            };
            timing
                .blackouts
                .push(Blackout { time, because: Some("an exception of pgAgent".to_owned()) });
        }
    }
}

/// A batch step is a file that pgAgent executes: its first line names the interpreter.
fn batch(row: &SchedulerRow, mut job: JobDef) -> Result<JobDef, BilingualSentence> {
    let text = row.value("jstcode").unwrap_or_default().replace("\r\n", "\n");
    if text.trim().is_empty() {
        return Err(BilingualSentence::from(("its code is empty", "其代码为空")));
    }
    let first = text.lines().next().unwrap_or_default().trim();
    if first.to_ascii_lowercase().starts_with("@echo") {
        return Err(BilingualSentence::from((
            "it is a batch file of Windows, which no interpreter here runs",
            "它是 Windows 批处理文件,此处没有对应的解释器",
        )));
    }
    let program = first.strip_prefix("#!").map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let word = match words[..] {
            [env, program, ..] if env.ends_with("/env") => program,
            [program, ..] => program,
            [] => "sh",
        };
        word.rsplit('/').next().unwrap_or(word).to_owned()
    });
    match program.as_deref() {
        None | Some("sh" | "dash") => job.interpreter = Some("sh".to_owned()),
        Some("bash") => job.interpreter = Some("bash".to_owned()),
        Some("python" | "python3") => job.interpreter = Some("python3".to_owned()),
        Some(other) => {
            return Err(BilingualSentence::new(
                format!(
                    "it runs with {}, which is no interpreter that is set up here",
                    quoted(other)
                ),
                format!("其解释器 {} 未在此处配置", quoted(other)),
            ));
        }
    }
    job.script = Some(format!("{}\n", text.trim_end()));
    Ok(job)
}

/// The end of a step after which the next one runs.
fn on_error(row: &SchedulerRow, at: &ImportOrigin, about: &str, draft: &mut Draft) -> StepEnd {
    let word = row.trimmed_value("jstonerror");
    if !["s", "i"].contains(&word) {
        return StepEnd::Succeeded;
    }
    let there = if word == "s" { "counts as a success" } else { "is ignored" };
    draft.note(
        Level::Differs,
        at, about,
        (
            format!(
                "there its failure {there} and the job goes on: what comes after it runs once it has run, however it ended \
                 (when: done), and the batch ends FAILED, where the job there ends well"
            ),
            "原系统忽略其失败并继续:只要它运行过,其后的作业照常运行(when: done),但批次以 FAILED 结束,而原系统算作成功"
                .to_owned(),
        ),
        ("", ""),
    );
    StepEnd::Ended
}
