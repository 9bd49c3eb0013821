//! The rest between cells, until the machine is as it was before the first. The page cache is dropped, and connections of
//! the last cell have gone.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use assay_record::run::RunInfo;
use tokio::sync::watch;
use tokio::time::Instant;

/// Where the kernel lists its IPv4 connections; runs on loopback have no others.
const CONNECTIONS: &str = "/proc/net/tcp";
/// State of a connection that only keeps its ports from being used.
const TIME_WAIT: &str = "06";
/// So many may be left: a stray one is in nobody's way.
const FLOOR: usize = 16;
const LOOK_EVERY: Duration = Duration::from_secs(1);
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Addresses that a run's connections had at one of their ends.
pub fn addresses(info: &RunInfo) -> BTreeSet<IpAddr> {
    let listening = info.placement.iter().flat_map(|placed| &placed.listening);
    listening.filter_map(|address| Some(address.parse::<std::net::SocketAddr>().ok()?.ip())).collect()
}

/// Waits until connections of `addresses` are gone, at most `longest`, or until it is to stop. Tells how many are left
/// each time it looks; gives how many were left at the end.
pub async fn cool_down(
    addresses: &BTreeSet<IpAddr>,
    longest: Duration,
    stop: &mut watch::Receiver<bool>,
    mut tell: impl FnMut(usize),
) -> usize {
    let deadline = Instant::now() + longest;
    loop {
        let left = resting(&fs::read_to_string(CONNECTIONS).unwrap_or_default(), addresses);
        if left < FLOOR || Instant::now() >= deadline || *stop.borrow() {
            return left;
        }
        tell(left);
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            stopped = stop.wait_for(|stop| *stop) => {
                if stopped.is_err() {
                    // Nobody is left who could stop it.
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
    }
}

/// Connections in TIME_WAIT with one of these addresses.
fn resting(table: &str, addresses: &BTreeSet<IpAddr>) -> usize {
    let is_ours = |field: Option<&str>| field.and_then(address).is_some_and(|ip| addresses.contains(&ip));
    let resting = table.lines().skip(1).filter(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote, state) = (fields.next(), fields.next(), fields.next());
        state == Some(TIME_WAIT) && (is_ours(local) || is_ours(remote))
    });
    resting.count()
}

/// The address in `0100007F:1F90`: the bytes lie in the machine's order.
fn address(field: &str) -> Option<IpAddr> {
    let (ip, _) = field.split_once(':')?;
    let bytes = u32::from_str_radix(ip, 16).ok()?.to_ne_bytes();
    Some(IpAddr::V4(Ipv4Addr::from(bytes)))
}

/// Drops the system's page cache, which only root may; says why not otherwise.
pub async fn drop_page_cache() -> Result<(), String> {
    let dropped = tokio::task::spawn_blocking(|| {
        // What is not yet on disk would stay.
        rustix::fs::sync();
        fs::write(Path::new(DROP_CACHES), "1")
    });
    match dropped.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(e)) => {
            Err(format!("the system's page cache was not dropped before this cell: {DROP_CACHES}: {e}"))
        }
        Err(e) => Err(format!("the system's page cache was not dropped before this cell: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100637F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0140637F:C350 0100637F:1F90 06 00000000:00000000 03:000017A0 00000000     0        0 0 3
   2: 0100007F:C351 0100007F:1F90 06 00000000:00000000 03:000017A0 00000000     0        0 0 3
   3: 0140637F:C352 0100637F:1F90 01 00000000:00000000 03:000017A0 00000000     0        0 0 3
";

    #[test]
    #[cfg(target_endian = "little")]
    fn only_resting_connections_of_the_runs_own_addresses_count() {
        let ours: BTreeSet<IpAddr> = [IpAddr::from([127, 99, 0, 1])].into();
        assert_eq!(resting(TABLE, &ours), 1);
        assert_eq!(resting(TABLE, &BTreeSet::new()), 0);
        assert_eq!(resting("", &ours), 0);
    }

    #[test]
    fn addresses_are_those_that_roles_listened_on() {
        let mut info = RunInfo::default();
        let listening = vec!["127.9.0.1:80".to_owned(), "odd".to_owned()];
        info.placement.push(assay_record::run::PlacementInfo { listening, ..Default::default() });
        assert_eq!(addresses(&info), [IpAddr::from([127, 9, 0, 1])].into());
    }
}
