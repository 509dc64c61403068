//! Metadata of a job type, independent of its code; each handler supplies its own.

/// A definition key that a job type requires or accepts.
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
    /// `tx: same` and `tx: ledger`: the body and the record of it can share one transaction.
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

/// What `check` needs to know of a job type. Each handler supplies it, so a new type is one file
/// there and no change here.
#[derive(Clone, Copy, Debug)]
pub struct JobKind {
    /// `PROC`
    pub name: &'static str,
    /// Description, one sentence.
    pub about: &'static str,
    /// Required keys.
    pub needs: &'static [BodyPart],
    /// Keys accepted beside those; any other key is refused, because it would be ignored.
    pub may_have: &'static [BodyPart],
    /// Resources occupied while the job runs.
    pub takes: Takes,
    /// Recovery after its worker crashed.
    pub after_crash: AfterCrash,
    /// Whether the job holds a session lock on its data source from before its start to the end of
    /// its session, where the server has such locks (all but SQLite). A second start waits for the
    /// lock.
    pub holds_session_lock: bool,
}

impl JobKind {
    /// A job type without required or accepted keys: the base that others are written from.
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

/// Resources that a running job occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A slot of the process, of its group, and of its source.
    Slots,
    /// Nothing: the job waits for others, and a slot that it held might be the one they need.
    Nothing,
    /// No slot of the process, because the work runs elsewhere; all other limits that its
    /// definition names.
    Elsewhere,
}

/// Recovery of a job whose worker died while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// Started again if the job is declared idempotent, UNKNOWN otherwise.
    AsDeclared,
    /// Started again: a second start repeats nothing.
    StartsAgain,
}
