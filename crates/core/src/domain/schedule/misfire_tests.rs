use super::*;
use proptest::prelude::*;
use std::convert::Infallible;

const HOUR: i64 = 3_600_000;
const NOW: Millis = Millis(1_000 * HOUR);

fn planned(at: Millis) -> PlannedTime {
    PlannedTime { at, nominal_date: None, note: None }
}

/// A schedule that fires at every multiple of `every`.
fn every(every: i64) -> impl FnMut(Millis) -> Result<Option<PlannedTime>, Infallible> {
    move |after| Ok(Some(planned(Millis((after.0.div_euclid(every) + 1) * every))))
}

fn run(due: i64, gap: i64, misfire: Misfire) -> MisfirePlan {
    let (due, horizon) = (planned(NOW.plus_ms(due)), NOW.plus_ms(5_000));
    let Ok(plan) = plan_firings(TriggerId(1), "h", due, NOW, horizon, misfire, every(gap));
    plan
}

fn fates(plan: &MisfirePlan) -> String {
    let letter = |row: &NewFiring| match (row.status, row.source, row.missed_until) {
        (FiringStatus::Pending, Source::Cron, None) => 'f',
        (FiringStatus::Pending, Source::Misfire, None) => 'l',
        (FiringStatus::Misfired, Source::Cron, None) => 'm',
        (FiringStatus::Misfired, Source::Cron, Some(_)) => 'o',
        other => panic!("{other:?}"),
    };
    plan.rows.iter().map(letter).collect()
}

fn policy(policy: MisfirePolicy) -> Misfire {
    Misfire { policy, ..Misfire::default() }
}

#[test]
fn the_edges_are_exact_to_the_millisecond() {
    for (due, wanted) in [
        (5_000, "f"),
        (0, "f"),
        (-1, "f"),
        (-LATE_MS, "f"),
        (-LATE_MS - 1, "l"),
        (-24 * HOUR, "l"),
        (-24 * HOUR - 1, "o"),
    ] {
        // A schedule with a single time.
        let never = |_| Ok::<_, Infallible>(None);
        let Ok(plan) = plan_firings(
            TriggerId(1),
            "h",
            planned(NOW.plus_ms(due)),
            NOW,
            NOW.plus_ms(5_000),
            Misfire::default(),
            never,
        );
        assert_eq!(fates(&plan), wanted, "due {due}");
        assert_eq!(plan.next, None);
    }
    assert_eq!(run(5_001, HOUR, Misfire::default()).rows, []);
}

#[test]
fn each_policy_after_four_hours_away() {
    for (misfire, wanted) in [
        (policy(MisfirePolicy::Skip), "mmmmf"),
        (policy(MisfirePolicy::Once), "mmmlf"),
        (policy(MisfirePolicy::All), "llllf"),
        (policy(MisfirePolicy::Newest(2)), "mmllf"),
        (policy(MisfirePolicy::Newest(9)), "llllf"),
        (Misfire { policy: MisfirePolicy::All, window_sec: 2 * 3_600 }, "ollf"),
        (Misfire { policy: MisfirePolicy::All, window_sec: 0 }, "of"),
    ] {
        let plan = run(-4 * HOUR, HOUR, misfire);
        assert_eq!(fates(&plan), wanted, "{misfire:?}");
        assert_eq!(plan.next, Some(NOW.plus_ms(HOUR)));
        assert_eq!(plan.last, Some(NOW));
    }
}

#[test]
fn a_flood_is_planned_in_parts_and_only_the_last_fires_once() {
    let (mut due, mut all) = (-2_500_000, String::new());
    loop {
        let plan = run(due, 1_000, policy(MisfirePolicy::Once));
        assert!(plan.rows.len() <= ROWS_MAX);
        all += &fates(&plan);
        let next = plan.next.expect("it never ends");
        if next > NOW.plus_ms(5_000) {
            break;
        }
        due = next.since(NOW);
    }
    assert_eq!(all.matches('l').count(), 1, "once for all of them");
    assert_eq!(all.len(), 2_500 + 1 + 5, "one row each");
    assert!(
        all.ends_with("lfffffffffff"),
        "the newest missed one, then those that are merely late"
    );
}

#[test]
fn what_is_older_than_the_window_shares_a_row_that_says_until_when() {
    let misfire = Misfire { policy: MisfirePolicy::Once, window_sec: 3_600 };
    let plan = run(-10 * HOUR - 1, HOUR, misfire);
    assert_eq!(fates(&plan), "olf");
    assert_eq!(plan.rows[0].planned_at, NOW.plus_ms(-10 * HOUR - 1));
    assert_eq!(plan.rows[0].missed_until, Some(NOW.plus_ms(-HOUR - 1)));
    assert_eq!(plan.rows[1].planned_at, NOW.plus_ms(-HOUR));
}

#[test]
fn what_nobody_did_in_time_goes_by_the_policy_too() {
    let day = i64::from(WINDOW_SEC) * 1_000;
    for (policy, age, newer, fires) in [
        (MisfirePolicy::Once, 60_000, 0, true),
        (MisfirePolicy::Once, 60_000, 1, false),
        (MisfirePolicy::Once, day, 0, true),
        (MisfirePolicy::Once, day + 1, 0, false),
        (MisfirePolicy::Skip, 6_000, 0, false),
        (MisfirePolicy::All, 6_000, 99, true),
        (MisfirePolicy::Newest(2), 6_000, 1, true),
        (MisfirePolicy::Newest(2), 6_000, 2, false),
    ] {
        let misfire = Misfire { policy, ..Misfire::default() };
        assert_eq!(fires_late(misfire, age, newer).is_ok(), fires, "{policy:?} {age} {newer}");
    }
}

fn any_policy() -> impl Strategy<Value = MisfirePolicy> {
    prop_oneof![
        Just(MisfirePolicy::Skip),
        Just(MisfirePolicy::Once),
        Just(MisfirePolicy::All),
        (1u32..5).prop_map(MisfirePolicy::Newest),
    ]
}

proptest! {
    #[test]
    fn every_time_has_one_row_and_the_next_comes_after_all(
        back in -100_000_000i64..5_000, gap in 1i64..40_000, window in 0u32..200_000,
        policy in any_policy(),
    ) {
        let gap = gap * 1_000;
        let misfire = Misfire { policy, window_sec: window };
        let plan = run(back, gap, misfire);
        let horizon = NOW.plus_ms(5_000);
        // Strictly rising, so no time twice.
        prop_assert!(plan.rows.windows(2).all(|w| w[0].planned_at < w[1].planned_at));
        let covered = |at: Millis| plan.rows.iter().any(|row| {
            row.planned_at == at || row.missed_until.is_some_and(|u| row.planned_at < at && at <= u)
        });
        // Every time between the first and the next is covered.
        let mut at = NOW.plus_ms(back);
        let end = plan.next.expect("it never ends").min(horizon);
        while at < end {
            prop_assert!(covered(at), "{at} is not covered");
            at = Millis((at.0.div_euclid(gap) + 1) * gap);
        }
        prop_assert!(plan.rows.iter().all(|row| row.planned_at < plan.next.expect("never ends")));
        if plan.rows.len() < ROWS_MAX {
            prop_assert!(plan.next.expect("never ends") > horizon);
            let late = plan.rows.iter().filter(|row| row.source == Source::Misfire).count();
            let most = match policy {
                MisfirePolicy::Skip => 0,
                MisfirePolicy::Once => 1,
                MisfirePolicy::All => ROWS_MAX,
                MisfirePolicy::Newest(n) => n as usize,
            };
            prop_assert!(late <= most);
        }
    }
}
