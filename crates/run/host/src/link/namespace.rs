//! A network of its own: how it is made, entered and left, and why that may be refused.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Something about a network that could not be done.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempted}: {seen}{}", advice(seen))]
pub struct NetError {
    pub attempted: String,
    pub seen: io::Error,
}

fn advice(seen: &io::Error) -> &'static str {
    match seen.kind() {
        io::ErrorKind::PermissionDenied => "; that needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
        io::ErrorKind::NotFound => "; this kernel lacks it",
        _ => "",
    }
}

impl NetError {
    /// Says what was attempted when something failed.
    pub(crate) fn because<T>(attempted: impl Into<String>, result: io::Result<T>) -> Result<T, Self> {
        result.map_err(|seen| Self { attempted: attempted.into(), seen })
    }
}

/// A network namespace without a name. It lives as long as a copy of this or a process in it does.
#[derive(Debug, Clone)]
pub struct Namespace {
    descriptor: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes an empty one, with nothing but a loopback interface that is down.
    pub fn new() -> Result<Self, NetError> {
        let made = on_a_thread(|| {
            // SAFETY: a plain system call; only this thread, which ends right after, is moved.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            File::open("/proc/thread-self/ns/net")
        });
        let file = NetError::because("make a network namespace", made.and_then(|made| made))?;
        Ok(Self { descriptor: Arc::new(OwnedFd::from(file)) })
    }

    /// Does something in it, on a thread of its own. Sockets that are made there stay there.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        let done = on_a_thread(|| self.enter().map(|()| work()));
        NetError::because("enter a network namespace", done.and_then(|done| done))
    }

    /// Moves the calling thread into it. Async-signal-safe: a child may call it between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        enter(self.descriptor.as_raw_fd())
    }

    /// Its descriptor, closed on exec.
    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Moves the calling thread into the namespace behind a descriptor. Async-signal-safe.
pub fn enter(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: a plain system call without pointers; a descriptor that is no namespace is refused by the kernel.
    check(unsafe { libc::setns(descriptor, libc::CLONE_NEWNET) })
}

/// Why namespaces with TUN devices cannot be had here, and what to do; none: they can.
pub fn refused() -> Option<String> {
    let tried = Namespace::new().and_then(|namespace| {
        namespace.run(|| crate::link::interface::Tun::create("assay-try").map(drop)).and_then(|made| made)
    });
    tried.err().map(|error| error.to_string())
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into()).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the thread that was to do it panicked"))
    })
}

pub(crate) fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
