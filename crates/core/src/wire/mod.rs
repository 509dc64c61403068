//! wire: shapes of messages of another system. In: bytes, or plain data. Out: plain data, or bytes.
//! May name: nothing of ours. Never: a connection, a decision.
//! Invariant: whatever its peers are known to send is read; nothing is written that one of them cannot read.
//! `xxl` holds the messages of XXL-JOB, including the differences between its versions.

pub mod xxl;
