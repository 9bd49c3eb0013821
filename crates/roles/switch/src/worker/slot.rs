//! The slot that a request occupies at a server: counted, and known to the policy, until the request ends in any way.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use assay_cluster::dispatch::{ClassId, Completion, Request, RequestOutcome, ServerId};
use assay_http::head::ResponseHead;

use super::context::{WorkerContext, moment};
use super::group::{Group, Selection};
use super::server::Server;
use super::setup::WorkerSetup;
use super::transport::Transport;
use crate::orca;
use crate::reason::NoServerReason;
use crate::tally::add;
use assay_net::buffers::{BufferPool, InputBuffer};
use assay_net::deadlines::Deadline;

/// Bytes read from a client whose request is queued. A client that has sent more is not watched for a close.
const READ_AHEAD_MAX_BYTES: usize = 64 * 1024;

/// Configuration by which a request is routed: the one it began with, or a later one if it had to select again.
pub struct RoutingContext {
    pub setup: Rc<WorkerSetup>,
    /// The request as policies see it; its class belongs to `setup`.
    pub request: Request,
}

/// Reasons for which a request gets no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquireError {
    /// No server of the group is available.
    NoServer,
    /// All servers are at their limits, and the queue is full.
    QueueFull,
    /// No server had room in time.
    QueueTimeout,
    ClientGone,
}

impl AcquireError {
    /// Reason to count; `None` where the client left, which is no fault of the servers.
    pub fn reason(self) -> Option<NoServerReason> {
        match self {
            AcquireError::NoServer => Some(NoServerReason::Unavailable),
            AcquireError::QueueFull => Some(NoServerReason::QueueFull),
            AcquireError::QueueTimeout => Some(NoServerReason::QueueTimeout),
            AcquireError::ClientGone => None,
        }
    }

    /// Text for the client.
    pub fn text(self) -> &'static str {
        match self {
            AcquireError::NoServer => "no server is available now",
            AcquireError::QueueFull => {
                "all servers have as many requests as they may have, and as many wait as may wait"
            }
            AcquireError::QueueTimeout => {
                "all servers have as many requests as they may have, and none had room in time"
            }
            AcquireError::ClientGone => "the client has gone away",
        }
    }
}

impl RoutingContext {
    pub fn class(&self) -> ClassId {
        self.request.class
    }

    /// Switches to the current configuration.
    fn renew(&mut self, shared: &WorkerContext) {
        let current = shared.setup();
        if !Rc::ptr_eq(&current, &self.setup) {
            self.request.class = current.class_named(self.setup.class_name(self.request.class));
            self.setup = current;
        }
    }
}

/// A request in flight at a server. Dropping it reports the end of the request to the policy.
pub struct Slot {
    pub server: Rc<Server>,
    /// Instant of the selection of the server.
    pub started_ns: u64,
    /// Whether the server did its part.
    pub has_response: bool,
    /// Instant at which the response was complete as far as the policy is concerned, if before the end (tunnels).
    pub responded_ns: Option<u64>,
    /// A byte of the response has arrived.
    has_begun: Cell<bool>,
    group: Rc<Group>,
    request: Request,
    shared: Rc<WorkerContext>,
}

impl Slot {
    fn new(server: Rc<Server>, group: Rc<Group>, request: Request, shared: Rc<WorkerContext>) -> Self {
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

    /// Reports the first byte of a connection that is not parsed (layer 4).
    pub fn first_byte(&self) {
        self.has_begun.set(true);
        let now = moment();
        let after_nanos = now.nanos().saturating_sub(self.started_ns);
        self.group.policy().first_byte(self.server.id, &self.request, after_nanos, now);
    }

    /// Reports the head of the response to the policy, with the load report that it may carry (ORCA).
    pub fn begun(&self, head: &ResponseHead<'_>) {
        self.has_begun.set(true);
        let now = moment();
        let after_nanos = now.nanos().saturating_sub(self.started_ns);
        let mut policy = self.group.policy();
        policy.first_byte(self.server.id, &self.request, after_nanos, now);
        let load = if self.group.wants_reports { head.header(orca::FIELD) } else { None };
        if let Some(state) = load.and_then(|value| orca::read(value, self.server.in_flight.get())) {
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
        let outcome = match (self.has_response, self.has_begun.get()) {
            (false, _) => RequestOutcome::Failed,
            (true, true) => RequestOutcome::Responded,
            (true, false) => RequestOutcome::Left,
        };
        let completion = Completion { took_nanos, outcome };
        self.group.policy().finished(self.server.id, &self.request, &completion, now);
        if self.shared.queue.len() > 0 {
            self.shared.queue.notify_one(self.server.id);
        }
    }
}

/// Client of a queued request. If it closes its connection, the request leaves the queue.
pub struct WaitingClient<'c> {
    pub stream: &'c mut Transport,
    /// Bytes received and not yet consumed.
    pub input: &'c mut InputBuffer,
    pub deadline: &'c Deadline,
    /// Layer 4 only: set when the client has closed its sending side after it sent something, and may still wait for a response. `None`:
    /// any close ends the request.
    pub half_closed: Option<&'c mut bool>,
}

impl WaitingClient<'_> {
    /// Whether the client has closed its connection; if not, the task is woken when it does. The close is only seen by reading, so up to
    /// [`READ_AHEAD_MAX_BYTES`] are read ahead.
    fn has_closed(&mut self, memory: &BufferPool, cx: &mut Context<'_>) -> bool {
        while self.input.unread().len() < READ_AHEAD_MAX_BYTES
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
        // Beyond the read-ahead limit only a reset is seen.
        self.stream.poll_gone(true, cx).is_ready()
    }
}

/// Selects a server that is not among `tried`, and queues the request if all are at their limits.
pub async fn acquire(
    shared: &Rc<WorkerContext>,
    routing: &mut RoutingContext,
    tried: &[ServerId],
    waiting: WaitingClient<'_>,
) -> Result<Slot, AcquireError> {
    routing.renew(shared);
    let group = Rc::clone(routing.setup.group(routing.class()));
    super::probe::probe_wanted(shared, &group);
    // First come, first served: not ahead of requests that are queued already.
    if group.waiting.get() == 0 {
        match group.choose(&routing.request, tried, moment()) {
            Selection::Server(server) => {
                return Ok(Slot::new(server, group, routing.request, Rc::clone(shared)));
            }
            Selection::NoneAvailable => return Err(AcquireError::NoServer),
            Selection::AllFull => {}
        }
    }
    Box::pin(wait(shared, routing, tried, waiting, &group)).await
}

async fn wait(
    shared: &Rc<WorkerContext>,
    routing: &mut RoutingContext,
    tried: &[ServerId],
    mut waiting: WaitingClient<'_>,
    group: &Rc<Group>,
) -> Result<Slot, AcquireError> {
    if shared.queue.len() as u64 >= u64::from(routing.setup.max_waiting) {
        return Err(AcquireError::QueueFull);
    }
    waiting.deadline.set(routing.setup.config.timeouts.queue);
    let mut entry = shared.queue.push(group);
    let mut group = Rc::clone(group);
    loop {
        let notified = poll_fn(|cx| {
            if waiting.has_closed(&shared.resources.memory, cx) {
                return Poll::Ready(Err(AcquireError::ClientGone));
            }
            if entry.is_notified(cx.waker()) {
                return Poll::Ready(Ok(()));
            }
            assay_net::buffers::poll_deadline::<()>(waiting.deadline, cx)
                .map_err(|_| AcquireError::QueueTimeout)
        });
        if let Err(error) = notified.await {
            if error == AcquireError::ClientGone {
                add(&shared.counts.left);
            }
            return Err(error);
        }
        routing.renew(shared);
        let current = routing.setup.group(routing.class());
        if !Rc::ptr_eq(current, &group) {
            // After a reload the request stays in line, in its new group.
            group = Rc::clone(current);
            entry = shared.queue.push(&group);
        }
        match group.choose(&routing.request, tried, moment()) {
            Selection::Server(server) => {
                return Ok(Slot::new(server, group, routing.request, Rc::clone(shared)));
            }
            Selection::NoneAvailable => return Err(AcquireError::NoServer),
            Selection::AllFull => {}
        }
    }
}
