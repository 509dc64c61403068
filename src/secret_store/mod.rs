//! secret_store: reads secrets where the installation keeps them: files and HashiCorp Vault. In: a name, the time. Out: a secret, or why there is none.
//! May name: domain, outbound. Never: the database, a wait, a log line with a value.
//! Invariant: a value is read anew each time it is asked for, and no error holds anything of one.

pub mod secret_file;
