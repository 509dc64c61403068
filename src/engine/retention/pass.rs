//! One pass over all old rows: first the batches that are partly removed, then further batches, log
//! lines, and rows with an age limit of their own.

use super::Sweeper;
use super::removable_batches::Judging;
use crate::domain::id::{BatchId, NodeId};
use crate::domain::retention::KeepReason;
use crate::domain::text::{MESSAGE_MAX, storable};
use crate::domain::time::Millis;
use crate::store::audit::{self, AuditEntry};
use crate::store::audit_seal::{REMOVED_ACTION, REMOVED_BEFORE};
use crate::store::lock::{self, LockOwnership, RETENTION_LOCK};
use crate::store::retention::{self, Aged, AgedRowRemoval, ByTable, Candidate, Cursor, Dropped};
use crate::store::{Db, Tx};
use anyhow::{Context as _, Result};
use serde_json::json;

/// Interval after which the lock is renewed, in milliseconds.
const SIGN_MS: i64 = 15_000;

/// The phases of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Batches marked by an earlier pass.
    Leftover,
    /// Batches of the group with this index.
    Batches(usize, Cursor),
    /// Log lines of batches of the group with this index.
    Lines(usize, Cursor),
    /// Rows of this kind (index), in the state with this index.
    Aged(usize, usize, Cursor),
    /// The pass is complete.
    Over,
}

/// Log lines of kept batches that are being removed.
struct LineRemoval {
    batches: Vec<BatchId>,
    cut: Millis,
    after: i64,
}

/// A pass: its phase, and what it has removed.
pub(super) struct RetentionPass {
    judging: Judging,
    phase: Phase,
    removing: Vec<BatchId>,
    lines: Option<LineRemoval>,
    marked: u64,
    totals: ByTable,
    /// When the lock was taken or last renewed.
    signed: Millis,
}

/// The result of a step.
pub(super) enum PassStep {
    Did(ByTable),
    Theirs(NodeId),
    Ended(ByTable),
}

/// A transaction that holds the lock, or the process that holds it instead.
enum Mine {
    Tx(Tx),
    Theirs(NodeId),
}

async fn take_turn(db: &Db, me: &NodeId, now: Millis) -> Result<Mine> {
    let mut tx = db.begin().await?;
    match lock::take_turn(&mut tx, RETENTION_LOCK, me, now).await? {
        LockOwnership::Ours => Ok(Mine::Tx(tx)),
        LockOwnership::Theirs(owner) => {
            tx.rollback().await?;
            Ok(Mine::Theirs(owner))
        }
    }
}

/// The transaction, or the end of the step.
macro_rules! turn {
    ($sweeper:expr, $now:expr) => {
        match take_turn(&$sweeper.db, &$sweeper.me, $now).await? {
            Mine::Tx(tx) => tx,
            Mine::Theirs(owner) => return Ok(PassStep::Theirs(owner)),
        }
    };
}

impl RetentionPass {
    /// Takes the lock and reads the facts that the rule needs; returns the owner of the lock when
    /// that is another process.
    pub(super) async fn begin(with: &Sweeper, now: Millis) -> Result<Result<Self, NodeId>> {
        match take_turn(&with.db, &with.me, now).await? {
            Mine::Tx(tx) => tx.commit().await.context("take the turn")?,
            Mine::Theirs(owner) => return Ok(Err(owner)),
        }
        let mut tx = with.db.begin_read().await?;
        let judging = Judging::begin(&mut tx, &with.options, now).await?;
        Ok(Ok(Self {
            judging,
            phase: Phase::Leftover,
            removing: Vec::new(),
            lines: None,
            marked: 0,
            totals: ByTable::new(),
            signed: now,
        }))
    }

    /// Whether batches are partly removed.
    pub(super) fn is_amidst(&self) -> bool {
        !self.removing.is_empty()
    }

    /// One step: a read, a mark, or one transaction that removes rows.
    pub(super) async fn run_step(&mut self, with: &Sweeper, now: Millis) -> Result<PassStep> {
        // Reading many batches that are all kept takes long, and the lock must be held meanwhile.
        if now.since(self.signed) > SIGN_MS {
            let tx = turn!(with, now);
            tx.commit().await.context("keep the turn")?;
            self.signed = now;
        }
        if self.is_amidst() {
            return self.remove(with, now).await;
        }
        if self.lines.is_some() {
            return self.remove_lines(with, now).await;
        }
        match self.phase {
            Phase::Leftover => self.leftover(with).await,
            Phase::Batches(group, after) => self.batches(with, group, after, now).await,
            Phase::Lines(group, after) => self.find_lines(with, group, after, now).await,
            Phase::Aged(kind, word, after) => self.remove_aged(with, kind, word, after, now).await,
            Phase::Over => self.finish(with, now).await,
        }
    }

    fn record_removal(&mut self, dropped: Dropped) -> PassStep {
        for (table, rows) in &dropped.rows {
            *self.totals.entry(table).or_default() += rows;
        }
        PassStep::Did(dropped.rows)
    }

    fn looked() -> PassStep {
        PassStep::Did(ByTable::new())
    }

    async fn leftover(&mut self, with: &Sweeper) -> Result<PassStep> {
        let mut tx = with.db.begin_read().await?;
        self.removing = retention::marked(&mut tx, u32::try_from(retention::PAGE)?).await?;
        if self.removing.is_empty() {
            self.phase = Phase::Batches(0, Cursor::START);
        }
        Ok(Self::looked())
    }

    /// Removes rows of marked batches.
    async fn remove(&mut self, with: &Sweeper, now: Millis) -> Result<PassStep> {
        let mut tx = turn!(with, now);
        let mut dropped = Dropped::new(with.options.rows_per_step.into());
        let left = with.options.left;
        let gone = retention::finish_some(&mut tx, &self.removing, left, &mut dropped).await?;
        failpoint!("retention.step");
        tx.commit().await.context("remove old rows")?;
        failpoint!("retention.step");
        self.removing.drain(..gone);
        Ok(self.record_removal(dropped))
    }

    /// Decides about one page of batches, and marks those to be removed.
    async fn batches(
        &mut self,
        with: &Sweeper,
        at: usize,
        after: Cursor,
        now: Millis,
    ) -> Result<PassStep> {
        let rest = with.wish.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.marked));
        let group = self.judging.groups.get(at).filter(|_| rest > 0).cloned();
        let Some(group) = group else {
            self.phase = Phase::Lines(0, Cursor::START);
            return Ok(Self::looked());
        };
        let mut tx = with.db.begin_read().await?;
        let page = self.judging.next_page(&mut tx, &group, after, now).await?;
        tx.rollback().await?;
        let goes = |(c, kept): (Candidate, Option<KeepReason>)| kept.is_none().then_some(c);
        let mut go: Vec<Candidate> = page.judged.into_iter().filter_map(goes).collect();
        go.truncate(usize::try_from(rest).unwrap_or(usize::MAX));
        if !go.is_empty() {
            let mut tx = turn!(with, now);
            let marked = retention::mark_batches(&mut tx, &go, now).await?;
            go.retain(|c| marked.contains(&c.batch_id));
            let acts: Vec<AuditEntry> =
                go.iter().map(|c| self.audit_entry(with, at, c, now)).collect();
            audit::record(&mut tx, &with.wish.by, &acts, now).await?;
            failpoint!("retention.step");
            tx.commit().await.context("mark old batches")?;
            failpoint!("retention.step");
            self.marked += u64::try_from(marked.len())?;
            self.removing = marked;
        }
        self.phase = page
            .next
            .map_or(Phase::Batches(at + 1, Cursor::START), |next| Phase::Batches(at, next));
        Ok(Self::looked())
    }

    /// The audit entry of a removed batch.
    fn audit_entry(&self, with: &Sweeper, at: usize, gone: &Candidate, now: Millis) -> AuditEntry {
        let days = now.since(gone.ended) / crate::domain::retention::DAY_MS;
        let reason = with.wish.reason.clone().unwrap_or_else(|| format!("ended {days} days ago"));
        AuditEntry {
            action: retention::REMOVED.to_owned(),
            group: self.judging.groups.get(at).cloned(),
            batch: Some((gone.batch_id, gone.batch_no.clone())),
            job: None,
            detail: Some(json!({"status": gone.status.as_str(), "ended": gone.ended.to_string()})),
            reason: Some(storable(reason.as_bytes(), MESSAGE_MAX)),
        }
    }

    /// Finds kept batches whose log lines are to be removed.
    async fn find_lines(
        &mut self,
        with: &Sweeper,
        at: usize,
        after: Cursor,
        now: Millis,
    ) -> Result<PassStep> {
        let Some(group) = self.judging.groups.get(at).filter(|_| !with.options.left.lines) else {
            self.phase = Phase::Aged(0, 0, Cursor::START);
            return Ok(Self::looked());
        };
        let rule = with.options.rule_of(group);
        self.phase = Phase::Lines(at + 1, Cursor::START);
        let Some(cut) = rule.lines_cut(now) else { return Ok(Self::looked()) };
        let mut tx = with.db.begin_read().await?;
        let found = retention::with_lines(&mut tx, group, cut, after).await?;
        if found.len() == retention::PAGE
            && let Some((id, _, ended)) = found.last()
        {
            self.phase = Phase::Lines(at, Cursor { at: *ended, key: id.0 });
        }
        let batches: Vec<BatchId> = found
            .into_iter()
            .filter(|(_, status, ended)| rule.drops_lines(*status, *ended, now))
            .map(|(id, _, _)| id)
            .collect();
        self.lines = (!batches.is_empty()).then_some(LineRemoval { batches, cut, after: 0 });
        Ok(Self::looked())
    }

    /// Removes log lines of kept batches. Their rows are locked for the step, and batches restarted
    /// meanwhile are skipped.
    async fn remove_lines(&mut self, with: &Sweeper, now: Millis) -> Result<PassStep> {
        let Some(lines) = &mut self.lines else { return Ok(Self::looked()) };
        let mut tx = turn!(with, now);
        let first = lines.batches.first().copied();
        lines.batches = retention::still_over(&mut tx, &lines.batches, lines.cut).await?;
        if lines.batches.first().copied() != first {
            lines.after = 0;
        }
        let mut dropped = Dropped::new(with.options.rows_per_step.into());
        let (mut done, mut after) = (0, lines.after);
        for batch in &lines.batches {
            let rest = retention::remove_lines_of(&mut tx, *batch, after, &mut dropped).await?;
            after = rest.unwrap_or(0);
            if rest.is_some() {
                break;
            }
            retention::note_lines(&mut tx, *batch, now).await?;
            done += 1;
        }
        failpoint!("retention.step");
        tx.commit().await.context("remove old lines")?;
        failpoint!("retention.step");
        lines.batches.drain(..done);
        lines.after = after;
        if lines.batches.is_empty() {
            self.lines = None;
        }
        Ok(self.record_removal(dropped))
    }

    /// Removes rows with an age limit of their own, one page at a time.
    async fn remove_aged(
        &mut self,
        with: &Sweeper,
        at: usize,
        word_at: usize,
        after: Cursor,
        now: Millis,
    ) -> Result<PassStep> {
        let Some(kind) = Aged::ALL.get(at).copied() else {
            self.phase = Phase::Over;
            return Ok(Self::looked());
        };
        let cut = with.options.age_limit(kind, now);
        let Some((cut, word)) = cut.and_then(|(cut, words)| Some((cut, *words.get(word_at)?)))
        else {
            self.phase = Phase::Aged(at + 1, 0, Cursor::START);
            return Ok(Self::looked());
        };
        let limit = with.options.rows_per_step;
        let mut tx = with.db.begin_read().await?;
        let found = retention::list_aged(&mut tx, kind, word, cut, after, limit).await?;
        tx.rollback().await?;
        let go: Vec<(i64, u64)> = found
            .iter()
            .filter(|row| row.goes == AgedRowRemoval::Yes)
            .map(|row| (row.place.key, row.others))
            .collect();
        let mut dropped = Dropped::new(limit.into());
        if !go.is_empty() {
            let mut tx = turn!(with, now);
            retention::remove_keys(&mut tx, kind, &go, &mut dropped).await?;
            if kind == Aged::Audit {
                note_removed_acts(&mut tx, with, go.len(), cut, now).await?;
            }
            failpoint!("retention.step");
            tx.commit().await.context("remove old rows")?;
            failpoint!("retention.step");
        }
        let is_last = found.len() < usize::try_from(limit)?;
        self.phase = match (kind, found.last()) {
            // A row that did not fit into the step is still there, with its dependent rows.
            (Aged::Backfills, _) if dropped.room == 0 => Phase::Aged(at, word_at, after),
            (_, Some(last)) if !is_last => Phase::Aged(at, word_at, last.place),
            _ => Phase::Aged(at, word_at + 1, Cursor::START),
        };
        Ok(self.record_removal(dropped))
    }

    /// Records what the pass removed besides batches, and releases the lock.
    async fn finish(&mut self, with: &Sweeper, now: Millis) -> Result<PassStep> {
        let mut tx = turn!(with, now);
        let removed: ByTable =
            self.totals.iter().filter(|(_, rows)| **rows > 0).map(|(t, n)| (*t, *n)).collect();
        if !removed.is_empty() {
            let entry = AuditEntry {
                action: "retention".to_owned(),
                group: None,
                batch: None,
                job: None,
                detail: Some(json!({"removed": removed})),
                reason: with.wish.reason.clone(),
            };
            audit::record(&mut tx, &with.wish.by, &[entry], now).await?;
        }
        with.note_last_pass(&mut tx, &removed, now).await?;
        lock::end_turn(&mut tx, RETENTION_LOCK, &with.me).await?;
        tx.commit().await.context("end a pass of retention")?;
        Ok(PassStep::Ended(removed))
    }
}

/// Records that audit records were removed and up to when: otherwise their seals would lack
/// records, and the chain would be broken.
async fn note_removed_acts(
    tx: &mut Tx,
    with: &Sweeper,
    acts: usize,
    cut: Millis,
    now: Millis,
) -> Result<()> {
    let entry = AuditEntry {
        action: REMOVED_ACTION.to_owned(),
        group: None,
        batch: None,
        job: None,
        detail: Some(json!({ "acts": acts, "before": cut.to_string(), REMOVED_BEFORE: cut.0 })),
        reason: with.wish.reason.clone(),
    };
    audit::record(tx, &with.wish.by, &[entry], now).await
}
