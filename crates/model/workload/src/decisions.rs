//! What is decided for one xact, by robots and origins alike. Faults on purpose, broken-off bodies, redirections, request
//! bodies, how long robots wait: hashed from the seed and the xact's identity, and from what it requests.
//!
//! # Decisions
//!
//! Every decision about a single request or object is a pure function in `workload`, hashed from the seed and the identity (robot,
//! number, place; or the object's key), and computed where it is needed, by robots and by origins alike:
//!
//! | decision | from |
//! |---|---|
//! | the bytes that a `Range` request is for | xact, object size |
//! | injected faults: error status, reset, slow first byte, slow body | xact, origin |
//! | where a robot or an origin cuts off a body | xact, object size |
//! | cookies that a response sets, added header fields, checksum, coding | object (requests: xact) |
//! | the object that a redirection leads to | xact, the older objects of the same world |
//! | the credentials of a robot, and whether the password is wrong | robot, its session |
//! | the body of a request, and whether it was sent before | xact |
//! | the idle times of a robot | robot, time |

use std::time::Duration;

use crate::Purpose;
use crate::closed;
use crate::expiry::think_draws;
use crate::launch::{BodyDraw, Child, Launch, Offered};
use crate::model::{ContentIndex, Expectation, Method, OriginIndex, Popularity, RobotIndex};
use crate::object::{Object, ObjectId, Space};
use crate::popularity::{HotSet, Window};
use crate::private::PrivateWorld;
use crate::ranges::Ranges;
use crate::universe::Universe;
use crate::xact::{Fault, XactId};
use assay_base::random::{Rng, hash};

/// Attempts to find an older object of the same origin, after which a redirection is dropped.
const TRIES: u32 = 16;

impl Universe {
    /// The fault that a request meets if it reaches this origin. A second attempt at the same request within
    /// ten seconds gets a correct response: that is the origin's to remember.
    #[inline]
    pub fn fault(&self, xact: XactId, origin: OriginIndex) -> Option<Fault> {
        let (server, table) = self.server_of(origin)?;
        if (table.faults <= 0.0 && table.expiry.is_none()) || xact == XactId::NOBODY {
            return None;
        }
        let mut rng = self.draws(Purpose::Fault, xact);
        let mut left = rng.unit();
        let mut falls = |share: f64| {
            let falls = left < share;
            left -= share;
            falls
        };
        let faults = &server.faults;
        if falls(faults.error_share) {
            Some(Fault::Status(table.statuses.pick(rng.unit()).unwrap_or(500)))
        } else if falls(faults.reset_share) {
            Some(Fault::Reset)
        } else if falls(faults.slow_start_share) {
            Some(Fault::SlowStart(seconds(table.slow_start.sample(&mut rng))))
        } else if falls(faults.slow_body_share) {
            Some(Fault::SlowBody { bytes_per_s: faults.slow_body_bytes_per_s })
        } else {
            let mut gives = self.draws(Purpose::ServerLifetime, xact);
            let after = table.expiry.as_ref()?.after(&mut think_draws(self.seed(), xact), &mut gives);
            after.map(Fault::Expired)
        }
    }

    /// Position at which the robot aborts a body of this size, below the size; none: it reads all of it.
    #[inline]
    pub fn robot_abort(&self, xact: XactId, size_bytes: u64) -> Option<u64> {
        let share = self.workload().robots[self.group_of(xact.robot)?].abort_share;
        self.abort(Purpose::RobotAbort, share, xact, size_bytes)
    }

    /// Position at which the origin aborts a body of this size, below the size; none: it sends all of it.
    #[inline]
    pub fn origin_abort(&self, xact: XactId, origin: OriginIndex, size_bytes: u64) -> Option<u64> {
        let share = self.server_of(origin)?.0.abort_share;
        self.abort(Purpose::OriginAbort, share, xact, size_bytes)
    }

    #[inline]
    fn abort(&self, purpose: Purpose, share: f64, xact: XactId, size_bytes: u64) -> Option<u64> {
        if share <= 0.0 || size_bytes == 0 || xact == XactId::NOBODY {
            return None;
        }
        let mut rng = self.draws(purpose, xact);
        (rng.unit() < share).then(|| rng.below(size_bytes))
    }

    /// The older object that a request for an object is redirected to, if it reaches the origin; none: it is
    /// served as it is. Of the same origin, content type and space; only objects that were requested in their own
    /// right (not embedded ones) have any. The next step is decided anew and may be redirected as well,
    /// to a still older object. For GET and HEAD.
    pub fn redirect(&self, xact: XactId, phase: u16, object: &Object) -> Option<ObjectId> {
        let (_, table) = self.server_of(object.id.origin)?;
        if table.redirect_share <= 0.0 || xact == XactId::NOBODY {
            return None;
        }
        let words = [self.seed(), u64::from(xact.robot), xact.number, u64::from(xact.place), object.key];
        let mut rng = Rng::of(Purpose::Redirect, &words);
        let share = table.redirect_share * self.special_of(phase);
        (rng.unit() < share).then(|| self.older(&object.id, &table.popularity, &mut rng)).flatten()
    }

    /// Mean probability that request types, methods and redirections are consulted in a phase. The mean, since an origin knows only the
    /// phase of a request.
    fn special_of(&self, phase: u16) -> f64 {
        let phase = self.workload().schedule.phases.get(usize::from(phase));
        phase.map_or(1.0, |phase| (phase.special.begin + phase.special.end) / 2.0)
    }

    fn older(&self, id: &ObjectId, popularity: &Popularity, rng: &mut Rng) -> Option<ObjectId> {
        match id.space {
            Space::Public => {
                let window = Window::new(id.serial, None)?;
                let world =
                    hash(Purpose::Redirect, &[self.seed(), u64::from(id.origin), u64::from(id.content)]);
                let serial = window.pick(popularity, &mut HotSet::default(), world, rng);
                Some(ObjectId { serial, ..*id })
            }
            Space::Private(robot) => {
                let group = &self.groups()[self.group_of(robot)?];
                let direct = group.mix.direct.iter().find(|direct| direct.content == id.content)?;
                let identity = PrivateWorld::identity(self.seed(), robot, direct);
                let window = Window::new(id.serial, None)?;
                (0..TRIES).find_map(|_| {
                    let serial = window.pick(popularity, &mut HotSet::default(), identity, rng);
                    let older = PrivateWorld::object(identity, robot, direct, serial)?;
                    (older.origin == id.origin).then_some(older)
                })
            }
            Space::BestEffort(robot) => (0..TRIES).find_map(|_| {
                let older = closed::older(self, robot, id.serial, rng)?;
                (older.origin == id.origin && older.content == id.content).then_some(older)
            }),
            Space::RequestBody(_)
            | Space::Foreign
            | Space::InPublicPage { .. }
            | Space::InRobotPage { .. } => None,
        }
    }

    /// True if nothing is decided for an xact that would keep it from being basic: no fault, no abort, no redirection, and no refusal for
    /// want of an acceptable coding or of a valid login in this session. `phase` is the phase in which it is due.
    #[inline]
    pub fn is_plain(&self, xact: XactId, phase: u16, session: u64, object: &Object) -> bool {
        let origin = object.id.origin;
        let is_refused = || self.auth_demand(object).is_some() && !self.has_valid_login(xact.robot, session);
        self.fault(xact, origin).is_none()
            && !is_refused()
            && self.robot_abort(xact, object.size_bytes).is_none()
            && self.origin_abort(xact, origin, object.size_bytes).is_none()
            && self.redirect(xact, phase, object).is_none()
            && self.has_acceptable(xact.robot, object.id.content)
    }

    /// Contribution of a launch to the offered hit ratios, with the faults and the like that are decided for it; `object` is that of the launch.
    #[inline]
    pub fn offered(&self, launch: &Launch, object: &Object) -> Offered {
        let xact = XactId { robot: launch.robot, number: launch.number, place: 0 };
        let offered = launch.offered(object);
        Offered {
            basic: offered.basic && self.is_plain(xact, launch.phase, launch.session, object),
            ..offered
        }
    }

    /// Contribution of an embedded object to the offered hit ratios; `launch` is its page's, `object` its own.
    #[inline]
    pub fn offered_child(&self, launch: &Launch, child: &Child, object: &Object) -> Offered {
        let xact = XactId { robot: launch.robot, number: launch.number, place: child.place };
        let offered = child.offered(object);
        Offered {
            basic: offered.basic && self.is_plain(xact, launch.phase, launch.session, object),
            ..offered
        }
    }

    /// The object whose body a POST or PUT of this xact carries to an origin ([`crate::Launch::post_body`] is
    /// the same); none for other methods, or when the robot has nothing to send. Its bytes are those of
    /// version 0.
    ///
    /// A share of bodies (`body_recurrence`) is taken from the robot's favourites, which become one more each
    /// time its number of requests has doubled: so all but a handful of them were sent before, and nobody
    /// needs to remember.
    pub fn request_body(&self, xact: XactId, method: Method, origin: OriginIndex) -> Option<ObjectId> {
        if !method.has_body() || xact.place != 0 {
            return None;
        }
        self.launch_body(&BodyDraw {
            robot: xact.robot,
            number: xact.number,
            method,
            origin,
            unit: self.body_unit(xact),
        })
    }

    /// True when the robot waits for 100 (`Expect: 100-continue`) before it sends a body of this size.
    pub fn expects(&self, xact: XactId, size_bytes: u64) -> bool {
        let Some(group) = self.group_of(xact.robot) else { return false };
        match self.workload().robots[group].expectation {
            Expectation::Never => false,
            Expectation::Sometimes(share) => self.draws(Purpose::Expect, xact).unit() < share,
            Expectation::From(bytes) => size_bytes >= bytes,
        }
    }

    /// True when an origin accepts an expected body (100); else it refuses (417).
    pub fn body_allowed(&self, xact: XactId, origin: OriginIndex) -> bool {
        let Some((server, _)) = self.server_of(origin) else { return true };
        server.body_allowed >= 1.0 || self.draws(Purpose::BodyAllowed, xact).unit() < server.body_allowed
    }

    /// Parts that a request of type [`crate::model::RequestType::Range`] asks for; none if its robot has no ranges (a workload that passed
    /// validation has).
    pub fn ranges(&self, xact: XactId, content: ContentIndex, size_bytes: u64) -> Option<Ranges> {
        let group = &self.groups()[self.group_of(xact.robot)?];
        group.mix.request(content).ranges.draw(size_bytes, &mut self.draws(Purpose::Range, xact))
    }

    /// Time from due after which an xact is given up; none: never.
    pub fn lifetime(&self, xact: XactId) -> Option<Duration> {
        let lifetime = self.groups()[self.group_of(xact.robot)?].lifetime.as_ref()?;
        Some(seconds(lifetime.sample(&mut self.draws(Purpose::Lifetime, xact))))
    }

    /// Pause of a thinking robot ([`crate::model::Pace::Think`]) after the response to the launch with this number; zero for all others.
    pub fn pause(&self, robot: RobotIndex, number: u64) -> Duration {
        let pause = self.group_of(robot).and_then(|group| self.groups()[group].pause.as_ref());
        let xact = XactId { robot, number, place: 0 };
        pause.map_or(Duration::ZERO, |pause| seconds(pause.sample(&mut self.draws(Purpose::Pause, xact))))
    }
}

/// A drawn length of time; draws lose their sign.
pub(crate) fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(libm::fabs(value)).unwrap_or(Duration::MAX)
}
