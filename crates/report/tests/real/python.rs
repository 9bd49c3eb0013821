//! A Python with pandas and DuckDB, for the tests that look at a run with somebody else's eyes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The interpreter of the virtual environment that `scripts/test-setup.sh` makes. Without one the test says that it is
/// skipped, except where `ASSAY_REQUIRE_REAL=1` demands the real program: there it fails.
pub fn python() -> Option<PathBuf> {
    let named = std::env::var_os("ASSAY_PYTHON").map(PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let found = named.or_else(|| Some(cache?.join("assay/python/bin/python"))).filter(|path| path.is_file());
    if found.is_none() {
        assert!(
            std::env::var("ASSAY_REQUIRE_REAL").as_deref() != Ok("1"),
            "no Python with pandas and DuckDB, and ASSAY_REQUIRE_REAL=1 wants one: scripts/test-setup.sh"
        );
        eprintln!("skipped: no Python with pandas and DuckDB (scripts/test-setup.sh makes one)");
    }
    found
}

/// Runs a program and gives back what it prints.
pub fn run(python: &Path, arguments: &[&std::ffi::OsStr], within: &Path) -> String {
    let output =
        Command::new(python).args(arguments).current_dir(within).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?} ended with {}: {printed}{said}", output.status);
    printed
}
