//! `check FILE --connect`: jobs against the catalogues of their sources.

use crate::cli::{procession, said};
use crate::preflight::{Login, is_mariadb, make_login};
use crate::util::relay::Relay;
use crate::util::{Scratch, with_scratch};
use procession::domain::source::DialectName;
use serde_json::{Value, json};
use std::path::Path;

/// Exit code and document of `check --connect --json` of a file with these jobs.
async fn checked(url: &str, jobs: &str) -> (i32, Value) {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = format!(
        "sources: {{s: {{url: '{url}'}}}}\ndefaults: {{type: PROC, source: s}}\njobs:\n{jobs}"
    );
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    let path = folder.path().to_owned();
    tokio::task::spawn_blocking(move || document(&path, &[])).await.expect("ran")
}

fn document(folder: &Path, more: &[&str]) -> (i32, Value) {
    let args = [&["check", "dag.yaml", "--connect", "--json"], more].concat();
    let (code, text, error) = said(folder, &args);
    let found = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{error}"));
    (code, found)
}

/// `error JOB kind`, in their order.
fn brief(document: &Value) -> Vec<String> {
    let findings = document["preflight"]["findings"].as_array().expect("findings");
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let one =
        |f: &Value| format!("{} {} {}", word(&f["severity"]), word(&f["job"]), word(&f["kind"]));
    let mut all: Vec<String> = findings.iter().map(one).collect();
    all.sort();
    all
}

fn finding<'a>(document: &'a Value, job: &str) -> &'a Value {
    let findings = document["preflight"]["findings"].as_array().expect("findings");
    findings.iter().find(|f| f["job"] == job).unwrap_or_else(|| panic!("{job}: {document}"))
}

fn call<'a>(document: &'a Value, job: &str) -> &'a Value {
    let calls = document["preflight"]["calls"].as_array().expect("calls");
    calls.iter().find(|c| c["job"] == job).unwrap_or_else(|| panic!("{job}: {document}"))
}

const JOBS: &str = "
  GOOD: {proc_name: sp_close, params: [{name: p_no, type: int, value: 1}]}
  TYPO: {proc_name: sp_clsoe, params: [{name: p_no, type: int, value: 1}]}
  FEW: {proc_name: sp_close}
  MODE: {proc_name: sp_close, params: [{name: p_no, mode: out}]}
  KIND: {proc_name: sp_close, params: [{name: p_no, type: date, value: 2024-07-31}]}
  SHUT: {proc_name: sp_shut}
  WORDS: {type: SQL, sql: SELEC 1}
  BAD: {type: SQL, sql: SELECT 1 FROM WHERE}
  LATER: {type: SQL, sql: INSERT INTO not_there VALUES (1)}
  ASKS: {type: SENSOR, sql: SELECT COUNT(*) FROM t}
  OFF: {proc_name: not_there_either, is_active: false}
  INSTALL: {type: SQL, sql: CREATE PROCEDURE sp_made (p_no int) LANGUAGE sql AS 'SELECT 1'}
  BETWEEN: {type: NOOP, depends_on: [INSTALL]}
  MADE: {proc_name: Sp_Made, depends_on: [BETWEEN]}
  UNORDERED: {proc_name: sp_made}
";

const FOUND: [&str; 10] = [
    "error BAD statement_refused",
    "error FEW params_misfit",
    "error MODE params_misfit",
    "error SHUT execute_denied",
    "error TYPO routine_missing",
    "error UNORDERED routine_missing",
    "error WORDS statement_refused",
    "warning KIND param_type_unusual",
    "warning LATER statement_refused",
    "warning MADE routine_made_before",
];

async fn make_routines(db: &Scratch, login: &Login) {
    let name = &login.name;
    match db.dialect {
        DialectName::Postgres => {
            db.setup(&[
                "CREATE TABLE t (a int)",
                &format!("GRANT SELECT ON t TO {name}"),
                "CREATE PROCEDURE sp_close (p_no int) LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
                "CREATE PROCEDURE sp_shut () LANGUAGE sql AS 'SELECT 1'",
                "REVOKE EXECUTE ON PROCEDURE sp_shut FROM PUBLIC",
            ])
            .await;
        }
        DialectName::Mysql | DialectName::Sqlite => {
            db.setup(&[
                "CREATE TABLE t (a INT)",
                &format!("GRANT SELECT, INSERT ON {}.* TO {name}", db.name),
                "CREATE PROCEDURE sp_close (IN p_no INT) DO 1",
                "CREATE PROCEDURE sp_shut () DO 1",
                &format!("GRANT EXECUTE ON PROCEDURE sp_close TO {name}"),
                &format!("GRANT ALTER ROUTINE ON PROCEDURE sp_shut TO {name}"),
            ])
            .await;
        }
    }
}

#[tokio::test]
async fn mariadb_jobs_are_held_against_the_catalogue() {
    with_scratch(DialectName::Mysql, |db| async move {
        let login = make_login(&db).await;
        make_routines(&db, &login).await;
        let (code, found) = checked(&login.url, JOBS).await;
        let mut expected: Vec<String> = FOUND.map(str::to_owned).to_vec();
        // Root's procedures, which this user could not stop.
        expected.extend(
            ["GOOD", "KIND", "SHUT"].map(|job| format!("warning {job} definer_unstoppable")),
        );
        expected.sort();
        assert_eq!((code, brief(&found)), (2, expected), "{found}");
        assert_eq!(found["ok"], false);
        let right = if is_mariadb(&db).await { "CONNECTION ADMIN" } else { "CONNECTION_ADMIN" };
        let good = finding(&found, "GOOD");
        assert_eq!(good["hint"]["en"], format!("GRANT {right} ON *.* TO {}", login.name), "{good}");
        let (en, zh) = (good["message"]["en"].to_string(), good["message"]["zh"].to_string());
        assert!(en.contains("runs with the rights of root@") && zh.contains("无法停止"), "{good}");
        assert_eq!(call(&found, "GOOD")["can_be_stopped"], false);
        let shut = finding(&found, "SHUT");
        let grant = format!("GRANT EXECUTE ON PROCEDURE {}.sp_shut TO {}", db.name, login.name);
        assert_eq!((&shut["kind"], &shut["hint"]["en"]), (&json!("execute_denied"), &json!(grant)));
        let typo = finding(&found, "TYPO")["message"]["en"].to_string();
        assert!(typo.contains("did you mean sp_close?"), "{typo}");
        // With what was said to be granted, only what is wrong in the file is left.
        db.setup(&[&grant, good["hint"]["en"].as_str().expect("a statement")]).await;
        let (_, found) = checked(&login.url, JOBS).await;
        let left: Vec<&str> = FOUND.iter().copied().filter(|f| !f.contains("SHUT")).collect();
        assert_eq!(brief(&found), left, "{found}");
        assert_eq!(call(&found, "GOOD")["can_be_stopped"], true);
        let runs_as = call(&found, "GOOD")["runs_as"].to_string();
        assert!(runs_as.starts_with("\"root@"), "{runs_as}");
        login.drop(&db).await;
    })
    .await;
}

/// The rights of a role count when it is active; one's own definer and an invoker's procedure are no strangers.
#[tokio::test]
async fn mariadb_own_and_invokers_procedures_can_be_stopped() {
    with_scratch(DialectName::Mysql, |db| async move {
        let login = make_login(&db).await;
        let role = format!("r{}", &db.name[db.name.len() - 12..]);
        let default = if is_mariadb(&db).await { "FOR" } else { "TO" };
        db.setup(&[
            "CREATE PROCEDURE invoked () SQL SECURITY INVOKER DO 1",
            &format!("CREATE DEFINER = {} PROCEDURE own () DO 1", login.name),
            "CREATE FUNCTION counts (a INT) RETURNS INT DETERMINISTIC SQL SECURITY INVOKER RETURN a",
            &format!("CREATE ROLE {role}"),
            &format!("GRANT EXECUTE ON {}.* TO {role}", db.name),
            &format!("GRANT {role} TO {}", login.name),
            &format!("SET DEFAULT ROLE {role} {default} {}", login.name),
        ])
        .await;
        let jobs = "  A: {proc_name: invoked}\n  B: {proc_name: own}\n  C: {proc_name: counts, params: [{name: a}]}\n";
        let (code, found) = checked(&login.url, jobs).await;
        assert_eq!((code, brief(&found)), (0, Vec::new()), "{found}");
        for job in ["A", "B", "C"] {
            assert_eq!(call(&found, job)["can_be_stopped"], true, "{found}");
        }
        db.setup(&[&format!("DROP ROLE {role}")]).await;
        login.drop(&db).await;
    })
    .await;
}

#[tokio::test]
async fn postgres_jobs_are_held_against_the_catalogue() {
    with_scratch(DialectName::Postgres, |db| async move {
        let login = make_login(&db).await;
        make_routines(&db, &login).await;
        let (code, found) = checked(&login.url, JOBS).await;
        let expected: Vec<&str> = FOUND.to_vec();
        assert_eq!(
            (code, brief(&found)),
            (2, expected.into_iter().map(str::to_owned).collect()),
            "{found}"
        );
        // A role may end its own sessions, whatever runs on them.
        let good = call(&found, "GOOD");
        assert_eq!(good["can_be_stopped"], true, "{good}");
        assert_eq!(good["calls"], "procedure public.sp_close(IN p_no integer)");
        let shut = finding(&found, "SHUT");
        let grant = format!("GRANT EXECUTE ON PROCEDURE public.sp_shut TO \"{}\"", login.name);
        assert_eq!(shut["hint"]["en"], grant);
        login.drop(&db).await;
    })
    .await;
}

#[tokio::test]
async fn postgres_overloads_defaults_and_many_jobs() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE SCHEMA fin",
            "CREATE PROCEDURE post (a int) LANGUAGE sql AS 'SELECT 1'",
            "CREATE PROCEDURE post (a text) LANGUAGE sql AS 'SELECT 1'",
            "CREATE PROCEDURE post (a date, b int DEFAULT 5) LANGUAGE sql AS 'SELECT 1'",
            "CREATE PROCEDURE fin.odd_name () LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION add (a int, b int DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT a + b'",
        ])
        .await;
        let jobs = r#"
  TEXT: {proc_name: post, params: [{name: a, value: x}]}
  INT: {proc_name: "post(integer)", params: [{name: a, type: int, value: 1}]}
  DATE: {proc_name: POST, params: [{name: a, type: date, value: 2024-07-31}, {name: b, type: int, value: 1}]}
  MANY: {proc_name: post, params: [{name: a, type: decimal, value: 1}]}
  NONE: {proc_name: "post(boolean)", params: [{name: a, type: bool, value: true}]}
  ODD: {proc_name: FIN.ODD_NAME}
  ADD: {proc_name: add, params: [{name: a, type: int, value: 1}, {name: total, mode: out}]}
"#;
        let more = (0..120).map(|n| format!("  J{n}: {{proc_name: fin.odd_name}}\n  K{n}: {{proc_name: sp_{n}}}\n"));
        let (code, found) = checked(&db.url, &(jobs.to_owned() + &more.collect::<String>())).await;
        assert_eq!(code, 2);
        assert_eq!(finding(&found, "MANY")["kind"], "params_misfit", "{found}");
        assert_eq!(finding(&found, "NONE")["kind"], "params_misfit", "{found}");
        assert_eq!(found["preflight"]["errors"], 122, "{:?}", brief(&found));
        for (job, calls) in [
            ("TEXT", "procedure public.post(IN a text)"),
            ("INT", "procedure public.post(IN a integer)"),
            ("DATE", "procedure public.post(IN a date, IN b integer DEFAULT)"),
            ("ODD", "procedure fin.odd_name()"),
            ("ADD", "function public.add(IN a integer, IN b integer DEFAULT)"),
            ("J119", "procedure fin.odd_name()"),
        ] {
            assert_eq!(call(&found, job)["calls"], calls, "{job}");
        }
    })
    .await;
}

/// The catalogue is asked once for all calls of a source, not for each.
async fn forty_calls_take_as_many_round_trips_as_one(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        for n in 0..40 {
            db.setup(&[&match dialect {
                DialectName::Postgres => {
                    format!("CREATE PROCEDURE sp_{n} () LANGUAGE sql AS 'SELECT 1'")
                }
                DialectName::Mysql | DialectName::Sqlite => {
                    format!("CREATE PROCEDURE sp_{n} () DO 1")
                }
            }])
            .await;
        }
        let server = url::Url::parse(&db.url).expect("a URL");
        let port = server.port().expect("a port");
        let mut counted = Vec::new();
        for calls in [1, 40] {
            let relay = Relay::to(&format!("{}:{port}", server.host_str().expect("a host"))).await;
            let jobs: String =
                (0..calls).map(|n| format!("  J{n}: {{proc_name: sp_{n}}}\n")).collect();
            let (code, found) = checked(&relay.url(&db.url), &jobs).await;
            assert_eq!(
                (code, found["preflight"]["calls"].as_array().map(Vec::len)),
                (0, Some(calls))
            );
            counted.push(relay.round_trips());
        }
        // The good-bye of a connection may or may not cross the last answer.
        assert!(counted[1] <= counted[0] + 2, "{dialect}: {counted:?}");
        assert!(counted[0] <= 14, "{dialect}: {counted:?} with opening and login");
    })
    .await;
}

#[tokio::test]
async fn mariadb_forty_calls_take_as_many_round_trips_as_one() {
    forty_calls_take_as_many_round_trips_as_one(DialectName::Mysql).await;
}

#[tokio::test]
async fn postgres_forty_calls_take_as_many_round_trips_as_one() {
    forty_calls_take_as_many_round_trips_as_one(DialectName::Postgres).await;
}

#[tokio::test]
async fn sqlite_statements_and_bodies() {
    with_scratch(DialectName::Sqlite, |db| async move {
        let yaml = format!(
            "sources:
  s: {{url: '{}', procedures: {{sp_close: 'SELECT 1', broken: 'SELECT FROM t'}}}}
  none: {{url: 'sqlite:none.db'}}
defaults: {{type: PROC, source: s}}
jobs:
  GOOD: {{proc_name: sp_close}}
  BROKEN: {{proc_name: broken}}
  LATER: {{type: SQL, sql: 'CREATE TABLE x (a INT); INSERT INTO x VALUES (1); SELECT 1 FROM nowhere'}}
  NEW: {{type: SQL, source: none, sql: SELECT 1 FROM nowhere}}
",
            db.url
        );
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
        db.setup(&["CREATE TABLE t (a INT)"]).await;
        let path = folder.path().to_owned();
        let (code, found) = tokio::task::spawn_blocking(move || document(&path, &[])).await.expect("ran");
        let expected = [
            "error - source_refused",
            "error BROKEN statement_refused",
            "warning LATER statement_refused",
        ];
        assert_eq!((code, brief(&found)), (2, expected.map(str::to_owned).to_vec()), "{found}");
        let at = finding(&found, "LATER")["message"]["en"].to_string();
        assert!(at.contains("statement 2 (line 1)"), "{at}");
        assert!(!folder.path().join("none.db").exists(), "a look makes no file");
        assert_eq!(db.value("SELECT COUNT(*) FROM sqlite_master WHERE name = 'x'").await, "0");
    })
    .await;
}

/// Exit code 3: nothing is known to be wrong, and not all could be asked. A fault of the user's comes before it.
#[tokio::test]
async fn a_source_that_is_away_is_a_finding_of_its_own() {
    let folder = tempfile::tempdir().expect("folder");
    let yaml = "sources:
  away: {url: 'mysql://nobody@127.0.0.1:1/x'}
  shut: {url: 'mysql://nobody@127.0.0.1:1/x', password_env: PREFLIGHT_TEST_PASSWORD}
jobs:
  A: {type: PROC, proc_name: sp, source: away}
  B: {type: PROC, proc_name: sp, source: shut, is_active: ACTIVE}
";
    let write = |active: &str| {
        std::fs::write(folder.path().join("dag.yaml"), yaml.replace("ACTIVE", active))
            .expect("file");
    };
    write("false");
    let (code, found) = document(folder.path(), &[]);
    assert_eq!((code, brief(&found)), (3, vec!["unreachable - source_away".to_owned()]), "{found}");
    assert_eq!((&found["ok"], &found["preflight"]["unreachable"]), (&json!(true), &json!(1)));
    write("true");
    let (code, found) = document(folder.path(), &[]);
    let expected = ["error - password_missing", "unreachable - source_away"];
    assert_eq!((code, brief(&found)), (2, expected.map(str::to_owned).to_vec()), "{found}");
    let args = ["check", "dag.yaml", "--connect", "--lang", "zh"];
    let (_, _, error) = said(folder.path(), &args);
    assert!(error.contains("错误：") && error.contains("PREFLIGHT_TEST_PASSWORD"), "{error}");
    let mut command = procession(folder.path());
    command.env("PREFLIGHT_TEST_PASSWORD", "hunter22").args(args);
    let done = command.output().expect("it runs");
    let all = [done.stdout, done.stderr].concat();
    assert_eq!(done.status.code(), Some(3));
    assert!(!String::from_utf8_lossy(&all).contains("hunter22"), "a password is never shown");
}

#[test]
fn calendars_of_groups_and_schedules_are_looked_for() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path();
    std::fs::write(path.join("dag.yaml"), "jobs: {A: {type: NOOP}}\n").expect("file");
    assert_eq!(said(path, &["apply", "dag.yaml"]).0, 0);
    let yaml = "groups: {g: {type: monthly, calendar: holidays}}
jobs: {A: {type: NOOP, group: g}}
schedules:
  nightly: {group: g, rule: last working day of month, at: '18:00', calendar: elsewhere, batch_no: month(-1)}
";
    std::fs::write(path.join("dag.yaml"), yaml).expect("file");
    let (code, found) = document(path, &[]);
    assert_eq!(code, 2, "{found}");
    let findings = found["preflight"]["findings"].as_array().expect("findings");
    let said: Vec<_> =
        findings.iter().map(|f| f["message"]["en"].as_str().expect("words")).collect();
    assert_eq!(
        said,
        [
            "group g names calendar holidays, which is not stored in this installation",
            "schedule nightly names calendar elsewhere, which is not stored in this installation"
        ]
    );
}

#[tokio::test]
async fn quoted_names_and_variadic_routines_are_known() {
    with_scratch(DialectName::Postgres, |db| async move {
        db.setup(&[
            "CREATE SCHEMA \"Odd One\"",
            "CREATE PROCEDURE \"My Proc\" () LANGUAGE sql AS 'SELECT 1'",
            "CREATE PROCEDURE \"Odd One\".\"Weird.Name(x)\" () LANGUAGE sql AS 'SELECT 1'",
            "CREATE PROCEDURE post (head text, VARIADIC items int[]) LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION count_all (VARIADIC words \"any\") RETURNS int LANGUAGE internal AS 'pg_num_nonnulls'",
        ])
        .await;
        let jobs = r#"
  PLAIN: {proc_name: '"My Proc"'}
  ODD: {proc_name: '"Odd One"."Weird.Name(x)"'}
  TYPO: {proc_name: '"My Prok"'}
  LIST: {proc_name: post, params: [{name: head, value: h}, {name: items, value: '[1, 2]'}]}
  FEW: {proc_name: post, params: [{name: head, value: h}]}
  ANY: {proc_name: count_all, params: [{name: words, value: '[1]'}]}
"#;
        let (code, found) = checked(&db.url, jobs).await;
        assert_eq!(code, 2, "{found}");
        for (job, calls) in [
            ("PLAIN", "procedure public.My Proc()"),
            ("ODD", "procedure Odd One.Weird.Name(x)()"),
            ("LIST", "procedure public.post(IN head text, VARIADIC items integer[])"),
        ] {
            assert_eq!(call(&found, job)["calls"], calls, "{job}");
        }
        for (job, part) in [
            ("TYPO", "did you mean \\\"My Proc\\\"?"),
            ("FEW", "VARIADIC items integer[]"),
            ("ANY", "call it by a SQL job"),
        ] {
            let said = finding(&found, job).to_string();
            assert!(said.contains(part), "{job}: {said}");
        }
        assert_eq!(found["preflight"]["errors"], 3, "{:?}", brief(&found));
    })
    .await;
    with_scratch(DialectName::Mysql, |db| async move {
        db.setup(&[
            "CREATE PROCEDURE `My Proc` () DO 1",
            "CREATE PROCEDURE `Weird.Name(x)` () DO 1",
        ])
        .await;
        let jobs = r#"
  PLAIN: {proc_name: '`My Proc`'}
  ODD: {proc_name: '"Weird.Name(x)"'}
  TYPO: {proc_name: '`My Prok`'}
"#;
        let (_, found) = checked(&db.url, jobs).await;
        for (job, name) in [("PLAIN", ".My Proc()"), ("ODD", ".Weird.Name(x)()")] {
            let calls = call(&found, job)["calls"].to_string();
            assert!(calls.contains(name), "{job}: {calls}");
        }
        let said = finding(&found, "TYPO").to_string();
        assert!(said.contains("did you mean `My Proc`?"), "{said}");
        assert_eq!(found["preflight"]["errors"], 1, "{:?}", brief(&found));
    })
    .await;
}

/// Where two groups have a code, people are told the group; where one has it, the code is enough.
#[test]
fn a_code_of_two_groups_is_named_with_its_group() {
    let folder = tempfile::tempdir().expect("folder");
    let jobs = ["a", "b"].map(|group| {
        format!(
            "  - {{ code: GOOD, group: {group}, proc_name: sp }}\n  \
             - {{ code: TYPO, group: {group}, type: SQL, sql: SELEC 1 }}\n"
        )
    });
    let yaml = format!(
        "sources: {{ s: {{ url: 'sqlite:s.db', procedures: {{ sp: SELECT 1 }} }} }}\n\
         groups: {{ a: {{}}, b: {{}} }}\ndefaults: {{ type: PROC, source: s }}\njobs:\n{}  \
         - {{ code: ONLY, group: b, type: SQL, sql: SELEC 1 }}\n",
        jobs.concat()
    );
    // A source that is not there yet is not asked.
    std::fs::write(folder.path().join("s.db"), "").expect("file");
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    let (code, out, err) = said(folder.path(), &["check", "dag.yaml", "--connect"]);
    assert_eq!(code, 2, "{out}{err}");
    for line in ["error: a.TYPO (source s)", "error: b.TYPO (source s)", "error: ONLY (source s)"] {
        assert!(err.contains(line), "{line}: {out}{err}");
    }
    let (_, found) = document(folder.path(), &[]);
    let words: Vec<&str> = (found["preflight"]["findings"].as_array().expect("findings").iter())
        .filter_map(|finding| finding["message"]["zh"].as_str())
        .collect();
    assert!(words.iter().any(|said| said.starts_with("a.TYPO（")), "{words:?}");
}
