//! h2spec (<https://github.com/summerwind/h2spec>), a checker of servers of HTTP/2 that shares no code with Assay.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::skip;

/// Tests of h2spec that RFC 9113 does not require: section there, and input sent.
const NOT_REQUIRED: [(&str, &str); 3] = [
    // A server that also speaks HTTP/1.1 at that address says in it that this is none of both (RFC 9113, 3.4).
    ("http2/3.5", "Sends invalid connection preface"),
    // Priorities of RFC 7540 are obsolete: they are read over (RFC 9113, 5.3.2).
    ("http2/5.3.1", "Sends HEADERS frame that depend on itself"),
    ("http2/5.3.1", "Sends PRIORITY frame that depend on itself"),
];

/// Path of h2spec: in `PATH`, or among the tools that no package brings (`scripts/tools.sh`).
fn program() -> Option<PathBuf> {
    let cache = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let tools = std::env::var_os("ASSAY_BENCH_TOOLS").map(PathBuf::from);
    let tools = tools.or_else(|| cache().or_else(home).map(|cache| cache.join("assay-bench/bin")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(tools).map(|place| place.join("h2spec"));
    places.find(|program| program.is_file())
}

/// Number of tests that a server of HTTP/2 in the clear passes, and those of its failures that RFC 9113 requires; `path` is that of a
/// resource with a body. None: h2spec is missing, and the test is skipped.
pub fn h2spec(address: SocketAddr, path: &str) -> Option<(usize, Vec<String>)> {
    let Some(program) = program() else {
        skip("there is no h2spec (scripts/test-setup.sh builds it with Go)");
        return None;
    };
    let report = tempfile::NamedTempFile::new().expect("a temporary file");
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let ended = Command::new(program)
        .args(["http2", "generic", "hpack", "-h", &host, "-p", &port, "-P", path, "-o", "2", "-j"])
        .arg(report.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    ended.expect("h2spec can be started");
    Some(judged(&std::fs::read_to_string(report.path()).expect("h2spec writes a report")))
}

/// Number of passed tests in a report (JUnit's XML), and the names of the others.
fn judged(report: &str) -> (usize, Vec<String>) {
    let (mut passed, mut failed) = (0, Vec::new());
    for case in report.split("<testcase ").skip(1) {
        let named = |name: &str| {
            let rest = case.split_once(&format!("{name}=\""))?.1;
            rest.split_once('"').map(|(value, _)| value)
        };
        let (section, sends) = (named("package").unwrap_or_default(), named("classname").unwrap_or_default());
        let own = case.split("</testcase>").next().unwrap_or_default();
        match own.contains("<failure") || own.contains("<error") || own.contains("<skipped") {
            false => passed += 1,
            true if NOT_REQUIRED.contains(&(section, sends)) => {}
            true => failed.push(format!("{section}: {sends}")),
        }
    }
    (passed, failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_named_unless_nothing_requires_it() {
        let case = |section: &str, sends: &str, inside: &str| {
            format!(
                "<testcase package=\"{section}\" classname=\"{sends}\" time=\"0.1\">{inside}</testcase>\n"
            )
        };
        let report = [
            case("generic/1", "Sends a client connection preface", ""),
            case("http2/5.3.1", "Sends PRIORITY frame that depend on itself", "<failure>Timeout</failure>"),
            case("http2/6.1", "Sends a DATA frame with 0x0 stream identifier", "<failure>Timeout</failure>"),
            case("http2/6.5", "Sends a SETTINGS frame", "<skipped></skipped>"),
            case("http2/6.7", "Sends a PING frame", "<error></error>"),
        ];
        let (passed, failed) = judged(&report.concat());
        assert_eq!((passed, failed.len()), (1, 3), "{failed:?}");
        assert!(failed[0].starts_with("http2/6.1: Sends a DATA frame"), "{failed:?}");
    }
}
