//! Ends streams whose access is revoked: their session or token has ended, or the permissions of
//! their user have changed.
//!
//! One task of the process checks all streams, in a few statements, so that changes made on another
//! node end them as well.

use crate::app::access::{KnownCaller, Porter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Check interval: including the check itself, less than a second.
pub(super) const CHECK: Duration = Duration::from_millis(500);
/// Number of consecutive failed checks after which all streams end: the permissions are unknown
/// then.
const FAILURES_MAX: u32 = 6;

/// The open streams.
#[derive(Default)]
pub(super) struct OpenStreams {
    all: Arc<Mutex<StreamTable>>,
}

#[derive(Default)]
struct StreamTable {
    last_key: u64,
    failures: u32,
    streams: HashMap<u64, OpenStream>,
}

struct OpenStream {
    known: Arc<KnownCaller>,
    ended: CancellationToken,
}

/// An entry among the open streams, until it is dropped.
pub(super) struct StreamAccess {
    all: Arc<Mutex<StreamTable>>,
    key: u64,
    /// Cancelled when its caller has lost access.
    pub(super) ended: CancellationToken,
}

fn lock_streams(all: &Mutex<StreamTable>) -> MutexGuard<'_, StreamTable> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for StreamAccess {
    fn drop(&mut self) {
        lock_streams(&self.all).streams.remove(&self.key);
    }
}

impl OpenStreams {
    /// Adds a stream of an identified caller.
    pub(super) fn add_stream(&self, known: Arc<KnownCaller>) -> StreamAccess {
        let ended = CancellationToken::new();
        let mut table = lock_streams(&self.all);
        table.last_key += 1;
        let key = table.last_key;
        table.streams.insert(key, OpenStream { known, ended: ended.clone() });
        StreamAccess { all: self.all.clone(), key, ended }
    }

    /// Ends the streams whose callers have changed; costs nothing while there are none.
    pub(super) async fn end_revoked(&self, porter: &Porter) -> anyhow::Result<()> {
        let open: Vec<(u64, Arc<KnownCaller>)> = {
            let table = lock_streams(&self.all);
            table.streams.iter().map(|(key, stream)| (*key, stream.known.clone())).collect()
        };
        if open.is_empty() {
            return Ok(());
        }
        let known: Vec<&KnownCaller> = open.iter().map(|(_, known)| known.as_ref()).collect();
        let checked = porter.unchanged(&known).await;
        let mut table = lock_streams(&self.all);
        match checked {
            Ok(unchanged) => {
                table.failures = 0;
                for ((key, _), is_same) in open.iter().zip(unchanged) {
                    if let Some(stream) = table.streams.get(key).filter(|_| !is_same) {
                        stream.ended.cancel();
                    }
                }
                Ok(())
            }
            Err(error) => {
                table.failures += 1;
                if table.failures >= FAILURES_MAX {
                    table.streams.values().for_each(|stream| stream.ended.cancel());
                }
                Err(error)
            }
        }
    }
}
