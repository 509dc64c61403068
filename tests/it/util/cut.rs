//! A TCP relay between a body and its server, which breaks on command: it closes, resets, falls
//! silent one way or both, refuses, delays; now, or when certain bytes pass on their way to the server.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What it does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Hands them on.
    Pass,
    /// Closes both sides.
    Fin,
    /// Resets the client; a new one as soon as it has connected.
    Rst,
    /// Hands nothing on, without a word to anybody.
    Silent,
    /// Hands nothing on to the client.
    Deaf,
    /// Hands nothing on to the server.
    Mute,
}

/// When a plan comes into force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the bytes are handed on.
    Before,
    /// When they are.
    Sent,
    /// When the server has answered them; its answer is kept back.
    Answered,
}

/// Whom a plan hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// The connection that the bytes came on.
    One,
    /// All, and all that come.
    All,
}

#[derive(Clone, Debug)]
struct Plan {
    bytes: Vec<u8>,
    when: When,
    whom: Whom,
    flow: Flow,
}

struct Shared {
    upstream: String,
    all: watch::Sender<Flow>,
    plan: Mutex<Option<Plan>>,
    delay: Mutex<Duration>,
    struck: watch::Sender<bool>,
    accepted: watch::Sender<u32>,
}

/// The relay; it ends with the test's runtime.
pub(crate) struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

impl Relay {
    /// One in front of the server of `url`.
    pub(crate) async fn before(url: &str) -> Self {
        let parsed = url::Url::parse(url).expect("a URL");
        let upstream =
            format!("{}:{}", parsed.host_str().expect("host"), parsed.port().expect("port"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            upstream,
            all: watch::channel(Flow::Pass).0,
            plan: Mutex::new(None),
            delay: Mutex::new(Duration::ZERO),
            struck: watch::channel(false).0,
            accepted: watch::channel(0).0,
        });
        let given = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                given.accepted.send_modify(|n| *n += 1);
                tokio::spawn(serve(client, given.clone()));
            }
        });
        Self { port, shared }
    }

    /// `url` by way of this relay, in the clear, because bytes are looked for.
    pub(crate) fn url(&self, url: &str) -> String {
        let mut parsed = url::Url::parse(url).expect("a URL");
        parsed.set_host(Some("127.0.0.1")).expect("host");
        parsed.set_port(Some(self.port)).expect("port");
        // It reads what passes.
        let plain = if parsed.scheme().starts_with("postgres") {
            "sslmode=disable"
        } else {
            "ssl-mode=DISABLED"
        };
        parsed.set_query(Some(plain));
        parsed.to_string()
    }

    /// From now on, for all connections.
    pub(crate) fn now(&self, flow: Flow) {
        self.shared.all.send_replace(flow);
    }

    /// Once, when these bytes pass on their way to the server.
    pub(crate) fn when(&self, bytes: &str, when: When, whom: Whom, flow: Flow) {
        let bytes = bytes.as_bytes().to_vec();
        *self.shared.plan.lock().expect("plan") = Some(Plan { bytes, when, whom, flow });
    }

    /// Hands everything on so much later.
    pub(crate) fn delay(&self, delay: Duration) {
        *self.shared.delay.lock().expect("delay") = delay;
    }

    /// Returns when the plan has come into force.
    pub(crate) async fn struck(&self) {
        let mut struck = self.shared.struck.subscribe();
        let struck = tokio::time::timeout(Duration::from_secs(30), struck.wait_for(|is| *is));
        struck.await.expect("the bytes must come").expect("a relay");
    }

    /// How many connections came so far.
    pub(crate) fn accepted(&self) -> u32 {
        *self.shared.accepted.borrow()
    }
}

/// Hands one connection's bytes on for as long as it may.
async fn serve(mut client: TcpStream, shared: Arc<Shared>) {
    let mut all = shared.all.subscribe();
    if *all.borrow_and_update() == Flow::Rst {
        let _reset = client.set_zero_linger();
        return;
    }
    let Ok(mut server) = TcpStream::connect(&shared.upstream).await else { return };
    let (mut own, mut armed, mut tail) = (Flow::Pass, None::<Plan>, Vec::new());
    let (mut up, mut down) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let flow = if own == Flow::Pass { *all.borrow_and_update() } else { own };
        match flow {
            Flow::Fin => return,
            Flow::Rst => {
                let _reset = client.set_zero_linger();
                return;
            }
            Flow::Pass | Flow::Silent | Flow::Deaf | Flow::Mute => {}
        }
        let is_up = matches!(flow, Flow::Pass | Flow::Deaf);
        let is_down = matches!(flow, Flow::Pass | Flow::Mute);
        tokio::select! {
            changed = all.changed() => if changed.is_err() { return },
            read = client.read(&mut up), if is_up => {
                let Ok(n @ 1..) = read else { return };
                let hit = hit(&shared, &mut tail, &up[..n]);
                if let Some(plan) = hit.as_ref().filter(|p| p.when == When::Before) {
                    own = strike(&shared, plan);
                    continue;
                }
                wait(&shared).await;
                if server.write_all(&up[..n]).await.is_err() { return }
                match hit {
                    Some(plan) if plan.when == When::Sent => own = strike(&shared, &plan),
                    Some(plan) => armed = Some(plan),
                    None => {}
                }
            }
            read = server.read(&mut down), if is_down => {
                let Ok(n @ 1..) = read else { return };
                if let Some(plan) = armed.take() {
                    own = strike(&shared, &plan);
                    continue;
                }
                wait(&shared).await;
                if client.write_all(&down[..n]).await.is_err() { return }
            }
        }
    }
}

/// The plan, when its bytes end in this piece; they may have begun in the one before.
fn hit(shared: &Shared, tail: &mut Vec<u8>, piece: &[u8]) -> Option<Plan> {
    let mut plan = shared.plan.lock().expect("plan");
    let wanted = plan.as_ref()?.bytes.clone();
    tail.extend_from_slice(piece);
    let is_there = tail.windows(wanted.len()).any(|window| window == wanted);
    let keep = tail.len().saturating_sub(wanted.len() - 1);
    tail.drain(..keep);
    if is_there { plan.take() } else { None }
}

fn strike(shared: &Shared, plan: &Plan) -> Flow {
    if plan.whom == Whom::All {
        shared.all.send_replace(plan.flow);
    }
    shared.struck.send_replace(true);
    plan.flow
}

async fn wait(shared: &Shared) {
    let delay = *shared.delay.lock().expect("delay");
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
