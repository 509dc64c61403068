//! Parameters and secrets through the real program: layers, refusals, and that no secret is ever left
//! anywhere.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const SECRET: &str = "hunter22-and-more";

pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the program in `folder` with these variables, and `input` on standard input.
pub(crate) fn run_with_input(
    folder: &Path,
    args: &[&str],
    env: &[(&str, &str)],
    input: &str,
) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.current_dir(folder).env_remove("PROCESSION_DB").env("LANG", "C").args(args);
    for name in ["PROCESSION_SECRET_KEY", "PROCESSION_SECRET_KEY_FILE"] {
        command.env_remove(name);
    }
    command.envs(env.iter().copied()).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn");
    let mut stdin = child.stdin.take().expect("stdin");
    // A program that wants no input may have closed it.
    let _not_read = stdin.write_all(input.as_bytes());
    drop(stdin);
    let done = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Said {
        code: done.status.code().expect("an exit code"),
        out: text(done.stdout),
        err: text(done.stderr),
    }
}

fn folder(yaml: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("dag.yaml"), yaml).expect("file");
    folder
}

fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {} {}", said.out, said.err))
}

const LAYERS: &str = "
params: { region: EU, rate: '1', day: '${last_day(-1)}' }
groups: { g: { params: { rate: { type: decimal, value: '2' } } } }
sources: { s: { url: 'sqlite::memory:' } }
defaults: { group: g, type: SQL, source: s }
jobs:
  A: { sql: 'SELECT 3 AS rate, 8 AS only' }
  B:
    depends_on: [A]
    sql: 'SELECT :rate AS rate, :only AS only, :region AS region, :own AS own, :day AS day, :none AS none'
    params:
      - { name: rate, type: decimal }
      - { name: only, type: int }
      - { name: region }
      - { name: own, value: '${batch(-1)} ${format(first_day, %d.%m.%Y)}' }
      - { name: day, type: date }
      - { name: none }
  C:
    sql: 'SELECT :rate AS rate'
    params: [{ name: rate, type: decimal }]
";

fn row(batch: &serde_json::Value, job: usize) -> String {
    let row = &batch[0]["jobs"][job]["outputs"]["results"][0]["rows"][0];
    let values = row.as_array().expect("a row").iter();
    values.map(|v| v.as_str().unwrap_or("NULL").to_owned()).collect::<Vec<_>>().join("|")
}

#[test]
fn a_parameter_takes_the_strongest_layer_that_has_it() {
    let folder = folder(LAYERS);
    let path = folder.path();
    let batch = |args: &[&str]| {
        let args = [&["--json", "run", "dag.yaml", "--batch-no"], args].concat();
        let said = run_with_input(path, &args, &[], "");
        assert_eq!(said.code, 0, "{}", said.err);
        json(&said)
    };
    let plain = batch(&["202401"]);
    assert_eq!(row(&plain, 1), "3|8|EU|202312 01.01.2024|2023-12-31|NULL");
    assert_eq!(row(&plain, 2), "2", "without a parent it is the group's");
    let given = batch(&["202402", "--param", "rate=9", "--param", "own=x", "--param", "none=y"]);
    assert_eq!(row(&given, 1), "9|8|EU|x|2024-01-31|y");
    assert_eq!(row(&given, 2), "9");
    let shown = json(&run_with_input(
        path,
        &["--json", "params", "show", "B", "--batch-no", "202401"],
        &[],
        "",
    ));
    let words = |v: &serde_json::Value| {
        let rows = v.as_array().expect("rows").iter();
        rows.map(|r| format!("{}={}", r["value"], r["layer"])).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        words(&shown).replace('"', ""),
        "3=upstream 8=upstream EU=global 202312 01.01.2024=job 2023-12-31=global null=null"
    );
    let args = ["params", "show", "B", "--batch-no", "202405", "--param", "rate=4"];
    let said = run_with_input(path, &args, &[], "");
    assert!(
        said.code == 0 && said.out.contains("batch > job > upstream outputs > group"),
        "{}",
        said.out
    );
    for (args, told) in [
        (&["B", "--batch-no", "202401", "--param", "x=1"][..], "batch 202401 is there already"),
        (&["NOPE", "--batch-no", "202401"], "there is no job NOPE; procession job list"),
        (&["B", "--batch-no", "202405", "--param", "rate=x"], "\"x\" is not a decimal number"),
    ] {
        let said = run_with_input(path, &[&["params", "show"], args].concat(), &[], "");
        assert!(said.code == 2 && said.err.contains(told), "{}", said.err);
    }
}

#[test]
fn parameters_that_do_not_fit_leave_nothing_behind() {
    let folder = folder(
        "groups:\n  g:\n    params:\n      day: { type: date, required: true }\n      \
         pw: { secret: true }\njobs: { A: { type: NOOP, group: g } }\n",
    );
    let path = folder.path();
    let start = |args: &[&str]| {
        run_with_input(path, &[&["run", "dag.yaml", "--batch-no", "1"], args].concat(), &[], "")
    };
    let said = start(&["--param", "pw=hunter22", "--param", "oops=1"]);
    assert_eq!(said.code, 2, "{}", said.err);
    for told in [
        "the parameters of this batch of group g are not usable:",
        "parameter day is required and no layer has a value for it",
        "parameter pw is secret, so its value is never given in the clear",
    ] {
        assert!(said.err.contains(told), "{}", said.err);
    }
    assert!(!said.err.contains("hunter22"), "{}", said.err);
    for (args, told) in [
        (&["--param", "hunter22"][..], "--param: write NAME=VALUE"),
        (&["--param", "a=1", "--param", "a=2"], "--param a is given twice; keep one"),
        (&["--param", "day=1.1.24"], "parameter day: \"1.1.24\" is not a date (YYYY-MM-DD)"),
        (
            &["--param", "day=2024-01-01", "--param", "o=@secret:X"],
            "parameter o names a secret and",
        ),
    ] {
        let said = start(args);
        assert!(said.code == 2 && said.err.contains(told), "{}", said.err);
        assert!(!said.err.contains("hunter22"), "{}", said.err);
    }
    assert_eq!(
        json(&run_with_input(path, &["--json", "batch", "list"], &[], "")),
        serde_json::json!([])
    );
    let said = start(&["--param", "day=2024-01-01", "--param", "oops=1"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("parameter oops is not declared by group g"), "{}", said.err);
}

const SECRETS: &str = "
params: { pw: { secret: true } }
secrets: { LEDGER: { env: LEDGER_PW } }
sources: { s: { url: 'sqlite::memory:' } }
jobs:
  LEAKS:
    type: SCRIPT
    interpreter: sh
    script: |
      echo \"out $PROCESSION_PARAM_PW\"
      echo \"err $PROCESSION_PARAM_TOKEN\" >&2
      echo \"env ${LEDGER_PW:-withheld}\"
      exit 3
    params: [{ name: pw, required: true }, { name: token, value: 'Bearer ${secret.LEDGER}' }]
  SQL:
    type: SQL
    source: s
    sql: 'SELECT :own AS own, length(:own) AS long'
    params: [{ name: own, value: '${secret.LEDGER}' }]
";

/// No file that the program left in the folder holds the secret.
fn nothing_is_left(folder: &Path) {
    let mut looked = 0;
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        looked += 1;
        let found = bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes());
        assert!(!found, "{} holds the secret", path.display());
    }
    assert!(looked > 1, "there is a database to look into");
}

#[test]
fn a_secret_reaches_the_body_and_nothing_else() {
    let folder = folder(SECRETS);
    let path = folder.path();
    let env = [("LEDGER_PW", SECRET)];
    let args = ["--json", "run", "dag.yaml", "--batch-no", "1", "--param", "pw=@secret:LEDGER"];
    let said = run_with_input(path, &args, &env, "");
    assert_eq!(said.code, 1, "{}", said.err);
    let batch = json(&said);
    assert_eq!(row(&batch, 1), format!("***|{}", SECRET.len()), "bound whole, shown masked");
    let logs = run_with_input(path, &["logs", "1", "LEAKS"], &[], "");
    for told in ["out ***", "err Bearer ***", "env withheld"] {
        assert!(logs.out.contains(told), "{} {}", logs.out, logs.err);
    }
    let mut shown = vec![said, logs];
    for args in [
        &["batch", "show", "1"][..],
        &["--json", "batch", "show", "1"],
        &["batch", "why", "1"],
        &["--json", "job", "show", "LEAKS"],
        &["params", "show", "LEAKS", "--batch-no", "1"],
        &["--json", "params", "show", "LEAKS", "--batch-no", "1"],
    ] {
        let said = run_with_input(path, args, &env, "");
        assert_eq!(said.code, 0, "{args:?} {}", said.err);
        shown.push(said);
    }
    assert!(shown.iter().all(|s| !format!("{}{}", s.out, s.err).contains(SECRET)));
    let layers = &shown[shown.len() - 1].out;
    assert!(layers.contains("***") && layers.contains("\"batch\""), "{layers}");
    nothing_is_left(path);
}

/// Once the child was given the text `***`, and ended well.
#[test]
fn an_output_with_a_secret_in_it_is_not_handed_on() {
    let folder = folder(
        "
secrets: { LEDGER: { env: LEDGER_PW } }
sources: { s: { url: 'sqlite::memory:' } }
defaults: { type: SCRIPT, interpreter: bash }
jobs:
  SMALL: { script: 'echo ::output v=x$PROCESSION_PARAM_P', params: [{ name: p, value: '${secret.LEDGER}' }] }
  LARGE:
    script: echo ::output v=$(printf 'x%.0s' {1..20000})$PROCESSION_PARAM_P
    params: [{ name: p, value: '${secret.LEDGER}' }]
  COLUMN:
    type: SQL
    source: s
    sql: SELECT :p AS v, 7 AS n
    params: [{ name: p, value: '${secret.LEDGER}' }]
  FROM_SMALL: { depends_on: [SMALL], script: 'true', params: [{ name: v, value: '${jobs.SMALL.v}' }] }
  FROM_LARGE: { depends_on: [LARGE], script: 'true', params: [{ name: v, value: '${jobs.LARGE.v}' }] }
  FROM_COLUMN: { depends_on: [COLUMN], script: 'true', params: [{ name: v, value: '${jobs.COLUMN.v}' }] }
  BESIDE: { depends_on: [COLUMN], script: test $PROCESSION_PARAM_N = 7, params: [{ name: n, value: '${jobs.COLUMN.n}' }] }
",
    );
    let env = [("LEDGER_PW", SECRET)];
    let args = ["--json", "run", "dag.yaml", "--batch-no", "1"];
    let said = run_with_input(folder.path(), &args, &env, "");
    assert_eq!(said.code, 1, "{}", said.err);
    let batch = json(&said);
    let jobs = batch[0]["jobs"].as_array().expect("jobs");
    let job = |code: &str| jobs.iter().find(|job| job["job_code"] == code).expect(code);
    for (code, from) in [
        ("FROM_SMALL", "${jobs.SMALL.v}"),
        ("FROM_LARGE", "${jobs.LARGE.v}"),
        ("FROM_COLUMN", "${jobs.COLUMN.v}"),
    ] {
        let message = job(code)["error_message"].as_str().unwrap_or_default();
        let is_refused = message.contains(from) && message.contains("cannot be handed on");
        assert!(is_refused && message.contains("${secret.NAME}"), "{code}: {batch}");
    }
    assert_eq!(job("SMALL")["outputs"]["values"]["v"], "***", "{batch}");
    assert_eq!(job("BESIDE")["status"], "SUCCESS", "{batch}");
    nothing_is_left(folder.path());
}

/// A child begins while the commit is on its way that claims it and stores what its parent returned: storing this much
/// takes longer than to begin.
#[test]
fn a_large_output_is_read_after_the_commit_that_stores_it() {
    let folder = folder(
        "
sources: { s: { url: 'sqlite::memory:' } }
jobs:
  MAKE:
    type: SCRIPT
    interpreter: bash
    script: \"printf '::output v='; head -c 20000000 /dev/zero | tr '\\\\0' x; echo\"
  USE:
    type: SQL
    source: s
    sql: SELECT length(:v) AS long
    depends_on: [MAKE]
    params: [{ name: v, value: '${jobs.MAKE.v}' }]
",
    );
    let args = ["--json", "run", "dag.yaml", "--batch-no", "1"];
    let said = run_with_input(folder.path(), &args, &[], "");
    assert_eq!(said.code, 0, "{} {}", said.out, said.err);
    assert_eq!(row(&json(&said), 1), "20000000");
}

#[test]
fn a_secret_that_is_missing_fails_the_job_before_its_body() {
    let folder = folder(SECRETS);
    let path = folder.path();
    assert_eq!(run_with_input(path, &["check", "dag.yaml"], &[], "").code, 0, "check cannot know");
    let start = |no: &str, env: &[(&str, &str)]| {
        let args = ["run", "dag.yaml", "--batch-no", no, "--param", "pw=@secret:NOWHERE"];
        assert_eq!(run_with_input(path, &args, env, "").code, 1);
        let shown = json(&run_with_input(path, &["--json", "batch", "show", no], &[], ""));
        let said = |i: usize| shown["jobs"][i]["error_message"].as_str().unwrap_or("").to_owned();
        (said(0), said(1))
    };
    let (leaks, sql) = start("1", &[]);
    assert!(
        leaks.starts_with("secret LEDGER: the environment variable LEDGER_PW is not set; set it"),
        "{leaks}"
    );
    assert_eq!(leaks, sql);
    assert!(
        !run_with_input(path, &["logs", "1", "LEAKS"], &[], "").out.contains("out "),
        "no body"
    );
    let (leaks, sql) = start("2", &[("LEDGER_PW", SECRET)]);
    assert!(leaks.starts_with("secret NOWHERE is not known; define it under secrets:"), "{leaks}");
    assert_eq!(sql, "");
    let (_, sql) = start("3", &[("LEDGER_PW", "abc")]);
    assert!(sql.starts_with("secret LEDGER has fewer than 4 characters"), "{sql}");
}

#[test]
fn sealed_secrets_are_stored_and_opened_with_the_key() {
    let folder = folder(
        "sources: { s: { url: 'sqlite::memory:' } }\ndefaults: { type: SQL, source: s }\njobs:\n  \
         A: { sql: 'SELECT length(:pw) AS n', params: [{ name: pw, value: '${secret.STORED}' }] }\n",
    );
    let path = folder.path();
    let key = run_with_input(path, &["secret", "key"], &[], "").out.trim().to_owned();
    let env = [("PROCESSION_SECRET_KEY", key.as_str())];
    assert_eq!(run_with_input(path, &["migrate"], &[], "").code, 0);
    let typed = format!("{SECRET}\nmore\n");
    let set = run_with_input(path, &["secret", "set", "STORED"], &env, &typed);
    assert_eq!((set.code, set.out.as_str()), (0, ""), "{}", set.err);
    let list = run_with_input(path, &["--json", "secret", "list"], &[], "");
    assert_eq!(json(&list)[0]["name"], "STORED");
    let batch =
        json(&run_with_input(path, &["--json", "run", "dag.yaml", "--batch-no", "1"], &env, ""));
    assert_eq!(row(&batch, 0), SECRET.len().to_string());
    nothing_is_left(path);

    // The sealed text may as well stand in the file.
    let sealed = run_with_input(path, &["secret", "seal", "STORED"], &env, SECRET).out;
    let text = std::fs::read_to_string(path.join("dag.yaml")).expect("file");
    let text = format!("secrets: {{ STORED: {{ sealed: '{}' }} }}\n{text}", sealed.trim());
    std::fs::write(path.join("sealed.yaml"), text).expect("file");
    let args = ["run", "sealed.yaml", "--batch-no"];
    assert_eq!(run_with_input(path, &[&args[..], &["2"]].concat(), &env, "").code, 0);
    for (no, env, told) in [
        ("3", vec![], "secret STORED: there is no key for sealed secrets; make one"),
        ("4", vec![("PROCESSION_SECRET_KEY", "short")], "is not 32 bytes in base64"),
    ] {
        assert_eq!(run_with_input(path, &[&args[..], &[no]].concat(), &env, "").code, 1);
        let shown = json(&run_with_input(path, &["--json", "batch", "show", no], &[], ""));
        let said = shown["jobs"][0]["error_message"].as_str().expect("a reason").to_owned();
        assert!(said.contains(told), "{said}");
    }
    nothing_is_left(path);
}

#[test]
fn secret_verbs_refuse_with_a_cure() {
    let folder = folder("");
    let path = folder.path();
    let key = run_with_input(path, &["secret", "key"], &[], "").out.trim().to_owned();
    let env = vec![("PROCESSION_SECRET_KEY", key.as_str())];
    assert_eq!(run_with_input(path, &["migrate"], &[], "").code, 0);
    for (args, env, input, told) in [
        (&["set", "A"][..], vec![], "x", "there is no key for sealed secrets; make one"),
        (&["set", "A"], env.clone(), "abc\n", "secret A has fewer than 4 characters"),
        (
            &["set", "a b"],
            env.clone(),
            SECRET,
            "secret \"a b\" has a name that cannot be used; use 1",
        ),
        (&["seal", "A"], env.clone(), "", "secret A has fewer than 4 characters"),
        (&["remove", "A"], vec![], "", "there is no stored secret A; procession secret list"),
    ] {
        let said = run_with_input(path, &[&["secret"], args].concat(), &env, input);
        assert!(said.code == 2 && said.err.contains(told), "{args:?}: {}", said.err);
    }
    assert_eq!(run_with_input(path, &["secret", "set", "A"], &env, SECRET).code, 0);
    assert_eq!(
        run_with_input(path, &["secret", "set", "A"], &env, "another one").code,
        0,
        "set again"
    );
    assert!(run_with_input(path, &["secret", "list"], &[], "").out.contains("SEALED BY"));
    assert_eq!(run_with_input(path, &["secret", "remove", "A"], &[], "").code, 0);
    assert_eq!(
        json(&run_with_input(path, &["--json", "secret", "list"], &[], "")),
        serde_json::json!([])
    );
}
