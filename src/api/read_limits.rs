//! How much expensive work requests may ask for at once: all together, and one user.

use crate::api::problem::Problem;
use crate::config::Limits;
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits for its turn before it is refused.
const WAIT_LIMIT: Duration = Duration::from_secs(5);
/// Seconds after which a refused request may be sent again.
const RETRY_AFTER: u32 = 2;

/// Limits of expensive requests, shared by all of them.
pub(super) struct ReadLimits {
    all: Arc<Semaphore>,
    per_user: usize,
    users: Arc<Mutex<HashMap<i64, usize>>>,
    definitions: Arc<Semaphore>,
}

/// The turn of an expensive request, until it is dropped.
#[derive(Debug)]
pub(super) struct ReadPlace {
    _user: UserPlace,
    _all: OwnedSemaphorePermit,
}

/// One of the expensive requests of a user.
#[derive(Debug)]
struct UserPlace {
    user: i64,
    users: Arc<Mutex<HashMap<i64, usize>>>,
}

impl Drop for UserPlace {
    fn drop(&mut self) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = users.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.user);
            }
        }
    }
}

/// 429: too much at once.
fn too_many(what: &str, setting: &str) -> Problem {
    let detail = format!(
        "{what}; try again in {RETRY_AFTER} seconds, or ask the administrator of the server to raise \
         limits.{setting}"
    );
    let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail);
    Problem { retry_after: Some(RETRY_AFTER), ..problem }
}

impl ReadLimits {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limits.expensive_reads)),
            per_user: limits.expensive_reads_per_user,
            users: Arc::default(),
            definitions: Arc::new(Semaphore::new(limits.definitions_at_once)),
        }
    }

    /// The turn of an expensive request of this user.
    pub(super) async fn enter(&self, user: i64) -> Result<ReadPlace, Problem> {
        let own = self.enter_user(user)?;
        let turn = tokio::time::timeout(WAIT_LIMIT, self.all.clone().acquire_owned()).await;
        match turn {
            Ok(Ok(all)) => Ok(ReadPlace { _user: own, _all: all }),
            Ok(Err(_)) | Err(_) => {
                Err(too_many("too many expensive requests are under way", "expensive_reads"))
            }
        }
    }

    fn enter_user(&self, user: i64) -> Result<UserPlace, Problem> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let count = users.entry(user).or_default();
        if *count >= self.per_user {
            let what = format!("you have {count} expensive requests under way");
            return Err(too_many(&what, "expensive_reads_per_user"));
        }
        *count += 1;
        Ok(UserPlace { user, users: self.users.clone() })
    }

    /// The turn to read a definition; it is held by the thread that reads it.
    pub(super) async fn enter_definition(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = tokio::time::timeout(WAIT_LIMIT, self.definitions.clone().acquire_owned()).await;
        match turn {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => {
                Err(too_many("other definitions are being read", "definitions_at_once"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn one_user_leaves_room_for_others() {
        let settings = Config::load(Some(std::path::Path::new("/dev/null"))).expect("defaults");
        let limits = Limits { expensive_reads: 2, expensive_reads_per_user: 1, ..settings.limits };
        let reads = ReadLimits::new(&limits);
        let first = reads.enter(1).await.expect("a turn");
        let refused = reads.enter(1).await.expect_err("one is the most");
        assert_eq!((refused.status.as_u16(), refused.retry_after), (429, Some(2)));
        assert!(refused.detail.contains("limits.expensive_reads_per_user"), "{refused}");
        let second = reads.enter(2).await.expect("another user's turn");
        let refused = reads.enter(3).await.expect_err("all turns are taken");
        assert!(
            refused.detail.contains("limits.expensive_reads,")
                || refused.detail.ends_with("limits.expensive_reads"),
            "{refused}"
        );
        drop((first, second));
        reads.enter(1).await.expect("its turn again");
    }
}
