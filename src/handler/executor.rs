//! HANDLER and GLUE: a run on an executor of XXL-JOB, which this installation is the admin of.
//!
//! They take no slot, because what they run is elsewhere. A second start goes on with the run that the
//! first one asked for, so it is always safe.

use crate::domain::job::{AfterCrash, BodyPart, JobKind, Takes};
use crate::domain::outcome::{End, Outcome};
use crate::handler::{Context, Task, WorkerHandler};
use futures_util::future::BoxFuture;

/// The HANDLER handler: what the program of an executor has under a name.
pub(crate) struct Bean;

/// The GLUE handler: a script that is sent along.
pub(crate) struct Glue;

/// What both have in common.
const REMOTE: JobKind = JobKind {
    may_have: &[BodyPart::Params],
    takes: Takes::Nothing,
    after_crash: AfterCrash::StartsAgain,
    ..JobKind::PLAIN
};

impl WorkerHandler for Bean {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "HANDLER",
            about: "Calls a handler of an XXL-JOB executor.",
            needs: &[BodyPart::Executor],
            ..REMOTE
        }
    }

    fn run<'a>(&'a self, task: &'a Task, ctx: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(run(task, ctx))
    }
}

impl WorkerHandler for Glue {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "GLUE",
            about: "Sends a script to an XXL-JOB executor, which runs it.",
            needs: &[BodyPart::Executor, BodyPart::Script],
            ..REMOTE
        }
    }

    fn run<'a>(&'a self, task: &'a Task, ctx: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(run(task, ctx))
    }
}

async fn run(_: &Task, _: &Context) -> Outcome {
    Outcome::ended(End::Failed, "executors cannot be called yet; nothing was sent")
}
