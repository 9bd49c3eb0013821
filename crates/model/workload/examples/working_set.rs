//! The cost of a large working set, against that of a small one. Prints memory and processor time per request for working
//! sets of a thousand and of a thousand million objects, for scheduled and for best-effort robots.
//!
//! `cargo run --release -p assay-workload --example working_set [OBJECTS…]` (by default 1000 1000000000). The
//! large set is really introduced, slot by slot, before anything is measured: that takes a minute or two.
//! Then requests are drawn from both sets in turn, so that whatever else goes on on the machine meets both alike.

use std::sync::Arc;
use std::time::Duration;

use assay_workload::model::{
    Content, Distribution, Embedded, Goal, LifeCycle, Origin, Pace, Phase, Popularity, PopularityLaw, Ramp,
    RobotAddress, RobotGroup, Schedule, Server, Weighted, WorkingSet, Workload,
};
use assay_workload::{ClosedRobot, Launch, Slice, Stream, Timeline, Universe, UniverseOptions};

const ROBOTS: u32 = 100;
const PER_SECOND: f64 = 10.0;
const RECURRENCE: f64 = 0.95;
/// Requests measured at a stretch, and stretches of each set.
const BATCH: usize = 50_000;
const ROUNDS: usize = 40;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, kind, size] = arguments.as_slice()
        && word == "memory"
    {
        return report_memory(kind, size.parse()?);
    }
    let sizes: Vec<u64> = arguments.iter().map(|size| size.parse()).collect::<Result<_, _>>()?;
    let sizes = if sizes.is_empty() { vec![1000, 1_000_000_000] } else { sizes };
    println!("robots       objects in the set   memory (KB)   CPU per request (ns)");
    compare("scheduled", &sizes)?;
    compare("best effort", &sizes)
}

fn make(kind: &str, objects: u64) -> Result<Requests, Failure> {
    if kind == "scheduled" { scheduled(objects) } else { closed(objects) }
}

/// Prints what a process takes that has a set and has used it for a while.
fn report_memory(kind: &str, objects: u64) -> Result<(), Failure> {
    let mut requests = make(kind, objects)?;
    let checksum = (0..BATCH).filter_map(|_| requests()).fold(0, |sum, word| sum ^ word);
    println!("{}", memory_kb()?);
    eprintln!("(checksum {checksum:016x})");
    Ok(())
}

/// The memory of a process of its own: what one set leaves behind would be taken for the next one's.
fn memory_of(kind: &str, objects: u64) -> Result<u64, Failure> {
    let this = std::env::current_exe()?;
    let output = std::process::Command::new(this).args(["memory", kind, &objects.to_string()]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Something that gives requests for ever, or long enough.
type Requests = Box<dyn FnMut() -> Option<u64>>;

fn compare(kind: &str, sizes: &[u64]) -> Result<(), Failure> {
    let mut sets = Vec::new();
    for size in sizes {
        sets.push((*size, make(kind, *size)?, memory_of(kind, *size)?, 0));
    }
    let mut checksum = 0u64;
    for _ in 0..ROUNDS {
        for (_, requests, _, all_ns) in &mut sets {
            let before = cpu_ns()?;
            for _ in 0..BATCH {
                checksum ^= requests().ok_or("the schedule is too short")?;
            }
            *all_ns += cpu_ns()? - before;
        }
    }
    for (size, _, memory_kb, all_ns) in &sets {
        let each_ns = *all_ns as f64 / (ROUNDS * BATCH) as f64;
        println!("{kind:12} {size:18} {memory_kb:13} {each_ns:22.1}");
    }
    println!("             (checksum {checksum:016x})");
    Ok(())
}

/// A stream that stands right behind the freeze of its working set.
fn scheduled(objects: u64) -> Result<Requests, Failure> {
    let fill_load = objects as f64 / (f64::from(ROBOTS) * PER_SECOND);
    let workload = workload(Pace::Rate { per_second: PER_SECOND }, fill_load, 0.0);
    let timeline = Arc::new(Timeline::new(&workload)?);
    let universe = universe(workload)?;
    let mut stream = Stream::new(Arc::clone(&universe), timeline, Slice::ALL);
    // A few seconds after the freeze all of the set can be revisited.
    let all = stream.by_ref().take_while(|launch| launch.due < Duration::from_secs(4)).count();
    eprintln!("{all} launches until the working set of {objects} was complete");
    Ok(Box::new(move || stream.next().map(|launch| touch(&universe, &launch))))
}

/// Best-effort robots whose earlier phase introduced the set, at the rate at which they go on: how long a
/// revisit looks for a first visit depends on how rare those are.
fn closed(objects: u64) -> Result<Requests, Failure> {
    let universe = universe(workload(Pace::BestEffort, 1.0, 1.0))?;
    let each = (objects as f64 / (1.0 - RECURRENCE) / f64::from(ROBOTS)).round() as u64;
    let mut robots: Vec<_> = (0..ROBOTS).map(|robot| ClosedRobot::new(&universe, robot)).collect();
    robots.iter_mut().for_each(|robot| robot.resume(&universe, &[each], Some(each)));
    let mut turn = 0;
    Ok(Box::new(move || {
        turn = (turn + 1) % robots.len();
        let launch = robots[turn].next(&universe);
        Some(touch(&universe, &launch))
    }))
}

/// What a robot and an origin do with the universe for one request: object, life, path and back, body, children.
fn touch(universe: &Universe, launch: &Launch) -> u64 {
    let object = universe.object(launch.object);
    let life = universe.life(&object, launch.due.as_secs() as i64);
    let path = universe.path(&object);
    let known = universe.parse_path(object.id.origin, path.as_bytes()).is_ok();
    let body = universe.body(&object, life.version);
    let first = body.chunk(universe.pool(), 0, 16).first().copied().unwrap_or(0);
    universe.children(launch).map(|child| child.object.serial).sum::<u64>()
        ^ u64::from(first)
        ^ u64::from(known)
}

fn universe(workload: Workload) -> Result<Arc<Universe>, Failure> {
    Ok(Arc::new(Universe::new(Arc::new(workload), 1, 1, UniverseOptions::default())?))
}

/// A second that introduces the set, then mostly revisits.
fn workload(pace: Pace, fill_load: f64, fill_recurrence: f64) -> Workload {
    let flat = |factor| Ramp { begin: factor, end: factor };
    let phase = |name: &str, seconds: f64, load: f64, recurrence: f64| Phase {
        name: name.into(),
        goal: Goal { duration: Some(Duration::from_secs_f64(seconds)), ..Goal::default() },
        load: flat(load),
        recurrence: flat(recurrence),
        ..Phase::default()
    };
    let image = Content {
        kind: "image".into(),
        extensions: Weighted::one(".png".into()),
        size_bytes: Distribution::Exponential { mean: 9216.0 },
        life_cycle: Some(LifeCycle {
            length_s: Distribution::LogNormal { mean: 86_400.0, deviation: 86_400.0 },
            variance: 0.5,
            with_last_modified: 1.0,
            expires: Weighted::none(),
        }),
        cachable: 0.8,
        ..Content::default()
    };
    let page = Content {
        kind: "page".into(),
        embedded: Some(Embedded { count: Distribution::Zipf { n: 13.0 }, contents: Weighted::one(0) }),
        ..image.clone()
    };
    let law = PopularityLaw::Zipf { skew: 1.0 };
    let popularity =
        Popularity { law, hot_set_fraction: 0.01, hot_set_probability: 0.1, size_preference: 0.0 };
    Workload {
        name: "working set".into(),
        contents: vec![image, page],
        servers: vec![Server {
            contents: Weighted::new([(0, 0.9), (1, 0.1)]),
            direct_access: Weighted::new([(0, 0.9), (1, 0.1)]),
            ..Server::default()
        }],
        origins: vec![Origin { authority: "origin:80".into(), server: 0 }],
        robots: vec![RobotGroup {
            kind: "robot".into(),
            addresses: vec![RobotAddress { host: "robot".into(), count: ROBOTS }],
            origins: Weighted::one(0),
            pace,
            recurrence: RECURRENCE,
            embedded_recurrence: 1.0,
            popularity: Some(popularity),
            ..RobotGroup::default()
        }],
        schedule: Schedule {
            phases: vec![phase("fill", 1.0, fill_load, fill_recurrence), phase("top", 1e6, 1.0, 1.0)],
            working_set: WorkingSet::FrozenAfter(Duration::from_secs(1)),
        },
        ..Workload::default()
    }
}

fn memory_kb() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Processor time of this thread.
fn cpu_ns() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("no schedstat")?.parse()?)
}
