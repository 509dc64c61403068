//! The queue rows of a batch of many jobs, written in steps by the process that owns the batch.
//!
//! Each step is a transaction of its own, so that the lease and other batches get their turn
//! between two steps. After a crash between two steps the batch row shows how many rows are
//! missing; the next owner continues.

use crate::domain::batch::{Batch, Snapshot, start_times};
use crate::domain::id::{BatchId, BatchNo, GroupCode, NodeId};
use crate::domain::time::Millis;
use crate::engine::opening::create_batch::finish_rows;
use crate::store::batch::{self, ROWS_PER_STEP};
use crate::store::{Db, queue};
use anyhow::{Context as _, Result, ensure};

/// A batch of this process whose rows are not all written.
pub(in crate::engine) struct UnfinishedOpening {
    batch: Batch,
    snapshot: Snapshot,
    start_times: Vec<Option<Millis>>,
}

impl UnfinishedOpening {
    /// Reads a batch that `refuse_opening` has refused.
    pub(in crate::engine) async fn read_batch(db: &Db, id: BatchId) -> Result<Self> {
        let (batch, snapshot) = batch::get_with_snapshot(&mut db.begin_read().await?, id).await?;
        // Times of day refer to the day on which the batch was opened, whichever process writes the
        // row.
        let start_times = start_times(&snapshot, batch.create_time)?;
        ensure!(
            batch.unwritten_jobs as usize <= snapshot.jobs.len(),
            "{} jobs of batch {} are to be written, and its definition has {}",
            batch.unwritten_jobs,
            batch.values.batch_no,
            snapshot.jobs.len()
        );
        Ok(Self { batch, snapshot, start_times })
    }

    /// Number of jobs with rows, and number of jobs.
    pub(in crate::engine) fn progress(&self) -> OpeningProgress {
        let (batch_no, group) =
            (self.batch.values.batch_no.clone(), self.snapshot.group.code.clone());
        let total = self.snapshot.jobs.len();
        OpeningProgress { batch_no, group, written: self.written(), total }
    }

    fn written(&self) -> usize {
        self.snapshot.jobs.len() - self.batch.unwritten_jobs as usize
    }

    /// Writes the next rows in a transaction of its own; `true` when none are left. Fails as stale
    /// when the batch has another owner or was changed.
    pub(in crate::engine) async fn write_step(
        &mut self,
        db: &Db,
        me: &NodeId,
        now: Millis,
    ) -> Result<bool> {
        let id = self.batch.batch_id;
        let (from, unwritten) = (self.written(), self.batch.unwritten_jobs);
        let jobs = self.snapshot.jobs.iter().zip(&self.start_times).skip(from).take(ROWS_PER_STEP);
        let entries: Vec<queue::NewEntry<'_>> = jobs
            .map(|(job, start)| queue::NewEntry { job_code: &job.code, not_before: *start })
            .collect();
        let left = unwritten - u32::try_from(entries.len())?;
        let mut tx = db.begin().await?;
        batch::lock_owned(&mut tx, id, me, self.batch.revision).await?;
        let batch_no = self.batch.values.batch_no.as_str();
        let rows = queue::NewEntries { batch: id, batch_no, entries: &entries };
        queue::generate_many(&mut tx, &[rows], now).await?;
        batch::count_written(&mut tx, id, unwritten, entries.len()).await?;
        if left == 0 {
            queue::look_over(&mut tx, self.snapshot.jobs.len()).await?;
            finish_rows(&mut tx, id, &self.batch.values.group, now).await?;
        }
        failpoint!("batch.step");
        tx.commit().await.context("write queue rows of a batch")?;
        failpoint!("batch.step");
        self.batch.unwritten_jobs = left;
        Ok(left == 0)
    }
}

/// Progress of opening a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningProgress {
    pub batch_no: BatchNo,
    pub group: GroupCode,
    /// Number of jobs whose rows are written.
    pub written: usize,
    /// Number of all jobs.
    pub total: usize,
}
