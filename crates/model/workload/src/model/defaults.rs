//! What a part of a workload says that nothing was said about.

use std::time::Duration;

use super::{
    BodySpec, ClientBehaviour, Content, CookieKeeping, Credentials, Distribution, Expectation, Faults, Goal,
    HttpVersion, Method, Pace, Phase, Popularity, PopularityLaw, Ramp, RequestType, RobotGroup, Schedule,
    Server, Weighted, WorkingSet,
};

impl Default for Content {
    /// Nothing in it: a type of empty objects that may not be cached.
    fn default() -> Self {
        Self {
            kind: String::new(),
            mime_type: None,
            extensions: Weighted::none(),
            prefixes: Weighted::none(),
            size_bytes: Distribution::Constant(0.0),
            life_cycle: None,
            cachable: 0.0,
            checksum: 0.0,
            body: BodySpec::default(),
            headers: Vec::new(),
            embedded: None,
            behaviour: ClientBehaviour::default(),
        }
    }
}

impl Default for Server {
    /// Holds nothing, responds at once, and behaves.
    fn default() -> Self {
        Self {
            kind: String::new(),
            contents: Weighted::none(),
            direct_access: Weighted::none(),
            think_s: None,
            connection_use_limit: None,
            idle_timeout: None,
            http_versions: Weighted::one(HttpVersion::Http11),
            redirect_share: 0.0,
            popularity: None,
            cookies: None,
            body_allowed: 1.0,
            authentication: None,
            abort_share: 0.0,
            headers: Vec::new(),
            faults: Faults::default(),
        }
    }
}

impl Default for RobotGroup {
    /// No robots; they would send plain requests one after another.
    fn default() -> Self {
        Self {
            kind: String::new(),
            addresses: Vec::new(),
            origins: Weighted::none(),
            proxies: Vec::new(),
            pace: Pace::BestEffort,
            recurrence: 0.0,
            embedded_recurrence: 0.0,
            popularity: None,
            private_share: 0.0,
            request_types: Weighted::one(RequestType::Basic),
            methods: Weighted::one(Method::Get),
            foreign_share: 0.0,
            ranges: Weighted::none(),
            post_contents: Weighted::none(),
            put_contents: Weighted::none(),
            body_recurrence: 0.0,
            expectation: Expectation::Never,
            accepts: Vec::new(),
            headers: Vec::new(),
            private_cache: 0,
            cookies: CookieKeeping { share: 1.0, limit: Distribution::Constant(4.0) },
            credentials: Credentials::default(),
            session: None,
            abort_share: 0.0,
            streams: 1,
            priorities: false,
            launch_window: None,
            lifetime_s: None,
            substitution: 0.0,
            connection_use_limit: None,
            idle_timeout: None,
            open_connection_limit: None,
            waiting_limit: None,
            pipeline_depth: None,
            http_versions: Weighted::one(HttpVersion::Http11),
        }
    }
}

impl Default for Phase {
    /// Without a name or a goal, at full load.
    fn default() -> Self {
        let full = Ramp { begin: 1.0, end: 1.0 };
        Self {
            name: String::new(),
            goal: Goal::default(),
            load: full,
            recurrence: full,
            population: full,
            special: full,
            log_stats: true,
            primary: false,
            wait_for_freeze: false,
            thermostat: None,
            script: None,
        }
    }
}

impl Phase {
    /// The phase of a workload that schedules none: constant full load for as long as `duration`. Web Polygraph uses one of
    /// this name.
    pub fn default_phase(duration: Duration) -> Self {
        let goal = Goal { duration: Some(duration), ..Goal::default() };
        Self { name: "dflt".into(), goal, ..Self::default() }
    }
}

impl Goal {
    /// The duration of a phase that goes on until the run is stopped: longer than any run, and short enough for every instant
    /// in it to be exact to the nanosecond.
    pub const ENDLESS: Duration = Duration::from_secs(365 * 86_400);

    /// True for a phase that goes on until the run is stopped.
    pub fn is_endless(&self) -> bool {
        self.duration == Some(Self::ENDLESS) && self.transactions.is_none() && self.fill_bytes.is_none()
    }
}

impl Default for Popularity {
    fn default() -> Self {
        Self {
            law: PopularityLaw::Uniform,
            hot_set_fraction: 1.0,
            hot_set_probability: 0.0,
            size_preference: 0.0,
        }
    }
}

impl Default for Schedule {
    /// No phases, and a working set that grows.
    fn default() -> Self {
        Self { phases: Vec::new(), working_set: WorkingSet::Grows }
    }
}
