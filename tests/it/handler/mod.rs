//! The handlers, each on what it is made for.

mod checks;
mod cursors;
mod engine_contract;
mod flink;
mod http;
mod ledger;
mod link;
mod orphan;
mod proc;
mod script;
mod script_isolation;
mod script_limits;
mod sensor;
mod sessions;
mod spark;
mod sql;
mod stop;
mod target;
mod values;
