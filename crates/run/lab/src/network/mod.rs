//! The network that the roles of a run live in. The lab makes one where links or congestion control are configured.
//!
//! Robots, the target and origins stand in a row. Where a link is between two of them, they live in network namespaces of
//! their own; where none is, they share one. Caches with links between them have a namespace each ([`caches`]). All addresses of
//! 10.1.0.0/16 are the robots', of 10.2.0.0/16 the target's and of 10.3.0.0/16 the origins', so each may have as many as it
//! likes. Nothing of it has a name outside: it is gone when the last process in it has ended, however that came about.
//!
//! # Namespaces and links
//!
//! *Beds.* With links, roles with a link between them live in network namespaces of their own (`assay-host`, `lab::network`): 10.1.0.0/16
//! is the robots', 10.2.0.0/16 the target's, 10.3.0.0/16 the origins'; roles without one share. One process (`assay role links`)
//! carries the packets of all links. Whether packet *n* on the wire of a direction is lost is a pure function of the seed, and `lab` compares
//! the report of each interval with it. Congestion control is an attribute of routes. Namespaces have no names and TUN devices are not
//! persistent: both exist only as long as a descriptor of one of Assay's processes, so nothing can be left behind, however Assay ends.
//! Resources that can outlive a process (control groups, work directories) carry a mark with the owner's process id and start time; the next
//! start removes marked resources whose owner is gone, and only those.

mod caches;
mod link_test;
mod packet_audit;
pub mod role;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use assay_host::link::interface::{self, Tun};
use assay_host::link::route::{self, Network};
use assay_host::link::{LinkSettings, Namespace, NetError, namespace};
use assay_record::run::{BedInfo, LinkInfo, NamespaceInfo};
use assay_workload::model::Workload;
use strum::IntoStaticStr;

use crate::address::{HOSTS_PER_BLOCK, PROXY_PORT, usable_port};
use crate::error::LabError;
use crate::network::role::{LinkRoleSpec, LinkSpec};
use crate::roles::RoleKind;
use crate::topology::Topology;

pub(crate) use link_test::LinkUnderTest;
pub(crate) use packet_audit::PacketAudit;

/// Congestion control where none is named: the default of most systems.
pub const USUAL_CONGESTION_CONTROL: &str = "cubic";
/// Windows large enough for a gigabit over a long way: the link is to be the limit, not they.
const WINDOWS: [(&str, &str); 2] =
    [("net/ipv4/tcp_rmem", "4096 131072 33554432"), ("net/ipv4/tcp_wmem", "4096 16384 33554432")];
/// Settings that are the same as the machine's.
const AS_OUTSIDE: [&str; 3] =
    ["net/ipv4/ip_local_port_range", "net/core/somaxconn", "net/ipv4/tcp_max_syn_backlog"];
/// Whether ports of connections closed a moment ago are used again; 2: between loopback addresses only.
const TW_REUSE: &str = "net/ipv4/tcp_tw_reuse";
/// Carrier of packets, in the record.
const USER_SPACE: &str = "user space";
/// Second byte of the first of three networks.
const FIRST_NETWORK: u8 = 1;

/// The network that a run needs. The default needs none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkPlan {
    /// Link between robots and the target.
    pub robot_link: Option<LinkSettings>,
    /// Link between the target and origins.
    pub origin_link: Option<LinkSettings>,
    /// TCP congestion control of all connections between roles; none: [`USUAL_CONGESTION_CONTROL`], if there is a link.
    pub congestion_control: Option<String>,
}

impl NetworkPlan {
    /// True when the run is not to use the machine's own loopback.
    pub fn is_wanted(&self) -> bool {
        *self != Self::default()
    }
}

/// Position in the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Segment {
    Robots,
    Target,
    Origins,
}

impl Segment {
    fn name(self) -> &'static str {
        self.into()
    }

    /// The network whose addresses are all its own.
    fn network(self) -> Network {
        Network { address: self.address(0, 0), bits: 16 }
    }

    fn address(self, block: u8, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, FIRST_NETWORK + self as u8, block, host)
    }
}

/// A namespace and the roles in it.
#[derive(Debug)]
struct RoleNamespace {
    places: Vec<Segment>,
    namespace: Namespace,
    settings: BTreeMap<String, String>,
}

/// A link between two namespaces.
#[derive(Debug)]
struct NetworkLink {
    /// Names of its ends.
    ends: [String; 2],
    settings: LinkSettings,
    seed: u64,
    /// The namespaces: of two in the row, the left one first.
    namespaces: [Namespace; 2],
    /// The addresses of its devices.
    addresses: [Ipv4Addr; 2],
    /// The TUN devices; none once another process has them.
    devices: Option<[OwnedFd; 2]>,
}

impl NetworkLink {
    fn name(&self) -> String {
        self.ends.join("-")
    }
}

/// A gap of the row in which a link is, before anything is made.
#[derive(Debug)]
struct LinkPosition {
    ends: [Segment; 2],
    settings: LinkSettings,
    /// The room on its left.
    left: usize,
}

impl LinkPosition {
    fn addresses(&self) -> [Ipv4Addr; 2] {
        [self.ends[0].address(255, 2), self.ends[1].address(255, 1)]
    }
}

/// The network of a run.
#[derive(Debug)]
pub struct EmulatedNetwork {
    congestion_control: String,
    namespaces: Vec<RoleNamespace>,
    /// Namespaces of caches that have links between them, in their order.
    cache_namespaces: Vec<caches::CacheNamespace>,
    links: Vec<NetworkLink>,
}

impl EmulatedNetwork {
    /// Makes the network that a plan requests; `direct`: there is no target.
    pub fn build(
        plan: &NetworkPlan,
        direct: bool,
        topology: Option<&Topology>,
        seed: u64,
    ) -> Result<Self, LabError> {
        if let Err(error) = namespace::check_available() {
            return Err(LabError::plan(format!(
                "links and congestion control take network namespaces: {error}; run it as root, or leave --robot-link, \
                 --origin-link, --congestion and `peer-link` out (where the workload has a NetPipe: --robot-link off, \
                 --origin-link off): then everything runs on the machine's own loopback"
            )));
        }
        let congestion_control =
            plan.congestion_control.clone().unwrap_or_else(|| USUAL_CONGESTION_CONTROL.into());
        check_congestion_control(&congestion_control)?;
        let (rows, gaps) = layout(plan, direct);
        let made = rows.into_iter().map(|places| {
            Namespace::new().map(|namespace| RoleNamespace { places, namespace, settings: BTreeMap::new() })
        });
        let namespaces = made.collect::<Result<_, _>>().map_err(cannot)?;
        let mut network =
            Self { congestion_control, namespaces, cache_namespaces: Vec::new(), links: Vec::new() };
        let parted = topology.filter(|topology| !topology.links.is_empty());
        network.configure(gaps, direct, parted.is_some(), seed).map_err(cannot)?;
        if let Some(topology) = parted {
            network.add_caches(topology, seed).map_err(cannot)?;
        }
        Ok(network)
    }

    /// Gives rooms their addresses and the links between them. `parted`: caches will have namespaces of their own.
    fn configure(
        &mut self,
        gaps: Vec<LinkPosition>,
        direct: bool,
        parted: bool,
        seed: u64,
    ) -> Result<(), NetError> {
        let settings = settings();
        let mut devices: Vec<[Option<Tun>; 2]> = gaps.iter().map(|_| [None, None]).collect();
        for (index, namespace_of_roles) in self.namespaces.iter().enumerate() {
            // A link is as far to the right as the room on its left.
            let right = gaps.iter().position(|gap| gap.left == index);
            let left = gaps.iter().position(|gap| gap.left + 1 == index);
            let forwards = (direct && left.is_some() && right.is_some())
                || (parted && namespace_of_roles.places.contains(&Segment::Target));
            let made = namespace_of_roles.namespace.run(|| {
                set_up_namespace(&settings)?;
                if forwards {
                    interface::set_sysctl("net/ipv4/ip_forward", "1")?;
                }
                for place in &namespace_of_roles.places {
                    let network =
                        if parted && *place == Segment::Target { caches::HUB } else { place.network() };
                    route::add_local(network, &self.congestion_control)?;
                }
                let device =
                    |gap: usize, end: usize, beyond: &[RoleNamespace]| self.device(&gaps[gap], end, beyond);
                let left = left.map(|gap| device(gap, 1, &self.namespaces[..index])).transpose()?;
                let right = right.map(|gap| device(gap, 0, &self.namespaces[index + 1..])).transpose()?;
                Ok((left, right))
            })?;
            let (to_left, to_right) = made?;
            if let Some(gap) = left {
                devices[gap][1] = to_left;
            }
            if let Some(gap) = right {
                devices[gap][0] = to_right;
            }
        }
        for ((index, gap), made) in (0_u64..).zip(gaps).zip(devices) {
            let [Some(first), Some(second)] = made else { continue };
            self.links.push(NetworkLink {
                addresses: gap.addresses(),
                ends: gap.ends.map(|place| place.name().to_owned()),
                settings: gap.settings,
                seed: link_seed(seed, index),
                namespaces: [0, 1].map(|end| self.namespaces[gap.left + end].namespace.clone()),
                devices: Some([first.descriptor, second.descriptor]),
            });
        }
        let shown = recorded_settings(settings);
        self.namespaces
            .iter_mut()
            .for_each(|namespace_of_roles| namespace_of_roles.settings.clone_from(&shown));
        Ok(())
    }

    /// In a link's room at one end: its device, and behind it all rooms beyond.
    fn device(&self, gap: &LinkPosition, end: usize, beyond: &[RoleNamespace]) -> Result<Tun, NetError> {
        let tun = Tun::create(&format!("to-{}", gap.ends[1 - end].name()))?;
        tun.set_up(gap.addresses()[end])?;
        for place in beyond.iter().flat_map(|namespace_of_roles| &namespace_of_roles.places) {
            route::add_direct(place.network(), &tun.name, &self.congestion_control)?;
        }
        Ok(tun)
    }

    /// Namespace of a role.
    pub(crate) fn namespace(&self, kind: RoleKind) -> Option<&Namespace> {
        let place = match kind {
            RoleKind::Robots => Segment::Robots,
            RoleKind::Origins => Segment::Origins,
            RoleKind::Proxy(number) if !self.cache_namespaces.is_empty() => {
                return self
                    .cache_namespaces
                    .get(usize::from(number))
                    .map(|cache_namespace| &cache_namespace.namespace);
            }
            RoleKind::Proxy(_) => Segment::Target,
            RoleKind::Links | RoleKind::Collector | RoleKind::Multiplier => return None,
        };
        self.namespaces
            .iter()
            .find(|namespace_of_roles| namespace_of_roles.places.contains(&place))
            .map(|namespace_of_roles| &namespace_of_roles.namespace)
    }

    /// Address at which the proxy listens: which one, where there are several.
    pub fn proxy(&self, place: u8) -> SocketAddr {
        SocketAddr::from((Segment::Target.address(0, place.saturating_add(1)), PROXY_PORT))
    }

    /// Addresses at which the workload's origins listen, in its order.
    pub fn origins(&self, workload: &Workload) -> Result<Vec<SocketAddr>, LabError> {
        let all = workload.origins.iter().enumerate();
        let each = |(index, origin): (usize, &assay_workload::model::Origin)| {
            Ok(SocketAddr::from((host(Segment::Origins, index)?, usable_port(&origin.authority))))
        };
        all.map(each).collect()
    }

    /// Source addresses of robots.
    pub fn robots(&self, addresses: usize) -> Result<Vec<IpAddr>, LabError> {
        (0..addresses).map(|index| host(Segment::Robots, index).map(IpAddr::V4)).collect()
    }

    /// For the record, before anything was measured.
    pub(crate) fn info(&self) -> BedInfo {
        let namespaces = self.namespaces.iter().map(|namespace_of_roles| NamespaceInfo {
            roles: namespace_of_roles.places.iter().map(|place| place.name().to_owned()).collect(),
            networks: namespace_of_roles.places.iter().map(|place| place.network().to_string()).collect(),
            settings: namespace_of_roles.settings.clone(),
        });
        let cache_namespaces = self.cache_namespaces.iter().map(caches::CacheNamespace::info);
        let links = self.links.iter().map(|link| LinkInfo {
            name: link.name(),
            settings: link.settings.to_string(),
            carried_by: USER_SPACE.into(),
            seed: link.seed,
            ..LinkInfo::default()
        });
        BedInfo {
            congestion_control: self.congestion_control.clone(),
            namespaces: namespaces.chain(cache_namespaces).collect(),
            links: links.collect(),
        }
    }

    /// Spec of the process that carries packets; it inherits the descriptors. None: there is no link.
    pub(crate) fn spec(&self) -> Option<LinkRoleSpec> {
        let links = self.links.iter().filter_map(|link| {
            Some(LinkSpec {
                name: link.name(),
                ends: link.ends.clone(),
                settings: link.settings,
                seed: link.seed,
                devices: link.devices.as_ref()?.each_ref().map(AsRawFd::as_raw_fd),
            })
        });
        let links: Vec<LinkSpec> = links.collect();
        (!links.is_empty()).then_some(LinkRoleSpec { links })
    }

    /// The process that carries packets has the devices now: with its end they are gone.
    pub(crate) fn release_devices(&mut self) {
        self.links.iter_mut().for_each(|link| link.devices = None);
    }

    /// Everything that a test of each link needs to know.
    pub(crate) fn under_test(&self) -> Vec<LinkUnderTest> {
        let one = |link: &NetworkLink| LinkUnderTest {
            name: link.name(),
            settings: link.settings,
            namespaces: link.namespaces.clone(),
            addresses: link.addresses,
            congestion_control: self.congestion_control.clone(),
        };
        self.links.iter().map(one).collect()
    }

    /// Keeps account of what links carry.
    pub(crate) fn packet_audit(&self) -> PacketAudit {
        PacketAudit::new(
            self.links.iter().map(|link| (link.name(), link.ends.clone(), link.settings, link.seed)),
        )
    }

    /// Packets that the devices dropped because nobody took them: a link that was too slow.
    pub(crate) fn device_drops(&self) -> u64 {
        let namespaces = self.namespaces.iter().map(|namespace_of_roles| &namespace_of_roles.namespace);
        let all =
            namespaces.chain(self.cache_namespaces.iter().map(|cache_namespace| &cache_namespace.namespace));
        all.filter_map(|namespace| namespace.run(interface::transmit_drops).ok()).sum()
    }
}

fn cannot(error: NetError) -> LabError {
    LabError::plan(format!("the network of the run cannot be made: {error}"))
}

/// Links of one run lose different packets.
fn link_seed(seed: u64, index: u64) -> u64 {
    seed.wrapping_add(index << 32)
}

/// Roles that share a namespace, from left to right, and the links between them.
fn layout(plan: &NetworkPlan, direct: bool) -> (Vec<Vec<Segment>>, Vec<LinkPosition>) {
    let all = [Segment::Robots, Segment::Target, Segment::Origins];
    let between = [plan.robot_link, plan.origin_link];
    let (row, gaps): (Vec<Segment>, Vec<Option<LinkSettings>>) = match (direct, between) {
        // One way, one link. Where two are configured, an empty namespace lies between them.
        (true, [one, None] | [None, one]) => (vec![Segment::Robots, Segment::Origins], vec![one]),
        _ => (all.to_vec(), between.to_vec()),
    };
    let mut namespaces = vec![vec![row[0]]];
    let mut links = Vec::new();
    for (places, gap) in row.windows(2).zip(gaps) {
        let left = namespaces.len() - 1;
        match gap {
            None => namespaces[left].push(places[1]),
            Some(settings) => {
                namespaces.push(vec![places[1]]);
                links.push(LinkPosition { ends: [places[0], places[1]], settings, left });
            }
        }
    }
    (namespaces, links)
}

fn check_congestion_control(name: &str) -> Result<(), LabError> {
    let available = interface::sysctl("net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if available.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    Err(LabError::plan(format!(
        "this kernel has no congestion control `{name}`; it has {}; name one of them with --congestion (or load the \
         module tcp_{name})",
        available.replace(' ', ", ")
    )))
}

/// Settings of every namespace, by name.
fn settings() -> Vec<(String, String)> {
    let outside =
        AS_OUTSIDE.into_iter().filter_map(|name| Some((name.to_owned(), interface::sysctl(name).ok()?)));
    let mut all: Vec<(String, String)> = outside.collect();
    if let Ok(reuse) = interface::sysctl(TW_REUSE) {
        // Here nothing is on loopback that would be there outside.
        all.push((TW_REUSE.into(), if reuse == "2" { "1".into() } else { reuse }));
    }
    all.extend(WINDOWS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    all
}

/// The same, as the record has them.
fn recorded_settings(settings: Vec<(String, String)>) -> BTreeMap<String, String> {
    let named = settings.into_iter().map(|(name, value)| (name.replace('/', "."), value));
    named.chain([("mtu".to_owned(), interface::MTU.to_string())]).collect()
}

/// Sets up what every namespace has in common.
fn set_up_namespace(settings: &[(String, String)]) -> Result<(), NetError> {
    disable_ipv6();
    interface::loopback_up()?;
    settings.iter().try_for_each(|(name, value)| interface::set_sysctl(name, value))
}

/// Nothing but the roles is to send packets: without IPv6, no router is solicited.
fn disable_ipv6() {
    for which in ["all", "default"] {
        // A kernel without IPv6 has nothing to be told.
        let _ = interface::set_sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
}

/// The address of a number; the last block is the devices'.
fn host(place: Segment, index: usize) -> Result<Ipv4Addr, LabError> {
    let (block, host) = (1 + index / HOSTS_PER_BLOCK, 1 + index % HOSTS_PER_BLOCK);
    match (u8::try_from(block), u8::try_from(host)) {
        (Ok(block), Ok(host)) if block < u8::MAX => Ok(place.address(block, host)),
        _ => Err(LabError::plan(format!(
            "the workload has more than {} addresses of {}, and a network of the lab has no more",
            254 * HOSTS_PER_BLOCK,
            place.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plan: &NetworkPlan, direct: bool) -> (Vec<String>, Vec<String>) {
        let (namespaces, links) = layout(plan, direct);
        let name = |gap: &LinkPosition| gap.ends.map(Segment::name).join("-");
        let namespace_of_roles =
            |places: &Vec<Segment>| places.iter().map(|place| place.name()).collect::<Vec<_>>().join("+");
        (namespaces.iter().map(namespace_of_roles).collect(), links.iter().map(name).collect())
    }

    #[test]
    fn roles_share_a_namespace_unless_a_link_is_between_them() {
        let link = Some(LinkSettings::default());
        let plan =
            |robot_link, origin_link| NetworkPlan { robot_link, origin_link, congestion_control: None };
        for (plan, direct, namespaces, links) in [
            (plan(None, None), false, vec!["robots+target+origins"], vec![]),
            (plan(link, None), false, vec!["robots", "target+origins"], vec!["robots-target"]),
            (plan(None, link), false, vec!["robots+target", "origins"], vec!["target-origins"]),
            (
                plan(link, link),
                false,
                vec!["robots", "target", "origins"],
                vec!["robots-target", "target-origins"],
            ),
            (plan(None, None), true, vec!["robots+origins"], vec![]),
            (plan(link, None), true, vec!["robots", "origins"], vec!["robots-origins"]),
            (plan(None, link), true, vec!["robots", "origins"], vec!["robots-origins"]),
            (
                plan(link, link),
                true,
                vec!["robots", "target", "origins"],
                vec!["robots-target", "target-origins"],
            ),
        ] {
            let (seen_rooms, seen_links) = names(&plan, direct);
            assert_eq!(
                (seen_rooms, seen_links),
                (
                    namespaces.iter().map(|r| (*r).to_owned()).collect(),
                    links.iter().map(|l| (*l).to_owned()).collect()
                )
            );
        }
    }

    #[test]
    fn every_number_has_an_address_of_its_own_until_there_are_none() {
        let all: std::collections::HashSet<Ipv4Addr> =
            (0..254 * HOSTS_PER_BLOCK).map(|index| host(Segment::Robots, index).unwrap()).collect();
        assert_eq!(all.len(), 254 * HOSTS_PER_BLOCK);
        assert!(all.iter().all(|address| address.octets()[2] != 255));
        assert!(host(Segment::Robots, 254 * HOSTS_PER_BLOCK).is_err());
    }

    #[test]
    fn a_congestion_control_that_is_not_there_names_those_that_are() {
        let message = check_congestion_control("no-such").unwrap_err().to_string();
        assert!(message.contains("no-such") && message.contains("reno"), "{message}");
    }
}
