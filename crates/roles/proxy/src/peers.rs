//! Cooperation with other caches by ICP (RFC 2186).
//!
//! Before a fetch, each peer that speaks ICP gets a query in a datagram. The object is requested from the first peer that reports
//! a hit; when all have reported a miss, or the time is up, the parent that responded first fetches it. Parents without ICP are
//! chosen by a hash of the URL, so that each has its own share of the objects. A peer that has left many queries unanswered is
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

use crate::cache_status::ResponseSource;
use crate::response::ProxyResponse;
use crate::target::Target;

/// Unanswered queries in a row after which no fetch waits for a peer.
const SILENT_AFTER_QUERIES: u32 = 20;

/// A peer to request an object from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCandidate {
    pub address: SocketAddr,
    pub source: ResponseSource,
    /// The peer reported a hit.
    has_hit: bool,
}

/// Response of a peer to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PeerResponse {
    /// Index of the peer in the settings.
    peer: usize,
    opcode: Opcode,
}

#[derive(Default)]
pub struct Peers {
    socket: Option<UdpSocket>,
    settings: Cooperation,
    /// Unanswered queries in a row, by peer.
    unanswered_queries: Vec<Cell<u32>>,
    /// Fetches waiting for responses, by query number.
    waiting: RefCell<HashMap<u32, UnboundedSender<PeerResponse>>>,
    number: Cell<u32>,
    counters: RefCell<PeerCounters>,
}

impl Peers {
    /// Opens the socket for queries if the settings have an address for it. The error names the address that cannot be used.
    pub fn new(settings: Option<&Cooperation>) -> Result<Self, (SocketAddr, io::Error)> {
        let Some(settings) = settings.cloned() else { return Ok(Self::default()) };
        let listen = |address: SocketAddr| {
            let socket = std::net::UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket)
        };
        let socket =
            settings.icp.map(|address| listen(address).map_err(|error| (address, error))).transpose()?;
        let unanswered_queries = settings.peers.iter().map(|_| Cell::new(0)).collect();
        Ok(Self { socket, settings, unanswered_queries, ..Self::default() })
    }

    pub fn is_alone(&self) -> bool {
        self.settings.peers.is_empty()
    }

    /// Responses of siblings are not stored.
    pub fn is_proxy_only(&self) -> bool {
        self.settings.proxy_only
    }

    /// Emulated round-trip time of exchanges with other caches.
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.settings.delay_ms)
    }

    pub fn never_direct(&self) -> bool {
        self.settings.never_direct
    }

    /// With `never_direct`: the parent for requests that are not looked up at other caches (anything but a GET, validations,
    /// reloads). `None`: the origin.
    pub fn required_parent(&self, url: &str) -> Option<SocketAddr> {
        let parents = self.settings.peers.iter().filter(|peer| peer.relation == Relation::Parent);
        let best = parents.max_by_key(|peer| rendezvous_weight(&peer.name, url)).map(|peer| peer.http);
        best.filter(|_| self.settings.never_direct)
    }

    /// Address for ICP queries.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.as_ref()?.local_addr().ok()
    }

    fn peer_index(&self, icp: SocketAddr) -> Option<usize> {
        self.settings.peers.iter().position(|peer| peer.icp == Some(icp))
    }

    fn may_query(&self, address: IpAddr) -> bool {
        let is_peer = |peer: &Peer| peer.icp.is_some_and(|icp| icp.ip() == address);
        self.settings.clients.contains(&address) || self.settings.peers.iter().any(is_peer)
    }

    fn waits_for(&self, index: usize) -> bool {
        self.unanswered_queries[index].get() < SILENT_AFTER_QUERIES
    }

    fn candidate(&self, index: usize, has_hit: bool) -> PeerCandidate {
        let peer = &self.settings.peers[index];
        let source = match peer.relation {
            Relation::Sibling => ResponseSource::Sibling,
            Relation::Parent => ResponseSource::Parent,
        };
        PeerCandidate { address: peer.http, source, has_hit }
    }

    /// Ranks the peers to request the object from, given their responses.
    fn rank(&self, url: &str, responses: &[PeerResponse]) -> Vec<PeerCandidate> {
        let parents = || {
            let all = self.settings.peers.iter().enumerate();
            all.filter(|(_, peer)| peer.relation == Relation::Parent)
        };
        let hit =
            responses.iter().find(|response| response.opcode == Opcode::Hit).map(|response| response.peer);
        let mut ranked: Vec<PeerCandidate> = hit.iter().map(|&index| self.candidate(index, true)).collect();
        let may_fetch = |index: usize| {
            responses.contains(&PeerResponse { peer: index, opcode: Opcode::Miss })
                && self.settings.peers[index].relation == Relation::Parent
        };
        let fetching = responses.iter().map(|response| response.peer).filter(|&index| may_fetch(index));
        ranked.extend(fetching.map(|index| self.candidate(index, false)));
        let mut weights: Vec<(u64, usize)> = parents()
            .filter(|(_, peer)| peer.icp.is_none())
            .map(|(index, peer)| (rendezvous_weight(&peer.name, url), index))
            .collect();
        weights.sort_unstable_by(|one, other| other.cmp(one));
        ranked.extend(weights.iter().map(|&(_, index)| self.candidate(index, false)));
        if self.settings.never_direct {
            // Peers that have not responded yet may still have the object, and there is no other way to get it.
            let silent =
                parents().filter(|(index, _)| !responses.iter().any(|response| response.peer == *index));
            let silent = silent.filter(|(_, peer)| peer.icp.is_some());
            ranked.extend(silent.map(|(index, _)| self.candidate(index, false)));
        }
        ranked
    }

    /// Sends a query to every peer that speaks ICP.
    fn send(&self, socket: &UdpSocket, url: &str) -> SentQuery {
        let number = self.number.get().wrapping_add(1);
        self.number.set(number);
        let (mut datagram, mut sent, mut sent_bytes, mut awaited) = (Vec::new(), 0, 0, Vec::new());
        if !Message::query(number, url).write(&mut datagram) {
            return SentQuery::default();
        }
        for (index, peer) in self.settings.peers.iter().enumerate() {
            let Some(icp) = peer.icp else { continue };
            // Without room in the socket buffer, the datagram counts as lost.
            if let Ok(bytes) = socket.try_send_to(&datagram, icp) {
                sent += 1;
                sent_bytes += bytes as u64;
                if self.waits_for(index) {
                    awaited.push(index);
                }
            }
        }
        SentQuery { number, datagrams: sent, bytes: sent_bytes, awaited }
    }

    pub fn counters(&self) -> PeerCounters {
        *self.counters.borrow()
    }

    pub fn count(&self, add: impl FnOnce(&mut PeerCounters)) {
        add(&mut self.counters.borrow_mut());
    }

    /// Counts a peer's response to a request.
    pub fn count_fetch(&self, peer: &PeerCandidate, response: &ProxyResponse) {
        self.count(|c| match peer.source {
            ResponseSource::Origin => {}
            ResponseSource::Sibling => c.sibling_hits += 1,
            ResponseSource::Parent => {
                c.parent_fetches += 1;
                c.parent_hits += u64::from(peer.has_hit || response.is_peers_hit());
            }
        });
    }

    /// Counts bytes of a body by their source.
    pub fn count_bytes(&self, source: ResponseSource, bytes: usize) {
        match source {
            ResponseSource::Origin => {}
            ResponseSource::Sibling => self.count(|c| c.sibling_bytes += bytes as u64),
            ResponseSource::Parent => self.count(|c| c.parent_bytes += bytes as u64),
        }
    }

    /// Queries all peers and returns those to request the object from, best first.
    pub async fn choose(&self, url: &str) -> Vec<PeerCandidate> {
        let responses = match &self.socket {
            Some(socket) => self.query(socket, url).await,
            None => Vec::new(),
        };
        self.rank(url, &responses)
    }

    async fn query(&self, socket: &UdpSocket, url: &str) -> Vec<PeerResponse> {
        let SentQuery { number, datagrams, bytes, awaited } = self.send(socket, url);
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
        let responses = self.collect(responses, &awaited).await;
        let waited_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.count(|c| c.icp_wait_us = c.icp_wait_us.saturating_add(waited_us));
        self.waiting.borrow_mut().remove(&number);
        let responded = |index: &usize| responses.iter().any(|response| response.peer == *index);
        let is_decided = responses.iter().any(|response| response.opcode == Opcode::Hit);
        for index in awaited.iter().filter(|index| !is_decided && !responded(index)) {
            self.unanswered_queries[*index].set(self.unanswered_queries[*index].get().saturating_add(1));
            self.count(|c| c.icp_timeouts += 1);
        }
        responses
    }

    /// Collects responses until one is a hit, all have arrived, or the time is up.
    async fn collect(
        &self,
        mut receiver: UnboundedReceiver<PeerResponse>,
        awaited: &[usize],
    ) -> Vec<PeerResponse> {
        let (time_limit, delay) = (Duration::from_millis(self.settings.timeout_ms), self.delay());
        let mut responses: Vec<PeerResponse> = Vec::new();
        if delay >= time_limit && !delay.is_zero() {
            // With this delay, every response would come too late.
            sleep(time_limit).await;
            return responses;
        }
        // The delay is emulated: responses that have arrived by then are handled after it.
        let deadline = Instant::now() + time_limit - delay;
        while !awaited.iter().all(|index| responses.iter().any(|response| response.peer == *index)) {
            let Ok(Some(response)) = timeout_at(deadline, receiver.recv()).await else { break };
            responses.push(response);
            if response.opcode == Opcode::Hit {
                break;
            }
        }
        if !delay.is_zero() {
            sleep(delay).await;
        }
        responses
    }

    /// Serves queries of other caches, and dispatches responses of peers to the waiting fetches, for ever. `holds`: whether a
    /// fresh response is stored.
    pub async fn listen(&self, holds: impl Fn(&Target<'_>) -> bool) {
        let Some(socket) = &self.socket else { return std::future::pending().await };
        let mut datagram = vec![0; MOST_BYTES + 1];
        let mut out = Vec::new();
        loop {
            // Errors belong to earlier datagrams (ICMP port unreachable).
            let Ok((length, from)) = socket.recv_from(&mut datagram).await else { continue };
            match Message::parse(&datagram[..length]) {
                Ok(query) if query.opcode == Opcode::Query => {
                    let opcode = self.response_opcode(&query, from, &holds);
                    if query.response(opcode).write(&mut out) {
                        // A lost response counts as an unanswered query at the peer.
                        let sent = socket.try_send_to(&out, from).unwrap_or(0) as u64;
                        self.count(|c| c.icp_bytes += sent);
                    }
                }
                Ok(response) => self.on_response(&response, from),
                Err(_) => self.count(|c| c.icp_refused += 1),
            }
        }
    }

    /// Opcode of the response to a query.
    fn response_opcode(
        &self,
        query: &Message<'_>,
        from: SocketAddr,
        holds: impl Fn(&Target<'_>) -> bool,
    ) -> Opcode {
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
            c.icp_responses_sent += 1;
            c.icp_hits_sent += u64::from(is_hit);
        });
        if is_hit { Opcode::Hit } else { Opcode::Miss }
    }

    fn on_response(&self, response: &Message<'_>, from: SocketAddr) {
        let Some(index) = self.peer_index(from) else {
            self.count(|c| c.icp_refused += 1);
            return;
        };
        // A hit that carries the object is only sent if the query allows it, which ours do not.
        let opcode = if response.opcode == Opcode::HitObject { Opcode::Hit } else { response.opcode };
        self.unanswered_queries[index].set(0);
        self.count(|c| {
            c.icp_responses += 1;
            c.icp_hits += u64::from(opcode == Opcode::Hit);
        });
        if let Some(sender) = self.waiting.borrow().get(&response.number) {
            // The fetch may have had enough responses, and be gone.
            let _ = sender.send(PeerResponse { peer: index, opcode });
        }
    }
}

#[derive(Default)]
struct SentQuery {
    number: u32,
    datagrams: u64,
    bytes: u64,
    /// Peers whose responses are awaited.
    awaited: Vec<usize>,
}

/// Weight of a parent for a URL (rendezvous hashing): the highest one gets it, and keeps it when others come or go.
fn rendezvous_weight(name: &str, url: &str) -> u64 {
    let mixed = fnv1a(fnv1a(FNV_START, name.as_bytes()) ^ STEP, url.as_bytes());
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Builds the request for a peer: absolute URL, and `only-if-cached` for siblings.
pub fn request(for_origin: &[u8], url: &str, source: ResponseSource) -> Vec<u8> {
    let line_end = for_origin.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut request = Vec::with_capacity(for_origin.len() + url.len() + 64);
    for part in [b"GET ", url.as_bytes(), b" HTTP/1.1\r\n", &for_origin[line_end..for_origin.len() - 2]] {
        request.extend_from_slice(part);
    }
    if source == ResponseSource::Sibling {
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

    fn peers(members: Vec<Peer>, never_direct: bool) -> Peers {
        let settings = Cooperation { peers: members, never_direct, ..Cooperation::default() };
        Peers::new(Some(&settings)).unwrap()
    }

    fn ports(ranked: &[PeerCandidate]) -> Vec<char> {
        ranked.iter().map(|candidate| char::from(candidate.address.port() as u8)).collect()
    }

    fn responses(all: &[(usize, Opcode)]) -> Vec<PeerResponse> {
        all.iter().map(|&(peer, opcode)| PeerResponse { peer, opcode }).collect()
    }

    #[test]
    fn a_hit_comes_before_the_parent_that_responded_first_and_siblings_never_fetch() {
        use Relation::{Parent, Sibling};
        let members = vec![
            peer("s", Sibling, true),
            peer("t", Sibling, true),
            peer("p", Parent, true),
            peer("q", Parent, true),
        ];
        let peers = peers(members, false);
        let (hit, miss) = (Opcode::Hit, Opcode::Miss);
        assert_eq!(
            ports(&peers.rank("u", &responses(&[(0, miss), (3, miss), (2, miss), (1, hit)]))),
            ['t', 'q', 'p']
        );
        assert_eq!(
            ports(&peers.rank("u", &responses(&[(0, miss), (2, Opcode::MissNoFetch), (1, miss)]))),
            [] as [char; 0]
        );
        assert!(peers.rank("u", &[]).is_empty());
    }

    #[test]
    fn a_cache_barred_from_origins_tries_parents_that_said_nothing() {
        use Relation::{Parent, Sibling};
        let members = vec![peer("s", Sibling, true), peer("p", Parent, true), peer("q", Parent, true)];
        let peers = peers(members, true);
        assert_eq!(ports(&peers.rank("u", &responses(&[(2, Opcode::Miss)]))), ['q', 'p']);
    }

    #[test]
    fn parents_without_icp_share_objects_evenly_and_keep_their_own_when_one_goes() {
        let three = ["a", "b", "c"].map(|name| peer(name, Relation::Parent, false));
        let (all, two) = (peers(three.to_vec(), false), peers(three[..2].to_vec(), false));
        let urls: Vec<String> = (0..3000).map(|n| format!("http://h/w1/t00/{n:x}")).collect();
        let first = |peers: &Peers, url: &str| ports(&peers.rank(url, &[]))[0];
        for name in ['a', 'b', 'c'] {
            let count = urls.iter().filter(|url| first(&all, url) == name).count();
            assert!((850..1150).contains(&count), "{name}: {count}");
        }
        assert!(urls.iter().all(|url| first(&all, url) == 'c' || first(&all, url) == first(&two, url)));
    }

    #[test]
    fn a_peer_gets_the_whole_url_and_a_sibling_only_if_cached() {
        let origin = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(
            request(origin, "http://a/x", ResponseSource::Parent),
            b"GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n"
        );
        let sibling = request(origin, "http://a/x", ResponseSource::Sibling);
        assert!(sibling.ends_with(b"Host: a\r\nCache-Control: only-if-cached\r\n\r\n"));
    }
}
