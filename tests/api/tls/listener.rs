//! The listener of `serve`.

use super::{Authority, Place, Running, curl, eventually, free_port, procession, said, well};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PASSWORD: &str = "canary-tuN9-glaze-orbit";

/// What OpenSSL's client says of a listener.
fn openssl(place: &Place, args: &[&str]) -> String {
    let address = format!("127.0.0.1:{}", place.port);
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", &address, "-CAfile", "ca.pem"]).args(args);
    said(command.current_dir(place.path()).stdin(Stdio::null())).1
}

/// The certificate that a listener shows, in PEM form.
fn shown(place: &Place) -> String {
    let text = openssl(place, &[]);
    let from = text.find("-----BEGIN").unwrap_or_else(|| panic!("{text}"));
    let to = text.find("-----END CERTIFICATE-----").unwrap_or_else(|| panic!("{text}"));
    text[from..to].split_whitespace().collect()
}

fn bare(pem: &str) -> String {
    let to = pem.find("-----END CERTIFICATE-----").expect("a certificate");
    pem[..to].split_whitespace().collect()
}

#[test]
fn clients_of_others_reach_it_over_tls_and_by_nothing_older_than_1_2() {
    let place = Place::new("");
    let running = place.serve();
    assert!(running.log().contains(&format!("on {}", place.url("/"))), "{}", running.log());
    let (code, words) = curl(place.path(), &["-i", "--cacert", "ca.pem", &place.url("/")]);
    assert!(code == 0 && words.contains("strict-transport-security: max-age="), "{words}");
    // 60: the certificate of the authority is not one that the machine trusts.
    assert_eq!(curl(place.path(), &[&place.url("/healthz")]).0, 60);
    let (_, words) = curl(place.path(), &[&place.url("/healthz").replace("https:", "http:")]);
    assert!(words.contains("this address speaks TLS; write https:// here"), "{words}");
    for (version, is_spoken) in [("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)] {
        let words = openssl(&place, &[version, "-cipher", "ALL:@SECLEVEL=0"]);
        assert_eq!(!words.contains("Cipher is (NONE)"), is_spoken, "{version}: {words}");
    }
    let script = "import ssl, sys, urllib.request as r\n\
                  print(r.urlopen(sys.argv[1], context=ssl.create_default_context(cafile='ca.pem')).status)";
    let mut python = Command::new("python3");
    python.args(["-c", script, &place.url("/healthz")]).current_dir(place.path());
    assert_eq!(said(&mut python), (0, "200\n".to_owned()));
    assert!(well(place.path(), &["health", "--ready"]).starts_with("ok"), "asked over TLS");
}

/// A user who may do everything, with a token in the file `token`.
fn administrator(place: &Place) {
    let mut add = procession(place.path(), &["user", "add", "ann", "--role", "admin"]);
    let (code, words) = said(add.env("PROCESSION_USER_PASSWORD", PASSWORD));
    assert_eq!(code, 0, "{words}");
    let args = ["user", "token", "ann", "--name", "t", "--permission", "view", "--days", "1"];
    let made = procession(place.path(), &args).output().expect("a token");
    std::fs::write(place.path().join("token"), made.stdout).expect("file");
}

#[test]
fn the_session_is_for_tls_alone_and_the_command_line_knows_an_authority() {
    let place = Place::new("");
    let _running = place.serve();
    administrator(&place);
    let body = format!("{{\"name\": \"ann\", \"password\": \"{PASSWORD}\"}}");
    let url = place.url("/api/v1/session");
    let login =
        ["-i", "--cacert", "ca.pem", "-H", "content-type: application/json", "-d", &body, &url];
    let (code, words) = curl(place.path(), &login);
    assert!(code == 0 && words.contains("set-cookie: __Host-procession="), "{words}");
    assert!(words.contains("; Secure"), "{words}");
    let server = place.url("");
    let list = ["--server", &server, "--token-file", "token", "node", "list", "--json"];
    let (code, words) = said(&mut procession(place.path(), &list));
    assert!(code == 3 && words.contains("UnknownIssuer"), "{words}");
    assert!(words.contains("name the file of its authority with --tls-ca"), "{words}");
    let nodes = well(place.path(), &[&list[..], &["--tls-ca", "ca.pem"]].concat());
    assert!(nodes.contains(&server), "a node says its address with https: {nodes}");
    let (code, words) =
        said(&mut procession(place.path(), &[&list[..], &["--tls-ca", "none.pem"]].concat()));
    assert!(code == 2 && words.contains("--tls-ca none.pem: "), "{words}");
}

#[test]
fn a_new_certificate_is_shown_without_a_restart_and_a_broken_one_is_not() {
    let place = Place::new("");
    let running = place.serve();
    let first = shown(&place);
    // The key alone, as when files are replaced one after the other.
    place.authority.issue(place.path(), "second");
    let (server, second) = (place.path().join("server.key"), place.path().join("second.key"));
    std::fs::copy(&second, &server).expect("replaced");
    running.waits_for(
        "the listener keeps the certificate of before: http.tls_key server.key: it is not",
    );
    assert_eq!(shown(&place), first);
    let next = std::fs::read_to_string(place.path().join("second.pem")).expect("PEM");
    std::fs::write(place.path().join("server.pem"), &next).expect("replaced");
    eventually(|| match shown(&place) {
        seen if seen == bare(&next) => Ok(()),
        _ => Err(running.log()),
    });
    assert!(well(place.path(), &["health"]).starts_with("ok"));
}

#[test]
fn files_that_cannot_be_used_are_named_with_setting_and_fix() {
    let place = Place::new("");
    Authority::new().issue(place.path(), "other");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(place.path().join("encrypted.key"), encrypted).expect("file");
    std::fs::write(place.path().join("empty.pem"), "").expect("file");
    for (settings, words) in [
        ("tls_cert = 'none.pem'\ntls_key = 'server.key'", "http.tls_cert none.pem: No such file"),
        ("tls_cert = 'empty.pem'\ntls_key = 'server.key'", "it holds no certificate in PEM form"),
        (
            "tls_cert = 'server.pem'\ntls_key = 'server.pem'",
            "it is not the file of the certificate",
        ),
        ("tls_cert = 'server.pem'\ntls_key = 'encrypted.key'", "the key has a passphrase"),
        (
            "tls_cert = 'server.pem'\ntls_key = 'other.key'",
            "it is not the key of the first certificate",
        ),
        (
            "tls_cert = 'server.pem'\ntls_key = 'server.key'\ntls_client_ca = 'empty.pem'",
            "http.tls_client_ca empty.pem: it holds no certificate",
        ),
    ] {
        place.settings(settings);
        let (code, text) = said(&mut procession(place.path(), &["serve"]));
        assert!(code == 2 && text.contains(words), "{settings}: {code} {text}");
        assert!(!text.contains("AAAA"), "{text}");
    }
}

#[test]
fn a_key_that_others_may_read_and_a_listener_in_clear_are_warned_of() {
    let place = Place::new("");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(place.path().join("server.key"), mode).expect("mode");
    let running = place.serve();
    let warned = "others may use server.key, the private key of the listener (mode 640)";
    assert!(running.log().contains(warned), "{}", running.log());
    assert!(!running.log().contains("without TLS"), "{}", running.log());
    drop(running);
    let listen = format!("[http]\nlisten = '0.0.0.0:{}'\n", free_port());
    std::fs::write(place.path().join("procession.toml"), listen).expect("settings");
    let running = Running::start(place.path(), &["serve"], "console, API");
    running.waits_for("can be reached from other machines without TLS");
}

/// Who connects and never ends a handshake has the time of a head, and makes room for others.
#[expect(clippy::disallowed_methods, reason = "how long a real process may take is real time")]
#[test]
fn handshakes_that_never_end_keep_nobody_out() {
    let place = Place::new("[limits]\nconnections_without_login = 8\nheader_timeout_sec = 4");
    let _running = place.serve();
    let connect = || TcpStream::connect(("127.0.0.1", place.port)).expect("a connection");
    // Half of a record: its head says 64 bytes, and four come.
    let halves: Vec<TcpStream> = (0..24)
        .map(|_| {
            let mut stream = connect();
            stream.write_all(&[22, 3, 1, 0, 64, 1, 0, 0, 60]).expect("sent");
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(curl(place.path(), &["--cacert", "ca.pem", &place.url("/healthz")]).0, 0);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let mut last = halves.into_iter().next_back().expect("a connection");
    last.set_read_timeout(Some(Duration::from_secs(12))).expect("a limit");
    let mut rest = Vec::new();
    let ended = last.read_to_end(&mut rest);
    // Closed, or reset because bytes lay unread.
    let is_open = ended.as_ref().is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
    });
    assert!(!is_open, "{ended:?} after {:?}", begun.elapsed());
}

#[test]
fn with_all_nobody_comes_in_without_a_certificate_and_probes_are_apart() {
    let probes = free_port();
    let place = Place::new(&format!(
        "tls_client_ca = 'ca.pem'\ntls_client_for = 'all'\nprobes = '127.0.0.1:{probes}'"
    ));
    place.authority.issue(place.path(), "client");
    Authority::new().issue(place.path(), "stranger");
    let _running = Running::start(place.path(), &["serve"], "console, API");
    let url = place.url("/healthz");
    let probe = format!("http://127.0.0.1:{probes}/readyz");
    eventually(|| match curl(place.path(), &[&probe]) {
        (0, words) if words.starts_with("ok") => Ok(()),
        (_, words) => Err(words),
    });
    let with = |name: &str| {
        let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
        curl(place.path(), &["--cacert", "ca.pem", "--cert", &cert, "--key", &key, &url])
    };
    assert_eq!(with("client").0, 0);
    assert_ne!(with("stranger").0, 0);
    assert_ne!(curl(place.path(), &["--cacert", "ca.pem", &url]).0, 0);
    assert!(well(place.path(), &["health"]).starts_with("ok"), "it asks the probes");
}

#[test]
fn a_revoked_certificate_of_a_client_is_refused_without_a_restart() {
    let place = Place::new(
        "tls_client_ca = 'ca.pem'\ntls_client_for = 'all'\ntls_client_crl = 'revoked.pem'",
    );
    let authority = &place.authority;
    authority.issue_with(place.path(), "good", |params| params.serial_number = Some(7_u64.into()));
    authority.issue_with(place.path(), "bad", |params| params.serial_number = Some(8_u64.into()));
    authority.revoke(place.path(), "revoked", &[]);
    let running = place.start();
    let url = place.url("/healthz");
    let ask = |name: &str| {
        let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
        curl(place.path(), &["--cacert", "ca.pem", "--cert", &cert, "--key", &key, &url]).0
    };
    eventually(|| if ask("good") == 0 { Ok(()) } else { Err(running.log()) });
    assert_eq!(ask("bad"), 0, "{}", running.log());
    authority.revoke(place.path(), "revoked", &[8]);
    eventually(|| if ask("bad") != 0 { Ok(()) } else { Err(running.log()) });
    assert_eq!(ask("good"), 0, "{}", running.log());
    // A file that is no list changes nothing.
    std::fs::write(place.path().join("revoked.pem"), "nothing").expect("file");
    running.waits_for("it holds no revocation list in PEM form");
    assert_ne!(ask("bad"), 0);
}

#[test]
fn a_certificate_that_ends_soon_is_told_of() {
    let place = Place::new("");
    // Of 1975 to 2096 by default; this one has ended.
    place.authority.issue_with(place.path(), "server", |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    let running = place.start();
    running.waits_for("the certificate of http.tls_cert ended");
    let ask = |path: &str| curl(place.path(), &["-k", &place.url(path)]).1;
    eventually(|| match ask("/readyz") {
        text if text.starts_with("ok, degraded") => Ok(()),
        text => Err(text),
    });
    let text = ask("/readyz");
    assert!(text.contains("the certificate of http.tls_cert ended"), "{text}");
    assert!(!text.contains("CN="), "no name: {text}");
    let meters = ask("/metrics");
    let line =
        "procession_certificate_expiry_timestamp_seconds{setting=\"http.tls_cert\"} 1577836800";
    assert!(meters.contains(line), "{meters}");
}
