//! Requests and responses of a robot: a request is put together, bytes of the response are judged.

use std::fmt::Display;
use std::io;

use assay_cache::ideal::{FOREVER, Lookup, RequestClass as IdealRequest};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::own_error::{BEGUN_LATE_US, SOONER_US};
use assay_workload::Universe;
use assay_workload::model::{HttpVersion, Method, RequestType};
use assay_workload::object::ObjectId;

use super::connection::{ConnectionKey, RobotConnection};
use super::features::ResponseKind;
use super::judge::{HeadJudge, unix_second};
use super::login::{AuthRequest, SentCredentials};
use super::memory::{RobotMemory, cnonce};
use super::request::{OutgoingRequest, PRIORITY_OF_EMBEDDED, PRIORITY_OF_PAGE, write_target};
use super::response::FinishedResponse;
use super::securing::kind_of_tls;
use super::setup::RobotSetup;
use super::special::path_of;
use super::worker::{Trigger, Worker};
use super::xact::{Xact, XactKey};
use crate::check::CheckVerdict;
use crate::tally::ideal::{IdealEvent, SentLookup};
use crate::tally::{method_name, micros};
use assay_base::clock::monotonic_ns;
use assay_net::byte_stream::tls_error;
use assay_net::rx_timestamps::RxTimestamp;
use assay_protocol::clock::RunClock;
use assay_workload::mark::RequestMark;

/// Time that robots wait for 100 (Continue): as long as common clients do.
const CONTINUE_TIMEOUT_NS: u64 = 1_000_000_000;

/// Response that servers send on an idle connection before they close it.
const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408";

impl Worker {
    /// Marks an xact as sent: its date is chosen, and it is counted. Repeating it, when it is sent once more, changes
    /// nothing.
    pub fn mark_sent(&mut self, xact_key: XactKey, now_ns: u64, trigger: &Trigger) {
        let xact = &mut self.xacts[xact_key];
        if xact.sent_ns.is_some() {
            return;
        }
        xact.sent_ns = Some(now_ns);
        self.recorder.levels.in_flight += 1;
        let phase = xact.phase;
        let ready_ns = xact.earliest_send_ns();
        let late_us = micros(ready_ns, now_ns);
        xact.own.before(u32::try_from(late_us).unwrap_or(u32::MAX));
        self.control.backlog.record_delay(ready_ns, now_ns);
        // What is sent while bytes are dealt with that were read late was held back with them.
        if late_us > u64::from(BEGUN_LATE_US) || trigger.unread_us > SOONER_US {
            xact.own.is_held_back = true;
            self.control.backlog.count_held_back(now_ns);
        }
        let (clock, caches) = (self.control.clock, self.setup.caches);
        let is_conditional = matches!(xact.request_type, RequestType::Ims200 | RequestType::Ims304);
        let mut fresh_until = FOREVER;
        if caches || is_conditional {
            let life = self.setup.universe.life(&xact.object, second(&clock, now_ns));
            fresh_until = fresh_until_ms(clock.since_start_us(now_ns), life.expires_s);
            xact.since_s = match (xact.method, xact.request_type, life.last_modified_s) {
                // The date is shown for cachable objects only.
                (Method::Get, RequestType::Ims200, Some(at_s)) if xact.object.cachable => Some(at_s - 1),
                (Method::Get, RequestType::Ims304, Some(at_s)) if xact.object.cachable => Some(at_s + 1),
                _ => None,
            };
        }
        let at_us = clock.since_start_us(now_ns);
        let event = match xact.method.has_body() {
            // It drops what is stored when its response comes: see `note_post`.
            true if caches => Some(IdealEvent::PostSent { xact: xact.id, at_us }),
            // An origin that fails on purpose sends nothing to store.
            false if caches && !xact.has_failing_fault() => {
                Some(note_sent(&self.setup.universe, xact, at_us, fresh_until))
            }
            _ => None,
        };
        self.recorder.ideal_events.extend(event);
        let recorder = self.recorder.phase(phase);
        recorder.counts.sent += 1;
        recorder.times.lateness.record(late_us);
    }

    /// Tells the ideal cache of the response to a POST: it drops what it has under that URL.
    pub fn note_post(&mut self, xact: &Xact, now_ns: u64) {
        // An unsafe method invalidates what is stored (RFC 9111, 4.4).
        if self.setup.caches {
            let at_us = self.control.clock.since_start_us(now_ns);
            let lookup = lookup(&self.setup.universe, xact, at_us, FOREVER);
            self.recorder.ideal_events.push(IdealEvent::Posted { lookup, xact: xact.id });
        }
    }

    /// Writes the request of an xact into `out`; true when its body waits for 100.
    pub fn put_request(&mut self, xact_key: XactKey, last_use: bool, out: &mut Vec<u8>) -> bool {
        let Self { xacts, robots, setup, control, network, recorder, .. } = self;
        let xact = &mut xacts[xact_key];
        let robot = &mut robots[xact.robot];
        let start_unix_s = control.clock.start_unix_s;
        let since = |since_s: i64| start_unix_s.saturating_add_signed(since_s);
        let post_body = xact.post_body.map(|id| setup.universe.object(id));
        // Without memory unless the robot has cookies or credentials to send.
        let (mut personal, mut has_cookies, mut expects) = (Vec::new(), false, false);
        if xact.features.is_some() {
            if let Some(memory) = &mut robot.memory {
                let now_s = unix_second(&control.clock, monotonic_ns());
                has_cookies = write_personal(setup, memory, xact, now_s, &mut personal);
            }
            expects = may_expect_continue(xact, robot.version);
        }
        let mark =
            RequestMark { xact: xact.id, phase: xact.phase, kind: xact.kind(), attempt: xact.attempts };
        xact.attempts = xact.attempts.saturating_add(1);
        let xact = &*xact;
        let request = OutgoingRequest {
            mark,
            method: xact.method,
            version: robot.version,
            object: &xact.object,
            route: setup.route(xact.id.robot, xact.object.id.origin),
            // In HTTP/2 the authority has a field of its own, whatever the target is.
            absolute: setup.absolute && robot.version != HttpVersion::Http2,
            since_unix_s: xact.since_s.map(since),
            reload: xact.is_reload(),
            priority: setup.groups[usize::from(robot.group)]
                .priorities
                .then(|| priority(setup, xact))
                .flatten(),
            last_use,
            features: xact.features.as_deref(),
            personal: &personal,
            expects,
            post_body: post_body.as_ref(),
        };
        request.write(&setup.universe, &mut network.dates, out);
        if has_cookies {
            recorder.counts(xact.phase).cookies_sent += 1;
        }
        expects
    }

    /// Handles bytes that came on a connection: of one response, or of several. Returns the number of responses that
    /// came to their end on its streams.
    pub fn receive(&mut self, connection_key: ConnectionKey, bytes: &[u8], received: RxTimestamp) -> u32 {
        let now_ns = monotonic_ns();
        let trigger = &Trigger::bytes(self.network.unread_us(received, now_ns));
        let came_ns = now_ns.saturating_sub(u64::from(trigger.unread_us) * 1_000);
        self.control.backlog.record_delay(came_ns, now_ns);
        if self.connections[connection_key].streams.is_some() {
            return self.receive_on_streams(connection_key, bytes, now_ns, trigger);
        }
        let mut rest = bytes;
        while let Some(used) = self.receive_part(connection_key, rest, now_ns, trigger) {
            rest = &rest[used..];
            if rest.is_empty() || !self.connections.is_open(connection_key) {
                break;
            }
        }
        0
    }

    /// Takes bytes of the response whose turn it is. How many were its own, when it is complete and more bytes can be of
    /// the one behind it.
    fn receive_part(
        &mut self,
        connection_key: ConnectionKey,
        bytes: &[u8],
        now_ns: u64,
        trigger: &Trigger,
    ) -> Option<usize> {
        let Self { connections, xacts, robots, setup, control, recorder, .. } = self;
        let RobotConnection { xact, response, robot, pipeline, .. } = &mut connections[connection_key];
        let robot = *robot;
        let Some(xact_key) = *xact else {
            if !bytes.starts_with(REQUEST_TIMEOUT) {
                self.count_unrequested(bytes.len(), robot, now_ns);
            }
            self.discard(connection_key, trigger);
            return None;
        };
        let xact = &mut xacts[xact_key];
        if xact.first_byte_ns.is_none() {
            xact.begin_response(now_ns, trigger.unread_us);
            recorder.ideal_events.extend(xact.ideal_begun(setup.shares_from, &control.clock));
        }
        let (phase, page, number) = (xact.phase, xact.own_page(), xact.id.number);
        let method = method_name(xact.method);
        let mut judge = HeadJudge {
            setup,
            clock: control.clock,
            now_ns,
            xact,
            memory: &mut robots[robot].memory,
            cookies_taken: 0,
        };
        let before = response.body_bytes();
        let fed = response.feed(bytes, method, setup.universe.pool(), |head, mark| judge.judge(head, mark));
        let cookies_taken = judge.cookies_taken;
        let is_continue = response.is_continue();
        let body_bytes = response.body_bytes();
        let is_complete = response.is_complete();
        let start = response.start().map(|start| (start.persists, start.kind.is_object()));
        let (persists, is_object) = start.unwrap_or_default();
        // Bytes behind a complete response are of the next one only if its request has been written.
        let more_may_come = is_complete && persists && !pipeline.behind.is_empty() && !pipeline.is_unwritten;
        let counts = recorder.counts(phase);
        counts.wire_bytes_in += match fed {
            Ok(used) if more_may_come => used as u64,
            _ => bytes.len() as u64,
        };
        counts.body_bytes_in += body_bytes - before;
        counts.cookies_taken += cookies_taken;
        match fed {
            Ok(used) if more_may_come => {
                self.finish(connection_key, xact_key, now_ns, trigger);
                return Some(used);
            }
            Err(error) => {
                self.fail_response(connection_key, xact_key, error.kind(), &error, now_ns, trigger);
            }
            Ok(used) if is_complete && used < bytes.len() => {
                let detail = ExtraBytes(bytes.len() - used);
                let kind = ErrorKind::ExtraBytes;
                self.fail_response(connection_key, xact_key, kind, &detail, now_ns, trigger);
            }
            Ok(_) if is_complete => self.finish(connection_key, xact_key, now_ns, trigger),
            Ok(_) if is_continue => self.on_continue(connection_key, xact_key, trigger),
            // Any other response (a challenge, a redirect) is read to its end, and has no links.
            Ok(_) if !is_object => {}
            Ok(_) if self.has_reached_abort(xact_key, body_bytes) => {
                let kind = ResponseKind::ClientAborted;
                self.abort_response(connection_key, xact_key, kind, now_ns, trigger);
            }
            Ok(_) => {
                if let Some(page) = page {
                    self.launch_embedded(page, number, body_bytes, now_ns, trigger);
                }
            }
        }
        None
    }

    /// Handles the end of a connection, which was closed by the other side, or broke.
    pub fn receive_end(&mut self, connection_key: ConnectionKey, broken: Option<&io::Error>) {
        let (now_ns, trigger) = (monotonic_ns(), &Trigger::UNDELAYED);
        let connection = &mut self.connections[connection_key];
        if connection.streams.is_some() {
            return self.end_streams(connection_key, broken, now_ns);
        }
        let Some(xact_key) = connection.xact else { return self.discard(connection_key, trigger) };
        if self.xacts[xact_key].first_byte_ns.is_none() {
            let reason: &dyn Display = match broken {
                Some(error) => error,
                None => &"the target closed the connection without a response",
            };
            return self.connection_lost(connection_key, xact_key, reason, trigger);
        }
        let response = &mut connection.response;
        let cut_off = broken.and_then(tls_error).filter(|_| !response.is_complete());
        match (response.end(), cut_off) {
            (Ok(()), Some(error)) => {
                let kind = kind_of_tls(error);
                self.fail_response(connection_key, xact_key, kind, error, now_ns, trigger);
            }
            (Ok(()), None) => self.finish(connection_key, xact_key, now_ns, trigger),
            (Err(_), _) if response.start().is_some_and(|start| start.origin_aborts) => {
                let kind = ResponseKind::OriginAborted;
                self.abort_response(connection_key, xact_key, kind, now_ns, trigger);
            }
            (Err(error), _) => {
                self.fail_response(connection_key, xact_key, error.kind(), &error, now_ns, trigger);
            }
        }
    }

    /// True once the robot has as many bytes as it wants before it aborts the response on purpose.
    pub fn has_reached_abort(&self, xact_key: XactKey, body_bytes: u64) -> bool {
        let features = self.xacts.get(xact_key).and_then(|xact| xact.features.as_ref());
        features.and_then(|features| features.abort_after).is_some_and(|enough| body_bytes > enough)
    }

    /// Aborts a response, on purpose: its connection is closed, and nothing is wrong.
    fn abort_response(
        &mut self,
        connection_key: ConnectionKey,
        xact_key: XactKey,
        kind: ResponseKind,
        now_ns: u64,
        trigger: &Trigger,
    ) {
        let RobotConnection { robot, response, .. } = &self.connections[connection_key];
        let robot = *robot;
        let Some(response) = response.finished(now_ns) else { return };
        let released = self.xacts[xact_key].release(trigger.unread_us);
        self.close_and_resend_pipelined(connection_key, trigger);
        self.end_early(xact_key, &FinishedResponse { kind, ..response }, trigger);
        self.robots[robot].delayed_behind_us = released.delayed_us;
        self.fill_slots(robot, &trigger.releasing(Some(released)));
    }

    /// Ends an xact whose connection was lost without a response, as it was to be: the target has passed on an injected
    /// fault.
    pub fn end_with_fault(&mut self, xact_key: XactKey, now_ns: u64, trigger: &Trigger) {
        let verdict = CheckVerdict::NOT_OF_OBJECT;
        let kind = ResponseKind::Fault;
        let response = FinishedResponse { status: None, verdict, kind, body_bytes: 0, ended_ns: now_ns };
        self.end_early(xact_key, &response, trigger);
    }

    /// Ends an xact that did not get what it requested, and is no error either. Nothing more of its page is launched.
    pub fn end_early(&mut self, xact_key: XactKey, response: &FinishedResponse, trigger: &Trigger) {
        if let Some(page) = self.xacts[xact_key].own_page() {
            self.give_up_children(page);
        }
        self.complete(xact_key, response, trigger);
    }

    /// Ends the response of a connection's xact, complete and right.
    fn finish(&mut self, connection_key: ConnectionKey, xact_key: XactKey, now_ns: u64, trigger: &Trigger) {
        let RobotConnection { robot, response, .. } = &self.connections[connection_key];
        let robot = *robot;
        let may_persist = response.start().is_some_and(|start| start.persists);
        let Some(response) = response.finished(now_ns) else { return };
        let xact = &mut self.xacts[xact_key];
        // The response came before the body was sent: the other side may wait for that.
        let persists = may_persist && !xact.cancel_continue_wait();
        // Whoever comes next should find the connection free: it is let go before anything follows.
        let released = xact.release(trigger.unread_us);
        self.robots[robot].delayed_behind_us = released.delayed_us;
        self.release_connection(connection_key, persists, &trigger.releasing(Some(released)));
        self.finish_response(xact_key, &response, trigger);
    }

    /// Acts on a response that is complete and right.
    pub fn finish_response(&mut self, xact_key: XactKey, response: &FinishedResponse, trigger: &Trigger) {
        let (kind, now_ns) = (response.kind, response.ended_ns);
        match kind {
            ResponseKind::Redirected(older) => return self.follow_redirect(xact_key, older, now_ns, trigger),
            ResponseKind::Challenged | ResponseKind::ExpectationFailed => {
                return self.retry(xact_key, kind, trigger);
            }
            _ => {}
        }
        if !kind.is_object() {
            return self.end_early(xact_key, response, trigger);
        }
        let xact = &self.xacts[xact_key];
        if let Some(page) = xact.own_page() {
            self.launch_embedded(page, xact.id.number, u64::MAX, now_ns, trigger);
        }
        self.complete(xact_key, response, trigger);
    }

    /// Follows a redirection: the same xact requests the object at another URL.
    fn follow_redirect(&mut self, xact_key: XactKey, older: ObjectId, now_ns: u64, trigger: &Trigger) {
        let Self { xacts, setup, control, recorder, .. } = self;
        let (universe, clock) = (&setup.universe, control.clock);
        let xact = &mut xacts[xact_key];
        recorder.ideal_events.extend(xact.ideal_failed(&clock, now_ns));
        xact.object = universe.object(older);
        if xact.sent_lookup.is_some() {
            let life = universe.life(&xact.object, second(&clock, now_ns));
            let at_us = clock.since_start_us(now_ns);
            let fresh_until_ms = fresh_until_ms(at_us, life.expires_s);
            recorder.ideal_events.push(note_sent(universe, xact, at_us, fresh_until_ms));
        }
        xact.begin_next_step(trigger.unread_us);
        if let Some(features) = &mut xact.features {
            features.steps += 1;
        }
        self.send_again(xact_key, trigger);
    }

    /// Sends the request of an xact again, as the response demands: with credentials, or without `Expect`.
    fn retry(&mut self, xact_key: XactKey, kind: ResponseKind, trigger: &Trigger) {
        let xact = &mut self.xacts[xact_key];
        xact.begin_next_step(trigger.unread_us);
        if let Some(features) = xact.features.as_mut().filter(|_| kind == ResponseKind::ExpectationFailed) {
            features.expects = false;
            self.recorder.counts(xact.phase).uninvited += 1;
        }
        self.send_again(xact_key, trigger);
    }

    /// Releases a connection from an xact: it goes on to the next, if there is one.
    fn release_connection(&mut self, connection_key: ConnectionKey, persists: bool, trigger: &Trigger) {
        let connection = &self.connections[connection_key];
        let can_write = connection.uses_left > 0 && connection.is_written();
        let pipeline = &connection.pipeline;
        match (pipeline.behind.is_empty(), persists) {
            (true, true) if can_write => self.reuse(connection_key, trigger),
            (true, _) => self.discard(connection_key, trigger),
            (false, true) if can_write || !pipeline.is_unwritten => self.advance(connection_key, trigger),
            (false, _) => self.close_and_resend_pipelined(connection_key, trigger),
        }
    }

    /// Fails an xact whose response is wrong: its connection cannot be trusted any more.
    fn fail_response(
        &mut self,
        connection_key: ConnectionKey,
        xact_key: XactKey,
        kind: ErrorKind,
        detail: &dyn Display,
        now_ns: u64,
        trigger: &Trigger,
    ) {
        let RobotConnection { robot, response, .. } = &self.connections[connection_key];
        let (robot, received) = (*robot, response.received());
        self.close_and_resend_pipelined(connection_key, trigger);
        self.fail(xact_key, kind, detail, received, now_ns, trigger);
        self.fill_slots(robot, trigger);
    }
}

/// Bytes after the end of a response, as text.
struct ExtraBytes(usize);

impl Display for ExtraBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes after the end of the response", self.0)
    }
}

/// Event of the sending of an xact, which the xact keeps as well.
fn note_sent(universe: &Universe, xact: &mut Xact, at_us: u64, fresh_until_ms: u32) -> IdealEvent {
    let lookup = lookup(universe, xact, at_us, fresh_until_ms);
    xact.sent_lookup = Some(SentLookup { key: lookup.key, sent_us: at_us });
    IdealEvent::Sent { lookup, xact: xact.id }
}

/// Lookup of an xact in the ideal cache.
fn lookup(universe: &Universe, xact: &Xact, at_us: u64, fresh_until_ms: u32) -> Lookup {
    let object = &xact.object;
    let key = universe.response_key(xact.id, object);
    Lookup {
        key: key.unwrap_or(object.key),
        object: object.key,
        request: ideal_request(universe, xact),
        cachable: object.cachable && key.is_some(),
        at_us,
        fresh_until_ms,
    }
}

/// End of the freshness, in milliseconds of the run, of a response that is made at `at_us` with `Expires: expires_s`.
///
/// Dates are whole seconds: what is made at 10.9 is dated 10. A lifetime is the difference of two dates (RFC 9111,
/// 4.2.1), and an ideal cache grants all of it from the instant at which the response was made.
fn fresh_until_ms(at_us: u64, expires_s: Option<i64>) -> u32 {
    let Some(expires_s) = expires_s else { return FOREVER };
    let lifetime_s = expires_s.saturating_sub((at_us / 1_000_000) as i64).max(0) as u64;
    u32::try_from((at_us / 1_000).saturating_add(lifetime_s.saturating_mul(1_000)))
        .unwrap_or(FOREVER - 1)
        .min(FOREVER - 1)
}

/// Kind of a request, as caches tell requests apart.
fn ideal_request(universe: &Universe, xact: &Xact) -> IdealRequest {
    match (xact.method, xact.request_type) {
        (Method::Post | Method::Put, _) => IdealRequest::Post,
        (Method::Head, _) => IdealRequest::Head,
        (Method::Get, RequestType::Reload) => IdealRequest::Reload,
        // Where the origin sends no parts, it sends the whole object.
        (Method::Get, _) if xact.is_for_parts() && universe.sends_parts(xact.object.id.content) => {
            IdealRequest::Range
        }
        (Method::Get, RequestType::Ims200) if xact.since_s.is_some() => IdealRequest::ConditionalChanged,
        (Method::Get, RequestType::Ims304) if xact.since_s.is_some() => IdealRequest::ConditionalUnchanged,
        (Method::Get, _) => IdealRequest::Get,
    }
}

fn second(clock: &RunClock, at_ns: u64) -> i64 {
    (clock.since_start_us(at_ns) / 1_000_000) as i64
}

/// Appends the lines that a request gets from what its robot remembers; true when there are cookies among them.
fn write_personal(
    setup: &RobotSetup,
    memory: &mut RobotMemory,
    xact: &mut Xact,
    now_s: u64,
    out: &mut Vec<u8>,
) -> bool {
    let (origin, absolute) = (xact.object.id.origin, setup.absolute);
    let Some(features) = &mut xact.features else { return false };
    let mut uri = Vec::new();
    write_target(
        &setup.universe,
        &xact.object,
        absolute.then(|| setup.route(xact.id.robot, origin)),
        &mut uri,
    );
    features.sent_credentials = SentCredentials::default();
    if memory.must_send_credentials() {
        let cnonce = cnonce(xact.id, features.challenges);
        let auth_request = AuthRequest { origin, method: method_name(xact.method), uri: &uri, cnonce };
        features.sent_credentials = memory.write_login(&auth_request, out);
    }
    memory.write_cookies(origin, path_of(&uri), now_s, out)
}

/// `Priority` of a request: of pages, and of embedded objects; none for all else.
fn priority(setup: &RobotSetup, xact: &Xact) -> Option<&'static [u8]> {
    let content = &setup.universe.workload().contents[usize::from(xact.object.id.content)];
    if content.embedded.is_some() {
        return Some(PRIORITY_OF_PAGE);
    }
    xact.page.map(|_| PRIORITY_OF_EMBEDDED)
}

/// Whether the request sends `Expect: 100-continue`, which HTTP/1.0 does not have.
fn may_expect_continue(xact: &mut Xact, version: HttpVersion) -> bool {
    let Some(features) = &mut xact.features else { return false };
    let requests = features.expects && version == HttpVersion::Http11;
    features.continue_until_ns = requests.then(|| monotonic_ns().saturating_add(CONTINUE_TIMEOUT_NS));
    requests
}

#[cfg(test)]
mod tests {
    use assay_workload::XactId;
    use assay_workload::model::{Coding, Extent, RangeSpec, RobotGroup, Weighted};
    use assay_workload::object::Space;

    use super::*;
    use crate::origin::testing::workload;
    use crate::robot::special::request_features;
    use crate::robot::worker::RobotKey;

    #[test]
    fn robots_that_accept_different_codings_look_up_different_responses_for_one_object() {
        let mut workload = workload();
        workload.contents[0].body.codings = vec![Coding::Gzip, Coding::Identity];
        workload.robots[0].accepts = vec![Coding::Gzip];
        workload.robots.push(RobotGroup { accepts: vec![Coding::Identity], ..workload.robots[0].clone() });
        let second = workload.robots[0].count();
        let universe = Universe::new(workload.into(), 7, 1, Default::default()).expect("a universe");
        let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial: 1 };
        let [first, other] = [0, second].map(|robot| {
            let mut xact =
                Xact::new(XactId { robot, number: 1, place: 0 }, RobotKey::FIRST, 0, universe.object(id), 0);
            let IdealEvent::Sent { lookup, .. } = note_sent(&universe, &mut xact, 10, FOREVER) else {
                panic!("it is sent");
            };
            assert_eq!(xact.sent_lookup, Some(SentLookup { key: lookup.key, sent_us: 10 }));
            lookup
        });
        assert_eq!((first.object, first.cachable), (other.object, other.cachable));
        assert_ne!(first.key, other.key);
    }

    #[test]
    fn a_cache_may_keep_what_comes_where_the_origin_sends_no_parts() {
        for (codings, request) in [
            (vec![], IdealRequest::Range),
            (vec![Coding::Gzip, Coding::Identity], IdealRequest::Range),
            (vec![Coding::Gzip], IdealRequest::Get),
        ] {
            let mut workload = workload();
            workload.contents[0].body.codings = codings;
            workload.robots[0].accepts = vec![Coding::Gzip];
            workload.robots[0].request_types = Weighted::one(RequestType::Range);
            workload.robots[0].ranges = Weighted::one(RangeSpec::Suffix(Extent::Bytes(5)));
            let universe = Universe::new(workload.into(), 7, 1, Default::default()).expect("a universe");
            let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial: 1 };
            let id_of_xact = XactId { robot: 0, number: 1, place: 0 };
            let mut xact = Xact::new(id_of_xact, RobotKey::FIRST, 0, universe.object(id), 0);
            xact.request_type = RequestType::Range;
            xact.features = Some(request_features(&universe, &xact, 0));
            assert_eq!(ideal_request(&universe, &xact), request);
        }
    }

    #[test]
    fn a_lifetime_counts_from_the_instant_at_which_the_response_was_made() {
        assert_eq!(fresh_until_ms(10_900_000, Some(12)), 12_900);
        assert_eq!(fresh_until_ms(10_900_000, None), FOREVER);
        assert_eq!(fresh_until_ms(10_900_000, Some(3)), 10_900, "stale when it is made");
        assert_eq!(fresh_until_ms(10_900_000, Some(i64::MAX)), FOREVER - 1);
    }
}
