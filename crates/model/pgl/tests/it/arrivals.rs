//! In every bundled workload, the launches of every scheduled phase are a Poisson process.
//!
//! Not for best-effort robots, sessions, load that adapts and `req_inter_arrival`, which are none; and not for embedded objects,
//! which are due when their page has come. A comparison fails by chance once in a million, if seeds were drawn anew.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use assay_pgl::SearchPath;
use assay_workload::model::{Pace, Phase, Ramp, Workload};
use assay_workload::rehearse::rehearse;
use assay_workload::{Slice, Stream, Timeline, Universe, UniverseOptions};

use crate::chance::{assert_dispersion, assert_follows};

/// Windows in seconds.
const WINDOWS: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
/// Pieces in which a phase's rate is added up.
const PIECES: usize = 1000;
/// Slices of a phase in which embedded objects are counted.
const SLICES: usize = 16;

/// A launch: seconds since the start of its phase, and the requests that it brings.
struct Seen {
    at_s: f64,
    requests: f64,
}

#[test]
fn the_launches_of_all_bundled_workloads_are_poisson() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../workloads");
    let (mut phases, mut left_out) = (0, Vec::new());
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let resolver = SearchPath::from_fn(vec![], |file| std::fs::read_to_string(folder.join(file)).ok());
        let compiled = assay_pgl::compile(path.file_name().unwrap().to_str().unwrap(), &resolver);
        let compiled = compiled.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
        match assert_workload(&name, compiled.workload) {
            0 => left_out.push(name),
            compared => phases += compared,
        }
    }
    left_out.sort_unstable();
    assert!(phases >= 80, "{phases} phases were compared");
    assert_eq!(left_out, ["best-effort", "webstone", "webstone-8020"], "robots without a rate");
}

/// Gives the number of phases that were compared.
fn assert_workload(name: &str, workload: Workload) -> usize {
    let has_rate = workload.robots.iter().any(|group| matches!(group.pace, Pace::Rate { .. }));
    let others = |group: &assay_workload::model::RobotGroup| {
        matches!(group.pace, Pace::Renewal(_)) || group.session.is_some()
    };
    if !has_rate || workload.robots.iter().any(others) {
        return 0;
    }
    let workload = match rehearse(&workload, Duration::from_secs(300)) {
        Ok((rehearsed, scale)) if scale < 1.0 => rehearsed,
        _ => workload,
    };
    let timeline = Arc::new(Timeline::new(&workload).unwrap());
    let schedule = workload.schedule.phases.clone();
    let universe = Universe::new(Arc::new(workload), 91, 1, UniverseOptions::default()).unwrap();
    let universe = Arc::new(universe);
    let mut seen: Vec<Vec<Seen>> = schedule.iter().map(|_| Vec::new()).collect();
    for launch in Stream::new(Arc::clone(&universe), Arc::clone(&timeline), Slice::ALL) {
        let start = timeline.phases()[usize::from(launch.phase)].start.unwrap();
        let requests = 1.0 + universe.children(&launch).count() as f64;
        seen[usize::from(launch.phase)].push(Seen { at_s: (launch.due - start).as_secs_f64(), requests });
    }
    let mut compared = 0;
    for ((phase, span), seen) in schedule.iter().zip(timeline.phases()).zip(&seen) {
        if seen.len() >= 100 && phase.thermostat.is_none() && phase.script.is_none() {
            let length_s = (span.end.unwrap() - span.start.unwrap()).as_secs_f64();
            assert_phase(&format!("{name}, phase {}", phase.name), phase, length_s, seen);
            compared += 1;
        }
    }
    compared
}

fn assert_phase(what: &str, phase: &Phase, length_s: f64, seen: &[Seen]) {
    let elapsed = elapsed(phase, length_s, seen);
    let total = elapsed.last().copied().unwrap();
    let place = |at_s: f64| {
        let at = at_s / length_s * PIECES as f64;
        let (piece, part) = ((at as usize).min(PIECES - 1), at.fract());
        elapsed[piece] + part * (elapsed[piece + 1] - elapsed[piece])
    };
    // In a measure of time in which the rate is one.
    let scale = seen.len() as f64 / total;
    let places: Vec<f64> = seen.iter().map(|launch| place(launch.at_s) * scale).collect();
    let per_second = seen.len() as f64 / length_s;
    for window in WINDOWS.into_iter().filter(|window| window * 10.0 <= length_s) {
        let what = format!("{what}, windows of {window} s");
        assert_dispersion(&what, &places, 1.0, window * per_second, seen.len() as f64);
    }
    let mut gaps: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_follows(&format!("gaps of {what}"), &mut gaps, |gap| 1.0 - (-gap).exp());
}

/// The integral of the rate of launches, but for a factor, at the ends of pieces of the phase: requests go along with load
/// and population, and launches are the fewer the more embedded objects each brings.
fn elapsed(phase: &Phase, length_s: f64, seen: &[Seen]) -> Vec<f64> {
    let mut counts = [(0.0, 0.0); SLICES];
    for launch in seen {
        let slice = &mut counts[((launch.at_s / length_s * SLICES as f64) as usize).min(SLICES - 1)];
        *slice = (slice.0 + 1.0, slice.1 + launch.requests);
    }
    let all = counts.iter().fold((0.0, 0.0), |sum, slice| (sum.0 + slice.0, sum.1 + slice.1));
    let flat = phase.special.begin == phase.special.end;
    let launches_for_each_request = |u: f64| {
        let slice = counts[((u * SLICES as f64) as usize).min(SLICES - 1)];
        if flat || slice.0 < 1.0 { all.0 / all.1 } else { slice.0 / slice.1 }
    };
    let at = |ramp: &Ramp, u: f64| ramp.begin + (ramp.end - ramp.begin) * u;
    // A phase that goes on longer than its ramp stays at the end of it.
    let ramp_s = phase.goal.duration.map_or(length_s, |duration| duration.as_secs_f64());
    let mut sum = 0.0;
    let mut sums = vec![0.0];
    for piece in 0..PIECES {
        let u = (piece as f64 + 0.5) / PIECES as f64;
        let ramp = (u * length_s / ramp_s).min(1.0);
        sum += at(&phase.load, ramp) * at(&phase.population, ramp) * launches_for_each_request(u);
        sums.push(sum);
    }
    sums
}
