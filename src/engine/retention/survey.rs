//! Computes what a pass would remove, and why the rest is kept; writes and locks nothing.

use super::RetentionOptions;
use super::removable_batches::Judging;
use crate::domain::id::{BatchId, GroupCode};
use crate::domain::retention::{GroupRetentionRule, KeepReason};
use crate::domain::time::Millis;
use crate::store::retention::{self, Aged, AgedRow, ByTable, Cursor};
use crate::store::{Db, Tx};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What would be removed of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovableBatches {
    pub batches: u64,
    /// When the first of them ended.
    pub oldest: Option<Millis>,
    /// When the last of them ended.
    pub newest: Option<Millis>,
    /// Rows by table, including the batches.
    pub rows: ByTable,
}

impl RemovableBatches {
    fn add_batch(&mut self, ended: Millis) {
        self.batches += 1;
        self.oldest = Some(self.oldest.map_or(ended, |at| at.min(ended)));
        self.newest = Some(self.newest.map_or(ended, |at| at.max(ended)));
    }

    fn count(&mut self, rows: ByTable) {
        for (table, n) in rows {
            *self.rows.entry(table).or_default() += n;
        }
    }
}

/// The removable and the kept batches of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSurvey {
    pub group: GroupCode,
    /// Its retention rule.
    pub rule: GroupRetentionRule,
    /// Batches to remove.
    pub goes: RemovableBatches,
    /// Kept batches whose log lines are removed, with the number of lines as rows.
    pub lines: RemovableBatches,
    /// Number of kept batches, by the strongest reason of each.
    pub kept: BTreeMap<KeepReason, u64>,
}

/// Rows with an age limit of their own that would be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgedGoes {
    pub kind: Aged,
    /// What would be removed; for backfills, `batches` counts them, and `rows` includes their
    /// batches.
    pub goes: RemovableBatches,
    /// Number of rows that are old enough but still needed.
    pub needed: u64,
}

/// What a pass would remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionSurvey {
    /// Each group that has batches.
    pub groups: Vec<GroupSurvey>,
    /// Batches that an earlier pass has partly removed, with the remaining rows.
    pub leftover: RemovableBatches,
    /// Rows with an age limit of their own.
    pub aged: Vec<AgedGoes>,
}

impl RetentionSurvey {
    /// Number of kept batches whose log lines are removed.
    pub fn lines(&self) -> u64 {
        self.groups.iter().map(|g| g.lines.batches).sum()
    }

    /// All rows to remove, by table.
    pub fn totals(&self) -> ByTable {
        let of_groups = self.groups.iter().flat_map(|g| [&g.goes, &g.lines]);
        let all = of_groups.chain([&self.leftover]).chain(self.aged.iter().map(|a| &a.goes));
        let mut totals = RemovableBatches::default();
        all.for_each(|goes| totals.count(goes.rows.clone()));
        totals.rows.retain(|_, n| *n > 0);
        totals.rows
    }
}

/// Reads what a pass would remove now.
pub async fn survey(db: &Db, options: &RetentionOptions, now: Millis) -> Result<RetentionSurvey> {
    let mut tx = db.begin_read().await?;
    let mut judging = Judging::begin(&mut tx, options, now).await?;
    let mut gone = HashSet::new();
    let leftover = leftover(&mut tx, options, &mut gone).await?;
    let mut groups = Vec::new();
    for group in judging.groups.clone() {
        groups.push(of_group(&mut tx, options, &mut judging, &group, &mut gone, now).await?);
    }
    let mut aged = Vec::new();
    for kind in Aged::ALL {
        aged.push(of_age(&mut tx, options, kind, &gone, now).await?);
    }
    Ok(RetentionSurvey { groups, leftover, aged })
}

/// Counts rows of batches to remove, except in tables that are partitioned.
async fn counted(tx: &mut Tx, options: &RetentionOptions, ids: &[i64]) -> Result<ByTable> {
    let mut rows = retention::counted(tx, ids).await?;
    let left = options.left;
    for (is_left, table) in [(left.logs, "job_execution_logs"), (left.lines, "job_log_line")] {
        if is_left {
            rows.remove(table);
        }
    }
    Ok(rows)
}

async fn leftover(
    tx: &mut Tx,
    options: &RetentionOptions,
    gone: &mut HashSet<BatchId>,
) -> Result<RemovableBatches> {
    let mut goes = RemovableBatches::default();
    let marked = retention::marked(tx, u32::MAX >> 1).await?;
    goes.batches = u64::try_from(marked.len())?;
    let ids: Vec<i64> = marked.iter().map(|id| id.0).collect();
    for ids in ids.chunks(retention::PAGE) {
        goes.count(counted(tx, options, ids).await?);
    }
    gone.extend(marked);
    Ok(goes)
}

async fn of_group(
    tx: &mut Tx,
    options: &RetentionOptions,
    judging: &mut Judging,
    group: &GroupCode,
    gone: &mut HashSet<BatchId>,
    now: Millis,
) -> Result<GroupSurvey> {
    let rule = options.rule_of(group);
    let mut found = GroupSurvey {
        group: group.clone(),
        rule,
        goes: RemovableBatches::default(),
        lines: RemovableBatches::default(),
        kept: BTreeMap::new(),
    };
    let ages = retention::count_ages(tx, group, rule.cutoff_time(now).unwrap_or(Millis(0))).await?;
    let young = if rule.batches_ms.is_some() { KeepReason::Young } else { KeepReason::Off };
    found.kept.extend([(KeepReason::Open, ages.open), (young, ages.young)]);
    let mut after = Some(Cursor::START);
    while let Some(from) = after {
        let page = judging.next_page(tx, group, from, now).await?;
        let mut ids = Vec::new();
        for (candidate, kept) in page.judged {
            match kept {
                Some(kept) => *found.kept.entry(kept).or_default() += 1,
                None => {
                    found.goes.add_batch(candidate.ended);
                    gone.insert(candidate.batch_id);
                    ids.push(candidate.batch_id.0);
                }
            }
        }
        found.goes.count(counted(tx, options, &ids).await?);
        after = page.next;
    }
    if !options.left.lines {
        found.lines = lines_of(tx, rule, group, gone, now).await?;
    }
    found.kept.retain(|_, n| *n > 0);
    Ok(found)
}

async fn lines_of(
    tx: &mut Tx,
    rule: GroupRetentionRule,
    group: &GroupCode,
    gone: &HashSet<BatchId>,
    now: Millis,
) -> Result<RemovableBatches> {
    let mut goes = RemovableBatches::default();
    let Some(cut) = rule.lines_cut(now) else { return Ok(goes) };
    let mut after = Cursor::START;
    loop {
        let found = retention::with_lines(tx, group, cut, after).await?;
        let mut ids = Vec::new();
        for (id, status, ended) in &found {
            if rule.drops_lines(*status, *ended, now) && !gone.contains(id) {
                goes.add_batch(*ended);
                ids.push(id.0);
            }
        }
        let lines = retention::lines(tx, &ids).await?;
        goes.count(ByTable::from([("job_log_line", lines)]));
        match found.last().filter(|_| found.len() == retention::PAGE) {
            Some((id, _, ended)) => after = Cursor { at: *ended, key: id.0 },
            None => return Ok(goes),
        }
    }
}

async fn of_age(
    tx: &mut Tx,
    options: &RetentionOptions,
    kind: Aged,
    gone: &HashSet<BatchId>,
    now: Millis,
) -> Result<AgedGoes> {
    let mut found = AgedGoes { kind, goes: RemovableBatches::default(), needed: 0 };
    let Some((cut, words)) = options.age_limit(kind, now) else { return Ok(found) };
    let limit = options.rows_per_step;
    for word in words {
        let mut after = Cursor::START;
        loop {
            let rows = retention::list_aged(tx, kind, word, cut, after, limit).await?;
            weigh(tx, &rows, gone, &mut found).await?;
            match rows.last().filter(|_| rows.len() == limit as usize) {
                Some(last) => after = last.place,
                None => break,
            }
        }
    }
    Ok(found)
}

/// Adds the rows of a page that can be removed once the removable batches are gone.
async fn weigh(
    tx: &mut Tx,
    rows: &[AgedRow],
    gone: &HashSet<BatchId>,
    found: &mut AgedGoes,
) -> Result<()> {
    let waits = rows.iter().filter(|row| row.goes == retention::AgedRowRemoval::WithBatches);
    let ids: Vec<i64> = waits.map(|row| row.place.key).collect();
    let mut there: HashMap<i64, bool> = HashMap::new();
    for (id, batch) in retention::their_batches(tx, found.kind, &ids).await? {
        *there.entry(id).or_default() |= !gone.contains(&batch);
    }
    for row in rows {
        let goes = match row.goes {
            // The notifications of a removed batch were counted with it.
            retention::AgedRowRemoval::Yes if row.of_batch.is_some_and(|id| gone.contains(&id)) => {
                continue;
            }
            retention::AgedRowRemoval::Yes => true,
            retention::AgedRowRemoval::WithBatches => {
                !there.get(&row.place.key).copied().unwrap_or(true)
            }
            retention::AgedRowRemoval::No => false,
        };
        if !goes {
            found.needed += 1;
            continue;
        }
        found.goes.add_batch(row.place.at);
        let mut rows = ByTable::from([(found.kind.table(), 1)]);
        if found.kind == Aged::Backfills {
            rows.insert("backfill_batch", row.others);
        }
        found.goes.count(rows);
    }
    Ok(())
}
