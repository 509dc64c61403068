//! What the permission `script` means on the present nodes, for administrators who grant it.

use crate::app::App;
use crate::domain::access::{Grant, Permission, Where};
use crate::domain::job::script_isolation::ScriptRightWarning;
use crate::store;
use anyhow::Result;

impl App {
    /// The warning for an administrator who grants `script`; `None` if it is not among these
    /// permissions, or where every script is isolated from the service.
    pub async fn warn_of_script_right(
        &self,
        grants: &[Grant],
    ) -> Result<Option<ScriptRightWarning>> {
        let with_script: Vec<&Grant> =
            grants.iter().filter(|grant| grant.rights.contains(&Permission::Script)).collect();
        if with_script.is_empty() {
            return Ok(None);
        }
        let group = |grant: &&Grant| match &grant.place {
            Where::Everywhere => None,
            Where::Group(code) => Some(code.to_string()),
        };
        let groups: Option<Vec<String>> = with_script.iter().map(group).collect();
        let now = self.clock.now();
        let mut tx = self.db.begin_read().await?;
        let members = store::node::members_with_isolation(&mut tx, now).await?;
        let nodes: Vec<_> =
            members.into_iter().map(|m| (m.offer.name, m.script_isolation)).collect();
        Ok(ScriptRightWarning::from_reports(groups, &nodes))
    }
}
