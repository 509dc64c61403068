//! A real server: OpenBao, which speaks the API of HashiCorp Vault, over TLS with an authority of its own.
//! `scripts/test-vault.sh` installs it. HashiCorp's own server is not among the packages that a test can have.

use super::{read, refusal, stores, value, vault_options, write_private};
use crate::util::port::free_port;
use procession::outbound::{self, ClientTlsFiles, TransportProtection};
use procession::secret_store::vault::{CredentialSource, VaultAuth};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROOT: &str = "root-token-of-the-test";

/// A server that runs until this is dropped; it keeps everything in memory.
struct OpenBao {
    process: Child,
    folder: tempfile::TempDir,
    address: String,
    client: Client,
}

impl Drop for OpenBao {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl OpenBao {
    async fn start() -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-vault/bao");
        assert!(program.exists(), "there is no server to test with; run scripts/test-vault.sh");
        let folder = tempfile::tempdir().expect("a folder");
        let listen = format!("127.0.0.1:{}", free_port());
        let certificates = folder.path().join("tls");
        std::fs::create_dir(&certificates).expect("a folder");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let process = Command::new(program)
            .args(["server", "-dev", "-dev-tls", "-dev-no-store-token"])
            .arg(format!("-dev-listen-address={listen}"))
            .arg(format!("-dev-root-token-id={ROOT}"))
            .arg(format!("-dev-tls-cert-dir={}", certificates.display()))
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("bao runs");
        let address = format!("https://{listen}");
        // Until the authority is there, which the server makes.
        let client = outbound::client(TransportProtection::Clear)
            .and_then(outbound::built)
            .expect("a client");
        let mut bao = Self { process, folder, address, client };
        bao.wait_until_it_answers().await;
        bao.prepare().await;
        bao
    }

    fn authority(&self) -> PathBuf {
        let folder = std::fs::read_dir(self.folder.path().join("tls")).expect("a folder");
        let names = folder.map(|entry| entry.expect("an entry").path());
        let is_authority = |path: &PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            name.ends_with("-ca.pem") || name == "ca.pem"
        };
        names.into_iter().find(is_authority).unwrap_or_default()
    }

    async fn wait_until_it_answers(&mut self) {
        for _ in 0..300 {
            let authority = self.authority();
            let files = ClientTlsFiles::of_authorities("tls_ca", &authority);
            if authority.exists()
                && let Ok(tls) = files.config()
            {
                self.client = outbound::built(outbound::client_of(tls)).expect("a client");
                let url = format!("{}/v1/sys/health", self.address);
                let answer = self.client.get(url).send().await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        panic!("bao does not answer: {log}");
    }

    /// Asks it as its administrator.
    async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("{}/v1/{path}", self.address);
        let request =
            self.client.request(method, url).header("x-vault-token", ROOT).body(body.to_string());
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a text");
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn prepare(&self) {
        let put = async |path: &str, body: Value| self.ask(Method::POST, path, body).await;
        put("sys/auth/approle", json!({"type": "approle"})).await;
        let policy = "path \"secret/data/batch/*\" { capabilities = [\"read\"] }";
        put("sys/policies/acl/batch", json!({ "policy": policy })).await;
        let role = json!({"token_ttl": "1m", "token_max_ttl": "2m", "token_policies": ["batch"]});
        put("auth/approle/role/procession", role).await;
        put("auth/approle/role/procession/role-id", json!({"role_id": "the-role"})).await;
        self.put_secret_id("the-secret-id").await;
        self.put_password("hunter-1").await;
        put("secret/data/other", json!({"data": {"password": "not-ours"}})).await;
    }

    async fn put_secret_id(&self, secret_id: &str) {
        let path = "auth/approle/role/procession/custom-secret-id";
        self.ask(Method::POST, path, json!({ "secret_id": secret_id })).await;
        write_private(&self.folder.path().join("secret-id"), secret_id);
    }

    async fn put_password(&self, password: &str) {
        let body = json!({"data": {"password": password, "port": 5432}});
        self.ask(Method::POST, "secret/data/batch/fx", body).await;
    }

    fn stores(&self, key: &str) -> procession::secret_store::SecretStores {
        let mut options = vault_options(&self.address, self.folder.path());
        options.tls_ca = Some(self.authority());
        stores(options, key)
    }
}

#[tokio::test]
async fn secrets_are_read_from_a_real_server_and_replaced_there() {
    let bao = OpenBao::start().await;
    let fx = bao.stores("batch/fx#password");
    let first = read(&fx, 0).await.expect("a secret");
    assert_eq!(first.remark.as_deref(), Some("version 1"));
    bao.put_password("hunter-2").await;
    assert_eq!(value(&fx, 1).await, "hunter-2");
    assert_eq!(value(&bao.stores("batch/fx#port"), 0).await, "5432");
    // Two thirds of its minute are over, and it is renewed; a login of two minutes ago has ended.
    assert_eq!(value(&fx, 45).await, "hunter-2");
    assert_eq!(value(&fx, 500).await, "hunter-2");
    for (key, words) in [
        ("other#password", "its login may not read secret/data/other (403: permission denied)"),
        ("batch/none#x", "it has nothing at secret/data/batch/none (404)"),
        ("batch/fx#x", "has no field x; its fields are: password, port"),
    ] {
        let (is_away, why) = refusal(&bao.stores(key), 0).await;
        assert!(!is_away && why.contains(words), "{why}");
    }
    bao.ask(Method::DELETE, "secret/data/batch/fx", Value::Null).await;
    let (is_away, why) = refusal(&fx, 501).await;
    assert!(
        !is_away && why.contains("version 2 of secret/data/batch/fx is deleted since"),
        "{why}"
    );
}

#[tokio::test]
async fn a_login_that_a_real_server_ended_is_made_anew() {
    let bao = OpenBao::start().await;
    let fx = bao.stores("batch/fx#password");
    assert_eq!(value(&fx, 0).await, "hunter-1");
    bao.ask(Method::POST, "sys/leases/revoke-prefix/auth/approle", Value::Null).await;
    assert_eq!(value(&fx, 1).await, "hunter-1");
    // The secret id is replaced, as banks do every few weeks.
    bao.put_secret_id("another-secret-id").await;
    assert_eq!(value(&fx, 500).await, "hunter-1");
    write_private(&bao.folder.path().join("secret-id"), "wrong");
    let (is_away, why) = refusal(&fx, 1_000).await;
    let words = "it refused the login by AppRole (400: invalid role or secret ID)";
    assert!(!is_away && why.contains(words), "{why}");
    // A token of somebody else's.
    let made = bao.ask(Method::POST, "auth/token/create", json!({"policies": ["batch"]})).await;
    let token = made["auth"]["client_token"].as_str().expect("a token").to_owned();
    let file = bao.folder.path().join("token");
    write_private(&file, &token);
    let mut options = vault_options(&bao.address, bao.folder.path());
    options.tls_ca = Some(bao.authority());
    options.auth = VaultAuth::Token(CredentialSource::File(file.clone()));
    let by_token = stores(options, "batch/fx#password");
    assert_eq!(value(&by_token, 0).await, "hunter-1");
    bao.ask(Method::POST, "auth/token/revoke", json!({ "token": token })).await;
    let (is_away, why) = refusal(&by_token, 1).await;
    assert!(!is_away && why.contains("(403: permission denied)") && !why.contains(&token), "{why}");
}

#[tokio::test]
async fn a_real_server_that_is_sealed_or_not_trusted_is_said_to_be() {
    let bao = OpenBao::start().await;
    let fx = bao.stores("batch/fx#password");
    let untrusted = vault_options(&bao.address, bao.folder.path());
    let (is_away, why) = refusal(&stores(untrusted, "batch/fx#password"), 0).await;
    assert!(!is_away && why.contains("certificate") && why.contains("tls_ca"), "{why}");
    assert_eq!(value(&fx, 0).await, "hunter-1");
    bao.ask(Method::POST, "sys/seal", Value::Null).await;
    let (is_away, why) = refusal(&fx, 1).await;
    assert!(is_away && why.contains("(503: Vault is sealed); unseal it"), "{why}");
}

#[tokio::test]
async fn an_authority_that_is_replaced_counts_without_a_restart() {
    let bao = OpenBao::start().await;
    let file = bao.folder.path().join("trusted.pem");
    let other = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).expect("another");
    std::fs::write(&file, other.cert.pem()).expect("file");
    let mut options = vault_options(&bao.address, bao.folder.path());
    options.tls_ca = Some(file.clone());
    let fx = stores(options, "batch/fx#password");
    let (is_away, why) = refusal(&fx, 0).await;
    assert!(!is_away && why.contains("certificate"), "{why}");
    std::fs::copy(bao.authority(), &file).expect("the right one");
    assert_eq!(value(&fx, 1).await, "hunter-1");
}
