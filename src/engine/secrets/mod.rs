//! Sealed secrets: the keys, the tokens of executor groups, and re-sealing under another key. It
//! reads no definition and runs nothing; a caller that needs a value opens it with a key ring.

pub mod encryption;
pub mod executor_token;
pub mod rekey;
