//! From the event to the mail server: what the engine writes, the sender sends, with a clock set by hand.

use super::server::{Servers, carriers};
use crate::flow::{Bench, defs, finish, on_each_database, order};
use chrono::NaiveTime;
use procession::domain::action::rerun::UnknownJobs;
use procession::domain::batch::BatchOrder;
use procession::domain::id::NodeId;
use procession::domain::notification::outbox_schedule::Snooze;
use procession::domain::source::DialectName;
use procession::domain::text::lang::Lang;
use procession::engine::outbox::{DeliverySummary, OutboxOptions, Sender};
use procession::notify::{Carriers, MessageTemplates, SmtpOptions, Tls};
use procession::store::node::{self, NodeRow, Offer};
use procession::store::outbox::{self, NotificationRow, OutboxFilter};
use std::collections::{BTreeMap, BTreeSet};

async fn on<F, Fut>(dialect: DialectName, test: F)
where
    F: FnOnce(Bench) -> Fut,
    Fut: Future<Output = ()>,
{
    crate::flow::on(dialect, test).await;
}

on_each_database! {
    every_answer_of_a_server_has_its_end
    two_processes_send_each_letter_once
    a_server_that_is_away_costs_nobody_anything
    what_waits_for_its_batch_goes_out_as_one
    too_many_at_once_go_out_as_one
    repeats_wait_and_go_out_together
    whoever_was_told_of_a_failure_hears_that_it_is_mended
    nothing_is_told_while_it_is_snoozed
    operators_hear_once_of_a_process_that_died
    letters_wait_until_a_mail_server_is_set_up
    whoever_was_not_told_of_a_failure_hears_of_no_recovery
    owners_of_the_same_code_hear_each_of_their_own
}

fn options() -> OutboxOptions {
    OutboxOptions {
        connections: 2,
        timeout_ms: 20_000,
        give_up_ms: 3_600_000,
        mute_ms: 0,
        sum_up_over: 10,
        digest_at: NaiveTime::from_hms_opt(8, 0, 0).expect("a time"),
        zone: chrono_tz::UTC,
        lang: Lang::En,
        langs: BTreeMap::from([("@bank.cn".to_owned(), Lang::Zh)]),
        id_host: "bank.example".to_owned(),
        log_lines: 5,
        links: vec!["https://p.example/{group}/{batch_no}".to_owned()],
        operators: vec!["noc@bank.example".to_owned()],
    }
}

fn sender_to(bench: &Bench, server: SmtpOptions, name: &str) -> Sender {
    let (db, clock) = (bench.db.clone(), bench.clock.clone());
    let me = NodeId(name.to_owned());
    Sender::new(db, clock, me, carriers(server), MessageTemplates::built_in(), options())
}

fn sender(bench: &Bench, servers: &Servers) -> Sender {
    sender_to(bench, servers.options("starttls", Tls::StartTls), "sender-1")
}

async fn beat(bench: &Bench, sender: &mut Sender) -> (usize, usize, usize) {
    let DeliverySummary { sent, again, failed, .. } =
        sender.send_due(bench.clock.now()).await.expect("beat");
    (sent, again, failed)
}

async fn rows(bench: &Bench) -> Vec<NotificationRow> {
    let mut tx = bench.db.begin_read().await.expect("read");
    let mut rows =
        outbox::list_notifications(&mut tx, &OutboxFilter::default(), 1_000).await.expect("list");
    rows.reverse();
    rows
}

async fn states(bench: &Bench) -> Vec<String> {
    let word =
        |row: NotificationRow| format!("{} {} {}", row.recipient, row.event, row.status.as_str());
    rows(bench).await.into_iter().map(word).collect()
}

fn subjects(servers: &Servers) -> Vec<String> {
    let header = |mail: &serde_json::Value| {
        let headers = mail["headers"].as_array().expect("headers").clone();
        let found = headers.into_iter().find(|h| h[0] == "Subject").expect("a subject");
        found[1].as_str().expect("text").to_owned()
    };
    let mut all: Vec<String> = servers.mails().iter().map(header).collect();
    all.sort();
    all
}

fn ids(servers: &Servers, to: &str) -> Vec<String> {
    let mails = servers.mails().into_iter().filter(|mail| mail["to"][0] == to);
    let id = |mail: serde_json::Value| {
        let headers = mail["headers"].as_array().expect("headers").clone();
        let found = headers.into_iter().find(|h| h[0] == "Message-ID").expect("an id");
        found[1].as_str().expect("text").to_owned()
    };
    mails.map(id).collect()
}

/// One failing job, told to these.
fn failing(to: &str) -> String {
    format!(
        "
groups: {{ g: {{ notify_email: [{to}] }} }}
jobs:
  BAD: {{ type: SCRIPT, interpreter: sh, script: 'echo about to fail; exit 3' }}
  BELOW: {{ type: NOOP, depends_on: [BAD] }}
"
    )
}

async fn run(bench: &Bench, yaml: &str) {
    let mut process = bench.process().await;
    process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    finish(bench, &mut process).await;
}

/// Changes of status whose `notify_status` is NOTIFIED, as `STATUS#attempt`.
async fn notified(bench: &Bench) -> Vec<String> {
    let sql = "SELECT status, attempt FROM job_execution_logs WHERE notify_status = 'NOTIFIED' \
               ORDER BY log_id";
    let mut tx = bench.db.begin_read().await.expect("read");
    let rows = tx.fetch_all(sql, &[]).await.expect("rows");
    let word = |row: &procession::db::Row| {
        format!(
            "{}#{}",
            row.get_text("status").expect("text"),
            row.get_int("attempt").expect("int")
        )
    };
    rows.iter().map(word).collect()
}

async fn every_answer_of_a_server_has_its_end(bench: Bench) {
    let servers = Servers::start();
    let to = "ok@bank.cn, r550@bank.example, r451@bank.example, dropdot@bank.example, channel:none";
    run(&bench, &failing(to)).await;
    let mut sender = sender(&bench, &servers);
    assert_eq!(beat(&bench, &mut sender).await, (1, 2, 2));
    let now = bench.clock.now();
    let all = rows(&bench).await;
    let of = |to: &str| all.iter().find(|row| row.recipient == to).expect("a row").clone();
    let sent = of("ok@bank.cn");
    assert_eq!((sent.status.as_str(), sent.sent), ("sent", Some(now)));
    assert_eq!(
        sent.subject, "[Procession] BAD 执行失败，批次 202407（g）",
        "in the language of its domain"
    );
    assert!(
        sent.body.contains("about to fail") && sent.body.contains("https://p.example/g/202407")
    );
    assert!(sent.body.contains("BELOW"), "{}", sent.body);
    let refused = of("r550@bank.example");
    assert!(refused.reason.as_deref().is_some_and(|why| why.contains("550")), "{refused:?}");
    assert_eq!((refused.status.as_str(), refused.next_at), ("failed", None));
    let nowhere = of("channel:none");
    assert!(nowhere.reason.as_deref().is_some_and(|why| why.contains("[notify.channels.none]")));
    for to in ["r451@bank.example", "dropdot@bank.example"] {
        let row = of(to);
        assert_eq!(
            (row.status.as_str(), row.next_at, row.failed),
            ("pending", Some(now.plus_ms(30_000)), 1)
        );
    }
    // Before its time nothing is tried; then both are, and later still, until they are too old.
    bench.clock.advance(29_999);
    assert_eq!(beat(&bench, &mut sender).await, (0, 0, 0));
    bench.clock.advance(1);
    assert_eq!(beat(&bench, &mut sender).await, (0, 2, 0));
    let mut tries = 2;
    while rows(&bench).await.iter().any(|row| row.status.as_str() == "pending") {
        let next = rows(&bench).await.iter().filter_map(|row| row.next_at).min().expect("a time");
        bench.clock.advance(next.since(bench.clock.now()));
        beat(&bench, &mut sender).await;
        tries += 1;
        assert!(tries < 20, "it ends");
    }
    assert_eq!(rows(&bench).await[2].failed, tries);
    let dropped = ids(&servers, "dropdot@bank.example");
    assert_eq!(dropped.len(), usize::try_from(tries).expect("few"), "the server took each");
    assert_eq!(dropped.iter().collect::<BTreeSet<_>>().len(), 1, "one id for all: {dropped:?}");
    assert_eq!(ids(&servers, "ok@bank.cn").len(), 1);
}

async fn two_processes_send_each_letter_once(bench: Bench) {
    let servers = Servers::start();
    let to: Vec<String> = (0..40).map(|n| format!("ok{n}@bank.example")).collect();
    run(&bench, &failing(&to.join(", "))).await;
    let mut one = sender(&bench, &servers);
    let mut two = sender_to(&bench, servers.options("starttls", Tls::StartTls), "sender-2");
    while states(&bench).await.iter().any(|row| row.ends_with("pending")) {
        let now = bench.clock.now();
        let (a, b) = tokio::join!(one.send_due(now), two.send_due(now));
        // On SQLite one may find the file locked; its rows are the other's or the next beat's.
        let sent = [a, b].into_iter().filter_map(Result::ok).map(|sent| sent.sent).sum::<usize>();
        assert!(sent > 0);
    }
    let all = servers.mails();
    let distinct: BTreeSet<&str> = all.iter().filter_map(|mail| mail["to"][0].as_str()).collect();
    assert_eq!((all.len(), distinct.len()), (40, 40));
}

async fn a_server_that_is_away_costs_nobody_anything(bench: Bench) {
    let nowhere = SmtpOptions { port: Some(1), ..SmtpOptions::new("127.0.0.1") };
    let mut sender = sender_to(&bench, SmtpOptions { tls: Tls::Implicit, ..nowhere }, "sender-1");
    run(&bench, &failing("a@bank.example")).await;
    assert_eq!(beat(&bench, &mut sender).await, (0, 1, 0));
    assert!(notified(&bench).await.is_empty(), "a mail that waits has notified nobody");
    // The batch ended as it does without any mail, and its letter waits.
    let row = rows(&bench).await.remove(0);
    assert!(row.reason.as_deref().is_some_and(|why| why.contains("refused")), "{row:?}");
    let servers = Servers::start();
    let mut back = sender_to(&bench, servers.options("starttls", Tls::StartTls), "sender-1");
    bench.clock.advance(30_000);
    assert_eq!(beat(&bench, &mut back).await, (1, 0, 0));
    assert_eq!(rows(&bench).await[0].reason, None);
    assert_eq!(notified(&bench).await, ["FAILED#1"]);
}

async fn what_waits_for_its_batch_goes_out_as_one(bench: Bench) {
    let servers = Servers::start();
    let mut sender = sender(&bench, &servers);
    let yaml = "
groups: { g: { notify_email: [a@bank.example], notify: { failed: batch, retried: batch, batch_failed: now } } }
defaults: { type: SCRIPT, interpreter: sh }
jobs:
  BAD: { script: 'exit 3', retry_count: 1, retry_delay_sec: 60 }
  LATER: { script: 'exit 4', depends_on: [BAD], trigger_rule: all_done }
";
    let mut process = bench.process().await;
    process.open_batches(&defs(yaml), &order(), "test").await.expect("open");
    process.run_tick().await.expect("beat");
    process.wait_for_report().await;
    process.run_tick().await.expect("beat");
    assert_eq!(states(&bench).await, ["a@bank.example retried pending"]);
    assert_eq!(beat(&bench, &mut sender).await, (0, 0, 0), "its batch runs");
    finish(&bench, &mut process).await;
    assert!(notified(&bench).await.is_empty());
    assert_eq!(beat(&bench, &mut sender).await, (2, 0, 0));
    let gone = ["RETRY_WAIT#1", "FAILED#2", "FAILED#1"];
    assert_eq!(notified(&bench).await, gone, "a digest notifies of all that went out with it");
    assert_eq!(
        subjects(&servers),
        [
            "[Procession] 3 notices about batch 202407 (g): failed 2, retried 1",
            "[Procession] batch 202407 (g) failed"
        ]
    );
}

async fn too_many_at_once_go_out_as_one(bench: Bench) {
    let servers = Servers::start();
    let mut sender = sender(&bench, &servers);
    let mut yaml = "groups: { g: { notify_email: [a@bank.example] } }\njobs:\n".to_owned();
    for n in 0..12 {
        yaml.push_str(&format!("  J{n}: {{ type: SCRIPT, interpreter: sh, script: 'exit 1' }}\n"));
    }
    run(&bench, &yaml).await;
    assert_eq!(rows(&bench).await.len(), 12);
    assert_eq!(beat(&bench, &mut sender).await, (1, 0, 0));
    let subject = "[Procession] 12 notices about batch 202407 (g): failed 12";
    assert_eq!(subjects(&servers), [subject]);
    assert_eq!(states(&bench).await[12], "a@bank.example digest sent");
    assert!(states(&bench).await[..12].iter().all(|row| row.ends_with("failed digest")));
}

async fn repeats_wait_and_go_out_together(bench: Bench) {
    let servers = Servers::start();
    let server = servers.options("starttls", Tls::StartTls);
    let (db, clock) = (bench.db.clone(), bench.clock.clone());
    let me = NodeId("s".to_owned());
    let options = OutboxOptions { mute_ms: 3_600_000, ..options() };
    let mut sender =
        Sender::new(db, clock, me, carriers(server), MessageTemplates::built_in(), options);
    let first = bench.clock.now();
    for number in ["1", "2", "3"] {
        let order = BatchOrder::parse(&format!(r#"{{"batchNo":"{number}"}}"#)).expect("order");
        let mut process = bench.process().await;
        process
            .open_batches(&defs(&failing("a@bank.example")), &order, "test")
            .await
            .expect("open");
        finish(&bench, &mut process).await;
        beat(&bench, &mut sender).await;
        bench.clock.advance(60_000);
    }
    assert_eq!(subjects(&servers), ["[Procession] BAD failed in batch 1 (g)"]);
    assert_eq!(rows(&bench).await[2].next_at, Some(first.plus_ms(3_600_000)));
    bench.clock.advance(first.plus_ms(3_600_000).since(bench.clock.now()));
    assert_eq!(beat(&bench, &mut sender).await, (1, 0, 0));
    assert_eq!(subjects(&servers)[0], "[Procession] 2 notices about group g: failed 2");
    assert!(states(&bench).await.iter().all(|row| !row.ends_with("pending")));
}

async fn whoever_was_told_of_a_failure_hears_that_it_is_mended(bench: Bench) {
    let servers = Servers::start();
    let mut sender = sender(&bench, &servers);
    let folder = tempfile::tempdir().expect("folder");
    let flag = folder.path().join("ok").display().to_string();
    let yaml = format!(
        "
groups: {{ g: {{ notify_email: [a@bank.example] }} }}
jobs:
  BAD: {{ type: SCRIPT, interpreter: sh, script: 'test -e {flag}', notify_email: [job@bank.example] }}
  FINE: {{ type: NOOP }}
"
    );
    run(&bench, &yaml).await;
    assert_eq!(beat(&bench, &mut sender).await, (2, 0, 0));
    std::fs::write(&flag, "").expect("the cure");
    let there = bench.batch("g").await;
    let mut process = bench.process().await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut process).await;
    let row = rows(&bench).await.remove(0);
    assert!(!row.body.contains("Usually"), "it has no past: {}", row.body);
    assert_eq!(
        states(&bench).await[2..],
        [
            "a@bank.example recovered pending",
            "job@bank.example recovered pending",
            "a@bank.example batch_recovered pending",
            "job@bank.example batch_recovered pending"
        ]
    );
    assert_eq!(beat(&bench, &mut sender).await, (4, 0, 0));
    let recovered = rows(&bench).await.remove(2);
    assert!(recovered.body.contains("Usually: "), "{}", recovered.body);
}

async fn nothing_is_told_while_it_is_snoozed(bench: Bench) {
    let servers = Servers::start();
    let mut sender = sender(&bench, &servers);
    let until = bench.clock.now().plus_ms(3_600_000);
    let wish = Snooze {
        id: 0,
        group: "g".to_owned(),
        job: Some("BAD".to_owned()),
        event: None,
        until,
        by: "li".to_owned(),
        reason: "known since Monday".to_owned(),
    };
    let mut tx = bench.db.begin().await.expect("begin");
    outbox::snooze(&mut tx, &wish, bench.clock.now()).await.expect("snooze");
    tx.commit().await.expect("commit");
    run(&bench, &failing("a@bank.example")).await;
    assert_eq!(beat(&bench, &mut sender).await, (0, 0, 0));
    let row = rows(&bench).await.remove(0);
    assert_eq!((row.next_at, row.failed), (Some(until), 0));
    assert_eq!(row.reason.as_deref(), Some("snoozed by li: known since Monday"));
    bench.clock.advance(until.since(bench.clock.now()));
    assert_eq!(beat(&bench, &mut sender).await, (1, 0, 0), "told afterwards");
}

async fn letters_wait_until_a_mail_server_is_set_up(bench: Bench) {
    let none =
        Carriers::from_options(&procession::notify::NotifyOptions::default()).expect("nothing");
    let (db, clock) = (bench.db.clone(), bench.clock.clone());
    let me = NodeId("s".to_owned());
    let mut without = Sender::new(db, clock, me, none, MessageTemplates::built_in(), options());
    run(&bench, &failing("a@bank.example")).await;
    assert_eq!(beat(&bench, &mut without).await, (0, 1, 0));
    let row = rows(&bench).await.remove(0);
    assert!(row.reason.as_deref().is_some_and(|why| why.contains("[notify.mail]")), "{row:?}");
    assert_eq!((row.status.as_str(), row.failed), ("pending", 0));
    without.begin().await.expect("nothing is set up still");
    assert_eq!(beat(&bench, &mut without).await, (0, 0, 0));
    let servers = Servers::start();
    let mut with = sender(&bench, &servers);
    with.begin().await.expect("mail is set up");
    assert_eq!(beat(&bench, &mut with).await, (1, 0, 0));
}

/// The failure waits for the day's digest, where it stands; that it is mended would be news of nothing.
async fn whoever_was_not_told_of_a_failure_hears_of_no_recovery(bench: Bench) {
    let folder = tempfile::tempdir().expect("folder");
    let flag = folder.path().join("ok").display().to_string();
    let yaml = format!(
        "
groups: {{ g: {{ notify_email: [a@bank.example], notify: {{ failed: day }} }} }}
jobs:
  BAD: {{ type: SCRIPT, interpreter: sh, script: 'test -e {flag}' }}
"
    );
    run(&bench, &yaml).await;
    std::fs::write(&flag, "").expect("the cure");
    let there = bench.batch("g").await;
    let mut process = bench.process().await;
    process.resume(&there, UnknownJobs::Leave, None).await.expect("resume");
    finish(&bench, &mut process).await;
    assert_eq!(states(&bench).await, ["a@bank.example failed pending"]);
}

async fn operators_hear_once_of_a_process_that_died(bench: Bench) {
    let servers = Servers::start();
    let (mut one, now) = (sender(&bench, &servers), bench.clock.now());
    let mut tx = bench.db.begin().await.expect("begin");
    for (name, roles, stays) in
        [("died", "scheduler", true), ("left", "scheduler", false), ("order", "", true)]
    {
        let id = NodeId(format!("id-{name}"));
        let row = NodeRow { node_id: id.clone(), host: "h".to_owned(), pid: 7, lease_until: now };
        let roles = roles.split(',').filter_map(procession::engine::NodeRole::parse).collect();
        let offer = Offer { name: name.to_owned(), roles, ..Offer::default() };
        node::register(&mut tx, &row, &offer, "0.1.0", now).await.expect("register");
        if !stays {
            node::set_draining(&mut tx, &id, node::Stay::Leaves).await.expect("leave");
        }
    }
    tx.commit().await.expect("commit");
    assert_eq!(beat(&bench, &mut one).await, (0, 0, 0), "it may come back yet");
    bench.clock.advance(10_000);
    assert_eq!(beat(&bench, &mut one).await, (1, 0, 0));
    bench.clock.advance(60_000);
    let mut two = sender_to(&bench, servers.options("starttls", Tls::StartTls), "sender-2");
    assert_eq!(beat(&bench, &mut two).await, (0, 0, 0), "once");
    assert_eq!(subjects(&servers), ["[Procession] process died has died or lost the database"]);
}

/// Two groups with one code and batch number: each owner gets the mail of his own job, in a message
/// with an id of its own.
async fn owners_of_the_same_code_hear_each_of_their_own(bench: Bench) {
    let servers = Servers::start();
    let group =
        |name: &str| failing(&format!("{name}@bank.example")).replace("g:", &format!("{name}:"));
    let [ann, bob] = ["ann", "bob"].map(group);
    for (name, yaml) in [("ann", &ann), ("bob", &bob)] {
        let yaml = format!("defaults: {{ group: {name} }}\n{yaml}");
        let mut process = bench.process().await;
        process.open_batches(&defs(&yaml), &order(), "test").await.expect("open");
        finish(&bench, &mut process).await;
    }
    let mut sender = sender(&bench, &servers);
    while beat(&bench, &mut sender).await.0 > 0 {}
    let of = |to: &str| -> Vec<(String, String, String)> {
        let mails = servers.mails().into_iter().filter(|mail| mail["to"][0] == to);
        let header = |mail: &serde_json::Value, name: &str| {
            let headers = mail["headers"].as_array().expect("headers").clone();
            let found = headers.into_iter().find(|h| h[0] == name);
            found.and_then(|h| h[1].as_str().map(str::to_owned)).unwrap_or_default()
        };
        let heads = ["X-Procession-Group", "X-Procession-Job", "Message-ID"];
        mails.map(|mail| heads.map(|name| header(&mail, name)).into()).collect()
    };
    let (to_ann, to_bob) = (of("ann@bank.example"), of("bob@bank.example"));
    for (name, told) in [("ann", &to_ann), ("bob", &to_bob)] {
        assert!(told.iter().any(|(_, job, _)| job == "BAD"), "{told:?}");
        assert!(told.iter().all(|(group, ..)| group == name), "{told:?}");
    }
    let all: BTreeSet<&String> = to_ann.iter().chain(&to_bob).map(|(.., id)| id).collect();
    assert_eq!(all.len(), to_ann.len() + to_bob.len(), "{all:?}");
    assert_eq!(to_ann.len(), to_bob.len());
}
