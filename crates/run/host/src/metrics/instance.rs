//! A private trace instance, which is removed without help of the user.
//!
//! tracefs is accessed without a mount point. A trace instance lasts until it is removed, so its name has the mark of its
//! owner, and the next instance removes those whose owner is gone.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::owner::{Owner, PREFIX, abandoned};

/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC`, and `FSCONFIG_CMD_CREATE`.
const CLOSE_ON_EXEC: libc::c_ulong = 1;
const CREATE: libc::c_ulong = 6;
/// Attempts to remove an instance, whose files take a moment to be closed.
const REMOVALS: u32 = 20;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(10);

/// A disk that cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{} is on no single disk (in memory, or on a file system over several)", .0.display())]
    NoDisk(PathBuf),
    #[error("tracing the disk needs root")]
    NotPermitted,
    #[error("this kernel has no tracefs")]
    NoTracefs,
    #[error("cannot open tracefs: {0}")]
    Tracefs(io::Error),
    #[error("cannot make a trace instance: {0}")]
    Instance(io::Error),
    #[error("the kernel refused to {action}: {error}")]
    Refused { action: &'static str, error: io::Error },
}

/// A trace instance, which is removed when it is dropped.
#[derive(Debug)]
pub struct TraceInstance {
    path: PathBuf,
    /// Keeps `path` valid.
    _tracefs: OwnedFd,
}

impl TraceInstance {
    pub fn create() -> Result<Self, TraceError> {
        let tracefs = open_tracefs().map_err(|e| match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => TraceError::NotPermitted,
            Some(libc::ENODEV | libc::ENOSYS) => TraceError::NoTracefs,
            _ => TraceError::Tracefs(e),
        })?;
        let instances = PathBuf::from(format!("/proc/self/fd/{}/instances", tracefs.as_raw_fd()));
        let path = instances.join(name());
        for left in abandoned(std::slice::from_ref(&instances)) {
            // If this fails, the next instance tries again.
            let _ = remove(&left);
        }
        fs::create_dir(&path).map_err(TraceError::Instance)?;
        Ok(Self { path, _tracefs: tracefs })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            if remove(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(BETWEEN_REMOVALS);
        }
    }
}

fn remove(instance: &Path) -> io::Result<()> {
    // An instance with enabled events is busy.
    let _ = fs::write(instance.join("events/enable"), "0");
    fs::remove_dir(instance)
}

/// Opens tracefs without a mount point.
fn open_tracefs() -> io::Result<OwnedFd> {
    let checked = |result: libc::c_long| match i32::try_from(result) {
        Ok(number @ 0..) => Ok(number),
        _ => Err(io::Error::last_os_error()),
    };
    let kind: &CStr = c"tracefs";
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: the name is a string that outlives the call, and the kernel keeps nothing of it.
    let context = checked(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXEC) })?;
    // SAFETY: the call above has just opened it, and nobody else has it.
    let context = unsafe { OwnedFd::from_raw_fd(context) };
    let raw = context.as_raw_fd();
    // SAFETY: this command takes neither a key nor a value.
    checked(unsafe { libc::syscall(libc::SYS_fsconfig, raw, CREATE, none, none, 0) })?;
    // SAFETY: plain numbers.
    let mount = checked(unsafe { libc::syscall(libc::SYS_fsmount, raw, CLOSE_ON_EXEC, 0) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(mount) })
}

fn name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}-trace{number}", Owner::current().mark())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_bears_the_mark_of_its_maker_and_no_name_comes_twice() {
        let (first, second) = (name(), name());
        assert_ne!(first, second);
        for name in [first, second] {
            assert!(name.contains(&Owner::current().mark()), "{name}");
            assert_eq!(Owner::from_name(&name), Some(Owner::current()), "{name}");
        }
    }
}
