//! A source's URL may hold a password; what does not read as a URL must not show it anywhere.

use crate::util::bench::Bench;
use procession::domain::id::SourceName;
use procession::domain::job::SqlText;
use procession::domain::job::outcome::AttemptEnd;
use procession::domain::source::DataSource;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The password, or the part of it that a reader may take for something else.
const CANARY: &str = "hunter2";

/// URLs that do not read as what was meant, without their scheme.
const MALFORMED: &[&str] = &[
    "//root:hunter2/secret@127.0.0.1:3306/x",
    "//root:hunter2#secret@127.0.0.1:3306/x",
    "//root:hunter2?secret@127.0.0.1:3306/x",
    "//root:12/hunter2@127.0.0.1:3306/x",
    "//root:12#hunter2@127.0.0.1:3306/x",
    "//root:12?hunter2@127.0.0.1:3306/x",
    "//root:12?hunter2=hunter2@127.0.0.1:3306/x",
    "//root:12/hunter2%40127.0.0.1/x",
    "//root:hunter2@127.0.0.1:99999/x",
    "//root:hunter2@127.0.0.1:port/x",
    "//root:hunter2@127.0.0.1:3306:3307/x",
    "//root:hunter2@:3306/x",
    "//root:hunter2@/x",
    "//root:hunter2@[bad/x",
    "//root:hunter2@[::g]:1/x",
    "//root:hunter2@a b/x",
    "//root:hunter2@a<b/x",
    "//root:hunter2%40127.0.0.1/x",
    "//root%3Ahunter2%40127.0.0.1/x",
    "//root:hunter2",
    "///root:hunter2@127.0.0.1/x",
    "/root:hunter2@127.0.0.1/x",
    "root:hunter2@127.0.0.1/x",
    "hunter2",
    "",
];

/// Keeps what the program's own log would say.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<String>>);

impl Heard {
    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S: tracing::Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text.push_str(&format!("{field}={value:?} "));
        });
    }
}

/// The end of a SQL job on `url`, its message, and all that was logged.
async fn on(url: &str) -> (AttemptEnd, String, String) {
    let mut bench = Bench::new("SQL");
    bench.task.job.sql = Some(SqlText::Same("SELECT 1".to_owned()));
    bench.task.source = Some(DataSource {
        name: SourceName::parse("m").expect("name"),
        url: url.to_owned(),
        password_env: None,
        password_file: None,
        password_secret: None,
        read_password: Default::default(),
        max_parallel: None,
        procedures: BTreeMap::new(),
        access: procession::domain::access::group_access::GroupAccess::default(),
    });
    let heard = Heard::default();
    let _listening =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(heard.clone()));
    let ran = bench.run().await;
    (ran.outcome.end.clone(), ran.message().to_owned(), ran.text() + &heard.text())
}

#[tokio::test]
async fn a_malformed_url_never_shows_its_password() {
    for scheme in ["mysql", "mariadb", "postgres", "postgresql"] {
        for rest in MALFORMED {
            let url = format!("{scheme}:{rest}");
            let (end, message, log) = on(&url).await;
            assert_eq!(end, AttemptEnd::Failed, "{url}");
            assert!(!message.contains(CANARY) && !log.contains(CANARY), "{url}: {message}\n{log}");
            let kind = if scheme.starts_with('m') { "mysql" } else { "postgres" };
            let wanted = format!(
                "source 'm': configuration fault: {kind}: address not readable; percent-encode \
                 / # ? @ : in the password; nothing was run"
            );
            assert_eq!(message, wanted, "{url}");
        }
    }
}

#[tokio::test]
async fn a_readable_url_with_a_bad_option_is_a_configuration_fault_without_its_value() {
    for url in [
        "mysql://root:hunter2@127.0.0.1:1/x?ssl-mode=hunter2",
        "postgres://root:hunter2@127.0.0.1:1/x?sslmode=hunter2",
        "postgres://root@127.0.0.1:1/x?passwd=hunter2",
        "postgres://root:hunter2@127.0.0.1:1/x?port=hunter2",
        "mysql://root:hunter2%ff@127.0.0.1:1/x",
        "sqlite:/nowhere/x.db?mode=hunter2",
    ] {
        let (end, message, log) = on(url).await;
        assert_eq!(end, AttemptEnd::Failed, "{url}");
        assert!(!message.contains(CANARY) && !log.contains(CANARY), "{url}: {message}\n{log}");
        assert!(message.contains("configuration fault: "), "{url}: {message}");
        assert!(!message.contains("connection lost"), "{url}: {message}");
    }
    let (end, message, log) = on("mysql://root:hunter2@127.0.0.1:1/x").await;
    assert_eq!(end, AttemptEnd::Failed);
    assert!(message.starts_with("cannot connect to source 'm' at 127.0.0.1:1: "), "{message}");
    assert!(!message.contains(CANARY) && !log.contains(CANARY), "{message}\n{log}");
}
