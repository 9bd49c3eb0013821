//! Whether the numbers can be trusted, in words. Each doubt with its place, its weight and its remedy; or why there is none.

use assay_measurement::doubt::{Blame, Doubt};
use serde::Serialize;

use crate::document::{Finding, Mood, PhaseFigures, RoleHealth, Summary, Topic};
use crate::format::{moment_ms, time_ms};
use crate::words::{finding, sentence};

/// Doubts for one reason, as readers see them.
#[derive(Debug, Serialize)]
pub(crate) struct DoubtView {
    /// Each time that it was found.
    pub found: Vec<Found>,
    /// Whose fault, and the reason's name: `Assay (ports)`.
    pub blame: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub advice: String,
    /// The same for a page.
    pub advice_pieces: Vec<Piece>,
}

/// A reason that was found.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    /// What was seen, with its figures.
    pub seen: String,
    /// Where and when: `robots, in phase top1, at 12.3 s`; empty: nothing more is known.
    pub place: String,
}

/// A stretch of text that is the same kind of word.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Piece {
    /// A flag, a command or a path: shown as such, and never broken at a hyphen.
    pub code: bool,
    pub text: String,
}

/// Text with its flags and what stands in backticks told apart, for a page.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut push = |code: bool, text: &str| match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if !code && !last.code => last.text.push_str(text),
        _ => pieces.push(Piece { code, text: text.to_owned() }),
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

/// Doubts that make the run invalid, or those worth knowing; neighbours for the same reason are put together.
pub(crate) fn doubts(summary: &Summary, invalidating: bool) -> Vec<DoubtView> {
    let mut views: Vec<DoubtView> = Vec::new();
    for doubt in summary.doubts.iter().filter(|doubt| doubt.invalidates == invalidating) {
        let found = Found { seen: sentence(&doubt.seen), place: place(doubt, summary) };
        let view = view(doubt);
        match views.last_mut() {
            Some(last) if last.blame == view.blame && last.why == view.why && last.advice == view.advice => {
                last.found.push(found);
            }
            _ => views.push(DoubtView { found: vec![found], ..view }),
        }
    }
    views
}

fn view(doubt: &Doubt) -> DoubtView {
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

fn place(doubt: &Doubt, summary: &Summary) -> String {
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
    format!("{} {}", if names.len() == 1 { "phase" } else { "phases" }, listed(names))
}

/// The headline of an invalid run: which of its numbers could be somebody else's.
pub(crate) fn invalid(summary: &Summary) -> String {
    let ran = || summary.phases.iter().filter(|phase| phase.start_ms.is_some());
    let spoilt: Vec<&PhaseFigures> = ran().filter(|phase| phase.invalid).collect();
    if spoilt.is_empty() || spoilt.len() == ran().count() {
        return "Assay or the lab could have shaped these numbers; they are not the target's.".to_owned();
    }
    let names: Vec<&str> = spoilt.iter().map(|phase| phase.name.as_str()).collect();
    format!(
        "Assay or the lab could have shaped the numbers of {} and so of the whole run. The other phases are not \
         touched.",
        phases(&names)
    )
}

/// Whether the numbers can be trusted, and why.
pub(crate) fn trust(summary: &Summary) -> Finding {
    let say = |mood, text: String| finding(Topic::Trust, mood, text);
    if !summary.valid {
        let worst = summary.doubts.iter().find(|doubt| doubt.invalidates);
        let why = worst.map_or_else(|| "no reason was recorded.".to_owned(), |doubt| sentence(&doubt.seen));
        return say(Mood::Bad, format!("The numbers cannot be trusted as the target's: {why}"));
    }
    let grounds = grounds(summary);
    if grounds.is_empty() {
        return say(Mood::Good, "The numbers can be trusted as far as there are any.".to_owned());
    }
    let grounds = format!("{grounds}{}", calibrated(summary));
    if summary.unfinished {
        let text = "The run was killed, but nothing that it left speaks against its numbers";
        return say(Mood::Doubtful, format!("{text}: {grounds}"));
    }
    if summary.doubts.is_empty() {
        return say(Mood::Good, format!("The numbers can be trusted: {grounds}"));
    }
    say(Mood::Doubtful, format!("The numbers can be trusted, with what is worth knowing below: {grounds}"))
}

/// How late, how still and how busy Assay itself was; nothing when nothing was sent.
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
    format!("{}{before}.", listed(&parts))
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

/// `a`, `a and b`, `a, b and c`.
fn listed(parts: &[impl AsRef<str>]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
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
            let piece = |p: Piece| if p.code { format!("[{}]", p.text) } else { p.text };
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
