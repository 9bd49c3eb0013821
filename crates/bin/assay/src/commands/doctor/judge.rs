//! Findings from the facts, in the order in which they matter. Pure.

use assay_base::settings::show::{bytes, count};
use serde::Serialize;

use crate::commands::doctor::facts::{Facts, ProxyFact};

/// Roles and the proxy share a processor below this number.
const FEW_PROCESSORS: usize = 2;
/// Robots and origins get processors of their own from this number on.
const ENOUGH_PROCESSORS: usize = 4;
/// The cache, the roles and the run directory of a run with default settings fit.
const ENOUGH_MEMORY_BYTES: u64 = 2 << 30;
/// A disk store of the default size, and some run directories.
const ENOUGH_DISK_BYTES: u64 = 4 << 30;
/// Enough for some ten thousand connections at robots.
const ENOUGH_DESCRIPTORS: u64 = 16_384;
/// Enough for new connections at some hundred a second, whose ports rest for a minute.
const ENOUGH_PORTS: u32 = 25_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    Good,
    /// Works, with limits.
    Limited,
    /// Absent, and what needs it does not work.
    Missing,
}

/// One thing that matters, and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// Subject of the finding: `processors`.
    pub topic: &'static str,
    pub standing: FindingLevel,
    /// Observation and consequence, half a sentence.
    pub seen: String,
    /// The command, or the change, that would fix it; none: nothing to mend, or nothing would.
    pub mend: Option<String>,
}

impl DoctorFinding {
    fn good(topic: &'static str, seen: impl Into<String>) -> Self {
        Self { topic, standing: FindingLevel::Good, seen: seen.into(), mend: None }
    }

    fn limited(topic: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { topic, standing: FindingLevel::Limited, seen: seen.into(), mend: Some(mend.into()) }
    }

    fn missing(topic: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { topic, standing: FindingLevel::Missing, seen: seen.into(), mend: Some(mend.into()) }
    }
}

pub fn judge(facts: &Facts) -> Vec<DoctorFinding> {
    let mut findings = vec![processors(facts.processors), other_work(facts)];
    findings.extend(facts.memory_available_bytes.map(memory));
    findings.extend(facts.disk_free_bytes.map(disk));
    findings.push(descriptors(facts.descriptors));
    findings.extend(facts.ports.map(|(first, last)| ports(first, last)));
    findings.extend(proxies(&facts.proxies));
    findings.push(right(
        "links",
        "emulated links, and a network of its own for each run",
        &facts.namespaces_refused,
    ));
    findings.push(right("limits", "limits on the proxy's processors and memory", &facts.limits_refused));
    findings.push(right("real time", "--realtime, where lateness matters", &facts.realtime_refused));
    findings.push(calibration(facts.calibrations));
    findings.push(browser(facts.has_browser));
    findings
}

fn processors(count: usize) -> DoctorFinding {
    let topic = "processors";
    match count {
        ..FEW_PROCESSORS => DoctorFinding::limited(
            topic,
            "1, which robots, the proxy and origins share: figures of speed have wide intervals",
            "use a machine with two or more; hit ratios and correctness need no more than one",
        ),
        FEW_PROCESSORS..ENOUGH_PROCESSORS => DoctorFinding::good(
            topic,
            format!("{count}: one for the proxy, the rest for robots and origins together"),
        ),
        _ => DoctorFinding::good(
            topic,
            format!("{count}: one for the proxy, half of the rest for robots and for origins"),
        ),
    }
}

fn other_work(facts: &Facts) -> DoctorFinding {
    let words = facts.activity.describe();
    if facts.activity.is_quiet() {
        return DoctorFinding::good("other work", format!("none that would disturb a run: {words}"));
    }
    DoctorFinding::limited(
        "other work",
        format!("{words}: figures of speed get wider intervals"),
        "assay run … --wait-quiet 60s waits until it is over",
    )
}

fn memory(available: u64) -> DoctorFinding {
    let seen = format!("{} available", bytes(available));
    if available >= ENOUGH_MEMORY_BYTES {
        return DoctorFinding::good("memory", seen);
    }
    DoctorFinding::limited("memory", seen, "smaller caches (--memory 256MB), or end other programs")
}

fn disk(free: u64) -> DoctorFinding {
    let seen = format!("{} free where runs are kept", bytes(free));
    if free >= ENOUGH_DISK_BYTES {
        return DoctorFinding::good("disk", seen);
    }
    DoctorFinding::limited(
        "disk",
        seen,
        "assay runs remove --keep 10, a smaller store (--disk 256MB), or --run-dir elsewhere",
    )
}

fn descriptors(most: u64) -> DoctorFinding {
    if most == u64::MAX {
        return DoctorFinding::good("descriptors", "as many as wanted for each process");
    }
    let seen = format!("{} for each process", count(most));
    if most >= ENOUGH_DESCRIPTORS {
        return DoctorFinding::good("descriptors", seen);
    }
    DoctorFinding::limited(
        "descriptors",
        format!("{seen}: so many connections at most"),
        "raise `nofile` in /etc/security/limits.conf",
    )
}

fn ports(first: u16, last: u16) -> DoctorFinding {
    let ports = u32::from(last.saturating_sub(first)) + 1;
    let seen = format!("{first} to {last} for connections");
    if ports >= ENOUGH_PORTS {
        return DoctorFinding::good("ports", seen);
    }
    DoctorFinding::limited("ports", seen, "sysctl -w net.ipv4.ip_local_port_range='15000 60999'")
}

/// Installed proxies, and those that are not installed.
fn proxies(all: &[ProxyFact]) -> Vec<DoctorFinding> {
    let (installed, absent): (Vec<&ProxyFact>, Vec<&ProxyFact>) =
        all.iter().partition(|proxy| proxy.version.is_ok());
    let versions = installed.iter().filter_map(|proxy| {
        let version = proxy.version.as_ref().ok()?;
        // Debian's revision says nothing about behaviour, and is long.
        Some(format!("{} {}", proxy.name, version.split(['-', '+']).next().unwrap_or(version)))
    });
    let versions: Vec<String> = std::iter::once("builtin".to_owned()).chain(versions).collect();
    let mut findings = vec![DoctorFinding::good("proxies", versions.join(", "))];
    if absent.is_empty() {
        return findings;
    }
    let names: Vec<&str> = absent.iter().map(|proxy| proxy.name.as_str()).collect();
    let packages: Vec<&str> = absent.iter().filter_map(|proxy| proxy.package.as_deref()).collect();
    let mend = match packages.as_slice() {
        [] => "install them, or describe where they are (assay proxies show NAME)".to_owned(),
        packages => format!("apt install {}", packages.join(" ")),
    };
    findings.push(DoctorFinding::missing("", format!("not installed: {}", names.join(", ")), mend));
    findings
}

/// Something that needs a right; the reason for a refusal ends with what would help.
fn right(topic: &'static str, what: &str, refused: &Option<String>) -> DoctorFinding {
    match refused {
        None => DoctorFinding::good(topic, what),
        Some(why) => {
            let (seen, mend) = why.split_once("; ").unwrap_or((why, "run as root"));
            DoctorFinding::missing(topic, format!("not available ({what}): {seen}"), mend)
        }
    }
}

fn calibration(kept: usize) -> DoctorFinding {
    if kept > 0 {
        return DoctorFinding::good("calibration", format!("{kept} kept here; runs are held against them"));
    }
    DoctorFinding::limited(
        "calibration",
        "none here: reports cannot say how near a run was to what this machine can offer",
        "assay run WORKLOAD --calibrate",
    )
}

fn browser(is_there: bool) -> DoctorFinding {
    if is_there {
        return DoctorFinding::good("browser", "assay open shows reports");
    }
    DoctorFinding::limited(
        "browser",
        "no program that opens pages was found, or there is no display to show them on",
        "on a desktop: apt install xdg-utils, or set BROWSER; elsewhere, `assay open --print` prints the path of the page",
    )
}

#[cfg(test)]
mod tests {
    use assay_host::quiet::Activity;

    use super::*;

    fn good() -> Facts {
        let proxy = |name: &str, version: Result<&str, &str>| ProxyFact {
            name: name.into(),
            package: Some(format!("{name}-package")),
            version: version.map(str::to_owned).map_err(str::to_owned),
        };
        Facts {
            cpu_model: "Example".into(),
            kernel: "6.1".into(),
            processors: 8,
            memory_available_bytes: Some(8 << 30),
            disk_free_bytes: Some(100 << 30),
            descriptors: 1 << 20,
            ports: Some((15_000, 60_999)),
            namespaces_refused: None,
            limits_refused: None,
            realtime_refused: None,
            activity: Activity { cpu: 0, used: 0.01, waited: Some(0.0) },
            proxies: vec![proxy("nginx", Ok("1.22.1-9")), proxy("squid", Err("not there"))],
            calibrations: 1,
            has_browser: true,
        }
    }

    fn of<'a>(findings: &'a [DoctorFinding], topic: &str) -> &'a DoctorFinding {
        findings.iter().find(|finding| finding.topic == topic).unwrap_or_else(|| panic!("no {topic}"))
    }

    #[test]
    fn a_good_machine_lacks_only_the_proxies_that_are_not_installed() {
        let findings = judge(&good());
        let wrong: Vec<_> =
            findings.iter().filter(|finding| finding.standing != FindingLevel::Good).collect();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert_eq!(wrong[0].mend.as_deref(), Some("apt install squid-package"));
        assert_eq!(of(&findings, "proxies").seen, "builtin, nginx 1.22.1");
    }

    #[test]
    fn whatever_is_short_is_named_with_what_would_mend_it() {
        let poor = Facts {
            processors: 1,
            memory_available_bytes: Some(1 << 20),
            disk_free_bytes: Some(1 << 20),
            descriptors: 1024,
            ports: Some((50_000, 60_999)),
            namespaces_refused: Some("cannot make a namespace: not permitted; run it as root".into()),
            limits_refused: Some("no control groups".into()),
            realtime_refused: Some("not permitted; raise the limit".into()),
            activity: Activity { cpu: 1, used: 0.9, waited: None },
            calibrations: 0,
            has_browser: false,
            ..good()
        };
        let findings = judge(&poor);
        for finding in findings.iter().filter(|finding| finding.topic != "proxies") {
            assert!(finding.standing != FindingLevel::Good && finding.mend.is_some(), "{finding:?}");
        }
        assert_eq!(of(&findings, "links").mend.as_deref(), Some("run it as root"));
        assert!(of(&findings, "links").seen.ends_with("cannot make a namespace: not permitted"));
        assert_eq!(of(&findings, "limits").mend.as_deref(), Some("run as root"));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_not_judged() {
        let silent = Facts { memory_available_bytes: None, disk_free_bytes: None, ports: None, ..good() };
        let findings = judge(&silent);
        assert!(!findings.iter().any(|finding| ["memory", "disk", "ports"].contains(&finding.topic)));
    }
}
