//! A compiled workload: what `assay-pgl` produces and everything else consumes.
//!
//! Plain data, serialisable: the run directory keeps it as `workload.json`, and role processes read it
//! from there. Fields say their unit in type or name; probabilities are 0 to 1.

mod defaults;
mod features;
mod links;
mod script;
mod tls;
mod weighted;

use std::time::Duration;

pub use self::features::{
    AuthDemand, AuthScheme, BodySource, BodySpec, Coding, CookieKeeping, CookieSetting, Credentials,
    Expectation, Extent, Faults, FileEntry, FileSet, FileSetIndex, ForeignUrl, HeaderRule, Injection,
    RandomExtent, RangeSpec, Session, Thermostat, UserRun,
};
pub use self::links::{Link, Links};
pub use self::script::{Script, ScriptExpr, ScriptStatement};
pub use self::tls::{Tls, TlsCipher, TlsKey, TlsVersion};
pub use self::weighted::Weighted;
use serde::{Deserialize, Serialize};

/// Index into [`Workload::contents`].
pub type ContentIndex = u16;
/// Index into [`Workload::servers`].
pub type ServerIndex = u16;
/// Index into [`Workload::origins`].
pub type OriginIndex = u16;
/// Most robots of a workload: more than any machine can be. Each is a few bytes of memory at least.
pub const MOST_ROBOTS: u32 = 10_000_000;

/// A robot's number, counted over all groups in order: 0 .. [`Workload::robot_count`].
pub type RobotIndex = u32;

/// Everything a workload says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// A name for people: the source file's stem.
    pub name: String,
    /// Content types that can occur, in order of first use by servers, then by request bodies.
    pub contents: Vec<Content>,
    /// Kinds of origin servers.
    pub servers: Vec<Server>,
    /// Origin servers, one for each address given to a server kind.
    pub origins: Vec<Origin>,
    /// Groups of robots of one kind.
    pub robots: Vec<RobotGroup>,
    /// Phases and working set.
    pub schedule: Schedule,
    /// Files that bodies are made of.
    #[serde(default)]
    pub files: Vec<FileSet>,
    /// URLs of traces, in order; robots with a foreign interest walk through them.
    #[serde(default)]
    pub foreign: Vec<ForeignUrl>,
    /// TLS; none: all connections are in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Links to the target; none: the workload specifies none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// Groups of origins that stand for one another when a connection is reused.
    #[serde(default)]
    pub substitutes: Vec<Vec<OriginIndex>>,
    /// Requirements on a run, as written; the workload does not interpret them.
    #[serde(default)]
    pub requirements: Vec<String>,
}

/// One type of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    pub kind: String,
    /// Value of `Content-Type`; none leaves the header out.
    pub mime_type: Option<String>,
    /// File name extensions with their dot (`.html`), fixed per object. May be empty.
    pub extensions: Weighted<String>,
    /// Path prefixes, fixed per object. May be empty.
    pub prefixes: Weighted<String>,
    /// Body size in bytes.
    pub size_bytes: Distribution,
    /// Modification of objects; none: never, and no `Last-Modified` or `Expires` is sent.
    pub life_cycle: Option<LifeCycle>,
    /// Share of objects that may be cached.
    pub cachable: f64,
    /// Share of objects served with a checksum.
    pub checksum: f64,
    pub body: BodySpec,
    /// Fields added to responses with a body of this type, and to requests that carry one; fixed per object.
    pub headers: Vec<HeaderRule>,
    /// Makes the type a page.
    pub embedded: Option<Embedded>,
    /// Behaviour of robots that is specific to this type.
    pub behaviour: ClientBehaviour,
}

/// Embedded objects of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Embedded {
    /// Embedded objects per page.
    pub count: Distribution,
    pub contents: Weighted<ContentIndex>,
}

/// Modification of objects of a type, and the freshness that they announce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LifeCycle {
    /// Time between modifications, in seconds; one draw per object.
    pub length_s: Distribution,
    /// Random shift of each modification, as a share of half the cycle.
    pub variance: f64,
    /// Share of objects that show `Last-Modified`.
    pub with_last_modified: f64,
    /// Rule for `Expires`; one choice per object. Empty: no `Expires`.
    pub expires: Weighted<Option<Expiry>>,
}

/// `Expires` = base + after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expiry {
    pub base: ExpiryBase,
    /// Seconds after it.
    pub after_s: Distribution,
}

/// Base of an expiry (PGL `now`, `lmt`, `nmt`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryBase {
    /// The time of the response.
    Now,
    LastModified,
    NextModified,
}

/// Overrides of a robot's own settings for one content type. None leaves the robot's setting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientBehaviour {
    pub request_types: Option<Weighted<RequestType>>,
    pub methods: Option<Weighted<Method>>,
    pub recurrence: Option<f64>,
    pub popularity: Option<Popularity>,
    /// Parts requested by `Range` requests.
    #[serde(default)]
    pub ranges: Option<Weighted<RangeSpec>>,
}

/// A kind of origin server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    pub kind: String,
    /// All types it holds.
    pub contents: Weighted<ContentIndex>,
    /// Types that robots request directly.
    pub direct_access: Weighted<ContentIndex>,
    /// Seconds before a request is handled; none: at once.
    pub think_s: Option<Distribution>,
    /// Requests a connection serves, drawn when it opens; none: one.
    pub connection_use_limit: Option<Distribution>,
    /// Closes a connection idle for this long; none: never.
    pub idle_timeout: Option<Duration>,
    /// Sticky per origin.
    pub http_versions: Weighted<HttpVersion>,
    /// Share of requests that get a redirection to another object of the same origin that was requested
    /// before.
    pub redirect_share: f64,
    /// Popularity model of that object; required when the share is positive.
    pub popularity: Option<Popularity>,
    /// Cookies that it sets; none: never any.
    pub cookies: Option<CookieSetting>,
    /// Share of expected request bodies that it accepts (100); the rest are refused (417).
    pub body_allowed: f64,
    /// The authentication that it demands; none: it demands none.
    pub authentication: Option<AuthDemand>,
    /// Share of responses that it breaks off in the middle of the body, and says so beforehand.
    pub abort_share: f64,
    /// Fields added to every response, each with its probability.
    pub headers: Vec<HeaderRule>,
    /// Deliberate faults.
    pub faults: Faults,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// `host:port` as the workload says it; robots put it into `Host`. The lab maps it to a real address.
    pub authority: String,
    pub server: ServerIndex,
}

/// `count` robots in a row with one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotAddress {
    /// Host as the workload says it.
    pub host: String,
    /// Robots that share it.
    pub count: u32,
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Robots of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotGroup {
    pub kind: String,
    /// Addresses, run-length coded; the counts add up to the number of robots.
    pub addresses: Vec<RobotAddress>,
    /// Origins they see, by weight.
    pub origins: Weighted<OriginIndex>,
    /// Forward proxies the workload names (`host:port`); used only when the command line names no target.
    pub proxies: Vec<String>,
    pub pace: Pace,
    /// Requests that a best-effort robot has under way at a time over HTTP/2, each on a stream of its own.
    #[serde(skip_serializing_if = "is_one")]
    pub streams: u32,
    /// Requests say how urgent they are, pages before what they embed (RFC 9218).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub priorities: bool,
    /// Best-effort robots begin at random moments within this time; none: all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_window: Option<Duration>,
    /// Probability that a request revisits an object.
    pub recurrence: f64,
    /// Probability that an embedded object is fetched.
    pub embedded_recurrence: f64,
    /// Popularity model of revisits; required when recurrence is positive.
    pub popularity: Option<Popularity>,
    /// Share of requests to the robot's private world; the rest goes to the public one.
    pub private_share: f64,
    pub request_types: Weighted<RequestType>,
    pub methods: Weighted<Method>,
    /// Share of requests for a URL of [`Workload::foreign`]; taken from the public share.
    pub foreign_share: f64,
    /// Parts requested by `Range` requests.
    pub ranges: Weighted<RangeSpec>,
    /// Bodies of POST requests.
    pub post_contents: Weighted<ContentIndex>,
    /// Bodies of PUT requests.
    pub put_contents: Weighted<ContentIndex>,
    /// Probability that a request's body was sent before.
    pub body_recurrence: f64,
    /// Expect: 100-continue.
    pub expectation: Expectation,
    /// Codings it accepts; empty: no `Accept-Encoding` is sent.
    pub accepts: Vec<Coding>,
    /// Fields added to every request, each with its probability.
    pub headers: Vec<HeaderRule>,
    /// Objects that its own cache holds (embedded ones that it finds there are not requested); 0: it has none.
    pub private_cache: u32,
    pub cookies: CookieKeeping,
    pub credentials: Credentials,
    /// Busy and idle periods; none: always busy.
    pub session: Option<Session>,
    /// Share of responses that it breaks off in the middle of the body.
    pub abort_share: f64,
    /// An xact that is not complete so many seconds after it was due is given up; none: only the run's own
    /// time limit.
    pub lifetime_s: Option<Distribution>,
    /// Probability that an idle connection to a substitute is used instead of a new one.
    pub substitution: f64,
    /// Requests per connection, drawn when it opens; none: one.
    pub connection_use_limit: Option<Distribution>,
    /// Closes a connection idle for this long; none: never.
    pub idle_timeout: Option<Duration>,
    /// Connections per robot; none: no limit.
    pub open_connection_limit: Option<u32>,
    /// Requests that may wait for a connection, per robot; none: no limit.
    pub waiting_limit: Option<u32>,
    /// Requests under way on one connection (embedded objects only), drawn per connection; none: one.
    pub pipeline_depth: Option<Distribution>,
    /// Sticky per robot.
    pub http_versions: Weighted<HttpVersion>,
}

/// Arrival process of a robot's requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The next request is due when the last one is complete (closed loop).
    BestEffort,
    /// The next request is due this many seconds after the last one is complete (closed loop).
    Think(Distribution),
    /// Renewal process with these intervals, whatever the proxy does (open loop), in seconds at load factor 1.
    Renewal(Distribution),
    /// Poisson arrivals at this mean rate, whatever the proxy does (open loop); embedded objects count.
    Rate {
        /// Requests per second and robot at load factor 1.
        per_second: f64,
    },
}

/// Popularity of the objects that can be revisited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Popularity {
    pub law: PopularityLaw,
    /// Size of the hot set as a share of the working set.
    pub hot_set_fraction: f64,
    /// Share of revisits that go to the hot set.
    pub hot_set_probability: f64,
    /// Share of revisits that take the smallest cachable object among four neighbours on each side.
    #[serde(default)]
    pub size_preference: f64,
}

/// Popularity as a function of age.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PopularityLaw {
    Uniform,
    /// `1 + n − floor((n+1)^(u^skew))`: the newest is the most popular.
    Zipf {
        /// Below 1 flattens.
        skew: f64,
    },
    /// A histogram over ages: 0 is the newest, 1 the oldest (not in Web Polygraph).
    Table(Vec<Bin>),
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestType {
    Basic,
    /// `If-Modified-Since` a second before the last modification: wants 200.
    Ims200,
    /// `If-Modified-Since` a second after it: wants 304.
    Ims304,
    /// `Cache-Control: no-cache`: must reach the origin.
    Reload,
    /// Requests a part ([`RangeSpec`]).
    Range,
    /// Sends a body with PUT.
    Upload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
}

impl Method {
    /// True for methods whose requests carry a body.
    pub fn has_body(self) -> bool {
        matches!(self, Method::Post | Method::Put)
    }
}

/// Version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2: in clear, with prior knowledge (RFC 9113, 3.3).
    #[serde(rename = "2")]
    Http2,
}

impl HttpVersion {
    /// As workloads and the command line write it.
    pub fn name(self) -> &'static str {
        match self {
            HttpVersion::Http10 => "1.0",
            HttpVersion::Http11 => "1.1",
            HttpVersion::Http2 => "2",
        }
    }
}

/// The phases in order, and when the working set stops growing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// In order; never empty in a workload that can run.
    pub phases: Vec<Phase>,
    pub working_set: WorkingSet,
}

/// A stretch of the schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Unique in the schedule (a duplicate in the source gets a suffix).
    pub name: String,
    pub goal: Goal,
    /// Multiplies each robot's rate.
    pub load: Ramp,
    pub recurrence: Ramp,
    /// Share of robots alive.
    pub population: Ramp,
    /// Probability that request types and methods are consulted at all (else a Basic GET).
    pub special: Ramp,
    /// False: measured and recorded, but left out of summaries of the run's plateaus.
    pub log_stats: bool,
    /// Part of the baseline.
    pub primary: bool,
    /// Does not end before the working set is frozen.
    pub wait_for_freeze: bool,
    /// Adapts the load to response times.
    #[serde(default)]
    pub thermostat: Option<Thermostat>,
    /// Script that runs when the phase starts, and on samples of it.
    #[serde(default)]
    pub script: Option<Script>,
}

/// End condition of a phase: the first positive goal reached ends it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    pub duration: Option<Duration>,
    pub transactions: Option<u64>,
    /// Volume of fill (basic cachable first visits), in bytes.
    pub fill_bytes: Option<u64>,
    /// Errors that end the whole run: below 1 a ratio (after 1000 transactions), else a count.
    pub errors: Option<f64>,
}

/// A factor that moves from `begin` to `end` over a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ramp {
    pub begin: f64,
    pub end: f64,
}

/// End of the growth of the working set; after that it slides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkingSet {
    /// Never.
    Grows,
    /// This long after the start.
    FrozenAfter(Duration),
    /// After that many fill objects.
    FrozenAtFill(u64),
}

/// A random variable; the unit is the field's that holds it (seconds, bytes, a count).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    Constant(f64),
    /// Uniform on [low, high).
    Uniform {
        low: f64,
        /// Upper end, not included.
        high: f64,
    },
    Exponential {
        mean: f64,
    },
    /// Normal as PGL means it: a scaled sum of twelve uniforms, so it ends at ±6 deviations.
    Normal {
        mean: f64,
        deviation: f64,
    },
    /// Log-normal; both are of the resulting variable, not of its logarithm.
    LogNormal {
        mean: f64,
        deviation: f64,
    },
    /// `floor((n+1)^u)`: 1..=n with probability about 1/k.
    Zipf {
        n: f64,
    },
    /// first, first + 1, …
    Sequence {
        first: f64,
    },
    Table(Vec<Bin>),
}

/// One bar of a histogram: uniform on [low, high), or the point `low` when both are equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    pub low: f64,
    pub high: f64,
    pub weight: f64,
}

impl Pace {
    /// True when the next request waits for the last response.
    pub fn is_closed(&self) -> bool {
        matches!(self, Pace::BestEffort | Pace::Think(_))
    }

    /// Mean requests per second and robot at load factor 1; none: closed.
    pub fn per_second(&self) -> Option<f64> {
        match self {
            Pace::BestEffort | Pace::Think(_) => None,
            Pace::Rate { per_second } => Some(*per_second),
            Pace::Renewal(between_s) => Some(between_s.mean().recip()),
        }
    }
}

impl RobotGroup {
    /// Number of robots in the group.
    pub fn count(&self) -> u32 {
        self.addresses.iter().map(|run| run.count).sum()
    }
}

impl Workload {
    /// Number of robots in all groups.
    pub fn robot_count(&self) -> u32 {
        self.robots.iter().map(RobotGroup::count).sum()
    }
}
