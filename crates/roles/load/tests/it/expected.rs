//! The right response of an origin to a robot's request.

use assay_base::clock::monotonic_ns;
use assay_http::date::{DATE_BYTES, parse_date, write_date};
use assay_http::head::RequestHead;
use assay_protocol::clock::RunClock;
use assay_workload::mark::{HEADER, RequestMark, ResponseMark};
use assay_workload::{Object, Universe};

/// What it is about.
pub struct Right {
    pub object: Object,
    pub mark: ResponseMark,
    modified_s: Option<i64>,
}

impl Right {
    /// To a request that came now.
    pub fn to(head: &RequestHead<'_>, universe: &Universe, clock: &RunClock) -> Self {
        let path = head
            .target
            .strip_prefix("http://")
            .map_or(head.target, |rest| &rest[rest.find('/').expect("a path")..]);
        let origins = &universe.workload().origins;
        let named =
            origins.iter().position(|origin| head.host == Some(origin.authority.as_bytes())).unwrap_or(0);
        let id = universe
            .parse_path(named as u16, path.as_bytes())
            .expect("robots request objects of the universe");
        let object = universe.object(id);
        let mark = head.header(HEADER).and_then(RequestMark::parse).expect("robots mark their requests");
        let now_us = clock.since_start_us(monotonic_ns());
        let life = universe.life(&object, (now_us / 1_000_000) as i64);
        let since_s = head
            .header("If-Modified-Since")
            .and_then(parse_date)
            .map(|s| s as i64 - clock.start_unix_s as i64);
        let not_modified =
            since_s.is_some_and(|since_s| life.last_modified_s.is_some_and(|at_s| at_s <= since_s));
        let mark = ResponseMark {
            xact: mark.xact,
            key: object.key,
            version: life.version,
            made_us: now_us,
            status: if not_modified { 304 } else { 200 },
            held_us: 0,
            delay_us: 0,
            note: None,
        };
        Self { object, mark, modified_s: life.last_modified_s.filter(|_| object.cachable) }
    }

    /// The status line and the fields that do not depend on the body.
    pub fn start(&self, is_marked: bool, clock: &RunClock) -> Vec<u8> {
        let mut out = match self.mark.not_modified() {
            true => b"HTTP/1.1 304 Not Modified\r\n".to_vec(),
            false => b"HTTP/1.1 200 OK\r\n".to_vec(),
        };
        if is_marked {
            out.extend_from_slice(format!("{HEADER}: ").as_bytes());
            self.mark.write(&mut out);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(modified_s) = self.modified_s {
            let mut date = [0; DATE_BYTES];
            write_date(clock.start_unix_s.saturating_add_signed(modified_s), &mut date);
            out.extend_from_slice(b"Last-Modified: ");
            out.extend_from_slice(&date);
            out.extend_from_slice(b"\r\n");
        }
        out
    }

    pub fn body(&self, universe: &Universe) -> Vec<u8> {
        let body = universe.body(&self.object, self.mark.version);
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < body.size() {
            bytes.extend_from_slice(body.chunk(universe.pool(), bytes.len() as u64, usize::MAX));
        }
        bytes
    }
}
