//! Runs from the open batch to the end of the job: a batch each second, of jobs that wait for nothing.

use crate::admin::{APP, Admin, command};
use crate::fakes::{Fakes, Seen};
use crate::figures::{Figure, figure, spread};
use crate::pace::{Used, count, since};
use crate::place::Place;
use anyhow::{Result, ensure};
use std::sync::PoisonError;
use std::time::Duration;
use tokio::time::{Instant, interval};

/// How long the last batch may take.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) async fn measure(place: &Place, (jobs, batches): (usize, u32)) -> Result<Vec<Figure>> {
    std::fs::write(place.folder().join("d.yaml"), definition(jobs))?;
    command(place, &["apply", "d.yaml"])?;
    let admin = Admin::start(place).await?;
    let fakes = Fakes::start(10, admin.address).await?;
    let used = Used::now(&admin);
    let begun = Instant::now();
    let mut opened = Vec::new();
    let mut seconds = interval(Duration::from_secs(1));
    for number in 0..batches {
        seconds.tick().await;
        opened.push(Instant::now());
        let no = format!("{}", 20_240_101 + number);
        command(place, &["batch", "open", "--quiet", "--group", "load", "--batch-no", &no])?;
    }
    let ended = until_ended(place, i64::from(batches)).await?;
    let took = since(begun);
    let processor = used.since(&admin);
    let seen = std::mem::take(&mut *fakes.seen.lock().unwrap_or_else(PoisonError::into_inner));
    drop(fakes);
    let mut rows = figures(place, &seen, &opened, took).await?;
    rows.push(count("batches that ended well", "batches", ended));
    rows.push(processor);
    Ok(rows)
}

async fn figures(place: &Place, seen: &Seen, opened: &[Instant], took: i64) -> Result<Vec<Figure>> {
    let sql = "SELECT COUNT(*) AS n, COUNT(CASE WHEN handle_code = 200 THEN 1 END) AS told FROM executor_run";
    let [asked, told] = place.numbers(sql, ["n", "told"]).await?;
    let lost = i64::try_from(seen.taken)? - told;
    ensure!(lost <= 0, "{lost} ends were answered with 200 and are not stored");
    ensure!(seen.twice == 0, "{} runs were asked for twice", seen.twice);
    // Each run began in the batch that was opened last before it.
    let late = |at: &Instant| {
        let before = opened.partition_point(|opened| opened <= at);
        let batch = opened.get(before.saturating_sub(1)).unwrap_or(at);
        i64::try_from(at.saturating_duration_since(*batch).as_millis()).unwrap_or(i64::MAX)
    };
    let mut rows = vec![
        figure("runs", "runs", asked),
        figure("runs a second", "1/s", asked * 1_000 / took.max(1)),
        count("ends refused", "ends", seen.refused),
        figure("lost", "ends", lost),
        count("asked for twice", "runs", seen.twice),
    ];
    rows.extend(spread(
        "asked, after a batch was opened",
        "ms",
        seen.came.values().map(late).collect(),
    ));
    rows.extend(spread("a list answered", "ms", seen.answered.clone()));
    Ok(rows)
}

fn definition(jobs: usize) -> String {
    let mut text = "groups: { load: { type: daily } }\njobs:\n".to_owned();
    let call = format!("executor: {{ app: {APP}, handler: h, send: none, route: ROUND }}");
    for job in 0..jobs {
        text.push_str(&format!("  J{job}: {{ group: load, type: HANDLER, {call} }}\n"));
    }
    text
}

/// How many batches have ended well, when all have ended.
async fn until_ended(place: &Place, batches: i64) -> Result<usize> {
    let sql = "SELECT COUNT(end_time) AS ended, COUNT(CASE WHEN status = 'SUCCESS' THEN 1 END) AS well FROM job_batch";
    let begun = Instant::now();
    loop {
        let [ended, well] = place.numbers(sql, ["ended", "well"]).await?;
        if ended >= batches {
            return Ok(usize::try_from(well)?);
        }
        ensure!(begun.elapsed() < PATIENCE, "{ended} of {batches} batches have ended");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
