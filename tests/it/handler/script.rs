//! SCRIPT: environment, output, exit, and the whole tree gone when it must stop.

use crate::util::bench::{Bench, Ran};
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::outcome::{End, Stream};
use procession::handler::StopReason;
use std::sync::Arc;
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
    // cargo sets this for every test: it stands for a secret of the parent.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok() && std::env::var("HOME").is_ok());
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, End::Success, "{}", ran.message());
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

#[tokio::test]
async fn exits_signals_and_outputs() {
    let ran = Bench::script(
        "echo ::output rows=12; echo ::output note=a=b 月; echo ::output bad; exit 0",
    )
    .run()
    .await;
    assert_eq!((ran.value("rows").as_str(), ran.value("note").as_str()), ("12", "a=b 月"));
    assert!(ran.text().contains("needs name=value"));
    let ran = Bench::script("echo first >&2; printf 'no ledger\\n\\n' >&2; exit 3").run().await;
    assert_eq!((ran.outcome.end.clone(), ran.message()), (End::Failed, "exit code 3: no ledger"));
    let ran = Bench::script("kill -9 $$").run().await;
    assert_eq!(ran.message(), "ended by signal 9 (SIGKILL)");
    let mut bench = Bench::script("exit 0");
    bench.task.job.interpreter = Some("perl".to_owned());
    assert_eq!(bench.run().await.message(), "interpreter 'perl' is not allowed here; allowed: sh");
    let mut bench = Bench::script("exit 0");
    bench.task.job.working_dir = Some("/no/such/folder".to_owned());
    assert!(bench.run().await.message().starts_with("cannot start "));
    let bench = Bench::script("exit 0");
    bench.claim.0.store(false, Ordering::SeqCst);
    assert!(bench.run().await.message().contains("belongs to another start"));
}

#[tokio::test]
async fn output_of_any_kind_is_bounded_and_kept_at_both_ends() {
    let ran = Bench::script("printf 'a\\0b\\377c\\nno newline'; printf 'err' >&2").run().await;
    assert_eq!(ran.of(Stream::Stdout), ["a\u{FFFD}b\u{FFFD}c", "no newline"]);
    assert_eq!(ran.of(Stream::Stderr), ["err"]);
    // 50 MB in lines, then 20 MB in one line without end.
    let ran = Bench::script("yes 0123456789 | head -c 50000000; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end").run().await;
    assert_eq!(ran.outcome.end, End::Success, "{}", ran.message());
    let kept: usize = ran.lines.iter().map(|l| l.text.len()).sum();
    assert!(kept < 1_100_000, "{kept}");
    assert!(ran.text().contains("lines left out"));
    assert_eq!(ran.of(Stream::Stdout).last(), Some(&"end"));
}

/// Runs a script that starts a tree, stops it, and looks for its marks in the process table.
async fn tree(script: &str, reason: StopReason) -> Ran {
    let dir = tempfile::tempdir().expect("folder");
    let flag = dir.path().join("ready");
    let script = script.replace("$READY", &flag.display().to_string());
    let mut bench = Bench::script(&script);
    let mut options = (*bench.ctx.options).clone();
    options.kill_grace = Duration::from_millis(500);
    bench.ctx.options = Arc::new(options);
    let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
    let seen = cookie.clone();
    let ready = async move {
        while !flag.exists() || living(&seen) < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ran = bench.stop_when(reason, ready).await;
    assert_eq!(living(&cookie), 0, "{}", ran.text());
    ran
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
    let ran = tree(
        "trap '' TERM\nsleep 300 & setsid sh -c 'trap \"\" TERM; sleep 301; sleep 301' &\n\
         (setsid sleep 302 &)\ntouch $READY\nwhile :; do sleep 1; done",
        StopReason::TimedOut,
    )
    .await;
    assert_eq!(ran.outcome.end, End::TimedOut, "{}", ran.message());
    assert!(ran.text().contains("KILL sent to its process group"), "{}", ran.text());
}

#[tokio::test]
async fn a_polite_script_gets_its_grace() {
    let ran = tree(
        "trap 'echo tidied; exit 7' TERM\nsleep 300 & sleep 301 &\ntouch $READY\nwait",
        StopReason::Killed,
    )
    .await;
    assert_eq!(ran.outcome.end, End::Killed);
    assert!(ran.of(Stream::Stdout).contains(&"tidied") && !ran.text().contains("KILL sent"));
}

#[tokio::test]
async fn what_is_left_behind_is_ended_by_the_rule() {
    let bench = Bench::script("sleep 300 & setsid sleep 3 & sleep 0.2; exit 0");
    let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
    let start = tokio::time::Instant::now();
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, End::Success, "{}", ran.message());
    assert!(start.elapsed() < Duration::from_secs(2), "did not wait for the daemon's pipe");
    assert!(
        ran.text().contains("(sleep), killed") && ran.text().contains("left alone"),
        "{}",
        ran.text()
    );
    assert_eq!(living(&cookie), 1, "only who left the group lives");
    let bench = Bench::script("setsid sleep 300 & sleep 0.2; exit 1");
    let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
    let ran = bench.run().await;
    assert_eq!(ran.message(), "exit code 1");
    for _ in 0..100 {
        if living(&cookie) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("after a failure nothing may live: {}", ran.text());
}

#[tokio::test]
async fn a_dropped_handler_takes_its_tree_with_it() {
    let bench = Bench::script("setsid sleep 300 & sleep 300");
    let cookie = format!("PROCESSION_RUN={}:1", bench.task.lock_name);
    let running = async {
        while living(&cookie) < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = bench.run() => panic!("it cannot end"),
        () = running => {}
    }
    for _ in 0..100 {
        if living(&cookie) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} processes live on", living(&cookie));
}
