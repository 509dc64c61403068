//! The real program, with nothing of this machine's settings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where the project stands.
pub(crate) fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The program, with a database and settings in `dir`.
pub(crate) fn procession(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PROCESSION_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    command.current_dir(dir).args(["--lang", "en", "--db", "sqlite:p.db"]);
    command
}

/// What it said on both channels.
pub(crate) fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Writes a file there.
pub(crate) fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).expect("a file can be written");
}
