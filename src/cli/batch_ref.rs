//! How users refer to a batch.

use crate::app::App;
use crate::cli::{BadInput, out};
use crate::domain::batch::Batch;
use crate::domain::id::{BatchNo, GroupCode};
use crate::domain::job::JobDef;
use crate::domain::job::job_key::{JobNameError, find_named};
use crate::store;
use anyhow::{Context as _, Result};
use clap::Args;
use std::collections::BTreeSet;

/// A batch by its number, and its group where the number alone is not enough.
#[derive(Args)]
pub(super) struct BatchRef {
    /// Batch number, e.g. 202407
    pub(super) batch_no: String,
    /// Group, when several groups have a batch of this number
    #[arg(long)]
    pub(super) group: Option<String>,
}

impl BatchRef {
    /// The batch that the arguments name, or an error that lists the candidates.
    pub(super) async fn find_batch(&self, app: &App) -> Result<Batch> {
        let no = BatchNo::parse(&self.batch_no)?;
        let group = self.group.as_deref().map(GroupCode::parse).transpose()?;
        let mut tx = app.db.begin_read().await?;
        let mut found = store::batch::list_batches(&mut tx, Some(&no), u32::MAX).await?;
        let everywhere: Vec<String> = found.iter().map(|b| b.values.group.to_string()).collect();
        found.retain(|b| group.as_ref().is_none_or(|g| *g == b.values.group));
        match found.len() {
            1 => found.pop().context("one batch").and_then(store::batch::whole),
            0 if !everywhere.is_empty() => {
                let asked = self.group.as_deref().unwrap_or_default();
                let groups = everywhere.join(", ");
                let message =
                    format!("group {asked} has no batch {no}; that number exists in: {groups}");
                Err(BadInput(message).into())
            }
            0 => {
                let recent = store::batch::list_batches(&mut tx, None, 5).await?;
                let recent: Vec<String> = recent
                    .iter()
                    .map(|b| format!("{} ({})", b.values.batch_no, b.values.group))
                    .collect();
                let recent =
                    if recent.is_empty() { "none yet".to_owned() } else { recent.join(", ") };
                let gone = match store::retention::removed_at(&mut tx, &no).await? {
                    Some(at) => format!(
                        " (it was old and was removed at {}: procession audit --batch {no})",
                        out::local_time(at)
                    ),
                    None => String::new(),
                };
                let message = format!("there is no batch {no}{gone}; the latest are: {recent}");
                Err(BadInput(message).into())
            }
            _ => {
                let groups: Vec<String> =
                    found.iter().map(|b| b.values.group.to_string()).collect();
                let groups = groups.join(", ");
                Err(BadInput(format!(
                    "batch {no} exists in several groups ({groups}); add --group"
                ))
                .into())
            }
        }
    }

    /// The batch that has these jobs: where several groups have one of this number, the jobs' names
    /// decide.
    pub(super) async fn find_with_jobs(&self, app: &App, words: &[String]) -> Result<Batch> {
        if self.group.is_some() || words.is_empty() {
            return self.find_batch(app).await;
        }
        let no = BatchNo::parse(&self.batch_no)?;
        let (mut groups, mut jobs): (BTreeSet<GroupCode>, Vec<JobDef>) = Default::default();
        let mut tx = app.db.begin_read().await?;
        for batch in store::batch::list_batches(&mut tx, Some(&no), u32::MAX).await? {
            jobs.extend(store::batch::snapshot(&mut tx, batch.batch_id).await?.jobs);
            groups.insert(batch.values.group);
        }
        drop(tx);
        if groups.len() < 2 {
            return self.find_batch(app).await;
        }
        let group = one_group(&no, &groups, words, |word| {
            find_named(&jobs, word).map(|job| job.group.to_string())
        })?;
        Self { batch_no: self.batch_no.clone(), group: Some(group) }.find_batch(app).await
    }
}

/// The one group whose jobs `words` name, by `group_of`; refuses jobs of no group or of several.
pub(super) fn one_group<G: std::fmt::Display>(
    no: impl std::fmt::Display,
    groups: &BTreeSet<G>,
    words: &[String],
    group_of: impl Fn(&str) -> Result<String, JobNameError>,
) -> Result<String> {
    let mut named: BTreeSet<String> = BTreeSet::new();
    for word in words {
        named.insert(match group_of(word) {
            Ok(group) => group,
            Err(JobNameError::Unknown(word)) => {
                let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
                let groups = groups.join(", ");
                let text = format!("none of the batches {no} (groups {groups}) has a job {word}");
                return Err(BadInput(text).into());
            }
            Err(JobNameError::Ambiguous { word, candidates }) => {
                let text = JobNameError::Ambiguous { word, candidates };
                return Err(BadInput(format!("{text}, or add --group")).into());
            }
        });
    }
    match named.len() {
        1 => named.pop_first().context("one group"),
        _ => {
            let named: Vec<String> = named.into_iter().collect();
            let named = named.join(", ");
            let text = format!(
                "these jobs are in batches of several groups ({named}); name those of one batch at a time"
            );
            Err(BadInput(text).into())
        }
    }
}
