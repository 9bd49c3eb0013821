//! When a response has left. The link of its node and that of the switch, each shared by all responses on it.
//!
//! A response flows through both at once, so it has left when the slower of them is done with it.

use assay_dispatch::Moment;
use assay_dispatch::node::Sharing;

/// Bits of a byte.
const BITS: f64 = 8.0;

#[derive(Debug)]
struct Link {
    bits_per_s: f64,
    responses: Sharing<u32>,
    /// The moment that is on the agenda for it.
    planned: Option<Moment>,
}

/// All links: number 0 is the switch's, number n + 1 that of node n.
#[derive(Debug)]
pub struct Links {
    links: Vec<Option<Link>>,
}

impl Links {
    /// The link of the switch, and those of nodes, in bits a second; none: as fast as anything.
    pub fn new(switch: Option<f64>, nodes: impl Iterator<Item = Option<f64>>) -> Self {
        let link = |bits_per_s| Link { bits_per_s, responses: Sharing::new(1, 1.0, 1.0), planned: None };
        Self { links: std::iter::once(switch).chain(nodes).map(|rate| rate.map(link)).collect() }
    }

    /// Puts a response on its links; gives how many there are.
    pub fn send(&mut self, response: u32, bytes: u64, node: u32, now: Moment) -> u8 {
        let mut on = 0;
        for number in [0, node as usize + 1] {
            if let Some(Some(link)) = self.links.get_mut(number) {
                link.responses.add(response, bytes as f64 * BITS / link.bits_per_s, now);
                on += 1;
            }
        }
        on
    }

    /// A response that a link is done with by now, if that moment was planned; call it until there is none.
    pub fn take(&mut self, number: u32, now: Moment) -> Option<u32> {
        self.links.get_mut(number as usize)?.as_mut()?.responses.take(now)
    }

    /// True when a moment is the one that was planned for a link.
    pub fn due(&mut self, number: u32, now: Moment) -> bool {
        let Some(Some(link)) = self.links.get(number as usize) else { return false };
        let due = link.planned == Some(now);
        if due {
            self.rang(number);
        }
        due
    }

    /// The moment that was planned for a link has come: the next may be planned.
    pub fn rang(&mut self, number: u32) {
        if let Some(Some(link)) = self.links.get_mut(number as usize) {
            link.planned = None;
        }
    }

    /// A moment to put on the agenda for a link, if there is a new one.
    pub fn plan(&mut self, number: u32) -> Option<Moment> {
        let link = self.links.get_mut(number as usize)?.as_mut()?;
        let next = link.responses.next();
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
