//! HTTP against a real server of the test's own.

use crate::util::bench::Bench;
use crate::util::host::{Host, Reply};
use procession::domain::job::body::{HttpBody, HttpCall};
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::{ParamMode, ParamType};
use procession::handler::StopReason;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

const IN: ParamMode = ParamMode::In;

fn call(bench: &mut Bench) -> &mut HttpCall {
    bench.task.job.http.as_mut().expect("a call")
}

#[tokio::test]
async fn a_call_carries_parameters_and_hands_fields_on() {
    let host = Host::start(|_| Reply::text(201, r#"{"job": "L-7", "rows": 12, "deep": {}}"#)).await;
    let url = format!("{}/api", host.url);
    let mut bench = Bench::http(&url, "POST", "/loads/{branch}?no={no}")
        .param("branch", IN, ParamType::Text, Some("SH/../1"))
        .param("no", IN, ParamType::Text, Some("202407&x=1"))
        .param("amount", IN, ParamType::Decimal, Some("1234.50"))
        .param("who", IN, ParamType::Text, Some("月"));
    let registered = bench.task.host.as_mut().expect("a host");
    registered.headers.insert("Authorization".to_owned(), "Bearer ${secret.TOKEN}".to_owned());
    bench.task.secrets.insert("TOKEN".to_owned(), "geheim".to_owned().into());
    let headers = [("X-Branch".to_owned(), "b-{who}".to_owned())];
    (call(&mut bench).headers, call(&mut bench).send) = (headers.into(), HttpBody::Json);
    let key = bench.task.idem_key.clone();
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert_eq!(
        (ran.value("job"), ran.value("rows"), ran.value("status")),
        ("L-7".into(), "12".into(), "201".into())
    );
    assert!(ran.value("body").starts_with(r#"{"job""#));
    assert_eq!(ran.of(Stream::Stdout).len(), 1);
    let asked = &host.asked()[0];
    let first = "POST /api/loads/SH%2F..%2F1?no=202407%26x%3D1 HTTP/1.1";
    assert_eq!(asked.lines().next(), Some(first));
    let lower = asked.to_lowercase();
    for header in [
        format!("idempotency-key: {}\r\n", key.to_lowercase()),
        "authorization: bearer geheim\r\n".to_owned(),
        "x-branch: b-月\r\n".to_owned(),
        "content-type: application/json\r\n".to_owned(),
    ] {
        assert!(lower.contains(&header), "{header} in {asked}");
    }
    assert!(asked.ends_with(r#"{"amount":1234.50}"#), "{asked}");
    assert!(!ran.text().contains("geheim"), "{}", ran.text());
}

#[tokio::test]
async fn statuses_decide() {
    for (status, expected, end) in [
        (204, vec![], AttemptEnd::Success),
        (404, vec![], AttemptEnd::Failed),
        (404, vec![200, 404], AttemptEnd::Success),
        (201, vec![200], AttemptEnd::Failed),
        (503, vec![], AttemptEnd::Failed),
    ] {
        let host = Host::start(move |_| Reply::text(status, "no such\nload")).await;
        let mut bench = Bench::http(&host.url, "GET", "/x");
        call(&mut bench).expect_status = expected;
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, end, "{status}: {}", ran.message());
        assert_eq!(ran.value("status"), status.to_string());
        if end == AttemptEnd::Failed {
            let said = format!("GET core /x answered {status}");
            assert!(ran.message().starts_with(&said), "{}", ran.message());
            assert!(ran.message().ends_with(": no such"), "{}", ran.message());
        }
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let other = Host::start(|_| Reply::text(200, "mine now")).await;
    let there = format!("Location: {}/steal\r\n", other.url);
    let host = Host::start(move |_| Reply::Say(302, there.clone(), Vec::new())).await;
    let mut bench = Bench::http(&host.url, "POST", "/x");
    let registered = bench.task.host.as_mut().expect("a host");
    registered.headers.insert("Authorization".to_owned(), "Bearer geheim".to_owned());
    let ran = bench.run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Failed);
    assert!(ran.message().contains("302") && ran.message().contains("redirects are not followed"));
    assert_eq!((host.asked().len(), other.asked().len()), (1, 0));
}

#[tokio::test]
async fn parameters_cannot_break_out() {
    let host = Host::start(|_| Reply::text(200, "")).await;
    let bench = |path: &str, value: &str| {
        Bench::http(&format!("{}/api", host.url), "GET", path).param(
            "a",
            IN,
            ParamType::Text,
            Some(value),
        )
    };
    let mut injected = bench("/x", "v\r\nX-Admin: 1\r\n\r\n");
    call(&mut injected).headers.insert("X-A".to_owned(), "{a}".to_owned());
    let ran = injected.run().await;
    assert_eq!(
        ran.message(),
        "header X-A holds a line break or another control character; nothing was sent"
    );
    for (path, value) in [("/{a}/admin", ".."), ("/.{a}/admin", ".")] {
        let ran = bench(path, value).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        assert!(ran.message().contains("leads above the host's own URL"), "{}", ran.message());
    }
    assert!(host.asked().is_empty());
    let ran = bench("/{a}", "\r\nX-Admin: 1").run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success);
    assert!(host.asked()[0].starts_with("GET /api/%0D%0AX-Admin%3A%201 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn an_answer_without_end_is_cut() {
    let host = Host::start(|_| Reply::Endless).await;
    let ran = Bench::http(&host.url, "GET", "/x").run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.message());
    assert!(ran.outcome.outputs.unusable["body"].contains("more than 1048576 bytes"));
    assert!(ran.text().contains("the answer is longer; 1048576 bytes of it were read"));
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_unknown_unless_it_only_asks() {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf".to_vec();
    for (method, end) in [
        ("POST", AttemptEnd::Unknown),
        ("DELETE", AttemptEnd::Unknown),
        ("GET", AttemptEnd::Failed),
        ("HEAD", AttemptEnd::Failed),
    ] {
        for bytes in [Vec::new(), cut.clone()] {
            // To HEAD a length without a body is a whole answer.
            if method == "HEAD" && !bytes.is_empty() {
                continue;
            }
            let host = Host::start(move |_| Reply::Raw(bytes.clone())).await;
            let ran = Bench::http(&host.url, method, "/x").run().await;
            assert_eq!(ran.outcome.end, end, "{method}: {}", ran.message());
            assert_eq!(host.asked().len(), 1, "never sent twice");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_stopped_says_what_is_known() {
    for (method, reason, end) in [
        ("POST", StopReason::TimedOut, AttemptEnd::Unknown),
        ("POST", StopReason::Killed, AttemptEnd::Unknown),
        ("GET", StopReason::TimedOut, AttemptEnd::TimedOut),
        ("GET", StopReason::Killed, AttemptEnd::Killed),
    ] {
        let host = Host::start(|_| Reply::Hang).await;
        let ran = Bench::http(&host.url, method, "/x").stop_when(reason, host.heard(1)).await;
        assert_eq!(ran.outcome.end, end, "{method} {reason:?}: {}", ran.message());
    }
    // Before it began nothing was sent, whatever the method.
    let host = Host::start(|_| Reply::Hang).await;
    let bench = Bench::http(&host.url, "POST", "/x");
    bench.stop.send_replace(Some(StopReason::Killed));
    assert_eq!(bench.run().await.outcome.end, AttemptEnd::Killed);
    assert!(host.asked().is_empty());
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_was_sent_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    // TLS is asked of somebody who hangs up; then nobody is there at all.
    let hangs_up = async { drop(listener.accept().await) };
    let https = format!("https://{address}");
    let (ran, ()) = tokio::join!(Bench::http(&https, "POST", "/x").run(), hangs_up);
    assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}", ran.message());
    assert!(ran.message().contains("cannot connect"), "{}", ran.message());
    drop(listener);
    let bench = Bench::http(&format!("http://{address}"), "POST", "/x/{token}");
    let ran = bench.param("token", IN, ParamType::Text, Some("geheim")).run().await;
    assert_eq!(ran.outcome.end, AttemptEnd::Failed, "{}", ran.message());
    assert!(ran.message().starts_with("POST core /x/{token}: cannot connect"), "{}", ran.message());
    assert!(!ran.message().contains("geheim"), "{}", ran.message());
}

#[tokio::test]
async fn only_registered_hosts_and_held_claims() {
    let host = Host::start(|_| Reply::text(200, "")).await;
    let mut bench = Bench::http(&host.url, "GET", "/x");
    call(&mut bench).host = "other".to_owned();
    assert_eq!(bench.run().await.message(), "host other is not registered; nothing was sent");
    let bench = Bench::http(&host.url, "GET", "/x");
    bench.claim.0.store(false, Ordering::SeqCst);
    assert!(bench.run().await.message().contains("another start"));
    let ran = Bench::http("https://u:geheim@127.0.0.1", "GET", "/x").run().await;
    assert!(ran.message().contains("holds a user or a password"), "{}", ran.message());
    assert!(!ran.message().contains("geheim"));
    assert!(host.asked().is_empty());
}

#[tokio::test]
async fn values_of_parameters_are_not_in_messages() {
    let host = Host::start(|_| Reply::text(500, "broken")).await;
    let bench = Bench::http(&host.url, "GET", "/x/{token}").param(
        "token",
        IN,
        ParamType::Text,
        Some("geheim"),
    );
    let ran = bench.run().await;
    assert!(ran.message().contains("GET core /x/{token} answered 500"), "{}", ran.message());
    assert!(!ran.message().contains("geheim") && !ran.text().contains("geheim"));
    let gone = Host::start(|_| Reply::Raw(Vec::new())).await;
    let bench = Bench::http(&gone.url, "POST", "/x/{token}").param(
        "token",
        IN,
        ParamType::Text,
        Some("geheim"),
    );
    let ran = bench.run().await;
    assert!(!ran.message().contains("geheim"), "{}", ran.message());
}

#[tokio::test]
async fn a_key_of_its_own_is_sent_and_no_other() {
    let host = Host::start(|_| Reply::text(204, "")).await;
    let mut bench = Bench::http(&host.url, "POST", "/x");
    bench.task.idem_key = "i/202407/月结/1".to_owned();
    let mut own = Bench::http(&host.url, "POST", "/x");
    let header = ("IDEMPOTENCY-Key".to_owned(), "{k}".to_owned());
    call(&mut own).headers = BTreeMap::from([header]);
    let own = own.param("k", ParamMode::In, ParamType::Text, Some("mine-7"));
    assert_eq!(bench.run().await.outcome.end, AttemptEnd::Success);
    assert_eq!(own.run().await.outcome.end, AttemptEnd::Success);
    let keys: Vec<String> = host
        .asked()
        .iter()
        .flat_map(|asked| asked.lines().filter(|l| l.to_lowercase().starts_with("idempotency")))
        .map(|line| line.split_once(": ").expect("a header").1.to_owned())
        .collect();
    assert_eq!(keys, ["i/202407/%E6%9C%88%E7%BB%93/1", "mine-7"]);
}
