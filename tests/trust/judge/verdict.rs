//! What the judges found, as a table that a person can read.

use super::{Answer, Class, Name, Phase, Records};
use comfy_table::{LineStyle, Table, TableStyle};
use procession::domain::job::queue::QueueStatus;
use std::collections::BTreeMap;
use std::fmt;

/// Who found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    Labels,
    Effects,
    Order,
    Rows,
}

impl Judge {
    fn as_str(self) -> &'static str {
        match self {
            Self::Labels => "J2",
            Self::Effects => "J3",
            Self::Order => "J4",
            Self::Rows => "J5",
        }
    }
}

/// What is wrong: the columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Crime {
    Lost,
    Unexpected,
    Doubled,
    Mislabelled,
    Disordered,
    Overlapping,
    BadRow,
    Unexplained,
}

impl Crime {
    pub(crate) const ALL: [Self; 8] = [
        Self::Lost,
        Self::Unexpected,
        Self::Doubled,
        Self::Mislabelled,
        Self::Disordered,
        Self::Overlapping,
        Self::BadRow,
        Self::Unexplained,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Unexpected => "unexpected",
            Self::Doubled => "duplicated",
            Self::Mislabelled => "mislabelled",
            Self::Disordered => "out of order",
            Self::Overlapping => "overlapping",
            Self::BadRow => "bad rows",
            Self::Unexplained => "unexplained",
        }
    }
}

/// One thing that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) judge: Judge,
    pub(crate) crime: Crime,
    pub(crate) class: Class,
    pub(crate) name: Name,
    pub(crate) said: String,
}

/// What is counted of a class beside its violations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) jobs: usize,
    pub(crate) effects: usize,
    /// Starts after the first.
    pub(crate) again: usize,
    /// Effects of jobs whose batch was opened by a call that had no answer.
    pub(crate) recovered: usize,
    pub(crate) unknown: usize,
    pub(crate) parked: usize,
    /// Below one of those two.
    pub(crate) blocked: usize,
}

/// All violations and the counts, by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) counts: BTreeMap<Class, Counts>,
    pub(crate) violations: Vec<Violation>,
}

/// Violations that are printed in words.
const SHOWN: usize = 20;

impl Verdict {
    pub(super) fn of(records: &Records<'_>) -> Self {
        let mut counts = BTreeMap::<Class, Counts>::new();
        for wanted in &records.history.wanted {
            let count = counts.entry(wanted.class).or_default();
            let effects = records.of_phase(&wanted.name, Phase::End).len();
            count.jobs += 1;
            count.effects += effects;
            if wanted.answer == Answer::Lost {
                count.recovered += effects;
            }
            let Some(row) = records.rows.get(&wanted.name) else { continue };
            count.again += row.attempt.saturating_sub(1) as usize;
            match row.status {
                QueueStatus::Unknown => count.unknown += 1,
                QueueStatus::Held => count.parked += 1,
                QueueStatus::UpstreamFailed | QueueStatus::Pending => count.blocked += 1,
                _ => {}
            }
        }
        Self { counts, violations: Vec::new() }
    }

    pub(super) fn add(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// How many violations there are of a kind.
    pub(crate) fn count(&self, crime: Crime) -> usize {
        self.violations.iter().filter(|v| v.crime == crime).count()
    }

    /// Effects of all classes.
    pub(crate) fn effects(&self) -> usize {
        self.counts.values().map(|count| count.effects).sum()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = LineStyle::none().fill('─').junction('─');
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(rule).bottom_border(rule));
        let counted = ["jobs", "effects", "again", "recovered", "unknown", "parked", "blocked"];
        let head = ["class"].into_iter().chain(counted).chain(Crime::ALL.map(Crime::as_str));
        table.set_header(head);
        let mut total = vec![0; counted.len() + Crime::ALL.len()];
        for (class, c) in &self.counts {
            let mut cells =
                vec![c.jobs, c.effects, c.again, c.recovered, c.unknown, c.parked, c.blocked];
            let of_class = self.violations.iter().filter(|v| v.class == *class);
            let of_class: Vec<Crime> = of_class.map(|v| v.crime).collect();
            let count = |crime: Crime| of_class.iter().filter(|found| **found == crime).count();
            cells.extend(Crime::ALL.map(count));
            total.iter_mut().zip(&cells).for_each(|(sum, cell)| *sum += cell);
            table.add_row(row(class.as_str(), &cells));
        }
        table.add_row(row("all", &total));
        writeln!(f, "{table}")?;
        for v in self.violations.iter().take(SHOWN) {
            let (batch, job) = &v.name;
            let (judge, crime) = (v.judge.as_str(), v.crime.as_str());
            writeln!(f, "{judge} {crime}: {batch}/{job} ({}): {}", v.class.as_str(), v.said)?;
        }
        match self.violations.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

fn row(name: &str, cells: &[usize]) -> Vec<String> {
    [name.to_owned()].into_iter().chain(cells.iter().map(usize::to_string)).collect()
}
