//! Several ranges in one body (`multipart/byteranges`).
//!
//! Each part says in its `Content-Range` how long it is, so a reader need not look for the boundary within the bytes of
//! a part: it counts them, and the boundary must follow. It keeps no payload.

use thiserror::Error;

use super::{ContentRange, Span};
use crate::field::{Field, Fields, parameter};

/// Longest boundary (RFC 2046, 5.1.1).
const MOST_BOUNDARY_BYTES: usize = 70;
/// Longest head of a part, with the boundary before it.
const MOST_HEAD_BYTES: usize = 4096;

/// The boundary that a `Content-Type` names; none when the type is not `multipart/byteranges`.
pub fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    const TYPE: &[u8] = b"multipart/byteranges";
    let (kind, _) = content_type.split_at_checked(TYPE.len())?;
    if !kind.eq_ignore_ascii_case(TYPE) {
        return None;
    }
    let boundary = parameter(content_type, "boundary")?;
    (1..=MOST_BOUNDARY_BYTES).contains(&boundary.len()).then_some(boundary)
}

/// Writes what stands between the parts.
#[derive(Debug, Clone, Copy)]
pub struct MultipartWriter<'a> {
    /// Must occur in no part; letters and digits.
    pub boundary: &'a str,
    /// `Content-Type` of the whole.
    pub mime_type: Option<&'a str>,
    /// Bytes of the whole.
    pub total: u64,
}

impl MultipartWriter<'_> {
    /// Appends the value of `Content-Type`.
    pub fn content_type(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"multipart/byteranges; boundary=");
        out.extend_from_slice(self.boundary.as_bytes());
    }

    /// Appends what stands before the bytes of a part.
    pub fn part(&self, span: Span, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.as_bytes());
        if let Some(mime_type) = self.mime_type {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(mime_type.as_bytes());
        }
        out.extend_from_slice(b"\r\nContent-Range: ");
        ContentRange::Part { span, total: Some(self.total) }.write(out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends what stands after the last part.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.as_bytes());
        out.extend_from_slice(b"--\r\n");
    }
}

/// Malformed `multipart/byteranges`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MultipartError {
    /// No boundary where one must be.
    #[error("a part does not begin, or end, with the boundary that Content-Type names")]
    Boundary,
    /// A head that is no head, or too long.
    #[error("the head of a part is not one, or longer than {MOST_HEAD_BYTES} bytes")]
    Head,
    /// No `Content-Range`, or a wrong one.
    #[error("a part does not say which bytes it holds")]
    Range,
}

/// Result of [`MultipartReader::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'i> {
    Begin {
        /// Bytes of the part.
        span: Span,
        total: Option<u64>,
    },
    /// Bytes of the part; never empty.
    Data(&'i [u8]),
    /// All input is used up and the body goes on.
    NeedMore,
    /// The body is complete. What may follow (an epilogue) means nothing.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first boundary, or after a part: a boundary, and the head behind it, are gathered.
    Head,
    /// So many bytes of the part are left.
    Data(u64),
    End,
}

/// Takes a `multipart/byteranges` body apart, however it is cut.
#[derive(Debug, Clone)]
pub struct MultipartReader {
    /// CR LF, two dashes, and the boundary.
    delimiter: Vec<u8>,
    state: State,
    /// Start of a boundary and a head. Begins with a line end, as if one stood before the first boundary.
    gathered: Vec<u8>,
    is_first: bool,
}

impl MultipartReader {
    /// For the boundary that `Content-Type` names.
    pub fn new(boundary: &[u8]) -> Self {
        let delimiter = [b"\r\n--", boundary].concat();
        Self { delimiter, state: State::Head, gathered: b"\r\n".to_vec(), is_first: true }
    }

    /// True once the last boundary was read.
    pub fn is_done(&self) -> bool {
        self.state == State::End
    }

    /// Reads on: what is next, and how many bytes of `input` are done with (`Data` lies at their end).
    ///
    /// Call again with the rest of the input until it says `NeedMore` or `End`.
    pub fn next<'i>(&mut self, input: &'i [u8]) -> Result<(Part<'i>, usize), MultipartError> {
        match self.state {
            State::End => Ok((Part::End, 0)),
            State::Data(_) if input.is_empty() => Ok((Part::NeedMore, 0)),
            State::Data(left) => {
                let take = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                let left = left - take as u64;
                self.state = if left == 0 { State::Head } else { State::Data(left) };
                Ok((Part::Data(&input[..take]), take))
            }
            State::Head => {
                for (at, &byte) in input.iter().enumerate() {
                    self.gathered.push(byte);
                    if let Some(part) = self.look()? {
                        self.gathered.clear();
                        self.is_first = false;
                        return Ok((part, at + 1));
                    }
                }
                Ok((Part::NeedMore, input.len()))
            }
        }
    }

    /// Looks at what is gathered after another byte of it.
    fn look(&mut self) -> Result<Option<Part<'static>>, MultipartError> {
        if self.gathered.len() > MOST_HEAD_BYTES {
            return Err(MultipartError::Head);
        }
        // Many writers begin with a line end before the first boundary.
        if self.is_first && self.gathered == b"\r\n\r" {
            return Ok(None);
        }
        if self.is_first && self.gathered == b"\r\n\r\n" {
            self.gathered.truncate(2);
            return Ok(None);
        }
        let compared = self.gathered.len().min(self.delimiter.len());
        if self.gathered[..compared] != self.delimiter[..compared] {
            return Err(MultipartError::Boundary);
        }
        let after = &self.gathered[compared..];
        if after == b"--" {
            self.state = State::End;
            return Ok(Some(Part::End));
        }
        if !after.ends_with(b"\r\n\r\n") {
            return Ok(None);
        }
        let line_end = memchr::memchr(b'\n', after).ok_or(MultipartError::Head)?;
        if !after[..line_end].trim_ascii().is_empty() {
            return Err(MultipartError::Boundary);
        }
        let mut fields = Fields::new(&after[line_end + 1..], false);
        let range = fields.find(|field: &Field<'_>| field.is("content-range"));
        match range.and_then(|field| ContentRange::parse(field.value)) {
            Some(ContentRange::Part { span, total }) => {
                self.state = State::Data(span.len());
                Ok(Some(Part::Begin { span, total }))
            }
            _ => Err(MultipartError::Range),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Parts = Vec<(Span, Option<u64>, Vec<u8>)>;

    /// Feeds a body in pieces that end at `cuts`.
    fn read(boundary: &[u8], body: &[u8], cuts: &[usize]) -> Result<(Parts, bool), MultipartError> {
        let mut ends: Vec<usize> = cuts.iter().map(|c| c % (body.len() + 1)).collect();
        ends.push(body.len());
        ends.sort_unstable();
        let (mut reader, mut parts, mut used) = (MultipartReader::new(boundary), Parts::new(), 0);
        for end in ends {
            loop {
                let (part, taken) = reader.next(&body[used..end])?;
                used += taken;
                match part {
                    Part::Begin { span, total } => parts.push((span, total, Vec::new())),
                    Part::Data(data) => parts.last_mut().expect("has begun").2.extend_from_slice(data),
                    Part::NeedMore | Part::End => break,
                }
            }
        }
        Ok((parts, reader.is_done()))
    }

    #[test]
    fn the_boundary_is_found_in_the_type() {
        assert_eq!(boundary(b"multipart/byteranges; boundary=THIS"), Some(&b"THIS"[..]));
        assert_eq!(boundary(b"Multipart/ByteRanges;a=b; Boundary=\"a b\""), Some(&b"a b"[..]));
        for bad in
            [&b"multipart/byteranges"[..], b"text/html; boundary=x", b"multipart/byteranges; boundary="]
        {
            assert_eq!(boundary(bad), None);
        }
    }

    #[test]
    fn parts_of_other_writers_are_read_too() {
        let body = b"--B\r\nContent-range: bytes 1-3/9\r\n\r\nabc\r\n--B \r\ncontent-type: a/b\r\n\
                     Content-Range: bytes 0-0/*\r\n\r\n-\r\n--B--";
        let (parts, done) = read(b"B", body, &[]).unwrap();
        assert!(done);
        assert_eq!(parts[0], (Span { from: 1, to: 4 }, Some(9), b"abc".to_vec()));
        assert_eq!(parts[1], (Span { from: 0, to: 1 }, None, b"-".to_vec()));
    }

    #[test]
    fn broken_bodies_are_refused() {
        let head = "\r\n--B\r\nContent-Range: bytes 0-1/9\r\n\r\n";
        for (body, error) in [
            ("preamble".to_owned(), MultipartError::Boundary),
            (format!("{head}abc"), MultipartError::Boundary),
            (format!("{head}ab\r\n--C"), MultipartError::Boundary),
            ("--Bx\r\nContent-Range: bytes 0-1/9\r\n\r\n".to_owned(), MultipartError::Boundary),
            ("--B\r\nA: b\r\n\r\n".to_owned(), MultipartError::Range),
            ("--B\r\nContent-Range: bytes */9\r\n\r\n".to_owned(), MultipartError::Range),
            (format!("--B\r\nA: {}", "x".repeat(5000)), MultipartError::Head),
        ] {
            assert_eq!(read(b"B", body.as_bytes(), &[]).err(), Some(error), "{body}");
        }
    }

    proptest! {
        #[test]
        fn parts_that_are_written_are_read_back_however_they_are_cut(
            lengths in prop::collection::vec((0u64..5000, 1usize..60), 1..6),
            bytes in prop::collection::vec(any::<u8>(), 60),
            cuts in prop::collection::vec(any::<usize>(), 0..20),
            typed: bool,
        ) {
            let mime_type = typed.then_some("image/gif");
            let writer = MultipartWriter { boundary: "assay1234", mime_type, total: 6000 };
            let mut body = Vec::new();
            let mut want = Parts::new();
            for (from, length) in lengths {
                let span = Span { from, to: from + length as u64 };
                writer.part(span, &mut body);
                body.extend_from_slice(&bytes[..length]);
                want.push((span, Some(6000), bytes[..length].to_vec()));
            }
            writer.end(&mut body);
            let mut kind = Vec::new();
            writer.content_type(&mut kind);
            let boundary = boundary(&kind).unwrap();
            prop_assert_eq!(read(boundary, &body, &cuts), Ok((want, true)));
        }

        #[test]
        fn any_bytes_give_a_result_that_does_not_depend_on_the_cuts(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "\r\n", "--B", "--", "Content-Range: bytes 0-2/9", "abc", "\r", "x: y", " ",
            ]), 0..20),
            cuts in prop::collection::vec(any::<usize>(), 0..20),
        ) {
            let body = pieces.concat();
            prop_assert_eq!(read(b"B", body.as_bytes(), &cuts), read(b"B", body.as_bytes(), &[]));
        }
    }
}
