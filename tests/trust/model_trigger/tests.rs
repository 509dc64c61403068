//! The protocol holds in every order of steps, and each mistake built into it is found; or it is said
//! what keeps a mistake from doing harm.

use super::Mutant;
use super::Mutant as M;
use super::passing::Protocol;
use crate::trust::scene::report;
use stateright::{Checker, HasDiscoveries, Model};
use tokio::time::Instant;

/// Nothing is found in any order of steps; says how many states there were.
fn holds(mutants: &'static [Mutant], troubles: u8) -> usize {
    let begun = Instant::now();
    let checker = Protocol { mutants, troubles }.checker().threads(2).spawn_bfs().join();
    let (states, took) = (checker.unique_state_count(), begun.elapsed().as_secs_f32());
    report(&format!("lock, firings and ring {mutants:?}: {states} states in {took:.1} s"));
    checker.assert_properties();
    states
}

/// The checker finds the mistake, with one trouble, and it is the property named here that breaks.
fn refuted(mutants: &'static [Mutant], property: &'static str) {
    let (begun, until) = (Instant::now(), HasDiscoveries::AllOf([property].into()));
    let protocol = Protocol { mutants, troubles: 1 };
    let checker = protocol.checker().threads(2).finish_when(until).spawn_bfs().join();
    let found = checker.discoveries();
    let broken: Vec<&str> = found.keys().copied().collect();
    assert!(found.contains_key(property), "{mutants:?} breaks {broken:?}");
    let kind = checker.discovery_classification(property).to_string();
    assert_eq!(kind, "counterexample", "{mutants:?}");
    let (states, took) = (checker.unique_state_count(), begun.elapsed().as_secs_f32());
    let steps = found[property].clone().into_actions().len();
    report(&format!("{mutants:?}: not '{property}', {steps} steps; {states} states, {took:.1} s"));
}

/// The mistake does not break this, whatever else it breaks.
fn keeps(mutants: &'static [Mutant], property: &'static str) {
    let until = HasDiscoveries::AllOf([property].into());
    let protocol = Protocol { mutants, troubles: 1 };
    let checker = protocol.checker().threads(2).finish_when(until).spawn_bfs().join();
    let found = checker.discoveries();
    assert!(!found.contains_key(property), "{mutants:?}: {:?}", found[property]);
}

#[test]
fn the_protocol_holds() {
    let states = holds(&[], 3);
    assert!(states > 100_000, "{states} states are hardly a model");
}

#[test]
fn what_is_on_the_ring_and_nowhere_else_is_lost_with_its_process() {
    refuted(&[M::MemoryOnly], "none is lost");
}

/// What saves it with rows: a ring that knows of what was rolled back finds no row to fire.
#[test]
fn a_ring_that_knows_before_the_commit_fires_what_was_rolled_back() {
    refuted(&[M::MemoryOnly, M::EarlyPush], "fires once");
    refuted(&[M::EarlyPush, M::NoCompare], "fires once");
    holds(&[M::EarlyPush], 1);
}

/// The key turns a second pass over the same times into an error that undoes all of it.
#[test]
fn without_the_lock_row_it_is_the_unique_key_that_saves_us() {
    refuted(&[M::Unnoticed, M::NoKey], "fires once");
    refuted(&[M::Unnoticed, M::NoKey], "next times only advance");
    holds(&[M::Unnoticed], 1);
    holds(&[M::NoKey], 1);
}

#[test]
fn what_was_read_before_the_lock_was_held_is_old_and_again_the_key_saves_us() {
    refuted(&[M::ReadThenLock, M::NoKey], "fires once");
    holds(&[M::ReadThenLock], 1);
}

/// With the key a crash between the two is a schedule that stands still for ever: each pass meets the
/// rows of the one before.
#[test]
fn rows_and_next_times_are_one_transaction() {
    refuted(&[M::TwoCommits, M::NoKey], "fires once");
    refuted(&[M::TwoCommits], "none is lost");
}

#[test]
fn a_stalled_holder_without_a_limit_stalls_everybody() {
    refuted(&[M::NoLimit], "none is lost");
}

/// The key keeps it from firing twice, but nothing keeps its uncommitted rows from being waited for.
#[test]
fn a_lock_that_is_taken_away_without_the_transaction_is_no_lock() {
    refuted(&[M::LateCommit, M::NoKey], "fires once");
    refuted(&[M::LateCommit, M::NoKey], "next times only advance");
    refuted(&[M::LateCommit], "none is lost");
    keeps(&[M::LateCommit], "fires once");
}

#[test]
fn firing_is_a_compare_and_set_in_one_transaction_with_its_batch() {
    refuted(&[M::NoCompare], "fires once");
    refuted(&[M::MarkThenOpen], "none is lost");
    refuted(&[M::OpenThenMark], "fires once");
}

/// With the key the second row is refused, and so nobody is rescued.
#[test]
fn what_is_overdue_is_fired_from_its_row_and_not_written_again() {
    refuted(&[M::RescueInserts, M::NoKey], "fires once");
    refuted(&[M::RescueInserts], "none is lost");
    refuted(&[M::NoRescue], "none is lost");
}

#[test]
fn a_node_that_goes_by_a_fast_clock_of_its_own_fires_early() {
    refuted(&[M::OwnClock], "never early");
}
