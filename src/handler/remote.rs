//! A job's request to executors of XXL-JOB, and the trait for access to them.

use crate::domain::executor::GlueLanguage;
use crate::domain::executor::block::BlockStrategy;
use crate::domain::executor::route::RouteStrategy;
use crate::domain::id::{GroupCode, JobCode};
use crate::domain::job::outcome::AttemptOutcome;
use crate::domain::xxl::xxl_run::AppName;
use crate::handler::Context;
use futures_util::future::BoxFuture;

/// The request: what to run, and on which executors. The attempt is known to the access object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCall {
    /// The job; executors know it by a number.
    pub job: JobCode,
    /// The group of the job, which must be allowed to use the executors.
    pub group: GroupCode,
    pub app: AppName,
    /// What to run.
    pub what: RemoteBody,
    /// The parameters; stored as they are, so without secrets.
    pub params: String,
    /// How the executor is chosen.
    pub route: RouteStrategy,
    /// What to do while an earlier run of the job has not ended, on any executor.
    pub block: BlockStrategy,
}

/// What an executor is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteBody {
    /// A handler of the executor, by name.
    Bean(String),
    /// A script that is sent to it.
    Glue {
        language: GlueLanguage,
        source: String,
        /// A positive number that changes with the text.
        version: i64,
    },
}

/// Executors of XXL-JOB, for which this installation is the admin.
pub trait RemoteExecutors: Send + Sync {
    /// Runs the call on one of them to its end, or continues what an earlier start of the same
    /// attempt has begun; stops it when the attempt is to stop. Its log goes into the log of the
    /// attempt. The caller has claimed the row before.
    fn call<'a>(&'a self, call: RemoteCall, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome>;

    /// Ends what an earlier start of this row has left running, like `end_orphan`.
    fn end_run<'a>(&'a self, ctx: &'a Context) -> BoxFuture<'a, AttemptOutcome>;
}
