//! Decides which batches are removed: applies the retention rule to what is read from the database.

use super::RetentionOptions;
use crate::domain::id::{BatchId, GroupCode};
use crate::domain::job::external::ExternalDependency;
use crate::domain::retention::{KeepReason, NeededNumbers, Old, RetentionNeed, next_numbers};
use crate::domain::time::Millis;
use crate::store::retention::{self, Candidate, Cursor};
use crate::store::{Tx, batch, job};
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a pass knows of all groups.
pub(super) struct Judging {
    options: RetentionOptions,
    names: NeededNumbers,
    /// Open batches whose snapshot was read.
    known: HashSet<BatchId>,
    /// The oldest of each group's newest batches that the rule keeps.
    newest: HashMap<GroupCode, Option<BatchId>>,
    pub(super) groups: Vec<GroupCode>,
}

/// A page of batches that are old enough, with the decision on each.
pub(super) struct RemovablePage {
    pub(super) judged: Vec<(Candidate, Option<KeepReason>)>,
    /// Where to continue; `None` after the last page.
    pub(super) next: Option<Cursor>,
}

impl Judging {
    /// Reads which batches are referred to by number: by present definitions, for the kept batches
    /// and the next ones.
    pub(super) async fn begin(
        tx: &mut Tx,
        options: &RetentionOptions,
        now: Millis,
    ) -> Result<Self> {
        let groups = retention::groups(tx).await?;
        let mut newest = HashMap::new();
        for group in &groups {
            let keep = options.rule_of(group).keep;
            newest.insert(group.clone(), retention::newest_from(tx, group, keep).await?);
        }
        let (names, known, options) = (NeededNumbers::default(), HashSet::new(), options.clone());
        let mut this = Self { options, names, known, newest, groups };
        let defs = job::definition(tx).await?;
        let mut externals: BTreeMap<&GroupCode, Vec<ExternalDependency>> = BTreeMap::new();
        for external in &defs.externals {
            externals.entry(&external.waiting_group).or_default().push(external.clone());
        }
        for (group, externals) in externals {
            this.name(tx, group, &externals, now).await?;
        }
        Ok(this)
    }

    async fn name(
        &mut self,
        tx: &mut Tx,
        group: &GroupCode,
        externals: &[ExternalDependency],
        now: Millis,
    ) -> Result<()> {
        let cut = self.options.rule_of(group).cutoff_time(now).unwrap_or(Millis(0));
        let newest = self.newest.get(group).copied().flatten();
        let standing = retention::standing(tx, group, cut, newest).await?;
        for (batch_no, date) in &standing {
            self.names.add_externals(externals, batch_no, *date);
        }
        for batch_no in next_numbers(standing.iter().map(|(no, _)| no)) {
            self.names.add_externals(externals, &batch_no, None);
        }
        Ok(())
    }

    /// Reads what open batches refer to, for those opened since the last read: they use their own
    /// snapshot.
    async fn learn_open(&mut self, tx: &mut Tx) -> Result<()> {
        for id in retention::list_open(tx).await? {
            if self.known.insert(id) {
                let values = batch::get(tx, id).await?.values;
                match batch::snapshot(tx, id).await {
                    Ok(snapshot) => {
                        let (no, date) = (&values.batch_no, values.business_date);
                        self.names.add_externals(&snapshot.externals, no, date);
                    }
                    // The references of the group's present definition were added with all that is
                    // kept.
                    Err(error) => {
                        let error = format!("{error:#}");
                        tracing::warn!(batch_id = id.0, error, "an open batch cannot be read");
                    }
                }
            }
        }
        let asked: Vec<GroupCode> = self.names.asked_for_latest().cloned().collect();
        for group in asked {
            let existing = retention::numbers(tx, &group).await?;
            self.names.settle(&group, &existing);
        }
        Ok(())
    }

    /// The next batches of a group that are old enough, with the decision on each.
    pub(super) async fn next_page(
        &mut self,
        tx: &mut Tx,
        group: &GroupCode,
        after: Cursor,
        now: Millis,
    ) -> Result<RemovablePage> {
        let rule = self.options.rule_of(group);
        let Some(cut) = rule.cutoff_time(now) else {
            return Ok(RemovablePage { judged: Vec::new(), next: None });
        };
        let mut found = retention::candidates(tx, group, cut, after).await?;
        let last = found.last().map(|c| Cursor { at: c.ended, key: c.batch_id.0 });
        let next = last.filter(|_| found.len() == retention::PAGE);
        if found.is_empty() {
            return Ok(RemovablePage { judged: Vec::new(), next });
        }
        self.learn_open(tx).await?;
        let newest = self.newest.get(group).copied().flatten();
        let old = |c: &Candidate| Old {
            status: c.status,
            ended: Some(c.ended),
            is_newest: newest.is_none_or(|from| c.batch_id >= from),
            needs: c.needs.clone(),
        };
        for candidate in &mut found {
            if self.names.contains(group, &candidate.batch_no) {
                candidate.needs.insert(RetentionNeed::Named);
            }
        }
        // Only for candidates is it checked what else needs them.
        let mut asked: Vec<&mut Candidate> =
            found.iter_mut().filter(|c| rule.keeps(&old(c), now).is_none()).collect();
        retention::add_needs(tx, &mut asked, self.options.left).await?;
        let judge = |c: Candidate| {
            let kept = rule.judge(&old(&c), now);
            (c, kept)
        };
        Ok(RemovablePage { judged: found.into_iter().map(judge).collect(), next })
    }
}
