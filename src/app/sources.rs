//! Data sources beside any batch: which jobs use them, what they say of themselves, their ledgers.

pub use crate::db::ledger::{Ledger, Whom};
pub use crate::handler::source::{
    Change as LedgerChange, Checked, Password, Place, Prepared, SourceFault, for_the_dba, place,
};

use crate::app::App;
use crate::domain::source::Source;
use crate::domain::time::Millis;
use crate::handler::source;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

impl App {
    /// Asks a source all that bodies will need of it.
    pub async fn check_source(&self, source: &Source) -> Result<Checked, SourceFault> {
        source::check(source, &self.config.handlers()).await
    }

    /// Makes the ledger of a source, or looks at it.
    pub async fn prepare_source(
        &self,
        source: &Source,
        change: LedgerChange,
    ) -> Result<(Prepared, Whom), SourceFault> {
        source::prepare(source, &self.config.handlers(), change).await
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
        source::prune(source, &self.config.handlers(), &cut, change).await
    }
}
