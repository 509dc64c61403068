//! `secret rekey`, with the real program.

use crate::params::run_with_input;
use serde_json::Value;
use std::path::Path;

const DAG: &str = "
groups: {fin: {}}
secrets: {DECLARED: {sealed: 'SEALED', owner_group: fin}}
jobs:
  A: {group: fin, type: SCRIPT, interpreter: sh, script: 'echo \"x $PROCESSION_PARAM_A $PROCESSION_PARAM_B x\"',
      params: [{name: a, value: '${secret.STORED}'}, {name: b, value: '${secret.DECLARED}'}]}
";

struct Home {
    folder: tempfile::TempDir,
    old: String,
    new: String,
}

impl Home {
    /// A stored and a declared secret and a token of executors, sealed with the old key, and a batch that ended.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let key = || {
            let made = run_with_input(folder.path(), &["secret", "key"], &[], "");
            made.out.trim().to_owned()
        };
        let (old, new) = (key(), key());
        let home = Self { folder, old, new };
        let keys = home.old.clone();
        home.well(&keys, &["secret", "seal", "DECLARED"], "hunter-declared\n", |sealed| {
            let text = DAG.replace("SEALED", sealed.trim());
            std::fs::write(home.path().join("dag.yaml"), text).expect("file");
        });
        home.well(&keys, &["apply", "dag.yaml"], "", |_| ());
        let set = ["secret", "set", "STORED", "--owner-group", "fin"];
        home.well(&keys, &set, "hunter-stored\n", |_| ());
        home.well(&keys, &["executor-group", "add", "demo", "--title", "Demo"], "", |_| ());
        assert_eq!(home.run(&keys, "1"), 0);
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The new key first, then the old one, as in a file with a key in each line.
    fn both(&self) -> String {
        format!("{}\n{}\n", self.new, self.old)
    }

    fn well(&self, keys: &str, args: &[&str], input: &str, with: impl FnOnce(&str)) {
        let ran = run_with_input(self.path(), args, &[("PROCESSION_SECRET_KEY", keys)], input);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.out, ran.err);
        with(&ran.out);
    }

    fn run(&self, keys: &str, batch: &str) -> i32 {
        let args = ["run", "--batch-no", batch, "--group", "fin"];
        run_with_input(self.path(), &args, &[("PROCESSION_SECRET_KEY", keys)], "").code
    }

    /// The counts of a kind of sealed text: under the current key, a previous one, none.
    fn counts(&self, keys: &str, kind: &str) -> [u64; 3] {
        let args = ["--json", "secret", "rekey", "--check"];
        let ran = run_with_input(self.path(), &args, &[("PROCESSION_SECRET_KEY", keys)], "");
        let found: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(ran.code == 1, found["previous_key_needed"] == true, "{}", ran.out);
        let texts = &found["sealed_texts"][kind];
        ["current_key", "previous_key", "no_key"].map(|key| texts[key].as_u64().expect("a number"))
    }
}

#[test]
fn everything_stored_is_sealed_again_and_what_needs_the_old_key_is_counted() {
    let home = Home::new();
    let both = home.both();
    assert_eq!(home.counts(&both, "stored_secrets"), [0, 1, 0]);
    // A new secret is under the new key at once, and all can be read with both.
    home.well(&both, &["secret", "set", "LATER", "--owner-group", "fin"], "hunter-later\n", |_| ());
    assert_eq!(home.counts(&both, "stored_secrets"), [1, 1, 0]);
    assert_eq!(home.run(&both, "2"), 0);
    let mut replacement = String::new();
    home.well(&both, &["secret", "rekey", "--reason", "yearly"], "", |shown| {
        let line = shown.lines().find(|line| line.starts_with("DECLARED: {")).expect("a text");
        replacement = line.split('"').nth(1).expect("quotes").to_owned();
    });
    assert_eq!(home.counts(&both, "stored_secrets"), [2, 0, 0]);
    assert_eq!(home.counts(&both, "executor_tokens"), [1, 0, 0]);
    assert_eq!(home.counts(&both, "definition"), [0, 1, 0]);
    assert_eq!(home.counts(&both, "ended_batches"), [0, 2, 0]);
    // The file with the text that was printed needs the new key alone.
    let text = DAG.replace("SEALED", &replacement);
    std::fs::write(home.path().join("dag.yaml"), text).expect("file");
    home.well(&home.new, &["apply", "dag.yaml"], "", |_| ());
    assert_eq!(home.counts(&both, "definition"), [1, 0, 0]);
    assert_eq!(home.run(&home.new, "3"), 0);
    assert_eq!(home.run(&home.old, "4"), 1, "the old key opens nothing any more");
    assert_eq!(home.counts(&home.new, "ended_batches")[2], 2, "those two need the old key");
    let audit = run_with_input(home.path(), &["--json", "audit"], &[], "").out;
    assert!(audit.contains("secret rekey") && audit.contains("yearly"), "{audit}");
    assert!(!audit.contains("hunter"), "{audit}");
}

#[test]
fn a_process_that_is_killed_in_the_middle_leaves_everything_readable() {
    let home = Home::new();
    let both = home.both();
    for place in ["rekey.row=return(abort)", "rekey.row=1*off->return(abort)"] {
        let env = [("PROCESSION_SECRET_KEY", both.as_str()), ("FAILPOINTS", place)];
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_procession"));
        let ended = command.current_dir(home.path()).args(["secret", "rekey"]).envs(env).output();
        assert_eq!(ended.expect("it ran").status.code(), None, "{place}: it was killed");
        assert_eq!(home.counts(&both, "stored_secrets"), [0, 1, 0]);
        assert_eq!(home.counts(&both, "executor_tokens"), [0, 1, 0]);
        assert_eq!(home.run(&both, if place.contains("off") { "3" } else { "2" }), 0);
    }
    home.well(&both, &["secret", "rekey"], "", |_| ());
    assert_eq!(home.counts(&both, "stored_secrets"), [1, 0, 0]);
    home.well(&both, &["secret", "rekey"], "", |_| ());
    assert_eq!(home.counts(&both, "executor_tokens"), [1, 0, 0]);
}

#[test]
fn what_opens_with_no_key_is_named_and_the_rest_is_sealed_again() {
    let home = Home::new();
    let other = run_with_input(home.path(), &["secret", "key"], &[], "").out;
    home.well(&home.new, &["secret", "set", "ODD", "--owner-group", "fin"], "hunter-odd\n", |_| ());
    let keys = format!("{}\n{}", other.trim(), home.old);
    let args = ["secret", "rekey"];
    let ran = run_with_input(home.path(), &args, &[("PROCESSION_SECRET_KEY", &keys)], "");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("no key that is given opens: stored secret ODD"), "{}", ran.err);
    assert_eq!(home.counts(&keys, "stored_secrets"), [1, 0, 1]);
}

/// What the command line does to stored secrets is on record as what the API does.
#[test]
fn acts_on_stored_secrets_are_in_the_audit_log() {
    let home = Home::new();
    let keys = home.old.clone();
    home.well(
        &keys,
        &["secret", "set", "FX", "--owner-group", "fin", "--reason", "new"],
        "hunter-fx\n",
        |_| (),
    );
    home.well(
        &keys,
        &["secret", "grant", "FX", "--owner-group", "fin", "--group", "risk"],
        "",
        |_| (),
    );
    home.well(&keys, &["secret", "list", "--json"], "", |shown| {
        let all: Value = serde_json::from_str(shown).expect("JSON");
        let all = all.as_array().expect("a list");
        let fx = all.iter().find(|secret| secret["name"] == "FX").expect("it");
        assert_eq!((&fx["owner_group"], &fx["groups"][0]), (&"fin".into(), &"risk".into()));
        assert_eq!(fx["state"], "ready", "its value stays");
    });
    home.well(&keys, &["secret", "remove", "FX", "--reason", "old"], "", |_| ());
    home.well(&keys, &["audit", "--json"], "", |shown| {
        for words in ["secret set", "secret grant", "secret remove", "\"FX\""] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("hunter"), "{shown}");
    });
    let env = [("PROCESSION_SECRET_KEY", keys.as_str())];
    let gone = run_with_input(home.path(), &["secret", "grant", "FX", "--every-group"], &env, "");
    assert_eq!(gone.code, 2);
    assert!(gone.err.contains("there is no stored secret FX"), "{}", gone.err);
}
