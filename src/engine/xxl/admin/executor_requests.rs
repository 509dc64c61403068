//! Requests to executors, each in a task of its own; the answers come back as events.

use super::run_state::{CallRun, Effect, ExecutorCallState, RunRegister};
use super::{Admin, Inbound};
use crate::domain::executor::LogId;
use crate::domain::executor::route::Test;
use crate::domain::time::Millis;
use crate::domain::xxl::executor_run::{Looked, Posted};
use crate::handler::remote::RemoteBody;
use crate::remote::executors::{ExecutorResponse, RunAsk};
use std::sync::Arc;

/// A run that could not be sent for this long is not sent any more, in milliseconds: a process that
/// took its row over may assume by then that it never will be.
const TOO_LATE_MS: i64 = 20_000;

impl Admin {
    /// Sends a request whose record is committed.
    pub(super) fn send_request(self: &Arc<Self>, book: &RunRegister, effect: Effect, now: Millis) {
        let admin = self.clone();
        match effect {
            Effect::Post(run) => {
                let Some(part) = book.parts.get(&run) else { return };
                let Some(call) = book.calls.get(&part.call) else { return };
                if part.state.stopping.is_some() {
                    let said = "it was stopped before".to_owned();
                    return admin.receive(Inbound::Posted(run, Posted::NotSent(said)));
                }
                let Some((to, ask)) = part.to.clone().zip(run_ask(run, part, call, now)) else {
                    return;
                };
                tokio::spawn(async move {
                    let since = admin.clock.uptime();
                    let may = || admin.clock.uptime().since(since) < TOO_LATE_MS;
                    failpoint!("admin.before_post");
                    let answer = admin.line.send_run(&to, &ask, may).await;
                    failpoint!("admin.after_post");
                    admin.receive(Inbound::Posted(run, posted(answer)));
                });
            }
            Effect::Look(run, to, job_id) => {
                tokio::spawn(async move {
                    let looked = looked(&admin.line.idle_beat(&to, job_id).await);
                    admin.receive(Inbound::Looked(run, looked));
                });
            }
            // Whether it has stopped is known when the executor reports the end of the run.
            Effect::Kill(to, job_id) => {
                tokio::spawn(async move { admin.line.send_kill(&to, job_id).await });
            }
            Effect::Log(run, to, at, from) => {
                tokio::spawn(async move {
                    let page = admin.line.fetch_log(&to, run.0, at.0, from).await;
                    admin.receive(Inbound::Logged(run, page));
                });
            }
            Effect::Test(call, test, to, job_id) => {
                tokio::spawn(async move {
                    let answer = match test {
                        Test::Beats => admin.line.send_beat(&to).await,
                        Test::IsIdle => admin.line.idle_beat(&to, job_id).await,
                    };
                    let answer = match answer {
                        ExecutorResponse::Yes(_) => Ok(()),
                        ExecutorResponse::No(said)
                        | ExecutorResponse::NotSent(said)
                        | ExecutorResponse::Unclear(said) => Err(said),
                    };
                    admin.receive(Inbound::Tested(call, to.address, answer));
                });
            }
        }
    }
}

/// The twelve fields that all versions have.
fn run_ask(run: LogId, part: &CallRun, call: &ExecutorCallState, now: Millis) -> Option<RunAsk> {
    let ask = call.ask.as_ref()?;
    let (handler, glue_type, source, version) = match &ask.what {
        RemoteBody::Bean(name) => (name.as_str(), "BEAN", "", now.0),
        RemoteBody::Glue { language, source, version } => {
            ("", language.glue_type(), source.as_str(), *version)
        }
    };
    Some(RunAsk {
        job_id: part.job_id,
        executor_handler: Some(handler.to_owned()),
        executor_params: Some(ask.params.clone()),
        executor_block_strategy: Some(ask.block.as_str().to_owned()),
        // Our own time limit ends a run that takes too long. With a timeout of its own, a Java
        // executor runs the handler in a FutureTask and reports its end at once, while the handler
        // may still be running.
        executor_timeout: Some(0),
        log_id: run.0,
        log_date_time: Some(part.sent.0),
        glue_type: Some(glue_type.to_owned()),
        glue_source: Some(source.to_owned()),
        glue_update_time: Some(version),
        broadcast_index: Some(part.shard.0),
        broadcast_total: Some(part.shard.1),
    })
}

fn posted(answer: ExecutorResponse) -> Posted {
    match answer {
        ExecutorResponse::Yes(_) => Posted::Taken,
        ExecutorResponse::No(said) => Posted::Refused(said),
        ExecutorResponse::NotSent(said) => Posted::NotSent(said),
        ExecutorResponse::Unclear(said) => Posted::Unknown(said),
    }
}

/// Executors that run the job answer with an error.
fn looked(answer: &ExecutorResponse) -> Looked {
    match answer {
        ExecutorResponse::Yes(_) => Looked::Idle,
        ExecutorResponse::No(_) => Looked::Busy,
        ExecutorResponse::NotSent(_) | ExecutorResponse::Unclear(_) => Looked::Silent,
    }
}
