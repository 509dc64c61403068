//! Imports events of MySQL and MariaDB: each becomes a group with one job and its schedules.

use crate::domain::id::GroupCode;
use crate::domain::job::JobDef;
use crate::domain::schedule::TimingWords;
use crate::domain::schedule::misfire::MisfirePolicy;
use crate::domain::schedule::overlap::Overlap;
use crate::domain::schedule::trigger::TriggerWords;
use crate::domain::source::DialectName;
use crate::domain::source::routine_name::is_plain_part;
use crate::domain::source::scheduler_tables::{
    SchedulerRow, SchedulerTables, TablePresence, WantedTable, WantedTables,
};
use crate::import::body::{failing, in_comment};
use crate::import::columns::{RowPlace, check_columns, refuse_empty, row_origin};
use crate::import::draft::Draft;
use crate::import::interval::{
    DAY_SEC, Interval, IntervalStep, Schedules, read_wall, second_after, wall_text,
};
use crate::import::keys::{KnownKey, read_key, record};
use crate::import::live_zone::{ServerZone, read_zone_word};
use crate::import::note::{BilingualSentence, ImportOrigin, Level};
use crate::import::routine_parameters::{CallPlace, OF_MYSQL, name_parameters};
use crate::import::schedule::SourceScheduleState;
use crate::import::scheduler_source::{ServerDatabase, note_no_limits, set_sql};
use crate::import::sql_statement::{SqlForm, has_broken_quotes};
use crate::import::tally::CountedKind;
use chrono_tz::Tz;

/// The view, which every server has.
const EVENTS: &str = "information_schema.EVENTS";
/// Maximum length of the name of a routine.
const ROUTINE_NAME_MAX: usize = 64;

/// The tables and columns read from the server: events of the database in the URL; of all databases if the URL names
/// information_schema.
pub(crate) const WANTED: WantedTables = WantedTables {
    system: "MySQL events",
    dialects: &[DialectName::Mysql],
    tables: &[
        WantedTable {
            schema: "information_schema",
            table: "EVENTS",
            order: &["event_schema", "event_name"],
            condition: "DATABASE() IN (event_schema, 'information_schema')",
            presence: TablePresence::Needed,
        },
        OF_MYSQL,
    ],
    settings: &["event_scheduler", "sql_mode"],
};

/// Columns of the view, in MySQL 8 and later and in MariaDB.
pub(super) const COLUMNS: &[KnownKey] = &[
    record("event_catalog"),
    read_key("event_schema"),
    read_key("event_name"),
    read_key("definer"),
    read_key("time_zone"),
    record("event_body"),
    read_key("event_definition"),
    read_key("event_type"),
    read_key("execute_at"),
    read_key("interval_value"),
    read_key("interval_field"),
    read_key("sql_mode"),
    read_key("starts"),
    read_key("ends"),
    read_key("status"),
    read_key("on_completion"),
    record("created"),
    record("last_altered"),
    record("last_executed"),
    read_key("event_comment"),
    record("originator"),
    record("character_set_client"),
    record("collation_connection"),
    record("database_collation"),
];

/// An event with the data about it.
struct MysqlEvent<'a> {
    row: &'a SchedulerRow,
    at: ImportOrigin,
    /// `bank.close_day`
    about: String,
    /// `close_day`
    name: String,
}

/// Imports the events of a server.
pub(crate) fn read_events(tables: &SchedulerTables, draft: &mut Draft) {
    let fix = "name the database whose events are meant in the URL, or information_schema for those of all; the user needs the \
               EVENT privilege: GRANT EVENT ON database.* TO user";
    refuse_empty(tables, EVENTS, fix, draft);
    let server_zone = ServerZone::find_zone(&tables.server, draft.asked.zone, draft.asked.now);
    let mut is_by_server = false;
    for (place, row) in (1..).zip(tables.table_rows(EVENTS)) {
        let (schema, name) = (row.trimmed_value("event_schema"), row.trimmed_value("event_name"));
        let about = format!("{schema}.{name}");
        let event = MysqlEvent { row, at: row_origin(EVENTS, place), about, name: name.to_owned() };
        event.import(tables, server_zone, draft);
        is_by_server |= read_zone_word(row.trimmed_value("time_zone")).is_none();
    }
    if draft.defs.jobs.is_empty() {
        return;
    }
    draft.end_item();
    note_server(tables, draft);
    if is_by_server {
        note_server_zone(server_zone, draft);
    }
    note_no_limits(EVENTS, WANTED.system, draft);
}

fn note_server(tables: &SchedulerTables, draft: &mut Draft) {
    let state = tables.setting("event_scheduler").unwrap_or_default();
    if !state.is_empty() && !["ON", "1"].contains(&state.to_ascii_uppercase().as_str()) {
        draft.note(
            Level::Look,
            &ImportOrigin::new(EVENTS, 0), "",
            (
                format!("event_scheduler is {state} on this server: no event fires there now, and here all that are ENABLED will"),
                format!("该服务器的 event_scheduler 为 {state}:目前没有事件触发,而此处 ENABLED 的都会触发"),
            ),
            ("import from the server on which they fire", "请从事件实际触发的服务器导入"),
        );
    }
}

fn note_server_zone(zone: ServerZone, draft: &mut Draft) {
    let name = zone.zone().name();
    let said = match zone {
        ServerZone::Known(_) => return,
        ServerZone::ByOffset(_) => (
            format!(
                "events of time zone SYSTEM go by the clock of the server, which has no IANA name: their times are in {name}, \
                 as its clock is now"
            ),
            format!("时区为 SYSTEM 的事件按服务器时钟触发,服务器没有 IANA 时区名:此处按其当前时差 {name}"),
        ),
        ServerZone::Unknown => (
            "events of time zone SYSTEM go by the clock of the server, which is not known here: their times are in UTC"
                .to_owned(),
            "时区为 SYSTEM 的事件按服务器时钟触发,此处未知:按 UTC 计".to_owned(),
        ),
    };
    let cure = (
        "import again with --zone, such as --zone Asia/Shanghai, if its clock changes in the year or is another",
        "如果不符,请加 --zone 重新导入,例如 --zone Asia/Shanghai",
    );
    draft.note(Level::Look, &ImportOrigin::new(EVENTS, 0), name, said, cure);
}

impl MysqlEvent<'_> {
    fn import(&self, tables: &SchedulerTables, server_zone: ServerZone, draft: &mut Draft) {
        let group = draft.group(&self.name);
        let comment = self.row.trimmed_value("event_comment");
        if !comment.is_empty()
            && let Some(made) = draft.group_mut(&group)
        {
            let line = comment.split_whitespace().collect::<Vec<_>>().join(" ");
            made.name = line.chars().filter(|c| !c.is_control()).take(200).collect();
        }
        draft.begin_item(CountedKind::Job, &self.at, &self.about);
        self.check_columns(tables, draft);
        let job = self.make_job(&group, tables, draft);
        draft.push(job);
        draft.begin_item(CountedKind::Schedule, &self.at, &self.about);
        self.schedule(&group, server_zone, draft);
        draft.end_item();
    }

    fn add_note(
        &self,
        level: Level,
        said: impl Into<BilingualSentence>,
        cure: impl Into<BilingualSentence>,
        draft: &mut Draft,
    ) {
        draft.note(level, &self.at, &self.about, said, cure);
    }

    fn check_columns(&self, tables: &SchedulerTables, draft: &mut Draft) {
        check_columns(self.row, COLUMNS, RowPlace { at: &self.at, about: &self.about }, draft);
        let definer = self.row.trimmed_value("definer");
        if !definer.is_empty() && draft.is_first("definer", definer) {
            draft.end_item_for(|draft| {
                draft.note(
                    Level::Look,
                    &self.at, definer,
                    (
                        format!("events of {definer} run with the rights of {definer}; here they run as the user of their source"),
                        format!("{definer} 的事件以其权限运行;此处以数据源的用户运行"),
                    ),
                    (
                        "give the source a user that may do what they do",
                        "请为数据源选择有相应权限的用户",
                    ),
                );
            });
        }
        let mode = self.row.trimmed_value("sql_mode");
        if tables.setting("sql_mode").is_none_or(|of_server| of_server != mode) {
            self.add_note(
                Level::Look,
                (
                    format!("it runs with sql_mode '{mode}', which is not that of the server; here it runs with the session's"),
                    format!("它以 sql_mode '{mode}' 运行,与服务器的不同;此处使用会话的 sql_mode"),
                ),
                (
                    "begin its SQL with SET SESSION sql_mode = … if it depends on it",
                    "如有依赖,请在其 SQL 开头加 SET SESSION sql_mode = …",
                ),
                draft,
            );
        }
    }

    fn make_job(&self, group: &GroupCode, tables: &SchedulerTables, draft: &mut Draft) -> JobDef {
        let text = self.row.value("event_definition").unwrap_or_default();
        let schema = self.row.trimmed_value("event_schema");
        let database = ServerDatabase {
            server: &tables.server,
            dialect: DialectName::Mysql,
            database: schema,
            user: None,
        };
        let form = SqlForm::read(text, DialectName::Mysql);
        let home = CallPlace { dialect: DialectName::Mysql, schema: Some(schema) };
        let form = name_parameters(form, tables, home);
        let is_proc = matches!(form, SqlForm::Call { .. } | SqlForm::Compound);
        let job_type = if is_proc { "PROC" } else { "SQL" };
        let mut job = draft.job(&self.at, group, &self.name, job_type);
        job.timeout_sec = draft.timeout(&self.at, &self.about, 0);
        if has_broken_quotes(text, DialectName::Mysql) {
            let why = BilingualSentence::from((
                "the server shows its text with quotes missing, as MySQL 8 and later do where a text has a quote in it: take the \
                 text from SHOW CREATE EVENT",
                "服务器显示的内容缺少引号(MySQL 8 及以后版本对含引号的文本如此):请从 SHOW CREATE EVENT 取得原文",
            ));
            return failing(draft, &self.at, job, &why);
        }
        if let Some(why) = form.fault() {
            return failing(draft, &self.at, job, &why);
        }
        job.source = Some(database.source(&self.at, draft));
        match form {
            SqlForm::Call { name, params } => (job.proc_name, job.params) = (Some(name), params),
            SqlForm::Compound => job.proc_name = Some(self.procedure(&job, text, draft)),
            _ => set_sql(&mut job, text, DialectName::Mysql),
        }
        job
    }

    /// Writes a body that is only valid inside a routine as a procedure to be created; returns its name.
    fn procedure(&self, job: &JobDef, text: &str, draft: &mut Draft) -> String {
        let name: String = format!("event_{}", self.name).chars().take(ROUTINE_NAME_MAX).collect();
        let quoted = format!("`{}`", name.replace('`', "``"));
        let name = if is_plain_part(&name) { name } else { quoted.clone() };
        let end =
            ["//", "$$", "//;//"].into_iter().find(|end| !text.contains(end)).unwrap_or("$$$$");
        let path = format!("procedures/{}.sql", job.code);
        let schema = self.row.trimmed_value("event_schema");
        let source = format!(
            "-- {}: what the event runs, for the mysql client.\nDELIMITER {end}\nCREATE PROCEDURE {quoted}()\n{}\n{end}\n\
             DELIMITER ;\n",
            in_comment(&self.about),
            text.trim_end()
        );
        draft.beside(&path, source.into_bytes());
        self.add_note(
            Level::Look,
            (
                format!(
                    "its body is more than a statement, which a server takes inside a routine alone: it calls procedure \
                     {name}, which has to be created first, from {path}"
                ),
                format!("其内容不是单条语句,只能放在存储过程中:此处调用过程 {name},须先用 {path} 创建"),
            ),
            (format!("mysql {schema} < {path}"), format!("mysql {schema} < {path}")),
            draft,
        );
        name
    }

    fn schedule(&self, group: &GroupCode, server_zone: ServerZone, draft: &mut Draft) {
        let zone = read_zone_word(self.row.trimmed_value("time_zone"));
        let zone = zone.unwrap_or_else(|| server_zone.zone());
        let schedules = match self.schedules(zone, draft) {
            Ok(schedules) => schedules,
            Err(what) => {
                self.add_note(
                    Level::LeftOut,
                    (format!("its schedule is left out: {what}"), format!("其调度未迁移:{what}")),
                    (
                        format!("procession schedule add CODE --group {group} …"),
                        format!("请另行添加:procession schedule add CODE --group {group} …"),
                    ),
                    draft,
                );
                return;
            }
        };
        self.note_schedule(&schedules, draft);
        let firing = if self.row.trimmed_value("status") == "ENABLED" {
            SourceScheduleState::On
        } else {
            SourceScheduleState::Off
        };
        for mut timing in schedules.timings {
            timing.end = timing.end.or_else(|| self.last_moment());
            let words = TriggerWords {
                code: self.name.clone(),
                group: Some(group.clone()),
                timing,
                misfire: Some(MisfirePolicy::Skip),
                overlap: Some(Overlap::Parallel),
                ..TriggerWords::default()
            };
            draft.schedule(&self.at, words, firing);
        }
    }

    /// The first moment at which it no longer fires: ENDS is a moment at which it still may fire.
    fn last_moment(&self) -> Option<String> {
        let ends = read_wall(self.row.trimmed_value("ends"))?;
        second_after(ends).map(wall_text)
    }

    fn schedules(&self, zone: Tz, draft: &Draft) -> Result<Schedules, String> {
        let row = self.row;
        if row.trimmed_value("event_type") == "ONE TIME" {
            let at = row.trimmed_value("execute_at");
            let at = read_wall(at).ok_or_else(|| format!("EXECUTE_AT {at:?} is no time"))?;
            return Ok(Schedules::exact(TimingWords {
                once_at: Some(wall_text(at)),
                time_zone: Some(zone.name().to_owned()),
                ..TimingWords::default()
            }));
        }
        let (value, field) =
            (row.trimmed_value("interval_value"), row.trimmed_value("interval_field"));
        let unreadable = || format!("EVERY {value} {field} is no interval that is known");
        let step = parse_step(value, field).ok_or_else(unreadable)?;
        let starts = row.trimmed_value("starts");
        let start = read_wall(starts).ok_or_else(|| format!("STARTS {starts:?} is no time"))?;
        Interval { step, start, zone }.schedules(draft.asked.now).ok_or_else(unreadable)
    }

    fn note_schedule(&self, schedules: &Schedules, draft: &mut Draft) {
        let row = self.row;
        if row.trimmed_value("status").contains("SIDE_DISABLED") {
            self.add_note(
                Level::Look,
                (
                    format!(
                        "its status is {}: this server is a replica, and it fires on another",
                        row.trimmed_value("status")
                    ),
                    format!(
                        "其状态为 {}:该服务器是从库,事件在主库触发",
                        row.trimmed_value("status")
                    ),
                ),
                ("import from the server on which it fires", "请从其实际触发的服务器导入"),
                draft,
            );
        }
        if schedules.timings.len() > 1 {
            let count = schedules.timings.len();
            self.add_note(
                Level::Differs,
                (
                    format!(
                        "EVERY {} {} is {count} schedules here, which together fire at the same times: no cron says it alone",
                        row.trimmed_value("interval_value"),
                        row.trimmed_value("interval_field")
                    ),
                    format!("此处用 {count} 个调度表示,合起来触发时间相同:单个 cron 无法表达"),
                ),
                ("", ""),
                draft,
            );
        }
        if let Some(said) = &schedules.differs {
            self.add_note(Level::Differs, said.clone(), ("", ""), draft);
        }
        let ends =
            row.trimmed_value("event_type") == "ONE TIME" || !row.trimmed_value("ends").is_empty();
        if ends && row.trimmed_value("on_completion") == "NOT PRESERVE" {
            self.add_note(
                Level::Differs,
                (
                    "ON COMPLETION NOT PRESERVE: there the event is dropped after its last time; here its schedule stays, and ends",
                    "ON COMPLETION NOT PRESERVE:原系统在最后一次触发后删除事件;此处调度保留并结束",
                ),
                ("", ""),
                draft,
            );
        }
    }
}

/// Parses an interval of EVERY: `2 QUARTER`, `'1:30' HOUR_MINUTE`.
fn parse_step(value: &str, field: &str) -> Option<IntervalStep> {
    let value = value.trim_matches('\'');
    let parts: Vec<i64> = value
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    if value.starts_with('-') || parts.is_empty() {
        return None;
    }
    let field = field.to_ascii_uppercase();
    let units: &[i64] = match field.as_str() {
        "YEAR" | "YEAR_MONTH" | "QUARTER" | "MONTH" => {
            let sizes: &[i64] = match field.as_str() {
                "YEAR" => &[12],
                "YEAR_MONTH" => &[12, 1],
                "QUARTER" => &[3],
                _ => &[1],
            };
            return sum_parts(&parts, sizes).map(IntervalStep::Months);
        }
        "WEEK" => &[7 * DAY_SEC],
        "DAY" => &[DAY_SEC],
        "HOUR" => &[3_600],
        "MINUTE" => &[60],
        "SECOND" => &[1],
        "DAY_HOUR" => &[DAY_SEC, 3_600],
        "DAY_MINUTE" => &[DAY_SEC, 3_600, 60],
        "DAY_SECOND" => &[DAY_SEC, 3_600, 60, 1],
        "HOUR_MINUTE" => &[3_600, 60],
        "HOUR_SECOND" => &[3_600, 60, 1],
        "MINUTE_SECOND" => &[60, 1],
        _ => return None,
    };
    sum_parts(&parts, units).map(IntervalStep::WallSeconds)
}

/// The sum of the parts, of which the last has the last unit.
fn sum_parts(parts: &[i64], units: &[i64]) -> Option<i64> {
    if parts.len() > units.len() {
        return None;
    }
    let units = &units[units.len() - parts.len()..];
    let total = parts.iter().zip(units).try_fold(0_i64, |total, (part, unit)| {
        part.checked_mul(*unit).and_then(|of_part| total.checked_add(of_part))
    });
    total.filter(|total| *total > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_their_parts() {
        let seconds = |n| Some(IntervalStep::WallSeconds(n));
        for (value, field, wanted) in [
            ("1", "MONTH", Some(IntervalStep::Months(1))),
            ("2", "QUARTER", Some(IntervalStep::Months(6))),
            ("'1-2'", "YEAR_MONTH", Some(IntervalStep::Months(14))),
            ("2", "WEEK", seconds(14 * DAY_SEC)),
            ("'1:30'", "HOUR_MINUTE", seconds(5_400)),
            ("'1 2:3:4'", "DAY_SECOND", seconds(93_784)),
            ("'30'", "HOUR_MINUTE", seconds(1_800)),
            ("'1:2:3'", "HOUR_MINUTE", None),
            ("-1", "DAY", None),
            ("0", "DAY", None),
            ("x", "DAY", None),
            ("9223372036854775807", "WEEK", None),
            ("1", "FORTNIGHT", None),
        ] {
            assert_eq!(parse_step(value, field), wanted, "{value} {field}");
        }
    }
}
