//! Network namespaces.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// A failed operation on a network.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}: {error}{}", advice(error))]
pub struct NetError {
    pub action: String,
    pub error: io::Error,
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; that needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN)",
        io::ErrorKind::NotFound => "; this kernel lacks it",
        _ => "",
    }
}

impl NetError {
    /// Adds the attempted action to an I/O error.
    pub(crate) fn context<T>(action: impl Into<String>, result: io::Result<T>) -> Result<T, Self> {
        result.map_err(|error| Self { action: action.into(), error })
    }
}

/// A network namespace without a name, which the kernel removes with its last descriptor or process.
#[derive(Debug, Clone)]
pub struct Namespace {
    descriptor: Arc<OwnedFd>,
}

impl Namespace {
    /// Creates an empty namespace, with a loopback interface that is down.
    pub fn new() -> Result<Self, NetError> {
        let made = on_own_thread(|| {
            // SAFETY: a plain system call; only this thread, which ends right after, is moved.
            check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            File::open("/proc/thread-self/ns/net")
        });
        let file = NetError::context("make a network namespace", made.and_then(|made| made))?;
        Ok(Self { descriptor: Arc::new(OwnedFd::from(file)) })
    }

    /// Runs a function in the namespace, on a new thread. Sockets that it opens stay in the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NetError> {
        let done = on_own_thread(|| self.enter().map(|()| work()));
        NetError::context("enter a network namespace", done.and_then(|done| done))
    }

    /// Moves the calling thread into the namespace. Async-signal-safe: a child may call it between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        enter(self.descriptor.as_raw_fd())
    }

    /// The descriptor, which is closed on exec.
    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// Moves the calling thread into the namespace of a descriptor. Async-signal-safe.
pub fn enter(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: a plain system call without pointers; a descriptor that is no namespace is refused by the kernel.
    check(unsafe { libc::setns(descriptor, libc::CLONE_NEWNET) })
}

/// Creates a namespace with a TUN device, and drops it: fails if this user or this kernel cannot.
pub fn check_available() -> Result<(), NetError> {
    Namespace::new()?.run(|| crate::link::interface::Tun::create("assay-try").map(drop))?
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into()).spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("the thread that was to do it panicked"))
    })
}

pub(crate) fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
