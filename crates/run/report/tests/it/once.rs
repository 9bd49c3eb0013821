//! Each made-up run is made once, and kept as the files that it is: most of what these tests would do is to make the
//! same runs.

use std::path::{Path, PathBuf};

use assay_record::dir::RunDir;
use assay_testbed::fixture;

use crate::synthetic::{Story, make};

/// A made-up run in a directory that goes away with it.
pub struct Run {
    pub(crate) _tmp: tempfile::TempDir,
    pub dir: RunDir,
}

/// Where what these tests made is kept. Cargo names such a place to tests alone, and fuzz targets include this file
/// too.
pub fn place() -> PathBuf {
    option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from).join("assay-report")
}

/// The run of a story in a directory of its own; made, if it is the first of its story.
pub fn run(story: Story) -> Run {
    let kept = fixture::cached(&place(), &format!("{story:?}"), || packed(make(story, u64::MAX).dir.path()));
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&tmp.path().join("run")).unwrap();
    unpack(&kept, dir.path());
    Run { _tmp: tmp, dir }
}

/// The files in a directory: their names and lengths on a line, and then what is in them.
fn packed(dir: &Path) -> Vec<u8> {
    let (mut files, mut contents) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        if entry.path().is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            files.push((entry.file_name().into_string().unwrap(), bytes.len()));
            contents.extend(bytes);
        }
    }
    let mut packed = serde_json::to_vec(&files).unwrap();
    packed.push(b'\n');
    packed.extend(contents);
    packed
}

fn unpack(packed: &[u8], dir: &Path) {
    let end = packed.iter().position(|byte| *byte == b'\n').unwrap();
    let files: Vec<(String, usize)> = serde_json::from_slice(&packed[..end]).unwrap();
    let mut rest = &packed[end + 1..];
    for (name, length) in files {
        let (bytes, after) = rest.split_at(length);
        std::fs::write(dir.join(name), bytes).unwrap();
        rest = after;
    }
}
