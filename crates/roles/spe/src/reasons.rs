//! Why connections could not be made, in the log of the role: each reason once, so that a proxy or an origin that refuses every
//! request does not fill a disk.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use assay_net::upstream::UpstreamError;
use rustix::io::Errno;

/// Different reasons that are told.
const MOST: usize = 100;

static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Writes a reason to the log, unless it is there already.
pub fn tell(reason: &impl Display) {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(line) = new(&mut told, reason.to_string()) {
        eprintln!("{line}");
    }
}

/// What this machine lacks for a connection: descriptors, source ports, memory for sockets.
const WANTS: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS, Errno::NOMEM];

/// True where there is no connection for want of something here, which says nothing of the other side.
pub fn is_own(error: &UpstreamError) -> bool {
    let UpstreamError::Unreachable(_, cause) = error else { return false };
    WANTS.iter().any(|want| cause.raw_os_error() == Some(want.raw_os_error()))
}

/// The reason, if it is to be told.
fn new(told: &mut BTreeSet<String>, reason: String) -> Option<String> {
    let is_new = told.len() < MOST && told.insert(reason.clone());
    is_new.then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_told_from_what_the_other_side_does() {
        let address = "127.0.0.1:1".parse().unwrap();
        let unreachable = |errno: Errno| UpstreamError::Unreachable(address, errno.into());
        assert!(WANTS.iter().all(|want| is_own(&unreachable(*want))));
        assert!(!is_own(&unreachable(Errno::CONNREFUSED)) && !is_own(&UpstreamError::TimedOut(address)));
    }

    #[test]
    fn each_reason_is_told_once_and_there_is_an_end_of_them() {
        let mut told = BTreeSet::new();
        assert_eq!(new(&mut told, "one".to_owned()).as_deref(), Some("one"));
        assert_eq!(new(&mut told, "one".to_owned()), None);
        let more = (0..2 * MOST).filter(|number| new(&mut told, format!("{number}")).is_some());
        assert_eq!(more.count(), MOST - 1);
    }
}
