//! The mail servers of tests/smtp, started for one test.

use procession::notify::{
    Auth, Carriers, Login, MailOptions, MailTransport, NotifyOptions, SmtpOptions, Tls,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Mail servers with a certificate for 127.0.0.1, of an authority of their own.
pub(super) struct Servers {
    process: Child,
    ports: Value,
    folder: tempfile::TempDir,
}

impl Servers {
    pub(super) fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let run = root.join("target/test-smtp-venv/run");
        assert!(run.exists(), "there is no mail server to test with; run scripts/test-smtp.sh");
        let folder = tempfile::tempdir().expect("a folder");
        certificates(folder.path());
        let at = |name: &str| folder.path().join(name);
        let mut process = Command::new(run)
            .arg(root.join("tests/smtp/server.py"))
            .arg("--cert")
            .arg(at("server.pem"))
            .arg("--key")
            .arg(at("server.key"))
            .arg("--mails")
            .arg(at("mails.jsonl"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("its ports");
        let ports = serde_json::from_str(&line).expect("ports as JSON");
        Self { process, ports, folder }
    }

    /// The settings for one of them, with the right login.
    pub(super) fn options(&self, server: &str, tls: Tls) -> SmtpOptions {
        let port = self.ports[server].as_u64().and_then(|port| u16::try_from(port).ok());
        let login = login("geheim", Auth::Auto);
        let has_login = matches!(tls, Tls::StartTls | Tls::Implicit);
        SmtpOptions {
            port: Some(port.expect("a port")),
            tls,
            ca_file: Some(self.ca_file()),
            login: Some(login).filter(|_| has_login),
            hello: Some("batch-1.bank.example".to_owned()),
            ..SmtpOptions::new("127.0.0.1")
        }
    }

    pub(super) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// What they have taken, in order.
    pub(super) fn mails(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("mails.jsonl"));
        let text = text.unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a mail")).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn login(password: &str, auth: Auth) -> Login {
    Login { user: "batch".to_owned(), password: password.into(), auth }
}

/// Carriers that know one mail server.
pub(super) fn carriers(server: SmtpOptions) -> Carriers {
    let mail = MailOptions {
        from: "月末批处理 <batch@bank.example>".to_owned(),
        reply_to: Some("ops@bank.example".to_owned()),
        transport: MailTransport::Smtp(server),
    };
    open(mail, Duration::from_secs(20))
}

pub(super) fn open(mail: MailOptions, timeout: Duration) -> Carriers {
    let options = NotifyOptions { mail: Some(mail), timeout, ..NotifyOptions::default() };
    Carriers::from_options(&options).expect("good settings")
}

fn certificates(folder: &Path) {
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::new(Vec::new()).expect("an authority");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).expect("a certificate").pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let pem = params.signed_by(&key, &issuer).expect("a certificate").pem();
    for (name, text) in
        [("ca.pem", ca_pem), ("server.pem", pem), ("server.key", key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).expect("written");
    }
}
