//! Parts of definitions that are only looked at.
//!
//! A definition of 100,000 jobs with a million dependencies takes 140 MB. Storing it looks at what is stored of its
//! groups, at the two together and at each group by itself: as copies that was three times as much.

use crate::domain::id::GroupCode;
use crate::domain::job::external::ExternalDependency;
use crate::domain::job::{Definition, Group, JobDef, JobDependency, Shared};
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::source::DataSource;
use std::borrow::Cow;

/// What definitions say, or a part of it, without a copy of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BorrowedDefinition<'a> {
    /// Data sources.
    pub sources: Vec<&'a DataSource>,
    /// Groups.
    pub groups: Vec<&'a Group>,
    /// Jobs.
    pub jobs: Vec<&'a JobDef>,
    /// Dependencies.
    pub dependencies: Vec<&'a JobDependency>,
    /// Dependencies on other batches and groups.
    pub externals: Vec<&'a ExternalDependency>,
    /// What all groups share; there is little of it.
    pub shared: Cow<'a, Shared>,
    /// Schedules.
    pub schedules: Vec<&'a TriggerDef>,
}

impl<'a> BorrowedDefinition<'a> {
    /// All of a definition.
    pub fn from_definition(defs: &'a Definition) -> Self {
        Self {
            sources: defs.sources.iter().collect(),
            groups: defs.groups.iter().collect(),
            jobs: defs.jobs.iter().collect(),
            dependencies: defs.dependencies.iter().collect(),
            externals: defs.externals.iter().collect(),
            shared: Cow::Borrowed(&defs.shared),
            schedules: defs.schedules.iter().collect(),
        }
    }

    /// Without the jobs, and what they wait for, of groups that do not fit, nor those groups.
    #[must_use]
    pub fn with_groups(mut self, fits: impl Fn(&GroupCode) -> bool) -> Self {
        self.groups.retain(|group| fits(&group.code));
        self.jobs.retain(|job| fits(&job.group));
        self.dependencies.retain(|dependency| fits(&dependency.group));
        self.externals.retain(|external| fits(&external.waiting_group));
        self
    }

    /// A copy, without what is the installation's: calendars, and who may use what.
    pub fn to_definition(&self) -> Definition {
        Definition {
            sources: copies(&self.sources),
            groups: copies(&self.groups),
            jobs: copies(&self.jobs),
            dependencies: copies(&self.dependencies),
            externals: copies(&self.externals),
            shared: self.shared.clone().into_owned(),
            schedules: copies(&self.schedules),
            ..Definition::default()
        }
    }
}

fn copies<T: Clone>(all: &[&T]) -> Vec<T> {
    all.iter().map(|one| (*one).clone()).collect()
}
