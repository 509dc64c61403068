//! Procession runs DAGs of stored procedures, SQL and scripts, once per batch number, on the
//! team's own database.
//!
//! The house, floor by floor (`docs/architecture.md`; a test enforces who may name whom):
//!
//! ```text
//!             cli    api                        words in, words out
//!                view                           what is shown, gathered once
//!                app  ·  config                 wiring
//!               engine                          RUN:    clock, tasks, transactions
//!        store          handler                 TOUCH:  tables / job types; neighbours never meet
//!          \              /
//!           db ----------/                      DOOR:   the only room that speaks SQL drivers
//! ------------------------------------------------------- the pure crate, crates/core
//!                        import
//!                 definition   picture   wire   READ, DRAW: files in, pictures out
//!                       domain                  DECIDE: types and pure rules
//! ```

#[macro_use]
pub mod failpoint;

// The pure part is a crate of its own (`crates/core`).
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
