//! Parses answers of Flink's REST interface (2.3): job ids, states, and causes of errors.

use crate::domain::job::application::{
    ApplicationReport, ApplicationState, application_key, causes, root_cause,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The Flink job id of an attempt. Flink refuses a second job with an id that it remembers, so a
/// submission can be repeated safely and its job looked up.
pub fn job_id(idempotency_key: &str, attempt: u32) -> String {
    application_key(idempotency_key, attempt)
}

#[derive(Deserialize)]
struct JobDetails {
    state: String,
    duration: Option<i64>,
    #[serde(default)]
    vertices: Vec<Vertex>,
}

#[derive(Deserialize)]
struct Vertex {
    name: String,
    parallelism: i64,
    #[serde(default)]
    tasks: BTreeMap<String, i64>,
}

/// Parses the answer of `GET /jobs/:id`.
pub fn read_report(body: &str) -> Result<ApplicationReport, String> {
    let details: JobDetails = serde_json::from_str(body)
        .map_err(|error| format!("its answer is no description of a job: {error}"))?;
    let state = match details.state.as_str() {
        "FINISHED" => ApplicationState::Finished,
        "FAILED" => ApplicationState::Failed,
        "CANCELED" => ApplicationState::Cancelled,
        "SUSPENDED" => ApplicationState::Suspended,
        "INITIALIZING" | "CREATED" | "RUNNING" | "FAILING" | "CANCELLING" | "RESTARTING"
        | "RECONCILING" => ApplicationState::Active,
        other => return Err(format!("it answered with the state {other}, which is not known")),
    };
    let progress = details.vertices.iter().map(describe_vertex).collect::<Vec<_>>().join("; ");
    Ok(ApplicationReport { state, word: details.state, progress, duration_ms: details.duration })
}

fn describe_vertex(vertex: &Vertex) -> String {
    let count = |word: &str| vertex.tasks.get(word).copied().unwrap_or_default();
    let (finished, running) = (count("FINISHED"), count("RUNNING"));
    format!("{}: {finished} of {} finished, {running} running", vertex.name, vertex.parallelism)
}

#[derive(Deserialize)]
struct Refusal {
    errors: Vec<String>,
}

/// A parsed error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The cause, in Flink's words.
    pub cause: String,
    /// A job with this id exists already.
    pub is_duplicate: bool,
    /// The request timed out in Flink, so the job may still begin.
    pub is_timeout: bool,
}

/// Reads `{"errors": […]}`.
pub fn read_refusal(status: u16, body: &str) -> RefusedRequest {
    let errors = serde_json::from_str::<Refusal>(body).map(|refusal| refusal.errors);
    let text = errors.map_or_else(|_| body.to_owned(), |errors| errors.join("\n"));
    let thrown: Vec<&str> = causes(&text);
    let has =
        |words: &[&str]| thrown.iter().any(|line| words.iter().all(|word| line.contains(word)));
    let cause = match root_cause(&text) {
        cause if cause.is_empty() => format!("status {status}"),
        cause => cause,
    };
    RefusedRequest {
        cause,
        is_duplicate: has(&["Duplicate", "SubmissionException"]),
        is_timeout: has(&["TimeoutException"]) || matches!(status, 502 | 504),
    }
}

#[derive(Deserialize)]
struct Exceptions {
    #[serde(rename = "exceptionHistory")]
    history: History,
}

#[derive(Deserialize)]
struct History {
    entries: Vec<ThrownException>,
}

#[derive(Deserialize)]
struct ThrownException {
    stacktrace: String,
    #[serde(rename = "taskName")]
    task: Option<String>,
}

/// The stack trace of the exception that ended a job, from `GET /jobs/:id/exceptions`, and the task
/// that threw it.
pub fn read_exception(body: &str) -> Option<String> {
    let read: Exceptions = serde_json::from_str(body).ok()?;
    let first = read.history.entries.into_iter().next()?;
    Some(match first.task {
        Some(task) => format!("task {task}\n{}", first.stacktrace),
        None => first.stacktrace,
    })
}

#[derive(Deserialize)]
struct UploadedJar {
    filename: String,
}

/// The id of an uploaded jar: the last part of the path in Flink's answer.
pub fn read_jar_id(body: &str) -> Option<String> {
    let read: UploadedJar = serde_json::from_str(body).ok()?;
    let id = read.filename.rsplit(['/', '\\']).next()?;
    (!id.is_empty()).then(|| id.to_owned())
}

#[derive(Deserialize)]
struct Accumulators {
    #[serde(rename = "user-task-accumulators", default)]
    of_user: Vec<Accumulator>,
}

#[derive(Deserialize)]
struct Accumulator {
    name: String,
    value: String,
}

/// The accumulators of a job, from `GET /jobs/:id/accumulators`.
pub fn read_accumulators(body: &str) -> BTreeMap<String, String> {
    let read = serde_json::from_str::<Accumulators>(body);
    let all = read.map(|read| read.of_user).unwrap_or_default();
    all.into_iter().map(|one| (one.name, one.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_belongs_to_one_attempt_of_one_run() {
        let id = job_id("ab/202407/PAY/1", 1);
        assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
        assert_eq!(id, job_id("ab/202407/PAY/1", 1));
        assert_ne!(id, job_id("ab/202407/PAY/1", 2));
        assert_ne!(id, job_id("ab/202407/PAY/11", 1));
        assert_ne!(job_id("a/1", 11), job_id("a/11", 1));
    }

    #[test]
    fn every_state_of_flink_has_a_meaning_and_no_other_has() {
        use ApplicationState::{Active, Cancelled, Failed, Finished, Suspended};
        for (word, state) in [
            ("INITIALIZING", Active),
            ("CREATED", Active),
            ("RUNNING", Active),
            ("FAILING", Active),
            ("CANCELLING", Active),
            ("RESTARTING", Active),
            ("RECONCILING", Active),
            ("FINISHED", Finished),
            ("FAILED", Failed),
            ("CANCELED", Cancelled),
            ("SUSPENDED", Suspended),
        ] {
            let body = format!(
                r#"{{"state":"{word}","duration":7,"vertices":[{{"name":"Map","parallelism":2,
                "tasks":{{"FINISHED":1,"RUNNING":1}}}}]}}"#
            );
            let report = read_report(&body).expect("a report");
            assert_eq!((report.state, report.duration_ms), (state, Some(7)), "{word}");
            assert_eq!(report.progress, "Map: 1 of 2 finished, 1 running");
        }
        assert!(read_report(r#"{"state":"DONE"}"#).is_err_and(|said| said.contains("DONE")));
        assert!(read_report("<html>").is_err());
    }

    #[test]
    fn the_cause_of_an_error_is_its_last_one() {
        let missing = r#"{"errors":["Internal server error.","<Exception on server side:\njava.util.concurrent.CompletionException: x\n\tat a.b(C.java:1)\nCaused by: java.lang.ClassNotFoundException: Nope\n\t... 45 more\n"]}"#;
        let refusal = read_refusal(500, missing);
        assert_eq!(refusal.cause, "java.lang.ClassNotFoundException: Nope");
        assert!(!refusal.is_duplicate && !refusal.is_timeout);
        let twice = r#"{"errors":["a.RestHandlerException: x\nCaused by: org.apache.flink.runtime.client.DuplicateApplicationSubmissionException: Application has already been submitted."]}"#;
        assert!(read_refusal(400, twice).is_duplicate);
        let late = r#"{"errors":["java.util.concurrent.TimeoutException: x"]}"#;
        assert!(read_refusal(500, late).is_timeout);
        assert!(read_refusal(504, "").is_timeout);
        assert_eq!(read_refusal(403, "").cause, "status 403");
        assert_eq!(read_refusal(403, "no\nentry").cause, "no");
    }

    #[test]
    fn jars_exceptions_and_accumulators_are_read() {
        let jar = r#"{"filename":"/tmp/flink-web-upload/51-a_probe.jar","status":"success"}"#;
        assert_eq!(read_jar_id(jar).as_deref(), Some("51-a_probe.jar"));
        assert_eq!(read_jar_id("{}"), None);
        let thrown = r#"{"exceptionHistory":{"entries":[{"stacktrace":"a.JobException: x\n\tat b\nCaused by: c.IllegalStateException: out of balance","taskName":null}]}}"#;
        let stack = read_exception(thrown).expect("a stack");
        assert_eq!(root_cause(&stack), "c.IllegalStateException: out of balance");
        assert_eq!(read_exception(r#"{"exceptionHistory":{"entries":[]}}"#), None);
        let counted =
            r#"{"user-task-accumulators":[{"name":"rows","type":"LongCounter","value":"12"}]}"#;
        assert_eq!(read_accumulators(counted).get("rows").map(String::as_str), Some("12"));
    }
}
