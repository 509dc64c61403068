//! This installation as the admin of XXL-JOB's executors: jobs are run by them, and their ends come back.

mod batching;
pub mod desk;
mod refusing;
pub mod token;

use crate::domain::outcome::{End, Outcome};
use crate::engine::worker::{Job, Surroundings};
use crate::handler::Context;
use crate::handler::remote::{Executors, RemoteCall};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The door to executors that one try is given.
pub(super) struct OfTry {}

impl OfTry {
    pub(super) fn new(_around: &Arc<Surroundings>, _job: &Job) -> Self {
        Self {}
    }
}

/// What is said until this is done.
const NOT_YET: &str = "executors of XXL-JOB cannot be called yet";

impl Executors for OfTry {
    fn call<'a>(&'a self, _call: RemoteCall, _ctx: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async { Outcome::ended(End::Failed, NOT_YET).before_it_began().for_good() })
    }

    fn end<'a>(&'a self, _ctx: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async { Outcome::ended(End::Unknown, NOT_YET) })
    }
}
