//! The body that must follow the head of a response, checked as it comes.
//!
//! Nearly all are whole objects, compared where they were received. The rest, parts of objects and coded ones, are taken
//! apart first and then compared with the same bytes. Bodies of refusals and the like are read and not looked at.

use assay_http::coding::{GzipError, GzipReader};
use assay_http::range::{MultipartError, MultipartReader, Part, Span};
use assay_workload::body::{Body, Pool};

use super::flaw::Flaw;
use crate::check::{BodyCheck, Wrong};

/// Longest body of a refusal, a redirection or the like: more is no explanation any more.
const LONGEST_REMARK: u64 = 1 << 20;

/// A body as it must be.
#[derive(Debug)]
pub enum Payload {
    /// All of an object.
    Whole {
        /// Its bytes.
        body: Body,
        /// How far it has come.
        check: BodyCheck,
    },
    Other(Box<Other>),
}

/// Bodies that are not whole objects as they are.
#[derive(Debug)]
pub enum Other {
    /// What is said about a response that is no object.
    Remark {
        /// Bytes so far.
        seen: u64,
    },
    /// One part of a representation (206).
    Part {
        /// What it is a part of; none: its bytes are not known.
        whole: Option<Representation>,
        /// Which of its bytes.
        span: Span,
        /// How far it has come.
        check: BodyCheck,
    },
    /// Several of them (206, `multipart/byteranges`).
    Parts(Parts),
    /// All of it, coded.
    Coded {
        /// The object's bytes.
        body: Body,
        reader: GzipReader,
        /// How far the object has come.
        check: BodyCheck,
        /// Coded bytes so far.
        seen: u64,
    },
}

/// A body of several parts.
#[derive(Debug)]
pub struct Parts {
    /// What they are parts of; none: its bytes are not known.
    whole: Option<Representation>,
    reader: MultipartReader,
    /// The requested parts that it has.
    wanted: Vec<Span>,
    come: Vec<Span>,
    /// Position in it of the next byte of a part.
    at: u64,
    seen: u64,
}

/// What parts are cut out of: an object, or what it is in a coding (RFC 9110, 14.1.2).
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

impl Payload {
    /// A whole object of so many bytes.
    pub fn whole(body: Body, bytes: u64) -> Self {
        Payload::Whole { body, check: BodyCheck::new(bytes) }
    }

    /// Something that is said about a response.
    pub fn remark() -> Self {
        Payload::Other(Box::new(Other::Remark { seen: 0 }))
    }

    /// One part of a representation; none: its bytes are not known, and its length alone is checked.
    pub fn part(whole: Option<Representation>, span: Span) -> Self {
        let check = BodyCheck::new(span.to - span.from);
        Payload::Other(Box::new(Other::Part { whole, span, check }))
    }

    pub fn parts(whole: Option<Representation>, boundary: &[u8], wanted: Vec<Span>) -> Self {
        let reader = MultipartReader::new(boundary);
        let parts = Parts { whole, reader, wanted, come: Vec::new(), at: 0, seen: 0 };
        Payload::Other(Box::new(Other::Parts(parts)))
    }

    /// A whole object in gzip.
    pub fn gzip(body: Body, bytes: u64) -> Self {
        let (reader, check) = (GzipReader::new(bytes), BodyCheck::new(bytes));
        Payload::Other(Box::new(Other::Coded { body, reader, check, seen: 0 }))
    }

    /// It is a whole object as it is: its length was checked when its head came.
    pub fn is_whole(&self) -> bool {
        matches!(self, Payload::Whole { .. })
    }

    /// Body bytes so far, as they came.
    #[inline]
    pub fn seen(&self) -> u64 {
        match self {
            Payload::Whole { check, .. } => check.seen(),
            Payload::Other(other) => match &**other {
                Other::Remark { seen } | Other::Coded { seen, .. } => *seen,
                Other::Part { check, .. } => check.seen(),
                Other::Parts(parts) => parts.seen,
            },
        }
    }

    /// Takes the next bytes.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], pool: &Pool) -> Result<(), Flaw> {
        match self {
            Payload::Whole { body, check } => {
                Ok(check.feed(bytes, |from, slice| body.matches(pool, from, slice))?)
            }
            Payload::Other(other) => other.feed(bytes, pool),
        }
    }

    /// The framing says that the body is complete.
    pub fn end(&self) -> Result<(), Flaw> {
        match self {
            Payload::Whole { check, .. } => Ok(check.end()?),
            Payload::Other(other) => other.end(),
        }
    }

    /// The connection ended, and the framing does not say that the body is complete.
    pub fn cut_off(&self) -> Flaw {
        match self {
            Payload::Whole { check, .. } => check.cut_off().into(),
            Payload::Other(other) => match &**other {
                Other::Part { check, .. } | Other::Coded { check, .. } => check.cut_off().into(),
                Other::Remark { seen } => Wrong::Truncated { seen: *seen, wanted: *seen + 1 }.into(),
                Other::Parts(parts) => {
                    let wanted = parts.wanted.iter().map(|span| span.to - span.from).sum();
                    Wrong::Truncated { seen: parts.seen, wanted }.into()
                }
            },
        }
    }
}

impl Other {
    fn feed(&mut self, bytes: &[u8], pool: &Pool) -> Result<(), Flaw> {
        match self {
            Other::Remark { seen } => {
                *seen += bytes.len() as u64;
                if *seen > LONGEST_REMARK {
                    Err(Wrong::Longer { wanted: LONGEST_REMARK }.into())
                } else {
                    Ok(())
                }
            }
            Other::Part { whole, span, check } => {
                let first = span.from;
                let compare = |from: u64, slice: &[u8]| {
                    whole.as_ref().map_or(Ok(()), |whole| whole.matches(pool, first + from, slice))
                };
                Ok(check.feed(bytes, compare)?)
            }
            Other::Parts(parts) => parts.feed(bytes, pool),
            Other::Coded { body, reader, check, seen } => {
                *seen += bytes.len() as u64;
                let mut wrong = None;
                let decoded = reader.push(bytes, |slice| {
                    let compared = check.feed(slice, |from, slice| body.matches(pool, from, slice));
                    wrong = wrong.take().or(compared.err());
                });
                match (wrong, decoded) {
                    (Some(wrong), _) => Err(wrong.into()),
                    (None, Err(GzipError::TooLong(wanted))) => Err(Wrong::Longer { wanted }.into()),
                    (None, Err(error)) => Err(Flaw::Coding(error)),
                    (None, Ok(())) => Ok(()),
                }
            }
        }
    }

    fn end(&self) -> Result<(), Flaw> {
        match self {
            Other::Remark { .. } => Ok(()),
            Other::Part { check, .. } => Ok(check.end()?),
            Other::Parts(parts) => parts.end(),
            Other::Coded { reader, check, .. } => {
                check.end()?;
                if reader.is_done() { Ok(()) } else { Err(Flaw::Coding(GzipError::Corrupt)) }
            }
        }
    }
}

impl Parts {
    fn feed(&mut self, bytes: &[u8], pool: &Pool) -> Result<(), Flaw> {
        self.seen += bytes.len() as u64;
        let mut rest = bytes;
        loop {
            let (part, used) = self.reader.next(rest).map_err(Flaw::Parts)?;
            rest = &rest[used..];
            match part {
                Part::Begin { span, total } => {
                    let is_other = |whole: &Representation| {
                        total.is_some_and(|total| total != whole.bytes()) || span.to > whole.bytes()
                    };
                    if self.whole.as_ref().is_some_and(is_other) {
                        return Err(Flaw::Parts(MultipartError::Range));
                    }
                    self.come.push(span);
                    self.at = span.from;
                }
                Part::Data(slice) => {
                    if let Some(whole) = &self.whole {
                        whole.matches(pool, self.at, slice).map_err(|at| Wrong::Bytes { at })?;
                    }
                    self.at += slice.len() as u64;
                }
                Part::NeedMore | Part::End => return Ok(()),
            }
        }
    }

    /// Parts may be merged and reordered on the way (RFC 9110, 15.3.7.2), but all that was requested must be there.
    fn end(&self) -> Result<(), Flaw> {
        if !self.reader.is_done() {
            return Err(Flaw::Parts(MultipartError::Boundary));
        }
        let is_there =
            |span: &Span| self.come.iter().any(|come| come.from <= span.from && span.to <= come.to);
        match self.wanted.iter().find(|span| !is_there(span)) {
            None => Ok(()),
            Some(span) => Err(Wrong::PartMissing { from: span.from, to: span.to }.into()),
        }
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
                (Payload::whole(body.clone(), SIZE), &sent[..]),
                (Payload::part(Some(Representation::Object(body.clone())), spans[1]), of(spans[1])),
                (Payload::part(Some(Representation::Coded(object.clone())), spans[1]), of(spans[1])),
                (Payload::parts(Some(Representation::Object(body.clone())), b"b", spans.to_vec()), &several),
                (Payload::parts(Some(Representation::Coded(object.clone())), b"b", spans.to_vec()), &several),
                (Payload::gzip(body.clone(), SIZE), &coded),
            ] {
                let found = payload.feed(bytes, &pool).and_then(|()| payload.end());
                assert_eq!(found, wrong.map_or(Ok(()), |at| Err(Wrong::Bytes { at }.into())), "{payload:?}");
            }
        }
    }
}
