//! What is asked for, by whom and when: [`Launch`], and the embedded objects that it brings: [`Child`].

use std::time::Duration;

use crate::model::{Method, RequestType, RobotIndex};
use crate::object::{ObjectId, Space};
use crate::rng::{Purpose, Rng};
use crate::universe::{Object, Universe};

/// One request of a stream, before its embedded objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launch {
    /// When it is due, since the start of the run. Best-effort robots have no schedule: zero, the caller's to set.
    pub due: Duration,
    /// Who asks.
    pub robot: RobotIndex,
    /// Which of the robot's launches this is. Scheduled robots count in due order from 0; best-effort robots
    /// use phase × 2^40 + number within the phase, so it is unique within a run for both.
    pub number: u64,
    /// The phase it is due in.
    pub phase: u16,
    /// What is asked for.
    pub object: ObjectId,
    /// True when the stream asked for it before (or, for best effort, when it is another request's first visit).
    pub revisit: bool,
    /// The kind of request.
    pub request_type: RequestType,
    /// Its method.
    pub method: Method,
    /// The object whose body a POST carries; none for other methods, or when the robot has nothing to post.
    pub post_body: Option<ObjectId>,
    /// Probability that request types are consulted for the embedded objects (the phase's factor when it was due).
    pub special: f64,
}

/// An embedded object that a page's robot fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// Its place in the page, from 1 (0 is the page itself).
    pub place: u16,
    /// What is asked for; always by GET.
    pub object: ObjectId,
    /// The kind of request.
    pub request_type: RequestType,
    /// The link is complete when this many bytes of the page's body have arrived.
    pub link_end: u64,
    /// True when the page was a revisit.
    pub revisit: bool,
}

impl Launch {
    /// True when the answer carries the object's body, so that the links in it can be read.
    pub fn carries_body(&self) -> bool {
        carries_body(self.method, self.request_type)
    }

    /// What this request adds to the offered hit ratios; `object` is that of the launch.
    pub fn offered(&self, object: &Object) -> Offered {
        Offered::new(self.method, self.request_type, object.cachable, self.revisit)
    }
}

impl Child {
    /// What this request adds to the offered hit ratios; `object` is that of the child.
    pub fn offered(&self, object: &Object) -> Offered {
        Offered::new(Method::Get, self.request_type, object.cachable, self.revisit)
    }
}

/// A launch before it is known how it is asked for.
pub(crate) struct Draft {
    pub(crate) due: Duration,
    pub(crate) robot: RobotIndex,
    pub(crate) number: u64,
    pub(crate) phase: u16,
    pub(crate) object: ObjectId,
    pub(crate) revisit: bool,
    pub(crate) special: f64,
}

impl Universe {
    /// Gives a launch its request type, method and body, hashed from robot and number.
    pub(crate) fn dress(&self, draft: &Draft) -> Launch {
        let &Draft { due, robot, number, phase, object, revisit, special } = draft;
        let mut rng = Rng::of(Purpose::Request, &[self.seed(), u64::from(robot), number]);
        let (mut request_type, mut method, mut post_body) = (RequestType::Basic, Method::Get, None);
        if let Some(mix) = self.group_of(robot).map(|group| &self.groups()[group].mix) {
            (request_type, method) = mix.request(object.content).draw(special, &mut rng);
            if method == Method::Post {
                let id = |content| ObjectId { content, space: Space::Once(robot), serial: number, ..object };
                post_body = mix.post_contents.pick(rng.unit()).map(id);
            }
        }
        Launch { due, robot, number, phase, object, revisit, request_type, method, post_body, special }
    }
}

pub(crate) fn carries_body(method: Method, request_type: RequestType) -> bool {
    method == Method::Get && request_type != RequestType::Ims304
}

/// What one request means for the offered hit ratios: known from the stream alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// A GET of type Basic: counts in the denominator.
    pub basic: bool,
    /// The object may be cached.
    pub cachable: bool,
    /// The stream has asked for it before.
    pub revisit: bool,
}

impl Offered {
    /// From what is known when the request comes due.
    pub fn new(method: Method, request_type: RequestType, cachable: bool, revisit: bool) -> Self {
        Self { basic: method == Method::Get && request_type == RequestType::Basic, cachable, revisit }
    }

    /// True for a hit that an infinite cache could have had: a basic revisit of a cachable object.
    pub fn hit(&self) -> bool {
        self.basic && self.cachable && self.revisit
    }

    /// True for fill: a basic first visit of a cachable object.
    pub fn fill(&self) -> bool {
        self.basic && self.cachable && !self.revisit
    }
}
