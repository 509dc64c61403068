//! Ends what an earlier start of a script left running here when its worker was killed.
//!
//! Under a supervisor nothing is left except in rare cases (the supervisor was killed too); without
//! one `kill -9` of a worker leaves its scripts running, and no server holds a lock for them as for
//! a CALL. But they carry the cookie of their attempt in their environment, so the next attempt of
//! the same row finds them: on this host, and as the same user. On another host they are not found.
//! The row belongs to this process, so that worker is dead or has lost its lease, and the results
//! of its script are discarded: it is killed, not waited for. A daemon that an earlier start left
//! behind on purpose is killed too; it cannot be distinguished.

use crate::domain::job::outcome::{AttemptEnd, AttemptOutcome, Stream};
use crate::handler::process_tree::{self, Hunt, OsProcess};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{AttemptTask, Context, NOTHING_RUNS, UNCONFIRMED};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Poll interval of the process table: at first, and later.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// Number of ended processes that are named in the log.
const NAMED: usize = 20;

/// Returns when no process of an earlier start of this row runs here.
pub(crate) async fn end_earlier(task: &AttemptTask, ctx: &Context) -> Result<(), String> {
    if task.attempt <= 1 {
        return Ok(());
    }
    let Some(found) = find_process(task, task.attempt).await? else { return Ok(()) };
    // An attempt that has lost its claim must end nothing: then the other start is the valid one.
    ctx.still_claimed().await?;
    let (since, mut pause) = (Stopwatch::start(), LOOKS.0);
    let (mut hunt, mut next) = (Hunt::default(), Some(found));
    let mut is_said = false;
    while let Some(OsProcess { pid, name, .. }) = next {
        hunt = strike(task, task.attempt, hunt).await?;
        if since.elapsed() > ctx.options.kill_confirm && !std::mem::replace(&mut is_said, true) {
            let what =
                format!("process {pid} ({name}) of an earlier start, which cannot be killed");
            ctx.log.add_line(Stream::System, format!("waits for {what}"));
            ctx.claim.waits_on(Some(what)).await;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LOOKS.1);
        next = find_process(task, task.attempt).await?;
    }
    if is_said {
        ctx.claim.waits_on(None).await;
    }
    for OsProcess { pid, name, .. } in hunt.found().take(NAMED) {
        let said = format!("process {pid} ({name}) of an earlier start still ran here: killed");
        ctx.log.add_line(Stream::System, said);
    }
    let seconds = since.elapsed().as_secs_f64();
    ctx.log.add_line(Stream::System, format!("the earlier start is gone after {seconds:.1} s"));
    Ok(())
}

/// Kills what the last attempt, whose worker died, left running here. There is no grace period: no
/// one would receive its output.
pub(crate) async fn end_left(task: &AttemptTask, ctx: &Context) -> AttemptOutcome {
    match hunt_down(task, ctx).await {
        Ok(0) => {
            let said = format!("{NOTHING_RUNS} on this host; what became of it is not known");
            AttemptOutcome::ended(AttemptEnd::Unknown, said)
        }
        Ok(n) => {
            let said = format!("its worker died; {n} processes it left on this host were killed");
            AttemptOutcome::ended(AttemptEnd::Killed, said)
        }
        Err(why) => AttemptOutcome::ended(AttemptEnd::Unknown, format!("{UNCONFIRMED}: {why}")),
    }
}

/// Kills the processes of the last attempt; returns their number.
async fn hunt_down(task: &AttemptTask, ctx: &Context) -> Result<usize, String> {
    let before = task.attempt.saturating_add(1);
    let (since, mut pause) = (Stopwatch::start(), LOOKS.0);
    let mut hunt = Hunt::default();
    while let Some(OsProcess { pid, name, .. }) = find_process(task, before).await? {
        if since.elapsed() >= ctx.options.kill_confirm {
            return Err(format!("process {pid} {name} could not be seen to go"));
        }
        hunt = strike(task, before, hunt).await?;
        sleep(pause).await;
        pause = (pause * 2).min(LOOKS.1);
    }
    for OsProcess { pid, name, .. } in hunt.found().take(NAMED) {
        let said = format!("its worker died; process {pid} {name}, which it left running: killed");
        ctx.log.add_line(Stream::System, said);
    }
    Ok(hunt.found().count())
}

/// A living process of a start before `attempt`. Reads the table twice before it reports none: a
/// child that was born after its entry was read, and whose parent died before its own was, is found
/// by the second read.
async fn find_process(task: &AttemptTask, attempt: u32) -> Result<Option<OsProcess>, String> {
    let run = task.lock_name.clone();
    let once = move || {
        let all = process_tree::processes();
        let found = process_tree::earlier(&all, &run, attempt);
        all.into_iter().find(|p| p.is_living && found.contains(&p.pid))
    };
    let looked = tokio::task::spawn_blocking(move || once().or_else(once)).await;
    looked.map_err(|e| format!("cannot look for an earlier start: {e}"))
}

async fn strike(task: &AttemptTask, attempt: u32, mut hunt: Hunt) -> Result<Hunt, String> {
    let run = task.lock_name.clone();
    let blow = move || {
        let find =
            |all: &[OsProcess]| -> BTreeSet<i32> { process_tree::earlier(all, &run, attempt) };
        hunt.freeze(&find);
        hunt.strike(&find);
        hunt
    };
    let struck = tokio::task::spawn_blocking(blow).await;
    struck.map_err(|e| format!("cannot end an earlier start: {e}"))
}
