//! The files in `deploy` and what docs/deploy.md says: each can be read by whoever is to read it, and names
//! only settings, variables, commands and flags that there are.

use crate::ops::program::{procession, root, said};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

fn text(path: &str) -> String {
    std::fs::read_to_string(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Variables that the program reads, or sets for scripts.
fn variables() -> BTreeSet<String> {
    fn gather(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                gather(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("text");
                let quoted = text.split('"').filter(|w| w.starts_with("PROCESSION_"));
                found.extend(quoted.map(str::to_owned));
            }
        }
    }
    let mut found = BTreeSet::new();
    gather(&root("src"), &mut found);
    found
}

/// The words `PROCESSION_…` in a text, but for those that stand for others (`PROCESSION_SOURCE_NAME`).
fn named(text: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c: char| !is_of_name(c)).filter(|w| w.starts_with("PROCESSION_"));
    let stands_for = ["PROCESSION_SOURCE_", "PROCESSION_CHANNEL_", "PROCESSION_HOST_"];
    words.filter(|w| !stands_for.iter().any(|s| w.starts_with(s))).map(str::to_owned).collect()
}

/// Lines of fenced blocks.
fn fenced(page: &str) -> Vec<&str> {
    let mut is_inside = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
        } else if is_inside {
            lines.push(line);
        }
    }
    lines
}

/// What stands behind the word `procession` of a shell's line, up to the end of that command.
fn command_of(line: &str) -> Option<Vec<String>> {
    let line = line.split(" #").next().unwrap_or_default();
    let mut words = line.split_whitespace().map(|w| w.trim_matches(['`', '"', '\'']));
    words.find(|w| *w == "procession" || w.ends_with("/bin/procession"))?;
    let ends = ["|", ">", "<", "&&", ";", "||", "\\"];
    let words: Vec<String> = words.take_while(|w| !ends.contains(w)).map(str::to_owned).collect();
    words.first().is_some_and(|w| w.chars().all(|c| c.is_ascii_lowercase())).then_some(words)
}

/// What `--help` says, asked once for each command.
#[derive(Default)]
struct Help(BTreeMap<Vec<String>, String>);

impl Help {
    fn of(&mut self, verbs: &[String]) -> String {
        let ask = || {
            let dir = tempfile::tempdir().expect("folder");
            let output = procession(dir.path()).args(verbs).arg("--help").output();
            let output = output.expect("it runs");
            assert!(
                output.status.success(),
                "there is no `{}`: {}",
                verbs.join(" "),
                said(&output)
            );
            said(&output)
        };
        self.0.entry(verbs.to_vec()).or_insert_with(ask).clone()
    }

    /// Every verb and flag is one that the program has.
    fn check(&mut self, place: &str, words: &[String]) {
        let mut verbs: Vec<String> = words.iter().take(1).cloned().collect();
        let mut help = self.of(&verbs);
        if let Some(second) =
            words.get(1).filter(|w| help.contains("\nCommands:") && !w.starts_with('-'))
        {
            verbs.push(second.clone());
            help = self.of(&verbs);
        }
        for flag in words.iter().filter(|w| w.starts_with("--")) {
            let flag = flag.split('=').next().unwrap_or_default();
            let has =
                help.split(|c: char| c.is_whitespace() || c == ',' || c == '=').any(|w| w == flag);
            assert!(has, "{place}: `{}` has no {flag}", verbs.join(" "));
        }
    }
}

#[test]
fn the_unit_starts_what_there_is_and_systemd_can_read_it() {
    let unit = text("deploy/procession.service");
    let drop_in = text("deploy/procession.service.d/secrets.conf");
    let mut help = Help::default();
    let start = unit.lines().find(|l| l.starts_with("ExecStart=")).expect("ExecStart");
    help.check("procession.service", &command_of(&start.replace('=', " ")).expect("a command"));
    for word in
        ["KillMode=mixed", "KillSignal=SIGTERM", "Restart=on-failure", "NoNewPrivileges=yes"]
    {
        assert!(unit.lines().any(|l| l == word), "procession.service must say {word}");
    }
    let known = variables();
    for name in named(&unit).union(&named(&drop_in)) {
        assert!(known.contains(name), "{name} is no variable of the program");
    }
    // Where systemd is, it says more; it wants to find the program that is to start.
    let dir = tempfile::tempdir().expect("folder");
    let copy = dir.path().join("procession.service");
    let program = env!("CARGO_BIN_EXE_procession");
    let text = unit.replace("/usr/local/bin/procession", program);
    std::fs::write(&copy, text).expect("a file can be written");
    if let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&copy).output() {
        let words = said(&output);
        let about = words.lines().filter(|l| l.contains("procession.service")).collect::<Vec<_>>();
        assert!(output.status.success() || about.is_empty(), "{about:?}");
        assert!(!words.contains("Unknown"), "{words}");
    }
}

#[test]
fn the_compose_file_names_only_what_there_is() {
    let page = text("deploy/compose.yaml");
    let compose: Value = serde_saphyr::from_str(&page).expect("compose.yaml is YAML");
    let known = variables();
    for name in named(&page) {
        assert!(known.contains(&name), "{name} is no variable of the program");
    }
    let mut help = Help::default();
    let services = compose["services"].as_object().expect("services");
    let volumes = compose["volumes"].as_object().expect("volumes");
    for (name, service) in services {
        let is_ours = service["build"]["dockerfile"] == "deploy/Dockerfile";
        let words = |v: &Value| -> Vec<String> {
            let list = v.as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if is_ours {
            help.check(name, &words(&service["command"]));
            let check = words(&service["healthcheck"]["test"]);
            if !check.is_empty() {
                help.check(name, &check[2..]);
            }
        }
        for needed in service["depends_on"].as_object().into_iter().flat_map(|d| d.keys()) {
            let profiles = |of: &str| words(&services[of]["profiles"]);
            assert_eq!(profiles(name), profiles(needed), "{name} and {needed}");
        }
        for mount in words(&service["volumes"]) {
            let volume = mount.split(':').next().unwrap_or_default().to_owned();
            assert!(volumes.contains_key(&volume), "{name}: no volume {volume}");
        }
        for secret in words(&service["secrets"]) {
            assert!(compose["secrets"].get(&secret).is_some(), "{name}: no secret {secret}");
        }
        for (key, value) in service["environment"].as_object().into_iter().flatten() {
            let is_said = !value.as_str().unwrap_or_default().starts_with("/run/secrets/");
            let is_random = key.contains("_RANDOM_");
            assert!(
                !key.contains("PASSWORD") || !is_said || is_random,
                "{name}: {key} is written down"
            );
        }
    }
}

#[test]
fn the_dockerfile_builds_from_what_there_is_and_runs_as_nobody_special() {
    let file = text("deploy/Dockerfile");
    let ignore = text(".dockerignore");
    let lines = || file.lines().map(str::trim);
    for line in lines().filter(|l| l.starts_with("COPY ") && !l.contains("--from")) {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        words.pop();
        for path in words {
            assert!(root(path).exists(), "{line}: there is no {path}");
            assert!(ignore.lines().any(|l| l == format!("!{path}")), ".dockerignore hides {path}");
        }
    }
    assert!(lines().any(|l| l == "USER 10001:10001"));
    let mut help = Help::default();
    for line in lines().filter(|l| l.starts_with("CMD") || l.starts_with("HEALTHCHECK")) {
        let (_, list) = line.split_once('[').expect("a list");
        let list: Vec<String> = serde_json::from_str(&format!("[{list}")).expect("a list of words");
        let words = list.strip_prefix(&["procession".to_owned()]).unwrap_or(&list);
        help.check("Dockerfile", words);
    }
    let known = variables();
    for name in named(&file) {
        assert!(known.contains(&name), "{name} is no variable of the program");
    }
}

#[test]
fn the_page_about_deployment_names_only_what_there_is() {
    let page = text("docs/deploy.md");
    let known = variables();
    for name in named(&page) {
        assert!(known.contains(&name), "docs/deploy.md: {name} is no variable of the program");
    }
    let mut help = Help::default();
    let commands: Vec<_> = fenced(&page).into_iter().filter_map(command_of).collect();
    assert!(commands.len() > 5, "{commands:?}");
    for words in commands {
        help.check("docs/deploy.md", &words);
    }
    for (_, rest) in page.match_indices("](").map(|(at, _)| page.split_at(at + 2)) {
        let target = rest.split([')', '#']).next().unwrap_or_default();
        if !target.is_empty() && !target.contains("://") {
            assert!(root("docs").join(target).exists(), "docs/deploy.md: no {target}");
        }
    }
    let blocks = page.split("```toml").skip(1).filter_map(|b| b.split("```").next());
    for block in blocks {
        let dir = tempfile::tempdir().expect("folder");
        let file = dir.path().join("procession.toml");
        std::fs::write(&file, block).expect("a file can be written");
        let read = procession::config::Config::load_file(Some(&file));
        assert!(read.is_ok(), "docs/deploy.md: {:#}\n{block}", read.expect_err("a fault"));
    }
}

#[test]
fn the_settings_in_packages_can_be_read() {
    let file = root("deploy/package/procession.toml");
    let read = procession::config::Config::load_file(Some(&file));
    assert!(read.is_ok(), "{:#}", read.expect_err("a fault"));
    let list = text("deploy/package/nfpm.yaml");
    for script in ["before-install", "after-install", "before-remove", "after-remove"] {
        assert!(root(&format!("deploy/package/{script}.sh")).exists(), "no {script}.sh");
        assert!(list.contains(&format!("{script}.sh")), "nfpm.yaml leaves out {script}.sh");
    }
}

#[test]
fn the_manifests_name_only_what_there_is() {
    let page = text("deploy/kubernetes/procession.yaml");
    let stateful = text("deploy/helm/procession/templates/statefulset.yaml");
    let helpers = text("deploy/helm/procession/templates/_helpers.tpl");
    let known = variables();
    for name in named(&page).union(&(&named(&stateful) | &named(&helpers))) {
        assert!(known.contains(name), "{name} is no variable of the program");
    }
    let mut help = Help::default();
    let commands: Vec<_> = page.lines().filter_map(|l| l.trim().strip_prefix("args: ")).collect();
    assert_eq!(commands.len(), 2, "migrate and serve");
    for list in commands {
        let words: Vec<String> = serde_json::from_str(list).expect("a list of words");
        help.check("procession.yaml", &words);
    }
    let settings = page.split("procession.toml: |").nth(1).and_then(|p| p.split("---").next());
    let settings: String =
        settings.expect("settings").lines().map(|l| format!("{}\n", l.trim())).collect();
    let dir = tempfile::tempdir().expect("folder");
    let file = dir.path().join("procession.toml");
    std::fs::write(&file, &settings).expect("a file can be written");
    let read = procession::config::Config::load_file(Some(&file));
    assert!(read.is_ok(), "{:#}\n{settings}", read.expect_err("a fault"));
}

#[test]
fn one_version_is_named_everywhere_and_the_changelog_has_it() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = text("deploy/helm/procession/Chart.yaml");
    for line in [format!("version: {version}"), format!("appVersion: \"{version}\"")] {
        assert!(chart.lines().any(|l| l == line), "Chart.yaml must say {line}");
    }
    let tag = format!("newTag: \"{version}\"");
    assert!(
        text("deploy/kubernetes/kustomization.yaml").contains(&tag),
        "kustomization.yaml: {tag}"
    );
    let plain = text("deploy/kubernetes/procession.yaml");
    assert_eq!(plain.matches(&format!("image: procession:{version}\n")).count(), 2);
    let head = format!("## [{version}] - 20");
    assert!(text("CHANGELOG.md").lines().any(|l| l.starts_with(&head)), "CHANGELOG.md: {head}");
    let core = text("crates/core/Cargo.toml");
    assert!(core.contains(&format!("\nversion = \"{version}\"\n")), "crates/core/Cargo.toml");
}

#[test]
fn the_release_pins_what_others_wrote() {
    let page = text(".github/workflows/release.yml");
    let uses: Vec<_> = page.lines().filter_map(|l| l.split("uses: ").nth(1)).collect();
    assert!(uses.len() > 5, "{uses:?}");
    for action in uses {
        let commit = action.split(['@', ' ']).nth(1).unwrap_or_default();
        let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
        assert!(is_commit, "{action}: name a commit, and the version in a comment");
    }
    let scripts = page.split_whitespace().filter(|w| w.starts_with("scripts/"));
    for script in scripts.chain(["scripts/release.sh"]) {
        assert!(root(script.trim_end_matches(';')).exists(), "there is no {script}");
    }
}
