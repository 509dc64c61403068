//! Search results, best matches first.

use crate::domain::id::GroupCode;
use crate::store::{self, Tx};
use crate::view::schedule::opens;
use anyhow::Result;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Maximum number of results of one kind.
const MOST: usize = 20;
/// Number of schedules read to select from.
const SCHEDULES: u32 = 200;

/// The results of a search.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchResult {
    /// Jobs.
    pub jobs: Vec<MatchedJob>,
    /// Groups.
    pub groups: Vec<MatchedGroup>,
    /// Batches, latest number first.
    pub batches: Vec<MatchedBatch>,
    /// Schedules.
    pub schedules: Vec<MatchedSchedule>,
}

/// A job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatchedJob {
    /// The job code.
    pub code: String,
    /// The job name.
    pub name: String,
    /// The group code.
    pub group: String,
    /// The tags.
    pub tags: Vec<String>,
    /// The aliases.
    pub aliases: Vec<String>,
}

/// A group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatchedGroup {
    /// The group code.
    pub code: String,
    /// The name.
    pub name: String,
}

/// A batch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatchedBatch {
    /// The group code.
    pub group: String,
    /// The batch number.
    pub batch_no: String,
    /// RUNNING, KILLING, SUCCESS, WARNING, FAILED or KILLED.
    pub status: String,
}

/// A schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatchedSchedule {
    /// The schedule code.
    pub code: String,
    /// The name.
    pub name: String,
    /// ENABLED, PAUSED or ENDED.
    pub status: String,
    /// The groups that it opens, among visible ones.
    pub groups: Vec<String>,
}

/// Searches a text in what belongs to visible groups.
pub async fn find_all(
    tx: &mut Tx,
    text: &str,
    seen: Option<&BTreeSet<GroupCode>>,
) -> Result<SearchResult> {
    let most = u32::try_from(MOST)?;
    let sees = |group: &GroupCode| seen.is_none_or(|seen| seen.contains(group));
    let (groups, _) = store::job::audience(tx).await?;
    Ok(SearchResult {
        jobs: find_jobs(tx, text, seen).await?,
        groups: ranked(text, groups.iter().filter(|g| sees(&g.code)), |g| {
            (g.code.to_string(), g.name.clone())
        })
        .into_iter()
        .map(|g| MatchedGroup { code: g.code.to_string(), name: g.name.clone() })
        .collect(),
        batches: store::search::batches(tx, text, seen, most)
            .await?
            .iter()
            .map(|b| MatchedBatch {
                group: b.values.group.to_string(),
                batch_no: b.values.batch_no.to_string(),
                status: b.status.to_string(),
            })
            .collect(),
        schedules: schedules(tx, text, &groups, &sees).await?,
    })
}

async fn find_jobs(
    tx: &mut Tx,
    text: &str,
    seen: Option<&BTreeSet<GroupCode>>,
) -> Result<Vec<MatchedJob>> {
    // Twice as many, because SQL finds aliases only roughly: a job that contains the text elsewhere
    // in its body is removed again.
    let found = store::search::find_jobs(tx, text, seen, u32::try_from(2 * MOST)?).await?;
    let lower = text.to_lowercase();
    let holds = |word: &str| word.to_lowercase().contains(&lower);
    let is = |j: &&store::search::FoundJob| {
        let words = [j.code.as_str(), &j.name, &j.tags];
        words.iter().any(|w| holds(w)) || j.aliases.iter().any(|a| holds(a))
    };
    let job = |j: &store::search::FoundJob| MatchedJob {
        code: j.code.to_string(),
        name: j.name.clone(),
        group: j.group.to_string(),
        tags: j.tags.split(',').filter(|t| !t.is_empty()).map(str::to_owned).collect(),
        aliases: j.aliases.clone(),
    };
    Ok(found.iter().filter(is).take(MOST).map(job).collect())
}

async fn schedules(
    tx: &mut Tx,
    text: &str,
    groups: &[crate::domain::job::Group],
    sees: &impl Fn(&GroupCode) -> bool,
) -> Result<Vec<MatchedSchedule>> {
    let found = store::trigger::holding(tx, text, SCHEDULES).await?;
    let mut told = Vec::new();
    for t in ranked(text, found.iter(), |t| (t.def.code.to_string(), t.def.name.clone())) {
        let opened = opens(&t.def, groups);
        let all = opened.len();
        let groups: Vec<String> =
            opened.into_iter().filter(|g| sees(g)).map(GroupCode::to_string).collect();
        // A schedule that opens only invisible groups is invisible.
        if all == 0 || !groups.is_empty() {
            told.push(MatchedSchedule {
                code: t.def.code.to_string(),
                name: t.def.name.clone(),
                status: t.status.as_str().to_owned(),
                groups,
            });
        }
    }
    Ok(told)
}

/// Items whose code or name contains a text: first an equal code, then codes that begin with it,
/// then the others by code; at most `MOST`.
fn ranked<'a, T: 'a>(
    text: &str,
    all: impl Iterator<Item = &'a T>,
    words: impl Fn(&T) -> (String, String),
) -> Vec<&'a T> {
    let lower = text.to_lowercase();
    let mut found: Vec<((u8, String), &T)> = all
        .filter_map(|one| {
            let (code, name) = words(one);
            let low = code.to_lowercase();
            let place = match () {
                () if low == lower => 0,
                () if low.starts_with(&lower) => 1,
                () if low.contains(&lower) || name.to_lowercase().contains(&lower) => 2,
                () => return None,
            };
            Some(((place, code), one))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found.into_iter().take(MOST).map(|(_, one)| one).collect()
}
