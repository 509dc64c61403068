//! Operators' actions: `job hold | release | skip | …`, `batch pause | resume | rerun`. The exact
//! list of changes is printed before anything is written.

use crate::app::whoami;
use crate::app::{self, App};
use crate::cli::act_args::{ActionModeArgs, BatchAct, BatchJobsArgs, GoingArgs, JobAct, ModeArgs};
use crate::cli::{BadInput, BatchRef, Global, VerbResult, act_words, batch, carry, four_eyes, out};
use crate::domain::access::Permission;
use crate::domain::action::rerun::RerunScope;
use crate::domain::action::{OperatorAction, Parents};
use crate::domain::batch::Batch;
use crate::domain::id::JobCode;
use crate::domain::job::job_key::{JobKey, find_named, parse_code_within};
use crate::domain::job::queue::RunMode;
use crate::domain::text::lang::Lang;
use crate::engine::operate::operator_actions::{self, Acted, Command};
use crate::engine::operate::pause;
use crate::store;
use crate::store::audit::Operator;
use crate::store::batch::Going;
use crate::view::batch::BatchView;
use anyhow::{Context as _, Result};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};

/// An action on a batch.
struct BatchActionOrder {
    batch: Batch,
    jobs: Vec<JobCode>,
    action: OperatorAction,
    how: ActionModeArgs,
    latest: bool,
}

pub(super) async fn on_jobs(global: &Global, app: &App, verb: JobAct) -> Result<VerbResult> {
    let (action, jobs, latest) = match verb {
        JobAct::Hold(jobs) => (OperatorAction::Hold, jobs, false),
        JobAct::Release(jobs) => (OperatorAction::Release, jobs, false),
        JobAct::Skip(jobs) => (OperatorAction::Skip, jobs, false),
        JobAct::Ice(modes) => return set_run_mode(global, app, OperatorAction::Ice, modes).await,
        JobAct::Thaw(jobs) => (OperatorAction::Thaw, jobs, false),
        JobAct::NoExec(modes) => {
            return set_run_mode(global, app, OperatorAction::NoExec, modes).await;
        }
        JobAct::Normal(modes) => {
            return set_run_mode(global, app, OperatorAction::Normal, modes).await;
        }
        JobAct::ForceSuccess(jobs) => (OperatorAction::ForceSuccess, jobs, false),
        JobAct::ForceFailure(jobs) => (OperatorAction::ForceFailure, jobs, false),
        JobAct::Kill(jobs) => (OperatorAction::Kill, jobs, false),
        JobAct::Priority { jobs, to } => (OperatorAction::Priority(to), jobs, false),
        JobAct::StartNow { jobs, ignore_dependencies } => {
            let parents = if ignore_dependencies { Parents::Ignore } else { Parents::Wait };
            (OperatorAction::StartNow(parents), jobs, false)
        }
        JobAct::Rerun { jobs, far } => (far.action(RerunScope::These), jobs, far.latest),
    };
    let BatchJobsArgs { batch, jobs, how } = jobs;
    let batch = batch.find_with_jobs(app, &jobs).await?;
    let jobs = codes(&batch, &jobs)?;
    act_on_batch(global, app, BatchActionOrder { batch, jobs, action, how, latest }).await
}

pub(super) async fn on_batch(global: &Global, app: &App, verb: BatchAct) -> Result<VerbResult> {
    match verb {
        BatchAct::Pause(going) => set_going(global, app, going, Going::Paused).await,
        BatchAct::Resume(going) => set_going(global, app, going, Going::On).await,
        BatchAct::Rerun { batch, from_failure, jobs, far, how } => {
            if from_failure && (far.downstream || far.upstream) {
                let message = "--from-failure takes what is below the failures by itself; leave out \
                               --downstream and --upstream";
                return Err(BadInput(message.to_owned()).into());
            }
            let scope = if from_failure { RerunScope::FromFailure } else { RerunScope::These };
            let (action, latest) = (far.action(scope), far.latest);
            let batch = batch.find_with_jobs(app, &jobs).await?;
            let jobs = codes(&batch, &jobs)?;
            act_on_batch(global, app, BatchActionOrder { batch, jobs, action, how, latest }).await
        }
    }
}

fn codes(batch: &Batch, words: &[String]) -> Result<Vec<JobCode>> {
    let group = &batch.values.group;
    Ok(words.iter().map(|word| parse_code_within(group, word)).collect::<Result<_, _>>()?)
}

fn operator(reason: &str) -> Result<Operator> {
    if reason.trim().is_empty() {
        return Err(BadInput("--reason: say why; it is what others will read".to_owned()).into());
    }
    Ok(operator_actions::operator_here(&whoami()))
}

/// Prints the exact list of changes, asks for confirmation if more changes than was named, writes
/// it, and runs a reopened batch to its end.
async fn act_on_batch(global: &Global, app: &App, wish: BatchActionOrder) -> Result<VerbResult> {
    let BatchActionOrder { batch, jobs, action, how, latest } = &wish;
    let by = operator(&how.reason)?;
    let latest = if *latest { Some(app.definition().await?) } else { None };
    let command = Command {
        batch: batch.batch_id,
        action: *action,
        jobs,
        latest: latest.as_ref(),
        by: &by,
        reason: how.reason.trim(),
    };
    let now = batch::server_now(app).await?;
    let ahead = operator_actions::look_ahead(&app.db, &command, now).await?;
    if let Some(latest) = &latest {
        let mut tx = app.db.begin_read().await?;
        let own = store::batch::snapshot(&mut tx, batch.batch_id).await?;
        app::differences(&own, latest)
            .iter()
            .for_each(|change| out::eprint_line(&change.to_string()));
    }
    if !global.json {
        out::print_line(&act_words::render_changes(*action, &ahead, global.language()));
    }
    if how.dry_run {
        return print_dry_run(global, &ahead);
    }
    if ahead.lines.len() > jobs.len() && !how.yes && !global.json && !agreed(global.language())? {
        return Ok(VerbResult::Well);
    }
    if action.permission() == Permission::Force {
        let values = &batch.values;
        let summary =
            format!("{} in batch {} of group {}", action.as_str(), values.batch_no, values.group);
        let change = four_eyes::forced([&values.group]);
        four_eyes::record(app, change, &summary, Some(&how.reason), global.language()).await?;
    }
    let acted = operator_actions::carry_out(&app.db, &command, &ahead.lines, now).await?;
    let reopened = acted.batch.status.is_final();
    if !reopened || how.no_run {
        return print_result(global, &acted);
    }
    carry::carry(global, app, acted.batch.batch_id).await?;
    let view = BatchView::read_view(app, acted.batch.batch_id).await?;
    if global.json {
        let batch = view.document();
        out::print_json(
            &json!({"written": true, "lines": act_words::lines(&acted), "batch": batch}),
        )?;
    } else {
        batch::print(&view, global.language());
    }
    Ok(if view.batch.status.is_success() { VerbResult::Well } else { VerbResult::BatchFailed })
}

fn print_dry_run(global: &Global, ahead: &Acted) -> Result<VerbResult> {
    if global.json {
        out::print_json(&json!({"written": false, "lines": act_words::lines(ahead)}))?;
    } else {
        out::eprint_line(
            global.language().select("nothing was written (--dry-run)", "未写入(--dry-run)"),
        );
    }
    Ok(VerbResult::Well)
}

fn print_result(global: &Global, acted: &Acted) -> Result<VerbResult> {
    if global.json {
        let holder = acted.holder.as_ref().map(|h| json!({"host": h.host, "pid": h.pid}));
        let lines = act_words::lines(acted);
        out::print_json(&json!({"written": true, "lines": lines, "picked_up_by": holder}))?;
    } else {
        out::eprint_line(&act_words::who_goes_on(acted, global.language()));
    }
    Ok(VerbResult::Well)
}

/// Asks for confirmation; without a terminal (a script, a pipe) the command itself is the
/// confirmation.
pub(super) fn agreed(lang: Lang) -> Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Ok(true);
    }
    out::eprint_line(lang.select(
        "more rows change than were named. Go on? [y/N]",
        "受影响的行多于指定的作业。继续?[y/N]",
    ));
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).context("read the answer")?;
    let yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !yes {
        out::eprint_line(lang.select("nothing was written", "未写入"));
    }
    Ok(yes)
}

async fn set_run_mode(
    global: &Global,
    app: &App,
    action: OperatorAction,
    modes: ModeArgs,
) -> Result<VerbResult> {
    let ModeArgs { words, group, every_batch, how } = modes;
    if every_batch {
        return in_every_batch(global, app, action, &words, &how).await;
    }
    let Some((batch_no, jobs)) = words.split_first().filter(|(_, jobs)| !jobs.is_empty()) else {
        let word = action.as_str();
        let message = format!(
            "job {word}: name the batch and the jobs, as in: job {word} 202407 GL_POST; or add \
             --every-batch"
        );
        return Err(BadInput(message).into());
    };
    let which = BatchRef { batch_no: batch_no.clone(), group };
    let batch = which.find_with_jobs(app, jobs).await?;
    let jobs = codes(&batch, jobs)?;
    act_on_batch(global, app, BatchActionOrder { batch, jobs, action, how, latest: false }).await
}

async fn in_every_batch(
    global: &Global,
    app: &App,
    action: OperatorAction,
    words: &[String],
    how: &ActionModeArgs,
) -> Result<VerbResult> {
    let by = operator(&how.reason)?;
    let mode = match action {
        OperatorAction::Ice => Some(RunMode::Ice),
        OperatorAction::NoExec => Some(RunMode::NoExec),
        OperatorAction::Hold
        | OperatorAction::Release
        | OperatorAction::Skip
        | OperatorAction::Thaw
        | OperatorAction::Normal => None,
        OperatorAction::ForceSuccess | OperatorAction::ForceFailure | OperatorAction::Kill => None,
        OperatorAction::Priority(_) | OperatorAction::StartNow(_) | OperatorAction::Rerun(..) => {
            None
        }
    };
    let defs = app.definition().await?;
    let jobs: Vec<JobKey> =
        words.iter().map(|word| Ok(find_named(&defs.jobs, word)?.key())).collect::<Result<_>>()?;
    let shown_codes: Vec<&str> = jobs.iter().map(|job| job.code.as_str()).collect();
    let word = mode.map_or("normal", RunMode::as_str);
    let shown: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    let shown = shown.join(", ");
    if !how.dry_run {
        let now = batch::server_now(app).await?;
        let reason = how.reason.trim();
        if action.permission() == Permission::Force {
            let change = four_eyes::forced(jobs.iter().map(|job| &job.group));
            let summary = format!("{} in every new batch: {shown}", action.as_str());
            four_eyes::record(app, change, &summary, Some(reason), global.language()).await?;
        }
        pause::set_standing(&app.db, &jobs, mode, &by, reason, now).await?;
    }
    if global.json {
        out::print_json(
            &json!({"written": !how.dry_run, "jobs": shown_codes, "run_mode": mode.map(RunMode::as_str)}),
        )?;
    } else {
        out::print_line(&match global.language() {
            Lang::En => format!("{shown}: {word} in every batch opened from now on"),
            Lang::Zh => format!("{shown}：此后新建的每个批次均为 {word}"),
        });
    }
    Ok(VerbResult::Well)
}

async fn set_going(global: &Global, app: &App, going: GoingArgs, to: Going) -> Result<VerbResult> {
    let by = operator(&going.reason)?;
    let batch = going.batch.find_batch(app).await?;
    let no = &batch.values.batch_no;
    let now = batch::server_now(app).await?;
    let reason = going.reason.trim();
    if !pause::set_going(&app.db, batch.batch_id, to, &by, reason, now).await? {
        let is = if batch.status.is_final() {
            format!("has ended ({})", batch.status)
        } else if to == Going::Paused {
            "is paused already".to_owned()
        } else {
            "is not paused".to_owned()
        };
        return Err(BadInput(format!("batch {no} {is}")).into());
    }
    if global.json {
        out::print_json(
            &json!({"written": true, "batch_no": no, "is_paused": to == Going::Paused}),
        )?;
        return Ok(VerbResult::Well);
    }
    out::print_line(&match (global.language(), to) {
        (Lang::En, Going::Paused) => {
            format!("batch {no} is paused: what runs ends, nothing is started")
        }
        (Lang::En, Going::On) => format!("batch {no} goes on"),
        (Lang::Zh, Going::Paused) => {
            format!("批次 {no} 已暂停：正在运行的作业会结束，不再启动新作业")
        }
        (Lang::Zh, Going::On) => format!("批次 {no} 继续"),
    });
    Ok(VerbResult::Well)
}
