//! The judges judged: true histories pass, and the same histories spoiled in one place never do.

use crate::trust::judge::{
    Answer, Class, Crime, Effect, History, LogRow, Mail, Name, Phase, Promise, QueueRow, Wanted,
    judged,
};
use crate::trust::spoils::SPOILS;
use procession::domain::job::queue::QueueStatus as S;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// How a job fares in a history that is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The first try does it.
    Well,
    /// Its worker dies; the next try does it, or finds it done.
    Again,
    /// Its body says that it failed.
    Badly,
    /// Its worker dies, and nobody can tell.
    InDoubt,
    /// Its worker dies each time.
    Parked,
}

const FATES: [Fate; 5] = [Fate::Well, Fate::Again, Fate::Badly, Fate::InDoubt, Fate::Parked];

/// Writes a history down as it happens.
#[derive(Default)]
struct Scribe {
    history: History,
    bad: BTreeSet<Name>,
    now: i64,
}

impl Scribe {
    fn log(&mut self, queue_id: i64, status: S, attempt: u32, told: bool) {
        let log_id = self.history.logs.len() as i64 + 1;
        self.history.logs.push(LogRow { log_id, queue_id, status, attempt, is_notified: told });
    }

    fn effect(&mut self, name: &Name, phase: Phase, attempt: u32) {
        self.now += 10;
        let key = format!("here/{}/{}/1", name.0, name.1);
        let life = format!("life {} of {}/{}", attempt, name.0, name.1);
        let (name, attempt, at) = (name.clone(), Some(attempt), self.now);
        self.history.effects.push(Effect { phase, key, name, attempt, life, at });
    }

    fn try_of(&mut self, name: &Name, phases: &[Phase], attempt: u32) {
        phases.iter().for_each(|phase| self.effect(name, *phase, attempt));
    }

    fn end(&mut self, id: i64, name: &Name, status: S, attempt: u32, told: usize) {
        let kind = match status {
            S::Failed => Some("failed"),
            S::Unknown => Some("unknown"),
            _ => None,
        };
        self.log(id, status, attempt, kind.is_some() && told > 0);
        for kind in kind.into_iter().flat_map(|kind| vec![kind; told]) {
            self.history.mails.push(Mail { queue_id: id, kind: kind.to_owned() });
        }
        if !status.lets_children_run() {
            self.bad.insert(name.clone());
        }
        let (name, run_no) = (name.clone(), 1);
        self.history.rows.push(QueueRow { queue_id: id, name, status, attempt, run_no });
    }

    /// A whole job; parents come before it.
    fn job(&mut self, wanted: Wanted, fate: Fate) {
        let (id, name, told) =
            (self.history.rows.len() as i64 + 1, wanted.name.clone(), wanted.told);
        let promise = wanted.class.promise();
        let above: Vec<Name> =
            wanted.parents.iter().map(|code| (name.0.clone(), code.clone())).collect();
        self.history.wanted.push(wanted);
        if above.iter().any(|parent| self.bad.contains(parent)) {
            self.end(id, &name, S::UpstreamFailed, 0, told);
            return;
        }
        if id % 3 == 0 {
            self.log(id, S::Queued, 0, false);
        }
        self.log(id, S::Running, 1, false);
        let both = [Phase::Begin, Phase::End];
        match (fate, promise) {
            (Fate::Badly, _) => {
                let left = usize::from(promise != Promise::Exactly);
                self.try_of(&name, &both[..left], 1);
                self.end(id, &name, S::Failed, 1, told);
            }
            (Fate::InDoubt, Promise::AtMost) => {
                self.try_of(&name, &both[..(id % 3) as usize], 1);
                self.end(id, &name, S::Unknown, 1, told);
            }
            (Fate::Parked, Promise::Exactly | Promise::AtLeast) => {
                self.end(id, &name, S::Held, 1, told);
            }
            (Fate::Again, Promise::Exactly | Promise::AtLeast) => {
                // Whether the first try took effect before it was lost.
                let first = match promise {
                    Promise::Exactly => 2 * (id as usize % 2),
                    _ => id as usize % 3,
                };
                self.try_of(&name, &both[..first], 1);
                self.log(id, S::RetryWait, 1, false);
                self.log(id, S::Running, 2, false);
                if promise != Promise::Exactly || first == 0 {
                    self.try_of(&name, &both, 2);
                }
                self.end(id, &name, S::Success, 2, told);
            }
            _ => {
                self.try_of(&name, &both, 1);
                self.end(id, &name, S::Success, 1, told);
            }
        }
    }
}

/// A history as it should be: batches of jobs, each with its class, fate and parents among those before.
pub(crate) fn told(batches: &[Vec<(u8, u8, u8)>]) -> History {
    let mut scribe = Scribe::default();
    for (number, jobs) in batches.iter().enumerate() {
        for (place, (class, fate, parents)) in jobs.iter().enumerate() {
            let above = (0..place).filter(|p| parents >> (p % 8) & 1 == 1);
            let fate = FATES[usize::from(*fate) % FATES.len()];
            let wanted = Wanted {
                name: (format!("B{number}"), format!("J{place}")),
                class: Class::ALL[usize::from(*class) % Class::ALL.len()],
                parents: above.map(|p| format!("J{p}")).collect(),
                told: (place + 1) % 3,
                failing: usize::from(fate == Fate::Badly),
                answer: if number == 1 { Answer::Lost } else { Answer::Came },
            };
            scribe.job(wanted, fate);
        }
    }
    scribe.history
}

/// One of everything: each class with each fate, alone and with a child.
fn sampler() -> History {
    let of = |class| {
        let pairs = (0..FATES.len() as u8).map(move |fate| vec![(class, fate, 0), (class, 0, 1)]);
        pairs.collect::<Vec<_>>()
    };
    told(&(0..Class::ALL.len() as u8).flat_map(of).collect::<Vec<_>>())
}

#[test]
fn what_went_well_passes() {
    let history = sampler();
    let verdict = judged(&history);
    assert!(verdict.is_clean(), "{verdict}");
    let shown = verdict.to_string();
    assert!(shown.contains("none, idempotent"), "{shown}");
    assert!(verdict.counts[&Class::Once].unknown == 1 && verdict.counts[&Class::Same].parked == 1);
    let ends = history.effects.iter().filter(|e| e.phase == Phase::End).count();
    assert_eq!(verdict.effects(), ends);
}

/// Each way of spoiling is tried at each place it fits, and must be named for what it is.
#[test]
fn each_spoiled_history_is_refuted_by_name() {
    let good = sampler();
    for (what, crime, spoil) in SPOILS {
        let mut tried = 0;
        for place in 0..good.wanted.len() {
            let mut bad = good.clone();
            if spoil(&mut bad, place).is_some() {
                assert_ne!(bad, good, "{what} at {place} changed nothing");
                let verdict = judged(&bad);
                assert!(verdict.count(*crime) > 0, "{what} at {place} of {good:#?}: {verdict}");
                tried += 1;
            }
        }
        assert!(tried > 0, "{what} fits nowhere");
    }
}

#[test]
fn a_verdict_says_what_where_and_how_often() {
    let mut history = told(&[vec![(0, 0, 0), (1, 0, 1)]]);
    let double = history.effects[3].clone();
    assert_eq!(double.phase, Phase::End);
    history.effects.push(double);
    let verdict = judged(&history);
    assert_eq!(verdict.count(Crime::Doubled), 1);
    let shown = verdict.to_string();
    assert!(shown.contains("J3 duplicated: B0/J1 (ledger): 2 effects of one key"), "{shown}");
}

proptest! {
    /// Whatever the batches, classes and fates: the truth passes, and each spoil of it is caught.
    #[test]
    fn a_history_that_is_spoiled_in_one_place_is_always_caught(
        batches in prop::collection::vec(
            prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 1..7), 1..4),
        places in prop::collection::vec(any::<prop::sample::Index>(), SPOILS.len()),
    ) {
        let good = told(&batches);
        let verdict = judged(&good);
        prop_assert!(verdict.is_clean(), "{}\n{:#?}", verdict, good);
        for ((what, crime, spoil), place) in SPOILS.iter().zip(places) {
            let mut bad = good.clone();
            if spoil(&mut bad, place.index(good.wanted.len())).is_some() {
                let verdict = judged(&bad);
                prop_assert!(verdict.count(*crime) > 0, "{}: {}\n{:#?}", what, verdict, bad);
            }
        }
    }
}
