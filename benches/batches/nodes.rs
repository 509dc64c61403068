//! Two `serve` processes on one database: one dispatches, the other runs the bodies.

use crate::figures::Run;
use crate::machine::quantile;
use crate::place::Place;
use crate::product::order;
use anyhow::{Context as _, Result, ensure};
use procession::domain::job::Definition;
use procession::domain::time::Millis;
use procession::engine::opening::create_batch::open_for_anyone;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Nobody waits longer for one of them.
const LONGEST: Duration = Duration::from_secs(120);
/// Between two looks from outside.
const LOOK: Duration = Duration::from_millis(50);

/// The two, which do not outlive this.
pub(crate) struct Nodes(Vec<Child>);

impl Nodes {
    /// Starts them, and waits until both are there.
    pub(crate) async fn start(place: &Place, parallel: u32) -> Result<Self> {
        let mut nodes = Self(Vec::new());
        for role in ["scheduler", "worker"] {
            nodes.0.push(spawn(place, role, parallel)?);
        }
        let both = "SELECT COUNT(*) AS n FROM cluster_node WHERE roles <> ''";
        until(place, both, 2).await.context("wait for two nodes")?;
        Ok(nodes)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already is what is wanted.
            let _ended = child.kill();
            let _waited = child.wait();
        }
    }
}

fn spawn(place: &Place, role: &str, parallel: u32) -> Result<Child> {
    let child = Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["serve", "--quiet", "--http", "off", "--name", role, "--role", role])
        .args(["--max-parallel", &parallel.to_string()])
        .current_dir(place.folder())
        .env("PROCESSION_DB", &place.url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    child.context("start procession serve")
}

/// Opens a batch and waits for its end. A job's latency is what passed, by the rows, from the start of
/// the one before it to its own: its body does nothing, so that this is the whole way there and back.
pub(crate) async fn run(place: &Place, defs: &Definition, number: usize) -> Result<Run> {
    let now = place.db.begin_read().await?.server_time().await?.into();
    let ids = open_for_anyone(&place.db, defs, &order(number)?, "bench", now).await?;
    let id = ids.first().context("a batch")?.0;
    let ended =
        format!("SELECT COUNT(*) AS n FROM job_batch WHERE batch_id = {id} AND status = 'SUCCESS'");
    until(place, &ended, 1).await.context("wait for the end of the batch")?;
    let elsewhere = format!(
        "SELECT COUNT(*) AS n FROM job_queue q WHERE q.batch_id = {id} AND NOT EXISTS \
         (SELECT 1 FROM cluster_node c WHERE c.node_id = q.owner AND c.roles = 'worker')"
    );
    let [elsewhere] = place.numbers(&elsewhere, ["n"]).await?;
    ensure!(elsewhere == 0, "{elsewhere} bodies did not run on the worker");
    let mut tx = place.db.begin_read().await?;
    let sql = "SELECT start_time, end_time FROM job_queue WHERE batch_id = ? ORDER BY queue_id";
    let (mut starts, mut last) = (Vec::new(), Millis(0));
    for row in tx.fetch_all(sql, &[id.into()]).await? {
        starts.push(Millis::from(row.get_time("start_time")?));
        last = last.max(row.get_time("end_time")?.into());
    }
    let first = *starts.first().context("rows")?;
    let mut hops: Vec<i64> =
        starts.iter().zip(starts.iter().skip(1)).map(|(a, b)| b.since(*a) * 1_000).collect();
    let mut run =
        Run { took: Duration::from_millis(u64::try_from(last.since(first))?), ..Run::default() };
    run.hops.latency = [500, 990, 1_000].map(|at| quantile(&mut hops, at));
    Ok(run)
}

/// Waits until a count is reached.
async fn until(place: &Place, sql: &str, wanted: i64) -> Result<()> {
    let look = async {
        loop {
            let [count] = place.numbers(sql, ["n"]).await?;
            if count >= wanted {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(LONGEST, look).await?
}
