//! Settings of origins, and the origin that a request is for.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};

use assay_base::random::{Rng, hash};
use assay_http::authentication::Nonces;
use assay_net::byte_stream::ByteStream;
use assay_net::tls::HTTP_2;
use assay_net::tls::error::TlsError;
use assay_net::tls::server::TlsServer;
use assay_workload::distribution::Sampler;
use assay_workload::expiry::think_draws;
use assay_workload::model::{HttpVersion, OriginIndex, RobotIndex, Server, Workload};
use assay_workload::{Object, Universe};
use assay_workload::{Purpose, XactId};
use tokio::net::TcpStream;

use super::recent_requests::RecentRequests;
use crate::coded::CodedSizes;
use assay_base::clock::SECOND_NS;

/// Numbers that tell the draws for an origin apart.
const VERSION_DRAW: u64 = 1;
const USES_DRAW: u64 = 2;
const NONCE_KEY: u64 = 4;

/// For how long a nonce is good, in seconds.
const NONCE_LIFE_S: u64 = 300;

/// Time within which another attempt at a request that met a fault does not meet it again.
const FAULTS_REMEMBERED_NS: u64 = 10 * SECOND_NS;
/// Time within which a repeated POST is found: more than proxies commonly wait for a response before they try again.
const POSTS_REMEMBERED_NS: u64 = 120 * SECOND_NS;

/// The longest think time: beyond any schedule, and far from where nanoseconds overflow.
const LONGEST_THINK_S: f64 = 1e6;

/// Behaviour of one origin.
#[derive(Debug)]
pub struct OriginConfig {
    /// Index in the workload.
    pub index: OriginIndex,
    /// `Host` of requests for it.
    pub authority: Box<[u8]>,
    /// Version that it speaks.
    pub version: HttpVersion,
    think_s: Option<Sampler>,
    use_limit: Option<Sampler>,
    /// Closes a connection idle for this long.
    pub idle_ns: Option<u64>,
    /// Every response is the object, and nothing is added.
    is_plain: bool,
    /// Time added to each request for every other one under way; 0: requests under way are not counted.
    delay_per_active_ns: u64,
    /// Requests under way, in all workers.
    under_way: AtomicU32,
}

impl OriginConfig {
    fn new(index: OriginIndex, authority: &str, server: &Server) -> Self {
        let unit = Rng::of(Purpose::Other, &[VERSION_DRAW, u64::from(index)]).unit();
        Self {
            index,
            authority: authority.to_ascii_lowercase().into_bytes().into(),
            version: server.http_versions.pick(unit).copied().unwrap_or(HttpVersion::Http11),
            think_s: server.think_s.as_ref().map(Sampler::new),
            use_limit: server.connection_use_limit.as_ref().map(Sampler::new),
            idle_ns: server.idle_timeout.map(|timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)),
            is_plain: !server.specials().responses,
            delay_per_active_ns: nanoseconds(server.faults.delay_per_active_s),
            under_way: AtomicU32::new(0),
        }
    }

    /// Counts a request as under way, and returns the time that the others add to it; none: this origin does not slow
    /// down under load.
    #[inline]
    pub fn delay_ns(&self) -> Option<u64> {
        if self.delay_per_active_ns == 0 {
            return None;
        }
        // Relaxed: the number orders nothing else.
        let others = self.under_way.fetch_add(1, Ordering::Relaxed);
        Some(self.delay_per_active_ns.saturating_mul(u64::from(others)))
    }

    /// Counts a request that [`OriginConfig::delay_ns`] counted as no longer under way.
    pub fn finish(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// Limit of requests on the origin's connection number `connection`, at least one. Without a limit, that is one over
    /// HTTP/1 and any number over HTTP/2.
    pub fn uses(&self, connection: u64) -> u64 {
        let Some(limit) = &self.use_limit else {
            return if self.version == HttpVersion::Http2 { u64::MAX } else { 1 };
        };
        limit.count(&mut Rng::of(Purpose::Other, &[USES_DRAW, u64::from(self.index), connection])).max(1)
    }

    /// Think time for an xact; the same in every run of one seed.
    #[inline]
    pub fn think_ns(&self, seed: u64, xact: &XactId) -> Option<u64> {
        let think_s = self.think_s.as_ref()?;
        Some(nanoseconds(think_s.sample(&mut think_draws(seed, *xact))))
    }
}

/// A drawn time in whole nanoseconds.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.0, LONGEST_THINK_S) * SECOND_NS as f64) as u64
}

/// All origins of a process.
#[derive(Debug)]
pub struct OriginConfigs {
    configs: Vec<OriginConfig>,
    /// Origin of each `Host`: by the workload's name for it, or by its real address.
    by_host: HashMap<Box<[u8]>, OriginIndex>,
}

impl OriginConfigs {
    /// For the origins of a workload, which listen on these addresses.
    pub fn new(workload: &Workload, addresses: &[SocketAddr]) -> Self {
        let mut by_host = HashMap::new();
        for (address, index) in addresses.iter().zip(0..) {
            by_host.insert(address.to_string().into_bytes().into_boxed_slice(), index);
            if address.port() == 80 {
                by_host.insert(address.ip().to_string().into_bytes().into_boxed_slice(), index);
            }
        }
        let origins = workload.origins.iter().zip(0..);
        let configs: Vec<OriginConfig> = origins
            .filter_map(|(origin, index)| {
                Some(OriginConfig::new(
                    index,
                    &origin.authority,
                    workload.servers.get(usize::from(origin.server))?,
                ))
            })
            .collect();
        for config in &configs {
            if let Some(host) = config.authority.strip_suffix(b":80") {
                by_host.insert(host.into(), config.index);
            }
            by_host.insert(config.authority.clone(), config.index);
        }
        Self { configs, by_host }
    }

    /// An origin; none when the workload has no such one.
    #[inline]
    pub fn get(&self, index: OriginIndex) -> Option<&OriginConfig> {
        self.configs.get(usize::from(index))
    }

    /// Finds the origin that a request's `Host` names, if there is one of that name; the one whose address it came to
    /// is looked at first.
    ///
    /// A reverse proxy may send everything to one address and keep `Host`; a forward proxy uses the real addresses.
    /// Both end here.
    #[inline]
    pub fn requested(&self, address_origin: OriginIndex, host: &[u8]) -> Option<OriginIndex> {
        match self.get(address_origin) {
            Some(config) if host == &*config.authority => Some(address_origin),
            _ => self.by_host.get(host).copied().or_else(|| self.requested_folded(host)),
        }
    }

    fn requested_folded(&self, host: &[u8]) -> Option<OriginIndex> {
        let has_upper = host.iter().any(u8::is_ascii_uppercase);
        if has_upper { self.by_host.get(&*host.to_ascii_lowercase()).copied() } else { None }
    }
}

/// State of all workers of the process. Nothing in it changes but what is remembered of requests, and the requests under way at
/// origins that slow down under load.
#[derive(Debug)]
pub struct SharedOrigins {
    pub universe: Universe,
    pub configs: OriginConfigs,
    pub nonces: Nonces,
    /// The object of each request that met a fault on purpose.
    pub faults_met: RecentRequests<XactId, u64>,
    /// Arrival of each attempt of a robot at a POST, in nanoseconds.
    pub posts: RecentRequests<(XactId, u16), u64>,
    /// TLS servers for origins of HTTP/1.1 and of HTTP/2; none: in the clear.
    tls: Option<[TlsServer; 2]>,
    /// Lengths of coded bodies; none: no body is coded.
    coded: Option<CodedSizes>,
    /// For each content type: its objects go out as they are, with nothing added.
    plain_contents: Box<[bool]>,
}

impl SharedOrigins {
    /// For the origins of a universe, which listen on these addresses.
    pub fn new(universe: Universe, addresses: &[SocketAddr]) -> Self {
        let workload = universe.workload();
        let key = hash(Purpose::Other, &[NONCE_KEY, universe.seed()]);
        Self {
            configs: OriginConfigs::new(workload, addresses),
            nonces: Nonces::new(key, NONCE_LIFE_S),
            faults_met: RecentRequests::new(FAULTS_REMEMBERED_NS),
            posts: RecentRequests::new(POSTS_REMEMBERED_NS),
            tls: None,
            coded: CodedSizes::measure(&universe),
            plain_contents: workload.contents.iter().map(|content| !content.specials().responses).collect(),
            universe,
        }
    }

    /// Adds TLS to the connections if there is a server for it.
    pub fn with_tls(self, tls: Option<TlsServer>) -> Self {
        let tls = tls.map(|server| [server.clone(), server.with_protocol(HTTP_2)]);
        Self { tls, ..self }
    }

    #[inline]
    pub fn version(&self, origin: OriginIndex) -> HttpVersion {
        self.configs.get(origin).map_or(HttpVersion::Http11, |config| config.version)
    }

    /// Wraps an accepted connection into its byte stream.
    #[inline]
    pub fn accept(&self, socket: TcpStream, origin: OriginIndex) -> Result<ByteStream<TcpStream>, TlsError> {
        let Some([http1, http2]) = &self.tls else { return Ok(ByteStream::cleartext(socket)) };
        let server = if self.version(origin) == HttpVersion::Http2 { http2 } else { http1 };
        Ok(ByteStream::over_tls(socket, server.accept()?))
    }

    /// Body bytes of the response to a plain GET of this robot for an object.
    #[inline]
    pub fn sent_bytes(&self, robot: RobotIndex, object: &Object) -> u64 {
        let Some(coded) = &self.coded else { return object.size_bytes };
        self.universe.group_of(robot).map_or(object.size_bytes, |group| coded.sent_bytes(group, object))
    }

    /// True when only the object itself, or 304, can be the response to a request for an object when no parts are requested.
    #[inline]
    pub fn is_plain(&self, origin: OriginIndex, object: &Object) -> bool {
        !object.checksum
            && self.plain_contents[usize::from(object.id.content)]
            && self.configs.get(origin).is_none_or(|config| config.is_plain)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use assay_workload::model::{Distribution, Origin, Schedule, Weighted, WorkingSet};

    use super::*;

    fn workload() -> Workload {
        let server = Server {
            kind: "S".into(),
            contents: Weighted::none(),
            direct_access: Weighted::none(),
            think_s: Some(Distribution::Normal { mean: 0.3, deviation: 0.1 }),
            connection_use_limit: Some(Distribution::Zipf { n: 16.0 }),
            idle_timeout: Some(Duration::from_secs(15)),
            http_versions: Weighted::new([(HttpVersion::Http10, 0.5), (HttpVersion::Http11, 0.5)]),
            ..Server::default()
        };
        let origin = |i: u8| Origin { authority: format!("192.168.0.{i}:8080"), server: 0 };
        Workload {
            name: "t".into(),
            contents: vec![],
            servers: vec![server],
            origins: (0..20)
                .map(origin)
                .chain([Origin { authority: "Www.Test:80".into(), server: 0 }])
                .collect(),
            robots: vec![],
            schedule: Schedule { phases: vec![], working_set: WorkingSet::Grows },
            ..Workload::default()
        }
    }

    fn configs() -> OriginConfigs {
        let addresses: Vec<SocketAddr> = (0..21).map(|i| SocketAddr::from(([127, 0, 0, i], 80))).collect();
        OriginConfigs::new(&workload(), &addresses)
    }

    #[test]
    fn host_names_the_origin() {
        let configs = configs();
        for (host, origin) in [
            (&b"192.168.0.7:8080"[..], Some(7)),
            (b"192.168.0.5:8080", Some(5)),
            (b"127.0.0.3:80", Some(3)),
            (b"127.0.0.3", Some(3)),
            (b"www.test", Some(20)),
            (b"WWW.Test:80", Some(20)),
            (b"elsewhere", None),
        ] {
            assert_eq!(configs.requested(5, host), origin, "{}", String::from_utf8_lossy(host));
        }
    }

    #[test]
    fn an_origin_sticks_to_its_version_and_both_versions_occur() {
        let versions: Vec<_> = (0..20).map(|i| configs().get(i).expect("is there").version).collect();
        assert_eq!(
            versions,
            (0..20).map(|i| configs().get(i).expect("is there").version).collect::<Vec<_>>()
        );
        assert!(versions.contains(&HttpVersion::Http10) && versions.contains(&HttpVersion::Http11));
    }

    #[test]
    fn think_times_follow_from_the_xact_alone() {
        let (configs, other) = (configs(), configs());
        let think = |configs: &OriginConfigs, number| {
            let xact = XactId { robot: 1, number, place: 0 };
            configs.get(0).and_then(|config| config.think_ns(42, &xact)).expect("it thinks")
        };
        let all: Vec<u64> = (0..1000).map(|number| think(&configs, number)).collect();
        assert_eq!(all, (0..1000).map(|number| think(&other, number)).collect::<Vec<_>>());
        let mean_ms = all.iter().sum::<u64>() / 1000 / 1_000_000;
        assert!((280..320).contains(&mean_ms), "{mean_ms}");
    }

    #[test]
    fn connections_serve_at_least_one_request_and_not_all_the_same_number() {
        let configs = configs();
        let uses: Vec<u64> = (0..200).filter_map(|c| configs.get(0).map(|config| config.uses(c))).collect();
        assert!(uses.iter().all(|u| (1..=16).contains(u)));
        assert!(uses.contains(&1) && uses.iter().any(|u| *u > 4));
    }
}
