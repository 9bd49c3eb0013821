//! What happens next. A heap of moments; of those at one moment, what was put down first is first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dispatch::Moment;

/// Something that will happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A request comes, of a client or of none.
    Request(Option<u32>),
    /// A request has reached the switch.
    AtSwitch(u32),
    /// The switch has read a request.
    Dispatch(u32),
    /// The switch has passed on a response.
    Forwarded(u32),
    /// A node may be done with something.
    Node(u32),
    /// A link may be done with something.
    Link(u32),
    /// A client has the whole response.
    Response(u32),
    /// A node responds to a probe.
    Probe(u32),
    /// All nodes say how they are.
    Reports,
    /// Somebody looks at all nodes.
    Sample,
    /// A node fails, or comes back.
    Fails(u32),
    Returns(u32),
    /// The policy learns of it: the failure's number.
    NoticedGone(u32),
    /// The policy learns that a node is back.
    NoticedBack(u32),
    Measure,
}

/// What will happen, in order.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(Moment, u64, Event)>>,
    number: u64,
}

impl Agenda {
    pub(crate) fn put(&mut self, at: Moment, event: Event) {
        self.heap.push(Reverse((at, self.number, event)));
        self.number += 1;
    }

    pub(crate) fn take(&mut self) -> Option<(Moment, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
