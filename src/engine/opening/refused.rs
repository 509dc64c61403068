//! Why an order does not become a batch, or a batch is not resumed.

use crate::domain::batch::{Batch, BatchStatus};
use crate::domain::time::Millis;

/// Why an order did not become a batch of this process.
#[derive(Debug, thiserror::Error)]
pub enum OpeningRefusal {
    /// The batch exists.
    #[error("batch {0} of group {1} exists already ({2}); it never runs silently twice. {cure}",
        cure = hint_for(.0, .1, *.2))]
    Exists(String, String, BatchStatus),
    /// The new definition has other jobs or dependencies.
    #[error(
        "--latest takes over changes of bodies and settings only, and the present definition of group \
         {0} has other jobs or dependencies than the batch: {1}. Go on without --latest"
    )]
    OtherShape(String, String),
    /// The outcome of some of its jobs is open, and the new definition would look it up in the
    /// wrong place.
    #[error(
        "what became of {1} is open and will be looked up in the ledger of the data source where it ran; \
         the present definition of group {0} gives another class or another data source, where nothing \
         would be found, and it would run twice. Go on without --latest; or look at the data, say what \
         is true (procession job force-success, force-failure), and then --latest"
    )]
    OpenOutcome(String, String),
    /// There is nothing to resume.
    #[error("there is no batch {0} of group {1} to resume; leave out --resume to start it")]
    NotThere(String, String),
    /// A living process owns the batch.
    #[error(
        "batch {batch_no} of group {group} is in the hands of another process ({host}, pid {pid}), \
         alive until at least {until}; wait for it, or end it with: procession batch kill {batch_no} \
         --group {group} --reason WHY"
    )]
    Owned {
        batch_no: String,
        group: String,
        /// The host name of the owner.
        host: String,
        /// The process id of the owner.
        pid: i64,
        /// When its lease expires unless renewed.
        until: Millis,
    },
    /// Another process came first.
    #[error("batch {0} of group {1} has just been taken by another process; let it do its work")]
    Hurried(String, String),
    /// The batch has succeeded.
    #[error("batch {0} of group {1} ended {2}; there is nothing left to resume")]
    Ended(String, String, BatchStatus),
    /// The batch has failed, and no job may start over without a decision.
    #[error(
        "batch {0} of group {1} has only jobs of unknown outcome ({2}) left; look at their data, \
         then: --resume --rerun-unknown"
    )]
    OnlyUnknown(String, String, String),
}

impl OpeningRefusal {
    /// The refusal for an existing batch.
    pub fn exists(there: &Batch) -> Self {
        let values = &there.values;
        Self::Exists(values.batch_no.to_string(), values.group.to_string(), there.status)
    }
}

fn hint_for(batch_no: &str, group: &str, status: BatchStatus) -> String {
    let resume = format!("procession run --batch-no {batch_no} --group {group} --resume");
    match status {
        BatchStatus::Success | BatchStatus::Warning => {
            "It is done; to run the jobs once more, give another batch number".to_owned()
        }
        BatchStatus::Running | BatchStatus::Killing => format!(
            "A process that serves goes on with it; follow it with: procession batch wait {batch_no} \
             --group {group}. Where none serves and its own process has died: {resume}"
        ),
        BatchStatus::Failed | BatchStatus::Killed => {
            format!("To go on from its failures: {resume}")
        }
    }
}
