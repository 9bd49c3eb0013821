//! A small universe for the tests of this room.

use std::sync::Arc;

use assay_workload::model::{
    ClientBehaviour, Content, Distribution, Expiry, ExpiryBase, Goal, HttpVersion, LifeCycle, Method, Origin,
    Pace, Phase, Popularity, PopularityLaw, Ramp, RequestType, RobotAddress, RobotGroup, Schedule, Server,
    Weighted, WorkingSet, Workload,
};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Universe, UniverseOptions};

use super::config::SharedOrigins;

const fn flat(value: f64) -> Ramp {
    Ramp { begin: value, end: value }
}

fn content(kind: &str, cachable: f64) -> Content {
    let expires = Expiry { base: ExpiryBase::Now, after_s: Distribution::Constant(60.0) };
    Content {
        kind: kind.into(),
        mime_type: Some("image/gif".into()),
        extensions: Weighted::one(".gif".into()),
        prefixes: Weighted::none(),
        size_bytes: Distribution::Exponential { mean: 10_000.0 },
        life_cycle: Some(LifeCycle {
            length_s: Distribution::Constant(1e6),
            variance: 0.0,
            with_last_modified: 1.0,
            expires: Weighted::one(Some(expires)),
        }),
        cachable,
        checksum: 0.0,
        embedded: None,
        behaviour: ClientBehaviour::default(),
        ..Content::default()
    }
}

fn robots() -> RobotGroup {
    RobotGroup {
        kind: "R".into(),
        addresses: vec![RobotAddress { host: "127.0.0.1".into(), count: 3 }],
        origins: Weighted::new([(0, 1.0), (1, 1.0)]),
        proxies: vec![],
        pace: Pace::Rate { per_second: 1.0 },
        recurrence: 0.5,
        embedded_recurrence: 1.0,
        popularity: Some(Popularity {
            law: PopularityLaw::Uniform,
            hot_set_fraction: 0.0,
            hot_set_probability: 0.0,
            ..Popularity::default()
        }),
        private_share: 0.0,
        request_types: Weighted::one(RequestType::Basic),
        methods: Weighted::one(Method::Get),
        post_contents: Weighted::none(),
        connection_use_limit: None,
        idle_timeout: None,
        open_connection_limit: None,
        waiting_limit: None,
        pipeline_depth: None,
        http_versions: Weighted::one(HttpVersion::Http11),
        ..RobotGroup::default()
    }
}

/// Two origins (`a.test`, `b.test`), objects of type 0 are cachable and those of type 1 are not; two phases.
pub fn workload() -> Workload {
    let server = Server {
        kind: "S".into(),
        contents: Weighted::new([(0, 1.0), (1, 1.0)]),
        direct_access: Weighted::new([(0, 1.0), (1, 1.0)]),
        think_s: None,
        connection_use_limit: Some(Distribution::Constant(3.0)),
        idle_timeout: None,
        http_versions: Weighted::one(HttpVersion::Http11),
        ..Server::default()
    };
    let phase = |name: &str| Phase {
        name: name.into(),
        goal: Goal { duration: Some(std::time::Duration::from_secs(10)), ..Goal::default() },
        load: flat(1.0),
        recurrence: flat(1.0),
        population: flat(1.0),
        special: flat(1.0),
        log_stats: true,
        primary: true,
        wait_for_freeze: false,
        ..Phase::default()
    };
    Workload {
        name: "test".into(),
        contents: vec![content("good", 1.0), content("bad", 0.0)],
        servers: vec![server],
        origins: ["a.test:80", "b.test:80"].map(|a| Origin { authority: a.into(), server: 0 }).into(),
        robots: vec![robots()],
        schedule: Schedule { phases: vec![phase("one"), phase("two")], working_set: WorkingSet::Grows },
        ..Workload::default()
    }
}

/// The universe of [`workload`].
pub fn shared() -> SharedOrigins {
    shared_of(workload())
}

/// The universe of some workload.
pub fn shared_of(workload: Workload) -> SharedOrigins {
    let files = crate::files::read_files(&workload).expect("are there");
    let universe = Universe::with_files(Arc::new(workload), 42, 7, UniverseOptions::default(), &files);
    SharedOrigins::new(universe.expect("can be run"), &[])
}

/// The path of a public object of type `content` at origin `a.test`.
pub fn path_of(shared: &SharedOrigins, content: u16, serial: u64) -> String {
    let id = ObjectId { origin: 0, content, space: Space::Public, serial };
    shared.universe.path(&shared.universe.object(id))
}

/// The path of a cachable public object at origin `a.test`.
pub fn path(shared: &SharedOrigins, serial: u64) -> String {
    path_of(shared, 0, serial)
}
