//! Imports Quartz: each job of a JDBC JobStore becomes a group with one job, and its triggers become schedules of that
//! group.

pub(super) mod columns;
mod daily_times;
mod job_data;
mod triggers;

use crate::domain::executor::block::BlockStrategy;
use crate::domain::executor::route::RouteStrategy;
use crate::domain::executor::{ExecutorCall, ExecutorSend};
use crate::domain::id::{GroupCode, JobType};
use crate::domain::job::{JobDef, Param};
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerTables, TablePresence, WantedTable, WantedTables,
};
use crate::domain::xxl::xxl_run::AppName;
use crate::import::body::{failing, is_parameter_name};
use crate::import::columns::{RowPlace, check_columns, refuse_empty};
use crate::import::draft::Draft;
use crate::import::name::NameMaker;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::tally::{CountedKind, ItemId};
use chrono_tz::Tz;
use columns::{CALENDAR_COLUMNS, JOB_COLUMNS};
use job_data::JobData;
use std::collections::BTreeMap;
use triggers::StoredTrigger;

const JOBS: &str = "QRTZ_JOB_DETAILS";
const TRIGGERS: &str = "QRTZ_TRIGGERS";
const CRON: &str = "QRTZ_CRON_TRIGGERS";
const SIMPLE: &str = "QRTZ_SIMPLE_TRIGGERS";
const SIMPLE_PROPERTIES: &str = "QRTZ_SIMPROP_TRIGGERS";
const CALENDARS: &str = "QRTZ_CALENDARS";

/// Sort order of rows that belong to a trigger.
const BY_TRIGGER: &[&str] = &["sched_name", "trigger_group", "trigger_name"];

const fn of_triggers(table: &'static str, presence: TablePresence) -> WantedTable {
    WantedTable { schema: "", table, order: BY_TRIGGER, condition: "", presence }
}

/// The tables and columns read from the database of a JDBC JobStore.
pub(crate) const WANTED: WantedTables = WantedTables {
    system: "Quartz",
    dialects: &[DialectName::Mysql, DialectName::Postgres],
    tables: &[
        WantedTable {
            schema: "",
            table: JOBS,
            order: &["sched_name", "job_group", "job_name"],
            condition: "",
            presence: TablePresence::Needed,
        },
        of_triggers(TRIGGERS, TablePresence::Needed),
        of_triggers(CRON, TablePresence::Needed),
        of_triggers(SIMPLE, TablePresence::Needed),
        of_triggers(SIMPLE_PROPERTIES, TablePresence::Optional),
        WantedTable {
            schema: "",
            table: CALENDARS,
            order: &["sched_name", "calendar_name"],
            condition: "",
            presence: TablePresence::Optional,
        },
    ],
    settings: &[],
};

/// Data about all jobs.
struct Store<'a> {
    tables: &'a SchedulerTables,
    /// The time zone for triggers that name none: that of the Java program.
    zone: Tz,
    /// The executor group that represents each scheduler.
    apps: BTreeMap<String, AppName>,
}

/// Imports the jobs of a store.
pub(crate) fn read_store(tables: &SchedulerTables, draft: &mut Draft) {
    let fix = "name the database of the JobStore (org.quartz.jobStore.dataSource); its tables begin with QRTZ_";
    refuse_empty(tables, JOBS, fix, draft);
    let zone = triggers::zone(tables, draft);
    let mut store = Store { tables, zone, apps: BTreeMap::new() };
    store.name_apps();
    for (at, row) in (1..).zip(tables.table_rows(JOBS)) {
        StoredJob::new(row, at).import(&store, draft);
    }
    triggers::note_without_job(tables, draft);
    draft.end_item();
    for (at, row) in (1..).zip(tables.table_rows(CALENDARS)) {
        let origin = ImportOrigin::new(CALENDARS, at);
        let place = RowPlace { at: &origin, about: row.trimmed_value("calendar_name") };
        check_columns(row, CALENDAR_COLUMNS, place, draft);
    }
    if !draft.defs.jobs.is_empty() {
        note_store(draft);
    }
}

fn note_store(draft: &mut Draft) {
    draft.note(
        Level::Differs,
        &ImportOrigin::new(JOBS, 0), "",
        (
            "Quartz limits no run: time-outs are 30 days here, the longest there is; start times are cut to the second",
            "Quartz 不限制运行时长：此处超时设为上限 30 天；开始时间截到秒",
        ),
        ("set timeout_sec to what a run may take", "请将 timeout_sec 设为合理时长"),
    );
}

impl Store<'_> {
    /// Assigns the app name under which executors register: the name of the scheduler, as far as it is valid.
    fn name_apps(&mut self) {
        let mut names = NameMaker::hosts();
        for row in self.tables.table_rows(JOBS) {
            let scheduler = row.trimmed_value("sched_name");
            if self.apps.contains_key(scheduler) {
                continue;
            }
            let near = names.name(scheduler);
            let app = AppName::parse(&near).or_else(|_| AppName::parse(&format!("quartz-{near}")));
            let app = app.expect("letters and digits, more than four");
            self.apps.insert(scheduler.to_owned(), app);
        }
    }
}

struct StoredJob<'a> {
    row: &'a SchedulerRow,
    at: ImportOrigin,
    title: String,
    data: JobData,
}

/// A job to be created from a stored one, with the data that some of its triggers pass.
struct PlannedJob<'a> {
    title: String,
    item: ItemId,
    own: &'a [(String, String)],
}

impl<'a> StoredJob<'a> {
    fn new(row: &'a SchedulerRow, at: u64) -> Self {
        let (group, name) = (row.trimmed_value("job_group"), row.trimmed_value("job_name"));
        let title = if group == "DEFAULT" { name.to_owned() } else { format!("{group}_{name}") };
        let data = JobData::read(row.trimmed_value("job_data"));
        Self { row, at: ImportOrigin::new(JOBS, at), title, data }
    }

    /// Creates a group for the job, and one more for each set of data that triggers pass in place of the job's.
    fn import(&self, store: &Store<'_>, draft: &mut Draft) {
        let item = draft.begin_item(CountedKind::Job, &self.at, &self.title);
        check_columns(self.row, JOB_COLUMNS, RowPlace { at: &self.at, about: &self.title }, draft);
        let mut by_data: BTreeMap<Vec<(String, String)>, Vec<StoredTrigger<'_>>> = BTreeMap::new();
        for trigger in triggers::of_job(store.tables, self.row) {
            by_data.entry(trigger.data.pairs().to_vec()).or_default().push(trigger);
        }
        if by_data.is_empty() {
            by_data.insert(Vec::new(), Vec::new());
        }
        for (own, all) in by_data {
            let title = match all.first() {
                Some(first) if !own.is_empty() => format!("{}_{}", self.title, first.name()),
                _ => self.title.clone(),
            };
            draft.resume_item(item);
            let group = draft.group(&title);
            self.add_job(&group, &PlannedJob { title, item, own: &own }, store, draft);
            for trigger in all {
                trigger.import(self.row, &group, store.zone, draft);
            }
        }
        draft.end_item();
    }

    fn add_job(
        &self,
        group: &GroupCode,
        planned: &PlannedJob<'_>,
        store: &Store<'_>,
        draft: &mut Draft,
    ) {
        let PlannedJob { title, item, own } = planned;
        draft.resume_item(*item);
        let mut job = draft.job(&self.at, group, title, "HANDLER");
        job.timeout_sec = draft.timeout(&self.at, title, 0);
        let description = self.row.trimmed_value("description");
        if !description.is_empty() {
            job.name = description.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        let mut pairs: BTreeMap<String, String> = self.data.pairs().iter().cloned().collect();
        pairs.extend(own.iter().cloned());
        let job = match self.body(job.clone(), &pairs, store, draft) {
            Ok(job) => job,
            Err(why) => failing(draft, &self.at, job, &why),
        };
        draft.push(job);
    }

    /// The body for a job class of Quartz itself; other classes belong to the program and become handlers.
    fn body(
        &self,
        mut job: JobDef,
        pairs: &BTreeMap<String, String>,
        store: &Store<'_>,
        draft: &mut Draft,
    ) -> Result<JobDef, BilingualSentence> {
        if matches!(self.data, JobData::Serialized) {
            return Err(BilingualSentence::from((
                "its job data is a serialised Java object, which only its program can read: set \
                 org.quartz.jobStore.useProperties and store the job again, or write its parameters by hand",
                "其 JobDataMap 是 Java 序列化对象，只有原程序能读取：请启用 org.quartz.jobStore.useProperties 后重新保存，或手工填写参数",
            )));
        }
        let class = self.row.trimmed_value("job_class_name");
        match class {
            "org.quartz.jobs.NoOpJob" => {
                job.job_type = JobType::parse("NOOP").expect("a job type");
                return Ok(job);
            }
            "org.quartz.jobs.NativeJob" => return native_job(job, pairs),
            _ => {}
        }
        check_pairs(pairs)?;
        let handler = class.rsplit('.').next().unwrap_or(class).to_owned();
        let scheduler = self.row.trimmed_value("sched_name");
        let app = store.apps.get(scheduler).expect("every scheduler has a name").clone();
        draft.note(
            Level::Look,
            &self.at, job.code.as_str(),
            (
                format!("its class {class} stays in its program: here it is handler {handler} of the executors {app}"),
                format!("其类 {class} 仍在原程序中：此处为执行器 {app} 的处理器 {handler}"),
            ),
            (
                format!(
                    "let the program register as executor {app} and call the class in a handler named {handler} (@XxlJob); until \
                     then the job waits for an executor"
                ),
                format!("请让程序以 {app} 注册为执行器，并在名为 {handler} 的处理器（@XxlJob）中调用该类；在此之前作业等待执行器"),
            ),
        );
        job.params = pairs
            .iter()
            .map(|(name, value)| Param {
                name: name.clone(),
                value: Some(value.clone()),
                ..Param::default()
            })
            .collect();
        job.executor = Some(Box::new(ExecutorCall {
            app,
            handler: Some(handler),
            language: None,
            send: if job.params.is_empty() { ExecutorSend::None } else { ExecutorSend::Json },
            route: RouteStrategy::default(),
            block: BlockStrategy::default(),
        }));
        Ok(job)
    }
}

/// Checks that the data can be parameters.
fn check_pairs(pairs: &BTreeMap<String, String>) -> Result<(), BilingualSentence> {
    if let Some((key, _)) = pairs.iter().find(|(key, _)| !is_parameter_name(key)) {
        return Err(BilingualSentence::new(
            format!("the key {key:?} of its job data cannot be the name of a parameter here"),
            format!("其 JobDataMap 的键 {key:?} 不能作为此处的参数名"),
        ));
    }
    if let Some((key, _)) = pairs.iter().find(|(_, value)| value.contains("${")) {
        return Err(BilingualSentence::new(
            format!("the value of {key} in its job data has ${{, which would mean something here"),
            format!("其 JobDataMap 中 {key} 的值含有 ${{，在此处有特殊含义"),
        ));
    }
    Ok(())
}

/// A job that runs a command through a shell, as in Quartz.
fn native_job(
    mut job: JobDef,
    pairs: &BTreeMap<String, String>,
) -> Result<JobDef, BilingualSentence> {
    let value = |key: &str| pairs.get(key).map(|text| text.trim()).unwrap_or_default();
    let command = value("command");
    if command.is_empty() {
        return Err(BilingualSentence::from((
            "it is a NativeJob whose data names no command",
            "它是 NativeJob，但数据中没有 command",
        )));
    }
    if value("waitForProcess") == "false" {
        return Err(BilingualSentence::from((
            "it is a NativeJob that does not wait for its command (waitForProcess), so that its end says nothing",
            "它是不等待命令结束的 NativeJob（waitForProcess），其结束没有意义",
        )));
    }
    let line = format!("{command} {}", value("parameters"));
    job.job_type = JobType::parse("SCRIPT").expect("a job type");
    job.interpreter = Some("sh".to_owned());
    job.script = Some(format!("{}\n", line.trim()));
    Ok(job)
}
