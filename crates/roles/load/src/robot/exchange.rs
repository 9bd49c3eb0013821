//! Requests and responses of a robot: a request is put together, bytes of the response are judged.

use std::io;

use assay_cache::ideal::{FOREVER, Lookup, RequestClass as IdealRequest};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::own_error::{BEGUN_LATE_US, SOONER_US};
use assay_workload::Universe;
use assay_workload::model::{HttpVersion, Method, RequestType};
use assay_workload::object::ObjectId;

use super::connection::RobotConnection;
use super::features::{ContinueWait, ResponseKind};
use super::judge::{HeadJudge, unix_second};
use super::login::{AuthRequest, SentCredentials};
use super::memory::{RobotMemory, cnonce};
use super::request::{OutgoingRequest, PRIORITY_OF_EMBEDDED, PRIORITY_OF_PAGE, write_target};
use super::response::ResponseStart;
use super::securing::kind_of_tls;
use super::setup::RobotSetup;
use super::special::path_of;
use super::worker::Worker;
use super::xact::{NONE, Xact};
use crate::check::CheckVerdict;
use crate::tally::ideal::{IdealEvent, SentLookup};
use crate::tally::{method_name, micros};
use assay_base::clock::monotonic_ns;
use assay_net::byte_stream::tls_error;
use assay_net::rx_timestamps::RxTimestamp;
use assay_protocol::clock::RunClock;
use assay_workload::mark::RequestMark;

/// Response that servers send on an idle connection before they close it.
const REQUEST_TIMEOUT: &[u8] = b"HTTP/1.1 408";

impl Worker {
    /// Marks an xact as sent: its date is chosen, and it is counted. Repeating it, when it is sent once more, changes
    /// nothing.
    pub fn mark_sent(&mut self, place: u32, now_ns: u64) {
        let xact = &mut self.xacts[place as usize];
        if xact.sent_ns != 0 {
            return;
        }
        xact.sent_ns = now_ns;
        self.levels.in_flight += 1;
        let phase = xact.phase;
        let ready_ns = xact.earliest_send_ns();
        let late_us = micros(ready_ns, now_ns);
        xact.own.before(u32::try_from(late_us).unwrap_or(u32::MAX));
        self.control.backlog.record_delay(ready_ns, now_ns);
        // What is sent while bytes are dealt with that were read late was held back with them.
        if late_us > u64::from(BEGUN_LATE_US) || self.unread_us > SOONER_US {
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
        // A POST drops what is stored when its response comes, not when it is sent: see `note_post`.
        let event = (caches && xact.may_fill())
            .then(|| note_sent(&self.setup.universe, xact, clock.since_start_us(now_ns), fresh_until));
        self.ideal_events.extend(event);
        let recorder = self.recorder(phase);
        recorder.counts.sent += 1;
        recorder.lateness.record(late_us);
    }

    /// Tells the ideal cache of the response to a POST: it drops what it has under that URL.
    pub fn note_post(&mut self, xact: &Xact, now_ns: u64) {
        // An unsafe method invalidates what is stored (RFC 9111, 4.4).
        if self.setup.caches {
            let at_us = self.control.clock.since_start_us(now_ns);
            let lookup = lookup(&self.setup.universe, xact, at_us, FOREVER);
            self.ideal_events.push(IdealEvent::Sent { lookup, basic: None });
        }
    }

    /// Writes the request of an xact into `out`; true when its body waits for 100.
    pub fn put_request(&mut self, place: u32, last_use: bool, out: &mut Vec<u8>) -> bool {
        let Self { xacts, robots, setup, control, dates, .. } = self;
        let xact = &mut xacts[place as usize];
        let robot = &mut robots[xact.robot as usize];
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
        let xact = &*xact;
        let request = OutgoingRequest {
            mark: RequestMark { xact: xact.id, phase: xact.phase, kind: xact.kind() },
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
        request.write(&setup.universe, dates, out);
        if has_cookies {
            let phase = xact.phase;
            self.recorder(phase).counts.cookies_sent += 1;
        }
        expects
    }

    /// Handles bytes that came on a connection: of one response, or of several.
    pub fn receive(&mut self, slot: u32, bytes: &[u8], received: RxTimestamp) {
        let now_ns = monotonic_ns();
        self.unread_us = self.arrivals.unread_us(received, now_ns);
        self.control.backlog.record_delay(now_ns.saturating_sub(u64::from(self.unread_us) * 1_000), now_ns);
        self.receive_all(slot, bytes, now_ns);
        self.unread_us = 0;
    }

    fn receive_all(&mut self, slot: u32, bytes: &[u8], now_ns: u64) {
        let connection = &self.connections[slot as usize];
        if connection.streams.is_some() {
            return self.receive_on_streams(slot, bytes, now_ns);
        }
        let id = connection.id;
        let mut rest = bytes;
        while let Some(used) = self.receive_part(slot, rest, now_ns) {
            rest = &rest[used..];
            if rest.is_empty() || !self.is_open(slot, id) {
                return;
            }
        }
    }

    /// Takes bytes of the response whose turn it is. How many were its own, when it is complete and more bytes can be of
    /// the one behind it.
    fn receive_part(&mut self, slot: u32, bytes: &[u8], now_ns: u64) -> Option<usize> {
        let Self { connections, xacts, robots, setup, control, ideal_events, .. } = self;
        let RobotConnection { xact: place, response, robot, .. } = &mut connections[slot as usize];
        let (place, robot, unread_us) = (*place, *robot, self.unread_us);
        if place == NONE {
            if !bytes.starts_with(REQUEST_TIMEOUT) {
                self.count_unrequested(bytes.len(), robot, now_ns);
            }
            self.discard(slot);
            return None;
        }
        let xact = &mut xacts[place as usize];
        if xact.first_byte_ns == 0 {
            xact.begin_response(now_ns, unread_us);
            ideal_events.extend(xact.ideal_begun(setup.shares_from, &control.clock));
        }
        let (phase, page, number) =
            (xact.phase, if xact.is_page() { xact.page } else { NONE }, xact.id.number);
        let method = method_name(xact.method);
        let mut judge = HeadJudge {
            setup,
            clock: control.clock,
            now_ns,
            xact,
            memory: &mut robots[robot as usize].memory,
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
        let pipeline = connections[slot as usize].pipeline;
        // Bytes behind a complete response are of the next one only if its request has been written.
        let more_may_come = is_complete && persists && !pipeline.is_empty() && !pipeline.is_unwritten;
        let counts = &mut self.recorder(phase).counts;
        counts.wire_bytes_in += match fed {
            Ok(used) if more_may_come => used as u64,
            _ => bytes.len() as u64,
        };
        counts.body_bytes_in += body_bytes - before;
        counts.cookies_taken += cookies_taken;
        match fed {
            Ok(used) if more_may_come => {
                self.finish(slot, now_ns);
                return Some(used);
            }
            Err(error) => self.fail_response(slot, error.kind(), &error, now_ns),
            Ok(used) if is_complete && used < bytes.len() => {
                let detail = ExtraBytes(bytes.len() - used);
                self.fail_response(slot, ErrorKind::ExtraBytes, &detail, now_ns);
            }
            Ok(_) if is_complete => self.finish(slot, now_ns),
            Ok(_) if is_continue => self.on_continue(slot),
            // Any other response (a challenge, a redirect) is read to its end, and has no links.
            Ok(_) if !is_object => {}
            Ok(_) if self.has_reached_abort(place, body_bytes) => {
                self.abort_response(slot, ResponseKind::ClientAborted, now_ns)
            }
            Ok(_) if page != NONE => self.launch_embedded(page, number, body_bytes, now_ns),
            Ok(_) => {}
        }
        None
    }

    /// Handles the end of a connection, which was closed by the other side, or broke.
    pub fn receive_end(&mut self, slot: u32, broken: Option<&io::Error>) {
        let now_ns = monotonic_ns();
        let connection = &mut self.connections[slot as usize];
        if connection.streams.is_some() {
            return self.end_streams(slot, broken, now_ns);
        }
        let place = connection.xact;
        if place == NONE {
            return self.discard(slot);
        }
        if self.xacts[place as usize].first_byte_ns == 0 {
            return match broken {
                Some(error) => self.connection_lost(slot, error),
                None => self.connection_lost(slot, &"the target closed the connection without a response"),
            };
        }
        let cut_off = broken.and_then(tls_error).filter(|_| !connection.response.is_complete());
        match (connection.response.end(), cut_off) {
            (Ok(()), Some(error)) => self.fail_response(slot, kind_of_tls(error), error, now_ns),
            (Ok(()), None) => self.finish(slot, now_ns),
            (Err(_), _) if connection.response.start().is_some_and(|start| start.origin_aborts) => {
                self.abort_response(slot, ResponseKind::OriginAborted, now_ns);
            }
            (Err(error), _) => self.fail_response(slot, error.kind(), &error, now_ns),
        }
    }

    /// True once the robot has as many bytes as it wants before it aborts the response on purpose.
    pub fn has_reached_abort(&self, place: u32, body_bytes: u64) -> bool {
        let features = self.xacts.get(place as usize).and_then(|xact| xact.features.as_ref());
        features.and_then(|features| features.abort_after).is_some_and(|enough| body_bytes > enough)
    }

    /// Aborts a response, on purpose: its connection is closed, and nothing is wrong.
    fn abort_response(&mut self, slot: u32, kind: ResponseKind, now_ns: u64) {
        let connection = &self.connections[slot as usize];
        let (place, robot, body_bytes) =
            (connection.xact, connection.robot, connection.response.body_bytes());
        let Some(start) = connection.response.start().cloned() else { return };
        let delayed_us = self.delayed_us(place);
        let exposed_since_ns = self.xacts[place as usize].exposed_since_ns();
        self.close_and_resend_pipelined(slot);
        self.end_early(place, &ResponseStart { kind, ..start }, body_bytes, now_ns);
        self.robots[robot as usize].delayed_behind_us = delayed_us;
        (self.freed_late_us, self.freed_since_ns) = (delayed_us, exposed_since_ns);
        self.fill_slots(robot);
        (self.freed_late_us, self.freed_since_ns) = (0, 0);
    }

    /// Ends an xact whose connection was lost without a response, as it was to be: the target has passed on an injected
    /// fault.
    pub fn end_with_fault(&mut self, place: u32, now_ns: u64) {
        let verdict = CheckVerdict { outcome: None, is_unsure: false, version: 0, body_bytes: None };
        let start = ResponseStart {
            status: 0,
            verdict,
            kind: ResponseKind::Fault,
            origin_aborts: false,
            persists: false,
        };
        self.end_early(place, &start, 0, now_ns);
    }

    /// Ends an xact that did not get what it requested, and is no error either. Nothing more of its page is launched.
    pub fn end_early(&mut self, place: u32, start: &ResponseStart, body_bytes: u64, now_ns: u64) {
        let xact = &self.xacts[place as usize];
        if xact.is_page() {
            self.give_up_children(xact.page);
        }
        self.complete(place, start, body_bytes, now_ns);
    }

    /// Ends the response of a connection's xact, complete and right.
    fn finish(&mut self, slot: u32, now_ns: u64) {
        let connection = &self.connections[slot as usize];
        let (place, body_bytes) = (connection.xact, connection.response.body_bytes());
        let robot = connection.robot;
        let Some(start) = connection.response.start().cloned() else { return };
        // The response came before the body was sent: the other side may wait for that.
        let persists = start.persists && !self.cancel_continue_wait(slot);
        // Whoever comes next should find the connection free: it is let go before anything follows.
        self.freed_late_us = self.delayed_us(place);
        self.freed_since_ns = self.xacts[place as usize].exposed_since_ns();
        self.robots[robot as usize].delayed_behind_us = self.freed_late_us;
        self.release_connection(slot, persists);
        (self.freed_late_us, self.freed_since_ns) = (0, 0);
        self.finish_response(place, &start, body_bytes, now_ns);
    }

    /// Acts on a response that is complete and right.
    pub fn finish_response(&mut self, place: u32, start: &ResponseStart, body_bytes: u64, now_ns: u64) {
        match start.kind {
            ResponseKind::Redirected(older) => return self.follow_redirect(place, older, now_ns),
            ResponseKind::Challenged | ResponseKind::ExpectationFailed => {
                return self.retry(place, start.kind);
            }
            _ => {}
        }
        let xact = &self.xacts[place as usize];
        if xact.is_page() && start.kind.is_object() {
            self.launch_embedded(xact.page, xact.id.number, u64::MAX, now_ns);
        } else if !start.kind.is_object() {
            return self.end_early(place, start, body_bytes, now_ns);
        }
        self.complete(place, start, body_bytes, now_ns);
    }

    /// Assay's delay of an xact whose response is complete.
    pub fn delayed_us(&self, place: u32) -> u32 {
        self.xacts[place as usize].own.until(self.unread_us)
    }

    /// Follows a redirection: the same xact requests the object at another URL.
    fn follow_redirect(&mut self, place: u32, older: ObjectId, now_ns: u64) {
        let object = self.setup.universe.object(older);
        let (clock, unread_us) = (self.control.clock, self.unread_us);
        let xact = &mut self.xacts[place as usize];
        let elsewhere = xact.ideal_failed(&clock, now_ns);
        xact.object = object;
        let life = self.setup.universe.life(&xact.object, second(&clock, now_ns));
        let again = xact.sent_lookup.is_some().then(|| {
            let at_us = clock.since_start_us(now_ns);
            note_sent(&self.setup.universe, xact, at_us, fresh_until_ms(at_us, life.expires_s))
        });
        self.ideal_events.extend(elsewhere);
        self.ideal_events.extend(again);
        let xact = &mut self.xacts[place as usize];
        xact.begin_next_step(unread_us);
        if let Some(features) = &mut xact.features {
            features.steps += 1;
        }
        self.send_again(place);
    }

    /// Sends the request of an xact again, as the response demands: with credentials, or without `Expect`.
    fn retry(&mut self, place: u32, kind: ResponseKind) {
        let unread_us = self.unread_us;
        let xact = &mut self.xacts[place as usize];
        xact.begin_next_step(unread_us);
        let phase = xact.phase;
        if let Some(features) = xact.features.as_mut().filter(|_| kind == ResponseKind::ExpectationFailed) {
            features.expects = false;
            self.recorder(phase).counts.uninvited += 1;
        }
        self.send_again(place);
    }

    /// Releases a connection from an xact: it goes on to the next, if there is one.
    fn release_connection(&mut self, slot: u32, persists: bool) {
        let connection = &self.connections[slot as usize];
        let can_write = connection.uses_left > 0 && connection.is_written();
        let pipeline = connection.pipeline;
        match (pipeline.is_empty(), persists) {
            (true, true) if can_write => self.reuse(slot),
            (true, _) => self.discard(slot),
            (false, true) if can_write || !pipeline.is_unwritten => self.advance(slot),
            (false, _) => self.close_and_resend_pipelined(slot),
        }
    }

    /// Fails an xact whose response is wrong: its connection cannot be trusted any more.
    fn fail_response(&mut self, slot: u32, kind: ErrorKind, detail: &dyn std::fmt::Display, now_ns: u64) {
        let connection = &self.connections[slot as usize];
        let (place, robot, body_bytes) =
            (connection.xact, connection.robot, connection.response.body_bytes());
        let status = connection.response.start().map(|start| start.status);
        self.close_and_resend_pipelined(slot);
        self.fail(place, kind, detail, (body_bytes, status), now_ns);
        self.fill_slots(robot);
    }
}

/// Bytes after the end of a response, as text.
struct ExtraBytes(usize);

impl std::fmt::Display for ExtraBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes after the end of the response", self.0)
    }
}

/// Event of the sending of an xact, which the xact keeps as well.
fn note_sent(universe: &Universe, xact: &mut Xact, at_us: u64, fresh_until_ms: u32) -> IdealEvent {
    let lookup = lookup(universe, xact, at_us, fresh_until_ms);
    xact.sent_lookup = Some(SentLookup { key: lookup.key, sent_us: at_us });
    IdealEvent::Sent { lookup, basic: xact.basic.then_some(xact.id) }
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
    (xact.page != NONE).then_some(PRIORITY_OF_EMBEDDED)
}

/// Whether the request sends `Expect: 100-continue`, which HTTP/1.0 does not have.
fn may_expect_continue(xact: &mut Xact, version: HttpVersion) -> bool {
    let Some(features) = &mut xact.features else { return false };
    let requests = features.expects && version == HttpVersion::Http11;
    features.continue_wait = if requests { ContinueWait::begin(monotonic_ns()) } else { ContinueWait::None };
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
            let mut xact = Xact::new(XactId { robot, number: 1, place: 0 }, robot, 0, universe.object(id), 0);
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
            let mut xact = Xact::new(id_of_xact, 0, 0, universe.object(id), 0);
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
