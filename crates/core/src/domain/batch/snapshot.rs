//! The snapshot of a batch: the definitions of its group at the time of opening.

use super::{BatchError, zone_of};
use crate::domain::calendar::{Calendars, WorkingDays};
use crate::domain::dag::{Dag, DagError};
use crate::domain::id::{CalendarCode, JobCode, JobType};
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::part;
use crate::domain::job::{Definition, Group, JobDef, JobDependency, Shared};
use crate::domain::params::fan_out::{self, FanOutParts};
use crate::domain::params::{AskedCalendar, BatchValues, Layers, Start, calendars_asked};
use crate::domain::schedule::due::DueRule;
use crate::domain::source::DataSource;
use crate::domain::time::{Millis, day_in};
use chrono::{Datelike as _, NaiveDate};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};

/// The definitions that a batch runs from start to end, whatever is applied meanwhile; stored in
/// `job_batch.snapshot` as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The group.
    pub group: Group,
    /// Its active jobs.
    pub jobs: Vec<JobDef>,
    /// The dependencies between them.
    #[serde(with = "crate::domain::job::dependency::stored")]
    pub dependencies: Vec<JobDependency>,
    /// The data sources they use; without passwords.
    pub sources: Vec<DataSource>,
    /// Dependencies of its jobs on other batches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub externals: Vec<ExternalDependency>,
    /// Shared declarations.
    #[serde(flatten)]
    pub shared: Shared,
    /// The calendars used by its parameters, with the days of the years around the business date,
    /// so that a rerun next year gives the same dates whatever was imported meanwhile.
    #[serde(default, skip_serializing_if = "Calendars::is_empty")]
    pub calendars: Calendars,
}

/// Number of years before and after that of the business date whose days are kept.
const YEARS_KEPT: i32 = 2;

impl Snapshot {
    /// The graph of the snapshot. It was validated when the batch was opened.
    pub fn build_dag(&self) -> Result<Dag, DagError> {
        let codes: Vec<JobCode> = self.jobs.iter().map(|j| j.code.clone()).collect();
        Dag::build(&codes, &self.dependencies)
    }

    /// The snapshot as a definition: one group, and no schedules.
    pub fn definition(&self) -> Definition {
        Definition {
            sources: self.sources.clone(),
            groups: vec![self.group.clone()],
            jobs: self.jobs.clone(),
            dependencies: self.dependencies.clone(),
            externals: self.externals.clone(),
            shared: self.shared.clone(),
            calendars: self.calendars.clone(),
            ..Definition::default()
        }
    }

    /// The same snapshot after deserializing: restores the group of its dependencies, and shares
    /// equal names in memory.
    #[must_use]
    pub fn shared(mut self) -> Self {
        let group = &self.group.code;
        self.dependencies.iter_mut().for_each(|d| d.group.clone_from(group));
        self.externals.iter_mut().for_each(|e| e.waiting_group.clone_from(group));
        let mut types: HashSet<JobType> = HashSet::new();
        for job in &mut self.jobs {
            if job.group == self.group.code {
                job.group = self.group.code.clone();
            }
            match types.get(&job.job_type) {
                Some(known) => job.job_type = known.clone(),
                None => drop(types.insert(job.job_type.clone())),
            }
        }
        self
    }

    /// The direct parents of `job`.
    pub fn parents(&self, job: &JobCode) -> Vec<JobCode> {
        let own = self.dependencies.iter().filter(|d| d.job_code == *job);
        own.map(|d| d.depends_on.clone()).collect()
    }

    /// The parameter layers of a job with these parents, for one attempt.
    pub fn layers<'a>(
        &'a self,
        batch: &'a BatchValues,
        parents: &'a [JobCode],
        start: &'a Start,
    ) -> Layers<'a> {
        let (group, global) = (&self.group.params[..], &self.shared.params[..]);
        Layers { start: Some(start), batch, parents, group, global, days: self.working_days() }
    }

    /// Working days for its parameters and deadlines.
    pub fn working_days(&self) -> WorkingDays<'_> {
        WorkingDays::new(&self.calendars, self.group.calendar.as_ref())
    }

    /// The part of the calendars to keep: nothing, when neither a parameter nor a deadline uses
    /// one. A parameter uses days around the business date; without a business date there is none
    /// to look up.
    pub fn kept_calendars(
        &self,
        all: &Calendars,
        business_date: Option<NaiveDate>,
        opened: Millis,
    ) -> Result<Calendars, BatchError> {
        let asked = self.calendars_asked();
        let asked = business_date.map(|day| (day.year(), asked)).filter(|(_, a)| !a.is_empty());
        let due = self.group.calendar.clone().filter(|_| self.is_due_on_working_days());
        let due = match due {
            Some(own) => Some((day_in(opened, zone_of(&self.group)?).year(), [own].into())),
            None => None,
        };
        let all_asked: Vec<(i32, BTreeSet<CalendarCode>)> = asked.into_iter().chain(due).collect();
        let years = all_asked.iter().map(|(year, _)| *year);
        let Some((first, last)) = years.clone().min().zip(years.max()) else {
            return Ok(Calendars::default());
        };
        let codes = all_asked.into_iter().flat_map(|(_, codes)| codes).collect();
        all.subset_for(&codes, first - YEARS_KEPT..=last + YEARS_KEPT)
            .map_err(|error| BatchError::Calendar(self.group.code.clone(), error))
    }

    /// Whether it has a deadline counted in working days.
    fn is_due_on_working_days(&self) -> bool {
        let of_jobs = self.jobs.iter().flat_map(|job| [job.start_by, job.due]);
        of_jobs.chain([self.group.due]).flatten().any(DueRule::counts_working_days)
    }

    /// The calendars that its parameters use; references without a name mean the group's.
    fn calendars_asked(&self) -> BTreeSet<CalendarCode> {
        let of_jobs = self.jobs.iter().flat_map(|j| &j.params).map(|p| &p.value);
        let declared = self.group.params.iter().chain(&self.shared.params).map(|p| &p.value);
        let asked = of_jobs.chain(declared).flat_map(|value| calendars_asked(value.as_deref()));
        asked
            .filter_map(|asked| match asked {
                AskedCalendar::Named(code) => Some(code),
                AskedCalendar::Own => self.group.calendar.clone(),
            })
            .collect()
    }

    /// The parts that a fan-out changes.
    pub fn parts(&mut self) -> FanOutParts<'_> {
        FanOutParts {
            jobs: &mut self.jobs,
            dependencies: &mut self.dependencies,
            externals: &mut self.externals,
            pools: &mut self.shared.pools,
        }
    }
}

/// The current definition of the group with the changes that opening made to `old`: a fan-out over
/// the same items. Used to resume a batch, and to compare it with the current definition.
pub fn as_opened(old: &Snapshot, present: &Definition) -> Result<Definition, BatchError> {
    let mut made = part::of_code(present, &old.group.code).unwrap_or_else(|| Definition {
        calendars: present.calendars.clone(),
        ..Definition::default()
    });
    made.sources.clone_from(&present.sources);
    made.shared.clone_from(&present.shared);
    let mut parts = FanOutParts {
        jobs: &mut made.jobs,
        dependencies: &mut made.dependencies,
        externals: &mut made.externals,
        pools: &mut made.shared.pools,
    };
    fan_out::expand_like(&mut parts, &old.jobs)?;
    Ok(made)
}
