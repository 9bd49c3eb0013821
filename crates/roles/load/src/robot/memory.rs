//! Memory of a robot between its requests: challenges, cookies, its own cache, and the number of its session.
//!
//! Made when there is something to remember: most robots have none.

use assay_http::cookie::{Jar, SetCookie};
use assay_http::head::ResponseHead;
use assay_workload::model::{OriginIndex, RobotIndex};
use assay_workload::{BrowserCache, Login, SessionClock, SessionState, Universe, XactId};

use super::login::{AuthRequest, AuthStates, ProtectionSpace, SentCredentials};

/// Cookies kept for one origin, whatever the workload says.
const MOST_COOKIES: u64 = 50;
/// Origins that cookies are kept for; the one that set its first longest ago makes room.
const MOST_JARS: usize = 256;
/// Longest `Cookie` field: longer heads are refused.
const LONGEST_COOKIES: usize = 16 * 1024;

/// State of one robot between its requests.
#[derive(Debug, Default)]
pub struct RobotMemory {
    robot: RobotIndex,
    /// Number of the current session.
    session: u64,
    /// Credentials of this session, once the robot was challenged; none inside: it has none.
    login: Option<Option<Login>>,
    auth_states: AuthStates,
    /// Cookies by origin, for a robot that keeps them.
    jars: Vec<(OriginIndex, Jar)>,
    /// Most cookies kept for each origin, once one was set.
    cookie_limit: Option<usize>,
    browser: Option<BrowserCache>,
    sessions: Option<SessionPeriods>,
}

/// A robot's busy and idle periods.
#[derive(Debug)]
struct SessionPeriods {
    clock: SessionClock,
    /// Launches in the busy period that is on.
    made: u64,
}

impl RobotMemory {
    /// Memory of a robot at the start; none: there is nothing to remember.
    pub fn initial(universe: &Universe, robot: RobotIndex) -> Option<Box<Self>> {
        let group = universe.group_of(robot)?;
        let capacity = universe.workload().robots[group].private_cache;
        let sessions = SessionClock::new(universe, robot).map(|clock| SessionPeriods { clock, made: 0 });
        let browser = (capacity > 0).then(|| BrowserCache::new(capacity));
        let has_any = browser.is_some() || sessions.is_some();
        has_any.then(|| Box::new(Self { browser, sessions, ..Self::new(robot) }))
    }

    pub fn new(robot: RobotIndex) -> Self {
        Self { robot, ..Self::default() }
    }

    /// Number of the current session.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Begins a session, unless it has begun already, and forgets what belongs to the one before. True when there was
    /// one.
    pub fn enter(&mut self, session: u64) -> bool {
        let is_new = session != self.session;
        if is_new {
            self.session = session;
            self.forget();
        }
        is_new
    }

    /// Ends a session: challenges, what the cache holds, and cookies that are of the session alone are forgotten.
    pub fn forget(&mut self) {
        self.login = None;
        self.auth_states = AuthStates::default();
        self.jars.iter_mut().for_each(|(_, jar)| jar.end_session());
        self.jars.retain(|(_, jar)| !jar.is_empty());
        self.browser.iter_mut().for_each(BrowserCache::clear);
    }

    /// Whether the robot is busy at a moment of the schedule, not earlier than the last one queried; none: it has no
    /// sessions.
    pub fn state_at(&mut self, universe: &Universe, at_ns: u64) -> Option<SessionState> {
        self.sessions.as_mut().map(|sessions| sessions.clock.at(universe, at_ns))
    }

    /// Counts a launch of a robot without a rate: true when it is the last one of its busy period, which then ends.
    pub fn count_launch(&mut self, universe: &Universe, at_ns: u64) -> bool {
        let Some(SessionPeriods { clock, made }) = &mut self.sessions else { return false };
        *made += 1;
        let is_last = clock.transactions(universe).is_some_and(|most| *made >= most);
        if is_last {
            *made = 0;
            clock.finish(universe, at_ns);
        }
        is_last
    }

    /// True if the robot has an embedded object in its own cache, where it is from now on if it may be.
    pub fn holds(&mut self, key: u64, cachable: bool) -> bool {
        self.browser.as_mut().is_some_and(|browser| browser.has(key, cachable))
    }

    /// Takes a challenge. True when the robot has credentials that the request before did not send.
    pub fn on_challenge(
        &mut self,
        universe: &Universe,
        space: ProtectionSpace,
        head: &ResponseHead<'_>,
        sent_credentials: SentCredentials,
    ) -> bool {
        // What was said in another session says nothing of this one.
        let sent_credentials = if sent_credentials.session == self.session {
            sent_credentials
        } else {
            SentCredentials::default()
        };
        self.login(universe).is_some() && self.auth_states.on_challenge(space, head, sent_credentials)
    }

    fn login(&mut self, universe: &Universe) -> Option<&Login> {
        let (robot, session) = (self.robot, self.session);
        self.login.get_or_insert_with(|| universe.login(robot, session)).as_ref()
    }

    /// Appends the lines with credentials; returns what was sent, and to which space.
    pub fn write_login(&mut self, auth_request: &AuthRequest<'_>, out: &mut Vec<u8>) -> SentCredentials {
        let sent_credentials = match &self.login {
            Some(Some(login)) => self.auth_states.write(login, auth_request, out),
            _ => SentCredentials::default(),
        };
        SentCredentials { session: self.session, ..sent_credentials }
    }

    /// True when a request has to send credentials.
    pub fn must_send_credentials(&self) -> bool {
        !self.auth_states.is_empty()
    }

    /// Takes the cookies in that a response sets; how many.
    pub fn take_cookies(
        &mut self,
        universe: &Universe,
        origin: OriginIndex,
        head: &ResponseHead<'_>,
        now_s: u64,
    ) -> u64 {
        let robot = self.robot;
        let limit =
            *self.cookie_limit.get_or_insert_with(|| universe.cookie_limit(robot).min(MOST_COOKIES) as usize);
        let mut taken = 0;
        for field in head.headers().filter(|field| field.is("Set-Cookie")) {
            let Some(cookie) = SetCookie::parse(field.value).filter(|_| limit > 0) else { continue };
            let known = self.jars.iter().position(|(other, _)| *other == origin);
            let index = known.unwrap_or_else(|| {
                if self.jars.len() >= MOST_JARS {
                    self.jars.remove(0);
                }
                self.jars.push((origin, Jar::new(limit)));
                self.jars.len() - 1
            });
            self.jars[index].1.store(&cookie, now_s);
            taken += 1;
        }
        taken
    }

    /// Appends the line with the cookies for a path of an origin; false: there are none.
    pub fn write_cookies(&self, origin: OriginIndex, path: &[u8], now_s: u64, out: &mut Vec<u8>) -> bool {
        let Some((_, jar)) = self.jars.iter().find(|(other, _)| *other == origin) else { return false };
        let before = out.len();
        out.extend_from_slice(b"Cookie: ");
        let from = out.len();
        if !jar.write(path, now_s, out) {
            out.truncate(before);
            return false;
        }
        if out.len() - from > LONGEST_COOKIES {
            let fits = &out[from..from + LONGEST_COOKIES];
            let end = fits.iter().rposition(|byte| *byte == b';').unwrap_or(0);
            out.truncate(from + end);
        }
        out.extend_from_slice(b"\r\n");
        true
    }
}

/// True when a response sets a cookie.
pub fn sets_cookies(head: &ResponseHead<'_>) -> bool {
    head.header("Set-Cookie").is_some()
}

/// Client's nonce, another one for each step of each xact.
pub fn cnonce(xact: XactId, step: u8) -> u64 {
    let inputs = [u64::from(xact.robot), xact.number, u64::from(xact.place), u64::from(step)];
    assay_base::random::hash(assay_workload::Purpose::Other, &inputs)
}
