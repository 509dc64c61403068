//! What a hostile script of one group reaches of the service and of another group: as a user of its own, which takes
//! root, and in namespaces and under Landlock, which takes no rights. As root the second half runs as `nobody`.

use crate::util::bench::{Bench, Ran};
use procession::domain::id::GroupCode;
use procession::domain::job::outcome::{AttemptEnd, Stream};
use procession::domain::job::script_isolation::{IsolationPolicy, ScriptUsers};
use procession::domain::job::secret::MaskedValue;
use procession::domain::job::{ParamMode, ParamType};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The users of the two groups: every Debian and every Red Hat has both.
const USERS: [(&str, &str); 2] = [("month_end", "nobody"), ("ar", "daemon")];

fn is_root() -> bool {
    std::fs::metadata("/proc/self").expect("own").uid() == 0
}

fn script(text: &str, group: &str) -> Bench {
    let mut bench = Bench::script(text).options(|options| {
        let by_group = USERS.map(|(group, user)| (group.to_owned(), user.to_owned())).into();
        // The user alone; below is what the kernel's walls do.
        options.script_users = ScriptUsers { by_group, policy: IsolationPolicy::Off };
    });
    bench.task.job.group = GroupCode::parse(group).expect("group");
    bench
}

fn is_refused_without_root(ran: &Ran) -> bool {
    if is_root() {
        return false;
    }
    assert_eq!(ran.outcome.end, AttemptEnd::Failed);
    assert!(ran.message().contains("which only root can start"), "{}", ran.message());
    true
}

/// Each line tries one thing and says so if it worked.
const ATTACK: &str = r#"
reach() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "REACHED $name"; fi; }
reach key cat "$PROCESSION_PARAM_SECRETS/secret.key"
reach database cat "$PROCESSION_PARAM_SECRETS/procession.db"
reach settings cat "$PROCESSION_PARAM_SECRETS/procession.toml"
reach rewriting sh -c "echo x > $PROCESSION_PARAM_SECRETS/procession.db"
reach removing rm -f "$PROCESSION_PARAM_SECRETS/procession.db"
reach service-environment cat "/proc/$PROCESSION_PARAM_SERVICE/environ"
reach service-memory head -c 1 "/proc/$PROCESSION_PARAM_SERVICE/mem"
reach service-files ls "/proc/$PROCESSION_PARAM_SERVICE/fd"
reach service-signal kill -0 "$PROCESSION_PARAM_SERVICE"
reach supervisor-signal kill -0 "$PPID"
reach supervisor-environment cat "/proc/$PPID/environ"
other=$(cat "$PROCESSION_PARAM_SHARED/pid")
folder=$(cat "$PROCESSION_PARAM_SHARED/folder")
reach other-environment cat "/proc/$other/environ"
reach other-signal kill -0 "$other"
reach other-folder ls "$folder"
reach other-script cat "$folder/script"
reach becoming-root su root -c true
reach becoming-other setpriv --reuid=1 true
echo "user $(id -un), groups $(id -G), $(grep NoNewPrivs /proc/self/status | tr '\t' ' ')"
echo "::output done=yes" > /dev/stdout
echo fine > "$TMPDIR/mine" && cat "$TMPDIR/mine"
cat "$0" > /dev/null && echo "reads its own script"
"#;

fn with_places(bench: Bench, secrets: &Path, shared: &Path) -> Bench {
    let service = std::process::id().to_string();
    let text = |path: &Path| path.display().to_string();
    [("secrets", text(secrets)), ("shared", text(shared)), ("service", service)]
        .into_iter()
        .fold(bench, |bench, (name, value)| {
            bench.param(name, ParamMode::In, ParamType::Text, Some(&value))
        })
}

/// A folder that everybody may enter, so that the files' own rights count.
fn open_folder(mode: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).expect("mode");
    folder
}

#[tokio::test]
async fn a_hostile_script_reaches_nothing_of_service_or_other_group() {
    let (secrets, shared) = (open_folder(0o755), open_folder(0o777));
    for name in ["secret.key", "procession.db", "procession.toml"] {
        let path = secrets.path().join(name);
        std::fs::write(&path, "secret").expect("file");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("mode");
    }
    let victim = "umask 0; pwd > $PROCESSION_PARAM_SHARED/folder; echo $$ > $PROCESSION_PARAM_SHARED/new; \
                  mv $PROCESSION_PARAM_SHARED/new $PROCESSION_PARAM_SHARED/pid; \
                  while [ ! -e $PROCESSION_PARAM_SHARED/over ]; do sleep 0.05; done";
    let victim = with_places(script(victim, "ar"), secrets.path(), shared.path());
    let attack = async {
        while is_root() && !shared.path().join("pid").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let attack = with_places(script(ATTACK, "month_end"), secrets.path(), shared.path());
        let ran = attack.run().await;
        std::fs::write(shared.path().join("over"), "").expect("file");
        ran
    };
    let (ran, victim) = tokio::join!(attack, victim.run());
    if is_refused_without_root(&ran) && is_refused_without_root(&victim) {
        return;
    }
    assert_eq!(victim.outcome.end, AttemptEnd::Success, "{}", victim.text());
    assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
    assert!(!ran.text().contains("REACHED"), "{}", ran.text());
    let lines = ran.of(Stream::Stdout);
    let who = lines.iter().find(|line| line.starts_with("user ")).expect("who it is");
    assert!(who.starts_with("user nobody, groups 65534, NoNewPrivs: 1"), "{who}");
    assert!(lines.contains(&"fine") && lines.contains(&"reads its own script"), "{}", ran.text());
    assert_eq!(ran.value("done"), "yes", "it can open /dev/stdout");
    assert!(ran.text().contains(", user nobody"), "the log says as whom it ran: {}", ran.text());
    let kept = std::fs::read_to_string(secrets.path().join("procession.db")).expect("still there");
    assert_eq!(kept, "secret");
}

/// What a script of another user leaves is found and ended by its supervisor, and its folder goes.
#[tokio::test]
async fn a_script_of_another_user_is_stopped_whole() {
    let shared = open_folder(0o777);
    let text = "pwd > $PROCESSION_PARAM_SHARED/folder; trap '' TERM; setsid sleep 300 & echo $! > \
                $PROCESSION_PARAM_SHARED/new; mv $PROCESSION_PARAM_SHARED/new $PROCESSION_PARAM_SHARED/pid; \
                while true; do sleep 1; done";
    let bench = with_places(script(text, "ar"), shared.path(), shared.path());
    let pid = shared.path().join("pid");
    let ready = async {
        while is_root() && !pid.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ran = bench.stop_when(procession::handler::StopReason::Killed, ready).await;
    if !is_root() {
        return;
    }
    assert_eq!(ran.outcome.end, AttemptEnd::Killed, "{}", ran.text());
    let pid = std::fs::read_to_string(pid).expect("a number");
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "{}", ran.text());
    let folder = std::fs::read_to_string(shared.path().join("folder")).expect("a path");
    assert!(!Path::new(folder.trim()).exists(), "its private folder is removed");
}

#[tokio::test]
async fn a_script_that_cannot_be_isolated_is_refused_when_it_must_be() {
    let required = |bench: Bench| {
        bench.options(|options| options.script_users.policy = IsolationPolicy::Required)
    };
    if is_root() {
        let ran = required(script("echo ran", "gl")).run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        assert!(
            ran.message().contains("add gl = \"USER\" to [script.run_as]"),
            "{}",
            ran.message()
        );
        assert!(ran.of(Stream::Stdout).is_empty(), "{}", ran.text());
    }
    for (user, said) in [
        ("no-such-user", "does not exist on this machine"),
        ("root", "as whom Procession itself runs"),
    ] {
        let bench = Bench::script("echo ran").options(|options| {
            options.script_users.by_group = [("*".to_owned(), user.to_owned())].into();
        });
        let ran = bench.run().await;
        if !is_refused_without_root(&ran) {
            assert!(ran.message().contains(said), "{}", ran.message());
        }
    }
    let ran = script("echo ran", "ar").alone().run().await;
    if !is_refused_without_root(&ran) {
        assert!(ran.message().contains("runs under its supervisor alone"), "{}", ran.message());
    }
    for bench in [
        required(Bench::script("echo ran")).alone(),
        required(Bench::script("echo ran")).options(|o| o.keeper = Some("/bin/true".into())),
    ] {
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Failed);
        let said =
            "script.isolation is \"required\", and a script cannot be isolated on this machine";
        assert!(ran.message().starts_with(said), "{}", ran.message());
        assert!(ran.of(Stream::Stdout).is_empty(), "{}", ran.text());
    }
}

#[tokio::test]
async fn a_secret_reaches_a_script_in_a_file_when_that_is_asked() {
    let text = "cat $PROCESSION_PARAM_PW_FILE; echo; stat -c %a $PROCESSION_PARAM_PW_FILE; \
                env | grep -c '^PROCESSION_PARAM_PW='; echo $PROCESSION_PARAM_OPEN";
    for user in [None, Some("nobody")] {
        let mut bench = Bench::script(text)
            .param("pw", ParamMode::In, ParamType::Text, None)
            .param("open", ParamMode::In, ParamType::Text, Some("plain"))
            .options(|options| {
                options.secrets_in_files = true;
                let user = user.filter(|_| is_root());
                options.script_users.by_group =
                    user.map(|user| ("*".to_owned(), user.to_owned())).into_iter().collect();
            });
        bench.task.params[0].value = Some(MaskedValue::Secret("hunter\n2".into()));
        let ran = bench.run().await;
        assert_eq!(ran.outcome.end, AttemptEnd::Success, "{}", ran.text());
        let lines = ran.of(Stream::Stdout);
        assert_eq!(lines, ["hunter", "2", "400", "0", "plain"], "{}", ran.text());
    }
}

/// `nobody` of every system.
const NOBODY: u32 = 65_534;

/// An installation of a user without rights, in a folder of its own: what it ran, by job.
struct Unprivileged {
    home: tempfile::TempDir,
    outside: tempfile::TempDir,
    program: std::path::PathBuf,
}

impl Unprivileged {
    fn new(settings: &str) -> Self {
        let home = open_folder(0o755);
        let outside = open_folder(0o777);
        std::fs::write(home.path().join("procession.toml"), settings).expect("settings");
        std::fs::write(home.path().join("secret.key"), "the-key").expect("key");
        std::fs::write(home.path().join("foreign"), "the foreign secret").expect("secret");
        std::fs::write(home.path().join("password"), "the password").expect("password");
        let program = home.path().join("procession");
        // The checkout may be one that nobody else may enter. Another process copies: a file that this one had open for
        // writing is inherited by what other threads start just then, and cannot be run meanwhile (ETXTBSY).
        let from = env!("CARGO_BIN_EXE_procession");
        let copied = Command::new("cp").arg(from).arg(&program).status().expect("cp");
        assert!(copied.success(), "cp {from}: {copied}");
        if is_root() {
            let files = ["secret.key", "foreign", "password"].map(|name| home.path().join(name));
            for path in files.into_iter().chain([home.path().to_owned()]) {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("chown");
            }
        }
        Self { home, outside, program }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.home.path()).env_remove("PROCESSION_DB");
        command.env("PROCESSION_SECRET_KEY_FILE", self.home.path().join("secret.key"));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Runs the jobs as this batch; the log of `ATTACK`, and the exit code.
    fn run(&self, batch_no: &str, jobs: &str) -> (i32, String) {
        let place = |path: &Path| path.display().to_string();
        let jobs = jobs.replace("HOME", &place(self.home.path()));
        let jobs = jobs.replace("OUTSIDE", &place(self.outside.path()));
        std::fs::write(self.home.path().join("dag.yaml"), jobs).expect("file");
        let run = ["run", "dag.yaml", "--batch-no", batch_no];
        let worker = self.command(&run).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let worker = worker.expect("a worker");
        std::fs::write(self.outside.path().join("worker.new"), worker.id().to_string())
            .expect("file");
        let worker_file = self.outside.path().join("worker");
        std::fs::rename(self.outside.path().join("worker.new"), worker_file).expect("file");
        let ran = worker.wait_with_output().expect("its end");
        let log = self.command(&["logs", batch_no, "ATTACK"]).output().expect("a log");
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.code().expect("an exit code"), text + &told)
    }
}

/// Another script of the same installation, with a secret of its own, and one that looks for it. Each line of it tries
/// one thing and says so if it worked.
const NEIGHBOURS: &str = r#"
secrets:
  FOREIGN: { file: HOME/foreign, owner_group: another }
sources:
  ledger: { url: "postgres://etl@127.0.0.1:1/none", password_file: HOME/password }
jobs:
  VICTIM:
    type: SCRIPT
    params: [{ name: mark, value: mark-of-the-victim }]
    script: |
      # text-of-the-victim
      touch OUTSIDE/victim
      while [ ! -e OUTSIDE/over ]; do sleep 0.05; done
  ATTACK:
    type: SCRIPT
    script: |
      while [ ! -e OUTSIDE/victim ] || [ ! -e OUTSIDE/worker ]; do sleep 0.05; done
      reach() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name" >> OUTSIDE/reached; fi; }
      worker=$(cat OUTSIDE/worker)
      reach key grep -q the-key HOME/secret.key
      reach settings grep -q script HOME/procession.toml
      reach foreign-secret grep -q foreign HOME/foreign
      reach source-password grep -q password HOME/password
      reach database grep -aq SQLite HOME/procession.db
      reach wal test -s HOME/procession.db-wal
      reach service-environment grep -aq PATH /proc/$worker/environ
      reach service-files ls /proc/$worker/fd/0
      reach service-signal kill -0 $worker
      reach other-environment sh -c 'cat /proc/[0-9]*/environ | grep -aq PARAM_MARK'
      reach other-folder sh -c 'grep -rq text-of-the-victi[m] /tmp/procession-scripts-*/'
      reach unmounting umount HOME/secret.key
      reach file-outside cat OUTSIDE/file
      reach writing-outside sh -c 'echo x > OUTSIDE/written'
      reach listing-home ls HOME
      mine=/tmp/$(basename OUTSIDE)-mine
      echo fine > $mine && cat $mine && [ -e OUTSIDE/keep ] || rm -f $mine
      reach overwriting sh -c 'echo x >> HOME/procession.db'
      reach removing mv HOME/procession.db HOME/taken
      echo tried >> OUTSIDE/reached
      touch OUTSIDE/over
"#;

impl Unprivileged {
    /// What the script reached, each once it had; it must have tried all.
    fn reached(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.outside.path().join("reached"));
        let mut all: Vec<String> = text.expect("it ran").lines().map(str::to_owned).collect();
        assert_eq!(all.pop().as_deref(), Some("tried"), "it stopped after {all:?}");
        all
    }
}

/// What the tests are about, without walls: they would tell nothing if a script reached none of it there. From its
/// environment and its open files the service keeps everybody itself (PR_SET_DUMPABLE).
#[test]
fn a_script_that_is_not_isolated_reaches_everything() {
    let place = Unprivileged::new("[script]\nisolation = 'off'\n");
    std::fs::write(place.outside.path().join("file"), "x").expect("file");
    let (_, log) = place.run("202407", NEIGHBOURS);
    let wanted = [
        "key",
        "settings",
        "foreign-secret",
        "source-password",
        "database",
        "wal",
        "service-signal",
        "other-environment",
        "other-folder",
        "file-outside",
        "writing-outside",
        "listing-home",
        "overwriting",
        "removing",
    ];
    let mut reached = place.reached();
    reached.retain(|name| !["service-environment", "service-files"].contains(&name.as_str()));
    assert_eq!(reached, wanted, "{log}");
}

#[test]
fn an_isolated_script_reaches_neither_the_service_nor_another_script() {
    let place = Unprivileged::new("");
    std::fs::write(place.outside.path().join("file"), "x").expect("file");
    let (code, log) = place.run("202407", NEIGHBOURS);
    assert_eq!(code, 0, "{log}");
    assert!(log.contains(", isolated: processes\n"), "{log}");
    // Files that are not Procession's are as they are.
    assert_eq!(place.reached(), ["file-outside", "writing-outside", "listing-home"], "{log}");
}

#[test]
fn a_script_whose_files_are_isolated_uses_what_it_may() {
    let mut place = Unprivileged::new("");
    let outside = std::mem::replace(&mut place.outside, open_folder(0o777));
    // A file within a folder that is named too: it is put back twice, and must keep what it has.
    std::fs::write(place.outside.path().join("within"), "the operator's").expect("file");
    let settings = format!(
        "[script]\nisolation = 'required'\nread = ['{}']\nwrite = ['{1}', '{1}/within']\n",
        outside.path().display(),
        place.outside.path().display()
    );
    std::fs::write(place.home.path().join("procession.toml"), settings).expect("settings");
    std::fs::write(outside.path().join("file"), "may be read").expect("file");
    std::fs::write(place.outside.path().join("keep"), "").expect("file");
    let more = format!(
        "      cat {0}/file; reach writing-what-it-reads sh -c 'echo x > {0}/written'\n      \
         echo kept > OUTSIDE/kept\n",
        outside.path().display()
    );
    let over = "      touch OUTSIDE/over\n";
    let jobs = NEIGHBOURS.replace(over, &format!("{more}{over}"));
    let (code, log) = place.run("202407", &jobs);
    assert_eq!(code, 0, "{log}");
    assert!(log.contains(", isolated: processes, files\n") && log.contains("may be read"), "{log}");
    assert_eq!(place.reached(), ["writing-outside"], "{log}");
    assert!(log.contains("| fine"), "its own /tmp: {log}");
    let name = place.outside.path().file_name().expect("a name").to_string_lossy().into_owned();
    assert!(!Path::new(&format!("/tmp/{name}-mine")).exists(), "that is nobody else's");
    let kept = std::fs::read_to_string(place.outside.path().join("kept")).expect("what it wrote");
    assert_eq!(kept, "kept\n");
    let within = std::fs::read_to_string(place.outside.path().join("within")).expect("it");
    assert_eq!(within, "the operator's");

    let away = "jobs:\n  ATTACK: { type: SCRIPT, script: 'true', working_dir: /var }\n";
    let (code, log) = place.run("202408", away);
    assert_ne!(code, 0, "{log}");
    assert!(log.contains("is not in [script] read or write of procession.toml"), "{log}");
}
