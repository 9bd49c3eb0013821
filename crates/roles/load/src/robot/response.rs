//! Reader of a response: takes it from the bytes of its connection, and checks it on the way.
//!
//! Bytes are looked at where they were received. Only a head that arrives in pieces is put together elsewhere, and
//! no head grows beyond what the parser accepts.

use assay_http::framing::{BodyDecoder, BodyFraming};
use assay_http::head::ResponseHead;
use assay_net::limits::MAX_INTERIM_RESPONSES;
use assay_workload::body::Pool;
use assay_workload::mark;

use super::expected_body::ExpectedBody;
use super::features::ResponseKind;
use super::recorder::Received;
use super::response_error::ResponseError;
use crate::check::CheckVerdict;

/// Facts of a response once its head was judged.
#[derive(Debug, Clone)]
pub struct ResponseStart {
    pub status: u16,
    pub verdict: CheckVerdict,
    pub kind: ResponseKind,
    /// The origin has announced that the body ends early.
    pub origin_aborts: bool,
    /// The target lets the connection live on.
    pub persists: bool,
}

/// Response of an xact that is over: read to its end, or cut off where it was to be.
#[derive(Debug, Clone)]
pub struct FinishedResponse {
    /// None: the connection was lost before one came.
    pub status: Option<u16>,
    pub verdict: CheckVerdict,
    pub kind: ResponseKind,
    pub body_bytes: u64,
    pub ended_ns: u64,
}

/// Judgement of the head of a response.
#[derive(Debug)]
pub struct HeadVerdict {
    pub verdict: CheckVerdict,
    pub kind: ResponseKind,
    /// The origin has announced that the body ends early.
    pub origin_aborts: bool,
    /// The body that must follow.
    pub payload: ExpectedBody,
}

/// A response that is being received.
#[derive(Debug, Default)]
pub struct ResponseReader {
    /// The beginning of a head that has not arrived in full; nothing is allocated otherwise.
    pieces: Vec<u8>,
    /// 100 has come.
    got_continue: bool,
    /// Interim responses so far.
    interim: u32,
    /// None before the final head is complete.
    judged: Option<JudgedResponse>,
}

/// A response whose head was judged.
#[derive(Debug)]
struct JudgedResponse {
    start: ResponseStart,
    body: BodyDecoder,
    expected: ExpectedBody,
}

impl ResponseReader {
    /// Takes bytes that were received; returns how many of them belong to this response. `judge` is called once, when
    /// the final head is complete, with the value of our field: it decides what must follow, and the body to compare
    /// with.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        method: &str,
        pool: &Pool,
        judge: impl FnMut(&ResponseHead<'_>, Option<&[u8]>) -> Result<HeadVerdict, ResponseError>,
    ) -> Result<usize, ResponseError> {
        let used = if self.judged.is_none() { self.feed_head(bytes, method, judge)? } else { 0 };
        Ok(used + self.feed_body(&bytes[used..], pool)?)
    }

    /// Counts an interim response. A target that sends them without end would keep its robots busy with that alone.
    pub fn begin_interim(&mut self) -> Result<(), ResponseError> {
        self.interim += 1;
        if self.interim > MAX_INTERIM_RESPONSES { Err(ResponseError::EndlessInterim) } else { Ok(()) }
    }

    /// Takes a head that came in another form than HTTP/1, final and complete; `ends`: there is no body. `judge` as for
    /// [`ResponseReader::feed`].
    pub fn begin(
        &mut self,
        head: &ResponseHead<'_>,
        mark: Option<&[u8]>,
        method: &str,
        ends: bool,
        mut judge: impl FnMut(&ResponseHead<'_>, Option<&[u8]>) -> Result<HeadVerdict, ResponseError>,
    ) -> Result<(), ResponseError> {
        let framing = match head.body(method) {
            BodyFraming::None => BodyFraming::None,
            _ => BodyFraming::UntilClose,
        };
        self.judged = Some(JudgedResponse::new(head, judge(head, mark)?, framing, true));
        if ends { self.end_stream() } else { Ok(()) }
    }

    /// Takes payload that came in another form than HTTP/1; `ends`: it is the last.
    pub fn take_data(&mut self, data: &[u8], ends: bool, pool: &Pool) -> Result<(), ResponseError> {
        self.feed_body(data, pool)?;
        if ends { self.end_stream() } else { Ok(()) }
    }

    /// Ends the response with its stream: unlike the end of a connection, this is the sender's word that the body is
    /// complete (RFC 9113, 8.1).
    fn end_stream(&mut self) -> Result<(), ResponseError> {
        match &mut self.judged {
            Some(JudgedResponse { body, expected, .. }) if !body.is_done() => {
                body.end();
                expected.end()
            }
            _ => Ok(()),
        }
    }

    /// Ends the response with its connection.
    pub fn end(&mut self) -> Result<(), ResponseError> {
        let Some(JudgedResponse { body, expected, .. }) = &mut self.judged else {
            return Err(ResponseError::HeadCutOff(self.pieces.len()));
        };
        if body.is_done() || (body.end() && expected.end().is_ok()) {
            Ok(())
        } else {
            Err(expected.cut_off())
        }
    }

    pub fn is_complete(&self) -> bool {
        self.judged.as_ref().is_some_and(|judged| judged.body.is_done())
    }

    /// True if 100 has come, and nothing after it.
    pub fn is_continue(&self) -> bool {
        self.got_continue && self.judged.is_none()
    }

    /// Facts of the head; none before it is complete.
    pub fn start(&self) -> Option<&ResponseStart> {
        self.judged.as_ref().map(|judged| &judged.start)
    }

    /// The response as far as it has come, if its head was judged.
    pub fn finished(&self, ended_ns: u64) -> Option<FinishedResponse> {
        let JudgedResponse { start, expected, .. } = self.judged.as_ref()?;
        let (status, verdict) = (Some(start.status), start.verdict);
        let kind = match start.kind {
            ResponseKind::Parts { several: true, is_checked, .. } => {
                ResponseKind::Parts { several: true, is_checked, is_complete: expected.has_all_parts() }
            }
            kind => kind,
        };
        Some(FinishedResponse { status, verdict, kind, body_bytes: expected.received(), ended_ns })
    }

    /// Body bytes so far.
    pub fn received(&self) -> Received {
        Received { status: self.start().map(|start| start.status), body_bytes: self.body_bytes() }
    }

    pub fn body_bytes(&self) -> u64 {
        self.judged.as_ref().map_or(0, |judged| judged.expected.received())
    }

    fn feed_head(
        &mut self,
        bytes: &[u8],
        method: &str,
        mut judge: impl FnMut(&ResponseHead<'_>, Option<&[u8]>) -> Result<HeadVerdict, ResponseError>,
    ) -> Result<usize, ResponseError> {
        let mut pieces = std::mem::take(&mut self.pieces);
        let before = pieces.len();
        let head_bytes = if before == 0 {
            bytes
        } else {
            pieces.extend_from_slice(bytes);
            // A head that trickles in is parsed once a line, not once a byte.
            if !bytes.contains(&b'\n') && pieces.len() < assay_http::head::MAX_HEAD_BYTES {
                self.pieces = pieces;
                return Ok(bytes.len());
            }
            &pieces
        };
        let mut from = 0;
        loop {
            let parsed =
                ResponseHead::parse_noting(&head_bytes[from..], mark::HEADER).map_err(ResponseError::Head)?;
            let Some((head, length, mark)) = parsed else {
                self.pieces = head_bytes[from..].to_vec();
                return Ok(bytes.len());
            };
            from += length;
            match head.status {
                // Robots request no upgrade, so a server must not switch (RFC 9110, 7.8).
                101 => return Err(ResponseError::Upgrade),
                100..=199 => {
                    self.got_continue |= head.status == 100;
                    self.begin_interim()?;
                    continue;
                }
                _ => {}
            }
            let verdict = judge(&head, mark)?;
            let (framing, persists) = (head.body(method), head.persists(method));
            let judged = self.judged.insert(JudgedResponse::new(&head, verdict, framing, persists));
            if framing == BodyFraming::Length(0) {
                judged.expected.end()?;
            }
            // Earlier pieces were counted as used when they came.
            return Ok(from - before);
        }
    }

    fn feed_body(&mut self, bytes: &[u8], pool: &Pool) -> Result<usize, ResponseError> {
        let Some(JudgedResponse { body, expected, .. }) = &mut self.judged else { return Ok(0) };
        if body.is_done() {
            return Ok(0);
        }
        let used = body.decode(bytes, |data| expected.feed(data, pool))?;
        if body.is_done() {
            expected.end()?;
        }
        Ok(used)
    }
}

impl JudgedResponse {
    fn new(head: &ResponseHead<'_>, verdict: HeadVerdict, framing: BodyFraming, persists: bool) -> Self {
        let HeadVerdict { verdict, kind, origin_aborts, payload } = verdict;
        let start = ResponseStart { status: head.status, verdict, kind, origin_aborts, persists };
        Self { start, body: BodyDecoder::new(framing), expected: payload }
    }
}

#[cfg(test)]
mod tests {
    use assay_http::head::{HeadError, MAX_HEAD_BYTES};
    use assay_measurement::error_kind::ErrorKind;
    use assay_measurement::outcome::Outcome;
    use assay_workload::body::Body;
    use proptest::prelude::*;

    use super::*;
    use crate::check::CheckError;

    const SIZE: u64 = 40;

    fn body() -> Body {
        Body::new(7, 1, SIZE)
    }

    fn pool() -> &'static Pool {
        static POOL: std::sync::OnceLock<Pool> = std::sync::OnceLock::new();
        POOL.get_or_init(|| Pool::new(1))
    }

    fn body_bytes() -> Vec<u8> {
        let (body, mut bytes) = (body(), Vec::new());
        while (bytes.len() as u64) < SIZE {
            bytes.extend_from_slice(body.chunk(pool(), bytes.len() as u64, usize::MAX));
        }
        bytes
    }

    fn judge(head: &ResponseHead<'_>, _mark: Option<&[u8]>) -> Result<HeadVerdict, ResponseError> {
        if head.status != 200 {
            return Err(CheckError::Status { actual: head.status, conditional: false }.into());
        }
        let verdict = CheckVerdict {
            outcome: Some(Outcome::Miss),
            version: 1,
            body_bytes: Some(SIZE),
            ..CheckVerdict::NOT_OF_OBJECT
        };
        let payload = ExpectedBody::whole(body(), SIZE);
        Ok(HeadVerdict { verdict, kind: ResponseKind::Object, origin_aborts: false, payload })
    }

    /// Feeds `bytes` in slices until all are used; gives what was left over once the response was complete.
    fn feed(response: &mut ResponseReader, bytes: &[u8], slice: usize) -> Result<usize, ResponseError> {
        let mut at = 0;
        while at < bytes.len() && !response.is_complete() {
            let end = bytes.len().min(at + slice);
            at += response.feed(&bytes[at..end], "GET", pool(), judge)?;
        }
        Ok(bytes.len() - at)
    }

    fn message(head: &str, body: &[u8]) -> Vec<u8> {
        [head.as_bytes(), b"\r\n\r\n", body].concat()
    }

    fn chunked() -> Vec<u8> {
        let body = body_bytes();
        let mut coded = Vec::new();
        for part in body.chunks(13) {
            coded.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            coded.extend_from_slice(part);
            coded.extend_from_slice(b"\r\n");
        }
        coded.extend_from_slice(b"0\r\n\r\n");
        message("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", &coded)
    }

    fn counted() -> Vec<u8> {
        message("HTTP/1.1 200 OK\r\nContent-Length: 40", &body_bytes())
    }

    proptest! {
        #[test]
        fn a_response_is_the_same_however_it_is_cut(slice in 1usize..200, extra in 0usize..5) {
            for mut bytes in [counted(), chunked()] {
                bytes.extend(std::iter::repeat_n(b'x', extra));
                let mut response = ResponseReader::default();
                let left = feed(&mut response, &bytes, slice).expect("is right");
                prop_assert!(response.is_complete());
                prop_assert!(response.start().is_some_and(|start| start.persists));
                prop_assert_eq!((left, response.body_bytes()), (extra, SIZE));
            }
        }

        #[test]
        fn any_bytes_give_a_verdict_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut response = ResponseReader::default();
            let _ = feed(&mut response, &bytes, 7);
            let _ = response.end();
        }
    }

    #[test]
    fn a_body_without_length_ends_with_the_connection() {
        let mut response = ResponseReader::default();
        feed(&mut response, &message("HTTP/1.1 200 OK", &body_bytes()), 1000).expect("is right");
        assert!(!response.is_complete());
        assert_eq!(response.end(), Ok(()));
        assert!(response.is_complete());
    }

    #[test]
    fn a_body_that_is_cut_off_is_truncated_however_it_is_framed() {
        let until_close = message("HTTP/1.1 200 OK", &body_bytes());
        for bytes in [counted(), chunked(), until_close] {
            let mut response = ResponseReader::default();
            feed(&mut response, &bytes[..bytes.len() - 10], 1000).expect("is right so far");
            assert_eq!(response.end().map_err(|error| error.kind()), Err(ErrorKind::TruncatedBody));
        }
    }

    #[test]
    fn interim_responses_are_passed_over() {
        let bytes =
            [&b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"[..], &counted()]
                .concat();
        for slice in [1, 30, 1000] {
            let mut response = ResponseReader::default();
            assert_eq!(feed(&mut response, &bytes, slice), Ok(0), "{slice}");
            assert!(response.is_complete());
        }
        let endless = "HTTP/1.1 102 Processing\r\n\r\n".repeat(33);
        let error = feed(&mut ResponseReader::default(), endless.as_bytes(), 100).expect_err("goes on");
        assert_eq!((error.kind(), error), (ErrorKind::Malformed, ResponseError::EndlessInterim));
        let upgrade = feed(&mut ResponseReader::default(), b"HTTP/1.1 101 Switching\r\n\r\n", 100);
        assert_eq!(upgrade, Err(ResponseError::Upgrade));
    }

    #[test]
    fn a_head_without_end_is_malformed_before_it_fills_the_memory() {
        let mut response = ResponseReader::default();
        response.feed(b"HTTP/1.1 200 OK\r\nX: ", "GET", pool(), judge).expect("may go on");
        let mut fed = 0;
        let error = loop {
            match response.feed(&[b'x'; 1000], "GET", pool(), judge) {
                Ok(_) => fed += 1000,
                Err(error) => break error,
            }
        };
        assert_eq!((error.kind(), error), (ErrorKind::Malformed, ResponseError::Head(HeadError::TooLong)));
        assert!(fed <= MAX_HEAD_BYTES);
    }

    #[test]
    fn what_is_not_http_is_malformed() {
        for bytes in [&b"SSH-2.0-OpenSSH\r\n"[..], b"HTTP/1.1 abc\r\n\r\n", b"\0\0\0\0"] {
            let error = feed(&mut ResponseReader::default(), bytes, 100).expect_err("is not HTTP");
            assert_eq!(error.kind(), ErrorKind::Malformed);
        }
        let bare_line_feed = b"HTTP/1.1 200 OK\r\nX-One: 1\nContent-Length: 40\r\n\r\n";
        let error =
            feed(&mut ResponseReader::default(), bare_line_feed, 100).expect_err("can be read in two ways");
        assert_eq!(error.kind(), ErrorKind::Malformed);
        let bad_chunk = message("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"zz\r\n");
        let error = feed(&mut ResponseReader::default(), &bad_chunk, 100).expect_err("is no chunk");
        assert_eq!(error.kind(), ErrorKind::Malformed);
    }

    #[test]
    fn a_body_that_is_complete_must_have_the_objects_length() {
        for (field, body) in [
            ("Transfer-Encoding: chunked", &b"0\r\n\r\n"[..]),
            ("Content-Length: 0", b""),
            ("Content-Length: 30", &body_bytes()[..30]),
        ] {
            let short = message(&format!("HTTP/1.1 200 OK\r\n{field}"), body);
            let error = feed(&mut ResponseReader::default(), &short, 100).expect_err(field);
            assert_eq!(error.kind(), ErrorKind::WrongLength, "{field}");
        }
    }

    #[test]
    fn a_stream_that_ends_must_have_brought_all_of_the_object() {
        for content_length in [Some(0), Some(30), None] {
            let mut response = ResponseReader::default();
            let head = ResponseHead::of_fields(200, content_length, b"");
            let error = response.begin(&head, None, "GET", true, judge).expect_err("is short");
            assert_eq!(error.kind(), ErrorKind::WrongLength, "{content_length:?}");
            let mut response = ResponseReader::default();
            response.begin(&head, None, "GET", false, judge).expect("is right so far");
            let error = response.take_data(&body_bytes()[..30], true, pool()).expect_err("is short");
            assert_eq!(error.kind(), ErrorKind::WrongLength, "{content_length:?}");
        }
    }

    #[test]
    fn a_head_that_is_cut_off_is_truncated() {
        let mut response = ResponseReader::default();
        feed(&mut response, b"HTTP/1.1 200 OK\r\nConte", 100).expect("is right so far");
        assert_eq!(response.end(), Err(ResponseError::HeadCutOff(22)));
    }
}
