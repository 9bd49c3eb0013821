//! Runs `assay role origins` by hand: `cargo run --release --example origins SPEC.json`.
//!
//! Speaks as the role does: prints `ready` with the addresses, takes `{"command":"start",…}` and `{"command":"stop"}`
//! on standard input, and ends with it. `origins SPEC.json --paths 10` prints the paths of that many public objects of
//! each content type of the first origin instead, with their sizes.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use assay_protocol::load::OriginsSpec;
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Universe, UniverseOptions};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [spec] => serve(spec),
        [spec, flag, count] if flag == "--paths" => paths(spec, count),
        _ => Err("usage: origins SPEC.json [--paths COUNT]".into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn read(spec: &str) -> Result<OriginsSpec, Box<dyn Error>> {
    Ok(serde_json::from_slice(&std::fs::read(spec)?)?)
}

fn serve(spec: &str) -> Result<(), Box<dyn Error>> {
    Ok(assay_load::origin::run(read(spec)?)?)
}

fn paths(spec: &str, count: &str) -> Result<(), Box<dyn Error>> {
    let spec = read(spec)?.universe;
    let workload = Arc::new(serde_json::from_slice(&std::fs::read(&spec.workload)?)?);
    let options = UniverseOptions { private_as_public: spec.private_as_public };
    let universe = Universe::new(workload, spec.seed, spec.world, options)?;
    for content in 0..universe.workload().contents.len() as u16 {
        for serial in 0..count.parse()? {
            let object = universe.object(ObjectId { origin: 0, content, space: Space::Public, serial });
            println!("{} {}", universe.path(&object), object.size_bytes);
        }
    }
    Ok(())
}
