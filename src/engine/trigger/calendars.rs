//! Warns owners in time that a calendar of their schedules ends: once a month for each missing
//! year, from October on, because the first batch that needs it runs in January.

use crate::domain::calendar::{CalendarGap, CalendarWarning, warnings};
use crate::domain::id::CalendarCode;
use crate::domain::notice::notice_trigger::{self as words, Audience};
use crate::domain::schedule::trigger::{Trigger, TriggerStatus};
use crate::domain::time::{Millis, day_in};
use crate::store::{self, Db, calendar, job, outbox, trigger};
use anyhow::{Context as _, Result};
use chrono::{Datelike as _, NaiveDate};
use std::collections::BTreeSet;

/// Checks all enabled schedules and puts notifications into the outbox. Called a few times a day by
/// every node; only the first call of a month sends.
pub(super) async fn warn_of_calendars(db: &Db, now: Millis) -> Result<()> {
    let mut tx = db.begin_read().await?;
    let mut triggers = trigger::readable(&mut tx).await?;
    triggers.retain(|t| t.status == TriggerStatus::Enabled);
    let calendars = calendar::list_calendars(&mut tx).await?;
    drop(tx);
    let used = |t: &Trigger| t.def.timing.calendar.clone();
    let codes: BTreeSet<CalendarCode> = triggers.iter().filter_map(used).collect();
    let today = day_in(now, chrono_tz::UTC);
    for warning in warnings(&calendars, &codes, today) {
        let hit = |t: &&Trigger| {
            let code = t.def.timing.calendar.as_ref();
            code.is_some_and(|code| {
                *code == warning.calendar
                    || calendars
                        .leaves(code)
                        .is_ok_and(|leaves| leaves.iter().any(|l| l.code == warning.calendar))
            })
        };
        let of: Vec<&Trigger> = triggers.iter().filter(hit).collect();
        notify_owners(db, &warning, &of, today, now).await?;
    }
    Ok(())
}

async fn notify_owners(
    db: &Db,
    warning: &CalendarWarning,
    of: &[&Trigger],
    today: NaiveDate,
    now: Millis,
) -> Result<()> {
    let year = match warning.lack {
        CalendarGap::Calendar => 0,
        CalendarGap::ThisYear(year) | CalendarGap::NextYear(year) => year,
    };
    let name = format!("cal:{}:{year}", warning.calendar);
    let month = format!("{:04}-{:02}", today.year(), today.month());
    let mut tx = db.begin().await?;
    if !store::meta_is_new(&mut tx, &name, &month).await? {
        tx.rollback().await?;
        return Ok(());
    }
    tracing::warn!("{warning}");
    let (groups, owners) = job::audience(&mut tx).await?;
    let audience = Audience { groups, owners };
    let notices = words::calendar_ends(warning, of.iter().map(|t| &t.def), &audience);
    outbox::enqueue_plain(&mut tx, &notices, now).await?;
    tx.commit().await.context("tell of a calendar that ends")
}
