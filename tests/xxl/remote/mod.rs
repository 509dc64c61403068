//! Jobs that executors of XXL-JOB run: each is asked for once, and its end is heard, whatever dies.

mod blocks;
mod deaths;
mod glue;
mod going;
mod group_access;
mod hall;
mod routes;
mod trigger;

/// Each named scene on each database.
macro_rules! on_each {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test] async fn $name() {
            let sqlite = procession::domain::source::DialectName::Sqlite;
            crate::xxl::remote::hall::on(sqlite, super::$name).await;
        })* }
        mod mariadb { $(#[tokio::test] async fn $name() {
            let mariadb = procession::domain::source::DialectName::Mysql;
            crate::xxl::remote::hall::on(mariadb, super::$name).await;
        })* }
        mod postgres { $(#[tokio::test] async fn $name() {
            let postgres = procession::domain::source::DialectName::Postgres;
            crate::xxl::remote::hall::on(postgres, super::$name).await;
        })* }
    };
}

use on_each;
