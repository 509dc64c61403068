//! Executors that say that they are there: all at once, as after a restart of the admin, and then each in its
//! time, each on a connection of its own.

use crate::admin::{APP, Admin, Line};
use crate::figures::{Figure, figure, spread};
use crate::pace::{Used, count, since, steadily};
use crate::place::Place;
use anyhow::Result;
use tokio::time::Instant;

pub(crate) async fn measure(
    place: &Place,
    (executors, seconds): (usize, u32),
) -> Result<Vec<Figure>> {
    let admin = Admin::start(place).await?;
    let address = admin.address;
    let used = Used::now(&admin);
    let say = move |at: usize| async move {
        let start = Instant::now();
        let body = format!(
            r#"{{"registryGroup":"EXECUTOR","registryKey":"{APP}","registryValue":"http://127.0.0.1:{}"}}"#,
            10_000 + at
        );
        let said = async { Line::open(address).await?.say("registry", &body).await };
        (said.await.unwrap_or(false), since(start))
    };
    let begun = Instant::now();
    let at_once = steadily(1e6, executors, say).await;
    let all_there = since(begun);
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let rate = executors as f64 / f64::from(seconds);
    let in_time = steadily(rate, executors, say).await;
    let processor = used.since(&admin);
    let sql = "SELECT COUNT(*) AS n FROM executor_registry";
    let [stored] = place.numbers(sql, ["n"]).await?;
    let taken = |all: &[(bool, i64)]| all.iter().filter(|(taken, _)| *taken).count();
    let mut rows = vec![
        figure("all there after", "ms", all_there),
        count("taken at once", "requests", taken(&at_once)),
        count("taken in time", "requests", taken(&in_time)),
        figure("lost", "executors", i64::try_from(taken(&at_once))? - stored),
    ];
    let ms = |all: Vec<(bool, i64)>| all.into_iter().map(|(_, ms)| ms).collect();
    rows.extend(spread("answered, at once", "ms", ms(at_once)));
    rows.extend(spread("answered, in time", "ms", ms(in_time)));
    rows.push(processor);
    Ok(rows)
}
