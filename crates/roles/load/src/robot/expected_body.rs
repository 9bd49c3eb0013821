//! Body that must follow the head of a response, checked as it comes.
//!
//! Nearly all are whole objects, compared where they were received. The rest, parts of objects and coded ones, are taken
//! apart first and then compared with the same bytes. Bodies of refusals and the like are read and not looked at.

use assay_http::coding::{GzipError, GzipReader};
use assay_http::range::{MultipartError, MultipartReader, Part, Span};
use assay_workload::body::{Body, Pool};

use super::response_error::ResponseError;
use crate::check::{BodyCheck, CheckError};

/// Longest body of a refusal, a redirection or the like: more is no explanation any more.
const LONGEST_REMARK: u64 = 1 << 20;

/// A body as it must be.
#[derive(Debug)]
pub enum ExpectedBody {
    /// All of an object.
    Whole {
        body: Body,
        check: BodyCheck,
    },
    Special(Box<SpecialBody>),
}

/// Bodies that are not whole objects as they are.
#[derive(Debug)]
pub enum SpecialBody {
    /// Explanation in a response that is no object.
    Remark {
        /// Bytes so far.
        received: u64,
    },
    /// One part of a representation (206).
    Part {
        /// Representation that the part belongs to; none: its bytes are not known.
        whole: Option<Representation>,
        /// Bytes of the representation.
        span: Span,
        check: BodyCheck,
    },
    /// Several of them (206, `multipart/byteranges`).
    Multipart(MultipartBody),
    /// All of it, coded.
    Coded {
        body: Body,
        reader: GzipReader,
        /// Check of the decoded bytes.
        check: BodyCheck,
        /// Coded bytes so far.
        received: u64,
    },
}

/// A body of several parts.
#[derive(Debug)]
pub struct MultipartBody {
    /// Representation that the parts belong to; none: its bytes are not known.
    whole: Option<Representation>,
    reader: MultipartReader,
    /// The requested parts that it has.
    requested: Vec<Span>,
    received_spans: Vec<Span>,
    /// Position in it of the next byte of a part.
    position: u64,
    received: u64,
}

/// Representation that parts are cut out of: an object, or its coded form (RFC 9110, 14.1.2).
#[derive(Debug)]
pub enum Representation {
    /// The object as it is.
    Object(Body),
    /// All of its coded bytes.
    Coded(Vec<u8>),
}

impl Representation {
    /// Length, in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Representation::Object(body) => body.size(),
            Representation::Coded(bytes) => bytes.len() as u64,
        }
    }

    /// Compares bytes with those from a position on; an error has the position of the first that differs.
    fn matches(&self, pool: &Pool, from: u64, bytes: &[u8]) -> Result<(), u64> {
        let coded = match self {
            Representation::Object(body) => return body.matches(pool, from, bytes),
            Representation::Coded(coded) => coded.get(from as usize..).unwrap_or_default(),
        };
        let same = coded.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        if same == bytes.len() { Ok(()) } else { Err(from + same as u64) }
    }
}

impl ExpectedBody {
    pub fn whole(body: Body, bytes: u64) -> Self {
        ExpectedBody::Whole { body, check: BodyCheck::new(bytes) }
    }

    /// Explanation of a response that is no object.
    pub fn remark() -> Self {
        ExpectedBody::Special(Box::new(SpecialBody::Remark { received: 0 }))
    }

    /// One part of a representation; none: its bytes are not known, and its length alone is checked.
    pub fn part(whole: Option<Representation>, span: Span) -> Self {
        let check = BodyCheck::new(span.to - span.from);
        ExpectedBody::Special(Box::new(SpecialBody::Part { whole, span, check }))
    }

    pub fn parts(whole: Option<Representation>, boundary: &[u8], requested: Vec<Span>) -> Self {
        let reader = MultipartReader::new(boundary);
        let parts =
            MultipartBody { whole, reader, requested, received_spans: Vec::new(), position: 0, received: 0 };
        ExpectedBody::Special(Box::new(SpecialBody::Multipart(parts)))
    }

    /// A whole object in gzip.
    pub fn gzip(body: Body, bytes: u64) -> Self {
        let (reader, check) = (GzipReader::new(bytes), BodyCheck::new(bytes));
        ExpectedBody::Special(Box::new(SpecialBody::Coded { body, reader, check, received: 0 }))
    }

    /// Body bytes so far, as they came.
    #[inline]
    pub fn received(&self) -> u64 {
        match self {
            ExpectedBody::Whole { check, .. } => check.received(),
            ExpectedBody::Special(other) => match &**other {
                SpecialBody::Remark { received } | SpecialBody::Coded { received, .. } => *received,
                SpecialBody::Part { check, .. } => check.received(),
                SpecialBody::Multipart(parts) => parts.received,
            },
        }
    }

    /// Takes the next bytes.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], pool: &Pool) -> Result<(), ResponseError> {
        match self {
            ExpectedBody::Whole { body, check } => {
                Ok(check.feed(bytes, |from, slice| body.matches(pool, from, slice))?)
            }
            ExpectedBody::Special(other) => other.feed(bytes, pool),
        }
    }

    /// Checks the length, once the framing says that the body is complete.
    pub fn end(&self) -> Result<(), ResponseError> {
        match self {
            ExpectedBody::Whole { check, .. } => Ok(check.end()?),
            ExpectedBody::Special(other) => other.end(),
        }
    }

    /// Whether all requested parts came, of a body that has several.
    pub fn has_all_parts(&self) -> bool {
        match self {
            ExpectedBody::Special(special) => match &**special {
                SpecialBody::Multipart(parts) => {
                    covers_requested(&parts.requested, &parts.received_spans) == Ok(true)
                }
                _ => true,
            },
            ExpectedBody::Whole { .. } => true,
        }
    }

    /// Error of a body that the end of its connection cut off.
    pub fn cut_off(&self) -> ResponseError {
        match self {
            ExpectedBody::Whole { check, .. } => check.cut_off().into(),
            ExpectedBody::Special(other) => match &**other {
                SpecialBody::Part { check, .. } | SpecialBody::Coded { check, .. } => check.cut_off().into(),
                SpecialBody::Remark { received } => {
                    CheckError::Truncated { actual: *received, expected: *received + 1 }.into()
                }
                SpecialBody::Multipart(parts) => {
                    let expected = parts.requested.iter().map(|span| span.to - span.from).sum();
                    CheckError::Truncated { actual: parts.received, expected }.into()
                }
            },
        }
    }
}

impl SpecialBody {
    fn feed(&mut self, bytes: &[u8], pool: &Pool) -> Result<(), ResponseError> {
        match self {
            SpecialBody::Remark { received } => {
                *received += bytes.len() as u64;
                if *received > LONGEST_REMARK {
                    Err(CheckError::Longer { expected: LONGEST_REMARK }.into())
                } else {
                    Ok(())
                }
            }
            SpecialBody::Part { whole, span, check } => {
                let first = span.from;
                let compare = |from: u64, slice: &[u8]| {
                    whole.as_ref().map_or(Ok(()), |whole| whole.matches(pool, first + from, slice))
                };
                Ok(check.feed(bytes, compare)?)
            }
            SpecialBody::Multipart(parts) => parts.feed(bytes, pool),
            SpecialBody::Coded { body, reader, check, received } => {
                *received += bytes.len() as u64;
                let mut wrong = None;
                let decoded = reader.push(bytes, |slice| {
                    let compared = check.feed(slice, |from, slice| body.matches(pool, from, slice));
                    wrong = wrong.take().or(compared.err());
                });
                match (wrong, decoded) {
                    (Some(wrong), _) => Err(wrong.into()),
                    (None, Err(GzipError::TooLong(expected))) => Err(CheckError::Longer { expected }.into()),
                    (None, Err(error)) => Err(ResponseError::Coding(error)),
                    (None, Ok(())) => Ok(()),
                }
            }
        }
    }

    fn end(&self) -> Result<(), ResponseError> {
        match self {
            SpecialBody::Remark { .. } => Ok(()),
            SpecialBody::Part { check, .. } => Ok(check.end()?),
            SpecialBody::Multipart(parts) => parts.end(),
            SpecialBody::Coded { reader, check, .. } => {
                check.end()?;
                if reader.is_done() { Ok(()) } else { Err(ResponseError::Coding(GzipError::Corrupt)) }
            }
        }
    }
}

/// Whether all that was requested came. On the way, parts may be merged, reordered, extended and left out (RFC 9110, 15.3.7): an error
/// is only that nothing of what was requested came.
pub fn covers_requested(requested: &[Span], received: &[Span]) -> Result<bool, CheckError> {
    let is_covered = |span: &Span| received.iter().any(|received| received.covers(span));
    let is_touched = |span: &Span| received.iter().any(|received| received.overlaps(span));
    match requested.first() {
        Some(first) if !requested.iter().any(is_touched) => {
            Err(CheckError::PartMissing { from: first.from, to: first.to })
        }
        _ => Ok(requested.iter().all(is_covered)),
    }
}

impl MultipartBody {
    fn feed(&mut self, bytes: &[u8], pool: &Pool) -> Result<(), ResponseError> {
        self.received += bytes.len() as u64;
        let mut rest = bytes;
        loop {
            let (part, used) = self.reader.next(rest).map_err(ResponseError::Parts)?;
            rest = &rest[used..];
            match part {
                Part::Begin { span, total } => {
                    let is_other = |whole: &Representation| {
                        total.is_some_and(|total| total != whole.bytes()) || span.to > whole.bytes()
                    };
                    if self.whole.as_ref().is_some_and(is_other) {
                        return Err(ResponseError::Parts(MultipartError::Range));
                    }
                    self.received_spans.push(span);
                    self.position = span.from;
                }
                Part::Data(slice) => {
                    if let Some(whole) = &self.whole {
                        whole.matches(pool, self.position, slice).map_err(|at| CheckError::Bytes { at })?;
                    }
                    self.position += slice.len() as u64;
                }
                Part::NeedMore | Part::End => return Ok(()),
            }
        }
    }

    fn end(&self) -> Result<(), ResponseError> {
        if !self.reader.is_done() {
            return Err(ResponseError::Parts(MultipartError::Boundary));
        }
        covers_requested(&self.requested, &self.received_spans)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use assay_http::coding::GzipWriter;
    use assay_http::range::MultipartWriter;

    use super::*;

    const SIZE: u64 = 1000;

    #[test]
    fn a_wrong_byte_of_an_object_is_found_in_every_kind_of_body() {
        let (pool, body) = (Pool::new(1), Body::new(7, 1, SIZE));
        let mut object = Vec::new();
        while (object.len() as u64) < SIZE {
            object.extend_from_slice(body.chunk(&pool, object.len() as u64, usize::MAX));
        }
        let spans = [Span { from: 100, to: 200 }, Span { from: 600, to: 900 }];
        let multipart = MultipartWriter { boundary: "b", mime_type: None, total: SIZE };
        for wrong in [None, Some(600), Some(899)] {
            let mut sent = object.clone();
            if let Some(at) = wrong {
                sent[at as usize] ^= 1;
            }
            let of = |span: Span| &sent[span.from as usize..span.to as usize];
            let mut several = Vec::new();
            for span in spans {
                multipart.part(span, &mut several);
                several.extend_from_slice(of(span));
            }
            multipart.end(&mut several);
            let mut coded = Vec::new();
            GzipWriter::new().encode([&sent[..]], &mut coded);
            for (mut payload, bytes) in [
                (ExpectedBody::whole(body.clone(), SIZE), &sent[..]),
                (ExpectedBody::part(Some(Representation::Object(body.clone())), spans[1]), of(spans[1])),
                (ExpectedBody::part(Some(Representation::Coded(object.clone())), spans[1]), of(spans[1])),
                (
                    ExpectedBody::parts(Some(Representation::Object(body.clone())), b"b", spans.to_vec()),
                    &several,
                ),
                (
                    ExpectedBody::parts(Some(Representation::Coded(object.clone())), b"b", spans.to_vec()),
                    &several,
                ),
                (ExpectedBody::gzip(body.clone(), SIZE), &coded),
            ] {
                let found = payload.feed(bytes, &pool).and_then(|()| payload.end());
                assert_eq!(
                    found,
                    wrong.map_or(Ok(()), |at| Err(CheckError::Bytes { at }.into())),
                    "{payload:?}"
                );
            }
        }
    }
}
