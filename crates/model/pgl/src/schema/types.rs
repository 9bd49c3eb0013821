//! Elements of the tables of types and fields.

use super::omitted::OmittedFeature;

/// A type without `_distr` and brackets.
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

/// Support of a type or field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    Full,
    /// Supported with an exception or a remark.
    Partial(&'static str),
    /// Accepted with a warning, which says what happens instead.
    Ignored(&'static str),
    /// Part of an omitted feature.
    OutOfScope(OmittedFeature),
}

/// A field of a type of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: &'static str,
    pub ty: Ty,
    pub support: Support,
    /// Not a field of Web Polygraph.
    pub assay_only: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordType {
    pub name: &'static str,
    pub support: Support,
    /// Tables of fields; fields that types share have tables of their own.
    pub groups: &'static [&'static [Field]],
}

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

    pub const fn array(self) -> Ty {
        Ty { arrays: self.arrays + 1, ..self }
    }

    /// The object type; none for other types, arrays included.
    pub fn record(self) -> Option<RecordKind> {
        match self {
            Ty { base: Base::Record(kind), random: false, arrays: 0 } => Some(kind),
            _ => None,
        }
    }
}

pub(super) const fn full(name: &'static str, ty: Ty) -> Field {
    Field { name, ty, support: Support::Full, assay_only: false }
}

/// A supported field that Web Polygraph does not have.
pub(super) const fn assay_only(name: &'static str, ty: Ty) -> Field {
    Field { assay_only: true, ..full(name, ty) }
}

pub(super) const fn partial(name: &'static str, ty: Ty, remark: &'static str) -> Field {
    Field { name, ty, support: Support::Partial(remark), assay_only: false }
}

pub(super) const fn ignored(name: &'static str, ty: Ty, instead: &'static str) -> Field {
    Field { name, ty, support: Support::Ignored(instead), assay_only: false }
}

pub(super) const fn out_of_scope(name: &'static str, ty: Ty, feature: OmittedFeature) -> Field {
    Field { name, ty, support: Support::OutOfScope(feature), assay_only: false }
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
