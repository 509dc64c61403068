//! Data sources, secrets and executors that belong to groups, with the real program: what a group may not use is
//! refused when a file is checked, applied, planned, opened and run.

use crate::cli::said;
use crate::params::run_with_input;
use std::path::Path;

/// What the administrator declares, with the group that owns it.
const SHARED: &str = "\
sources:
  ledger: {url: 'sqlite:ledger.db', owner_group: fin}
  rates: {url: 'sqlite:rates.db', groups: [fin, risk]}
  public: {url: 'sqlite:public.db'}
secrets:
  FIN_PW: {env: FIN_PW, owner_group: fin}
params:
  all_pw: {secret: true, value: '${secret.FIN_PW}'}
groups: {fin: {}}
jobs:
  POST: {group: fin, type: SQL, source: ledger, sql: 'SELECT 1'}
";

/// A file of another group; `job` is what its job says.
fn of_risk(job: &str) -> String {
    format!("groups: {{risk: {{}}}}\njobs:\n  STEAL: {{group: risk, {job}}}\n")
}

const SCRIPT: &str = "type: SCRIPT, interpreter: sh, script: 'touch it-ran; cat >/dev/null'";

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("folder");
    std::fs::write(home.path().join("shared.yaml"), SHARED).expect("file");
    well(home.path(), &["apply", "shared.yaml"]);
    home
}

fn write(path: &Path, text: &str) {
    std::fs::write(path.join("risk.yaml"), text).expect("file");
}

fn well(path: &Path, args: &[&str]) -> String {
    let (code, shown, told) = said(path, args);
    assert_eq!(code, 0, "{args:?}: {shown}{told}");
    shown
}

fn refused(path: &Path, args: &[&str], words: &str) {
    let (code, shown, told) = said(path, args);
    assert_eq!(code, 2, "{args:?}: {shown}{told}");
    assert!(format!("{shown}{told}").contains(words), "{args:?}: {shown}{told}");
}

#[test]
fn a_file_that_names_both_is_refused_at_its_line() {
    let home = home();
    let path = home.path();
    for (job, words) in [
        (
            "type: SQL, source: ledger, sql: 'SELECT 1'",
            "job STEAL of group risk may not use data source ledger, which is for fin (owner)",
        ),
        (
            "type: SQL, source: public, sql: 'SELECT 1', checks: [{name: c, source: ledger, sql: 'SELECT 1', expect: zero_rows}]",
            "may not use data source ledger",
        ),
        (
            &format!("{SCRIPT}, params: [{{name: pw, value: '${{secret.FIN_PW}}'}}]"),
            "job STEAL of group risk may not use secret FIN_PW, which is for fin (owner)",
        ),
    ] {
        let both = format!(
            "{}{}",
            SHARED.replace("groups: {fin: {}}", "groups: {fin: {}, risk: {}}"),
            of_risk(job).lines().skip(2).map(|line| format!("{line}\n")).collect::<String>()
        );
        write(path, &both);
        refused(path, &["check", "risk.yaml"], words);
        refused(path, &["check", "risk.yaml"], "risk.yaml:12:");
        refused(path, &["check", "risk.yaml"], "ask an administrator of all groups");
    }
}

#[test]
fn what_another_file_keeps_for_its_group_is_refused_before_anything_is_stored() {
    let home = home();
    let path = home.path();
    write(
        path,
        &of_risk("type: SQL, source: ledger, sql: 'SELECT 1'").replace(
            "jobs:",
            // As somebody would who does not know the address and hopes to overwrite the rule.
            "sources: {ledger: {url: 'sqlite:ledger.db', owner_group: fin}}\njobs:",
        ),
    );
    let words = "may not use data source ledger";
    refused(path, &["check", "risk.yaml"], words);
    write(
        path,
        &of_risk(&format!("{SCRIPT}, params: [{{name: pw, value: '${{secret.FIN_PW}}'}}]")),
    );
    let words = "job STEAL of group risk may not use secret FIN_PW, which is for fin (owner); ask an \
                 administrator of all groups";
    for args in [
        &["apply", "risk.yaml"][..],
        &["plan", "risk.yaml", "--batch-no", "1"],
        &["run", "risk.yaml", "--batch-no", "1"],
        &["batch", "open", "risk.yaml", "--batch-no", "1"],
    ] {
        refused(path, args, words);
    }
    let groups = well(path, &["--json", "job", "list"]);
    assert!(!groups.contains("STEAL"), "{groups}");
    assert!(!path.join("it-ran").exists());
    // A list lets it in, and no list every group.
    write(
        path,
        &of_risk("type: SQL, source: rates, sql: 'SELECT 1'").replace(
            "jobs:",
            "sources: {rates: {url: 'sqlite:rates.db', groups: [fin, risk]}}\njobs:",
        ),
    );
    well(path, &["run", "risk.yaml", "--batch-no", "1"]);
}

#[test]
fn a_rule_that_is_narrowed_holds_for_what_is_stored_already() {
    let home = home();
    let path = home.path();
    let source = "sources: {rates: {url: 'sqlite:rates.db', groups: [fin, risk]}}\njobs:";
    write(path, &of_risk("type: SQL, source: rates, sql: 'SELECT 1'").replace("jobs:", source));
    well(path, &["apply", "risk.yaml"]);
    well(path, &["batch", "open", "--batch-no", "1", "--group", "risk"]);
    let narrowed = SHARED.replace("groups: [fin, risk]", "groups: [fin]");
    std::fs::write(path.join("shared.yaml"), narrowed).expect("file");
    well(path, &["apply", "shared.yaml"]);
    let words = "group risk cannot be opened, because it uses what is not for it:\n  job STEAL of group \
                 risk may not use data source rates, which is for fin; ask an administrator of all groups";
    refused(path, &["batch", "open", "--batch-no", "2", "--group", "risk"], words);
    refused(path, &["plan", "--batch-no", "2", "--group", "risk"], words);
}

/// A batch that goes on by the latest definition takes the rule over with the source.
#[test]
fn a_rerun_by_the_latest_definition_holds_to_the_rule_of_today() {
    let home = home();
    let path = home.path();
    let source = "sources: {rates: {url: 'sqlite:rates.db', groups: [fin, risk]}}\njobs:";
    write(
        path,
        &of_risk("type: SQL, source: rates, sql: 'SELECT 1 FROM missing'").replace("jobs:", source),
    );
    let (code, ..) = said(path, &["run", "risk.yaml", "--batch-no", "1", "--no-connect"]);
    assert_eq!(code, 1, "there is no such table");
    let narrowed = SHARED.replace("groups: [fin, risk]", "groups: [fin]");
    std::fs::write(path.join("shared.yaml"), narrowed).expect("file");
    well(path, &["apply", "shared.yaml"]);
    let rerun = [
        "batch",
        "rerun",
        "1",
        "--group",
        "risk",
        "--from-failure",
        "--latest",
        "--reason",
        "x",
        "--yes",
    ];
    let (.., told) = said(path, &rerun);
    let (code, shown, more) =
        said(path, &["run", "--batch-no", "1", "--group", "risk", "--resume"]);
    let all = format!("{told}{shown}{more}");
    assert!(code != 0 && all.contains("may not use data source rates, which is for fin"), "{all}");
}

#[test]
fn a_parameter_of_all_groups_hands_no_foreign_secret_to_an_attempt() {
    let home = home();
    let path = home.path();
    write(path, &of_risk(&format!("{SCRIPT}, params: [{{name: x, value: '${{params.all_pw}}'}}]")));
    let environment = [("FIN_PW", "hunter2-of-fin")];
    well(path, &["apply", "risk.yaml"]);
    let args = ["run", "--batch-no", "1", "--group", "risk"];
    let ran = run_with_input(path, &args, &environment, "");
    let (code, shown, told) = (ran.code, ran.out, ran.err);
    assert_eq!(code, 1, "{shown}{told}");
    let words = "group risk may not use secret FIN_PW, which is for fin (owner)";
    assert!(format!("{shown}{told}").contains(words), "{shown}{told}");
    assert!(!path.join("it-ran").exists());
}

#[test]
fn stored_secrets_keep_their_groups_when_they_are_set_anew() {
    let home = home();
    let path = home.path();
    let key = well(path, &["secret", "key"]);
    let set = |args: &[&str], value: &str| {
        let all = [&["secret", "set", "FEED"], args].concat();
        let ran = run_with_input(path, &all, &[("PROCESSION_SECRET_KEY", key.trim())], value);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        ran.err
    };
    assert!(set(&["--owner-group", "fin"], "first-password").contains("for fin (owner)"));
    // A new password opens nothing.
    assert!(set(&[], "second-password").contains("for fin (owner)"));
    write(path, &of_risk(&format!("{SCRIPT}, params: [{{name: pw, value: '${{secret.FEED}}'}}]")));
    refused(path, &["apply", "risk.yaml"], "may not use secret FEED, which is for fin (owner)");
    assert!(
        set(&["--owner-group", "fin", "--group", "risk"], "third-password")
            .contains("fin (owner), risk")
    );
    well(path, &["apply", "risk.yaml"]);
    assert!(set(&["--every-group"], "fourth-password").contains("for every group"));
    let list = well(path, &["--json", "secret", "list"]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list[0]["owner_group"], serde_json::Value::Null, "{list}");
}

/// Executors are no part of a file: who may use them is asked of the installation wherever a file is read.
#[test]
fn executors_of_another_group_are_refused_before_anything_is_stored() {
    let home = home();
    let path = home.path();
    let key = well(path, &["secret", "key"]);
    let admin = |args: &[&str]| {
        let ran = run_with_input(path, args, &[("PROCESSION_SECRET_KEY", key.trim())], "");
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        ran.err
    };
    let job = "type: HANDLER, executor: {app: fin-executor, handler: pay}, on_unknown: hold";
    let said = admin(&["executor-group", "add", "fin-executor", "--owner-group", "fin"]);
    assert!(said.contains("executor group fin-executor is added; for fin (owner)"), "{said}");
    write(path, &of_risk(job));
    let words = "job STEAL of group risk may not use executor group fin-executor, which is for fin (owner); ask an \
                 administrator of all groups";
    // Without --connect nothing but the file is read, which says nothing of executors.
    well(path, &["check", "risk.yaml"]);
    for args in [
        &["check", "risk.yaml", "--connect"][..],
        &["apply", "risk.yaml"],
        &["plan", "risk.yaml", "--batch-no", "1"],
        &["run", "risk.yaml", "--batch-no", "1"],
        &["batch", "open", "risk.yaml", "--batch-no", "1"],
    ] {
        refused(path, args, words);
    }
    assert!(!well(path, &["--json", "job", "list"]).contains("STEAL"));
    // A list lets it in; what is stored then is held against the rule of each opening.
    admin(&["executor-group", "set", "fin-executor", "--owner-group", "fin", "--group", "risk"]);
    well(path, &["apply", "risk.yaml"]);
    well(path, &["batch", "open", "--batch-no", "1", "--group", "risk"]);
    admin(&["executor-group", "set", "fin-executor", "--owner-group", "fin"]);
    refused(path, &["batch", "open", "--batch-no", "2", "--group", "risk"], words);
    let said = admin(&["executor-group", "set", "fin-executor", "--title", "Finance"]);
    assert!(said.contains("for fin (owner)"), "another title opens nothing: {said}");
    let list = well(path, &["--json", "executor-group", "list"]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!((&list[0]["owner_group"], &list[0]["groups"]), (&"fin".into(), &().into()));
    admin(&["executor-group", "set", "fin-executor", "--every-group"]);
    well(path, &["batch", "open", "--batch-no", "2", "--group", "risk"]);
}

#[test]
fn a_key_is_written_for_its_owner_alone_and_over_no_other() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("folder");
    let path = home.path();
    let args = ["secret", "key", "--out", "seal.key"];
    let shown = well(path, &args);
    let file = path.join("seal.key");
    let key = std::fs::read_to_string(&file).expect("the key");
    assert_eq!(std::fs::metadata(&file).expect("file").permissions().mode() & 0o777, 0o600);
    assert!(key.trim().len() > 40 && !shown.contains(key.trim()), "{shown}");
    refused(path, &args, "there is a file already, and it is left as it is");
    assert_eq!(std::fs::read_to_string(&file).expect("the key"), key);
    let file = file.display().to_string();
    let environment = [("PROCESSION_SECRET_KEY_FILE", file.as_str())];
    well(path, &["migrate"]);
    let ran = run_with_input(path, &["secret", "set", "FEED"], &environment, "a-password");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

/// Where nobody knows that scripts are kept from Procession, who grants `script` is told what that is.
#[test]
fn who_grants_script_is_told_what_it_is() {
    let home = home();
    let path = home.path();
    let add = |name: &str, more: &[&str]| {
        let all = [&["user", "add", name, "--role", "author", "--group", "fin"], more].concat();
        let (code, shown, told) = said(path, &all);
        assert_eq!(code, 0, "{shown}{told}");
        told
    };
    let words = "the right script in group fin is the right to all that Procession may do";
    assert!(add("ann", &["--right", "script"]).contains(words));
    assert!(!add("bob", &[]).contains("the right script"));
}
