//! Life of a robot's connection: opened for a request, used, idle, used again, closed; and the queue of requests for one.
//!
//! All sockets of a thread are waited for at once ([`Sockets`]): what has come on one is dealt with where it lies, and
//! a request is written at once. No connection has a task or a buffer of its own: all of a thread read into one.
//!
//! [`Sockets`]: assay_net::sockets::Sockets

use std::io::{self, ErrorKind as IoErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;

use assay_measurement::error_kind::ErrorKind;
use assay_net::byte_stream::ByteStream;
use assay_workload::model::HttpVersion;
use socket2::{Domain, Protocol, Socket, Type};

use super::connection::{ConnectionPipeline, ConnectionStage, ListLink, RobotConnection};
use super::response::ResponseReader;
use super::streams::Streams;
use super::worker::Worker;
use super::xact::NONE;
use assay_base::clock::monotonic_ns;
use assay_net::rx_timestamps::{enable_rx_timestamps, handshake_ns};
use assay_net::sockets::Readiness;

/// A connection that is made sooner needs no look at how long its handshake took.
const QUICK_HANDSHAKE_NS: u64 = 100_000;

/// Bytes that are read from one connection before it is the turn of others, and of what is due: more may come on it for as long as
/// there is time.
const TURN_BYTES: usize = 1 << 20;

/// A request that is written sooner than that was not held up.
const QUICK_WRITE_NS: u64 = 100_000;

/// Key of a connection's socket: its place, and enough of its id to tell it from another that was there before.
fn key_of(slot: u32, id: u64) -> u64 {
    // The highest bit stays free: the timer has a key, too.
    (id & 0x7fff_ffff) << 32 | u64::from(slot)
}

impl Worker {
    /// Submits a request that is ready: finds a connection, opens one, or lets it wait.
    pub fn submit(&mut self, place: u32) {
        let xact = &self.xacts[place as usize];
        let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
        let robot = &self.robots[xact.robot as usize];
        let rules = &self.setup.groups[usize::from(robot.group)];
        // Requests of a robot keep their order: behind those that wait, this one waits as well.
        if robot.waiting > 0 {
            return self.enqueue(place);
        }
        if robot.version == HttpVersion::Http2 {
            return self.submit_on_stream(place);
        }
        if let Some(connection) = self.idle_connection_to(xact.robot, destination) {
            return self.send_on(connection, place);
        }
        // Before pipelining: an idle connection has no responses that this request would have to wait for.
        if rules.substitution > 0.0
            && let Some(connection) = self.idle_connection_to_substitute(place)
        {
            self.count_substituted(place);
            return self.send_on(connection, place);
        }
        if xact.is_embedded()
            && let Some(connection) = self.pipeline_to(xact.robot, destination)
        {
            return self.pipeline(connection, place);
        }
        if robot.open < rules.open_limit {
            return self.open(place, NONE);
        }
        // All slots are taken, but one of them may be idle, to another destination.
        match robot.idle.last {
            NONE => self.enqueue(place),
            oldest => {
                self.close(oldest);
                self.open(place, NONE);
            }
        }
    }

    /// Sends the next step of an xact that is under way: on an idle connection, or on one more.
    pub fn send_again(&mut self, place: u32) {
        let xact = &self.xacts[place as usize];
        if self.robots[xact.robot as usize].version == HttpVersion::Http2 {
            return self.resubmit_on_stream(place);
        }
        let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
        match self.idle_connection_to(xact.robot, destination) {
            Some(connection) => self.send_on(connection, place),
            None => self.open(place, NONE),
        }
    }

    /// Puts an xact at the end of its robot's queue.
    pub fn enqueue(&mut self, place: u32) {
        let xact = &self.xacts[place as usize];
        let robot = &mut self.robots[xact.robot as usize];
        if robot.waiting >= self.setup.groups[usize::from(robot.group)].waiting_limit {
            let detail = format_args!("{} requests were waiting for a connection already", robot.waiting);
            let detail = detail.to_string();
            return self.fail(place, ErrorKind::QueueOverflow, &detail, (0, None), monotonic_ns());
        }
        match std::mem::replace(&mut robot.waiting_last, place) {
            NONE => robot.waiting_first = place,
            last => self.xacts[last as usize].next = place,
        }
        robot.waiting += 1;
        self.levels.waiting += 1;
    }

    /// Takes the first xact out of a robot's queue.
    pub fn pop_waiting(&mut self, robot: u32) -> Option<u32> {
        let robot = &mut self.robots[robot as usize];
        let place = robot.waiting_first;
        if place == NONE {
            return None;
        }
        let xact = &mut self.xacts[place as usize];
        robot.waiting_first = std::mem::replace(&mut xact.next, NONE);
        if robot.waiting_first == NONE {
            robot.waiting_last = NONE;
        }
        robot.waiting -= 1;
        self.levels.waiting -= 1;
        Some(place)
    }

    /// Gives free slots of a robot to its queue.
    pub fn fill_slots(&mut self, robot: u32) {
        if self.robots[robot as usize].version == HttpVersion::Http2 {
            return self.fill_streams(robot);
        }
        loop {
            let state = &self.robots[robot as usize];
            if state.waiting == 0 || state.open >= self.setup.groups[usize::from(state.group)].open_limit {
                return;
            }
            let Some(place) = self.pop_waiting(robot) else { return };
            self.make_ready(place);
            self.open(place, NONE);
        }
    }

    /// Marks an xact that waited for a connection as ready: later than it could have been by as much as Assay delayed
    /// the xact that had the connection before, but by no more than it has waited.
    pub fn make_ready(&mut self, place: u32) {
        let (freed_late_us, freed_since_ns) = (self.freed_late_us, self.freed_since_ns);
        let xact = &mut self.xacts[place as usize];
        xact.ready_ns = monotonic_ns();
        let waited_us = xact.ready_ns.saturating_sub(xact.due_ns) / 1_000;
        xact.own.before(freed_late_us.min(u32::try_from(waited_us).unwrap_or(u32::MAX)));
        let since_ns = if freed_since_ns > 0 { freed_since_ns.min(xact.due_ns) } else { xact.due_ns };
        xact.since_ns = NonZeroU64::new(since_ns);
    }

    /// Begins a connection for an xact. `behind` is the first of those that follow on it once that has its response.
    pub fn open(&mut self, place: u32, behind: u32) {
        let xact = &self.xacts[place as usize];
        let (robot, origin) = (xact.robot, xact.object.id.origin);
        let route = self.setup.route(xact.id.robot, origin);
        let (address, destination) = (route.address, route.destination);
        let source = self.setup.source_of(self.robots[robot as usize].index);
        let begun_ns = monotonic_ns();
        // Id and place are known before there is a connection: the key of its socket holds both.
        let id = self.connection_serial + 1;
        let slot = self.connections.vacant_key() as u32;
        let begun = begin_connect(address, source).and_then(|socket| {
            // A kernel that cannot leaves the robots' own delays unknown, which is no reason not to send.
            let _ = enable_rx_timestamps(&socket);
            self.sockets.add(&socket, key_of(slot, id))?;
            Ok(socket)
        });
        let serial = self.robots[robot as usize].connections;
        let begun = begun.and_then(|socket| self.on(socket, robot, serial, origin));
        let transport = match begun {
            Ok(transport) => transport,
            Err(error) => {
                // Only the request whose turn it is has failed. Those behind it go out on a connection of their
                // own.
                self.reopen_for(behind);
                return self.fail_to_open(place, &error, address);
            }
        };
        self.connection_serial = id;
        self.mark_sent(place, begun_ns);
        let state = &mut self.robots[robot as usize];
        state.connections += 1;
        state.open += 1;
        let uses_left = self.setup.uses_of(state.index, state.version, state.group, serial);
        let depth = self.setup.depth_of(state.index, state.version, state.group, serial);
        let streams = (state.version == HttpVersion::Http2).then(|| Box::new(Streams::new(begun_ns)));
        let is_multiplexed = streams.is_some();
        self.xacts[place as usize].connection = Some(serial);
        self.connections.insert(RobotConnection {
            id,
            robot,
            serial,
            destination,
            uses_left,
            xact: if is_multiplexed { NONE } else { place },
            response: ResponseReader::default(),
            is_fresh: true,
            stage: ConnectionStage::Connecting,
            since_ns: begun_ns,
            pipeline: ConnectionPipeline::new(depth, behind),
            link: ListLink::FREE,
            transport,
            unsent: Vec::new(),
            streams,
        });
        if is_multiplexed {
            return self.send_on_stream(slot, place);
        }
        self.link_busy(slot);
    }

    pub fn fail_to_open(&mut self, place: u32, error: &io::Error, address: SocketAddr) {
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
        let robot = self.xacts[place as usize].robot;
        self.fail(place, kind, &detail, (0, None), monotonic_ns());
        self.fill_slots(robot);
    }

    /// Sends an xact on a connection that was idle, or has just become so.
    fn send_on(&mut self, slot: u32, place: u32) {
        let sent_ns = monotonic_ns();
        self.mark_sent(place, sent_ns);
        let connection = &mut self.connections[slot as usize];
        connection.xact = place;
        connection.response = ResponseReader::default();
        self.xacts[place as usize].connection = Some(connection.serial);
        self.link_busy(slot);
        self.write_request(slot, place);
        self.note_written(place, sent_ns);
    }

    /// Writes the request of an xact that a connection carries, as far as the socket takes it.
    pub fn write_request(&mut self, slot: u32, place: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.uses_left = connection.uses_left.saturating_sub(1);
        let last_use = connection.uses_left == 0;
        let is_first = connection.is_fresh && connection.xact == place;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        if self.put_request(place, last_use, &mut scratch) {
            self.await_continue(slot);
        }
        let phase = self.xacts[place as usize].phase;
        self.recorder(phase).counts.on_reused_connection += u64::from(!is_first);
        self.write_bytes(slot, phase, &scratch);
        self.scratch = scratch;
    }

    /// Notes a request as written that was begun at `from_ns`: long after, if this thread lost its processor in
    /// between.
    fn note_written(&mut self, place: u32, from_ns: u64) {
        let Some(xact) = self.xacts.get_mut(place as usize) else { return };
        let held_ns = monotonic_ns().saturating_sub(from_ns);
        if held_ns >= QUICK_WRITE_NS {
            xact.own.connected_us = xact.own.connected_us.saturating_add((held_ns / 1_000) as u32);
        }
    }

    /// Writes bytes of a request of this phase, as far as the socket takes them.
    pub fn write_bytes(&mut self, slot: u32, phase: u16, bytes: &[u8]) {
        let connection = &mut self.connections[slot as usize];
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
            Ok(written) => self.recorder(phase).counts.wire_bytes_out += written as u64,
            Err(error) => self.fail_to_write(slot, &error),
        }
    }

    /// Ends the sending on a connection that takes no more bytes.
    fn fail_to_write(&mut self, slot: u32, error: &io::Error) {
        let connection = &mut self.connections[slot as usize];
        if self.xacts[connection.xact as usize].first_byte_ns == 0 {
            return self.connection_lost(slot, error);
        }
        // The target responds before it has read everything, and has stopped reading: the response counts.
        connection.unsent.clear();
        connection.uses_left = 0;
    }

    /// True while the connection of `id` is there.
    pub fn is_open(&self, slot: u32, id: u64) -> bool {
        self.connections.get(slot as usize).is_some_and(|connection| connection.id == id)
    }

    /// Does all that the socket of this key is ready for. The connection may be gone: closed by what came before.
    #[inline]
    pub fn serve_socket(&mut self, key: u64, readiness: Readiness) {
        let slot = key as u32;
        let Some(connection) = self.connections.get(slot as usize) else { return };
        let id = connection.id;
        // An event of a connection that was closed meanwhile, and whose place another has taken.
        if key_of(slot, id) != key {
            return;
        }
        if !connection.is_established() {
            self.establish(slot, readiness);
            if !self
                .connections
                .get(slot as usize)
                .is_some_and(|other| other.id == id && other.is_established())
            {
                return;
            }
        }
        match &self.connections[slot as usize].streams {
            Some(_) => self.flush_streams(slot),
            None => self.write_unsent(slot),
        }
        let mut taken = 0;
        while readiness.is_readable() && self.is_open(slot, id) {
            let RobotConnection { transport, .. } = &self.connections[slot as usize];
            if taken >= TURN_BYTES
                && !transport.has_received_close()
                && self.sockets.rearm(transport.socket(), key).is_ok()
            {
                return;
            }
            let mut bytes = std::mem::take(&mut self.buffer);
            let read = self.connections[slot as usize].transport.recv(&mut bytes);
            match &read {
                Ok(read) if read.length == 0 => self.receive_end(slot, None),
                Ok(read) => self.receive(slot, &bytes[..read.length], read.received),
                Err(error) if matches!(error.kind(), IoErrorKind::WouldBlock | IoErrorKind::Interrupted) => {}
                Err(error) => self.receive_end(slot, Some(error)),
            }
            self.buffer = bytes;
            // There is no more now, unless the end, of which nobody is told again.
            match read {
                Ok(read) if !read.more && !readiness.is_ended() => return,
                Ok(read) => taken += read.length,
                Err(error) if error.kind() == IoErrorKind::WouldBlock => return,
                Err(_) => {}
            }
        }
    }

    /// Goes on with the handshakes of a connection on which nothing can be sent yet.
    fn establish(&mut self, slot: u32, readiness: Readiness) {
        let connection = &mut self.connections[slot as usize];
        let id = connection.id;
        if connection.stage == ConnectionStage::Connecting {
            if !readiness.is_connected() {
                return;
            }
            // `SO_ERROR` has the result of a connect that did not block.
            let connected = match connection.transport.socket().take_error() {
                Ok(None) => Ok(()),
                Ok(Some(error)) | Err(error) => Err(error),
            };
            self.finish_connect(slot, connected);
        }
        if self.is_open(slot, id) && self.connections[slot as usize].stage == ConnectionStage::Securing {
            self.secure(slot);
        }
    }

    fn finish_connect(&mut self, slot: u32, established: io::Result<()>) {
        let connection = &mut self.connections[slot as usize];
        if connection.streams.is_some() {
            return self.finish_connect_of_streams(slot, established);
        }
        let place = connection.xact;
        match established {
            Ok(()) => {
                connection.stage = if connection.transport.is_tls() {
                    ConnectionStage::Securing
                } else {
                    ConnectionStage::Established
                };
                self.levels.connections += 1;
                let xact = &mut self.xacts[place as usize];
                let connected_ns = monotonic_ns();
                xact.connected_ns = connected_ns;
                let took_ns = connected_ns.saturating_sub(connection.since_ns);
                if took_ns >= QUICK_HANDSHAKE_NS
                    && let Some(handshake_ns) = handshake_ns(connection.transport.socket())
                {
                    // It was made before, and nobody looked.
                    let unnoticed_us = (took_ns.saturating_sub(handshake_ns) / 1_000) as u32;
                    xact.own.connected_us = xact.own.connected_us.saturating_add(unnoticed_us);
                }
                let phase = xact.phase;
                self.recorder(phase).counts.connections_opened += 1;
                if self.connections[slot as usize].is_established() {
                    self.begin_requests(slot, connected_ns);
                }
            }
            Err(error) => {
                let xact = &self.xacts[place as usize];
                let address = self.setup.route(xact.id.robot, xact.object.id.origin).address;
                self.close_and_resend_pipelined(slot);
                self.fail_to_open(place, &error, address);
            }
        }
    }

    /// Ends the handshake of a connection that speaks HTTP/2.
    fn finish_connect_of_streams(&mut self, slot: u32, established: io::Result<()>) {
        if let Err(error) = established {
            return self.fail_streams_to_open(slot, |worker, place, address| {
                worker.fail_to_open(place, &error, address);
            });
        }
        let connection = &mut self.connections[slot as usize];
        connection.stage = if connection.transport.is_tls() {
            ConnectionStage::Securing
        } else {
            ConnectionStage::Established
        };
        self.levels.connections += 1;
        let now_ns = monotonic_ns();
        let took_ns = now_ns.saturating_sub(connection.since_ns);
        let made_ns =
            (took_ns >= QUICK_HANDSHAKE_NS).then(|| handshake_ns(connection.transport.socket())).flatten();
        let unnoticed_us = made_ns.map_or(0, |made_ns| (took_ns.saturating_sub(made_ns) / 1_000) as u32);
        let is_established = connection.is_established();
        let phase = self.phase();
        self.recorder(phase).counts.connections_opened += 1;
        self.note_connected(slot, now_ns, unnoticed_us);
        if is_established {
            self.flush_streams(slot);
        }
    }

    /// Writes the request that a connection was made for, and those that go with it, now that it can be used.
    pub fn begin_requests(&mut self, slot: u32, since_ns: u64) {
        let place = self.connections[slot as usize].xact;
        self.write_request(slot, place);
        self.note_written(place, since_ns);
        self.fill_pipeline(slot);
    }

    /// Writes what is left of a request.
    fn write_unsent(&mut self, slot: u32) {
        let RobotConnection { transport, unsent, xact, .. } = &mut self.connections[slot as usize];
        if transport.has_unsent()
            && let Err(error) = transport.flush()
        {
            // Where there is no room, the system tells when there is.
            if error.kind() != IoErrorKind::WouldBlock && *xact != NONE {
                self.fail_to_write(slot, &error);
            }
            return;
        }
        if unsent.is_empty() {
            return;
        }
        match write(transport, unsent) {
            Ok(written) => {
                unsent.drain(..written);
                let phase = self.xacts[*xact as usize].phase;
                self.recorder(phase).counts.wire_bytes_out += written as u64;
            }
            Err(error) => self.fail_to_write(slot, &error),
        }
    }

    /// Handles the loss of a connection before a response began. A reused one may have been closed by the target while
    /// the request was on its way: that is no error, and the request is sent once more, on a new one.
    pub fn connection_lost(&mut self, slot: u32, reason: &dyn std::fmt::Display) {
        let connection = &self.connections[slot as usize];
        let (place, robot, is_fresh) = (connection.xact, connection.robot, connection.is_fresh);
        if self.xacts[place as usize].has_failing_fault() {
            self.close_and_resend_pipelined(slot);
            self.end_with_fault(place, monotonic_ns());
        } else if is_fresh {
            self.close_and_resend_pipelined(slot);
            self.fail(place, ErrorKind::ConnectionLost, reason, (0, None), monotonic_ns());
        } else {
            let behind = self.detach_pipelined(slot);
            self.close(slot);
            let phase = self.xacts[place as usize].phase;
            self.recorder(phase).counts.retries += 1;
            self.open(place, behind);
        }
        self.fill_slots(robot);
    }

    /// Gives a connection to the next xact that can use it, or leaves it idle.
    pub fn reuse(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        connection.xact = NONE;
        connection.is_fresh = false;
        let (robot, destination) = (connection.robot, connection.destination);
        let Some(place) = self.pop_waiting(robot) else { return self.link_idle(slot) };
        self.make_ready(place);
        let xact = &self.xacts[place as usize];
        if self.setup.route(xact.id.robot, xact.object.id.origin).destination == destination {
            self.send_on(slot, place);
            self.fill_pipeline(slot);
        } else if self.may_use_destination(place, destination) {
            self.count_substituted(place);
            self.send_on(slot, place);
        } else {
            self.close(slot);
            self.open(place, NONE);
        }
    }

    /// Closes a connection that cannot be used again, and lets the queue have its slot.
    pub fn discard(&mut self, slot: u32) {
        let robot = self.connections[slot as usize].robot;
        self.close(slot);
        self.fill_slots(robot);
    }

    /// Closes a connection. What it carried is for the caller.
    pub fn close(&mut self, slot: u32) {
        self.unlink(slot);
        let Some(connection) = self.connections.try_remove(slot as usize) else { return };
        self.robots[connection.robot as usize].open -= 1;
        // One that was never made did not count as open.
        if connection.stage != ConnectionStage::Connecting {
            self.levels.connections -= 1;
            let phase = self.phase();
            self.recorder(phase).counts.connections_closed += 1;
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
