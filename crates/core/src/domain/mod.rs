//! domain: decides. In: plain values. Out: plain values, or the sentence a user reads.
//! May name: nothing of ours. Never: a database, a task, a clock, a file, chance.
//! Invariant: the same input gives the same answer, on any machine, at any time.
//! Story order: id, text, time, value, batch_no, calendar, access, source, notification, executor, schedule, job, params, permission, dag, batch, cluster, dispatch, forecast, action, trigger_check, backfill, retention, xxl, notice.
//!
//! A folder for each capability. Within one, a file names only files before it:
//!
//! - text: text, did_you_mean, lang, translation
//! - time: time, local_time
//! - value: value, value_order, expr
//! - access: audit_chain, certificate_expiry, group_access, access, user, directory_account, legacy_password, second_factor, network, approval
//! - source: source, transport, sqlite_confinement, sql_text, routine_name, tx_class, token, statement, transaction_scan, scheduler_tables
//! - notification: event, recipient, notification, outbox_schedule
//! - executor: app_name, block, route, executor, run_wait
//! - schedule: cron, due, schedule, firing, misfire, firing_queue, overlap, order, trigger, ring
//! - job: secret, script_isolation, script_limits, param, output_limits, retry, pool, shared_definitions, queue, trigger_rule, dependency, external, check, body, outcome, job_kind, lineage_declaration, job, job_key, part, preflight, success_rules
//! - params: param_expressions, params, order_params, http_call, fan_out
//! - permission: required_permissions, four_eyes, access_rules
//! - batch: batch, param_preview, open_check, history, span, run_record
//! - cluster: node_placement, silent_node, lease, metadata_gap, skew, poll_interval
//! - dispatch: readiness, slots, ready, deferral, why, settlement
//! - forecast: slack, timeline, remaining, simulation, certainty, eta, lateness, delay, delay_words, dry_run, deadline_standing
//! - action: rerun, action_effects, action, refusal, action_plan
//! - xxl: xxl_run, xxl_tables, executor_run
//! - notice: notice, notice_batch, notice_late, notice_trigger, notice_change

pub mod access;
pub mod action;
pub mod backfill;
pub mod batch;
pub mod batch_no;
pub mod calendar;
pub mod cluster;
pub mod dag;
pub mod dispatch;
pub mod executor;
pub mod forecast;
pub mod id;
pub mod job;
pub mod notice;
pub mod notification;
pub mod params;
pub mod permission;
pub mod retention;
pub mod schedule;
pub mod source;
pub mod text;
pub mod time;
pub mod trigger_check;
pub mod value;
pub mod xxl;
