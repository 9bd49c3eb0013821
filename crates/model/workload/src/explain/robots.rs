//! Robots in words: when they send requests, for what, how, and what they do besides.

use assay_base::settings::show::{bytes, count, plain};

use std::time::Duration;

use super::goal_in_words;
use super::words::{draws, extent, joined, kinds, mix, percent, random_extent, time};
use crate::model::{
    Coding, Distribution, Expectation, HeaderRule, Method, Pace, Popularity, PopularityLaw, RangeSpec,
    RequestType, RobotGroup, Workload,
};

/// A group of robots, a line each for pace, interest and requests, and one for what else there is to say.
pub(super) fn robots(workload: &Workload, group: &RobotGroup, embedded: f64) -> Vec<String> {
    let robots = count(u64::from(group.count()));
    let mut first = format!("robots {:?}: {robots}, {}", group.kind, pace(group));
    if embedded > 0.0 {
        first += &format!(" with embedded objects ({} of them per launch)", plain(embedded));
    }
    let popularity = group.popularity.as_ref().map_or_else(String::new, |p| format!(", {}", popularity(p)));
    let mut second = format!("  recurrence {}{popularity}", percent(group.recurrence));
    if group.private_share > 0.0 {
        second += &format!(", {} of launches to the robot's private world", percent(group.private_share));
    }
    if group.foreign_share > 0.0 {
        second += &format!(", {} of launches for URLs of the trace", percent(group.foreign_share));
    }
    let mut lines = vec![first, second, format!("  {}; {}", requests(group), connections(group))];
    for part in [bodies(workload, group), habits(group), sessions(group)] {
        if !part.is_empty() {
            lines.push(format!("  {}", part.join("; ")));
        }
    }
    lines
}

fn pace(group: &RobotGroup) -> String {
    match &group.pace {
        Pace::BestEffort if group.streams > 1 => {
            format!("each has {} requests under way at a time over HTTP/2 (best effort)", group.streams)
        }
        Pace::BestEffort => "each sends its next request when the last is answered (best effort)".into(),
        Pace::Think(pause_s) => format!(
            "each sends its next request {} s after the last is answered, on average",
            plain(pause_s.mean())
        ),
        Pace::Renewal(between_s) => format!(
            "each sends a request every {} s on average, with intervals of its own law",
            plain(between_s.mean())
        ),
        Pace::Rate { per_second } => format!(
            "{}/s each, {}/s together at full load",
            plain(*per_second),
            plain(*per_second * f64::from(group.count()))
        ),
    }
}

pub(super) fn popularity(popularity: &Popularity) -> String {
    let law = match &popularity.law {
        PopularityLaw::Uniform => "uniform popularity".into(),
        PopularityLaw::Zipf { skew } => {
            format!("Zipf popularity with skew {}, newest first", plain(*skew))
        }
        PopularityLaw::Table(_) => "popularity by a table of ages".into(),
    };
    let hot = (popularity.hot_set_probability > 0.0).then(|| {
        let (fraction, share) =
            (percent(popularity.hot_set_fraction), percent(popularity.hot_set_probability));
        format!("{share} of revisits to a hot set of {fraction}")
    });
    let small = (popularity.size_preference > 0.0)
        .then(|| format!("{} of revisits to a small object nearby", percent(popularity.size_preference)));
    joined([Some(law), hot, small])
}

fn requests(group: &RobotGroup) -> String {
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
    let instead = (group.substitution > 0.0)
        .then(|| format!(", {} of new ones to a substitute that is idle", percent(group.substitution)));
    format!(
        "{open} connections per robot, {} requests each on average{}",
        plain(uses),
        instead.unwrap_or_default()
    )
}

fn bodies(workload: &Workload, group: &RobotGroup) -> Vec<String> {
    let mut parts = Vec::new();
    if !group.ranges.is_empty() {
        parts.push(format!("parts: {}", mix(&group.ranges, range)));
    }
    for (verb, contents) in [("posts", &group.post_contents), ("puts", &group.put_contents)] {
        if !contents.is_empty() {
            parts.push(format!("{verb} {}", kinds(workload, contents)));
        }
    }
    if group.body_recurrence > 0.0 {
        parts.push(format!("{} of bodies were sent before", percent(group.body_recurrence)));
    }
    match group.expectation {
        Expectation::Never => {}
        Expectation::Sometimes(share) => {
            parts.push(format!("asks before it sends {} of bodies (100-continue)", percent(share)));
        }
        Expectation::From(least) => {
            parts.push(format!("asks before it sends bodies of {} or more (100-continue)", bytes(least)));
        }
    }
    parts
}

fn range(range: &RangeSpec) -> String {
    match range {
        RangeSpec::Span { first, last: Some(last) } => {
            format!("from {} to {}", extent(*first), extent(*last))
        }
        RangeSpec::Span { first, last: None } => format!("from {} on", extent(*first)),
        RangeSpec::Suffix(length) => format!("the last {}", extent(*length)),
        RangeSpec::Multiple { length, count, .. } => {
            format!("{} pieces of {} each", plain(count.mean_count()), random_extent(length))
        }
    }
}

fn habits(group: &RobotGroup) -> Vec<String> {
    let mut parts = Vec::new();
    let codings: Vec<_> = group.accepts.iter().map(|coding| coding_name(*coding)).collect();
    if !codings.is_empty() {
        parts.push(format!("accepts {}", codings.join(", ")));
    }
    parts.extend(headers(&group.headers));
    let cookies = &group.cookies;
    if cookies.share <= 0.0 {
        parts.push("sends no cookies".into());
    } else if cookies.share < 1.0 {
        parts.push(format!("{} of robots send cookies", percent(cookies.share)));
    }
    if group.private_cache > 0 {
        parts.push(format!("a cache of its own for {} objects", count(u64::from(group.private_cache))));
    }
    if group.abort_share > 0.0 {
        parts.push(format!("{} of responses are broken off in the middle", percent(group.abort_share)));
    }
    if group.priorities {
        parts.push("requests say how urgent they are, pages before what they embed (RFC 9218)".into());
    }
    if let Some(lifetime_s) = &group.lifetime_s {
        parts.push(format!("gives up {} after it was due", draws(lifetime_s, "s")));
    }
    parts
}

fn sessions(group: &RobotGroup) -> Vec<String> {
    let mut parts = Vec::new();
    let users: u64 = group.credentials.users.iter().map(crate::model::UserRun::size).sum();
    if users > 0 {
        let wrong = (group.credentials.wrong_share > 0.0).then(|| {
            format!(", {} of the time with a wrong password", percent(group.credentials.wrong_share))
        });
        parts.push(format!("as one of {} users{}", count(users), wrong.unwrap_or_default()));
    }
    if let Some(session) = &group.session {
        let idle = Duration::try_from_secs_f64(session.idle_s.mean().abs()).unwrap_or_default();
        parts.push(format!(
            "busy until {}, then idle for {} on average",
            goal_in_words(&session.busy),
            time(idle)
        ));
    }
    parts
}

/// Added fields by name.
pub(super) fn headers(rules: &[HeaderRule]) -> Option<String> {
    let rule = |rule: &HeaderRule| {
        let names: Vec<_> = rule.fields.iter().map(|(name, _)| name.as_str()).collect();
        let share = (rule.probability < 1.0).then(|| format!(" ({})", percent(rule.probability)));
        format!("{}{}", names.join(" with "), share.unwrap_or_default())
    };
    let rules: Vec<_> = rules.iter().filter(|rule| rule.probability > 0.0).map(rule).collect();
    (!rules.is_empty()).then(|| format!("adds {}", rules.join(", ")))
}

pub(super) fn coding_name(coding: Coding) -> &'static str {
    match coding {
        Coding::Identity => "identity",
        Coding::Gzip => "gzip",
    }
}
