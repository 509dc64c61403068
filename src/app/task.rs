//! Work that the runtime's own threads do, and work that would keep one of them busy.

use anyhow::{Context as _, Result};

/// Runs `work` as a task and waits for it. What `block_on` itself runs is on a thread that no socket wakes:
/// each answer of a database then takes two changes of threads more, some 0.05 ms of a hop of 1 ms.
pub async fn as_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        // Nobody aborts it, so it broke down; as it would have here.
        Err(broken) => std::panic::resume_unwind(broken.into_panic()),
    }
}

/// Runs `work` on a thread that may be busy, so that no other task waits for it.
pub async fn on_busy_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.context("work on a thread of its own")
}
