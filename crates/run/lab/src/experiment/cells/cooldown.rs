//! The rest between cells. The page cache is dropped, and the kernel has room for the connections that the next cell
//! leaves behind.
//!
//! A cell takes loopback addresses on which no connection of an earlier one is left (`crate::time_wait`), so it does not
//! wait for those to expire, except where all of them together would be more than the kernel keeps: it would end further ones
//! at once, and closing a connection would cost another cell more than this one.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use crate::time_wait::{self, TimeWaitTable};
use assay_record::run::RunInfo;
use tokio::sync::watch;
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Connections in TIME_WAIT that a run that has just ended left behind on loopback. (Those in network namespaces are gone
/// with them.)
pub fn connections_left_by(info: &RunInfo) -> u64 {
    let counts = time_wait::by_network();
    networks(info).into_iter().map(|network| u64::from(counts[usize::from(network)])).sum()
}

/// N of the networks 127.N.0.0/16 that a run's roles listened in.
fn networks(info: &RunInfo) -> BTreeSet<u8> {
    let listening = info.placement.iter().flat_map(|placed| &placed.listening);
    let ips = listening.filter_map(|address| Some(address.parse::<SocketAddr>().ok()?.ip()));
    ips.filter_map(|ip| match ip {
        IpAddr::V4(v4) if v4.is_loopback() => Some(v4.octets()[1]),
        _ => None,
    })
    .collect()
}

/// Waits until there is room for `more` connections in TIME_WAIT, at most `longest`, or until it is to stop. Tells how many
/// are too many each time it looks.
pub async fn cool_down(
    more: u64,
    longest: Duration,
    stop: &mut watch::Receiver<bool>,
    mut notify: impl FnMut(u64),
) {
    let deadline = Instant::now() + longest;
    // Where the kernel does not tell, there is nothing to wait for.
    while let Some(left @ 1..) = TimeWaitTable::now().map(|room| room.excess(more)) {
        if Instant::now() >= deadline || *stop.borrow() {
            return;
        }
        notify(left);
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

/// A page cache that was not dropped. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum PageCacheError {
    #[error("the system's page cache was not dropped before this cell: {DROP_CACHES}: {0}")]
    Write(std::io::Error),
    #[error("the system's page cache was not dropped before this cell: {0}")]
    Thread(tokio::task::JoinError),
}

/// Drops the system's page cache, which only root may; says why not otherwise.
pub async fn drop_page_cache() -> Result<(), PageCacheError> {
    let dropped = tokio::task::spawn_blocking(|| {
        // What is not yet on disk would stay.
        rustix::fs::sync();
        fs::write(Path::new(DROP_CACHES), "1")
    });
    match dropped.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(cause)) => Err(PageCacheError::Write(cause)),
        Err(cause) => Err(PageCacheError::Thread(cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_those_of_loopback_addresses_that_roles_listened_on() {
        let mut info = RunInfo::default();
        let listening = ["127.9.0.1:80", "127.9.1.1:9000", "127.17.0.1:80", "10.3.0.1:80", "odd"];
        let listening = listening.map(str::to_owned).to_vec();
        info.placement.push(assay_record::run::PlacementInfo { listening, ..Default::default() });
        assert_eq!(networks(&info), [9, 17].into());
        assert_eq!(networks(&RunInfo::default()), BTreeSet::new());
    }
}
