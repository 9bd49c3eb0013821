//! Makes a plain web server respond as an origin would, to compare load generators on one static file server:
//! `static_tree UNIVERSE.json COUNT DIR`.
//!
//! Writes the first COUNT objects that each best-effort robot introduces in the first phase below `DIR/html`, and
//! `DIR/marks.conf`, a map for nginx from each path to its `X-Assay`. Robots that keep to those objects (a first phase
//! of few xacts, then recurrence 1 over a frozen working set) find every response right, and from a store.

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use assay_load::spec::UniverseSpec;
use assay_workload::XactId;
use assay_workload::mark::ResponseMark;
use assay_workload::{ClosedRobot, Object, Universe, UniverseOptions};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match &args[..] {
        [spec, count, dir] => write_tree(spec, count, Path::new(dir)),
        _ => Err("usage: static_tree UNIVERSE.json COUNT DIR".into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn write_tree(spec: &str, count: &str, dir: &Path) -> Result<(), Box<dyn Error>> {
    let spec: UniverseSpec = serde_json::from_slice(&fs::read(spec)?)?;
    let workload = Arc::new(serde_json::from_slice(&fs::read(&spec.workload)?)?);
    let options = UniverseOptions { private_as_public: spec.private_as_public };
    let universe = Universe::new(workload, spec.seed, spec.world, options)?;
    let count: u32 = count.parse()?;
    let mut marks = String::from("map_hash_max_size 262144;\nmap $uri $assay {\n");
    let mut seen = HashSet::new();
    for robot in 0..universe.robot_count() {
        let mut stream = ClosedRobot::new(&universe, robot);
        for _ in 0..count {
            let object = universe.object(stream.next(&universe).object);
            // Robots revisit each other's objects.
            if !seen.insert(object.key) {
                continue;
            }
            let path = universe.path(&object);
            let file = dir.join("html").join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().ok_or("a path has a directory")?)?;
            fs::write(file, body(&universe, &object))?;
            writeln!(marks, "    {path} \"{}\";", mark(&object))?;
        }
    }
    marks.push_str("}\n");
    Ok(fs::write(dir.join("marks.conf"), marks)?)
}

/// Made at the start of the run, for nobody.
fn mark(object: &Object) -> String {
    let mark = ResponseMark {
        xact: XactId::NOBODY,
        key: object.key,
        version: 0,
        made_us: 0,
        status: 200,
        held_us: 0,
        delay_us: 0,
        note: None,
    };
    let mut text = Vec::new();
    mark.write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn body(universe: &Universe, object: &Object) -> Vec<u8> {
    let body = universe.body(object, 0);
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < object.size_bytes {
        bytes.extend_from_slice(body.chunk(universe.pool(), bytes.len() as u64, usize::MAX));
    }
    bytes
}
