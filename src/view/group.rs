//! Groups: their definition and their latest batches.

use crate::domain::batch::Batch;
use crate::domain::id::{CalendarCode, GroupCode};
use crate::domain::job::Group;
use crate::store::job_list::{self, Count};
use crate::store::{self, Tx};
use crate::view::schedule;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A batch in short.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LatestBatch {
    /// The batch number.
    pub batch_no: String,
    /// The state: PENDING, RUNNING, SUCCESS, …
    pub status: String,
    /// Whether it is paused.
    pub is_paused: bool,
    /// The business date.
    pub business_date: Option<String>,
    /// When it was opened.
    pub create_time: String,
    /// When it ended.
    pub end_time: Option<String>,
}

impl From<&Batch> for LatestBatch {
    fn from(batch: &Batch) -> Self {
        Self {
            batch_no: batch.values.batch_no.to_string(),
            status: batch.status.to_string(),
            is_paused: batch.is_paused,
            business_date: batch.values.business_date.map(|d| d.to_string()),
            create_time: batch.create_time.to_string(),
            end_time: batch.end_time.map(|at| at.to_string()),
        }
    }
}

/// A group in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupSummary {
    /// The group code.
    pub code: String,
    /// The name.
    pub name: String,
    /// The type of its batches.
    #[serde(rename = "type")]
    pub batch_type: Option<String>,
    /// The owner.
    pub owner: Option<String>,
    /// The calendar code.
    pub calendar: Option<String>,
    /// Number of jobs.
    pub jobs: u64,
    /// Number of active jobs.
    pub active_jobs: u64,
    /// Its latest batch.
    pub last_batch: Option<LatestBatch>,
}

/// All groups, to be filtered.
pub struct Groups {
    all: Vec<Group>,
    counts: BTreeMap<String, Count>,
}

impl Groups {
    /// Reads the groups, by code.
    pub async fn read_groups(tx: &mut Tx) -> Result<Self> {
        let (mut all, _) = store::job::audience(tx).await?;
        all.sort_by(|a, b| a.code.cmp(&b.code));
        Ok(Self { all, counts: job_list::counts(tx).await? })
    }

    /// Keeps only matching groups.
    pub fn retain(&mut self, wanted: impl Fn(&Group) -> bool) {
        self.all.retain(wanted);
    }

    /// Whether code, name or owner of a group contain a text in lower case.
    pub fn holds(group: &Group, text: &str) -> bool {
        let owner = group.owner.as_deref().unwrap_or_default();
        [group.code.as_str(), &group.name, owner].iter().any(|w| w.to_lowercase().contains(text))
    }

    /// The first of them, with their latest batches.
    pub async fn read_page(&self, tx: &mut Tx, limit: usize) -> Result<Vec<GroupSummary>> {
        let mut page = Vec::new();
        for group in self.all.iter().take(limit) {
            let count = self.counts.get(group.code.as_str()).copied().unwrap_or_default();
            let last = store::search::latest(tx, &group.code, 1).await?;
            page.push(GroupSummary {
                code: group.code.to_string(),
                name: group.name.clone(),
                batch_type: group.batch_type.clone(),
                owner: group.owner.clone(),
                calendar: group.calendar.as_ref().map(CalendarCode::to_string),
                jobs: count.all,
                active_jobs: count.active,
                last_batch: last.first().map(LatestBatch::from),
            });
        }
        Ok(page)
    }
}

/// A single group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupDetail {
    /// As it is defined, its jobs apart: code, name, type, owner, notify_email, time_zone, calendar, due, …
    #[schemars(with = "BTreeMap<String, Value>")]
    pub group: Value,
    /// Number of jobs.
    pub jobs: u64,
    /// Number of active jobs.
    pub active_jobs: u64,
    /// The version of its definition; 0 before its first versioned change. Send it as `if_version`
    /// with a change.
    pub version: u32,
    /// Codes of the schedules that open it.
    pub schedules: Vec<String>,
    /// Its latest batches, newest first, at most ten.
    pub batches: Vec<LatestBatch>,
}

/// Number of batches shown with a group.
const LATEST: u32 = 10;

impl GroupDetail {
    /// Reads a group; `None` when there is no such group.
    pub async fn read_page(tx: &mut Tx, code: &GroupCode) -> Result<Option<Self>> {
        let (groups, _) = store::job::audience(tx).await?;
        let Some(group) = groups.iter().find(|g| g.code == *code) else { return Ok(None) };
        let count = job_list::counts(tx).await?.get(code.as_str()).copied().unwrap_or_default();
        let all = store::trigger::readable(tx).await?;
        let opens = |def| schedule::opens(def, std::slice::from_ref(group)).contains(&code);
        let mut schedules: Vec<String> =
            all.iter().filter(|t| opens(&t.def)).map(|t| t.def.code.to_string()).collect();
        schedules.sort();
        let batches = store::search::latest(tx, code, LATEST).await?;
        Ok(Some(Self {
            group: serde_json::to_value(group)?,
            jobs: count.all,
            active_jobs: count.active,
            version: store::version::last_number(tx, code).await?,
            schedules,
            batches: batches.iter().map(LatestBatch::from).collect(),
        }))
    }
}
