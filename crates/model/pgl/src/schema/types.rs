//! What the tables of types and fields are made of.

use super::topic::Topic;

/// The part of a type that is not an array or a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Bool,
    Int,
    Float,
    Time,
    Size,
    Rate,
    Bandwidth,
    Text,
    Address,
    Regex,
    Id,
    Popularity,
    Code,
    Record(RecordKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ty {
    pub base: Base,
    /// `_distr`.
    pub random: bool,
    /// Number of `[]`.
    pub arrays: u8,
}

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It does what it says.
    Full,
    /// It does what it says, except; or with a remark.
    Part(&'static str),
    /// It is accepted with a warning; what happens instead.
    None(&'static str),
    /// It belongs to something that Assay leaves out on purpose: one warning for all that does.
    LeftOut(Topic),
}

/// A field of a type of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: &'static str,
    pub ty: Ty,
    pub effect: Effect,
    /// Not in Web Polygraph.
    pub own: bool,
}

/// A type of objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordType {
    pub name: &'static str,
    /// What becomes of the objects themselves.
    pub effect: Effect,
    /// Its fields, those that it shares with others in tables of their own.
    pub groups: &'static [&'static [Field]],
}

/// The types of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RecordKind {
    Robot,
    Server,
    Proxy,
    Cache,
    Socket,
    Session,
    Acl,
    KerberosWrap,
    Content,
    Mime,
    MimeHeader,
    ObjLifeCycle,
    ClientBehavior,
    PopModel,
    DynamicName,
    Range,
    SingleRange,
    MultiRange,
    Phase,
    Goal,
    Rptmstat,
    StatsSample,
    StatSample,
    Bench,
    BenchSide,
    PolyMix3As,
    PolyMix4As,
    WebAxe4As,
    SrvLb4As,
    SpreadAs,
    AddrMap,
    NetPipe,
    DnsResolver,
    DnsCache,
    SslWrap,
    MembershipMap,
}

impl Ty {
    pub const fn one(base: Base) -> Ty {
        Ty { base, random: false, arrays: 0 }
    }

    pub const fn random(base: Base) -> Ty {
        Ty { base, random: true, arrays: 0 }
    }

    /// An array of it.
    pub const fn array(self) -> Ty {
        Ty { arrays: self.arrays + 1, ..self }
    }

    /// The object type, if it is a single object.
    pub fn record(self) -> Option<RecordKind> {
        match self {
            Ty { base: Base::Record(kind), random: false, arrays: 0 } => Some(kind),
            _ => None,
        }
    }
}

/// A field that does what it says.
pub(super) const fn full(name: &'static str, ty: Ty) -> Field {
    Field { name, ty, effect: Effect::Full, own: false }
}

/// The same, but Web Polygraph has no such field.
pub(super) const fn own(name: &'static str, ty: Ty) -> Field {
    Field { own: true, ..full(name, ty) }
}

/// A field that does what it says, except; or with a remark.
pub(super) const fn part(name: &'static str, ty: Ty, except: &'static str) -> Field {
    Field { name, ty, effect: Effect::Part(except), own: false }
}

/// A field that is accepted with a warning.
pub(super) const fn none(name: &'static str, ty: Ty, instead: &'static str) -> Field {
    Field { name, ty, effect: Effect::None(instead), own: false }
}

/// A field of something that is left out.
pub(super) const fn left_out(name: &'static str, ty: Ty, topic: Topic) -> Field {
    Field { name, ty, effect: Effect::LeftOut(topic), own: false }
}

// Short names for the tables.
pub(super) const BOOL: Ty = Ty::one(Base::Bool);
pub(super) const INT: Ty = Ty::one(Base::Int);
pub(super) const FLOAT: Ty = Ty::one(Base::Float);
pub(super) const TIME: Ty = Ty::one(Base::Time);
pub(super) const SIZE: Ty = Ty::one(Base::Size);
pub(super) const RATE: Ty = Ty::one(Base::Rate);
pub(super) const TEXT: Ty = Ty::one(Base::Text);
pub(super) const TEXTS: Ty = TEXT.array();
pub(super) const ADDRESS: Ty = Ty::one(Base::Address);
pub(super) const ADDRESSES: Ty = ADDRESS.array();
pub(super) const REGEX: Ty = Ty::one(Base::Regex);
pub(super) const INTS: Ty = Ty::random(Base::Int);
pub(super) const FLOATS: Ty = Ty::random(Base::Float);
pub(super) const TIMES: Ty = Ty::random(Base::Time);
pub(super) const SIZES: Ty = Ty::random(Base::Size);

pub(super) const fn object(kind: RecordKind) -> Ty {
    Ty::one(Base::Record(kind))
}
