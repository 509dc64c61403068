//! Computes the impact of a change to a table: its readers, the tables that they write, the readers of those, and so
//! on.

use crate::lineage::access::AccessMode;
use crate::lineage::conflict::JobLineage;
use crate::lineage::conflict::accesses_meet;
use crate::lineage::reading::JobAccess;
use serde::Serialize;
use std::collections::VecDeque;

/// A job that touches a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableUse {
    pub job: String,
    /// The verbs of its accesses: `reads`, `updates` …
    pub verbs: Vec<&'static str>,
}

/// A job that a change reaches through data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReachedJob {
    pub job: String,
    /// The job whose rows it reads; none if it reads the table itself.
    pub through: Option<String>,
    /// The table that it reads.
    pub table: String,
    /// Whether parts of it are unknown, so that it may affect more tables.
    pub is_partly_known: bool,
}

/// The impact of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableImpact {
    /// Jobs that write the table.
    pub writers: Vec<TableUse>,
    /// Jobs that read the table.
    pub readers: Vec<TableUse>,
    /// Jobs that a change of the table reaches, nearest first.
    pub reached: Vec<ReachedJob>,
    /// Jobs with incomplete lineage, which may access the table too.
    pub unknown: Vec<String>,
}

/// Computes the impact of a table, whose name may omit the schema.
pub fn find_impact(jobs: &[JobLineage], table: &str) -> TableImpact {
    let is_it = |one: &&JobAccess| {
        let name = &one.access.table;
        name.to_string().eq_ignore_ascii_case(table) || name.name.eq_ignore_ascii_case(table)
    };
    let uses = |is_wanted: fn(AccessMode) -> bool| -> Vec<TableUse> {
        let of_job = |job: &JobLineage| {
            let mine = job.reading.accesses.iter().filter(is_it);
            let mut verbs: Vec<&'static str> = mine
                .filter(|one| is_wanted(one.access.mode))
                .map(|one| one.access.mode.as_verb())
                .collect();
            verbs.sort_unstable();
            verbs.dedup();
            (!verbs.is_empty()).then(|| TableUse { job: job.code.to_string(), verbs })
        };
        jobs.iter().filter_map(of_job).collect()
    };
    let is_partly = |job: &&JobLineage| !job.accepts_opaque && !job.reading.is_whole();
    let unknown = jobs.iter().filter(is_partly).map(|job| job.code.to_string());
    TableImpact {
        writers: uses(AccessMode::is_write),
        readers: uses(|mode| mode == AccessMode::Read),
        reached: reached(jobs, is_it),
        unknown: unknown.collect(),
    }
}

fn reached(jobs: &[JobLineage], is_it: impl Fn(&&JobAccess) -> bool) -> Vec<ReachedJob> {
    let mut found: Vec<ReachedJob> = Vec::new();
    let mut seen = vec![false; jobs.len()];
    let mut open = VecDeque::new();
    let entry = |job: &JobLineage, through: Option<&JobLineage>, read: &JobAccess| ReachedJob {
        job: job.code.to_string(),
        through: through.map(|one| one.code.to_string()),
        table: read.access.table.to_string(),
        is_partly_known: !job.accepts_opaque && !job.reading.is_whole(),
    };
    let reads = |job: &JobLineage| -> Vec<JobAccess> {
        let reads = job.reading.accesses.iter().filter(|one| one.access.mode == AccessMode::Read);
        reads.cloned().collect()
    };
    for (at, job) in jobs.iter().enumerate() {
        if let Some(read) = reads(job).iter().find(&is_it) {
            seen[at] = true;
            open.push_back(at);
            found.push(entry(job, None, read));
        }
    }
    while let Some(from) = open.pop_front() {
        let source = &jobs[from];
        let writes: Vec<&JobAccess> =
            source.reading.accesses.iter().filter(|one| one.access.mode.is_write()).collect();
        for (at, job) in jobs.iter().enumerate().filter(|(at, _)| *at != from) {
            if seen[at] {
                continue;
            }
            let met = reads(job);
            let met = met.iter().find(|read| writes.iter().any(|write| accesses_meet(write, read)));
            if let Some(read) = met {
                seen[at] = true;
                open.push_back(at);
                found.push(entry(job, Some(source), read));
            }
        }
    }
    found
}
