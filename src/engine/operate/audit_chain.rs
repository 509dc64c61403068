//! The hash chain over the audit log: sealed beside everything else, a moment after the commit of an act, and verified.
//!
//! An act waits for nobody: seals are made of committed rows, by one process at a time under the row of `audit_head`.
//! The decision is docs/adr/0032-audit-chain.md.

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

/// Its name among the loops of a process.
const NAME: &str = "audit";
/// Between two looks for new acts.
const TICK: Duration = Duration::from_secs(2);
/// Ticks after which it is looked for acts that committed after later ones.
const FULL_EVERY: u32 = 15;
/// Acts of one transaction.
const AT_ONCE: u32 = 500;
/// Seals that are read at a time.
const PAGE: u32 = 1_000;

/// Seals acts while a process serves.
pub struct AuditSealer {
    db: Db,
    clock: Clock,
    meter: Arc<Meter>,
}

impl AuditSealer {
    /// Of this process.
    pub(in crate::engine) fn new(process: &ClusterProcess) -> Self {
        let ClusterProcess { db, clock, meter, .. } = process.clone();
        Self { db, clock, meter }
    }

    /// Seals until it is told to stop. No error ends it.
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
        // What ended with this process is sealed by another one, or by the next.
        self.meter.loop_ended(NAME);
    }

    /// Seals what there is, unless no act is newer than `seen`; gives the newest.
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

/// Seals all acts that have no seal; gives how many.
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

/// Where the chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainBreak {
    /// A number is missing.
    #[error("seal {0} is missing: seals were removed")]
    SealMissing(i64),
    /// A seal does not follow from the one before.
    #[error(
        "seal {seal_no} (act {audit_id}) does not follow from the seal before: one of them was changed"
    )]
    Link {
        /// The seal.
        seal_no: i64,
        /// Its act.
        audit_id: i64,
    },
    /// An act is not what was sealed.
    #[error("act {audit_id} (seal {seal_no}) is not what was sealed: its row was changed")]
    ActChanged {
        /// The seal.
        seal_no: i64,
        /// Its act.
        audit_id: i64,
    },
    /// An act is gone, and retention did not remove it.
    #[error(
        "act {audit_id} (seal {seal_no}, {at}) is gone, and retention did not remove it: its row was removed"
    )]
    ActMissing {
        /// The seal.
        seal_no: i64,
        /// Its act.
        audit_id: i64,
        /// When it was.
        at: Millis,
    },
    /// An act has a key among those that are all sealed, and no seal.
    #[error("act {0} has no seal, and all acts up to later ones have: its row was added by hand")]
    ActAdded(i64),
    /// The chain does not end where it did.
    #[error("the chain ends at {found} and should end at {wanted}: its end was cut off")]
    End {
        /// Where it ends.
        found: AuditHead,
        /// Where the head row says.
        wanted: AuditHead,
    },
    /// The row of the head is gone.
    #[error("audit_head has no row: it was removed")]
    HeadMissing,
    /// A head that was kept elsewhere is not in the chain.
    #[error(
        "the chain does not hold the head {0} that was given: what came after an earlier point was cut off or written anew"
    )]
    KeptHead(AuditHead),
}

/// What verifying came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// Acts whose rows are there and as they were sealed.
    pub verified: u64,
    /// Acts that retention removed; their seals hold.
    pub removed: u64,
    /// Acts that have no seal yet.
    pub waiting: i64,
    /// The end of the chain.
    pub head: AuditHead,
    /// The first place where it does not hold.
    pub first_break: Option<ChainBreak>,
}

/// Looks at every act and seal. `kept` are heads of before that were kept elsewhere: they must be in the chain.
pub async fn verify(db: &Db, kept: &[AuditHead]) -> Result<ChainReport> {
    verify_slowly(db, kept, Duration::ZERO).await
}

/// The same with a pause behind each page, for who does it beside other work.
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
        // A transaction for each page: one over all of them would keep old rows of the whole database.
        let mut tx = db.begin_read().await?;
        let page = audit_seal::sealed_acts(&mut tx, check.report.head.seal_no, PAGE).await?;
        for sealed in &page {
            let mut taken = check.check_act(sealed);
            if let Err(ChainBreak::ActMissing { .. }) = taken {
                // Retention may have gone on since it was read how far it is.
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

    /// What is seen at the end alone. The chain may have grown since the head was read.
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

/// Acts in the order of the chain, for a file or a stream.
pub struct ChainedActs {
    /// The acts that are there, each with its seal.
    pub acts: Vec<ChainedAct>,
    /// Number of the last seal that was read, to go on after.
    pub last: Option<AuditHead>,
}

/// An act with its place in the chain.
pub struct ChainedAct {
    /// The act, with its place.
    pub act: AuditRecord,
    /// SHA-256 of the act alone.
    pub row_hash: AuditHash,
}

/// The head of the chain as it was when this seal was the last; none when the chain does not reach so far.
pub async fn head_at(db: &Db, seal_no: i64) -> Result<Option<AuditHead>> {
    if seal_no == 0 {
        return Ok(Some(AuditHead::EMPTY));
    }
    let mut tx = db.begin_read().await?;
    let found = audit_seal::sealed_acts(&mut tx, seal_no - 1, 1).await?;
    let sealed = found.first().filter(|sealed| sealed.stored.seal.seal_no == seal_no);
    Ok(sealed.map(|sealed| AuditHead { seal_no, hash: sealed.stored.hash }))
}

/// The acts after a seal, at this time or later, a page at a time.
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
