//! Data sources without a batch: which jobs use them, their checks, their ledgers.

pub use crate::db::ledger::{LedgerState, ServerIdentity};
pub use crate::handler::source::{
    DefinerStop, Password, Prepared, SourceAddress, SourceChange as LedgerChange,
    SourceCheckResult, SourceFault, StopTrial, TrialBody, for_the_dba, place,
};

use crate::app::App;
use crate::domain::source::DataSource;
use crate::domain::source::tx_class::TxClass;
use crate::domain::time::Millis;
use crate::engine::attempt::secret_reader::read_source_password;
use crate::handler::source;
use crate::store;

/// Milliseconds per day.
const DAY_MS: i64 = 86_400_000;

impl App {
    /// Checks everything that bodies of these classes need from a source.
    pub async fn check_source(
        &self,
        source: &DataSource,
        classes: &[TxClass],
    ) -> Result<SourceCheckResult, SourceFault> {
        let asked = classes.contains(&TxClass::Same);
        let name = if asked { self.installation().await? } else { None };
        let home = name.as_deref().map(|name| (store::INSTALLATION, name));
        let source = self.with_password(source).await?;
        source::check(&source, &self.config.handlers(), home).await
    }

    /// The value that only our own database returns for `store::INSTALLATION`; `None` before the
    /// first process has joined.
    async fn installation(&self) -> Result<Option<String>, SourceFault> {
        let found = async { store::installation(&mut self.db.begin_read().await?).await };
        found.await.map_err(|error| {
            SourceFault::of_settings(format!("cannot ask our own database: {error:#}"))
        })
    }

    /// Creates or checks the ledger of a source.
    pub async fn prepare_source(
        &self,
        source: &DataSource,
        change: LedgerChange,
    ) -> Result<(Prepared, ServerIdentity), SourceFault> {
        let source = self.with_password(source).await?;
        source::prepare(&source, &self.config.handlers(), change).await
    }

    /// Removes or counts ledger rows of effects older than `days` before `now`.
    pub async fn prune_source(
        &self,
        source: &DataSource,
        (days, now): (u32, Millis),
        change: LedgerChange,
    ) -> Result<u64, SourceFault> {
        let cut = now.plus_ms(-i64::from(days) * DAY_MS).to_utc();
        let cut = cut.format("%Y-%m-%d %H:%M:%S").to_string();
        let source = self.with_password(source).await?;
        source::prune(&source, &self.config.handlers(), &cut, change).await
    }

    /// A source with its password read from its secret, if it has one. Only for sources as stored:
    /// another address would receive the password.
    pub async fn with_password(&self, source: &DataSource) -> Result<DataSource, SourceFault> {
        let now = self.clock.uptime();
        let read = read_source_password(&self.db, &self.secret_stores, now, source).await;
        read.map_err(SourceFault::of_settings)
    }
}
