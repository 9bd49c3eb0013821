//! Links of nodes and of the switch, each shared by all responses on it.
//!
//! A response flows through both links at once, so it has left when the slower of them has sent it.

use crate::dispatch::node::ProcessorSharing;
use crate::dispatch::{Moment, ServerId};

/// Bits of a byte.
const BITS: f64 = 8.0;

/// Number of a link: first the switch's, then those of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(u32);

impl LinkId {
    pub const SWITCH: Self = Self(0);

    pub const fn of_node(node: ServerId) -> Self {
        Self(node.0 + 1)
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug)]
struct Link<T> {
    bits_per_s: f64,
    responses: ProcessorSharing<T>,
    /// The moment of its event in the queue.
    planned: Option<Moment>,
    /// Time in which it was busy, until `accounted_until`.
    busy_s: f64,
    accounted_until: Moment,
}

impl<T> Link<T> {
    fn note(&mut self, now: Moment) {
        self.busy_s = self.busy_s(now);
        self.accounted_until = self.accounted_until.max(now);
    }

    fn busy_s(&self, now: Moment) -> f64 {
        let is_busy = self.responses.present() > 0;
        self.busy_s + if is_busy { now.secs_since(self.accounted_until) } else { 0.0 }
    }
}

/// All links. `T` is what the caller knows a response by.
#[derive(Debug)]
pub struct Links<T> {
    links: Vec<Option<Link<T>>>,
}

impl<T: Copy> Links<T> {
    /// The link of the switch, and those of nodes, in bits a second; none: infinitely fast.
    pub fn new(switch: Option<f64>, nodes: impl Iterator<Item = Option<f64>>) -> Self {
        let link = |bits_per_s| Link {
            bits_per_s,
            responses: ProcessorSharing::new(1, 1.0, 1.0),
            planned: None,
            busy_s: 0.0,
            accounted_until: Moment::START,
        };
        Self { links: std::iter::once(switch).chain(nodes).map(|rate| rate.map(link)).collect() }
    }

    /// Numbers of all links, infinitely fast ones included.
    pub fn ids(&self) -> impl Iterator<Item = LinkId> + use<T> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// Puts a response on these links; returns the number of those that take time.
    pub fn send(&mut self, response: T, bytes: u64, links: &[LinkId], now: Moment) -> u8 {
        let mut on = 0;
        for id in links {
            if let Some(link) = self.link_mut(*id) {
                link.note(now);
                link.responses.add(response, bytes as f64 * BITS / link.bits_per_s, now);
                on += 1;
            }
        }
        on
    }

    /// A response that a link has sent by now; called until there is none.
    pub fn take(&mut self, id: LinkId, now: Moment) -> Option<T> {
        let link = self.link_mut(id)?;
        link.note(now);
        link.responses.pop_done(now)
    }

    /// Time since the start in which a link was busy; 0 if it is infinitely fast.
    pub fn busy_s(&self, id: LinkId, now: Moment) -> f64 {
        self.link(id).map_or(0.0, |link| link.busy_s(now))
    }

    /// True if this is the planned moment of a link's event; the next one may be planned then.
    pub fn due(&mut self, id: LinkId, now: Moment) -> bool {
        let due = self.link(id).is_some_and(|link| link.planned == Some(now));
        if due {
            self.clear_planned(id);
        }
        due
    }

    /// Clears the planned moment of a link, whose event has happened.
    pub fn clear_planned(&mut self, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            link.planned = None;
        }
    }

    /// Moment of a link's next event, if it has changed.
    pub fn plan(&mut self, id: LinkId) -> Option<Moment> {
        let link = self.link_mut(id)?;
        let next = link.responses.next_event();
        if next == link.planned {
            return None;
        }
        link.planned = next;
        next
    }

    /// Rate of a link; none if it is infinitely fast.
    pub fn bits_per_s(&self, id: LinkId) -> Option<f64> {
        self.link(id).map(|link| link.bits_per_s)
    }

    fn link(&self, id: LinkId) -> Option<&Link<T>> {
        self.links.get(id.index())?.as_ref()
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link<T>> {
        self.links.get_mut(id.index())?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_busy_as_long_as_its_bytes_take_whoever_shares_it() {
        let mut links = Links::new(None, [Some(8e6), None].into_iter());
        let [link, none] = [0, 1].map(|node| LinkId::of_node(ServerId(node)));
        let at = Moment::from_secs;
        // 1 MB takes a second; two of 0.5 MB at once take one together.
        assert_eq!(links.send('a', 500_000, &[LinkId::SWITCH, link], at(1.0)), 1);
        links.send('b', 500_000, &[link], at(1.0));
        assert!((links.busy_s(link, at(1.5)) - 0.5).abs() < 1e-9);
        while links.take(link, at(2.0)).is_some() {}
        assert!((links.busy_s(link, at(5.0)) - 1.0).abs() < 1e-9, "idle time does not count");
        links.send('c', 1_000_000, &[none], at(6.0));
        assert_eq!(links.busy_s(none, at(7.0)), 0.0, "it is infinitely fast");
    }
}
