//! P-12: a process that dies around the sending of a mail. The real program, on SQLite, with mails as files:
//! what a server has taken stays taken. The answers of servers are tested in `tests/it/notify`.

use crate::util::query;
use std::fs;
use std::process::{Command, Output};

struct House(tempfile::TempDir);

const SETTINGS: &str = "
[notify.mail]
transport = \"file\"
from = \"batch@bank.example\"
folder = \"mails\"
";

const JOBS: &str = "
groups: { g: { notify_email: [ops@bank.example] } }
jobs: { BAD: { type: SCRIPT, interpreter: sh, script: exit 3 } }
";

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("procession.toml"), SETTINGS).expect("settings");
        fs::write(dir.path().join("jobs.yaml"), JOBS).expect("jobs");
        Self(dir)
    }

    fn procession(&self, words: &[&str], failpoints: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        command.args(words).current_dir(self.0.path()).env("FAILPOINTS", failpoints);
        command.output().expect("the program starts")
    }

    /// Names of the mails that were taken; each is named by its Message-ID.
    fn mails(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.0.path().join("mails")) else { return Vec::new() };
        let name = |file: std::io::Result<fs::DirEntry>| {
            file.expect("a file").file_name().to_string_lossy().into_owned()
        };
        files.map(name).filter(|name| name.ends_with(".eml")).collect()
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.path().join("procession.db").display())
    }

    async fn row(&self) -> Vec<Option<String>> {
        let sql = "SELECT status, retry_count, claimed_by IS NULL FROM email_notifications";
        let mut rows = query(&self.url(), sql).await;
        assert_eq!(rows.len(), 1, "one letter");
        rows.remove(0)
    }

    /// Lets the time pass for which a process may keep what it took.
    async fn lease_runs_out(&self) {
        query(&self.url(), "UPDATE email_notifications SET next_at = created_at").await;
    }
}

fn said(row: &[Option<String>]) -> Vec<&str> {
    row.iter().map(|text| text.as_deref().unwrap_or("-")).collect()
}

#[tokio::test]
async fn a_process_that_dies_around_the_sending_loses_no_mail() {
    for (place, taken) in [("mail.before", 0), ("mail.after_dot", 1)] {
        let house = House::new();
        let died = house.procession(
            &["run", "jobs.yaml", "--batch-no", "202407"],
            &format!("{place}=return(abort)"),
        );
        assert_eq!(died.status.code(), None, "{place}: it was to die");
        assert_eq!(house.mails().len(), taken, "{place}");
        assert_eq!(said(&house.row().await), ["pending", "0", "0"], "{place}: it is still taken");
        let before = house.mails();
        // Nobody else sends it while it may be on its way.
        let early = house.procession(&["outbox", "send"], "");
        assert!(String::from_utf8_lossy(&early.stdout).starts_with("0 sent"), "{early:?}");
        house.lease_runs_out().await;
        let sent = house.procession(&["outbox", "send"], "");
        assert!(String::from_utf8_lossy(&sent.stdout).starts_with("1 sent"), "{sent:?}");
        assert_eq!(said(&house.row().await), ["sent", "0", "1"], "{place}");
        assert_eq!(house.mails().len(), 1, "{place}: a second time it has the same Message-ID");
        assert!(before.is_empty() || before == house.mails(), "{before:?}");
    }
}

#[tokio::test]
async fn what_is_sent_again_has_the_same_message_id() {
    let house = House::new();
    let failed = house.procession(&["run", "jobs.yaml", "--batch-no", "202407"], "");
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert_eq!(said(&house.row().await), ["sent", "0", "1"]);
    let again = house.procession(&["outbox", "resend", "1"], "");
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let sent = house.procession(&["outbox", "send"], "");
    assert!(String::from_utf8_lossy(&sent.stdout).starts_with("1 sent"), "{sent:?}");
    assert_eq!(house.mails().len(), 1, "sent again, with the same Message-ID");
}
