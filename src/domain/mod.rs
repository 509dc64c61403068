//! domain: decides. In: plain values. Out: plain values, or the sentence a user reads.
//! May name: nothing of ours. Never: a database, a task, a clock, a file, chance.
//! Invariant: the same input gives the same answer, on any machine, at any time.
//! Story order: time, id, text, lang, secret, expr, batch_no, reference, source, sql_text, param, retry, pool, declare, queue, trigger_rule, external, check, body, tx_class, job_kind, place, job, part, token, statement, commits, params, order_params, dag, http_call, fan_out, batch, readiness, slots, ready, history, slack, timeline, eta, dry_run, rerun, consequence, action, refusal, steps, backfill, why, outcome, verdict, settlement, lease, notice.

pub mod action;
pub mod backfill;
pub mod batch;
pub mod batch_no;
pub mod body;
pub mod check;
pub mod commits;
pub mod consequence;
pub mod dag;
pub mod declare;
pub mod dry_run;
pub mod eta;
pub mod expr;
pub mod external;
pub mod fan_out;
pub mod history;
pub mod http_call;
pub mod id;
pub mod job;
pub mod job_kind;
pub mod lang;
pub mod lease;
pub mod notice;
pub mod order_params;
pub mod outcome;
pub mod param;
pub mod params;
pub mod part;
pub mod place;
pub mod pool;
pub mod queue;
pub mod readiness;
pub mod ready;
pub mod reference;
pub mod refusal;
pub mod rerun;
pub mod retry;
pub mod secret;
pub mod settlement;
pub mod slack;
pub mod slots;
pub mod source;
pub mod sql_text;
pub mod statement;
pub mod steps;
pub mod text;
pub mod time;
pub mod timeline;
mod token;
pub mod trigger_rule;
pub mod tx_class;
pub mod verdict;
pub mod why;
