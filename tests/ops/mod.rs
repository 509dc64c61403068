//! What an installation is made of: the files in `deploy`, the traces and the log of the real program.

#![expect(clippy::disallowed_methods, reason = "how long a real process may take is real time")]

mod collector;
mod files;
mod health;
mod log;
mod program;
mod traces;
