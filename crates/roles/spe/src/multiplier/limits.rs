//! Limits of connections and requests, so that descriptors suffice.
//!
//! Each connection of a client has one to each proxy, as long as it lasts. At the limit, those that have waited longest for their
//! client are closed ([`assay_net::deadlines::LongestWaits`]), except tunnels, in which nobody knows who waits: some connections are
//! reserved for clients without one. Each request needs a connection to the Collector, and over HTTP/2 a client can have many:
//! beyond the limit they are refused, and no client gets more than it leaves to others.

use std::cell::Cell;

/// Descriptors reserved for anything but clients' connections and those made for them.
const OTHER_DESCRIPTORS: u64 = 200;
/// Clients without a limit of descriptors: as many as there are ports at one address.
const CLIENTS_MAX: u64 = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub clients: u64,
    /// Of these, with a tunnel that is relayed unseen.
    pub tunnels: u64,
    /// Requests under way to the Collector, tunnels among them.
    pub requests: u64,
}

impl ConnectionLimits {
    /// Splits the descriptors: half for clients and their connections to proxies, a quarter for active connections to the
    /// Collector, a quarter for idle ones.
    pub fn new(descriptors: u64, proxies: usize) -> Self {
        let ours = descriptors.saturating_sub(OTHER_DESCRIPTORS);
        let clients = (ours / 2 / (1 + proxies as u64)).clamp(1, CLIENTS_MAX);
        Self { clients, tunnels: clients * 3 / 4, requests: (ours / 4).max(clients) }
    }
}

/// A permit out of a bounded number, returned on drop.
pub struct Permit<'c>(&'c Cell<u64>);

impl<'c> Permit<'c> {
    /// Acquires a permit; `None` at the limit.
    pub fn acquire(counted: &'c Cell<u64>, most: u64) -> Option<Self> {
        let before = counted.get();
        (before < most).then(|| {
            counted.set(before + 1);
            Self(counted)
        })
    }

    /// Acquires a permit for a client that already has `own`, and gets no more than it leaves to others.
    pub fn acquire_share(counted: &'c Cell<u64>, own: &'c Cell<u64>, most: u64) -> Option<[Self; 2]> {
        let left = most.saturating_sub(counted.get());
        Some([Self::acquire(own, left)?, Self::acquire(counted, most)?])
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_may_be_fits_into_the_descriptors() {
        for (descriptors, proxies) in [(1024, 1), (1024, 9), (20_000, 2), (1 << 20, 64), (u64::MAX, 0)] {
            let room = ConnectionLimits::new(descriptors, proxies);
            let used = room.clients * (1 + proxies as u64) + room.requests;
            assert!(
                used <= descriptors && room.requests >= room.clients && room.tunnels < room.clients,
                "{room:?}"
            );
        }
        assert_eq!(ConnectionLimits::new(0, 2), ConnectionLimits { clients: 1, tunnels: 0, requests: 1 });
    }

    #[test]
    fn one_of_those_who_share_gets_no_more_than_it_leaves_to_others() {
        let (counted, one, other) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let shared =
            |own| (0..100).map_while(|_| Permit::acquire_share(&counted, own, 100)).collect::<Vec<_>>();
        let (first, second) = (shared(&one), shared(&other));
        assert_eq!((first.len(), second.len(), counted.get()), (50, 25, 75));
        drop((first, second));
        assert_eq!((counted.get(), one.get(), other.get()), (0, 0, 0));
    }

    #[test]
    fn what_is_taken_is_given_back() {
        let counted = Cell::new(0);
        let one = Permit::acquire(&counted, 1);
        assert!(one.is_some() && Permit::acquire(&counted, 1).is_none());
        drop(one);
        assert!(Permit::acquire(&counted, 1).is_some());
    }
}
