//! FLINK: a batch job on a session cluster, through the REST API of its JobManager.
//!
//! The job id is derived from the idempotency key and the attempt: Flink refuses a second job with
//! an id that it remembers, and the result of a lost answer is looked up.

use crate::domain::job::application::flink::{
    read_accumulators, read_exception, read_jar_id, read_refusal, read_report,
};
use crate::domain::job::application::{ApplicationCall, ApplicationReport, root_cause};
use crate::domain::job::outcome::{AttemptOutcome, Stream};
use crate::domain::job::{AfterCrash, BodyPart, JobKind, Takes};
use crate::handler::cluster_api::{ClusterAnswer, ClusterApi, NoAnswer, RequestBody};
use crate::handler::remote_application;
use crate::handler::remote_engine::{
    ApplicationOrder, FailureCause, Lookup, RemoteEngine, Submission,
};
use crate::handler::{AttemptTask, Context, WorkerHandler};
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// The FLINK handler.
pub(crate) struct FlinkHandler;

/// Maximum size of an uploaded jar, in bytes: it is held in memory.
const JAR_MAX: u64 = 512 * 1024 * 1024;

impl WorkerHandler for FlinkHandler {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "FLINK",
            about: "Runs a batch job on a Flink cluster.",
            needs: &[BodyPart::Application],
            may_have: &[BodyPart::Params],
            takes: Takes::Elsewhere,
            after_crash: AfterCrash::StartsAgain,
            ..JobKind::PLAIN
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(remote_application::run(self, task, ctx))
    }

    fn end_orphan<'a>(
        &'a self,
        task: &'a AttemptTask,
        ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(remote_application::end_orphan(self, task, ctx))
    }
}

impl RemoteEngine for FlinkHandler {
    fn name(&self) -> &'static str {
        "Flink"
    }

    fn link(&self, api: &ClusterApi, id: &str) -> String {
        api.link(&format!("#/job/completed/{id}/overview"))
    }

    fn submit<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
        ctx: &'a Context,
    ) -> BoxFuture<'a, Submission> {
        Box::pin(async move {
            let jar = match upload(api, order.call).await {
                Ok(jar) => jar,
                Err(cause) => return Submission::Refused(cause),
            };
            let submission = start(api, order, &jar).await;
            // The running job has its own copy.
            let removed = api.send(Method::DELETE, &format!("jars/{jar}"), None).await;
            if !removed.is_ok_and(|answer| answer.is_success()) {
                ctx.log.add_line(
                    Stream::System,
                    format!("the uploaded jar {jar} could not be removed"),
                );
            }
            submission
        })
    }

    /// The key is the job id.
    fn find<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Result<Lookup, String>> {
        Box::pin(async move {
            let report = self.read_state(api, &order.key).await?;
            Ok(report.map_or(Lookup::Absent, |_| Lookup::Found(order.key.clone())))
        })
    }

    fn read_state<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ApplicationReport>, String>> {
        Box::pin(async move {
            let answer = api.send(Method::GET, &format!("jobs/{id}"), None).await;
            let answer = answer.map_err(|lost| lost.cause)?;
            match answer.status {
                200 => read_report(&answer.body).map(Some),
                404 => Ok(None),
                status => Err(format!("host {} answered: {}", api.host, cause(status, &answer))),
            }
        })
    }

    fn cancel<'a>(&'a self, api: &'a ClusterApi, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let path = format!("jobs/{id}?mode=cancel");
            let answer = api.send(Method::PATCH, &path, None).await.map_err(|lost| lost.cause)?;
            match answer.is_success() {
                true => Ok(()),
                false => Err(cause(answer.status, &answer)),
            }
        })
    }

    fn read_failure<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
        _error_log: &'a str,
    ) -> BoxFuture<'a, Option<FailureCause>> {
        Box::pin(async move {
            let path = format!("jobs/{id}/exceptions");
            let answer = api.send(Method::GET, &path, None).await.ok()?;
            let stack = read_exception(&answer.body)?;
            Some(FailureCause { sentence: root_cause(&stack), stack })
        })
    }

    fn read_results<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
    ) -> BoxFuture<'a, BTreeMap<String, String>> {
        Box::pin(async move {
            let path = format!("jobs/{id}/accumulators");
            let answer = api.send(Method::GET, &path, None).await;
            answer.map(|answer| read_accumulators(&answer.body)).unwrap_or_default()
        })
    }
}

fn cause(status: u16, answer: &ClusterAnswer) -> String {
    read_refusal(status, &answer.body).cause
}

/// Uploads the jar; returns its id on the cluster.
async fn upload(api: &ClusterApi, call: &ApplicationCall) -> Result<String, String> {
    let path = Path::new(&call.file);
    let unreadable = |error: std::io::Error| format!("file {} cannot be read: {error}", call.file);
    let about = tokio::fs::metadata(path).await.map_err(unreadable)?;
    if about.len() > JAR_MAX {
        let size = about.len();
        return Err(format!("file {} has {size} bytes; at most {JAR_MAX} are uploaded", call.file));
    }
    let bytes = tokio::fs::read(path).await.map_err(unreadable)?;
    let name = path.file_name().map(|name| name.to_string_lossy().replace(['"', '\r', '\n'], "_"));
    let body = multipart(&name.unwrap_or_default(), &bytes);
    let answer = api.send(Method::POST, "jars/upload", Some(body)).await;
    let answer = answer.map_err(|lost: NoAnswer| lost.cause)?;
    let id = answer.is_success().then(|| read_jar_id(&answer.body)).flatten();
    id.ok_or_else(|| format!("the jar was not taken: {}", cause(answer.status, &answer)))
}

/// A multipart form with one file. The boundary is longer than any text that a jar is likely to
/// contain, and the file is searched for it.
fn multipart(name: &str, bytes: &[u8]) -> RequestBody {
    let mut boundary = "procession-7c1f3b5d9a2e4860".to_owned();
    while bytes.windows(boundary.len()).any(|part| part == boundary.as_bytes()) {
        boundary.push('x');
    }
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"jarfile\"; filename=\"{name}\"\r\n\
         Content-Type: application/x-java-archive\r\n\r\n"
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    let bytes = [head.as_bytes(), bytes, tail.as_bytes()].concat();
    RequestBody { content_type: format!("multipart/form-data; boundary={boundary}"), bytes }
}

async fn start(api: &ClusterApi, order: &ApplicationOrder<'_>, jar: &str) -> Submission {
    let mut conf: BTreeMap<&str, &str> =
        order.call.conf.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    conf.insert("pipeline.name", &order.name);
    let mut body = json!({
        "jobId": order.key, "programArgsList": order.args, "flinkConfiguration": conf,
    });
    if let Some(class) = &order.call.main_class {
        body["entryClass"] = class.as_str().into();
    }
    if let Some(parallelism) = order.call.parallelism {
        body["parallelism"] = parallelism.into();
    }
    let path = format!("jars/{jar}/run");
    match api.send(Method::POST, &path, Some(RequestBody::json(&body))).await {
        Ok(answer) if answer.is_success() => Submission::Accepted(order.key.clone()),
        Ok(answer) => {
            let refusal = read_refusal(answer.status, &answer.body);
            match (refusal.is_duplicate, refusal.is_timeout) {
                (true, _) => Submission::Accepted(order.key.clone()),
                (false, true) => Submission::Lost(refusal.cause),
                (false, false) => Submission::Refused(refusal.cause),
            }
        }
        Err(lost) if lost.may_have_arrived => Submission::Lost(lost.cause),
        Err(lost) => Submission::Refused(lost.cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_ends_where_its_file_does() {
        let file = b"PK\x03--procession-7c1f3b5d9a2e4860--";
        let form = multipart("a.jar", file);
        let boundary = form.content_type.rsplit('=').next().expect("a boundary").to_owned();
        let count = |bytes: &[u8], part: &str| {
            bytes.windows(part.len()).filter(|w| *w == part.as_bytes()).count()
        };
        assert_eq!(count(&form.bytes, &format!("--{boundary}")), 2);
        assert_eq!(count(&form.bytes, "filename=\"a.jar\""), 1);
    }
}
