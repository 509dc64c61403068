//! The console's code: laid out by Prettier, without findings of ESLint, its logic tested in Node.js (tests/node).

use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs Node.js in the repository with these arguments; they have to end well.
fn node(arguments: &[&str]) {
    let output = Command::new("node").current_dir(ROOT).args(arguments).output();
    let output = output.expect("node runs; scripts/test-node.sh installs what is missing");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "node {}:\n{}", arguments.join(" "), text.concat());
}

#[test]
fn it_is_laid_out_by_prettier() {
    let prettier = "tests/node/node_modules/prettier/bin/prettier.cjs";
    let options = [
        "--config",
        "tests/node/prettier.config.mjs",
        "--ignore-path",
        "tests/node/.prettierignore",
    ];
    let checked = ["--check", "src/console/js", "tests/node"];
    node(&[[prettier].as_slice(), &options, &checked].concat());
}

#[test]
fn eslint_finds_nothing() {
    let eslint = "tests/node/node_modules/eslint/bin/eslint.js";
    node(&[eslint, "--config", "tests/node/eslint.config.mjs", "src/console/js", "tests/node"]);
}

#[test]
fn its_logic_keeps_its_rules() {
    let setup = format!("file://{ROOT}/tests/node/console/setup.mjs");
    let mut arguments = vec!["--import".to_owned(), setup, "--test".to_owned()];
    let folder = std::fs::read_dir(format!("{ROOT}/tests/node/console")).expect("the folder");
    let files = folder.map(|file| file.expect("an entry").path().display().to_string());
    arguments.extend(files.filter(|file| file.ends_with(".test.mjs")));
    assert!(arguments.len() > 5, "the tests are found: {arguments:?}");
    node(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
}
