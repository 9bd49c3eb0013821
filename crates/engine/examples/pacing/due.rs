//! When is each request of a workload due? From the pure stream, without a run.

use std::error::Error;
use std::fs;
use std::sync::Arc;

use assay_engine::spec::UniverseSpec;
use assay_workload::digest::launch_digest;
use assay_workload::{Slice, Stream, Timeline, Universe, UniverseOptions};

use crate::sys::write_rows;

/// Prints how many launches there are; writes `robot << 32 | number` and the due time since the start of each.
pub fn count(spec: &str, out: Option<&str>) -> Result<(), Box<dyn Error>> {
    let universe = read_universe(spec)?;
    let timeline = Arc::new(Timeline::new(universe.workload())?);
    let stream = Stream::new(universe, timeline, Slice::ALL);
    let Some(out) = out else {
        println!("{}", stream.count());
        return Ok(());
    };
    let rows: Vec<_> = stream
        .map(|launch| (request_id(launch.robot, launch.number), launch.due.as_nanos() as u64))
        .collect();
    println!("{}", rows.len());
    Ok(write_rows(out, &rows)?)
}

/// One number for a robot's request; fits as long as no robot sends four thousand million.
pub fn request_id(robot: u32, number: u64) -> u64 {
    u64::from(robot) << 32 | number
}

pub fn read_universe(spec: &str) -> Result<Arc<Universe>, Box<dyn Error>> {
    let spec: UniverseSpec = serde_json::from_slice(&fs::read(spec)?)?;
    let workload = Arc::new(serde_json::from_slice(&fs::read(&spec.workload)?)?);
    let options = UniverseOptions { private_as_public: spec.private_as_public };
    Ok(Arc::new(Universe::new(workload, spec.seed, spec.world, options)?))
}
