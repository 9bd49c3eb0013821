//! Event queue of the simulation: a heap of moments; events of one moment come in the order in which they were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dispatch::{Moment, ServerId};
use crate::simulate::kernel::XactKey;
use crate::simulate::links::LinkId;
use crate::simulate::stream::ClientId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A request is due, of a client or of none (open loop).
    Request(Option<ClientId>),
    /// A request has reached the switch.
    AtSwitch(XactKey),
    /// The switch has read a request, and chooses a server.
    Dispatch(XactKey),
    /// The switch has passed on a response.
    Forwarded(XactKey),
    /// A node's next event is due.
    Node(ServerId),
    /// A link's next completion is due.
    Link(LinkId),
    /// A client has the whole response.
    Response(XactKey),
    /// A node responds to a probe.
    Probe(ServerId),
    /// All nodes report their state.
    Reports,
    /// Nodes are sampled for the recorder.
    Sample,
    Fail(ServerId),
    Recover(ServerId),
    /// The policy learns that a node is down.
    FailureDetected(ServerId),
    /// The policy learns that a node is up again.
    RecoveryDetected(ServerId),
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
