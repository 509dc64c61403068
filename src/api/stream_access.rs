//! What ends a stream: the session or token that opened it ends, or its user may do something else now.
//!
//! One task of the process looks for all streams, in a few statements, so that a change that another node made
//! ends them as well.

use crate::app::access::{KnownCaller, Porter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between two looks: with the look itself, less than a second.
pub(super) const CHECK: Duration = Duration::from_millis(500);
/// Looks in a row that may fail before all streams end: who may see what is not known any more.
const FAILURES_MAX: u32 = 6;

/// The streams that are open.
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

/// A stream's place among the open ones, until it is dropped.
pub(super) struct StreamAccess {
    all: Arc<Mutex<StreamTable>>,
    key: u64,
    /// Cancelled when its caller may not see it any more.
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
    /// Adds a stream of somebody who is known.
    pub(super) fn add_stream(&self, known: Arc<KnownCaller>) -> StreamAccess {
        let ended = CancellationToken::new();
        let mut table = lock_streams(&self.all);
        table.last_key += 1;
        let key = table.last_key;
        table.streams.insert(key, OpenStream { known, ended: ended.clone() });
        StreamAccess { all: self.all.clone(), key, ended }
    }

    /// Ends the streams whose callers are not who they were; costs nothing while there are none.
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
