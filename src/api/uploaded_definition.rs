//! Definitions sent as text: read like files, from the request alone.

use crate::api::caller::ApiRequest;
use crate::api::problem::Problem;
use crate::app;
use crate::app::task::on_busy_thread;
use crate::definition::{self, Budget, DefinitionFault, Faults, Loaded};
use crate::view::change::FaultAt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A definition as text: one file, or several of which one is the main one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct UploadedDefinition {
    /// The file, if there is only one.
    pub(super) text: Option<String>,
    /// The format of `text`; default YAML.
    pub(super) format: Option<UploadFormat>,
    /// Files by name, each as text: the main one, and those that it names (`script_file`, `include`
    /// …).
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Which of `files` is the main one; optional when only one is YAML or JSON, or `job_def.csv`
    /// is among them.
    pub(super) main: Option<String>,
}

/// The format of a definition.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum UploadFormat {
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

impl UploadedDefinition {
    /// Parses the definition, or returns all its faults. It runs on a blocking thread, a few at
    /// once, within the time limit of the settings.
    pub(super) async fn load_definition(
        self,
        ask: &ApiRequest,
    ) -> Result<Result<Loaded, Vec<FaultAt>>, Problem> {
        let limits = &ask.house.app.config.limits;
        let budget = Budget {
            bytes: limits.definition_bytes,
            depth: limits.definition_depth,
            nodes: limits.definition_nodes,
            aliases: limits.definition_aliases,
            jobs: limits.definition_jobs,
            for_each_items: limits.definition_for_each_items,
            is_of_server: true,
            expired: Arc::default(),
        };
        let (expired, seconds) = (budget.expired.clone(), limits.definition_sec);
        let place = ask.house.read_limits.enter_definition(ask.caller()?.user_id).await?;
        let reading = on_busy_thread(move || {
            // Held by the thread: a caller who disconnects does not allow another read.
            let _place = place;
            self.parse_files(budget)
        });
        match tokio::time::timeout(Duration::from_secs(seconds), reading).await {
            Ok(read) => read?,
            Err(_) => {
                expired.store(true, Ordering::Relaxed);
                Err(Problem::refused(format!(
                    "reading this definition takes longer than {seconds} seconds; split it, or ask the \
                     administrator of the server to raise limits.definition_sec"
                )))
            }
        }
    }

    /// The name of the main file in faults.
    pub(super) fn main_name(&self) -> String {
        match (&self.text, self.format) {
            (Some(_), Some(UploadFormat::Json)) => "definition.json".to_owned(),
            (Some(_), Some(UploadFormat::Yaml) | None) => "definition.yaml".to_owned(),
            (None, _) => self.main.clone().unwrap_or_else(|| "definition".to_owned()),
        }
    }

    fn parse_files(&self, budget: Budget) -> Result<Result<Loaded, Vec<FaultAt>>, Problem> {
        let mut files = BTreeMap::new();
        for (name, text) in &self.files {
            let inside = inside(Path::new(name)).ok_or_else(|| {
                let message = "write a name without '..' that does not begin with '/'";
                Problem::refused(format!("files: {name} lies outside what is sent; {message}"))
            })?;
            files.insert(inside, text.as_str());
        }
        let main = match &self.text {
            Some(text) => {
                let name = match self.format {
                    Some(UploadFormat::Json) => "definition.json",
                    Some(UploadFormat::Yaml) | None => "definition.yaml",
                };
                files.insert(PathBuf::from(name), text);
                PathBuf::from(name)
            }
            None => self.main(&files)?,
        };
        let read = |path: &Path| -> std::io::Result<String> {
            let Some(inside) = inside(path) else {
                let message = "lies outside what was sent, and files of the server are never read";
                return Err(Error::new(ErrorKind::Unsupported, message));
            };
            let found = files.get(&inside).map(|text| (*text).to_owned());
            found.ok_or_else(|| Error::from(ErrorKind::NotFound))
        };
        let loaded = definition::load_within(&main, &read, &app::job_kinds(), budget);
        Ok(loaded.map_err(|faults| faults_with_hints(&faults)))
    }

    /// Like `load_definition`; faults are an error.
    pub(super) async fn sound(self, ask: &ApiRequest) -> Result<Loaded, Problem> {
        self.load_definition(ask).await?.map_err(|faults| faulty(&faults))
    }

    fn main(&self, files: &BTreeMap<PathBuf, &str>) -> Result<PathBuf, Problem> {
        if let Some(name) = &self.main {
            let path = inside(Path::new(name)).filter(|path| files.contains_key(path));
            return path.ok_or_else(|| Problem::refused(format!("main: {name} is not in files")));
        }
        let table = PathBuf::from("job_def.csv");
        if files.contains_key(&table) {
            return Ok(table);
        }
        let is_tree = |path: &&PathBuf| {
            let word = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            ["yaml", "yml", "json"].contains(&word.to_ascii_lowercase().as_str())
        };
        let trees: Vec<&PathBuf> = files.keys().filter(is_tree).collect();
        match trees[..] {
            [one] => Ok(one.clone()),
            [] => Err(Problem::refused("send a definition: text, or files with their texts")),
            _ => Err(Problem::refused("main: say which of files is the main one")),
        }
    }
}

/// A normalised path within the request; `None` for one that leads outside.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut all = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => all.push(name),
            Component::CurDir => {}
            Component::ParentDir => all.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(all)
}

/// Faults; those about files with the hint for requests.
fn faults_with_hints(faults: &Faults) -> Vec<FaultAt> {
    let here = |fault: &DefinitionFault| {
        let mut told = FaultAt::from_fault(fault);
        let is_missing = told.what.ends_with("does not exist");
        if is_missing || told.what.contains("lies outside what was sent") {
            told.fix =
                "send it with the definition, in `files`, and name it as it is named there; \
                         or write its text in place"
                    .to_owned();
        }
        told
    };
    faults.as_slice().iter().map(here).collect()
}

/// 422 with every fault.
fn faulty(faults: &[FaultAt]) -> Problem {
    let line = |f: &FaultAt| match f.line {
        0 => format!("{}: {}; {}", f.file, f.what, f.fix),
        n => format!("{}:{n}: {}; {}", f.file, f.what, f.fix),
    };
    let all: Vec<String> = faults.iter().map(line).collect();
    let status = axum::http::StatusCode::UNPROCESSABLE_ENTITY;
    Problem::new(status, "faults", all.join("\n")).with_member("faults", serde_json::json!(faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(files: &[(&str, &str)]) -> UploadedDefinition {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        UploadedDefinition { files: files.collect(), ..UploadedDefinition::default() }
    }

    const JOB: &str = "groups: {gl: {}}\njobs:\n  - {code: A, group: gl, type: SCRIPT, interpreter: bash, script_file: ";

    #[test]
    fn files_are_read_from_what_was_sent_and_nowhere_else() {
        let main = format!("{JOB}run/a.sh}}\n");
        let all = sent(&[("dag.yaml", &main), ("run/a.sh", "echo hi")]);
        let loaded = all.parse_files(Budget::default()).expect("it is read").expect("no faults");
        assert_eq!(loaded.definition.jobs[0].script.as_deref(), Some("echo hi"));
        for (name, wanted) in [
            ("run/b.sh", "does not exist"),
            ("/etc/hostname", "never read"),
            ("../../etc/hostname", "never read"),
            ("run/../../x", "never read"),
        ] {
            let main = format!("{JOB}{name}}}\n");
            let faults = sent(&[("dag.yaml", &main)])
                .parse_files(Budget::default())
                .expect("read")
                .expect_err(name);
            assert!(faults[0].what.contains(wanted), "{:?}", faults[0]);
            assert!(faults[0].fix.contains("`files`") && faults[0].line == 3, "{:?}", faults[0]);
        }
        assert!(sent(&[("../dag.yaml", "")]).parse_files(Budget::default()).is_err());
        assert!(
            sent(&[("a.yaml", ""), ("b.yaml", "")]).parse_files(Budget::default()).is_err(),
            "which?"
        );
    }
}
