//! What the store promises, on each database: the same functions run on SQLite, MySQL and
//! PostgreSQL. A statement that means something else on one of them is found here.

mod action;
mod audit_chain;
mod backfill;
mod batch;
mod breach;
mod calendar;
mod claim;
mod definition;
mod door;
mod history;
mod hosted;
mod log;
mod lost;
mod others;
mod outbox;
mod parallel;
mod queue;
mod schema;
mod secret;
mod together;
mod trigger;
mod version;

use crate::util::{Scratch, with_migrated_scratch, with_scratch};
use anyhow::Result;
use procession::db::ConnectSettings;
use procession::domain::batch::{BatchOrder, BatchPlan, plan};
use procession::domain::id::{BatchId, BatchNo, GroupCode, JobCode, JobType, NodeId};
use procession::domain::job::queue::{QueueEntry, QueueStatus};
use procession::domain::job::trigger_rule::EdgeCondition;
use procession::domain::job::{Definition, Group, JobDef, JobDependency};
use procession::domain::source::DialectName;
use procession::domain::time::Millis;
use procession::store::batch::{NewBatch, PackedSnapshot};
use procession::store::queue::NewEntry;
use procession::store::{self, Db, Stale, Tx};
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Names one test per function and server, so that a failure says where: `store::mysql::…`. A
/// function that is not on the list is dead code, which the compiler reports.
macro_rules! suite {
    ($($start:ident { $($file:ident: $($test:ident)*;)* })*) => {
        suite! { @server sqlite Sqlite $({ $start $($file: $($test)*;)* })* }
        suite! { @server mysql Mysql $({ $start $($file: $($test)*;)* })* }
        suite! { @server postgres Postgres $({ $start $($file: $($test)*;)* })* }
    };
    (@server $server:ident $dialect:ident $({ $start:ident $($file:ident: $($test:ident)*;)* })*) => {
        mod $server {
            use procession::domain::source::DialectName;
            $($($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$start(DialectName::$dialect, super::$file::$test).await;
                }
            )*)*)*
        }
    };
}

suite! {
    on_migrated {
        definition:
            definition_comes_back_as_it_went_in
            applying_the_same_again_changes_no_row
            only_what_differs_is_written
            jobs_that_are_gone_are_removed_and_other_groups_left_alone
            a_job_moves_between_groups_and_dependencies_change
            groups_have_the_same_codes
            codes_differ_by_case
            what_is_said_to_be_stored_is_stored;
        batch:
            a_batch_comes_back_as_it_was_planned
            a_batch_number_is_taken_once_per_group
            nothing_stays_of_a_batch_whose_transaction_fails_later
            batches_are_listed_newest_first
            taking_over_is_fenced
            only_the_owner_holds_a_batch
            a_kill_is_asked_of_a_batch_that_runs
            an_ended_batch_that_is_revised_is_open_and_nobodys
            finishing_notes_the_last_run_of_each_job
            finishing_somebody_elses_batch_changes_nothing
            jobs_are_counted_by_state
            a_missing_batch_is_named;
        queue:
            rows_are_generated_in_order
            a_job_is_in_a_batch_number_once
            a_transition_is_fenced
            a_claim_is_fenced
            a_settlement_is_fenced
            a_late_result_changes_nothing
            a_stop_that_began_has_no_end_yet
            a_rerun_starts_over_but_counts_on
            a_row_is_ours_only_while_it_runs_for_us
            outputs_are_read_by_row
            what_ended_well_is_found_over_the_batches_of_a_group
            any_message_can_be_stored
            a_hop_touches_no_index;
        together:
            a_hop_is_written_whole_or_not_at_all
            many_ends_keep_their_own_outputs
            rows_of_a_hop_keep_every_character;
        action:
            an_action_is_fenced
            what_a_body_left_behind_stays
            a_row_that_never_started_keeps_its_time
            acts_are_on_record_and_found
            standing_modes_reach_new_batches_alone;
        audit_chain:
            acts_are_chained_a_moment_after_their_commit
            an_act_that_commits_late_is_chained_late
            every_change_by_hand_is_found
            several_processes_make_one_chain;
        log:
            changes_are_logged_in_order
            lines_are_paged_over_attempts
            any_line_can_be_stored;
        breach:
            a_mark_is_kept_replaced_and_taken_away
            applying_another_class_or_removing_the_job_ends_a_mark;
        calendar:
            calendars_are_put_read_and_removed
            calendars_of_a_transaction_that_fails_stay_as_they_were
            a_hand_in_the_tables_is_told_apart;
        claim:
            a_look_that_was_planned_on_empty_tables_reads_no_jobs;
        trigger:
            a_schedule_comes_back_as_it_went_in
            what_is_due_comes_in_the_order_of_time
            a_planned_time_has_one_row_and_settles_once
            the_lock_row_is_held_signed_and_healed
            old_event_keys_go_a_few_at_a_time
            an_event_key_is_remembered_for_a_month;
        secret:
            secrets_are_put_listed_and_removed
            another_rule_of_a_secret_counts_as_a_change_of_the_definition
            a_sealed_text_is_replaced_only_where_it_still_stands;
        history:
            good_tries_of_the_group_make_its_history
            only_the_newest_tries_and_batches_count
            durations_of_groups_with_the_same_codes_are_kept_apart;
        backfill:
            a_backfill_comes_back_as_it_went_in
            a_backfill_changes_hands_by_compare_and_set
            a_backfill_is_shown_with_its_batches
            the_batches_of_a_group_stand_with_who_has_them;
        hosted:
            a_job_is_given_and_taken_once
            what_was_not_taken_is_withdrawn
            a_report_is_written_once_and_only_for_ones_own
            ones_own_rows_are_not_given
            what_goes_on_elsewhere_is_found_until_it_ends
            what_is_adopted_is_hosted_no_more
            nodes_say_what_they_offer_and_how_they_stand;
        outbox:
            mails_wait_in_the_outbox
            what_is_told_once_is_told_each_recipient_once
            a_mail_is_taken_by_one_and_marked_by_who_has_it
            what_a_dead_process_took_is_due_again
            a_digest_takes_the_place_of_its_letters
            a_days_digest_waits_for_its_hour
            mails_are_sent_again_acknowledged_and_purged
            a_snooze_lasts_and_ends;
        others:
            a_lease_is_renewed_and_found
            processes_of_long_ago_are_forgotten
            facts_are_kept_from_the_first_call_on;
        door:
            times_keep_milliseconds_and_come_back_as_utc
            times_sort_as_times
            finer_times_are_cut_to_milliseconds
            null_stays_null
            text_keeps_every_character
            numbers_keep_all_their_bits
            many_rows_cross_the_limit_of_bound_values
            many_ids_cross_the_limit_of_bound_values
            found_rows_count_even_when_nothing_changes
            generated_keys_are_given
            an_undone_transaction_leaves_a_usable_connection
            only_committed_rows_are_read
            errors_are_told_apart
            the_servers_clock_and_version_are_known;
        lost:
            what_is_dropped_half_way_leaves_nothing_behind
            a_transaction_of_which_a_statement_failed_can_only_be_undone
            what_passes_with_time_is_told_from_what_does_not
            a_session_that_the_server_ended_is_replaced;
        parallel:
            of_two_claimers_one_wins
            of_two_openers_one_wins
            a_held_batch_is_not_taken_over_before_the_commit
            writers_of_two_processes_take_turns;
        schema:
            a_migrated_schema_is_current
            a_schema_of_a_newer_binary_is_refused
            a_broken_migration_is_refused
            a_foreign_migration_is_refused;
        version:
            each_change_of_a_group_is_a_version
            a_dry_run_and_a_refusal_leave_no_version
            a_rollback_is_a_new_version_and_is_written_down
            what_was_there_before_versions_can_be_gone_back_to
            a_version_number_is_given_once;
    }
    on_empty {
        schema:
            an_empty_database_is_behind
            tables_of_somebody_else_are_left_alone
            two_processes_may_migrate_at_once;
    }
}

/// A database of one test and a way to open it again, as another process would.
pub(crate) struct Place {
    pub(crate) db: Db,
    pub(crate) scratch: Arc<Scratch>,
}

impl Place {
    async fn open(&self) -> Db {
        open(&self.scratch.url).await
    }

    fn dialect(&self) -> DialectName {
        self.scratch.dialect
    }

    /// One statement on a connection that knows nothing of the store.
    async fn by_hand(&self, sql: &str) {
        self.scratch.setup(&[sql]).await;
    }
}

pub(crate) async fn open(url: &str) -> Db {
    Db::connect(&settings(url)).await.expect("connect")
}

fn settings(url: &str) -> ConnectSettings {
    ConnectSettings {
        url: SecretString::from(url),
        password: None,
        rotated_password: None,
        max_connections: 4,
        connect_timeout: Duration::from_secs(20),
        statement_timeout: Duration::from_secs(30),
        may_create: true,
        keeping: procession::db::SessionTimeouts::Usual,
    }
}

async fn on_empty<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Place) -> Fut,
    Fut: Future<Output = ()>,
{
    with_scratch(dialect, |scratch| run_at(scratch, test)).await;
}

async fn run_at<F, Fut>(scratch: Arc<Scratch>, test: F)
where
    F: FnOnce(Place) -> Fut,
    Fut: Future<Output = ()>,
{
    let db = open(&scratch.url).await;
    test(Place { db: db.clone(), scratch }).await;
    db.close().await;
}

async fn on_migrated<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Place) -> Fut,
    Fut: Future<Output = ()>,
{
    with_migrated_scratch(dialect, |scratch| run_at(scratch, test)).await;
}

// --- what most tests start from --------------------------------------------------------------------

/// An odd number of milliseconds, so that a database that drops them is found out.
const T0: Millis = Millis(1_722_448_799_123);

fn later(ms: i64) -> Millis {
    T0.plus_ms(ms)
}

fn me() -> NodeId {
    NodeId("node-me".to_owned())
}

fn other() -> NodeId {
    NodeId("node-other".to_owned())
}

fn code(word: &str) -> JobCode {
    JobCode::parse(word).expect("job code")
}

fn group_code(word: &str) -> GroupCode {
    GroupCode::parse(word).expect("group code")
}

fn no(word: &str) -> BatchNo {
    BatchNo::parse(word).expect("batch number")
}

fn group(word: &str) -> Group {
    Group::with_defaults(group_code(word))
}

fn job(group: &str, word: &str) -> JobDef {
    JobDef::with_defaults(code(word), group_code(group), JobType::parse("NOOP").expect("type"))
}

/// Jobs of one group, each waiting for the one before it.
fn chain(of: &str, jobs: &[&str]) -> Definition {
    let waits = |pair: &[&str]| JobDependency {
        group: group_code(of),
        job_code: code(pair[1]),
        depends_on: code(pair[0]),
        dependency_order: 1,
        when: EdgeCondition::Success,
    };
    Definition {
        sources: Vec::new(),
        groups: vec![group(of)],
        jobs: jobs.iter().map(|j| job(of, j)).collect(),
        dependencies: jobs.windows(2).map(waits).collect(),
        ..Definition::default()
    }
}

fn order(batch_no: &str) -> BatchOrder {
    BatchOrder {
        batch_no: no(batch_no),
        batch_type: None,
        group: None,
        business_date: None,
        params: BTreeMap::new(),
        free_text: false,
    }
}

/// Writes the row of a batch of this process.
async fn insert_batch(tx: &mut Tx, plan: &BatchPlan, by: &str) -> Result<BatchId> {
    let snapshot = PackedSnapshot::new(&plan.snapshot)?;
    let (owner, snapshot) = (me(), &snapshot);
    let new = NewBatch { plan, snapshot, unwritten_jobs: 0, owner: Some(&owner), started_by: by };
    store::batch::insert(tx, new, T0).await
}

/// Writes a batch of these definitions with its rows, as the dispatcher does.
async fn write_batch(tx: &mut Tx, defs: &Definition, batch_no: &str) -> Result<BatchId> {
    let plan = plan(defs, &order(batch_no), T0)?.remove(0);
    let id = insert_batch(tx, &plan, "tester").await?;
    let entries: Vec<NewEntry<'_>> = plan
        .snapshot
        .jobs
        .iter()
        .map(|job| NewEntry { job_code: &job.code, not_before: None })
        .collect();
    store::queue::generate(tx, id, batch_no, &entries, T0).await?;
    Ok(id)
}

/// A committed batch 202407 of `month_end` with these jobs, and its rows.
async fn opened(place: &Place, jobs: &[&str]) -> (BatchId, Vec<QueueEntry>) {
    let mut tx = place.db.begin().await.expect("begin");
    let id = write_batch(&mut tx, &chain("month_end", jobs), "202407").await.expect("batch");
    let rows = store::queue::of_batch(&mut tx, id).await.expect("rows");
    tx.commit().await.expect("commit");
    (id, rows)
}

/// As `opened`, the first row running as its first attempt for `me`.
async fn running(place: &Place) -> (BatchId, QueueEntry) {
    let (id, rows) = opened(place, &["A"]).await;
    let mut tx = place.db.begin().await.expect("begin");
    let ids = [rows[0].queue_id.0];
    store::queue::claim(&mut tx, &ids, QueueStatus::Pending, &me(), later(10))
        .await
        .expect("claim");
    let row = store::queue::of_batch(&mut tx, id).await.expect("rows").remove(0);
    tx.commit().await.expect("commit");
    (id, row)
}

/// Every column of a table, as text, in the order of its first column; what "unchanged" means.
async fn all_of(place: &Place, table: &str) -> Vec<Vec<Option<String>>> {
    let sql = format!("SELECT * FROM {table} ORDER BY 1");
    crate::util::query(&place.scratch.url, &sql).await
}

fn is_stale(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<Stale>())
}

/// A result that must be refused because the rows are not as expected.
fn assert_stale(result: Result<()>) {
    let error = result.expect_err("must be refused");
    assert!(is_stale(&error), "{error:#}");
    assert!(!store::is_transient(&error) && !store::is_taken(&error), "{error:#}");
}
