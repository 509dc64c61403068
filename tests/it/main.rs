//! Everything that is tested from outside, in one binary: it links once. The suites of other folders are
//! modules of it, so `xxl::flow` is `tests/xxl/flow.rs`.

mod azkaban;
mod backfill;
mod calendar;
mod cli;
mod conformance;
mod connect;
mod console_code;
mod cron;
mod discover;
mod docs;
mod examples;
mod flow;
mod group_access;
mod handler;
mod hints;
mod identity;
mod import_database;
mod import_paused;
mod indexes;
mod layers;
mod ledger_history;
mod lineage;
mod migrations;
mod notify;
mod operate;
mod params;
mod picture_node;
mod plan;
mod preflight;
mod probes;
mod retention;
mod round_trips;
mod same_codes;
mod schedule;
mod secret_stores;
mod slack_order;
mod source;
mod sqlite_confinement;
mod store;
mod supply_chain;
mod text;
mod transport;
mod upgrade;
mod util;
mod values;
mod xxl_import;

/// The API without a port: requests into the router, answers out of it.
#[path = "../api/mod.rs"]
mod api;
/// The console in a real browser, which `scripts/test-browser.sh` installs.
#[path = "../browser/mod.rs"]
mod browser;
/// Texts of strangers, mutated: the short run of the fuzz targets.
#[path = "../fuzz/mod.rs"]
mod fuzz;
/// Definitions of other systems as definition files.
#[path = "../import/mod.rs"]
mod import;
/// The parts of an installation: unit, image, traces, logs.
#[path = "../ops/mod.rs"]
mod ops;
/// Crashes, stalls and cuts: real processes and servers of their own, broken on purpose.
#[path = "../trust/mod.rs"]
mod trust;
/// Procession among programs of XXL-JOB.
#[path = "../xxl/mod.rs"]
mod xxl;
