//! What a script is started with, and what it prints.

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

/// What the cookie of a try says; no other try has the same.
pub(crate) fn run_name(task: &AttemptTask) -> String {
    format!("{}:{}", task.lock_name, task.attempt)
}

/// What is to be started for a task.
pub(crate) struct LaunchPlan {
    /// By its absolute path.
    pub(crate) interpreter: PathBuf,
    /// The script.
    pub(crate) file: PathBuf,
    /// Where it works.
    pub(crate) folder: PathBuf,
    /// All it sees of the environment.
    pub(crate) variables: BTreeMap<String, String>,
    /// As whom it runs; our own user where there is none.
    pub(crate) account: Option<ScriptAccount>,
    /// What it is shut in with beside.
    pub(crate) confinement: Option<Confinement>,
    /// How much it may use.
    pub(crate) limits: HeldLimits,
}

impl LaunchPlan {
    /// Whether it may run under a supervisor alone, which takes away what our own user could give it.
    pub(crate) fn needs_supervisor(&self) -> bool {
        self.account.is_some() || self.confinement.is_some() || self.limits.is_required
    }

    /// What the log says of it: as whom it runs and what it is shut in with.
    pub(crate) fn describe(&self) -> String {
        let user = self.account.as_ref().map(|account| format!(", user {}", account.name()));
        let walls = self.confinement.as_ref().map(|walls| format!(", {}", walls.describe()));
        let limits = self.limits.describe().map(|limits| format!(", limits: {limits}"));
        [user, walls, limits].into_iter().flatten().collect()
    }
}

/// What holds a script: walls and limits.
pub(crate) struct Hold {
    pub(crate) level: IsolationLevel,
    pub(crate) limits: HeldLimits,
}

/// The plan for a task's script, which is written to `dir`, isolated and limited as `hold` says.
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

/// Bytes of one variable with its name, `=` and the zero byte at its end, on Linux (MAX_ARG_STRLEN).
const VARIABLE_MAX: usize = 128 * 1024;

/// Linux would refuse to start the script, with a word that names no parameter.
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

/// Everything a script sees: what the options let through, and what we tell it. Our own
/// environment holds passwords, so nothing passes by default.
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
    // By this name programs that trace go on with our trace.
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

/// Writes the secrets that are not to be in the environment, which other programs of the same user could read: the
/// variables that say where each is.
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

/// The variable that a parameter is in.
fn variable_of(param: &BoundParam) -> String {
    format!("PROCESSION_PARAM_{}", upper(&param.name))
}

/// A parameter's name as part of a variable's: what a shell cannot name becomes `_`.
fn upper(name: &str) -> String {
    let shell = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }
    };
    name.chars().map(shell).collect()
}

/// What a script prints to: standard output and standard error.
pub(crate) type Pipes = (Option<ChildStdout>, Option<ChildStderr>);

/// Reads what a script prints: to the log, and `::output name=value` lines to `outputs`.
pub(crate) struct OutputReader<'a> {
    log: &'a RunLog,
    lines: [LineSplitter; 2],
    /// What the script hands on.
    pub(crate) outputs: ScriptOutputs,
    /// The last line on standard error that says something.
    pub(crate) last_error: Option<String>,
}

impl<'a> OutputReader<'a> {
    /// A reader that writes to `log`.
    pub(crate) fn new(log: &'a RunLog, limits: OutputLimits) -> Self {
        let outputs = ScriptOutputs::new(limits);
        Self { log, lines: Default::default(), outputs, last_error: None }
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

    fn feed_bytes(&mut self, stream: Stream, bytes: &[u8]) {
        let at = usize::from(stream == Stream::Stderr);
        let mut lines = std::mem::take(&mut self.lines[at]);
        lines.feed_pieces(bytes, |piece| self.piece(stream, piece));
        self.lines[at] = lines;
    }

    /// Takes what came last without a newline.
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

/// Bytes from a pipe; 0 at its end or on an error, never when it is closed already.
async fn read_chunk<R: AsyncRead + Unpin>(pipe: &mut Option<R>, chunk: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(chunk).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
