//! Links of nodes and of the switch, each shared by all responses on it.
//!
//! A response flows through both links at once, so it has left when the slower of them has sent it.

use crate::dispatch::Moment;
use crate::dispatch::node::ProcessorSharing;

/// Bits of a byte.
const BITS: f64 = 8.0;

#[derive(Debug)]
struct Link {
    bits_per_s: f64,
    responses: ProcessorSharing<u32>,
    /// The moment of its event in the queue.
    planned: Option<Moment>,
    /// Time in which it was busy, until `noted`.
    busy_s: f64,
    noted: Moment,
}

impl Link {
    fn note(&mut self, now: Moment) {
        self.busy_s = self.busy_s(now);
        self.noted = self.noted.max(now);
    }

    fn busy_s(&self, now: Moment) -> f64 {
        let is_busy = self.responses.present() > 0;
        self.busy_s + if is_busy { now.secs_since(self.noted) } else { 0.0 }
    }
}

/// All links: number 0 is the switch's, number n + 1 that of node n.
#[derive(Debug)]
pub struct Links {
    links: Vec<Option<Link>>,
}

impl Links {
    /// The link of the switch, and those of nodes, in bits a second; none: infinitely fast.
    pub fn new(switch: Option<f64>, nodes: impl Iterator<Item = Option<f64>>) -> Self {
        let link = |bits_per_s| Link {
            bits_per_s,
            responses: ProcessorSharing::new(1, 1.0, 1.0),
            planned: None,
            busy_s: 0.0,
            noted: Moment::START,
        };
        Self { links: std::iter::once(switch).chain(nodes).map(|rate| rate.map(link)).collect() }
    }

    /// Puts a response on the links of node and switch; returns the number of links.
    pub fn send(&mut self, response: u32, bytes: u64, node: u32, now: Moment) -> u8 {
        self.send_by([0, node as usize + 1].into_iter(), response, bytes, now)
    }

    /// Puts a response on the link of its node alone, for direct server return.
    pub fn send_direct(&mut self, response: u32, bytes: u64, node: u32, now: Moment) -> u8 {
        self.send_by(std::iter::once(node as usize + 1), response, bytes, now)
    }

    fn send_by(&mut self, by: impl Iterator<Item = usize>, response: u32, bytes: u64, now: Moment) -> u8 {
        let mut on = 0;
        for number in by {
            if let Some(Some(link)) = self.links.get_mut(number) {
                link.note(now);
                link.responses.add(response, bytes as f64 * BITS / link.bits_per_s, now);
                on += 1;
            }
        }
        on
    }

    /// A response that a link has sent by now; called until there is none.
    pub fn take(&mut self, number: u32, now: Moment) -> Option<u32> {
        let link = self.links.get_mut(number as usize)?.as_mut()?;
        link.note(now);
        link.responses.pop_done(now)
    }

    /// Time since the start in which a node's link was busy; 0 if it has none.
    pub fn busy_s(&self, node: u32, now: Moment) -> f64 {
        match self.links.get(node as usize + 1) {
            Some(Some(link)) => link.busy_s(now),
            _ => 0.0,
        }
    }

    /// True if this is the planned moment of a link's event; the next one may be planned then.
    pub fn due(&mut self, number: u32, now: Moment) -> bool {
        let Some(Some(link)) = self.links.get(number as usize) else { return false };
        let due = link.planned == Some(now);
        if due {
            self.clear_planned(number);
        }
        due
    }

    /// Clears the planned moment of a link, whose event has happened.
    pub fn clear_planned(&mut self, number: u32) {
        if let Some(Some(link)) = self.links.get_mut(number as usize) {
            link.planned = None;
        }
    }

    /// Moment of a link's next event, if it has changed.
    pub fn plan(&mut self, number: u32) -> Option<Moment> {
        let link = self.links.get_mut(number as usize)?.as_mut()?;
        let next = link.responses.next_event();
        if next == link.planned {
            return None;
        }
        link.planned = next;
        next
    }

    /// The rate of a node's link.
    pub fn node_rate(&self, node: u32) -> Option<f64> {
        self.links.get(node as usize + 1)?.as_ref().map(|link| link.bits_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_busy_as_long_as_its_bytes_take_whoever_shares_it() {
        let mut links = Links::new(None, [Some(8e6), None].into_iter());
        let at = Moment::from_secs;
        // 1 MB takes a second; two of 0.5 MB at once take one together.
        links.send(1, 500_000, 0, at(1.0));
        links.send(2, 500_000, 0, at(1.0));
        assert!((links.busy_s(0, at(1.5)) - 0.5).abs() < 1e-9);
        while links.take(1, at(2.0)).is_some() {}
        assert!((links.busy_s(0, at(5.0)) - 1.0).abs() < 1e-9, "idle time does not count");
        links.send(3, 1_000_000, 1, at(6.0));
        assert_eq!(links.busy_s(1, at(7.0)), 0.0, "it has no link");
    }
}
