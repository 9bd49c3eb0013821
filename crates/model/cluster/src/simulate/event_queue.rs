//! Event queue of the simulation: a heap of moments; events of one moment come in the order in which they were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dispatch::Moment;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A request is due, of a client or of none (open loop).
    Request(Option<u32>),
    /// A request has reached the switch.
    AtSwitch(u32),
    /// The switch has read a request, and chooses a server.
    Dispatch(u32),
    /// The switch has passed on a response.
    Forwarded(u32),
    /// A node's next event is due.
    Node(u32),
    /// A link's next completion is due.
    Link(u32),
    /// A client has the whole response.
    Response(u32),
    /// A node responds to a probe.
    Probe(u32),
    /// All nodes report their state.
    Reports,
    /// Nodes are sampled for the recorder.
    Sample,
    /// A node fails; the failure's number.
    Fail(u32),
    Recover(u32),
    /// The policy learns that a node is down.
    FailureDetected(u32),
    /// The policy learns that a node is up again.
    RecoveryDetected(u32),
    /// Warm-up ends: everything is counted from now on.
    Measure,
}

#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Moment, u64, Event)>>,
    number: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Moment, event: Event) {
        self.heap.push(Reverse((at, self.number, event)));
        self.number += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(Moment, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
