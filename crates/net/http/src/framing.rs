//! Framing of a body: where it ends, which bytes are its content, and whether the connection persists after it.

use crate::chunked::{ChunkError, Decoder, Piece};
use crate::head::{RequestHead, ResponseHead};

/// Framing of a body: how its end is found (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body, whatever the fields say.
    None,
    Length(u64),
    Chunked,
    /// The body ends when the connection does (responses only).
    UntilClose,
}

impl RequestHead<'_> {
    /// Framing of the body of this request.
    pub fn body(&self) -> BodyFraming {
        match (self.facts.chunked, self.facts.content_length) {
            (true, _) => BodyFraming::Chunked,
            (false, Some(length)) => BodyFraming::Length(length),
            (false, None) => BodyFraming::None,
        }
    }

    /// Whether the client wants to go on using the connection.
    pub fn persists(&self) -> bool {
        self.facts.persists()
    }
}

impl ResponseHead<'_> {
    /// Framing of the body of this response to a request of `method`.
    pub fn body(&self, method: &str) -> BodyFraming {
        let bodiless = method == "HEAD"
            || matches!(self.status, 100..=199 | 204 | 304)
            || (method == "CONNECT" && matches!(self.status, 200..=299));
        match (self.facts.chunked, self.facts.content_length) {
            _ if bodiless => BodyFraming::None,
            (true, _) => BodyFraming::Chunked,
            (false, Some(length)) => BodyFraming::Length(length),
            (false, None) => BodyFraming::UntilClose,
        }
    }

    /// Whether the connection can be used again after this response to a request of `method`.
    pub fn persists(&self, method: &str) -> bool {
        self.facts.persists() && self.body(method) != BodyFraming::UntilClose && self.status != 101
    }
}

/// Takes the content of a body out of the bytes of its connection. It keeps none of them, so a body can arrive in pieces of any size.
#[derive(Debug, Clone)]
pub struct BodyDecoder(Rest);

/// What is still to come of a body.
#[derive(Debug, Clone)]
enum Rest {
    Nothing,
    Length(u64),
    Chunked(Decoder),
    UntilClose,
}

impl BodyDecoder {
    pub fn new(framing: BodyFraming) -> Self {
        Self(match framing {
            BodyFraming::None | BodyFraming::Length(0) => Rest::Nothing,
            BodyFraming::Length(bytes) => Rest::Length(bytes),
            BodyFraming::Chunked => Rest::Chunked(Decoder::new()),
            BodyFraming::UntilClose => Rest::UntilClose,
        })
    }

    /// Whether all of the body has come. That of one which ends with its connection is not known before [`BodyDecoder::end`].
    pub fn is_done(&self) -> bool {
        matches!(self.0, Rest::Nothing)
    }

    /// Upper bound on the bytes still to come, all of them content; none: the body is in chunks, or all of it has come.
    pub fn plain_left(&self) -> Option<u64> {
        match self.0 {
            Rest::Length(left) => Some(left),
            Rest::UntilClose => Some(u64::MAX),
            Rest::Nothing | Rest::Chunked(_) => None,
        }
    }

    /// Takes the part of the body from `count` bytes that have come, and returns its length: all of it is content. None of a body in chunks
    /// is.
    #[inline]
    pub fn take_plain(&mut self, count: usize) -> usize {
        match &mut self.0 {
            Rest::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(count);
                *left -= taken as u64;
                if *left == 0 {
                    self.0 = Rest::Nothing;
                }
                taken
            }
            Rest::UntilClose => count,
            Rest::Nothing | Rest::Chunked(_) => 0,
        }
    }

    /// Passes the content in `bytes` to `sink`, and returns how many of them belong to the body. An error of the sink ends that.
    #[inline]
    pub fn decode<E: From<ChunkError>>(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let Rest::Chunked(decoder) = &mut self.0 else {
            let taken = self.take_plain(bytes.len());
            sink(&bytes[..taken])?;
            return Ok(taken);
        };
        let mut used = 0;
        loop {
            let (piece, length) = decoder.next(&bytes[used..])?;
            used += length;
            match piece {
                Piece::Data(data) => sink(data)?,
                Piece::NeedMore => return Ok(used),
                Piece::End => {
                    self.0 = Rest::Nothing;
                    return Ok(used);
                }
            }
        }
    }

    /// Appends the content in `bytes` to `out`, and returns how many of them belong to the body.
    pub fn decode_into(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, ChunkError> {
        self.decode(bytes, |data| {
            out.extend_from_slice(data);
            Ok(())
        })
    }

    /// Ends the body with its connection, and returns whether it is complete.
    pub fn end(&mut self) -> bool {
        if matches!(self.0, Rest::UntilClose) {
            self.0 = Rest::Nothing;
        }
        self.is_done()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunked::append_chunk;

    /// Content of a body that arrives in two pieces, the bytes that belong to it, and whether it is complete.
    fn decoded(framing: BodyFraming, bytes: &[u8], cut: usize) -> (Vec<u8>, usize, bool) {
        let (mut decoder, mut content) = (BodyDecoder::new(framing), Vec::new());
        let cut = cut.min(bytes.len());
        let first = decoder.decode_into(&bytes[..cut], &mut content).expect("is well formed");
        let second = decoder.decode_into(&bytes[first..], &mut content).expect("is well formed");
        (content, first + second, decoder.is_done())
    }

    proptest! {
        #[test]
        fn a_body_is_its_content_and_nothing_behind_it_whatever_its_framing(
            content in prop::collection::vec(any::<u8>(), 0..200), chunk in 1usize..50, cut in 0usize..400,
        ) {
            let counted = [&content[..], b"next"].concat();
            let framing = BodyFraming::Length(content.len() as u64);
            prop_assert_eq!(decoded(framing, &counted, cut), (content.clone(), content.len(), true));
            let mut coded = Vec::new();
            content.chunks(chunk).for_each(|data| append_chunk(&mut coded, data));
            coded.extend_from_slice(crate::chunked::LAST_CHUNK);
            let length = coded.len();
            coded.extend_from_slice(b"next");
            prop_assert_eq!(decoded(BodyFraming::Chunked, &coded, cut), (content.clone(), length, true));
            prop_assert_eq!(decoded(BodyFraming::UntilClose, &content, cut), (content.clone(), content.len(), false));
        }
    }

    #[test]
    fn the_end_of_a_connection_completes_only_a_body_that_it_delimits() {
        assert!(BodyDecoder::new(BodyFraming::UntilClose).end());
        assert!(BodyDecoder::new(BodyFraming::None).end());
        assert!(!BodyDecoder::new(BodyFraming::Length(3)).end());
        assert!(!BodyDecoder::new(BodyFraming::Chunked).end());
    }

    fn request(text: &str) -> (BodyFraming, bool) {
        let (head, _) = RequestHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        (head.body(), head.persists())
    }

    fn response(method: &str, text: &str) -> (BodyFraming, bool) {
        let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        (head.body(method), head.persists(method))
    }

    #[test]
    fn a_request_without_length_has_no_body() {
        assert_eq!(request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), (BodyFraming::None, true));
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
        assert_eq!(request(post), (BodyFraming::Length(3), false));
        let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";
        assert_eq!(request(chunked), (BodyFraming::Chunked, true));
    }

    #[test]
    fn http_1_0_persists_only_when_requested_to() {
        assert!(!request("GET / HTTP/1.0\r\n\r\n").1);
        assert!(request("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").1);
        assert!(!request("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n").1);
    }

    #[test]
    fn responses_to_head_and_304_have_no_body_whatever_their_length_says() {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(response("HEAD", ok), (BodyFraming::None, true));
        assert_eq!(response("GET", ok), (BodyFraming::Length(9), true));
        for status in ["304 Not Modified", "204 No Content", "100 Continue"] {
            let text = format!("HTTP/1.1 {status}\r\nContent-Length: 9\r\n\r\n");
            assert_eq!(response("GET", &text).0, BodyFraming::None, "{status}");
        }
    }

    #[test]
    fn a_response_without_length_ends_with_its_connection() {
        assert_eq!(response("GET", "HTTP/1.1 200 OK\r\n\r\n"), (BodyFraming::UntilClose, false));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(response("GET", chunked), (BodyFraming::Chunked, true));
    }
}
