//! SCRIPT: environment, output, exit, and the whole tree gone when it must stop; isolated, with a keeper alone, and
//! without one as well where that makes no difference.

use crate::util::bench::{Bench, Ran};
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::{ParamMode, ParamType};
use procession::handler::StopReason;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test]
async fn a_script_sees_its_task_and_nothing_else() {
    let mut bench = Bench::script("env; pwd; ls -ld .; readlink /proc/self/fd/0")
        .param("p-Rate", ParamMode::In, ParamType::Text, Some("7.10 月"))
        .param("none", ParamMode::In, ParamType::Text, None)
        .param("out", ParamMode::Out, ParamType::Text, None);
    bench.task.attempt = 3;
    let run = format!("PROCESSION_RUN={}:3", bench.task.lock_name);
    let queue = format!("PROCESSION_QUEUE_ID={}", bench.task.queue_id.0);
    let idem = format!("PROCESSION_IDEM_KEY={}", bench.task.idem_key);
    // cargo sets this for every test: it stands for a secret of the parent.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok() && std::env::var("HOME").is_ok());
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    let lines = ran.of(Stream::Stdout);
    for wanted in [
        "PROCESSION_BATCH_NO=202407",
        "PROCESSION_JOB_CODE=GL",
        "PROCESSION_GROUP=month_end",
        "PROCESSION_BUSINESS_DATE=2024-07-31",
        "PROCESSION_ATTEMPT=3",
        "PROCESSION_PARAM_P_RATE=7.10 月",
        &run,
        &queue,
        &idem,
        "/dev/null",
    ] {
        assert!(lines.contains(&wanted), "{wanted}: {}", ran.text());
    }
    let text = ran.text();
    for hidden in ["CARGO", "HOME", "PROCESSION_TEST", "PARAM_NONE", "PARAM_OUT"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    assert!(lines.iter().any(|l| l.starts_with("drwx------")), "{text}");
    let folder = lines.iter().find(|l| l.contains("/procession-")).expect("a private folder");
    assert!(!std::path::Path::new(folder).exists(), "{folder} is left");
}

/// A script in namespaces of its own, one with a keeper, and one without.
fn all_ways(text: &str) -> [Bench; 3] {
    [Bench::script(text), Bench::script(text).not_isolated(), Bench::script(text).alone()]
}

#[tokio::test]
async fn exits_signals_and_outputs() {
    let text = "echo ::output rows=12; echo ::output note=a=b 月; echo ::output bad; exit 0";
    for bench in all_ways(text) {
        let ran = bench.run().await;
        assert_eq!((ran.value("rows").as_str(), ran.value("note").as_str()), ("12", "a=b 月"));
        assert!(ran.text().contains("needs name=value"));
    }
    for (text, said) in [
        ("echo first >&2; printf 'no ledger\\n\\n' >&2; exit 3", "exit code 3: no ledger"),
        ("kill -9 $$", "ended by signal 9 (SIGKILL)"),
        ("kill -15 $$", "ended by signal 15 (SIGTERM)"),
        ("kill -35 $$", "ended by signal 35"),
        ("exit 137", "exit code 137"),
        ("sh -c 'kill -9 $$' 2>&1; exit $?", "exit code 137"),
    ] {
        for bench in all_ways(text) {
            let ran = bench.run().await;
            assert_eq!(
                (ran.outcome.end.clone(), ran.message()),
                (AttemptEnd::Failed, said),
                "{text}"
            );
        }
    }
    for mut bench in all_ways("exit 0") {
        bench.task.job.interpreter = Some("perl".to_owned());
        let said = "interpreter 'perl' is not allowed here; allowed: sh";
        assert_eq!(bench.run().await.message(), said);
    }
    for mut bench in all_ways("exit 0") {
        bench.task.job.working_dir = Some("/no/such/folder".to_owned());
        let ran = bench.run().await;
        assert!(ran.message().starts_with("cannot start \"/bin/sh\": "), "{}", ran.message());
        assert!(!ran.text().contains("keeper"), "{}", ran.text());
    }
    for bench in all_ways("exit 0") {
        bench.claim.0.store(false, Ordering::SeqCst);
        assert!(bench.run().await.message().contains("belongs to another start"));
    }
}

#[tokio::test]
async fn a_kept_script_has_a_session_of_its_own_no_core_and_nothing_of_ours() {
    let text = "ulimit -c; ls -l /proc/self/fd | grep -c -e socket -e signalfd; echo $$ $PPID; \
                cat /proc/$PPID/comm; cat /proc/$$/stat";
    let ran = Bench::script(text).not_isolated().run().await;
    let lines = ran.of(Stream::Stdout);
    let [core, sockets, pids, keeper, stat] = &lines[..] else { panic!("{}", ran.text()) };
    assert_eq!((*core, *sockets, *keeper), ("0", "0", "script-keeper"), "{}", ran.text());
    let (own, parent) = pids.split_once(' ').expect("two numbers");
    // `pid (name) state ppid group session …`
    let numbers: Vec<&str> = stat.rsplit(')').next().expect("fields").split(' ').collect();
    assert_eq!(&numbers[2..5], [parent, own, parent], "{}", ran.text());
}

#[tokio::test]
async fn without_a_keeper_it_runs_all_the_same_and_says_so() {
    for program in ["/no/such/program", "/bin/true"] {
        let bench = Bench::script("echo here").options(|o| o.keeper = Some(program.into()));
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert_eq!(ran.of(Stream::Stdout), ["here"]);
        assert!(ran.text().contains("runs without a keeper"), "{}", ran.text());
        assert!(ran.text().contains("not isolated from other processes: "), "{}", ran.text());
    }
}

/// The kernel lets nobody in a namespace end its init process, and ends all of them with it.
#[tokio::test]
async fn an_isolated_script_cannot_end_what_watches_over_it() {
    let text = "cat /proc/$PPID/comm; kill -9 $PPID; kill -STOP $PPID; echo lives";
    let ran = Bench::script(text).run().await;
    assert_eq!(ran.of(Stream::Stdout), ["script-init", "lives"], "{}", ran.text());
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert!(ran.text().contains(", isolated: processes"), "{}", ran.text());
}

/// `/tmp/report.$$` is a name that scripts give: two that run at once must not have the same.
#[tokio::test]
async fn isolated_scripts_have_numbers_of_their_own() {
    let benches = [(); 4].map(|()| Bench::script("echo $$; sleep 0.5"));
    let runs = futures_util::future::join_all(benches.map(Bench::run)).await;
    let numbers: std::collections::BTreeSet<&str> =
        runs.iter().map(|ran| ran.of(Stream::Stdout)[0]).collect();
    assert_eq!(numbers.len(), 4, "{numbers:?}");
}

#[tokio::test]
async fn a_script_whose_keeper_is_killed_is_of_unknown_outcome_and_leaves_nothing() {
    let text = "sleep 300 & setsid sleep 301 & kill -9 $PPID; sleep 302";
    let bench = Bench::script(text).not_isolated();
    let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
    assert!(ran.message().contains("its keeper ended early (signal: 9"), "{}", ran.message());
    assert_eq!(living(&cookie), 0, "{}", ran.text());
}

/// Neither the group nor the environment leads to it, and the keeper that would have found it from above is gone.
#[tokio::test]
async fn what_hides_from_a_killed_keeper_is_found_by_its_open_file() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("pid");
    let bench = Bench::script(&format!(
        "env -i setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; sleep 300; :' &\n\
         while [ ! -e {0} ]; do sleep 0.02; done; kill -9 $PPID; sleep 302",
        file.display()
    ));
    let ran = bench.not_isolated().run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Unknown, "{}", ran.message());
    let pid = std::fs::read_to_string(&file).expect("its number");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}: {}", ran.text());
}

#[tokio::test]
async fn a_keeper_that_a_script_has_stopped_is_woken_when_it_must_act() {
    // Again and again: the first may come before the keeper could say that the script runs.
    let text = "env -i setsid sleep 300 & while :; do kill -STOP $PPID; sleep 0.05; done";
    let bench = Bench::script(text).not_isolated();
    let bench = bench.options(|o| o.kill_grace = Duration::from_millis(200));
    let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
    let seen = cookie.clone();
    let ready = async move { until(|| living(&seen) >= 3).await };
    let ran = bench.stop_when(StopReason::Killed, ready).await;
    assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.message());
    assert_eq!(living(&cookie), 0, "{}", ran.text());
}

/// Runs a script below a lease of 1.5 s, renewed each tenth of a second or never.
async fn under_a_short_lease(bench: Bench, is_renewed: bool) -> Ran {
    let (pulse, beats) = tokio::sync::watch::channel(0);
    let mut bench = bench.options(|o| o.script_lease = Duration::from_millis(1_500));
    bench.ctx.pulse = beats;
    let beating = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if is_renewed {
                pulse.send_modify(|n| *n += 1);
            }
        }
    };
    tokio::select! { ran = bench.run() => ran, () = beating => panic!("never") }
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_ends_a_script() {
    let text = "trap '' TERM; env -i setsid sh -c 'trap \"\" TERM; sleep 300' & sleep 301";
    for bench in [Bench::script(text), Bench::script(text).not_isolated()] {
        let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
        let ran = under_a_short_lease(bench, false).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Returned, "{}", ran.message());
        assert!(ran.message().contains("did not renew its lease"), "{}", ran.message());
        assert!(ran.text().contains("(sleep), killed"), "{}", ran.text());
        assert_eq!(living(&cookie), 0, "{}", ran.text());
    }
}

#[tokio::test]
async fn a_lease_that_is_renewed_does_not() {
    // Longer than two leases, and it ends by itself.
    let bench = Bench::script("sleep 4");
    let ran = under_a_short_lease(bench, true).await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
}

#[tokio::test]
async fn output_of_any_kind_is_bounded_and_kept_at_both_ends() {
    let ran = Bench::script("printf 'a\\0b\\377c\\nno newline'; printf 'err' >&2").run().await;
    assert_eq!(ran.of(Stream::Stdout), ["a\u{FFFD}b\u{FFFD}c", "no newline"]);
    assert_eq!(ran.of(Stream::Stderr), ["err"]);
    // 50 MB in lines, then 20 MB in one line without end.
    let script = "yes 0123456789 | head -c 50000000; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end";
    // Nothing renews the lease here, and a busy machine takes longer than a minute for so much text.
    let lease = Duration::from_secs(600);
    let ran = Bench::script(script).options(|options| options.script_lease = lease).run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    let kept: usize = ran.lines.iter().map(|l| l.text.len()).sum();
    assert!(kept < 1_100_000, "{kept}");
    assert!(ran.text().contains("lines left out"));
    assert_eq!(ran.of(Stream::Stdout).last(), Some(&"end"));
}

/// Runs a script that starts a tree, stops it, and looks for its marks in the process table.
async fn tree(script: &str, reason: StopReason, runs: Runs) -> Ran {
    let dir = tempfile::tempdir().expect("folder");
    let flag = dir.path().join("ready");
    let script = script.replace("$READY", &flag.display().to_string());
    let bench = Bench::script(&script).options(|o| o.kill_grace = Duration::from_millis(500));
    let bench = if runs == Runs::Alone { bench.alone() } else { bench };
    let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
    let seen = cookie.clone();
    let least = if runs == Runs::Alone { 3 } else { 4 };
    let ready = async move { until(|| flag.exists() && living(&seen) >= least).await };
    let ran = bench.stop_when(reason, ready).await;
    assert_eq!(living(&cookie), 0, "{}", ran.text());
    ran
}

/// How a script is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Kept,
    Alone,
}

/// Waits for something observable; whoever calls it has a time-out.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How many living processes carry a cookie.
fn living(cookie: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let carries = |entry: &std::fs::DirEntry| {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        environ.split(|b| *b == 0).any(|e| e == cookie.as_bytes())
    };
    entries.filter(carries).count()
}

#[tokio::test]
async fn the_whole_tree_goes_with_setsid_and_ignored_signals() {
    let script = "trap '' TERM\nsleep 300 & setsid sh -c 'trap \"\" TERM; sleep 301; sleep 301' &\n\
                  (setsid sleep 302 &)\ntouch $READY\nwhile :; do sleep 1; done";
    for runs in [Runs::Kept, Runs::Alone] {
        let ran = tree(script, StopReason::TimedOut, runs).await;
        assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
        assert!(ran.text().contains("KILL sent to its process group"), "{}", ran.text());
        assert!(ran.text().contains("are gone after "), "{}", ran.text());
    }
}

#[tokio::test]
async fn a_polite_script_gets_its_grace() {
    let script = "trap 'echo tidied; exit 7' TERM\nsleep 300 & sleep 301 &\ntouch $READY\nwait";
    for runs in [Runs::Kept, Runs::Alone] {
        let ran = tree(script, StopReason::Killed, runs).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Killed);
        assert!(ran.of(Stream::Stdout).contains(&"tidied") && !ran.text().contains("KILL sent"));
    }
}

#[tokio::test]
async fn a_process_without_a_lease_gives_no_grace() {
    let script = "trap 'echo tidied; exit 7' TERM\nsleep 300 & sleep 301 &\ntouch $READY\nwait";
    for runs in [Runs::Kept, Runs::Alone] {
        let ran = tree(script, StopReason::Fenced, runs).await;
        assert_eq!(ran.outcome.end, AttemptEnd::Returned);
        assert!(
            !ran.text().contains("tidied") && !ran.text().contains("TERM sent"),
            "{}",
            ran.text()
        );
    }
}

#[tokio::test]
async fn only_a_keeper_finds_what_cleared_its_environment() {
    let dir = tempfile::tempdir().expect("folder");
    let file = dir.path().join("pid");
    let script = format!(
        "env -i setsid sh -c 'trap \"\" TERM; echo $$ > {0}.new; mv {0}.new {0}; sleep 300; :' &\n\
         sleep 301",
        file.display()
    );
    let bench = Bench::script(&script).not_isolated();
    let bench = bench.options(|o| o.kill_grace = Duration::from_millis(300));
    let ready = async { until(|| file.exists()).await };
    let ran = bench.stop_when(StopReason::TimedOut, ready).await;
    assert_eq!(ran.outcome.end, AttemptEnd::TimedOut, "{}", ran.message());
    let pid = std::fs::read_to_string(&file).expect("its number");
    let stat = format!("/proc/{}/stat", pid.trim());
    assert!(!std::path::Path::new(&stat).exists(), "process {pid} lives: {}", ran.text());
}

#[tokio::test]
async fn what_is_left_behind_is_ended_by_the_rule() {
    let text = "sleep 300 & setsid sleep 12 & sleep 0.2; exit 0";
    // The init process of a namespace lives as long as somebody in it does.
    for (bench, left) in all_ways(text).into_iter().zip([2, 1, 1]) {
        let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
        let start = tokio::time::Instant::now();
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
        assert!(start.elapsed() < Duration::from_secs(10), "did not wait for the daemon's pipe");
        assert!(
            ran.text().contains("(sleep), killed") && ran.text().contains("left alone"),
            "{}",
            ran.text()
        );
        assert_eq!(living(&cookie), left, "only who left the group lives");
        let gone = tokio::time::timeout(Duration::from_secs(20), until(|| living(&cookie) == 0));
        assert!(gone.await.is_ok(), "{} live on after the daemon's end", living(&cookie));
    }
    for bench in all_ways("setsid sleep 300 & sleep 0.2; exit 1") {
        let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
        let ran = bench.run().await;
        assert_eq!(ran.message(), "exit code 1");
        let gone = tokio::time::timeout(Duration::from_secs(1), until(|| living(&cookie) == 0));
        assert!(gone.await.is_ok(), "after a failure nothing may live: {}", ran.text());
    }
}

#[tokio::test]
async fn a_dropped_handler_takes_its_tree_with_it() {
    for (bench, least) in all_ways("setsid sleep 300 & sleep 300").into_iter().zip([5, 4, 3]) {
        let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
        tokio::select! {
            _ = bench.run() => panic!("it cannot end"),
            () = until(|| living(&cookie) >= least) => {}
        }
        let gone = tokio::time::timeout(Duration::from_secs(10), until(|| living(&cookie) == 0));
        assert!(gone.await.is_ok(), "{} processes live on", living(&cookie));
    }
}

/// Figures for the record, printed; only memory has a bound, for time is the machine's.
#[tokio::test]
async fn a_keeper_costs_a_few_milliseconds_and_megabytes() {
    const RUNS: u32 = 20;
    let mut spent = [Duration::ZERO; 3];
    for _ in 0..RUNS {
        for (bench, spent) in all_ways("true").into_iter().zip(&mut spent) {
            let start = tokio::time::Instant::now();
            assert_eq!(bench.run().await.outcome.end, AttemptEnd::Success);
            *spent += start.elapsed();
        }
    }
    let [isolated, kept, alone] = spent.map(|time| time / RUNS);
    let look = "readlink /proc/$PPID/exe; grep VmHWM /proc/$PPID/status; cat /proc/$PPID/smaps";
    let ran = Bench::script(look).not_isolated().run().await;
    let (text, lines) = (ran.text(), ran.of(Stream::Stdout));
    let peak = lines.iter().find_map(|l| kib("VmHWM:", l)).unwrap_or_else(|| panic!("{text}"));
    let own = anonymous(&lines[2..], lines[0]);
    let sum = own.iter().map(|(_, kib)| kib).sum::<u64>();
    let figures = format!(
        "`true`: {isolated:?} isolated, {kept:?} with a keeper, {alone:?} without; its keeper: at most {peak} KiB, its own {sum} \
         KiB: {own:?}\n"
    );
    std::io::Write::write_all(&mut std::io::stderr(), figures.as_bytes()).expect("stderr");
    assert!(sum > 0 && sum <= 512 && peak < 32 * 1024, "{figures}");
}

/// The figure of a line `NAME: 12 kB`.
fn kib(name: &str, line: &str) -> Option<u64> {
    line.strip_prefix(name)?.trim().strip_suffix(" kB")?.parse().ok()
}

/// What a process has for itself alone, by mapping, from its `smaps`: stack, heap, whatever it asked for. Pages
/// of its program are left out: they become its own when they are relocated at its start, so they grow
/// with the program and say nothing about what the process does.
fn anonymous(smaps: &[&str], program: &str) -> Vec<(String, u64)> {
    let (mut all, mut mapping) = (Vec::new(), "");
    for line in smaps {
        match line.split_once(' ') {
            Some((range, rest)) if range.contains('-') && !range.ends_with(':') => {
                mapping = rest.splitn(5, ' ').nth(4).unwrap_or("").trim();
            }
            _ => {
                let kib = kib("Anonymous:", line).filter(|kib| *kib > 0 && mapping != program);
                all.extend(kib.map(|kib| (mapping.to_owned(), kib)));
            }
        }
    }
    all
}

#[test]
fn what_a_process_has_for_itself_is_counted_without_its_program() {
    let smaps = [
        "5f00-5f10 r--p 00000000 08:01 131 /opt/procession",
        "Size: 64 kB",
        "Anonymous:            60 kB",
        "AnonHugePages:         7 kB",
        "6f00-6f10 rw-p 00000000 00:00 0 ",
        "Anonymous:             8 kB",
        "7f00-7f10 rw-p 00000000 00:00 0                          [heap]",
        "Anonymous:           100 kB",
        "7f20-7f30 r--p 00000000 08:01 132 /usr/lib/libc.so.6",
        "Anonymous:             0 kB",
        "VmFlags: rd mr mw me ac",
    ];
    let wanted = [("".to_owned(), 8), ("[heap]".to_owned(), 100)];
    assert_eq!(anonymous(&smaps, "/opt/procession"), wanted);
}
