//! The identity of a job in the whole installation (group and code), and the forms in which a user
//! names one.

use crate::domain::id::{BadName, GroupCode, JobCode};
use crate::domain::job::JobDef;
use std::fmt;

/// Key of a job: codes are unique within a group. `Display` is `group.CODE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// Group of the job.
    pub group: GroupCode,
    /// Code of the job within the group.
    pub code: JobCode,
}

impl JobKey {
    /// Key under the code of the definition, which all items of a fan-out share.
    pub fn of_definition(job: &JobDef) -> Self {
        Self { group: job.group.clone(), code: job.defined_as().clone() }
    }
}

impl JobDef {
    /// Group and code, unique in the installation.
    pub fn key(&self) -> JobKey {
        JobKey { group: self.group.clone(), code: self.code.clone() }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.group, self.code))
    }
}

/// A name matches no job, or several; `Display` is the sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobNameError {
    /// No job has this name.
    #[error("there is no job {0}; procession job list shows those that are")]
    Unknown(String),
    /// Jobs of several groups have this name.
    #[error("{}", describe_candidates(.word, .candidates))]
    Ambiguous {
        /// The name as written.
        word: String,
        /// The matching jobs, ordered.
        candidates: Vec<JobKey>,
    },
}

fn describe_candidates(word: &str, candidates: &[JobKey]) -> String {
    let mut groups: Vec<&str> = candidates.iter().map(|key| key.group.as_str()).collect();
    groups.dedup();
    let keys: Vec<String> = candidates.iter().map(JobKey::to_string).collect();
    format!("{word} is in groups {}; write {}", listed(&groups, "and"), listed(&keys, "or"))
}

/// Joins words as `a, b and c`.
fn listed<T: AsRef<str>>(words: &[T], last: &str) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// The possible readings of `word` as `group.CODE`. Both parts may contain dots, so there may be
/// several.
pub fn split_qualified(word: &str) -> impl Iterator<Item = JobKey> + '_ {
    word.match_indices('.').filter_map(|(at, _)| {
        let group = GroupCode::parse(&word[..at]).ok()?;
        Some(JobKey { group, code: JobCode::parse(&word[at + 1..]).ok()? })
    })
}

/// The code that `word` means in a batch of `group`. A full name may be longer than a code; a word
/// no longer than a code is kept whole, because codes may contain dots: `find_named` decides what
/// it means.
pub fn parse_code_within(group: &GroupCode, word: &str) -> Result<JobCode, BadName> {
    let word = word.trim();
    JobCode::parse(word).or_else(|error| {
        let rest = word.strip_prefix(group.as_str()).and_then(|rest| rest.strip_prefix('.'));
        rest.map_or(Err(error), JobCode::parse)
    })
}

/// Jobs selected by a list filter: `CODE` in every group, or `group.CODE` in one. They need not be
/// defined any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFilter {
    /// The code, in any group; none when the word is longer than a code may be.
    pub code: Option<JobCode>,
    /// The jobs whose full name is the word.
    pub keys: Vec<JobKey>,
}

impl JobFilter {
    /// Parses `word` as a filter.
    pub fn parse(word: &str) -> Result<Self, BadName> {
        let word = word.trim();
        let keys: Vec<JobKey> = split_qualified(word).collect();
        match JobCode::parse(word) {
            Err(error) if keys.is_empty() => Err(error),
            code => Ok(Self { code: code.ok(), keys }),
        }
    }
}

/// `word` without a leading `group.`.
fn without_group<'w>(job: &JobDef, word: &'w str) -> Option<&'w str> {
    word.strip_prefix(job.group.as_str())?.strip_prefix('.')
}

fn has_alias(job: &JobDef, word: &str) -> bool {
    job.aliases.iter().any(|alias| alias.as_str() == word)
}

/// Finds the one job among `jobs` that `word` names: by code or alias, alone or qualified with the
/// group. A code takes precedence over an alias, and `group.CODE` over a plain code that reads the
/// same.
pub fn find_named<'a>(
    jobs: impl IntoIterator<Item = &'a JobDef>,
    word: &str,
) -> Result<&'a JobDef, JobNameError> {
    let word = word.trim();
    let mut by_rank: [Vec<&JobDef>; 4] = Default::default();
    for job in jobs {
        let rest = without_group(job, word);
        let ranks = [
            rest == Some(job.code.as_str()),
            job.code.as_str() == word,
            rest.is_some_and(|rest| has_alias(job, rest)),
            has_alias(job, word),
        ];
        if let Some(rank) = ranks.iter().position(|is_named| *is_named) {
            by_rank[rank].push(job);
        }
    }
    match by_rank.iter().find(|found| !found.is_empty()).map(Vec::as_slice) {
        None => Err(JobNameError::Unknown(word.to_owned())),
        Some([job]) => Ok(job),
        Some(several) => {
            let mut candidates: Vec<JobKey> = several.iter().map(|job| job.key()).collect();
            candidates.sort();
            Err(JobNameError::Ambiguous { word: word.to_owned(), candidates })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::JobType;

    fn job(group: &str, code: &str, alias: &str) -> JobDef {
        let group = GroupCode::parse(group).expect("group");
        let code = JobCode::parse(code).expect("code");
        let mut job = JobDef::with_defaults(code, group, JobType::parse("NOOP").expect("type"));
        job.aliases = JobCode::parse(alias).into_iter().collect();
        job
    }

    #[test]
    fn a_full_name_may_be_longer_than_a_code() {
        let group = GroupCode::parse("gl").expect("group");
        let longest = "A".repeat(100);
        let within = |word: &str| parse_code_within(&group, word).map(|code| code.to_string());
        assert_eq!(within(&format!("gl.{longest}")).expect("a code"), longest);
        assert_eq!(within(" gl.LOAD ").expect("a code"), "gl.LOAD");
        assert!(within(&format!("hr.{longest}")).is_err(), "another group's");
        let filter = |word: &str| JobFilter::parse(word).expect("a filter");
        assert_eq!(filter("LOAD").keys, []);
        assert_eq!(filter("gl.LOAD").keys[0].to_string(), "gl.LOAD");
        assert_eq!(filter("gl.LOAD").code.expect("a code too").as_str(), "gl.LOAD");
        assert_eq!(filter(&format!("gl.{longest}")).code, None);
        assert!(JobFilter::parse("a job").is_err());
    }

    #[test]
    fn a_word_names_one_job_or_its_candidates() {
        let jobs = [
            job("a", "LOAD", "OLD"),
            job("b", "LOAD", ""),
            job("b", "POST", "LEFT"),
            job("c", "LEFT", ""),
            job("c", "b.POST", "OLD"),
            job("c.d", "E.F", ""),
        ];
        for (word, wanted) in [
            ("a.LOAD", "a.LOAD"),
            (" b.LOAD ", "b.LOAD"),
            ("POST", "b.POST"),
            ("a.OLD", "a.LOAD"),
            // A code takes precedence over an alias.
            ("LEFT", "c.LEFT"),
            ("b.LEFT", "b.POST"),
            ("c.OLD", "c.b.POST"),
            // The full name takes precedence over a code that reads the same.
            ("b.POST", "b.POST"),
            ("c.b.POST", "c.b.POST"),
            ("c.d.E.F", "c.d.E.F"),
            ("E.F", "c.d.E.F"),
            ("LOAD", "LOAD is in groups a and b; write a.LOAD or b.LOAD"),
            ("OLD", "OLD is in groups a and c; write a.LOAD or c.b.POST"),
            ("c.LOAD", "there is no job c.LOAD; procession job list shows those that are"),
        ] {
            let found = match find_named(&jobs, word) {
                Ok(job) => job.key().to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, wanted, "{word}");
        }
    }
}
