//! Separate runtimes for requests: however long a request keeps its threads, lease, heartbeat and
//! dispatcher have their own.

use std::io;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Maximum number of threads for requests.
const THREADS_MAX: usize = 4;
/// Threads for blocking work: passwords, definitions, graphs. Each kind has a lower limit of its
/// own.
const BLOCKING_THREADS: usize = 32;

/// A runtime that ends, with all its tasks, when it is dropped.
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

    /// For requests that read much: graphs, versions, exports, previews. Half of the processors, so
    /// that as much is left to everything else.
    pub(super) fn for_expensive_requests() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / 2).clamp(1, THREADS_MAX);
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).max_blocking_threads(BLOCKING_THREADS);
        builder.thread_name("expensive").enable_all().build().map(|runtime| Self(Some(runtime)))
    }

    /// For probes.
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
