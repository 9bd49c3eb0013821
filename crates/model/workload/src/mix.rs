//! What a group of robots requests, and how often. Its shares of content types, request types and methods, taken out of the
//! workload once.

use crate::model::{
    ContentIndex, Method, OriginIndex, Popularity, PopularityLaw, RequestType, RobotGroup, Workload,
};
use crate::picker::Picker;
use crate::ranges::RangeTable;
use assay_base::random::Rng;

/// Requests of one group, as shares.
#[derive(Debug, Clone)]
pub(crate) struct GroupMix {
    /// The types that it requests directly, with positive shares that add up to 1.
    pub(crate) direct: Vec<DirectMix>,
    /// Request mix of each content type of the workload, requested directly or not.
    pub(crate) requests: Vec<RequestMix>,
    /// The group's own recurrence and popularity, for what is of no type of its own.
    pub(crate) recurrence: f64,
    pub(crate) popularity: Popularity,
    /// Types of what it posts.
    pub(crate) post_contents: Picker<ContentIndex>,
    /// Types of what it puts.
    pub(crate) put_contents: Picker<ContentIndex>,
}

/// One content type as one group requests it.
#[derive(Debug, Clone)]
pub(crate) struct DirectMix {
    pub(crate) content: ContentIndex,
    /// Share of the type in the group's launches.
    pub(crate) share: f64,
    /// Before the phase's factor.
    pub(crate) recurrence: f64,
    pub(crate) popularity: Popularity,
    /// Origins that have it, by weight.
    pub(crate) origins: Picker<OriginIndex>,
    /// Each of those origins with its share in the group's launches for this type.
    pub(crate) origin_shares: Vec<(OriginIndex, f64)>,
}

/// Request types and methods for one content type.
#[derive(Debug, Clone)]
pub(crate) struct RequestMix {
    types: Picker<RequestType>,
    methods: Picker<Method>,
    /// Parts that Range requests ask for.
    pub(crate) ranges: RangeTable,
    /// Share of types that are Basic, and of those whose response carries a whole body.
    basic_types: f64,
    body_types: f64,
    /// Share of Range requests, and of uploads.
    range_types: f64,
    uploads: f64,
    gets: f64,
    /// Share of methods with a body.
    sends: f64,
}

/// Numbers drawn for a launch before the one that chooses the type of its body.
pub(crate) const DRAWS_BEFORE_BODY: u32 = 3;

impl GroupMix {
    pub(crate) fn new(workload: &Workload, group: &RobotGroup) -> Self {
        Self {
            direct: direct(workload, group),
            requests: (0..workload.contents.len()).map(|c| RequestMix::new(workload, group, c)).collect(),
            recurrence: group.recurrence,
            popularity: group.popularity.clone().unwrap_or(UNIFORM),
            post_contents: Picker::from_weighted(&group.post_contents),
            put_contents: Picker::from_weighted(&group.put_contents),
        }
    }

    #[inline]
    pub(crate) fn request(&self, content: ContentIndex) -> &RequestMix {
        &self.requests[usize::from(content)]
    }
}

fn direct(workload: &Workload, group: &RobotGroup) -> Vec<DirectMix> {
    // One pass over origins; content types are few.
    let mut shares: Vec<Vec<(OriginIndex, f64)>> = vec![Vec::new(); workload.contents.len()];
    for (origin, weight) in group.origins.items().iter().filter(|(_, weight)| *weight > 0.0) {
        let server = workload.origins[usize::from(*origin)].server;
        for (content, share) in workload.servers[usize::from(server)].direct_access.items() {
            if *share > 0.0 {
                add_share(&mut shares[usize::from(*content)], *origin, weight * share);
            }
        }
    }
    let of_content = |(index, origins): (usize, Vec<(OriginIndex, f64)>)| {
        let behaviour = &workload.contents[index].behaviour;
        let popularity = behaviour.popularity.as_ref().or(group.popularity.as_ref()).cloned();
        DirectMix {
            content: index as ContentIndex,
            share: origins.iter().map(|(_, share)| share).sum(),
            recurrence: behaviour.recurrence.unwrap_or(group.recurrence),
            popularity: popularity.unwrap_or(UNIFORM),
            origins: Picker::new(origins.iter().copied()),
            origin_shares: origins,
        }
    };
    shares.into_iter().enumerate().filter(|(_, origins)| !origins.is_empty()).map(of_content).collect()
}

/// A content type may be listed twice by a server; its world is one.
fn add_share(shares: &mut Vec<(OriginIndex, f64)>, origin: OriginIndex, share: f64) {
    match shares.last_mut() {
        Some(last) if last.0 == origin => last.1 += share,
        _ => shares.push((origin, share)),
    }
}

/// Default of a workload without a popularity model.
const UNIFORM: Popularity = Popularity {
    law: PopularityLaw::Uniform,
    hot_set_fraction: 1.0,
    hot_set_probability: 0.0,
    size_preference: 0.0,
};

impl RequestMix {
    fn new(workload: &Workload, group: &RobotGroup, content: usize) -> Self {
        let behaviour = &workload.contents[content].behaviour;
        let types = Picker::from_weighted(behaviour.request_types.as_ref().unwrap_or(&group.request_types));
        let methods = Picker::from_weighted(behaviour.methods.as_ref().unwrap_or(&group.methods));
        let type_share = |wanted: &dyn Fn(RequestType) -> bool| {
            let items = behaviour.request_types.as_ref().unwrap_or(&group.request_types).items();
            if types.sum() > 0.0 { sum(items.iter().filter(|(t, _)| wanted(*t))) } else { 1.0 }
        };
        let method_share = |wanted: Method| {
            let items = behaviour.methods.as_ref().unwrap_or(&group.methods).items();
            if methods.sum() > 0.0 {
                sum(items.iter().filter(|(m, _)| *m == wanted))
            } else {
                f64::from(u8::from(wanted == Method::Get))
            }
        };
        Self {
            ranges: RangeTable::new(behaviour.ranges.as_ref().unwrap_or(&group.ranges)),
            basic_types: type_share(&|t| t == RequestType::Basic),
            body_types: type_share(&|t| carries_body(Method::Get, t) && t != RequestType::Upload),
            range_types: if types.sum() > 0.0 { type_share(&|t| t == RequestType::Range) } else { 0.0 },
            uploads: if types.sum() > 0.0 { type_share(&|t| t == RequestType::Upload) } else { 0.0 },
            gets: method_share(Method::Get),
            sends: method_share(Method::Post) + method_share(Method::Put),
            types,
            methods,
        }
    }

    /// Type and method of a launch. One coin decides whether the mixes are consulted at all. An upload is a
    /// PUT, and parts are requested with GET, whatever the methods say.
    #[inline]
    pub(crate) fn draw(&self, special: f64, rng: &mut Rng) -> (RequestType, Method) {
        let (coin, of_type, of_method) = (rng.unit(), rng.unit(), rng.unit());
        if coin >= special {
            return (RequestType::Basic, Method::Get);
        }
        let request_type = self.types.pick(of_type).unwrap_or(RequestType::Basic);
        let method = match request_type {
            RequestType::Upload => Method::Put,
            RequestType::Range => Method::Get,
            _ => self.methods.pick(of_method).unwrap_or(Method::Get),
        };
        (request_type, method)
    }

    /// Type of a request for an embedded object. Embedded objects are never uploaded.
    #[inline]
    pub(crate) fn draw_child(&self, special: f64, rng: &mut Rng) -> RequestType {
        let (coin, of_type) = (rng.unit(), rng.unit());
        match self.types.pick(of_type) {
            Some(request_type) if coin < special && request_type != RequestType::Upload => request_type,
            _ => RequestType::Basic,
        }
    }

    /// Probability that a launch is a Basic GET.
    pub(crate) fn basic(&self, special: f64) -> f64 {
        1.0 - special + special * self.gets * self.basic_types
    }

    /// Probability that a launch is a GET whose response carries the whole body.
    pub(crate) fn carries_body(&self, special: f64) -> f64 {
        1.0 - special + special * self.gets * self.body_types
    }

    /// Probability that a launch sends a body of its own.
    pub(crate) fn sends(&self, special: f64) -> f64 {
        special * (self.uploads + (1.0 - self.uploads - self.range_types) * self.sends)
    }

    /// Probability that a request is for parts.
    pub(crate) fn range(&self, special: f64) -> f64 {
        special * self.range_types
    }

    /// Probability that the request for an embedded object is Basic.
    pub(crate) fn child_basic(&self, special: f64) -> f64 {
        1.0 - special + special * (self.basic_types + self.uploads)
    }

    /// Probability that the response for an embedded object carries its whole body.
    pub(crate) fn child_carries_body(&self, special: f64) -> f64 {
        1.0 - special + special * (self.body_types + self.uploads)
    }
}

fn sum<'a, T: 'a>(items: impl Iterator<Item = &'a (T, f64)>) -> f64 {
    items.map(|(_, share)| share).sum()
}

/// The response to such a request carries the object's body.
pub(crate) fn carries_body(method: Method, request_type: RequestType) -> bool {
    // Of a part of a page, the links are not read.
    method == Method::Get && !matches!(request_type, RequestType::Ims304 | RequestType::Range)
}
