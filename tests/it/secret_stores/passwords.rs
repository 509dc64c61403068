//! Passwords of data sources and of Procession's own database that are secrets, with a server that asks for them
//! (MySQL or MariaDB; the PostgreSQL of the tests trusts everybody). The folder is what Kubernetes would mount.

use super::write_private;
use crate::cli::said;
use crate::util::{Scratch, query, with_scratch};
use procession::domain::source::DialectName;
use std::path::Path;

/// A user of a scratch database, removed with it.
struct Account<'a> {
    scratch: &'a Scratch,
    name: String,
}

impl<'a> Account<'a> {
    async fn new(scratch: &'a Scratch, password: &str) -> Self {
        let name = format!("p_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let (database, account) = (&scratch.name, Self { scratch, name });
        let user = account.quoted();
        scratch
            .setup(&[
                &format!("CREATE USER {user} IDENTIFIED BY '{password}'"),
                &format!("GRANT ALL ON {database}.* TO {user}"),
            ])
            .await;
        account
    }

    fn quoted(&self) -> String {
        format!("'{}'@'%'", self.name)
    }

    /// The URL of the scratch database as this user.
    fn url(&self) -> String {
        let (_, rest) = self.scratch.url.split_once('@').expect("user@host");
        format!("mysql://{}@{rest}", self.name)
    }

    async fn set_password(&self, password: &str) {
        let sql = format!("ALTER USER {} IDENTIFIED BY '{password}'", self.quoted());
        query(&self.scratch.url, &sql).await;
    }

    async fn remove(&self) {
        query(&self.scratch.url, &format!("DROP USER {}", self.quoted())).await;
    }
}

fn settings(folder: &Path, entry: &str, more: &str) {
    let path = folder.join("mount");
    let text = format!(
        "{more}[secret_stores.k8s]\ntype = 'folder'\npath = '{}'\n[secret_stores.k8s.secrets]\n{entry}\n",
        path.display()
    );
    std::fs::write(folder.join("procession.toml"), text).expect("settings");
}

fn home(password: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("folder");
    std::fs::create_dir(home.path().join("mount")).expect("folder");
    write_private(&home.path().join("mount/LEDGER_PW"), password);
    home
}

fn run(folder: &Path, batch_no: &str) -> (i32, String) {
    let (code, out, err) = said(folder, &["run", "dag.yaml", "--batch-no", batch_no]);
    (code, out + &err)
}

#[tokio::test]
async fn a_source_takes_its_password_from_a_store_anew_for_each_attempt() {
    with_scratch(DialectName::Mysql, async |scratch| {
        let account = Account::new(&scratch, "first-password").await;
        let home = home("first-password\n");
        let path = home.path();
        let dag = format!(
            "sources: {{ ledger: {{ url: '{}', password_secret: LEDGER_PW }} }}\n\
             jobs:\n  A: {{ type: SQL, source: ledger, sql: 'SELECT 1' }}\n\
             \x20 SPY: {{ type: SCRIPT, params: [{{name: pw, value: '${{secret.LEDGER_PW}}'}}], script: 'true' }}\n",
            account.url()
        );
        let alone = dag.split("  SPY").next().expect("the first job");
        std::fs::write(path.join("dag.yaml"), alone).expect("file");

        // Not for this source: who may use the source is written elsewhere.
        settings(path, "LEDGER_PW = { groups = ['*'] }", "");
        let (code, words) = run(path, "1");
        assert_ne!(code, 0, "{words}");
        assert!(words.contains("add sources = [\"ledger\"] to secret_stores.k8s.secrets.LEDGER_PW"), "{words}");

        settings(path, "LEDGER_PW = { sources = ['ledger'] }", "");
        let (code, words) = run(path, "2");
        assert_eq!(code, 0, "{words}");
        account.set_password("second-password").await;
        let (code, words) = run(path, "3");
        assert_ne!(code, 0, "the old password: {words}");
        assert!(!words.contains("first-password"), "{words}");
        write_private(&path.join("mount/LEDGER_PW"), "second-password");
        let (code, words) = run(path, "4");
        assert_eq!(code, 0, "{words}");

        let (code, out, err) = said(path, &["--json", "source", "list"]);
        assert_eq!(code, 0, "{out}{err}");
        assert!(out.contains("\"secret LEDGER_PW\""), "{out}");
        let (_, out, _) = said(path, &["source", "check", "ledger"]);
        assert!(!out.contains("Access denied"), "{out}");
        let (_, out, _) = said(path, &["--json", "secret", "list"]);
        assert!(out.contains("source ledger"), "what uses it: {out}");

        // A job cannot have it for itself.
        std::fs::write(path.join("dag.yaml"), &dag).expect("file");
        let (code, words) = run(path, "5");
        assert_eq!(code, 2, "{words}");
        assert!(words.contains("may not use secret LEDGER_PW"), "{words}");
        account.remove().await;
    })
    .await;
}

#[tokio::test]
async fn the_metadata_database_takes_its_password_from_a_store() {
    with_scratch(DialectName::Mysql, async |scratch| {
        let account = Account::new(&scratch, "first-password").await;
        let home = home("first-password");
        let path = home.path();
        let database =
            format!("[database]\nurl = '{}'\npassword_secret = 'LEDGER_PW'\n", account.url());
        settings(path, "LEDGER_PW = { for_procession = true }", &database);
        let (code, out, err) = said(path, &["migrate"]);
        assert_eq!(code, 0, "{out}{err}");
        write_private(&path.join("mount/LEDGER_PW"), "wrong");
        let (code, out, err) = said(path, &["batch", "list"]);
        assert!(code != 0 && (out + &err).contains("Access denied"), "{err}");
        std::fs::remove_file(path.join("mount/LEDGER_PW")).expect("removed");
        let (code, out, err) = said(path, &["batch", "list"]);
        let words = out + &err;
        assert!(
            code == 2 && words.contains("database.password_secret: secret LEDGER_PW"),
            "{code} {words}"
        );
        account.remove().await;
    })
    .await;
}

/// A new connection of a process that runs takes the password that the secret has by then.
#[tokio::test]
async fn a_pool_takes_a_password_that_was_replaced() {
    use procession::domain::job::secret::SharedSecret;
    use secrecy::SecretString;
    with_scratch(DialectName::Mysql, async |scratch| {
        let account = Account::new(&scratch, "first-password").await;
        let shared = SharedSecret::new(SecretString::from("first-password"));
        let none = tempfile::NamedTempFile::new().expect("empty settings");
        let mut settings = crate::util::config(none.path()).database_settings();
        settings.url = account.url().into();
        settings.password = Some(shared.get());
        settings.rotated_password = Some(shared.shared_value());
        let db = procession::db::Db::connect(&settings).await.expect("the first password");
        // Held, so that the next transaction needs a new connection.
        let held = db.begin().await.expect("a transaction");
        account.set_password("second-password").await;
        shared.replace("second-password".into());
        let another = db.begin().await;
        another.expect("the new password").rollback().await.expect("undone");
        held.rollback().await.expect("undone");
        db.close().await;
        account.remove().await;
    })
    .await;
}
