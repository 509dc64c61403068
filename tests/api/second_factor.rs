//! Second factors: enrolled, asked for, used once, slowed down, lost, and required.

use crate::api::server::{Answer, Browser, KEY, Server};
use crate::util::with_migrated_scratch;
use axum::http::Method;
use procession::app::access::{Credentials, Stranger};
use procession::domain::access::Role;
use procession::domain::source::DialectName;
use procession::engine::secrets::encryption::{KeyRing, new_key};
use procession::engine::secrets::rekey::{reseal, survey};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use totp_rs::{Builder, Secret};

const PASSWORD: &str = "canary-tuN9-glaze-orbit";
const FROM: &str = "9.9.9.9";
const AT: &str = "/session/second-factor";
const STEP_MS: i64 = 30_000;
const PROXY: &str = "[http]\ntrusted_proxies = ['127.0.0.1']\n";

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
    a_code_is_asked_for_and_works_once
    wrong_codes_are_slowed_down_and_recovery_codes_work_once
    who_has_lost_it_is_helped_by_an_administrator
    another_key_seals_second_factors_again
}

/// A server with a user `ada` who is logged in.
struct Scene {
    server: Server,
    ada: Browser,
}

async fn on(
    dialect: DialectName,
    test: impl FnOnce(Scene) -> std::pin::Pin<Box<dyn Future<Output = ()>>>,
) {
    with_migrated_scratch(dialect, async |scratch| {
        test(Scene::open(&scratch.url, PROXY).await).await;
    })
    .await;
}

impl Scene {
    async fn open(url: &str, settings: &str) -> Self {
        let server = Server::on(url, settings).await;
        let secret = server.house.porter.setup_secret().await.expect("make").expect("nobody yet");
        let sent = json!({ "secret": secret.expose_secret(), "name": "ada", "password": PASSWORD });
        let ada = Browser::of(&server.sent(Method::POST, "/setup", &[], &sent).await);
        Self { server, ada }
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        let headers = self.ada.headers();
        self.server.sent(Method::POST, path, &headers, &body).await
    }

    async fn log_in(&self, code: Option<&str>) -> Answer {
        let body = json!({ "name": "ada", "password": PASSWORD, "code": code });
        self.server.sent(Method::POST, "/session", &[("x-forwarded-for", FROM)], &body).await
    }

    /// The code of a secret at the server's time.
    fn code(&self, secret: &str) -> String {
        let secret = Secret::try_from_base32(secret).expect("base 32");
        let totp = Builder::new().with_secret(secret).build().expect("TOTP");
        let seconds = self.server.app.clock.now().0 / 1_000;
        totp.generate(u64::try_from(seconds).expect("after 1970")).to_string()
    }

    /// Enrols; gives the secret and the recovery codes.
    async fn enrol(&self) -> (String, Vec<String>) {
        let made = self.post(&format!("{AT}/enrol"), json!({"password": PASSWORD})).await.is(200);
        let secret = made["secret"].as_str().expect("a secret").to_owned();
        assert!(made["link"].as_str().is_some_and(|l| l.contains(&secret)), "{made}");
        assert!(made["qr_svg"].as_str().is_some_and(|svg| svg.contains("<svg")), "{made}");
        let body = json!({ "code": self.code(&secret) });
        let codes = self.post(&format!("{AT}/confirm"), body).await.is(200);
        let codes = codes["recovery_codes"].as_array().expect("codes").iter();
        (secret, codes.map(|code| code.as_str().expect("a code").to_owned()).collect())
    }
}

fn kind_of(answer: &Answer, status: u16) -> String {
    let document = answer.is(status);
    let kind = document["type"].as_str().and_then(|kind| kind.rsplit(':').next());
    kind.expect("a type").to_owned()
}

async fn a_code_is_asked_for_and_works_once(scene: Scene) {
    let server = &scene.server;
    let wrong = json!({"password": "canary-wool-98-harvest-lamp"});
    scene.post(&format!("{AT}/enrol"), wrong).await.is(403);
    // Before the first code it is asked for by nobody.
    scene.post(&format!("{AT}/enrol"), json!({"password": PASSWORD})).await.is(200);
    scene.log_in(None).await.is(200);
    let other = Browser::of(&scene.log_in(None).await);
    let (secret, codes) = scene.enrol().await;
    assert_eq!(codes.len(), 10);
    // Other sessions have ended, and this one goes on.
    let path = "/session";
    server.sent(Method::GET, path, &[("cookie", &other.cookie)], &Value::Null).await.is(401);
    let state = server.sent(Method::GET, AT, &[("cookie", &scene.ada.cookie)], &Value::Null).await;
    assert_eq!(
        state.is(200),
        json!({"active": true, "required": false, "recovery_codes_left": 10})
    );
    assert_eq!(kind_of(&scene.log_in(None).await, 401), "code-needed");
    // The code that confirmed it was used.
    assert_eq!(kind_of(&scene.log_in(Some(&scene.code(&secret))).await, 401), "wrong-code");
    server.later(STEP_MS);
    let code = scene.code(&secret);
    scene.log_in(Some(&code)).await.is(200);
    assert_eq!(kind_of(&scene.log_in(Some(&code)).await, 401), "wrong-code");
    server.later(STEP_MS);
    // Two at the same moment.
    let code = scene.code(&secret);
    let (one, two) = tokio::join!(scene.log_in(Some(&code)), scene.log_in(Some(&code)));
    let mut both = [one.status.as_u16(), two.status.as_u16()];
    both.sort_unstable();
    assert_eq!(both[0], 200, "{} {}", one.text, two.text);
    assert_ne!(both[1], 200, "one code lets one in");
    // A wrong password is told as always, with a code and without.
    let body = json!({"name": "ada", "password": "canary-wool-98-harvest-lamp", "code": "123456"});
    let refused = server.sent(Method::POST, "/session", &[("x-forwarded-for", FROM)], &body).await;
    assert_eq!(kind_of(&refused, 401), "wrong-login");
    // Tokens are for programs.
    let name = procession::domain::user::UserName::parse("ada").expect("a name");
    let token = server.token_of(&name, 1).await;
    server.get("/groups", &token).await.is(200);
    // Neither secret nor codes stand in the tables, nor on record.
    let record = format!("{:?}", server.audit().await);
    assert!(record.contains("second factor enrol") && !record.contains(&secret), "{record}");
    // Disabling takes both.
    server.later(STEP_MS);
    let alone = json!({"password": PASSWORD, "code": "000000"});
    scene.post(&format!("{AT}/disable"), alone).await.is(403);
    let both = json!({"password": PASSWORD, "code": scene.code(&secret)});
    scene.post(&format!("{AT}/disable"), both).await.is(200);
    scene.log_in(None).await.is(200);
}

async fn wrong_codes_are_slowed_down_and_recovery_codes_work_once(scene: Scene) {
    let server = &scene.server;
    let (secret, codes) = scene.enrol().await;
    server.later(STEP_MS);
    let right = scene.code(&secret);
    let wrong = if right == "000000" { "000001" } else { "000000" };
    for guess in 0..5 {
        let answer = scene.log_in(Some(wrong)).await;
        assert_eq!(kind_of(&answer, 401), "wrong-code", "{guess}");
        server.later(7_000);
    }
    // Now not even the right one is looked at, nor a recovery code.
    let answer = scene.log_in(Some(&scene.code(&secret))).await;
    assert_eq!(kind_of(&answer, 429), "slow-down");
    scene.log_in(Some(&codes[0])).await.is(429);
    server.later(60_000);
    scene.log_in(Some(wrong)).await.is(401);
    server.later(60_000);
    scene.log_in(Some(&codes[0])).await.is(429);
    server.later(61_000);
    scene.log_in(Some(&codes[0])).await.is(200);
    assert_eq!(kind_of(&scene.log_in(Some(&codes[0])).await, 401), "wrong-code");
    let typed = codes[1].to_uppercase().replace('-', " ");
    scene.log_in(Some(&typed)).await.is(200);
    server.later(STEP_MS);
    let body = json!({"password": PASSWORD, "code": scene.code(&secret)});
    let renewed = scene.post(&format!("{AT}/recovery-codes"), body).await.is(200);
    let renewed = renewed["recovery_codes"].as_array().expect("codes").clone();
    assert_eq!(renewed.len(), 10);
    scene.log_in(Some(&codes[2])).await.is(401);
    scene.log_in(renewed[0].as_str()).await.is(200);
    let record: Vec<String> = server.audit().await.into_iter().map(|(act, ..)| act).collect();
    assert!(record.contains(&"recovery codes renew".to_owned()), "{record:?}");
}

async fn who_has_lost_it_is_helped_by_an_administrator(scene: Scene) {
    let server = &scene.server;
    scene.enrol().await;
    let (path, root) = ("/users/ada/second-factor-reset", server.admin().await);
    let other = server.token(&[("gl", Role::Admin, &[])]).await;
    server.send(Method::POST, path, &other, &json!({})).await.is(403);
    server.send(Method::POST, path, &root, &json!({})).await.is(200);
    server.send(Method::POST, path, &root, &json!({})).await.is(409);
    let headers = [("cookie", scene.ada.cookie.as_str())];
    server.sent(Method::GET, "/session", &headers, &Value::Null).await.is(401);
    scene.log_in(None).await.is(200);
    let record: Vec<String> = server.audit().await.into_iter().map(|(act, ..)| act).collect();
    assert!(record.contains(&"second factor reset".to_owned()), "{record:?}");
}

async fn another_key_seals_second_factors_again(scene: Scene) {
    let server = &scene.server;
    let db = &server.app.db;
    let (secret, _) = scene.enrol().await;
    let new = new_key().expect("random");
    let words = format!("{} {KEY}", new.expose_secret());
    let both = KeyRing::parse(&words.into(), "a test").expect("keys");
    let before = survey(db, &both).await.expect("a survey").second_factors;
    assert_eq!((before.current, before.previous, before.unknown), (0, 1, 0));
    let by = procession::engine::operate::operator_actions::operator_here("test");
    let done = reseal(db, &both, &by, None, server.app.clock.now()).await.expect("sealed again");
    assert_eq!((done.second_factors, done.not_opened), (1, Vec::new()));
    server.later(STEP_MS);
    let from = Stranger { address: FROM.to_owned(), agent: None };
    let log_in = async |keys: &str| {
        let keys = KeyRing::parse(&SecretString::from(keys), "a test").expect("a key");
        let porter = server.app.porter().with_keys(keys);
        let code = Some(scene.code(&secret).into());
        porter.log_in("ada", Credentials { password: PASSWORD.into(), code }, &from).await
    };
    // With the old key alone nobody can tell whether a code is right, and nobody is let in.
    let refused = log_in(KEY).await.err().expect("it opens with the new key alone").to_string();
    assert!(refused.contains("cannot be checked"), "{refused}");
    log_in(new.expose_secret()).await.expect("the code is right");
}

#[tokio::test]
async fn where_it_is_required_nothing_else_is_done_before() {
    with_migrated_scratch(DialectName::Sqlite, async |scratch| {
        let settings = format!("{PROXY}[users]\nmfa = 'required'\n");
        let scene = Scene::open(&scratch.url, &settings).await;
        let get = async |path: &str| {
            let headers = [("cookie", scene.ada.cookie.as_str())];
            scene.server.sent(Method::GET, path, &headers, &Value::Null).await
        };
        assert_eq!(get("/session").await.is(200)["must_enrol_second_factor"], true);
        assert_eq!(kind_of(&get("/groups").await, 403), "must-enrol-second-factor");
        let token = json!({"name": "ci", "permissions": ["view"], "days": 1});
        assert_eq!(
            kind_of(&scene.post("/session/tokens", token).await, 403),
            "must-enrol-second-factor"
        );
        scene.enrol().await;
        get("/groups").await.is(200);
        assert_eq!(get("/session").await.is(200)["must_enrol_second_factor"], false);
    })
    .await;
}
