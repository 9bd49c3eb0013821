//! Servers in words: how they respond, and how they misbehave on purpose.

use assay_base::settings::show::{bytes, plain};

use std::time::Duration;

use super::robots::headers;
use super::words::{draws, kinds, mix, percent, time};
use crate::model::{AuthScheme, Faults, Server, Workload};

/// Names of origins that are listed one by one.
const MOST_LISTED: usize = 8;

/// A kind of server: a line, and another for what else there is to say.
pub(super) fn server(workload: &Workload, index: usize) -> Vec<String> {
    let server = &workload.servers[index];
    let origins = workload.origins.iter().filter(|origin| usize::from(origin.server) == index);
    let names: Vec<&str> = origins.map(|origin| origin.authority.as_str()).collect();
    let think = server.think_s.as_ref().map_or("no think time".into(), |think| {
        format!("think time {} ± {} s", plain(think.mean()), plain(think.deviation()))
    });
    let requested = kinds(workload, &server.direct_access);
    let mut lines = vec![format!("origins {:?}: {}, {think}, content {requested}", server.kind, names.len())];
    if !names.is_empty() {
        lines.push(format!("  requested as (Host): {}", listed(&names)));
    }
    for part in [responses(server), faults(&server.faults)] {
        if !part.is_empty() {
            lines.push(format!("  {}", part.join("; ")));
        }
    }
    lines
}

/// Names that are to be configured somewhere; of many, how they begin and end.
fn listed(names: &[&str]) -> String {
    match names {
        [first, second, .., last] if names.len() > MOST_LISTED => format!("{first}, {second} … {last}"),
        _ => names.join(", "),
    }
}

fn responses(server: &Server) -> Vec<String> {
    let mut parts = Vec::new();
    if server.redirect_share > 0.0 {
        parts.push(format!("redirects {} of requests to an older object", percent(server.redirect_share)));
    }
    if let Some(cookies) = &server.cookies {
        parts.push(format!(
            "sets {} cookies of {} with {} of objects",
            plain(cookies.count.mean_count()),
            bytes(cookies.value_bytes.mean_count().round() as u64),
            percent(cookies.share)
        ));
    }
    if let Some(demand) = &server.authentication {
        let schemes = demand.schemes.iter().map(|scheme| match scheme {
            AuthScheme::Basic => "Basic",
            AuthScheme::Digest => "Digest",
        });
        let schemes: Vec<_> = schemes.collect();
        let share = percent(demand.share);
        parts.push(format!(
            "{share} of objects need a login ({}, realm {:?})",
            schemes.join(" or "),
            demand.realm
        ));
    }
    if server.body_allowed < 1.0 {
        parts
            .push(format!("refuses {} of bodies when it is asked (417)", percent(1.0 - server.body_allowed)));
    }
    if server.abort_share > 0.0 {
        parts.push(format!("breaks off {} of responses in the middle", percent(server.abort_share)));
    }
    parts.extend(headers(&server.headers));
    parts
}

fn faults(faults: &Faults) -> Vec<String> {
    let mut parts = Vec::new();
    if faults.error_share > 0.0 {
        let statuses = mix(&faults.statuses, u16::to_string);
        let statuses = if statuses.is_empty() { "500".into() } else { statuses };
        parts.push(format!("{} of requests fail ({statuses})", percent(faults.error_share)));
    }
    if faults.reset_share > 0.0 {
        parts.push(format!("{} are reset", percent(faults.reset_share)));
    }
    if faults.slow_start_share > 0.0 {
        let by = draws(&faults.slow_start_s, "s");
        parts.push(format!("{} are answered late, by {by}", percent(faults.slow_start_share)));
    }
    if faults.slow_body_share > 0.0 {
        let speed = bytes(faults.slow_body_bytes_per_s.round() as u64);
        parts.push(format!("{} of bodies come at {speed}/s", percent(faults.slow_body_share)));
    }
    if faults.delay_per_active_s > 0.0 {
        let each = Duration::try_from_secs_f64(faults.delay_per_active_s).unwrap_or_default();
        parts.push(format!("{} more think time for every other request under way", time(each)));
    }
    if let Some(lifetime_s) = &faults.lifetime_s {
        parts.push(format!("what it thinks about for longer than {} is reset", draws(lifetime_s, "s")));
    }
    if let Some(first) = parts.first_mut() {
        *first = format!("on purpose, {first}");
    }
    parts
}
