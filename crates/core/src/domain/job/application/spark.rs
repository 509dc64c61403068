//! Spark: the options of an application, what is sent to the REST submission server of a standalone
//! master (4.3) and to `spark-submit`, and the meaning of the answers.

use crate::domain::job::application::{ApplicationCall, ApplicationReport, ApplicationState};
use crate::domain::job::application::{causes, root_cause};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The configuration entry that carries the key of an application. Drivers have ids that the master
/// makes, so a driver is recognized by this entry of its command line.
pub const KEY_PROPERTY: &str = "spark.procession.key";
/// The class that runs a Python file in a driver.
const SUBMIT_CLASS: &str = "org.apache.spark.deploy.SparkSubmit";
/// Number of ended drivers that a master remembers by default.
const RETAINED: usize = 200;

/// What only SPARK jobs say of their application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SparkOptions {
    /// Master URL of `spark-submit`; none: the REST submission server of `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// Folder of the Spark installation whose `spark-submit` runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spark_home: Option<String>,
    /// Further jars, for the driver and the executors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jars: Vec<String>,
    /// Python files for the search path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub py_files: Vec<String>,
    /// Memory of the driver, as `2g`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_memory: Option<String>,
    /// Cores of the driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_cores: Option<u32>,
    /// Memory of an executor, as `4g`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_memory: Option<String>,
    /// Cores of an executor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_cores: Option<u32>,
    /// Cores of all executors together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cores: Option<u32>,
    /// Queue of YARN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
}

impl SparkOptions {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The name of a key that is set, for the message that it does not belong there.
    pub fn any_key(&self) -> Option<&'static str> {
        [
            ("master", self.master.is_some()),
            ("spark_home", self.spark_home.is_some()),
            ("jars", !self.jars.is_empty()),
            ("py_files", !self.py_files.is_empty()),
            ("driver_memory", self.driver_memory.is_some()),
            ("driver_cores", self.driver_cores.is_some()),
            ("executor_memory", self.executor_memory.is_some()),
            ("executor_cores", self.executor_cores.is_some()),
            ("max_cores", self.max_cores.is_some()),
            ("queue", self.queue.is_some()),
        ]
        .into_iter()
        .find_map(|(key, is_set)| is_set.then_some(key))
    }
}

/// Whether the text is a size of memory as Spark reads it: `512m`, `4g`.
pub fn is_memory_size(text: &str) -> bool {
    let number = text.trim_end_matches(['k', 'm', 'g', 't', 'K', 'M', 'G', 'T']);
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits && number.len() + 1 == text.len() && number.parse::<u32>().is_ok_and(|n| n > 0)
}

/// Configuration entries that Procession sets itself.
pub const OWN_CONF: [&str; 14] = [
    KEY_PROPERTY,
    "spark.app.name",
    "spark.master",
    "spark.submit.deployMode",
    "spark.driver.supervise",
    "spark.jars",
    "spark.submit.pyFiles",
    "spark.driver.memory",
    "spark.driver.cores",
    "spark.executor.memory",
    "spark.executor.cores",
    "spark.cores.max",
    "spark.yarn.queue",
    "spark.yarn.maxAppAttempts",
];

/// The name and the key of one application.
#[derive(Clone, Copy, Debug)]
pub struct ApplicationIdentity<'a> {
    /// Its display name: the idempotency key of the run.
    pub name: &'a str,
    /// The key of the attempt.
    pub key: &'a str,
}

/// Whether the file is a Python program.
pub fn is_python(file: &str) -> bool {
    file.to_ascii_lowercase().ends_with(".py")
}

/// The class of the driver as the master lists it.
pub fn driver_class(call: &ApplicationCall) -> &str {
    match is_python(&call.file) {
        true => SUBMIT_CLASS,
        false => call.main_class.as_deref().unwrap_or_default(),
    }
}

/// The configuration of an application, without where it runs.
fn properties(call: &ApplicationCall, who: ApplicationIdentity<'_>) -> BTreeMap<String, String> {
    let options = &call.spark;
    let mut all = call.conf.clone();
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    };
    set(KEY_PROPERTY, Some(who.key.to_owned()));
    set("spark.app.name", Some(who.name.to_owned()));
    set("spark.driver.memory", options.driver_memory.clone());
    set("spark.driver.cores", options.driver_cores.map(|n| n.to_string()));
    set("spark.executor.memory", options.executor_memory.clone());
    set("spark.executor.cores", options.executor_cores.map(|n| n.to_string()));
    set("spark.cores.max", options.max_cores.map(|n| n.to_string()));
    set("spark.yarn.queue", options.queue.clone());
    // A second start of the driver would repeat what the first one did.
    set("spark.driver.supervise", Some("false".to_owned()));
    set("spark.yarn.maxAppAttempts", Some("1".to_owned()));
    let mut jars = options.jars.clone();
    if !is_python(&call.file) {
        jars.insert(0, call.file.clone());
    }
    set("spark.jars", (!jars.is_empty()).then(|| jars.join(",")));
    let files = (!options.py_files.is_empty()).then(|| options.py_files.join(","));
    set("spark.submit.pyFiles", files);
    all
}

/// The request that creates a driver. `master` is the master's own URL, which a Python program
/// needs.
pub fn create_request(
    call: &ApplicationCall,
    args: &[String],
    who: ApplicationIdentity<'_>,
    master: Option<&str>,
) -> Value {
    let mut conf = properties(call, who);
    conf.insert("spark.submit.deployMode".to_owned(), "cluster".to_owned());
    let (resource, arguments) = match is_python(&call.file) {
        true => (String::new(), submit_arguments(call, args, &conf, master)),
        false => (call.file.clone(), args.to_vec()),
    };
    json!({
        "action": "CreateSubmissionRequest", "clientSparkVersion": "4.0.0",
        "appResource": resource, "mainClass": driver_class(call), "appArgs": arguments,
        "environmentVariables": {}, "sparkProperties": conf,
    })
}

/// The arguments of `spark-submit` inside a driver.
fn submit_arguments(
    call: &ApplicationCall,
    args: &[String],
    conf: &BTreeMap<String, String>,
    master: Option<&str>,
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    if let Some(master) = master {
        all.extend(["--master".to_owned(), master.to_owned()]);
    }
    all.extend(["--deploy-mode".to_owned(), "client".to_owned()]);
    for (name, value) in conf {
        match name.as_str() {
            "spark.submit.deployMode" => {}
            "spark.submit.pyFiles" => all.extend(["--py-files".to_owned(), value.clone()]),
            _ => all.extend(["--conf".to_owned(), format!("{name}={value}")]),
        }
    }
    all.push(call.file.clone());
    all.extend(args.iter().cloned());
    all
}

/// The arguments of `spark-submit` on the node, in client mode.
pub fn submit_command(
    call: &ApplicationCall,
    args: &[String],
    who: ApplicationIdentity<'_>,
) -> Vec<String> {
    let mut conf = properties(call, who);
    // Its own jar is the argument, and is added by the program.
    conf.remove("spark.jars");
    if !call.spark.jars.is_empty() {
        conf.insert("spark.jars".to_owned(), call.spark.jars.join(","));
    }
    let mut all = submit_arguments(call, &[], &conf, call.spark.master.as_deref());
    let file = all.pop();
    if let Some(class) = call.main_class.as_ref().filter(|_| !is_python(&call.file)) {
        all.extend(["--class".to_owned(), class.clone()]);
    }
    all.extend(file);
    all.extend(args.iter().cloned());
    all
}

/// An answer of the submission server.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubmissionAnswer {
    /// Whether it did what was requested.
    #[serde(default)]
    pub success: bool,
    /// Explanation.
    pub message: Option<String>,
    /// The id of the driver.
    pub submission_id: Option<String>,
    /// The state of the driver.
    pub driver_state: Option<String>,
    /// The worker that runs it.
    pub worker_id: Option<String>,
}

impl SubmissionAnswer {
    /// Parses an answer; an error describes what was received.
    pub fn parse(status: u16, body: &str) -> Result<Self, String> {
        serde_json::from_str(body).map_err(|error| {
            format!("status {status}, and its answer is none of a submission server: {error}")
        })
    }

    /// The informative line of the message.
    pub fn cause(&self) -> String {
        let text = self.message.as_deref().unwrap_or("no reason was given");
        let lines = causes(text);
        let stack_of_cluster =
            lines.iter().position(|l| l.starts_with("Exception from the cluster"));
        let first = stack_of_cluster.and_then(|at| lines.get(at + 1)).or(lines.first());
        first.copied().unwrap_or_default().to_owned()
    }

    /// The report on a driver; `None` when the master knows none with this id.
    pub fn read_report(&self) -> Result<Option<ApplicationReport>, String> {
        let Some(word) = self.driver_state.as_deref().filter(|_| self.success) else {
            // A standby or recovering master reports an exception instead.
            return match &self.message {
                Some(_) => Err(self.cause()),
                None => Ok(None),
            };
        };
        let state = match word {
            "SUBMITTED" | "RUNNING" | "RELAUNCHING" | "UNKNOWN" => ApplicationState::Active,
            "FINISHED" => ApplicationState::Finished,
            "FAILED" | "ERROR" => ApplicationState::Failed,
            "KILLED" => ApplicationState::Cancelled,
            "NOT_FOUND" => return Ok(None),
            other => return Err(format!("it answered with the state {other}, which is not known")),
        };
        let waits = "waits for a worker with enough free cores and memory";
        let progress = if word == "SUBMITTED" { waits } else { "" };
        Ok(Some(ApplicationReport {
            state,
            word: word.to_owned(),
            progress: progress.to_owned(),
            duration_ms: None,
        }))
    }
}

/// What a master's web page lists as JSON.
#[derive(Deserialize)]
pub struct MasterListing {
    /// The master's own URL, `spark://host:7077`.
    pub url: String,
    #[serde(default)]
    workers: Vec<ListedWorker>,
    #[serde(default, rename = "activeapps")]
    active_apps: Vec<ListedApplication>,
    #[serde(default, rename = "completedapps")]
    ended_apps: Vec<ListedApplication>,
    #[serde(default, rename = "activedrivers")]
    active_drivers: Vec<ListedDriver>,
    #[serde(default, rename = "completeddrivers")]
    ended_drivers: Vec<ListedDriver>,
}

#[derive(Deserialize)]
struct ListedWorker {
    id: String,
    #[serde(rename = "webuiaddress")]
    address: String,
}

#[derive(Deserialize)]
struct ListedApplication {
    id: String,
    name: String,
    #[serde(rename = "starttime")]
    started: i64,
}

/// A driver in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ListedDriver {
    /// Its id.
    pub id: String,
    /// When it was created, in milliseconds, as text.
    #[serde(rename = "starttime")]
    pub created: String,
    /// The worker that it was given to.
    #[serde(default)]
    pub worker: Option<String>,
    #[serde(rename = "mainclass")]
    class: String,
    state: String,
}

impl ListedDriver {
    /// Whether it ended before its program began.
    pub fn has_never_run(&self) -> bool {
        self.state == "ERROR" || (self.state == "KILLED" && self.worker.is_none())
    }

    /// Whether its program may still begin.
    pub fn may_begin(&self) -> bool {
        ["SUBMITTED", "RUNNING", "RELAUNCHING", "UNKNOWN"].contains(&self.state.as_str())
    }
}

impl MasterListing {
    /// Parses `GET /json/`.
    pub fn parse(body: &str) -> Result<Self, String> {
        serde_json::from_str(body)
            .map_err(|error| format!("its answer is no listing of a master: {error}"))
    }

    /// The drivers with this main class, newest first.
    pub fn drivers_of(&self, class: &str) -> Vec<ListedDriver> {
        let all = self.active_drivers.iter().chain(&self.ended_drivers);
        let mut found: Vec<ListedDriver> = all.filter(|d| d.class == class).cloned().collect();
        found.sort_by(|a, b| (&b.created, &b.id).cmp(&(&a.created, &a.id)));
        found
    }

    /// The address of a worker's web page.
    pub fn worker_address(&self, id: &str) -> Option<&str> {
        self.workers.iter().find(|worker| worker.id == id).map(|worker| worker.address.as_str())
    }

    /// The newest application with this name that has not ended.
    pub fn active_application(&self, name: &str) -> Option<&str> {
        let named = self.active_apps.iter().filter(|app| app.name == name);
        named.max_by_key(|app| app.started).map(|app| app.id.as_str())
    }

    /// The only driver that can have started an application of this name: every driver with the
    /// class is listed, and there is one.
    pub fn only_driver(&self, name: &str, class: &str) -> Option<String> {
        let has_app = self.active_apps.iter().chain(&self.ended_apps).any(|app| app.name == name);
        let drivers = self.drivers_of(class);
        let is_whole = self.ended_drivers.len() < RETAINED;
        (has_app && is_whole && drivers.len() == 1).then(|| drivers[0].id.clone())
    }

    /// Whether an application of this name is listed.
    pub fn has_application(&self, name: &str) -> bool {
        self.active_apps.iter().chain(&self.ended_apps).any(|app| app.name == name)
    }
}

/// Whether the first line of a driver's standard error, its command, carries this key.
pub fn is_launched_with(log: &str, key: &str) -> bool {
    let command = log.lines().next().unwrap_or_default();
    command.contains(&format!("{KEY_PROPERTY}={key}"))
}

/// A piece of a driver's log, as a worker serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPiece<'a> {
    /// The text.
    pub text: &'a str,
    /// The offset of the byte after it.
    pub end: u64,
    /// The length of the whole log.
    pub total: u64,
}

/// Parses the answer of a worker's `/log/`: a line with the range, and the bytes.
pub fn read_log_piece(body: &str) -> Option<LogPiece<'_>> {
    let (head, text) = body.split_once('\n')?;
    let range = head.strip_prefix("==== Bytes ")?;
    let (_, rest) = range.split_once('-')?;
    let (end, rest) = rest.split_once(" of ")?;
    let (total, _) = rest.split_once(" of ")?;
    let (end, total) = (end.parse().ok()?, total.parse().ok()?);
    Some(LogPiece { text, end, total })
}

/// Why a program failed, from the end of its standard error: the last exception that Java or Python
/// printed.
pub fn find_cause(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let begin = lines.iter().rposition(|line| {
        line.starts_with("Exception in thread") || line.starts_with("Traceback (most recent call")
    })?;
    if lines[begin].starts_with("Exception in thread") {
        let cause = root_cause(&lines[begin..].join("\n"));
        let words = cause.strip_prefix("Exception in thread ").unwrap_or(&cause);
        return Some(words.trim_start_matches("\"main\" ").to_owned());
    }
    let is_told = |line: &&&str| !line.is_empty() && !line.starts_with([' ', '\t']);
    lines[begin + 1..].iter().find(is_told).map(|line| (*line).to_owned())
}

/// Sums over the stages of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedStage {
    status: String,
    num_tasks: u64,
    num_complete_tasks: u64,
    num_failed_tasks: u64,
    input_records: u64,
    input_bytes: u64,
    output_records: u64,
    output_bytes: u64,
    shuffle_read_bytes: u64,
    shuffle_write_bytes: u64,
}

/// The progress text from `GET /api/v1/applications/:id/stages`; empty without stages.
pub fn read_stages(body: &str) -> Option<String> {
    let stages: Vec<ListedStage> = serde_json::from_str(body).ok()?;
    let sum = |field: fn(&ListedStage) -> u64| stages.iter().map(field).sum::<u64>();
    let ended = stages.iter().filter(|stage| stage.status == "COMPLETE").count();
    let mut text = format!(
        "{ended} of {} stages, {} of {} tasks",
        stages.len(),
        sum(|s| s.num_complete_tasks),
        sum(|s| s.num_tasks)
    );
    let rest = [
        (sum(|s| s.num_failed_tasks), "failed tasks"),
        (sum(|s| s.input_records), "rows read"),
        (sum(|s| s.input_bytes), "bytes read"),
        (sum(|s| s.output_records), "rows written"),
        (sum(|s| s.output_bytes), "bytes written"),
        (sum(|s| s.shuffle_read_bytes), "bytes of shuffle read"),
        (sum(|s| s.shuffle_write_bytes), "bytes of shuffle written"),
    ];
    for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    (!stages.is_empty()).then_some(text)
}

/// The address of an application's own page, from the master's page about it: the only link that
/// leaves the master.
pub fn read_application_link(page: &str) -> Option<&str> {
    let from = page.find("href=\"http")? + "href=\"".len();
    page[from..].split('"').next()
}

#[cfg(test)]
mod tests;
