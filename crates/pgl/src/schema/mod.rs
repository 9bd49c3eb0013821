//! The types and fields of the language, and which of them have an effect here.
//!
//! One table per group of types; `docs/reference/pgl.md` shows the same, and a test compares them.

mod agents;
mod content;
mod network;
mod run;
mod topic;

pub(crate) use topic::{REJECTED, Topic};

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

/// A type.
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

impl RecordKind {
    /// All of them, in the order of the reference.
    pub const ALL: [RecordKind; 36] = [
        RecordKind::Robot,
        RecordKind::Server,
        RecordKind::Proxy,
        RecordKind::Cache,
        RecordKind::Socket,
        RecordKind::Session,
        RecordKind::Acl,
        RecordKind::KerberosWrap,
        RecordKind::Content,
        RecordKind::Mime,
        RecordKind::MimeHeader,
        RecordKind::ObjLifeCycle,
        RecordKind::ClientBehavior,
        RecordKind::PopModel,
        RecordKind::DynamicName,
        RecordKind::Range,
        RecordKind::SingleRange,
        RecordKind::MultiRange,
        RecordKind::Phase,
        RecordKind::Goal,
        RecordKind::Rptmstat,
        RecordKind::StatsSample,
        RecordKind::StatSample,
        RecordKind::Bench,
        RecordKind::BenchSide,
        RecordKind::PolyMix3As,
        RecordKind::PolyMix4As,
        RecordKind::WebAxe4As,
        RecordKind::SrvLb4As,
        RecordKind::SpreadAs,
        RecordKind::AddrMap,
        RecordKind::NetPipe,
        RecordKind::DnsResolver,
        RecordKind::DnsCache,
        RecordKind::SslWrap,
        RecordKind::MembershipMap,
    ];

    /// Its table.
    pub fn definition(self) -> &'static RecordType {
        match self {
            RecordKind::Robot => &agents::ROBOT,
            RecordKind::Server => &agents::SERVER,
            RecordKind::Proxy => &agents::PROXY,
            RecordKind::Cache => &agents::CACHE,
            RecordKind::Socket => &agents::SOCKET,
            RecordKind::Session => &agents::SESSION,
            RecordKind::Acl => &agents::ACL,
            RecordKind::KerberosWrap => &agents::KERBEROS_WRAP,
            RecordKind::Content => &content::CONTENT,
            RecordKind::Mime => &content::MIME,
            RecordKind::MimeHeader => &content::MIME_HEADER,
            RecordKind::ObjLifeCycle => &content::OBJ_LIFE_CYCLE,
            RecordKind::ClientBehavior => &content::CLIENT_BEHAVIOR,
            RecordKind::PopModel => &content::POP_MODEL,
            RecordKind::DynamicName => &content::DYNAMIC_NAME,
            RecordKind::Range => &content::RANGE,
            RecordKind::SingleRange => &content::SINGLE_RANGE,
            RecordKind::MultiRange => &content::MULTI_RANGE,
            RecordKind::Phase => &run::PHASE,
            RecordKind::Goal => &run::GOAL,
            RecordKind::Rptmstat => &run::RPTMSTAT,
            RecordKind::StatsSample => &run::STATS_SAMPLE,
            RecordKind::StatSample => &run::STAT_SAMPLE,
            RecordKind::Bench => &run::BENCH,
            RecordKind::BenchSide => &run::BENCH_SIDE,
            RecordKind::PolyMix3As => &run::POLYMIX_3_AS,
            RecordKind::PolyMix4As => &run::POLYMIX_4_AS,
            RecordKind::WebAxe4As => &run::WEBAXE_4_AS,
            RecordKind::SrvLb4As => &run::SRVLB_4_AS,
            RecordKind::SpreadAs => &run::SPREAD_AS,
            RecordKind::AddrMap => &network::ADDR_MAP,
            RecordKind::NetPipe => &network::NET_PIPE,
            RecordKind::DnsResolver => &network::DNS_RESOLVER,
            RecordKind::DnsCache => &network::DNS_CACHE,
            RecordKind::SslWrap => &network::SSL_WRAP,
            RecordKind::MembershipMap => &network::MEMBERSHIP_MAP,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// True for what does nothing unless it is used.
    pub fn is_agent(self) -> bool {
        matches!(self, RecordKind::Robot | RecordKind::Server)
    }

    /// Its fields in order.
    pub fn fields(self) -> impl Iterator<Item = &'static Field> {
        self.definition().groups.iter().copied().flatten()
    }

    /// The index and definition of a field.
    pub fn field(self, name: &str) -> Option<(usize, &'static Field)> {
        self.fields().enumerate().find(|(_, field)| field.name == name)
    }
}

impl Base {
    const SIMPLE: [Base; 13] = [
        Base::Bool,
        Base::Int,
        Base::Float,
        Base::Time,
        Base::Size,
        Base::Rate,
        Base::Bandwidth,
        Base::Text,
        Base::Address,
        Base::Regex,
        Base::Id,
        Base::Popularity,
        Base::Code,
    ];

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Base::Bool => "bool",
            Base::Int => "int",
            Base::Float => "float",
            Base::Time => "time",
            Base::Size => "size",
            Base::Rate => "rate",
            Base::Bandwidth => "bwidth",
            Base::Text => "string",
            Base::Address => "addr",
            Base::Regex => "re",
            Base::Id => "uniq_id",
            Base::Popularity => "pop_distr",
            Base::Code => "Code",
            Base::Record(kind) => kind.name(),
        }
    }

    /// The types that can be declared.
    pub fn all() -> impl Iterator<Item = Base> {
        Base::SIMPLE.into_iter().chain(RecordKind::ALL.into_iter().map(Base::Record))
    }
}

impl Ty {
    /// A single value.
    pub const fn one(base: Base) -> Ty {
        Ty { base, random: false, arrays: 0 }
    }

    /// A distribution.
    pub const fn random(base: Base) -> Ty {
        Ty { base, random: true, arrays: 0 }
    }

    /// An array of it.
    pub const fn array(self) -> Ty {
        Ty { arrays: self.arrays + 1, ..self }
    }

    /// The type that a declaration names, without its brackets.
    pub fn named(name: &str) -> Option<Ty> {
        let find = |name: &str| Base::all().find(|base| base.name() == name);
        match find(name) {
            Some(base) => Some(Ty::one(base)),
            None => name.strip_suffix("_distr").and_then(find).map(Ty::random),
        }
    }

    /// The object type, if it is a single object.
    pub fn record(self) -> Option<RecordKind> {
        match self {
            Ty { base: Base::Record(kind), random: false, arrays: 0 } => Some(kind),
            _ => None,
        }
    }

    /// As written.
    pub fn name(self) -> String {
        let random = if self.random { "_distr" } else { "" };
        format!("{}{random}{}", self.base.name(), "[]".repeat(usize::from(self.arrays)))
    }
}

/// A field that does what it says.
const fn full(name: &'static str, ty: Ty) -> Field {
    Field { name, ty, effect: Effect::Full, own: false }
}

/// The same, but Web Polygraph has no such field.
const fn own(name: &'static str, ty: Ty) -> Field {
    Field { own: true, ..full(name, ty) }
}

/// A field that does what it says, except; or with a remark.
const fn part(name: &'static str, ty: Ty, except: &'static str) -> Field {
    Field { name, ty, effect: Effect::Part(except), own: false }
}

/// A field that is accepted with a warning.
const fn none(name: &'static str, ty: Ty, instead: &'static str) -> Field {
    Field { name, ty, effect: Effect::None(instead), own: false }
}

/// A field of something that is left out.
const fn left_out(name: &'static str, ty: Ty, topic: Topic) -> Field {
    Field { name, ty, effect: Effect::LeftOut(topic), own: false }
}

// Short names for the tables.
const BOOL: Ty = Ty::one(Base::Bool);
const INT: Ty = Ty::one(Base::Int);
const FLOAT: Ty = Ty::one(Base::Float);
const TIME: Ty = Ty::one(Base::Time);
const SIZE: Ty = Ty::one(Base::Size);
const RATE: Ty = Ty::one(Base::Rate);
const TEXT: Ty = Ty::one(Base::Text);
const TEXTS: Ty = TEXT.array();
const ADDRESS: Ty = Ty::one(Base::Address);
const ADDRESSES: Ty = ADDRESS.array();
const REGEX: Ty = Ty::one(Base::Regex);
const INTS: Ty = Ty::random(Base::Int);
const FLOATS: Ty = Ty::random(Base::Float);
const TIMES: Ty = Ty::random(Base::Time);
const SIZES: Ty = Ty::random(Base::Size);

/// A single object.
const fn object(kind: RecordKind) -> Ty {
    Ty::one(Base::Record(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_and_fields_are_unique() {
        let mut types: Vec<&str> = Base::all().map(Base::name).collect();
        let count = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), count);
        for kind in RecordKind::ALL {
            let mut fields: Vec<&str> = kind.fields().map(|f| f.name).collect();
            let count = fields.len();
            fields.sort_unstable();
            fields.dedup();
            assert_eq!(fields.len(), count, "{}", kind.name());
        }
    }

    #[test]
    fn no_field_that_exists_is_said_to_be_rejected() {
        for (kind, field, why) in REJECTED {
            assert!(kind.field(field).is_none() && !why.is_empty(), "{}.{field}", kind.name());
        }
    }

    #[test]
    fn a_type_name_may_end_in_distr() {
        assert_eq!(Ty::named("time_distr"), Some(Ty::random(Base::Time)));
        assert_eq!(Ty::named("pop_distr"), Some(Ty::one(Base::Popularity)));
        assert_eq!(Ty::named("Content"), Some(object(RecordKind::Content)));
        assert_eq!(Ty::named("content"), None);
        assert_eq!(Ty::named("Content").unwrap().array().name(), "Content[]");
    }
}
