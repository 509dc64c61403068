//! NOOP: a milestone without work. After a fan-out it reports how the items ended.

use crate::domain::job::body::FanOut;
use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, JobOutputs};
use crate::domain::job::{AfterCrash, JobKind};
use crate::handler::{AttemptTask, Context, WorkerHandler};
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
            after_crash: AfterCrash::StartsAgain,
            ..JobKind::PLAIN
        }
    }

    fn run<'a>(
        &'a self,
        task: &'a AttemptTask,
        _ctx: &'a Context,
    ) -> BoxFuture<'a, AttemptOutcome> {
        Box::pin(async {
            match task.job.fan_out.as_deref() {
                Some(FanOut::Milestone { .. }) => after_items(task),
                Some(FanOut::Item { .. }) | None => AttemptOutcome::success(JobOutputs::default()),
            }
        })
    }
}

/// The parameters of such a milestone are the result of `fan_out::summary`.
fn after_items(task: &AttemptTask) -> AttemptOutcome {
    let mut values: std::collections::BTreeMap<String, Option<String>> =
        task.params.iter().map(|p| (p.name.clone(), p.expose_text().map(str::to_owned))).collect();
    let said = values.remove("said").flatten();
    let outputs = JobOutputs { values, ..JobOutputs::default() };
    match said {
        None => AttemptOutcome::success(outputs),
        Some(said) => AttemptOutcome { outputs, ..AttemptOutcome::ended(AttemptEnd::Failed, said) },
    }
}
