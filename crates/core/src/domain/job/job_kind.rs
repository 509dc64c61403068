//! What is known of a job type without its code: each handler gives its own.

/// A part of a job's body that a job type needs or may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// `source`
    Source,
    /// `proc_name`
    ProcName,
    /// `sql` or `sql_file`
    Sql,
    /// `transaction`
    Transaction,
    /// `tx: same` and `tx: ledger`: its body can be one transaction with the record of it.
    Tx,
    /// `script` or `script_file`
    Script,
    /// `interpreter`
    Interpreter,
    /// `working_dir`
    WorkingDir,
    /// `params`
    Params,
    /// `http`
    Http,
    /// `sensor`
    Sensor,
    /// `sub_batch`
    SubBatch,
    /// `executor`
    Executor,
    /// `approval`
    Approval,
    /// `application`
    Application,
}

/// What `check` knows of a job type: each handler gives its own, so a new type is one file there
/// and nothing here.
#[derive(Clone, Copy, Debug)]
pub struct JobKind {
    /// `PROC`
    pub name: &'static str,
    /// One sentence for people.
    pub about: &'static str,
    /// Parts without which it cannot run.
    pub needs: &'static [BodyPart],
    /// Parts it understands beside those; any other part is refused, for it would be ignored.
    pub may_have: &'static [BodyPart],
    /// What it occupies while it runs.
    pub takes: Takes,
    /// What becomes of it when its worker dies.
    pub after_crash: AfterCrash,
    /// Whether it holds a session lock on its data source from before its start to the end of its session, where the
    /// server has such locks (all but SQLite). A second start waits for the lock.
    pub holds_session_lock: bool,
}

impl JobKind {
    /// A kind that works itself and needs and has nothing: what others are written from.
    pub const PLAIN: Self = Self {
        name: "",
        about: "",
        needs: &[],
        may_have: &[],
        takes: Takes::Slots,
        after_crash: AfterCrash::AsDeclared,
        holds_session_lock: false,
    };
}

/// What a running job occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A slot of the process, of its group, of its source.
    Slots,
    /// Nothing: it waits for others, and a slot that it held might be the one they need.
    Nothing,
    /// No slot of the process, because what it runs is elsewhere; all else that its definition names.
    Elsewhere,
}

/// What becomes of a job whose worker died while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// Started again if the job is declared idempotent, UNKNOWN otherwise.
    AsDeclared,
    /// Started again: a second start does nothing that the first did.
    StartsAgain,
}
