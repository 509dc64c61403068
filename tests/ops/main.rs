//! What an installation is made of: the files in `deploy`, the traces and the log of the real program.

mod collector;
mod files;
mod health;
mod log;
mod program;
mod traces;
