//! What a crash, a stall, a cut or a full disk does: real processes and servers of their own, broken
//! on purpose, and judges that read what is left.
//!
//! Runs with `make test` in its short form, with `make chaos` in its long one.

mod chaos;
mod chaos_tests;
mod clockwork;
mod dice;
mod fires_tests;
mod fleet;
mod judge;
mod judge_tests;
mod model;
mod model_state;
mod model_steps;
mod model_tests;
mod model_trigger;
mod nemesis;
mod nodes;
mod oracle;
mod oracle_tests;
mod p02_triggers;
mod p03;
mod p04;
mod p05;
mod p06;
mod p11;
mod p11_leader;
mod p12;
mod p13;
mod p15;
mod p16;
mod p17;
mod p18;
mod p19_large_batches;
mod p20_metadata_outage;
mod proxy;
mod proxy_tests;
mod records;
mod scene;
pub(crate) mod servers;
mod spoils;
mod targets;
mod ticks;
mod time_tests;
mod tools_tests;
mod workload;
