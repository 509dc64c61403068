//! The protocol holds in every order of steps, and each mistake built into it is found.

use crate::trust::model::{Kind, Mutant, Protocol};
use stateright::{Checker, HasDiscoveries, Model};

#[test]
fn the_protocol_holds_for_every_kind_of_body() {
    for kind in [Kind::Recorded, Kind::Once, Kind::Repeat, Kind::Script] {
        let checker = Protocol { kind, mutant: None }.checker().threads(2).spawn_bfs().join();
        checker.assert_properties();
        assert!(checker.unique_state_count() > 1_000, "{kind:?} is hardly a model");
    }
}

/// The checker finds the mistake, and it is the property named here that breaks.
fn refuted(kind: Kind, mutant: Mutant, property: &'static str) {
    let protocol = Protocol { kind, mutant: Some(mutant) };
    let until = HasDiscoveries::AnyFailures;
    let checker = protocol.checker().threads(2).finish_when(until).spawn_bfs().join();
    let found = checker.discoveries();
    let broken: Vec<&str> = found
        .keys()
        .copied()
        .filter(|name| checker.discovery_classification(name).to_string() == "counterexample")
        .collect();
    assert!(found.contains_key(property), "{mutant:?} of {kind:?} breaks {broken:?}");
}

#[test]
fn without_the_session_lock_two_bodies_live_at_once() {
    refuted(Kind::Recorded, Mutant::NoLock, "never two live bodies");
    refuted(Kind::Repeat, Mutant::NoLock, "never two live bodies");
}

#[test]
fn a_claim_that_is_checked_before_the_lock_is_old_when_the_body_begins() {
    refuted(Kind::Repeat, Mutant::CheckThenLock, "nothing begins after success");
}

#[test]
fn without_attempt_and_owner_a_late_completion_is_applied() {
    refuted(Kind::Repeat, Mutant::NoFence, "a stale completion changes nothing");
    refuted(Kind::Recorded, Mutant::NoFence, "a stale completion changes nothing");
}

#[test]
fn a_ledger_that_is_read_before_the_lock_says_too_little() {
    refuted(Kind::Recorded, Mutant::ReadThenLock, "one effect");
}

#[test]
fn a_retry_that_does_not_read_the_ledger_does_it_twice() {
    refuted(Kind::Recorded, Mutant::NoRead, "one effect");
}

#[test]
fn a_keeper_without_a_margin_lets_two_scripts_live() {
    refuted(Kind::Script, Mutant::NoMargin, "never two live bodies");
}

/// Found by the checker: a worker that was stalled between its check and its script renews first.
#[test]
fn a_lease_that_was_over_is_not_the_lease_a_script_was_claimed_under() {
    refuted(Kind::Script, Mutant::NoLapse, "never two live bodies");
}

#[test]
fn what_may_start_once_and_is_guessed_at_starts_twice() {
    refuted(Kind::Once, Mutant::Guess, "what may start once starts once");
}
