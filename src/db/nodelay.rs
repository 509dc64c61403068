//! Connections of sqlx that wait for no delayed acknowledgement.
//!
//! sqlx 0.9.0 sets no TCP_NODELAY and gives nobody its socket (its issue 4335; mended by its pull request 4336,
//! which no release has in November 2026). Two small packets in a row without an answer between them then wait
//! some 40 ms for the server's delayed acknowledgement: the handshake of TLS has two such waits, a connection
//! to PostgreSQL took 95 ms for 10. With a release that sets the option, this file is to go.

use std::future::{Future, poll_fn};
use std::pin::pin;

/// Waits for `connecting`, and sets TCP_NODELAY on the sockets that this process opens meanwhile, as soon as
/// they are there. Those of others among them are none the worse for it. Where it cannot be set (not
/// Linux, before 5.6, a container that forbids `pidfd_getfd`), a connection is as slow as sqlx has it.
pub(in crate::db) async fn without_delay<F: Future>(connecting: F) -> F::Output {
    let mut connecting = pin!(connecting);
    let mut sockets = sockets::Sockets::so_far();
    poll_fn(|cx| {
        let polled = connecting.as_mut().poll(cx);
        if polled.is_pending() {
            sockets.spare_new();
        }
        polled
    })
    .await
}

#[cfg(target_os = "linux")]
mod sockets {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    use std::collections::BTreeSet;
    use std::fs::{self, File};
    use std::io;
    use std::net::TcpStream;
    use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
    use std::os::unix::fs::FileTypeExt;

    const OPEN_FILES: &str = "/proc/self/fd";

    /// The numbers of the sockets that were open before, or have been looked at.
    pub(super) struct Sockets {
        seen: BTreeSet<RawFd>,
    }

    impl Sockets {
        pub(super) fn so_far() -> Self {
            Self { seen: open_sockets().into_iter().collect() }
        }

        /// A number that was closed and given again since is missed: that connection is slow, and right.
        pub(super) fn spare_new(&mut self) {
            for fd in open_sockets() {
                if self.seen.insert(fd)
                    && let Err(error) = spare(fd)
                {
                    tracing::trace!(fd, %error, "TCP_NODELAY could not be set");
                }
            }
        }
    }

    /// Sockets alone: the directory that is read here is open as well, and its number is the next socket's.
    fn open_sockets() -> Vec<RawFd> {
        let entries = fs::read_dir(OPEN_FILES).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        entries.filter_map(number).filter(|fd| is_socket(*fd)).collect()
    }

    fn is_socket(fd: RawFd) -> bool {
        let link = fs::read_link(format!("{OPEN_FILES}/{fd}"));
        link.is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    }

    /// By a second handle of the same socket, because the option is the socket's and its owner keeps it to
    /// itself.
    fn spare(fd: RawFd) -> io::Result<()> {
        let this = pidfd_open(getpid(), PidfdFlags::empty())?;
        let handle = File::from(pidfd_getfd(this, fd, PidfdGetfdFlags::empty())?);
        if !handle.metadata().is_ok_and(|of| of.file_type().is_socket()) {
            // The number was given to something else since it was looked at. Never closed: closing any handle
            // of a file drops all locks that this process has on it, and SQLite's are such locks.
            let _kept_open = handle.into_raw_fd();
            return Ok(());
        }
        TcpStream::from(OwnedFd::from(handle)).set_nodelay(true)
    }
}

#[cfg(not(target_os = "linux"))]
mod sockets {
    pub(super) struct Sockets;

    impl Sockets {
        pub(super) fn so_far() -> Self {
            Self
        }

        pub(super) fn spare_new(&mut self) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn a_socket_that_is_opened_meanwhile_has_no_delay() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let to = server.local_addr().expect("its address");
        let before = TcpStream::connect(to).await.expect("a connection");
        let meanwhile = without_delay(TcpStream::connect(to)).await.expect("a connection");
        assert!(meanwhile.nodelay().expect("the option"));
        assert!(!before.nodelay().expect("the option"), "it was nobody's who connects");
    }
}
