//! A folder with a file for each secret, with the real program.

use super::write_private;
use crate::cli::said;
use std::os::unix::fs::symlink;
use std::path::Path;

const DAG: &str = "
groups: {fin: {}}
secrets: {LEDGER_PW: {env: NOT_SET}}
jobs:
  A: {group: fin, type: SCRIPT, interpreter: sh, script: 'echo \"x $PROCESSION_PARAM_PW x\"; printf %s \"$PROCESSION_PARAM_PW\" | tr a-z A-Z',
      params: [{name: pw, value: '${secret.LEDGER_PW}'}]}
";

/// As Kubernetes lays a mount: the files are links into a folder that is exchanged whole.
fn mount(folder: &Path, version: &str, value: &str) {
    let path = folder.join(version);
    std::fs::create_dir_all(&path).expect("folder");
    write_private(&path.join("ledger-password"), value);
    symlink(version, folder.join("..next")).expect("a link");
    std::fs::rename(folder.join("..next"), folder.join("..data")).expect("exchanged");
    let link = folder.join("ledger-password");
    if !link.exists() {
        symlink("..data/ledger-password", link).expect("a link");
    }
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("folder");
    let path = home.path();
    std::fs::create_dir(path.join("mount")).expect("folder");
    mount(&path.join("mount"), "..1", "first-password\n");
    let settings = format!(
        "[secret_stores.k8s]\ntype = 'folder'\npath = '{}'\n\
         secrets.LEDGER_PW = {{ key = 'ledger-password', groups = ['fin'] }}\n",
        path.join("mount").display()
    );
    std::fs::write(path.join("procession.toml"), settings).expect("settings");
    std::fs::write(path.join("dag.yaml"), DAG).expect("file");
    home
}

fn log_of(path: &Path, batch: &str) -> String {
    let (code, shown, told) = said(path, &["run", "dag.yaml", "--batch-no", batch]);
    assert_eq!(code, 0, "{shown}{told}");
    said(path, &["logs", batch, "A", "--group", "fin"]).1
}

#[test]
fn a_value_is_read_for_each_attempt_and_masked() {
    let home = home();
    let path = home.path();
    let log = log_of(path, "1");
    assert!(log.contains("x *** x") && log.contains("FIRST-PASSWORD"), "{log}");
    mount(&path.join("mount"), "..2", "second-password\n");
    let log = log_of(path, "2");
    assert!(log.contains("x *** x") && log.contains("SECOND-PASSWORD"), "{log}");
    assert!(!log.contains("second-password"), "{log}");
}

#[test]
fn only_the_groups_of_the_settings_may_use_it() {
    let home = home();
    let path = home.path();
    said(path, &["apply", "dag.yaml"]);
    let foreign = DAG.replace("fin", "risk").replace("  A:", "  STEAL:");
    std::fs::write(path.join("risk.yaml"), foreign).expect("file");
    let words = "job STEAL of group risk may not use secret LEDGER_PW, which is for fin; ask an administrator of \
                 all groups";
    for args in [
        &["check", "risk.yaml"][..],
        &["apply", "risk.yaml"],
        &["plan", "risk.yaml", "--batch-no", "1"],
        &["run", "risk.yaml", "--batch-no", "1"],
    ] {
        let (code, shown, told) = said(path, args);
        assert_eq!(code, 2, "{args:?}: {shown}{told}");
        assert!(format!("{shown}{told}").contains(words), "{args:?}: {shown}{told}");
    }
    // By a parameter of all groups nothing is seen before the attempt.
    let hidden = "
groups: {risk: {}}
params: {all_pw: {secret: true, value: '${secret.LEDGER_PW}'}}
jobs:
  STEAL: {group: risk, type: SCRIPT, interpreter: sh, script: 'touch it-ran',
          params: [{name: pw, value: '${params.all_pw}'}]}
";
    std::fs::write(path.join("risk.yaml"), hidden).expect("file");
    let (code, shown, told) = said(path, &["run", "risk.yaml", "--batch-no", "1"]);
    assert_eq!(code, 1, "{shown}{told}");
    let words = "group risk may not use secret LEDGER_PW, which is for fin";
    assert!(format!("{shown}{told}").contains(words), "{shown}{told}");
    assert!(!path.join("it-ran").exists());
}

#[test]
fn list_and_check_say_where_each_comes_from_and_show_no_value() {
    let home = home();
    let path = home.path();
    let declared = DAG.replace(
        "LEDGER_PW: {env: NOT_SET}",
        "LEDGER_PW: {env: NOT_SET}, ENDLESS: {file: /dev/zero}, HOME_PW: {env: HOME}",
    );
    std::fs::write(path.join("dag.yaml"), declared).expect("file");
    said(path, &["apply", "dag.yaml"]);
    let (code, shown, told) = said(path, &["--json", "secret", "check"]);
    assert_eq!(code, 1, "one of them cannot be read: {shown}{told}");
    let all: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let states: Vec<(&str, &str, &str)> = all
        .as_array()
        .expect("a list")
        .iter()
        .map(|s| ["name", "origin", "state"].map(|key| s[key].as_str().expect("a text")).into())
        .collect();
    assert_eq!(
        states,
        [
            ("ENDLESS", "definition", "fault"),
            ("HOME_PW", "definition", "ready"),
            ("LEDGER_PW", "secret_store", "ready"),
            ("LEDGER_PW", "definition", "overridden"),
        ]
    );
    assert_eq!(all[0]["fault"], "secret ENDLESS: /dev/zero is a device; name a regular file");
    assert_eq!(all[2]["place"], "folder k8s, file ledger-password");
    assert!(!shown.contains("first-password"), "{shown}");
    assert_eq!(said(path, &["secret", "check", "LEDGER_PW"]).0, 0);
    assert_eq!(said(path, &["secret", "check", "NONE"]).0, 2);
    let key = said(path, &["secret", "key"]).1;
    let set = crate::params::run_with_input(
        path,
        &["secret", "set", "LEDGER_PW"],
        &[("PROCESSION_SECRET_KEY", key.trim())],
        "another-password\n",
    );
    assert_eq!(set.code, 2);
    assert!(set.err.contains("a stored one would not be used"), "{}", set.err);
}
