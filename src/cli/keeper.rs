//! Internal arguments that start this program as part of a script's supervision; not listed in the
//! help.

use crate::app;
use crate::cli::out;
use std::process::ExitCode;

/// The exit code of such a process, if the program was started as one. Comes before everything
/// else: no log, no settings, no runtime, because every script pays for what is done here.
pub(super) fn asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let word = words.next()?.into_string().ok()?;
    let done = match word.as_str() {
        app::KEEPER => app::keep_script(words),
        app::SCRIPT_INIT => app::run_script_init(words),
        app::ISOLATION_PROBE => {
            // Its only reader is Procession, which shows the error.
            return Some(match app::probe_isolation(words) {
                Ok(()) => {
                    out::print_line(app::PROBE_ANSWER);
                    ExitCode::SUCCESS
                }
                Err(why) => {
                    out::eprint_line(&why);
                    ExitCode::from(1)
                }
            });
        }
        _ => return None,
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            out::error(&format!("{word} is not for people: {why}"));
            ExitCode::from(2)
        }
    })
}
