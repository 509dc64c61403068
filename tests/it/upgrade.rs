//! From version 0.1 to this one: a database with a batch that is half done, as 0.1 left it and the tools of each
//! database dumped it (tests/data/upgrade), is migrated and the batch goes on.

use crate::cli::procession;
use crate::util::{Scratch, query, with_scratch};
use procession::db::migrate::known;
use procession::domain::source::DialectName;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

/// The last migration that version 0.1 knows.
const SCHEMA_OF_0_1: i64 = 16;

const SETTINGS: &str = "
[notify]
operators = ['noc@bank.example']
[notify.mail]
transport = 'file'
from = 'batch@bank.example'
";

/// A database of version 0.1 and a folder to work in.
struct OldDatabase {
    scratch: Arc<Scratch>,
    folder: tempfile::TempDir,
    /// Where the jobs' own tables are.
    target: String,
}

fn data(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/upgrade").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

impl OldDatabase {
    async fn load(scratch: Arc<Scratch>) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("procession.toml"), SETTINGS).expect("settings");
        let url = &scratch.url;
        let target = match scratch.dialect {
            DialectName::Sqlite => {
                let target = format!("sqlite:{}/target.db", folder.path().display());
                let dump =
                    data("sqlite.sql").replace("sqlite:/tmp/procession-upgrade/target.db", &target);
                std::fs::write(folder.path().join("target.db"), "")
                    .expect("an empty file is an empty database");
                query(url, &dump).await;
                query(&target, &data("sqlite_target.sql")).await;
                target
            }
            DialectName::Mysql => {
                let dump = data("mysql.sql")
                    .replace("mysql://root@127.0.0.1:3306/procession_upgrade", url);
                query(url, &dump).await;
                query(url, &data("mysql_procedure.sql")).await;
                url.clone()
            }
            DialectName::Postgres => {
                let dump = data("postgres.sql")
                    .replace("postgres://postgres@127.0.0.1:5432/procession_upgrade", url);
                query(url, &dump).await;
                url.clone()
            }
        };
        Self { scratch, folder, target }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = procession(self.folder.path());
        command.args(args).args(["--db", &self.scratch.url]);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("it runs")
    }

    /// What a command that is to end well prints.
    fn run_well(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(0), "{args:?}: {said}");
        String::from_utf8(ran.stdout).expect("text")
    }

    /// What a command that is the user's to put right says.
    fn refusal(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        let said = String::from_utf8(ran.stderr).expect("text");
        assert_eq!(ran.status.code(), Some(2), "{args:?}: {said}");
        said
    }

    async fn schema(&self) -> i64 {
        let last = self.scratch.value("SELECT MAX(version) FROM _sqlx_migrations").await;
        last.parse().expect("a number")
    }

    /// `CODE STATUS attempt` of each job of a group, in alphabetical order.
    async fn jobs(&self, group: &str) -> Vec<String> {
        let sql = format!(
            "SELECT q.job_code, q.status, q.attempt FROM job_queue q JOIN job_batch b ON b.batch_id = q.batch_id \
             WHERE b.group_code = '{group}' AND b.batch_no = '202407' ORDER BY q.job_code"
        );
        let word = |value: Option<String>| value.unwrap_or_default();
        let rows = query(&self.scratch.url, &sql).await;
        rows.into_iter()
            .map(|row| row.into_iter().map(word).collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// The jobs whose bodies took effect, one entry for each time.
    async fn effects(&self) -> Vec<String> {
        let rows = query(&self.target, "SELECT job FROM effects ORDER BY job").await;
        rows.into_iter().filter_map(|row| row[0].clone()).collect()
    }

    /// Says of the process of 0.1 that it works, or that it has ended.
    async fn set_lease(&self, year: u32) {
        let sql = format!("UPDATE cluster_node SET lease_until = '{year}-01-01 00:00:00.000'");
        let sql = match self.scratch.dialect {
            // As it is written there, so that it compares as text.
            DialectName::Sqlite => sql.replace(" 00:00:00.000", "T00:00:00.000+00:00"),
            DialectName::Mysql | DialectName::Postgres => sql,
        };
        query(&self.scratch.url, &sql).await;
    }
}

/// A process that ends with its test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).expect("a pid"));
        let _gone_already = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _gone_already = self.0.wait();
    }
}

fn mails(folder: &Path) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(folder.join("mails")) else { return Vec::new() };
    let files: Vec<PathBuf> = files.map(|file| file.expect("file").path()).collect();
    files.iter().map(|file| std::fs::read_to_string(file).expect("a mail")).collect()
}

async fn on(dialect: DialectName, test: impl AsyncFnOnce(OldDatabase)) {
    with_scratch(dialect, |scratch| async move { test(OldDatabase::load(scratch).await).await })
        .await;
}

/// The batch as 0.1 left it: what the dumps are said to have.
async fn assert_half_done(old: &OldDatabase) {
    let close = [
        "COUNT_GL SUCCESS 1",
        "FX_RATES RETRY_WAIT 1",
        "LOAD_GL SUCCESS 1",
        "POST_GL RUNNING 1",
        "REPORT PENDING 0",
    ];
    assert_eq!(old.jobs("close").await, close);
    assert_eq!(old.jobs("risk").await, ["VALUE SUCCESS 1", "VAR PENDING 0"]);
    assert_eq!(old.effects().await, ["LOAD_GL", "VALUE"]);
    let pending = old
        .scratch
        .value("SELECT COUNT(*) FROM email_notifications WHERE status = 'pending'")
        .await;
    assert_eq!(pending, "1");
}

async fn a_half_done_batch_goes_on(old: OldDatabase) {
    assert_half_done(&old).await;
    old.run_well(&["migrate"]);
    assert_eq!(old.schema().await, known());
    // Nothing of it is run or changed by the migration.
    assert_half_done(&old).await;

    let mut serve = old.command(&["serve", "--http", "off"]);
    let serve =
        Serving(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"));
    for group in ["close", "risk"] {
        old.run_well(&["batch", "wait", "202407", "--group", group, "--quiet"]);
    }
    let mail = "SELECT COUNT(*) FROM email_notifications WHERE status = 'pending'";
    old.scratch.wait_for(mail, "0").await;
    drop(serve);

    let close = [
        "COUNT_GL SUCCESS 1",
        "FX_RATES SUCCESS 2",
        "LOAD_GL SUCCESS 1",
        "POST_GL SUCCESS 2",
        "REPORT SUCCESS 1",
    ];
    assert_eq!(old.jobs("close").await, close);
    assert_eq!(old.jobs("risk").await, ["VALUE SUCCESS 1", "VAR SUCCESS 1"]);
    assert_eq!(old.effects().await, ["FX_RATES", "LOAD_GL", "POST_GL", "REPORT", "VALUE", "VAR"]);
    let mails = mails(old.folder.path());
    let of_0_1 = mails.iter().filter(|mail| mail.contains("LIMITS failed in batch 202407"));
    assert_eq!(of_0_1.count(), 1, "the mail that waited goes once: {mails:?}");

    let schedules: Value =
        serde_json::from_str(&old.run_well(&["schedule", "list", "--json"])).expect("JSON");
    assert!(schedules.to_string().contains("CLOSE_MONTHLY"), "{schedules}");
    let log = old.run_well(&["logs", "202407", "COUNT_GL", "--group", "close"]);
    assert!(log.contains("counted"), "what 0.1 logged: {log}");
    // The idempotency keys of 0.1 have no group, and those of new batches have.
    let keys = "SELECT COUNT(*) FROM job_queue WHERE key_has_group = 0";
    assert_eq!(old.scratch.value(keys).await, "8");
}

async fn tables_of_0_1_are_refused_until_they_are_migrated(old: OldDatabase) {
    for args in [
        &["serve", "--http", "off"] as &[_],
        &["batch", "list"],
        &["batch", "wait", "202407", "--group", "close"],
    ] {
        let said = old.refusal(args);
        let wanted = format!(
            "the schema is at version {SCHEMA_OF_0_1}, this binary needs {}; run: procession migrate",
            known()
        );
        assert!(said.contains(&wanted), "{args:?}: {said}");
    }
    assert_eq!(old.schema().await, SCHEMA_OF_0_1);
    assert_half_done(&old).await;
}

async fn migrate_waits_for_the_processes_of_0_1(old: OldDatabase) {
    old.set_lease(2100).await;
    let said = old.refusal(&["migrate"]);
    for part in [
        &format!("from version {SCHEMA_OF_0_1} to {}", known()),
        "node etl-old, process ",
        "on etl-host, version 0.1.0",
        "nothing was changed",
        "stop them",
        "--wait",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(old.schema().await, SCHEMA_OF_0_1);

    let mut waiting = old.command(&["migrate", "--wait", "60"]);
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().expect("it starts");
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(waiting.try_wait().expect("a child"), None, "it waits");
    assert_eq!(old.schema().await, SCHEMA_OF_0_1);
    old.set_lease(2024).await;
    let ended = tokio::task::spawn_blocking(move || waiting.wait_with_output().expect("it ends"));
    let ended = ended.await.expect("in order");
    assert_eq!(ended.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("applied 17, "));
    assert_eq!(old.schema().await, known());
}

/// Between the check and the last migration a process of 0.1 may start; a trigger does it here.
async fn a_process_that_starts_meanwhile_is_reported(old: OldDatabase) {
    let row = "INSERT INTO cluster_node (node_id, host, pid, version, started_at, heartbeat_at, lease_until, \
               node_name) VALUES ('late', 'etl-2', 77, '0.1.0', NOW, NOW, LATER, 'late')";
    let fill = |now: &str, later: &str| row.replace("NOW", now).replace("LATER", later);
    let sql = match old.scratch.dialect {
        DialectName::Sqlite => {
            let at = |more: &str| format!("strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now'{more})");
            let row = fill(&at(""), &at(", '+1 hour'"));
            format!(
                "CREATE TRIGGER late AFTER INSERT ON _sqlx_migrations WHEN NEW.version = 17 BEGIN {row}; END"
            )
        }
        DialectName::Mysql => {
            let row = fill("UTC_TIMESTAMP(3)", "UTC_TIMESTAMP(3) + INTERVAL 1 HOUR");
            format!(
                "CREATE TRIGGER late AFTER INSERT ON _sqlx_migrations FOR EACH ROW \
                 BEGIN IF NEW.version = 17 THEN {row}; END IF; END"
            )
        }
        DialectName::Postgres => {
            let row = fill("clock_timestamp()", "clock_timestamp() + interval '1 hour'");
            format!(
                "CREATE FUNCTION start_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {row}; RETURN NULL; END $$; \
                 CREATE TRIGGER late AFTER INSERT ON _sqlx_migrations FOR EACH ROW WHEN (NEW.version = 17) \
                 EXECUTE FUNCTION start_late()"
            )
        }
    };
    query(&old.scratch.url, &sql).await;
    let said = old.refusal(&["migrate"]);
    for part in [
        "started while they were changed",
        "node late, process 77 on etl-2, version 0.1.0",
        "stop them now",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(old.schema().await, known());
}

macro_rules! on_each_database {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] async fn $name() {
            super::on(super::DialectName::Sqlite, super::$name).await;
        })* }
        mod mariadb { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] async fn $name() {
            super::on(super::DialectName::Mysql, super::$name).await;
        })* }
        mod postgres { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)] async fn $name() {
            super::on(super::DialectName::Postgres, super::$name).await;
        })* }
    };
}

on_each_database! {
    a_half_done_batch_goes_on
    tables_of_0_1_are_refused_until_they_are_migrated
    migrate_waits_for_the_processes_of_0_1
    a_process_that_starts_meanwhile_is_reported
}
