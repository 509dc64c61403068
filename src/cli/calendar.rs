//! `calendar import | add | combine | day | list | show | check | export | remove`.

use crate::app::{self, App, Apply, CalendarAct, CalendarChange, EmptyDatabase, MakeCalendar};
use crate::cli::calendar_args::{CalendarHeadArgs, CalendarVerb, ImportArgs, ReasonArgs, SetTo};
use crate::cli::{
    BadInput, Global, VerbResult, batch, calendar_show, calendar_words, four_eyes, out,
    schedule_words,
};
use crate::definition::{CalendarFile, CalendarForm, read_calendar, write_calendar};
use crate::domain::calendar::{
    Calendar, CalendarDayRule, Calendars, CombinationRule, Combine, DayOrigin, ImportScope, merged,
};
use crate::domain::id::CalendarCode;
use crate::domain::text::lang::Lang;
use crate::domain::time::day_in;
use crate::engine::operate::operator_actions::operator_here;
use crate::view::calendar::{CalendarSummary, CalendarYear};
use anyhow::{Context as _, Result};
use chrono::{Datelike as _, NaiveDate};
use serde_json::json;
use std::path::Path;

pub(super) async fn calendar(global: &Global, verb: CalendarVerb) -> Result<VerbResult> {
    match verb {
        CalendarVerb::Import(args) => import(global, &args).await,
        CalendarVerb::Add { code, head, why } => add_calendar(global, &code, &head, &why).await,
        CalendarVerb::Combine { code, all_of, any_of, name, why } => {
            let (how, members) = if any_of.is_empty() {
                (CombinationRule::AllOf, all_of)
            } else {
                (CombinationRule::AnyOf, any_of)
            };
            let members = members.iter().map(|m| parse(m)).collect::<Result<_>>()?;
            combine(global, &code, Combine { how, members }, name.as_deref(), &why).await
        }
        CalendarVerb::Day { code, date, kind, label, reason } => {
            set_day(global, &code, date, kind, label, &reason).await
        }
        CalendarVerb::List => list_calendars(global).await,
        CalendarVerb::Show { code, year } => show_calendar(global, &code, year).await,
        CalendarVerb::Check => check(global).await,
        CalendarVerb::Export { code, output } => export(global, &code, output.as_deref()).await,
        CalendarVerb::Remove { code, reason } => remove(global, &code, &reason).await,
    }
}

fn parse(code: &str) -> Result<CalendarCode> {
    Ok(CalendarCode::parse(code.trim())?)
}

/// The present day by the database's clock, in UTC.
async fn today(app: &App) -> Result<NaiveDate> {
    Ok(day_in(batch::server_now(app).await?, chrono_tz::UTC))
}

async fn change(
    global: &Global,
    code: &CalendarCode,
    make: MakeCalendar<'_>,
    action: &str,
    how: Apply,
    reason: Option<&str>,
) -> Result<CalendarChange> {
    let app = match how {
        // A calendar is created before the first definition that names it.
        Apply::Write => global.open_app(EmptyDatabase::Prepare).await?,
        // A preview creates no database.
        Apply::DryRun => match App::open_if_there(global.config()?).await? {
            Some(app) => app,
            None => return app::changed_calendar(&Calendars::default(), code, make),
        },
    };
    batch::server_now(&app).await?;
    let by = operator_here(&app::whoami());
    let act = CalendarAct { action, by: &by, reason };
    if how == Apply::Write {
        let summary = format!("{action} {code}");
        let lang = global.language();
        four_eyes::record(&app, four_eyes::calendar(), &summary, reason, lang).await?;
    }
    let change = app.change_calendar(code, make, how, act).await?;
    app.close().await;
    Ok(change)
}

/// Maximum number of changed schedules that are listed; the others are counted.
const MOVED_SHOWN: usize = 20;

/// Prints the change of a calendar, and warnings.
fn print_change(
    global: &Global,
    code: &CalendarCode,
    change: &CalendarChange,
    how: Apply,
) -> Result<()> {
    for warning in calendar_words::surprises(change, code, global.language()) {
        out::eprint_line(&warning);
    }
    if global.json {
        let moved: Vec<_> = change.moved.iter().map(|t| &t.def.code).collect();
        return out::print_json(&json!({
            "calendar": code, "applied": how == Apply::Write, "changes": change.difference,
            "moved_schedules": moved,
        }));
    }
    out::print_line(&calendar_words::changes(code, change, how, global.language()));
    for t in change.moved.iter().take(MOVED_SHOWN) {
        out::print_line(&schedule_words::stands(t, global.language()));
    }
    if let Some(more) = change.moved.len().checked_sub(MOVED_SHOWN).filter(|more| *more > 0) {
        out::print_line(&format!("… {more} {}", global.language().select("more", "条未显示")));
    }
    Ok(())
}

async fn import(global: &Global, args: &ImportArgs) -> Result<VerbResult> {
    let file = read_calendar_file(args)?;
    for warning in &file.warnings {
        out::eprint_line(&format!("warning: {warning}"));
    }
    let code = match (&args.code, &file.code) {
        (Some(code), _) => parse(code)?,
        (None, Some(code)) => code.clone(),
        (None, None) => {
            let message = "the file does not say which calendar it is; add --code CODE";
            return Err(BadInput(message.to_owned()).into());
        }
    };
    let scope = if args.replace { ImportScope::Whole } else { ImportScope::Years };
    let make = |old: Option<&Calendar>| {
        if let Some(old) = old.filter(|old| old.combines.is_some() && file.combines.is_none()) {
            let message = format!(
                "calendar {} is combined of others; import the days into one of those, or set single \
                 days: procession calendar day {}",
                old.code, old.code
            );
            return Err(BadInput(message).into());
        }
        let mut made = file.calendar(&code, old);
        made.name = args.head.name.clone().unwrap_or(made.name);
        made.weekend = args.head.weekend.unwrap_or(made.weekend);
        Ok(Some(old.map_or_else(|| made.clone(), |old| merged(old, &made, scope))))
    };
    let how = if args.dry_run { Apply::DryRun } else { Apply::Write };
    let reason = args.why.reason.as_deref();
    let change = change(global, &code, &make, "calendar import", how, reason).await?;
    print_change(global, &code, &change, how)?;
    Ok(VerbResult::Well)
}

fn read_calendar_file(args: &ImportArgs) -> Result<CalendarFile> {
    let path = &args.file;
    let form = CalendarForm::from_path(path).ok_or_else(|| {
        let message = "is of no known form; name it .json, .csv or .ics";
        BadInput(format!("{}: {message}", path.display()))
    })?;
    let text = std::fs::read_to_string(path)
        .map_err(|error| BadInput(format!("{}: cannot be read: {error}", path.display())))?;
    let mut file = read_calendar(path, &text, form, &args.years.iter().copied().collect())?;
    if args.by_hand {
        file.years.clear();
        file.days.values_mut().for_each(|day| day.origin = DayOrigin::Hand);
    }
    Ok(file)
}

async fn add_calendar(
    global: &Global,
    code: &str,
    head: &CalendarHeadArgs,
    why: &ReasonArgs,
) -> Result<VerbResult> {
    let code = parse(code)?;
    let make = |old: Option<&Calendar>| {
        let mut made = old.cloned().unwrap_or_else(|| Calendar::with_defaults(code.clone()));
        made.name = head.name.clone().unwrap_or(made.name);
        made.weekend = head.weekend.unwrap_or(made.weekend);
        Ok(Some(made))
    };
    let reason = why.reason.as_deref();
    let change = change(global, &code, &make, "calendar add", Apply::Write, reason).await?;
    print_change(global, &code, &change, Apply::Write)?;
    Ok(VerbResult::Well)
}

async fn combine(
    global: &Global,
    code: &str,
    combine: Combine,
    name: Option<&str>,
    why: &ReasonArgs,
) -> Result<VerbResult> {
    let code = parse(code)?;
    let make = |old: Option<&Calendar>| {
        if let Some(old) = old.filter(|old| old.combines.is_none()) {
            let message = format!(
                "there is a calendar {} with days of its own; give the combined one another code",
                old.code
            );
            return Err(BadInput(message).into());
        }
        let mut made = old.cloned().unwrap_or_else(|| Calendar::with_defaults(code.clone()));
        made.combines = Some(combine.clone());
        made.name = name.map_or(made.name, str::to_owned);
        Ok(Some(made))
    };
    let reason = why.reason.as_deref();
    let change = change(global, &code, &make, "calendar combine", Apply::Write, reason).await?;
    print_change(global, &code, &change, Apply::Write)?;
    Ok(VerbResult::Well)
}

async fn set_day(
    global: &Global,
    code: &str,
    date: NaiveDate,
    kind: SetTo,
    label: Option<String>,
    reason: &str,
) -> Result<VerbResult> {
    let code = parse(code)?;
    if !(1..=9999).contains(&date.year()) {
        return Err(BadInput(format!("{date} is outside the years 1 to 9999")).into());
    }
    let make = |old: Option<&Calendar>| {
        let Some(old) = old else {
            let said = format!(
                "there is no calendar {code}; import it, or make one to be kept by hand: procession \
                 calendar add {code}"
            );
            return Err(BadInput(said).into());
        };
        let mut made = old.clone();
        match kind.kind() {
            Some(kind) => {
                let day = CalendarDayRule { kind, label: label.clone(), origin: DayOrigin::Hand };
                made.days.insert(date, day);
            }
            None if made.days.remove(&date).is_none() => {
                let message = format!("calendar {code} says nothing of {date} but its weekday");
                return Err(BadInput(message).into());
            }
            None => {}
        }
        Ok(Some(made))
    };
    let reason = Some(reason);
    let change = change(global, &code, &make, "calendar day", Apply::Write, reason).await?;
    print_change(global, &code, &change, Apply::Write)?;
    Ok(VerbResult::Well)
}

async fn remove(global: &Global, code: &str, reason: &str) -> Result<VerbResult> {
    let code = parse(code)?;
    let known = open_app(global).await?.calendars().await?;
    known.get(&code)?;
    change(global, &code, &|_| Ok(None), "calendar remove", Apply::Write, Some(reason)).await?;
    out::eprint_line(&calendar_words::removed(&code, global.language()));
    Ok(VerbResult::Well)
}

async fn open_app(global: &Global) -> Result<App> {
    global.open_app(EmptyDatabase::Refuse).await
}

async fn list_calendars(global: &Global) -> Result<VerbResult> {
    let app = open_app(global).await?;
    let (all, used) = (app.calendars().await?, app.calendars_used().await?);
    if global.json {
        let documents: Vec<_> =
            all.iter().map(|c| CalendarSummary::from_calendar(c, &used)).collect();
        out::print_json(&json!(documents))?;
    } else {
        out::print_line(&calendar_words::render_calendars(&all, &used, global.language()));
    }
    app.close().await;
    Ok(VerbResult::Well)
}

async fn show_calendar(global: &Global, code: &str, year: Option<i32>) -> Result<VerbResult> {
    let code = parse(code)?;
    let app = open_app(global).await?;
    let all = app.calendars().await?;
    let year = match year {
        Some(year) => year,
        None => today(&app).await?.year(),
    };
    app.close().await;
    if global.json {
        out::document(&CalendarYear::for_year(&all, &code, year)?)?;
    } else {
        calendar_show::print(&all, &code, year, global.language())?;
    }
    Ok(VerbResult::Well)
}

async fn check(global: &Global) -> Result<VerbResult> {
    let app = open_app(global).await?;
    let today = today(&app).await?;
    let warnings = app.calendar_warnings(today).await?;
    app.close().await;
    if global.json {
        let of = |w: &crate::domain::calendar::CalendarWarning| json!({"calendar": w.calendar, "lack": w.lack, "message": w.to_string()});
        out::print_json(&json!(warnings.iter().map(of).collect::<Vec<_>>()))?;
    } else if warnings.is_empty() {
        out::print_line(calendar_words::nothing_lacks(global.language()));
    } else {
        warnings.iter().for_each(|w| out::print_line(&w.words(global.language())));
    }
    Ok(if warnings.is_empty() { VerbResult::Well } else { VerbResult::Differs })
}

/// Warns of calendars in use that end too soon.
pub(super) async fn warn_calendars(app: &App, lang: Lang) -> Result<()> {
    for warning in app.calendar_warnings(today(app).await?).await? {
        out::eprint_line(&format!("{}{}", lang.select("warning: ", "警告："), warning.words(lang)));
    }
    Ok(())
}

async fn export(global: &Global, code: &str, output: Option<&Path>) -> Result<VerbResult> {
    let app = open_app(global).await?;
    let all = app.calendars().await?;
    app.close().await;
    let text = write_calendar(all.get(&parse(code)?)?);
    match output {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("write the calendar to {}", path.display()))?,
        None => out::print_line(text.trim_end()),
    }
    Ok(VerbResult::Well)
}
