//! The way to a database server: who cannot show a certificate that can be verified is told nothing.

use crate::cli::said;
use crate::util::{Scratch, with_scratch};
use procession::domain::source::DialectName;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

/// The option that asks for a verified certificate, as it is put to the URL of a server on another machine.
fn verified(db: &Scratch) -> String {
    let option = match db.dialect {
        DialectName::Postgres => "sslmode=verify-full",
        DialectName::Mysql | DialectName::Sqlite => "ssl-mode=VERIFY_IDENTITY",
    };
    let joint = if db.url.contains('?') { '&' } else { '?' };
    format!("{}{joint}{option}", db.url)
}

/// None of the test servers has a certificate of an authority that this machine knows; some have no TLS at all.
fn is_refused(folder: &Path, url: &str) {
    let yaml = format!(
        "sources: {{s: {{url: '{url}'}}}}\njobs: {{A: {{type: SQL, source: s, sql: SELECT 1}}}}\n"
    );
    std::fs::write(folder.join("dag.yaml"), yaml).expect("file");
    let (code, _, error) = said(folder, &["check", "dag.yaml", "--connect"]);
    assert_eq!(code, 2, "it is the user's: {error}");
    for part in
        ["source s", "certificate that can be verified", "sslrootcert=FILE", "sslmode=require"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let args = ["run", "dag.yaml", "--batch-no", "1", "--no-connect", "-q"];
    let (code, _, _) = said(folder, &args);
    let (_, shown, _) = said(folder, &["--json", "batch", "show", "1"]);
    assert!(code == 1 && shown.contains("certificate that can be verified"), "{shown}");
    // `source.away_sec` is 30: waiting does not mend it.
    let batch: Value = serde_json::from_str(&shown).expect("JSON");
    let took_ms = batch["jobs"][0]["duration_ms"].as_i64().expect("a duration");
    assert!(took_ms < 15_000, "{took_ms} ms");
    let (code, _, error) = said(folder, &["--db", url, "migrate", "--status"]);
    assert!(code == 2 && error.contains("certificate that can be verified"), "{code} {error}");
}

async fn a_server_that_cannot_be_verified_is_refused_at_once(dialect: DialectName) {
    with_scratch(dialect, |db| async move {
        let (folder, url) = (tempfile::tempdir().expect("folder"), verified(&db));
        tokio::task::spawn_blocking(move || is_refused(folder.path(), &url))
            .await
            .expect("refused");
    })
    .await;
}

mod mariadb {
    #[tokio::test]
    async fn a_server_that_cannot_be_verified_is_refused_at_once() {
        super::a_server_that_cannot_be_verified_is_refused_at_once(super::DialectName::Mysql).await;
    }
}

mod postgres {
    #[tokio::test]
    async fn a_server_that_cannot_be_verified_is_refused_at_once() {
        super::a_server_that_cannot_be_verified_is_refused_at_once(super::DialectName::Postgres)
            .await;
    }
}

/// One that says it has no TLS, as somebody in between would, hears the question and nothing more: no user, no
/// password.
#[test]
fn a_false_server_hears_no_password() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("address").port();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        let mut question = [0; 8];
        stream.read_exact(&mut question).expect("the question for TLS");
        stream.write_all(b"N").expect("no");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the client goes");
        (question, rest)
    });
    let folder = tempfile::tempdir().expect("folder");
    let url = format!("postgres://eve:hunter22@127.0.0.1:{port}/d?sslmode=verify-full");
    let (code, _, error) = said(folder.path(), &["--db", &url, "migrate", "--status"]);
    assert!(code == 2 && error.contains("server does not support TLS"), "{code} {error}");
    let (question, rest) = heard.join().expect("heard");
    // Length 8 and the number 80877103, PostgreSQL's SSLRequest.
    assert_eq!(question, [0, 0, 0, 8, 4, 210, 22, 47]);
    assert_eq!(rest, Vec::<u8>::new());
}
