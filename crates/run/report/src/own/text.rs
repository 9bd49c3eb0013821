//! How well the numbers are known, as text: the doubts about Assay and the lab, with place, weight and remedy; or the reason
//! why there are none.

use assay_base::settings::show::series;
use assay_measurement::doubt::{Blame, Doubt, Reason};
use assay_measurement::own_error::Certainty;
use serde::Serialize;

use crate::document::{BoundedFigure, Finding, Mood, RoleHealth, Summary, Topic};
use crate::figure_text;
use crate::format::{moment_ms, number, time_ms};
use crate::origins_only;
use crate::require::{Decision, RequirementResult};
use crate::text::{capital, finding, sentence};

/// Doubts for one reason, as readers see them.
#[derive(Debug, Serialize)]
pub(crate) struct DoubtView {
    /// Each time that it was found.
    pub found: Vec<DoubtOccurrence>,
    /// The party at fault, and the reason's name: `Assay (ports)`.
    pub blame: String,
    pub why: String,
    pub advice: String,
    /// The same for a page.
    pub advice_pieces: Vec<TextPiece>,
}

/// A reason that was found.
#[derive(Debug, Serialize)]
pub(crate) struct DoubtOccurrence {
    /// Observation with its figures.
    pub seen: String,
    /// Role, phase and time: `robots, in phase top1, at 12.3 s`; empty: nothing more is known.
    pub place: String,
}

/// A stretch of text that is the same kind of word.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TextPiece {
    /// A flag, a command or a path: shown as such, and never broken at a hyphen.
    pub code: bool,
    pub text: String,
}

/// Text with its flags and what stands in backticks told apart, for a page.
pub(crate) fn pieces(text: &str) -> Vec<TextPiece> {
    let mut pieces: Vec<TextPiece> = Vec::new();
    let mut push = |code: bool, text: &str| match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if !code && !last.code => last.text.push_str(text),
        _ => pieces.push(TextPiece { code, text: text.to_owned() }),
    };
    for (number, quoted) in text.split('`').enumerate() {
        if number % 2 == 1 {
            push(true, quoted);
            continue;
        }
        let mut rest = quoted;
        while let Some(start) = rest.find("--") {
            let letter = |c: char| c == '-' || c.is_ascii_alphanumeric();
            let end = rest[start..].find(|c: char| !letter(c)).map_or(rest.len(), |length| start + length);
            push(false, &rest[..start]);
            push(true, &rest[start..end]);
            rest = &rest[end..];
        }
        push(false, rest);
    }
    pieces
}

/// Serious doubts, or those worth knowing; neighbours for the same reason are put together.
pub(crate) fn doubts(summary: &Summary, serious: bool) -> Vec<DoubtView> {
    let mut views: Vec<DoubtView> = Vec::new();
    for doubt in summary.doubts.iter().filter(|doubt| doubt.serious == serious) {
        let found = DoubtOccurrence { seen: sentence(&doubt.seen), place: doubt_place(doubt, summary) };
        let view = doubt_view(doubt);
        match views.last_mut() {
            Some(last) if last.blame == view.blame && last.why == view.why && last.advice == view.advice => {
                last.found.push(found);
            }
            _ => views.push(DoubtView { found: vec![found], ..view }),
        }
    }
    views
}

fn doubt_view(doubt: &Doubt) -> DoubtView {
    let blame = match doubt.blame {
        Blame::Assay => "Assay",
        Blame::Lab => "the lab",
    };
    DoubtView {
        found: Vec::new(),
        blame: format!("{blame} ({})", doubt.reason.name()),
        why: sentence(&doubt.why),
        advice_pieces: pieces(&sentence(&doubt.advice)),
        advice: sentence(&doubt.advice),
    }
}

fn doubt_place(doubt: &Doubt, summary: &Summary) -> String {
    let mut parts = Vec::new();
    if !doubt.role.is_empty() {
        parts.push(doubt.role.clone());
    }
    let names: Vec<&str> = doubt
        .phases
        .iter()
        .filter_map(|index| summary.phases.get(usize::from(*index)))
        .map(|phase| phase.name.as_str())
        .collect();
    if names.len() == summary.phases.len() && names.len() > 1 {
        parts.push("in every phase".to_owned());
    } else if !names.is_empty() {
        parts.push(format!("in {}", phases(&names)));
    }
    if let Some(at_ms) = doubt.at_ms {
        parts.push(format!("worst at {}", moment_ms(at_ms)));
    }
    parts.join(", ")
}

/// `phase a`, `phases a and b`, `phases a, b and c`.
pub(crate) fn phases(names: &[&str]) -> String {
    format!("{} {}", if names.len() == 1 { "phase" } else { "phases" }, series(names))
}

/// Worst serious disturbance of a run, as a clause; none: there was none.
pub(crate) fn disturbance(doubts: &[Doubt]) -> Option<String> {
    let worst = doubts.iter().find(|doubt| doubt.serious)?;
    let words = match worst.reason {
        Reason::Starved => "something else used this machine's processors",
        Reason::Stolen => "the hypervisor took this machine's processors away for a while",
        Reason::Stalled => "Assay stood still for a while",
        Reason::Saturated => "Assay itself was at its limit",
        Reason::Late | Reason::UnsentLate => "Assay could not keep to the schedule",
        Reason::Unquiet => "this machine was busy before the run already",
        Reason::Descriptors | Reason::Ports => "Assay ran out of connections",
        Reason::AcceptBacklog => "the simulated origins were too slow to accept connections",
        Reason::SocketMemory => "the kernel ran out of memory for connections",
        Reason::Retransmissions => "packets were lost between the roles",
        _ => return Some(worst.seen.clone()),
    };
    Some(words.to_owned())
}

/// Whether what disturbed the run left something unknown that was to be known: its reader must see why.
pub(crate) fn affects_headline(summary: &Summary) -> bool {
    let headline = &summary.headline;
    let is_undecided = |judged: &RequirementResult| judged.decision == Some(Decision::Undecided);
    !headline.unknown.is_empty()
        || !headline.roughly.is_empty()
        || summary.requirements.iter().any(is_undecided)
        || summary.total.counts.completed == 0
}

/// Finding on how well the numbers are known, with the reason.
pub(crate) fn trust(summary: &Summary) -> Finding {
    let say = |mood, text: String| finding(Topic::Trust, mood, text);
    if !summary.own_errors_recorded {
        let text = "The run was made before Assay recorded its own errors: nothing is said of how well its numbers are known.";
        return say(Mood::Plain, text.to_owned());
    }
    let roughly = roughly(summary);
    let cause = summary.disturbance.as_deref();
    if !summary.headline.unknown.is_empty() {
        return say(Mood::Doubtful, not_known(summary, cause, &roughly));
    }
    if !roughly.is_empty() {
        let cause = cause.map_or_else(String::new, |cause| format!("{cause}, so "));
        let text = format!("{cause}{}", series(&roughly));
        return say(
            Mood::Plain,
            format!(
                "{}{}",
                sentence(&text),
                known(summary).map_or_else(String::new, |known| format!(" {}.", capital(&known)))
            ),
        );
    }
    if summary.total.counts.due == 0 && !origins_only::is_origins_only(summary) {
        return say(Mood::Plain, "There is no number to know: no request came due.".to_owned());
    }
    let grounds = grounds(summary);
    if grounds.is_empty() {
        return say(Mood::Good, "All numbers are known, as far as there are any.".to_owned());
    }
    let grounds = format!("{grounds}{}", calibrated(summary));
    if summary.unfinished {
        return say(Mood::Doubtful, format!("The run was killed; what it left is known: {grounds}"));
    }
    let known = known(summary).unwrap_or_else(|| "all numbers are known, as far as there are any".to_owned());
    let text = match cause {
        Some(cause) => format!("{cause}, but {known}: {grounds}"),
        None => format!("{known}: {grounds}"),
    };
    say(Mood::Good, capital(&text))
}

/// Clause that names the known headline numbers; none: there are none. Reports show others, such as percentiles, of
/// which this says nothing.
fn known(summary: &Summary) -> Option<String> {
    let names: Vec<&str> = summary.headline.known.iter().map(|name| headline_name(name)).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| format!("{} {are} known to within a tenth", series(&names)))
}

/// Sentences on the unknown headline numbers, and on the others.
fn not_known(summary: &Summary, cause: Option<&str>, roughly: &[String]) -> String {
    let headline = &summary.headline;
    let cause = cause.map_or_else(String::new, |cause| format!("{cause}; because of that, "));
    if headline.known.is_empty() && headline.roughly.is_empty() {
        return sentence(&format!("{cause}no headline number is known"));
    }
    let unknown: Vec<&str> = headline.unknown.iter().map(|name| headline_name(name)).collect();
    let are = if unknown.len() == 1 { "is" } else { "are" };
    let text = sentence(&format!("{cause}{} {are} not known", series(&unknown)));
    let known: Vec<&str> = headline.known.iter().map(|name| headline_name(name)).collect();
    let stand = match known.len() {
        0 => String::new(),
        1 => format!(" {} stands.", capital(&series(&known))),
        _ => format!(" {} stand.", capital(&series(&known))),
    };
    let roughly = if roughly.is_empty() { String::new() } else { format!(" {}", sentence(&series(roughly))) };
    format!("{text}{stand}{roughly}")
}

/// A headline number in words.
fn headline_name(name: &str) -> &str {
    match name {
        "dhr" => "the hit ratio",
        "bhr" => "the byte hit ratio",
        "rate" => "the rate",
        "errors" => "the number of errors",
        "p50(hit)" => "the median of hits",
        "p50(miss)" => "the median of misses",
        other => other,
    }
}

/// Numbers of the phases that measure that are known within an interval only.
fn roughly(summary: &Summary) -> Vec<String> {
    let Some(figures) = &summary.headline.figures else { return Vec::new() };
    let is_rough = |figure: &BoundedFigure| figure.own.is_some_and(|own| own.certainty == Certainty::Roughly);
    let mut found = Vec::new();
    let mut add = |called: &str, figure: Option<BoundedFigure>, show: &dyn Fn(BoundedFigure) -> String| {
        if let Some(figure) = figure.filter(is_rough) {
            found.push(format!("{called} is only known to be {}", show(figure)));
        }
    };
    let times = &figures.response_time_ms;
    for (of, times) in [("hits", &times.hit), ("misses", &times.miss)] {
        add(&format!("the median of {of}"), times.figure("p50"), &figure_text::time);
        add(&format!("the 99th percentile of {of}"), times.figure("p99"), &figure_text::time);
    }
    let per_second = |figure| format!("{} per second", figure_text::in_words(figure, number));
    add("the rate", figures.figure("rate.measured"), &per_second);
    add("the hit ratio", figures.figure("dhr.measured"), &figure_text::ratio);
    add("the byte hit ratio", figures.figure("bhr.measured"), &figure_text::ratio);
    // What is the same for all is said once.
    found.iter_mut().skip(1).for_each(|text| *text = text.replacen(" is only known to be ", " ", 1));
    found
}

/// Assay's own lateness, stalls and load; empty if nothing was sent.
fn grounds(summary: &Summary) -> String {
    let us = |us: u64| time_ms(us as f64 / 1000.0);
    let Some(late) = summary.total.lateness_us.p99 else { return String::new() };
    let health = &summary.health;
    let highest = |pick: fn(&RoleHealth) -> Option<u64>| health.roles.values().filter_map(pick).max();
    let mut parts = vec![format!("Assay itself sent 99 % of requests within {} of their time", us(late))];
    // Threads stand still for less than what is called a stall, too; then their timers say it.
    let stalled = health.longest_stall.as_ref().map(|stall| stall.length_us);
    if let Some(still) = highest(|role| role.timer_lag_us.max).max(stalled) {
        parts.push(format!("stood still for {} at most", us(still)));
    }
    if let Some(share) = health.processor_share {
        parts.push(format!("used {} % of its processors", whole_percent(share)));
    }
    let before = highest(|role| role.baseline_us.p99);
    let before = before.map_or_else(String::new, |lag| {
        format!("; before the run, a bare timer there was late by {} (99 %)", us(lag))
    });
    format!("{}{before}.", series(&parts))
}

/// ` The busiest phase, top1, took 23 % of what this machine can offer for this workload.`, or nothing.
fn calibrated(summary: &Summary) -> String {
    let used = summary.calibration.as_ref().and_then(|known| Some((known.share?, known.phase.as_ref()?)));
    used.map_or_else(String::new, |(share, phase)| {
        format!(
            " The busiest phase, {phase}, took {} % of what this machine can offer for this workload.",
            whole_percent(share)
        )
    })
}

/// A share in whole percent, but never 0 for something.
pub(crate) fn whole_percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "less than 1".to_owned(),
        percent => format!("{percent:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_listed_as_people_do() {
        assert_eq!(phases(&["a"]), "phase a");
        assert_eq!(phases(&["a", "b"]), "phases a and b");
        assert_eq!(phases(&["a", "b", "c"]), "phases a, b and c");
    }

    #[test]
    fn flags_and_what_is_quoted_are_told_from_prose() {
        let shown = |text| -> String {
            let piece = |p: TextPiece| if p.code { format!("[{}]", p.text) } else { p.text };
            pieces(text).into_iter().map(piece).collect()
        };
        assert_eq!(
            shown("use (--robot-cpus, --spin), or `ulimit -n`."),
            "use ([--robot-cpus], [--spin]), or [ulimit -n]."
        );
        assert_eq!(shown("-- ü"), "[--] ü");
        assert_eq!(shown("plain"), "plain");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn a_share_that_is_there_is_never_none() {
        assert_eq!([0.0, 0.002, 0.012, 0.234].map(whole_percent), ["0", "less than 1", "1", "23"]);
    }
}
