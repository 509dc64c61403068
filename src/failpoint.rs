//! failpoint: stops, stalls and fails at named points. In: the variable `FAILPOINTS`. Out: a crash, a wait or an error.
//! May name: nothing of ours. Never: a point in a release build.
//! Invariant: without debug assertions nothing of this is compiled, not even the names.
//! `FAILPOINTS='claim.after=return(abort);complete.before_commit=1*sleep(10000)'`: `return(abort)`
//! ends the process on the spot, as `kill -9` would (a panic would unwind, which a crash does not);
//! `return(error)` makes a fallible point fail; `sleep(ms)` stalls the thread.

/// A named point at which a test may end or stall the process.
macro_rules! failpoint {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        let _no_error_is_possible_here = $crate::failpoint::is_hit($name);
    };
}

/// A named point at which a test may also make the function return `$error`.
macro_rules! failpoint_or {
    ($name:literal, $error:expr) => {
        #[cfg(debug_assertions)]
        if $crate::failpoint::is_hit($name) {
            return Err($error);
        }
    };
}

/// Reads `FAILPOINTS` for as long as the calling function runs.
macro_rules! failpoint_setup {
    () => {
        #[cfg(debug_assertions)]
        let _as_long_as_this_lives = $crate::failpoint::setup();
    };
}

/// `$now` with the wall clock offset that a test has set.
macro_rules! failpoint_wall {
    ($now:expr) => {{
        #[cfg(debug_assertions)]
        let now = $now.plus_ms($crate::failpoint::wall_jump_ms());
        #[cfg(not(debug_assertions))]
        let now = $now;
        now
    }};
}

/// Whether the point is to fail.
#[cfg(debug_assertions)]
pub(crate) fn is_hit(name: &str) -> bool {
    let asked = fail::eval(name, |word| match word.as_deref() {
        Some("abort") => std::process::abort(),
        Some("error") => true,
        _ => false,
    });
    asked.unwrap_or(false)
}

/// Reads `FAILPOINTS`; keep the returned value for as long as the program runs.
#[cfg(debug_assertions)]
pub(crate) fn setup() -> impl Sized {
    fail::FailScenario::setup()
}

/// The offset of this machine's wall clock set by a test, in milliseconds, from the file in
/// `PROCESSION_WALL_FILE`. It is read each time, so that the clock jumps while the process runs.
#[cfg(debug_assertions)]
pub(crate) fn wall_jump_ms() -> i64 {
    let file = std::env::var_os("PROCESSION_WALL_FILE");
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
