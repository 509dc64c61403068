//! Waits for an earlier start of a script that outlived the worker it belonged to.
//!
//! `kill -9` of a worker leaves its scripts running, and no server holds a lock for them as it does
//! for a CALL. But they carry the cookie of their try, so the next try of the same row can see
//! them: on this host, and as the same user. On another host nobody sees them.

use crate::domain::outcome::Stream;
use crate::handler::family::{self, Member};
use crate::handler::stopwatch::Stopwatch;
use crate::handler::{Context, Task};
use std::time::Duration;
use tokio::time::sleep;

/// Between two looks at the process table.
const LOOK: Duration = Duration::from_millis(200);

/// Returns when nothing of an earlier start of this row lives here; whether it had to wait.
pub(crate) async fn wait(task: &Task, ctx: &Context) -> Result<bool, String> {
    if task.attempt <= 1 {
        return Ok(false);
    }
    let (since, mut has_waited) = (Stopwatch::start(), false);
    while let Some(Member { pid, name, .. }) = first(task).await? {
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

/// One process of an earlier start. Looks twice before it says that there is none: a child that
/// was born behind a look, of a parent that died before it, is seen by the next.
async fn first(task: &Task) -> Result<Option<Member>, String> {
    let (run, attempt) = (task.lock_name.clone(), task.attempt);
    let look = move || family::earlier(&run, attempt).or_else(|| family::earlier(&run, attempt));
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|e| format!("cannot look for an earlier start: {e}"))
}
