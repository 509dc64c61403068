//! What the machine and its processes have been doing, and where in a list of figures one stands.

use std::time::Duration;

/// The machine's load over the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

/// Ticks of the kernel's accounts in a second, on every Linux that we run on.
const TICKS: u64 = 100;

/// Processor time that a process has taken so far, with that of its children that have ended; its
/// number, or `self`.
pub(crate) fn cpu_of(process: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        text.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((11..15).map(ticks).sum::<u64>() * 1_000 / TICKS)
}

/// Processor time of all processes of one name.
pub(crate) fn cpu_of_all(name: &str) -> Option<Duration> {
    let named = |process: &String| {
        let comm = std::fs::read_to_string(format!("/proc/{process}/comm"));
        comm.is_ok_and(|comm| comm.trim() == name)
    };
    let processes = std::fs::read_dir("/proc").ok()?;
    let processes = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let found: Vec<Duration> = processes.filter(named).map(|p| cpu_of(&p)).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

/// A line of this process's accounts of memory, in KiB: `VmRSS`, `VmHWM`.
pub(crate) fn memory_kib(line: &str) -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().filter_map(|l| l.split_once(':')).find(|(name, _)| *name == line)?;
    found.1.trim().split(' ').next()?.parse().ok()
}

/// The value below which so many per mille lie; 0 of nothing.
pub(crate) fn quantile(values: &mut [i64], per_mille: usize) -> i64 {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    values.get((values.len() * per_mille / 1_000).min(last)).copied().unwrap_or(0)
}

/// Counts the peak of this process's memory (`VmHWM`) from now on; where the kernel cannot, from its start.
pub(crate) fn forget_peak() {
    let _where_it_can = std::fs::write("/proc/self/clear_refs", "5");
}

/// Which machine this is: processors, memory, kernel.
pub(crate) fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let gib = total.div_ceil(1_048_576);
    format!("{processors} processors, {gib} GiB, Linux {}", kernel.trim())
}
