//! Sealed secrets: the keys, the tokens of executors, and sealing everything anew under another key.
//! It reads no definition and runs nothing; whoever needs a value opens it with a key ring.

pub mod encryption;
pub mod executor_token;
pub mod rekey;
