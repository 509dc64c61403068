//! The word that makes this program the keeper of a script; not for people, so no help names it.

use crate::app;
use crate::cli::out;
use std::process::ExitCode;

/// The exit code of a keeper, when that is what the program was started as. Comes before everything
/// else: no log, no settings, no runtime, for each script pays for what is done here.
pub(super) fn asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != app::KEEPER {
        return None;
    }
    Some(match app::keep_script(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            out::error(&format!("{} is not for people: {why}", app::KEEPER));
            ExitCode::from(2)
        }
    })
}
