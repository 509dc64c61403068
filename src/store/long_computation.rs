//! Runs computations that are long enough to delay other tasks.
//!
//! A batch of 100,000 jobs takes seconds to unpack and to build in a debug build on a busy machine.
//! On a thread that also renews the lease, the lease was lost, the batch was read again, and so on
//! forever.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From this number of rows on the runtime is informed: some milliseconds of work.
const LONG_ROWS: usize = 2_000;

/// Runs `work` on `rows` rows; if those are many, other tasks of this thread are moved to another
/// thread before.
pub fn compute<T>(rows: usize, work: impl FnOnce() -> T) -> T {
    let has_threads = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if rows >= LONG_ROWS && has_threads { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Whether another task of the only thread ran during the work, which waits for that.
    async fn runs_beside(rows: usize) -> bool {
        let work = async move {
            let (sender, receiver) = mpsc::channel();
            tokio::spawn(async move { sender.send(()) });
            compute(rows, || receiver.recv_timeout(Duration::from_millis(300)).is_ok())
        };
        tokio::spawn(work).await.expect("it ends")
    }

    #[test]
    fn other_tasks_go_on_during_long_work() {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        assert!(!runtime.block_on(runs_beside(1)), "short work keeps its thread");
        assert!(runtime.block_on(runs_beside(LONG_ROWS)));
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_just_does_it() {
        assert_eq!(compute(LONG_ROWS, || 7), 7);
    }
}
