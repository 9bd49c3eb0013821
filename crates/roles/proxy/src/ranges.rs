//! Range requests (RFC 9110, chapter 14): selection of bytes, and the layout of partial responses.
//!
//! The length of the response must be known: it is stored, or under way with a `Content-Length`.

use std::hash::{BuildHasher, RandomState};

use assay_http::range::{ContentRange, MultipartWriter, Span, satisfy};

use crate::client_request::ClientRequest;
use crate::response::ProxyResponse;
use assay_net::body::Chunk;
use assay_net::fields;

/// The bytes of a response that a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeSelection {
    Whole,
    /// In the order requested; never empty.
    Parts(Vec<Span>),
    /// None of the bytes requested exist (416).
    Unsatisfied {
        /// Length of the response.
        total: u64,
    },
}

/// Selects the bytes of a response of `length` bytes.
///
/// The whole response if parts would be wrong (the condition of `If-Range` does not hold, the status is not 200), if the length
/// is unknown, if they would be parts of a content coding, or if together they exceed the whole.
pub fn select(
    client_request: &ClientRequest<'_>,
    response: &ProxyResponse,
    length: Option<u64>,
) -> RangeSelection {
    let (Some(ranges), Some(total)) = (&client_request.ranges, length) else { return RangeSelection::Whole };
    let is_same = client_request.if_range.is_none_or(|condition| response.allows_range(&condition));
    if response.status != 200 || !is_same || response.is_coded() {
        return RangeSelection::Whole;
    }
    let spans = satisfy(ranges, total);
    let bytes = spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.len()));
    match spans.len() {
        0 => RangeSelection::Unsatisfied { total },
        2.. if bytes > total => RangeSelection::Whole,
        _ => RangeSelection::Parts(spans),
    }
}

/// Layout of parts in the body of a response.
pub struct PartsLayout {
    /// Field lines for the head, in addition to those of the response.
    pub fields: Vec<u8>,
    /// Several parts: `fields` has the `Content-Type`.
    pub is_multipart: bool,
    pub length: u64,
    /// Bytes before each part and after the last; empty for a single part.
    between: Vec<Vec<u8>>,
}

impl PartsLayout {
    /// Lays out `spans` of a response of `total` bytes.
    pub fn new(spans: &[Span], total: u64, mime_type: Option<&str>) -> Self {
        let mut layout = Self { fields: Vec::new(), is_multipart: false, length: 0, between: Vec::new() };
        layout.length = spans.iter().map(Span::len).sum();
        let mut value = Vec::new();
        if let [span] = spans {
            ContentRange::Part { span: *span, total: Some(total) }.write(&mut value);
            fields::append(&mut layout.fields, b"Content-Range", &value);
            return layout;
        }
        let boundary = boundary();
        let writer = MultipartWriter { boundary: &boundary, mime_type, total };
        layout.is_multipart = true;
        writer.content_type(&mut value);
        fields::append(&mut layout.fields, b"Content-Type", &value);
        for span in spans {
            let mut before = Vec::new();
            writer.part(*span, &mut before);
            layout.between.push(before);
        }
        let mut end = Vec::new();
        writer.end(&mut end);
        layout.between.push(end);
        layout.length += layout.between.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        layout
    }

    /// Slices of the body to write, out of the whole response's.
    pub fn pieces<'p>(&'p self, spans: &[Span], body: &'p [Chunk]) -> Vec<&'p [u8]> {
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut between = self.between.iter();
        for span in spans {
            pieces.extend(between.next().map(|bytes| &bytes[..]));
            pieces.extend(slices(body, 0, *span));
        }
        pieces.extend(between.map(|bytes| &bytes[..]));
        pieces
    }
}

/// Slices of `chunks` that belong to a span, where the first chunk begins at offset `at` of the response.
pub fn slices(chunks: &[Chunk], at: u64, span: Span) -> impl Iterator<Item = &[u8]> {
    let mut at = at;
    chunks.iter().filter_map(move |chunk| {
        let from = at;
        at += chunk.len() as u64;
        // Neither value exceeds the chunk's length, so the casts are lossless.
        let within = |position: u64| position.clamp(from, at).saturating_sub(from) as usize;
        let slice = &chunk[within(span.from)..within(span.to)];
        (!slice.is_empty()).then_some(slice)
    })
}

/// Random boundary, which nobody can have placed in an object.
fn boundary() -> String {
    let word = || RandomState::new().hash_one(0);
    format!("assay-{:016x}{:016x}", word(), word())
}

#[cfg(test)]
mod tests {
    use assay_http::head::{RequestHead, ResponseHead};
    use assay_http::range::{MultipartReader, Part, boundary as boundary_of};
    use proptest::prelude::*;

    use super::*;
    use crate::response::ResponseTimes;

    fn selected(request: &str, response: &str, length: Option<u64>) -> RangeSelection {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{request}\r\n");
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        let client_request = ClientRequest::new(&head, head.facts.version);
        let text = format!("HTTP/1.1 200 OK\r\n{response}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let times = ResponseTimes { requested_ms: 1_000_000, received_ms: 1_000_000 };
        select(&client_request, &ProxyResponse::from_origin(&head, "assay", times).unwrap(), length)
    }

    fn span(from: u64, to: u64) -> Span {
        Span { from, to }
    }

    #[test]
    fn parts_are_taken_out_of_what_has_a_known_length() {
        let range = "Range: bytes=0-1,-3\r\n";
        assert_eq!(selected(range, "", Some(10)), RangeSelection::Parts(vec![span(0, 2), span(7, 10)]));
        assert_eq!(selected(range, "", Some(0)), RangeSelection::Unsatisfied { total: 0 });
        assert_eq!(selected("Range: bytes=10-\r\n", "", Some(10)), RangeSelection::Unsatisfied { total: 10 });
        assert_eq!(selected(range, "", None), RangeSelection::Whole);
        assert_eq!(selected("", "", Some(10)), RangeSelection::Whole);
    }

    #[test]
    fn all_is_sent_where_parts_would_be_wrong_or_more() {
        let range = "Range: bytes=0-1\r\n";
        assert_eq!(selected(range, "Content-Encoding: gzip\r\n", Some(10)), RangeSelection::Whole);
        assert_eq!(selected("Range: bytes=0-,0-,0-\r\n", "", Some(10)), RangeSelection::Whole);
        let conditional = format!("{range}If-Range: \"a\"\r\n");
        assert_eq!(selected(&conditional, "ETag: \"b\"\r\n", Some(10)), RangeSelection::Whole);
        let parts = RangeSelection::Parts(vec![span(0, 2)]);
        assert_eq!(selected(&conditional, "ETag: \"a\"\r\n", Some(10)), parts);
    }

    proptest! {
        #[test]
        fn several_parts_are_read_back_whatever_the_chunks(
            bytes in prop::collection::vec(any::<u8>(), 1..300),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            wanted in prop::collection::vec((any::<prop::sample::Index>(), 1usize..50), 1..6),
        ) {
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            ends.sort_unstable();
            ends.push(bytes.len());
            let mut from = 0;
            let chunks: Vec<Chunk> =
                ends.iter().map(|&end| Chunk::from(&bytes[std::mem::replace(&mut from, end)..end])).collect();
            let spans: Vec<Span> = wanted.iter().map(|(at, length)| {
                let at = at.index(bytes.len());
                span(at as u64, (at + length).min(bytes.len()) as u64)
            }).collect();
            let layout = PartsLayout::new(&spans, bytes.len() as u64, Some("a/b"));
            let body = layout.pieces(&spans, &chunks).concat();
            prop_assert_eq!(body.len() as u64, layout.length);
            let text = std::str::from_utf8(&layout.fields).unwrap();
            let (name, value) = text.trim_end().split_once(": ").unwrap();
            if spans.len() == 1 {
                prop_assert_eq!(name, "Content-Range");
                prop_assert_eq!(&body, &bytes[spans[0].from as usize..spans[0].to as usize]);
                return Ok(());
            }
            prop_assert_eq!(name, "Content-Type");
            let mut reader = MultipartReader::new(boundary_of(value.as_bytes()).unwrap());
            let (mut rest, mut found) = (&body[..], Vec::new());
            loop {
                let (part, used) = reader.next(rest).unwrap();
                rest = &rest[used..];
                match part {
                    Part::Begin { span, total } => {
                        prop_assert_eq!(total, Some(bytes.len() as u64));
                        found.push((span, Vec::new()));
                    }
                    Part::Data(data) => found.last_mut().unwrap().1.extend_from_slice(data),
                    Part::NeedMore => return Err(TestCaseError::fail("the body ends too soon")),
                    Part::End => break,
                }
            }
            let want: Vec<_> =
                spans.iter().map(|s| (*s, bytes[s.from as usize..s.to as usize].to_vec())).collect();
            prop_assert_eq!(found, want);
        }
    }
}
