//! Definition files as a user would write them: each job with the list of those it waits for.

use anyhow::Result;
use std::fmt::Write as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Layers of jobs, each of which waits for all of the layer above.
pub(crate) fn layers(path: &Path, layers: usize, width: usize, last_timeout: u32) -> Result<()> {
    let mut text = "groups:\n  big: {}\njobs:\n".to_owned();
    for layer in 0..layers {
        let above = layer.checked_sub(1);
        let parents: Vec<String> =
            above.map_or_else(Vec::new, |above| (0..width).map(|i| code(above, i)).collect());
        for i in 0..width {
            let is_last = layer + 1 == layers && i + 1 == width;
            let timeout = if is_last { last_timeout } else { 1_800 };
            writeln!(text, "  {}:\n    type: NOOP\n    timeout_sec: {timeout}", code(layer, i))?;
            if !parents.is_empty() {
                writeln!(text, "    depends_on: [{}]", parents.join(", "))?;
            }
        }
    }
    Ok(std::fs::write(path, text)?)
}

fn code(layer: usize, i: usize) -> String {
    format!("L{layer:03}_J{i:03}")
}

/// When jobs may start.
#[derive(Clone, Copy)]
pub(crate) enum When {
    AtOnce,
    /// At the end of a day that has just begun where the group is.
    Tonight,
}

/// So many jobs, none of which waits for another.
pub(crate) fn flat(path: &Path, jobs: usize, when: When) -> Result<()> {
    let (group, time) = match when {
        When::AtOnce => ("{}".to_owned(), ""),
        When::Tonight => (format!("{{time_zone: {}}}", midnight()?), ", schedule_time: '23:30'"),
    };
    let mut text = format!("groups:\n  flat: {group}\njobs:\n");
    for i in 0..jobs {
        writeln!(text, "  J{i:06}: {{type: NOOP{time}}}")?;
    }
    Ok(std::fs::write(path, text)?)
}

/// A zone in which it is between midnight and one o'clock; its sign says west, as in POSIX.
fn midnight() -> Result<String> {
    let hour = UNIX_EPOCH.elapsed()?.as_secs() / 3_600 % 24;
    Ok(if hour <= 12 { format!("Etc/GMT+{hour}") } else { format!("Etc/GMT-{}", 24 - hour) })
}
