use super::*;
use crate::domain::job::outcome::{AttemptEnd, AttemptStage};
use crate::domain::time::Millis;
use proptest::prelude::*;

const GIVE_UP: i64 = 20_000;
const T0: Millis = Millis(1_000_000);

fn run(status: RunStatus) -> RunState {
    let mut state = RunState::waiting(T0);
    match status {
        RunStatus::Waiting => {}
        RunStatus::Asked => state.begin_posting(T0),
        RunStatus::Running => {
            state.begin_posting(T0);
            state.apply_event(&RunEvent::Posted(Posted::Taken), GIVE_UP, T0);
        }
        RunStatus::Told | RunStatus::Done | RunStatus::Unconfirmed => state.status = status,
    }
    state
}

/// Lets its time come and answers the look.
fn look(state: &mut RunState, looked: Looked, at: Millis) -> Vec<RunDo> {
    state.next = Some(at);
    assert_eq!(state.apply_event(&RunEvent::Due, GIVE_UP, at), [RunDo::Look]);
    state.apply_event(&RunEvent::Looked(looked), GIVE_UP, at)
}

fn words(dos: &[RunDo]) -> Vec<String> {
    let word = |one: &RunDo| match one {
        RunDo::End(ended, _) => ended.as_str().to_owned(),
        RunDo::Next(_) => "Next".to_owned(),
        RunDo::Stopping(why) => format!("Stopping {}", why.as_str()),
        RunDo::Began => "Began".to_owned(),
        RunDo::SawBusy => "SawBusy".to_owned(),
        RunDo::SawIdle => "SawIdle".to_owned(),
        RunDo::Look => "Look".to_owned(),
        RunDo::Kill => "Kill".to_owned(),
        RunDo::Miss => "Miss".to_owned(),
    };
    dos.iter().map(word).collect()
}

#[test]
fn words_are_read_back() {
    for status in RunStatus::ALL {
        assert_eq!(RunStatus::parse(status.as_str()), Some(status));
    }
    for why in StopWhy::ALL {
        assert_eq!(StopWhy::parse(why.as_str()), Some(why));
        assert_eq!(UnreportedEnd::parse(why.as_str()), Some(UnreportedEnd::Stopped(why)));
    }
    for ended in [
        UnreportedEnd::NotReached,
        UnreportedEnd::Refused,
        UnreportedEnd::Discarded,
        UnreportedEnd::Lost,
        UnreportedEnd::Unconfirmed,
    ] {
        assert_eq!(UnreportedEnd::parse(ended.as_str()), Some(ended));
    }
}

#[test]
fn each_event_in_each_state() {
    use RunStatus as S;
    let no = || "no".to_owned();
    let kill = || RunEvent::Stop(StopWhy::Killed);
    for (status, event, then, dos) in [
        (S::Waiting, kill(), S::Told, vec!["KILLED"]),
        (S::Waiting, RunEvent::Due, S::Waiting, vec![]),
        (S::Waiting, RunEvent::Posted(Posted::Taken), S::Waiting, vec![]),
        (S::Waiting, RunEvent::Looked(Looked::Busy), S::Waiting, vec![]),
        (S::Waiting, RunEvent::Told, S::Told, vec![]),
        (S::Asked, RunEvent::Posted(Posted::Taken), S::Running, vec!["Began"]),
        (S::Asked, RunEvent::Posted(Posted::Refused(no())), S::Told, vec!["REFUSED"]),
        (S::Asked, RunEvent::Posted(Posted::NotSent(no())), S::Waiting, vec!["Next"]),
        (S::Asked, RunEvent::Posted(Posted::Unknown(no())), S::Asked, vec![]),
        (S::Asked, kill(), S::Asked, vec!["Stopping KILLED"]),
        (S::Asked, RunEvent::Told, S::Told, vec![]),
        (S::Asked, RunEvent::Gone, S::Told, vec!["LOST"]),
        (S::Running, RunEvent::Posted(Posted::Refused(no())), S::Running, vec![]),
        (S::Running, kill(), S::Running, vec!["Stopping KILLED"]),
        (S::Running, RunEvent::Told, S::Told, vec![]),
        (S::Running, RunEvent::Gone, S::Told, vec!["LOST"]),
    ] {
        let mut state = run(status);
        let done = state.apply_event(&event, GIVE_UP, T0);
        assert_eq!(
            (state.status, words(&done)),
            (then, dos.iter().map(|s| (*s).to_owned()).collect()),
            "{status:?} {event:?}"
        );
    }
}

#[test]
fn a_run_that_is_over_stays_as_it_is() {
    for status in [RunStatus::Told, RunStatus::Done, RunStatus::Unconfirmed] {
        for event in [
            RunEvent::Stop(StopWhy::Killed),
            RunEvent::Due,
            RunEvent::Gone,
            RunEvent::Told,
            RunEvent::Posted(Posted::Taken),
            RunEvent::Looked(Looked::Idle),
        ] {
            let mut state = run(status);
            assert_eq!(state.apply_event(&event, GIVE_UP, T0), []);
            assert_eq!(state.status, status);
        }
    }
}

#[test]
fn who_never_said_busy_is_not_believed_when_it_says_idle() {
    let mut state = run(RunStatus::Running);
    for n in 1..200 {
        let dos = look(&mut state, Looked::Idle, T0.plus_ms(n * 30_000));
        assert!(words(&dos).iter().all(|word| word == "SawIdle"), "{dos:?}");
    }
    assert_eq!(state.status, RunStatus::Running);
}

#[test]
fn a_run_that_was_busy_and_is_idle_for_a_minute_is_lost() {
    let mut state = run(RunStatus::Running);
    assert_eq!(words(&look(&mut state, Looked::Busy, T0.plus_ms(5_000))), ["SawBusy"]);
    assert_eq!(words(&look(&mut state, Looked::Idle, T0.plus_ms(35_000))), ["SawIdle"]);
    // It was started anew meanwhile, or another of its job runs.
    assert_eq!(look(&mut state, Looked::Busy, T0.plus_ms(65_000)), []);
    assert_eq!(words(&look(&mut state, Looked::Idle, T0.plus_ms(95_000))), ["SawIdle"]);
    assert_eq!(look(&mut state, Looked::Idle, T0.plus_ms(125_000)), []);
    assert_eq!(words(&look(&mut state, Looked::Idle, T0.plus_ms(155_000))), ["LOST"]);
}

#[test]
fn one_of_which_is_not_known_whether_it_was_taken_is_looked_at_and_never_asked_for_again() {
    let mut state = run(RunStatus::Asked);
    state.apply_event(&RunEvent::Posted(Posted::Unknown(String::new())), GIVE_UP, T0);
    assert_eq!(words(&look(&mut state, Looked::Busy, T0)), ["Began", "SawBusy"]);
    let mut state = run(RunStatus::Asked);
    state.apply_event(&RunEvent::Posted(Posted::Unknown(String::new())), GIVE_UP, T0);
    assert_eq!(words(&look(&mut state, Looked::Idle, T0)), ["SawIdle"]);
    assert_eq!(look(&mut state, Looked::Idle, T0.plus_ms(30_000)), []);
    assert_eq!(words(&look(&mut state, Looked::Idle, T0.plus_ms(60_000))), ["LOST"]);
}

#[test]
fn silence_counts_from_the_last_word() {
    let mut state = run(RunStatus::Running);
    assert_eq!(words(&look(&mut state, Looked::Busy, T0.plus_ms(30_000))), ["SawBusy"]);
    assert_eq!(look(&mut state, Looked::Silent, T0.plus_ms(60_000)), []);
    assert_eq!(look(&mut state, Looked::Silent, T0.plus_ms(119_999)), []);
    assert_eq!(look(&mut state, Looked::Silent, T0.plus_ms(120_000)), [RunDo::Miss]);
    // It says elsewhere that it is there, so it is looked at on.
    assert_eq!(state.status, RunStatus::Running);
    assert_eq!(look(&mut state, Looked::Silent, T0.plus_ms(150_000)), [RunDo::Miss]);
    assert_eq!(words(&state.apply_event(&RunEvent::Gone, GIVE_UP, T0.plus_ms(150_000))), ["LOST"]);
}

#[test]
fn a_stop_is_ordered_until_the_executor_reports_the_end() {
    let mut state = run(RunStatus::Running);
    state.apply_event(&RunEvent::Stop(StopWhy::TimedOut), GIVE_UP, T0);
    assert_eq!(words(&look(&mut state, Looked::Busy, T0)), ["SawBusy", "Kill"]);
    assert_eq!(look(&mut state, Looked::Busy, T0.plus_ms(250)), []);
    assert_eq!(look(&mut state, Looked::Silent, T0.plus_ms(1_000)), []);
    assert_eq!(look(&mut state, Looked::Busy, T0.plus_ms(5_000)), [RunDo::Kill]);
    // Java's executors answer "idle" directly after a kill, whatever the handler does.
    assert_eq!(words(&look(&mut state, Looked::Idle, T0.plus_ms(6_000))), ["SawIdle"]);
    assert_eq!(state.status, RunStatus::Running);
    assert_eq!(state.apply_event(&RunEvent::Told, GIVE_UP, T0.plus_ms(7_000)), []);
    assert_eq!(state.status, RunStatus::Told);
}

#[test]
fn a_stop_whose_end_is_not_reported_is_unconfirmed() {
    for (was_busy, looked) in [
        (false, Looked::Busy),
        (false, Looked::Idle),
        (true, Looked::Idle),
        (false, Looked::Silent),
    ] {
        let mut state = run(RunStatus::Running);
        state.was_busy = was_busy;
        state.apply_event(&RunEvent::Stop(StopWhy::Killed), GIVE_UP, T0);
        let mut all = Vec::new();
        for n in 0..200 {
            let at = T0.plus_ms(n * 250);
            if state.next.is_some_and(|next| next <= at) {
                all.extend(words(&state.apply_event(&RunEvent::Due, GIVE_UP, at)));
                all.extend(words(&state.apply_event(&RunEvent::Looked(looked), GIVE_UP, at)));
            }
        }
        assert_eq!(all.last().map(String::as_str), Some("UNCONFIRMED"), "{looked:?} {all:?}");
        assert_eq!(all.iter().filter(|word| *word == "Kill").count(), 4, "{looked:?} {all:?}");
    }
}

#[test]
fn nothing_is_stopped_before_it_is_known_to_be_there() {
    let mut state = run(RunStatus::Asked);
    state.apply_event(&RunEvent::Stop(StopWhy::Killed), GIVE_UP, T0);
    assert_eq!(state.apply_event(&RunEvent::Due, GIVE_UP, T0), []);
    let refused = RunEvent::Posted(Posted::NotSent(String::new()));
    assert_eq!(words(&state.clone().apply_event(&refused, GIVE_UP, T0)), ["KILLED"]);
    assert_eq!(words(&state.apply_event(&RunEvent::Posted(Posted::Taken), GIVE_UP, T0)), ["Began"]);
    assert_eq!(state.apply_event(&RunEvent::Due, GIVE_UP, T0), [RunDo::Look]);
}

fn end(code: Option<i64>, result: Option<UnreportedEnd>, stopping: Option<StopWhy>) -> RunEnd {
    let address = Some("http://10.0.0.1:9999".to_owned());
    RunEnd { log_id: 7, address, shard: (0, 1), stopping, result, code, said: "why".to_owned() }
}

#[test]
fn each_end_is_an_outcome() {
    for (code, result, stopping, wanted, said) in [
        (Some(200), None, None, AttemptEnd::Success, ""),
        (
            Some(500),
            None,
            None,
            AttemptEnd::Failed,
            "run 7 at http://10.0.0.1:9999 ended with code 500: why",
        ),
        (Some(502), None, None, AttemptEnd::TimedOut, "ended with code 502"),
        (None, None, None, AttemptEnd::Unknown, "without a code"),
        // Some clients say 200 of what was stopped.
        (Some(200), None, Some(StopWhy::Killed), AttemptEnd::Killed, "was stopped: why"),
        (Some(200), None, Some(StopWhy::TimedOut), AttemptEnd::TimedOut, "its time was over"),
        (
            None,
            Some(UnreportedEnd::Stopped(StopWhy::Covered)),
            Some(StopWhy::Covered),
            AttemptEnd::Killed,
            "COVER_EARLY",
        ),
        (
            None,
            Some(UnreportedEnd::Unconfirmed),
            Some(StopWhy::Killed),
            AttemptEnd::Unknown,
            "kill unconfirmed: run 7",
        ),
        (None, Some(UnreportedEnd::Lost), None, AttemptEnd::Unknown, "is lost: why"),
        (
            None,
            Some(UnreportedEnd::Refused),
            None,
            AttemptEnd::Failed,
            "refused by its executor: why",
        ),
        (
            None,
            Some(UnreportedEnd::NotReached),
            None,
            AttemptEnd::Failed,
            "no executor could take it: why",
        ),
        (None, Some(UnreportedEnd::Discarded), None, AttemptEnd::Failed, "not run: why"),
    ] {
        let outcome = outcome(&[end(code, result, stopping)]);
        assert_eq!(outcome.end, wanted, "{code:?} {result:?} {stopping:?}");
        let message = outcome.message.unwrap_or_default();
        assert!(message.contains(said), "{message}");
        let nothing_begun = matches!(
            result,
            Some(UnreportedEnd::Refused | UnreportedEnd::NotReached | UnreportedEnd::Discarded)
        );
        assert_eq!(outcome.reach == AttemptStage::Before, nothing_begun, "{result:?}");
    }
}

#[test]
fn an_end_that_the_client_could_not_report_is_unknown() {
    let said = "Connection error after retry times 3".to_owned();
    let lost = RunEnd { said, ..end(Some(500), None, None) };
    let outcome = outcome(&[lost]);
    let message = outcome.message.unwrap_or_default();
    assert_eq!(outcome.end, AttemptEnd::Unknown, "{message}");
    assert!(message.contains("could not report its real end"), "{message}");
}

#[test]
fn a_run_that_may_be_sent_to_none_was_refused_by_none() {
    let nowhere = RunEnd { address: None, ..end(None, Some(UnreportedEnd::Refused), None) };
    let outcome = outcome(&[nowhere]);
    assert_eq!(outcome.message.as_deref(), Some("no executor was asked: why"));
    assert_eq!((outcome.end, outcome.reach), (AttemptEnd::Failed, AttemptStage::Before));
}

#[test]
fn all_parts_must_end_well() {
    let part = |n, code| RunEnd { shard: (n, 3), log_id: n, ..end(Some(code), None, None) };
    let well = outcome(&[part(0, 200), part(1, 200), part(2, 200)]);
    assert_eq!(well.end, AttemptEnd::Success);
    assert_eq!(well.outputs.value("parts").as_deref(), Some("3"));
    let bad = outcome(&[part(0, 200), part(1, 500), part(2, 200)]);
    assert_eq!(bad.end, AttemptEnd::Failed);
    let said = bad.message.unwrap_or_default();
    assert!(said.starts_with("1 of 3 parts did not end well: part 1: run 1 at "), "{said}");
    let lost = RunEnd { shard: (2, 3), ..end(None, Some(UnreportedEnd::Lost), None) };
    assert_eq!(outcome(&[part(0, 200), part(1, 500), lost]).end, AttemptEnd::Unknown);
}

#[test]
fn logs_are_asked_for_less_and_less_often() {
    let at: Vec<i64> = (0..8).map(log_after_ms).collect();
    assert_eq!(at, [2_000, 4_000, 8_000, 16_000, 32_000, 62_000, 122_000, 182_000]);
}

fn any_event() -> impl Strategy<Value = RunEvent> {
    let no = || "no".to_owned();
    proptest::sample::select(vec![
        RunEvent::Posted(Posted::Taken),
        RunEvent::Posted(Posted::Refused(no())),
        RunEvent::Posted(Posted::Unknown(no())),
        RunEvent::Looked(Looked::Busy),
        RunEvent::Looked(Looked::Idle),
        RunEvent::Looked(Looked::Silent),
        RunEvent::Stop(StopWhy::Killed),
        RunEvent::Stop(StopWhy::TimedOut),
        RunEvent::Due,
        RunEvent::Due,
        RunEvent::Due,
        RunEvent::Told,
        RunEvent::Gone,
    ])
}

proptest! {
    /// Whatever happens, a run has one end, and after it nothing is done; what stops it is written before
    /// it is sent; and while it is open and nothing is awaited it is looked at again.
    #[test]
    fn a_run_ends_once(events in proptest::collection::vec((any_event(), 0_i64..40_000), 1..60)) {
        let mut state = run(RunStatus::Asked);
        let (mut now, mut ended, mut stopping) = (T0, 0, false);
        for (event, pause) in events {
            now = now.plus_ms(pause);
            let dos = state.apply_event(&event, GIVE_UP, now);
            prop_assert!(ended == 0 || dos.is_empty());
            for one in &dos {
                match one {
                    RunDo::Stopping(_) => stopping = true,
                    RunDo::Kill => prop_assert!(stopping),
                    RunDo::End(..) => ended += 1,
                    RunDo::Began | RunDo::SawBusy | RunDo::SawIdle | RunDo::Look | RunDo::Miss => {}
                    RunDo::Next(_) => prop_assert!(false, "it was sent"),
                }
            }
            if event == RunEvent::Told {
                ended += 1;
            }
            let is_awaited = state.is_posting || state.is_looking;
            prop_assert!(!state.status.is_open() || is_awaited || state.next.is_some());
            prop_assert_eq!(state.status.is_open(), ended == 0);
            if ended > 0 {
                ended = 1;
            }
        }
    }
}
