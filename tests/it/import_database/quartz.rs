//! Quartz's tables, on MariaDB and PostgreSQL, with the column types that its own scripts create there.

use super::{count, definition, has_note, imported, next_times, text};
use crate::util::{query, with_scratch};
use crate::xxl_import::said;
use procession::domain::source::DialectName;
use procession::domain::time::Millis;

/// 2026-11-30T00:00:00Z, a Monday.
const MONDAY: i64 = 1_795_996_800_000;
const HOUR: i64 = 3_600_000;

/// The tables, of a database whose words for a flag and for bytes these are.
fn tables(flag: &str, bytes: &str) -> Vec<String> {
    let key = "SCHED_NAME VARCHAR(120) NOT NULL, TRIGGER_NAME VARCHAR(190) NOT NULL, TRIGGER_GROUP VARCHAR(190) NOT NULL";
    let primary = "PRIMARY KEY (SCHED_NAME, TRIGGER_NAME, TRIGGER_GROUP)";
    vec![
        format!(
            "CREATE TABLE QRTZ_JOB_DETAILS (SCHED_NAME VARCHAR(120) NOT NULL, JOB_NAME VARCHAR(190) NOT NULL, \
             JOB_GROUP VARCHAR(190) NOT NULL, DESCRIPTION VARCHAR(250) NULL, JOB_CLASS_NAME VARCHAR(250) NOT NULL, \
             IS_DURABLE {flag} NOT NULL, IS_NONCONCURRENT {flag} NOT NULL, IS_UPDATE_DATA {flag} NOT NULL, \
             REQUESTS_RECOVERY {flag} NOT NULL, JOB_DATA {bytes} NULL, PRIMARY KEY (SCHED_NAME, JOB_NAME, JOB_GROUP))"
        ),
        format!(
            "CREATE TABLE QRTZ_TRIGGERS ({key}, JOB_NAME VARCHAR(190) NOT NULL, JOB_GROUP VARCHAR(190) NOT NULL, \
             DESCRIPTION VARCHAR(250) NULL, NEXT_FIRE_TIME BIGINT NULL, PREV_FIRE_TIME BIGINT NULL, PRIORITY INTEGER NULL, \
             TRIGGER_STATE VARCHAR(16) NOT NULL, TRIGGER_TYPE VARCHAR(8) NOT NULL, START_TIME BIGINT NOT NULL, END_TIME BIGINT NULL, \
             CALENDAR_NAME VARCHAR(190) NULL, MISFIRE_INSTR SMALLINT NULL, JOB_DATA {bytes} NULL, {primary})"
        ),
        format!(
            "CREATE TABLE QRTZ_CRON_TRIGGERS ({key}, CRON_EXPRESSION VARCHAR(120) NOT NULL, TIME_ZONE_ID VARCHAR(80), {primary})"
        ),
        format!(
            "CREATE TABLE QRTZ_SIMPLE_TRIGGERS ({key}, REPEAT_COUNT BIGINT NOT NULL, REPEAT_INTERVAL BIGINT NOT NULL, \
             TIMES_TRIGGERED BIGINT NOT NULL, {primary})"
        ),
        format!(
            "CREATE TABLE QRTZ_SIMPROP_TRIGGERS ({key}, STR_PROP_1 VARCHAR(512) NULL, STR_PROP_2 VARCHAR(512) NULL, \
             STR_PROP_3 VARCHAR(512) NULL, INT_PROP_1 INT NULL, INT_PROP_2 INT NULL, LONG_PROP_1 BIGINT NULL, LONG_PROP_2 BIGINT NULL, \
             DEC_PROP_1 NUMERIC(13,4) NULL, DEC_PROP_2 NUMERIC(13,4) NULL, BOOL_PROP_1 {flag} NULL, BOOL_PROP_2 {flag} NULL, {primary})"
        ),
        format!(
            "CREATE TABLE QRTZ_CALENDARS (SCHED_NAME VARCHAR(120) NOT NULL, CALENDAR_NAME VARCHAR(190) NOT NULL, \
             CALENDAR {bytes} NOT NULL, PRIMARY KEY (SCHED_NAME, CALENDAR_NAME))"
        ),
    ]
}

/// A job, with data in hexadecimal digits.
fn job(name: &str, class: &str, data: &str, hex: &dyn Fn(&str) -> String) -> String {
    let data = if data.is_empty() { "NULL".to_owned() } else { hex(data) };
    format!(
        "INSERT INTO QRTZ_JOB_DETAILS VALUES ('core', '{name}', 'DEFAULT', NULL, '{class}', '0', '1', '0', '0', {data})"
    )
}

/// A trigger that has run since the beginning of the year.
fn trigger(name: &str, job: &str, kind: &str, next: i64) -> String {
    format!(
        "INSERT INTO QRTZ_TRIGGERS VALUES ('core', '{name}', 'DEFAULT', '{job}', 'DEFAULT', NULL, {next}, -1, 5, 'WAITING', '{kind}', \
         1767225600000, 0, NULL, 0, NULL)"
    )
}

async fn fill(url: &str, dialect: DialectName) {
    let (flag, bytes) =
        if dialect == DialectName::Postgres { ("BOOL", "BYTEA") } else { ("VARCHAR(1)", "BLOB") };
    let hex = |digits: &str| match dialect {
        DialectName::Postgres => format!("decode('{digits}', 'hex')"),
        DialectName::Mysql | DialectName::Sqlite => format!("X'{digits}'"),
    };
    // command=echo done
    let command = "636f6d6d616e643d6563686f20646f6e650a";
    let mut statements = tables(flag, bytes);
    statements.extend([
        job("say", "org.quartz.jobs.NativeJob", command, &hex),
        job("close", "com.bank.CloseDay", "", &hex),
        job("opaque", "com.bank.CloseDay", "aced000573720001", &hex),
        // 02:30 in Shanghai on the last day of November is 18:30 UTC of the day before.
        trigger("month_end", "say", "CRON", MONDAY - 6 * HOUR + HOUR / 2),
        "INSERT INTO QRTZ_CRON_TRIGGERS VALUES ('core', 'month_end', 'DEFAULT', '0 30 2 L * ?', 'Asia/Shanghai')".to_owned(),
        trigger("wrong", "close", "CRON", MONDAY + 7 * HOUR),
        "INSERT INTO QRTZ_CRON_TRIGGERS VALUES ('core', 'wrong', 'DEFAULT', '0 30 2 L * ?', 'Asia/Shanghai')".to_owned(),
        trigger("often", "close", "SIMPLE", MONDAY + 300_000),
        "INSERT INTO QRTZ_SIMPLE_TRIGGERS VALUES ('core', 'often', 'DEFAULT', -1, 5400000, 9)".to_owned(),
        trigger("office", "opaque", "DAILY_I", MONDAY),
        "INSERT INTO QRTZ_SIMPROP_TRIGGERS VALUES ('core', 'office', 'DEFAULT', 'MINUTE', '2,3,4,5,6', '8,0,0,9,30,0', 45, 3, -1, NULL, \
         NULL, NULL, '0', '0')"
            .to_owned(),
    ]);
    for sql in statements {
        query(url, &sql).await;
    }
}

async fn jobs_come_from_tables(dialect: DialectName) {
    with_scratch(dialect, async |scratch| {
        fill(&scratch.url, dialect).await;
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path();
        let document = imported(path, &["quartz", "--url", &scratch.url]);
        assert_eq!(count(&document, "job"), [3, 1, 1, 1], "{document}");
        assert_eq!(count(&document, "schedule"), [4, 1, 3, 0], "{document}");
        assert!(
            has_note(&document, "wrong", "next time in the table is 2026-11-30T07:00:00 UTC"),
            "{document}"
        );
        for right in ["month_end", "often", "office"] {
            assert!(!has_note(&document, right, "next time in the table"), "{right}: {document}");
        }
        assert!(has_note(&document, "opaque", "serialised Java object"), "{document}");
        let defs = definition(path);
        let from = Millis(MONDAY - 12 * HOUR);
        assert_eq!(
            next_times(&defs, "say", from, 3),
            ["2026-11-30 02:30:00", "2026-12-31 02:30:00", "2027-01-31 02:30:00"]
        );
        assert_eq!(
            next_times(&defs, "opaque", from, 4),
            [
                "2026-11-30 08:00:00",
                "2026-11-30 08:45:00",
                "2026-11-30 09:30:00",
                "2026-12-01 08:00:00"
            ]
        );
        let yaml = text(path, "out/definition.yaml");
        assert!(yaml.contains("every_sec: 5400") && yaml.contains("handler: CloseDay"), "{yaml}");
        let run = [
            "--db",
            "sqlite:ours.db",
            "run",
            "out/definition.yaml",
            "--group",
            "say",
            "--batch-no",
            "1",
        ];
        let (code, out, err) = said(path, &run);
        assert_eq!(code, 0, "{out}\n{err}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_quartz_come_from_tables_on_mysql() {
    jobs_come_from_tables(DialectName::Mysql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_quartz_come_from_tables_on_postgres() {
    jobs_come_from_tables(DialectName::Postgres).await;
}
