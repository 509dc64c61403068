//! Procession among programs of XXL-JOB: the executor of an admin that is written here, and the admin of
//! executors that speak as real ones do.
//!
//! The clock is set by hand and beats are called by hand; what goes over the wire goes over real sockets
//! of this machine. `clients` and most of `bytes` start the program itself, which has a clock of its own.

mod admin;
mod admin_bench;
mod admin_door;
mod admin_matrix;
mod admin_program;
mod blocks;
mod bytes;
mod clients;
mod desk;
mod door;
mod flow;
mod moved;
mod program;
pub(crate) mod program_of_others;
mod remote;
mod restarts;
mod telling;

/// Each named test on each database.
macro_rules! on_each_database {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test] async fn $name() {
            crate::xxl::desk::on(super::DialectName::Sqlite, super::$name).await;
        })* }
        mod mariadb { $(#[tokio::test] async fn $name() {
            crate::xxl::desk::on(super::DialectName::Mysql, super::$name).await;
        })* }
        mod postgres { $(#[tokio::test] async fn $name() {
            crate::xxl::desk::on(super::DialectName::Postgres, super::$name).await;
        })* }
    };
}

/// The same with a desk for executors.
macro_rules! at_each_desk {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test] async fn $name() {
            crate::xxl::admin_bench::on(super::DialectName::Sqlite, super::$name).await;
        })* }
        mod mariadb { $(#[tokio::test] async fn $name() {
            crate::xxl::admin_bench::on(super::DialectName::Mysql, super::$name).await;
        })* }
        mod postgres { $(#[tokio::test] async fn $name() {
            crate::xxl::admin_bench::on(super::DialectName::Postgres, super::$name).await;
        })* }
    };
}

use at_each_desk;
use on_each_database;
