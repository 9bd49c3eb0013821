//! Versions of HTTP that a run needs of its target, and the reasons why that may be impossible.

use assay_workload::model::{HttpVersion, Weighted, Workload};

use crate::description::{Description, Http2Support};
use crate::error::LabError;
use crate::mode::Mode;
use crate::plan::{RunPlan, TargetChoice};

/// Whether some robots speak HTTP/2.
pub fn robots_speak_http2(workload: &Workload) -> bool {
    workload
        .robots
        .iter()
        .any(|group| includes(&group.http_versions, |version| version == HttpVersion::Http2))
}

fn robots_speak_http1(workload: &Workload) -> bool {
    workload
        .robots
        .iter()
        .any(|group| includes(&group.http_versions, |version| version != HttpVersion::Http2))
}

/// Whether some origins speak HTTP/2.
pub fn origins_speak_http2(workload: &Workload) -> bool {
    origins_speak(workload, |version| version == HttpVersion::Http2)
}

fn origins_speak(workload: &Workload, is_meant: impl Fn(HttpVersion) -> bool + Copy) -> bool {
    let mut servers = workload.origins.iter().map(|origin| &workload.servers[usize::from(origin.server)]);
    servers.any(|server| includes(&server.http_versions, is_meant))
}

/// None means 1.1.
fn includes(versions: &Weighted<HttpVersion>, is_meant: impl Fn(HttpVersion) -> bool) -> bool {
    match versions.items() {
        [] => is_meant(HttpVersion::Http11),
        items => items.iter().any(|(version, weight)| *weight > 0.0 && is_meant(*version)),
    }
}

/// Refuses what the target cannot speak, before anything is started.
pub(crate) fn check(plan: &RunPlan) -> Result<(), LabError> {
    let (robots, origins) = (robots_speak_http2(&plan.workload), origins_speak_http2(&plan.workload));
    match &plan.target {
        TargetChoice::Direct if robots != origins || (robots && robots_speak_http1(&plan.workload)) => {
            Err(LabError::plan(
                "without a proxy, robots and origins must speak the same version of HTTP, and some speak HTTP/2; give \
                 --robot-http 2 and --origin-http 2",
            ))
        }
        TargetChoice::Direct => Ok(()),
        TargetChoice::Builtin(Mode::Forward) if robots || origins => Err(LabError::plan(
            "robots and origins speak HTTP/2 to reverse proxies only, and the built-in proxy is to be a forward proxy; leave \
             --forward out",
        )),
        TargetChoice::Builtin(Mode::Reverse) if origins && speak_both(&plan.workload) => {
            Err(LabError::plan(one_version("the built-in proxy")))
        }
        TargetChoice::Builtin(_) | TargetChoice::Running { .. } => Ok(()),
        TargetChoice::Described(description, mode) => check_described(description, *mode, plan, origins),
        TargetChoice::Topology(topology) if robots || origins => {
            let names: Vec<&str> = topology.descriptions().map(|description| &*description.title).collect();
            Err(LabError::plan(format!(
                "caches that work together ({}) are spoken to over HTTP/1.1 only; choose --robot-http 1.1 and \
                 --origin-http 1.1",
                names.join(", ")
            )))
        }
        TargetChoice::Topology(_) => Ok(()),
    }
}

/// Some origins speak another version than HTTP/2.
fn speak_both(workload: &Workload) -> bool {
    origins_speak(workload, |version| version != HttpVersion::Http2)
}

fn one_version(title: &str) -> String {
    format!(
        "{title} speaks one version of HTTP to all origins, and those of this workload speak both; choose --origin-http"
    )
}

fn check_described(
    description: &Description,
    mode: Mode,
    plan: &RunPlan,
    origins: bool,
) -> Result<(), LabError> {
    let (workload, is_secured) = (&plan.workload, plan.tls.robots);
    let title = &description.title;
    let refuse = |why: String| Err(LabError::plan(why));
    if origins && !description.origin_http2 {
        return refuse(format!(
            "{title} sends requests to origins over HTTP/1.1 (its description has no `origin-http2`); choose --origin-http 1.1"
        ));
    }
    if origins && mode == Mode::Forward {
        return refuse(format!(
            "origins speak HTTP/2 to reverse proxies only, and {title} is to be a forward proxy; leave --forward out"
        ));
    }
    if origins && speak_both(workload) {
        return refuse(one_version(title));
    }
    if !robots_speak_http2(workload) {
        return Ok(());
    }
    match description.http2 {
        None => refuse(format!(
            "{title} does not speak HTTP/2 to clients (its description has no `http2`); choose --robot-http 1.1"
        )),
        Some(_) if mode == Mode::Forward => refuse(format!(
            "robots speak HTTP/2 to reverse proxies only, and {title} is to be a forward proxy; leave --forward out"
        )),
        // Over TLS, both sides agree on the version.
        Some(Http2Support::Only) if robots_speak_http1(workload) && !is_secured => refuse(format!(
            "{title} speaks either HTTP/2 or HTTP/1.1 at one address, and the robots of this workload speak both; choose \
             --robot-http"
        )),
        Some(Http2Support::WithTls) if !is_secured => refuse(format!(
            "{title} speaks HTTP/2 over TLS only; add --robot-tls, or choose --robot-http 1.1"
        )),
        Some(Http2Support::Only | Http2Support::WithHttp1 | Http2Support::WithTls) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn refusal(target: TargetChoice, robots: &[HttpVersion], origins: HttpVersion) -> Option<String> {
        let mut plan = testing::plan();
        let mut workload = plan.workload.clone();
        for group in &mut workload.robots {
            group.http_versions = Weighted::new(robots.iter().map(|version| (*version, 1.0)));
        }
        workload.servers.iter_mut().for_each(|server| server.http_versions = Weighted::one(origins));
        (plan.workload, plan.target) = (workload, target);
        check(&plan).err().map(|error| error.to_string())
    }

    fn described(name: &str, mode: Mode) -> TargetChoice {
        let description = crate::description::find(name, &[]).expect("is compiled in");
        TargetChoice::Described(Box::new(description), mode)
    }

    #[test]
    fn what_a_target_cannot_speak_is_refused_by_name() {
        use HttpVersion::{Http2, Http11};
        for (target, robots, origins, why) in [
            (described("squid", Mode::Reverse), &[Http2][..], Http11, "Squid does not speak HTTP/2"),
            (described("trafficserver", Mode::Reverse), &[Http2], Http11, "over TLS only; add --robot-tls"),
            (
                described("varnish", Mode::Reverse),
                &[Http11],
                Http2,
                "Varnish Cache sends requests to origins",
            ),
            (described("nginx", Mode::Reverse), &[Http2, Http11], Http11, "either HTTP/2 or HTTP/1.1"),
            (described("haproxy", Mode::Forward), &[Http2], Http11, "reverse proxies only"),
            (TargetChoice::Builtin(Mode::Forward), &[Http11], Http2, "reverse proxies only"),
            (
                described("haproxy", Mode::Forward),
                &[Http11],
                Http2,
                "origins speak HTTP/2 to reverse proxies only",
            ),
            (TargetChoice::Builtin(Mode::Forward), &[Http2], Http11, "reverse proxies only"),
            (TargetChoice::Direct, &[Http2], Http11, "the same version"),
            (TargetChoice::Direct, &[Http2, Http11], Http2, "the same version"),
        ] {
            let seen = refusal(target, robots, origins).expect("is refused");
            assert!(seen.contains(why), "{seen}");
        }
        for name in ["varnish", "httpd"] {
            assert_eq!(refusal(described(name, Mode::Reverse), &[Http2, Http11], Http11), None, "{name}");
        }
        for name in ["httpd", "haproxy"] {
            assert_eq!(refusal(described(name, Mode::Reverse), &[Http11], Http2), None, "{name}");
        }
        for name in ["nginx", "haproxy"] {
            assert_eq!(refusal(described(name, Mode::Reverse), &[Http2], Http11), None, "{name}");
        }
        for origins in [Http2, Http11] {
            assert_eq!(refusal(TargetChoice::Builtin(Mode::Reverse), &[Http2, Http11], origins), None);
        }
        assert_eq!(refusal(TargetChoice::Direct, &[Http2], Http2), None);
        assert_eq!(refusal(described("squid", Mode::Forward), &[Http11], Http11), None);
    }
}
