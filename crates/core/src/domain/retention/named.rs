//! Batches that others ask for by their number.

use crate::domain::batch_no::{Period, PeriodKind, RelativeBatch, latest_up_to};
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::external::ExternalDependency;
use chrono::NaiveDate;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Numbers that batches which are kept, or to come, ask for.
#[derive(Clone, Debug, Default)]
pub struct NeededNumbers {
    these: HashMap<GroupCode, HashSet<BatchNo>>,
    /// Of these groups the newest batch up to each of these numbers.
    latest: HashMap<GroupCode, BTreeSet<BatchNo>>,
}

impl NeededNumbers {
    /// Adds what a batch of this number asks for. An expression that gives no number for it asks for
    /// none, for the batch could not be run either.
    pub fn add_externals(
        &mut self,
        externals: &[ExternalDependency],
        base: &BatchNo,
        business_date: Option<NaiveDate>,
    ) {
        for external in externals {
            let group = external.group.clone();
            match external.batch.from(base, business_date) {
                Ok(RelativeBatch::These(numbers)) => {
                    self.these.entry(group).or_default().extend(numbers);
                }
                Ok(RelativeBatch::LatestUpTo(base)) => {
                    self.latest.entry(group).or_default().insert(base);
                }
                Err(_) => {}
            }
        }
    }

    /// Groups of which somebody asks for the newest batch.
    pub fn asked_for_latest(&self) -> impl Iterator<Item = &GroupCode> {
        self.latest.keys()
    }

    /// Makes "the newest up to" one number, out of those that a group has.
    pub fn settle(&mut self, group: &GroupCode, existing: &[BatchNo]) {
        for base in self.latest.remove(group).unwrap_or_default() {
            if let Some(newest) = latest_up_to(&base, existing) {
                self.these.entry(group.clone()).or_default().insert(newest.clone());
            }
        }
    }

    /// Whether somebody asks for this batch.
    pub fn contains(&self, group: &GroupCode, batch_no: &BatchNo) -> bool {
        self.these.get(group).is_some_and(|numbers| numbers.contains(batch_no))
    }
}

/// The numbers that a group's next batches will have, one for each kind of period it has batches of.
pub fn next_numbers<'a>(existing: impl IntoIterator<Item = &'a BatchNo>) -> Vec<BatchNo> {
    let mut newest: BTreeMap<PeriodKind, Period> = BTreeMap::new();
    for period in existing.into_iter().filter_map(Period::from_batch_no) {
        let there = newest.entry(period.kind()).or_insert(period);
        if period.first_day() > there.first_day() {
            *there = period;
        }
    }
    newest.into_values().filter_map(|period| period.next().map(Period::batch_no)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::batch_no::BatchExpr;
    use crate::domain::id::JobCode;
    use crate::domain::job::external::Missing;
    use crate::domain::job::trigger_rule::EdgeCondition;

    fn no(word: &str) -> BatchNo {
        BatchNo::parse(word).expect("number")
    }

    fn on(group: &str, batch: &str) -> ExternalDependency {
        ExternalDependency {
            waiting_group: GroupCode::parse("w").expect("group"),
            job_code: JobCode::parse("Q").expect("code"),
            group: GroupCode::parse(group).expect("group"),
            depends_on: None,
            batch: BatchExpr::parse(batch).expect("expression"),
            when: EdgeCondition::Success,
            missing: Missing::Wait,
            wait_sec: None,
        }
    }

    #[test]
    fn a_quarter_names_its_months_and_nothing_else() {
        let mut names = NeededNumbers::default();
        names.add_externals(&[on("month_end", "months")], &no("2024Q3"), None);
        let months = GroupCode::parse("month_end").expect("group");
        let named = |word: &str| names.contains(&months, &no(word));
        assert!(named("202407") && named("202408") && named("202409"));
        assert!(!named("202406") && !named("202410"));
        assert!(!names.contains(&GroupCode::parse("other").expect("group"), &no("202407")));
    }

    #[test]
    fn the_newest_up_to_a_number_is_one_of_those_that_are_there() {
        let mut names = NeededNumbers::default();
        names.add_externals(&[on("rates", "latest")], &no("202407"), None);
        let rates = GroupCode::parse("rates").expect("group");
        assert_eq!(names.asked_for_latest().collect::<Vec<_>>(), [&rates]);
        names.settle(&rates, &["202401", "202405", "202409"].map(no));
        assert!(names.contains(&rates, &no("202405")));
        assert!(!names.contains(&rates, &no("202401")) && !names.contains(&rates, &no("202409")));
    }

    #[test]
    fn free_text_names_nothing_that_is_counted() {
        let mut names = NeededNumbers::default();
        names.add_externals(&[on("rates", "prev"), on("rates", "2019")], &no("adhoc"), None);
        let rates = GroupCode::parse("rates").expect("group");
        assert!(names.contains(&rates, &no("2019")));
    }

    #[test]
    fn the_next_number_follows_the_newest_of_each_kind() {
        let there = ["202411", "202412", "2024Q4", "adhoc", "202402"].map(no);
        assert_eq!(next_numbers(&there), ["202501", "2025Q1"].map(no));
        assert_eq!(next_numbers(&[no("adhoc")]), []);
    }
}
