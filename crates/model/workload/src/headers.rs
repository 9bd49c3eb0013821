//! What messages carry beside what HTTP needs. Added fields, cookies, content codings, and which robots keep cookies.

use crate::Purpose;
use crate::model::{AuthDemand, Coding, ContentIndex, CookieSetting, HeaderRule, RobotIndex};
use crate::object::Object;
use crate::universe::Universe;
use crate::xact::XactId;
use assay_base::random::{Rng, fold, hash, unit_of};

/// Cookies longer than this are cut: clients need not take longer ones (RFC 6265).
const LONGEST_COOKIE_BYTES: u64 = 4000;
/// Tells the draw of who sets cookies from those of who keeps them.
const SENDER: u64 = 2;
/// No response sets more.
const MOST_COOKIES: u64 = 50;

/// One cookie that a response sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookie {
    /// Unique for the object and the index of the cookie.
    pub name: String,
    /// Letters and digits.
    pub value: String,
}

impl Universe {
    /// Fields that a robot adds to a request, as its kind says.
    pub fn request_headers(&self, xact: XactId) -> impl Iterator<Item = (&str, &str)> {
        let rules =
            self.group_of(xact.robot).map_or(&[][..], |g| self.workload().robots[g].headers.as_slice());
        let seed = if rules.is_empty() { 0 } else { self.draws(Purpose::RequestHeader, xact).next_u64() };
        fields(rules, seed)
    }

    /// Fields that an origin adds to every response about an object, whatever its status.
    pub fn server_headers(&self, object: &Object) -> impl Iterator<Item = (&str, &str)> {
        let rules = self.server_of(object.id.origin).map_or(&[][..], |(server, _)| server.headers.as_slice());
        fields(rules, hash(Purpose::ResponseHeader, &[object.key, 1]))
    }

    /// Fields added to every message that carries this object's body: responses, and requests that send it.
    pub fn content_headers(&self, object: &Object) -> impl Iterator<Item = (&str, &str)> {
        let rules = &self.workload().contents[usize::from(object.id.content)].headers;
        fields(rules, hash(Purpose::ResponseHeader, &[object.key, 2]))
    }

    /// Cookies that a 200 response about an object sets.
    pub fn cookies(&self, object: &Object) -> impl Iterator<Item = Cookie> + use<> {
        let law = self.server_of(object.id.origin).and_then(|(server, table)| {
            let CookieSetting { senders, share, .. } = *server.cookies.as_ref()?;
            let words = [self.seed(), u64::from(object.id.origin), SENDER];
            if senders < 1.0 && unit_of(hash(Purpose::Cookie, &words)) >= senders {
                return None;
            }
            let mut rng = Rng::of(Purpose::Cookie, &[object.key]);
            if rng.unit() >= share {
                return None;
            }
            let (count, length) = table.cookies.as_ref()?;
            let count = count.count(&mut rng).min(MOST_COOKIES);
            let lengths: Vec<u64> = (0..count).map(|_| length.size(&mut rng)).collect();
            Some((lengths, rng))
        });
        let (lengths, mut rng) = law.unwrap_or_else(|| (Vec::new(), Rng::new(0)));
        let name = (object.key >> 32) as u32;
        lengths.into_iter().enumerate().map(move |(index, length)| {
            const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
            let digit = |rng: &mut Rng| char::from(DIGITS[(rng.next_u64() >> 58) as usize]);
            let value = (0..length.min(LONGEST_COOKIE_BYTES)).map(|_| digit(&mut rng)).collect();
            Cookie { name: format!("c{name:08x}{index}"), value }
        })
    }

    /// True when a robot sends cookies back.
    pub fn keeps_cookies(&self, robot: RobotIndex) -> bool {
        let Some(group) = self.group_of(robot) else { return false };
        let share = self.workload().robots[group].cookies.share;
        unit_of(hash(Purpose::Cookie, &[self.seed(), u64::from(robot), 0])) < share
    }

    /// Upper bound on the cookies that a robot keeps for each origin.
    pub fn cookie_limit(&self, robot: RobotIndex) -> u64 {
        let Some(group) = self.group_of(robot) else { return 0 };
        let mut rng = Rng::of(Purpose::Cookie, &[self.seed(), u64::from(robot), 1]);
        self.groups()[group].cookie_limit.count(&mut rng)
    }

    /// The codings that an origin can send bodies of a type in, in its order of preference; empty: identity only.
    pub fn codings(&self, content: ContentIndex) -> &[Coding] {
        &self.workload().contents[usize::from(content)].body.codings
    }

    /// True if an origin has bodies of a type in a coding that a robot accepts; else it responds with 406. One that does not say what
    /// it accepts gets any (RFC 9110, 12.5.3).
    pub fn has_acceptable(&self, robot: RobotIndex, content: ContentIndex) -> bool {
        let accepts = self.group_of(robot).map_or(&[][..], |group| &self.workload().robots[group].accepts);
        self.sends_parts(content)
            || accepts.is_empty()
            || self.codings(content).iter().any(|coding| accepts.contains(coding))
    }

    /// True when an origin sends parts of objects of a type: it does of the identity coding alone.
    pub fn sends_parts(&self, content: ContentIndex) -> bool {
        let offers = self.codings(content);
        offers.is_empty() || offers.contains(&Coding::Identity)
    }

    /// True when responses of a type say `Vary: Accept-Encoding`: the origin has more than one coding to choose from.
    pub fn varies(&self, content: ContentIndex) -> bool {
        self.codings(content).len() > 1
    }

    /// The authentication that an origin demands for this object; none: it demands none.
    pub fn auth_demand(&self, object: &Object) -> Option<&AuthDemand> {
        let demand = self.server_of(object.id.origin)?.0.authentication.as_ref()?;
        (self.unit(Purpose::Auth, object) < demand.share).then_some(demand)
    }
}

/// The fields of the rules whose coin, one for each rule, falls right.
fn fields(rules: &[HeaderRule], seed: u64) -> impl Iterator<Item = (&str, &str)> {
    rules
        .iter()
        .enumerate()
        .filter(move |(index, rule)| {
            rule.probability >= 1.0 || unit_of(fold(seed, *index as u64)) < rule.probability
        })
        .flat_map(|(_, rule)| rule.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}
