//! Each made-up run is made once, and kept as the files that it is: most of what these tests would do is to make the same runs.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assay_record::dir::RunDir;

use crate::synthetic::{Story, make};

/// A made-up run in a directory that goes away with it.
pub struct Run {
    pub(crate) _tmp: tempfile::TempDir,
    pub dir: RunDir,
}

/// Files, by name.
type Files = Vec<(PathBuf, Vec<u8>)>;

static MADE: [OnceLock<Files>; Story::ALL.len()] = [const { OnceLock::new() }; Story::ALL.len()];

/// The run of a story in a directory of its own; made, if it is the first of its story.
pub fn run(story: Story) -> Run {
    let files = MADE[story as usize].get_or_init(|| files_in(make(story, u64::MAX).dir.path()));
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&tmp.path().join("run")).unwrap();
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    Run { _tmp: tmp, dir }
}

/// The files in a directory.
fn files_in(dir: &Path) -> Files {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().into(), std::fs::read(&path).unwrap()))
        .collect()
}
