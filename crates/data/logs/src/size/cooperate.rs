//! Caches that work together: several side by side, siblings that are queried for what they have, parents that fetch for others, layers
//! behind each other.
//!
//! A request enters one cache. What that does not have, it gets from a sibling or a parent with a fresh copy, else through its first parent,
//! which does the same, else from the origin; on the way back every cache that the response passes stores it, except what came from a sibling where
//! [`CacheNode::proxy_only`] says so. Siblings never fetch. What must be validated or reloaded is not requested from siblings, as in ICP.
//! Where responses take time, a cache makes room for one when it arrives ([`arrivals`](crate::size::arrivals)). Until then, requests for it are hits of caches
//! that collapse requests, and misses of others.
//!
//! *Does not:* know of delays between caches, false hits, or lost queries.

use assay_cache::ideal::RequestClass as CacheRequest;
use assay_cache::policy::replacement::Replacement;
use assay_cache::policy::tinylfu::TinyLfu;
use assay_cache::policy::{Admission, EvictionPolicy, LookupResult, Store};

use crate::size::arrivals::Arrivals;
use crate::size::counter::{Counter, HitCounts, OutcomeFlags, SimulationRules};
use crate::size::http::{Http, NO_VALIDATOR, RequestSemantics, USUAL};
use crate::size::layout::Layout;
use crate::size::requests::{Requests, TraceRequest, UNCACHABLE};
use crate::size::sample_part::room;

/// The most caches behind each other.
const MAX_DEPTH: usize = 16;

/// A cache among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheNode {
    pub name: String,
    /// Bytes that it holds.
    pub capacity_bytes: u64,
    /// Room for objects in it.
    pub layout: Layout,
    /// Places of its siblings.
    pub siblings: Vec<usize>,
    /// Places of its parents.
    pub parents: Vec<usize>,
    /// Responses from siblings are not stored here (Squid's `proxy-only`).
    pub proxy_only: bool,
    /// Replacement policy; none: that of the hierarchy.
    pub policy: Option<Replacement>,
    pub admission: Admission,
}

/// Caches that work together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    pub name: String,
    /// The caches; parents never lead back to a child.
    pub nodes: Vec<CacheNode>,
    /// The cache that each client's requests enter, by the client's number, over and over.
    pub entries: Vec<u16>,
    /// The replacement policy of those that have none of their own.
    pub policy: Replacement,
}

/// Origin of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServedBy {
    Own,
    Sibling,
    Parent,
    Origin,
}

/// Requests that a cache received, and the hits among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Requests of clients that are in the figures.
    pub requests: u64,
    /// Served from its own store.
    pub own_hits: u64,
    /// Served by a sibling.
    pub sibling_hits: u64,
    /// Served by a parent, or by that parent's siblings and parents.
    pub parent_hits: u64,
    /// Requests of other caches, for what it has or fetches.
    pub from_caches: u64,
    /// Hits among these.
    pub from_caches_hits: u64,
}

impl NodeCounts {
    /// The figures of all requests, from those for objects of a sample with this rate, and for large ones.
    fn of_all([drawn, large]: [Self; 2], rate: f64) -> Self {
        let all = |of: fn(&Self) -> u64| (of(&drawn) as f64 / rate).round() as u64 + of(&large);
        Self {
            requests: all(|served| served.requests),
            own_hits: all(|served| served.own_hits),
            sibling_hits: all(|served| served.sibling_hits),
            parent_hits: all(|served| served.parent_hits),
            from_caches: all(|served| served.from_caches),
            from_caches_hits: all(|served| served.from_caches_hits),
        }
    }
}

/// Result of a simulation of cooperating caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HierarchyResult {
    /// Requests of clients, in parts of the same length.
    pub parts: Vec<HitCounts>,
    pub nodes: Vec<NodeCounts>,
}

impl HierarchyResult {
    pub fn total(&self) -> HitCounts {
        let mut total = HitCounts::default();
        self.parts.iter().for_each(|part| total.add(part));
        total
    }

    /// Of a sample: the objects that were drawn, and the large ones.
    pub(crate) fn drawn_and_large(&self) -> [HitCounts; 2] {
        [0, 1].map(|part| self.parts.get(part).copied().unwrap_or_default())
    }
}

impl CacheNode {
    /// A cache that knows no other and stores everything.
    pub fn alone(name: String, capacity_bytes: u64, layout: Layout) -> Self {
        Self {
            name,
            capacity_bytes,
            layout,
            siblings: Vec::new(),
            parents: Vec::new(),
            proxy_only: false,
            policy: None,
            admission: Admission::All,
        }
    }

    /// An empty store with so much room.
    fn store(
        &self,
        policy: Replacement,
        capacity: u64,
        shares: &[f32],
        objects: usize,
    ) -> Store<Box<dyn EvictionPolicy>> {
        let order = policy.order_by_shares(capacity, objects, shares.to_vec());
        let order: Box<dyn EvictionPolicy> = match self.admission {
            Admission::TinyLfu => Box::new(TinyLfu::new(order, objects)),
            _ => order,
        };
        Store::new(order, capacity, objects).admitting(self.admission)
    }
}

impl Hierarchy {
    /// The same caches, none of which requests anything from another.
    #[must_use]
    pub fn apart(&self) -> Self {
        let alone =
            |node: &CacheNode| CacheNode { siblings: Vec::new(), parents: Vec::new(), ..node.clone() };
        Self { nodes: self.nodes.iter().map(alone).collect(), ..self.clone() }
    }

    /// One cache with the room of all of them, for all clients.
    #[must_use]
    pub fn as_one(&self) -> Self {
        let capacity_bytes =
            self.nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(node.capacity_bytes));
        let layout = self.nodes.first().map_or(Layout::BODIES, |node| node.layout);
        let policy = self.nodes.first().and_then(|node| node.policy);
        let node = CacheNode { policy, ..CacheNode::alone("one".into(), capacity_bytes, layout) };
        Self { name: self.name.clone(), nodes: vec![node], entries: vec![0], policy: self.policy }
    }

    /// The replacement policy of a cache.
    pub fn policy_of(&self, node: &CacheNode) -> Replacement {
        node.policy.unwrap_or(self.policy)
    }

    /// Caches behind each other, the nearest to clients first; of that, `edges` side by side share the clients.
    pub fn layers(capacities: &[u64], edges: usize, layout: Layout) -> Self {
        let edges = edges.max(1);
        let node = |name: String, capacity_bytes: u64, parents: Vec<usize>| CacheNode {
            parents,
            ..CacheNode::alone(name, capacity_bytes, layout)
        };
        let (first, behind) =
            capacities.split_first().map_or((0, &[][..]), |(first, behind)| (*first, behind));
        let parent_of_first: Vec<usize> = if behind.is_empty() { Vec::new() } else { vec![edges] };
        let name = |edge: usize| if edges == 1 { "layer 1".into() } else { format!("edge {}", edge + 1) };
        let mut nodes: Vec<CacheNode> =
            (0..edges).map(|edge| node(name(edge), first, parent_of_first.clone())).collect();
        for (at, capacity) in behind.iter().enumerate() {
            let parents = if at + 1 < behind.len() { vec![edges + at + 1] } else { Vec::new() };
            nodes.push(node(format!("layer {}", at + 2), *capacity, parents));
        }
        Self { name: "layers".into(), nodes, entries: (0..edges as u16).collect(), policy: Replacement::Lru }
    }
}

/// Plays all requests through the caches; those of the warm-up are not counted.
pub fn simulate_hierarchy(
    requests: &Requests,
    hierarchy: &Hierarchy,
    warm_up: usize,
    parts: usize,
) -> HierarchyResult {
    let plain = Http::new(USUAL);
    let http = requests.http.as_ref().unwrap_or(&plain);
    let shares = requests.shares();
    let node = |node: &CacheNode| NodeState {
        node: node.clone(),
        store: node.store(
            hierarchy.policy_of(node),
            requests.room_of(node.capacity_bytes),
            &shares,
            requests.objects,
        ),
        copies: vec![NodeCopy::default(); requests.objects],
        capacity: requests.room_of(node.capacity_bytes),
        factor: 1.0,
        served: [NodeCounts::default(); 2],
    };
    let mut caches = HierarchyState {
        http,
        nodes: hierarchy.nodes.iter().map(node).collect(),
        arrivals: Arrivals::default(),
        turn: 0,
        part: 0,
    };
    let mut counter =
        Counter::new(requests, SimulationRules { warm_up, parts, ..SimulationRules::default() });
    for (number, request) in requests.list.iter().enumerate() {
        let semantics = http.semantics.get(number).copied().unwrap_or(RequestSemantics::PLAIN);
        let client = requests.clients.get(number).copied().unwrap_or_default() as usize;
        let entry = usize::from(hierarchy.entries[client % hierarchy.entries.len()]);
        caches.arrive(semantics.at_ms(request));
        caches.begin(usize::from(requests.is_large(number)), requests.factor(number));
        let source = match request.object {
            UNCACHABLE => ServedBy::Origin,
            _ => caches.serve(entry, request, &semantics),
        };
        if number >= warm_up && semantics.is_counted {
            counter.enter(number);
            counter.count(number, request, source != ServedBy::Origin, OutcomeFlags::default());
            let served = &mut caches.nodes[entry].served[caches.part];
            served.requests += 1;
            match source {
                ServedBy::Own => served.own_hits += 1,
                ServedBy::Sibling => served.sibling_hits += 1,
                ServedBy::Parent => served.parent_hits += 1,
                ServedBy::Origin => {}
            }
        }
    }
    HierarchyResult {
        parts: counter.finish().parts,
        nodes: caches
            .nodes
            .into_iter()
            .map(|node| NodeCounts::of_all(node.served, requests.rate()))
            .collect(),
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct NodeCopy {
    fresh_until_ms: u64,
    /// Arrival, from which on other requests find the copy.
    arrives_ms: u64,
    version: u32,
    /// The arrival that it comes with; 0: it is not on its way.
    arrival: u32,
}

struct NodeState {
    node: CacheNode,
    store: Store<Box<dyn EvictionPolicy>>,
    copies: Vec<NodeCopy>,
    /// Capacity in the simulation's unit of room.
    capacity: u64,
    /// By how much the room of the requested object is multiplied, in a sample.
    factor: f64,
    /// Of objects that were drawn, or of all, and of large ones.
    served: [NodeCounts; 2],
}

impl NodeState {
    fn room(&self, request: &TraceRequest) -> u64 {
        room(self.node.layout.room(request.bytes), self.factor)
    }

    fn holds(&self, request: &TraceRequest) -> bool {
        self.store.holds(request.object, self.room(request))
    }

    fn copy(&self, request: &TraceRequest) -> NodeCopy {
        self.copies[request.object as usize]
    }

    /// True for a copy that may be served without a validation.
    fn is_fresh(&self, request: &TraceRequest, at_ms: u64) -> bool {
        let copy = self.copy(request);
        copy.arrival == 0 && self.holds(request) && at_ms < copy.fresh_until_ms
    }

    fn touch(&mut self, request: &TraceRequest) {
        self.store.order_mut().hit(request.object);
    }

    /// Makes room for a response that is there, and stores it.
    fn keep(&mut self, object: u32, room: u64, copy: NodeCopy) {
        self.store.remove(object);
        self.copies[object as usize].arrival = 0;
        if self.store.request(object, room) == LookupResult::Stored {
            self.copies[object as usize] = NodeCopy { arrival: 0, ..copy };
        }
    }
}

struct HierarchyState<'a> {
    http: &'a Http,
    nodes: Vec<NodeState>,
    arrivals: Arrivals,
    /// Number of times that several caches had a copy, so that they take turns.
    turn: usize,
    /// Stratum of the current request ([`NodeState::served`]).
    part: usize,
}

/// A cache that has a fresh copy.
#[derive(Debug, Clone, Copy)]
enum Holder {
    Sibling(usize),
    Parent(usize),
}

impl HierarchyState<'_> {
    /// The next request counts for this part, and the room of its object is multiplied by this.
    fn begin(&mut self, part: usize, factor: f64) {
        self.part = part;
        self.nodes.iter_mut().for_each(|node| node.factor = factor);
    }

    /// Caches store what has arrived by this time.
    fn arrive(&mut self, at_ms: u64) {
        while let Some(arrival) = self.arrivals.next_until(at_ms) {
            let node = &mut self.nodes[arrival.cache];
            let copy = node.copies[arrival.object as usize];
            // Another one may have come in its place, or the object was dropped.
            if copy.arrival == arrival.number {
                node.keep(arrival.object, arrival.room, copy);
            }
        }
    }

    /// A cache stores a response, as soon as that is there.
    fn keep(&mut self, at: usize, request: &TraceRequest, copy: NodeCopy, at_ms: u64) {
        let node = &mut self.nodes[at];
        let room = node.room(request);
        if copy.arrives_ms <= at_ms || room > node.capacity {
            node.keep(request.object, room, copy);
        } else {
            let arrival = self.arrivals.send(copy.arrives_ms, at, request.object, room);
            node.copies[request.object as usize] = NodeCopy { arrival, ..copy };
        }
    }

    /// A request of a client, at the cache that it enters.
    fn serve(&mut self, at: usize, request: &TraceRequest, semantics: &RequestSemantics) -> ServedBy {
        match semantics.kind {
            CacheRequest::Post => {
                if self.http.behaviour.post_invalidates {
                    self.nodes[at].store.remove(request.object);
                    self.nodes[at].copies[request.object as usize].arrival = 0;
                }
                ServedBy::Origin
            }
            CacheRequest::Reload if !self.http.behaviour.reload_fills => ServedBy::Origin,
            _ => self.get(at, request, semantics, 0).0,
        }
    }

    /// Source of the response to a request, and the copy.
    fn get(
        &mut self,
        at: usize,
        request: &TraceRequest,
        semantics: &RequestSemantics,
        depth: usize,
    ) -> (ServedBy, NodeCopy) {
        let at_ms = semantics.at_ms(request);
        let node = &mut self.nodes[at];
        let copy = node.copy(request);
        let is_reload = semantics.kind == CacheRequest::Reload;
        if copy.arrival != 0 && !is_reload {
            // Another request fetches it, which this one joins or does not.
            return if self.http.behaviour.collapses {
                (ServedBy::Own, copy)
            } else {
                (ServedBy::Origin, self.fetch_from_origin(request, semantics))
            };
        }
        if node.is_fresh(request, at_ms) && !is_reload {
            node.touch(request);
            return (ServedBy::Own, copy);
        }
        let is_stored = node.holds(request);
        let confirms = semantics.kind == CacheRequest::ConditionalUnchanged && is_stored;
        if !self.http.acts_as_get(semantics.kind) && !confirms {
            return (ServedBy::Origin, self.fetch_from_origin(request, semantics));
        }
        // An expired copy is validated at a parent or the origin: siblings are asked for what is not stored.
        let may_query = !is_stored && semantics.kind == CacheRequest::Get;
        let holder = self.holder(at, request, at_ms, may_query);
        if let Some(Holder::Sibling(sibling)) = holder {
            let copy = self.sibling_copy(sibling, request, at_ms);
            if !self.nodes[at].node.proxy_only {
                self.keep(at, request, copy, at_ms);
            }
            return (ServedBy::Sibling, copy);
        }
        let (source, fresh) = self.fetch_above(at, holder, request, semantics, depth);
        let is_current = is_stored && copy.version == semantics.version && semantics.version != NO_VALIDATOR;
        let node = &mut self.nodes[at];
        if is_current && !is_reload {
            // Validated: no hit, and no body.
            node.touch(request);
            node.copies[request.object as usize].fresh_until_ms = fresh.fresh_until_ms;
        } else {
            self.keep(at, request, fresh, at_ms);
        }
        (source, fresh)
    }

    /// Caches that a cache queries and that have a fresh copy: a sibling, or a parent. The one whose response comes first gives it, which
    /// may be any of them: here they take turns.
    fn holder(&mut self, at: usize, request: &TraceRequest, at_ms: u64, may_query: bool) -> Option<Holder> {
        let node = &self.nodes[at].node;
        let siblings = node.siblings.iter().filter(|_| may_query).map(|&sibling| Holder::Sibling(sibling));
        let parents = node.parents.iter().map(|&parent| Holder::Parent(parent));
        let has_it = |holder: &Holder| {
            let (Holder::Sibling(cache) | Holder::Parent(cache)) = *holder;
            self.nodes[cache].is_fresh(request, at_ms)
        };
        // Only copies that need no validation count: a cache answers a query with a miss for others.
        let holders: Vec<Holder> = siblings.chain(parents).filter(has_it).collect();
        let turn = self.turn;
        self.turn += usize::from(holders.len() > 1);
        holders.get(turn.checked_rem(holders.len())?).copied()
    }

    /// The fresh copy of a sibling.
    fn sibling_copy(&mut self, sibling: usize, request: &TraceRequest, at_ms: u64) -> NodeCopy {
        let sibling = &mut self.nodes[sibling];
        sibling.touch(request);
        sibling.served[self.part].from_caches += 1;
        sibling.served[self.part].from_caches_hits += 1;
        // It comes at once, however long the origin takes.
        NodeCopy { arrives_ms: at_ms, ..sibling.copy(request) }
    }

    /// From the parent that has it, else through the first parent, else from the origin.
    fn fetch_above(
        &mut self,
        at: usize,
        holder: Option<Holder>,
        request: &TraceRequest,
        semantics: &RequestSemantics,
        depth: usize,
    ) -> (ServedBy, NodeCopy) {
        let having = match holder {
            Some(Holder::Parent(parent)) => Some(parent),
            _ => None,
        };
        let first = self.nodes[at].node.parents.first().copied();
        let Some(parent) = having.or(first).filter(|_| depth < MAX_DEPTH) else {
            return (ServedBy::Origin, self.fetch_from_origin(request, semantics));
        };
        let (source, copy) = self.get(parent, request, semantics, depth + 1);
        let served = &mut self.nodes[parent].served[self.part];
        served.from_caches += 1;
        // For the parent, the cache beneath it is a client.
        served.from_caches_hits += u64::from(source == ServedBy::Own);
        (if source == ServedBy::Origin { ServedBy::Origin } else { ServedBy::Parent }, copy)
    }

    fn fetch_from_origin(&self, request: &TraceRequest, semantics: &RequestSemantics) -> NodeCopy {
        let at_ms = semantics.at_ms(request);
        NodeCopy {
            fresh_until_ms: semantics.fresh_until_ms(at_ms),
            arrives_ms: self.http.arrives_ms(request, semantics),
            version: semantics.version,
            arrival: 0,
        }
    }
}

#[cfg(test)]
#[path = "cooperate_tests.rs"]
mod tests;
