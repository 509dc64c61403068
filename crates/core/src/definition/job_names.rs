//! Resolves the names of jobs in a definition: a plain name is a job of the same group, `group.CODE` a job of any group
//! of the file. Users may name a job by its code or an alias; the result always uses the code.

use crate::definition::alias::Aliases;
use crate::definition::fault::FaultReport;
use crate::definition::near::did_you_mean;
use crate::definition::raw::RawJob;
use crate::domain::job::JobDef;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Codes and aliases of the jobs of a file, by group.
pub(crate) struct JobNames {
    codes: HashMap<Arc<str>, HashSet<String>>,
    aliases: HashMap<Arc<str>, Aliases>,
}

/// The meaning of an entry of `depends_on` that names no other batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NamedParent {
    /// A job of the same group, or an unknown one.
    Own(String),
    /// A job of another group.
    Foreign(QualifiedName),
}

/// A job with its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QualifiedName {
    pub group: Arc<str>,
    pub code: String,
}

impl JobNames {
    /// Collects the names of all jobs; an ambiguous alias is reported.
    pub(crate) fn collect(jobs: &[RawJob], groups: &[Arc<str>], report: &mut FaultReport) -> Self {
        let mut codes: HashMap<Arc<str>, HashSet<String>> =
            groups.iter().map(|group| (Arc::clone(group), HashSet::new())).collect();
        let mut by_group: HashMap<Arc<str>, Vec<&RawJob>> = HashMap::new();
        for job in jobs {
            let group = &job.group;
            codes.entry(Arc::clone(group)).or_default().insert(job.code.value.clone());
            by_group.entry(Arc::clone(group)).or_default().push(job);
        }
        let aliases = by_group
            .into_iter()
            .map(|(group, jobs)| (group, Aliases::collect(&jobs, report)))
            .collect();
        Self { codes, aliases }
    }

    /// Replaces aliases by codes in the jobs' references to others of their group.
    pub(crate) fn resolve_aliases(&self, jobs: &mut [RawJob]) {
        for job in jobs {
            if let Some(aliases) = self.aliases.get(&job.group) {
                aliases.resolve(job);
            }
        }
    }

    /// The same in jobs that are already built.
    pub(crate) fn settle_aliases(&self, jobs: &mut [JobDef]) {
        for job in jobs {
            if let Some(aliases) = self.aliases.get(job.group.as_str()) {
                aliases.settle(job);
            }
        }
    }

    /// The codes of a group.
    pub(crate) fn codes(&self, group: &str) -> impl Iterator<Item = &str> {
        self.codes.get(group).into_iter().flatten().map(String::as_str)
    }

    /// Whether a group has a job of this code.
    pub(crate) fn has_code(&self, group: &str, code: &str) -> bool {
        self.codes.get(group).is_some_and(|codes| codes.contains(code))
    }

    /// The groups that have a job with this code or alias, in order.
    pub(crate) fn groups_with(&self, word: &str) -> Vec<&str> {
        let has = |group: &&Arc<str>| self.code_in(group, word).is_some();
        let mut found: Vec<&str> = self.codes.keys().filter(has).map(|group| &**group).collect();
        found.sort_unstable();
        found
    }

    /// The code of the job that a word names within a group.
    pub(crate) fn code_in<'a>(&'a self, group: &str, word: &'a str) -> Option<&'a str> {
        let code = self.aliases.get(group).map_or(word, |aliases| aliases.resolve_word(word));
        self.has_code(group, code).then_some(code)
    }

    /// Whether the file has this group.
    fn shared_group(&self, group: &str) -> Option<&Arc<str>> {
        self.codes.get_key_value(group).map(|(group, _)| group)
    }

    /// The job of this file that `group.CODE` names.
    pub(crate) fn qualified(&self, word: &str) -> Option<QualifiedName> {
        word.match_indices('.').find_map(|(at, _)| {
            let group = self.shared_group(&word[..at])?;
            let code = self.code_in(group, &word[at + 1..])?;
            Some(QualifiedName { group: Arc::clone(group), code: code.to_owned() })
        })
    }

    /// The meaning of a word as the parent of a job of `own`.
    pub(crate) fn parent(&self, own: &str, word: &str) -> NamedParent {
        if let Some(code) = self.code_in(own, word) {
            return NamedParent::Own(code.to_owned());
        }
        match self.qualified(word) {
            Some(name) if &*name.group == own => NamedParent::Own(name.code),
            Some(name) => NamedParent::Foreign(name),
            None => self
                .elsewhere(own, word)
                .map_or_else(|| NamedParent::Own(word.to_owned()), NamedParent::Foreign),
        }
    }

    /// `group.CODE` of a group that the file does not have. A word similar to a code of the same group counts as a
    /// typing error.
    fn elsewhere(&self, own: &str, word: &str) -> Option<QualifiedName> {
        let (group, code) = word.split_once('.')?;
        let is_plain = !group.is_empty() && !code.is_empty() && !code.contains('.');
        let is_known = self.codes.contains_key(group) || !self.groups_with(word).is_empty();
        let is_slip = || !did_you_mean(word, self.codes(own)).is_empty();
        (is_plain && !is_known && !is_slip())
            .then(|| QualifiedName { group: Arc::from(group), code: code.to_owned() })
    }

    /// The jobs that a word without a group may name: those with this code or alias, and the one qualified by its
    /// group.
    pub(crate) fn candidates(&self, word: &str) -> Vec<QualifiedName> {
        if let Some(name) = self.qualified(word) {
            return vec![name];
        }
        let name = |group: &str| {
            let (group, code) = (self.shared_group(group)?, self.code_in(group, word)?);
            Some(QualifiedName { group: Arc::clone(group), code: code.to_owned() })
        };
        self.groups_with(word).into_iter().filter_map(name).collect()
    }
}
