//! `run --resume`: resumes existing batches.

use crate::app::whoami;
use crate::app::{self, App};
use crate::cli::run::groups_of;
use crate::cli::{BadInput, out};
use crate::domain::action::rerun::UnknownJobs;
use crate::domain::batch::{Batch, BatchOrder};
use crate::domain::id::{BatchId, GroupCode};
use crate::domain::job::Definition;
use crate::domain::time::span_words;
use crate::engine::dispatch::dispatcher::QueueDispatcher;
use crate::engine::dispatch::open::ReportProgress;
use crate::engine::opening::refused::OpeningRefusal;
use crate::engine::operate::operator_actions::operator_here;
use crate::store;
use anyhow::Result;
use std::time::Duration;

/// How to resume.
#[derive(Clone, Copy)]
pub(super) struct ResumeMode {
    pub(super) unknown: UnknownJobs,
    /// With the present bodies and settings.
    pub(super) latest: bool,
}

/// Takes over every batch of the order. Of several, those with nothing left to do are only shown;
/// if that is true of all, the first reason is the error. Returns the batches to show.
pub(super) async fn resume(
    app: &App,
    dispatcher: &mut QueueDispatcher,
    defs: &Definition,
    order: &BatchOrder,
    how: ResumeMode,
    report: ReportProgress<'_>,
) -> Result<Vec<BatchId>> {
    let mut shown = Vec::new();
    let mut left: Option<anyhow::Error> = None;
    let mut any = false;
    for group in groups_of(defs, order) {
        match resume_one(app, dispatcher, defs, order, &group, how, report).await {
            Ok(id) => {
                any = true;
                shown.push(id);
            }
            Err(error) if is_nothing_to_do(&error) => {
                let mut tx = app.db.begin_read().await?;
                let there = store::batch::find_batch(&mut tx, &order.batch_no, &group).await?;
                shown.extend(there.map(|b| b.batch_id));
                left = left.or(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
    match left {
        Some(error) if !any => Err(error),
        None if shown.is_empty() => Err(BadInput(no_group(defs, order)).into()),
        _ => Ok(shown),
    }
}

/// The message that an order matches no group.
fn no_group(defs: &Definition, order: &BatchOrder) -> String {
    let stored: Vec<&str> = defs.groups.iter().map(|g| g.code.as_str()).collect();
    let stored = if stored.is_empty() { "none".to_owned() } else { stored.join(", ") };
    let whose = match (&order.group, &order.batch_type) {
        (Some(group), None) => format!("group {group} is not stored"),
        (Some(group), Some(of)) => format!("no group {group} of type {of} is stored"),
        (None, Some(of)) => format!("no group of type {of} is stored"),
        (None, None) => "no group is stored".to_owned(),
    };
    let no = &order.batch_no;
    format!("{whose}, so there is no batch {no} of it to resume; groups that are: {stored}")
}

fn is_nothing_to_do(error: &anyhow::Error) -> bool {
    use OpeningRefusal::{Ended, NotThere, OnlyUnknown};
    matches!(error.downcast_ref(), Some(Ended(..) | NotThere(..) | OnlyUnknown(..)))
}

async fn resume_one(
    app: &App,
    dispatcher: &mut QueueDispatcher,
    defs: &Definition,
    order: &BatchOrder,
    group: &GroupCode,
    how: ResumeMode,
    report: ReportProgress<'_>,
) -> Result<BatchId> {
    let mut waited = false;
    loop {
        let mut tx = app.db.begin_read().await?;
        let there = store::batch::find_batch(&mut tx, &order.batch_no, group).await?;
        drop(tx);
        let there = there.ok_or_else(|| {
            OpeningRefusal::NotThere(order.batch_no.to_string(), group.to_string())
        })?;
        let by = operator_here(&whoami());
        let latest = how.latest.then_some(defs);
        match dispatcher.resume_by(&there, how.unknown, latest, Some(&by), report).await {
            Ok(done) => {
                if !done.again.is_empty() {
                    let codes: Vec<String> = done.again.iter().map(ToString::to_string).collect();
                    out::eprint_line(&format!("starts over: {}", codes.join(", ")));
                }
                tell_if_paused(&there);
                tell_differences(app, defs, done.batch_id).await?;
                return Ok(done.batch_id);
            }
            Err(error) => wait_for_lease(app, dispatcher, error, &mut waited).await?,
        }
    }
}

fn tell_if_paused(there: &Batch) {
    if there.is_paused && !there.status.is_final() {
        let (no, group) = (&there.values.batch_no, &there.values.group);
        out::eprint_line(&format!(
            "batch {no} is paused and starts nothing; let it go on with: procession batch resume {no} \
             --group {group} --reason WHY"
        ));
    }
}

/// A batch continues with its snapshot; a user who has changed the file since should know that.
async fn tell_differences(app: &App, defs: &Definition, id: BatchId) -> Result<()> {
    let mut tx = app.db.begin_read().await?;
    let snapshot = store::batch::snapshot(&mut tx, id).await?;
    let changes = app::differences(&snapshot, defs);
    if !changes.is_empty() {
        out::eprint_line(
            "the batch keeps the definition it was opened with; what the present one says differently \
             is not used (--latest would use it):",
        );
        changes.iter().for_each(|change| out::eprint_line(&format!("  {change}")));
    }
    Ok(())
}

/// The lease of a killed process lasts until it expires; a living one renews it. So wait for the
/// expiry once: a process that owns the batch after it is alive.
async fn wait_for_lease(
    app: &App,
    dispatcher: &QueueDispatcher,
    error: anyhow::Error,
    waited: &mut bool,
) -> Result<()> {
    let Some(OpeningRefusal::Owned { host, pid, until, .. }) =
        error.downcast_ref::<OpeningRefusal>()
    else {
        return Err(error);
    };
    let rest = until.since(app.clock.now());
    if *waited {
        return Err(error);
    }
    *waited = true;
    out::eprint_line(&format!(
        "another process ({host}, pid {pid}) holds the batch; waiting {} to see whether it lives",
        span_words(rest)
    ));
    dispatcher.pass_time(Duration::from_millis(u64::try_from(rest).unwrap_or(0) + 50)).await;
    Ok(())
}
