//! Control groups of scripts: what holds, what the log says, and that nothing stays. Where this machine lets no group
//! limit memory, the tests of limits say so and end; `make test-cgroups` boots a kernel that does, and requires them.

use crate::util::bench::{Bench, Ran};
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::script_isolation::{IsolationPolicy, ScriptUsers};
use procession::domain::job::script_limits::{
    CgroupController, CgroupPolicy, ScriptLimitSettings, ScriptLimits,
};
use procession::handler::StopReason;
use procession::handler::cgroup_tree::CgroupTree;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Set where the kernel must be able to hold all limits.
const REQUIRED: &str = "PROCESSION_TEST_CGROUPS";

/// What was not tried; a test's own output is shown only when it fails.
fn report(words: &str) {
    std::io::stderr().write_all(format!("{words}\n").as_bytes()).expect("standard error");
}

fn bench(script: &str, limits: ScriptLimits, cgroups: CgroupPolicy) -> Bench {
    Bench::script(script).options(|options| {
        options.script_limits =
            ScriptLimitSettings { default: limits, by_group: Default::default(), cgroups };
        options.script_cgroups = CgroupTree::new(cgroups, None);
    })
}

fn limits(memory_mib: u32, processes: u32, cpu_percent: u32) -> ScriptLimits {
    let some = |number: u32| (number > 0).then_some(number);
    ScriptLimits {
        memory_mib: some(memory_mib),
        processes: some(processes),
        cpu_percent: some(cpu_percent),
    }
}

/// What groups can limit here; `None` where there are none.
async fn controllers() -> Option<Vec<CgroupController>> {
    let means = CgroupTree::new(CgroupPolicy::Auto, None).find_means().await;
    let found = means.as_ref().map(|means| means.controllers.clone());
    if std::env::var_os(REQUIRED).is_some() {
        assert_eq!(found, Ok(CgroupController::ALL.to_vec()), "{REQUIRED} is set");
    }
    found.ok()
}

async fn can_limit() -> bool {
    let can = controllers().await.is_some_and(|found| found == CgroupController::ALL);
    if !can {
        report("no control group limits memory here: not tried (make test-cgroups)");
    }
    can
}

/// The group that a script said it was in, without what is below it.
fn group_of(ran: &Ran) -> PathBuf {
    let out = ran.of(Stream::Stdout);
    let path = out.iter().find_map(|line| line.strip_prefix("group 0::"));
    let path = path.unwrap_or_else(|| panic!("no group in {out:?}"));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let place =
        procession::domain::job::script_limits::find_cgroup_place(&mounts, "0::/").expect("mount");
    Path::new(&place.mount).join(path.trim_start_matches('/').trim_end_matches("/run"))
}

const SAYS_GROUP: &str = "echo group $(grep ^0:: /proc/self/cgroup)";

#[tokio::test]
async fn a_script_has_a_group_of_its_own_that_goes_with_it() {
    if controllers().await.is_none() {
        report("this machine gives no control groups: not tried");
        return;
    }
    for policy in [IsolationPolicy::Off, IsolationPolicy::Auto] {
        let one = || {
            bench(SAYS_GROUP, ScriptLimits::default(), CgroupPolicy::Required).options(|options| {
                options.script_users = ScriptUsers { by_group: Default::default(), policy };
            })
        };
        let (first, second) = tokio::join!(one().run(), one().run());
        assert_eq!(first.outcome.end, AttemptEnd::Success, "{:?}", first.text());
        let (first, second) = (group_of(&first), group_of(&second));
        assert_ne!(first, second);
        for group in [first, second] {
            assert!(group.to_string_lossy().contains("/procession-scripts/"), "{group:?}");
            assert!(!group.exists(), "{group:?} is still there");
        }
    }
}

#[tokio::test]
async fn a_stop_ends_the_whole_group_and_a_success_spares_what_left() {
    if controllers().await.is_none() {
        report("this machine gives no control groups: not tried");
        return;
    }
    let hidden =
        format!("{SAYS_GROUP}; setsid env -i sleep 300 >/dev/null 2>&1 </dev/null & sleep 300");
    let bench = bench(&hidden, ScriptLimits::default(), CgroupPolicy::Required);
    let ran =
        bench.stop_when(StopReason::Killed, tokio::time::sleep(Duration::from_millis(700))).await;
    assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{:?}", ran.text());
    let group = group_of(&ran);
    assert!(!group.exists(), "{group:?} is still there");
}

#[tokio::test]
async fn a_script_that_uses_more_memory_is_killed_and_the_reason_is_said() {
    if !can_limit().await {
        return;
    }
    // awk keeps what it doubles; 64 MiB are there after 26 steps.
    let greedy =
        "sleep 0.1; awk 'BEGIN { text = \"x\"; while (1) text = text text }'; echo survived";
    for policy in [IsolationPolicy::Off, IsolationPolicy::Auto] {
        let greedy = bench(greedy, limits(64, 0, 0), CgroupPolicy::Auto).options(|options| {
            options.script_users = ScriptUsers { by_group: Default::default(), policy };
        });
        let ran = greedy.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{:?}", ran.text());
        let why = "killed: it used more than 64 MiB (script.max_memory_mib)";
        assert_eq!(ran.message(), why, "{:?}", ran.text());
        assert!(!ran.of(Stream::Stdout).contains(&"survived"));
        assert!(ran.text().contains("limits: memory 64 MiB (control group)"), "{}", ran.text());
    }
    let modest = bench("echo fine", limits(64, 0, 0), CgroupPolicy::Required).run().await;
    assert_eq!(modest.outcome.end, AttemptEnd::Success, "{:?}", modest.text());
}

#[tokio::test]
async fn processes_and_processor_time_are_limited_for_root_too() {
    if !can_limit().await {
        return;
    }
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; echo started $(jobs -p | wc -l); exit 0";
    let ran = bench(many, limits(0, 6, 0), CgroupPolicy::Required).run().await;
    assert!(
        ran.text().contains("as many processes as it may (script.max_processes)"),
        "{}",
        ran.text()
    );
    // One second of work at a fifth of a processor takes five.
    let busy = "cat /proc/$$/cgroup >/dev/null; timeout 2 sh -c 'while :; do :; done'; \
                grep -q . /proc/self/stat; times | tail -1";
    let ran = bench(busy, limits(0, 0, 20), CgroupPolicy::Required).run().await;
    let out = ran.of(Stream::Stdout);
    // `times`: user and system time of children, `0m0.380000s 0m0.010000s`.
    let used: f64 = out.last().expect("times").split(' ').map(seconds).sum();
    assert!(used < 1.0, "{used} s of a processor in 2 s at a fifth: {out:?}");
}

/// `0m0.38s` in seconds.
fn seconds(text: &str) -> f64 {
    let (minutes, rest) = text.split_once('m').expect("minutes");
    let number = |text: &str| -> f64 { text.trim_end_matches('s').parse().expect("a number") };
    number(minutes) * 60.0 + number(rest)
}

#[tokio::test]
async fn an_isolated_script_does_not_leave_its_group() {
    if controllers().await.is_none() {
        report("this machine gives no control groups: not tried");
        return;
    }
    let escape = "for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null); do \
                  if echo 0 2>/dev/null > $f; then echo ESCAPED $f; fi; done; \
                  mkdir /sys/fs/cgroup/mine 2>/dev/null && echo MADE; echo tried";
    let ran = bench(escape, ScriptLimits::default(), CgroupPolicy::Required).run().await;
    let out = ran.of(Stream::Stdout);
    assert_eq!(out, ["tried"], "{}", ran.text());
}

#[tokio::test]
async fn what_is_not_held_is_said_and_refused_where_it_is_required() {
    let all = limits(64, 5, 150);
    let ran = bench("true", all, CgroupPolicy::Off).run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{:?}", ran.text());
    let said = "limits not held for the script as a whole: memory 64 MiB, 1.5 processors: script.cgroups is \"off\"";
    assert!(ran.text().contains(said), "{}", ran.text());
    let said = "limits: 64 MiB of memory for each process, 5 processes more than its user has, ";
    assert!(ran.text().contains(said), "{}", ran.text());
    let nowhere = CgroupTree::new(CgroupPolicy::Required, Some("/nowhere/at/all".into()));
    let refused = bench("true", all, CgroupPolicy::Required)
        .options(|options| options.script_cgroups = nowhere.clone());
    let ran = refused.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Failed);
    let why = ran.message();
    assert!(why.contains("script.cgroups is \"required\""), "{why}");
    assert!(why.contains("for memory 64 MiB, 5 processes, 1.5 processors"), "{why}");
}

/// Without control groups each process is held for itself: one that asks for more memory is refused it, and one that
/// computes on is killed. Both hold for root too, and in a namespace.
#[tokio::test]
async fn each_process_is_limited_without_control_groups() {
    for isolation in [IsolationPolicy::Off, IsolationPolicy::Auto] {
        let users = ScriptUsers { policy: isolation, ..ScriptUsers::default() };
        let run = |script: &'static str, limits| {
            let users = users.clone();
            let bench = bench(script, limits, CgroupPolicy::Off);
            bench.options(move |options| options.script_users = users.clone())
        };
        // dd asks for its block at once.
        let greedy = "dd if=/dev/zero of=/dev/null bs=200M count=1 2>&1 && echo HAD-IT; \
                      dd if=/dev/zero of=/dev/null bs=1M count=1 2>/dev/null && echo small";
        let ran = run(greedy, limits(64, 0, 0)).run().await;
        let out = ran.of(Stream::Stdout);
        assert_eq!(out.last(), Some(&"small"), "{}", ran.text());
        assert!(!out.contains(&"HAD-IT"), "{}", ran.text());
        // A hundredth of a processor for 100 s is one second.
        let busy = "ulimit -t; sh -c 'while :; do :; done'; echo \"ended with $?\"";
        let mut busy = run(busy, limits(0, 0, 1));
        busy.task.job.timeout_sec = 100;
        let ran = busy.run().await;
        let out = ran.of(Stream::Stdout);
        assert_eq!(out.first(), Some(&"1"), "{}", ran.text());
        let ended = *out.last().expect("the shell tells");
        assert!(ended == "ended with 137" || ended == "ended with 152", "{}", ran.text());
    }
}
