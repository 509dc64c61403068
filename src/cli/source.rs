//! `source list | check | prepare | prune`: the databases on which bodies run.

use crate::app::preflight::{PreflightSeverity, check_jobs};
use crate::app::sources::{
    LedgerChange, LedgerState, Prepared, ServerIdentity, SourceCheckResult, SourceFault,
    for_the_dba, place,
};
use crate::app::{App, EmptyDatabase};
use crate::cli::preflight::{self, ShownFindings};
use crate::cli::{BadInput, Global, VerbResult, batch, out, source_words};
use crate::domain::id::SourceName;
use crate::domain::job::Definition;
use crate::domain::job::dependency::JobDependency;
use crate::domain::source::DataSource;
use crate::domain::source::transport::SourceTransport;
use crate::domain::source::tx_class::TxClass;
use crate::view::preflight::PreflightDocument;
use crate::view::source::{SourceDetail, SourceUses};
use anyhow::{Result, anyhow};
use clap::Subcommand;
use serde_json::{Value, json};
use std::time::Duration;

/// Verbs of `source`.
#[derive(Subcommand)]
pub(super) enum SourceVerb {
    /// The data sources, and which jobs use them in which class
    List,
    /// Ask data sources whether bodies can run there and be stopped, and for their ledgers; exit code
    /// 2 when something that a job needs is missing, 3 when all that is wrong is that a source cannot be reached
    Check {
        /// Names; without any, all
        names: Vec<String>,
    },
    /// Make the table procession_ledger, which jobs with tx: ledger need
    Prepare {
        /// Names; without any, all on which a job with tx: ledger runs
        names: Vec<String>,
        /// Only print what would be done, with the statements for a DBA
        #[arg(long)]
        dry_run: bool,
    },
    /// Remove old rows of procession_ledger; those that prove that a body committed by itself stay
    Prune {
        /// Name
        name: String,
        /// How old, in days: 400d
        #[arg(long, value_name = "DAYS", value_parser = parse_days)]
        older_than: u32,
        /// Only count them
        #[arg(long)]
        dry_run: bool,
    },
}

/// Ledger rows may be needed as long as their batch may still be resumed.
const LEAST_DAYS: u32 = 30;

fn parse_days(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_suffix('d').and_then(|n| n.parse::<u32>().ok());
    let number = number.filter(|n| (LEAST_DAYS..=36_500).contains(n));
    number.ok_or_else(|| {
        format!(
            "write a number of days from {LEAST_DAYS}d to 36500d, such as 400d; younger rows may \
             still be asked for when a batch is resumed"
        )
    })
}

pub(super) async fn source(global: &Global, verb: SourceVerb) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let defs = app.definition().await?;
    let ended = match verb {
        SourceVerb::List => list_sources(global, &defs),
        SourceVerb::Check { names } => {
            check(global, &app, &source_uses(&defs, &names)?, &defs.dependencies).await
        }
        SourceVerb::Prepare { names, dry_run } => {
            let change = if dry_run { LedgerChange::Look } else { LedgerChange::Make };
            let mut uses = self::source_uses(&defs, &names)?;
            if names.is_empty() {
                uses.retain(|one| one.needs_ledger());
            }
            prepare(global, &app, &uses, change).await
        }
        SourceVerb::Prune { name, older_than, dry_run } => {
            let change = if dry_run { LedgerChange::Look } else { LedgerChange::Make };
            let uses = source_uses(&defs, std::slice::from_ref(&name))?;
            prune(global, &app, uses[0].source, older_than, change).await
        }
    };
    app.close().await;
    ended
}

/// The sources of these names, or all.
fn source_uses<'a>(defs: &'a Definition, names: &[String]) -> Result<Vec<SourceUses<'a>>> {
    if names.is_empty() {
        return Ok(SourceUses::all_sources(defs));
    }
    let mut found = Vec::new();
    for name in names {
        let source = defs.sources.iter().find(|s| s.name.as_str() == name.as_str());
        found.push(SourceUses::of_source(defs, source.ok_or_else(|| unknown(defs, name))?));
    }
    Ok(found)
}

fn unknown(defs: &Definition, name: &str) -> BadInput {
    let known: Vec<&str> = defs.sources.iter().map(|s| s.name.as_str()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    BadInput(format!(
        "there is no source {name}; those that are stored: {known} (procession apply FILE stores \
         those of a file)"
    ))
}

fn list_sources(global: &Global, defs: &Definition) -> Result<VerbResult> {
    let uses = source_uses(defs, &[])?;
    if global.json {
        out::document(&uses.iter().map(SourceDetail::from_uses).collect::<Vec<_>>())?;
    } else {
        out::print_line(&source_words::render_sources(&uses, global.language()));
    }
    Ok(VerbResult::Well)
}

async fn check(
    global: &Global,
    app: &App,
    all: &[SourceUses<'_>],
    dependencies: &[JobDependency],
) -> Result<VerbResult> {
    let (mut missing, mut away) = (0, 0);
    let mut documents = Vec::new();
    for uses in all {
        let classes: Vec<TxClass> = uses.jobs.iter().map(|job| job.tx).collect();
        let checked = app.check_source(uses.source, &classes).await;
        let cures = source_words::cures(uses, &checked, global.language());
        // An unreachable source was reported.
        let jobs = if checked.is_ok() { &uses.jobs[..] } else { &[] };
        let source = app.with_password(uses.source).await;
        let source = source.unwrap_or_else(|_| uses.source.clone());
        let sources = std::slice::from_ref(&source);
        let mut report = check_jobs(&app.config, sources, jobs.iter().copied(), dependencies).await;
        // Its ledger is described with the source.
        report.findings.retain(|finding| !finding.problem.kind().starts_with("ledger"));
        let errors = report.with_severity(PreflightSeverity::Error).count();
        let is_away = checked.as_ref().is_err_and(|fault| fault.is_away);
        away += usize::from(is_away);
        missing += usize::from(!is_away && (!cures.is_empty() || errors > 0));
        if global.json {
            let mut document = checked_json(uses, &checked, &cures);
            document["ok"] = json!(cures.is_empty() && errors == 0);
            document["preflight"] = json!(PreflightDocument::from_report(&report));
            documents.push(document);
        } else {
            source_words::checked(uses, &checked, global.language())
                .iter()
                .for_each(|l| out::print_line(l));
            cures.iter().for_each(|cure| out::print_line(&format!("  → {cure}")));
            preflight::print_findings(&report, ShownFindings::All, global.language());
        }
    }
    if global.json {
        out::print_json(&json!(documents))?;
    }
    let sources = out::count(all.len(), "source");
    match (missing, away) {
        (0, 0) => Ok(VerbResult::Well),
        (0, _) => Err(anyhow!("{away} of {sources} could not be reached")),
        (_, 0) => Err(BadInput(format!("{missing} of {sources} cannot be used as its jobs need")).into()),
        (..) => Err(BadInput(format!(
            "{missing} of {sources} cannot be used as its jobs need, and {away} could not be reached"
        ))
        .into()),
    }
}

fn checked_json(
    uses: &SourceUses<'_>,
    checked: &Result<SourceCheckResult, SourceFault>,
    cures: &[String],
) -> Value {
    let name = &uses.source.name;
    let checked = match checked {
        Ok(checked) => checked,
        Err(fault) => {
            return json!({
                "name": name, "ok": false, "fault": fault.said, "is_away": fault.is_away, "cures": cures
            });
        }
    };
    let ledger = match &checked.ledger {
        LedgerState::Absent => "absent",
        LedgerState::Fits => "there",
        LedgerState::Other(_) => "other",
    };
    let fault = |of: &Result<(), String>| of.as_ref().err().cloned();
    json!({
        "name": name, "ok": cures.is_empty(), "version": checked.whom.version,
        "user": checked.whom.user, "session_lock": checked.lock.is_ok(),
        "session_lock_fault": fault(&checked.lock), "stops_sessions": checked.stops.gone.is_ok(),
        "stops_sessions_fault": checked.stops.gone.as_ref().err(), "stop_trial": checked.stops.ran.as_str(),
        "stopped_after_ms": checked.stops.gone.as_ref().ok().map(Duration::as_millis),
        "stops_definers": checked.stops.definers.is_possible(), "stops_definers_grant": checked.stops.definers.grant(),
        "keeps_sessions": checked.keeps_sessions.is_ok(),
        "keeps_sessions_grant": checked.keeps_sessions.as_ref().err(), "ledger": ledger,
        "ledger_is_needed": uses.needs_ledger(), "is_own_database": checked.is_home,
        "ledger_writes": checked.writes.as_ref().map(Result::is_ok), "cures": cures,
        "server_powers": checked.powers,
        "search_path_open_to": checked.open_path.as_ref().map(|open| open.writers.iter().map(|(schema, role)| {
            json!({"schema": schema, "role": role})
        }).collect::<Vec<_>>()),
        "transport": checked.transport.as_ref().map(SourceTransport::as_str),
        "transport_weakness": checked.transport.as_ref().and_then(SourceTransport::weakness),
    })
}

async fn prepare(
    global: &Global,
    app: &App,
    all: &[SourceUses<'_>],
    change: LedgerChange,
) -> Result<VerbResult> {
    let mut refused = 0;
    let mut documents = Vec::new();
    if all.is_empty() && !global.json {
        out::print_line(source_words::nothing_to_prepare(global.language()));
    }
    for uses in all {
        let name = &uses.source.name;
        let prepared = app.prepare_source(uses.source, change).await;
        let is_well =
            matches!(prepared, Ok((Prepared::WasThere | Prepared::Made | Prepared::WouldMake, _)));
        refused += usize::from(!is_well);
        let statements = statements(uses.source, &prepared);
        if global.json {
            documents.push(prepared_json(name, &prepared, &statements));
            continue;
        }
        out::print_line(&source_words::prepared(name, &prepared, global.language()));
        statements.iter().for_each(|statement| out::print_line(&format!("{statement};")));
    }
    if global.json {
        out::print_json(&json!(documents))?;
    }
    if refused == 0 {
        return Ok(VerbResult::Well);
    }
    let sources = out::count(all.len(), "source");
    Err(BadInput(format!("{refused} of {sources} could not be prepared")).into())
}

/// The statements for a DBA: shown where nothing was created.
fn statements(
    source: &DataSource,
    prepared: &Result<(Prepared, ServerIdentity), SourceFault>,
) -> Vec<String> {
    match (place(source).dialect, prepared) {
        (Some(dialect), Ok((Prepared::NotWritable(_), whom))) => {
            for_the_dba(dialect, whom.user.as_deref()).split_off(1)
        }
        (Some(dialect), Ok((Prepared::WouldMake | Prepared::Refused(_), whom))) => {
            for_the_dba(dialect, whom.user.as_deref())
        }
        (_, Ok(_) | Err(_)) => Vec::new(),
    }
}

fn prepared_json(
    name: &SourceName,
    prepared: &Result<(Prepared, ServerIdentity), SourceFault>,
    statements: &[String],
) -> Value {
    let (word, message) = match prepared {
        Ok((Prepared::WasThere, _)) => ("was_there", None),
        Ok((Prepared::Made, _)) => ("made", None),
        Ok((Prepared::WouldMake, _)) => ("would_make", None),
        Ok((Prepared::Other(why), _)) => ("other", Some(why)),
        Ok((Prepared::NotWritable(why), _)) => ("not_writable", Some(why)),
        Ok((Prepared::Refused(why), _)) => ("refused", Some(why)),
        Err(fault) => ("unreachable", Some(&fault.said)),
    };
    json!({"name": name, "ledger": word, "message": message, "statements": statements})
}

async fn prune(
    global: &Global,
    app: &App,
    source: &DataSource,
    days: u32,
    change: LedgerChange,
) -> Result<VerbResult> {
    let now = batch::server_now(app).await?;
    let count = app.prune_source(source, days, now, change).await;
    let count = count.map_err(|fault| BadInput(fault.said))?;
    if global.json {
        let removed = change == LedgerChange::Make;
        out::print_json(&json!({"name": source.name, "rows": count, "removed": removed}))?;
        return Ok(VerbResult::Well);
    }
    out::print_line(&source_words::pruned(&source.name, count, days, change, global.language()));
    Ok(VerbResult::Well)
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_are_days_and_not_too_few() {
        assert_eq!(super::parse_days("400d"), Ok(400));
        assert_eq!(super::parse_days(" 30d "), Ok(30));
        for bad in ["400", "29d", "d", "-40d", "1y", "99999d"] {
            assert!(super::parse_days(bad).is_err(), "{bad}");
        }
    }
}
