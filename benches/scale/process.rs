//! A `procession` process, its time and the most memory it had.

use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a command took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) time: Duration,
    pub(crate) peak_mib: u64,
}

/// How often its memory is looked at; the peak is kept by the kernel, only the end may be missed.
const LOOK: Duration = Duration::from_millis(5);

fn procession(folder: &Path, url: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.args(words).current_dir(folder).env("PROCESSION_DB", url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Runs a command to its end.
#[expect(clippy::disallowed_methods, reason = "what is measured is real time")]
pub(crate) fn run(folder: &Path, url: &str, words: &[&str]) -> Result<Took> {
    let began = Instant::now();
    let mut child = procession(folder, url, words).spawn().context("start procession")?;
    let mut peak_mib = 0;
    loop {
        peak_mib = peak_mib.max(memory(&child, "VmHWM"));
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "procession {} ended with {status}", words.join(" "));
            return Ok(Took { time: began.elapsed(), peak_mib });
        }
        std::thread::sleep(LOOK);
    }
}

/// A process that runs until it is dropped.
pub(crate) struct Served(Child);

impl Served {
    pub(crate) fn start(folder: &Path, url: &str) -> Result<Self> {
        Ok(Self(
            procession(folder, url, &["serve", "--quiet", "--http", "off"])
                .spawn()
                .context("start procession serve")?,
        ))
    }

    /// What it has now, in MiB.
    pub(crate) fn memory_mib(&self) -> u64 {
        memory(&self.0, "VmRSS")
    }

    /// The most it had, in MiB.
    pub(crate) fn peak_mib(&self) -> u64 {
        memory(&self.0, "VmHWM")
    }

    /// Processor time that it has taken.
    pub(crate) fn processor(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()));
        let text = text.unwrap_or_default();
        let fields: Vec<&str> =
            text.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        // In hundredths of a second, on every Linux that we run on.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn memory(child: &Child, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let found = status.lines().filter_map(|l| l.split_once(':')).find(|(name, _)| *name == line);
    let kib = found.and_then(|(_, rest)| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1_024
}
