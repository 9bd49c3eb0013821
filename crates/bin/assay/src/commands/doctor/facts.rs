//! Facts about the machine that can be read without changing it: limits, rights, programs.

use std::path::Path;
use std::time::Duration;

use assay_host::metrics::{self, PORT_RANGE};
use assay_host::quiet::{Activity, ActivityMonitor};
use assay_lab::cgroup::ControlGroup;
use assay_lab::process::find_program;
use assay_lab::{Limits, placement, realtime};
use rustix::process::{Resource, getrlimit};

/// Time for which other work is observed.
const WATCHED: Duration = Duration::from_secs(1);
/// Programs that show a page in a browser.
pub const BROWSERS: [&str; 2] = ["xdg-open", "open"];

/// A proxy that has a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyFact {
    /// Name on the command line.
    pub name: String,
    /// The Debian package that has it, if its description names one.
    pub package: Option<String>,
    /// Version, or the reason why it could not be queried.
    pub version: Result<String, String>,
}

/// Facts about this machine.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Model of the processors; empty: the kernel does not say.
    pub cpu_model: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Memory that can be had now, in bytes; none: the kernel does not say.
    pub memory_available_bytes: Option<u64>,
    /// Free disk space in the directory in which runs are kept, in bytes; none: not known.
    pub disk_free_bytes: Option<u64>,
    /// Descriptors that a process may have at most.
    pub descriptors: u64,
    /// First and last port that connections are given; none: not known.
    pub ports: Option<(u16, u16)>,
    /// Reason why network namespaces with TUN devices cannot be made; none: they can.
    pub namespaces_refused: Option<String>,
    /// Reason why a proxy cannot be limited by control groups; none: it can.
    pub limits_refused: Option<String>,
    /// Reason why real-time priority cannot be had; none: it can.
    pub realtime_refused: Option<String>,
    /// Other work of the machine in the second in which it was observed.
    pub activity: Activity,
    pub proxies: Vec<ProxyFact>,
    /// Calibrations of this machine that are kept beside the runs.
    pub calibrations: usize,
    /// A program that shows pages is installed, or `BROWSER` names one.
    pub has_browser: bool,
}

/// Looks at the machine; takes a second. `runs`: the directory in which runs are kept, which may not exist yet.
pub async fn facts(runs: &Path) -> Facts {
    let cpus = placement::available();
    let mut monitor = ActivityMonitor::start(&cpus);
    tokio::time::sleep(WATCHED).await;
    // First, so that what follows is not taken for other work.
    let activity = monitor.sample();
    let host = metrics::facts(0);
    Facts {
        cpu_model: host.cpu_model,
        kernel: host.kernel,
        processors: cpus.len(),
        memory_available_bytes: metrics::memory("MemAvailable"),
        disk_free_bytes: disk_free_bytes(runs),
        descriptors: getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
        ports: metrics::read_words(PORT_RANGE).and_then(|line| ports(&line)),
        namespaces_refused: assay_host::link::namespace::check_available()
            .err()
            .map(|error| error.to_string()),
        limits_refused: limits_refused(),
        realtime_refused: realtime::refused(),
        activity,
        proxies: proxies().await,
        calibrations: calibrations(&runs.join("calibrations")),
        has_browser: std::env::var_os("BROWSER").is_some()
            || (has_display() && BROWSERS.iter().any(|program| find_program(program).is_some())),
    }
}

/// Without one (over SSH, for example), what opens pages finds no browser that could show them.
fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn ports(line: &str) -> Option<(u16, u16)> {
    let (first, last) = line.split_once(' ')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Tries it with a group in which nothing runs, and which is gone right after.
fn limits_refused() -> Option<String> {
    let limits = Limits { cpus: Some(0.5), memory_bytes: Some(Limits::LEAST_MEMORY_BYTES) };
    ControlGroup::make(&limits, &[]).err().map(|error| error.to_string())
}

/// Free space where a directory is or will be.
fn disk_free_bytes(dir: &Path) -> Option<u64> {
    let dir = std::path::absolute(dir).ok()?;
    let there = dir.ancestors().find(|above| above.exists())?;
    let stat = rustix::fs::statvfs(there).ok()?;
    // A file system of the kernel's own has no blocks at all.
    (stat.f_blocks > 0).then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Proxies that come with Assay. (A description of the user's own is named on the command line, and is not known here.)
async fn proxies() -> Vec<ProxyFact> {
    let mut found = Vec::new();
    for description in assay_lab::described(&[]).into_iter().flatten() {
        let version = assay_lab::real_proxy::version(&description).await.map_err(|error| error.to_string());
        found.push(ProxyFact { name: description.name, package: description.package, version });
    }
    found
}

fn calibrations(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "json")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibrations_are_counted_where_there_are_some() {
        let tmp = tempfile::tempdir().unwrap();
        assert_eq!(calibrations(&tmp.path().join("none")), 0);
        for name in ["a.json", "b.json", "note.txt"] {
            std::fs::write(tmp.path().join(name), "").unwrap();
        }
        assert_eq!(calibrations(tmp.path()), 2);
    }

    #[test]
    fn free_space_is_that_of_the_directory_that_exists() {
        let tmp = tempfile::tempdir().unwrap();
        assert!(disk_free_bytes(&tmp.path().join("runs/not/yet")).is_some());
        assert_eq!(ports("32768 60999"), Some((32_768, 60_999)));
        assert_eq!(ports("none"), None);
    }
}
