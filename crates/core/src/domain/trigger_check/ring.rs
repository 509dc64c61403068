//! Finds schedules that trigger each other in an endless cycle.

use super::TriggerFinding;
use crate::domain::id::{GroupCode, TriggerCode};
use crate::domain::job::Definition;
use crate::domain::schedule::FiringRule;
use crate::domain::schedule::trigger::TriggerDef;
use std::collections::{HashMap, HashSet, VecDeque};

/// A schedule that follows batches of another group.
struct Arrow<'a> {
    code: &'a TriggerCode,
    from: &'a GroupCode,
    to: Vec<&'a GroupCode>,
}

/// Every cycle, reported at the schedule that comes first in `all`. A batch number that changes along the cycle does
/// not end it: `next(1)` would continue to the year 9999.
pub fn rings(all: &[TriggerDef], defs: &Definition) -> Vec<(TriggerCode, TriggerFinding)> {
    let arrows: Vec<Arrow<'_>> = all.iter().filter_map(|def| arrow(def, defs)).collect();
    let mut told: HashSet<&TriggerCode> = HashSet::new();
    let mut found = Vec::new();
    for (at, start) in arrows.iter().enumerate() {
        if told.contains(start.code) {
            continue;
        }
        let Some(way) = way_back(at, &arrows) else { continue };
        let words: Vec<String> =
            way.iter().map(|a| format!("{} (after {})", a.code, a.from)).collect();
        told.extend(way.iter().map(|a| a.code));
        let what = format!("these schedules start one another without end: {}", words.join(" -> "));
        let finding = TriggerFinding::refused("after", what, "remove one of them, or its after");
        found.push((start.code.clone(), finding));
    }
    found
}

fn arrow<'a>(def: &'a TriggerDef, defs: &'a Definition) -> Option<Arrow<'a>> {
    let FiringRule::After { group, .. } = &def.timing.schedule else { return None };
    let order = def.order.as_ref()?;
    let opens = |code: &GroupCode, ty: Option<&String>| {
        order.group.as_ref().is_none_or(|wanted| wanted == code)
            && order.batch_type.as_ref().is_none_or(|wanted| Some(wanted) == ty)
    };
    let mut to: Vec<&GroupCode> = defs
        .groups
        .iter()
        .filter(|g| opens(&g.code, g.batch_type.as_ref()))
        .map(|g| &g.code)
        .collect();
    // A group defined in another file.
    to.extend(order.group.as_ref().filter(|code| defs.groups.iter().all(|g| g.code != **code)));
    Some(Arrow { code: &def.code, from: group, to })
}

/// The shortest path from the groups that `start` opens back to the group that it follows.
fn way_back<'a>(start: usize, arrows: &'a [Arrow<'a>]) -> Option<Vec<&'a Arrow<'a>>> {
    let mut came: HashMap<usize, usize> = HashMap::new();
    let mut seen = HashSet::from([start]);
    let mut open = VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        if arrows[at].to.contains(&arrows[start].from) {
            let back = std::iter::successors(Some(at), |at| came.get(at).copied());
            let mut way: Vec<_> = back.map(|at| &arrows[at]).collect();
            way.reverse();
            return Some(way);
        }
        for next in (0..arrows.len()).filter(|next| arrows[at].to.contains(&arrows[*next].from)) {
            if seen.insert(next) {
                came.insert(next, at);
                open.push_back(next);
            }
        }
    }
    None
}
