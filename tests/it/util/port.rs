//! Ports for programs that are told theirs and cannot bind port 0.

use std::net::TcpListener;

/// A free port, below those that the kernel gives to outgoing connections (32768 and up). One of those was taken by
/// another process's connection between the search and Flask's bind, and the client never registered (CI, 24 November).
pub(crate) fn free_port() -> u16 {
    for _ in 0..1000 {
        let random = u16::try_from(uuid::Uuid::new_v4().as_u128() % 12_000).expect("below 12,000");
        if TcpListener::bind(("127.0.0.1", 20_000 + random)).is_ok() {
            return 20_000 + random;
        }
    }
    panic!("no free port among 1,000 between 20,000 and 32,000");
}
