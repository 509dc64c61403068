//! What an external cluster must offer to run applications: one implementation of `RemoteEngine`
//! for each kind of cluster. `remote_application` does what is common.

use crate::domain::job::application::{ApplicationCall, ApplicationReport, application_key};
use crate::domain::job::outcome::Stream;
use crate::handler::cluster_api::ClusterApi;
use crate::handler::{AttemptTask, Context};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::future::ready;

/// What to submit.
#[derive(Clone)]
pub(crate) struct ApplicationOrder<'a> {
    /// The key of the attempt, by which its application is recognized.
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) call: &'a ApplicationCall,
}

impl<'a> ApplicationOrder<'a> {
    /// The order of an attempt of this task, with these arguments.
    pub(crate) fn of_attempt(
        task: &AttemptTask,
        call: &'a ApplicationCall,
        args: Vec<String>,
        attempt: u32,
    ) -> Self {
        let key = application_key(&task.idem_key, attempt);
        Self { key, name: task.idem_key.clone(), args, call }
    }
}

/// The result of a submission.
pub(crate) enum Submission {
    /// The cluster has it under this id, perhaps since an earlier submission with the same key.
    Accepted(String),
    /// The cluster does not run it, and why.
    Refused(String),
    /// The answer was lost: the cluster may run it.
    Lost(String),
}

/// The result of looking for the application of an order.
pub(crate) enum Lookup {
    /// It has this id.
    Found(String),
    /// The cluster has none.
    Absent,
    /// The cluster cannot tell, and will not later, and why.
    Undecidable(String),
}

/// Why an application failed.
pub(crate) struct FailureCause {
    pub(crate) sentence: String,
    /// The stack trace, unless the log has it already.
    pub(crate) stack: String,
}

/// A piece of the log of an application.
pub(crate) struct ApplicationLogPiece {
    pub(crate) text: String,
    /// The offset of the byte after it.
    pub(crate) end: u64,
    /// The length of the whole log so far.
    pub(crate) total: u64,
}

/// A kind of cluster.
pub(crate) trait RemoteEngine: Send + Sync {
    /// The display name.
    fn name(&self) -> &'static str;

    /// The link to an application's page in the cluster's user interface.
    fn link(&self, api: &ClusterApi, id: &str) -> String;

    /// Checks what can be known before anything is sent.
    fn check_order<'a>(
        &'a self,
        _api: &'a ClusterApi,
        _order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(ready(Ok(())))
    }

    /// Submits it once.
    fn submit<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
        ctx: &'a Context,
    ) -> BoxFuture<'a, Submission>;

    /// Looks for the application of an order whose answer is not known. An error is worth another
    /// query.
    fn find<'a>(
        &'a self,
        api: &'a ClusterApi,
        order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Result<Lookup, String>>;

    /// The cluster's report on it; `None` when it knows none with this id.
    fn read_state<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<ApplicationReport>, String>>;

    /// The progress of a running application, when its state does not tell.
    fn read_progress<'a>(
        &'a self,
        _api: &'a ClusterApi,
        _order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(ready(None))
    }

    /// Requests its cancellation; whether it is gone is read from its state.
    fn cancel<'a>(&'a self, api: &'a ClusterApi, id: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Whether nothing of a cancelled application works on.
    fn is_gone<'a>(
        &'a self,
        _api: &'a ClusterApi,
        _order: &'a ApplicationOrder<'a>,
    ) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(ready(Ok(true)))
    }

    /// Why it failed, as far as the cluster and the end of its standard error tell.
    fn read_failure<'a>(
        &'a self,
        api: &'a ClusterApi,
        id: &'a str,
        error_log: &'a str,
    ) -> BoxFuture<'a, Option<FailureCause>>;

    /// Its outputs besides its state and what it printed.
    fn read_results<'a>(
        &'a self,
        _api: &'a ClusterApi,
        _id: &'a str,
    ) -> BoxFuture<'a, BTreeMap<String, String>> {
        Box::pin(ready(BTreeMap::new()))
    }

    /// A piece of its log from an offset; `None` where the cluster gives no log.
    fn read_log<'a>(
        &'a self,
        _api: &'a ClusterApi,
        _id: &'a str,
        _stream: Stream,
        _offset: u64,
    ) -> BoxFuture<'a, Result<Option<ApplicationLogPiece>, String>> {
        Box::pin(ready(Ok(None)))
    }
}
