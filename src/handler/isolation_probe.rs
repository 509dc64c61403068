//! Tests once which kinds of isolation this machine supports.

use crate::domain::job::script_isolation::{IsolationLevel, IsolationMeans};
use crate::handler::script_confinement::{Confinement, ScriptFiles};
use crate::handler::script_landlock;
use crate::handler::script_workdir::Dir;
use crate::handler::stopwatch::Stopwatch;
use crate::handler::supervisor_protocol::{PROBE_WORD, SupervisorOrder};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// A machine that needs longer to start two small processes is useless for isolation.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a failure is cached. A machine that is briefly short of memory or processes must not
/// refuse scripts, or run them with all privileges, until it is restarted.
const FAILURE_LASTS: Duration = Duration::from_secs(60);

/// The isolation that this machine supports, once it is known.
#[derive(Clone, Debug, Default)]
pub struct IsolationProbe(Arc<Mutex<Option<(Stopwatch, IsolationMeans)>>>);

impl IsolationProbe {
    /// Tests it by doing it: kernels, containers and security modules forbid it in too many ways to
    /// be queried.
    pub async fn find_means(
        &self,
        supervisor: Option<&Path>,
        files: &ScriptFiles,
    ) -> IsolationMeans {
        let mut last = self.0.lock().await;
        if let Some((found, means)) = &*last
            && (means.processes.is_ok() || found.elapsed() < FAILURE_LASTS)
        {
            return means.clone();
        }
        let means = match supervisor {
            None => IsolationMeans::unavailable("scripts have no supervisor here"),
            Some(program) => IsolationMeans {
                processes: isolate_nothing(program, files).await,
                files: script_landlock::check(),
            },
        };
        *last = Some((Stopwatch::start(), means.clone()));
        means
    }
}

async fn isolate_nothing(program: &Path, files: &ScriptFiles) -> Result<(), String> {
    let dir = Dir::create().map_err(|e| format!("cannot make a private folder: {e}"))?;
    let order = SupervisorOrder {
        lease: Duration::ZERO,
        process_limits: Default::default(),
        account: None,
        confinement: Confinement::new(IsolationLevel::Processes, files, dir.path()),
        cgroup: None,
        folder: dir.path().to_owned(),
        interpreter: PathBuf::new(),
        file: PathBuf::new(),
    };
    let mut command = Command::new(program);
    command.arg0("procession").arg(PROBE_WORD).args(order.words()).env_clear();
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ran = timeout(PATIENCE, command.output()).await;
    let ran = ran.map_err(|_| format!("{} did not answer", program.display()))?;
    let ran = ran.map_err(|e| format!("cannot start {}: {e}", program.display()))?;
    if ran.status.success() && ran.stdout.trim_ascii() == PROBE_ANSWER.as_bytes() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
    Err(if said.is_empty() { format!("{} is no supervisor", program.display()) } else { said })
}

/// The output of a successful test.
pub const PROBE_ANSWER: &str = "isolated";
