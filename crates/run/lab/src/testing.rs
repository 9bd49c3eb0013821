//! Small workloads for the tests of this crate.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use assay_workload::model::{
    ClientBehaviour, Content, Distribution, Goal, HttpVersion, Method, Origin, Pace, Phase, Popularity,
    PopularityLaw, Ramp, RequestType, RobotAddress, RobotGroup, Schedule, Server, Weighted, WorkingSet,
    Workload,
};

use crate::mode::Mode;
use crate::plan::{RunPart, RunPlan, TargetChoice};

/// One origin, one robot, one phase of two seconds.
pub fn workload() -> Workload {
    let content = Content {
        kind: "any".into(),
        mime_type: None,
        extensions: Weighted::none(),
        prefixes: Weighted::none(),
        size_bytes: Distribution::Constant(1000.0),
        life_cycle: None,
        cachable: 1.0,
        checksum: 0.0,
        embedded: None,
        behaviour: ClientBehaviour::default(),
        ..Content::default()
    };
    let server = Server {
        kind: "origin".into(),
        contents: Weighted::one(0),
        direct_access: Weighted::one(0),
        think_s: None,
        connection_use_limit: Some(Distribution::Constant(1e6)),
        idle_timeout: None,
        http_versions: Weighted::one(HttpVersion::Http11),
        ..Server::default()
    };
    Workload {
        name: "small".into(),
        contents: vec![content],
        servers: vec![server],
        origins: vec![Origin { authority: "192.168.0.2:9000".into(), server: 0 }],
        robots: vec![robots("192.168.0.3", 1, Pace::Rate { per_second: 10.0 })],
        schedule: Schedule { phases: vec![phase("only", 2)], working_set: WorkingSet::Grows },
        ..Workload::default()
    }
}

/// A phase of full load.
pub fn phase(name: &str, seconds: u64) -> Phase {
    let full = Ramp { begin: 1.0, end: 1.0 };
    Phase {
        name: name.into(),
        goal: Goal { duration: Some(Duration::from_secs(seconds)), ..Goal::default() },
        load: full,
        recurrence: full,
        population: full,
        special: full,
        log_stats: true,
        primary: true,
        wait_for_freeze: false,
        ..Phase::default()
    }
}

/// Robots of one address that send requests to the first origin.
pub fn robots(host: &str, count: u32, pace: Pace) -> RobotGroup {
    RobotGroup {
        kind: "robot".into(),
        addresses: vec![RobotAddress { host: host.into(), count }],
        origins: Weighted::one(0),
        proxies: Vec::new(),
        pace,
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
        connection_use_limit: Some(Distribution::Constant(1e6)),
        idle_timeout: None,
        open_connection_limit: None,
        waiting_limit: None,
        pipeline_depth: None,
        http_versions: Weighted::one(HttpVersion::Http11),
        ..RobotGroup::default()
    }
}

/// A plan for [`workload`] through the built-in proxy, in a run directory that is not there yet.
pub fn plan() -> RunPlan {
    let name = format!("assay-lab-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    RunPlan {
        exe: "/bin/false".into(),
        assay_version: "test".into(),
        command: vec!["assay".into(), "run".into()],
        workload: workload(),
        sources: vec![("small.pg".into(), "text".into())],
        scale: None,
        overrides: Default::default(),
        explained: Vec::new(),
        stream_digest: "0".into(),
        stream_digest_requests: 1,
        seed: 1,
        world: 1,
        private_as_public: false,
        run_dir: std::env::temp_dir().join(name),
        tries: 1,
        target: TargetChoice::Builtin(Mode::Reverse),
        own_target: false,
        memory_bytes: 64 << 20,
        disk_bytes: 64 << 20,
        limits: Default::default(),
        settings: std::collections::BTreeMap::new(),
        threads: 0,
        timeout: Duration::from_secs(10),
        tls: Default::default(),
        part: RunPart::Whole,
        start_at: None,
        xact_log: false,
        trace_disk: false,
        watched: None,
        robot_sources: Vec::new(),
        origin_listen: None,
        network: Default::default(),
        pin: true,
        robot_cpus: Vec::new(),
        origin_cpus: Vec::new(),
        proxy_cpus: Vec::new(),
        spin: Duration::ZERO,
        realtime: false,
        calibration: None,
        temp_dir: None,
        requirements: Vec::new(),
        warnings: Vec::new(),
        conform: None,
        remote: None,
    }
}

static NUMBER: AtomicU32 = AtomicU32::new(0);
