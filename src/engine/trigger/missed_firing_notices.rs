//! Notifications of missed planned times, ended schedules, and firings that failed or were skipped:
//! rows of the outbox, in the transaction of the change.

use crate::domain::notice::notice_trigger::{self as words, Audience};
use crate::domain::schedule::firing::{Firing, FiringStatus, NewFiring, Source, TriggerId};
use crate::domain::schedule::trigger::Trigger;
use crate::domain::time::Millis;
use crate::store::{Tx, job, outbox};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap};

/// Notifies of missed planned times: one notification per recipient and schedule.
pub(super) async fn misses(
    tx: &mut Tx,
    known: &HashMap<TriggerId, Trigger>,
    rows: &[NewFiring],
    now: Millis,
) -> Result<()> {
    let mut missed: BTreeMap<TriggerId, Vec<&NewFiring>> = BTreeMap::new();
    for row in rows {
        if row.status == FiringStatus::Misfired || row.source == Source::Misfire {
            missed.entry(row.trigger_id).or_default().push(row);
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    let audience = audience(tx).await?;
    let mut notices = Vec::new();
    for (id, rows) in &missed {
        if let Some(trigger) = known.get(id) {
            notices.extend(words::missed(&trigger.def, rows, &audience, now));
        }
    }
    outbox::enqueue_plain(tx, &notices, now).await
}

/// Notifies of schedules that will not fire any more.
pub(super) async fn ended(
    tx: &mut Tx,
    known: &HashMap<TriggerId, Trigger>,
    ended: &[(TriggerId, String)],
    now: Millis,
) -> Result<()> {
    if ended.is_empty() {
        return Ok(());
    }
    let audience = audience(tx).await?;
    let mut notices = Vec::new();
    for (id, why) in ended {
        if let Some(trigger) = known.get(id) {
            notices.extend(words::ended(&trigger.def, why, &audience));
        }
    }
    outbox::enqueue_plain(tx, &notices, now).await
}

/// Notifies of a firing that opened nothing: it failed or was skipped.
pub(super) async fn not_fired(
    tx: &mut Tx,
    trigger: &Trigger,
    firing: &Firing,
    status: FiringStatus,
    why: &str,
    now: Millis,
) -> Result<()> {
    let audience = audience(tx).await?;
    let notices = words::not_fired(&trigger.def, firing, status, why, &audience);
    outbox::enqueue_plain(tx, &notices, now).await
}

async fn audience(tx: &mut Tx) -> Result<Audience> {
    let (groups, owners) = job::audience(tx).await?;
    Ok(Audience { groups, owners })
}
