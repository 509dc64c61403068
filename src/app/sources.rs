//! Data sources beside any batch: which jobs use them, what they say of themselves, their ledgers.

pub use crate::db::ledger::{Ledger, Whom};
pub use crate::handler::source::{
    Change as LedgerChange, Checked, DefinerStop, Password, Place, Prepared, SourceFault,
    StopTrial, TrialBody, for_the_dba, place,
};

use crate::app::App;
use crate::domain::source::Source;
use crate::domain::time::Millis;
use crate::domain::tx_class::TxClass;
use crate::engine::attempt::secret_reader::read_source_password;
use crate::handler::source;
use crate::store;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

impl App {
    /// Asks a source all that bodies of these classes will need of it.
    pub async fn check_source(
        &self,
        source: &Source,
        classes: &[TxClass],
    ) -> Result<Checked, SourceFault> {
        let asked = classes.contains(&TxClass::Same);
        let name = if asked { self.installation().await? } else { None };
        let home = name.as_deref().map(|name| (store::INSTALLATION, name));
        let source = self.with_password(source).await?;
        source::check(&source, &self.config.handlers(), home).await
    }

    /// What only our own database answers to `store::INSTALLATION`; none before the first process
    /// has joined.
    async fn installation(&self) -> Result<Option<String>, SourceFault> {
        let found = async { store::installation(&mut self.db.read().await?).await };
        found.await.map_err(|error| SourceFault(format!("cannot ask our own database: {error:#}")))
    }

    /// Makes the ledger of a source, or looks at it.
    pub async fn prepare_source(
        &self,
        source: &Source,
        change: LedgerChange,
    ) -> Result<(Prepared, Whom), SourceFault> {
        let source = self.with_password(source).await?;
        source::prepare(&source, &self.config.handlers(), change).await
    }

    /// Removes rows of effects that are known for more than `days`, seen from `now`; or counts them.
    pub async fn prune_source(
        &self,
        source: &Source,
        (days, now): (u32, Millis),
        change: LedgerChange,
    ) -> Result<u64, SourceFault> {
        let cut = now.plus(-i64::from(days) * DAY_MS).to_utc();
        let cut = cut.format("%Y-%m-%d %H:%M:%S").to_string();
        let source = self.with_password(source).await?;
        source::prune(&source, &self.config.handlers(), &cut, change).await
    }

    /// A source with the secret that is its password, where it has one. Only for sources as they are stored: another
    /// address would be told the password.
    pub async fn with_password(&self, source: &Source) -> Result<Source, SourceFault> {
        let now = self.clock.uptime();
        read_source_password(&self.db, &self.secret_stores, now, source).await.map_err(SourceFault)
    }
}
