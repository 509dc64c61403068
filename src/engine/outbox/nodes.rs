//! Detects dead nodes: processes that served and whose leases expired.

use super::Sender;
use crate::domain::notice::Notice;
use crate::domain::notice::notice_trigger;
use crate::domain::time::Millis;
use crate::store::node::NodeMember;
use crate::store::{self, outbox};
use anyhow::{Context as _, Result};

/// Interval between two checks for dead nodes, in milliseconds.
const NODES_MS: i64 = 10_000;
/// How long after the end of its lease a process is reported as dead, in milliseconds. A process
/// dead for longer is not reported.
const SILENT_MS: i64 = 10_000;
const LOST_MS: i64 = 3_600_000;

impl Sender {
    /// Notifies the operators of serving processes that have died, once each.
    pub(super) async fn tell_of_nodes(&mut self, now: Millis) -> Result<()> {
        if self.options.operators.is_empty() || now < self.nodes_at {
            return Ok(());
        }
        self.nodes_at = now.plus_ms(NODES_MS);
        let mut tx = self.db.begin_read().await?;
        let members = store::node::members(&mut tx, now.plus_ms(-LOST_MS)).await?;
        drop(tx);
        let is_lost = |m: &&NodeMember| {
            !m.offer.roles.is_empty()
                && !m.is_draining
                && m.node.lease_until <= now.plus_ms(-SILENT_MS)
        };
        let mut notices = Vec::new();
        for lost in members.iter().filter(is_lost) {
            let (name, node) = (&lost.offer.name, &lost.node);
            let name = if name.is_empty() { &node.node_id.0 } else { name };
            let key = format!("node_lost:{}", node.node_id.0);
            let told = notice_trigger::node_lost(
                name,
                &node.host,
                node.lease_until,
                &self.options.operators,
            );
            let once = told.into_iter().map(|n| Notice { event_key: Some(key.clone()), ..n });
            notices.extend(once);
        }
        if notices.is_empty() {
            return Ok(());
        }
        let told = async {
            let mut tx = self.db.begin().await?;
            outbox::enqueue_plain(&mut tx, &notices, now).await?;
            tx.commit().await.context("tell of processes that have died")
        };
        match told.await {
            // Another process has reported it at this moment.
            Err(error) if store::is_taken(&error) => Ok(()),
            told => told,
        }
    }
}
