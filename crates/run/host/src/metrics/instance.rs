//! A tracing instance of our own, which nobody else sees and nobody has to clear away.
//!
//! tracefs is reached without mounting it anywhere. A trace instance lasts until it is removed, though: its name says who
//! made it, and the next one removes those whose maker is gone.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::owner::{Owner, PREFIX, abandoned};

/// Flags and commands of the kernel's interface for file systems: close on exec, and make it.
const CLOSE_ON_EXEC: libc::c_ulong = 1;
const CREATE: libc::c_ulong = 6;
/// The last reader's files take a moment to be closed.
const REMOVALS: u32 = 20;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(10);

/// A trace instance, gone when dropped.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    /// The file system that it is in.
    _tracefs: OwnedFd,
}

impl Instance {
    /// Makes one; why not, where that is not allowed.
    pub fn make() -> Result<Self, String> {
        let tracefs = open_tracefs().map_err(|e| match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => "tracing the disk needs root".to_owned(),
            Some(libc::ENODEV | libc::ENOSYS) => "this kernel has no tracefs".to_owned(),
            _ => format!("cannot open tracefs: {e}"),
        })?;
        let instances = PathBuf::from(format!("/proc/self/fd/{}/instances", tracefs.as_raw_fd()));
        let path = instances.join(name());
        for left in abandoned(std::slice::from_ref(&instances)) {
            // Whoever can make one can remove one; if not, the next one tries again.
            let _ = remove(&left);
        }
        fs::create_dir(&path).map_err(|e| format!("cannot make a trace instance: {e}"))?;
        Ok(Self { path, _tracefs: tracefs })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Instance {
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
    // It cannot go while somebody may still write into it.
    let _ = fs::write(instance.join("events/enable"), "0");
    fs::remove_dir(instance)
}

/// A descriptor of tracefs, which is mounted nowhere.
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
    format!("{PREFIX}{}-trace{number}", Owner::me().mark())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_bears_the_mark_of_its_maker_and_no_name_comes_twice() {
        let (first, second) = (name(), name());
        assert_ne!(first, second);
        for name in [first, second] {
            assert!(name.contains(&Owner::me().mark()), "{name}");
            assert_eq!(Owner::of(&name), Some(Owner::me()), "{name}");
        }
    }
}
