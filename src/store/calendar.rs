//! `calendar`, `calendar_day`: days off and extra working days. Always read completely, because all
//! of them are some hundred rows, and checked against each other.

use crate::db::Row;
use crate::domain::calendar::{
    Calendar, CalendarDayRule, Calendars, CombinationRule, Combine, DayKind, DayOrigin, Weekend,
};
use crate::domain::id::CalendarCode;
use crate::domain::time::Millis;
use crate::store::Tx;
use crate::store::columns::upsert;
use crate::store::epoch::{self, Epoch};
use anyhow::{Context as _, Result, bail};
use chrono::NaiveDate;
use std::collections::{BTreeMap, BTreeSet};

pub async fn list_calendars(tx: &mut Tx) -> Result<Calendars> {
    let [days, calendars] = tx.fetch_sets(QUERIES).await.context("read the calendars")?;
    from_rows(&days, &calendars)
}

/// The queries for all days and for all calendars.
pub(super) const QUERIES: [&str; 2] = ["SELECT * FROM calendar_day", "SELECT * FROM calendar"];

/// Builds the calendars from the results of `QUERIES`.
pub(super) fn from_rows(day_rows: &[Row], calendar_rows: &[Row]) -> Result<Calendars> {
    let mut days: BTreeMap<CalendarCode, BTreeMap<NaiveDate, CalendarDayRule>> = BTreeMap::new();
    for row in day_rows {
        let (code, date, day) = day_of_row(row).context("read calendar_day")?;
        days.entry(code).or_default().insert(date, day);
    }
    let calendars = calendar_rows.iter().map(|row| {
        let mut made = head_of_row(row)?;
        made.days = days.remove(&made.code).unwrap_or_default();
        Ok(made)
    });
    let calendars = calendars.collect::<Result<Vec<_>>>().context("read calendar")?;
    // The transaction that wrote them had checked them; only a manual change of the table can break
    // that.
    Calendars::new(calendars).map_err(|faults| faults[0].clone()).context("read calendar")
}

/// Locks the calendars against changes until the end of the transaction. Call it before anything is
/// read.
pub async fn lock_calendars(tx: &mut Tx) -> Result<()> {
    let sql =
        format!("SELECT lock_name FROM job_lock WHERE lock_name = ?{}", tx.dialect().for_update());
    tx.fetch_optional(&sql, &["calendar_lock".into()]).await.context("lock the calendars")?;
    Ok(())
}

fn day_of_row(row: &Row) -> Result<(CalendarCode, NaiveDate, CalendarDayRule)> {
    let (code, date) = (row.get_text("calendar_code")?, row.get_text("calendar_date")?);
    let kind = match row.get_text("kind")?.as_str() {
        "off" => DayKind::Off,
        "work" => DayKind::Work,
        other => bail!("{code} {date}: kind {other:?} is neither off nor work"),
    };
    let origin = match row.opt_int("list_year")? {
        Some(year) => DayOrigin::List(i32::try_from(year)?),
        None => DayOrigin::Hand,
    };
    let day = CalendarDayRule { kind, label: row.opt_text("label")?, origin };
    Ok((CalendarCode::parse(&code)?, date.parse().with_context(|| date.clone())?, day))
}

fn head_of_row(row: &Row) -> Result<Calendar> {
    let how = match row.opt_text("combine_how")?.as_deref() {
        None => None,
        Some("all_of") => Some(CombinationRule::AllOf),
        Some("any_of") => Some(CombinationRule::AnyOf),
        Some(other) => bail!("combine_how {other:?} is neither all_of nor any_of"),
    };
    let members: Vec<CalendarCode> =
        row.opt_text("members")?.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))?;
    Ok(Calendar {
        code: CalendarCode::parse(&row.get_text("calendar_code")?)?,
        name: row.get_text("calendar_name")?,
        weekend: Weekend::parse(&row.get_text("weekend")?)?,
        days: BTreeMap::new(),
        years: serde_json::from_str::<BTreeSet<i32>>(&row.get_text("years")?)?,
        combines: how.map(|how| Combine { how, members }),
    })
}

/// Inserts or replaces a calendar. The caller has checked it against the others (`Calendars::new`)
/// in this transaction.
pub async fn put_calendar(tx: &mut Tx, calendar: &Calendar, now: Millis) -> Result<()> {
    let combines = calendar.combines.as_ref();
    let members = combines.map(|c| serde_json::to_string(&c.members)).transpose()?;
    let columns = vec![
        ("calendar_code", calendar.code.as_str().into()),
        ("calendar_name", calendar.name.as_str().into()),
        ("weekend", calendar.weekend.to_string().into()),
        ("years", serde_json::to_string(&calendar.years)?.into()),
        ("combine_how", combines.map(|c| c.how.as_str()).into()),
        ("members", members.into()),
    ];
    upsert(tx, "calendar", "calendar_code", columns, now).await?;
    remove_days(tx, &calendar.code).await?;
    let columns = ["calendar_code", "calendar_date", "kind", "label", "list_year"];
    let rows = calendar.days.iter().map(|(date, day)| {
        let year = match day.origin {
            DayOrigin::List(year) => Some(i64::from(year)),
            DayOrigin::Hand => None,
        };
        vec![
            calendar.code.as_str().into(),
            date.to_string().into(),
            day.kind.as_str().into(),
            day.label.as_deref().into(),
            year.into(),
        ]
    });
    tx.insert_many("calendar_day", &columns, rows).await.context("write calendar_day")
}

/// Removes a calendar; returns whether it existed. The caller has checked that nothing uses it.
pub async fn remove(tx: &mut Tx, code: &CalendarCode) -> Result<bool> {
    remove_days(tx, code).await?;
    let sql = "DELETE FROM calendar WHERE calendar_code = ?";
    Ok(tx.execute(sql, &[code.as_str().into()]).await.context("remove the calendar")? > 0)
}

async fn remove_days(tx: &mut Tx, code: &CalendarCode) -> Result<()> {
    changed(tx).await?;
    let sql = "DELETE FROM calendar_day WHERE calendar_code = ?";
    tx.execute(sql, &[code.as_str().into()]).await.context("write calendar_day")?;
    Ok(())
}

/// Invalidates cached calendars, and cached definitions, which contain them.
async fn changed(tx: &mut Tx) -> Result<()> {
    epoch::bump_epoch(tx, Epoch::Definition).await?;
    epoch::bump_epoch(tx, Epoch::Calendars).await
}
