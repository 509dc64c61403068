//! J1 over schedules: what went well passes, and each way of spoiling it is found by its name.

use crate::trust::judge::fires::{
    FiringRow, Late, Pace, Ran, Schedule, Seen, Times, Timings, Wrong, judge,
};
use procession::domain::schedule::firing::{FiringStatus as S, Source};
use proptest::prelude::*;

/// Midnight of a day, in milliseconds.
const DAY: i64 = 1_732_147_200_000;
const EVERY: i64 = 5_000;

fn schedule(code: &str, pace: Pace, seen: Seen) -> Schedule {
    Schedule { code: code.to_owned(), pace, asked: DAY, there: DAY, until: None, seen }
}

fn row(code: &str, planned: i64, status: S, source: Source, fired: Option<i64>) -> FiringRow {
    FiringRow { code: code.to_owned(), planned, status, source, until: None, fired }
}

/// What becomes of a planned time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Fired(i64),
    MadeUp,
    Missed,
    Skipped,
}

/// A schedule of each kind, each with these fates one after the other.
fn told(fates: &[Fate]) -> Times {
    let late = Late { fires: 1_000, made_up: 3_000, body: 1_000 };
    let mut times = Times { early: 50, late, ..Times::default() };
    for (code, pace, seen) in [
        ("EVERY", Pace::Every(5), Seen::Body),
        ("SECONDS", Pace::Seconds((0..60).step_by(5).collect()), Seen::Body),
        ("ROWS", Pace::Every(5), Seen::Row),
    ] {
        times.schedules.push(schedule(code, pace, seen));
        for (place, fate) in fates.iter().enumerate() {
            let at = DAY + (place as i64 + 1) * EVERY;
            let (status, source, fired) = match fate {
                Fate::Fired(late) => (S::Fired, Source::Cron, Some(at + late / 2)),
                Fate::MadeUp => (S::Fired, Source::Misfire, Some(at + 2_500)),
                Fate::Missed => (S::Misfired, Source::Cron, None),
                Fate::Skipped => (S::Skipped, Source::Cron, None),
            };
            times.rows.push(row(code, at, status, source, fired));
            let began = match fate {
                Fate::Fired(late) => Some(at + late),
                Fate::MadeUp => Some(at + 2_600),
                Fate::Missed | Fate::Skipped => None,
            };
            if let Some(at_) = began.filter(|_| seen == Seen::Body) {
                times.ran.push(Ran { code: code.to_owned(), label: at, at: at_ });
            }
        }
    }
    // The last of them is past its window, and the next is not due.
    times.read_at = DAY + (fates.len() as i64 + 1) * EVERY - 1;
    times
}

const SAMPLE: [Fate; 6] = [
    Fate::Fired(0),
    Fate::Fired(1_900),
    Fate::MadeUp,
    Fate::Missed,
    Fate::Skipped,
    Fate::Fired(40),
];

#[test]
fn what_went_well_passes() {
    let found = judge(&told(&SAMPLE));
    assert!(found.is_clean(), "{found}");
    assert_eq!((found.due, found.fired, found.made_up), (18, 12, 3), "{found}");
    assert_eq!(
        (found.missed, found.skipped, found.ran, found.latest_body),
        (3, 3, 8, 2_600),
        "{found}"
    );
    assert!(found.to_string().contains("12 fired, 3 of them by the misfire policy"), "{found}");
}

#[test]
fn the_judge_works_out_planned_times_by_itself() {
    for (pace, after, wanted) in [
        (Pace::Every(5), DAY, DAY + 5_000),
        (Pace::Every(5), DAY - 1, DAY),
        (Pace::Every(7), 6_999, 7_000),
        (Pace::Seconds(vec![5, 35]), DAY, DAY + 5_000),
        (Pace::Seconds(vec![5, 35]), DAY + 5_000, DAY + 35_000),
        (Pace::Seconds(vec![5, 35]), DAY + 35_000, DAY + 65_000),
    ] {
        let mut times = Times { read_at: wanted, ..Times::default() };
        let asked = after;
        let alone = Schedule { asked, there: asked, ..schedule("S", pace.clone(), Seen::Row) };
        times.schedules.push(alone);
        times.rows.push(row("S", wanted, S::Fired, Source::Cron, Some(wanted)));
        assert_eq!(judge(&times).fired, 1, "{pace:?} after {after}");
        times.rows[0].planned -= 1_000;
        assert!(judge(&times).count(Wrong::Foreign) == 1, "{pace:?} after {after}");
    }
}

#[test]
fn what_was_asked_for_while_it_came_may_fire_and_need_not() {
    let mut times = told(&[Fate::Fired(0), Fate::Fired(0)]);
    times.schedules.iter_mut().for_each(|schedule| schedule.there = DAY + EVERY);
    assert!(judge(&times).is_clean());
    times.rows.retain(|row| row.planned > DAY + EVERY);
    times.ran.retain(|ran| ran.label > DAY + EVERY);
    let found = judge(&times);
    assert!(found.is_clean() && found.due == 3, "{found}");
}

#[test]
fn what_was_planned_after_a_schedule_was_taken_away_need_not_be() {
    let mut times = told(&SAMPLE);
    times.rows.retain(|row| row.planned <= DAY + 4 * EVERY);
    times.ran.retain(|ran| ran.label <= DAY + 4 * EVERY);
    assert_eq!(judge(&times).count(Wrong::Silent), 6);
    times.schedules.iter_mut().for_each(|schedule| schedule.until = Some(DAY + 5 * EVERY - 1));
    assert!(judge(&times).is_clean());
}

#[test]
fn one_row_may_stand_for_many_that_were_missed_but_not_for_one_that_ran() {
    let mut times = told(&[Fate::Missed; 5]);
    times.rows.retain(|row| row.planned == DAY + EVERY);
    assert_eq!(judge(&times).count(Wrong::Silent), 12);
    times.rows.iter_mut().for_each(|row| row.until = Some(DAY + 5 * EVERY));
    assert!(judge(&times).is_clean());
    let (code, label) = ("EVERY".to_owned(), DAY + 3 * EVERY);
    times.ran.push(Ran { code, label, at: label });
    assert!(!judge(&times).is_clean());
}

/// Spoils what is there of one planned time of the schedule whose bodies are seen.
type Spoil = fn(&mut Times, i64) -> Option<()>;

fn row_of(times: &mut Times, at: i64) -> &mut FiringRow {
    times.rows.iter_mut().find(|row| row.code == "EVERY" && row.planned == at).expect("a row")
}

fn ran_of(times: &mut Times, at: i64) -> Option<&mut Ran> {
    times.ran.iter_mut().find(|ran| ran.code == "EVERY" && ran.label == at)
}

const SPOILS: &[(&str, Wrong, Spoil)] = &[
    ("its row is gone", Wrong::Silent, |times, at| {
        times.rows.retain(|row| row.code != "EVERY" || row.planned != at);
        Some(())
    }),
    ("its row is there twice", Wrong::DoubleRow, |times, at| {
        let row = row_of(times, at).clone();
        times.rows.push(row);
        Some(())
    }),
    ("its row is of a second later", Wrong::Foreign, |times, at| {
        row_of(times, at).planned += 1_000;
        Some(())
    }),
    ("its run is gone", Wrong::Missed, |times, at| {
        ran_of(times, at)?;
        times.ran.retain(|ran| ran.code != "EVERY" || ran.label != at);
        Some(())
    }),
    ("it ran twice", Wrong::Twice, |times, at| {
        let mut ran = ran_of(times, at)?.clone();
        ran.at += 1;
        times.ran.push(ran);
        Some(())
    }),
    ("it ran a second time without a label of its own", Wrong::Extra, |times, at| {
        let mut ran = ran_of(times, at)?.clone();
        ran.label = DAY - EVERY;
        times.ran.push(ran);
        Some(())
    }),
    ("it ran for another planned time", Wrong::Missed, |times, at| {
        ran_of(times, at)?.label = DAY - EVERY;
        Some(())
    }),
    ("it ran before its time", Wrong::Early, |times, at| {
        ran_of(times, at)?.at = at - 51;
        Some(())
    }),
    ("its row says that it fired before its time", Wrong::Early, |times, at| {
        row_of(times, at).fired.as_mut().map(|fired| *fired = at - 51)
    }),
    ("it ran too late", Wrong::Late, |times, at| {
        let is_made_up = row_of(times, at).source == Source::Misfire;
        ran_of(times, at)?.at = at + if is_made_up { 4_001 } else { 2_001 };
        Some(())
    }),
    ("its row says that it fired too late", Wrong::Late, |times, at| {
        let row = row_of(times, at);
        let is_made_up = row.source == Source::Misfire;
        row.fired.as_mut().map(|fired| *fired = at + if is_made_up { 3_001 } else { 1_001 })
    }),
    ("it fired, and its row says that it was missed", Wrong::Extra, |times, at| {
        ran_of(times, at)?;
        row_of(times, at).status = S::Misfired;
        Some(())
    }),
    ("it fired, and its row says that it was skipped", Wrong::Extra, |times, at| {
        ran_of(times, at)?;
        row_of(times, at).status = S::Skipped;
        Some(())
    }),
    ("it was missed, and its row says that it fired", Wrong::Missed, |times, at| {
        (ran_of(times, at).is_none()).then_some(())?;
        row_of(times, at).status = S::Fired;
        Some(())
    }),
    ("it failed", Wrong::Missed, |times, at| {
        row_of(times, at).status = S::Failed;
        Some(())
    }),
    ("it was left pending", Wrong::Open, |times, at| {
        row_of(times, at).status = S::Pending;
        Some(())
    }),
    ("it waits for ever", Wrong::Open, |times, at| {
        row_of(times, at).status = S::Waiting;
        Some(())
    }),
    ("it ran for a schedule that nobody made", Wrong::Extra, |times, at| {
        ran_of(times, at)?.code = "NOBODY".to_owned();
        Some(())
    }),
    ("its row is of a schedule that nobody made", Wrong::Foreign, |times, at| {
        row_of(times, at).code = "NOBODY".to_owned();
        Some(())
    }),
];

/// Spoils each planned time in each way; how often it fitted.
fn spoiled(good: &Times, fates: usize, said: impl Fn(&str, &Timings)) -> Vec<usize> {
    let of_one = |(what, wrong, spoil): &(&str, Wrong, Spoil)| {
        let mut tried = 0;
        for place in 0..fates {
            let mut bad = good.clone();
            if spoil(&mut bad, DAY + (place as i64 + 1) * EVERY).is_some() {
                let found = judge(&bad);
                if found.count(*wrong) == 0 {
                    said(&format!("{what} at {place}, wanted {wrong:?}"), &found);
                }
                tried += 1;
            }
        }
        tried
    };
    SPOILS.iter().map(of_one).collect()
}

#[test]
fn each_spoil_is_found_by_its_name() {
    let tried = spoiled(&told(&SAMPLE), SAMPLE.len(), |what, found| panic!("{what}: {found}"));
    for (tried, (what, ..)) in tried.iter().zip(SPOILS) {
        assert!(*tried > 0, "{what} fits nowhere");
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        (0i64..2_000).prop_map(Fate::Fired),
        Just(Fate::MadeUp),
        Just(Fate::Missed),
        Just(Fate::Skipped),
    ]
}

proptest! {
    /// Whatever the fates: the truth passes, and each spoil of it is caught.
    #[test]
    fn what_is_spoiled_in_one_place_is_always_caught(fates in prop::collection::vec(fate(), 1..8)) {
        let good = told(&fates);
        let found = judge(&good);
        prop_assert!(found.is_clean(), "{}", found);
        prop_assert_eq!(found.due, 3 * fates.len());
        spoiled(&good, fates.len(), |what, found| panic!("{what}: {found}"));
    }
}
