//! Changes that need a second person: nothing is done before somebody else approves, and then exactly what was approved,
//! once, with what its author may do at that moment.

use crate::api::server::{Answer, Server};
use crate::util::with_migrated_scratch;
use axum::http::Method;
use procession::domain::access::user::UserId;
use procession::domain::access::{Permission, Role};
use procession::domain::permission::four_eyes::{ChangeRequestId, ChangeVerdict};
use procession::domain::source::DialectName;
use procession::engine::operate::change_requests::{ChangeDecisionRequest, decide};
use procession::store::audit::Operator;
use procession::store::change_request::{self, ApprovedChange, ChangeTaken};
use serde_json::{Value, json};

const GROUPS: &str = "
groups: {gl: {type: monthly, notify_email: [gl@bank.example]}, ar: {type: monthly}}
jobs:
  - {code: A, group: gl, type: NOOP}
  - {code: B, group: gl, type: NOOP}
  - {code: X, group: ar, type: NOOP}
dependencies: [{job_code: B, depends_on: A}]
";

const SETTINGS: &str = "
[four_eyes.gl]
actions = ['force', 'edit']
notify = ['risk@bank.example']
[four_eyes.'*']
actions = ['edit']
break_glass = true
";

const ACTIONS: &str = "/groups/gl/batches/202407/actions";
const DAY_MS: i64 = 86_400_000;

/// Each named test on each database.
macro_rules! on_each_database {
    ($($name:ident)*) => {
        mod sqlite { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Sqlite, |scene| Box::pin(super::$name(scene))).await;
        })* }
        mod mariadb { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Mysql, |scene| Box::pin(super::$name(scene))).await;
        })* }
        mod postgres { $(#[tokio::test] async fn $name() {
            super::on(super::DialectName::Postgres, |scene| Box::pin(super::$name(scene))).await;
        })* }
    };
}

on_each_database! {
    a_forced_job_waits_for_somebody_else_and_is_skipped_once
    what_expires_is_refused_and_ends
    an_author_who_may_not_any_more_changes_nothing
    what_is_not_as_it_was_approved_is_not_done
    schedules_and_calendars_wait_as_well
    an_approved_change_outlives_its_process_and_is_done_once
    an_administrator_acts_alone_only_where_the_settings_say_so
}

/// A server with a batch of `gl`, and tokens.
struct Scene {
    server: Server,
    /// Of `gl`, with every right; asks for changes.
    ann: String,
    /// The same; approves.
    bob: String,
    /// Administers all groups.
    root: String,
}

async fn on(
    dialect: DialectName,
    test: impl FnOnce(Scene) -> std::pin::Pin<Box<dyn Future<Output = ()>>>,
) {
    with_migrated_scratch(dialect, async |scratch| {
        let server = Server::on(&scratch.url, SETTINGS).await;
        server.apply(GROUPS).await;
        let root = server.admin().await;
        let rights = [Permission::Force, Permission::Script];
        let mut tokens = Vec::new();
        for name in ["ann", "bob"] {
            let roles = [("gl", Role::Operator, &rights[..1]), ("gl", Role::Author, &rights[1..])];
            let user = server.user(name, &roles).await;
            tokens.push(server.token_of(&user, 9).await);
        }
        let (bob, ann) = (tokens.pop().expect("bob"), tokens.pop().expect("ann"));
        let order = json!({"group": "gl", "batch_no": "202407", "reason": "month end"});
        post(&server, "/batches", &root, order).await.is(200);
        test(Scene { server, ann, bob, root }).await;
    })
    .await;
}

async fn post(server: &Server, path: &str, token: &str, body: Value) -> Answer {
    server.send(Method::POST, path, token, &body).await
}

impl Scene {
    async fn post(&self, path: &str, token: &str, body: Value) -> Answer {
        post(&self.server, path, token, body).await
    }

    /// Asks to skip A; gives the number of the request.
    async fn skip(&self) -> i64 {
        let wish = json!({"action": "skip", "jobs": ["A"]});
        let ahead = self.post(ACTIONS, &self.ann, wish).await.is(200);
        let mut wish = json!({"action": "skip", "jobs": ["A"], "reason": "the file is late"});
        wish["seen"] = ahead["seen"].clone();
        waiting(&self.post(ACTIONS, &self.ann, wish).await)
    }

    async fn status_of(&self, job: &str) -> String {
        let path = format!("/groups/gl/batches/202407/jobs/{job}");
        let found = self.server.get(&path, &self.bob).await.is(200);
        found["job"]["status"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
    }

    async fn decision(&self, id: i64, verb: &str, token: &str) -> Answer {
        let path = format!("/change-requests/{id}/{verb}");
        self.post(&path, token, json!({"comment": "looked at"})).await
    }

    async fn request(&self, id: i64) -> Value {
        self.server.get(&format!("/change-requests/{id}"), &self.bob).await.is(200)
    }

    /// How often this was done by ann, with a change request on record.
    async fn acts(&self, action: &str) -> Vec<Value> {
        let all = self.server.audit().await;
        let its = all.iter().filter(|(what, who, _)| what == action && who == "ann");
        its.map(|(_, _, detail)| {
            serde_json::from_str::<Value>(detail).expect("JSON")["change_request"].clone()
        })
        .collect()
    }

    /// Approves in the tables alone: as a process does that dies right after its commit.
    async fn approve_and_die(&self, id: i64) {
        let db = &self.server.app.db;
        let rules = self.server.app.config.four_eyes().expect("rules");
        let bob = procession::domain::access::user::UserName::parse("bob").expect("a name");
        let (user, grants) = self.server.house.porter.get_user(&bob).await.expect("bob");
        let grants = procession::domain::access::Grants::new(grants);
        let request = ChangeDecisionRequest {
            id: ChangeRequestId(id),
            verdict: ChangeVerdict::Approve,
            comment: None,
            by: &Operator::new("bob", "10.0.0.2"),
            account: Some((UserId(user.id.0), &grants)),
        };
        let now = self.server.app.server_now().await.expect("now");
        decide(db, &rules, &request, now).await.expect("a decision");
    }
}

/// The number of the request that a change became.
fn waiting(answer: &Answer) -> i64 {
    let request = &answer.is(202)["change_request"];
    assert_eq!(request["status"], "WAITING", "{request}");
    request["change_request_id"].as_i64().expect("a number")
}

fn refused(answer: &Answer, status: u16, words: &str) {
    let detail = answer.is(status)["detail"].clone();
    assert!(detail.as_str().is_some_and(|d| d.contains(words)), "{detail}");
}

async fn a_forced_job_waits_for_somebody_else_and_is_skipped_once(scene: Scene) {
    let server = &scene.server;
    let id = scene.skip().await;
    assert_eq!(scene.status_of("A").await, "PENDING");
    assert!(scene.acts("skip").await.is_empty());
    // What needs no force is done at once, and so is a look at what would be done.
    let hold = json!({"action": "hold", "jobs": ["B"]});
    let ahead = scene.post(ACTIONS, &scene.ann, hold.clone()).await.is(200);
    let mut hold = hold;
    (hold["seen"], hold["reason"]) = (ahead["seen"].clone(), json!("wait"));
    assert_eq!(scene.post(ACTIONS, &scene.ann, hold).await.is(200)["written"], true);
    // Neither the author, nor through another token of hers; not who may less, nor who does not see the group.
    refused(&scene.decision(id, "approve", &scene.ann).await, 403, "another person");
    let ann = procession::domain::access::user::UserName::parse("ann").expect("a name");
    let other = server.token_of(&ann, 1).await;
    refused(&scene.decision(id, "approve", &other).await, 403, "another person");
    let less = server.token(&[("gl", Role::Operator, &[])]).await;
    refused(&scene.decision(id, "approve", &less).await, 403, "`force` in group gl");
    let foreign = server.token(&[("ar", Role::Admin, &[])]).await;
    scene.decision(id, "approve", &foreign).await.is(404);
    let bob = procession::domain::access::user::UserName::parse("bob").expect("a name");
    let looks = server.token_with(&bob, &[Permission::View]).await;
    scene.decision(id, "approve", &looks).await.is(403);
    refused(&scene.decision(id, "break-glass", &scene.root).await, 403, "nobody carry out");
    let list = server.get("/change-requests", &scene.bob).await.is(200);
    assert_eq!(list["items"][0]["may_decide"], true, "{list}");
    assert_eq!(server.get("/change-requests", &foreign).await.is(200)["items"], json!([]));
    let seen = scene.request(id).await;
    assert_eq!(seen["effect"]["lines"][0]["job_code"], "A", "{seen}");
    assert_eq!(seen["body"]["reason"], "the file is late");
    let hidden = server.get(&format!("/change-requests/{id}"), &less).await.is(200);
    assert_eq!((&hidden["effect"], &hidden["body"]), (&Value::Null, &Value::Null));
    let done = scene.decision(id, "approve", &scene.bob).await.is(200);
    assert_eq!(done["status"], "DONE", "{done}");
    assert_eq!(scene.status_of("A").await, "SKIPPED");
    // Once more is the same, and says so; the other verdict comes too late.
    assert_eq!(scene.decision(id, "approve", &scene.bob).await.is(200)["status"], "DONE");
    scene.decision(id, "reject", &scene.bob).await.is(409);
    let expected = json!({"id": id, "approved_by": "bob", "alone": false});
    assert_eq!(scene.acts("skip").await, [expected]);
    let record: Vec<String> = server.audit().await.into_iter().map(|(what, ..)| what).collect();
    assert!(record.contains(&"change-request".to_owned()), "{record:?}");
    assert!(record.contains(&"change-request approve".to_owned()), "{record:?}");
    let mails = server.get("/outbox", &scene.root).await.is(200).to_string();
    for to in ["gl@bank.example", "risk@bank.example"] {
        assert!(mails.contains(to), "{mails}");
    }
}

async fn what_expires_is_refused_and_ends(scene: Scene) {
    let id = scene.skip().await;
    let withdrawn = scene.skip().await;
    let after = scene.decision(withdrawn, "reject", &scene.ann).await.is(200);
    assert_eq!(after["status"], "WITHDRAWN");
    let rejected = scene.skip().await;
    let path = format!("/change-requests/{rejected}/reject");
    refused(&scene.post(&path, &scene.bob, json!({})).await, 422, "comment: say why");
    assert_eq!(scene.decision(rejected, "reject", &scene.bob).await.is(200)["status"], "REJECTED");
    scene.decision(rejected, "approve", &scene.bob).await.is(409);
    scene.server.later(DAY_MS);
    refused(&scene.decision(id, "approve", &scene.bob).await, 409, "has expired");
    scene.server.house.carry_out_approved().await.expect("a turn");
    assert_eq!(scene.request(id).await["status"], "EXPIRED");
    refused(&scene.decision(id, "approve", &scene.bob).await, 409, "EXPIRED");
    assert_eq!(scene.status_of("A").await, "PENDING");
    let record: Vec<String> =
        scene.server.audit().await.into_iter().map(|(what, ..)| what).collect();
    assert!(record.contains(&"change-request expire".to_owned()), "{record:?}");
}

async fn an_author_who_may_not_any_more_changes_nothing(scene: Scene) {
    let patch = async |name: &str, body: Value| {
        let path = format!("/users/{name}");
        scene.server.send(Method::PATCH, &path, &scene.root, &body).await.is(200);
    };
    let ends = async |id: i64, words: &str| {
        let after = scene.decision(id, "approve", &scene.bob).await.is(200);
        assert_eq!(after["status"], "FAILED", "{after}");
        assert!(after["failure"].as_str().is_some_and(|f| f.contains(words)), "{after}");
        assert_eq!(scene.status_of("A").await, "PENDING");
    };
    let (first, second) = (scene.skip().await, scene.skip().await);
    let moved = json!({"grants": [{"group": "gl", "role": "author", "rights": ["script"]}]});
    patch("ann", moved).await;
    ends(first, "permission `force`").await;
    let back = json!({"grants": [{"group": "gl", "role": "operator", "rights": ["force"]}]});
    patch("ann", back).await;
    patch("ann", json!({"is_active": false})).await;
    ends(second, "may not log in any more").await;
    patch("ann", json!({"is_active": true})).await;
    // The token that it was asked with is gone, and its owner may do everything still.
    let third = scene.skip().await;
    let tokens = scene.server.get("/users/ann/tokens", &scene.root).await.is(200);
    for token in tokens["items"].as_array().expect("tokens") {
        let path = format!("/tokens/{}", token["token_id"]);
        scene.server.send(Method::DELETE, &path, &scene.root, &json!({})).await.is(200);
    }
    ends(third, "token that the change was asked for with is gone").await;
    assert!(scene.acts("skip").await.is_empty());
    let record: Vec<String> =
        scene.server.audit().await.into_iter().map(|(what, ..)| what).collect();
    assert_eq!(record.iter().filter(|what| *what == "change-request failed").count(), 3);
}

async fn what_is_not_as_it_was_approved_is_not_done(scene: Scene) {
    let with_name = |name: &str| {
        let text =
            GROUPS.replace("code: A, group: gl,", &format!("code: A, group: gl, name: {name},"));
        // Of `gl` alone.
        text.replace(", ar: {type: monthly}", "")
            .replace("  - {code: X, group: ar, type: NOOP}\n", "")
    };
    let name = async || {
        let found = scene.server.get("/jobs/gl.A", &scene.root).await.is(200);
        found["job"]["name"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
    };
    let apply = async |name: &str| {
        let body = json!({"text": with_name(name), "remark": "another name"});
        waiting(&scene.post("/definition/apply", &scene.ann, body).await)
    };
    let (first, second) = (apply("Load").await, apply("Other").await);
    let seen = scene.request(first).await;
    assert_eq!(seen["effect"]["changes"][0]["fields"][0]["new"], "Load", "{seen}");
    let done = scene.decision(first, "approve", &scene.bob).await.is(200);
    assert_eq!((done["status"].clone(), name().await), (json!("DONE"), "Load".to_owned()));
    // The second was asked for when the name was another one.
    let late = scene.decision(second, "approve", &scene.bob).await.is(200);
    assert_eq!(late["status"], "FAILED", "{late}");
    assert!(late["failure"].as_str().is_some_and(|f| f.contains("not what it was")), "{late}");
    assert_eq!(name().await, "Load");
    // What changes nothing needs nobody.
    let body = json!({"text": with_name("Load"), "remark": "the same"});
    scene.post("/definition/apply", &scene.ann, body).await.is(200);
    let back = json!({"to": 1, "reason": "as it was"});
    let back = waiting(&scene.post("/groups/gl/rollback", &scene.ann, back).await);
    assert_eq!(scene.decision(back, "approve", &scene.bob).await.is(200)["status"], "DONE");
    assert_ne!(name().await, "Load");
    // A batch that went on meanwhile.
    let skip = scene.skip().await;
    let hold = json!({"action": "hold", "jobs": ["A"]});
    let ahead = scene.post(ACTIONS, &scene.bob, hold).await.is(200);
    let hold = json!({"action": "hold", "jobs": ["A"], "reason": "wait", "seen": ahead["seen"]});
    scene.post(ACTIONS, &scene.bob, hold).await.is(200);
    let late = scene.decision(skip, "approve", &scene.bob).await.is(200);
    assert_eq!(
        (late["status"].clone(), scene.status_of("A").await),
        (json!("FAILED"), "HELD".into())
    );
}

async fn schedules_and_calendars_wait_as_well(scene: Scene) {
    let words = |at: u32| json!({"group": "gl", "batch_no": "month(-1)", "cron": format!("0 0 {at} 1 * ?")});
    let body = json!({"code": "nightly", "words": words(2), "reason": "new"});
    let made = waiting(&scene.post("/schedules", &scene.ann, body).await);
    scene.server.get("/schedules/nightly", &scene.ann).await.is(404);
    assert_eq!(scene.decision(made, "approve", &scene.bob).await.is(200)["status"], "DONE");
    let edit = async |at: u32| {
        let body = json!({"words": words(at), "reason": "later"});
        let path = "/schedules/nightly";
        waiting(&scene.server.send(Method::PUT, path, &scene.ann, &body).await)
    };
    let (first, second) = (edit(3).await, edit(4).await);
    let remove = json!({"reason": "not needed"});
    let path = "/schedules/nightly";
    let gone = waiting(&scene.server.send(Method::DELETE, path, &scene.ann, &remove).await);
    assert_eq!(scene.decision(first, "approve", &scene.bob).await.is(200)["status"], "DONE");
    for stale in [second, gone] {
        let late = scene.decision(stale, "approve", &scene.bob).await.is(200);
        assert_eq!(late["status"], "FAILED", "{late}");
    }
    let there = scene.server.get(path, &scene.ann).await.is(200).to_string();
    assert!(there.contains("0 0 3 1 * ?"), "{there}");
    // A calendar is everybody's: it follows the rule of all others.
    let body = json!({"name": "Bank holidays", "reason": "new"});
    let put = scene.server.send(Method::PUT, "/calendars/bank", &scene.root, &body).await;
    let calendar = waiting(&put);
    scene.decision(calendar, "approve", &scene.bob).await.is(404);
    let second = scene.server.admin().await;
    let done = scene.decision(calendar, "approve", &second).await.is(200);
    assert_eq!(done["status"], "DONE", "{done}");
    scene.server.get("/calendars/bank", &scene.root).await.is(200);
    // The group without a rule of its own follows it too.
    let ar = scene.server.token(&[("ar", Role::Author, &[])]).await;
    let body = json!({"code": "ar", "words": {"group": "ar", "batch_no": "month(-1)", "cron": "0 0 2 1 * ?"},
        "reason": "new"});
    waiting(&scene.post("/schedules", &ar, body).await);
    let job = json!({"jobs": ["ar.X"], "mode": "ice", "reason": "not this month"});
    scene.post("/jobs/run-modes", &scene.root, job).await.is(200);
    let job = json!({"jobs": ["gl.B"], "mode": "ice", "reason": "not this month"});
    let ice = waiting(&scene.post("/jobs/run-modes", &scene.ann, job).await);
    assert_eq!(scene.decision(ice, "approve", &scene.bob).await.is(200)["status"], "DONE");
    assert_eq!(scene.acts("ice").await.len(), 1);
}

async fn an_approved_change_outlives_its_process_and_is_done_once(scene: Scene) {
    let (server, db) = (&scene.server, &scene.server.app.db);
    let first = scene.skip().await;
    scene.approve_and_die(first).await;
    assert_eq!(scene.status_of("A").await, "PENDING");
    // Two processes look at the same moment.
    let (one, other) =
        tokio::join!(server.house.carry_out_approved(), server.house.carry_out_approved());
    one.and(other).expect("a turn");
    assert_eq!(scene.request(first).await["status"], "DONE");
    assert_eq!((scene.status_of("A").await, scene.acts("skip").await.len()), ("SKIPPED".into(), 1));
    // A process that dies, or hangs, after it has taken the change.
    let job = json!({"jobs": ["gl.B"], "mode": "ice", "reason": "not this month"});
    let second = waiting(&scene.post("/jobs/run-modes", &scene.ann, job).await);
    scene.approve_and_die(second).await;
    let id = ChangeRequestId(second);
    let now = server.app.server_now().await.expect("now");
    let mut tx = db.begin().await.expect("begin");
    assert!(change_request::claim(&mut tx, id, "hangs", now).await.expect("claim"));
    tx.commit().await.expect("commit");
    server.house.carry_out_approved().await.expect("a turn");
    assert_eq!(scene.request(second).await["status"], "APPROVED", "another process has it");
    server.later(130_000);
    server.house.carry_out_approved().await.expect("a turn");
    assert_eq!(scene.request(second).await["status"], "DONE");
    // What the first one still writes is undone with its transaction.
    let change = ApprovedChange {
        id,
        claim: "hangs".to_owned(),
        approved_by: "bob".to_owned(),
        is_alone: false,
    };
    let mut tx = db.begin().await.expect("begin");
    let late = change_request::mark_carried_out(&mut tx, &change, now).await;
    assert!(late.expect_err("it is taken").is::<ChangeTaken>());
    tx.rollback().await.expect("rollback");
    assert_eq!(scene.acts("ice").await.len(), 1);
    // A process that dies between the commit of the change and the answer to it.
    let sql =
        "UPDATE change_request SET answer = NULL, answer_status = NULL WHERE change_request_id = ?";
    let mut tx = db.begin().await.expect("begin");
    tx.execute(sql, &[second.into()]).await.expect("as if it had died");
    tx.commit().await.expect("commit");
    server.later(130_000);
    server.house.carry_out_approved().await.expect("a turn");
    assert_eq!(scene.acts("ice").await.len(), 1);
}

async fn an_administrator_acts_alone_only_where_the_settings_say_so(scene: Scene) {
    let body = json!({"name": "Bank holidays", "reason": "new"});
    let put = scene.server.send(Method::PUT, "/calendars/bank", &scene.root, &body).await;
    let id = waiting(&put);
    let path = format!("/change-requests/{id}/break-glass");
    scene.post(&path, &scene.ann, json!({"comment": "now"})).await.is(403);
    refused(&scene.post(&path, &scene.root, json!({})).await, 422, "comment: say why");
    let body = json!({"comment": "nobody can be reached"});
    let done = scene.post(&path, &scene.root, body).await.is(200);
    assert_eq!(
        (&done["status"], &done["without_second_person"]),
        (&json!("DONE"), &json!(true)),
        "{done}"
    );
    let all = scene.server.audit().await;
    assert!(all.iter().any(|(what, ..)| what == "change-request break-glass"), "{all:?}");
    let act = all.iter().find(|(what, ..)| what == "calendar add").expect("an act");
    assert!(act.2.contains("\"alone\":true"), "{}", act.2);
    let job = scene.skip().await;
    let refusal = scene.decision(job, "break-glass", &scene.root).await;
    refused(&refusal, 403, "nobody carry out");
}
