//! P-02 of the trigger core.
use crate::clockwork::{Clockwork, LATE, mixed};
use crate::targets::with_database;
use procession::domain::source::DialectName;
use std::time::Duration;
use tokio::time::sleep;

const SETTINGS: &str = "
[engine]
lease_sec = 2
";

async fn calm(dialect: DialectName, home: String) {
    let mut clockwork = Clockwork::on(dialect, &home, SETTINGS, mixed(20)).await;
    let mut workers = vec![clockwork.serve_plainly("one"), clockwork.serve_plainly("two")];
    clockwork.until_serving(&workers).await;
    clockwork.schedule().await;
    sleep(Duration::from_secs(6)).await;
    clockwork.end("calm", &mut workers, LATE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calm_on_postgres() {
    with_database(DialectName::Postgres, |url| calm(DialectName::Postgres, url)).await;
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calm_on_mysql() {
    with_database(DialectName::Mysql, |url| calm(DialectName::Mysql, url)).await;
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calm_on_sqlite() {
    let dir = tempfile::tempdir().expect("a folder");
    calm(DialectName::Sqlite, crate::scene::sqlite(dir.path(), "home.db")).await;
}
