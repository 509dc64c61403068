//! A stage for one story: a definition of jobs that write effects, processes that serve it, and at its end
//! the judges. What `chaos.rs` does by dice, these do on purpose.

use crate::trust::judge::{Answer, Class, History, Verdict, Wanted, judged};
use crate::trust::nodes::{House, Life, Worker};
use crate::trust::oracle;
use crate::trust::records;
use crate::trust::targets::try_session;
use procession::domain::source::DialectName;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest that anything may take which must come; far more than it needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);

/// Procedures like `fx_tx` and `fx_commits` that hold a lock of their own in the middle, so that a test
/// sees from outside that they are there, also inside of a transaction.
const MYSQL: [&str; 2] = [
    "CREATE PROCEDURE mid_tx (IN p_batch_no VARCHAR(64), IN p_job_code VARCHAR(100), IN p_ms INT) \
     BEGIN CALL fx_note('B', p_batch_no, p_job_code); \
     DO GET_LOCK(CONCAT('mid:', p_batch_no, '/', p_job_code), 0); DO SLEEP(p_ms / 1000); \
     CALL fx_note('E', p_batch_no, p_job_code); END",
    "CREATE PROCEDURE mid_commits (IN p_batch_no VARCHAR(64), IN p_job_code VARCHAR(100), IN p_ms INT) \
     BEGIN CALL fx_note('B', p_batch_no, p_job_code); COMMIT; \
     DO GET_LOCK(CONCAT('mid:', p_batch_no, '/', p_job_code), 0); DO SLEEP(p_ms / 1000); \
     CALL fx_note('E', p_batch_no, p_job_code); COMMIT; END",
];
const POSTGRES: [&str; 2] = [
    "CREATE PROCEDURE mid_tx (p_batch_no varchar, p_job_code varchar, p_ms int) \
     LANGUAGE plpgsql AS $$ BEGIN PERFORM fx_note('B', p_batch_no, p_job_code); \
     PERFORM pg_try_advisory_lock(hashtext('mid:' || p_batch_no || '/' || p_job_code), 77); \
     PERFORM pg_sleep(p_ms / 1000.0); PERFORM fx_note('E', p_batch_no, p_job_code); END $$",
    "CREATE PROCEDURE mid_commits (p_batch_no varchar, p_job_code varchar, p_ms int) \
     LANGUAGE plpgsql AS $$ BEGIN PERFORM fx_note('B', p_batch_no, p_job_code); COMMIT; \
     PERFORM pg_try_advisory_lock(hashtext('mid:' || p_batch_no || '/' || p_job_code), 77); \
     PERFORM pg_sleep(p_ms / 1000.0); PERFORM fx_note('E', p_batch_no, p_job_code); COMMIT; END $$",
];

/// Makes the effect table, its procedures and those with a visible middle.
pub(crate) async fn prepare(dialect: DialectName, url: &str) {
    oracle::prepare(dialect, url).await;
    let procedures: &[&str] = match dialect {
        DialectName::Mysql => &MYSQL,
        DialectName::Postgres => &POSTGRES,
        DialectName::Sqlite => &[],
    };
    for sql in procedures {
        crate::trust::targets::query(url, sql).await;
    }
}

/// Returns when the body of a procedure with a visible middle is there.
pub(crate) async fn until_mid(dialect: DialectName, url: &str, batch: &str, job: &str) {
    let name = format!("mid:{batch}/{job}");
    let sql = match dialect {
        DialectName::Postgres => format!(
            "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 \
             AND classid::bigint = hashtext('{name}')::bigint & 4294967295 AND objsubid = 2"
        ),
        _ => format!("SELECT IS_USED_LOCK('{name}') IS NOT NULL"),
    };
    crate::trust::targets::wait_for(url, &sql, "1").await;
}

/// A definition in the making, and what its jobs promise.
#[derive(Default)]
pub(crate) struct Plot {
    sources: String,
    jobs: String,
    wanted: Vec<(String, Class, Vec<String>)>,
}

impl Plot {
    pub(crate) fn source(&mut self, name: &str, url: &str) {
        self.sources.push_str(&format!("  {name}: {{ url: \"{url}\" }}\n"));
    }

    /// A job whose lines the caller has written.
    pub(crate) fn job(&mut self, code: &str, class: Class, parents: &[String], yaml: &str) {
        self.jobs.push_str(yaml);
        self.wanted.push((code.to_owned(), class, parents.to_vec()));
    }

    /// A procedure with a visible middle on `source`.
    pub(crate) fn mid(&mut self, code: &str, class: Class, source: &str, ms: u64) {
        let (name, tx) = match class {
            Class::Same => ("mid_tx", "tx: same"),
            Class::Ledger => ("mid_tx", "tx: ledger"),
            Class::Repeat => ("mid_commits", "idempotent: true"),
            _ => ("mid_commits", "tx: none"),
        };
        let yaml = format!(
            "  {code}:\n    type: PROC\n    source: {source}\n    proc_name: {name}\n    {tx}\n    params:\n\
             \x20     - {{ name: p_batch_no, value: \"${{batch_no}}\" }}\n\
             \x20     - {{ name: p_job_code, value: {code} }}\n\
             \x20     - {{ name: p_ms, type: int, value: \"{ms}\" }}\n"
        );
        self.job(code, class, &[], &yaml);
    }

    fn yaml(&self) -> String {
        let sources = match self.sources.as_str() {
            "" => String::new(),
            some => format!("sources:\n{some}"),
        };
        format!(
            "{sources}groups: {{ story: {{ notify_email: [owner@bank.example], type: adhoc }} }}\n\
             defaults: {{ group: story, timeout_sec: 120, retry_count: 50, retry_delay_sec: 1 }}\njobs:\n{}",
            self.jobs
        )
    }
}

/// A house with a definition in it.
pub(crate) struct Scene {
    pub(crate) house: House,
    pub(crate) home: String,
    pub(crate) fx_file: PathBuf,
    wanted: Vec<(String, Class, Vec<String>)>,
    opened: Vec<String>,
}

impl Scene {
    pub(crate) fn on(home: &str, settings: &str) -> Self {
        let house = House::on(home, settings);
        let fx_file = house.path().join("effects");
        Self { house, home: home.to_owned(), fx_file, wanted: Vec::new(), opened: Vec::new() }
    }

    /// Applies the definition and makes the ledgers that it needs.
    pub(crate) fn stage(&mut self, plot: Plot) {
        self.house.write("story.yaml", &plot.yaml());
        let (code, _, told) = self.house.said(&["apply", "story.yaml"]);
        assert_eq!(code, 0, "apply: {told}\n{}", plot.yaml());
        if !plot.sources.is_empty() {
            let (code, _, told) = self.house.said(&["source", "prepare"]);
            assert_eq!(code, 0, "source prepare: {told}");
        }
        self.wanted = plot.wanted;
    }

    /// A process that serves, and is started again if it should end.
    pub(crate) fn serve(&self, name: &str) -> Worker {
        Worker::start(&self.house, name, Box::new(|_| Some(Life::of(&["serve"]))))
    }

    /// Opens a batch for whoever serves.
    pub(crate) fn open(&mut self, number: &str) {
        let (code, _, told) =
            self.house.said(&["batch", "open", "story.yaml", "--batch-no", number]);
        assert_eq!(code, 0, "batch open: {told}");
        self.opened.push(number.to_owned());
    }

    /// The first value of a statement on the metadata database; `None` when it is away or empty.
    pub(crate) async fn ask(&self, sql: &str) -> Option<String> {
        let mut session = try_session(&self.home).await.ok()?;
        let done = session.run_statement(sql, &[]).await.ok()?;
        session.close().await;
        done.sets.first()?.rows.first()?[0].clone()
    }

    /// Returns when a statement on the metadata database gives `wanted`; `said` tells more when it
    /// does not.
    pub(crate) async fn until(&self, sql: &str, wanted: &str, said: impl Fn() -> String) {
        let limit = Instant::now() + PATIENCE;
        let mut last = None;
        while Instant::now() < limit {
            last = self.ask(sql).await;
            if last.as_deref() == Some(wanted) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        let rows = self.rows().await;
        panic!("{sql}: {wanted} never came, it is {last:?}\n{rows}\n{}", said());
    }

    /// Returns when a batch has ended; its end.
    pub(crate) async fn until_ended(&self, number: &str, said: impl Fn() -> String) -> String {
        let sql = format!(
            "SELECT COUNT(*) FROM job_batch WHERE batch_no = '{number}' AND end_time IS NOT NULL"
        );
        self.until(&sql, "1", said).await;
        let sql = format!("SELECT status FROM job_batch WHERE batch_no = '{number}'");
        self.ask(&sql).await.unwrap_or_default()
    }

    /// The column of a job's row.
    pub(crate) async fn of(&self, number: &str, job: &str, column: &str) -> String {
        let sql = format!(
            "SELECT {column} FROM job_queue WHERE batch_no = '{number}' AND job_code = '{job}'"
        );
        self.ask(&sql).await.unwrap_or_default()
    }

    /// All rows of all batches, for a test that failed.
    pub(crate) async fn rows(&self) -> String {
        let sql = "SELECT batch_no, job_code, status, attempt, try_count, unresolved, crash_count, owner, \
                   error_message FROM job_queue ORDER BY queue_id";
        let all = oracle::rows(&self.home, sql).await;
        let line = |row: Vec<Option<String>>| {
            row.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into())).collect::<Vec<_>>()
        };
        all.into_iter().map(|row| line(row).join(" | ")).collect::<Vec<_>>().join("\n")
    }

    /// What is stored of a job's tries.
    pub(crate) fn log(&self, number: &str, job: &str) -> String {
        let (_, text, told) = self.house.said(&["logs", number, job]);
        text + &told
    }

    /// Everything that happened, by the tables and by what bodies wrote on `targets`.
    pub(crate) async fn history(&self, targets: &[&str]) -> History {
        let mut history = records::read(&self.home).await;
        for number in &self.opened {
            history.wanted.extend(self.wanted.iter().map(|(code, class, parents)| Wanted {
                name: (number.clone(), code.clone()),
                class: *class,
                parents: parents.clone(),
                told: 1,
                failing: 0,
                answer: Answer::Came,
            }));
        }
        for target in targets {
            history.effects.extend(oracle::effects(target).await);
        }
        history.effects.extend(oracle::effects_in(&self.fx_file));
        history
    }

    /// Judges it, and says what `more` has to say when it is not clean.
    pub(crate) async fn judge(&self, targets: &[&str], more: impl Fn() -> String) -> Verdict {
        let verdict = judged(&self.history(targets).await);
        assert!(verdict.is_clean(), "{verdict}\n{}\n{}", self.rows().await, more());
        verdict
    }
}

/// A figure for the record, whether the test fails or not.
pub(crate) fn report(text: &str) {
    std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{text}\n"))
        .expect("standard error");
}

/// A URL of a new SQLite file.
pub(crate) fn sqlite(folder: &Path, name: &str) -> String {
    format!("sqlite:{}", folder.join(name).display())
}
