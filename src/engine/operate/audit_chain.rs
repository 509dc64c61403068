//! The hash chain over the audit log: records are sealed a moment after their commit, independently
//! of everything else, and can be verified.
//!
//! No action waits for its seal: seals are computed from committed rows, by one process at a time
//! under the lock of the row in `audit_head`. Decision: docs/adr/0032-audit-chain.md.

use crate::domain::access::audit_chain::{AuditHash, AuditHead};
use crate::domain::time::Millis;
use crate::engine::clock::Clock;
use crate::engine::cluster::process::ClusterProcess;
use crate::engine::observe::metrics::Meter;
use crate::store::Db;
use crate::store::audit::{AuditRecord, record_of_act};
use crate::store::audit_seal::{self, SealedAct};
use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The name of this loop in metrics.
const NAME: &str = "audit";
/// Poll interval for new records.
const TICK: Duration = Duration::from_secs(2);
/// After this many ticks, also look for records that committed after later ones.
const FULL_EVERY: u32 = 15;
/// Records sealed in one transaction.
const AT_ONCE: u32 = 500;
/// Seals read per query.
const PAGE: u32 = 1_000;

/// Seals audit records while a process serves.
pub struct AuditSealer {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
}

impl AuditSealer {
    /// The sealer of this process.
    pub(in crate::engine) fn new(process: &ClusterProcess) -> Self {
        let ClusterProcess { db, clock, meter, .. } = process.clone();
        Self { db, clock, meter }
    }

    /// Seals until it is stopped. No error ends it.
    pub async fn run(self, stop: CancellationToken) {
        let (mut last, mut ticks, mut is_failing) = (None, 0, false);
        while !stop.is_cancelled() {
            self.meter.loop_turned(NAME, self.clock.uptime());
            let is_full = ticks % FULL_EVERY == 0;
            match self.seal_new_acts(last.filter(|_| !is_full)).await {
                Ok(seen) => (last, is_failing) = (Some(seen), false),
                Err(error) => {
                    let error = format!("{error:#}");
                    match is_failing {
                        true => tracing::debug!(error, "acts could not be sealed"),
                        false => tracing::warn!(error, "acts could not be sealed; trying again"),
                    }
                    is_failing = true;
                }
            }
            ticks += 1;
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                () = stop.cancelled() => {}
            }
        }
        // The last records of this process are sealed by another process, or by the next one.
        self.meter.loop_ended(NAME);
    }

    /// Seals new records, unless none is newer than `seen`; returns the newest id.
    async fn seal_new_acts(&self, seen: Option<i64>) -> Result<i64> {
        let mut tx = self.db.begin_read().await?;
        let last = audit_seal::last_act(&mut tx).await?;
        if seen == Some(last) {
            return Ok(last);
        }
        let is_due = audit_seal::is_due(&mut tx, self.clock.now()).await?;
        drop(tx);
        if is_due {
            seal_acts(&self.db, &self.clock).await?;
        }
        Ok(last)
    }
}

/// Seals all records without a seal; returns their number.
pub async fn seal_acts(db: &Db, clock: &Clock) -> Result<usize> {
    let mut sealed = 0;
    loop {
        let mut tx = db.begin().await?;
        let locked = audit_seal::lock_head(&mut tx).await?;
        let done = audit_seal::seal_acts(&mut tx, locked, AT_ONCE, clock.now()).await?;
        failpoint!("audit.seal");
        tx.commit().await.context("seal acts")?;
        sealed += done;
        if done < usize::try_from(AT_ONCE)? {
            return Ok(sealed);
        }
    }
}

/// Where the chain is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainBreak {
    /// A seal number is missing.
    #[error("seal {0} is missing: seals were removed")]
    SealMissing(i64),
    /// A seal does not follow from the previous one.
    #[error(
        "seal {seal_no} (act {audit_id}) does not follow from the seal before: one of them was changed"
    )]
    Link {
        seal_no: i64,
        /// The id of its record.
        audit_id: i64,
    },
    /// A record differs from what was sealed.
    #[error("act {audit_id} (seal {seal_no}) is not what was sealed: its row was changed")]
    ActChanged {
        seal_no: i64,
        /// The id of its record.
        audit_id: i64,
    },
    /// A record is gone, and retention did not remove it.
    #[error(
        "act {audit_id} (seal {seal_no}, {at}) is gone, and retention did not remove it: its row was removed"
    )]
    ActMissing {
        seal_no: i64,
        /// The id of its record.
        audit_id: i64,
        /// When it was written.
        at: Millis,
    },
    /// A record without a seal has an id below the last sealed one.
    #[error("act {0} has no seal, and all acts up to later ones have: its row was added by hand")]
    ActAdded(i64),
    /// The chain does not end where the head row says.
    #[error("the chain ends at {found} and should end at {wanted}: its end was cut off")]
    End {
        /// The last seal found.
        found: AuditHead,
        /// The last seal according to the head row.
        wanted: AuditHead,
    },
    /// The head row is missing.
    #[error("audit_head has no row: it was removed")]
    HeadMissing,
    /// The chain does not contain a head that was kept elsewhere.
    #[error(
        "the chain does not hold the head {0} that was given: what came after an earlier point was cut off or written anew"
    )]
    KeptHead(AuditHead),
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// Records that exist and match their seals.
    pub verified: u64,
    /// Records removed by retention; their seals match.
    pub removed: u64,
    /// Records without a seal so far.
    pub waiting: i64,
    /// The end of the chain.
    pub head: AuditHead,
    /// The first break.
    pub first_break: Option<ChainBreak>,
}

/// Verifies every record and seal. `kept` are earlier heads that were kept elsewhere: they must be
/// in the chain.
pub async fn verify(db: &Db, kept: &[AuditHead]) -> Result<ChainReport> {
    verify_slowly(db, kept, Duration::ZERO).await
}

/// Like `verify`, with a pause after each page, for verification beside other work.
pub(super) async fn verify_slowly(
    db: &Db,
    kept: &[AuditHead],
    pause: Duration,
) -> Result<ChainReport> {
    let mut tx = db.begin_read().await?;
    let mut check = ChainCheck {
        removed_before: audit_seal::removed_before(&mut tx).await?,
        kept: kept.iter().copied().filter(|head| head.seal_no > 0).collect(),
        report: ChainReport {
            verified: 0,
            removed: 0,
            waiting: 0,
            head: AuditHead::EMPTY,
            first_break: None,
        },
    };
    let wanted = audit_seal::find_head(&mut tx).await?;
    drop(tx);
    loop {
        // One transaction per page: a single one would keep old row versions of the whole database.
        let mut tx = db.begin_read().await?;
        let page = audit_seal::sealed_acts(&mut tx, check.report.head.seal_no, PAGE).await?;
        for sealed in &page {
            let mut taken = check.check_act(sealed);
            if let Err(ChainBreak::ActMissing { .. }) = taken {
                // Retention may have progressed since its limit was read.
                check.removed_before = audit_seal::removed_before(&mut tx).await?;
                taken = check.check_act(sealed);
            }
            if let Err(fault) = taken {
                check.report.first_break = Some(fault);
                return Ok(check.report);
            }
        }
        if page.len() < usize::try_from(PAGE)? {
            break;
        }
        drop(tx);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
    let unsealed = audit_seal::unsealed(&mut db.begin_read().await?).await?;
    check.report.waiting = unsealed.waiting;
    check.report.first_break = check.find_break(wanted, unsealed.first_foreign);
    Ok(check.report)
}

struct ChainCheck {
    removed_before: Option<Millis>,
    kept: Vec<AuditHead>,
    report: ChainReport,
}

impl ChainCheck {
    fn check_act(&mut self, sealed: &SealedAct) -> Result<(), ChainBreak> {
        let (seal, hash) = (sealed.stored.seal, sealed.stored.hash);
        let (seal_no, audit_id) = (seal.seal_no, seal.audit_id);
        let next = self.report.head.seal_no + 1;
        if seal_no != next {
            return Err(ChainBreak::SealMissing(next));
        }
        if seal.hash_after(self.report.head.hash) != hash {
            return Err(ChainBreak::Link { seal_no, audit_id });
        }
        match &sealed.act {
            Some(act) if act.hash() == seal.row_hash => self.report.verified += 1,
            Some(_) => return Err(ChainBreak::ActChanged { seal_no, audit_id }),
            None if self.removed_before.is_some_and(|cut| seal.act_time < cut) => {
                self.report.removed += 1;
            }
            None => {
                return Err(ChainBreak::ActMissing { seal_no, audit_id, at: seal.act_time });
            }
        }
        self.report.head = AuditHead { seal_no, hash };
        self.kept.retain(|kept| *kept != self.report.head);
        Ok(())
    }

    /// Finds breaks that only the end of the chain reveals. The chain may have grown since the head
    /// was read.
    fn find_break(&self, wanted: Option<AuditHead>, foreign: Option<i64>) -> Option<ChainBreak> {
        let found = self.report.head;
        match (wanted, self.kept.first().copied()) {
            (None, _) => Some(ChainBreak::HeadMissing),
            (Some(wanted), _) if is_cut(found, wanted) => Some(ChainBreak::End { found, wanted }),
            (_, Some(kept)) => Some(ChainBreak::KeptHead(kept)),
            _ => foreign.map(ChainBreak::ActAdded),
        }
    }
}

fn is_cut(found: AuditHead, wanted: AuditHead) -> bool {
    found.seal_no < wanted.seal_no || (found.seal_no == wanted.seal_no && found.hash != wanted.hash)
}

/// Records in the order of the chain, for a file or a stream.
pub struct ChainedActs {
    /// The existing records, each with its seal.
    pub acts: Vec<ChainedAct>,
    /// The last seal that was read, from which the next page continues.
    pub last: Option<AuditHead>,
}

/// A record with its position in the chain.
pub struct ChainedAct {
    /// The record, with its position.
    pub act: AuditRecord,
    /// SHA-256 of the record alone.
    pub row_hash: AuditHash,
}

/// The head of the chain when this seal was the last; `None` when the chain is shorter.
pub async fn head_at(db: &Db, seal_no: i64) -> Result<Option<AuditHead>> {
    if seal_no == 0 {
        return Ok(Some(AuditHead::EMPTY));
    }
    let mut tx = db.begin_read().await?;
    let found = audit_seal::sealed_acts(&mut tx, seal_no - 1, 1).await?;
    let sealed = found.first().filter(|sealed| sealed.stored.seal.seal_no == seal_no);
    Ok(sealed.map(|sealed| AuditHead { seal_no, hash: sealed.stored.hash }))
}

/// The records after a seal, at this time or later, one page at a time.
pub async fn acts_after(db: &Db, after: i64, since: Option<Millis>) -> Result<ChainedActs> {
    let mut tx = db.begin_read().await?;
    let page = audit_seal::sealed_acts(&mut tx, after, PAGE).await?;
    let last = page
        .last()
        .map(|sealed| AuditHead { seal_no: sealed.stored.seal.seal_no, hash: sealed.stored.hash });
    let mut acts = Vec::new();
    for SealedAct { stored, act } in page {
        let Some(act) = act.filter(|act| since.is_none_or(|since| act.create_time >= since)) else {
            continue;
        };
        acts.push(ChainedAct {
            row_hash: stored.seal.row_hash,
            act: AuditRecord {
                seal: Some(AuditHead { seal_no: stored.seal.seal_no, hash: stored.hash }),
                ..record_of_act(act)?
            },
        });
    }
    Ok(ChainedActs { acts, last })
}
