//! Procession runs DAGs of stored procedures, SQL and scripts, once per batch number, on the
//! team's own database.
//!
//! The architecture, layer by layer (`docs/architecture.md`; a test enforces which layer may name which):
//!
//! ```text
//!             cli    api                        input parsed, output printed
//!                view                           what is shown, read once per page
//!                app  ·  config                 wiring
//!               engine                          RUN:    clock, tasks, transactions
//!        store          handler                 TOUCH:  tables / job types; neither names the other
//!          \              /
//!           db ----------/                      ACCESS: the only module that uses SQL drivers
//! ------------------------------------------------------- the pure crate, crates/core
//!                        import
//!                 definition   picture   wire   READ, DRAW: files in, pictures out
//!                       domain                  DECIDE: types and pure rules
//! ```

#[macro_use]
pub mod failpoint;

// The modules without I/O are a crate of their own (`crates/core`).
pub use procession_core::{definition, domain, import, lineage, picture, wire};

pub mod db;
pub mod outbound;
pub mod secret_store;

pub mod handler;
pub mod notify;
pub mod remote;
pub mod store;
pub mod trace;

pub mod engine;

pub mod app;
pub mod config;

pub mod view;

pub mod api;
pub mod cli;
