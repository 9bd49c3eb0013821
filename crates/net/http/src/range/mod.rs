//! Byte ranges: those that a request requests, and those that a response holds.
//!
//! RFC 9110, chapter 14, for the unit `bytes`. A request names [`ByteRange`]s; against the length of what there is they
//! become [`Span`]s, or nothing (416). A response with one span says so in `Content-Range`; one with several is written by
//! [`MultipartWriter`] and taken apart by [`MultipartReader`].

mod multipart;

pub use self::multipart::{MultipartError, MultipartReader, MultipartWriter, Part, boundary};

use thiserror::Error;

use crate::field::{decimal, list, trim, write_decimal};

/// Upper bound on the ranges honoured in one request. With more, a small request could cause a large response.
pub const MAX_RANGES: usize = 200;

/// One member of a `Range` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// `first-last`, both included, or `first-`.
    From {
        /// Position of the first byte.
        first: u64,
        /// Last byte; none: to the end.
        last: Option<u64>,
    },
    /// `-length`: the last so many bytes.
    Suffix(u64),
}

/// Bytes `from` (included) to `to` (not included) of something; never empty when it came out of this room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// Position of the first byte.
    pub from: u64,
    /// The byte after the last.
    pub to: u64,
}

impl Span {
    pub fn covers(&self, other: &Span) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    pub fn overlaps(&self, other: &Span) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// Reason to ignore a `Range` field (RFC 9110, 14.2: it does not make a request wrong).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RangeError {
    /// A unit other than `bytes`.
    #[error("the unit of Range is not `bytes`")]
    Unit,
    /// Not a list of ranges, or one that ends before it begins.
    #[error("Range is no list of byte ranges")]
    Syntax,
    /// More ranges than [`MAX_RANGES`].
    #[error("there are more than {MAX_RANGES} ranges")]
    TooMany,
}

/// A parsed `Content-Range` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes first-last/total`, or `/*` when the total is not known.
    Part {
        /// Bytes of the part.
        span: Span,
        total: Option<u64>,
    },
    /// `bytes */total`: the ranges requested begin beyond the end (416).
    Unsatisfied {
        /// Length of the whole representation.
        total: u64,
    },
}

impl ByteRange {
    /// The bytes that it means of `total`; none when there are none.
    pub fn span(&self, total: u64) -> Option<Span> {
        let (from, to) = match *self {
            ByteRange::From { first, last } => {
                (first, last.map_or(total, |last| last.saturating_add(1).min(total)))
            }
            ByteRange::Suffix(length) => (total.saturating_sub(length), total),
        };
        (from < to).then_some(Span { from, to })
    }
}

impl Span {
    pub fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// True when it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.to <= self.from
    }
}

/// Reads the value of a `Range` field.
pub fn parse_range(value: &[u8]) -> Result<Vec<ByteRange>, RangeError> {
    let equals = memchr::memchr(b'=', value).ok_or(RangeError::Syntax)?;
    if !trim(&value[..equals]).eq_ignore_ascii_case(b"bytes") {
        return Err(RangeError::Unit);
    }
    let mut ranges = Vec::new();
    for member in list(&value[equals + 1..]) {
        if ranges.len() == MAX_RANGES {
            return Err(RangeError::TooMany);
        }
        ranges.push(byte_range(member).ok_or(RangeError::Syntax)?);
    }
    if ranges.is_empty() { Err(RangeError::Syntax) } else { Ok(ranges) }
}

fn byte_range(member: &[u8]) -> Option<ByteRange> {
    let dash = memchr::memchr(b'-', member)?;
    let (first, last) = (trim(&member[..dash]), trim(&member[dash + 1..]));
    match (first.is_empty(), last.is_empty()) {
        (true, false) => Some(ByteRange::Suffix(decimal(last)?)),
        (false, true) => Some(ByteRange::From { first: decimal(first)?, last: None }),
        (false, false) => {
            let (first, last) = (decimal(first)?, decimal(last)?);
            (first <= last).then_some(ByteRange::From { first, last: Some(last) })
        }
        (true, true) => None,
    }
}

/// Appends the value of a `Range` field.
pub fn write_range(ranges: &[ByteRange], out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes=");
    for (at, range) in ranges.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match *range {
            ByteRange::From { first, last } => {
                write_decimal(out, first);
                out.push(b'-');
                if let Some(last) = last {
                    write_decimal(out, last);
                }
            }
            ByteRange::Suffix(length) => {
                out.push(b'-');
                write_decimal(out, length);
            }
        }
    }
}

/// The spans that these ranges mean of `total` bytes, in the order requested; those that hold nothing are left out.
/// Empty: none can be satisfied (416).
pub fn satisfy(ranges: &[ByteRange], total: u64) -> Vec<Span> {
    ranges.iter().filter_map(|range| range.span(total)).collect()
}

impl ContentRange {
    /// Reads the value of a `Content-Range` field; none when it is not one of bytes.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let value = trim(value);
        let (unit, rest) = value.split_at_checked(5)?;
        if !unit.eq_ignore_ascii_case(b"bytes") || !rest.starts_with(b" ") {
            return None;
        }
        let rest = trim(rest);
        let slash = memchr::memchr(b'/', rest)?;
        let (part, total) = (&rest[..slash], &rest[slash + 1..]);
        if part == b"*" {
            return Some(ContentRange::Unsatisfied { total: decimal(total)? });
        }
        let total = if total == b"*" { None } else { Some(decimal(total)?) };
        let dash = memchr::memchr(b'-', part)?;
        let (first, last) = (decimal(&part[..dash])?, decimal(&part[dash + 1..])?);
        let to = last.checked_add(1)?;
        let fits = first <= last && total.is_none_or(|total| to <= total);
        fits.then_some(ContentRange::Part { span: Span { from: first, to }, total })
    }

    /// Appends the value of the field. A part must not be empty.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        match *self {
            ContentRange::Part { span, total } => {
                write_decimal(out, span.from);
                out.push(b'-');
                write_decimal(out, span.to.saturating_sub(1));
                out.push(b'/');
                match total {
                    Some(total) => write_decimal(out, total),
                    None => out.push(b'*'),
                }
            }
            ContentRange::Unsatisfied { total } => {
                out.extend_from_slice(b"*/");
                write_decimal(out, total);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_range() -> impl Strategy<Value = ByteRange> {
        prop_oneof![
            (any::<u64>(), any::<Option<u64>>()).prop_map(|(a, b)| match b {
                Some(b) => ByteRange::From { first: a.min(b), last: Some(a.max(b)) },
                None => ByteRange::From { first: a, last: None },
            }),
            any::<u64>().prop_map(ByteRange::Suffix),
        ]
    }

    #[test]
    fn single_open_and_suffix_ranges_are_read() {
        let one = |text: &str| parse_range(text.as_bytes()).map(|ranges| ranges[0]);
        assert_eq!(one("bytes=0-499"), Ok(ByteRange::From { first: 0, last: Some(499) }));
        assert_eq!(one("Bytes = 5 - "), Ok(ByteRange::From { first: 5, last: None }));
        assert_eq!(one("bytes=-500"), Ok(ByteRange::Suffix(500)));
        let several = parse_range(b"bytes=0-0, ,-1,7-").unwrap();
        assert_eq!(several.len(), 3);
    }

    #[test]
    fn what_is_no_range_is_ignored_by_name() {
        assert_eq!(parse_range(b"lines=1-2"), Err(RangeError::Unit));
        for bad in
            ["bytes", "bytes=", "bytes=-", "bytes=2-1", "bytes=a-b", "bytes=1", "bytes=1-2-3", "bytes=+1-2"]
        {
            assert_eq!(parse_range(bad.as_bytes()), Err(RangeError::Syntax), "{bad}");
        }
        let many = format!("bytes={}", "0-0,".repeat(MAX_RANGES + 1));
        assert_eq!(parse_range(many.as_bytes()), Err(RangeError::TooMany));
    }

    #[test]
    fn ranges_become_spans_of_what_there_is() {
        let span = |from, to| Some(Span { from, to });
        let of = |text: &str, total| parse_range(text.as_bytes()).unwrap()[0].span(total);
        assert_eq!(of("bytes=0-0", 10), span(0, 1));
        assert_eq!(of("bytes=5-99", 10), span(5, 10));
        assert_eq!(of("bytes=9-", 10), span(9, 10));
        assert_eq!(of("bytes=10-", 10), None);
        assert_eq!(of("bytes=-3", 10), span(7, 10));
        assert_eq!(of("bytes=-99", 10), span(0, 10));
        assert_eq!(of("bytes=-0", 10), None);
        assert_eq!(of("bytes=-5", 0), None);
        assert_eq!(of("bytes=0-18446744073709551615", 10), span(0, 10));
    }

    #[test]
    fn content_range_says_what_a_response_holds() {
        let part = ContentRange::Part { span: Span { from: 0, to: 500 }, total: Some(1234) };
        assert_eq!(ContentRange::parse(b"bytes 0-499/1234"), Some(part));
        assert_eq!(ContentRange::parse(b"BYTES */1234"), Some(ContentRange::Unsatisfied { total: 1234 }));
        for bad in [
            "",
            "bytes",
            "bytes 0-499",
            "bytes 5-4/9",
            "bytes 0-9/9",
            "bytes */*",
            "lines 0-1/2",
            "bytes0-1/2",
            "bytes 0-18446744073709551615/*",
            "bytes -1/2",
        ] {
            assert_eq!(ContentRange::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn ranges_that_are_written_are_read_back(ranges in prop::collection::vec(any_range(), 1..9)) {
            let mut out = Vec::new();
            write_range(&ranges, &mut out);
            prop_assert_eq!(parse_range(&out), Ok(ranges));
        }

        #[test]
        fn spans_lie_within_what_there_is(ranges in prop::collection::vec(any_range(), 1..9), total: u64) {
            for span in satisfy(&ranges, total) {
                prop_assert!(!span.is_empty() && span.to <= total);
                let part = ContentRange::Part { span, total: Some(total) };
                let mut out = Vec::new();
                part.write(&mut out);
                prop_assert_eq!(ContentRange::parse(&out), Some(part));
            }
        }

        #[test]
        fn any_bytes_give_a_result(bytes in prop::collection::vec(prop::sample::select(&b"bytes=- ,/*0189x"[..]), 0..40)) {
            let _ = parse_range(&bytes);
            let _ = ContentRange::parse(&bytes);
        }
    }
}
