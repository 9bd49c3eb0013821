//! Facts about an agent's machine: its resources, its address, the proxies on it.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};

use crate::description::Description;
use crate::machines::fleet::message::{AgentInfo, Free, InstalledProxy, PROTOCOL};
use crate::prepare::check_described;
use crate::run_info::digest;
use crate::{described, placement, real_proxy};
use assay_host::metrics;
use async_nats::ServerAddr;

use super::AgentSettings;
use crate::machines::error::FleetError;
use assay_base::clock::monotonic_ns;

/// The address of this machine from which the server is reached: others on the way to it can reach that, too.
pub fn address_towards(url: &str) -> Result<IpAddr, FleetError> {
    let cannot = |e: &dyn std::fmt::Display| {
        FleetError::plan(format!(
            "cannot find the address of this machine from which {url} is reached: {e}; name it with --address"
        ))
    };
    let server: ServerAddr = url.parse().map_err(|e| cannot(&e))?;
    let server = (server.host(), server.port()).to_socket_addrs().map_err(|e| cannot(&e))?.next();
    let server = server.ok_or_else(|| cannot(&"its name has no address"))?;
    let any: IpAddr = if server.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    // Nothing is sent: a connected datagram socket only asks which address it would be sent from.
    let socket = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(server).map(|()| socket));
    let address = socket.and_then(|socket| socket.local_addr()).map_err(|e| cannot(&e))?;
    Ok(address.ip())
}

/// Everything that an agent says of itself, while it does nothing.
pub async fn info(settings: &AgentSettings, address: IpAddr) -> AgentInfo {
    let descriptors = crate::raise_descriptor_limit();
    let facts = metrics::facts(descriptors);
    AgentInfo {
        protocol: PROTOCOL,
        version: settings.version.clone(),
        name: settings.name.clone(),
        // Two agents do not begin in one nanosecond with one process id.
        instance: monotonic_ns() ^ u64::from(std::process::id()) << 40,
        labels: settings.labels.clone(),
        kernel: facts.kernel,
        cpus: u32::try_from(placement::available().len()).unwrap_or(u32::MAX),
        memory_bytes: facts.memory_bytes,
        descriptors,
        free: free_capacity(&settings.dir, address),
        address,
        may_load: settings.may_load.clone(),
        proxies: proxies(&settings.proxy_dirs).await,
        accepts_descriptions: settings.accepts_descriptions,
        busy: None,
    }
}

/// The real proxies that are installed, with the versions that they report.
async fn proxies(dirs: &[PathBuf]) -> Vec<InstalledProxy> {
    let mut found = Vec::new();
    for description in described(dirs).into_iter().flatten() {
        let Some(mode) = description.modes.first().copied() else { continue };
        if check_described(&description, mode).is_err() {
            continue;
        }
        if let Ok(version) = real_proxy::version(&description).await {
            let Description { name, source, .. } = description;
            found.push(InstalledProxy { name, description: digest(&source), version });
        }
    }
    found
}

/// Resources that are free now for roles that write in this directory and listen at this address.
pub fn free_capacity(dir: &Path, address: IpAddr) -> Free {
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
