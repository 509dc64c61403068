//! The pure part of Procession: types, rules, definition files, pictures, importers and wire
//! formats.
//!
//! Nothing here does I/O, reads a clock or depends on a runtime: this crate's manifest has no
//! tokio, sqlx or axum, so the compiler enforces it. The application (the `procession` crate)
//! re-exports these modules under its own name.

pub mod domain;

pub mod definition;
pub mod import;
pub mod lineage;
pub mod picture;
pub mod wire;
