//! Caches that work together: several side by side, siblings that are queried for what they have, parents that fetch for others, layers
//! behind each other.
//!
//! A request enters one cache. What that does not have, it gets from a sibling or a parent with a fresh copy, else through its first parent,
//! which does the same, else from the origin; on the way back every cache that the response passes stores it, except what came from a sibling where
//! [`Node::proxy_only`] says so. Siblings never fetch. What must be validated or reloaded is not requested from siblings, as in ICP.
//! Where responses take time and caches do not collapse requests, a cache makes room for a response when it arrives ([`arrivals`](crate::arrivals)).
//!
//! *Does not:* know of delays between caches, false hits, or lost queries.

use assay_cache::ideal::Request as Kind;
use assay_cache::policy::filter::TinyLfu;
use assay_cache::policy::replacement::Replacement;
use assay_cache::policy::{Admission, Lookup, Order, Store};

use crate::arrivals::Arrivals;
use crate::http::{Http, Meaning, NO_VALIDATOR, USUAL};
use crate::layout::Layout;
use crate::requests::{Request, Requests, UNCACHABLE};
use crate::tally::{Also, Counter, Counts, Rules};

/// The most caches behind each other.
const DEEPEST: usize = 16;

/// A cache among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Bytes that it holds.
    pub capacity_bytes: u64,
    /// Room for objects in it.
    pub layout: Layout,
    /// Places of its siblings.
    pub siblings: Vec<usize>,
    /// Places of its parents.
    pub parents: Vec<usize>,
    /// What a sibling gives is not stored here too.
    pub proxy_only: bool,
    /// Its own replacement policy; none: that of all.
    pub policy: Option<Replacement>,
    /// What it stores.
    pub admission: Admission,
}

/// Caches that work together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// What it is called.
    pub name: String,
    /// The caches; parents never lead back to a child.
    pub nodes: Vec<Node>,
    /// The cache that each client's requests enter, by the client's number, over and over.
    pub entries: Vec<u16>,
    /// The replacement policy of those that have none of their own.
    pub policy: Replacement,
}

/// Where a response came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Own,
    Sibling,
    Parent,
    Origin,
}

/// What one of the caches did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests of clients that are in the figures.
    pub requests: u64,
    /// Those that it served itself.
    pub own_hits: u64,
    /// Those that a sibling had.
    pub sibling_hits: u64,
    /// Those that a parent had, or that parent's siblings and parents.
    pub parent_hits: u64,
    /// Requests of other caches, for what it has or fetches.
    pub from_caches: u64,
    /// Those that it had.
    pub from_caches_hits: u64,
}

impl Served {
    /// The figures of all requests, if these are of a sample with this rate.
    pub(crate) fn over(&self, rate: f64) -> Self {
        let whole = |part: u64| (part as f64 / rate).round() as u64;
        Self {
            requests: whole(self.requests),
            own_hits: whole(self.own_hits),
            sibling_hits: whole(self.sibling_hits),
            parent_hits: whole(self.parent_hits),
            from_caches: whole(self.from_caches),
            from_caches_hits: whole(self.from_caches_hits),
        }
    }
}

/// What all of them did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// Requests of clients, in parts of the same length.
    pub parts: Vec<Counts>,
    /// Each cache.
    pub nodes: Vec<Served>,
}

impl Together {
    /// All parts together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.parts.iter().for_each(|part| total.add(part));
        total
    }
}

impl Node {
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
    fn store(&self, policy: Replacement, capacity: u64, objects: usize) -> Store<Box<dyn Order>> {
        let order = policy.order(capacity, objects);
        let order: Box<dyn Order> = match self.admission {
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
        let alone = |node: &Node| Node { siblings: Vec::new(), parents: Vec::new(), ..node.clone() };
        Self { nodes: self.nodes.iter().map(alone).collect(), ..self.clone() }
    }

    /// One cache with the room of all of them, for all clients.
    #[must_use]
    pub fn as_one(&self) -> Self {
        let capacity_bytes =
            self.nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(node.capacity_bytes));
        let layout = self.nodes.first().map_or(Layout::BODIES, |node| node.layout);
        let policy = self.nodes.first().and_then(|node| node.policy);
        let node = Node { policy, ..Node::alone("one".into(), capacity_bytes, layout) };
        Self { name: self.name.clone(), nodes: vec![node], entries: vec![0], policy: self.policy }
    }

    /// The replacement policy of a cache.
    pub fn policy_of(&self, node: &Node) -> Replacement {
        node.policy.unwrap_or(self.policy)
    }

    /// Caches behind each other, the nearest to clients first; of that, `edges` side by side share the clients.
    pub fn layers(capacities: &[u64], edges: usize, layout: Layout) -> Self {
        let edges = edges.max(1);
        let node = |name: String, capacity_bytes: u64, parents: Vec<usize>| Node {
            parents,
            ..Node::alone(name, capacity_bytes, layout)
        };
        let (first, behind) =
            capacities.split_first().map_or((0, &[][..]), |(first, behind)| (*first, behind));
        let parent_of_first: Vec<usize> = if behind.is_empty() { Vec::new() } else { vec![edges] };
        let name = |edge: usize| if edges == 1 { "layer 1".into() } else { format!("edge {}", edge + 1) };
        let mut nodes: Vec<Node> =
            (0..edges).map(|edge| node(name(edge), first, parent_of_first.clone())).collect();
        for (at, capacity) in behind.iter().enumerate() {
            let parents = if at + 1 < behind.len() { vec![edges + at + 1] } else { Vec::new() };
            nodes.push(node(format!("layer {}", at + 2), *capacity, parents));
        }
        Self { name: "layers".into(), nodes, entries: (0..edges as u16).collect(), policy: Replacement::Lru }
    }
}

/// Plays all requests through the caches; those of the warm-up are not counted.
pub fn together(requests: &Requests, hierarchy: &Hierarchy, warm_up: usize, parts: usize) -> Together {
    let plain = Http::new(USUAL);
    let http = requests.http.as_ref().unwrap_or(&plain);
    // In a sample, a cache has its share of the objects, and of the room.
    let room = |node: &Node| match requests.rate() {
        1.0 => node.capacity_bytes,
        rate => (node.capacity_bytes as f64 * rate) as u64,
    };
    let node = |node: &Node| Running {
        node: node.clone(),
        store: node.store(hierarchy.policy_of(node), room(node), requests.objects),
        copies: vec![Copied::default(); requests.objects],
        served: Served::default(),
    };
    let mut caches = Caches {
        http,
        nodes: hierarchy.nodes.iter().map(node).collect(),
        arrivals: Arrivals::default(),
        turn: 0,
    };
    let mut counter = Counter::new(requests, Rules { warm_up, parts, ..Rules::default() });
    for (number, request) in requests.list.iter().enumerate() {
        let meaning = http.meanings.get(number).copied().unwrap_or(Meaning::PLAIN);
        let client = requests.clients.get(number).copied().unwrap_or_default() as usize;
        let entry = usize::from(hierarchy.entries[client % hierarchy.entries.len()]);
        caches.arrive(meaning.at_ms(request));
        let source = match request.object {
            UNCACHABLE => Source::Origin,
            _ => caches.serve(entry, request, &meaning),
        };
        if number >= warm_up && meaning.is_counted {
            counter.enter(number);
            counter.count(number, request, source != Source::Origin, Also::default());
            let served = &mut caches.nodes[entry].served;
            served.requests += 1;
            match source {
                Source::Own => served.own_hits += 1,
                Source::Sibling => served.sibling_hits += 1,
                Source::Parent => served.parent_hits += 1,
                Source::Origin => {}
            }
        }
    }
    Together {
        parts: counter.finish().parts,
        nodes: caches.nodes.into_iter().map(|node| node.served).collect(),
    }
}

/// A stored copy.
#[derive(Debug, Clone, Copy, Default)]
struct Copied {
    fresh_until_ms: u64,
    /// When it is there for other requests.
    arrives_ms: u64,
    version: u32,
    /// The arrival that it comes with; 0: it is not on its way.
    arrival: u32,
}

struct Running {
    node: Node,
    store: Store<Box<dyn Order>>,
    copies: Vec<Copied>,
    served: Served,
}

impl Running {
    fn room(&self, request: &Request) -> u64 {
        self.node.layout.room(request.bytes)
    }

    fn holds(&self, request: &Request) -> bool {
        self.store.holds(request.object, self.room(request))
    }

    fn copied(&self, request: &Request) -> Copied {
        self.copies[request.object as usize]
    }

    /// It has a copy that may be served without a validation.
    fn is_fresh(&self, request: &Request, at_ms: u64) -> bool {
        let copied = self.copied(request);
        copied.arrival == 0 && self.holds(request) && at_ms < copied.fresh_until_ms
    }

    fn touch(&mut self, request: &Request) {
        self.store.order_mut().hit(request.object);
    }

    /// Makes room for a response that is there, and stores it.
    fn keep(&mut self, object: u32, room: u64, copied: Copied) {
        self.store.remove(object);
        self.copies[object as usize].arrival = 0;
        if self.store.request(object, room) == Lookup::Stored {
            self.copies[object as usize] = Copied { arrival: 0, ..copied };
        }
    }
}

struct Caches<'a> {
    http: &'a Http,
    nodes: Vec<Running>,
    /// What is on its way to them.
    arrivals: Arrivals,
    /// How often several had a copy of what one of them gave.
    turn: usize,
}

/// A cache that has a fresh copy.
#[derive(Debug, Clone, Copy)]
enum Holder {
    Sibling(usize),
    Parent(usize),
}

impl Caches<'_> {
    /// Caches store what has arrived by this time.
    fn arrive(&mut self, at_ms: u64) {
        while let Some(arrival) = self.arrivals.next_until(at_ms) {
            let node = &mut self.nodes[arrival.cache];
            let copied = node.copies[arrival.object as usize];
            // Another one may have come in its place, or the object was dropped.
            if copied.arrival == arrival.number {
                node.keep(arrival.object, arrival.room, copied);
            }
        }
    }

    /// A cache stores a response, as soon as that is there.
    fn keep(&mut self, at: usize, request: &Request, copied: Copied, at_ms: u64) {
        let node = &mut self.nodes[at];
        let room = node.room(request);
        if copied.arrives_ms <= at_ms {
            node.keep(request.object, room, copied);
        } else {
            let arrival = self.arrivals.send(copied.arrives_ms, at, request.object, room);
            node.copies[request.object as usize] = Copied { arrival, ..copied };
        }
    }

    /// A request of a client, at the cache that it enters.
    fn serve(&mut self, at: usize, request: &Request, meaning: &Meaning) -> Source {
        match meaning.kind {
            Kind::Post => {
                if self.http.behaviour.post_invalidates {
                    self.nodes[at].store.remove(request.object);
                    self.nodes[at].copies[request.object as usize].arrival = 0;
                }
                Source::Origin
            }
            Kind::Reload if !self.http.behaviour.reload_fills => Source::Origin,
            _ => self.get(at, request, meaning, 0).0,
        }
    }

    /// What a cache gives for a request, and the copy.
    fn get(&mut self, at: usize, request: &Request, meaning: &Meaning, depth: usize) -> (Source, Copied) {
        let at_ms = meaning.at_ms(request);
        let node = &mut self.nodes[at];
        let copied = node.copied(request);
        let is_reload = meaning.kind == Kind::Reload;
        if copied.arrival != 0 && !is_reload {
            // Another request fetches it, and this cache does not join fetches.
            return (Source::Origin, self.made(request, meaning));
        }
        if node.is_fresh(request, at_ms) && !is_reload {
            node.touch(request);
            return (Source::Own, copied);
        }
        let is_stored = node.holds(request);
        let confirms = meaning.kind == Kind::ConditionalUnchanged && is_stored;
        if !self.http.acts_as_get(meaning.kind) && !confirms {
            return (Source::Origin, self.made(request, meaning));
        }
        let may_query = !is_stored && meaning.kind == Kind::Get;
        let holder = self.holder(at, request, at_ms, may_query);
        if let Some(Holder::Sibling(sibling)) = holder {
            let copied = self.sibling_copy(sibling, request, at_ms);
            if !self.nodes[at].node.proxy_only {
                self.keep(at, request, copied, at_ms);
            }
            return (Source::Sibling, copied);
        }
        let (source, fresh) = self.fetch_above(at, holder, (request, meaning), depth);
        let is_current = is_stored && copied.version == meaning.version && meaning.version != NO_VALIDATOR;
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
    fn holder(&mut self, at: usize, request: &Request, at_ms: u64, may_query: bool) -> Option<Holder> {
        let node = &self.nodes[at].node;
        let siblings = node.siblings.iter().filter(|_| may_query).map(|&sibling| Holder::Sibling(sibling));
        let parents = node.parents.iter().map(|&parent| Holder::Parent(parent));
        let has_it = |holder: &Holder| {
            let (Holder::Sibling(cache) | Holder::Parent(cache)) = *holder;
            self.nodes[cache].is_fresh(request, at_ms)
        };
        let holders: Vec<Holder> = siblings.chain(parents).filter(has_it).collect();
        let turn = self.turn;
        self.turn += usize::from(holders.len() > 1);
        holders.get(turn.checked_rem(holders.len())?).copied()
    }

    /// The fresh copy of a sibling.
    fn sibling_copy(&mut self, sibling: usize, request: &Request, at_ms: u64) -> Copied {
        let sibling = &mut self.nodes[sibling];
        sibling.touch(request);
        sibling.served.from_caches += 1;
        sibling.served.from_caches_hits += 1;
        // It comes at once, however long the origin takes.
        Copied { arrives_ms: at_ms, ..sibling.copied(request) }
    }

    /// From the parent that has it, else through the first parent, else from the origin.
    fn fetch_above(
        &mut self,
        at: usize,
        holder: Option<Holder>,
        (request, meaning): (&Request, &Meaning),
        depth: usize,
    ) -> (Source, Copied) {
        let having = match holder {
            Some(Holder::Parent(parent)) => Some(parent),
            _ => None,
        };
        let first = self.nodes[at].node.parents.first().copied();
        let Some(parent) = having.or(first).filter(|_| depth < DEEPEST) else {
            return (Source::Origin, self.made(request, meaning));
        };
        let (source, copied) = self.get(parent, request, meaning, depth + 1);
        let served = &mut self.nodes[parent].served;
        served.from_caches += 1;
        served.from_caches_hits += u64::from(source == Source::Own);
        (if source == Source::Origin { Source::Origin } else { Source::Parent }, copied)
    }

    /// What the origin makes for a request.
    fn made(&self, request: &Request, meaning: &Meaning) -> Copied {
        let at_ms = meaning.at_ms(request);
        let collapses = self.http.behaviour.collapses;
        Copied {
            fresh_until_ms: meaning.fresh_until_ms(at_ms),
            arrives_ms: if collapses { at_ms } else { self.http.arrives_ms(request, meaning) },
            version: meaning.version,
            arrival: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Behaviour;
    use crate::http_draws::{any_requests, gathered};
    use crate::policy::Policy;
    use crate::simulate::cache;

    fn single(capacity_bytes: u64) -> Hierarchy {
        Hierarchy::layers(&[capacity_bytes], 1, Layout::BODIES)
    }

    proptest::proptest! {
        #[test]
        fn one_cache_hits_what_its_policy_hits_and_caches_of_nothing_before_it_hit_nothing(
            list in any_requests(), capacity in 0u64..140
        ) {
            let requests = gathered(USUAL, &list);
            let alone = together(&requests, &single(capacity), 3, 4).total();
            for (policy, _) in Replacement::ALL {
                let by_itself = cache(&requests, Policy::Online(policy), capacity, 3.into());
                let alone = together(&requests, &Hierarchy { policy, ..single(capacity) }, 3, 4).total();
                proptest::prop_assert_eq!(Counts { validated: 0, ..by_itself }, alone, "{:?}", policy);
            }
            let behind = Hierarchy::layers(&[0, 0, capacity], 3, Layout::BODIES);
            let found = together(&requests, &behind, 3, 4);
            proptest::prop_assert_eq!(found.total().requests, alone.requests);
            proptest::prop_assert!(found.nodes[..3].iter().all(|node| node.own_hits == 0));
        }

        #[test]
        fn siblings_with_room_for_everything_hit_what_one_cache_hits(list in any_requests()) {
            // Plain requests only: others act on the cache that they enter, and on no other.
            let list: Vec<_> = list.into_iter().map(|(key, later, _, _, _)| (key, later, 7, false, 9)).collect();
            let mut requests = gathered(USUAL, &list);
            requests.clients = (0..requests.list.len() as u32).map(|number| number % 5).collect();
            let mut siblings = Hierarchy::layers(&[1 << 20], 3, Layout::BODIES);
            for (place, node) in siblings.nodes.iter_mut().enumerate() {
                node.siblings = (0..3).filter(|other| *other != place).collect();
            }
            let found = together(&requests, &siblings, 0, 1);
            let one = together(&requests, &siblings.as_one(), 0, 1);
            proptest::prop_assert_eq!(found.total(), one.total());
            let apart = together(&requests, &siblings.apart(), 0, 1).total();
            let gained: u64 = found.nodes.iter().map(|node| node.sibling_hits).sum();
            proptest::prop_assert_eq!(apart.hits + gained, found.total().hits);
        }
    }

    /// Requests of objects of ten bytes by clients in turn, without an end of their lifetimes.
    fn plain(keys: &[u64], clients: &[u32]) -> Requests {
        let list: Vec<_> = keys.iter().map(|key| (*key, 1, 7, false, 9)).collect();
        let mut requests = gathered(USUAL, &list);
        requests.clients = clients.to_vec();
        requests
    }

    #[test]
    fn a_cache_makes_room_for_a_response_when_it_arrives() {
        // Room for one object, and responses that take five seconds. The second object is requested at 7 s.
        let at = [(1, 0), (1, 4), (1, 6), (2, 7), (1, 8), (1, 13), (2, 14), (1, 19)];
        let list: Vec<_> = at.iter().map(|(key, at_s)| (*key, *at_s, Meaning::PLAIN)).collect();
        let hits = |behaviour, response_ms| {
            let mut requests = crate::http_draws::requests(behaviour, &list);
            requests.http.as_mut().unwrap().response_ms = response_ms;
            together(&requests, &single(10), 0, 1).total().hits
        };
        let alone = Behaviour { collapses: false, ..USUAL };
        // At 6 and 8 s; the second object at 14 s, and at 19 s the first, which was fetched again at 13 s.
        assert_eq!(hits(alone, 5000), 4);
        // At 4, 6 and 13 s. Caches that collapse requests have the object at once.
        assert_eq!([hits(alone, 0), hits(USUAL, 5000)], [3, 3]);
    }

    #[test]
    fn what_is_dropped_on_its_way_is_not_stored_and_what_is_fetched_anew_replaces_it() {
        let get = |life_s| Meaning { life_s, version: NO_VALIDATOR, ..Meaning::PLAIN };
        let post = Meaning { kind: Kind::Post, is_counted: false, ..Meaning::PLAIN };
        let list = [
            (1, 0, get(9)),
            (1, 1, post),
            (1, 6, get(9)),
            (1, 12, get(9)),
            (1, 16, get(9)),
            (1, 18, get(9)),
            (1, 22, get(9)),
        ];
        let behaviour = Behaviour { collapses: false, ..USUAL };
        let mut requests = crate::http_draws::requests(behaviour, &list);
        requests.http.as_mut().unwrap().response_ms = 5000;
        // What was fetched at 6 s is there at 12, and has expired at 16; what comes then is there at 22.
        assert_eq!(together(&requests, &single(10), 0, 1).total().hits, 2);
    }

    #[test]
    fn what_a_sibling_gives_is_stored_unless_it_is_proxy_only() {
        let requests = plain(&[1, 1, 1], &[0, 1, 1]);
        let mut pair = Hierarchy::layers(&[100], 2, Layout::BODIES);
        (pair.nodes[0].siblings, pair.nodes[1].siblings) = (vec![1], vec![0]);
        let served = |pair: &Hierarchy| together(&requests, pair, 0, 1).nodes[1];
        assert_eq!((served(&pair).sibling_hits, served(&pair).own_hits), (1, 1));
        pair.nodes[1].proxy_only = true;
        assert_eq!((served(&pair).sibling_hits, served(&pair).own_hits), (2, 0));
    }

    #[test]
    fn a_cache_may_have_a_policy_and_an_admission_of_its_own() {
        // Of a cache for two objects: the first is requested often, the others once each.
        let requests = plain(&[1, 1, 1, 2, 3, 1, 4, 5, 1], &[0; 9]);
        let hits = |policy, admission| {
            let mut one = single(20);
            (one.nodes[0].policy, one.nodes[0].admission) = (policy, admission);
            together(&requests, &one, 0, 1).total().hits
        };
        assert_eq!([hits(None, Admission::All), hits(Some(Replacement::Lfu), Admission::All)], [2, 4]);
        assert_eq!([hits(None, Admission::TinyLfu), hits(None, Admission::SecondRequest)], [4, 3]);
    }

    #[test]
    fn a_parent_is_filled_by_its_children_and_serves_them() {
        let requests = plain(&[1, 1, 2, 2], &[0, 1, 1, 1]);
        let found = together(&requests, &Hierarchy::layers(&[100, 100], 2, Layout::BODIES), 0, 1);
        assert_eq!((found.nodes[1].parent_hits, found.nodes[1].own_hits), (1, 1));
        assert_eq!(
            (found.nodes[2].from_caches, found.nodes[2].from_caches_hits, found.nodes[2].requests),
            (3, 1, 0)
        );
        assert_eq!((found.total().hits, found.total().requests), (2, 4));
    }
}
