//! domain: decides. In: plain values. Out: plain values, or the sentence a user reads.
//! May name: nothing of ours. Never: a database, a task, a clock, a file, chance.
//! Invariant: the same input gives the same answer, on any machine, at any time.
//! Story order: time, id, text, lang, expr, batch_no, source, sql_text, param, retry, pool, declare, queue, trigger_rule, external, check, body, job, token, statement, params, dag, http_call, fan_out, batch, readiness, slots, rerun, why, outcome, settlement, notice.

pub mod batch;
pub mod batch_no;
pub mod body;
pub mod check;
pub mod dag;
pub mod declare;
pub mod expr;
pub mod external;
pub mod fan_out;
pub mod http_call;
pub mod id;
pub mod job;
pub mod lang;
pub mod notice;
pub mod outcome;
pub mod param;
pub mod params;
pub mod pool;
pub mod queue;
pub mod readiness;
pub mod rerun;
pub mod retry;
pub mod settlement;
pub mod slots;
pub mod source;
pub mod sql_text;
pub mod statement;
pub mod text;
pub mod time;
mod token;
pub mod trigger_rule;
pub mod why;
