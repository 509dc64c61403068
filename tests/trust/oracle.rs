//! The effect table: what bodies really did, written by the bodies themselves and by nobody else.
//!
//! `fx` has no key that would refuse a second effect: it counts, it must not prevent. `at` is in
//! microseconds of the server's clock at that moment (not of the transaction's begin), because the
//! judges ask what came first. Scripts append the same words to a file.

use crate::trust::judge::{Class, Effect, Phase};
use crate::trust::targets::query;
use procession::db::results::Results;
use procession::domain::source::DialectName;
use std::path::Path;

const MYSQL: &[&str] = &[
    "CREATE TABLE fx (id BIGINT AUTO_INCREMENT PRIMARY KEY, idem_key VARCHAR(255) NOT NULL, \
     batch_no VARCHAR(64) NOT NULL, job_code VARCHAR(100) NOT NULL, attempt INT, \
     life VARCHAR(64) NOT NULL, phase CHAR(1) NOT NULL, at BIGINT NOT NULL) ENGINE = InnoDB",
    "CREATE PROCEDURE fx_note (IN p_phase CHAR(1), IN p_batch_no VARCHAR(64), IN p_job_code VARCHAR(100)) \
     BEGIN IF p_phase = 'B' THEN SET @fx_life = UUID(); END IF; \
     INSERT INTO fx (idem_key, batch_no, job_code, attempt, life, phase, at) VALUES \
     (COALESCE(@procession_idem_key, CONCAT(p_batch_no, '/', p_job_code)), p_batch_no, p_job_code, \
     @procession_attempt, @fx_life, p_phase, CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)); END",
    "CREATE PROCEDURE fx_tx (IN p_batch_no VARCHAR(64), IN p_job_code VARCHAR(100), IN p_ms INT) \
     BEGIN CALL fx_note('B', p_batch_no, p_job_code); DO SLEEP(p_ms / 1000); \
     CALL fx_note('E', p_batch_no, p_job_code); END",
    "CREATE PROCEDURE fx_commits (IN p_batch_no VARCHAR(64), IN p_job_code VARCHAR(100), IN p_ms INT) \
     BEGIN CALL fx_note('B', p_batch_no, p_job_code); COMMIT; DO SLEEP(p_ms / 1000); \
     CALL fx_note('E', p_batch_no, p_job_code); COMMIT; END",
];

const POSTGRES: &[&str] = &[
    "CREATE TABLE fx (id BIGSERIAL, idem_key TEXT NOT NULL, batch_no TEXT NOT NULL, \
     job_code TEXT NOT NULL, attempt INT, life TEXT NOT NULL, phase TEXT NOT NULL, at BIGINT NOT NULL)",
    "CREATE FUNCTION fx_note (p_phase text, p_batch_no text, p_job_code text) RETURNS void \
     LANGUAGE plpgsql AS $$ BEGIN \
     IF p_phase = 'B' THEN PERFORM set_config('fx.life', gen_random_uuid()::text, false); END IF; \
     INSERT INTO fx (idem_key, batch_no, job_code, attempt, life, phase, at) VALUES \
     (COALESCE(NULLIF(current_setting('procession.idem_key', true), ''), p_batch_no || '/' || p_job_code), \
     p_batch_no, p_job_code, NULLIF(current_setting('procession.attempt', true), '')::int, \
     current_setting('fx.life'), p_phase, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint); \
     END $$",
    "CREATE PROCEDURE fx_tx (p_batch_no varchar, p_job_code varchar, p_ms int) \
     LANGUAGE plpgsql AS $$ BEGIN PERFORM fx_note('B', p_batch_no, p_job_code); \
     PERFORM pg_sleep(p_ms / 1000.0); PERFORM fx_note('E', p_batch_no, p_job_code); END $$",
    "CREATE PROCEDURE fx_commits (p_batch_no varchar, p_job_code varchar, p_ms int) \
     LANGUAGE plpgsql AS $$ BEGIN PERFORM fx_note('B', p_batch_no, p_job_code); COMMIT; \
     PERFORM pg_sleep(p_ms / 1000.0); PERFORM fx_note('E', p_batch_no, p_job_code); COMMIT; END $$",
];

const SQLITE: &[&str] = &[
    "CREATE TABLE fx (id INTEGER PRIMARY KEY, idem_key TEXT NOT NULL, batch_no TEXT NOT NULL, \
     job_code TEXT NOT NULL, attempt INT, life TEXT NOT NULL, phase TEXT NOT NULL, at INTEGER NOT NULL)",
];

/// What bodies of schedules write beside: which schedule has opened their batch, for which planned time.
const LABELS: &str = "CREATE TABLE fx_label (schedule VARCHAR(100) NOT NULL, planned VARCHAR(40) NOT NULL, \
     at BIGINT NOT NULL)";

/// Makes the effect table and the procedures that write it.
pub(crate) async fn prepare(dialect: DialectName, url: &str) {
    let statements = match dialect {
        DialectName::Mysql => MYSQL,
        DialectName::Postgres => POSTGRES,
        DialectName::Sqlite => SQLITE,
    };
    for sql in statements.iter().chain([&LABELS]) {
        query(url, sql).await;
    }
}

/// Whether bodies are told their key as `${idem_key}`, and whether definitions have classes; until all
/// of it is there, a key is made of batch and job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    Given,
    Made,
}

const SCRIPT: &str = r#"
      life="$$@$(cut -d' ' -f22 /proc/$$/stat)"
      key=${PROCESSION_IDEM_KEY:-$PROCESSION_BATCH_NO/$PROCESSION_JOB_CODE}
      note() {
        printf '%s|%s|%s|%s|%s|%s|%s\n' "$1" "$key" "$PROCESSION_BATCH_NO" "$PROCESSION_JOB_CODE" \
          "$PROCESSION_ATTEMPT" "$life" "$(date +%s%6N)" >>"$PROCESSION_PARAM_FX_FILE"
      }
      note B
      sleep "$PROCESSION_PARAM_SECONDS"
      note E
"#;

/// A job whose body writes its effect, as part of a definition file: `body` 0 is a procedure, 1 are
/// statements; how long it takes, in milliseconds; where scripts write.
pub(crate) struct Job<'a> {
    pub(crate) code: &'a str,
    pub(crate) class: Class,
    pub(crate) dialect: DialectName,
    pub(crate) body: u64,
    pub(crate) takes_ms: u64,
    pub(crate) parents: &'a [String],
    pub(crate) fx_file: &'a Path,
    pub(crate) keys: Keys,
}

impl Job<'_> {
    /// The same of a job whose batch a schedule opens: it also writes which schedule that was, and for
    /// which planned time, both of which the schedule gives it.
    pub(crate) fn labelled_yaml(&self) -> String {
        let at = match self.dialect {
            DialectName::Mysql => "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)",
            DialectName::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
            DialectName::Sqlite => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        };
        let (sql, params) = ("    sql: |\n", "    params:\n");
        let label = format!("INSERT INTO fx_label VALUES (:schedule, :planned, {at})");
        let given = "      - { name: schedule }\n      - { name: planned }\n";
        let text = self.yaml().replacen(sql, &format!("{sql}      {label};\n"), 1);
        text.replacen(params, &format!("{params}{given}"), 1)
    }

    /// Its lines in `jobs:`.
    pub(crate) fn yaml(&self) -> String {
        let mut text = format!("  {}:\n    depends_on: [{}]\n", self.code, self.parents.join(", "));
        let (source, class) = match self.class {
            Class::Same => ("home", "    tx: same\n"),
            Class::Ledger => ("target", "    tx: ledger\n"),
            Class::Once => ("target", ""),
            Class::Repeat => ("target", "    idempotent: true\n"),
            Class::Script => ("", ""),
            Class::ScriptRepeat => ("", "    idempotent: true\n"),
        };
        text.push_str(class);
        match self.class {
            Class::Script | Class::ScriptRepeat => self.script(&mut text),
            _ => {
                text.push_str(&format!("    source: {source}\n"));
                self.database(&mut text);
            }
        }
        text
    }

    fn script(&self, text: &mut String) {
        text.push_str("    type: SCRIPT\n    interpreter: sh\n    script: |");
        text.push_str(SCRIPT);
        let (file, seconds) = (self.fx_file.display(), self.takes_ms as f64 / 1_000.0);
        text.push_str("    params:\n");
        text.push_str(&format!("      - {{ name: fx_file, value: \"{file}\" }}\n"));
        text.push_str(&format!("      - {{ name: seconds, value: \"{seconds}\" }}\n"));
    }

    fn database(&self, text: &mut String) {
        let is_whole = matches!(self.class, Class::Same | Class::Ledger);
        let (code, ms) = (self.code, self.takes_ms);
        let named = |prefix: &str| {
            format!(
                "    params:\n      - {{ name: {prefix}batch_no, value: \"${{batch_no}}\" }}\n      \
                 - {{ name: {prefix}job_code, value: {code} }}\n"
            )
        };
        if self.body == 0 && self.dialect != DialectName::Sqlite {
            let name = if is_whole { "fx_tx" } else { "fx_commits" };
            text.push_str(&format!("    type: PROC\n    proc_name: {name}\n{}", named("p_")));
            text.push_str(&format!("      - {{ name: p_ms, type: int, value: \"{ms}\" }}\n"));
            return;
        }
        let transaction = if is_whole { "one" } else { "none" };
        text.push_str(&format!("    type: SQL\n    transaction: {transaction}\n    sql: |\n"));
        for line in self.statements() {
            text.push_str(&format!("      {line};\n"));
        }
        text.push_str(&named(""));
        if self.dialect == DialectName::Sqlite && self.keys == Keys::Given {
            text.push_str("      - { name: idem_key, value: \"${idem_key}\" }\n");
        }
    }

    fn statements(&self) -> Vec<String> {
        let seconds = self.takes_ms as f64 / 1_000.0;
        let note = |call: &str, phase| format!("{call} fx_note('{phase}', :batch_no, :job_code)");
        match self.dialect {
            DialectName::Mysql => {
                vec![note("CALL", 'B'), format!("DO SLEEP({seconds})"), note("CALL", 'E')]
            }
            DialectName::Postgres => {
                vec![
                    note("SELECT", 'B'),
                    format!("SELECT pg_sleep({seconds})"),
                    note("SELECT", 'E'),
                ]
            }
            DialectName::Sqlite => {
                let key = match self.keys {
                    Keys::Given => ":idem_key",
                    Keys::Made => ":batch_no || '/' || :job_code",
                };
                let at = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";
                vec![format!(
                    "INSERT INTO fx (idem_key, batch_no, job_code, life, phase, at) \
                     WITH l AS MATERIALIZED (SELECT hex(randomblob(8)) AS life) \
                     SELECT {key}, :batch_no, :job_code, l.life, p.phase, {at} \
                     FROM l, (SELECT 'B' AS phase UNION ALL SELECT 'E') AS p"
                )]
            }
        }
    }
}

fn phase(word: &str) -> Phase {
    match word {
        "B" => Phase::Begin,
        "E" => Phase::End,
        other => panic!("a phase {other:?} in the effects"),
    }
}

/// All rows of a statement, however many there are.
pub(crate) async fn rows(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut session = crate::trust::targets::session(url).await;
    let mut all = Results::keeping(usize::MAX, 1);
    session.run_into(sql, &[], &mut all).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    session.close().await;
    all.sets.into_iter().next().map(|set| set.rows).unwrap_or_default()
}

/// What the effect table of a database holds.
pub(crate) async fn effects(url: &str) -> Vec<Effect> {
    let sql = "SELECT phase, idem_key, batch_no, job_code, attempt, life, at FROM fx ORDER BY id";
    let all = rows(url, sql).await;
    all.iter()
        .map(|row| {
            let text = |i: usize| row[i].clone().unwrap_or_default();
            Effect {
                phase: phase(&text(0)),
                key: text(1),
                name: (text(2), text(3)),
                attempt: row[4].as_ref().and_then(|n| n.parse().ok()),
                life: text(5),
                at: text(6).parse().expect("microseconds"),
            }
        })
        .collect()
}

/// What scripts have appended to their file.
pub(crate) fn effects_in(file: &Path) -> Vec<Effect> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| {
            let parts: Vec<&str> = line.split('|').collect();
            let [word, key, batch, job, attempt, life, at] = parts[..] else {
                panic!("{line:?} is no line of effects")
            };
            Effect {
                phase: phase(word),
                key: key.to_owned(),
                name: (batch.to_owned(), job.to_owned()),
                attempt: attempt.parse().ok(),
                life: life.to_owned(),
                at: at.parse().expect("microseconds"),
            }
        })
        .collect()
}
