//! Sets TCP_NODELAY on connections of sqlx, so that they do not wait for delayed acknowledgements
//! (ADR 24).
//!
//! sqlx 0.9.0 does not set TCP_NODELAY and does not expose its socket (its issue 4335; fixed by its
//! pull request 4336, which no release contains in November 2026). Two small packets in a row
//! without an answer between them then wait some 40 ms for the server's delayed acknowledgement:
//! the handshake of TLS has two such waits, a connection to PostgreSQL took 95 ms instead of 10.
//! Once a release sets the option, this file can be removed.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether it could be set here.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// Whether connections of this process avoid delayed acknowledgements, as far as is known.
pub(in crate::db) fn is_set() -> bool {
    IS_SET.load(Ordering::Relaxed)
}

/// Waits for `connecting`, and sets TCP_NODELAY on the sockets that this process opens meanwhile,
/// as soon as they exist. Sockets of other tasks among them are not harmed. Where it cannot be set,
/// connections are as slow as sqlx makes them.
///
/// The future is boxed: sqlx's are large, and one more layer of them overflowed a stack of 2 MiB.
pub(in crate::db) fn without_delay<F: Future>(connecting: F) -> impl Future<Output = F::Output> {
    let mut connecting = Box::pin(connecting);
    let mut sockets = sockets::Sockets::so_far();
    poll_fn(move |cx| {
        let polled = connecting.as_mut().poll(cx);
        if polled.is_pending() && sockets.spare_new() {
            IS_SET.store(true, Ordering::Relaxed);
        }
        polled
    })
}

#[cfg(target_os = "linux")]
mod sockets {
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
    use rustix::net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg as receive_message,
    };
    use std::collections::HashSet;
    use std::fs::{self, File};
    use std::io::{self, IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::net::TcpStream;
    use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    const OPEN_FILES: &str = "/proc/self/fd";

    /// With more open files than this the search is skipped: it would take longer than it saves.
    const MOST: usize = 2_048;

    /// The sockets that were open before, or were checked, by their system identity: descriptor
    /// numbers are reused at once.
    pub(super) struct Sockets {
        seen: HashSet<PathBuf>,
    }

    impl Sockets {
        pub(super) fn so_far() -> Self {
            Self { seen: open_sockets().into_iter().map(|(_, name)| name).collect() }
        }

        /// Sets the option on new sockets; returns whether there was one.
        pub(super) fn spare_new(&mut self) -> bool {
            let mut is_any = false;
            for (fd, name) in open_sockets() {
                if !self.seen.insert(name) {
                    continue;
                }
                match spare(fd) {
                    Ok(()) => is_any = true,
                    Err(error) => tracing::trace!(fd, %error, "TCP_NODELAY could not be set"),
                }
            }
            is_any
        }
    }

    fn open_sockets() -> Vec<(RawFd, PathBuf)> {
        let entries = fs::read_dir(OPEN_FILES).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let numbers: Vec<RawFd> = entries.filter_map(number).collect();
        if numbers.len() > MOST {
            return Vec::new();
        }
        let named = numbers.into_iter().filter_map(|fd| {
            let name = fs::read_link(format!("{OPEN_FILES}/{fd}")).ok()?;
            name.to_str()?.starts_with("socket:").then_some((fd, name))
        });
        named.collect()
    }

    /// Through a second handle of the same socket, because the option belongs to the socket, which
    /// its owner does not expose.
    fn spare(fd: RawFd) -> io::Result<()> {
        let handle = File::from(second_handle(fd)?);
        if !handle.metadata().is_ok_and(|of| !of.is_file()) {
            // The number was reused for a file since it was checked. The handle is never closed:
            // closing any handle of a file drops all locks that this process has on it, and
            // SQLite's locks are of this kind.
            let _kept_open = handle.into_raw_fd();
            return Err(io::Error::other("it is a file by now"));
        }
        TcpStream::from(OwnedFd::from(handle)).set_nodelay(true)
    }

    /// Sent to ourselves, which every system and container allows; `pidfd_getfd` is forbidden in
    /// most.
    fn second_handle(fd: RawFd) -> io::Result<OwnedFd> {
        let (from, to) = UnixStream::pair()?;
        let rights = [ControlMessage::ScmRights(&[fd])];
        let (one, none) = ([IoSlice::new(b"1")], MsgFlags::empty());
        sendmsg::<()>(from.as_raw_fd(), &one, &rights, none, None)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut one = [0];
        let mut parts = [IoSliceMut::new(&mut one)];
        receive_message(&to, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let handle = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
            _ => None,
        });
        handle.ok_or_else(|| io::Error::other("no handle came"))
    }
}

#[cfg(not(target_os = "linux"))]
mod sockets {
    pub(super) struct Sockets;

    impl Sockets {
        pub(super) fn so_far() -> Self {
            Self
        }

        pub(super) fn spare_new(&mut self) -> bool {
            false
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn a_socket_that_is_opened_meanwhile_has_no_delay() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let to = server.local_addr().expect("its address");
        let before = TcpStream::connect(to).await.expect("a connection");
        let meanwhile = without_delay(TcpStream::connect(to)).await.expect("a connection");
        assert!(meanwhile.nodelay().expect("the option"));
        assert!(!before.nodelay().expect("the option"), "it was nobody's who connects");
        assert!(is_set());
    }

    /// The second socket gets the number of the first.
    #[tokio::test]
    async fn nor_has_the_one_after_an_address_where_nobody_is() {
        let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let there = server.local_addr().expect("its address");
        let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, gone.local_addr().expect("it").port()));
        drop(gone);
        let both = [nobody, there];
        let connected = without_delay(TcpStream::connect(&both[..])).await.expect("a connection");
        assert!(connected.nodelay().expect("the option"));
    }
}
