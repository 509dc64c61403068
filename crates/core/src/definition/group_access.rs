//! `owner_group` and `groups` of a data source or a secret, and the jobs of the same file held against
//! them.

use crate::definition::fault::{At, Place, Report};
use crate::definition::fields::Fields;
use crate::definition::raw::RawGroupAccess;
use crate::domain::access::group_access::GroupAccess;
use crate::domain::id::GroupCode;
use crate::domain::permission::access_rules::ForbiddenUse;

/// Reads both keys.
pub(crate) fn read(fields: &mut Fields<'_>) -> RawGroupAccess {
    RawGroupAccess { owner_group: fields.word("owner_group"), groups: fields.texts("groups") }
}

/// Makes them codes of groups. The groups may be those of other files.
pub(crate) fn make(whose: &str, raw: RawGroupAccess, report: &mut Report) -> GroupAccess {
    let mut code = |text: &At<String>| {
        let parsed = GroupCode::parse(&text.value);
        parsed.map_err(|error| report.fault(&text.at, format!("{whose}: {error}"), "")).ok()
    };
    let owner_group = raw.owner_group.as_ref().and_then(&mut code);
    let groups = raw.groups.map(|groups| groups.iter().filter_map(&mut code).collect());
    GroupAccess { owner_group, groups }
}

/// Reports what is used and may not be.
pub(crate) fn report_uses(uses: &[ForbiddenUse], at: &Place, report: &mut Report) {
    for found in uses {
        report.fault(at, found.to_string(), found.fix());
    }
}
