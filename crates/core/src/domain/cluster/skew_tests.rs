//! Clocks that answer slowly, drift, are set, and jump.

use super::*;
use proptest::prelude::*;

/// A measurement at `at` with a round trip of `trip` ms, from a server whose offset is `base`.
fn seen(at: i64, base: i64, trip: i64) -> Measurement {
    let server = Millis(at - trip / 2 + base);
    Measurement::taken(Uptime(at - trip), Uptime(at), server, Millis(at + base))
}

#[test]
fn the_round_trip_is_taken_into_account() {
    for (trip, half) in [(0, 0), (1, 1), (10, 5), (11, 6), (400, 200)] {
        let server = Millis(5_000_000);
        let m = Measurement::taken(Uptime(1_000), Uptime(1_000 + trip), server, Millis(4_999_000));
        assert_eq!(m.slack_ms, half + 1);
        assert_eq!(m.base_ms, 5_000_000 + half - 1_000 - trip);
        assert_eq!(m.skew_ms, 1_000 + half);
    }
}

#[test]
fn a_machine_whose_wall_clock_is_wrong_is_told_and_goes_on() {
    for (wall_ahead, verdict) in [
        (0, ClockVerdict::Steady),
        (2_000, ClockVerdict::Steady),
        (3_600_000, ClockVerdict::Skewed(-3_600_000)),
        (-3_600_000, ClockVerdict::Skewed(3_600_000)),
    ] {
        let at = |ms: i64| {
            let (now, server) = (Uptime(ms), Millis(ms + 9_000_000));
            Measurement::taken(now, now, server, server.plus_ms(wall_ahead))
        };
        let mut skew = Skew::new(at(0));
        assert_eq!((skew.observe(at(5_000)), skew.base_ms()), (verdict, 9_000_000));
        assert!(verdict.is_sure());
    }
}

#[test]
fn a_jump_is_believed_when_two_good_measurements_agree() {
    for jump in [3_600_000, -3_600_000, 150, -150] {
        let mut skew = Skew::new(seen(0, 1_000, 2));
        assert_eq!(skew.observe(seen(5_000, 1_000 + jump, 2)), ClockVerdict::Jumped(jump));
        assert_eq!(skew.base_ms(), 1_000, "not yet");
        assert_eq!(skew.observe(seen(10_000, 1_000 + jump, 2)), ClockVerdict::Steady);
        assert_eq!(skew.base_ms(), 1_000 + jump);
    }
}

#[test]
fn a_clock_that_goes_to_and_fro_is_never_believed() {
    let mut skew = Skew::new(seen(0, 0, 2));
    for turn in 1..20_i64 {
        let base = if turn % 2 == 0 { 0 } else { 3_000 };
        assert!(!skew.observe(seen(turn * 5_000, base, 2)).is_sure(), "turn {turn}");
        assert_eq!(skew.base_ms(), 0);
    }
    // The jump is accepted.
    assert!(skew.observe(seen(105_000, 3_000, 2)).is_sure());
}

#[test]
fn slow_answers_neither_move_the_clock_nor_settle_a_doubt() {
    let mut skew = Skew::new(seen(0, 0, 2));
    // The request took eight seconds, the answer nothing.
    let lame = Measurement::taken(Uptime(5_000), Uptime(13_000), Millis(13_000), Millis(13_000));
    assert_eq!((skew.observe(lame), skew.base_ms()), (ClockVerdict::Steady, 0));
    assert!(!skew.observe(seen(20_000, 60_000, 2)).is_sure());
    assert!(!skew.observe(seen(30_000, 60_000, 8_000)).is_sure());
    assert!(!skew.observe(seen(40_000, 60_000, 8_000)).is_sure());
    assert!(!skew.observe(seen(45_000, 60_000, 2)).is_sure());
    assert_eq!(skew.observe(seen(50_000, 60_000, 2)), ClockVerdict::Steady);
    assert_eq!(skew.base_ms(), 60_000);
}

proptest! {
    /// For any round trips, any point in them at which the server reads its clock, and any setting
    /// of the local wall clock: no jump is reported, and the accepted offset is as precise as the
    /// best measurement apart from drift.
    #[test]
    fn without_a_jump_the_error_is_that_of_a_quick_answer(
        base in -10_000_000_i64..10_000_000,
        looks in prop::collection::vec((0_i64..9_000, 0.0_f64..1.0, -9_000_000_i64..9_000_000), 1..30),
    ) {
        let mut now = 0;
        let mut skew: Option<Skew> = None;
        let mut best = i64::MAX;
        for (trip, part, wall) in looks {
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small")]
            let there = (trip as f64 * part) as i64;
            let answered = Uptime(now + trip);
            let m = Measurement::taken(Uptime(now), answered, Millis(now + there + base), Millis(wall));
            best = best.min(m.slack_ms);
            match &mut skew {
                None => skew = Some(Skew::new(m)),
                Some(skew) => prop_assert!(skew.observe(m).is_sure()),
            }
            let error = (skew.expect("there is one").base_ms() - base).abs();
            prop_assert!(error <= 2 * best, "{error} ms, the best answer allows {best}");
            now += trip + 5_000;
        }
    }

    /// A jump larger than the uncertainty is always detected, and no offset is accepted that two
    /// consecutive answers do not confirm.
    #[test]
    fn every_jump_is_seen(
        jumps in prop::collection::vec((-100_000_i64..100_000, 0_i64..900), 1..40),
    ) {
        let mut skew = Skew::new(seen(0, 0, 2));
        let (mut base, mut now) = (0, 0);
        let mut said = vec![(0, 2)];
        for (jump, trip) in jumps {
            base += jump;
            now += 5_000 + trip;
            let sure = skew.observe(seen(now, base, trip)).is_sure();
            said.push((base, trip));
            if sure {
                let allowed = trip + 2_000;
                prop_assert!((skew.base_ms() - base).abs() <= allowed);
                let (before, _) = said[said.len() - 2];
                prop_assert!((before - base).abs() <= allowed, "two in a row");
            }
        }
    }
}
