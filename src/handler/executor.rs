//! HANDLER and GLUE: a run on an executor of XXL-JOB, for which this installation is the admin.
//!
//! They take no slot of the process, because the work is done elsewhere. A second start continues
//! the run that the first one requested, so it is always safe.

use crate::domain::executor::ExecutorSend;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome};
use crate::domain::job::secret::MaskedValue;
use crate::domain::job::{AfterCrash, BodyPart, JobKind, Takes};
use crate::domain::params::BoundParam;
use crate::domain::params::http_call::object;
use crate::handler::remote::{RemoteBody, RemoteCall};
use crate::handler::run_on_source::end_of;
use crate::handler::{AttemptTask, Context, WorkerHandler};
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};

/// The HANDLER job type: a handler that the executor's program provides under a name.
pub(crate) struct Bean;

/// The GLUE job type: a script that is sent with the request.
pub(crate) struct GlueHandler;

/// The common properties of both.
const REMOTE: JobKind = JobKind {
    may_have: &[BodyPart::Params],
    takes: Takes::Elsewhere,
    after_crash: AfterCrash::StartsAgain,
    ..JobKind::PLAIN
};

/// Maximum length of the parameters, in bytes; they are stored, and shown in one piece.
const PARAMS_MAX: usize = 60_000;

impl WorkerHandler for Bean {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "HANDLER",
            about: "Calls a handler of an XXL-JOB executor.",
            needs: &[BodyPart::Executor],
            ..REMOTE
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(run_handler(task, ctx))
    }

    fn end_orphan<'a>(
        &'a self,
        _: &'a AttemptTask,
        ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        ctx.executors.end_run(ctx)
    }
}

impl WorkerHandler for GlueHandler {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "GLUE",
            about: "Sends a script to an XXL-JOB executor, which runs it.",
            needs: &[BodyPart::Executor, BodyPart::Script],
            ..REMOTE
        }
    }

    fn run<'a>(&'a self, task: &'a AttemptTask, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(run_handler(task, ctx))
    }

    fn end_orphan<'a>(
        &'a self,
        _: &'a AttemptTask,
        ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        ctx.executors.end_run(ctx)
    }
}

async fn run_handler(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    let nothing_sent = |said: String| {
        AttemptOutcome::ended(AttemptEnd::Failed, format!("{said}; nothing was sent"))
    };
    let call = match call_of(task) {
        Ok(call) => call,
        Err(said) => return nothing_sent(said).before_it_began(),
    };
    let claimed = tokio::select! {
        biased;
        reason = ctx.stopped() => {
            return AttemptOutcome::ended(end_of(reason), "stopped before it began").before_it_began();
        }
        claimed = ctx.claimed() => claimed,
    };
    match claimed {
        Ok(()) => ctx.executors.call(call, ctx).await,
        Err(said) => nothing_sent(said),
    }
}

/// The request to the executors for an attempt.
pub(crate) fn call_of(task: &AttemptTask) -> Result<RemoteCall, String> {
    let job = &task.job;
    let asked = job.executor.as_deref().ok_or("the job names no executor")?;
    let what = match (&asked.handler, asked.language, &job.script) {
        (Some(handler), None, _) => RemoteBody::Bean(handler.clone()),
        (None, Some(language), Some(script)) => {
            RemoteBody::Glue { language, source: script.clone(), version: version(script) }
        }
        _ => return Err("its executor has neither a handler nor a script".to_owned()),
    };
    Ok(RemoteCall {
        job: job.code.clone(),
        group: job.group.clone(),
        app: asked.app.clone(),
        what,
        params: params(task, asked.send)?,
        route: asked.route,
        block: asked.block,
    })
}

/// The version number of a script: a hash of its text, so that every node and batch that sends the
/// same text sends the same number, and an executor does not compile it again.
fn version(script: &str) -> i64 {
    let hash = digest(&SHA256, script.as_bytes());
    // 40 bits: below 2^53, beyond which JavaScript would read a different number.
    hash.as_ref().iter().take(5).fold(0, |number, byte| (number << 8) | i64::from(*byte)).max(1)
}

/// The parameters as text.
fn params(task: &AttemptTask, send: ExecutorSend) -> Result<String, String> {
    if send == ExecutorSend::None {
        return Ok(String::new());
    }
    let hidden = |p: &&BoundParam| p.value.as_ref().is_some_and(MaskedValue::is_secret);
    if let Some(param) = task.params.iter().find(hidden) {
        return Err(format!(
            "parameter {} is secret, and what is sent to an executor is stored as it is; let the \
             executor take the secret from its own settings",
            param.name
        ));
    }
    let text = match (send, &task.params[..]) {
        (ExecutorSend::Text, [only]) => only.expose_text().unwrap_or_default().to_owned(),
        (ExecutorSend::Text, several) => {
            return Err(format!(
                "send: text sends the text of one parameter, and the job has {}",
                several.len()
            ));
        }
        (ExecutorSend::Json | ExecutorSend::None, all) => {
            let batch = &task.batch;
            let date = batch.business_date.map(|date| date.to_string());
            // The job's own parameters are written separately: serde's numbers would round a
            // decimal.
            let head = serde_json::json!({
                "batchNo": batch.batch_no, "businessDate": date, "group": batch.group,
                "job": task.job.code, "idempotencyKey": task.idem_key, "attempt": task.attempt,
            });
            let head = head.to_string();
            format!("{},\"params\":{}}}", head.trim_end_matches('}'), object(all))
        }
    };
    if text.len() > PARAMS_MAX {
        return Err(format!(
            "its parameters have {} bytes, and an executor is sent {PARAMS_MAX} at most; send where \
             the data is, and not the data",
            text.len()
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::executor::GlueLanguage;
    use crate::domain::id::{BatchNo, GroupCode, JobCode, JobType, QueueId};
    use crate::domain::job::{JobDef, ParamType};
    use crate::domain::params::BatchValues;
    use std::collections::BTreeMap;

    fn task(executor: serde_json::Value, params: Vec<BoundParam>) -> AttemptTask {
        let group = GroupCode::parse("pay").expect("group");
        let code = JobCode::parse("PAY").expect("code");
        let kind = JobType::parse("HANDLER").expect("type");
        let mut job = JobDef::with_defaults(code, group.clone(), kind);
        job.executor = serde_json::from_value(executor).expect("a call");
        job.script = Some("echo 1".to_owned());
        AttemptTask {
            queue_id: QueueId(7),
            attempt: 2,
            job,
            batch: BatchValues {
                batch_no: BatchNo::parse("202407").expect("number"),
                group,
                business_date: None,
                params: BTreeMap::new(),
            },
            params,
            source: None,
            host: None,
            secrets: BTreeMap::new(),
            idem_key: "ab/202407/PAY/1".to_owned(),
            is_unresolved: false,
            lock_name: String::new(),
            check_sources: Vec::new(),
            last_checks: BTreeMap::new(),
            traceparent: None,
            hidden_files: Vec::new(),
        }
    }

    fn param(name: &str, ty: ParamType, value: Option<&str>) -> BoundParam {
        BoundParam { ty, ..BoundParam::public_text(name, value.map(str::to_owned)) }
    }

    fn with_handler(send: &str) -> serde_json::Value {
        serde_json::json!({"app": "pay-executor", "handler": "h", "send": send})
    }

    #[test]
    fn parameters_travel_as_their_job_says() {
        let one = || vec![param("a", ParamType::Text, Some("202407,\"x\""))];
        let sent =
            |send: &str, params| call_of(&task(with_handler(send), params)).map(|c| c.params);
        assert_eq!(sent("text", one()).as_deref(), Ok("202407,\"x\""));
        assert_eq!(sent("none", one()).as_deref(), Ok(""));
        assert_eq!(sent("text", vec![param("a", ParamType::Int, None)]).as_deref(), Ok(""));
        assert!(sent("text", Vec::new()).is_err_and(|said| said.ends_with("the job has 0")));
        let exact = param("b", ParamType::Decimal, Some("12345678901234567890.10"));
        let text = sent("json", [one(), vec![exact]].concat()).expect("a text");
        assert!(text.contains("\"b\":12345678901234567890.10}"), "every digit: {text}");
        let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read["params"]["a"], "202407,\"x\"");
        assert_eq!(read["batchNo"], "202407");
        assert_eq!(read["idempotencyKey"], "ab/202407/PAY/1");
        assert_eq!(
            (&read["attempt"], &read["businessDate"]),
            (&2.into(), &serde_json::Value::Null)
        );
        let long = vec![param("a", ParamType::Text, Some(&"x".repeat(60_001)))];
        assert!(sent("text", long).is_err_and(|said| said.contains("60001 bytes")));
    }

    #[test]
    fn a_secret_is_not_sent_because_it_would_be_stored() {
        let secret = BoundParam {
            value: Some(MaskedValue::Secret("geheim".to_owned().into())),
            ..BoundParam::public_text("token", None)
        };
        for (send, refused) in [("json", true), ("text", true), ("none", false)] {
            let made = call_of(&task(with_handler(send), vec![secret.clone()]));
            assert_eq!(made.is_err(), refused, "{send}");
            assert!(!format!("{made:?}").contains("geheim"), "{made:?}");
        }
    }

    #[test]
    fn a_script_has_a_version_that_only_its_text_makes() {
        let glue = serde_json::json!({"app": "pay-executor", "language": "shell"});
        let made = call_of(&task(glue.clone(), Vec::new())).expect("a call");
        let RemoteBody::Glue { language, source, version: first } = made.what else {
            panic!("a script: {:?}", made.what)
        };
        assert_eq!((language, source.as_str()), (GlueLanguage::Shell, "echo 1"));
        assert!((1..1 << 40).contains(&first), "{first}");
        assert_eq!(first, version("echo 1"));
        assert_ne!(first, version("echo 2"));
        assert!(version("") > 0);
        let mut bare = task(glue, Vec::new());
        bare.job.script = None;
        assert!(call_of(&bare).is_err());
    }
}
