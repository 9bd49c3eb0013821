//! Log of connection errors, each text once, so that a proxy or an origin that refuses every request does not fill a disk.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use assay_net::upstream::UpstreamError;
use rustix::io::Errno;

/// Upper bound on the distinct errors logged.
const REASONS_MAX: usize = 100;

static LOGGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Writes an error to the log unless it is there already.
pub fn log_once(reason: &impl Display) {
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(line) = new(&mut logged, reason.to_string()) {
        eprintln!("{line}");
    }
}

/// Shortages of this machine: descriptors, source ports, memory for sockets.
const LOCAL_ERRNOS: [Errno; 5] =
    [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOMEM];

/// Whether a connection failed for a shortage of this machine, which says nothing about the peer.
pub fn is_local(error: &UpstreamError) -> bool {
    let UpstreamError::Unreachable(_, cause) = error else { return false };
    LOCAL_ERRNOS.iter().any(|errno| cause.raw_os_error() == Some(errno.raw_os_error()))
}

/// Returns the text if it must be logged.
fn new(logged: &mut BTreeSet<String>, reason: String) -> Option<String> {
    let is_new = logged.len() < REASONS_MAX && logged.insert(reason.clone());
    is_new.then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_told_from_what_the_other_side_does() {
        let address = "127.0.0.1:1".parse().unwrap();
        let unreachable = |errno: Errno| UpstreamError::Unreachable(address, errno.into());
        assert!(LOCAL_ERRNOS.iter().all(|errno| is_local(&unreachable(*errno))));
        assert!(!is_local(&unreachable(Errno::CONNREFUSED)) && !is_local(&UpstreamError::TimedOut(address)));
    }

    #[test]
    fn each_reason_is_told_once_and_there_is_an_end_of_them() {
        let mut logged = BTreeSet::new();
        assert_eq!(new(&mut logged, "one".to_owned()).as_deref(), Some("one"));
        assert_eq!(new(&mut logged, "one".to_owned()), None);
        let more = (0..2 * REASONS_MAX).filter(|number| new(&mut logged, format!("{number}")).is_some());
        assert_eq!(more.count(), REASONS_MAX - 1);
    }
}
