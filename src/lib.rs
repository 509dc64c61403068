//! Procession runs DAGs of stored procedures, SQL and scripts, once per batch number, on the
//! team's own database.

pub mod db;
pub mod definition;
pub mod domain;
pub mod engine;
pub mod handler;
pub mod picture;
pub mod store;
