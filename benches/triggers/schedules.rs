//! Schedules by the thousand, written in bulk.

use crate::place::Place;
use anyhow::Result;
use procession::db::SqlValue;
use procession::domain::id::TriggerCode;
use procession::domain::schedule::cron::Cron;
use procession::domain::schedule::firing::TriggerId;
use procession::domain::schedule::misfire::Misfire;
use procession::domain::schedule::overlap::Overlap;
use procession::domain::schedule::trigger::{
    NOOP, QUEUE_DISPATCHER, Trigger, TriggerDef, TriggerStatus,
};
use procession::domain::schedule::{FiringRule, Timing};
use procession::domain::time::Millis;
use procession::store::trigger::{ScheduleProgress, advance};

/// A schedule to be.
pub(crate) struct Wanted {
    pub(crate) timing: Timing,
    /// Where the grid of a fixed rate begins.
    pub(crate) created: Millis,
    /// Nothing is due earlier.
    pub(crate) from: Millis,
    /// What it opens; nothing for one that does nothing.
    pub(crate) order: Option<String>,
    /// What becomes of planned times that were missed.
    pub(crate) misfire: Misfire,
}

/// Every so many seconds, half of them by cron in another zone, half by rate; the grids of neighbours
/// are a second apart.
pub(crate) fn every(number: u32, seconds: u32, from: Millis) -> Result<Wanted> {
    let phase = (number / 2) % seconds;
    let (schedule, zone) = match number % 2 {
        0 => (FiringRule::FixedRate { every_sec: seconds.into() }, chrono_tz::UTC),
        _ => (
            FiringRule::Cron(Cron::parse(&format!("{phase}/{seconds} * * * * ?"))?),
            chrono_tz::Asia::Shanghai,
        ),
    };
    let created = Millis((from.0 / 60_000) * 60_000).plus_ms(i64::from(phase) * 1_000 - 60_000);
    Ok(Wanted {
        timing: Timing::plain(schedule, zone),
        created,
        from,
        order: None,
        misfire: Misfire::default(),
    })
}

/// Once an hour, at the second of `at`.
pub(crate) fn hourly(at: Millis) -> Result<Wanted> {
    let second = at.0.div_euclid(1_000);
    let text = format!("{} {} * * * ?", second % 60, second / 60 % 60);
    let timing = Timing::plain(FiringRule::Cron(Cron::parse(&text)?), chrono_tz::Asia::Shanghai);
    Ok(Wanted {
        timing,
        created: at.plus_ms(-60_000),
        from: at,
        order: None,
        misfire: Misfire::default(),
    })
}

/// Writes them, with keys from 1 on.
pub(crate) async fn plant(place: &Place, wanted: Vec<Wanted>) -> Result<()> {
    let (mut rows, mut standings) = (Vec::new(), Vec::new());
    for (number, wanted) in (1i64..).zip(wanted) {
        let trigger = trigger(number, &wanted)?;
        let next = trigger.next_after(&Default::default(), wanted.from.plus_ms(-1))?;
        standings.push(ScheduleProgress {
            trigger_id: trigger.trigger_id,
            revision: 1,
            next_time: next.map(|planned| planned.at),
            last_time: None,
        });
        rows.push(row(&trigger)?);
    }
    let mut tx = place.db.begin().await?;
    tx.insert_many("job_trigger", &COLUMNS, rows).await?;
    advance(
        &mut tx,
        &standings,
        standings.first().map_or(Millis(0), |s| s.next_time.unwrap_or(Millis(0))),
    )
    .await?;
    tx.commit().await?;
    Ok(())
}

const COLUMNS: [&str; 14] = [
    "trigger_id",
    "trigger_code",
    "trigger_name",
    "group_code",
    "schedule_type",
    "schedule_conf",
    "time_zone",
    "handler",
    "trigger_status",
    "origin",
    "revision",
    "body",
    "create_time",
    "update_time",
];

fn row(trigger: &Trigger) -> Result<Vec<SqlValue>> {
    let def = &trigger.def;
    Ok(vec![
        trigger.trigger_id.0.into(),
        def.code.as_str().into(),
        def.name.as_str().into(),
        def.group().map(|group| group.as_str()).into(),
        def.timing.schedule.kind().into(),
        def.schedule_conf().into(),
        def.timing.zone.name().into(),
        def.handler.as_str().into(),
        TriggerStatus::Enabled.as_str().into(),
        "bench".into(),
        1i64.into(),
        serde_json::to_string(def)?.into(),
        trigger.create_time.to_utc().into(),
        trigger.create_time.to_utc().into(),
    ])
}

fn trigger(number: i64, wanted: &Wanted) -> Result<Trigger> {
    let code = format!("BENCH_{number:05}");
    let handler = if wanted.order.is_some() { QUEUE_DISPATCHER } else { NOOP };
    let def = TriggerDef {
        code: TriggerCode::parse(&code)?,
        name: code,
        timing: wanted.timing.clone(),
        handler: handler.to_owned(),
        order: wanted.order.as_deref().map(serde_json::from_str).transpose()?,
        misfire: wanted.misfire,
        overlap: Overlap::Parallel,
        retry_count: 3,
        retry_delay_sec: 10,
        timeout_sec: 60,
        notify_email: Vec::new(),
        owner: None,
        starts_paused: false,
    };
    Ok(Trigger {
        trigger_id: TriggerId(number),
        revision: 1,
        def,
        status: TriggerStatus::Enabled,
        reason: None,
        origin: "bench".to_owned(),
        create_time: wanted.created,
        next_time: None,
        last_time: None,
    })
}
