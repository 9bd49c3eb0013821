//! What an agent's machine has left for the roles of a run.

use std::net::IpAddr;
use std::path::Path;

use assay_fleet::message::Free;
use assay_health::host;

/// What there is now for roles that write in this directory and listen at this address.
pub fn free(dir: &Path, address: IpAddr) -> Free {
    let work_dir = std::env::temp_dir();
    Free {
        memory_bytes: host::memory("MemAvailable").unwrap_or(u64::MAX),
        dir_bytes: assay_lab::free_bytes(dir),
        work_bytes: assay_lab::free_bytes(&work_dir),
        work_dir: work_dir.display().to_string(),
        ports: assay_lab::ports(),
        port_rest_s: assay_lab::port_rest_s(address.is_loopback()),
    }
}
