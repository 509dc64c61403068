//! What the right `script` is on the nodes there are, for who grants it.

use crate::app::App;
use crate::domain::access::{Grant, Permission, Where};
use crate::domain::job::script_isolation::ScriptRightWarning;
use crate::store;
use anyhow::Result;

impl App {
    /// What who grants these should know of the right `script` among them; none when it is not, or where every script is
    /// kept from the service.
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
