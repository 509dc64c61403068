//! How people name a batch.

use crate::app::App;
use crate::cli::BadInput;
use crate::domain::batch::Batch;
use crate::domain::id::{BatchNo, GroupCode};
use crate::store;
use anyhow::{Context as _, Result};
use clap::Args;

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
    /// The batch that is meant, or an error that lists those that could be.
    pub(super) async fn find(&self, app: &App) -> Result<Batch> {
        let no = BatchNo::parse(&self.batch_no)?;
        let group = self.group.as_deref().map(GroupCode::parse).transpose()?;
        let mut tx = app.db.read().await?;
        let mut found = store::batch::list(&mut tx, Some(&no), u32::MAX).await?;
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
                let recent = store::batch::list(&mut tx, None, 5).await?;
                let recent: Vec<String> = recent
                    .iter()
                    .map(|b| format!("{} ({})", b.values.batch_no, b.values.group))
                    .collect();
                let recent =
                    if recent.is_empty() { "none yet".to_owned() } else { recent.join(", ") };
                let gone = match store::retention::removed_at(&mut tx, &no).await? {
                    Some(at) => format!(
                        " (it was old and was removed at {at}: procession audit --batch {no})"
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
}
