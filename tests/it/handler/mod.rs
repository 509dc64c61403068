//! The handlers, each on what it is made for.

mod checks;
mod orphan;
mod proc;
mod script;
mod sql;
mod stop;
mod target;
