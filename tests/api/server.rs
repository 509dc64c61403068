//! A house on a scratch database, its router, and users with tokens.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use procession::api::{ApiState, Peer, router};
use procession::app::access::{Authority, Initial, NewAccount, TokenWish};
use procession::app::{App, Apply, EmptyDatabase};
use procession::definition;
use procession::domain::access::user::UserName;
use procession::domain::access::{Grant, Permission, Role, Where};
use procession::domain::batch::BatchOrder;
use procession::domain::id::GroupCode;
use procession::domain::time::Millis;
use procession::engine::clock::Clock;
use procession::engine::dispatch::dispatcher::QueueDispatcher;
use procession::engine::operate::operator_actions::operator_here;
use procession::engine::secrets::encryption::KeyRing;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// 2024-08-01T00:00:00Z.
pub(crate) const START: Millis = Millis(1_722_470_400_000);

/// 32 bytes, for the secrets of second factors.
pub(crate) const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A house and its router; the database lives as long as this.
pub(crate) struct Server {
    /// The same database, as the command line has it.
    pub(crate) app: App,
    /// What requests are answered from.
    pub(crate) house: Arc<ApiState>,
    router: Router,
    users: AtomicU32,
    _process: QueueDispatcher,
    folder: tempfile::TempDir,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The JSON of an answer, whatever its status.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    /// The JSON of an answer with this status.
    pub(crate) fn is(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self.json()
    }
}

/// What a browser holds after a login.
pub(crate) struct Browser {
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Browser {
    /// Of an answer that lets somebody in.
    pub(crate) fn of(answer: &Answer) -> Self {
        let document = answer.is(200);
        let set = answer.headers["set-cookie"].to_str().expect("a cookie");
        let cookie = set.split(';').next().expect("a value").to_owned();
        Self { cookie, csrf: document["csrf"].as_str().expect("csrf").to_owned() }
    }

    /// The headers of a change.
    pub(crate) fn headers(&self) -> [(&str, &str); 2] {
        [("cookie", &self.cookie), ("x-csrf-token", &self.csrf)]
    }
}

/// A grant in few words: `("gl", Role::Operator, &[Permission::Force])`; `*` is everywhere.
pub(crate) type Words<'a> = (&'a str, Role, &'a [Permission]);

/// Grants of few words.
pub(crate) fn grants(words: &[Words<'_>]) -> Vec<Grant> {
    let place = |place: &str| match place {
        "*" => Where::Everywhere,
        code => Where::Group(GroupCode::parse(code).expect("a code")),
    };
    let grant = |(at, role, rights): &Words<'_>| Grant {
        place: place(at),
        role: *role,
        rights: rights.iter().copied().collect(),
    };
    words.iter().map(grant).collect()
}

impl Server {
    /// On a new SQLite database, with the clock at `START`.
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// With settings beside the defaults.
    pub(crate) async fn with(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let database = folder.path().join("procession.db");
        crate::util::template::copy_sqlite(&database).await;
        let url = format!("sqlite:{}", database.display());
        Self::open(folder, &url, settings).await
    }

    /// On a database that is there, with its tables.
    pub(crate) async fn on(url: &str, settings: &str) -> Self {
        Self::open(tempfile::tempdir().expect("folder"), url, settings).await
    }

    async fn open(folder: tempfile::TempDir, url: &str, settings: &str) -> Self {
        let file = folder.path().join("procession.toml");
        std::fs::write(&file, settings).expect("settings");
        let mut config = crate::util::config(&file);
        config.database.url = url.to_owned().into();
        let mut app = App::open(config, EmptyDatabase::Refuse).await.expect("open");
        app.clock = Clock::set_by_hand(START);
        let process = app.dispatcher(None).await.expect("a process");
        let stop = CancellationToken::new();
        let vitals = process.vitals(&stop, Duration::from_secs(120));
        let mut house = ApiState::open_state(&app, vitals).await.expect("a house");
        // The environment of a test is that of all tests.
        let key = SecretString::from(KEY);
        house.porter = house.porter.with_keys(KeyRing::parse(&key, "a test").expect("a key"));
        let house = Arc::new(house);
        let router = router(house.clone());
        let users = AtomicU32::new(0);
        Self { app, house, router, users, _process: process, folder }
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The database, as a process beside this one names it.
    pub(crate) fn database_url(&self) -> String {
        format!("sqlite:{}", self.folder.path().join("procession.db").display())
    }

    /// Moves the clock on.
    pub(crate) fn later(&self, ms: i64) {
        self.app.clock.advance(ms);
    }

    /// As the command line does things about users.
    pub(crate) fn owner(&self) -> Authority {
        Authority { operator: operator_here("test"), user: None }
    }

    /// A user with a password that need not be changed.
    pub(crate) async fn user(&self, name: &str, words: &[Words<'_>]) -> UserName {
        let name = UserName::parse(name).expect("a name");
        let wanted = NewAccount {
            name: name.clone(),
            display_name: name.to_string(),
            lang: None,
            grants: grants(words),
            initial: Initial::Elsewhere,
        };
        self.house.porter.add_user(&self.owner(), wanted).await.expect("a user");
        name
    }

    /// A token of a new user with these grants, good for everything that the user may do.
    pub(crate) async fn token(&self, words: &[Words<'_>]) -> String {
        let number = self.users.fetch_add(1, Ordering::Relaxed);
        let name = self.user(&format!("user{number}"), words).await;
        self.token_of(&name, 1).await
    }

    /// A token of a user, good for everything that the user may do.
    pub(crate) async fn token_of(&self, name: &UserName, days: u32) -> String {
        self.token_for(name, &Permission::ALL, days).await
    }

    /// A token of a user that may do these things alone.
    pub(crate) async fn token_with(&self, name: &UserName, permissions: &[Permission]) -> String {
        self.token_for(name, permissions, 1).await
    }

    async fn token_for(&self, name: &UserName, permissions: &[Permission], days: u32) -> String {
        let permissions = permissions.iter().copied().collect();
        let wish = TokenWish { name: "test".to_owned(), permissions, groups: None, days };
        let made = self.house.porter.add_token(&self.owner(), name, wish, None).await;
        made.expect("a token").1.expose_secret().to_owned()
    }

    /// A token of an administrator of all groups who may also edit scripts.
    pub(crate) async fn admin(&self) -> String {
        self.token(&[("*", Role::Admin, &[Permission::Script])]).await
    }

    /// Stores a definition.
    pub(crate) async fn apply(&self, yaml: &str) {
        let read = |_: &Path| Ok(yaml.to_owned());
        let kinds = procession::app::job_kinds();
        let loaded = definition::load_definition(Path::new("test.yaml"), &read, &kinds)
            .expect("a definition");
        self.app.apply(&loaded.definition, Apply::Write).await.expect("apply");
    }

    /// Opens a batch and runs it to its end; the clock is moved when nothing else moves.
    pub(crate) async fn run(&self, order: &str) {
        let mut process = self.app.dispatcher(None).await.expect("a process");
        let defs = self.app.definition().await.expect("definitions");
        let order = BatchOrder::parse(order).expect("an order");
        process.open_batches(&defs, &order, "test").await.expect("open");
        self.run_to_end(process).await;
    }

    /// Runs the batches that are open and nobody's to their ends.
    pub(crate) async fn run_open(&self) {
        let mut process = self.app.dispatcher(None).await.expect("a process");
        let taken = process.take_batches().await.expect("take");
        assert!(taken > 0, "no batch is open");
        self.run_to_end(process).await;
    }

    async fn run_to_end(&self, mut process: QueueDispatcher) {
        for _ in 0..100_000 {
            if process.is_idle() {
                return;
            }
            if process.run_tick().await.expect("beat") {
                continue;
            }
            match process.next_wake() {
                Some(at) if process.running() == 0 => self.later(at.since(self.app.clock.now())),
                _ => process.wait_for_report().await,
            }
        }
        panic!("the batch does not end");
    }

    /// `GET`, below `/api/v1`, with the answer's body still to be read.
    pub(crate) async fn listen(&self, path: &str, headers: &[(&str, &str)]) -> Body {
        let mut request = Request::builder().uri(format!("/api/v1{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.router.clone().oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        answer.into_body()
    }

    /// Sends a request as it is.
    pub(crate) async fn request(&self, mut request: Request<Body>) -> Answer {
        let peer = Peer("127.0.0.1:1".parse().expect("an address"));
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = answer.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    /// `GET`, below `/api/v1`; no token when it is empty.
    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        self.send(Method::GET, path, token, &json!(null)).await
    }

    /// A request with JSON, below `/api/v1`; none when it is null.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: &Value,
    ) -> Answer {
        let authorization = format!("Bearer {token}");
        let headers: &[(&str, &str)] = match token {
            "" => &[],
            _ => &[("authorization", &authorization)],
        };
        self.sent(method, path, headers, body).await
    }

    /// The status alone; a stream of events never ends.
    pub(crate) async fn status(&self, method: Method, path: &str, token: &str) -> u16 {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.router.clone().oneshot(request).await.expect("an answer");
        answer.status().as_u16()
    }

    /// Logs in with a password, from an address that a trusted proxy tells.
    pub(crate) async fn log_in(&self, name: &str, password: &str, from: &str) -> Answer {
        let body = json!({ "name": name, "password": password });
        self.sent(Method::POST, "/session", &[("x-forwarded-for", from)], &body).await
    }

    /// Everything that stands in the database's files, as it lies there.
    pub(crate) fn dump(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.folder.path()).expect("a folder");
        let read = |file: std::fs::DirEntry| std::fs::read(file.path()).expect("a file");
        files.flat_map(|file| read(file.expect("a file"))).collect()
    }

    /// What is on record: actions, who, and details.
    pub(crate) async fn audit(&self) -> Vec<(String, String, String)> {
        let mut tx = self.app.db.begin_read().await.expect("read");
        let filter = procession::store::audit::AuditFilter::default();
        let all =
            procession::store::audit::list_records(&mut tx, &filter, 1_000).await.expect("audit");
        let one = |r: procession::store::audit::AuditRecord| {
            (r.entry.action, r.by.actor, r.entry.detail.unwrap_or_default().to_string())
        };
        all.into_iter().rev().map(one).collect()
    }

    /// A request with JSON and these headers, below `/api/v1`.
    pub(crate) async fn sent(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            Value::Null => Body::empty(),
            body => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
        };
        self.request(request.body(body).expect("a request")).await
    }
}
