//! What the lines of a format say. A figure that needs more is not known.

use super::field::Field;

/// A thing that a line may say of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fact {
    /// Time of the request.
    Time,
    /// Time with a zone, or counted since 1970.
    Zone,
    /// Duration of the request.
    Duration,
    /// Cache outcome.
    Outcome,
    /// The same, as the name of the server that HAProxy chose.
    Server,
    /// Status of the response.
    Status,
    /// Size of the response.
    Bytes,
    /// Method of the request.
    Method,
    /// URL of the request, or its path.
    Url,
    /// `User-Agent` of the request.
    Agent,
    /// `Referer` of the request.
    Referrer,
    /// `X-Assay` of the request.
    Xact,
    /// `Cache-Control` or `Expires` of the response.
    Lifetime,
    /// `Content-Encoding` of the response.
    Coding,
}

/// A set of facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FactSet(u16);

impl FactSet {
    pub(super) fn of_fields<'f>(fields: impl Iterator<Item = &'f Field>) -> Self {
        let all = fields.flat_map(facts);
        all.fold(Self::default(), |set, fact| Self(set.0 | 1 << *fact as u16))
    }

    /// True when it says this.
    pub fn contains(self, fact: Fact) -> bool {
        self.0 & 1 << fact as u16 != 0
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

fn facts(field: &Field) -> &'static [Fact] {
    match field {
        Field::EpochSeconds | Field::EpochMillis | Field::EpochMicros => &[Fact::Time, Fact::Zone],
        Field::AnyTime(..) => &[Fact::Time, Fact::Zone],
        Field::Time(pattern) if pattern.knows_zone() => &[Fact::Time, Fact::Zone],
        Field::Time(_) => &[Fact::Time],
        Field::Duration(_) | Field::DurationPart(_) | Field::EndTime(_) => &[Fact::Duration],
        Field::Outcome(_) | Field::CacheHit | Field::HitFlag | Field::CacheLookup => &[Fact::Outcome],
        Field::Server => &[Fact::Outcome, Fact::Server],
        Field::Status => &[Fact::Status],
        Field::Bytes | Field::LineLayout => &[Fact::Bytes],
        Field::Method => &[Fact::Method],
        Field::Url | Field::Path | Field::RootlessPath | Field::HostPath => &[Fact::Url],
        Field::RequestLine => &[Fact::Method, Fact::Url],
        Field::Agent => &[Fact::Agent],
        Field::Referrer => &[Fact::Referrer],
        Field::Xact => &[Fact::Xact],
        Field::CacheControl | Field::Expires => &[Fact::Lifetime],
        Field::Coding => &[Fact::Coding],
        _ => &[],
    }
}
