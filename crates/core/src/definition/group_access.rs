//! Reads `owner_group` and `groups` of a data source or secret, and checks the jobs of the same file against them.

use crate::definition::fault::{FaultReport, Located, SourcePlace};
use crate::definition::fields::Fields;
use crate::definition::raw::RawGroupAccess;
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::GroupCode;
use crate::domain::permission::access_rules::ForbiddenUse;

/// Reads both keys.
pub(crate) fn read_access(fields: &mut Fields<'_>) -> RawGroupAccess {
    RawGroupAccess { owner_group: fields.take_word("owner_group"), groups: fields.texts("groups") }
}

/// Converts them to group codes. The groups may be defined in other files.
pub(crate) fn make_access(
    whose: &str,
    raw: RawGroupAccess,
    report: &mut FaultReport,
) -> GroupAccess {
    let mut code = |text: &Located<String>| {
        let parsed = GroupCode::parse(&text.value);
        parsed.map_err(|error| report.fault(&text.at, format!("{whose}: {error}"), "")).ok()
    };
    let owner_group = raw.owner_group.as_ref().and_then(&mut code);
    let groups = raw.groups.map(|groups| groups.iter().filter_map(&mut code).collect());
    GroupAccess { owner_group, groups }
}

/// Reports forbidden uses.
pub(crate) fn report_uses(uses: &[ForbiddenUse], at: &SourcePlace, report: &mut FaultReport) {
    for found in uses {
        report.fault(at, found.to_string(), found.hint_text());
    }
}
