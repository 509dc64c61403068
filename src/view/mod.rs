//! view: builds the documents for scripts and front ends. In: an open database, and a request. Out: documents.
//! May name: domain, definition, picture, store, engine, config, app. Never: SQL, HTTP, a flag, words of one language, a change.
//! Invariant: `--json` on the command line and the API return the same document, because it is
//! built here once.

pub mod act;
pub mod approval;
pub mod audit;
pub mod backfill;
pub mod batch;
pub mod batches;
pub mod breach;
pub mod calendar;
pub mod change;
pub mod change_request;
pub mod compare;
mod csv;
pub mod dag;
pub mod dashboard;
pub mod deadline_board;
pub mod delay;
pub mod due;
pub mod eta;
pub mod executor;
pub mod failure;
pub mod file;
pub mod grid;
pub mod group;
pub mod insight;
pub mod job;
pub mod job_history;
pub mod job_of_batch;
pub mod job_params;
pub mod log;
pub mod month;
pub mod node;
pub mod outbox;
pub mod params;
pub mod plan;
pub mod preflight;
pub mod retention;
pub mod schedule;
pub mod schedule_next;
pub mod search;
pub mod secret;
pub mod source;
pub mod states;
pub mod times;
pub mod version;
pub mod why;
