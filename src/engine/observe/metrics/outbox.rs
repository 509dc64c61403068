//! Metrics of notifications.

use super::{Counters, Meter, add_metric};
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

pub(super) struct Outbox {
    tries: Counters<1>,
}

impl Outbox {
    pub(super) fn register(to: &mut Registry) -> Self {
        let about = "Tries to send a letter, by what came of it: sent, again, failed";
        Self { tries: add_metric(to, "outbox_tries", about, Family::default()) }
    }
}

impl Meter {
    /// Counts notifications: sent, to be retried, and failed.
    pub fn mails(&self, sent: usize, again: usize, failed: usize) {
        for (word, n) in [("sent", sent), ("again", again), ("failed", failed)] {
            if n > 0 {
                let n = u64::try_from(n).unwrap_or(u64::MAX);
                self.outbox.tries.get_or_create(&[("result", word)]).inc_by(n);
            }
        }
    }
}
