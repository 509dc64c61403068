//! Data sources beside any batch: which jobs use them, what they say of themselves, their ledgers.

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

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

impl App {
    /// Asks a source all that bodies of these classes will need of it.
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

    /// What only our own database answers to `store::INSTALLATION`; none before the first process
    /// has joined.
    async fn installation(&self) -> Result<Option<String>, SourceFault> {
        let found = async { store::installation(&mut self.db.begin_read().await?).await };
        found.await.map_err(|error| {
            SourceFault::of_settings(format!("cannot ask our own database: {error:#}"))
        })
    }

    /// Makes the ledger of a source, or looks at it.
    pub async fn prepare_source(
        &self,
        source: &DataSource,
        change: LedgerChange,
    ) -> Result<(Prepared, ServerIdentity), SourceFault> {
        let source = self.with_password(source).await?;
        source::prepare(&source, &self.config.handlers(), change).await
    }

    /// Removes rows of effects that are known for more than `days`, seen from `now`; or counts them.
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

    /// A source with the secret that is its password, where it has one. Only for sources as they are stored: another
    /// address would be told the password.
    pub async fn with_password(&self, source: &DataSource) -> Result<DataSource, SourceFault> {
        let now = self.clock.uptime();
        let read = read_source_password(&self.db, &self.secret_stores, now, source).await;
        read.map_err(SourceFault::of_settings)
    }
}
