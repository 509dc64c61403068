//! domain: decides. In: plain values. Out: plain values, or the sentence a user reads.
//! May name: nothing of ours. Never: a database, a task, a clock, a file, chance.
//! Invariant: the same input gives the same answer, on any machine, at any time.
//! Story order: time, id, text, expr, batch_no, lang, source, job, token, statement, params, dag, queue, batch, readiness, slots, rerun, why, outcome, settlement, notice.

pub mod batch;
pub mod batch_no;
pub mod dag;
pub mod expr;
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
pub mod slots;
pub mod source;
pub mod statement;
pub mod text;
pub mod time;
mod token;
pub mod why;
