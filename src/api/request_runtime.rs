//! A runtime for requests alone: however long a request keeps its threads, lease, heartbeat and dispatch have
//! theirs.

use std::io;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Threads that requests have, at most.
const THREADS_MAX: usize = 4;
/// Threads for work that keeps one busy: passwords, definitions, graphs. Each kind has its own limit below it.
const BLOCKING_THREADS: usize = 32;

/// A runtime that ends, with all that runs on it, when it is dropped.
pub(super) struct RequestRuntime(Option<Runtime>);

impl RequestRuntime {
    /// For the API and the console.
    pub(super) fn for_requests() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.clamp(1, THREADS_MAX);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).max_blocking_threads(BLOCKING_THREADS);
        builder.thread_name("requests").enable_all().build().map(|runtime| Self(Some(runtime)))
    }

    /// For requests that read much: graphs, versions, exports, previews. Half of the processors, so that as much is left
    /// to everything else.
    pub(super) fn for_expensive_requests() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / 2).clamp(1, THREADS_MAX);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).max_blocking_threads(BLOCKING_THREADS);
        builder.thread_name("expensive").enable_all().build().map(|runtime| Self(Some(runtime)))
    }

    /// For probes alone.
    pub(super) fn for_probes() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(1).thread_name("probes").enable_all();
        builder.build().map(|runtime| Self(Some(runtime)))
    }

    /// Runs a task on it.
    pub(super) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        self.0.as_ref().map(|runtime| runtime.spawn(task))
    }
}

impl Drop for RequestRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
