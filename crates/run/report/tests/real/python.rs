//! A Python with pandas and DuckDB, for the tests that look at a run with somebody else's eyes.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program and gives back what it prints.
pub fn run(python: &Path, arguments: &[&std::ffi::OsStr], within: &Path) -> String {
    let output =
        Command::new(python).args(arguments).current_dir(within).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?} ended with {}: {printed}{said}", output.status);
    printed
}
