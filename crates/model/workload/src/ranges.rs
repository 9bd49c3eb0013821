//! The part of an object that a `Range` request is for, and what must come back.

use crate::distribution::Sampler;
use crate::model::{Extent, RandomExtent, RangeSpec, Weighted};
use crate::picker::Picker;
use assay_base::random::Rng;

/// A request is never for more parts than this: a field line has its limits.
pub const MOST_PARTS: u64 = 64;

/// One part, as the request says it (RFC 9110, 14.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// `first-last`, both included.
    Between(u64, u64),
    /// `first-`.
    From(u64),
    /// `-length`: this number of bytes at the end.
    Last(u64),
}

impl ByteRange {
    /// First and last byte of it in an object of this size; none: it has none of them.
    pub fn resolve(&self, size_bytes: u64) -> Option<(u64, u64)> {
        let end = size_bytes.checked_sub(1)?;
        match *self {
            Self::Between(first, last) => (first <= end && first <= last).then_some((first, last.min(end))),
            Self::From(first) => (first <= end).then_some((first, end)),
            Self::Last(length) => (length > 0).then_some((size_bytes.saturating_sub(length), end)),
        }
    }
}

/// Parts that a `Range` request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges {
    parts: Vec<ByteRange>,
}

impl Ranges {
    /// The parts in the order of the request; at least one.
    pub fn parts(&self) -> &[ByteRange] {
        &self.parts
    }

    /// Appends the value of the `Range` field.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes=");
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let text = match part {
                ByteRange::Between(first, last) => format!("{first}-{last}"),
                ByteRange::From(first) => format!("{first}-"),
                ByteRange::Last(length) => format!("-{length}"),
            };
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// First and last byte of each part that an object of this size has, in the order of the request. One:
    /// 206 with just these bytes; several: 206 with `multipart/byteranges`; none at all: 416.
    pub fn resolve(&self, size_bytes: u64) -> Vec<(u64, u64)> {
        self.parts.iter().filter_map(|part| part.resolve(size_bytes)).collect()
    }
}

/// Ways to request parts, ready for draws.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeTable {
    specs: Vec<RangeSampler>,
    choice: Picker<usize>,
}

#[derive(Debug, Clone)]
enum RangeSampler {
    Span { first: Extent, last: Option<Extent> },
    Suffix(Extent),
    Multiple { first: Option<LengthSampler>, length: LengthSampler, count: Sampler },
}

/// A random length: bytes or a share.
#[derive(Debug, Clone)]
enum LengthSampler {
    Bytes(Sampler, f64),
    Share(Sampler, f64),
}

impl LengthSampler {
    fn new(extent: &RandomExtent) -> Self {
        match extent {
            RandomExtent::Bytes(bytes) => Self::Bytes(bytes.sampler(), bytes.mean()),
            RandomExtent::Share(share) => Self::Share(share.sampler(), share.mean()),
        }
    }

    fn draw(&self, size_bytes: u64, rng: &mut Rng) -> u64 {
        match self {
            Self::Bytes(bytes, _) => bytes.size(rng),
            Self::Share(share, _) => share_of(share.sample(rng), size_bytes),
        }
    }

    fn mean(&self, size_bytes: u64) -> f64 {
        match self {
            Self::Bytes(_, mean) => libm::fabs(*mean),
            Self::Share(_, mean) => libm::fabs(*mean) * size_bytes as f64,
        }
    }
}

fn share_of(share: f64, size_bytes: u64) -> u64 {
    (libm::fabs(share) * size_bytes as f64) as u64
}

fn resolve(extent: Extent, size_bytes: u64) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Share(share) => share_of(share, size_bytes),
    }
}

impl RangeTable {
    pub(crate) fn new(specs: &Weighted<RangeSpec>) -> Self {
        let spec = |spec: &RangeSpec| match spec {
            RangeSpec::Span { first, last } => RangeSampler::Span { first: *first, last: *last },
            RangeSpec::Suffix(length) => RangeSampler::Suffix(*length),
            RangeSpec::Multiple { first, length, count } => RangeSampler::Multiple {
                first: first.as_ref().map(LengthSampler::new),
                length: LengthSampler::new(length),
                count: count.sampler(),
            },
        };
        Self {
            specs: specs.items().iter().map(|(s, _)| spec(s)).collect(),
            choice: Picker::new(specs.items().iter().map(|i| i.1).enumerate()),
        }
    }

    /// Draws the parts for an object of this size; none if there are no specifications.
    pub(crate) fn draw(&self, size_bytes: u64, rng: &mut Rng) -> Option<Ranges> {
        let spec = &self.specs[self.choice.pick(rng.unit())?];
        let parts = match spec {
            RangeSampler::Span { first, last } => {
                let first = resolve(*first, size_bytes);
                vec![match last {
                    Some(last) => ByteRange::Between(first, resolve(*last, size_bytes).max(first)),
                    None => ByteRange::From(first),
                }]
            }
            RangeSampler::Suffix(length) => vec![ByteRange::Last(resolve(*length, size_bytes).max(1))],
            RangeSampler::Multiple { first, length, count } => {
                let first = match first {
                    Some(first) => first.draw(size_bytes, rng),
                    None => rng.below(size_bytes),
                };
                several(first, length, count.count(rng).clamp(1, MOST_PARTS), size_bytes, rng)
            }
        };
        Some(Ranges { parts })
    }
}

/// Parts from a place on, with gaps between them; those that the object has not are left out, but for the first.
fn several(first: u64, length: &LengthSampler, count: u64, size_bytes: u64, rng: &mut Rng) -> Vec<ByteRange> {
    let (mut parts, mut at) = (Vec::with_capacity(count as usize), first);
    for index in 0..count {
        if index > 0 && at >= size_bytes {
            break;
        }
        let last = at.saturating_add(length.draw(size_bytes, rng).max(1) - 1);
        parts.push(ByteRange::Between(at, last));
        let gap = (rng.exponential() * length.mean(size_bytes)) as u64;
        // Parts that touch would be one part to most servers.
        at = last.saturating_add(gap).saturating_add(2);
    }
    parts
}
