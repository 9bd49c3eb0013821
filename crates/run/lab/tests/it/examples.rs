//! Programs that the tests of this crate start.

use std::path::PathBuf;

/// A program of this crate's examples, which `cargo test` builds beside the test itself.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} is not built; run `cargo test`, which builds it", path.display());
    path
}
