//! Templates of a description: their variables, and how they are filled in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Leg, SettingValue};
use crate::mode::Mode;
use crate::mode::{PeerProtocol, PeerRelation};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use strum::VariantArray;

/// One origin as templates see it.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateOrigin {
    /// `o0`, `o1`, …: a word that any configuration language takes as a name.
    pub name: String,
    /// `host:port` as the workload says it, and as `Host` of requests says it.
    pub authority: String,
    /// The host of that.
    pub host: String,
    /// A regular expression for the `Host` of its requests, with a default port or without.
    pub pattern: String,
    pub ip: String,
    pub port: u16,
}

/// Another cache as templates see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplatePeer {
    /// Name.
    pub name: String,
    pub relation: PeerRelation,
    /// The protocol that is used with it.
    pub protocol: PeerProtocol,
    pub ip: String,
    /// Port on which it speaks HTTP.
    pub port: u16,
}

/// The caches that a proxy works together with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeeringVariables {
    /// Own name.
    pub name: String,
    /// The caches that it queries.
    pub peers: Vec<TemplatePeer>,
    /// Addresses of the caches that query it.
    pub clients: Vec<String>,
    /// The protocols that other caches use with it.
    pub serves: Vec<PeerProtocol>,
    /// Whether objects of siblings are not stored here too.
    pub proxy_only: bool,
    /// Whether it sends no requests to origins itself.
    pub never_direct: bool,
}

/// Decisions of a run about a proxy: the values of the templates' variables.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateVariables {
    pub listen: SocketAddr,
    /// Private work directory.
    pub work: PathBuf,
    /// The origins, in the workload's order.
    pub origins: Vec<TemplateOrigin>,
    /// Memory for its cache.
    pub memory_bytes: u64,
    /// Disk for its cache.
    pub disk_bytes: u64,
    /// Mode in which it is addressed.
    pub mode: Mode,
    /// Robots speak HTTP/2 to it.
    pub http2: bool,
    /// Origins speak HTTP/2 to it.
    pub origin_http2: bool,
    /// The lab runs as root.
    pub is_root: bool,
    /// User that owns the work directory then.
    pub user: String,
    /// Processors that it may use.
    pub cpus: u32,
    /// Descriptors that a process may have.
    pub descriptors: u64,
    /// Connections that robots may open at once.
    pub connections: u64,
    /// A name that no other instance on this machine has; letters and digits.
    pub instance: String,
    /// The caches that it works together with; none: it stands alone.
    pub peering: Option<PeeringVariables>,
    /// The legs on which it speaks TLS.
    pub tls: Vec<Leg>,
    /// Values of the description's settings.
    pub chosen: BTreeMap<String, SettingValue>,
}

/// Files of TLS in the work directory: the certificate of the proxy, its key, both in one file, and the authority that signed it
/// and the certificates of origins.
pub const TLS_FILES: [&str; 4] = ["tls/target.pem", "tls/target.key", "tls/target-both.pem", "tls/ca.pem"];

/// A name that the certificate of origins has beside their own, for proxies that cannot verify those: they connect to an address.
pub const ORIGIN_NAME: &str = "origins.assay.test";

impl TemplateOrigin {
    /// The `index`-th origin of a workload.
    pub fn new(index: usize, authority: &str, address: SocketAddr) -> Self {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        Self {
            name: format!("o{index}"),
            authority: authority.to_owned(),
            host: host.to_owned(),
            pattern: pattern(authority),
            ip: address.ip().to_string(),
            port: address.port(),
        }
    }
}

/// Proxies may drop a default port from `Host`; a pattern takes both spellings.
fn pattern(authority: &str) -> String {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, "80")) => (host, "(:80)?".to_owned()),
        Some((host, port)) if !port.contains(']') => (host, format!(":{port}")),
        _ => (authority, "(:80)?".to_owned()),
    };
    let special = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let escaped: String =
        host.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect();
    format!("^{escaped}{port}$")
}

/// Environment in which templates are parsed.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // A line that holds only a block leaves no line behind.
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    environment.set_syntax(syntax.build().expect("no delimiter is changed"));
    environment
}

impl TemplateVariables {
    /// Fills in one template. An unknown variable is an error.
    pub fn fill(&self, template: &str) -> Result<String, minijinja::Error> {
        environment().render_str(template, self.variables())
    }

    /// Fills in program and arguments; those that come out empty are left out.
    pub fn fill_command(&self, command: &[String]) -> Result<Vec<String>, minijinja::Error> {
        let filled: Result<Vec<_>, _> = command.iter().map(|argument| self.fill(argument)).collect();
        Ok(filled?.into_iter().filter(|argument| !argument.is_empty()).collect())
    }

    /// The variables of templates, with their values.
    pub(super) fn variables(&self) -> Value {
        let origins: Vec<Value> = self
            .origins
            .iter()
            .map(|o| {
                context! {
                    name => &o.name, authority => &o.authority, host => &o.host, pattern => &o.pattern, ip => &o.ip, port => o.port
                }
            })
            .collect();
        // A template would take the `-` of a name for a minus.
        let chosen = self.chosen.iter().map(|(name, chosen)| (name.replace('-', "_"), value(chosen)));
        let chosen: BTreeMap<String, Value> = chosen.collect();
        let size = |bytes: u64| context! { bytes => bytes, kib => bytes >> 10, mib => bytes >> 20 };
        context! {
            listen => context! { ip => self.listen.ip().to_string(), port => self.listen.port() },
            work => self.work.to_string_lossy(),
            origins => origins,
            memory => size(self.memory_bytes),
            disk => size(self.disk_bytes),
            mode => self.mode.name(),
            http2 => self.http2,
            origin_http2 => self.origin_http2,
            is_root => self.is_root,
            user => &self.user,
            cpus => self.cpus,
            descriptors => self.descriptors,
            connections => self.connections,
            instance => &self.instance,
            setting => Value::from(chosen),
            tls => self.tls(),
            ..peering(self.peering.as_ref())
        }
    }

    fn tls(&self) -> Value {
        let file = |at: usize| self.work.join(TLS_FILES[at]).to_string_lossy().into_owned();
        context! {
            robots => self.tls.contains(&Leg::Robots),
            origins => self.tls.contains(&Leg::Origins),
            certificate => file(0),
            key => file(1),
            both => file(2),
            ca => file(3),
            origin_name => ORIGIN_NAME,
        }
    }

    /// Values that any description must be able to work with; used to try its templates when it is read.
    pub(crate) fn sample(mode: Mode, is_root: bool, disk_bytes: u64) -> Self {
        let origin = |index: u16| {
            let address = SocketAddr::from(([127, 0, 0, 1], 9000 + index));
            TemplateOrigin::new(index.into(), &format!("origin{index}.example:80"), address)
        };
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            work: PathBuf::from("/tmp/work"),
            origins: vec![origin(0), origin(1)],
            memory_bytes: 1 << 30,
            disk_bytes,
            mode,
            http2: false,
            origin_http2: false,
            is_root,
            user: "nobody".into(),
            cpus: 1,
            descriptors: 20_000,
            connections: 1000,
            instance: "assay1".into(),
            peering: None,
            tls: Vec::new(),
            chosen: BTreeMap::new(),
        }
    }
}

impl PeeringVariables {
    /// Caches that any description with such a hierarchy must be able to work with.
    pub(crate) fn sample(hierarchy: &super::Hierarchy) -> Self {
        let peer = |number: usize, relation: PeerRelation, protocol: PeerProtocol| TemplatePeer {
            name: format!("{}{number}", relation.name()),
            relation,
            protocol,
            ip: format!("127.0.0.{}", 2 + number),
            port: 8080,
        };
        let siblings = hierarchy.siblings.iter().map(|protocol| (PeerRelation::Sibling, *protocol));
        let parents = hierarchy.parents.iter().map(|protocol| (PeerRelation::Parent, *protocol));
        let only = hierarchy.one_parent.then_some((PeerRelation::Parent, PeerProtocol::Hash));
        let peers = siblings.chain(parents).chain(only).enumerate();
        Self {
            name: "a".into(),
            peers: peers.map(|(number, (relation, protocol))| peer(number, relation, protocol)).collect(),
            clients: vec!["127.0.0.1".into()],
            serves: hierarchy.serves.clone(),
            proxy_only: true,
            never_direct: hierarchy.one_parent || !hierarchy.parents.is_empty(),
        }
    }
}

/// Port on which caches receive ICP queries.
pub const ICP_PORT: u16 = 3130;
/// Port on which caches receive HTCP queries.
const HTCP_PORT: u16 = 4827;

/// Variables of templates about other caches.
fn peering(peering: Option<&PeeringVariables>) -> Value {
    let peers = |relation: PeerRelation| -> Vec<Value> {
        let all = peering.iter().flat_map(|peering| &peering.peers).filter(|peer| peer.relation == relation);
        let value = |peer: &TemplatePeer| {
            context! { name => &peer.name, protocol => peer.protocol.name(), ip => &peer.ip, port => peer.port }
        };
        all.map(value).collect()
    };
    let serves: Vec<&str> =
        peering.iter().flat_map(|peering| &peering.serves).map(|protocol| protocol.name()).collect();
    let queries = |protocol: PeerProtocol| {
        peering.is_some_and(|peering| peering.peers.iter().any(|peer| peer.protocol == protocol))
    };
    let queries: Vec<&str> = PeerProtocol::VARIANTS
        .iter()
        .copied()
        .filter(|protocol| queries(*protocol))
        .map(PeerProtocol::name)
        .collect();
    let clients = peering.map(|peering| peering.clients.clone()).unwrap_or_default();
    context! {
        cooperates => peering.is_some(),
        name => peering.map_or("assay", |peering| &peering.name),
        siblings => peers(PeerRelation::Sibling),
        parents => peers(PeerRelation::Parent),
        clients => &clients,
        queries => &queries,
        serves => &serves,
        proxy_only => peering.is_some_and(|peering| peering.proxy_only),
        never_direct => peering.is_some_and(|peering| peering.never_direct),
        icp_port => ICP_PORT,
        htcp_port => HTCP_PORT,
    }
}

fn value(chosen: &SettingValue) -> Value {
    match chosen {
        SettingValue::Word(word) => Value::from(word.as_str()),
        SettingValue::Number(number, _) => Value::from(*number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_unknown_ones_are_an_error() {
        let settings = TemplateVariables::sample(Mode::Reverse, true, 1 << 30);
        let text = settings.fill("{{ listen.ip }}:{{ listen.port }} {{ memory.mib }}m\n").unwrap();
        assert_eq!(text, "127.0.0.1:8080 1024m\n");
        assert!(settings.fill("{{ lisen.ip }}").is_err());
        assert!(settings.fill("{{ listen.ipp }}").is_err());
    }

    #[test]
    fn settings_are_words_and_numbers() {
        let mut settings = TemplateVariables::sample(Mode::Reverse, true, 0);
        settings.chosen.insert("ram-policy".into(), SettingValue::Word("lru".into()));
        settings
            .chosen
            .insert("ttl".into(), SettingValue::Number(120, crate::description::SettingUnit::Seconds));
        let text =
            settings.fill("{{ setting.ram_policy }} {{ setting.ttl // 60 }}{{ 1 if setting.ttl }}").unwrap();
        assert_eq!(text, "lru 21");
        assert!(settings.fill("{{ setting.other }}").is_err());
    }

    #[test]
    fn a_cache_knows_the_protocols_and_clients_of_its_hierarchy() {
        let hierarchy = toml::from_str("siblings = [\"icp\"]\nserves = [\"icp\", \"htcp\"]").unwrap();
        let settings = TemplateVariables {
            peering: Some(PeeringVariables::sample(&hierarchy)),
            ..TemplateVariables::sample(Mode::Forward, true, 0)
        };
        let text = settings
            .fill("{{ serves | join(\",\") }} {{ queries | join(\",\") }} {{ clients | length }}")
            .unwrap();
        assert_eq!(text, "icp,htcp icp 1");
    }

    #[test]
    fn block_lines_leave_no_empty_lines_behind() {
        let settings = TemplateVariables::sample(Mode::Reverse, true, 0);
        let text = settings.fill("a\n{% for o in origins %}\n{{ o.name }}\n{% endfor %}\nz\n").unwrap();
        assert_eq!(text, "a\no0\no1\nz\n");
    }

    #[test]
    fn an_argument_that_comes_out_empty_is_left_out() {
        let settings = TemplateVariables::sample(Mode::Reverse, true, 0);
        let command = ["p", "{% if disk.bytes %}-s{% endif %}", "x"].map(String::from);
        assert_eq!(settings.fill_command(&command).unwrap(), ["p", "x"]);
    }

    #[test]
    fn a_pattern_takes_hosts_with_and_without_the_default_port() {
        assert_eq!(pattern("192.168.0.2:9000"), r"^192\.168\.0\.2:9000$");
        assert_eq!(pattern("10.1.0.1:80"), r"^10\.1\.0\.1(:80)?$");
        assert_eq!(pattern("www.a-b.example"), r"^www\.a-b\.example(:80)?$");
        assert_eq!(pattern("[::1]"), r"^\[\:\:1\](:80)?$");
    }

    #[test]
    fn an_origins_host_is_its_authority_without_the_port() {
        let address = SocketAddr::from(([127, 1, 2, 3], 9000));
        assert_eq!(TemplateOrigin::new(0, "192.168.0.2:9000", address).host, "192.168.0.2");
        assert_eq!(TemplateOrigin::new(0, "[::1]:80", address).host, "[::1]");
        assert_eq!(TemplateOrigin::new(3, "plain", address).host, "plain");
    }
}
