//! The state of batches and jobs at the last poll, and the events to publish after the next.

use crate::api::events::StreamedEvent;
use crate::domain::id::BatchId;
use crate::store::changed::{ChangedBatch, ChangedJob};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Number of polls for which a skipped key is looked for again.
const LOOKS: u8 = 10;
/// Maximum number of skipped keys looked for at once; a server that increments in steps skips most
/// of them.
const LEFT_OUT: usize = 500;

/// The known state.
#[derive(Debug, Default)]
pub(super) struct ChangeWatch {
    /// The newest key.
    last: i64,
    /// Keys before it that were missing: rolled back, or of an uncommitted transaction.
    left_out: BTreeMap<i64, u8>,
    /// The open batches.
    open: HashMap<BatchId, ChangedBatch>,
}

impl ChangeWatch {
    pub(super) fn new(last: i64, open: Vec<ChangedBatch>) -> Self {
        let open = open.into_iter().map(|pulse| (pulse.batch_id, pulse)).collect();
        Self { last, left_out: BTreeMap::new(), open }
    }

    /// The newest known key.
    pub(super) fn last_key(&self) -> i64 {
        self.last
    }

    /// Keys that may still appear.
    pub(super) fn left_out(&self) -> Vec<i64> {
        self.left_out.keys().copied().collect()
    }

    /// Batches that were open and have ended.
    pub(super) fn ended(&self, open: &[ChangedBatch]) -> Vec<BatchId> {
        let still: HashSet<BatchId> = open.iter().map(|pulse| pulse.batch_id).collect();
        self.open.keys().filter(|id| !still.contains(id)).copied().collect()
    }

    /// Applies the result of a poll, and returns the events: jobs in the order of their changes,
    /// then batches.
    pub(super) fn take_changes(
        &mut self,
        late: Vec<ChangedJob>,
        fresh: Vec<ChangedJob>,
        open: Vec<ChangedBatch>,
        ended: Vec<ChangedBatch>,
    ) -> Vec<StreamedEvent> {
        self.note_keys(&late, &fresh);
        let mut jobs: Vec<&ChangedJob> = late.iter().chain(&fresh).collect();
        jobs.sort_by_key(|changed| changed.log_id);
        let mut told: Vec<StreamedEvent> =
            jobs.iter().map(|changed| StreamedEvent::job_changed(changed)).collect();
        // A batch that was opened and has ended between two polls is known only by its jobs.
        let is_open: HashSet<BatchId> = open.iter().map(|pulse| pulse.batch_id).collect();
        let mut passed: BTreeMap<BatchId, &ChangedBatch> = BTreeMap::new();
        for changed in jobs.iter().filter(|c| !is_open.contains(&c.batch.batch_id)) {
            if !self.open.contains_key(&changed.batch.batch_id) {
                passed.insert(changed.batch.batch_id, &changed.batch);
            }
        }
        let last = self.last;
        let changed = open.iter().filter(|pulse| self.open.get(&pulse.batch_id) != Some(pulse));
        let batches = changed.chain(&ended).chain(passed.into_values());
        told.extend(batches.map(|pulse| StreamedEvent::batch(pulse, last)));
        self.open = open.into_iter().map(|pulse| (pulse.batch_id, pulse)).collect();
        told
    }

    /// Notes which keys were found and which were skipped.
    fn note_keys(&mut self, late: &[ChangedJob], fresh: &[ChangedJob]) {
        for changed in late {
            self.left_out.remove(&changed.log_id);
        }
        self.left_out.retain(|_, looks| {
            *looks -= 1;
            *looks > 0
        });
        for changed in fresh {
            let between = self.last + 1..changed.log_id;
            // The newest of a long gap: the oldest has had the most time to appear.
            let from = between.start.max(changed.log_id - LEFT_OUT as i64);
            self.left_out.extend((from..between.end).map(|key| (key, LOOKS)));
            self.last = changed.log_id;
        }
        while self.left_out.len() > LEFT_OUT {
            self.left_out.pop_first();
        }
    }
}
