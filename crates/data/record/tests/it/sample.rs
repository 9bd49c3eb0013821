//! Measurements with something in every field.

use std::collections::BTreeMap;

use assay_measurement::adapted::{Adapted, Decided};
use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::health::{
    Baseline, LinkInterval, NetworkInterval, ProcessorInterval, Stall, ThreadInterval,
};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{
    Disturbance, Disturbed, HostInterval, OriginInterval, RobotInterval, RobotLevels, Times,
};
use assay_measurement::machine::{BlockInterval, DiskInterval, InterfaceInterval, MachineInterval};
use assay_measurement::measured::{ProxySample, Series};
use assay_measurement::robot_times::RobotTimes;
use strum::VariantArray;

/// A histogram of a few values that differ with `salt`.
pub fn histogram(salt: u64) -> SparseHistogram {
    let mut histogram = Histogram::new();
    for value in 0..40 {
        histogram.record((value * value * 977 * (salt + 1)) % 3_000_000);
    }
    histogram.to_sparse()
}

fn times(salt: u64) -> Times {
    let disturbance = |salt| Disturbance { seen: histogram(salt), least: histogram(salt + 1) };
    Times {
        response: histogram(salt),
        service: histogram(salt + 1),
        ttfb: histogram(salt + 2),
        disturbed: Disturbed {
            response: disturbance(salt + 3),
            service: disturbance(salt + 4),
            ttfb: disturbance(salt + 5),
            aftermath: histogram(salt + 8),
            passing: histogram(salt + 9),
        },
    }
}

/// Counts in which every field differs, made through JSON so that a new field is never forgotten.
fn numbered<T: serde::Serialize + serde::de::DeserializeOwned + Default>(salt: u64) -> T {
    let mut value = serde_json::to_value(T::default()).unwrap();
    for (index, (_, field)) in value.as_object_mut().unwrap().iter_mut().enumerate() {
        if field.is_u64() || field.is_null() {
            *field = (salt * 1000 + index as u64).into();
        }
    }
    serde_json::from_value(value).unwrap()
}

pub fn robots(start_ms: u64, phase: u16) -> RobotInterval {
    let mut counts: RobotCounts = numbered(start_ms + 1);
    counts.due_digest = u64::MAX - start_ms;
    counts.errors = BTreeMap::from([(ErrorKind::WrongBytes, 3), (ErrorKind::PortsExhausted, 1)]);
    counts.by_method = BTreeMap::from([("GET".to_owned(), 7), ("POST".to_owned(), 2)]);
    counts.by_type = BTreeMap::from([("basic".to_owned(), 8), ("ims304".to_owned(), 1)]);
    counts.by_status = BTreeMap::from([(200, 8), (304, 1)]);
    counts.by_tls = BTreeMap::from([("1.3 TLS_AES_256_GCM_SHA384".to_owned(), 2)]);
    RobotInterval {
        start_ms,
        length_ms: 1000,
        phase,
        counts,
        times: RobotTimes {
            hit: times(start_ms),
            miss: times(start_ms + 5),
            other: times(start_ms + 6),
            timed_out: times(start_ms + 7),
            lateness: histogram(9),
            unsent_wait: SparseHistogram::default(),
            unsent_least: SparseHistogram::default(),
            unread: histogram(10),
            handshake: histogram(11),
        },
        levels: RobotLevels { waiting: 3, in_flight: 4, connections: 5 },
    }
}

pub fn origins(start_ms: u64, phase: u16) -> OriginInterval {
    OriginInterval {
        start_ms,
        length_ms: 1000,
        phase,
        counts: numbered::<OriginCounts>(start_ms + 2),
        service: histogram(start_ms),
        lateness: SparseHistogram::default(),
        connections: 6,
    }
}

pub fn host(start_ms: u64, role: &str) -> HostInterval {
    HostInterval { start_ms, role: role.to_owned(), ..numbered(3) }
}

pub fn example(at_ms: u64) -> ErrorExample {
    ErrorExample {
        kind: ErrorKind::Stale,
        at_ms,
        phase: "top1".into(),
        xact: "1.2.0".into(),
        request: "GET /w0/t00/0_1.html".into(),
        detail: "expired 3 s before\nit was \"served\"".into(),
    }
}

pub fn thread(role: &str, cpu: Option<u32>) -> ThreadInterval {
    ThreadInterval {
        role: role.to_owned(),
        thread: 3,
        phase: 2,
        cpu,
        accept_queue: 8,
        timer_lag: histogram(4),
        ..numbered(7)
    }
}

pub fn stall() -> Stall {
    Stall { role: "robots".into(), thread: 1, ..numbered(8) }
}

pub fn baseline(cpu: Option<u32>) -> Baseline {
    Baseline { role: "origins".into(), thread: 1, cpu, length_ms: 250, lag: histogram(5) }
}

pub fn processors(start_ms: u64) -> [ProcessorInterval; 2] {
    [0, 1].map(|cpu| ProcessorInterval { start_ms, cpu, ..numbered(9) })
}

fn network(salt: u64) -> NetworkInterval {
    NetworkInterval { role: "robots+origins".into(), ..numbered(salt) }
}

fn block(operation: &str, distances: Vec<(u64, u64)>) -> BlockInterval {
    BlockInterval { device: "loop0".into(), operation: operation.to_owned(), distances, ..numbered(14) }
}

fn adapted(what: Decided) -> Adapted {
    Adapted {
        at_ms: 1_200,
        schedule_ns: 600_000_001,
        phase: 1,
        what,
        value: if what == Decided::Load { 0.75 } else { 0.0 },
        response_us: (what != Decided::Print).then_some(31_000),
        text: if what == Decided::Print { "100 of 3sec".to_owned() } else { String::new() },
    }
}

pub fn series() -> Series {
    Series {
        robots: vec![robots(0, 0), robots(1000, 0), robots(1000, 1)],
        origins: vec![origins(0, 0), origins(1000, 1)],
        host: vec![host(0, "robots"), host(0, "host")],
        proxy: vec![
            ProxySample {
                cache: String::new(),
                at_ms: 0,
                counters: BTreeMap::from([("hits".to_owned(), 0.0)]),
            },
            ProxySample { cache: "b".into(), at_ms: 0, counters: BTreeMap::from([("hits".to_owned(), 2.0)]) },
            ProxySample {
                cache: String::new(),
                at_ms: 1000,
                counters: BTreeMap::from([("hits".to_owned(), 12.5), ("n".to_owned(), 1.0)]),
            },
        ],
        examples: vec![example(5), example(6)],
        threads: vec![thread("robots", Some(1)), thread("origins", None)],
        stalls: vec![stall()],
        baselines: vec![baseline(None), baseline(Some(0))],
        network: vec![network(10), network(11)],
        processors: [processors(0), processors(1000)].concat(),
        adapted: Decided::VARIANTS.iter().copied().map(adapted).collect(),
        machine: vec![numbered::<MachineInterval>(12)],
        disks: vec![DiskInterval { device: "vda".into(), holds: "store".into(), ..numbered(13) }],
        interfaces: vec![InterfaceInterval { role: "proxy".into(), interface: "lo".into(), ..numbered(15) }],
        blocks: vec![
            block("read", vec![(0, 3), (1024, 1)]),
            block("other", vec![]),
            block("write", vec![(4, 2)]),
        ],
        links: vec![
            LinkInterval { link: "robots-target".into(), lateness: histogram(3), ..numbered(12) },
            LinkInterval { from: "target".into(), ..numbered(13) },
        ],
    }
}
