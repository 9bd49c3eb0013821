//! Other caches that may have a missing object, and the responses to their queries.
//!
//! Before a fetch, each peer that speaks ICP gets a query in a datagram. The object is requested from the first that says hit;
//! when all have said miss, or the time is up, the parent that responded first fetches it; parents without ICP are chosen by
//! a hash of the URL, so that each has its own share of the objects. A peer that has not responded to many queries is
//! still queried, so that its return is noticed, but no fetch waits for it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::spec::{Cooperation, Peer, Relation};
use assay_base::random::{FNV_START, STEP, fnv1a};
use assay_http::icp::{MOST_BYTES, Message, Opcode};
use assay_protocol::message::PeerCounters;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout_at};

use crate::handling::Source;
use crate::response::Response;
use crate::target::Target;

/// After so many queries without a response, no fetch waits for a peer.
const SILENT_AFTER: u32 = 20;

/// A peer to request an object from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promising {
    pub address: SocketAddr,
    /// What it is to us.
    pub source: Source,
    /// It has said that it has it.
    said_hit: bool,
}

/// The response of a peer, by its place, to a query.
type Said = (usize, Opcode);

#[derive(Default)]
pub struct Peers {
    socket: Option<UdpSocket>,
    known: Cooperation,
    /// Queries in a row that each peer has not responded to.
    without_response: Vec<Cell<u32>>,
    /// Which fetch waits for the responses to which query.
    waiting: RefCell<HashMap<u32, UnboundedSender<Said>>>,
    number: Cell<u32>,
    counters: RefCell<PeerCounters>,
}

impl Peers {
    /// With the proxy's settings; opens the socket for queries if it has an address for them. The error names the address that
    /// cannot be used.
    pub fn new(told: Option<&Cooperation>) -> Result<Self, (SocketAddr, io::Error)> {
        let Some(known) = told.cloned() else { return Ok(Self::default()) };
        let listen = |address: SocketAddr| {
            let socket = std::net::UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket)
        };
        let socket =
            known.icp.map(|address| listen(address).map_err(|error| (address, error))).transpose()?;
        let without_response = known.peers.iter().map(|_| Cell::new(0)).collect();
        Ok(Self { socket, known, without_response, ..Self::default() })
    }

    /// There are no peers to query.
    pub fn is_alone(&self) -> bool {
        self.known.peers.is_empty()
    }

    /// What a sibling gave is not stored.
    pub fn is_proxy_only(&self) -> bool {
        self.known.proxy_only
    }

    /// How much longer every exchange with another cache takes, there and back.
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.known.delay_ms)
    }

    /// Requests may not go to origins.
    pub fn never_direct(&self) -> bool {
        self.known.never_direct
    }

    /// Where requests may not go to origins: the parent for what is not looked for among caches (anything but a GET, what is to be
    /// confirmed, reloads); none: it is the origin's.
    pub fn only_way(&self, url: &str) -> Option<SocketAddr> {
        let parents = self.known.peers.iter().filter(|peer| peer.relation == Relation::Parent);
        let best = parents.max_by_key(|peer| share(&peer.name, url)).map(|peer| peer.http);
        best.filter(|_| self.known.never_direct)
    }

    /// Where it receives ICP queries.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.as_ref()?.local_addr().ok()
    }

    fn place_of(&self, icp: SocketAddr) -> Option<usize> {
        self.known.peers.iter().position(|peer| peer.icp == Some(icp))
    }

    fn may_query(&self, who: IpAddr) -> bool {
        let is_peer = |peer: &Peer| peer.icp.is_some_and(|icp| icp.ip() == who);
        self.known.clients.contains(&who) || self.known.peers.iter().any(is_peer)
    }

    fn waits_for(&self, place: usize) -> bool {
        self.without_response[place].get() < SILENT_AFTER
    }

    fn promising(&self, place: usize, said_hit: bool) -> Promising {
        let peer = &self.known.peers[place];
        let source = match peer.relation {
            Relation::Sibling => Source::Sibling,
            Relation::Parent => Source::Parent,
        };
        Promising { address: peer.http, source, said_hit }
    }

    /// The peers to request the object from, given their responses, the best first.
    fn rank(&self, url: &str, said: &[Said]) -> Vec<Promising> {
        let parents = || {
            let all = self.known.peers.iter().enumerate();
            all.filter(|(_, peer)| peer.relation == Relation::Parent)
        };
        let hit = said.iter().find(|(_, opcode)| *opcode == Opcode::Hit).map(|(place, _)| *place);
        let mut ranked: Vec<Promising> = hit.iter().map(|&place| self.promising(place, true)).collect();
        let may_fetch = |place: usize| {
            said.contains(&(place, Opcode::Miss)) && self.known.peers[place].relation == Relation::Parent
        };
        let fetching = said.iter().map(|(place, _)| *place).filter(|&place| may_fetch(place));
        ranked.extend(fetching.map(|place| self.promising(place, false)));
        let mut shares: Vec<(u64, usize)> = parents()
            .filter(|(_, peer)| peer.icp.is_none())
            .map(|(place, peer)| (share(&peer.name, url), place))
            .collect();
        shares.sort_unstable_by(|one, other| other.cmp(one));
        ranked.extend(shares.iter().map(|&(_, place)| self.promising(place, false)));
        if self.known.never_direct {
            // Those that have not responded yet may still do so, and there are no others.
            let silent = parents().filter(|(place, _)| !said.iter().any(|(other, _)| other == place));
            let silent = silent.filter(|(_, peer)| peer.icp.is_some());
            ranked.extend(silent.map(|(place, _)| self.promising(place, false)));
        }
        ranked
    }

    /// Sends a query to every peer that speaks ICP.
    fn send(&self, socket: &UdpSocket, url: &str) -> Sent {
        let number = self.number.get().wrapping_add(1);
        self.number.set(number);
        let (mut datagram, mut sent, mut sent_bytes, mut awaited) = (Vec::new(), 0, 0, Vec::new());
        if !Message::query(number, url).write(&mut datagram) {
            return Sent::default();
        }
        for (place, peer) in self.known.peers.iter().enumerate() {
            let Some(icp) = peer.icp else { continue };
            // A datagram that finds no room is lost, like any other on its way.
            if let Ok(bytes) = socket.try_send_to(&datagram, icp) {
                sent += 1;
                sent_bytes += bytes as u64;
                if self.waits_for(place) {
                    awaited.push(place);
                }
            }
        }
        Sent { number, datagrams: sent, bytes: sent_bytes, awaited }
    }

    /// Counters of queries and responses so far.
    pub fn counters(&self) -> PeerCounters {
        *self.counters.borrow()
    }

    /// Counts something that has to do with other caches.
    pub fn count(&self, add: impl FnOnce(&mut PeerCounters)) {
        add(&mut self.counters.borrow_mut());
    }

    /// Counts a peer's response to a request.
    pub fn count_fetch(&self, peer: &Promising, response: &Response) {
        self.count(|c| match peer.source {
            Source::Origin => {}
            Source::Sibling => c.sibling_hits += 1,
            Source::Parent => {
                c.parent_fetches += 1;
                c.parent_hits += u64::from(peer.said_hit || response.is_peers_hit());
            }
        });
    }

    /// Counts bytes of a body by where they come from.
    pub fn count_bytes(&self, source: Source, bytes: usize) {
        match source {
            Source::Origin => {}
            Source::Sibling => self.count(|c| c.sibling_bytes += bytes as u64),
            Source::Parent => self.count(|c| c.parent_bytes += bytes as u64),
        }
    }

    /// Queries all peers, and returns those to request the object from, the best first.
    pub async fn choose(&self, url: &str) -> Vec<Promising> {
        let said = match &self.socket {
            Some(socket) => self.query(socket, url).await,
            None => Vec::new(),
        };
        self.rank(url, &said)
    }

    async fn query(&self, socket: &UdpSocket, url: &str) -> Vec<Said> {
        let Sent { number, datagrams, bytes, awaited } = self.send(socket, url);
        self.count(|c| {
            c.icp_sent += datagrams;
            c.icp_bytes += bytes;
        });
        if awaited.is_empty() {
            return Vec::new();
        }
        let (sender, responses) = unbounded_channel();
        self.waiting.borrow_mut().insert(number, sender);
        let began = Instant::now();
        let said = self.collect(responses, &awaited).await;
        let waited_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count(|c| c.icp_wait_us = c.icp_wait_us.saturating_add(waited_us));
        self.waiting.borrow_mut().remove(&number);
        let responded = |place: &usize| said.iter().any(|(other, _)| other == place);
        let is_decided = said.iter().any(|(_, opcode)| *opcode == Opcode::Hit);
        for place in awaited.iter().filter(|place| !is_decided && !responded(place)) {
            self.without_response[*place].set(self.without_response[*place].get().saturating_add(1));
            self.count(|c| c.icp_timeouts += 1);
        }
        said
    }

    /// The responses, until one is a hit, all are there, or the time is up.
    async fn collect(&self, mut responses: UnboundedReceiver<Said>, awaited: &[usize]) -> Vec<Said> {
        let (patience, delay) = (Duration::from_millis(self.known.timeout_ms), self.delay());
        let mut said: Vec<Said> = Vec::new();
        if delay >= patience && !delay.is_zero() {
            // Whatever is said comes too late.
            sleep(patience).await;
            return said;
        }
        // Responses that have come by then are handled after the configured delay.
        let deadline = Instant::now() + patience - delay;
        while !awaited.iter().all(|place| said.iter().any(|(other, _)| other == place)) {
            let Ok(Some(response)) = timeout_at(deadline, responses.recv()).await else { break };
            said.push(response);
            if response.1 == Opcode::Hit {
                break;
            }
        }
        if !delay.is_zero() {
            sleep(delay).await;
        }
        said
    }

    /// Responds to queries of other caches, and hands responses of peers to the fetches that wait for them, for ever. `holds`:
    /// the object is stored here, and fresh.
    pub async fn listen(&self, holds: impl Fn(&Target<'_>) -> bool) {
        let Some(socket) = &self.socket else { return std::future::pending().await };
        let mut room = vec![0; MOST_BYTES + 1];
        let mut out = Vec::new();
        loop {
            // An error is that of a datagram sent before, to a port without a listener.
            let Ok((length, from)) = socket.recv_from(&mut room).await else { continue };
            match Message::parse(&room[..length]) {
                Ok(query) if query.opcode == Opcode::Query => {
                    let opcode = self.opinion(&query, from, &holds);
                    if query.response(opcode).write(&mut out) {
                        // A lost response is a query without a response.
                        let sent = socket.try_send_to(&out, from).unwrap_or(0) as u64;
                        self.count(|c| c.icp_bytes += sent);
                    }
                }
                Ok(response) => self.take(&response, from),
                Err(_) => self.count(|c| c.icp_refused += 1),
            }
        }
    }

    /// The response to a query.
    fn opinion(&self, query: &Message<'_>, from: SocketAddr, holds: impl Fn(&Target<'_>) -> bool) -> Opcode {
        if !self.may_query(from.ip()) {
            self.count(|c| c.icp_refused += 1);
            return Opcode::Denied;
        }
        let Ok(target) = Target::of_url(query.url) else {
            self.count(|c| c.icp_refused += 1);
            return Opcode::Error;
        };
        let is_hit = holds(&target);
        self.count(|c| {
            c.icp_answered += 1;
            c.icp_answered_hits += u64::from(is_hit);
        });
        if is_hit { Opcode::Hit } else { Opcode::Miss }
    }

    fn take(&self, response: &Message<'_>, from: SocketAddr) {
        let Some(place) = self.place_of(from) else {
            self.count(|c| c.icp_refused += 1);
            return;
        };
        // A hit with the object in it: only sent where a query sets the flag for it, which ours do not.
        let opcode = if response.opcode == Opcode::HitObject { Opcode::Hit } else { response.opcode };
        self.without_response[place].set(0);
        self.count(|c| {
            c.icp_replies += 1;
            c.icp_hits += u64::from(opcode == Opcode::Hit);
        });
        if let Some(requester) = self.waiting.borrow().get(&response.number) {
            // The fetch may have had a response already, and has gone on.
            let _ = requester.send((place, opcode));
        }
    }
}

/// A query that was sent.
#[derive(Default)]
struct Sent {
    number: u32,
    datagrams: u64,
    bytes: u64,
    /// Those whose response is waited for.
    awaited: Vec<usize>,
}

/// How good a parent is for a URL: the highest of all gets it, and keeps it when others come or go.
fn share(name: &str, url: &str) -> u64 {
    let mixed = fnv1a(fnv1a(FNV_START, name.as_bytes()) ^ STEP, url.as_bytes());
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The request for a peer: its whole URL, and `only-if-cached` where only a stored response is wanted.
pub fn request(for_origin: &[u8], url: &str, source: Source) -> Vec<u8> {
    let line_end = for_origin.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut request = Vec::with_capacity(for_origin.len() + url.len() + 64);
    for part in [b"GET ", url.as_bytes(), b" HTTP/1.1\r\n", &for_origin[line_end..for_origin.len() - 2]] {
        request.extend_from_slice(part);
    }
    if source == Source::Sibling {
        request.extend_from_slice(b"Cache-Control: only-if-cached\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(name: &str, relation: Relation, icp: bool) -> Peer {
        let port = u16::from(name.as_bytes()[0]);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Peer { name: name.into(), relation, http: address, icp: icp.then_some(address) }
    }

    fn peers(known: Vec<Peer>, never_direct: bool) -> Peers {
        let told = Cooperation { peers: known, never_direct, ..Cooperation::default() };
        Peers::new(Some(&told)).unwrap()
    }

    fn ports(ranked: &[Promising]) -> Vec<char> {
        ranked.iter().map(|promising| char::from(promising.address.port() as u8)).collect()
    }

    #[test]
    fn a_hit_comes_before_the_parent_that_responded_first_and_siblings_never_fetch() {
        use Relation::{Parent, Sibling};
        let known = vec![
            peer("s", Sibling, true),
            peer("t", Sibling, true),
            peer("p", Parent, true),
            peer("q", Parent, true),
        ];
        let peers = peers(known, false);
        let (hit, miss) = (Opcode::Hit, Opcode::Miss);
        assert_eq!(ports(&peers.rank("u", &[(0, miss), (3, miss), (2, miss), (1, hit)])), ['t', 'q', 'p']);
        assert_eq!(
            ports(&peers.rank("u", &[(0, miss), (2, Opcode::MissNoFetch), (1, miss)])),
            [] as [char; 0]
        );
        assert!(peers.rank("u", &[]).is_empty());
    }

    #[test]
    fn a_cache_barred_from_origins_tries_parents_that_said_nothing() {
        use Relation::{Parent, Sibling};
        let known = vec![peer("s", Sibling, true), peer("p", Parent, true), peer("q", Parent, true)];
        let peers = peers(known, true);
        assert_eq!(ports(&peers.rank("u", &[(2, Opcode::Miss)])), ['q', 'p']);
    }

    #[test]
    fn parents_without_icp_share_objects_evenly_and_keep_their_own_when_one_goes() {
        let three = ["a", "b", "c"].map(|name| peer(name, Relation::Parent, false));
        let (all, two) = (peers(three.to_vec(), false), peers(three[..2].to_vec(), false));
        let urls: Vec<String> = (0..3000).map(|n| format!("http://h/w1/t00/{n:x}")).collect();
        let first = |peers: &Peers, url: &str| ports(&peers.rank(url, &[]))[0];
        for name in ['a', 'b', 'c'] {
            let share = urls.iter().filter(|url| first(&all, url) == name).count();
            assert!((850..1150).contains(&share), "{name}: {share}");
        }
        assert!(urls.iter().all(|url| first(&all, url) == 'c' || first(&all, url) == first(&two, url)));
    }

    #[test]
    fn a_peer_gets_the_whole_url_and_a_sibling_only_if_cached() {
        let origin = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(
            request(origin, "http://a/x", Source::Parent),
            b"GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n"
        );
        let sibling = request(origin, "http://a/x", Source::Sibling);
        assert!(sibling.ends_with(b"Host: a\r\nCache-Control: only-if-cached\r\n\r\n"));
    }
}
