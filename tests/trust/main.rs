//! What a crash, a stall, a cut or a full disk does: real processes and servers of their own, broken
//! on purpose, and judges that read what is left.
//!
//! Runs with `make test` in its short form, with `make chaos` in its long one.

mod judge;
mod judge_tests;
mod spoils;
mod time_tests;
mod model;
mod model_steps;
mod model_tests;
mod proxy;
mod proxy_tests;
mod targets;
mod nodes;
mod servers;
mod tools_tests;
mod oracle;
mod oracle_tests;
mod records;
mod chaos;
mod chaos_tests;
mod dice;
mod nemesis;
mod workload;
