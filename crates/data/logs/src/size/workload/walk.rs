//! All requests of a workload in the order of their times: launches of the stream, of best-effort robots, and embedded objects.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use assay_cache::ideal::RequestClass as CacheRequest;
use assay_workload::model::{Method, RequestType, RobotIndex};
use assay_workload::object::ObjectId;
use assay_workload::{BrowserCache, Launch, Object, Slice, Stream, Universe, XactId};

use super::WorkloadPlan;
use super::best_effort::{BestEffortRobots, FillCounts};
use crate::size::error::SizeError;
use crate::size::group_by::GroupBy;
use crate::size::http::{AS_ALL_MS, FOREVER_S, NO_VALIDATOR, RequestSemantics};
use crate::size::requests::RequestCollector;

const SECOND_NS: u64 = 1_000_000_000;

/// A walk along all sources of requests.
pub(super) struct Walk {
    universe: Arc<Universe>,
    stream: Stream,
    best_effort: BestEffortRobots,
    /// Embedded objects whose page is not there yet: when it is, in the order in which they were found.
    later: BinaryHeap<Reverse<EmbeddedRequest>>,
    found: u64,
    /// Variants of objects that were requested, by object: what a POST drops.
    variants: HashMap<u64, BTreeSet<u64>>,
    /// Robots' own caches, with the session that each is of.
    browsers: HashMap<RobotIndex, (u64, BrowserCache)>,
    is_counted: Vec<bool>,
    response_ns: u64,
    by: Option<GroupBy>,
}

/// A request of an embedded object, at its time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EmbeddedRequest {
    at_ns: u64,
    order: u64,
    object: ObjectId,
    request_type: RequestType,
    robot: RobotIndex,
    number: u64,
    place: u16,
    phase: u16,
    session: u64,
}

/// One request, whoever makes it.
#[derive(Clone, Copy)]
struct WalkRequest {
    xact: XactId,
    phase: u16,
    session: u64,
    method: Method,
    request_type: RequestType,
}

impl Walk {
    pub(super) fn new(plan: &WorkloadPlan<'_>, is_counted: Vec<bool>, response: Duration) -> Self {
        let universe = Arc::clone(&plan.universe);
        let response_ns = nanoseconds(response);
        Self {
            stream: Stream::new(Arc::clone(&universe), Arc::clone(&plan.timeline), Slice::ALL),
            best_effort: BestEffortRobots::new(&universe, &plan.timeline, response_ns),
            universe,
            later: BinaryHeap::new(),
            found: 0,
            variants: HashMap::new(),
            browsers: HashMap::new(),
            is_counted,
            response_ns,
            by: plan.how.by,
        }
    }

    pub(super) fn all(mut self, mut collector: RequestCollector) -> Result<RequestCollector, SizeError> {
        let mut launch = self.stream.next();
        loop {
            let stream_ns = launch.as_ref().map_or(u64::MAX, |launch| nanoseconds(launch.due));
            let best_effort_ns = self.best_effort.next_ns().unwrap_or(u64::MAX);
            let later_ns = self.later.peek().map_or(u64::MAX, |Reverse(later)| later.at_ns);
            if later_ns <= stream_ns && later_ns <= best_effort_ns {
                let Some(Reverse(later)) = self.later.pop() else { return Ok(collector) };
                self.embedded(&later, &mut collector)?;
            } else if best_effort_ns <= stream_ns {
                let universe = Arc::clone(&self.universe);
                if let Some((launch, at_ns)) = self.best_effort.take(&universe) {
                    let fill = self.launch(&launch, at_ns, &mut collector)?;
                    self.best_effort.launched(&universe, &launch, &fill);
                }
            } else if let Some(due) = launch.take() {
                self.launch(&due, stream_ns, &mut collector)?;
                launch = self.stream.next();
            }
        }
    }

    /// A launch and, if it is one of a page, what is embedded in it; what the launch introduced.
    fn launch(
        &mut self,
        launch: &Launch,
        at_ns: u64,
        collector: &mut RequestCollector,
    ) -> Result<FillCounts, SizeError> {
        let universe = Arc::clone(&self.universe);
        let request = WalkRequest {
            xact: XactId { robot: launch.robot, number: launch.number, place: 0 },
            phase: launch.phase,
            session: launch.session,
            method: launch.method,
            request_type: launch.request_type,
        };
        let object = universe.object(launch.object);
        let mut fill = FillCounts { requests: 1, ..FillCounts::default() };
        fill.add(universe.offered(launch, &object).fill(), object.size_bytes);
        self.add(&request, &object, at_ns, collector)?;
        if universe.workload().contents[usize::from(launch.object.content)].embedded.is_none() {
            return Ok(fill);
        }
        for child in universe.children(launch) {
            let object = universe.object(child.object);
            if self.holds(launch, &object) {
                continue;
            }
            fill.requests += 1;
            fill.add(universe.offered_child(launch, &child, &object).fill(), object.size_bytes);
            let later = EmbeddedRequest {
                at_ns: at_ns.saturating_add(self.response_ns),
                order: self.found,
                object: child.object,
                request_type: child.request_type,
                robot: launch.robot,
                number: launch.number,
                place: child.place,
                phase: launch.phase,
                session: launch.session,
            };
            self.found += 1;
            if self.response_ns == 0 {
                self.embedded(&later, collector)?;
            } else {
                self.later.push(Reverse(later));
            }
        }
        Ok(fill)
    }

    /// The robot of a page has an embedded object in its own cache, where it is from now on if it may be.
    fn holds(&mut self, launch: &Launch, object: &Object) -> bool {
        let Some(group) = self.universe.group_of(launch.robot) else { return false };
        let capacity = self.universe.workload().robots[group].private_cache;
        if capacity == 0 {
            return false;
        }
        let own = self.browsers.entry(launch.robot);
        let (session, browser) = own.or_insert_with(|| (launch.session, BrowserCache::new(capacity)));
        if *session != launch.session {
            *session = launch.session;
            browser.clear();
        }
        browser.has(object.key, object.cachable)
    }

    fn embedded(
        &mut self,
        later: &EmbeddedRequest,
        collector: &mut RequestCollector,
    ) -> Result<(), SizeError> {
        let request = WalkRequest {
            xact: XactId { robot: later.robot, number: later.number, place: later.place },
            phase: later.phase,
            session: later.session,
            method: Method::Get,
            request_type: later.request_type,
        };
        self.add(&request, &self.universe.object(later.object), later.at_ns, collector)
    }

    /// Adds one request, with what it means to a cache.
    fn add(
        &mut self,
        request: &WalkRequest,
        object: &Object,
        at_ns: u64,
        collector: &mut RequestCollector,
    ) -> Result<(), SizeError> {
        let universe = &self.universe;
        let WalkRequest { xact, phase, session, .. } = *request;
        let is_basic = request.method == Method::Get && request.request_type == RequestType::Basic;
        let mut is_counted = is_basic && self.is_counted.get(usize::from(phase)).is_some_and(|is| *is);
        let mut object = *object;
        if !universe.is_plain(xact, phase, session, &object) {
            is_counted = false;
            let is_refused =
                universe.auth_demand(&object).is_some() && !universe.has_valid_login(xact.robot, session);
            if universe.fault(xact, object.id.origin).is_some()
                || is_refused
                || !universe.has_acceptable(xact.robot, object.id.content)
            {
                return Ok(());
            }
            if let Some(older) = universe.redirect(xact, phase, &object) {
                object = universe.object(older);
            }
        }
        let at_s = (at_ns / SECOND_NS) as i64;
        let key = universe.response_key(xact, &object).filter(|_| object.cachable);
        let Some(key) = key else {
            if is_counted {
                collector.add_uncachable(object.size_bytes, Some(at_s));
                self.label(&object, collector);
                collector.set_client(xact.robot);
            }
            return Ok(());
        };
        let life = universe.life(&object, at_s);
        let kind = kind(request, universe.sends_parts(object.id.content), life.last_modified_s.is_some());
        if kind == CacheRequest::Post && !collector.post_invalidates() {
            return Ok(());
        }
        let semantics = RequestSemantics {
            life_s: life.expires_s.map_or(FOREVER_S, |expires_s| lifetime_s(expires_s, at_s)),
            version: life.last_modified_s.map_or(NO_VALIDATOR, |_| version(life.version)),
            takes_ms: AS_ALL_MS,
            ms: (at_ns % SECOND_NS / 1_000_000) as u16,
            kind,
            is_counted,
        };
        let mut keys = vec![key];
        if key != object.key {
            let variants = self.variants.entry(object.key).or_default();
            if kind == CacheRequest::Post {
                keys = variants.iter().copied().collect();
            } else {
                variants.insert(key);
            }
        }
        for key in keys {
            if !collector.add_with_semantics(key, object.size_bytes, Some(at_s), semantics) {
                return Err(SizeError::TooManyObjects);
            }
            self.label(&object, collector);
            collector.set_client(xact.robot);
        }
        Ok(())
    }
}

impl Walk {
    /// Labels the request that was added last.
    fn label(&self, object: &Object, collector: &mut RequestCollector) {
        let workload = self.universe.workload();
        let text = match self.by {
            Some(GroupBy::Host) => {
                workload.origins.get(usize::from(object.id.origin)).map(|origin| &origin.authority)
            }
            Some(GroupBy::Type) => {
                workload.contents.get(usize::from(object.id.content)).map(|content| &content.kind)
            }
            Some(GroupBy::Class) | None => None,
        };
        if let Some(text) = text {
            collector.set_label(text.as_bytes());
        }
    }
}

/// Kind of a request for a cache. A condition needs a date that the object shows.
fn kind(request: &WalkRequest, sends_parts: bool, has_date: bool) -> CacheRequest {
    match (request.method, request.request_type) {
        (Method::Post | Method::Put, _) => CacheRequest::Post,
        (Method::Head, _) => CacheRequest::Head,
        (Method::Get, RequestType::Reload) => CacheRequest::Reload,
        // Where the origin sends no parts, it sends the whole object.
        (Method::Get, RequestType::Range) if sends_parts => CacheRequest::Range,
        (Method::Get, RequestType::Ims200) if has_date => CacheRequest::ConditionalChanged,
        (Method::Get, RequestType::Ims304) if has_date => CacheRequest::ConditionalUnchanged,
        (Method::Get, _) => CacheRequest::Get,
    }
}

/// A lifetime is the difference of two dates, which are whole seconds (RFC 9111, 4.2.1).
fn lifetime_s(expires_s: i64, at_s: i64) -> u32 {
    u32::try_from(expires_s.saturating_sub(at_s).max(0)).unwrap_or(FOREVER_S - 1).min(FOREVER_S - 1)
}

fn version(version: u64) -> u32 {
    u32::try_from(version).unwrap_or(NO_VALIDATOR - 1).min(NO_VALIDATOR - 1)
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
