//! Changes with direct access to the database that would need a second person over the API: done,
//! recorded, and notified.

use crate::app::{App, whoami};
use crate::cli::{batch, out};
use crate::domain::access::Permission;
use crate::domain::id::GroupCode;
use crate::domain::job::Definition;
use crate::domain::permission::four_eyes::GuardedAction;
use crate::domain::permission::required_permissions::Demands;
use crate::domain::schedule::trigger::TriggerDef;
use crate::domain::text::lang::Lang;
use crate::engine::operate::change_requests::{BypassedChange, record_bypass};
use crate::engine::operate::operator_actions::operator_here;
use anyhow::Result;

/// A change that would need a second person over the API, and the rights that it takes.
pub(super) struct GuardedDemands {
    action: GuardedAction,
    demands: Demands,
}

/// A change by the right `force` in these groups.
pub(super) fn forced<'a>(groups: impl IntoIterator<Item = &'a GroupCode>) -> GuardedDemands {
    let one = |group: &GroupCode| (group.clone(), [Permission::Force].into());
    let groups = groups.into_iter().map(one).collect();
    let demands = Demands { groups, ..Demands::default() };
    GuardedDemands { action: GuardedAction::Force, demands }
}

/// A definition that is stored.
pub(super) fn applied(defs: &Definition) -> GuardedDemands {
    let one = |group: &GroupCode| (group.clone(), [Permission::Edit].into());
    let groups = defs.groups.iter().map(|group| one(&group.code)).collect();
    let demands = Demands { groups, ..Demands::default() };
    GuardedDemands { action: GuardedAction::Apply, demands }
}

/// A schedule that is made, changed or removed.
pub(super) fn scheduled(def: &TriggerDef, defs: &Definition) -> GuardedDemands {
    GuardedDemands { action: GuardedAction::Edit, demands: Demands::of_schedule(def, defs) }
}

/// A calendar, which belongs to no group.
pub(super) fn calendar() -> GuardedDemands {
    let everywhere = [Permission::Edit].into();
    let demands = Demands { everywhere, ..Demands::default() };
    GuardedDemands { action: GuardedAction::Edit, demands }
}

/// Called before a change is written.
pub(super) async fn record(
    app: &App,
    guarded: GuardedDemands,
    summary: &str,
    reason: Option<&str>,
    lang: Lang,
) -> Result<()> {
    let rules = app.config.four_eyes()?;
    if !rules.is_on() {
        return Ok(());
    }
    let reason = reason.unwrap_or_default();
    let GuardedDemands { action, demands } = guarded;
    let change = BypassedChange { action, demands: &demands, summary, reason };
    let now = batch::server_now(app).await?;
    if record_bypass(&app.db, &rules, &change, &operator_here(&whoami()), now).await? {
        out::eprint_line(lang.select(
            "note: over the API this change needs a second person; it is on record, and the recipients are told",
            "注意：通过 API 执行该变更需要第二人审批；已记入审计日志并通知相关人员",
        ));
    }
    Ok(())
}
