//! domain: decides. In: plain values. Out: plain values, or the sentence a user reads.
//! May name: nothing of ours. Never: a database, a task, a clock, a file, chance.
//! Invariant: the same input gives the same answer, on any machine, at any time.
//! Story order: time, id, text, lang, source, job, token, statement, params, dag, queue, batch, readiness, slots, history, slack, timeline, eta, dry_run, rerun, why, outcome, settlement, notice.

pub mod batch;
pub mod dag;
pub mod dry_run;
pub mod eta;
pub mod history;
pub mod id;
pub mod job;
pub mod lang;
pub mod notice;
pub mod outcome;
pub mod params;
pub mod queue;
pub mod readiness;
pub mod rerun;
pub mod settlement;
pub mod slack;
pub mod slots;
pub mod source;
pub mod statement;
pub mod text;
pub mod time;
pub mod timeline;
mod token;
pub mod why;
