//! Whether a process that fires schedules is alive: without one, due firings wait.

use crate::app::App;
use crate::domain::cluster::node_placement::NodeRole;
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use crate::store;
use anyhow::Result;

/// Whether schedules are fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fires {
    /// A process with the role is alive.
    Now,
    /// None is.
    OnceServed,
}

impl Fires {
    /// Read from the nodes at `now`, by the database's clock.
    pub(super) async fn read_at(app: &App, now: Millis) -> Result<Self> {
        let mut tx = app.db.begin_read().await?;
        let members = store::node::members(&mut tx, now).await?;
        let any = members.iter().any(|m| m.offer.roles.contains(&NodeRole::Scheduler));
        Ok(if any { Self::Now } else { Self::OnceServed })
    }

    /// When a firing that was just written takes place.
    pub(super) fn words(self, lang: Lang) -> &'static str {
        match self {
            Self::Now => lang.select("fires now", "立即触发"),
            Self::OnceServed => lang.select(
                "fires as soon as a node serves (none does now; start one: procession serve)",
                "待有服务节点后触发（当前没有；启动：procession serve）",
            ),
        }
    }
}

/// The note below a list of schedules when none of them can fire.
pub(super) fn nobody(lang: Lang) -> &'static str {
    lang.select(
        "nothing fires now: no node with the role scheduler lives; start one: procession serve",
        "当前不会触发：没有存活的 scheduler 节点；启动：procession serve",
    )
}
