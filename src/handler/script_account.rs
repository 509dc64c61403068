//! The system account that a script runs under.

use crate::domain::id::GroupCode;
use crate::domain::job::script_isolation::{ScriptUsers, UserSwitching};
use nix::unistd::{User, geteuid, getuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

/// The numeric ids of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccountIds {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Whether this process may start a program as another user.
pub fn user_switching() -> UserSwitching {
    if geteuid().is_root() { UserSwitching::Possible } else { UserSwitching::Impossible }
}

/// An account other than Procession's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptAccount {
    name: String,
    pub(crate) ids: AccountIds,
    home: PathBuf,
}

impl ScriptAccount {
    /// The account that runs scripts of `group`; `None` is Procession's own. An error is why
    /// nothing may be started.
    pub(crate) fn find_account(
        users: &ScriptUsers,
        group: &GroupCode,
    ) -> Result<Option<Self>, String> {
        let chosen =
            users.choose(group, user_switching()).map_err(|refusal| refusal.to_string())?;
        chosen.map(Self::look_up).transpose()
    }

    fn look_up(name: &str) -> Result<Self, String> {
        let setting = format!("script.run_as names the user {name}");
        let found = User::from_name(name)
            .map_err(|e| format!("{setting}, who cannot be looked up: {e}"))?;
        let user = found.ok_or_else(|| {
            format!("{setting}, who does not exist on this machine; make the user, or name another")
        })?;
        if user.uid.is_root() || user.uid == getuid() {
            return Err(format!(
                "{setting}, as whom Procession itself runs; name one that owns nothing of Procession"
            ));
        }
        let ids = AccountIds { user: user.uid.as_raw(), group: user.gid.as_raw() };
        Ok(Self { name: user.name, ids, home: user.dir })
    }

    /// Its name on this machine.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Changes the owner of the script's private directory and its files to this account.
    pub(crate) fn take_over<'a>(
        &self,
        folder: &Path,
        mut files: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<(), String> {
        let give = |path: &Path| chown(path, Some(self.ids.user), Some(self.ids.group));
        let given = files.try_for_each(|file| give(file)).and_then(|()| give(folder));
        given.map_err(|e| format!("cannot give the script's folder to {}: {e}", self.name))
    }

    /// Sets the environment variables that programs of an account expect.
    pub(crate) fn set_variables(&self, variables: &mut BTreeMap<String, String>, folder: &Path) {
        let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
        set("USER", self.name.clone());
        set("LOGNAME", self.name.clone());
        set("HOME", self.home.display().to_string());
        set("TMPDIR", folder.display().to_string());
    }
}
