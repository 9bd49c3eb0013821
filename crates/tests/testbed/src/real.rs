//! Programs and privileges that a test of the second tier needs, and the machine may lack.

use std::path::PathBuf;

/// States that the test is skipped, and why. Fails it where `ASSAY_REQUIRE_REAL=1` demands that nothing is skipped.
pub fn skip(why: &str) {
    let required = std::env::var("ASSAY_REQUIRE_REAL").as_deref() == Ok("1");
    assert!(!required, "ASSAY_REQUIRE_REAL=1 allows no test to be skipped: {why}");
    eprintln!("skipped: {why}");
}

/// The interpreter of the virtual environment that `scripts/test-setup.sh` makes, with pandas and DuckDB. None: the test is skipped.
pub fn python() -> Option<PathBuf> {
    let named = std::env::var_os("ASSAY_PYTHON").map(PathBuf::from);
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let found = named.or_else(|| Some(cache?.join("assay/python/bin/python"))).filter(|path| path.is_file());
    if found.is_none() {
        skip("no Python with pandas and DuckDB (scripts/test-setup.sh makes one)");
    }
    found
}
