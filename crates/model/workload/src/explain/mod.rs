//! What a workload means, in plain words, with numbers and units.

use assay_base::settings::show::{bytes, count, plain};

mod contents;
mod robots;
mod servers;
pub mod shape;
mod words;

use self::words::{percent, several, time};
use crate::density::Densities;
use crate::model::{Coding, Goal, Link, Pace, Phase, Ramp, Thermostat, Workload};
use crate::timeline::{Freeze, PhaseSpan, Timeline};
use crate::universe::UniverseOptions;

const UNTIL_STOPPED: &str = "until the run is stopped";

/// A workload in plain words, a line each.
pub fn explain(workload: &Workload, timeline: &Timeline) -> Vec<String> {
    let mut lines = vec![summary(workload, timeline)];
    let densities = Densities::new(workload, UniverseOptions::default());
    for (index, group) in workload.robots.iter().enumerate().filter(|(_, group)| group.count() > 0) {
        lines.extend(robots::robots(workload, group, densities.embedded(index, 1.0)));
    }
    lines.extend((0..workload.servers.len()).flat_map(|index| servers::server(workload, index)));
    lines.extend(workload.contents.iter().flat_map(|c| contents::content(workload, c)));
    lines.extend(links(workload));
    lines.extend(trace(workload));
    lines.push(working_set(timeline));
    let phases = workload.schedule.phases.iter().zip(timeline.phases());
    let is_coded = has_coded_bodies(workload);
    lines.extend(phases.flat_map(|(phase, span)| self::phase(phase, span, is_coded)));
    lines.extend(doubts(workload, timeline));
    lines
}

fn summary(workload: &Workload, timeline: &Timeline) -> String {
    let length = match timeline.total() {
        Some(total) => time(total),
        None if timeline.is_endless() => UNTIL_STOPPED.into(),
        None => "as long as its counts take".into(),
    };
    let requests = match timeline.phases().last() {
        Some(last) if last.is_endless() => {
            last.expected.map(|expected| format!("{} requests a second", plain(expected.peak_request_rate)))
        }
        _ => {
            let each = timeline.phases().iter().map(|span| span.expected.map(|expected| expected.requests));
            each.sum::<Option<f64>>().map(|n| format!("about {} requests", count(n.round() as u64)))
        }
    };
    let requests = requests.unwrap_or_else(|| "as many requests as are answered".into());
    format!(
        "{}: {}, {}, {}, {length}, {requests}",
        workload.name,
        several(workload.robot_count() as usize, "robot"),
        several(workload.origins.len(), "origin"),
        several(workload.schedule.phases.len(), "phase"),
    )
}

fn working_set(timeline: &Timeline) -> String {
    let size = timeline.working_set().filter(|_| !timeline.is_endless()).map(|size| {
        format!(
            "; about {} objects, {}",
            count(size.objects.round() as u64),
            bytes(size.bytes.round() as u64)
        )
    });
    format!("{}{}", when_frozen(timeline), size.unwrap_or_default())
}

fn when_frozen(timeline: &Timeline) -> String {
    let phase = |at| timeline.phase_at(at).and_then(|index| timeline.phases().get(usize::from(index)));
    match timeline.freeze() {
        Freeze::Never => "working set: never frozen, it grows to the end".into(),
        Freeze::At(at) => match phase(at) {
            Some(span) => {
                format!("working set: frozen after {}, in phase {:?}; then it slides", time(at), span.name)
            }
            None => {
                format!("working set: would be frozen after {}, beyond the end of the schedule", time(at))
            }
        },
        Freeze::Live { fill_objects } => {
            format!("working set: frozen after {} fill objects; then it slides", count(fill_objects))
        }
    }
}

/// True when some bodies go out coded. What is expected is of uncoded bytes: codings are made where bodies are.
fn has_coded_bodies(workload: &Workload) -> bool {
    let wanted = |coding: &Coding| {
        *coding != Coding::Identity && workload.robots.iter().any(|group| group.accepts.contains(coding))
    };
    workload.contents.iter().any(|content| content.body.codings.iter().any(wanted))
}

fn phase(phase: &Phase, span: &PhaseSpan, is_coded: bool) -> Vec<String> {
    let length = match (span.start, span.end) {
        _ if span.is_endless() => UNTIL_STOPPED.into(),
        (Some(start), Some(end)) => format!("{} (from {} to {})", time(end - start), time(start), time(end)),
        (_, None) => format!("until {}", goals(phase)),
        (None, Some(_)) => "of a length that depends on earlier phases".into(),
    };
    let mut line = format!("phase {:?}: {length}", phase.name);
    let factors = [
        ("load", phase.load),
        ("recurrence factor", phase.recurrence),
        ("population", phase.population),
        ("special requests", phase.special),
    ];
    for (name, Ramp { begin, end }) in factors {
        if begin != end {
            line += &format!(", {name} {} to {}", percent(begin), percent(end));
        } else if begin != 1.0 {
            line += &format!(", {name} {}", percent(begin));
        }
    }
    if let Some(expected) = span.expected.as_ref().filter(|_| span.is_endless()) {
        line += &format!(
            "; {} requests a second, offered DHR {}, BHR {} in the long run",
            plain(expected.peak_request_rate),
            percent(expected.offered_dhr()),
            percent(expected.offered_bhr()),
        );
    } else if let Some(expected) = &span.expected {
        line += &format!(
            "; about {} requests (peak {}/s), {} of bodies, {} of fill, offered DHR {}, BHR {}",
            count(expected.requests.round() as u64),
            plain(expected.peak_request_rate),
            bytes(expected.body_bytes.round() as u64),
            bytes(expected.fill_bytes.round() as u64),
            percent(expected.offered_dhr()),
            percent(expected.offered_bhr()),
        );
        if is_coded {
            line += " (bytes are those of uncoded bodies)";
        }
    }
    let mut lines = vec![line];
    lines.extend(phase.thermostat.map(|thermostat| adapting(&thermostat)));
    if phase.script.is_some() {
        lines.push(
            "  a script runs when it begins: load, population and length may become other than planned"
                .into(),
        );
    }
    lines
}

fn adapting(thermostat: &Thermostat) -> String {
    let Thermostat { sample, step, low, high } = *thermostat;
    let bounds = [
        low.map(|low| format!("rises while the mean response time is below {}", time(low))),
        high.map(|high| format!("falls while it is above {}", time(high))),
    ];
    let bounds = bounds.into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!("  the load is adapted every {} by {}: it {bounds}", time(sample), percent(step))
}

/// Emulated links.
fn links(workload: &Workload) -> Vec<String> {
    let links = workload.links.unwrap_or_default();
    let sides = [("robots and the proxy", links.robots), ("the proxy and origins", links.origins)];
    let named = sides.into_iter().filter_map(|(ends, link)| Some((ends, link?)));
    named.map(|(ends, link)| format!("link between {ends}: {}, in each direction", road(&link))).collect()
}

fn road(link: &Link) -> String {
    let ms = |seconds: f64| plain(seconds * 1e3);
    let jitter = if link.jitter_s > 0.0 { format!(" ± {}", ms(link.jitter_s)) } else { String::new() };
    let parts = [
        (link.delay_s > 0.0).then(|| format!("delay {}{jitter} ms", ms(link.delay_s))),
        (link.loss > 0.0).then(|| format!("loss {}", percent(link.loss))),
        link.bits_per_s.map(|rate| format!("{} kbit/s", plain(rate as f64 / 1e3))),
        link.queue_bytes.map(|queue| format!("a queue of {}", bytes(queue))),
    ];
    words::joined(parts)
}

/// URLs that are not made up.
fn trace(workload: &Workload) -> Option<String> {
    if workload.foreign.is_empty() {
        return None;
    }
    let urls: std::collections::HashSet<_> =
        workload.foreign.iter().map(|url| (url.origin, url.path.as_str())).collect();
    let (lines, urls) = (count(workload.foreign.len() as u64), count(urls.len() as u64));
    let numbered = workload.foreign.iter().filter(|url| url.is_numbered()).count();
    let anew = match numbered {
        0 => String::new(),
        numbered => format!("; {} of them are other URLs with each visit", count(numbered as u64)),
    };
    Some(format!(
        "trace: {lines} lines with {urls} different URLs, walked through in order and round again{anew}"
    ))
}

fn goals(phase: &Phase) -> String {
    goal_in_words(&phase.goal)
}

fn goal_in_words(goal: &Goal) -> String {
    let goals = [
        goal.duration.map(|duration| format!("{} have passed", time(duration))),
        goal.transactions.map(|transactions| format!("{} requests are answered", count(transactions))),
        goal.fill_bytes.map(|fill| format!("{} of fill have been fetched", bytes(fill))),
    ];
    goals.into_iter().flatten().collect::<Vec<_>>().join(" or ")
}

/// Caveats about the numbers.
fn doubts(workload: &Workload, timeline: &Timeline) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut note = |applies: bool, text: &str| {
        if applies {
            doubts.push(format!("note: {text}"));
        }
    };
    note(
        timeline.total().is_none() && !timeline.is_endless(),
        "some robots are best effort, so phases that end at a count take as long as they take",
    );
    let living = || workload.robots.iter().filter(|group| group.count() > 0);
    let closed = living().any(|group| group.pace.is_closed());
    let least = |ramp: Ramp| ramp.begin.min(ramp.end);
    let factor =
        workload.schedule.phases.iter().map(|phase| least(phase.recurrence)).fold(f64::MAX, f64::min);
    note(
        living().any(|group| group.recurrence * factor >= 1.0),
        "with a recurrence of 100% only the first request for a type at an origin introduces an object; all others are for that",
    );
    let phases = || workload.schedule.phases.iter();
    note(
        closed && phases().any(|phase| phase.thermostat.is_some()),
        "best-effort robots have no load that a thermostat could change",
    );
    note(
        phases().any(|phase| phase.thermostat.is_some() || phase.script.is_some()),
        "where load is adapted, the numbers above are those of the plan",
    );
    note(
        living().any(|group| matches!(group.pace, Pace::Renewal(_)) && group.recurrence < 1.0),
        "intervals of a law of their own are those between revisits; first visits come evenly in between",
    );
    note(
        living().any(|group| group.session.is_some()),
        "robots that come and go: the numbers above are averages over their busy and idle periods",
    );
    doubts
}
