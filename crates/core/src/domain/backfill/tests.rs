use super::*;
use crate::domain::batch_no::range;
use crate::domain::id::GroupCode;
use crate::domain::job::external::{ExternalDependency, Missing};
use crate::domain::job::trigger_rule::EdgeCondition;
use proptest::prelude::*;

fn no(text: &str) -> BatchNo {
    BatchNo::parse(text).expect("number")
}

fn options(parallel: u32, on_failure: BackfillFailurePolicy) -> BackfillOptions {
    let (order, only) = (None, BackfillSelection::Undone);
    BackfillOptions { parallel, order, only, on_failure, params: BTreeMap::new(), free_text: false }
}

fn entries(words: &str) -> Vec<BackfillEntry> {
    let entry = |(i, word): (usize, &str)| BackfillEntry {
        batch_no: no(&format!("B{i}")),
        status: EntryStatus::parse(word).expect(word),
        message: None,
    };
    words.split_whitespace().enumerate().map(entry).collect()
}

fn need(place: usize, whole: NeededExtent) -> BackfillNeed {
    BackfillNeed { place, job: JobCode::parse("A").expect("code"), whole }
}

fn free(n: usize) -> Vec<Vec<BackfillNeed>> {
    vec![Vec::new(); n]
}

#[test]
fn the_words_in_the_columns() {
    for status in BackfillStatus::ALL {
        assert_eq!(BackfillStatus::parse(status.as_str()), Some(status));
    }
    for status in EntryStatus::ALL {
        assert_eq!(EntryStatus::parse(status.as_str()), Some(status));
        assert!(!status.is_bad() || status.is_final());
    }
    for only in [BackfillSelection::Missing, BackfillSelection::Failed, BackfillSelection::Undone] {
        assert_eq!(BackfillSelection::parse(only.as_str()), Some(only));
        let json = serde_json::to_string(&only).expect("json");
        assert_eq!(json, format!("\"{}\"", only.as_str()));
    }
    assert_eq!(BackfillSelection::parse("all"), Some(BackfillSelection::Undone));
    assert_eq!(BackfillSelection::parse("done"), None);
}

#[test]
fn what_is_done_with_what_there_is() {
    use BackfillAction::{GoOn, Leave, Open, Refuse, Resume};
    let held = ExistingBatchState::Held(
        BatchStatus::Running,
        BatchHolder { host: "h".to_owned(), pid: 1, until: Millis(1) },
    );
    let table = [
        // existing state, and the action with --only missing, failed, both
        (ExistingBatchState::Missing, [Open, Leave, Open]),
        (ExistingBatchState::Ended(BatchStatus::Success), [Leave, Leave, Leave]),
        (ExistingBatchState::Ended(BatchStatus::Warning), [Leave, Leave, Leave]),
        (ExistingBatchState::Ended(BatchStatus::Failed), [Leave, Resume, Resume]),
        (ExistingBatchState::Ended(BatchStatus::Killed), [Leave, Resume, Resume]),
        (ExistingBatchState::Interrupted(BatchStatus::Running), [Leave, GoOn, GoOn]),
        (ExistingBatchState::Interrupted(BatchStatus::Killing), [Leave, Leave, Leave]),
        (held, [Leave, Refuse, Refuse]),
    ];
    for (found, actions) in table {
        let only =
            [BackfillSelection::Missing, BackfillSelection::Failed, BackfillSelection::Undone];
        assert_eq!(only.map(|only| decide(&found, only)), actions, "{found:?}");
    }
}

#[test]
fn either_direction() {
    let words = |text: &str, order| -> Result<String, String> {
        let numbers = arrange(range(text).expect("range"), order).map_err(|e| e.to_string())?;
        Ok(numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    let asc = Ok("202411 202412 202501".to_owned());
    let desc = Ok("202501 202412 202411".to_owned());
    assert_eq!(words("202411..202501", None), asc);
    assert_eq!(words("202501..202411", None), desc);
    assert_eq!(words("202501..202411", Some(RangeOrder::Asc)), asc);
    assert_eq!(words("202412,202411,202501", Some(RangeOrder::Desc)), desc);
    assert_eq!(words("202412,2024Q3", None), Ok("202412 2024Q3".to_owned()));
    let error = words("202412,2024Q3", Some(RangeOrder::Asc)).expect_err("no order");
    assert!(error.contains("202412 and 2024Q3 have no order"), "{error}");
}

#[test]
fn which_is_opened_next() {
    use BackfillFailurePolicy::{GoOn, Stop};
    let table = [
        // states, limit, failure policy, opened
        ("PENDING PENDING PENDING", 1, Stop, vec![0]),
        ("OPEN PENDING PENDING", 1, Stop, vec![]),
        ("SUCCESS PENDING PENDING", 1, Stop, vec![1]),
        ("LEFT OPEN PENDING PENDING PENDING", 3, Stop, vec![2, 3]),
        ("OPEN OPEN OPEN", 2, Stop, vec![]),
        ("FAILED PENDING", 1, Stop, vec![]),
        ("FAILED PENDING", 1, GoOn, vec![1]),
        ("REFUSED OPEN PENDING", 2, Stop, vec![]),
        ("KILLED WARNING PENDING", 2, GoOn, vec![2]),
    ];
    for (words, parallel, on_failure, opened) in table {
        let entries = entries(words);
        let next = next(&entries, &free(entries.len()), &options(parallel, on_failure));
        assert_eq!(next.open, opened, "{words} {parallel} {on_failure:?}");
        assert!(next.blocked.is_empty());
    }
}

#[test]
fn a_failure_stays_in_its_branch() {
    // 1 and 3 wait for the previous one; 4 waits for a part of 3.
    let needs = vec![
        vec![],
        vec![need(0, NeededExtent::Batch)],
        vec![],
        vec![need(1, NeededExtent::Batch)],
        vec![need(3, NeededExtent::Part)],
    ];
    let entries = entries("FAILED PENDING PENDING PENDING PENDING");
    let go_on = options(9, BackfillFailurePolicy::GoOn);
    let next = next(&entries, &needs, &go_on);
    assert_eq!((next.open, next.blocked), (vec![2, 4], vec![(1, 0), (3, 1)]));
    assert_eq!(result(&entries, &needs, &go_on), None);
    let stop = options(9, BackfillFailurePolicy::Stop);
    assert_eq!(result(&entries, &needs, &stop), Some(BackfillStatus::Failed));
}

#[test]
fn how_it_ends() {
    let stop = options(1, BackfillFailurePolicy::Stop);
    let table = [
        ("SUCCESS LEFT WARNING", Some(BackfillStatus::Success)),
        ("LEFT LEFT", Some(BackfillStatus::Success)),
        ("SUCCESS OPEN", None),
        ("SUCCESS PENDING", None),
        ("FAILED OPEN PENDING", None),
        ("FAILED SUCCESS PENDING", Some(BackfillStatus::Failed)),
        ("REFUSED", Some(BackfillStatus::Failed)),
    ];
    for (words, ends) in table {
        let entries = entries(words);
        assert_eq!(result(&entries, &free(entries.len()), &stop), ends, "{words}");
    }
}

fn external(batch: &str, depends_on: Option<&str>, missing: Missing) -> ExternalDependency {
    ExternalDependency {
        waiting_group: GroupCode::parse("w").expect("group"),
        job_code: JobCode::parse("A").expect("code"),
        group: GroupCode::parse("g").expect("group"),
        depends_on: depends_on.map(|code| JobCode::parse(code).expect("code")),
        batch: batch.parse().expect("expr"),
        when: EdgeCondition::Success,
        missing,
        wait_sec: None,
    }
}

fn steps(
    text: &str,
    found: &[(&str, ExistingBatchState)],
    only: BackfillSelection,
) -> Vec<BackfillStep> {
    let step = |batch_no: BatchNo| {
        let there = found.iter().find(|(no, _)| *no == batch_no.as_str());
        let found = there.map_or(ExistingBatchState::Missing, |(_, found)| found.clone());
        BackfillStep { action: decide(&found, only), batch_no, found }
    };
    range(text).expect("range").into_iter().map(step).collect()
}

fn checked(
    text: &str,
    found: &[(&str, ExistingBatchState)],
    external: ExternalDependency,
    parallel: u32,
) -> Result<(), String> {
    let only =
        if found.is_empty() { BackfillSelection::Undone } else { BackfillSelection::Missing };
    let steps = steps(text, found, only);
    let group = GroupCode::parse("g").expect("group");
    let needs = needs(&[external], &group, &steps).map_err(|e| e.to_string())?;
    would_wait(&steps, &needs, parallel, only).map_err(|e| e.to_string())
}

#[test]
fn an_order_that_would_wait_for_ever_is_refused() {
    let prev = |missing| external("prev", None, missing);
    assert_eq!(checked("202401..202412", &[], prev(Missing::Wait), 1), Ok(()));
    assert_eq!(checked("202401..202412", &[], prev(Missing::Wait), 3), Ok(()));
    assert_eq!(checked("202412..202401", &[], prev(Missing::Pass), 1), Ok(()));
    // All of them may be open at once: each waits for the previous one, which ends.
    assert_eq!(checked("202412..202401", &[], prev(Missing::Wait), 12), Ok(()));
    let error = checked("202412..202401", &[], prev(Missing::Wait), 3).expect_err("desc");
    assert!(
        error.contains("batch 202412 waits for batch 202411 (job A") && error.contains("--order"),
        "{error}"
    );
    // A dependency on one job of the previous batch counts like one on the whole batch.
    let job = external("prev(2)", Some("B"), Missing::Wait);
    checked("202412..202401", &[], job, 2).expect_err("prev(2) with two at a time");
    checked("202401..202412", &[], external("next", None, Missing::Wait), 1).expect_err("next");
    // Batches outside the range are unknown.
    assert_eq!(checked("202412", &[], prev(Missing::Wait), 1), Ok(()));
    let failed = [("202402", ExistingBatchState::Ended(BatchStatus::Failed))];
    let error = checked("202401..202403", &failed, prev(Missing::Wait), 1).expect_err("left alone");
    assert!(error.contains("202402") && error.contains("--only missing"), "{error}");
    let done = [("202402", ExistingBatchState::Ended(BatchStatus::Success))];
    assert_eq!(checked("202401..202403", &done, prev(Missing::Wait), 1), Ok(()));
    let error = checked("a,b", &[], prev(Missing::Wait), 1).expect_err("free text");
    assert!(error.contains("batch a, job A"), "{error}");
}

#[test]
fn what_waits_for_a_failure_is_found() {
    let stop = options(3, BackfillFailurePolicy::Stop);
    let entries = entries("FAILED OPEN OPEN OPEN PENDING");
    let waits = |all: &[(usize, &[usize])]| -> BTreeMap<usize, Vec<usize>> {
        all.iter().map(|(place, on)| (*place, on.to_vec())).collect()
    };
    let lost = waits(&[(1, &[0]), (2, &[1]), (3, &[2])]);
    assert_eq!(hopeless(&entries, &lost, &stop), Some((1, 0)));
    // One batch is still working, or waits for something outside the backfill.
    assert_eq!(hopeless(&entries, &waits(&[(1, &[0]), (2, &[1]), (3, &[])]), &stop), None);
    // A batch that will never be opened counts as failed, unless the backfill continues after failures.
    let pending = waits(&[(1, &[4]), (2, &[1]), (3, &[4])]);
    assert_eq!(hopeless(&entries, &pending, &stop), Some((1, 4)));
    assert_eq!(hopeless(&entries, &pending, &options(3, BackfillFailurePolicy::GoOn)), None);
}

proptest! {
    /// At most N batches are open, each is opened at most once and in order, and the backfill ends.
    #[test]
    fn it_ends_with_at_most_n_open(
        begin in prop::collection::vec(prop_oneof![Just("PENDING"), Just("LEFT")], 0..40),
        parallel in 1u32..6,
        go_on in any::<bool>(),
        ends in prop::collection::vec((0usize..6, prop_oneof![8 => Just("SUCCESS"), 1 => Just("FAILED"),
            1 => Just("WARNING")]), 40),
        edges in prop::collection::vec((0usize..40, 0usize..40), 0..20),
    ) {
        let mut entries = entries(&begin.join(" "));
        let on_failure = if go_on { BackfillFailurePolicy::GoOn } else { BackfillFailurePolicy::Stop };
        let options = options(parallel, on_failure);
        let mut needs = free(entries.len());
        for (a, b) in edges {
            if a > b && a < entries.len() {
                needs[a].push(need(b, NeededExtent::Batch));
            }
        }
        let mut opened = Vec::new();
        let mut ends = ends.into_iter();
        while result(&entries, &needs, &options).is_none() {
            let next = next(&entries, &needs, &options);
            prop_assert!(on_failure == BackfillFailurePolicy::GoOn || next.blocked.is_empty());
            for (place, on) in next.blocked {
                prop_assert!(needs[place].iter().any(|n| n.place == on));
                entries[place].status = EntryStatus::UpstreamFailed;
            }
            if on_failure == BackfillFailurePolicy::Stop && entries.iter().any(|e| e.status.is_bad()) {
                prop_assert!(next.open.is_empty());
            }
            for place in next.open {
                prop_assert_eq!(entries[place].status, EntryStatus::Pending);
                entries[place].status = EntryStatus::Open;
                opened.push(place);
            }
            let open: Vec<usize> = (0..entries.len())
                .filter(|place| entries[*place].status == EntryStatus::Open).collect();
            prop_assert!(open.len() <= parallel as usize);
            if !open.is_empty() {
                let (which, how) = ends.next().expect("one end per batch");
                entries[open[which % open.len()]].status = EntryStatus::parse(how).expect("word");
            }
        }
        prop_assert!(opened.windows(2).all(|pair| pair[0] < pair[1]), "{opened:?}");
        let bad = entries.iter().any(|e| e.status.is_bad());
        let ended = result(&entries, &needs, &options);
        prop_assert_eq!(ended == Some(BackfillStatus::Failed), bad);
        if !bad || go_on {
            prop_assert!(entries.iter().all(|e| e.status.is_final()));
        }
    }
}
