//! Limits expensive requests: how many may run at once, in total and per user, and on which
//! threads.
//!
//! Thirty requests for a version of 20,000 jobs once kept both threads of the other requests busy
//! for so long that a probe had no answer within 30 s, and on SQLite a lease was lost behind a
//! request that held the writer's lock.

use crate::api::problem::Problem;
use crate::api::request_runtime::RequestRuntime;
use crate::config::LimitSettings;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits for a permit before it is refused.
const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// Seconds after which a refused request may be sent again.
const RETRY_AFTER: u32 = 2;
/// Number of waiting requests per user, for each that may run: a page of the console sends several
/// at once.
const WAITING_PER_TURN: usize = 4;

/// The limits of expensive requests, shared by all of them, and their runtime.
pub(super) struct ReadLimits {
    all: Arc<Semaphore>,
    per_user: usize,
    users: Arc<Mutex<HashMap<i64, UserTurns>>>,
    definitions: Arc<Semaphore>,
    /// Per user: one permit is left to other users where there is more than one.
    definitions_per_user: usize,
    runtime: RequestRuntime,
}

/// The permits of one user.
#[derive(Debug)]
struct UserTurns {
    /// Requests that have a permit or wait for one.
    requests: usize,
    turns: Arc<Semaphore>,
    definitions: Arc<Semaphore>,
}

/// The permit of an expensive request, until it is dropped.
#[derive(Debug)]
pub(super) struct ReadPlace {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _request: UserRequest,
}

/// The permit to read a definition, until it is dropped.
#[derive(Debug)]
pub(super) struct DefinitionPlace {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    _request: UserRequest,
}

/// A request counted for its user until it is dropped.
#[derive(Debug)]
struct UserRequest {
    user: i64,
    turns: Arc<Semaphore>,
    definitions: Arc<Semaphore>,
    users: Arc<Mutex<HashMap<i64, UserTurns>>>,
}

impl Drop for UserRequest {
    fn drop(&mut self) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = users.get_mut(&self.user) {
            own.requests -= 1;
            if own.requests == 0 {
                users.remove(&self.user);
            }
        }
    }
}

/// 429: too many requests at once.
fn too_many(what: &str, setting: &str) -> Problem {
    let detail = format!(
        "{what}; try again in {RETRY_AFTER} seconds, or ask the administrator of the server to raise \
         limits.{setting}"
    );
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail);
    Problem { retry_after: Some(RETRY_AFTER), ..problem }
}

/// A permit, once there is one.
async fn acquire_turn(of: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    tokio::time::timeout(WAIT_LIMIT, of.acquire_owned()).await.ok()?.ok()
}

impl ReadLimits {
    pub(super) fn new(limits: &LimitSettings) -> std::io::Result<Self> {
        Ok(Self {
            all: Arc::new(Semaphore::new(limits.expensive_reads)),
            per_user: limits.expensive_reads_per_user,
            users: Arc::default(),
            definitions: Arc::new(Semaphore::new(limits.definitions_at_once)),
            definitions_per_user: limits.definitions_at_once.saturating_sub(1).max(1),
            runtime: RequestRuntime::for_expensive_requests()?,
        })
    }

    /// Runs an expensive request of this user when it has a permit, on threads that no other
    /// requests need. A caller who disconnects ends it.
    pub(super) async fn run_in_turn<T: Send + 'static>(
        &self,
        user: i64,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let place = self.enter(user).await?;
        let work = async move {
            let done = work.await;
            drop(place);
            done
        };
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let task = async move {
            let mut sender = sender;
            tokio::select! {
                () = sender.closed() => {}
                done = work => drop(sender.send(done)),
            }
        };
        drop(self.runtime.spawn(task));
        let gone = |_| Problem::from(anyhow::anyhow!("the work of a request was given up"));
        receiver.await.map_err(gone)?
    }

    /// The permit of an expensive request of this user.
    async fn enter(&self, user: i64) -> Result<ReadPlace, Problem> {
        let request = self.note_request(user)?;
        let Some(own) = acquire_turn(request.turns.clone()).await else {
            return Err(too_many("your other requests take long", "expensive_reads_per_user"));
        };
        let Some(all) = acquire_turn(self.all.clone()).await else {
            return Err(too_many("too many expensive requests are under way", "expensive_reads"));
        };
        Ok(ReadPlace { _all: all, _own: own, _request: request })
    }

    /// The permit to read a definition; held by the thread that reads it.
    pub(super) async fn enter_definition(&self, user: i64) -> Result<DefinitionPlace, Problem> {
        let request = self.note_request(user)?;
        let Some(own) = acquire_turn(request.definitions.clone()).await else {
            return Err(too_many("your other definitions are being read", "definitions_at_once"));
        };
        let Some(all) = acquire_turn(self.definitions.clone()).await else {
            return Err(too_many("other definitions are being read", "definitions_at_once"));
        };
        Ok(DefinitionPlace { _all: all, _own: own, _request: request })
    }

    fn note_request(&self, user: i64) -> Result<UserRequest, Problem> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let own = users.entry(user).or_insert_with(|| UserTurns {
            requests: 0,
            turns: Arc::new(Semaphore::new(self.per_user)),
            definitions: Arc::new(Semaphore::new(self.definitions_per_user)),
        });
        if own.requests >= self.per_user * (1 + WAITING_PER_TURN) {
            let what = format!("you have {} expensive requests under way", own.requests);
            return Err(too_many(&what, "expensive_reads_per_user"));
        }
        own.requests += 1;
        let (turns, definitions) = (own.turns.clone(), own.definitions.clone());
        Ok(UserRequest { user, turns, definitions, users: self.users.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn limits() -> LimitSettings {
        Config::load_file(Some(std::path::Path::new("/dev/null"))).expect("defaults").limits
    }

    #[tokio::test]
    async fn one_user_leaves_room_for_others() {
        let limits = LimitSettings { expensive_reads: 2, expensive_reads_per_user: 1, ..limits() };
        let reads = ReadLimits::new(&limits).expect("threads");
        let first = reads.enter(1).await.expect("a turn");
        let refused = reads.enter(1).await.expect_err("one is the most");
        assert_eq!((refused.status.as_u16(), refused.retry_after), (429, Some(2)));
        assert!(refused.detail.contains("limits.expensive_reads_per_user"), "{refused}");
        let second = reads.enter(2).await.expect("another user's turn");
        let refused = reads.enter(3).await.expect_err("all turns are taken");
        assert!(refused.detail.ends_with("limits.expensive_reads"), "{refused}");
        drop((first, second));
        reads.enter(1).await.expect("its turn again");
        assert!(reads.users.lock().expect("users").is_empty(), "nobody is remembered");
    }

    #[tokio::test]
    async fn a_user_waits_for_a_turn_and_not_in_any_number() {
        let limits = LimitSettings { expensive_reads_per_user: 1, ..limits() };
        let reads = Arc::new(ReadLimits::new(&limits).expect("threads"));
        let first = reads.enter(1).await.expect("a turn");
        let enter = |reads: Arc<ReadLimits>| tokio::spawn(async move { reads.enter(1).await });
        let waiting: Vec<_> = (0..WAITING_PER_TURN).map(|_| enter(reads.clone())).collect();
        let counted = |reads: &ReadLimits| reads.users.lock().expect("users")[&1].requests;
        while counted(&reads) <= WAITING_PER_TURN {
            tokio::task::yield_now().await;
        }
        let refused = reads.enter(1).await.expect_err("too many wait");
        assert!(refused.detail.contains("you have 5"), "{refused}");
        drop(first);
        for task in waiting {
            drop(task.await.expect("no panic").expect("a turn after the one before"));
        }
    }

    #[tokio::test]
    async fn one_user_does_not_keep_others_from_having_a_definition_read() {
        let reads = ReadLimits::new(&limits()).expect("threads");
        let _first = reads.enter_definition(1).await.expect("a turn");
        let refused = reads.enter_definition(1).await.expect_err("one turn is left to others");
        assert!(refused.detail.contains("limits.definitions_at_once"), "{refused}");
        reads.enter_definition(2).await.expect("another user's turn");
    }

    #[tokio::test]
    async fn work_of_a_caller_who_hangs_up_ends() {
        let reads = ReadLimits::new(&limits()).expect("threads");
        let (sender, ended) = tokio::sync::oneshot::channel::<()>();
        let endless = async move {
            let _held = sender;
            std::future::pending::<Result<(), Problem>>().await
        };
        let hung_up =
            tokio::time::timeout(Duration::from_millis(50), reads.run_in_turn(1, endless)).await;
        hung_up.expect_err("it does not end by itself");
        let ended = tokio::time::timeout(Duration::from_secs(5), ended).await;
        ended.expect("soon").expect_err("it is gone without a word");
    }
}
