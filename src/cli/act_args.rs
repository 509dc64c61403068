//! Arguments of `job hold | release | …` and `batch pause | resume | rerun`.

use crate::cli::BatchRef;
use crate::domain::action::OperatorAction;
use crate::domain::action::rerun::{RerunScope, UnknownJobs};
use clap::{Args, Subcommand};

/// Verbs of `job` that change jobs of a batch.
#[derive(Subcommand)]
pub(super) enum JobAct {
    /// Hold waiting jobs back until they are released
    Hold(BatchJobsArgs),
    /// Release held jobs
    Release(BatchJobsArgs),
    /// Skip jobs: their children run
    Skip(BatchJobsArgs),
    /// Ignore jobs, as if they were not in the graph (on ice): children do not wait for them
    Ice(ModeArgs),
    /// Take jobs off ice; they run when their turn comes
    Thaw(BatchJobsArgs),
    /// Dry-run jobs: each waits for its turn and is marked successful without running
    NoExec(ModeArgs),
    /// End ice and no-exec
    Normal(ModeArgs),
    /// Mark failed jobs as successful; the batch continues by itself
    ForceSuccess(BatchJobsArgs),
    /// Mark jobs as failed
    ForceFailure(BatchJobsArgs),
    /// Stop jobs: those that run are ended on their server, those that wait never start
    Kill(BatchJobsArgs),
    /// Change the priority of waiting jobs, which counts when slots are short
    Priority {
        #[command(flatten)]
        jobs: BatchJobsArgs,
        /// Higher goes first; 0 is ordinary
        #[arg(long, allow_hyphen_values = true)]
        to: i32,
    },
    /// Start jobs without waiting for their time
    StartNow {
        #[command(flatten)]
        jobs: BatchJobsArgs,
        /// Do not wait for their parents either
        #[arg(long)]
        ignore_dependencies: bool,
    },
    /// Start jobs over: exactly those, or with everything below or above them
    Rerun {
        #[command(flatten)]
        jobs: BatchJobsArgs,
        #[command(flatten)]
        far: Far,
    },
}

/// Verbs of `batch` that change it.
#[derive(Subcommand)]
pub(super) enum BatchAct {
    /// Start nothing more of a batch; what runs ends
    Pause(GoingArgs),
    /// Let a paused batch go on
    Resume(GoingArgs),
    /// Start jobs of a batch over: from its failures, or a chosen set
    Rerun {
        #[command(flatten)]
        batch: BatchRef,
        /// What failed and everything below it that has not succeeded
        #[arg(long, required_unless_present = "jobs", conflicts_with = "jobs")]
        from_failure: bool,
        /// These jobs
        #[arg(long, value_delimiter = ',', value_name = "A,B")]
        jobs: Vec<String>,
        #[command(flatten)]
        far: Far,
        #[command(flatten)]
        how: ActionModeArgs,
    },
}

/// Jobs of a batch.
#[derive(Args)]
pub(super) struct BatchJobsArgs {
    #[command(flatten)]
    pub(super) batch: BatchRef,
    /// Job codes
    #[arg(required = true, value_name = "JOB")]
    pub(super) jobs: Vec<String>,
    #[command(flatten)]
    pub(super) how: ActionModeArgs,
}

/// Jobs of a batch, or of every new batch.
#[derive(Args)]
pub(super) struct ModeArgs {
    /// Batch number and job codes; with --every-batch, job codes only
    #[arg(required = true, value_names = ["BATCH", "JOB"], num_args = 1..)]
    pub(super) words: Vec<String>,
    /// Group, when several groups have a batch of this number
    #[arg(long)]
    pub(super) group: Option<String>,
    /// In every batch that is opened from now on; `apply` does not change it
    #[arg(long)]
    pub(super) every_batch: bool,
    #[command(flatten)]
    pub(super) how: ActionModeArgs,
}

/// How an action is done.
#[derive(Args)]
pub(super) struct ActionModeArgs {
    /// Why; stored with the job, its log and the audit log
    #[arg(long)]
    pub(super) reason: String,
    /// Only print the list of what would change
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask, also when more changes than was named
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Leave a batch that is open again to `run --resume`
    #[arg(long)]
    pub(super) no_run: bool,
}

/// How far a rerun goes.
#[derive(Args)]
pub(super) struct Far {
    /// With everything below them
    #[arg(long, conflicts_with = "upstream")]
    pub(super) downstream: bool,
    /// With everything above them
    #[arg(long)]
    pub(super) upstream: bool,
    /// With the present bodies and settings of the batch's jobs, not with those it was opened with
    #[arg(long)]
    pub(super) latest: bool,
    /// Start jobs of unknown outcome over as well (look at their data first)
    #[arg(long)]
    pub(super) rerun_unknown: bool,
}

/// A batch that is paused or goes on.
#[derive(Args)]
pub(super) struct GoingArgs {
    #[command(flatten)]
    pub(super) batch: BatchRef,
    /// Why; stored in the audit log
    #[arg(long)]
    pub(super) reason: String,
}

impl Far {
    /// The rerun action; `otherwise` is the default scope.
    pub(super) fn action(&self, otherwise: RerunScope) -> OperatorAction {
        let scope = match (self.downstream, self.upstream) {
            (true, _) => RerunScope::Downstream,
            (false, true) => RerunScope::Upstream,
            (false, false) => otherwise,
        };
        let unknown = if self.rerun_unknown { UnknownJobs::Rerun } else { UnknownJobs::Leave };
        OperatorAction::Rerun(scope, unknown)
    }
}
