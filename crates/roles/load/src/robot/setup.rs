//! Setup of the robots, made once from the spec, and shared by all workers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::spec::{RobotsSpec, Target};
use assay_base::random::Rng;
use assay_cache::behaviour::SharesFrom;
use assay_net::tls::client::{TlsClient, TlsServerName, TlsSettingsError};
use assay_net::tls::settings::ClientTls;
use assay_net::tls::setup::{self, TlsSetupError};
use assay_workload::Purpose;
use assay_workload::cache_assignment::{AssignmentError, Listener, Share, assign_caches};
use assay_workload::distribution::Sampler;
use assay_workload::mark;
use assay_workload::model::{HttpVersion, OriginIndex, RobotAddress, RobotGroup, RobotIndex, Workload};
use assay_workload::{Object, ScheduleError, Timeline, Universe, UniverseError, UniverseOptions, XactId};
use thiserror::Error;

use super::load_controller;
use crate::cache_fields::sets_cache_fields;
use crate::coded::CodedSizes;
use crate::files::{WorkloadFileError, read_files};

/// Tells the draw of a connection's depth from that of its use limit.
const DEPTH_DRAW: u64 = 1;
/// Tells the draw of a connection's offer to resume a session from those of its depth and use limit.
const RESUME_DRAW: u64 = 3;
/// Tells the draw of a robot's beginning from those of its connections.
const LAUNCH_DRAW: u64 = 2;

/// Defect of the robots' spec. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The workload cannot be read.
    #[error("cannot read the workload {path}: {cause}")]
    Read { path: PathBuf, cause: io::Error },
    /// The file is not a workload.
    #[error("{path} is not a compiled workload: {cause}")]
    NotAWorkload { path: PathBuf, cause: serde_json::Error },
    /// Robots cannot be spread over caches as configured.
    #[error(transparent)]
    Spread(#[from] AssignmentError),
    /// A file that bodies are made of cannot be read.
    #[error(transparent)]
    Files(WorkloadFileError),
    /// The workload describes no universe.
    #[error("the workload cannot be run: {0}")]
    Universe(UniverseError),
    /// The schedule cannot be run.
    #[error("the workload cannot be run: {0}")]
    Schedule(ScheduleError),
    /// Fewer addresses than origins.
    #[error("the workload has {origins} origins, but the spec has addresses for {given}; give one for each")]
    TooFewOrigins {
        /// Origins of the workload.
        origins: usize,
        /// Addresses in the spec.
        given: usize,
    },
    #[error("robots cannot speak TLS: {0}")]
    Tls(TlsSetupError),
    /// A name for which no certificate can be verified.
    #[error("robots cannot speak TLS to {authority}: {cause}")]
    TlsName {
        /// The authority of an origin.
        authority: String,
        cause: TlsSettingsError,
    },
    /// A range of robots that the workload does not have.
    #[error("there are no robots {first} to {last}: the workload has {count}, counted from 0")]
    NoSuchRobots {
        /// First of the range.
        first: RobotIndex,
        /// Last of the range.
        last: RobotIndex,
        /// Robots of the workload.
        count: u32,
    },
}

/// Everything about the robots that does not change.
#[derive(Debug)]
pub struct RobotSetup {
    pub universe: Arc<Universe>,
    /// The schedule in time.
    pub timeline: Arc<Timeline>,
    pub options: UniverseOptions,
    pub clocks: ClockErrorBound,
    /// Some phase has load that adapts.
    pub adapts: bool,
    /// The robots that run here.
    pub robots: Range<RobotIndex>,
    /// Rules of each group of the workload, in its order.
    pub groups: Vec<GroupRules>,
    /// Routes to each origin; for each cache that robots speak to, one after the other.
    routes: Vec<Vec<TargetRoute>>,
    /// Cache of each robot, as index into `routes`; empty: there is one for all.
    listeners: Vec<u16>,
    pub absolute: bool,
    /// Longest time for a response.
    pub timeout: Duration,
    /// None: requests go in the clear.
    pub tls: Option<RobotTls>,
    /// Lengths of coded bodies; none: no body is coded.
    coded: Option<CodedSizes>,
    /// Some robots have busy and idle periods.
    pub has_sessions: bool,
    /// For each origin, the destinations that stand for its own.
    pub substitutes: Vec<Vec<u16>>,
    /// The target stores responses at all.
    pub caches: bool,
    /// Moment from which a response that the target fetches for one request may serve others.
    pub shares_from: SharesFrom,
    /// The target writes a 304 into what it has stored.
    pub validation_updates: bool,
    /// The target passes on requests that say `no-cache`.
    pub reloads_reach_origin: bool,
    /// The workload gives no response another field for caches, so each is known.
    pub knows_cache_fields: bool,
    /// The times of xacts are to be joined with the waits of the target.
    pub joins_waits: bool,
    /// Requests of the group can be special whatever they request.
    special_groups: Vec<bool>,
    /// Requests for the content type can be special.
    special_contents: Vec<bool>,
    /// Requests that reach the origin can have special responses.
    special_origins: Vec<bool>,
    /// Source address of each distinct robot address, in order of first appearance.
    sources: Vec<Option<IpAddr>>,
    /// First robot of each run of robots with one address, and the index of that address.
    address_runs: Vec<(RobotIndex, usize)>,
}

/// TLS of the robots.
#[derive(Debug)]
pub struct RobotTls {
    pub client: TlsClient,
    /// Probability that a connection offers to resume an earlier session.
    resumption: f64,
    /// The name that each origin's certificate is verified for.
    names: Vec<TlsServerName>,
}

/// Limits and habits of the robots of a group.
#[derive(Debug)]
pub struct GroupRules {
    /// Requests per connection; none: one.
    pub use_limit: Option<Sampler>,
    /// Requests under way on a connection; none: one.
    pub depth: Option<Sampler>,
    /// Closes a connection idle for this long.
    pub idle_timeout: Option<Duration>,
    pub open_limit: u32,
    /// Requests that may wait for a connection, per robot.
    pub waiting_limit: u32,
    pub best_effort: bool,
    /// Requests that one of them has under way at a time over HTTP/2, in a closed loop.
    pub streams: u32,
    /// Requests say how urgent they are (RFC 9218).
    pub priorities: bool,
    /// Probability that an idle connection to a substitute is used instead of a new one.
    pub substitution: f64,
}

/// The way to one origin.
#[derive(Debug)]
pub struct TargetRoute {
    pub address: SocketAddr,
    /// Connections to equal destinations can be used for each other's requests.
    pub destination: u16,
    /// Value of `Host`, and authority in absolute-form targets.
    pub authority: Vec<u8>,
    /// Bytes between the target and our mark in a request of HTTP/1.0, and in one of HTTP/1.1.
    between: [Vec<u8>; 2],
}

impl TargetRoute {
    fn new(address: SocketAddr, destination: u16, authority: Vec<u8>) -> Self {
        let between = ["0", "1"].map(|minor| {
            let start = format!(" HTTP/1.{minor}\r\nHost: ").into_bytes();
            let field = format!("\r\n{}: ", mark::HEADER).into_bytes();
            [start, authority.clone(), field].concat()
        });
        Self { address, destination, authority, between }
    }

    /// Bytes between the target of a request and our mark.
    #[inline]
    pub fn between(&self, version: HttpVersion) -> &[u8] {
        match version {
            HttpVersion::Http10 => &self.between[0],
            HttpVersion::Http11 | HttpVersion::Http2 => &self.between[1],
        }
    }
}

impl RobotSetup {
    /// Reads the workload that the spec names, and makes everything else from it.
    pub fn read(spec: &RobotsSpec) -> Result<Self, SetupError> {
        Self::new(spec, Arc::new(read_workload(&spec.universe.workload)?))
    }

    /// Makes everything from a workload.
    pub fn new(spec: &RobotsSpec, workload: Arc<Workload>) -> Result<Self, SetupError> {
        let options = UniverseOptions { private_as_public: spec.universe.private_as_public };
        let files = read_files(&workload).map_err(SetupError::Files)?;
        let (seed, world) = (spec.universe.seed, spec.universe.world);
        let universe = Universe::with_files(workload.clone(), seed, world, options, &files)
            .map_err(SetupError::Universe)?;
        let timeline = Timeline::with(&workload, options, &[]).map_err(SetupError::Schedule)?;
        let robots = robots(spec, universe.robot_count())?;
        let (hosts, address_runs) =
            robot_addresses(workload.robots.iter().flat_map(|group| &group.addresses));
        let source = |at: usize| spec.sources.get(at).copied().filter(|ip| !ip.is_unspecified());
        let shares: Vec<&Share> = spec.listeners.iter().map(|listener| &listener.robots).collect();
        let listeners = if shares.is_empty() { Vec::new() } else { assign_caches(&shares, &workload)? };
        let routes = all_routes(&workload, spec)?;
        Ok(Self {
            groups: workload.robots.iter().map(GroupRules::new).collect(),
            substitutes: substitutes(&workload, &routes[0]),
            listeners,
            coded: CodedSizes::measure(&universe),
            has_sessions: workload.robots.iter().any(|group| group.session.is_some()),
            routes,
            absolute: matches!(spec.target, Target::Forward { .. }),
            timeout: Duration::from_millis(spec.timeout_ms.max(1)),
            tls: spec.tls.as_ref().map(|settings| RobotTls::new(settings, &workload)).transpose()?,
            shares_from: spec.behaviour.shares_from(),
            caches: spec.behaviour.caches && !matches!(spec.target, Target::Direct { .. }),
            validation_updates: spec.behaviour.validation_updates,
            reloads_reach_origin: spec.behaviour.reloads_reach_origin,
            knows_cache_fields: !sets_cache_fields(&workload),
            joins_waits: spec.joins_waits,
            special_groups: workload.robots.iter().map(RobotGroup::makes_special_requests).collect(),
            special_contents: workload.contents.iter().map(|content| content.specials().requests).collect(),
            special_origins: workload
                .origins
                .iter()
                .map(|origin| workload.servers[usize::from(origin.server)].specials().requests)
                .collect(),
            sources: (0..hosts).map(source).collect(),
            address_runs,
            clocks: ClockErrorBound::default(),
            adapts: load_controller::adapts(&workload),
            options,
            robots,
            universe: Arc::new(universe),
            timeline: Arc::new(timeline),
        })
    }

    /// Source address of a robot; none: the system chooses.
    pub fn source_of(&self, robot: RobotIndex) -> Option<IpAddr> {
        let run = self.address_runs.partition_point(|&(first, _)| first <= robot).checked_sub(1)?;
        self.sources[self.address_runs[run].1]
    }

    /// Time of a best-effort robot's first request, in nanoseconds since the start.
    pub fn begin_ns(&self, robot: RobotIndex, group: u16) -> u64 {
        let window = self.universe.workload().robots[usize::from(group)].launch_window;
        let inputs = [self.universe.seed(), u64::from(robot), 0, LAUNCH_DRAW];
        let unit = Rng::of(Purpose::Other, &inputs).unit();
        window.map_or(0, |window| u64::try_from(window.mul_f64(unit).as_nanos()).unwrap_or(u64::MAX))
    }

    pub fn version_of(&self, robot: RobotIndex, group: &RobotGroup) -> HttpVersion {
        let unit = Rng::of(Purpose::Other, &[self.universe.seed(), u64::from(robot), 0]).unit();
        group.http_versions.pick(unit).copied().unwrap_or(HttpVersion::Http11)
    }

    /// Limit of requests on a robot's connection, at least one; `serial` counts its connections. Without a limit, that is
    /// one over HTTP/1 and any number over HTTP/2.
    pub fn uses_of(&self, robot: RobotIndex, version: HttpVersion, group: u16, serial: u32) -> u32 {
        let Some(limit) = &self.groups[usize::from(group)].use_limit else {
            return if version == HttpVersion::Http2 { u32::MAX } else { 1 };
        };
        let inputs = [self.universe.seed(), u64::from(robot), 1 + u64::from(serial)];
        let uses = limit.count(&mut Rng::of(Purpose::Other, &inputs));
        u32::try_from(uses).unwrap_or(u32::MAX).max(1)
    }

    /// Limit of requests under way on a robot's connection, at least one.
    pub fn depth_of(&self, robot: RobotIndex, version: HttpVersion, group: u16, serial: u32) -> u16 {
        let Some(depth) = &self.groups[usize::from(group)].depth else { return 1 };
        if version != HttpVersion::Http11 {
            return 1;
        }
        let inputs = [self.universe.seed(), u64::from(robot), 1 + u64::from(serial), DEPTH_DRAW];
        u16::try_from(depth.count(&mut Rng::of(Purpose::Other, &inputs))).unwrap_or(u16::MAX).max(1)
    }

    /// Whether a robot's connection offers to resume an earlier session of TLS; `serial` counts its connections.
    pub fn resumes(&self, tls: &RobotTls, robot: RobotIndex, serial: u32) -> bool {
        let inputs = [self.universe.seed(), u64::from(robot), 1 + u64::from(serial), RESUME_DRAW];
        Rng::of(Purpose::Other, &inputs).unit() < tls.resumption
    }

    /// True if an xact of this group takes an idle connection to a substitute rather than a new one.
    pub fn takes_substitutes(&self, group: u16, xact: XactId) -> bool {
        let share = self.groups[usize::from(group)].substitution;
        let inputs = [self.universe.seed(), u64::from(xact.robot), xact.number, u64::from(xact.place)];
        share > 0.0 && Rng::of(Purpose::Substitute, &inputs).unit() < share
    }

    /// True if a request of this group for this object may be special.
    #[inline]
    pub fn is_special(&self, group: u16, object: &Object) -> bool {
        self.special_groups[usize::from(group)]
            || self.special_contents[usize::from(object.id.content)]
            || self.special_origins[usize::from(object.id.origin)]
    }

    /// Body bytes that an origin sends of an object to a robot of this group.
    #[inline]
    pub fn sent_bytes(&self, group: u16, object: &Object) -> u64 {
        self.coded.as_ref().map_or(object.size_bytes, |coded| coded.sent_bytes(usize::from(group), object))
    }

    /// Route of a robot to an origin.
    pub fn route(&self, robot: RobotIndex, origin: OriginIndex) -> &TargetRoute {
        let listener = self.listeners.get(robot as usize).copied().unwrap_or(0);
        &self.routes[usize::from(listener)][usize::from(origin)]
    }
}

/// Upper bound on the difference between an instant of an origin and the same instant of a robot, for all workers.
#[derive(Debug, Default)]
pub struct ClockErrorBound(AtomicU64);

impl ClockErrorBound {
    /// Raises the bound, in microseconds. Smaller values change nothing: what was decided stands.
    pub fn raise_to_us(&self, error_us: u64) {
        self.0.fetch_max(error_us, Relaxed);
    }

    #[inline]
    pub fn error_us(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl RobotTls {
    fn new(settings: &ClientTls, workload: &Workload) -> Result<Self, SetupError> {
        let name = |origin: &assay_workload::model::Origin| {
            TlsServerName::from_authority(&origin.authority)
                .map_err(|cause| SetupError::TlsName { authority: origin.authority.clone(), cause })
        };
        Ok(Self {
            client: setup::client(settings).map_err(SetupError::Tls)?,
            resumption: settings.resumption,
            names: workload.origins.iter().map(name).collect::<Result<_, _>>()?,
        })
    }

    /// Name that the certificate of an origin, or of a proxy that stands for it, is verified for.
    pub fn name_of(&self, origin: OriginIndex) -> &TlsServerName {
        &self.names[usize::from(origin)]
    }
}

impl GroupRules {
    fn new(group: &RobotGroup) -> Self {
        Self {
            use_limit: group.connection_use_limit.as_ref().map(|limit| limit.sampler()),
            depth: group.pipeline_depth.as_ref().map(|depth| depth.sampler()),
            idle_timeout: group.idle_timeout,
            open_limit: group.open_connection_limit.unwrap_or(u32::MAX).max(1),
            waiting_limit: group.waiting_limit.unwrap_or(u32::MAX),
            best_effort: group.pace.is_closed(),
            streams: group.streams.max(1),
            priorities: group.priorities,
            substitution: group.substitution,
        }
    }
}

/// Robots that the spec names, or all.
fn robots(spec: &RobotsSpec, count: u32) -> Result<Range<RobotIndex>, SetupError> {
    let Some((first, last)) = spec.robots else { return Ok(0..count) };
    if first > last || last >= count {
        return Err(SetupError::NoSuchRobots { first, last, count });
    }
    Ok(first..last + 1)
}

fn read_workload(path: &Path) -> Result<Workload, SetupError> {
    let text = assay_base::files::bytes(path, assay_base::files::DOCUMENT_MAX)
        .map_err(|cause| SetupError::Read { path: path.to_owned(), cause })?;
    serde_json::from_slice(&text).map_err(|cause| SetupError::NotAWorkload { path: path.to_owned(), cause })
}

/// Number of distinct robot addresses, and where in the row of robots each begins.
fn robot_addresses<'w>(
    addresses: impl Iterator<Item = &'w RobotAddress>,
) -> (usize, Vec<(RobotIndex, usize)>) {
    let mut hosts: Vec<&str> = Vec::new();
    let mut runs = Vec::new();
    let mut first = 0;
    for run in addresses {
        let index = hosts.iter().position(|host| *host == run.host).unwrap_or_else(|| {
            hosts.push(&run.host);
            hosts.len() - 1
        });
        runs.push((first, index));
        first += run.count;
    }
    (hosts.len(), runs)
}

/// Routes through each cache that robots speak to.
fn all_routes(workload: &Workload, spec: &RobotsSpec) -> Result<Vec<Vec<TargetRoute>>, SetupError> {
    let through = |listener: &Listener| {
        let proxy = listener.proxy;
        let target = match &spec.target {
            Target::Forward { origins, .. } => Target::Forward { proxy, origins: origins.clone() },
            Target::Reverse { .. } | Target::Direct { .. } => Target::Reverse { proxy },
        };
        routes(workload, &target)
    };
    if spec.listeners.is_empty() {
        return Ok(vec![routes(workload, &spec.target)?]);
    }
    spec.listeners.iter().map(through).collect()
}

fn routes(workload: &Workload, target: &Target) -> Result<Vec<TargetRoute>, SetupError> {
    let check = |given: &[SocketAddr]| match given.len() < workload.origins.len() {
        true => Err(SetupError::TooFewOrigins { origins: workload.origins.len(), given: given.len() }),
        false => Ok(()),
    };
    match target {
        Target::Direct { origins } | Target::Forward { origins, .. } => check(origins)?,
        Target::Reverse { .. } => {}
    }
    let route = |(index, origin): (usize, &assay_workload::model::Origin)| {
        let named = origin.authority.clone().into_bytes();
        match target {
            Target::Direct { origins } => TargetRoute::new(origins[index], index as u16, named),
            Target::Reverse { proxy } => TargetRoute::new(*proxy, 0, named),
            Target::Forward { proxy, origins } => {
                TargetRoute::new(*proxy, 0, origins[index].to_string().into_bytes())
            }
        }
    };
    Ok(workload.origins.iter().enumerate().map(route).collect())
}

/// Destinations, for each origin, of those that stand for it, but its own.
fn substitutes(workload: &Workload, routes: &[TargetRoute]) -> Vec<Vec<u16>> {
    let of = |(origin, route): (usize, &TargetRoute)| {
        let groups = workload.substitutes.iter().filter(|group| group.contains(&(origin as OriginIndex)));
        let mut all: Vec<u16> =
            groups.flatten().map(|other| routes[usize::from(*other)].destination).collect();
        all.retain(|destination| *destination != route.destination);
        all.sort_unstable();
        all.dedup();
        all
    };
    routes.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_share_addresses_in_order_of_first_appearance() {
        let runs = [("b", 2), ("a", 1), ("b", 3), ("c", 1), ("a", 2)];
        let runs = runs.map(|(host, count)| RobotAddress { host: host.to_owned(), count });
        assert_eq!(robot_addresses(runs.iter()), (3, vec![(0, 0), (2, 1), (3, 0), (6, 2), (7, 1)]));
    }
}
