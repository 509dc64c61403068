//! What a hostile script of one group reaches of the service and of another group. As root it runs as a user
//! of its own; any other user is told that this cannot be.

use crate::util::bench::{Bench, Ran};
use procession::domain::id::GroupCode;
use procession::domain::job::{ParamMode, ParamType};
use procession::domain::outcome::{End, Stream};
use procession::domain::script_isolation::{IsolationPolicy, ScriptUsers};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

/// The users of the two groups: every Debian and every Red Hat has both.
const USERS: [(&str, &str); 2] = [("month_end", "nobody"), ("ar", "daemon")];

fn is_root() -> bool {
    std::fs::metadata("/proc/self").expect("own").uid() == 0
}

fn script(text: &str, group: &str) -> Bench {
    let mut bench = Bench::script(text).options(|options| {
        let by_group = USERS.map(|(group, user)| (group.to_owned(), user.to_owned())).into();
        options.script_users = ScriptUsers { by_group, policy: IsolationPolicy::Required };
    });
    bench.task.job.group = GroupCode::parse(group).expect("group");
    bench
}

fn is_refused_without_root(ran: &Ran) -> bool {
    if is_root() {
        return false;
    }
    assert_eq!(ran.outcome.end, End::Failed);
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
    assert_eq!(victim.outcome.end, End::Success, "{}", victim.text());
    assert_eq!(ran.outcome.end, End::Success, "{}", ran.text());
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
    assert_eq!(ran.outcome.end, End::Killed, "{}", ran.text());
    let pid = std::fs::read_to_string(pid).expect("a number");
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "{}", ran.text());
    let folder = std::fs::read_to_string(shared.path().join("folder")).expect("a path");
    assert!(!Path::new(folder.trim()).exists(), "its private folder is removed");
}

#[tokio::test]
async fn a_script_without_a_user_is_refused_when_one_is_required() {
    let ran = script("echo ran", "gl").run().await;
    assert_eq!(ran.outcome.end, End::Failed);
    assert!(ran.message().contains("add gl = \"USER\" to [script.run_as]"), "{}", ran.message());
    assert!(ran.of(Stream::Stdout).is_empty(), "{}", ran.text());
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
}
