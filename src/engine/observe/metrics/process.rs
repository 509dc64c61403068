//! Metrics of this process from /proc; on other systems only its version.

use super::{Seconds, add_metric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct ProcessMetrics {
    started: Seconds,
    memory: Gauge,
    cpu: Counter<f64, AtomicU64>,
}

impl ProcessMetrics {
    pub(super) fn register(to: &mut Registry) -> Self {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        to.register("build", "The program", build);
        Self {
            started: add_metric(
                to,
                "process_start_time_seconds",
                "When this process started, in seconds since 1970",
                Gauge::default(),
            ),
            memory: add_metric(
                to,
                "process_resident_memory_bytes",
                "Memory of this process that is in RAM",
                Gauge::default(),
            ),
            cpu: add_metric(
                to,
                "process_cpu_seconds",
                "Time that this process has spent on processors",
                Counter::default(),
            ),
        }
    }

    pub(super) fn read_process(&self) {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let system = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        if let Some(cpu) = cpu_seconds(&stat) {
            self.cpu.inner().store(cpu.to_bits(), Ordering::Relaxed);
        }
        if let Some(bytes) = resident_bytes(&status) {
            self.memory.set(bytes);
        }
        if let Some(at) = start_seconds(&stat, &system) {
            self.started.set(at);
        }
    }
}

/// Clock ticks per second in /proc; 100 on every Linux, and reading the value needs libc.
const TICKS: f64 = 100.0;

/// A field of /proc/self/stat by its documented number, from 3 on. Field 2 is the program name in
/// parentheses, which may contain anything.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

/// utime and stime.
fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, 14)? + field(stat, 15)?) / TICKS)
}

fn start_seconds(stat: &str, system: &str) -> Option<f64> {
    let booted: f64 = system.lines().find_map(|l| l.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(booted + field(stat, 22)? / TICKS)
}

fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 3 0 150 50 0 0 20 0 9 0 12300 1 2";

    #[test]
    fn the_fields_are_those_of_proc_5() {
        assert_eq!(cpu_seconds(STAT), Some(2.0));
        assert_eq!(start_seconds(STAT, "cpu 1 2\nbtime 1000\n"), Some(1_123.0));
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t  2048 kB\n"), Some(2_097_152));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for text in ["", "42", "42 (x", "42 (x) S"] {
            assert_eq!((cpu_seconds(text), start_seconds(text, text)), (None, None));
        }
        assert_eq!(resident_bytes("VmRSS: many"), None);
    }
}
