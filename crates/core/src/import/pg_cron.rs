//! Imports pg_cron: each job becomes a group with one job and its schedule, on the database and as the user that it
//! names.

use crate::domain::id::GroupCode;
use crate::domain::job::JobDef;
use crate::domain::schedule::TimingWords;
use crate::domain::schedule::cron::Cron;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::source::DialectName;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerServer, SchedulerTables, TablePresence, WantedTable, WantedTables,
};
use crate::import::body::failing;
use crate::import::columns::{RowPlace, check_columns, refuse_empty, row_origin};
use crate::import::crontab::NICKNAMES;
use crate::import::draft::Draft;
use crate::import::keys::{KnownKey, read_key};
use crate::import::live_zone::read_zone_word;
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::routine_parameters::{
    CallPlace, OF_POSTGRES, is_of_database, name_parameters, without_names,
};
use crate::import::schedule::SourceScheduleState;
use crate::import::scheduler_source::{ServerDatabase, set_sql};
use crate::import::sql_statement::SqlForm;
use crate::import::tally::CountedKind;
use chrono_tz::Tz;
use std::borrow::Cow;

const JOBS: &str = "cron.job";
/// Procedures are resolved by the search path of the session.
const HOME: CallPlace<'_> = CallPlace { dialect: DialectName::Postgres, schema: None };

/// The tables and columns read from the database with the extension.
pub(crate) const WANTED: WantedTables = WantedTables {
    system: "pg_cron",
    dialects: &[DialectName::Postgres],
    tables: &[
        WantedTable {
            schema: "cron",
            table: "job",
            order: &["jobid"],
            condition: "",
            presence: TablePresence::Needed,
        },
        OF_POSTGRES,
    ],
    settings: &["cron.timezone", "is_superuser"],
};

/// Columns of `cron.job`.
pub(super) const COLUMNS: &[KnownKey] = &[
    read_key("jobid"),
    read_key("schedule"),
    read_key("command"),
    read_key("nodename"),
    read_key("nodeport"),
    read_key("database"),
    read_key("username"),
    read_key("active"),
    read_key("jobname"),
];

/// Imports the jobs of a server.
pub(crate) fn read_jobs(tables: &SchedulerTables, draft: &mut Draft) {
    let fix = "name the database in which pg_cron is (cron.database_name), and a user who may see its jobs: each sees \
               their own alone, a superuser all of them";
    refuse_empty(tables, JOBS, fix, draft);
    // Without a setting, pg_cron uses GMT.
    let zone = draft.asked.zone;
    let zone = zone.or_else(|| read_zone_word(tables.setting("cron.timezone").unwrap_or("GMT")));
    for row in tables.table_rows(JOBS) {
        CronJob::new(row).import(tables, zone.unwrap_or(Tz::UTC), draft);
    }
    if draft.defs.jobs.is_empty() {
        return;
    }
    draft.end_item();
    note_server(tables, zone, draft);
}

fn note_server(tables: &SchedulerTables, zone: Option<Tz>, draft: &mut Draft) {
    let whole = ImportOrigin::new(JOBS, 0);
    if zone.is_none() {
        let name = tables.setting("cron.timezone").unwrap_or_default();
        draft.note(
            Level::Look,
            &whole, "",
            (
                format!("cron.timezone is {name:?}, which is no zone that is known here: times are in UTC"),
                format!("cron.timezone 为 {name:?},无法识别:此处按 UTC 计"),
            ),
            (
                "import again with --zone, such as --zone Asia/Shanghai",
                "请加 --zone 重新导入,例如 --zone Asia/Shanghai",
            ),
            );
    }
    if tables.setting("is_superuser") == Some("off") {
        draft.note(
            Level::Look,
            &whole, "",
            (
                "the user that read them is no superuser: a policy of pg_cron shows a user their own jobs alone, so there may \
                 be others",
                "读取所用的用户不是超级用户:pg_cron 的策略只显示该用户自己的任务,可能还有其他任务",
            ),
            ("import again as a superuser", "请用超级用户重新导入"),
        );
    }
    draft.note(
        Level::Differs,
        &whole, "",
        (
            "pg_cron limits no run: time-outs are 30 days here, the longest there is; a time that was missed is not made up \
             for (misfire: skip), as there",
            "pg_cron 不限制运行时长:此处超时设为上限 30 天;错过的时间不补跑(misfire: skip),与原系统一致",
        ),
        ("set timeout_sec to what a run may take", "请将 timeout_sec 设为合理时长"),
    );
}

struct CronJob<'a> {
    row: &'a SchedulerRow,
    at: ImportOrigin,
    title: String,
}

impl<'a> CronJob<'a> {
    fn new(row: &'a SchedulerRow) -> Self {
        let id = row.number("jobid").unwrap_or(0);
        let name = row.trimmed_value("jobname");
        let title = if name.is_empty() { format!("job_{id}") } else { name.to_owned() };
        Self { row, at: row_origin(JOBS, id), title }
    }

    fn import(&self, tables: &SchedulerTables, zone: Tz, draft: &mut Draft) {
        let group = draft.group(&self.title);
        draft.begin_item(CountedKind::Job, &self.at, &self.title);
        check_columns(self.row, COLUMNS, RowPlace { at: &self.at, about: &self.title }, draft);
        let job = self.make_job(&group, tables, draft);
        draft.push(job);
        draft.begin_item(CountedKind::Schedule, &self.at, &self.title);
        self.schedule(&group, zone, draft);
        draft.end_item();
    }

    fn make_job(&self, group: &GroupCode, tables: &SchedulerTables, draft: &mut Draft) -> JobDef {
        let text = self.row.value("command").unwrap_or_default();
        let form = SqlForm::read(text, DialectName::Postgres);
        let form = if is_of_database(&tables.server, self.row.trimmed_value("database")) {
            name_parameters(form, tables, HOME)
        } else {
            without_names(form)
        };
        let job_type = if matches!(form, SqlForm::Call { .. }) { "PROC" } else { "SQL" };
        let mut job = draft.job(&self.at, group, &self.title, job_type);
        job.timeout_sec = draft.timeout(&self.at, &self.title, 0);
        let server = self.node(&tables.server);
        let database = ServerDatabase {
            server: &server,
            dialect: DialectName::Postgres,
            database: self.row.trimmed_value("database"),
            user: Some(self.row.trimmed_value("username")),
        };
        if let Some(why) = form.fault() {
            return failing(draft, &self.at, job, &why);
        }
        job.source = Some(database.source(&self.at, draft));
        match form {
            SqlForm::Call { name, params } => (job.proc_name, job.params) = (Some(name), params),
            _ => set_sql(&mut job, text, DialectName::Postgres),
        }
        job
    }

    /// The server on which the job runs: the one whose tables these are, or another node.
    fn node<'s>(&self, server: &'s SchedulerServer) -> Cow<'s, SchedulerServer> {
        let (host, port) = (self.row.trimmed_value("nodename"), self.row.number("nodeport"));
        let is_here =
            matches!(host, "" | "localhost" | "127.0.0.1" | "::1") || host.starts_with('/');
        let url = server.url.as_deref().and_then(|url| url::Url::parse(url).ok());
        let (Some(mut url), false) = (url, is_here) else { return Cow::Borrowed(server) };
        let port = port.and_then(|port| u16::try_from(port).ok());
        if url.set_host(Some(host)).is_err() || url.set_port(port).is_err() {
            return Cow::Borrowed(server);
        }
        Cow::Owned(SchedulerServer { url: Some(url.to_string()), ..server.clone() })
    }

    fn schedule(&self, group: &GroupCode, zone: Tz, draft: &mut Draft) {
        let text = self.row.trimmed_value("schedule");
        let timing = match timing(text) {
            Ok(timing) => timing,
            Err(why) => {
                draft.note(
                    Level::LeftOut,
                    &self.at,
                    &self.title,
                    why,
                    (
                        format!("procession schedule add CODE --group {group} …"),
                        format!("请另行添加:procession schedule add CODE --group {group} …"),
                    ),
                );
                return;
            }
        };
        let words = TriggerWords {
            code: self.title.clone(),
            group: Some(group.clone()),
            timing: TimingWords { time_zone: Some(zone.name().to_owned()), ..timing },
            misfire: Some(MisfirePolicy::Skip),
            overlap: Some(Overlap::Queue),
            ..TriggerWords::default()
        };
        let firing = if self.row.is_true("active") {
            SourceScheduleState::On
        } else {
            SourceScheduleState::Off
        };
        draft.schedule(&self.at, words, firing);
    }
}

/// Translates five fields, in which `$` is the last day of the month, a nickname, or `30 seconds`; else returns why
/// there is no equivalent.
fn timing(text: &str) -> Result<TimingWords, BilingualSentence> {
    if text == "@reboot" {
        return Err(BilingualSentence::from((
            "its schedule is left out: @reboot: nothing here fires when a server starts",
            "其调度未迁移:@reboot:此处没有随服务器启动的触发",
        )));
    }
    let lower = text.to_ascii_lowercase();
    if let Some(number) = lower.strip_suffix("seconds").or_else(|| lower.strip_suffix("second")) {
        let seconds = number.trim().parse::<i64>().ok().filter(|sec| (1..60).contains(sec));
        let every_sec = Some(seconds.ok_or_else(|| unknown(text))?);
        return Ok(TimingWords { every_sec, ..TimingWords::default() });
    }
    let nickname = NICKNAMES.iter().find(|(name, _)| *name == lower).map(|(_, fields)| *fields);
    let fields: Vec<&str> = nickname.unwrap_or(text).split_whitespace().collect();
    let cron = match fields[..] {
        [minute, hour, day, month, weekday] if day.contains('$') => {
            if weekday != "*" {
                return Err(BilingualSentence::new(
                    format!(
                        "its schedule is left out: {text}: the last day of the month or a day of the week is no cron here"
                    ),
                    format!("其调度未迁移:{text}:月末或星期几无法用一个 cron 表达"),
                ));
            }
            format!("0 {minute} {hour} {} {month} ?", day.replace('$', "L"))
        }
        [_, _, _, _, _] => fields.join(" "),
        _ => return Err(unknown(text)),
    };
    Cron::parse(&cron).map_err(|error| {
        BilingualSentence::new(
            format!("its schedule is left out: {text}: {error}"),
            format!("其调度未迁移:{text}:{error}"),
        )
    })?;
    Ok(TimingWords { cron: Some(cron), ..TimingWords::default() })
}

fn unknown(text: &str) -> BilingualSentence {
    let text: String = text.chars().take(80).collect();
    BilingualSentence::new(
        format!("its schedule is left out: {text:?} is none that pg_cron has"),
        format!("其调度未迁移:{text:?} 无法识别"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_of_pg_cron() {
        for (text, wanted) in [
            ("30 3 * * 6", "30 3 * * 6"),
            ("0 0 1,15 * 1", "0 0 1,15 * 1"),
            ("0 12 $ * *", "0 0 12 L * ?"),
            ("0 12 1,$ jan *", "0 0 12 1,L jan ?"),
            ("@Daily", "0 0 * * *"),
            ("10 seconds", "10"),
            ("1 second", "1"),
        ] {
            let found = timing(text).unwrap_or_else(|why| panic!("{text}: {}", why.en));
            let said = found.cron.or_else(|| found.every_sec.map(|sec| sec.to_string()));
            assert_eq!(said.as_deref(), Some(wanted), "{text}");
        }
        for text in ["@reboot", "0 12 $ * 1", "60 seconds", "x seconds", "* * *", "61 * * * *", ""]
        {
            assert!(timing(text).is_err_and(|why| why.en.contains("left out")), "{text}");
        }
    }
}
