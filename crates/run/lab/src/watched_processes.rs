//! The processes of a target that Assay did not start, on the same machine: how they are named, and found.
//!
//! *Does not:* follow them. Once the first processes are known, [`assay_host::metrics::Meter`] follows all their descendants,
//! as it does for a target that the lab started.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use assay_host::metrics::ProcessorWaits;

/// Directories of systemd's services, by the version of control groups.
const SERVICES: [&str; 2] = ["/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice"];
/// A listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Processes that are the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessSelector {
    /// Process of this id, and all below it.
    Process(u32),
    /// Processes of a systemd service.
    Unit(String),
    /// Processes that hold the socket which listens at the target's address.
    Listener,
}

/// Processes of a target that already runs, which are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchPlan {
    pub processes: ProcessSelector,
    /// Directory of its files; none: nobody said, and its disk is not told from others.
    pub store: Option<PathBuf>,
}

impl fmt::Display for ProcessSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => pid.fmt(f),
            Self::Unit(name) => write!(f, "unit:{name}"),
            Self::Listener => f.write_str("listener"),
        }
    }
}

impl FromStr for ProcessSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "listener" {
            return Ok(Self::Listener);
        }
        if let Some(name) = text.strip_prefix("unit:") {
            return match name {
                "" => Err(SelectorError::NoUnit),
                name if name.contains('/') => Err(SelectorError::NotAUnit(name.to_owned())),
                name => Ok(Self::Unit(name.to_owned())),
            };
        }
        match text.parse() {
            Ok(pid) if pid > 0 => Ok(Self::Process(pid)),
            _ => Err(SelectorError::Unknown),
        }
    }
}

/// A selection of processes that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error("no unit is named; write unit:NAME, like unit:nginx")]
    NoUnit,
    #[error("{0:?} is not the name of a unit")]
    NotAUnit(String),
    #[error(
        "not a process id; write one, unit:NAME for a service, or listener for whoever listens at the target's address"
    )]
    Unknown,
}

/// Processes that cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    #[error("cannot watch process {pid}: there is none with this id; name one that runs")]
    NoProcess { pid: u32 },
    #[error("cannot watch {unit}: it has no processes; start it, or name a process id")]
    EmptyUnit { unit: String },
    #[error(
        "cannot watch {unit}: systemd runs no service of this name here (there is no {unit} in {dir}); start it, or name a process id",
        dir = SERVICES[0]
    )]
    NoUnit { unit: String },
    #[error(
        "cannot watch the listener at {address}: no socket of this machine's own network listens there; if the target is in a container, name the id of its process"
    )]
    NoSocket { address: SocketAddr },
    #[error(
        "cannot watch the listener at {address}: the processes that hold its socket belong to another user; run Assay as root, or name a process id"
    )]
    ForeignSocket { address: SocketAddr },
    #[error("cannot watch the listener at {address}: no process holds its socket")]
    NoHolder { address: SocketAddr },
}

/// The first processes of the target at `address`: those that have no parent among the others. Says what was looked for, what
/// was found, and what to do, where there are none.
pub fn find(watch: &ProcessSelector, address: SocketAddr) -> Result<Vec<u32>, WatchError> {
    let all = match watch {
        ProcessSelector::Process(pid) if parent(*pid).is_some() => vec![*pid],
        ProcessSelector::Process(pid) => {
            return Err(WatchError::NoProcess { pid: *pid });
        }
        ProcessSelector::Unit(name) => unit_processes(name)?,
        ProcessSelector::Listener => listener_processes(address)?,
    };
    Ok(roots(&all, parent))
}

/// For how long the threads of whoever listens at `address` wait for a processor from now on; none: it is not on this machine, or cannot be
/// seen.
pub fn processor_waits(address: SocketAddr) -> Option<ProcessorWaits> {
    find(&ProcessSelector::Listener, address).ok().map(ProcessorWaits::new)
}

/// Name of a process, for the record.
pub fn name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// True while a process is there and is not waiting to be collected.
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid).map(|(_, parent)| parent)
}

/// State and parent of a process (proc_pid_stat(5)). A name may have spaces and brackets in it, so both come after its last one.
fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

fn roots(all: &[u32], parent: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
    let known: BTreeSet<u32> = all.iter().copied().collect();
    let is_root = |pid: &u32| parent(*pid).is_none_or(|parent| !known.contains(&parent));
    known.iter().copied().filter(is_root).collect()
}

fn unit_processes(name: &str) -> Result<Vec<u32>, WatchError> {
    let unit = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let mut seen = false;
    for base in SERVICES {
        let group = Path::new(base).join(&unit);
        seen |= group.is_dir();
        let processes = processes_below(&group);
        if !processes.is_empty() {
            return Ok(processes);
        }
    }
    Err(match seen {
        true => WatchError::EmptyUnit { unit },
        false => WatchError::NoUnit { unit },
    })
}

/// The processes of a control group and of those within it.
fn processes_below(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<u32> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(processes_below(&entry.path()));
        }
    }
    found
}

fn listener_processes(address: SocketAddr) -> Result<Vec<u32>, WatchError> {
    let mut sockets = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        sockets.extend(text.lines().filter_map(|line| listening(line, address)));
    }
    if sockets.is_empty() {
        return Err(WatchError::NoSocket { address });
    }
    let (holders, hidden) = holders(&sockets);
    match (holders.is_empty(), hidden) {
        (false, _) => Ok(holders),
        (true, true) => Err(WatchError::ForeignSocket { address }),
        (true, false) => Err(WatchError::NoHolder { address }),
    }
}

/// The inode of a socket that listens at an address, or at all addresses with its port; from a line of the kernel's table.
fn listening(line: &str, wanted: SocketAddr) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    let inode = fields.nth(5)?.parse().ok()?;
    let (host, port) = local.split_once(':')?;
    let is_it = state == LISTEN && u16::from_str_radix(port, 16).ok()? == wanted.port();
    let at = address(host)?;
    (is_it && (at.is_unspecified() || at == wanted.ip())).then_some(inode)
}

/// An address as the kernel prints it: words of four bytes in the machine's own order. One of IPv4 within IPv6 is that of IPv4.
fn address(hex: &str) -> Option<IpAddr> {
    let mut bytes = Vec::with_capacity(16);
    for at in (0..hex.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()),
        _ => None,
    }
}

/// Processes with a descriptor of one of these sockets, and whether there are processes whose descriptors may not be seen.
fn holders(sockets: &BTreeSet<u64>) -> (Vec<u32>, bool) {
    let (mut found, mut hidden) = (Vec::new(), false);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        match fs::read_dir(entry.path().join("fd")) {
            Ok(descriptors) => {
                let is_one = |link: PathBuf| {
                    let text = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
                    sockets.contains(&text).then_some(())
                };
                let mut links = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
                found.extend(links.any(|link| is_one(link).is_some()).then_some(pid));
            }
            Err(error) => hidden |= error.kind() == ErrorKind::PermissionDenied,
        }
    }
    (found, hidden)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_process_a_unit_and_the_listener_can_be_named_and_nothing_else() {
        assert_eq!("4711".parse(), Ok(ProcessSelector::Process(4711)));
        assert_eq!("unit:nginx".parse(), Ok(ProcessSelector::Unit("nginx".into())));
        assert_eq!("listener".parse(), Ok(ProcessSelector::Listener));
        for wrong in ["", "0", "-4", "nginx", "unit:", "unit:../x", "4294967296", "unit"] {
            assert!(wrong.parse::<ProcessSelector>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn whoever_listens_is_found_by_the_address_and_by_the_unspecified_one() {
        for bound in ["127.0.0.1:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(bound).unwrap();
            let port = listener.local_addr().unwrap().port();
            let found = find(&ProcessSelector::Listener, SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
            assert_eq!(found, [std::process::id()], "{bound}");
        }
        // Bound, so that nobody else can listen there, and not listening.
        let bound = tokio::net::TcpSocket::new_v4().unwrap();
        bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let why = find(&ProcessSelector::Listener, bound.local_addr().unwrap()).unwrap_err().to_string();
        assert!(why.contains("no socket"), "{why}");
    }

    #[test]
    fn workers_below_a_master_are_no_first_processes() {
        let parents = [(10, 1), (11, 10), (12, 10), (20, 1)];
        let parent = |pid| parents.iter().find(|(of, _)| *of == pid).map(|(_, parent)| *parent);
        assert_eq!(roots(&[11, 12, 10, 20], parent), [10, 20]);
        assert_eq!(roots(&[11, 12], parent), [11, 12], "whose master does not listen");
    }

    #[test]
    fn a_process_that_is_not_there_is_refused_with_its_id() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX) && name(u32::MAX).is_empty());
        let why = find(&ProcessSelector::Process(u32::MAX), "127.0.0.1:1".parse().unwrap())
            .unwrap_err()
            .to_string();
        assert!(why.contains("4294967295"), "{why}");
        let why = find(&ProcessSelector::Unit("no-such-unit".into()), "127.0.0.1:1".parse().unwrap())
            .unwrap_err()
            .to_string();
        assert!(why.contains("no-such-unit.service"), "{why}");
    }

    #[test]
    fn lines_of_the_kernels_tables_are_read() {
        let line =
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4242 1 0 100 0";
        let wanted = |text: &str| listening(line, text.parse().unwrap());
        #[cfg(target_endian = "little")]
        assert_eq!(wanted("127.0.0.1:8080"), Some(4242));
        assert_eq!((wanted("127.0.0.1:8081"), wanted("10.0.0.1:8080")), (None, None));
        for damaged in ["", "sl local", "0: zz:1F90 0:0 0A 0:0 0:0 0 0 0 1", "0: 0100007F 0 0A 0 0 0 0 0 1"] {
            assert_eq!(listening(damaged, "127.0.0.1:8080".parse().unwrap()), None);
        }
    }
}
