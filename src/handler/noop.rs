//! NOOP: a milestone; does nothing, at once.

use crate::domain::job::JobKind;
use crate::domain::outcome::{Outcome, Outputs};
use crate::handler::{Context, Task, WorkerHandler};
use futures_util::future::BoxFuture;

/// The NOOP handler.
pub(crate) struct Noop;

impl WorkerHandler for Noop {
    fn kind(&self) -> JobKind {
        JobKind {
            name: "NOOP",
            about: "A milestone that does nothing and succeeds.",
            needs: &[],
            may_have: &[],
            ..JobKind::PLAIN
        }
    }

    fn run<'a>(&'a self, _task: &'a Task, _ctx: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async { Outcome::success(Outputs::default()) })
    }
}
