//! Life of a robot's connection: opened for a request, used, idle, used again, closed; and the queue of requests for one.
//!
//! All sockets of a thread are waited for at once ([`Sockets`]): what has come on one is dealt with where it lies, and
//! a request is written at once. No connection has a task or a buffer of its own: all of a thread read into one.
//!
//! [`Sockets`]: assay_net::sockets::Sockets

use std::io::{self, ErrorKind as IoErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use assay_measurement::error_kind::ErrorKind;
use assay_net::byte_stream::ByteStream;
use assay_workload::model::HttpVersion;
use socket2::{Domain, Protocol, Socket, Type};

use super::connection::{ConnectionKey, ConnectionPipeline, ConnectionStage, ListLink, RobotConnection};
use super::recorder::Received;
use super::response::ResponseReader;
use super::securing::byte_stream;
use super::streams::Streams;
use super::worker::{RobotKey, Trigger, Worker};
use super::xact::{XactKey, XactQueue};
use assay_base::clock::monotonic_ns;
use assay_net::rx_timestamps::{enable_rx_timestamps, handshake_ns};
use assay_net::sockets::Readiness;
use slotmap::Key;

/// A connection that is made sooner needs no look at how long its handshake took.
const QUICK_HANDSHAKE_NS: u64 = 100_000;

/// Bytes that are read from one connection before it is the turn of others, and of what is due: more may come on it for as long as
/// there is time.
const TURN_BYTES: usize = 1 << 20;

/// A request that is written sooner than that was not held up.
const QUICK_WRITE_NS: u64 = 100_000;

impl Worker {
    /// Submits a request that is ready: finds a connection, opens one, or lets it wait.
    pub fn submit(&mut self, xact_key: XactKey, trigger: &Trigger) {
        let xact = &self.xacts[xact_key];
        let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
        let robot = &self.robots[xact.robot];
        let rules = &self.setup.groups[usize::from(robot.group)];
        // Requests of a robot keep their order: behind those that wait, this one waits as well.
        if !robot.waiting.is_empty() {
            return self.enqueue(xact_key, trigger);
        }
        if robot.version == HttpVersion::Http2 {
            return self.submit_on_stream(xact_key, trigger);
        }
        if let Some(connection) = self.idle_connection_to(xact.robot, destination) {
            return self.send_on(connection, xact_key, trigger);
        }
        // Before pipelining: an idle connection has no responses that this request would have to wait for.
        if rules.substitution > 0.0
            && let Some(connection) = self.idle_connection_to_substitute(xact_key)
        {
            self.count_substituted(xact_key);
            return self.send_on(connection, xact_key, trigger);
        }
        if xact.is_embedded()
            && let Some(connection) = self.pipeline_to(xact.robot, destination)
        {
            return self.pipeline(connection, xact_key, trigger);
        }
        if robot.open >= rules.open_limit {
            // All slots are taken, but one of them may be idle, to another destination.
            let Some(oldest) = robot.idle.last else { return self.enqueue(xact_key, trigger) };
            self.close(oldest);
        }
        self.open(xact_key, XactQueue::default(), trigger);
    }

    /// Sends the next step of an xact that is under way: on an idle connection, or on one more.
    pub fn send_again(&mut self, xact_key: XactKey, trigger: &Trigger) {
        let xact = &self.xacts[xact_key];
        if self.robots[xact.robot].version == HttpVersion::Http2 {
            return self.resubmit_on_stream(xact_key, trigger);
        }
        let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
        match self.idle_connection_to(xact.robot, destination) {
            Some(connection) => self.send_on(connection, xact_key, trigger),
            None => self.open(xact_key, XactQueue::default(), trigger),
        }
    }

    /// Puts an xact at the end of its robot's queue.
    pub fn enqueue(&mut self, xact_key: XactKey, trigger: &Trigger) {
        let robot = &mut self.robots[self.xacts[xact_key].robot];
        let waiting = robot.waiting.len();
        if waiting >= self.setup.groups[usize::from(robot.group)].waiting_limit {
            let detail = format!("{waiting} requests were waiting for a connection already");
            let (kind, received) = (ErrorKind::QueueOverflow, Received::NOTHING);
            return self.fail(xact_key, kind, &detail, received, monotonic_ns(), trigger);
        }
        robot.waiting.push(xact_key, &mut self.xacts);
        self.recorder.levels.waiting += 1;
    }

    /// Takes the first xact out of a robot's queue.
    pub fn pop_waiting(&mut self, robot: RobotKey) -> Option<XactKey> {
        let xact_key = self.robots[robot].waiting.pop(&mut self.xacts)?;
        self.recorder.levels.waiting -= 1;
        Some(xact_key)
    }

    /// Gives free slots of a robot to its queue.
    pub fn fill_slots(&mut self, robot: RobotKey, trigger: &Trigger) {
        if self.robots[robot].version == HttpVersion::Http2 {
            return self.fill_streams(robot, trigger);
        }
        loop {
            let state = &self.robots[robot];
            if state.open >= self.setup.groups[usize::from(state.group)].open_limit {
                return;
            }
            let Some(xact_key) = self.pop_waiting(robot) else { return };
            self.xacts[xact_key].make_ready(monotonic_ns(), trigger.released);
            self.open(xact_key, XactQueue::default(), trigger);
        }
    }

    /// Begins a connection for an xact. Those `behind` follow on it once that has its response.
    pub fn open(&mut self, xact_key: XactKey, mut behind: XactQueue, trigger: &Trigger) {
        let xact = &self.xacts[xact_key];
        let (robot_key, origin) = (xact.robot, xact.object.id.origin);
        let Self { setup, robots, connections, network, .. } = self;
        let route = setup.route(xact.id.robot, origin);
        let address = route.address;
        let robot = &mut robots[robot_key];
        let serial = robot.connections;
        let is_multiplexed = robot.version == HttpVersion::Http2;
        let begun_ns = monotonic_ns();
        let transport = begin_connect(address, setup.source_of(robot.index)).and_then(|socket| {
            // A kernel that cannot leaves the robots' own delays unknown, which is no reason not to send.
            let _ = enable_rx_timestamps(&socket);
            byte_stream(setup, robot, socket, serial, origin)
        });
        let opened = transport.and_then(|transport| {
            let depth = setup.depth_of(robot.index, robot.version, robot.group, serial);
            let connection_key = connections.insert(RobotConnection {
                robot: robot_key,
                serial,
                destination: route.destination,
                uses_left: setup.uses_of(robot.index, robot.version, robot.group, serial),
                xact: (!is_multiplexed).then_some(xact_key),
                response: ResponseReader::default(),
                is_fresh: true,
                stage: ConnectionStage::Connecting,
                since_ns: begun_ns,
                pipeline: ConnectionPipeline::new(depth, std::mem::take(&mut behind)),
                link: ListLink::default(),
                transport,
                unsent: Vec::new(),
                streams: is_multiplexed.then(|| Box::new(Streams::new(begun_ns))),
            });
            let socket = connections[connection_key].transport.socket();
            let registered = network.sockets().add(socket, connection_key.data().as_ffi());
            registered.map(|()| connection_key).inspect_err(|_| {
                let connection = connections.remove_unlinked(connection_key);
                behind = connection.map(|connection| connection.pipeline.behind).unwrap_or_default();
            })
        });
        let connection_key = match opened {
            Ok(key) => key,
            Err(error) => {
                // Only the request whose turn it is has failed. Those behind it go out on a connection of their
                // own.
                self.reopen_for(behind, trigger);
                return self.fail_to_open(xact_key, &error, address, trigger);
            }
        };
        robot.connections += 1;
        robot.open += 1;
        self.mark_sent(xact_key, begun_ns, trigger);
        self.xacts[xact_key].connection = Some(serial);
        if is_multiplexed {
            return self.send_on_stream(connection_key, xact_key, trigger);
        }
        self.link_busy(connection_key);
    }

    pub fn fail_to_open(
        &mut self,
        xact_key: XactKey,
        error: &io::Error,
        address: SocketAddr,
        trigger: &Trigger,
    ) {
        let kind = kind_of(error);
        let detail = match kind {
            ErrorKind::PortsExhausted => format!(
                "no source port is left for connections to {address} ({error}); widen \
                 net.ipv4.ip_local_port_range, or give robots more addresses"
            ),
            ErrorKind::DescriptorsExhausted => {
                format!(
                    "no file descriptor is left for a connection to {address} ({error}); raise the limit (ulimit -n)"
                )
            }
            _ => format!("cannot connect to {address}: {error}"),
        };
        let robot = self.xacts[xact_key].robot;
        self.fail(xact_key, kind, &detail, Received::NOTHING, monotonic_ns(), trigger);
        self.fill_slots(robot, trigger);
    }

    /// Sends an xact on a connection that was idle, or has just become so.
    fn send_on(&mut self, connection_key: ConnectionKey, xact_key: XactKey, trigger: &Trigger) {
        let sent_ns = monotonic_ns();
        self.mark_sent(xact_key, sent_ns, trigger);
        let connection = &mut self.connections[connection_key];
        connection.xact = Some(xact_key);
        connection.response = ResponseReader::default();
        self.xacts[xact_key].connection = Some(connection.serial);
        self.link_busy(connection_key);
        self.write_request(connection_key, xact_key, trigger);
        self.note_written(xact_key, sent_ns);
    }

    /// Writes the request of an xact that a connection carries, as far as the socket takes it.
    pub fn write_request(&mut self, connection_key: ConnectionKey, xact_key: XactKey, trigger: &Trigger) {
        let connection = &mut self.connections[connection_key];
        connection.uses_left = connection.uses_left.saturating_sub(1);
        let last_use = connection.uses_left == 0;
        let is_first = connection.is_fresh && connection.xact == Some(xact_key);
        let mut output = self.network.take_output();
        if self.put_request(xact_key, last_use, &mut output) {
            self.await_continue(connection_key, xact_key);
        }
        let phase = self.xacts[xact_key].phase;
        self.recorder.counts(phase).on_reused_connection += u64::from(!is_first);
        self.write_bytes(connection_key, phase, &output, trigger);
        self.network.put_output(output);
    }

    /// Notes a request as written that was begun at `from_ns`: long after, if this thread lost its processor in
    /// between.
    fn note_written(&mut self, xact_key: XactKey, from_ns: u64) {
        let Some(xact) = self.xacts.get_mut(xact_key) else { return };
        let held_ns = monotonic_ns().saturating_sub(from_ns);
        if held_ns >= QUICK_WRITE_NS {
            xact.own.connected_us = xact.own.connected_us.saturating_add((held_ns / 1_000) as u32);
        }
    }

    /// Writes bytes of a request of this phase, as far as the socket takes them.
    pub fn write_bytes(
        &mut self,
        connection_key: ConnectionKey,
        phase: u16,
        bytes: &[u8],
        trigger: &Trigger,
    ) {
        let connection = &mut self.connections[connection_key];
        // Behind bytes that the socket has not taken yet, these wait: a request must not overtake another.
        let written =
            if connection.unsent.is_empty() { write(&mut connection.transport, bytes) } else { Ok(0) };
        if let Ok(written) = written
            && written < bytes.len()
        {
            // The system tells when there is room again.
            connection.unsent.extend_from_slice(&bytes[written..]);
        }
        match written {
            Ok(written) => self.recorder.counts(phase).wire_bytes_out += written as u64,
            Err(error) => self.fail_to_write(connection_key, &error, trigger),
        }
    }

    /// Ends the sending on a connection that takes no more bytes.
    fn fail_to_write(&mut self, connection_key: ConnectionKey, error: &io::Error, trigger: &Trigger) {
        let connection = &mut self.connections[connection_key];
        let Some(xact_key) = connection.xact else { return };
        if self.xacts[xact_key].first_byte_ns.is_none() {
            return self.connection_lost(connection_key, xact_key, error, trigger);
        }
        // The target responds before it has read everything, and has stopped reading: the response counts.
        connection.unsent.clear();
        connection.uses_left = 0;
    }

    /// Does all that a connection's socket is ready for; it may have been closed by what came before. Returns the number
    /// of responses that came to their end on its streams.
    #[inline]
    pub fn serve_socket(&mut self, connection_key: ConnectionKey, readiness: Readiness) -> u32 {
        let Some(mut connection) = self.connections.get(connection_key) else { return 0 };
        if !connection.is_established() {
            self.establish(connection_key, readiness);
            match self.connections.get(connection_key) {
                Some(established) if established.is_established() => connection = established,
                _ => return 0,
            }
        }
        match connection.streams {
            Some(_) => self.flush_streams(connection_key),
            None if connection.is_written() => {}
            None => self.write_unsent(connection_key),
        }
        let (mut taken, mut responses) = (0, 0);
        while readiness.is_readable()
            && let Some(RobotConnection { transport, .. }) = self.connections.get_mut(connection_key)
        {
            if taken >= TURN_BYTES
                && !transport.has_received_close()
                && self.network.sockets().rearm(transport.socket(), connection_key.data().as_ffi()).is_ok()
            {
                break;
            }
            let mut bytes = self.network.take_input();
            let read = transport.recv(&mut bytes);
            match &read {
                Ok(read) if read.length == 0 => self.receive_end(connection_key, None),
                Ok(read) => responses += self.receive(connection_key, &bytes[..read.length], read.received),
                Err(error) if matches!(error.kind(), IoErrorKind::WouldBlock | IoErrorKind::Interrupted) => {}
                Err(error) => self.receive_end(connection_key, Some(error)),
            }
            self.network.put_input(bytes);
            // There is no more now, unless the end, of which nobody is told again.
            match read {
                Ok(read) if !read.more && !readiness.is_ended() => break,
                Ok(read) => taken += read.length,
                Err(error) if error.kind() == IoErrorKind::WouldBlock => break,
                Err(_) => {}
            }
        }
        responses
    }

    /// Goes on with the handshakes of a connection on which nothing can be sent yet.
    fn establish(&mut self, connection_key: ConnectionKey, readiness: Readiness) {
        let connection = &mut self.connections[connection_key];
        if connection.stage == ConnectionStage::Connecting {
            if !readiness.is_connected() {
                return;
            }
            // `SO_ERROR` has the result of a connect that did not block.
            match connection.transport.socket().take_error() {
                Ok(None) => self.finish_connect(connection_key),
                Ok(Some(error)) | Err(error) => self.fail_connect(connection_key, &error),
            }
        }
        let stage = self.connections.get(connection_key).map(|connection| connection.stage);
        if stage == Some(ConnectionStage::Securing) {
            self.secure(connection_key);
        }
    }

    /// Ends the TCP handshake: that of TLS begins, or the requests that wait for the connection go out.
    fn finish_connect(&mut self, connection_key: ConnectionKey) {
        let now_ns = monotonic_ns();
        let connection = &mut self.connections[connection_key];
        connection.stage = if connection.transport.is_tls() {
            ConnectionStage::Securing
        } else {
            ConnectionStage::Established
        };
        let took_ns = now_ns.saturating_sub(connection.since_ns);
        // It may have been made before, and nobody looked.
        let handshake_ns =
            (took_ns >= QUICK_HANDSHAKE_NS).then(|| handshake_ns(connection.transport.socket())).flatten();
        let unnoticed_us =
            handshake_ns.map_or(0, |handshake_ns| (took_ns.saturating_sub(handshake_ns) / 1_000) as u32);
        for xact_key in connection.xact.into_iter().chain(connection.xacts_on_streams()) {
            let xact = &mut self.xacts[xact_key];
            xact.connected_ns = Some(now_ns);
            xact.own.connected_us = xact.own.connected_us.saturating_add(unnoticed_us);
        }
        let phase = connection.xact.map_or(self.schedule.phase(), |xact_key| self.xacts[xact_key].phase);
        let (is_established, is_multiplexed) = (connection.is_established(), connection.streams.is_some());
        self.recorder.levels.connections += 1;
        self.recorder.counts(phase).connections_opened += 1;
        match (is_established, is_multiplexed) {
            (true, true) => self.flush_streams(connection_key),
            (true, false) => self.begin_requests(connection_key, now_ns),
            (false, _) => {}
        }
    }

    /// Fails the requests that a connection was opened for, as it could not be made.
    fn fail_connect(&mut self, connection_key: ConnectionKey, error: &io::Error) {
        let fail = |worker: &mut Self, xact_key, address| {
            worker.fail_to_open(xact_key, error, address, &Trigger::UNDELAYED);
        };
        self.fail_unestablished(connection_key, fail);
    }

    /// Closes a connection that was never established. `fail` is called for each request that it was opened for, with
    /// the address.
    pub fn fail_unestablished(
        &mut self,
        connection_key: ConnectionKey,
        mut fail: impl FnMut(&mut Self, XactKey, SocketAddr),
    ) {
        let connection = &self.connections[connection_key];
        let xacts: Vec<XactKey> = connection.xact.into_iter().chain(connection.xacts_on_streams()).collect();
        self.close_and_resend_pipelined(connection_key, &Trigger::UNDELAYED);
        for xact_key in xacts {
            let xact = &self.xacts[xact_key];
            let address = self.setup.route(xact.id.robot, xact.object.id.origin).address;
            fail(self, xact_key, address);
        }
    }

    /// Writes the request that a connection was made for, and those that go with it, now that it can be used.
    pub fn begin_requests(&mut self, connection_key: ConnectionKey, since_ns: u64) {
        let Some(xact_key) = self.connections[connection_key].xact else { return };
        self.write_request(connection_key, xact_key, &Trigger::UNDELAYED);
        self.note_written(xact_key, since_ns);
        self.fill_pipeline(connection_key, &Trigger::UNDELAYED);
    }

    /// Writes what is left of a request.
    fn write_unsent(&mut self, connection_key: ConnectionKey) {
        let RobotConnection { transport, unsent, xact, .. } = &mut self.connections[connection_key];
        if transport.has_unsent()
            && let Err(error) = transport.flush()
        {
            // Where there is no room, the system tells when there is.
            if error.kind() != IoErrorKind::WouldBlock {
                self.fail_to_write(connection_key, &error, &Trigger::UNDELAYED);
            }
            return;
        }
        let Some(xact_key) = xact.filter(|_| !unsent.is_empty()) else { return };
        match write(transport, unsent) {
            Ok(written) => {
                unsent.drain(..written);
                self.recorder.counts(self.xacts[xact_key].phase).wire_bytes_out += written as u64;
            }
            Err(error) => self.fail_to_write(connection_key, &error, &Trigger::UNDELAYED),
        }
    }

    /// Handles the loss of a connection before a response began. A reused one may have been closed by the target while
    /// the request was on its way: that is no error, and the request is sent once more, on a new one.
    pub fn connection_lost(
        &mut self,
        connection_key: ConnectionKey,
        xact_key: XactKey,
        reason: &dyn std::fmt::Display,
        trigger: &Trigger,
    ) {
        let RobotConnection { robot, is_fresh, .. } = self.connections[connection_key];
        if self.xacts[xact_key].has_failing_fault() {
            self.close_and_resend_pipelined(connection_key, trigger);
            self.end_with_fault(xact_key, monotonic_ns(), trigger);
        } else if is_fresh {
            self.close_and_resend_pipelined(connection_key, trigger);
            let (kind, received) = (ErrorKind::ConnectionLost, Received::NOTHING);
            self.fail(xact_key, kind, reason, received, monotonic_ns(), trigger);
        } else {
            let behind = self.detach_pipelined(connection_key);
            self.close(connection_key);
            self.recorder.counts(self.xacts[xact_key].phase).retries += 1;
            self.open(xact_key, behind, trigger);
        }
        self.fill_slots(robot, trigger);
    }

    /// Gives a connection to the next xact that can use it, or leaves it idle.
    pub fn reuse(&mut self, connection_key: ConnectionKey, trigger: &Trigger) {
        let connection = &mut self.connections[connection_key];
        connection.xact = None;
        connection.is_fresh = false;
        let (robot, destination) = (connection.robot, connection.destination);
        let Some(xact_key) = self.pop_waiting(robot) else { return self.link_idle(connection_key) };
        let xact = &mut self.xacts[xact_key];
        xact.make_ready(monotonic_ns(), trigger.released);
        if self.setup.route(xact.id.robot, xact.object.id.origin).destination == destination {
            self.send_on(connection_key, xact_key, trigger);
            self.fill_pipeline(connection_key, trigger);
        } else if self.may_use_destination(xact_key, destination) {
            self.count_substituted(xact_key);
            self.send_on(connection_key, xact_key, trigger);
        } else {
            self.close(connection_key);
            self.open(xact_key, XactQueue::default(), trigger);
        }
    }

    /// Closes a connection that cannot be used again, and lets the queue have its slot.
    pub fn discard(&mut self, connection_key: ConnectionKey, trigger: &Trigger) {
        let robot = self.connections[connection_key].robot;
        self.close(connection_key);
        self.fill_slots(robot, trigger);
    }

    /// Closes a connection. What it carried is for the caller.
    pub fn close(&mut self, connection_key: ConnectionKey) {
        let Some(connection) = self.connections.remove(connection_key, &mut self.robots) else { return };
        self.robots[connection.robot].open -= 1;
        // One that was never made did not count as open.
        if connection.stage != ConnectionStage::Connecting {
            self.recorder.levels.connections -= 1;
            self.recorder.counts(self.schedule.phase()).connections_closed += 1;
        }
    }
}

/// Makes a socket and begins to connect it, without waiting.
fn begin_connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    if let Some(source) = source {
        bind_late(&socket)?;
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(&address.into()) {
        // Without blocking, a connect goes on: the socket becomes writable when it is over.
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// Leaves the choice of the port to the connect, so that one port can serve several destinations.
fn bind_late(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the option is an int that lives as long as the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Writes as much as a byte stream takes. What is left then is left because the socket is full, so that the system
/// notifies when there is room again: TLS takes less at a time.
#[inline]
pub fn write(transport: &mut ByteStream<Socket>, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    loop {
        match transport.send(&bytes[written..]) {
            Ok(more) => written += more,
            Err(error) if matches!(error.kind(), IoErrorKind::WouldBlock | IoErrorKind::Interrupted) => {
                return Ok(written);
            }
            Err(error) => return Err(error),
        }
        if written == bytes.len() || !transport.is_tls() || transport.has_unsent() {
            return Ok(written);
        }
    }
}

/// Class of an error before a connection is made.
fn kind_of(error: &io::Error) -> ErrorKind {
    match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => ErrorKind::PortsExhausted,
        Some(libc::EMFILE | libc::ENFILE) => ErrorKind::DescriptorsExhausted,
        _ => ErrorKind::ConnectFailed,
    }
}
