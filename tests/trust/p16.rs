//! P-16, a graceful stop under load: TERM while 50 jobs of several classes run. The process stops
//! claiming, lets end what may not start twice, hands the rest back and leaves with exit code 0; nothing
//! is UNKNOWN, no process is left behind, and another process ends the batch at once.

use procession::db::session::{Session, SessionTarget, let_all_through};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Rounds of the short form; `make chaos` runs more.
fn rounds() -> u32 {
    std::env::var("PROCESSION_P16_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5)
}

const CONFIG: &str = "
[engine]
max_parallel = 50
lease_sec = 6
[stop]
drain_sec = 1
grace_sec = 1
[script]
isolation = \"off\"
";

/// 20 scripts that may start again and do not end by themselves, 15 that must not start twice and take
/// two seconds, 10 statements, 5 that wait for all.
fn yaml(folder: &Path) -> String {
    let folder = folder.display();
    let mut text = format!(
        "
sources: {{ s: {{ url: 'sqlite:{folder}/effects.db' }} }}
templates:
  again: {{ type: SCRIPT, interpreter: sh, idempotent: true, script: 'echo $$ >> {folder}/pid; echo x >> {folder}/AGAIN-$PROCESSION_JOB_CODE; test -e {folder}/go || sleep 600' }}
  once: {{ type: SCRIPT, interpreter: sh, script: 'echo $$ >> {folder}/pid; echo x >> {folder}/ONCE-$PROCESSION_JOB_CODE; sleep 2' }}
jobs:
"
    );
    let mut all = Vec::new();
    for n in 0..45 {
        let job = match n {
            0..20 => format!("A{n}: {{ template: again }}"),
            20..35 => format!("A{n}: {{ template: once }}"),
            _ => format!(
                "A{n}: {{ type: SQL, source: s, idempotent: true, \
                 sql: \"INSERT OR IGNORE INTO effect VALUES ('A{n}')\" }}"
            ),
        };
        text.push_str(&format!("  {job}\n"));
        all.push(format!("A{n}"));
    }
    for n in 0..5 {
        text.push_str(&format!("  Z{n}: {{ type: NOOP, depends_on: [{}] }}\n", all.join(", ")));
    }
    text
}

struct Place {
    folder: tempfile::TempDir,
    db: String,
}

impl Place {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        command.current_dir(self.folder.path()).env("LANG", "C").env("PROCESSION_DB", &self.db);
        command.args(args).env_remove("FAILPOINTS").env("PROCESSION_HTTP", "off");
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(args).output().expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (status.code().expect("an exit code"), text(stdout), text(stderr))
    }

    fn serve(&self) -> Child {
        let log = std::fs::File::create(self.folder.path().join("serve.log")).expect("log");
        let mut command = self.command(&["serve"]);
        command.stderr(log).stdout(Stdio::null()).spawn().expect("it starts")
    }

    fn jobs(&self) -> BTreeMap<String, Value> {
        let (code, shown, error) = self.run(&["--json", "batch", "show", "1"]);
        assert_eq!(code, 0, "{error}");
        let batch: Value = serde_json::from_str(&shown).expect("JSON");
        let jobs = batch["jobs"].as_array().expect("jobs").iter();
        jobs.map(|j| (j["job_code"].as_str().expect("code").to_owned(), j.clone())).collect()
    }

    /// How often each script has begun, by its marker.
    fn starts(&self, kind: &str) -> BTreeMap<String, usize> {
        let entries = std::fs::read_dir(self.folder.path()).expect("folder");
        let names = entries.map(|e| e.expect("entry").file_name().into_string().expect("name"));
        let of = |name: String| {
            let text = std::fs::read_to_string(self.folder.path().join(&name)).expect("marker");
            (name, text.lines().count())
        };
        names.filter(|name| name.starts_with(kind)).map(of).collect()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("serve.log")).unwrap_or_default()
    }

    /// Scripts that still run.
    fn left(&self) -> Vec<String> {
        let pids = std::fs::read_to_string(self.folder.path().join("pid")).expect("pids");
        let state = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        let lives = |pid: &&str| state(pid).is_some_and(|stat| !stat.contains(") Z "));
        pids.lines().filter(lives).map(str::to_owned).collect()
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_800 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: it never came");
}

fn term(child: &Child) {
    let done = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(done.expect("kill").success());
}

/// Waits for the end of a process; generous, because the machine may be busy.
fn exit(mut child: Child, place: &Place) -> i32 {
    for _ in 0..3_000 {
        if let Some(status) = child.try_wait().expect("wait") {
            return status.code().expect("an exit code");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _gone = child.kill();
    panic!("it does not leave:\n{}", place.log());
}

fn round(db: Option<&str>) {
    let folder = tempfile::tempdir().expect("folder");
    let sqlite = format!("sqlite:{}/p16.db", folder.path().display());
    let place = Place { db: db.unwrap_or(&sqlite).to_owned(), folder };
    let path = place.folder.path();
    std::fs::write(path.join("procession.toml"), CONFIG).expect("config");
    std::fs::write(path.join("dag.yaml"), yaml(path)).expect("dag");
    let effects = format!("sqlite:{}/effects.db", path.display());
    query(&effects, "CREATE TABLE effect (code TEXT PRIMARY KEY)");
    assert_eq!(place.run(&["migrate"]).0, 0);
    let (code, _, error) = place.run(&["batch", "open", "dag.yaml", "--batch-no", "1"]);
    assert_eq!(code, 0, "{error}");
    assert!(error.contains("procession batch wait 1"), "{error}");
    let first = place.serve();
    until("all scripts run", || {
        place.starts("AGAIN").len() == 20 && place.starts("ONCE").len() == 15
    });
    term(&first);
    let code = exit(first, &place);
    assert_eq!(code, 0, "{}", place.log());
    assert_eq!(place.left(), Vec::<String>::new(), "processes that it left behind");
    let jobs = place.jobs();
    for (job, row) in &jobs {
        let status = row["status"].as_str().expect("status");
        let fits = match &job[..1] {
            "A" if place.starts("ONCE").contains_key(&format!("ONCE-{job}")) => status == "SUCCESS",
            "A" => {
                status == "RETRY_WAIT"
                    || status == "SUCCESS"
                    || status == "PENDING"
                    || status == "QUEUED"
            }
            _ => status == "PENDING",
        };
        assert!(fits, "{job} is {status}");
        assert_eq!(row["try_count"], 0, "{job}");
    }
    let back = jobs.values().filter(|row| row["status"] == "RETRY_WAIT").count();
    assert!(back >= 20, "{back} handed back");
    std::fs::write(path.join("go"), "").expect("file");
    let second = place.serve();
    let (code, shown, error) = place.run(&["batch", "wait", "1"]);
    assert_eq!(code, 0, "{shown}{error}{}", place.log());
    term(&second);
    assert_eq!(exit(second, &place), 0, "{}", place.log());
    assert!(place.jobs().values().all(|row| row["status"] == "SUCCESS"), "{shown}");
    assert!(place.starts("ONCE").values().all(|n| *n == 1), "{:?}", place.starts("ONCE"));
    assert!(place.starts("AGAIN").values().all(|n| *n == 2), "{:?}", place.starts("AGAIN"));
    assert_eq!(query(&effects, "SELECT COUNT(*) FROM effect"), "10");
    assert_eq!(place.left(), Vec::<String>::new(), "processes that it left behind");
}

/// The first value of a statement.
fn query(url: &str, sql: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("runtime").block_on(async {
        let target = SessionTarget {
            url: url.to_owned(),
            password: None,
            label: "p16".to_owned(),
            timeout: Duration::from_secs(20),
            guard: let_all_through,
        };
        let mut session =
            Session::open_session(&target).await.unwrap_or_else(|e| panic!("{url}: {e}"));
        let done = session.run_statement(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        session.close().await;
        let first = done.sets.into_iter().next().and_then(|set| set.rows.into_iter().next());
        first.and_then(|row| row.into_iter().next().flatten()).unwrap_or_default()
    })
}

#[test]
fn sqlite() {
    (0..rounds()).for_each(|_| round(None));
}

fn on_server(variable: &str) {
    let url = std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `make test`, which starts what is missing")
    });
    let admin = if url.starts_with("postgres") { format!("{url}/postgres") } else { url.clone() };
    let name = format!("p16_{}", std::process::id());
    query(&admin, &format!("CREATE DATABASE {name}"));
    let ran = std::panic::catch_unwind(|| round(Some(&format!("{url}/{name}"))));
    query(&admin, &format!("DROP DATABASE {name}"));
    if let Err(panic) = ran {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn mariadb() {
    on_server("PROCESSION_TEST_MYSQL");
}

#[test]
fn postgres() {
    on_server("PROCESSION_TEST_POSTGRES");
}
