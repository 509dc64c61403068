//! Definitions: read here with all files that they name, and sent completely.

use crate::app::job_kinds;
use crate::cli::server::{ServerVerb, TableColumn};
use crate::cli::{BadInput, VerbResult, out};
use crate::definition;
use anyhow::Result;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

const CHANGES: &[TableColumn] =
    &[("how", "", ""), ("entity", "ENTITY", "对象"), ("code", "CODE", "代码")];

/// The files of a definition, by their names relative to the main one, in the form sent.
fn gathered(main: &Path) -> Result<Value> {
    let folder = if main.is_dir() { main } else { main.parent().unwrap_or(Path::new("")) };
    let files: RefCell<BTreeMap<String, String>> = RefCell::default();
    let outside: RefCell<Option<PathBuf>> = RefCell::default();
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path)?;
        match beside(path, folder) {
            Some(name) => drop(files.borrow_mut().insert(name, text.clone())),
            None => *outside.borrow_mut() = Some(path.to_owned()),
        }
        Ok(text)
    };
    // Faults are reported here, by the same rules, before anything is sent.
    definition::load_definition(main, &read, &job_kinds())?;
    if let Some(path) = outside.into_inner() {
        let sentence = format!(
            "{}: lies outside the folder of the definition; what is sent to a server lies beside it",
            path.display()
        );
        return Err(BadInput(sentence).into());
    }
    let name = match main.is_dir() {
        true => "job_def.csv".to_owned(),
        false => main.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    Ok(json!({"files": files.into_inner(), "main": name}))
}

/// A path relative to the definition's directory; `None` when it leads out of it.
fn beside(path: &Path, folder: &Path) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in path.strip_prefix(folder).ok()?.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

impl ServerVerb<'_> {
    fn request_body(&self) -> Result<Value> {
        gathered(&self.arguments.file_path("file").unwrap_or_default())
    }

    /// `check`: also by the server, which knows calendars and schedules.
    pub(super) async fn check(&self) -> Result<VerbResult> {
        if self.arguments.has_flag("lineage") {
            let sentence =
                "check --lineage reads data sources from this machine: leave out --server";
            return Err(BadInput(sentence.to_owned()).into());
        }
        let checked =
            self.server.post_json(&["definition", "check"], &self.request_body()?).await?;
        self.print_document(&checked, &[("faults", FAULTS), ("warnings", FAULTS)])?;
        match checked["ok"].as_bool() {
            Some(true) => Ok(VerbResult::Well),
            Some(false) | None => Err(BadInput("the definition has faults".to_owned()).into()),
        }
    }

    /// `apply`.
    pub(super) async fn apply(&self) -> Result<VerbResult> {
        let mut body = self.request_body()?;
        body["remark"] = json!(self.remark("applied from the command line"));
        body["dry_run"] = json!(self.arguments.has_flag("dry_run"));
        self.changed(&self.server.post_json(&["definition", "apply"], &body).await?)
    }

    /// `diff`: exit code 1 when something differs.
    pub(super) async fn diff_definition(&self) -> Result<VerbResult> {
        let document =
            self.server.post_json(&["definition", "diff"], &self.request_body()?).await?;
        self.changed(&document)?;
        let is_same = document["changes"].as_array().is_none_or(Vec::is_empty);
        Ok(if is_same { VerbResult::Well } else { VerbResult::Differs })
    }

    /// `rollback`.
    pub(super) async fn rollback(&self) -> Result<VerbResult> {
        let body = json!({"to": self.arguments.number("to"), "reason": self.arguments.value("reason"),
            "dry_run": self.arguments.has_flag("dry_run")});
        let group = self.arguments.required_value("group");
        self.changed(&self.server.post_json(&["groups", &group, "rollback"], &body).await?)
    }

    fn remark(&self, otherwise: &str) -> String {
        self.arguments.value("remark").unwrap_or_else(|| otherwise.to_owned())
    }

    fn changed(&self, document: &Value) -> Result<VerbResult> {
        let items = document["changes"].as_array().map_or(&[][..], Vec::as_slice);
        for warning in document["warnings"].as_array().into_iter().flatten() {
            let word = |name: &str| warning[name].as_str().unwrap_or_default();
            let (file, what, cure) = (word("file"), word("what"), word("fix"));
            out::eprint_line(&format!("warning: {file}:{}: {what}; {cure}", warning["line"]));
        }
        if self.global.json {
            out::print_json(document)?;
            return Ok(VerbResult::Well);
        }
        if !items.is_empty() {
            super::shown::table(items, CHANGES, self.language());
        }
        let count = out::count(items.len(), "change");
        let verdict = match (items.is_empty(), document["applied"].as_bool()) {
            (true, _) => "no changes".to_owned(),
            (false, Some(true)) => format!("{count} applied"),
            (false, _) => format!("{count} would be applied"),
        };
        out::print_line(&out::message(&verdict));
        Ok(VerbResult::Well)
    }

    /// `export`.
    pub(super) async fn export(&self) -> Result<VerbResult> {
        for flag in ["map_source", "set_url"] {
            if !self.arguments.values(flag).is_empty() {
                let sentence =
                    "--map-source and --set-url are not for a server; change the file afterwards";
                return Err(BadInput(sentence.to_owned()).into());
            }
        }
        let format =
            if self.global.json { Some("json".to_owned()) } else { self.arguments.value("format") };
        let group = self.arguments.value("group").map(|group| ("group", group));
        let query: Vec<(&str, String)> =
            group.into_iter().chain(format.map(|format| ("format", format))).collect();
        let text = self.server.get_text(&["definition", "export"], &query).await?;
        match self.arguments.file_path("out") {
            None => out::print_line(text.strip_suffix('\n').unwrap_or(&text)),
            Some(path) => std::fs::write(&path, text)
                .map_err(|error| BadInput(format!("--out {}: {error}", path.display())))?,
        }
        Ok(VerbResult::Well)
    }
}

const FAULTS: &[TableColumn] = &[
    ("file", "FILE", "文件"),
    ("line", "LINE", "行"),
    ("what", "WHAT", "问题"),
    ("fix", "FIX", "处理"),
];
