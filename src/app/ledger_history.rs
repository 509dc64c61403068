//! Whether the ledgers of data sources know of attempts that the metadata does not: a backup was restored while no process
//! ran, so that none remembers what was committed.

use crate::app::App;
use crate::domain::cluster::metadata_gap::{HistoryMark, MetadataGap, compare_ledgers};
use crate::domain::id::SourceName;
use crate::domain::source::DataSource;
use crate::domain::source::tx_class::TxClass;
use crate::domain::time::Millis;
use crate::handler::source::{self, SourceFault};
use crate::store::{self, metadata_gap};
use anyhow::{Context as _, Result};
use futures_util::future::join_all;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::timeout;

/// How long all ledgers together may keep a process from starting. A million rows are read within a second.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

impl App {
    /// Compares the metadata with the ledgers of its data sources, before this process writes its first heartbeat. A gap
    /// is put on record, so that nothing is fired or started until an operator decides. Asks nobody when a process was
    /// heard of lately: that one remembers.
    pub async fn compare_with_ledgers(&self) -> Result<()> {
        let mut tx = self.db.begin_read().await?;
        let mark = metadata_gap::read_mark(&mut tx).await?;
        let installation = store::installation(&mut tx).await?;
        drop(tx);
        if mark.gap.is_some() {
            return Ok(());
        }
        let now = self.server_now().await?;
        // Before starts were written, a short process left nothing but its row in the ledger.
        let known = mark.newest_start.and(mark.last_known());
        if let (Some(known), Some(installation)) = (known, installation) {
            self.find_gap(known, &installation, now).await?;
        }
        // Another process that starts just now may write the first; either will do.
        if let Err(error) = self.record_start(&mark, now).await {
            tracing::debug!(
                error = format!("{error:#}"),
                "the start of this process is not on record"
            );
        }
        Ok(())
    }

    async fn record_start(&self, mark: &HistoryMark, now: Millis) -> Result<()> {
        let mut tx = self.db.begin().await?;
        metadata_gap::raise_start(&mut tx, mark, now).await?;
        tx.commit().await.context("record that a process starts")?;
        Ok(())
    }

    /// Puts a gap on record when a ledger knows of an attempt long after what the database knows.
    async fn find_gap(&self, known: Millis, installation: &str, now: Millis) -> Result<()> {
        let lease_ms = i64::from(self.config.engine.lease_sec) * 1_000;
        if compare_ledgers(known, &[now], lease_ms).is_none() {
            return Ok(());
        }
        let sources = self.sources_with_ledger(&mut self.db.begin_read().await?).await?;
        let last_attempts = self.last_attempts(&sources, installation).await;
        let Some(known_until) = compare_ledgers(known, &last_attempts, lease_ms) else {
            return Ok(());
        };
        let found_by = "a ledger of a data source".to_owned();
        let gap = MetadataGap { restored_to: known, known_until, found_at: now, found_by };
        let mut tx = self.db.begin().await?;
        if metadata_gap::lock_gap(&mut tx).await?.is_none() {
            metadata_gap::open_gap(&mut tx, &gap).await?;
        }
        tx.commit().await.context("put a gap in the metadata on record")?;
        Ok(())
    }

    /// The data sources on which stored jobs with `tx: ledger` run.
    async fn sources_with_ledger(&self, tx: &mut store::Tx) -> Result<Vec<DataSource>> {
        let stored = store::job::without_dependencies(tx).await?;
        let jobs = stored.jobs.iter().filter(|job| job.tx == TxClass::Ledger);
        let named: HashSet<&SourceName> = jobs.filter_map(|job| job.source.as_ref()).collect();
        Ok(stored.sources.iter().filter(|one| named.contains(&one.name)).cloned().collect())
    }

    /// When the last attempts began that the ledgers know which answer in time; of the others it is said that they could
    /// not be compared.
    async fn last_attempts(&self, sources: &[DataSource], installation: &str) -> Vec<Millis> {
        let options = self.config.handlers();
        let answers = sources.iter().map(|one| async {
            let asked = async {
                let one = self.with_password(one).await?;
                source::last_ledger_attempt(&one, &options, installation).await
            };
            let answer = timeout(ANSWER_WITHIN, asked).await;
            answer.unwrap_or_else(|_| {
                let seconds = ANSWER_WITHIN.as_secs();
                Err(SourceFault::away(format!(
                    "source '{}' did not answer within {seconds} s",
                    one.name
                )))
            })
        });
        let mut last = Vec::new();
        for answer in join_all(answers).await {
            match answer {
                Ok(attempt) => last.extend(attempt),
                Err(fault) => tracing::warn!(
                    "cannot compare the metadata with a ledger, which would show that a backup was restored: {fault}"
                ),
            }
        }
        last
    }
}
