//! `retention preview | run`: shows and removes old rows.

use crate::app::{EmptyDatabase, whoami};
use crate::cli::progress::Show;
use crate::cli::retention_words as words;
use crate::cli::{BadInput, Global, VerbResult, batch, out};
use crate::domain::text::lang::Lang;
use crate::engine::operate::operator_actions::operator_here;
use crate::engine::retention::{
    self, ByTable, RemovalOrder, RetentionIdleReason, RetentionOptions, SweepOutcome, Sweeper,
};
use crate::store;
use crate::view::retention::RetentionPreview;
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};

/// Verbs of `retention`.
#[derive(Subcommand)]
pub(super) enum RetentionVerb {
    /// What would be removed by the settings, by group and table, and why the rest stays
    Preview,
    /// Remove it now, in small steps; `serve` does it by itself in its window
    Run(RetentionRunArgs),
}

/// Arguments of `run`.
#[derive(Args)]
pub(super) struct RetentionRunArgs {
    /// Why; stored in the audit log with each batch
    #[arg(long, required_unless_present = "dry_run")]
    reason: Option<String>,
    /// Also when the window is closed
    #[arg(long)]
    now: bool,
    /// Batches, at most; the oldest of each group first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only say what would be removed, as preview does
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; needed where nobody can be asked
    #[arg(short, long)]
    yes: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

pub(super) async fn retention(global: &Global, verb: RetentionVerb) -> Result<VerbResult> {
    let options = global.config()?.retention()?;
    match verb {
        RetentionVerb::Preview => preview(global, &options).await,
        RetentionVerb::Run(args) if args.dry_run => preview(global, &options).await,
        RetentionVerb::Run(args) => run_retention(global, options, &args).await,
    }
}

async fn preview(global: &Global, options: &RetentionOptions) -> Result<VerbResult> {
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let now = batch::server_now(&app).await?;
    let survey = retention::survey(&app.db, options, now).await?;
    let mut tx = app.db.begin_read().await?;
    let last = store::find_meta(&mut tx, retention::LAST_PASS).await?;
    drop(tx);
    if global.json {
        out::document(&RetentionPreview::new(options, &survey, last.as_deref()))?;
    } else {
        words::print(options, &survey, last.as_deref(), global.language());
    }
    app.close().await;
    Ok(VerbResult::Well)
}

async fn run_retention(
    global: &Global,
    mut options: RetentionOptions,
    args: &RetentionRunArgs,
) -> Result<VerbResult> {
    let reason = args.reason.as_deref().unwrap_or_default().trim().to_owned();
    if reason.is_empty() {
        return Err(BadInput("--reason: say why; it is what others will read".to_owned()).into());
    }
    if !options.is_on() {
        return Err(BadInput(words::disabled_notice(global.language()).to_owned()).into());
    }
    let app = global.open_app(EmptyDatabase::Refuse).await?;
    let now = batch::server_now(&app).await?;
    if let Some(window) = options.window.filter(|window| !args.now && !window.is_open(now)) {
        let opens = window.opens(now);
        let message = format!(
            "the window {window} is closed until {opens}; --now removes old rows all the same"
        );
        return Err(BadInput(message).into());
    }
    options.window = None;
    let survey = retention::survey(&app.db, &options, now).await?;
    let rows: u64 = survey.totals().values().sum();
    if !global.json {
        words::print(&options, &survey, None, global.language());
    }
    if rows == 0 && survey.lines() == 0 {
        return print_removed(global, &ByTable::new());
    }
    if !args.yes && !agreed(global, rows)? {
        return Ok(VerbResult::Well);
    }
    let wish =
        RemovalOrder { by: operator_here(&whoami()), reason: Some(reason), limit: args.limit };
    let sweeper = app.sweeper_by_hand(options, wish);
    let show = if args.quiet || global.json { Show::Nothing } else { Show::for_terminal() };
    let removed = sweep(sweeper, show, rows, global.language()).await?;
    app.close().await;
    print_removed(global, &removed)
}

/// Asks for confirmation; without a terminal a flag is required, because removed rows cannot be
/// restored.
fn agreed(global: &Global, rows: u64) -> Result<bool> {
    let (stdin, lang) = (std::io::stdin(), global.language());
    if global.json || !stdin.is_terminal() {
        let message = "old rows are removed for good; say --yes where nobody can be asked (nothing \
                       was removed)";
        return Err(BadInput(message.to_owned()).into());
    }
    out::eprint_line(&match lang {
        Lang::En => format!("{} go for good. Go on? [y/N]", words::row_count(rows, lang)),
        Lang::Zh => format!("将永久删除 {}。继续?[y/N]", words::row_count(rows, lang)),
    });
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).context("read the answer")?;
    let yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !yes {
        out::eprint_line(lang.select("nothing was removed", "未删除"));
    }
    Ok(yes)
}

/// Goes on until the pass has ended. What is killed in between is gone on with by the next pass.
async fn sweep(sweeper: Sweeper, show: Show, rows: u64, lang: Lang) -> Result<ByTable> {
    let shown = progress_bar(show, rows, lang);
    let (bar, mut told) = (shown.clone(), 0u64);
    let went = move |n| {
        bar.inc(n);
        if show == Show::Lines && (bar.position() - told) >= rows.div_ceil(10).max(1) {
            told = bar.position();
            out::eprint_line(&words::so_far(told, rows, lang));
        }
    };
    let swept = sweeper.sweep_for(None, went).await;
    shown.finish_and_clear();
    match swept? {
        SweepOutcome::Ended(removed) | SweepOutcome::Left(removed) => Ok(removed),
        SweepOutcome::Rests(rest, until) => Err(BadInput(rests(&rest, until)).into()),
    }
}

fn progress_bar(show: Show, rows: u64, lang: Lang) -> ProgressBar {
    let bar = match show {
        Show::Live => ProgressBar::new(rows),
        Show::Lines | Show::Nothing => {
            ProgressBar::with_draw_target(Some(rows), indicatif::ProgressDrawTarget::hidden())
        }
    };
    let style = match lang {
        Lang::En => "{bar:32.cyan/black.bright} {pos} of {len} rows  {per_sec}  {elapsed_precise}",
        Lang::Zh => "{bar:32.cyan/black.bright} {pos}/{len} 行  {per_sec}  {elapsed_precise}",
    };
    let plain = |_| ProgressStyle::default_bar();
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(plain));
    bar
}

fn rests(rest: &RetentionIdleReason, until: crate::domain::time::Millis) -> String {
    match rest {
        RetentionIdleReason::Theirs(owner) => format!(
            "another process ({}) removes old rows at the moment and goes on with it; nothing was \
             begun here",
            owner.0
        ),
        RetentionIdleReason::Off
        | RetentionIdleReason::Window
        | RetentionIdleReason::Done
        | RetentionIdleReason::Drained => {
            format!("nothing is removed before {}", out::local_time(until))
        }
    }
}

fn print_removed(global: &Global, removed: &ByTable) -> Result<VerbResult> {
    if global.json {
        return out::print_json(&json!({"removed": removed})).map(|()| VerbResult::Well);
    }
    out::print_line(&words::removed(removed, global.language()));
    Ok(VerbResult::Well)
}
