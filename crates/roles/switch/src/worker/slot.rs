//! A request that has a server: the policy knows it, the server has one more, until it ends in any way.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use assay_cluster::dispatch::{ClassId, End, Finish, Request, ServerId};
use assay_http::head::ResponseHead;

use super::group::{Chosen, Group};
use super::server::Server;
use super::setup::Setup;
use super::shared::{Shared, moment};
use super::stream::Stream;
use crate::load;
use crate::reason::NoServer;
use crate::tally::add;
use assay_net::memory::{Input, Memory};
use assay_net::watch::Deadline;

/// So much is read from a client whose request waits for a server; one that has sent more is not watched.
const MOST_AHEAD_BYTES: usize = 64 * 1024;

/// What a request goes by: the configuration that it began with, or a later one if it had to look again.
pub struct Standing {
    pub setup: Rc<Setup>,
    /// What policies know of the request; its class is one of that configuration.
    pub request: Request,
}

/// Why a request got no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// None can get requests.
    Nobody,
    /// All have enough, and so does the queue.
    QueueFull,
    /// None had room in time.
    TooLong,
    /// The client has gone away.
    Left,
}

impl Unserved {
    /// As counters tell it; none: nothing is wrong with the servers.
    pub fn reason(self) -> Option<NoServer> {
        match self {
            Unserved::Nobody => Some(NoServer::Unavailable),
            Unserved::QueueFull => Some(NoServer::QueueFull),
            Unserved::TooLong => Some(NoServer::QueueTimeout),
            Unserved::Left => None,
        }
    }

    /// What the client is told.
    pub fn text(self) -> &'static str {
        match self {
            Unserved::Nobody => "no server is available now",
            Unserved::QueueFull => {
                "all servers have as many requests as they may have, and as many wait as may wait"
            }
            Unserved::TooLong => {
                "all servers have as many requests as they may have, and none had room in time"
            }
            Unserved::Left => "the client has gone away",
        }
    }
}

impl Standing {
    /// The class, by the configuration.
    pub fn class(&self) -> ClassId {
        self.request.class
    }

    /// Goes by the configuration of now.
    fn renew(&mut self, shared: &Shared) {
        let current = shared.setup();
        if !Rc::ptr_eq(&current, &self.setup) {
            self.request.class = current.class_named(self.setup.class_name(self.request.class));
            self.setup = current;
        }
    }
}

/// A request that has a server. Dropped, it reports that the request has ended.
pub struct Slot {
    pub server: Rc<Server>,
    /// When it got it, in nanoseconds.
    pub started_ns: u64,
    /// Whether the server did its part.
    pub has_response: bool,
    /// When the response was complete for the policy, where that is before the end.
    pub responded_ns: Option<u64>,
    /// Something of the response has come.
    has_begun: Cell<bool>,
    group: Rc<Group>,
    request: Request,
    shared: Rc<Shared>,
}

impl Slot {
    fn new(server: Rc<Server>, group: Rc<Group>, request: Request, shared: Rc<Shared>) -> Self {
        let now = moment();
        server.in_flight.set(server.in_flight.get() + 1);
        shared.counts.in_flight.set(shared.counts.in_flight.get() + 1);
        group.policy().started(server.id, &request, now);
        Self {
            server,
            started_ns: now.nanos(),
            has_response: false,
            responded_ns: None,
            has_begun: Cell::new(false),
            group,
            request,
            shared,
        }
    }

    /// The server has sent something, and nobody looks at what.
    pub fn first_byte(&self) {
        self.has_begun.set(true);
        let now = moment();
        let after_nanos = now.nanos().saturating_sub(self.started_ns);
        self.group.policy().first_byte(self.server.id, &self.request, after_nanos, now);
    }

    /// The response has begun; the server may have said in it how it is.
    pub fn begun(&self, head: &ResponseHead<'_>) {
        self.has_begun.set(true);
        let now = moment();
        let after_nanos = now.nanos().saturating_sub(self.started_ns);
        let mut policy = self.group.policy();
        policy.first_byte(self.server.id, &self.request, after_nanos, now);
        let load = if self.group.listens { head.header(load::FIELD) } else { None };
        if let Some(state) = load.and_then(|value| load::read(value, self.server.in_flight.get())) {
            policy.reported(self.server.id, &state, now);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let now = moment();
        let took_nanos = self.responded_ns.unwrap_or(now.nanos()).saturating_sub(self.started_ns);
        self.server.in_flight.set(self.server.in_flight.get() - 1);
        self.shared.counts.in_flight.set(self.shared.counts.in_flight.get() - 1);
        let end = match (self.has_response, self.has_begun.get()) {
            (false, _) => End::Failed,
            (true, true) => End::Responded,
            (true, false) => End::Left,
        };
        let how = Finish { took_nanos, end };
        self.group.policy().finished(self.server.id, &self.request, &how, now);
        if self.shared.queue.len() > 0 {
            self.shared.queue.has_room(self.server.id);
        }
    }
}

/// A request that waits, and for how long it may. If its client has closed the connection, it leaves the queue.
pub struct Waiting<'c> {
    pub stream: &'c mut Stream,
    /// What came from it and was not used.
    pub input: &'c mut Input,
    pub deadline: &'c Deadline,
    /// A client that sends nothing more may wait for what it gets, if it has sent something: it is noted here. None: it has left.
    pub half_closed: Option<&'c mut bool>,
}

impl Waiting<'_> {
    /// Whether the client has closed its connection; if not, the waiting task is woken when it does. To find out, what it sends
    /// meanwhile is read, up to a limit.
    fn has_left(&mut self, memory: &Memory, cx: &mut Context<'_>) -> bool {
        while self.input.unread().len() < MOST_AHEAD_BYTES
            && !self.half_closed.as_ref().is_some_and(|it| **it)
        {
            let input = &mut *self.input;
            let read = memory.poll_read(self.stream, cx, |bytes| {
                input.append(bytes, memory);
                bytes.len()
            });
            match read {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) if !self.input.unread().is_empty() && self.half_closed.is_some() => {
                    self.half_closed.iter_mut().for_each(|it| **it = true);
                }
                Poll::Ready(_) => return true,
                Poll::Pending => return false,
            }
        }
        // It is not read any more: it is seen to leave only if its connection is reset.
        self.stream.poll_gone(true, cx).is_ready()
    }
}

/// Gets a server for a request that those of `tried` have failed, and waits for one with room if need be.
pub async fn acquire(
    shared: &Rc<Shared>,
    standing: &mut Standing,
    tried: &[ServerId],
    waiting: Waiting<'_>,
) -> Result<Slot, Unserved> {
    standing.renew(shared);
    let group = Rc::clone(standing.setup.group(standing.class()));
    super::probe::probe_wanted(shared, &group);
    // Whoever came before goes first.
    if group.waiting.get() == 0 {
        match group.choose(&standing.request, tried, moment()) {
            Chosen::Server(server) => {
                return Ok(Slot::new(server, group, standing.request, Rc::clone(shared)));
            }
            Chosen::Nobody => return Err(Unserved::Nobody),
            Chosen::Full => {}
        }
    }
    Box::pin(wait(shared, standing, tried, waiting, &group)).await
}

async fn wait(
    shared: &Rc<Shared>,
    standing: &mut Standing,
    tried: &[ServerId],
    mut waiting: Waiting<'_>,
    group: &Rc<Group>,
) -> Result<Slot, Unserved> {
    if shared.queue.len() as u64 >= u64::from(standing.setup.most_waiting) {
        return Err(Unserved::QueueFull);
    }
    waiting.deadline.set(standing.setup.config.timeouts.queue);
    let mut place = shared.queue.join(group);
    let mut group = Rc::clone(group);
    loop {
        let called = poll_fn(|cx| {
            if waiting.has_left(&shared.resources.memory, cx) {
                return Poll::Ready(Err(Unserved::Left));
            }
            if place.is_called(cx.waker()) {
                return Poll::Ready(Ok(()));
            }
            assay_net::memory::wait::<()>(waiting.deadline, cx).map_err(|_| Unserved::TooLong)
        });
        if let Err(unserved) = called.await {
            if unserved == Unserved::Left {
                add(&shared.counts.left);
            }
            return Err(unserved);
        }
        standing.renew(shared);
        let current = standing.setup.group(standing.class());
        if !Rc::ptr_eq(current, &group) {
            // A reload: the request stays in line, among those of the new group.
            group = Rc::clone(current);
            place = shared.queue.join(&group);
        }
        match group.choose(&standing.request, tried, moment()) {
            Chosen::Server(server) => {
                return Ok(Slot::new(server, group, standing.request, Rc::clone(shared)));
            }
            Chosen::Nobody => return Err(Unserved::Nobody),
            Chosen::Full => {}
        }
    }
}
