//! Logging in with the password of a directory, against a real one.

mod slapd;

use crate::api::server::{Answer, Browser, Server};
use axum::http::Method;
use procession::app::access::{
    DirectoryCheck, DirectoryStep, Initial, NewAccount, check_directory,
};
use procession::domain::access::Role;
use procession::domain::access::user::{UserId, UserName};
use procession::store;
use procession::store::user::NewUser;
use procession::store::user_session::UserSession;
use serde_json::{Value, json};
use slapd::Slapd;
use std::net::TcpListener;
use totp_rs::{Builder, Secret};

const PASSWORD: &str = "canary-tuN9-glaze-orbit";
const AUTO: &str = "auto_create = true";

async fn log_in(server: &Server, name: &str, password: &str) -> Answer {
    server.log_in(name, password, "9.9.9.9").await
}

/// Somebody is not let in, and why is on record.
async fn is_refused(server: &Server, name: &str, password: &str, why: &str) {
    let answer = log_in(server, name, password).await.is(401);
    assert_eq!(answer["type"], "urn:procession:problem:wrong-login");
    let (action, _, detail) = server.audit().await.pop().expect("on record");
    assert!(action == "login refused" && detail.contains(why), "{detail} does not say {why}");
}

/// A user with a password of Procession that need not be changed.
async fn local_user(server: &Server, name: &str) {
    let wanted = NewAccount {
        name: UserName::parse(name).expect("a name"),
        display_name: name.to_owned(),
        lang: None,
        grants: Vec::new(),
        initial: Initial::Password(PASSWORD.into()),
    };
    server.house.porter.add_user(&server.owner(), wanted).await.expect("a user");
}

async fn session(server: &Server, answer: &Answer) -> Value {
    answer.is(200);
    let set = answer.headers["set-cookie"].to_str().expect("a cookie");
    let cookie = set.split(';').next().expect("a value");
    server.sent(Method::GET, "/session", &[("cookie", cookie)], &Value::Null).await.is(200)
}

async fn check(server: &Server, user: &str, password: Option<&str>) -> Vec<DirectoryStep> {
    let (user, now) = (Some(user.to_owned()), server.app.clock.now());
    let check = DirectoryCheck { user, password: password.map(Into::into), now };
    check_directory(&server.app.config.ldap, &check).await
}

#[tokio::test]
async fn groups_of_the_directory_give_roles_and_take_them_away() {
    let slapd = Slapd::start();
    let server = Server::with(&slapd.settings(AUTO)).await;
    let options = server.get("/session/options", "").await.is(200);
    assert_eq!(options["ldap"]["name"], "Corporate");
    let first = log_in(&server, "Ada", "ada-secret").await;
    let seen = session(&server, &first).await;
    assert_eq!(
        (&seen["user"]["name"], &seen["user"]["display_name"], &seen["user"]["has_password"]),
        (&json!("ada"), &json!("Ada Lovelace"), &json!(false))
    );
    let of_ar = json!({ "group": "ar", "role": "viewer", "rights": [] });
    let of_gl = json!({ "group": "gl", "role": "operator", "rights": ["force"] });
    assert_eq!(seen["grants"], json!([of_ar, of_gl]));
    slapd.modify(
        "dn: cn=Finance\\, Operators,ou=groups,dc=bank,dc=example\nchangetype: modify\n\
         delete: member\nmember: uid=ada,ou=people,dc=bank,dc=example\n",
    );
    let seen = session(&server, &log_in(&server, "ada", "ada-secret").await).await;
    assert_eq!(seen["grants"], json!([of_ar]));
    // The session from before has lost it as well.
    assert_eq!(session(&server, &first).await["grants"], json!([of_ar]));
    let acts: Vec<String> = server.audit().await.into_iter().map(|(act, ..)| act).collect();
    assert_eq!(acts, ["user add", "user grant", "login", "user grant", "login"]);
    // Renamed there is the same user here.
    slapd.modify(
        "dn: uid=ada,ou=people,dc=bank,dc=example\nchangetype: modrdn\nnewrdn: uid=augusta\ndeleteoldrdn: 1\n",
    );
    let seen = session(&server, &log_in(&server, "augusta", "ada-secret").await).await;
    assert_eq!(seen["user"]["name"], "ada");
    let text = String::from_utf8_lossy(&server.dump()).into_owned();
    assert!(!text.contains("ada-secret") && !text.contains(slapd::READER_PASSWORD));
}

#[tokio::test]
async fn a_password_goes_to_a_verified_server_alone() {
    let slapd = Slapd::start();
    let (ca, other) = (slapd.path("ca.pem"), slapd.path("other-ca.pem"));
    for (url, more, status) in [
        (slapd.tls_url(), format!("tls_ca = '{ca}'"), 200),
        (slapd.plain_url(), format!("tls_ca = '{ca}'"), 200),
        (slapd.tls_url().replace("127.0.0.1", "[::1]"), format!("tls_ca = '{ca}'"), 200),
        (slapd.tls_url().replace("127.0.0.1", "[::1]"), format!("tls_ca = '{other}'"), 503),
        (slapd.plain_url(), "tls = 'none'".to_owned(), 200),
        (slapd.tls_url(), format!("tls_ca = '{other}'"), 503),
        (slapd.plain_url(), format!("tls_ca = '{other}'"), 503),
        // The certificate is for the address, not for this name.
        (slapd.tls_url().replace("127.0.0.1", "localhost"), format!("tls_ca = '{ca}'"), 503),
        // The machine's own authorities made none of this.
        (slapd.tls_url(), String::new(), 503),
    ] {
        let settings = slapd.settings_at(&url, &format!("{AUTO}\n{more}"));
        let server = Server::with(&settings).await;
        let answer = log_in(&server, "ada", "ada-secret").await;
        assert_eq!(answer.status.as_u16(), status, "{url} {more}: {}", answer.text);
        if status == 503 {
            let (_, _, detail) = server.audit().await.pop().expect("on record");
            assert!(detail.contains("certificate"), "{url} {more}: {detail}");
        }
    }
    // One server after the other.
    let urls = format!("ldaps://127.0.0.1:1', '{}", slapd.tls_url());
    let settings = slapd.settings_at(&urls, &format!("{AUTO}\ntls_ca = '{ca}'"));
    log_in(&Server::with(&settings).await, "ada", "ada-secret").await.is(200);
}

#[tokio::test]
async fn who_is_closed_or_wrong_there_stays_out() {
    let slapd = Slapd::start();
    let server = Server::with(&slapd.settings(AUTO)).await;
    is_refused(&server, "grace", "grace-secret", "userAccountControl").await;
    is_refused(&server, "linus", "linus-secret", "shadowExpire").await;
    is_refused(&server, "ada", "wrong", "wrong password").await;
    is_refused(&server, "nobody", "wrong", "no such user").await;
    is_refused(&server, "barbara", "barbara-secret", "in none of the groups").await;
    let (_, who, _) = server.audit().await.pop().expect("on record");
    assert_eq!(who, "barbara", "the directory has proved the name");
    // slapd takes an empty password for a login of nobody and says yes.
    is_refused(&server, "ada", "", "empty password").await;
    // An account is open again when the directory says so.
    slapd.modify(
        "dn: uid=grace,ou=people,dc=bank,dc=example\nchangetype: modify\n\
         replace: userAccountControl\nuserAccountControl: 512\n",
    );
    log_in(&server, "grace", "grace-secret").await.is(200);
}

#[tokio::test]
async fn a_name_is_no_filter_and_no_dn() {
    let slapd = Slapd::start();
    let server = Server::with(&slapd.settings(AUTO)).await;
    let step = |steps: &[DirectoryStep], name: &str| {
        let found = steps.iter().find(|step| step.step == name);
        found.map(|step| (step.ok, step.found.clone()))
    };
    let found = step(&check(&server, "ada", None).await, "user").expect("a step");
    assert_eq!(found, (true, "uid=ada,ou=people,dc=bank,dc=example".to_owned()));
    for odd in ["*", "a*", "ada)(objectClass=*", "x)(|(uid=ada)", "ada\0", "\\61da"] {
        let (ok, said) = step(&check(&server, odd, None).await, "user").expect("a step");
        assert!(!ok && said.contains("no such user"), "{odd}: {said}");
        if !odd.contains('\0') {
            log_in(&server, odd, "ada-secret").await.is(401);
        }
    }
    let own = "user_dn = 'uid={name},ou=people,dc=bank,dc=example'";
    let server = Server::with(&slapd.settings(&format!("{own}\n{AUTO}"))).await;
    log_in(&server, "ada", "ada-secret").await.is(200);
    let steps = check(&server, "ada,ou=people,dc=bank,dc=example", Some("ada-secret")).await;
    let (ok, said) = step(&steps, "password").expect("a step");
    assert!(!ok && said.contains("wrong password"), "{steps:?}");
}

#[tokio::test]
async fn referrals_are_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    elsewhere.set_nonblocking(true).expect("a listener that does not wait");
    let slapd = Slapd::with_referral(elsewhere.local_addr().expect("an address").port());
    let at = |base: &str| slapd.settings(AUTO).replace("base = 'ou=people,", base);
    let server = Server::with(&at("base = '")).await;
    is_refused(&server, "nobody", "secret", "names other servers").await;
    log_in(&server, "ada", "ada-secret").await.is(200);
    let server = Server::with(&at("base = 'ou=elsewhere,")).await;
    log_in(&server, "ada", "ada-secret").await.is(503);
    let (_, _, detail) = server.audit().await.pop().expect("on record");
    assert!(detail.contains("not followed"), "{detail}");
    let asked = elsewhere.accept().map(|_| ());
    assert_eq!(asked.expect_err("nobody came").kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_directory_that_is_away_is_no_wrong_password() {
    let mut slapd = Slapd::start();
    let server = Server::with(&slapd.settings(AUTO)).await;
    local_user(&server, "root").await;
    log_in(&server, "ada", "ada-secret").await.is(200);
    slapd.stop();
    // More often than a wrong password may be tried.
    for _ in 0..12 {
        let answer = log_in(&server, "ada", "ada-secret").await;
        assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
        assert_eq!(answer.is(503)["type"], "urn:procession:problem:directory-unavailable");
    }
    let answer = log_in(&server, "root", PASSWORD).await.is(200);
    assert_eq!(answer["user"]["name"], "root", "who has a password here gets in");
    log_in(&server, "root", "wrong").await.is(401);
    // One record and one question, however many ask.
    let recorded = server.audit().await;
    let recorded = recorded.iter().filter(|(_, _, detail)| detail.contains("unavailable"));
    assert_eq!(recorded.count(), 1);
    slapd.run();
    log_in(&server, "ada", "ada-secret").await.is(503);
    server.later(2_000);
    log_in(&server, "ada", "ada-secret").await.is(200);
}

#[tokio::test]
async fn guesses_are_slowed_down_as_everywhere() {
    let slapd = Slapd::start();
    let server = Server::with(&slapd.settings(AUTO)).await;
    for _ in 0..10 {
        log_in(&server, "ada", "guess").await.is(401);
    }
    log_in(&server, "ada", "ada-secret").await.is(429);
    server.later(60_000);
    log_in(&server, "ada", "ada-secret").await.is(200);
}

#[tokio::test]
async fn a_user_is_known_in_one_place() {
    let slapd = Slapd::start();
    let server = Server::with(&slapd.settings("")).await;
    // With a password here the directory is not asked, by whichever name.
    local_user(&server, "ada").await;
    is_refused(&server, "ada", "ada-secret", "wrong password").await;
    log_in(&server, "ada", PASSWORD).await.is(200);
    // Who is unknown is added by an administrator first.
    is_refused(&server, "barbara", "barbara-secret", "auto_create is off").await;
    server.user("barbara", &[("gl", Role::Viewer, &[])]).await;
    let seen = session(&server, &log_in(&server, "barbara", "barbara-secret").await).await;
    assert_eq!(seen["grants"][0]["role"], "viewer", "what an administrator gave stays");
    let root = server.admin().await;
    let account = server.get("/users/barbara", &root).await.is(200)["account"].clone();
    assert_eq!(account["oidc_issuer"], "ldap");
    // A password here would outlive the account there.
    let reset = server.send(Method::POST, "/users/barbara/password-reset", &root, &json!({})).await;
    assert!(reset.is(422)["detail"].to_string().contains("set it there"), "{reset:?}");
    // Another account that has got the name is somebody else.
    slapd.modify("dn: uid=barbara,ou=people,dc=bank,dc=example\nchangetype: delete\n");
    slapd.modify(
        "dn: uid=barbara,ou=people,dc=bank,dc=example\nchangetype: add\nobjectClass: inetOrgPerson\n\
         uid: barbara\ncn: B\nsn: B\nuserPassword: barbara-secret\n",
    );
    is_refused(&server, "barbara", "barbara-secret", "somebody else").await;
    // Disabled here is out, whatever the directory says.
    server.user("grace", &[("gl", Role::Viewer, &[])]).await;
    slapd.modify(
        "dn: uid=grace,ou=people,dc=bank,dc=example\nchangetype: modify\n\
         replace: userAccountControl\nuserAccountControl: 512\n",
    );
    log_in(&server, "grace", "grace-secret").await.is(200);
    let off = json!({ "is_active": false });
    server.send(Method::PATCH, "/users/grace", &root, &off).await.is(200);
    is_refused(&server, "grace", "grace-secret", "disabled").await;
}

#[tokio::test]
async fn a_check_shows_each_step() {
    let slapd = Slapd::start();
    let server = Server::with(&slapd.settings("")).await;
    let steps = check(&server, "ada", Some("ada-secret")).await;
    let names: Vec<&str> = steps.iter().map(|step| step.step).collect();
    assert_eq!(
        names,
        ["server", "bind", "user", "password", "account", "state", "groups", "grants"]
    );
    assert!(steps.iter().all(|step| step.ok), "{steps:?}");
    assert_eq!(steps[7].found, "viewer@ar; operator+force@gl");
    assert!(steps[6].found.contains("cn=finance\\, operators,ou=groups"), "{}", steps[6].found);
    let steps = check(&server, "ada", Some("wrong")).await;
    assert_eq!(steps.last().map(|step| (step.step, step.ok)), Some(("password", false)));
    let steps = check(&server, "grace", None).await;
    let state = steps.iter().find(|step| step.step == "state").expect("a step");
    assert!(!state.ok && state.found.contains("userAccountControl"), "{steps:?}");
    let settings = slapd.settings_at("ldaps://127.0.0.1:1", "");
    let steps = check(&Server::with(&settings).await, "ada", None).await;
    assert!(steps.len() == 1 && steps[0].found.contains("ldaps://127.0.0.1:1: "), "{steps:?}");
    let settings = slapd.settings("").replace("uid=reader,", "uid=nobody,");
    let steps = check(&Server::with(&settings).await, "ada", None).await;
    assert_eq!(steps.last().map(|step| (step.step, step.ok)), Some(("bind", false)));
}

#[tokio::test]
async fn a_user_of_the_directory_can_have_a_second_factor() {
    let slapd = Slapd::start();
    let server = Server::with(&slapd.settings(AUTO)).await;
    let ada = Browser::of(&log_in(&server, "ada", "ada-secret").await);
    let post = async |path: &str, body: Value| {
        let path = format!("/session/second-factor/{path}");
        server.sent(Method::POST, &path, &ada.headers(), &body).await
    };
    post("enrol", json!({"password": "other-secret"})).await.is(403);
    let made = post("enrol", json!({"password": "ada-secret"})).await.is(200);
    let secret = Secret::try_from_base32(made["secret"].as_str().expect("a secret"));
    let totp = Builder::new().with_secret(secret.expect("base 32")).build().expect("TOTP");
    let seconds = u64::try_from(server.app.clock.now().0 / 1_000).expect("after 1970");
    let code = totp.generate(seconds).to_string();
    let codes = post("confirm", json!({ "code": code })).await.is(200);
    let asked = log_in(&server, "ada", "ada-secret").await.is(401);
    assert_eq!(asked["type"], "urn:procession:problem:code-needed");
    // Who does not know the password is told nothing of it.
    let wrong = log_in(&server, "ada", "other-secret").await.is(401);
    assert_eq!(wrong["type"], "urn:procession:problem:wrong-login");
    let body = json!({"name": "ada", "password": "ada-secret", "code": codes["recovery_codes"][0]});
    server.sent(Method::POST, "/session", &[], &body).await.is(200);
    server.sent(Method::POST, "/session", &[], &body).await.is(401);
}

/// A token of this user that may look at everything the user may.
async fn token_of(server: &Server, browser: &Browser) -> String {
    let wanted = json!({ "name": "nightly", "permissions": ["view"], "days": 30 });
    let made = server.sent(Method::POST, "/session/tokens", &browser.headers(), &wanted).await;
    made.is(200)["token"].as_str().expect("a token").to_owned()
}

/// How a session and a token are answered.
async fn statuses(server: &Server, cookie: &str, token: &str) -> (u16, u16) {
    let by_session =
        server.sent(Method::GET, "/session", &[("cookie", cookie)], &Value::Null).await;
    (by_session.status.as_u16(), server.get("/groups", token).await.status.as_u16())
}

async fn recheck(server: &Server) -> procession::app::access::DirectoryRecheck {
    server.house.porter.recheck_directory(UserId(0)).await.expect("the directory answers").0
}

#[tokio::test]
async fn who_is_disabled_or_removed_there_loses_session_and_token() {
    let mut slapd = Slapd::start();
    let server = Server::with(&slapd.settings(AUTO)).await;
    let ada = "dn: uid=ada,ou=people,dc=bank,dc=example\nchangetype: ";
    let browser = Browser::of(&log_in(&server, "ada", "ada-secret").await);
    let (token, first) = (token_of(&server, &browser).await, browser.cookie);
    let found = recheck(&server).await;
    assert_eq!((found.checked, found.closed.len(), found.opened.len()), (1, 0, 0));
    assert_eq!(statuses(&server, &first, &token).await, (200, 200));
    // A new name there is the same account.
    slapd.modify(&format!("{ada}modrdn\nnewrdn: uid=augusta\ndeleteoldrdn: 1\n"));
    assert_eq!(recheck(&server).await.closed, Vec::<String>::new());
    let augusta = ada.replace("uid=ada", "uid=augusta");
    slapd.modify(&format!("{augusta}modify\nadd: objectClass\nobjectClass: adAccount\n-\nadd: userAccountControl\nuserAccountControl: 514\n"));
    assert_eq!(recheck(&server).await.closed, ["ada"]);
    assert_eq!(statuses(&server, &first, &token).await, (401, 401));
    assert!(recheck(&server).await.closed.is_empty(), "it is on record once");
    let acts = server.audit().await;
    let closed: Vec<_> = acts.iter().filter(|(act, ..)| act == "directory closed").collect();
    assert_eq!(closed.len(), 1, "{acts:?}");
    let (_, who, detail) = closed[0];
    assert!(who == "directory" && detail.contains("userAccountControl"), "{who} {detail}");
    // Open again: the token works again, the session does not come back.
    slapd.modify(&format!(
        "{augusta}modify\nreplace: userAccountControl\nuserAccountControl: 512\n"
    ));
    assert_eq!(recheck(&server).await.opened, ["ada"]);
    assert_eq!(statuses(&server, &first, &token).await, (401, 200));
    // While the directory is away nothing is ended.
    let second = Browser::of(&log_in(&server, "augusta", "ada-secret").await).cookie;
    slapd.stop();
    server.house.porter.recheck_directory(UserId(0)).await.expect_err("it is away");
    assert_eq!(statuses(&server, &second, &token).await, (200, 200));
    slapd.run();
    slapd.modify(&format!("{augusta}delete\n"));
    assert_eq!(recheck(&server).await.closed, ["ada"]);
    assert_eq!(statuses(&server, &second, &token).await, (401, 401));
    let user = server.get("/users/ada", &server.admin().await).await.is(200);
    let why = user["account"]["directory_closed"].as_str().expect("a reason").to_owned();
    assert!(why.contains("not in the directory any more"), "{why}");
}

/// A reader that may not see anything any more finds nobody; that is a fault of the reader.
#[tokio::test]
async fn a_reader_without_rights_ends_nobodys_session() {
    let slapd = Slapd::start();
    let settings = slapd.settings(AUTO).replace("uid=reader,dc", "uid=barbara,ou=people,dc");
    std::fs::write(slapd.path("reader.password"), "barbara-secret").expect("a password file");
    let server = Server::with(&settings).await;
    let name = UserName::parse("ada").expect("a name");
    let (now, mut tx) = (server.app.clock.now(), server.app.db.begin().await.expect("begin"));
    let new = NewUser {
        name: &name,
        display_name: "Ada",
        lang: None,
        password: None,
        until: None,
        oidc: Some(("ldap", "uuid:00000000-0000-0000-0000-000000000000")),
    };
    let user = store::user::add_user(&mut tx, &new, now).await.expect("a user");
    let session = UserSession {
        id: 0,
        user,
        proof: "ldap".to_owned(),
        address: "9.9.9.9".to_owned(),
        agent: None,
        create_time: now,
        used_time: now,
        end_time: now.plus_ms(3_600_000),
    };
    store::user_session::add_session(&mut tx, "digest", &session).await.expect("a session");
    tx.commit().await.expect("commit");
    let error =
        server.house.porter.recheck_directory(UserId(0)).await.expect_err("it sees nothing");
    assert!(error.to_string().contains("is not shown ou=people"), "{error:#}");
    let mut tx = server.app.db.begin_read().await.expect("read");
    let found = store::user_session::by_digest(&mut tx, "digest").await.expect("read");
    assert!(found.is_some(), "the session lives on");
}

/// One node of several looks in an interval.
#[tokio::test]
async fn one_node_has_the_turn_to_look() {
    let server = Server::new().await;
    let now = server.app.clock.now();
    for (after_ms, is_free) in [(0, true), (1, false), (59_999, false), (60_000, true), (-1, true)]
    {
        let mut tx = server.app.db.begin().await.expect("begin");
        let at = procession::domain::time::Millis(now.0 + after_ms);
        let taken = store::user::take_recheck_turn(&mut tx, at, 60_000).await;
        assert_eq!(taken.expect("a turn"), is_free, "{after_ms}");
        tx.commit().await.expect("commit");
    }
}
