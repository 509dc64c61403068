//! P-13: scripts that print a gigabyte, that hide, and that outlive nobody. The real program, on SQLite.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tokio::time::Instant;

/// A figure for the record; a test's own output is shown only when it fails.
macro_rules! report {
    ($($text:tt)*) => {
        std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($text)*)))
            .expect("standard error")
    };
}

/// Longest wait for something that must come; far more than it needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a program, settings and a batch of one script.
struct House {
    dir: tempfile::TempDir,
    program: PathBuf,
    user: Option<&'static str>,
    /// A variable with this value is in the environment of each script: a mark of the test's own.
    mark: String,
}

impl House {
    fn new(settings: &str, job: &str, script: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777))
            .expect("a folder for all");
        let mark = format!("p13-{}", uuid::Uuid::new_v4().simple());
        let text = format!(
            // Its scripts write their numbers, which are others in a namespace.
            "[script]\nisolation = \"off\"\ninherit_env = [\"PATH\", \"P13\", \"HERE\"]\n{settings}"
        );
        fs::write(dir.path().join("procession.toml"), text).expect("settings");
        let indented: String = script.lines().map(|line| format!("      {line}\n")).collect();
        let yaml = format!(
            "groups: {{ p13: {{}} }}\ndefaults: {{ group: p13 }}\njobs:\n  S:\n    type: SCRIPT\n{job}    script: |\n{indented}"
        );
        fs::write(dir.path().join("p13.yaml"), yaml).expect("a definition");
        let program = env!("CARGO_BIN_EXE_procession").into();
        Self { dir, program, user: None, mark }
    }

    /// As a user who is not root, with a copy of the program where that user can read it.
    fn of_user(mut self, user: &'static str) -> Self {
        let copy = self.dir.path().join("procession");
        fs::copy(&self.program, &copy).expect("a copy");
        self.program = copy;
        self.user = Some(user);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = match self.user {
            None => Command::new(&self.program),
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(&self.program);
                command
            }
        };
        command
            .args(words)
            .current_dir(self.dir.path())
            .env("P13", &self.mark)
            .env("HERE", self.dir.path())
            .env("TMPDIR", self.dir.path())
            .stdin(Stdio::null());
        command
    }

    fn start(&self) -> Running {
        let child = self
            .command(&["run", "p13.yaml", "--batch-no", "202407", "--quiet"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Running { child: Some(child.expect("procession")) }
    }

    fn ask(&self, words: &[&str]) -> String {
        let done = self.command(words).output().expect("procession");
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
    }

    /// What is stored of the job, its lines in the end.
    fn log(&self) -> String {
        self.ask(&["logs", "202407", "S"])
    }

    fn state(&self) -> String {
        self.ask(&["batch", "show", "202407"])
    }

    /// The file that a script writes its number to, in one step.
    fn number(&self, name: &str) -> i32 {
        until(name, || self.path(name).exists());
        let text = fs::read_to_string(self.path(name)).expect("a number");
        text.trim().parse().expect("a number")
    }

    /// Living processes that carry the mark.
    fn marked(&self) -> Vec<i32> {
        let entry = format!("P13={}", self.mark);
        let carries = |pid: &i32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|e| e == entry.as_bytes())
        };
        pids().into_iter().filter(carries).collect()
    }
}

impl Drop for House {
    /// A test that fails must leave nothing on the machine either.
    fn drop(&mut self) {
        let names = ["cleared", "twice", "grandchild", "closed", "plain", "script"];
        let read = |name| fs::read_to_string(self.path(name)).ok()?.trim().parse().ok();
        for pid in names.into_iter().filter_map(read).chain(self.marked()).filter(|p| is_alive(*p))
        {
            let _gone = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
    }
}

/// The program at work; killed when the test ends early.
struct Running {
    child: Option<Child>,
}

impl Running {
    fn pid(&self) -> i32 {
        let child = self.child.as_ref().expect("it runs");
        i32::try_from(child.id()).expect("a number")
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    fn end(mut self) -> Output {
        let child = self.child.take().expect("it runs");
        child.wait_with_output().expect("its end")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }
}

fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// A process that is there and no zombie.
fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Waits for something observable, with a bound that only a fault reaches.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}: it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Highest resident memory of a process so far, in KiB.
fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Runs a script that ends by saying so in the file `ready` and waiting for the file `go`; peak memory
/// of the program until then, in KiB, and the house with its end.
fn measured(settings: &str, script: &str) -> (u64, House, Output) {
    let wait = "touch $HERE/ready; while [ ! -e $HERE/go ]; do sleep 0.05; done";
    let house = House::new(settings, "", &format!("{script}\n{wait}"));
    let running = house.start();
    let pid = running.pid();
    let start = Instant::now();
    while !house.path("ready").exists() {
        assert!(is_alive(pid), "it ended early: {}", house.log());
        assert!(start.elapsed() < 15 * PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let peak = peak(pid);
    fs::write(house.path("go"), "").expect("a file");
    let output = running.end();
    (peak, house, output)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

// --- (a) output ------------------------------------------------------------------------------------

#[test]
fn a_gigabyte_of_anything_leaves_memory_flat_and_the_end_recorded() {
    let megabytes = if std::env::var_os("PROCESSION_LONG").is_some() { 1_000 } else { 200 };
    let cap = 200_000;
    let settings = format!("[log]\nmax_bytes_per_try = {cap}\n");
    let (quiet, _house, output) = measured(&settings, ":");
    assert!(output.status.success() && quiet > 0, "{}", said(&output));
    let half = megabytes * 500_000;
    // Half of it is one line; the other half lines with colours, NUL and what is no UTF-8.
    let script = format!(
        "head -c {half} /dev/zero | tr '\\0' x\n\
         echo\n\
         line=$(printf '%0180d' 7)\n\
         yes \"$(printf '\\033[31mred\\033[0m \\377\\376 ')$line@\" | tr '@' '\\0' | head -c {half}\n\
         echo; echo the end"
    );
    let (loud, house, output) = measured(&settings, &script);
    assert!(output.status.success(), "{}", said(&output));
    assert!(house.state().contains("SUCCESS"), "{}", house.state());
    let log = house.ask(&["logs", "202407", "S", "--json"]);
    assert!(log.contains("the end") && log.contains("lines left out"), "{}", log.len());
    let text = house.log();
    assert!(!text.contains(['\0', '\u{1b}']), "what a terminal obeys must not come out");
    // The text without what `logs` writes before each line.
    let kept = fs::metadata(house.path("procession.db")).expect("the database").len();
    assert!(kept < 20 * cap, "the database has {kept} bytes for {megabytes} MB printed");
    let grown = loud.saturating_sub(quiet) / 1024;
    report!("{megabytes} MB printed: peak {loud} KiB, {quiet} KiB without; grown by {grown} MiB");
    assert!(grown <= 64, "memory grew by {grown} MiB");
}

// --- (b) to (d): a tree that hides -----------------------------------------------------------------

/// A script that does all it can to stay: it does not listen to TERM, and starts others that have left
/// its group, have no environment, were forked twice and hold its pipes. Each writes its number.
const HIDES: &str = r#"trap '' TERM
cat > $HERE/one.sh <<'END'
trap '' TERM HUP INT
echo $$ > $2/$1.new; mv $2/$1.new $2/$1
while :; do sleep 1; done
END
env -i setsid sh $HERE/one.sh cleared $HERE &
( ( setsid sh $HERE/one.sh twice $HERE & ) & )
env -i setsid sh -c "sh $HERE/one.sh grandchild $HERE & :"
env -i setsid sh -c "exec < /dev/null > /dev/null 2>&1; sh $HERE/one.sh closed $HERE" &
sh $HERE/one.sh plain $HERE &
echo $$ > $HERE/script.new; mv $HERE/script.new $HERE/script
while :; do sleep 1; done"#;

/// The numbers of all of that tree, once it stands.
fn tree(house: &House) -> Vec<i32> {
    let names = ["cleared", "twice", "grandchild", "closed", "plain", "script"];
    let pids: Vec<i32> = names.iter().map(|name| house.number(name)).collect();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    pids
}

fn living(pids: &[i32]) -> Vec<i32> {
    pids.iter().copied().filter(|pid| is_alive(*pid)).collect()
}

#[test]
fn a_time_out_ends_a_tree_that_hides() {
    let house = House::new("[stop]\ngrace_sec = 1\n", "    timeout_sec: 4\n", HIDES);
    let running = house.start();
    let pids = tree(&house);
    let output = running.end();
    // The job has ended: nothing may live any more, without any waiting here.
    assert_eq!(living(&pids), [0; 0], "{}", house.log());
    assert!(!output.status.success(), "{}", said(&output));
    assert!(house.state().contains("TIMEOUT"), "{}", house.state());
    let log = house.log();
    assert!(log.contains("KILL sent") && log.contains("are gone after"), "{log}");
    assert_eq!(house.marked(), [0; 0]);
}

#[test]
fn a_killed_worker_takes_its_tree_with_it() {
    let house = House::new("", "", HIDES);
    let running = house.start();
    let pids = tree(&house);
    let since = Instant::now();
    running.signal("-KILL");
    until("the end of its tree", || living(&pids).is_empty());
    report!("all {} were gone {:?} after kill -9", pids.len(), since.elapsed());
    // The keeper too, once it has seen them all go.
    until("the end of its keeper", || house.marked().is_empty());
}

#[test]
fn a_stalled_worker_loses_its_tree_before_its_lease_is_over_and_says_so_later() {
    let house = House::new("[engine]\nlease_sec = 3\n", "", HIDES);
    let running = house.start();
    let pids = tree(&house);
    running.signal("-STOP");
    until("the end of its tree", || living(&pids).is_empty());
    running.signal("-CONT");
    let output = running.end();
    let (state, log) = (house.state(), house.log());
    assert!(!output.status.success(), "{}", said(&output));
    // Nobody knows what a script did that was ended in the middle.
    assert!(state.contains("UNKNOWN") || state.contains("HELD"), "{state}");
    let why = "did not renew its lease";
    let is_said = [&state, &log, &said(&output)].iter().any(|text| text.contains(why));
    assert!(is_said || house.ask(&["job", "show", "S"]).contains(why), "{state}\n{log}");
}

// --- (e) a fork bomb ---------------------------------------------------------------------------------

/// Starts as many as it is let, each out of its parent's group, and never gives up.
const BOMB: &str = r"trap '' TERM
cat > $HERE/bomb.pl <<'END'
use POSIX ();
$SIG{TERM} = 'IGNORE';
while (1) { my $child = fork; if (defined $child && !$child) { POSIX::setsid(); } select undef, undef, undef, 0.01; }
END
echo $$ > $HERE/script.new; mv $HERE/script.new $HERE/script
exec perl $HERE/bomb.pl";

/// Threads of a user, by number.
fn threads_of(uid: u32) -> u64 {
    let number = |status: &str, key: &str| -> Option<u64> {
        let line = status.lines().find_map(|l| l.strip_prefix(key))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let all =
        pids().into_iter().filter_map(|p| fs::read_to_string(format!("/proc/{p}/status")).ok());
    all.filter(|status| number(status, "Uid:") == Some(u64::from(uid)))
        .filter_map(|status| number(&status, "Threads:"))
        .sum()
}

fn uid(of: &Path) -> u32 {
    std::os::unix::fs::MetadataExt::uid(&fs::metadata(of).expect("a file"))
}

#[test]
fn a_fork_bomb_stays_below_its_limit_and_is_ended() {
    const LIMIT: u64 = 60;
    let settings = format!(
        "max_processes = {LIMIT}\n[script.interpreters]\nsh = \"/bin/sh\"\n[stop]\ngrace_sec = 1\n"
    );
    let house = House::new(&settings, "    timeout_sec: 4\n", BOMB);
    let is_root = uid(Path::new("/proc/thread-self")) == 0;
    let runuser = Command::new("runuser").args(["-u", "nobody", "--", "true"]).status();
    let house = match (is_root, runuser.is_ok_and(|status| status.success())) {
        (false, _) => house,
        (true, true) => house.of_user("nobody"),
        (true, false) => {
            report!("root is not bound by RLIMIT_NPROC and there is no runuser: no bomb is thrown");
            return;
        }
    };
    let running = house.start();
    house.number("script");
    let user = uid(&house.path("script"));
    assert_ne!(user, 0);
    // What the limit counts is the user's, and other tests may run as the same user.
    let before = threads_of(user) - house.marked().len().min(1) as u64;
    let most = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while is_alive(running.pid()) {
                most = most.max(threads_of(user));
                std::thread::sleep(Duration::from_millis(20));
            }
            most
        });
        // The machine can be used meanwhile: another process starts and ends.
        until("a bomb", || house.marked().len() > 20);
        assert!(Command::new("true").status().expect("room for one more").success());
        watch.join().expect("a watch")
    });
    let output = running.end();
    report!("{before} threads of the user before, {most} at most, limit {LIMIT} more");
    assert!(most <= before + LIMIT + 40, "{most} threads, {before} before");
    assert!(house.state().contains("TIMEOUT"), "{}\n{}", said(&output), house.log());
    assert!(!house.log().contains("without a keeper"), "{}", house.log());
    until("the end of the bomb", || house.marked().is_empty());
}
