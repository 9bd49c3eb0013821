//! Which robot requests which object when: [`Launch`], and the embedded objects that it brings: [`Child`].

use std::time::Duration;

use crate::Purpose;
use crate::mix::{DRAWS_BEFORE_BODY, carries_body};
use crate::model::{Method, OriginIndex, RequestType, RobotIndex};
use crate::object::{Object, ObjectId, Space};
use crate::universe::Universe;
use crate::xact::XactId;
use assay_base::random::{Rng, hash, unit_of};

/// One request of a stream, before its embedded objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launch {
    /// Due time since the start of the run. Best-effort robots have no schedule: zero, for the caller to set.
    pub due: Duration,
    /// The robot that sends it.
    pub robot: RobotIndex,
    /// Number of the launch for its robot. Scheduled robots count in due order from 0; best-effort robots use
    /// phase × 2^40 + number within the phase, so the number is unique within a run for both.
    pub number: u64,
    /// The phase it is due in.
    pub phase: u16,
    /// Session of the robot; 0 for robots without sessions. Best-effort robots count sessions as they run: zero, for the caller to set.
    pub session: u64,
    pub object: ObjectId,
    /// True when the stream requested it before (or, for best effort, when it is another request's first visit).
    pub revisit: bool,
    /// The kind of request.
    pub request_type: RequestType,
    pub method: Method,
    /// The object whose body a POST or PUT carries; none for other methods, or when the robot has nothing to send.
    pub post_body: Option<ObjectId>,
    /// Probability that request types are consulted for the embedded objects (the phase's factor when it was due).
    pub special: f64,
}

/// An embedded object that a page's robot fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// Place in the page, from 1 (0 is the page itself).
    pub place: u16,
    /// The requested object; always by GET.
    pub object: ObjectId,
    /// The kind of request.
    pub request_type: RequestType,
    /// The link is complete when this many bytes of the page's body have arrived.
    pub link_end: u64,
    /// True when the page was a revisit.
    pub revisit: bool,
}

impl Launch {
    /// True when the response carries the object's body, so that the links in it can be read.
    pub fn carries_body(&self) -> bool {
        carries_body(self.method, self.request_type)
    }

    /// Contribution of this request to the offered hit ratios if no fault or the like is decided for it ([`Universe::offered`] checks
    /// that as well); `object` is that of the launch.
    pub fn offered(&self, object: &Object) -> Offered {
        Offered::new(self.method, self.request_type, object.cachable, self.revisit)
    }
}

impl Child {
    /// Contribution of this request to the offered hit ratios if no fault or the like is decided for it ([`Universe::offered_child`]
    /// checks that as well); `object` is that of the child.
    pub fn offered(&self, object: &Object) -> Offered {
        Offered::new(Method::Get, self.request_type, object.cachable, self.revisit)
    }
}

/// A launch before its kind of request is drawn.
pub(crate) struct LaunchDraft {
    pub(crate) due: Duration,
    pub(crate) robot: RobotIndex,
    pub(crate) number: u64,
    pub(crate) phase: u16,
    pub(crate) session: u64,
    pub(crate) object: ObjectId,
    pub(crate) revisit: bool,
    pub(crate) special: f64,
}

impl Universe {
    /// Gives a launch its request type, method and body, hashed from robot and number.
    pub(crate) fn complete_launch(&self, draft: &LaunchDraft) -> Launch {
        let &LaunchDraft { due, robot, number, phase, session, object, revisit, special } = draft;
        let mut rng = Rng::of(Purpose::Request, &[self.seed(), u64::from(robot), number]);
        let (mut request_type, mut method, mut post_body) = (RequestType::Basic, Method::Get, None);
        if let Some(mix) = self.group_of(robot).map(|group| &self.groups()[group].mix) {
            (request_type, method) = mix.request(object.content).draw(special, &mut rng);
            if method.has_body() {
                let (origin, unit) = (object.origin, rng.unit());
                post_body = self.launch_body(&BodyDraw { robot, number, method, origin, unit });
            }
        }
        Launch {
            due,
            robot,
            number,
            phase,
            session,
            object,
            revisit,
            request_type,
            method,
            post_body,
            special,
        }
    }
}

/// Input of the draw of a request body.
pub(crate) struct BodyDraw {
    pub(crate) robot: RobotIndex,
    pub(crate) number: u64,
    pub(crate) method: Method,
    pub(crate) origin: OriginIndex,
    /// Chooses the type of a body that was not sent before.
    pub(crate) unit: f64,
}

/// Set in the serials of bodies that a robot sends again and again.
const FAVOURITE: u64 = 1 << 63;

impl Universe {
    pub(crate) fn launch_body(&self, draw: &BodyDraw) -> Option<ObjectId> {
        let &BodyDraw { robot, number, method, origin, unit } = draw;
        let group = self.group_of(robot)?;
        let mix = &self.groups()[group].mix;
        let contents = match method {
            Method::Post => &mix.post_contents,
            Method::Put => &mix.put_contents,
            Method::Get | Method::Head => return None,
        };
        let id = |(content, serial)| ObjectId { origin, content, space: Space::RequestBody(robot), serial };
        let recurrence = self.workload().robots[group].body_recurrence;
        if recurrence > 0.0 {
            let words = [self.seed(), u64::from(robot), number];
            let mut rng = Rng::of(Purpose::RequestBody, &words);
            if rng.unit() < recurrence {
                // One more each time the number has doubled.
                let favourite = rng.below(u64::from((number + 1).ilog2()) + 1);
                let method = u64::from(method == Method::Put);
                let words = [self.seed(), u64::from(robot), favourite, method];
                let unit = unit_of(hash(Purpose::RequestBody, &words));
                return contents.pick(unit).map(|content| (content, FAVOURITE | favourite)).map(id);
            }
        }
        contents.pick(unit).map(|content| (content, number)).map(id)
    }

    /// The draw that chooses the type of a launch's body: the one after those for its request type and method.
    pub(crate) fn body_unit(&self, xact: XactId) -> f64 {
        let mut rng = Rng::of(Purpose::Request, &[self.seed(), u64::from(xact.robot), xact.number]);
        (0..DRAWS_BEFORE_BODY).for_each(|_| _ = rng.unit());
        rng.unit()
    }
}

/// Contribution of a request to the offered hit ratios: known from the stream alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// A GET of type Basic: counts in the denominator.
    pub basic: bool,
    /// The object may be cached.
    pub cachable: bool,
    /// The stream has requested it before.
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
