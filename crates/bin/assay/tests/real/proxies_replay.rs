//! An access log through real proxies, with simulated origins behind them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::helpers::has;

/// Sixteen URLs of two hosts, each requested three times, sixteen seconds of the log apart.
fn log() -> String {
    let line = |n: u64| {
        let (at, host, url) = (1_700_000_000 + n, ["a", "b"][n as usize % 2], n % 16);
        let bytes = 500 + 1_000 * url;
        format!(
            "{at}.000 0 192.0.2.{} TCP_MISS/200 {bytes} GET http://{host}.example/{url} - HIER_DIRECT/x text/css\n",
            1 + n % 3
        )
    };
    (0..48).map(line).collect()
}

fn replay(directory: &Path, proxy: &str) -> Value {
    let file = directory.join("access.log");
    std::fs::write(&file, log()).expect("the temp directory is writable");
    let ran = Command::new(env!("CARGO_BIN_EXE_assay"))
        .current_dir(directory)
        .args(["replay", "access.log", "--proxy", proxy, "--speed", "8", "--json", "--dir", proxy])
        .args(["--memory", "64MB", "--disk", "64MB"])
        .output()
        .expect("it starts");
    // Times may be unknown on a busy machine (96).
    assert!(matches!(ran.status.code(), Some(0 | 96)), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).expect("one document")
}

#[test]
fn what_was_requested_before_comes_from_the_cache_of_a_real_proxy_and_is_what_it_was() {
    for (proxy, program, is_forward) in [("squid", "squid", true), ("nginx", "nginx", false)] {
        if !has(program, program) {
            continue;
        }
        let directory = tempfile::tempdir().expect("the temp directory is writable");
        let document = replay(directory.path(), proxy);
        let cache = &document["cache"];
        assert_eq!(
            (&document["responses"], &document["forward"]),
            (&48.into(), &is_forward.into()),
            "{document:#}"
        );
        let had = cache["hits"].as_u64().unwrap_or(0) + cache["joined"].as_u64().unwrap_or(0);
        assert_eq!((had, &cache["misses"], &cache["wrong"]), (32, &16.into(), &0.into()), "{document:#}");
        assert_eq!(cache["origin"]["requests"], 16, "{document:#}");
        assert!(directory.path().join(proxy).join("proxy").is_dir(), "its configuration was kept");
    }
}
