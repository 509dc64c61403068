//! Schedules and their firings.

use crate::domain::id::GroupCode;
use crate::domain::job::Group;
use crate::domain::schedule::Timing;
use crate::domain::schedule::firing::Firing;
use crate::domain::schedule::trigger::{Trigger, TriggerDef, TriggerWords};
use crate::domain::text::lang::Lang;
use crate::domain::time::Millis;
use anyhow::Result;
use chrono_tz::Tz;
use serde_json::{Value, json};

/// Local time and offset: `2026-12-31 18:00:00 +08:00`.
pub fn local(at: Millis, zone: Tz) -> String {
    let local = at.to_utc().with_timezone(&zone);
    let form = if at.0.rem_euclid(1_000) == 0 {
        "%Y-%m-%d %H:%M:%S %:z"
    } else {
        "%Y-%m-%d %H:%M:%S%.3f %:z"
    };
    local.format(form).to_string()
}

/// The groups whose batches a schedule opens.
pub fn opens<'a>(def: &TriggerDef, groups: &'a [Group]) -> Vec<&'a GroupCode> {
    let words = TriggerWords::from(def.clone());
    let opened = |g: &&Group| words.opens(&g.code, g.batch_type.as_deref());
    groups.iter().filter(opened).map(|g| &g.code).collect()
}

/// A schedule, and its last firing.
pub fn as_json(t: &Trigger, last: Option<&Firing>) -> Result<Value> {
    let zone = t.def.timing.zone;
    Ok(json!({
        "schedule": serde_json::to_value(&t.def)?,
        "id": t.trigger_id, "status": t.status.as_str(), "reason": t.reason, "origin": t.origin,
        "revision": t.revision, "create_time": t.create_time.to_string(),
        "next_time": t.next_time.map(|at| at.to_string()),
        "next_local": t.next_time.map(|at| local(at, zone)),
        "last_time": t.last_time.map(|at| at.to_string()),
        "last": last.map(|f| firing_json(f, zone)),
    }))
}

/// What a schedule means, as a sentence in both languages.
pub fn sentences(timing: &Timing) -> Value {
    json!({"en": timing.sentence(Lang::En), "zh": timing.sentence(Lang::Zh)})
}

/// A firing.
pub fn firing_json(f: &Firing, zone: Tz) -> Value {
    json!({
        "firing_id": f.firing_id, "planned_at": f.planned_at.to_string(),
        "planned_local": local(f.planned_at, zone), "nominal_date": f.nominal_date,
        "source": f.source.as_str(), "status": f.status.as_str(), "batch_no": f.batch_no,
        "fire_at": f.fire_at.to_string(), "fired_at": f.fired_at.map(|at| at.to_string()),
        "attempt": f.attempt, "reason": f.reason,
        "missed_until": f.missed_until.map(|at| at.to_string()),
    })
}
