//! What a server family can do, as far as it changes the way of a body.

/// The capabilities of a server family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The server has procedures and functions. Without them a named text of the source replaces a
    /// procedure.
    pub has_routines: bool,
    /// The database is a file that this process opens: there is no server, no session of another
    /// process to look for, and one writer at a time.
    pub is_file: bool,
    /// The host of a URL may be the folder of a socket.
    pub has_socket_addresses: bool,
    /// A connection names the tables of all databases of its server.
    pub spans_databases: bool,
    /// How a running body is stopped.
    pub stop: StopMeans,
    /// A user may end its own sessions whatever runs on them, also a routine with the privileges of
    /// another user.
    pub stops_definers: bool,
    /// Names without quotes are folded to lower case.
    pub folds_names: bool,
    /// A function may have the name of a procedure.
    pub has_functions_named_as_procedures: bool,
    /// A call can omit only its last arguments; elsewhere it names those that it gives.
    pub omits_only_last_arguments: bool,
    /// A body can end the transaction that was opened for it, with everything in it.
    pub lets_bodies_end_transactions: bool,
    /// NULL can be sent with the session lock.
    pub sends_null_with_lock: bool,
    /// Values can be sent with the session lock also for a call that has output values.
    pub sends_values_of_output_calls: bool,
}

/// How a running body is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMeans {
    /// By the session's cancellation flag, which the statement polls: it runs in this process.
    Flag,
    /// By ending its session at once, because a cancel ends one statement of a procedure and not
    /// the procedure.
    EndSession,
    /// By cancels, which a body may swallow, and then by ending its session.
    CancelFirst,
}
