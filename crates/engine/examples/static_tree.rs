//! Writes objects as plain files, so that any static server can stand in for the origins:
//! `cargo run --release --example static_tree ROBOTS-SPEC.json COUNT DIR`.
//!
//! Below `DIR/tree` it puts the first `COUNT` public objects of the first origin's first content type, at version 0,
//! and into `DIR/marks.conf` a map from path to the `X-Assay` field of each, for nginx to include. The benchmark uses it
//! to have robots and other load generators fetch the very same files.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use assay_engine::spec::RobotsSpec;
use assay_engine::wire::{ReplyMark, XactId};
use assay_workload::object::{ObjectId, Space};
use assay_workload::{Universe, UniverseOptions};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [spec, count, dir] => write_tree(spec, count, Path::new(dir)),
        _ => Err("usage: static_tree ROBOTS-SPEC.json COUNT DIR".into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn write_tree(spec: &str, count: &str, dir: &Path) -> Result<(), Box<dyn Error>> {
    let spec: RobotsSpec = serde_json::from_slice(&std::fs::read(spec)?)?;
    let spec = spec.universe;
    let workload = Arc::new(serde_json::from_slice(&std::fs::read(&spec.workload)?)?);
    let options = UniverseOptions { private_as_public: spec.private_as_public };
    let universe = Universe::new(workload, spec.seed, spec.world, options)?;
    let mut marks = String::new();
    for serial in 0..count.parse()? {
        let object = universe.object(ObjectId { origin: 0, content: 0, space: Space::Public, serial });
        let path = universe.path(&object);
        let file = dir.join("tree").join(path.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().ok_or("a path without a directory")?)?;
        let body = universe.body(&object, 0);
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < body.size() {
            bytes.extend_from_slice(body.chunk(universe.pool(), bytes.len() as u64, usize::MAX));
        }
        std::fs::write(file, &bytes)?;
        let mut mark = Vec::new();
        ReplyMark { xact: XactId::NOBODY, key: object.key, version: 0, made_us: 0, not_modified: false }
            .write(&mut mark);
        writeln!(marks, "{path} {};", String::from_utf8(mark)?)?;
        println!("{path}");
    }
    Ok(std::fs::write(dir.join("marks.conf"), marks)?)
}
