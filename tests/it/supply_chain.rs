//! What of others comes with Procession: `docs/third-party.json` names each file in the repository that others wrote,
//! with its digest. Crates are in the SBOM (`scripts/sbom.sh`) and in `deny.toml`.

use ring::digest::{SHA256, digest};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LIST: &str = "docs/third-party.json";

/// Signs that somebody else wrote a file: a licence or a copyright in it, a bundler's marks.
const SIGNS: &[&str] = &[
    "Copyright (c)",
    "Copyright ©",
    "@license",
    "@preserve",
    "SPDX-License-Identifier",
    "sourceMappingURL",
    "define.amd",
    "licence MIT",
    "licence Apache",
    "\"licence\":",
];
/// A longer line of script or style was not written by hand.
const LINE_MAX: usize = 1_000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn components() -> Vec<Value> {
    let text = std::fs::read_to_string(root().join(LIST)).expect(LIST);
    let list: Value = serde_json::from_str(&text).expect("JSON");
    list["components"].as_array().expect("components").clone()
}

/// Each listed file with its digest.
fn listed_files(components: &[Value]) -> BTreeMap<String, String> {
    let files = components.iter().flat_map(|component| {
        component["files"].as_object().expect("files").iter().collect::<Vec<_>>()
    });
    files.map(|(path, digest)| (path.clone(), digest.as_str().expect("hex").to_owned())).collect()
}

fn hex_digest(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is wrong with listed files in a folder.
fn find_changed_files(folder: &Path, listed: &BTreeMap<String, String>) -> Vec<String> {
    let fault = |(path, wanted): (&String, &String)| match std::fs::read(folder.join(path)) {
        Ok(bytes) if &hex_digest(&bytes) == wanted => None,
        Ok(bytes) => {
            Some(format!("{path} has SHA-256 {}, and {LIST} says {wanted}", hex_digest(&bytes)))
        }
        Err(error) => Some(format!("{path} is in {LIST} and cannot be read: {error}")),
    };
    listed.iter().filter_map(fault).collect()
}

/// Why a file is probably not ours; `None` when nothing speaks for it.
fn sign_of_others(text: &str) -> Option<String> {
    if let Some(sign) = SIGNS.iter().find(|sign| text.contains(**sign)) {
        return Some(format!("it holds {sign:?}"));
    }
    let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    (longest > LINE_MAX).then(|| format!("a line of it has {longest} characters"))
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry of a folder").path();
        match path.is_dir() {
            true => files_below(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn files_of_others_are_as_listed() {
    let faults = find_changed_files(root(), &listed_files(&components()));
    let fix = format!("take the new version and digest over into {LIST}, or restore the file");
    assert!(faults.is_empty(), "{}\n{fix}", faults.join("\n"));
}

#[test]
fn a_changed_or_missing_file_is_found() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("lib.js"), "export const a = 1;\n").expect("file");
    let list = |path: &str, digest: String| BTreeMap::from([(path.to_owned(), digest)]);
    let right = hex_digest(b"export const a = 1;\n");
    assert_eq!(right.len(), 64);
    assert!(find_changed_files(folder.path(), &list("lib.js", right.clone())).is_empty());
    let wrong = find_changed_files(folder.path(), &list("lib.js", hex_digest(b"other")));
    assert!(wrong.len() == 1 && wrong[0].contains(&right), "{wrong:?}");
    let gone = find_changed_files(folder.path(), &list("gone.js", right));
    assert!(gone.len() == 1 && gone[0].contains("cannot be read"), "{gone:?}");
}

/// The console is compiled into the program, the examples come with it, the rest is the tests' data.
#[test]
fn files_that_others_wrote_are_in_the_list() {
    let listed = listed_files(&components());
    let mut files = Vec::new();
    for folder in ["src/console", "src/notify/templates", "dag-examples", "tests/data"] {
        files_below(&root().join(folder), &mut files);
    }
    assert!(files.len() > 100, "{} files", files.len());
    let mut unlisted = Vec::new();
    for path in files {
        let name = path.strip_prefix(root()).expect("below").to_string_lossy().replace('\\', "/");
        // Readme files tell of licences, inputs of fuzzing may hold anything, and dumps of our own tables have long
        // lines.
        let ours = ["tests/data/fuzz/", "tests/data/upgrade/"];
        let is_told =
            name.ends_with("README.md") || ours.iter().any(|folder| name.starts_with(folder));
        if is_told || listed.contains_key(&name) {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("file")).into_owned();
        unlisted.extend(sign_of_others(&text).map(|sign| format!("{name}: {sign}")));
    }
    assert!(unlisted.is_empty(), "these are not in {LIST}:\n{}", unlisted.join("\n"));
}

#[test]
fn the_signs_of_others_are_known() {
    for text in ["/*! @license MIT */", "// Copyright (c) 2020 A", &"x".repeat(1_001)] {
        assert!(sign_of_others(text).is_some(), "{:?}", &text[..20.min(text.len())]);
    }
    assert_eq!(sign_of_others("export const a = 1;\n"), None);
}

/// The console names no address: what it loads is compiled in, and pages work without the outside.
#[test]
fn the_console_loads_its_own_files_alone() {
    let mut files = Vec::new();
    files_below(&root().join("src/console"), &mut files);
    // Swagger UI has links for readers in its texts; what it may load, the page's Content-Security-Policy decides.
    files.retain(|path| !path.starts_with(root().join("src/console/vendor")));
    let mut seen = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).expect("text");
        for line in text.lines() {
            let outside = line.replace("http://www.w3.org/", "");
            let is_loaded = ["src=", "href=", "import ", "import(", "from '", "url(", "fetch("]
                .iter()
                .any(|word| outside.contains(word));
            let is_address = outside.contains("https://") || outside.contains("http://");
            assert!(!(is_loaded && is_address), "{}: {line}", path.display());
            if let Some((_, module)) = line.split_once(" from '") {
                seen += 1;
                assert!(module.starts_with('.'), "{}: {line}", path.display());
            }
        }
    }
    assert!(seen > 100, "{seen} imports");
}

/// Every component has what an SBOM needs, and stands in the page.
#[test]
fn the_list_is_complete_and_shown() {
    let page = std::fs::read_to_string(root().join("docs/supply-chain.md")).expect("the page");
    let components = components();
    assert!(!components.is_empty());
    for component in &components {
        let word = |key: &str| component[key].as_str().unwrap_or_default();
        for key in ["name", "version", "licence", "source", "scope", "what"] {
            assert!(!word(key).is_empty(), "{}: {key} is missing", component["name"]);
        }
        assert!(["binary", "examples", "tests"].contains(&word("scope")), "{}", word("scope"));
        assert!(component["files"].as_object().is_some_and(|files| !files.is_empty()));
        let row = format!("| {} | `{:.7}` | {} |", word("name"), word("version"), word("licence"));
        assert!(page.contains(&row), "docs/supply-chain.md lacks the row\n{row}");
    }
}

/// The threat model names tests as its proofs; a test that is renamed or gone takes its proof with it.
#[test]
fn every_test_that_the_threat_model_names_is_there() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).expect("the page");
    let (_, table) = page.split_once("| threat | mechanism | shown by |").expect("the table");
    let (table, _) = table.split_once("\n\n").expect("its end");
    let mut files = Vec::new();
    files_below(&root().join("tests"), &mut files);
    files.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let sources: Vec<String> =
        files.iter().map(|path| std::fs::read_to_string(path).expect("source")).collect();
    let mut count = 0;
    for row in table.lines().filter(|row| row.starts_with("| ") && row.contains('`')) {
        let shown = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test in: {row}");
        for name in names {
            count += 1;
            // What runs on each database takes the database, or what stands on it.
            let head = format!("fn {name}(");
            assert!(
                sources.iter().any(|source| source.contains(&head)),
                "no test is called {name}"
            );
        }
    }
    assert!(count > 20, "{count} tests");
}
