//! So many things each second, each asked when it is due and not when the one before was answered.

use crate::admin::Admin;
use crate::figures::{Figure, figure, ratio};
use crate::machine;
use std::time::Duration;
use tokio::time::{Instant, interval};

/// Calls `each` with 0, 1, … so often a second; the last begins one step before the end.
pub(crate) async fn steadily<Fut>(
    a_second: f64,
    count: usize,
    mut each: impl FnMut(usize) -> Fut,
) -> Vec<Fut::Output>
where
    Fut: Future + Send + 'static,
    Fut::Output: Send + 'static,
{
    let mut ticks = interval(Duration::from_secs_f64(1.0 / a_second));
    let mut asked = Vec::new();
    for at in 0..count {
        ticks.tick().await;
        asked.push(tokio::spawn(each(at)));
    }
    let mut all = Vec::new();
    for task in asked {
        all.push(task.await.expect("what is asked does not panic"));
    }
    all
}

/// Milliseconds since then.
pub(crate) fn since(start: Instant) -> i64 {
    i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX)
}

/// What the process that is measured has used.
pub(crate) struct Used(Duration, Instant);

impl Used {
    pub(crate) fn now(admin: &Admin) -> Self {
        Self(machine::cpu_of(&admin.process()), Instant::now())
    }

    /// Since then, of one processor.
    pub(crate) fn since(self, admin: &Admin) -> Figure {
        let cpu = machine::cpu_of(&admin.process()).saturating_sub(self.0);
        ratio("processor", "% of one", 100.0 * cpu.as_secs_f64() / self.1.elapsed().as_secs_f64())
    }
}

/// How many, as a figure.
pub(crate) fn count(name: &str, unit: &'static str, of: usize) -> Figure {
    figure(name, unit, i64::try_from(of).unwrap_or(i64::MAX))
}
