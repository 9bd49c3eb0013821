//! The response to a request, and how it is counted.

use assay_measurement::own_error::DISTURBED_US;
use assay_workload::Object;
use assay_workload::body::{Body, Pool, STAMP_BYTES};
use assay_workload::model::{HttpVersion, OriginIndex};

use super::config::OriginConfig;
use super::fields::SpecialHead;
use super::head::{ConnectionField, Dates, ObjectHead, write_health, write_plain};
use super::request::{ClientPersistence, OriginRequest, RequestTarget, SpecialRequest};
use super::response_body::{OutgoingResponse, ResponseBody};
use super::special::DecisionContext;
use super::tally::OriginTally;
use super::worker_state::WorkerState;
use assay_base::clock::monotonic_ns;
use assay_workload::mark::{RequestKind, ResponseMark};

/// Bodies up to this size are copied behind their heads.
const COPIED_BYTES: u64 = 8 * 1024;
/// Shortest time, in microseconds, for which an origin states that it had a request: waits of a proxy in that time
/// delayed nothing.
const HELD_FROM_US: u64 = 1_000;
/// Time from the making of a response to its writing, in nanoseconds, from which it counts as written late: its head
/// has stated Assay's delay before. What is written at once takes a tenth of it.
const WRITTEN_LATE_NS: u64 = 500_000;

/// A response whose head is written, before or while it goes out.
#[derive(Debug)]
pub struct WrittenResponse {
    /// None: the request was no request.
    request: Option<OriginRequest>,
    payload: ResponseBody,
    not_modified: bool,
    /// Bytes of the body after which the response is aborted, on purpose.
    abort_after: Option<u64>,
    /// The connection ends after it.
    pub closes: bool,
}

/// Object of a request, with its condition.
#[derive(Clone, Copy)]
struct RequestedObject<'a> {
    object: &'a Object,
    /// `If-Modified-Since`, in Unix seconds.
    since_s: Option<u64>,
}

/// First fields of a head.
#[derive(Clone, Copy)]
struct HeadStart {
    version: HttpVersion,
    connection: ConnectionField,
}

/// A response that the socket did not take at once, or must not be given at once.
#[derive(Debug)]
pub struct UnsentResponse {
    pub response: WrittenResponse,
    /// Head, kept apart: others use the worker's buffer meanwhile.
    pub head: Box<[u8]>,
    /// Bytes written so far.
    pub written: u64,
}

impl WrittenResponse {
    /// Writes the head of the response made at `made_ns`. `may_persist`: the connection has uses left.
    pub fn write(
        worker: &WorkerState,
        request: OriginRequest,
        made_ns: u64,
        may_persist: bool,
        out: &mut Vec<u8>,
    ) -> Self {
        let config = worker.shared.configs.get(request.origin);
        let version = config.map_or(HttpVersion::Http11, |config| config.version);
        let persists = may_persist && would_persist(version, request.client);
        let connection = match (persists, version, request.client) {
            (_, HttpVersion::Http2, _) | (false, HttpVersion::Http10, _) => ConnectionField::Unsaid,
            (false, HttpVersion::Http11, _) => ConnectionField::Close,
            (true, _, ClientPersistence::KeepAlive) => ConnectionField::KeepAlive,
            (true, _, _) => ConnectionField::Unsaid,
        };
        let mut response = Self {
            request: None,
            payload: ResponseBody::Nothing,
            not_modified: false,
            abort_after: None,
            closes: !persists,
        };
        match request.target {
            RequestTarget::Object { object, since_s } => {
                response.write_object(
                    worker,
                    &request,
                    RequestedObject { object: &object, since_s },
                    made_ns,
                    HeadStart { version, connection },
                    out,
                );
            }
            RequestTarget::Health => {
                let now_s = worker.clock.get().unix_s(made_ns);
                let dates = &mut worker.dates.borrow_mut();
                let config = worker.shared.configs.get(request.origin);
                let authority = config.map_or(&b""[..], |config| &config.authority);
                write_health(out, version, connection, now_s, authority, !request.head_only(), dates);
            }
            RequestTarget::Plain(status) => {
                let now_s = worker.clock.get().unix_s(made_ns);
                let dates = &mut worker.dates.borrow_mut();
                write_plain(out, version, status, connection, now_s, !request.head_only(), dates);
            }
        }
        response.request = Some(request);
        response
    }

    fn write_object(
        &mut self,
        worker: &WorkerState,
        request: &OriginRequest,
        requested: RequestedObject<'_>,
        made_ns: u64,
        start: HeadStart,
        out: &mut Vec<u8>,
    ) {
        let (RequestedObject { object, since_s }, HeadStart { version, connection }) = (requested, start);
        let (clock, universe) = (worker.clock.get(), &worker.shared.universe);
        let made_us = clock.since_start_us(made_ns);
        // Robots count from `made_us` as well, so both sides see the same second.
        let life = universe.life(object, (made_us / 1_000_000) as i64);
        let unix_s = |since_start_s: i64| clock.start_unix_s.saturating_add_signed(since_start_s);
        let dates = Dates {
            last_modified_s: life.last_modified_s.map(unix_s),
            expires_s: life.expires_s.map(unix_s),
            never_modified: life.next_modified_s.is_none(),
        };
        self.not_modified =
            since_s.zip(dates.last_modified_s).is_some_and(|(since_s, modified_s)| modified_s <= since_s);
        let mime_type = universe.workload().contents[usize::from(object.id.content)].mime_type.as_deref();
        let mark = ResponseMark {
            xact: request.xact(),
            key: object.key,
            version: life.version,
            made_us,
            status: if self.not_modified { 304 } else { 200 },
            held_us: request.held_us(made_ns),
            // A shorter delay disturbs no time that is measured.
            delay_us: if request.delay_us < DISTURBED_US as u32 { 0 } else { request.delay_us },
            note: None,
        };
        let head = ObjectHead {
            version,
            connection,
            now_s: clock.unix_s(made_ns),
            cachable: object.cachable,
            dates,
            mime_type,
            size_bytes: object.size_bytes,
            mark,
        };
        if let Some(special) = &request.special {
            return self.write_special(worker, request, special, object, head, out);
        }
        head.write(out, &mut worker.dates.borrow_mut());
        if !self.not_modified && !request.head_only() {
            self.set_body(universe.body(object, life.version), universe.pool(), out);
        }
    }

    #[cold]
    fn write_special(
        &mut self,
        worker: &WorkerState,
        request: &OriginRequest,
        special: &SpecialRequest,
        object: &Object,
        mut head: ObjectHead<'_>,
        out: &mut Vec<u8>,
    ) {
        let context = DecisionContext {
            shared: &worker.shared,
            request,
            special,
            object,
            is_unmodified: self.not_modified,
            last_modified_s: head.dates.last_modified_s.filter(|_| object.cachable),
            now_s: head.now_s,
        };
        let mut tally = worker.tally.borrow_mut();
        let phase = request.phase(&tally);
        let counts = &mut tally.recorder(phase).counts;
        let decision = context.judge(counts);
        let (payload, digest) = context.payload(&decision, head.mark.version, &mut worker.gzip.borrow_mut());
        let body_bytes = payload.len();
        let (note, abort_after) = context.note(&decision, body_bytes);
        (head.mark.status, head.mark.note) = (decision.status(), note);
        self.not_modified = decision.status() == 304;
        SpecialHead { head, context, decision: &decision, body_bytes, digest }.write(
            out,
            &mut worker.dates.borrow_mut(),
            counts,
        );
        if !request.head_only() {
            self.payload = payload;
        }
        self.abort_after = abort_after;
        self.closes |= abort_after.is_some();
    }

    /// Copies a small body behind its head, and of a large one the stamp: the fewer slices, the faster.
    fn set_body(&mut self, body: Body, pool: &Pool, out: &mut Vec<u8>) {
        let size = body.size();
        let copied = if size > COPIED_BYTES { STAMP_BYTES as u64 } else { size };
        let mut from = 0;
        while from < copied {
            let chunk = body.chunk(pool, from, (copied - from) as usize);
            out.extend_from_slice(chunk);
            from += chunk.len() as u64;
        }
        self.payload = ResponseBody::Whole { body, copied };
    }

    /// Writes the refusal of what is no request, and ends the connection.
    pub fn write_refusal(
        worker: &WorkerState,
        origin: OriginIndex,
        status: u16,
        head_only: bool,
        out: &mut Vec<u8>,
    ) -> Self {
        let version = worker
            .shared
            .configs
            .get(origin)
            .map_or(HttpVersion::Http11, |config: &OriginConfig| config.version);
        let now_s = worker.clock.get().unix_s(monotonic_ns());
        let dates = &mut worker.dates.borrow_mut();
        write_plain(out, version, status, ConnectionField::Close, now_s, !head_only, dates);
        Self {
            request: None,
            payload: ResponseBody::Nothing,
            not_modified: false,
            abort_after: None,
            closes: true,
        }
    }

    /// True if the response is aborted before its end, on purpose.
    pub fn is_aborted(&self) -> bool {
        self.abort_after.is_some()
    }

    /// Bytes of the response, behind this head.
    #[inline]
    pub fn outgoing<'a>(&'a self, head: &'a [u8]) -> OutgoingResponse<'a> {
        OutgoingResponse { head, payload: &self.payload, abort_after: self.abort_after }
    }

    /// Rate of the body, in bytes per second; none: as fast as the client takes it.
    #[inline]
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.request.as_ref()?.special.as_ref()?.bytes_per_s()
    }

    /// Counts the response as written late, if it was: its head was made at `made_ns`, and written at `now_ns`.
    #[inline]
    pub fn written(&self, worker: &WorkerState, made_ns: u64, now_ns: u64) {
        if is_written_late(made_ns, now_ns) {
            let mut tally = worker.tally.borrow_mut();
            let phase = self.request.as_ref().map_or(tally.current(), |request| request.phase(&tally));
            tally.recorder(phase).counts.written_late += 1;
        }
    }

    /// Counts it: all its `bytes` are written, those of the head among them; `wire_bytes` of them count as traffic, 0 where that
    /// is counted by connections. Gives the time.
    pub fn sent(
        &self,
        worker: &WorkerState,
        complete_ns: u64,
        head_bytes: usize,
        bytes: u64,
        wire_bytes: u64,
    ) -> u64 {
        let now_ns = monotonic_ns();
        let Some(request) = self.request.as_ref().filter(|request| !request.is_health()) else {
            return now_ns;
        };
        let mut tally = worker.tally.borrow_mut();
        let phase = request.phase(&tally);
        let recorder = tally.recorder(phase);
        let counts = &mut recorder.counts;
        counts.wire_bytes_out += wire_bytes;
        let RequestTarget::Object { object, .. } = request.target else { return now_ns };
        counts.body_bytes_out += bytes + self.payload.copied() - head_bytes as u64;
        if self.abort_after.is_some() {
            counts.broken_off += 1;
            return now_ns;
        }
        counts.responses += 1;
        if self.not_modified {
            counts.not_modified += 1;
            if let Some(mark) =
                request.mark.filter(|mark| request.validates && mark.kind == RequestKind::Basic)
            {
                counts.validated_basic += 1;
                counts.validated_basic_bytes += worker.shared.sent_bytes(mark.xact.robot, &object);
            }
        }
        recorder.service.record(now_ns.saturating_sub(complete_ns) / 1000);
        now_ns
    }
}

/// Whether what was made at `made_ns`, and written at `now_ns`, was written late.
#[inline]
pub fn is_written_late(made_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(made_ns) >= WRITTEN_LATE_NS
}

impl OriginRequest {
    /// Time for which the origin has had the request, in microseconds; 0, if that is too short to matter to anyone.
    #[inline]
    fn held_us(&self, now_ns: u64) -> u32 {
        let held_us = now_ns.saturating_sub(self.complete_ns) / 1_000;
        if held_us < HELD_FROM_US { 0 } else { u32::try_from(held_us).unwrap_or(u32::MAX) }
    }

    /// Phase that the request is counted in.
    #[inline]
    pub fn phase(&self, tally: &OriginTally) -> u16 {
        self.mark.map(|mark| mark.phase).filter(|phase| tally.has_phase(*phase)).unwrap_or(tally.current())
    }
}

/// Whether a connection between these two lives on. HTTP/1.0 on either side needs the client's `Connection: keep-alive`.
fn would_persist(version: HttpVersion, client: ClientPersistence) -> bool {
    match client {
        ClientPersistence::Close => false,
        ClientPersistence::KeepAlive => true,
        ClientPersistence::Persist => version != HttpVersion::Http10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_written_late_from_half_a_millisecond_on() {
        let made_ns = 7_000_000;
        assert!(!is_written_late(made_ns, made_ns + 499_999));
        assert!(is_written_late(made_ns, made_ns + 500_000));
        assert!(!is_written_late(made_ns, 0), "time does not go backwards");
    }
}
