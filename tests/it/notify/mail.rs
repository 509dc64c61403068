//! Mails, against a real server and into a folder.

use super::server::{Servers, carriers, login, open};
use super::{later, message, never};
use procession::notify::{
    Auth, Carriers, MailOptions, MailTransport, NotSent, NotifyOptions, SmtpOptions, Tls,
};
use serde_json::{Value, json};
use std::time::Duration;

const TO: &str = "ok@bank.example";

fn header<'a>(mail: &'a Value, name: &str) -> Vec<&'a str> {
    let headers = mail["headers"].as_array().expect("headers");
    let found = headers.iter().filter(|header| header[0] == name);
    found.map(|header| header[1].as_str().expect("text")).collect()
}

#[tokio::test]
async fn a_mail_arrives_as_it_was_written() {
    let servers = Servers::start();
    let carriers = carriers(servers.options("starttls", Tls::StartTls));
    let message = message();
    carriers.send_message(TO, &message).await.expect("sent");
    let mail = &servers.mails()[0];
    assert_eq!(mail["from"], "batch@bank.example");
    assert_eq!(mail["to"], json!([TO]));
    assert_eq!(mail["hello"], "batch-1.bank.example");
    assert_eq!((&mail["tls"], &mail["mechanism"]), (&json!(true), &json!("PLAIN")));
    assert_eq!(mail["faults"], json!([]));
    for (name, value) in [
        ("From", "月末批处理 <batch@bank.example>"),
        ("Reply-To", "ops@bank.example"),
        ("To", TO),
        ("Date", "Wed, 31 Jul 2024 18:00:00 +0000"),
        ("Message-ID", "<procession-17-ab12@host>"),
        ("Subject", "[Procession] 月末 202407：LOAD 执行失败"),
        ("Auto-Submitted", "auto-generated"),
        ("X-Procession-Event", "failed"),
        ("X-Procession-Group", "月末"),
        ("X-Procession-Batch", "202407"),
        ("X-Procession-Job", "LOAD"),
    ] {
        assert_eq!(header(mail, name), [value], "{name}");
    }
    let part = |kind: &str| mail["parts"][kind].as_str().expect("a part").replace("\r\n", "\n");
    assert_eq!(part("text/plain").trim_end(), message.text.trim_end());
    assert_eq!(part("text/html").trim_end(), message.html.trim_end());
    assert!(message.text.contains("\n.\n..two\n月末"), "lines that SMTP might take for its own");
}

#[tokio::test]
async fn every_way_to_log_in() {
    let servers = Servers::start();
    for (auth, password, mechanism) in [
        (Auth::Auto, "geheim", "PLAIN"),
        (Auth::Plain, "geheim", "PLAIN"),
        (Auth::Login, "geheim", "LOGIN"),
        (Auth::Xoauth2, "t0ken", "XOAUTH2"),
    ] {
        for (server, tls) in [("starttls", Tls::StartTls), ("tls", Tls::Implicit)] {
            let mut options = servers.options(server, tls);
            options.login = Some(login(password, auth));
            let sent = carriers(options).send_message(TO, &message()).await;
            assert_eq!(sent, Ok(()), "{auth:?} {tls:?}");
            let mail = servers.mails().pop().expect("a mail");
            assert_eq!((&mail["mechanism"], &mail["tls"]), (&json!(mechanism), &json!(true)));
        }
    }
}

#[tokio::test]
async fn a_wrong_password_parks_no_mail() {
    let servers = Servers::start();
    for auth in [Auth::Plain, Auth::Login, Auth::Xoauth2] {
        let mut options = servers.options("starttls", Tls::StartTls);
        options.login = Some(login("falsch", auth));
        let said = later(carriers(options).send_message(TO, &message()).await);
        assert!(said.contains("cannot log in to 127.0.0.1:"), "{said}");
        let hint =
            if auth == Auth::Xoauth2 { "token was not accepted" } else { "look at user and" };
        assert!(said.contains(hint) && !said.contains("falsch"), "{said}");
    }
    let mut options = servers.options("starttls", Tls::StartTls);
    options.login = None;
    let said = later(carriers(options).send_message(TO, &message()).await);
    assert!(said.contains("530"), "{said}");
    assert_eq!(servers.mails(), Vec::<Value>::new());
}

#[tokio::test]
async fn nothing_is_said_to_a_server_that_is_not_who_it_should_be() {
    let servers = Servers::start();
    type Change = fn(&mut SmtpOptions);
    let changes: [(Change, &str); 2] = [
        (|options| options.ca_file = None, "name that certificate in ca_file"),
        (|options| options.host = "localhost".to_owned(), "certificate is for another name"),
    ];
    for (change, hint) in changes {
        for (server, tls) in [("starttls", Tls::StartTls), ("tls", Tls::Implicit)] {
            let mut options = servers.options(server, tls);
            change(&mut options);
            let said = later(carriers(options).send_message(TO, &message()).await);
            assert!(said.contains(hint), "{tls:?}: {said}");
        }
    }
    assert_eq!(servers.mails(), Vec::<Value>::new());
}

#[tokio::test]
async fn nothing_is_said_in_clear() {
    let servers = Servers::start();
    let said =
        later(carriers(servers.options("plain", Tls::StartTls)).send_message(TO, &message()).await);
    assert!(said.contains("offers no STARTTLS, so nothing was sent"), "{said}");
    let said =
        later(carriers(servers.options("plain", Tls::Implicit)).send_message(TO, &message()).await);
    assert!(said.contains("say tls = \"starttls\""), "{said}");
    assert_eq!(servers.mails(), Vec::<Value>::new());
    carriers(servers.options("plain", Tls::None)).send_message(TO, &message()).await.expect("sent");
    assert_eq!(servers.mails()[0]["tls"], false);
}

#[tokio::test]
async fn what_replies_mean() {
    let servers = Servers::start();
    let carriers = carriers(servers.options("starttls", Tls::StartTls));
    for (code, is_passing) in [
        (421, true),
        (450, true),
        (451, true),
        (452, true),
        (530, true),
        (535, true),
        (501, false),
        (550, false),
        (552, false),
        (553, false),
        (554, false),
    ] {
        let sent = carriers.send_message(&format!("r{code}@bank.example"), &message()).await;
        let said = if is_passing { later(sent) } else { never(sent) };
        assert!(said.contains(&format!(": {code} answered as r{code} asked")), "{said}");
        // A refused mail does not spoil the next one.
        carriers.send_message(TO, &message()).await.expect("sent");
    }
    let said = never(carriers.send_message("not an address", &message()).await);
    assert!(said.contains("is no e-mail address"), "{said}");
    let said =
        never(carriers.send_message("ok@bank.example\r\nBcc: x@y.example", &message()).await);
    assert!(said.contains("is no e-mail address") && !said.contains('\n'), "{said}");
    // The server knows no SMTPUTF8.
    let said = never(carriers.send_message("月@bank.example", &message()).await);
    assert!(said.contains("(SMTPUTF8)"), "{said}");
}

#[tokio::test]
async fn a_server_that_wants_nothing_of_us_parks_no_mail() {
    let servers = Servers::start();
    let said =
        later(carriers(servers.options("refusing", Tls::None)).send_message(TO, &message()).await);
    assert!(said.contains("554 no service for you"), "{said}");
    let gone = SmtpOptions { port: Some(1), ..servers.options("plain", Tls::None) };
    let said = later(carriers(gone).send_message(TO, &message()).await);
    assert!(said.contains("cannot connect to 127.0.0.1:1: "), "{said}");
}

#[tokio::test]
async fn a_sender_that_the_server_does_not_take_parks_no_mail() {
    let servers = Servers::start();
    let mail = MailOptions {
        from: "notmine@bank.example".to_owned(),
        reply_to: None,
        transport: MailTransport::Smtp(servers.options("starttls", Tls::StartTls)),
    };
    let said = later(open(mail, Duration::from_secs(20)).send_message(TO, &message()).await);
    assert!(said.contains("553 Mail from must equal authorized user; look at from"), "{said}");
}

#[tokio::test]
async fn silence_is_cut() {
    let servers = Servers::start();
    let mail = |server| MailOptions {
        from: "batch@bank.example".to_owned(),
        reply_to: None,
        transport: MailTransport::Smtp(server),
    };
    let options = servers.options("starttls", Tls::StartTls);
    let carriers = open(mail(options), Duration::from_millis(1_500));
    let said = later(carriers.send_message("hang@bank.example", &message()).await);
    assert_eq!(said, "email: no answer within 1.5 s");
}

#[tokio::test]
async fn a_mail_that_may_have_arrived_goes_again_under_the_same_id() {
    let servers = Servers::start();
    let carriers = carriers(servers.options("starttls", Tls::StartTls));
    for _ in 0..2 {
        let said = later(carriers.send_message("dropdot@bank.example", &message()).await);
        assert!(said.contains("was lost before it had taken the mail"), "{said}");
    }
    let ids: Vec<Value> =
        servers.mails().iter().map(|mail| json!(header(mail, "Message-ID"))).collect();
    assert_eq!(ids, [json!(["<procession-17-ab12@host>"]), json!(["<procession-17-ab12@host>"])]);
}

#[tokio::test]
async fn a_connection_carries_several_mails_and_is_not_kept_too_long() {
    let servers = Servers::start();
    let carriers = carriers(servers.options("starttls", Tls::StartTls));
    let mut message = message();
    for _ in 0..3 {
        carriers.send_message(TO, &message).await.expect("sent");
    }
    message.now = message.now.plus_ms(60_000);
    carriers.send_message(TO, &message).await.expect("sent");
    let peers: Vec<Value> = servers.mails().iter().map(|mail| mail["peer"].clone()).collect();
    assert_eq!(peers[0], peers[2]);
    assert_ne!(peers[2], peers[3]);
}

#[tokio::test]
async fn nothing_from_a_job_becomes_a_header() {
    let servers = Servers::start();
    let carriers = carriers(servers.options("starttls", Tls::StartTls));
    let mut message = message();
    let evil = "X\r\nBcc: thief@evil.example\r\n\r\nbody";
    message.letter.topic.job = Some(evil.to_owned());
    message.letter.topic.group = Some(format!("月{evil}"));
    message.subject = evil.to_owned();
    carriers.send_message(TO, &message).await.expect("sent");
    let mail = &servers.mails()[0];
    assert_eq!(mail["to"], json!([TO]));
    assert_eq!(header(mail, "Bcc"), Vec::<&str>::new());
    assert_eq!(header(mail, "X-Procession-Job"), ["X  Bcc: thief@evil.example    body"]);
    assert_eq!(header(mail, "Subject"), ["X  Bcc: thief@evil.example    body"]);
    assert_eq!(mail["faults"], json!([]));
}

#[tokio::test]
async fn a_folder_holds_a_mail_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mails = folder.path().join("mails");
    let mail = MailOptions {
        from: "batch@bank.example".to_owned(),
        reply_to: None,
        transport: MailTransport::File(mails.clone()),
    };
    let carriers = open(mail, Duration::from_secs(20));
    for _ in 0..2 {
        carriers.send_message(TO, &message()).await.expect("written");
    }
    let names: Vec<_> = std::fs::read_dir(&mails).expect("the folder").collect();
    assert_eq!(names.len(), 1);
    let text = std::fs::read_to_string(mails.join("procession-17-ab12@host.eml")).expect("a mail");
    assert!(text.contains("\r\nTo: ok@bank.example\r\n"), "{text}");
    std::fs::remove_dir_all(&mails).expect("removed");
    std::fs::write(&mails, "a file where the folder was").expect("written");
    let said = later(carriers.send_message(TO, &message()).await);
    assert!(said.contains("cannot write"), "{said}");
}

#[tokio::test]
async fn without_settings_a_mail_waits_and_a_channel_does_not() {
    let carriers = Carriers::from_options(&NotifyOptions::default()).expect("nothing");
    let sent = carriers.send_message(TO, &message()).await;
    let said = "no mail server is configured; add [notify.mail]".to_owned();
    assert_eq!(sent, Err(NotSent::NotConfigured(said)));
    let said = never(carriers.send_message("channel:fin", &message()).await);
    assert!(said.starts_with("no channel fin is configured; add [notify.channels.fin]"), "{said}");
    assert_eq!((carriers.kind_of(TO), carriers.kind_of("channel:fin")), (None, None));
}
