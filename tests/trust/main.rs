//! What a crash, a stall, a cut or a full disk does: real processes and servers of their own, broken
//! on purpose, and judges that read what is left.
//!
//! Runs with `make test` in its short form, with `make chaos` in its long one.

mod p16;
