//! What is said when the metadata database cannot be opened: where, why and the cure, and never a
//! password.

use crate::util::relay::Relay;
use crate::util::{server, session, with_scratch};
use procession::app::{App, EmptyDatabase, is_users};
use procession::db::{ConnectSettings, Db, Error};
use procession::domain::source::DialectName;
use secrecy::SecretString;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

fn settings(url: &str) -> ConnectSettings {
    ConnectSettings {
        url: SecretString::from(url),
        password: None,
        rotated_password: None,
        max_connections: 1,
        connect_timeout: Duration::from_secs(5),
        statement_timeout: Duration::from_secs(30),
        may_create: true,
        keeping: procession::db::SessionTimeouts::Usual,
    }
}

async fn refused(settings: ConnectSettings) -> Error {
    Db::connect(&settings).await.expect_err("cannot connect")
}

/// What is said about a URL, which must be the user's to mend.
async fn settings_fault(url: &str) -> String {
    let error = refused(settings(url)).await;
    assert!(matches!(error, Error::Settings(_)), "{url}: {error:?}");
    error.to_string()
}

fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
}

// --- URLs ------------------------------------------------------------------------------------------

#[tokio::test]
async fn urls_that_cannot_be_meant_are_refused_without_their_secrets() {
    for url in [
        "mysql:root:geheim@h/x",
        "mysql://root:geheim#1@h/x",
        "mysql://root:12#geheim@h/x",
        "mysql://root:12?geheim@h/x",
        "mysql://root:12/geheim@h/x",
        "mysql://root:gehe/im@h/x",
        "postgres://root:12/geheim@h/x?sslmode=disable",
        "postgres:geheim",
        "postgres://h:geheim/x",
    ] {
        let said = settings_fault(url).await;
        assert_says(&said, &["percent-encode / # ? @ :", "PROCESSION_DB_PASSWORD"]);
        assert!(!said.contains("gehe") && !said.contains("12"), "{url}: {said}");
    }
    for url in ["root:geheim@h/x", "geheim", "geheim@h://x", "", "sqlserver:geheim"] {
        let said = settings_fault(url).await;
        assert_says(&said, &["does not begin with a scheme", "sqlite:FILE", "mysql://user@host"]);
        assert!(!said.contains("geheim"), "{url}: {said}");
    }
    let said = settings_fault("oracle://u:geheim@h/db").await;
    assert_says(&said, &["'oracle:'", "postgres://user@host:5432/db"]);
    assert!(!said.contains("geheim"), "{said}");
    for scheme in ["mysql", "postgres"] {
        let said = settings_fault(&format!("{scheme}://u:geheim@h/x?ssl-mode=perhaps")).await;
        assert_says(&said, &[&format!("{scheme}://u@h/x?"), "perhaps"]);
        assert!(!said.contains("geheim"), "{said}");
    }
    assert_says(&settings_fault("sqlite:").await, &["names no file", "sqlite:FILE"]);
}

#[tokio::test]
async fn a_server_url_names_a_database() {
    let cases = [
        ("mysql://root:geheim@h:3306/", "mysql://root@h:3306/procession"),
        ("mysql://root@h:3306", "mysql://root@h:3306/procession"),
        ("postgres://u@h?password=geheim&sslmode=disable", "u@h/procession?sslmode=disable"),
    ];
    for (url, write) in cases {
        let said = settings_fault(url).await;
        assert_says(&said, &["names no database", write]);
        assert!(!said.contains("geheim"), "{said}");
    }
}

// --- servers ---------------------------------------------------------------------------------------

#[tokio::test]
async fn nobody_at_the_address_is_said_at_once() {
    for scheme in ["mysql", "postgres"] {
        let connect = refused(settings(&format!("{scheme}://u:geheim@127.0.0.1:1/x")));
        let at_once = tokio::time::timeout(Duration::from_secs(3), connect);
        let error = at_once.await.expect("long before connect_timeout");
        assert!(matches!(error, Error::Lost(_)), "{error:?}");
        let said = error.to_string();
        assert_says(&said, &[&format!("{scheme}://u@127.0.0.1:1/x"), "onnection refused"]);
        assert!(!said.contains("geheim"), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("mysql://u:geheim@{}/x", silent.local_addr().expect("address"));
    let patience = Duration::from_millis(300);
    let error = refused(ConnectSettings { connect_timeout: patience, ..settings(&url) }).await;
    assert!(matches!(error, Error::Lost(_)), "{error:?}");
    let said = error.to_string();
    assert_says(&said, &[&url.replace(":geheim", ""), "no answer within 300ms"]);
}

/// A second handle of the file `number` of this process, sent to itself.
#[cfg(target_os = "linux")]
fn handle_of(number: i32) -> std::os::fd::OwnedFd {
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::os::fd::AsRawFd as _;
    let (here, there) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let (said, rights) = ([std::io::IoSlice::new(b"x")], [number]);
    let rights = [ControlMessage::ScmRights(&rights)];
    sendmsg::<()>(here.as_raw_fd(), &said, &rights, MsgFlags::empty(), None).expect("sent");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let (mut control, mut heard) = (RecvAncillaryBuffer::new(&mut space), [0]);
    let mut heard = [std::io::IoSliceMut::new(&mut heard)];
    recvmsg(&there, &mut heard, &mut control, RecvFlags::CMSG_CLOEXEC).expect("received");
    match control.drain().next() {
        Some(RecvAncillaryMessage::ScmRights(mut handles)) => handles.next().expect("a handle"),
        _ => panic!("no handle came"),
    }
}

/// Whether they wait with small packets, of the sockets of this process that lead to `port`.
#[cfg(target_os = "linux")]
fn delays(port: u16) -> Vec<bool> {
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")
        .expect("files")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let is_socket = |number: &i32| {
        let link = std::fs::read_link(format!("/proc/self/fd/{number}"));
        link.is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    let sockets = numbers.into_iter().filter(is_socket).map(handle_of);
    let sockets = sockets.map(std::net::TcpStream::from);
    let there = sockets.filter(|s| s.peer_addr().is_ok_and(|peer| peer.port() == port));
    there.map(|socket| !socket.nodelay().expect("the option")).collect()
}

/// The connections of the metadata database, the first of it and a later one, and a body's session.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_wait_for_no_delayed_acknowledgement() {
    for dialect in [DialectName::Mysql, DialectName::Postgres] {
        with_scratch(dialect, |scratch| async move {
            let at = url::Url::parse(&scratch.url).expect("a URL");
            let server = format!(
                "{}:{}",
                at.host_str().expect("a host"),
                at.port().unwrap_or(if dialect == DialectName::Mysql { 3306 } else { 5432 })
            );
            let relay = Relay::to(&server).await;
            let url = relay.url(&scratch.url);
            let port = url::Url::parse(&url).expect("a URL").port().expect("a port");
            let db = Db::connect(&ConnectSettings { max_connections: 2, ..settings(&url) }).await;
            let db = db.expect("connect");
            let (one, two) = (db.begin().await.expect("one"), db.begin().await.expect("two"));
            let body = session(&url).await;
            assert_eq!(delays(port), [false; 3], "{dialect:?}");
            drop((one, two, body));
            db.close().await;
        })
        .await;
    }
}

#[tokio::test]
async fn an_unknown_database_is_to_be_created() {
    for (dialect, name) in [
        (DialectName::Mysql, "`procession_nowhere`"),
        (DialectName::Postgres, "\"procession_nowhere\""),
    ] {
        let base = server(dialect);
        let said =
            settings_fault(&format!("{}/procession_nowhere", base.trim_end_matches('/'))).await;
        assert_says(&said, &[&base, &format!("create it: CREATE DATABASE {name}")]);
    }
}

#[tokio::test]
async fn a_wrong_password_or_user_is_to_be_mended() {
    let base = server(DialectName::Mysql);
    let wrong = Some(SecretString::from("geheim"));
    let url = format!("{}/mysql", base.trim_end_matches('/'));
    let error = refused(ConnectSettings { password: wrong, ..settings(&url) }).await;
    assert!(matches!(error, Error::Settings(_)), "{error:?}");
    assert_says(
        &error.to_string(),
        &[&base, "Access denied", "give the user's password (PROCESSION_DB_PASSWORD"],
    );
    assert!(!error.to_string().contains("geheim"), "{error}");
}

/// A PostgreSQL server that answers everybody with one error. The test server trusts everybody, so
/// a wrong password needs this one.
async fn says_no(code: &str, message: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("postgres://u@{}/x?sslmode=disable", listener.local_addr().expect("address"));
    let fields = format!("SFATAL\0VFATAL\0C{code}\0M{message}\0\0");
    let length = u32::try_from(fields.len() + 4).expect("short");
    let answer = [b"E".as_slice(), &length.to_be_bytes(), fields.as_bytes()].concat();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut asked = [0; 1_000];
            let _ = client.read(&mut asked).await;
            let _ = client.write_all(&answer).await;
        }
    });
    url
}

#[tokio::test]
async fn what_a_postgres_server_says_has_its_cure() {
    for (code, cure) in [
        ("28P01", "give the user's password (PROCESSION_DB_PASSWORD"),
        ("28000", "give the user's password (PROCESSION_DB_PASSWORD"),
        ("3D000", "CREATE DATABASE \"x\""),
        ("42501", "grant"),
    ] {
        let url = says_no(code, "go away").await;
        assert_says(&settings_fault(&url).await, &[&url, "go away", cure]);
    }
    let url = says_no("XX000", "go away").await;
    let error = refused(settings(&url)).await;
    assert!(matches!(error, Error::Database(_)), "{error:?}");
    assert_says(&error.to_string(), &[&url, "go away"]);
    // A full server is asked again as long as connecting may take.
    let url = says_no("53300", "too many clients").await;
    let patient = ConnectSettings { connect_timeout: Duration::from_millis(600), ..settings(&url) };
    let early = tokio::time::timeout(Duration::from_millis(300), refused(patient.clone())).await;
    assert!(early.is_err(), "given up after the first answer: {early:?}");
    let error = refused(patient).await;
    assert!(matches!(error, Error::Lost(_)), "{error:?}");
    assert_says(&error.to_string(), &[&url, "too many clients"]);
}

// --- SQLite files ----------------------------------------------------------------------------------

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("text.db"), "no database, but long enough to have a header".repeat(9))
        .expect("write");
    let full = format!("sqlite:{}", at("full.db"));
    Db::connect(&settings(&full)).await.expect("connect").close().await;
    std::fs::write(at("old.db"), "").expect("write");

    for (name, words) in [
        ("none/x.db", "there is no folder"),
        ("text.db/x.db", "there is no folder"),
        ("", "is a folder; name a file in it"),
        ("text.db", "is not a database"),
        ("old.db?mode=ro", "cannot be written"),
    ] {
        let said = settings_fault(&format!("sqlite:{}", at(name))).await;
        assert_says(&said, &[dir.path().to_str().expect("UTF-8"), words]);
    }
    let missing =
        ConnectSettings { may_create: false, ..settings(&format!("sqlite:{}", at("new.db"))) };
    let error = refused(missing.clone()).await;
    assert!(matches!(error, Error::Settings(_)), "{error:?}");
    assert_says(&error.to_string(), &["there is no database file", &at("new.db"), "--db"]);
    assert!(!Path::new(&at("new.db")).exists());
    // Not even when the URL asks for it.
    let asks = ConnectSettings {
        may_create: false,
        ..settings(&format!("sqlite:{}?mode=rwc", at("new.db")))
    };
    refused(asks).await;
    assert!(!Path::new(&at("new.db")).exists());
    let made = ConnectSettings { may_create: true, ..missing };
    Db::connect(&made).await.expect("made").close().await;
    assert!(Path::new(&at("new.db")).exists());
    let there = ConnectSettings { may_create: false, ..made };
    Db::connect(&there).await.expect("there").close().await;
}

#[tokio::test]
async fn only_verbs_that_write_make_a_file() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let empty = tempfile::NamedTempFile::new().expect("a settings file");
    let open = |name: &str, how: EmptyDatabase| {
        let mut config = crate::util::config(empty.path());
        let url = format!("sqlite:{}", dir.path().join(name).display());
        config.database.url = SecretString::from(url);
        App::open(config, how)
    };
    let error = open("x.db", EmptyDatabase::Refuse).await.err().expect("no file");
    assert!(is_users(&error), "{error:#}");
    assert_says(&format!("{error:#}"), &["x.db; run a batch or procession migrate first"]);
    assert_eq!(std::fs::read_dir(dir.path()).expect("list").count(), 0);
    for how in [EmptyDatabase::Prepare, EmptyDatabase::Accept] {
        let name = format!("{how:?}.db");
        open(&name, how).await.expect("made").db.close().await;
        assert!(dir.path().join(&name).exists(), "{name}");
    }
    open("Prepare.db", EmptyDatabase::Refuse).await.expect("is there by now").db.close().await;
}

#[test]
fn exit_codes_tell_the_users_faults_from_the_servers() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let list = |url: &str| {
        let done = Command::new(env!("CARGO_BIN_EXE_procession"))
            .args(["batch", "list", "--db", url])
            .current_dir(dir.path())
            .env_remove("PROCESSION_DB_PASSWORD")
            .output()
            .expect("run");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, said) = list("sqlite:procession.db");
    assert_eq!(code, Some(2), "{said}");
    let file = dir.path().join("procession.db");
    assert_says(&said, &[file.to_str().expect("UTF-8")]);
    assert!(!file.exists());
    let (code, said) = list("postgres://u@127.0.0.1:1/x");
    assert_eq!(code, Some(3), "{said}");
    assert_says(&said, &["postgres://u@127.0.0.1:1/x"]);
}

// --- silence ---------------------------------------------------------------------------------------

/// Keeps the targets of all events.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.lock().expect("lock").push(event.metadata().target().to_owned());
    }
}

/// A statement slower than the second from which sqlx would print its text as a warning.
async fn slow_is_silent(dialect: DialectName, sql: &'static str) {
    let heard = Heard::default();
    let subscriber = tracing_subscriber::registry().with(heard.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    with_scratch(dialect, |scratch| async move {
        let db = Db::connect(&settings(&scratch.url)).await.expect("connect");
        heard.0.lock().expect("lock").clear();
        let mut tx = db.begin().await.expect("begin");
        tx.fetch_all(sql, &[]).await.expect("sleep");
        tx.rollback().await.expect("rollback");
        let said = std::mem::take(&mut *heard.0.lock().expect("lock"));
        assert!(!said.iter().any(|target| target.contains("sqlx::query")), "{said:?}");
        db.close().await;
    })
    .await;
}

#[tokio::test]
async fn slow_statements_are_not_printed_on_mysql() {
    slow_is_silent(DialectName::Mysql, "SELECT SLEEP(1.1) AS s").await;
}

#[tokio::test]
async fn slow_statements_are_not_printed_on_postgres() {
    slow_is_silent(DialectName::Postgres, "SELECT 1 AS s FROM pg_sleep(1.1)").await;
}
