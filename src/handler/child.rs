//! The launch plan of a script, and the reader of its output.

use crate::domain::job::ParamMode;
use crate::domain::job::outcome::Stream;
use crate::domain::job::output_limits::OutputLimits;
use crate::domain::job::script_isolation::IsolationLevel;
use crate::domain::job::secret::MaskedValue;
use crate::domain::params::BoundParam;
use crate::domain::text::{LINE_MAX, storable};
use crate::handler::held_limits::HeldLimits;
use crate::handler::lines::{LinePiece, LineSplitter, PiecePosition};
use crate::handler::log::RunLog;
use crate::handler::process_tree::COOKIE;
use crate::handler::script_account::ScriptAccount;
use crate::handler::script_confinement::{Confinement, ScriptFiles};
use crate::handler::script_outputs::{Closed, ScriptOutputs};
use crate::handler::script_workdir::Dir;
use crate::handler::{AttemptTask, HandlerOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// The value of the cookie of an attempt, which no other attempt has.
pub(crate) fn run_name(task: &AttemptTask) -> String {
    format!("{}:{}", task.lock_name, task.attempt)
}

/// What to start for a task.
pub(crate) struct LaunchPlan {
    /// The absolute path of the interpreter.
    pub(crate) interpreter: PathBuf,
    /// The script file.
    pub(crate) file: PathBuf,
    /// The working directory.
    pub(crate) folder: PathBuf,
    /// Its complete environment.
    pub(crate) variables: BTreeMap<String, String>,
    /// The account it runs under; Procession's own if `None`.
    pub(crate) account: Option<ScriptAccount>,
    /// Its further isolation.
    pub(crate) confinement: Option<Confinement>,
    /// Its resource limits.
    pub(crate) limits: HeldLimits,
}

impl LaunchPlan {
    /// Whether it may run only under a supervisor, which drops the privileges of our own user.
    pub(crate) fn needs_supervisor(&self) -> bool {
        self.account.is_some() || self.confinement.is_some() || self.limits.is_required
    }

    /// Its account and isolation, for the log.
    pub(crate) fn describe(&self) -> String {
        let user = self.account.as_ref().map(|account| format!(", user {}", account.name()));
        let walls = self.confinement.as_ref().map(|walls| format!(", {}", walls.describe()));
        let limits = self.limits.describe().map(|limits| format!(", limits: {limits}"));
        [user, walls, limits].into_iter().flatten().collect()
    }
}

/// The isolation and limits of a script.
pub(crate) struct Hold {
    pub(crate) level: IsolationLevel,
    pub(crate) limits: HeldLimits,
}

/// The plan for a task's script, which is written to `dir`, isolated and limited as in `hold`.
pub(crate) fn plan_launch(
    task: &AttemptTask,
    options: &HandlerOptions,
    dir: &Dir,
    hold: Hold,
) -> Result<LaunchPlan, String> {
    let script = task.job.script.as_deref().ok_or("the job has no script")?;
    let word = task.job.interpreter.as_deref().unwrap_or("sh");
    let interpreter = options.interpreters.get(word).ok_or_else(|| {
        let known: Vec<&str> = options.interpreters.keys().map(String::as_str).collect();
        format!("interpreter '{word}' is not allowed here; allowed: {}", known.join(", "))
    })?;
    if !interpreter.is_absolute() {
        return Err(format!("interpreter '{word}' must be given by its absolute path"));
    }
    let file = dir.path().join("script");
    std::fs::write(&file, script).map_err(|e| format!("cannot write the script: {e}"))?;
    let folder = task.job.working_dir.as_deref().map_or(dir.path(), Path::new).to_owned();
    let mut variables = environment(task, options);
    refuse_long_variable(&variables)?;
    let secrets = write_secrets(task, options, dir)?;
    let account = ScriptAccount::find_account(&options.script_users, &task.job.group)?;
    if let Some(account) = &account {
        account.take_over(dir.path(), secrets.values().chain([&file]))?;
        account.set_variables(&mut variables, dir.path());
    }
    variables.extend(secrets.into_iter().map(|(name, path)| (name, path.display().to_string())));
    let Hold { level, limits } = hold;
    let hidden = options.script_files.hidden.iter().chain(&task.hidden_files).cloned();
    let files = ScriptFiles { hidden: hidden.collect(), ..options.script_files.clone() };
    let confinement = Confinement::new(level, &files, dir.path());
    let cgroups = limits.cgroup.as_ref().map(|cgroup| cgroup.mount.clone());
    let confinement = confinement.map(|shut| Confinement { cgroups, ..shut });
    let interpreter = interpreter.clone();
    Ok(LaunchPlan { interpreter, file, folder, variables, account, confinement, limits })
}

/// Maximum length of one variable with its name, `=` and the terminating zero byte, on Linux
/// (MAX_ARG_STRLEN).
const VARIABLE_MAX: usize = 128 * 1024;

/// Linux would refuse to start the script, with an error that names no parameter.
fn refuse_long_variable(variables: &BTreeMap<String, String>) -> Result<(), String> {
    let length = |(name, value): &(&String, &String)| name.len() + value.len() + 2;
    let too_long = variables.iter().find(|variable| length(variable) > VARIABLE_MAX);
    too_long.map_or(Ok(()), |(name, value)| {
        Err(format!(
            "{name} has {} bytes, and a variable of a script may have {VARIABLE_MAX} with its name; hand on a \
             key or a path; nothing was run",
            value.len()
        ))
    })
}

/// The environment of a script: the variables allowed by the options, and those of the task.
/// Procession's own environment contains passwords, so nothing is inherited by default.
fn environment(task: &AttemptTask, options: &HandlerOptions) -> BTreeMap<String, String> {
    let inherited = options.script_env.iter();
    let mut vars: BTreeMap<String, String> =
        inherited.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?))).collect();
    for param in task.params.iter().filter(|p| p.mode != ParamMode::Out) {
        if let Some(text) = param.expose_text().filter(|_| !is_handed_on_in_file(param, options)) {
            vars.insert(variable_of(param), text.to_owned());
        }
    }
    let mut tell = |name: &str, value: String| vars.insert(name.to_owned(), value);
    tell("PROCESSION_BATCH_NO", task.batch.batch_no.to_string());
    tell("PROCESSION_JOB_CODE", task.job.code.to_string());
    tell("PROCESSION_GROUP", task.batch.group.to_string());
    tell("PROCESSION_ATTEMPT", task.attempt.to_string());
    tell("PROCESSION_QUEUE_ID", task.queue_id.0.to_string());
    tell("PROCESSION_IDEM_KEY", task.idem_key.clone());
    // Programs that support tracing continue the trace from this variable.
    if let Some(parent) = &task.traceparent {
        tell("TRACEPARENT", parent.clone());
    }
    if let Some(day) = task.batch.business_date {
        tell("PROCESSION_BUSINESS_DATE", day.to_string());
    }
    tell(COOKIE, run_name(task));
    vars
}

fn is_handed_on_in_file(param: &BoundParam, options: &HandlerOptions) -> bool {
    options.secrets_in_files && param.value.as_ref().is_some_and(MaskedValue::is_secret)
}

/// Writes the secrets that must not be in the environment, which other programs of the same user
/// could read. Returns the variables with their file paths.
fn write_secrets(
    task: &AttemptTask,
    options: &HandlerOptions,
    dir: &Dir,
) -> Result<BTreeMap<String, PathBuf>, String> {
    let secret = task.params.iter().filter(|p| p.mode != ParamMode::Out);
    let secret = secret.filter(|param| is_handed_on_in_file(param, options));
    secret
        .map(|param| {
            let name = format!("{}_FILE", variable_of(param));
            let path = dir.path().join(&name);
            let text = param.expose_text().unwrap_or_default();
            let made = File::options().write(true).create_new(true).mode(0o400).open(&path);
            let written = made.and_then(|mut file| file.write_all(text.as_bytes()));
            written
                .map_err(|e| format!("cannot write the secret of parameter {}: {e}", param.name))?;
            Ok((name, path))
        })
        .collect()
}

/// The environment variable of a parameter.
fn variable_of(param: &BoundParam) -> String {
    format!("PROCESSION_PARAM_{}", upper(&param.name))
}

/// A parameter's name as part of a variable name: characters that a shell does not allow become
/// `_`.
fn upper(name: &str) -> String {
    let shell = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
    };
    name.chars().map(shell).collect()
}

/// The pipes of a script: standard output and standard error.
pub(crate) type Pipes = (Option<ChildStdout>, Option<ChildStderr>);

/// Reads the output of a script: lines to the log, and `::output name=value` lines to `outputs`.
pub(crate) struct OutputReader<'a> {
    log: &'a RunLog,
    lines: [LineSplitter; 2],
    /// The outputs of the script.
    pub(crate) outputs: ScriptOutputs,
    /// The last non-empty line on standard error.
    pub(crate) last_error: Option<String>,
    /// The end of standard error.
    error_tail: Vec<u8>,
}

/// Number of bytes of standard error that are kept to find the cause of a failure.
const ERROR_TAIL: usize = 64 * 1024;

impl<'a> OutputReader<'a> {
    /// A reader that writes to `log`.
    pub(crate) fn new(log: &'a RunLog, limits: OutputLimits) -> Self {
        let outputs = ScriptOutputs::new(limits);
        let error_tail = Vec::new();
        Self { log, lines: Default::default(), outputs, last_error: None, error_tail }
    }

    /// The end of standard error.
    pub(crate) fn error_tail(&self) -> String {
        String::from_utf8_lossy(&self.error_tail).into_owned()
    }

    /// Reads both pipes until both are closed. May be dropped and followed by `finish`.
    pub(crate) async fn read_pipes(&mut self, pipes: Pipes) {
        let (mut out, mut err) = pipes;
        let (mut out_chunk, mut err_chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
        while out.is_some() || err.is_some() {
            let (stream, got) = tokio::select! {
                got = read_chunk(&mut out, &mut out_chunk) => (Stream::Stdout, got),
                got = read_chunk(&mut err, &mut err_chunk) => (Stream::Stderr, got),
            };
            match (stream, got) {
                (Stream::Stdout, 0) => out = None,
                (_, 0) => err = None,
                (Stream::Stdout, got) => self.feed_bytes(Stream::Stdout, &out_chunk[..got]),
                (_, got) => self.feed_bytes(Stream::Stderr, &err_chunk[..got]),
            }
        }
    }

    /// Handles output as it arrives, in pieces that may end anywhere.
    pub(crate) fn feed_bytes(&mut self, stream: Stream, bytes: &[u8]) {
        let at = usize::from(stream == Stream::Stderr);
        if stream == Stream::Stderr {
            self.error_tail.extend_from_slice(bytes);
            let surplus = self.error_tail.len().saturating_sub(2 * ERROR_TAIL);
            if surplus > 0 {
                self.error_tail.drain(..surplus + ERROR_TAIL);
            }
        }
        let mut lines = std::mem::take(&mut self.lines[at]);
        lines.feed_pieces(bytes, |piece| self.piece(stream, piece));
        self.lines[at] = lines;
    }

    /// Handles the rest of the output after the last newline.
    pub(crate) fn finish(&mut self) {
        for (at, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            std::mem::take(&mut self.lines[at]).finish_pieces(|piece| self.piece(stream, piece));
        }
        self.close_output();
    }

    fn piece(&mut self, stream: Stream, piece: LinePiece<'_>) {
        let line = piece.bytes;
        if stream == Stream::Stderr {
            self.log.bytes(stream, line);
            if !line.trim_ascii().is_empty() {
                self.last_error = Some(storable(line.trim_ascii(), LINE_MAX));
            }
            return;
        }
        if piece.place == PiecePosition::Start {
            self.close_output();
        }
        self.log.bytes(stream, line);
        self.outputs.take_piece(piece);
    }

    /// Ends the `::output` line that was read last.
    fn close_output(&mut self) {
        if self.outputs.close() == Closed::NotNamed {
            let said = "this ::output line is not kept: it needs name=value";
            self.log.add_line(Stream::System, said);
        }
    }
}

/// Bytes from a pipe; 0 at its end or on an error. Never returns for a closed pipe.
async fn read_chunk<R: AsyncRead + Unpin>(pipe: &mut Option<R>, chunk: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(chunk).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
