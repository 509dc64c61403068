//! What a job asks of an executor of XXL-JOB, and the door to those executors.

use crate::domain::executor::GlueLanguage;
use crate::domain::executor::block::BlockStrategy;
use crate::domain::executor::route::RouteStrategy;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::outcome::AttemptOutcome;
use crate::domain::xxl::xxl_run::AppName;
use crate::handler::Context;
use futures_util::future::BoxFuture;

/// What is to be run, and by which executors. For which try is known to the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCall {
    /// The job; executors know it by a number of its own.
    pub job: JobCode,
    /// The group of the job, which has to be one that may use the executors.
    pub group: GroupCode,
    /// The executor group.
    pub app: AppName,
    /// What is run.
    pub what: RemoteBody,
    /// With what; stored as it is, so without secrets.
    pub params: String,
    /// Which of the executors.
    pub route: RouteStrategy,
    /// What is done while an earlier run of the job is not over, on whichever executor.
    pub block: BlockStrategy,
}

/// What an executor is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteBody {
    /// A handler of its own, by its name.
    Bean(String),
    /// A script that is sent to it.
    Glue {
        /// What it is written in.
        language: GlueLanguage,
        /// Its text.
        source: String,
        /// A number that is another when the text is another; positive.
        version: i64,
    },
}

/// Executors of XXL-JOB, of which this installation is the admin.
pub trait RemoteExecutors: Send + Sync {
    /// Has one run this to its end, or goes on with what an earlier start of the same try has begun; tells
    /// it to stop when the try is to stop. Its log goes into the log of the try. The caller has claimed the
    /// row before.
    fn call<'a>(&'a self, call: RemoteCall, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome>;

    /// Ends what an earlier start of this row has left running, as `end_orphan` has it.
    fn end_run<'a>(&'a self, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome>;
}
