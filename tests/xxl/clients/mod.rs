//! Executors that others wrote, as they are published, with this installation as their admin: the real program
//! and the real clients, each a process of its own on this machine alone.
//!
//! `scripts/test-xxl.sh` installs the clients. Where it could not, because a registry does not answer, these
//! tests say so on standard error, past the capture of test output, and do nothing.

mod blocks;
mod broken;
pub(crate) mod client;
mod ends;
mod ground;
mod lost;
mod parts;
mod refused;
mod routes;

pub(crate) use client::{Client, Kind};
pub(crate) use ground::{Ended, Ground};

/// Each named test with each client that is named.
macro_rules! with_each {
    ($($module:ident $kind:ident: $($name:ident)*;)*) => {
        $(mod $module { $(#[test] fn $name() {
            crate::xxl::clients::with(crate::xxl::clients::Kind::$kind, super::$name);
        })* })*
    };
}

use with_each;

/// Runs a test with a server and a client, unless the client is not installed.
pub(crate) fn with(kind: Kind, test: impl FnOnce(Ground, Client)) {
    if !kind.is_installed() {
        return;
    }
    let ground = Ground::new();
    let client = ground.client(kind);
    test(ground, client);
}
