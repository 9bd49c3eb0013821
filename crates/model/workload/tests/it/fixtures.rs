//! Workloads made in code: a small one, and the shapes of the published listings.

use std::time::Duration;

use assay_workload::model::{
    ClientBehaviour, Content, ContentIndex, Distribution, Embedded, Expiry, ExpiryBase, Goal, HttpVersion,
    LifeCycle, Method, Origin, Pace, Phase, Popularity, PopularityLaw, Ramp, RequestType, RobotAddress,
    RobotGroup, Schedule, Server, Weighted, WorkingSet, Workload,
};

pub const KB: f64 = 1024.0;
pub const MB: u64 = 1 << 20;
pub const GB: u64 = 1 << 30;
const DAY_S: f64 = 86_400.0;

pub fn flat(factor: f64) -> Ramp {
    ramp(factor, factor)
}

pub fn ramp(begin: f64, end: f64) -> Ramp {
    Ramp { begin, end }
}

pub fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// A phase of so many seconds with all factors at 1.
pub fn phase(name: &str, length_s: f64) -> Phase {
    Phase {
        name: name.into(),
        goal: Goal { duration: Some(Duration::from_secs_f64(length_s)), ..Goal::default() },
        load: flat(1.0),
        recurrence: flat(1.0),
        population: flat(1.0),
        special: flat(1.0),
        log_stats: true,
        primary: false,
        wait_for_freeze: false,
        ..Phase::default()
    }
}

pub fn content(kind: &str, size_bytes: Distribution, cachable: f64) -> Content {
    Content {
        kind: kind.into(),
        mime_type: None,
        extensions: Weighted::none(),
        prefixes: Weighted::none(),
        size_bytes,
        life_cycle: None,
        cachable,
        checksum: 0.0,
        embedded: None,
        behaviour: ClientBehaviour::default(),
        ..Content::default()
    }
}

fn cycle(length_s: Distribution, variance: f64) -> Option<LifeCycle> {
    let expiry = Expiry { base: ExpiryBase::NextModified, after_s: Distribution::Constant(0.0) };
    Some(LifeCycle { length_s, variance, with_last_modified: 1.0, expires: Weighted::one(Some(expiry)) })
}

fn log_normal(mean: f64, deviation: f64) -> Distribution {
    Distribution::LogNormal { mean, deviation }
}

pub fn image() -> Content {
    Content {
        extensions: Weighted::new([(".gif".into(), 1.0), (".jpeg".into(), 1.0), (".png".into(), 1.0)]),
        life_cycle: cycle(log_normal(30.0 * DAY_S, 7.0 * DAY_S), 0.5),
        checksum: 0.01,
        ..content("image", Distribution::Exponential { mean: 9.0 * KB }, 0.8)
    }
}

/// Pages of the listings; `image` is the index of what they embed.
pub fn html(image: ContentIndex) -> Content {
    Content {
        extensions: Weighted::new([(".html".into(), 0.6), (".htm".into(), 0.4)]),
        life_cycle: cycle(log_normal(7.0 * DAY_S, DAY_S), 0.33),
        checksum: 0.01,
        embedded: Some(Embedded { count: Distribution::Zipf { n: 13.0 }, contents: Weighted::one(image) }),
        ..content("HTML", Distribution::Exponential { mean: 8.5 * KB }, 0.9)
    }
}

fn download() -> Content {
    Content {
        extensions: Weighted::new([(".exe".into(), 0.4), (".zip".into(), 0.3), (".gz".into(), 0.3)]),
        life_cycle: cycle(log_normal(182.5 * DAY_S, 30.0 * DAY_S), 0.33),
        checksum: 0.0001,
        ..content("download", log_normal(300.0 * KB, 300.0 * KB), 0.95)
    }
}

fn other() -> Content {
    Content {
        life_cycle: cycle(Distribution::Uniform { low: DAY_S, high: 365.0 * DAY_S }, 0.5),
        checksum: 0.001,
        ..content("other", log_normal(25.0 * KB, 10.0 * KB), 0.72)
    }
}

pub fn uniform() -> Option<Popularity> {
    Some(Popularity {
        law: PopularityLaw::Uniform,
        hot_set_fraction: 1.0,
        hot_set_probability: 0.0,
        ..Popularity::default()
    })
}

pub fn server(contents: Weighted<ContentIndex>, direct_access: Weighted<ContentIndex>) -> Server {
    Server {
        kind: "WebAxe-1-srv".into(),
        contents,
        direct_access,
        think_s: Some(Distribution::Normal { mean: 0.3, deviation: 0.1 }),
        connection_use_limit: Some(Distribution::Zipf { n: 16.0 }),
        idle_timeout: Some(seconds(15)),
        http_versions: Weighted::one(HttpVersion::Http11),
        ..Server::default()
    }
}

pub fn robots(count: u32, per_second: f64, recurrence: f64) -> RobotGroup {
    RobotGroup {
        kind: "WebAxe-1-rbt".into(),
        addresses: vec![RobotAddress { host: "192.168.0.3".into(), count }],
        origins: Weighted::one(0),
        proxies: Vec::new(),
        pace: Pace::Rate { per_second },
        recurrence,
        embedded_recurrence: 1.0,
        popularity: uniform(),
        private_share: 0.0,
        request_types: Weighted::one(RequestType::Basic),
        methods: Weighted::none(),
        post_contents: Weighted::none(),
        connection_use_limit: Some(Distribution::Zipf { n: 64.0 }),
        idle_timeout: None,
        open_connection_limit: Some(4),
        waiting_limit: None,
        pipeline_depth: None,
        http_versions: Weighted::one(HttpVersion::Http11),
        ..RobotGroup::default()
    }
}

pub fn origin() -> Origin {
    Origin { authority: "192.168.0.2:9000".into(), server: 0 }
}

/// One origin, one type of 1 KB, 80 % cachable; 20 robots at 10 requests a second each, for 100 s.
pub fn small() -> Workload {
    Workload {
        name: "small".into(),
        contents: vec![content("plain", Distribution::Constant(1024.0), 0.8)],
        servers: vec![server(Weighted::one(0), Weighted::one(0))],
        origins: vec![origin()],
        robots: vec![robots(20, 10.0, 0.5)],
        schedule: Schedule { phases: vec![phase("top", 100.0)], working_set: WorkingSet::Grows },
        ..Workload::default()
    }
}

/// The image listing: one content type, a thousand robots, every kind of ramp.
pub fn image_listing() -> Workload {
    let fill = 5.0 / 95.0;
    let warm = Phase { load: ramp(0.1, 1.0), log_stats: false, ..phase("warm", 300.0) };
    let phases = vec![
        warm,
        fill_phase(2 * GB, fill, 1.0),
        Phase { recurrence: ramp(fill, 1.0), ..phase("link", 600.0) },
        phase("top1", 3600.0),
        Phase { load: ramp(1.0, 0.1), ..phase("dec", 300.0) },
        Phase { load: flat(0.1), ..phase("idle", 600.0) },
        Phase { load: ramp(0.1, 1.0), ..phase("inc", 300.0) },
        phase("top2", 3600.0),
        cool(1.0),
    ];
    // WSS/(10KB*FillRate)/5%/80%
    let working_set = WorkingSet::FrozenAfter(seconds(640));
    Workload {
        name: "image".into(),
        contents: vec![image()],
        servers: vec![server(Weighted::one(0), Weighted::one(0))],
        origins: vec![origin()],
        robots: vec![robots(1000, 0.4, 0.95)],
        schedule: Schedule { phases, working_set },
        ..Workload::default()
    }
}

fn fill_phase(bytes: u64, recurrence: f64, load: f64) -> Phase {
    let goal = Goal { fill_bytes: Some(bytes), ..Goal::default() };
    Phase { goal, recurrence: flat(recurrence), load: flat(load), ..phase("fill", 0.0) }
}

fn cool(load: f64) -> Phase {
    Phase { load: ramp(load, 0.0), log_stats: false, ..phase("cool", 60.0) }
}

/// The mixed listing: pages, private interest, all request types and methods, POST bodies.
pub fn mixed_listing() -> Workload {
    let ims = Content {
        behaviour: ClientBehaviour {
            request_types: Some(Weighted::new([(RequestType::Ims200, 0.5), (RequestType::Ims304, 0.5)])),
            methods: Some(Weighted::one(Method::Post)),
            ..ClientBehaviour::default()
        },
        ..content("some-content", Distribution::Exponential { mean: 11.0 * KB }, 0.8)
    };
    let contents = vec![image(), html(0), ims, download(), other()];
    let third = 1.0 / 3.0;
    let held = Weighted::new([(0, 0.65), (1, 0.15), (2, 0.1), (3, 0.005), (4, 0.095)]);
    let direct = Weighted::new([(1, third), (3, third), (4, third)]);
    let types = [
        (RequestType::Basic, 0.7),
        (RequestType::Ims200, 0.1),
        (RequestType::Ims304, 0.1),
        (RequestType::Reload, 0.1),
    ];
    let group = RobotGroup {
        private_share: 0.1,
        request_types: Weighted::new(types),
        methods: Weighted::new([(Method::Post, 0.15), (Method::Get, 0.7), (Method::Head, 0.15)]),
        post_contents: Weighted::one(2),
        pipeline_depth: Some(Distribution::Zipf { n: 0.13 }),
        ..robots(1600, 1.0, 0.95)
    };
    let fill = 5.0 / 95.0;
    let phases = vec![
        Phase { load: flat(0.1), log_stats: false, ..phase("warm", 300.0) },
        fill_phase(2200 * MB, fill, 0.1),
        Phase { load: ramp(0.1, 0.2), recurrence: ramp(fill, 1.0), ..phase("link", 300.0) },
        Phase { load: flat(0.2), ..phase("top1", 3600.0) },
        Phase { load: ramp(0.2, 1.0), ..phase("inc", 6000.0) },
        phase("top2", 600.0),
        cool(1.0),
    ];
    Workload {
        name: "mixed".into(),
        contents,
        servers: vec![server(held, direct)],
        origins: vec![origin()],
        robots: vec![group],
        schedule: Schedule { phases, working_set: WorkingSet::FrozenAfter(seconds(1600)) },
        ..Workload::default()
    }
}
