//! What does this workload mean? In plain words, with numbers and units.

use std::time::Duration;

use crate::density::Densities;
use crate::model::{
    Content, Distribution, Method, Pace, Phase, PopularityLaw, Ramp, RequestType, RobotGroup, Server,
    Weighted, Workload,
};
use crate::timeline::{Freeze, PhaseSpan, Timeline};

/// A workload in plain words, a line each.
pub fn explain(workload: &Workload, timeline: &Timeline) -> Vec<String> {
    let mut lines = vec![summary(workload, timeline)];
    let densities = Densities::new(workload);
    for (index, group) in workload.robots.iter().enumerate().filter(|(_, group)| group.count() > 0) {
        lines.extend(robots(group, densities.embedded(index, 1.0)));
    }
    lines.extend(workload.servers.iter().enumerate().map(|(index, s)| server(workload, index, s)));
    lines.extend(workload.contents.iter().map(|c| content(workload, c)));
    lines.push(working_set(timeline));
    lines.extend(
        workload.schedule.phases.iter().zip(timeline.phases()).map(|(phase, span)| self::phase(phase, span)),
    );
    lines.extend(doubts(workload, timeline));
    lines
}

fn summary(workload: &Workload, timeline: &Timeline) -> String {
    let length = match timeline.total() {
        Some(total) => time(total),
        None => "as long as its counts take".into(),
    };
    let requests: Option<f64> =
        timeline.phases().iter().map(|span| span.expected.map(|expected| expected.requests)).sum();
    let requests = requests.map_or_else(
        || "as many requests as are answered".into(),
        |n| format!("about {} requests", count(n)),
    );
    format!(
        "{}: {}, {}, {}, {length}, {requests}",
        workload.name,
        several(workload.robot_count() as usize, "robot"),
        several(workload.origins.len(), "origin"),
        several(workload.schedule.phases.len(), "phase"),
    )
}

fn robots(group: &RobotGroup, embedded: f64) -> Vec<String> {
    let robots = count(f64::from(group.count()));
    let pace = match &group.pace {
        Pace::BestEffort => "each sends its next request when the last is answered (best effort)".into(),
        Pace::Think(pause_s) => format!(
            "each sends its next request {} s after the last is answered, on average",
            number(pause_s.mean())
        ),
        Pace::Renewal(between_s) => format!(
            "each sends a request every {} s on average, with intervals of its own law",
            number(between_s.mean())
        ),
        Pace::Rate { per_second } => format!(
            "{}/s each, {}/s together at full load",
            number(*per_second),
            number(*per_second * f64::from(group.count()))
        ),
    };
    let mut first = format!("robots {:?}: {robots}, {pace}", group.kind);
    if embedded > 0.0 {
        first += &format!(" with embedded objects ({} of them per launch)", number(embedded));
    }
    let popularity = group.popularity.as_ref().map_or_else(String::new, |popularity| {
        let law = match &popularity.law {
            PopularityLaw::Uniform => "uniform popularity".into(),
            PopularityLaw::Zipf { skew } => {
                format!("Zipf popularity with skew {}, newest first", number(*skew))
            }
            PopularityLaw::Table(_) => "popularity by a table of ages".into(),
        };
        let hot = (popularity.hot_set_probability > 0.0).then(|| {
            let (fraction, share) =
                (percent(popularity.hot_set_fraction), percent(popularity.hot_set_probability));
            format!(", {share} of revisits to a hot set of {fraction}")
        });
        format!(", {law}{}", hot.unwrap_or_default())
    });
    let mut second = format!("  recurrence {}{popularity}", percent(group.recurrence));
    if group.private_share > 0.0 {
        second += &format!(", {} of launches to the robot's private world", percent(group.private_share));
    }
    vec![first, second, format!("  {}; {}", asks(group), connections(group))]
}

fn asks(group: &RobotGroup) -> String {
    let types = mix(&group.request_types, |t| {
        match t {
            RequestType::Basic => "Basic",
            RequestType::Ims200 => "Ims200",
            RequestType::Ims304 => "Ims304",
            RequestType::Reload => "Reload",
            RequestType::Range => "Range",
            RequestType::Upload => "Upload",
        }
        .into()
    });
    let methods = mix(&group.methods, |m| {
        match m {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
        }
        .into()
    });
    let or = |mix: String, default: &str| if mix.is_empty() { default.to_string() } else { mix };
    format!("requests: {}; methods: {}", or(types, "Basic"), or(methods, "GET"))
}

fn connections(group: &RobotGroup) -> String {
    let open = group.open_connection_limit.map_or("any number of".into(), |limit| format!("at most {limit}"));
    let uses = group.connection_use_limit.as_ref().map_or(1.0, Distribution::mean_count).max(1.0);
    format!("{open} connections per robot, {} requests each on average", number(uses))
}

fn server(workload: &Workload, index: usize, server: &Server) -> String {
    let origins = workload.origins.iter().filter(|origin| usize::from(origin.server) == index).count();
    let think = server.think_s.as_ref().map_or("no think time".into(), |think| {
        format!("think time {} ± {} s", number(think.mean()), number(think.deviation()))
    });
    let kind = |content: &u16| {
        workload.contents.get(usize::from(*content)).map_or("?", |c| c.kind.as_str()).to_string()
    };
    format!("origins {:?}: {origins}, {think}, asked for {}", server.kind, mix(&server.direct_access, kind))
}

fn content(workload: &Workload, content: &Content) -> String {
    let mut line = format!(
        "content {:?}: {} on average, {} cachable",
        content.kind,
        bytes(content.size_bytes.mean_count()),
        percent(content.cachable)
    );
    if let Some(cycle) = &content.life_cycle {
        let every = Duration::try_from_secs_f64(cycle.length_s.mean().max(0.0)).unwrap_or_default();
        line += &format!(", modified every {}", time(every));
    }
    if let Some(embedded) = &content.embedded {
        let kind =
            |c: &u16| workload.contents.get(usize::from(*c)).map_or("?", |c| c.kind.as_str()).to_string();
        line += &format!(
            ", a page with {} embedded objects on average: {}",
            number(embedded.count.mean_count()),
            mix(&embedded.contents, kind)
        );
    }
    line
}

fn working_set(timeline: &Timeline) -> String {
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
            format!("working set: frozen after {} fill objects; then it slides", count(fill_objects as f64))
        }
    }
}

fn phase(phase: &Phase, span: &PhaseSpan) -> String {
    let length = match (span.start, span.end) {
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
    if let Some(expected) = &span.expected {
        line += &format!(
            "; about {} requests (peak {}/s), {} of bodies, {} of fill, offered DHR {}, BHR {}",
            count(expected.requests),
            number(expected.peak_request_rate),
            bytes(expected.body_bytes),
            bytes(expected.fill_bytes),
            percent(expected.offered_dhr()),
            percent(expected.offered_bhr()),
        );
    }
    line
}

fn goals(phase: &Phase) -> String {
    let goal = &phase.goal;
    let goals = [
        goal.duration.map(|duration| format!("{} have passed", time(duration))),
        goal.transactions.map(|transactions| format!("{} requests are answered", count(transactions as f64))),
        goal.fill_bytes.map(|fill| format!("{} of fill have been fetched", bytes(fill as f64))),
    ];
    goals.into_iter().flatten().collect::<Vec<_>>().join(" or ")
}

/// What a reader should know before believing the numbers.
fn doubts(workload: &Workload, timeline: &Timeline) -> Vec<String> {
    let mut doubts = Vec::new();
    if timeline.phases().iter().any(|span| span.expected.is_some()) {
        doubts.push(
            "note: offered ratios are those reached once there is something to revisit; the stream's own begin lower".into(),
        );
    }
    if timeline.total().is_none() {
        doubts.push(
            "note: some robots are best effort, so phases that end at a count take as long as they take"
                .into(),
        );
    }
    let living = || workload.robots.iter().filter(|group| group.count() > 0);
    if living().any(|group| group.recurrence >= 1.0) {
        doubts.push(
            "note: with a recurrence of 100% nothing is ever introduced, so nothing can be revisited".into(),
        );
    }
    doubts
}

/// Items with their shares, the likely ones first.
fn mix<T>(weighted: &Weighted<T>, name: impl Fn(&T) -> String) -> String {
    let mut items: Vec<_> = weighted.items().iter().filter(|(_, share)| *share > 0.0).collect();
    items.sort_by(|a, b| b.1.total_cmp(&a.1));
    match items.as_slice() {
        [only] => name(&only.0),
        _ => items
            .iter()
            .map(|(i, share)| format!("{} {}", name(i), percent(*share)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn several(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number as f64), if number == 1 { "" } else { "s" })
}

fn percent(share: f64) -> String {
    format!("{}%", number(share * 100.0))
}

/// Three significant digits, without trailing zeros.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let magnitude = libm::floor(libm::log10(libm::fabs(value))) as i32;
    let text = format!("{value:.*}", usize::try_from(2 - magnitude).unwrap_or(0).min(9));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A whole number with its thousands marked.
fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["bytes", "KB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", number(value), UNITS[unit])
}

fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 2.0 * 3600.0 => (s / 60.0, "min"),
        s if s < 2.0 * 86_400.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    format!("{} {unit}", number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        let numbers = [0.0, 0.4, 1600.0, 0.123_456, 99.96, 1234.6, 4.0];
        let texts: Vec<_> = numbers.into_iter().map(number).collect();
        assert_eq!(texts, ["0", "0.4", "1600", "0.123", "100", "1235", "4"]);
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(123.0), "123");
        assert_eq!(bytes(9216.0), "9 KB");
        assert_eq!(bytes(12.0), "12 bytes");
        assert_eq!(time(Duration::from_secs(90)), "90 s");
        assert_eq!(time(Duration::from_secs(3600)), "60 min");
        assert_eq!(time(Duration::from_secs(7 * 86_400)), "7 days");
    }
}
