//! The types and fields of the language, and which of them have an effect here.
//!
//! One table per group of types; `docs/reference/pgl.md` shows the same, and a test compares them.

mod agents;
mod calls;
mod content;
mod docs;
mod network;
mod omitted;
mod run;
mod types;

pub(crate) use calls::call_doc;
pub(crate) use docs::{field_doc, keywords, type_doc};
pub(crate) use omitted::{OmittedFeature, REMOVED_FIELDS};
pub(crate) use types::{Base, Field, RecordKind, RecordType, Support, Ty};

impl RecordKind {
    /// All types, in the order of the reference page.
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

    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// True for a type whose objects act only if they are given to `use()`.
    pub fn is_agent(self) -> bool {
        matches!(self, RecordKind::Robot | RecordKind::Server)
    }

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
    /// The type that a declaration names, without its brackets.
    pub fn named(name: &str) -> Option<Ty> {
        let find = |name: &str| Base::all().find(|base| base.name() == name);
        match find(name) {
            Some(base) => Some(Ty::one(base)),
            None => name.strip_suffix("_distr").and_then(find).map(Ty::random),
        }
    }

    pub fn name(self) -> String {
        let random = if self.random { "_distr" } else { "" };
        format!("{}{random}{}", self.base.name(), "[]".repeat(usize::from(self.arrays)))
    }
}

#[cfg(test)]
mod tests {
    use super::types::object;
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
        for (kind, field, why) in REMOVED_FIELDS {
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
