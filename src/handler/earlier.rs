//! Waits for an earlier start of a script that outlived the worker it belonged to.
//!
//! `kill -9` of a worker leaves its scripts running, and no server holds a lock for them as it does
//! for a CALL. But they carry the cookie of their try, so the next try of the same row can see
//! them: on this host, and as the same user. On another host nobody sees them.

use crate::domain::outcome::{End, Outcome, Stream};
use crate::handler::family::{self, Member};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{Context, NOTHING_RUNS, Task, UNCONFIRMED};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Between two looks at the process table.
const LOOK: Duration = Duration::from_millis(200);
/// Between two kills of a process that is still there.
const AGAIN: Duration = Duration::from_millis(20);

/// Returns when nothing of an earlier start of this row lives here; whether it had to wait.
pub(crate) async fn wait(task: &Task, ctx: &Context) -> Result<bool, String> {
    if task.attempt <= 1 {
        return Ok(false);
    }
    let (since, mut has_waited) = (Stopwatch::start(), false);
    while let Some(Member { pid, name, .. }) = first(task, task.attempt).await? {
        if !std::mem::replace(&mut has_waited, true) {
            let said = format!(
                "waits for an earlier start of this job that still runs here (process {pid} {name})"
            );
            ctx.log.line(Stream::System, said);
        }
        sleep(LOOK).await;
    }
    if has_waited {
        let waited = since.elapsed().as_secs_f64();
        ctx.log.line(Stream::System, format!("the earlier start is gone after {waited:.1} s"));
    }
    Ok(has_waited)
}

/// Kills what the last try left running here, whose worker died. There is no grace: nobody is left to
/// hear what it has to say.
pub(crate) async fn end(task: &Task, ctx: &Context) -> Outcome {
    let (since, mut ended) = (Stopwatch::start(), BTreeSet::new());
    let unconfirmed = |why: String| Outcome::ended(End::Unknown, format!("{UNCONFIRMED}: {why}"));
    loop {
        let Member { pid, name, .. } = match first(task, task.attempt.saturating_add(1)).await {
            Ok(Some(member)) => member,
            Ok(None) => break,
            Err(said) => return unconfirmed(said),
        };
        if since.elapsed() >= ctx.options.kill_confirm {
            return unconfirmed(format!("process {pid} {name} could not be seen to go"));
        }
        if ended.insert(pid) {
            let said =
                format!("its worker died; kills process {pid} {name}, which it left running");
            ctx.log.line(Stream::System, said);
        } else {
            sleep(AGAIN).await;
        }
        let _gone_by_itself = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    match ended.len() {
        0 => {
            let said = format!("{NOTHING_RUNS} on this host; what became of it is not known");
            Outcome::ended(End::Unknown, said)
        }
        n => {
            let said = format!("its worker died; {n} processes it left on this host were killed");
            Outcome::ended(End::Killed, said)
        }
    }
}

/// One process of a start before `attempt`. Looks twice before it says that there is none: a child that
/// was born behind a look, of a parent that died before it, is seen by the next.
async fn first(task: &Task, attempt: u32) -> Result<Option<Member>, String> {
    let run = task.lock_name.clone();
    let look = move || family::earlier(&run, attempt).or_else(|| family::earlier(&run, attempt));
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|e| format!("cannot look for an earlier start: {e}"))
}
