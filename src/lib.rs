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
//!        store          handler   import        TOUCH:  tables / job types; neighbours never meet
//!          \              /   definition picture  READ, DRAW: files in, pictures out; pure
//!           db ----------/        |      /      DOOR:   the only room that speaks SQL drivers
//!                       domain                  DECIDE: types and pure rules
//! ```

#[macro_use]
pub mod failpoint;

// Story order: what is decided, read, drawn, remembered, done, run, wired, said.
pub mod domain;

pub mod definition;
pub mod import;
pub mod picture;

pub mod db;
pub mod outbound;
pub mod wire;

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
