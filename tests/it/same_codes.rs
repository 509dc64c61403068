//! The month-end close beside a stranger's group that has all of its codes, under the same batch number, with the
//! real program: what is said to one is never done to the other.

use crate::cli::procession;
use crate::util::{Scratch, query, with_scratch};
use procession::domain::source::DialectName;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A folder, a metadata database and a database that is closed.
struct Office {
    folder: tempfile::TempDir,
    metadata: String,
    books: String,
    example: PathBuf,
}

impl Office {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = procession(self.folder.path());
        command.arg("--db").arg(&self.metadata).args(words);
        command.env("PROCESSION_SOURCE_LEDGER", &self.books).env("USER", "li");
        command
    }

    fn say(&self, words: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(words).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (status.code().expect("an exit code"), text(stdout), text(stderr))
    }

    fn well(&self, words: &[&str]) -> String {
        let (code, out, err) = self.say(words);
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }

    fn json(&self, words: &[&str]) -> Value {
        let out = self.well(&[words, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{words:?}: {e}: {out}"))
    }

    fn refused(&self, words: &[&str], said: &str) {
        let (code, out, err) = self.say(words);
        assert_eq!(code, 2, "{words:?}: {out}{err}");
        assert!(err.contains(said), "{words:?}: {err}");
    }

    /// The states of the jobs of a group.
    fn states(&self, group: &str) -> BTreeMap<String, String> {
        let batch = self.json(&["batch", "show", "202407", "--group", group]);
        let jobs = batch["jobs"].as_array().expect("jobs").iter();
        let word = |value: &Value| value.as_str().expect("text").to_owned();
        jobs.map(|job| (word(&job["job_code"]), word(&job["status"]))).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "the program runs in real time")]
    fn wait_for(&self, group: &str, job: &str, status: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            // The batch may not be there yet.
            let (code, out, _) = self.say(&["batch", "show", "202407", "--group", group, "--json"]);
            let batch: Value = serde_json::from_str(&out).unwrap_or_default();
            let jobs = batch["jobs"].as_array().map_or(&[][..], Vec::as_slice);
            if code == 0 && jobs.iter().any(|j| j["job_code"] == job && j["status"] == status) {
                return;
            }
            assert!(Instant::now() < end, "{group}.{job} is not {status}: {out}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Acts on a job, the latest first: what was done, and in which group.
    fn acts_on(&self, job: &str) -> Vec<(String, String)> {
        let acts = self.json(&["audit", "--job", job]);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let acts = acts.as_array().expect("acts").iter();
        acts.map(|act| (word(&act["action"]), word(&act["group"]))).collect()
    }

    /// Recipients and subjects of the notices about a job.
    fn notices_about(&self, job: &str) -> Vec<(String, String)> {
        let all = self.json(&["outbox", "list", "--job", job]);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = all.as_array().expect("notices").iter();
        all.map(|one| (word(&one["to"]), word(&one["subject"]))).collect()
    }
}

/// A group with all codes of the close: its load takes long, its posting fails.
fn stranger(example: &Path) -> String {
    let close = procession::app::load_definition(example).expect("the example").definition;
    let mut text = "groups: { stranger: { type: monthly, notify_email: [other@bank.example] } }\n\
                    defaults: { group: stranger, type: NOOP }\njobs:\n"
        .to_owned();
    for job in &close.jobs {
        text += &match job.code.as_str() {
            "FX_LOAD" => "  FX_LOAD: { type: SCRIPT, interpreter: sh, \
                          script: 'echo the stranger loads; sleep 300' }\n"
                .to_owned(),
            "POST_GL" => "  POST_GL: { type: SCRIPT, interpreter: sh, depends_on: [FX_LOAD], \
                          script: 'echo the stranger posts; exit 1' }\n"
                .to_owned(),
            code => format!("  {code}: {{ depends_on: [POST_GL] }}\n"),
        };
    }
    text + "  ONLY_HERE: {}\n"
}

fn a_close_beside_a_stranger(office: &Office) {
    std::fs::write(office.folder.path().join("s.yaml"), stranger(&office.example)).expect("file");
    let example = office.example.to_str().expect("a path");
    office.well(&["migrate"]);
    let run = ["run", "s.yaml", "--batch-no", "202407", "-q"];
    let mut beside = office.command(&run).stdout(Stdio::null()).spawn().expect("it runs");
    office.wait_for("stranger", "FX_LOAD", "RUNNING");
    // Its procedures are made by its first job, which a look before it cannot know.
    office.well(&["run", example, "--batch-no", "202407", "-q"]);
    let closed = office.states("month_end");
    assert!(closed.len() == 24 && closed.values().all(|s| s == "SUCCESS"), "{closed:?}");
    look_at_both(office);
    act_on_one(office);
    assert!(!beside.wait().expect("an end").success(), "its load was killed");
    assert_eq!(office.states("month_end"), closed);
    // Of its own accord it goes on, to the posting that fails.
    let (code, out, err) =
        office.say(&["job", "force-success", "202407", "stranger.FX_LOAD", "--reason", "seen"]);
    assert_eq!(code, 1, "{out}{err}");
    let states = office.states("stranger");
    assert_eq!((states["FX_LOAD"].as_str(), states["POST_GL"].as_str()), ("FORCED", "FAILED"));
    assert_eq!(states["TRIAL_BALANCE"], "SKIPPED");
    office.well(&["job", "rerun", "202407", "month_end.MONTH_CLOSED", "--reason", "again"]);
    assert_eq!(office.states("month_end"), closed);
    assert_eq!(office.states("stranger"), states);
    records_are_of_one(office);
}

fn look_at_both(office: &Office) {
    let both = "POST_GL is in groups month_end and stranger; write month_end.POST_GL or stranger.POST_GL, \
                or add --group";
    for words in [
        &["logs", "202407", "POST_GL"][..],
        &["job", "kill", "202407", "POST_GL", "--reason", "x"],
        &["job", "ice", "202407", "POST_GL", "--reason", "x"],
        &["batch", "rerun", "202407", "--jobs", "POST_GL", "--reason", "x"],
        &["dag", "--batch", "202407", "--focus", "POST_GL"],
    ] {
        office.refused(words, both);
    }
    office.refused(
        &["job", "kill", "202407", "stranger.POST_GL", "month_end.POST_GL", "--reason", "x"],
        "these jobs are in batches of several groups (month_end, stranger)",
    );
    office.refused(
        &["logs", "202407", "NO_SUCH"],
        "none of the batches 202407 (groups month_end, stranger) has a job NO_SUCH",
    );
    let said = office.well(&["logs", "202407", "stranger.FX_LOAD"]);
    assert!(said.contains("the stranger loads"), "{said}");
    let said = office.well(&["logs", "202407", "month_end.FX_LOAD"]);
    assert!(said.contains("SUCCESS") && !said.contains("stranger"), "{said}");
    // A plain code that one group has is enough.
    office.well(&["logs", "202407", "ONLY_HERE"]);
    let why = office.json(&["batch", "why", "202407", "--group", "stranger"]);
    assert!(why.to_string().contains("POST_GL"), "{why}");
    assert_eq!(office.json(&["batch", "why", "202407", "--group", "month_end"]).to_string(), "[]");
    for (job, status) in [("stranger.FX_LOAD", "RUNNING"), ("month_end.FX_LOAD", "SUCCESS")] {
        let drawn = office.json(&["dag", "--batch", "202407", "--focus", job, "--up", "0"]);
        let nodes = drawn["nodes"].as_array().expect("nodes");
        let found = nodes.iter().find(|node| node["code"] == "FX_LOAD").expect("the job");
        assert_eq!(found["status"], status, "{job}");
    }
}

fn act_on_one(office: &Office) {
    office.well(&["job", "skip", "202407", "stranger.TRIAL_BALANCE", "--reason", "not ours"]);
    office.well(&["job", "kill", "202407", "stranger.FX_LOAD", "--reason", "too long"]);
}

fn records_are_of_one(office: &Office) {
    let of = |group: &str, actions: &[&str]| -> Vec<(String, String)> {
        actions.iter().map(|action| ((*action).to_owned(), group.to_owned())).collect()
    };
    let on_load = of("stranger", &["force-success", "kill"]);
    assert_eq!(office.acts_on("stranger.FX_LOAD"), on_load);
    assert_eq!(office.acts_on("FX_LOAD"), on_load);
    assert_eq!(office.acts_on("month_end.FX_LOAD"), []);
    assert_eq!(office.acts_on("month_end.MONTH_CLOSED"), of("month_end", &["rerun"]));
    // The mail about the posting goes to its owner alone.
    let told = office.notices_about("stranger.POST_GL");
    assert!(!told.is_empty() && told.iter().all(|(to, _)| to == "other@bank.example"), "{told:?}");
    assert!(told.iter().all(|(_, subject)| subject.contains("stranger")), "{told:?}");
    assert_eq!(office.notices_about("month_end.POST_GL"), []);
    assert_eq!(office.notices_about("POST_GL"), told);
}

/// Two procedures of class `ledger` at once, for the same code and batch number: each takes effect once, in its own
/// group, and a rerun is of one.
fn posted_in_both(office: &Office, books: &Scratch) {
    let jobs = ["a", "b"].map(|group| {
        format!(
            "  - {{ code: POST_GL, group: {group}, proc_name: sp_post, \
             params: [{{ name: p_who, value: {group} }}] }}\n"
        )
    });
    let text = format!(
        "sources: {{ ledger: {{ url: '{}' }} }}\ngroups: {{ a: {{}}, b: {{}} }}\n\
         defaults: {{ type: PROC, source: ledger, tx: ledger }}\njobs:\n{}",
        books.url,
        jobs.concat()
    );
    std::fs::write(office.folder.path().join("two.yaml"), text).expect("file");
    office.well(&["migrate"]);
    office.well(&["apply", "two.yaml"]);
    office.well(&["source", "prepare", "ledger"]);
    let start = |group: &str| {
        let run = ["run", "--batch-no", "202407", "--group", group, "-q"];
        office.command(&run).stdout(Stdio::null()).spawn().expect("it runs")
    };
    for mut run in [start("a"), start("b")] {
        assert!(run.wait().expect("an end").success());
    }
    office.well(&["job", "rerun", "202407", "b.POST_GL", "--reason", "again"]);
    assert_eq!(office.states("a")["POST_GL"], "SUCCESS");
    assert_eq!(office.states("b")["POST_GL"], "SUCCESS");
}

async fn both_post(metadata: Arc<Scratch>, books: Arc<Scratch>) {
    let procedure = match books.dialect {
        DialectName::Postgres => {
            "CREATE PROCEDURE sp_post (p_who varchar) LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep(1); INSERT INTO fx VALUES (p_who); END $$"
        }
        DialectName::Mysql | DialectName::Sqlite => {
            "CREATE PROCEDURE sp_post (IN p_who VARCHAR(50)) \
             BEGIN DO SLEEP(1); INSERT INTO fx VALUES (p_who); END"
        }
    };
    books.setup(&["CREATE TABLE fx (job VARCHAR(50))", procedure]).await;
    let (office, there) = (office(&metadata, &books), books.clone());
    tokio::task::spawn_blocking(move || posted_in_both(&office, &there)).await.expect("the story");
    let texts = async |sql: &str| -> Vec<String> {
        let rows = query(&books.url, sql).await;
        rows.into_iter().filter_map(|row| row[0].clone()).collect()
    };
    assert_eq!(texts("SELECT job FROM fx ORDER BY job").await, ["a", "b", "b"]);
    let keys =
        texts("SELECT idem_key FROM procession_ledger WHERE state = 'done' ORDER BY idem_key");
    let keys: Vec<String> =
        keys.await.iter().map(|key| key[key.find('/').expect("a path")..].to_owned()).collect();
    assert_eq!(keys, ["/a/202407/POST_GL/1", "/b/202407/POST_GL/1", "/b/202407/POST_GL/2"]);
}

fn office(metadata: &Scratch, books: &Scratch) -> Office {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Office {
        folder: tempfile::tempdir().expect("folder"),
        metadata: metadata.url.clone(),
        books: books.url.clone(),
        example: root.join("dag-examples/month-end-close.yaml"),
    }
}

async fn close(metadata: Arc<Scratch>, books: Arc<Scratch>) {
    let office = office(&metadata, &books);
    let work = move || a_close_beside_a_stranger(&office);
    tokio::task::spawn_blocking(work).await.expect("the story");
}

async fn on<F, Fut>(dialect: DialectName, story: F)
where
    F: FnOnce(Arc<Scratch>, Arc<Scratch>) -> Fut,
    Fut: Future<Output = ()>,
{
    with_scratch(dialect, |metadata| {
        with_scratch(dialect, |books| async move { story(metadata, books).await })
    })
    .await;
}

mod sqlite {
    #[tokio::test]
    async fn a_close_beside_a_stranger() {
        super::on(super::DialectName::Sqlite, super::close).await;
    }
}

mod mariadb {
    #[tokio::test]
    async fn a_close_beside_a_stranger() {
        super::on(super::DialectName::Mysql, super::close).await;
    }

    #[tokio::test]
    async fn two_groups_post_by_the_ledger() {
        super::on(super::DialectName::Mysql, super::both_post).await;
    }
}

mod postgres {
    #[tokio::test]
    async fn a_close_beside_a_stranger() {
        super::on(super::DialectName::Postgres, super::close).await;
    }

    #[tokio::test]
    async fn two_groups_post_by_the_ledger() {
        super::on(super::DialectName::Postgres, super::both_post).await;
    }
}
