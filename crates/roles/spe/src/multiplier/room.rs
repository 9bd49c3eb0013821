//! How much there may be at once, so that descriptors last for everybody.
//!
//! Each connection of a client has one to each proxy, as long as it stays. Where there may be no more of them, those that have waited
//! longest for their client make room ([`assay_net::watch::Longest`]), but for tunnels, in which nobody knows who waits: some
//! connections remain without one. Requests have a connection to the Collector each, and over HTTP/2 a client can have many: past the
//! bound they are refused, and one client gets no more than it leaves to others.

use std::cell::Cell;

/// Descriptors for what is neither a client's connection nor made for one.
const OTHER_DESCRIPTORS: u64 = 200;
/// Most connections of clients where there is no limit of descriptors: as many as there are ports at one address.
const MOST_CLIENTS: u64 = 1 << 16;

/// How many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub clients: u64,
    /// Of these, with a tunnel that is not opened.
    pub tunnels: u64,
    /// Requests under way to the Collector, tunnels among them.
    pub requests: u64,
}

impl Room {
    /// With so many descriptors and proxies: half of the descriptors for clients and their connections to proxies, a quarter for
    /// those to the Collector that are in use, a quarter for idle ones.
    pub fn of(descriptors: u64, proxies: usize) -> Self {
        let ours = descriptors.saturating_sub(OTHER_DESCRIPTORS);
        let clients = (ours / 2 / (1 + proxies as u64)).clamp(1, MOST_CLIENTS);
        Self { clients, tunnels: clients * 3 / 4, requests: (ours / 4).max(clients) }
    }
}

/// One of a bounded number, as long as this lives.
pub struct Taken<'c>(&'c Cell<u64>);

impl<'c> Taken<'c> {
    /// One more of those that are counted there; none: there are as many as may be.
    pub fn one(counted: &'c Cell<u64>, most: u64) -> Option<Self> {
        let before = counted.get();
        (before < most).then(|| {
            counted.set(before + 1);
            Self(counted)
        })
    }

    /// The same for one of those who share them, who gets no more than are left to others; `own` is how many it has.
    pub fn share(counted: &'c Cell<u64>, own: &'c Cell<u64>, most: u64) -> Option<[Self; 2]> {
        let left = most.saturating_sub(counted.get());
        Some([Self::one(own, left)?, Self::one(counted, most)?])
    }
}

impl Drop for Taken<'_> {
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
            let room = Room::of(descriptors, proxies);
            let used = room.clients * (1 + proxies as u64) + room.requests;
            assert!(
                used <= descriptors && room.requests >= room.clients && room.tunnels < room.clients,
                "{room:?}"
            );
        }
        assert_eq!(Room::of(0, 2), Room { clients: 1, tunnels: 0, requests: 1 });
    }

    #[test]
    fn one_of_those_who_share_gets_no_more_than_it_leaves_to_others() {
        let (counted, one, other) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let shared = |own| (0..100).map_while(|_| Taken::share(&counted, own, 100)).collect::<Vec<_>>();
        let (first, second) = (shared(&one), shared(&other));
        assert_eq!((first.len(), second.len(), counted.get()), (50, 25, 75));
        drop((first, second));
        assert_eq!((counted.get(), one.get(), other.get()), (0, 0, 0));
    }

    #[test]
    fn what_is_taken_is_given_back() {
        let counted = Cell::new(0);
        let one = Taken::one(&counted, 1);
        assert!(one.is_some() && Taken::one(&counted, 1).is_none());
        drop(one);
        assert!(Taken::one(&counted, 1).is_some());
    }
}
