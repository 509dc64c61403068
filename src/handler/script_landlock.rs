//! Restricts the files that a script may use, by Landlock.

use crate::handler::script_confinement::FileAccess;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

/// Linux 6.2: the first version that keeps a script from truncating files that it may not write.
const OLDEST: ABI = ABI::V3;

/// Restricts this process and what it starts. Linux 6.12 also blocks named sockets and signals to
/// other processes.
pub(crate) fn restrict(access: &FileAccess) -> Result<(), String> {
    let set = open_ruleset().and_then(|set| {
        set.add_rules(path_beneath_rules(&access.read, AccessFs::from_read(OLDEST)))?
            .add_rules(path_beneath_rules(&access.write, AccessFs::from_all(OLDEST)))?
            .restrict_self()
    });
    set.map(drop).map_err(describe)
}

/// Whether this kernel supports it.
pub(crate) fn check() -> Result<(), String> {
    open_ruleset().map(drop).map_err(describe)
}

fn open_ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(ABI::V6))?
        .create()
}

fn describe(error: RulesetError) -> String {
    format!("the kernel cannot limit files by Landlock as of Linux 6.2: {error}")
}
