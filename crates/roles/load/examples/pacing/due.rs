//! When each request of a workload is due. From the pure stream, without a run.

use std::error::Error;
use std::fs;
use std::sync::Arc;

use assay_protocol::load::UniverseSpec;
use assay_workload::digest::launch_digest;
use assay_workload::{Slice, Stream, Timeline, Universe, UniverseOptions};

use crate::sys::write_rows;

/// Prints how many launches there are, and the digest of the stream, as a summary has it.
pub fn count(spec: &str) -> Result<(), Box<dyn Error>> {
    let universe = read_universe(spec)?;
    let (mut count, mut digest) = (0u64, 0u64);
    for launch in stream(&universe)? {
        count += 1;
        digest = digest.wrapping_add(launch_digest(&launch, &universe));
    }
    println!("{count} {digest:016x}");
    Ok(())
}

/// Writes `robot << 32 | number` of each launch, and when it is due since the start.
pub fn write(spec: &str, out: &str) -> Result<(), Box<dyn Error>> {
    let launches = stream(&read_universe(spec)?)?;
    let rows: Vec<_> = launches
        .map(|launch| (request_id(launch.robot, launch.number), launch.due.as_nanos() as u64))
        .collect();
    Ok(write_rows(out, &rows)?)
}

fn stream(universe: &Arc<Universe>) -> Result<Stream, Box<dyn Error>> {
    let timeline = Arc::new(Timeline::new(universe.workload())?);
    Ok(Stream::new(universe.clone(), timeline, Slice::ALL))
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
