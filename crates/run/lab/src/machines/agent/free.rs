//! What an agent's machine has left for the roles of a run.

use std::net::IpAddr;
use std::path::Path;

use crate::machines::fleet::message::Free;
use assay_host::metrics;

/// What there is now for roles that write in this directory and listen at this address.
pub fn free(dir: &Path, address: IpAddr) -> Free {
    let work_dir = std::env::temp_dir();
    Free {
        memory_bytes: metrics::memory("MemAvailable").unwrap_or(u64::MAX),
        dir_bytes: crate::free_bytes(dir),
        work_bytes: crate::free_bytes(&work_dir),
        work_dir: work_dir.display().to_string(),
        ports: crate::ports(),
        port_rest_s: crate::port_rest_s(address.is_loopback()),
    }
}
