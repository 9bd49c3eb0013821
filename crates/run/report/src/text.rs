//! The run in words: findings, warnings and notes, from the numbers.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use assay_base::settings::show::{series, several};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::own_error::{Certainty, OwnInterval};
use assay_record::missing::Missing;
use assay_record::run::RunInfo;

use crate::document::{Figures, Finding, Mood, PhaseFigures, Summary, Topic};
use crate::failed_requests::{self, FailedRequests};
use crate::figure_text::ratio;
use crate::format::{self, bytes, count, duration_s, number, opt_number, percent, share};
use crate::own;
use crate::require;
use crate::speed::{self, ENOUGH};

/// Share of errors above which they are bad rather than doubtful.
const BAD_ERRORS: f64 = 0.001;

/// Distance from ideal, in hit ratio, that wants an explanation.
const IDEAL_GAP: f64 = 0.03;

pub(crate) fn finding(about: Topic, mood: Mood, text: impl Into<String>) -> Finding {
    Finding { about, mood, text: text.into() }
}

/// The target with its version and place in the net: `varnish 7.1 (reverse proxy)`.
pub(crate) fn target(summary: &Summary) -> String {
    if summary.proxy == "origins" {
        return "origins, without robots".to_owned();
    }
    if summary.target.mode == "direct" || summary.proxy == "direct" {
        return "the origins themselves, without a proxy".to_owned();
    }
    let name = match summary.proxy.as_str() {
        "builtin" => "the built-in proxy",
        other => other,
    };
    let version = summary.target.version.trim();
    let version =
        if version.is_empty() || summary.proxy == "builtin" { String::new() } else { format!(" {version}") };
    match summary.target.mode.as_str() {
        "" => format!("{name}{version}"),
        mode => format!("{name}{version} ({mode} proxy)"),
    }
}

/// True when what was tested keeps nothing.
pub(crate) fn is_direct(summary: &Summary) -> bool {
    summary.proxy == "direct" || summary.target.mode == "direct"
}

/// `rehearsed at 1/1440 of its length`, or nothing.
pub(crate) fn rehearsed(scale: Option<f64>) -> Option<String> {
    let scale = scale.filter(|scale| *scale > 0.0)?;
    if (scale - 1.0).abs() < 1e-9 {
        return None;
    }
    Some(if scale > 0.1 && scale < 1.0 {
        format!("rehearsed at {} % of its length", format::number(scale * 100.0))
    } else if scale < 1.0 {
        format!("rehearsed at 1/{} of its length", format::number(1.0 / scale))
    } else {
        format!("stretched to {} times its length", format::number(scale))
    })
}

/// The verdict: a finding per topic, in the order of a reader's questions.
pub(crate) fn verdict(summary: &Summary) -> Vec<Finding> {
    let mut findings = vec![subject(summary), speed::speed(summary), savings(summary), correctness(summary)];
    let required = require::finding(&summary.requirements);
    findings.extend(required.map(|finding| failed_requests::qualified(finding, &summary.total)));
    findings.push(own::text::trust(summary));
    findings
}

fn subject(summary: &Summary) -> Finding {
    let total = &summary.total;
    let robots = match u64::from(summary.workload_info.robots) {
        1 => "1 robot".to_owned(),
        robots => format!("{} robots", count(robots)),
    };
    let length = total.duration_s.map_or_else(String::new, |s| format!(" in {}", duration_s(s)));
    let scale = rehearsed(summary.workload_info.scale).map_or_else(String::new, |text| format!(", {text}"));
    let text = format!(
        "{robots} sent {} requests to {}{length} (workload {}{scale}).",
        count(total.counts.requests),
        target(summary),
        summary.workload,
    );
    finding(Topic::Test, Mood::Plain, text)
}

/// Mood of a finding on counted numbers, lowered unless all of them were reported, and the clause to put before it.
pub(crate) fn completeness(summary: &Summary, mood: Mood) -> (Mood, &'static str) {
    let complete = !summary.headline.unknown.iter().any(|name| name == "errors");
    if complete { (mood, "") } else { (Mood::Doubtful, "as far as it was reported, ") }
}

/// The phase that the target is judged by.
pub(crate) fn baseline(summary: &Summary) -> Option<&PhaseFigures> {
    summary.phases.iter().find(|phase| Some(&phase.name) == summary.baseline.as_ref())
}

/// A phase's name, and that it was disturbed where it was.
pub(crate) fn phase_label(phase: &PhaseFigures) -> String {
    format!("{}{}", phase.name, if phase.disturbed { " (disturbed)" } else { "" })
}

/// ` in phases top1 and top2`, where the phases that measure are not all there are; else nothing.
pub(crate) fn in_headline(summary: &Summary) -> String {
    let phases: Vec<&str> = summary.headline.phases.iter().map(String::as_str).collect();
    let ran = summary.phases.iter().filter(|phase| phase.figures.counts.due > 0).count();
    if phases.len() >= ran { String::new() } else { format!(" in {}", own::text::phases(&phases)) }
}

fn headline_savings(summary: &Summary) -> String {
    let scope = in_headline(summary);
    let figures = summary.headline.figures.as_ref().filter(|_| !scope.is_empty());
    match figures.and_then(|figures| Some((figures.figure("dhr.measured")?, figures.dhr.ideal?))) {
        Some((measured, ideal)) => {
            let text =
                format!("{}, it served {} ({} % ideal)", scope.trim(), ratio(measured), percent(Some(ideal)));
            format!(" {}", sentence(&text))
        }
        None => String::new(),
    }
}

fn savings(summary: &Summary) -> Finding {
    let total = &summary.total;
    if is_direct(summary) {
        return finding(
            Topic::Savings,
            Mood::Plain,
            "Nothing stood in between, so nothing was saved: this is what the origins themselves can do.",
        );
    }
    let Some(measured) = total.figure("dhr.measured") else {
        let text = match total.counts.completed {
            0 => "No plain GET got a response, so there is no hit ratio.".to_owned(),
            completed => format!(
                "None of the {} responses was to a plain GET that met no fault on purpose (a slow body is one), so there is no hit ratio.",
                count(completed)
            ),
        };
        return finding(Topic::Savings, Mood::Plain, text);
    };
    let Some(value) = measured.value else {
        return finding(Topic::Savings, Mood::Doubtful, "What it saved is not known.");
    };
    let offload = match (total.offload.requests, total.offload.bytes) {
        (Some(requests), Some(bytes)) if requests >= 0.0 && bytes >= 0.0 => {
            format!(
                " The origins were spared {} % of requests and {} % of bytes.",
                percent(Some(requests)),
                percent(Some(bytes))
            )
        }
        (Some(requests), Some(bytes)) => format!(
            " The origins got more than the robots requested: offload is {} % of requests and {} % of bytes.",
            percent(Some(requests)),
            percent(Some(bytes))
        ),
        _ => String::new(),
    };
    let shown = ratio(measured);
    if let Some(left_out) = FailedRequests::from_figures(total) {
        let ideal = total.dhr.ideal.map_or_else(String::new, |ideal| {
            let against = if ideal - value > IDEAL_GAP { below_ideal(ideal - value) } else { String::new() };
            format!(" ({} % ideal){against}", percent(Some(ideal)))
        });
        let text = format!(
            "Of the plain GETs that got a correct response, it served {shown} from its store{ideal}. That says nothing of the \
             others: {}.{}",
            left_out.text(),
            headline_savings(summary)
        );
        return finding(Topic::Savings, Mood::Doubtful, text);
    }
    let Some(ideal) = total.dhr.ideal else {
        return finding(
            Topic::Savings,
            Mood::Plain,
            format!("It served {shown} of plain GETs from its store.{offload}"),
        );
    };
    // What is known roughly is as far from ideal as its nearer end.
    let roughly = measured.own.filter(|own| own.certainty == Certainty::Roughly);
    let nearest = match roughly {
        Some(OwnInterval { low: Some(low), high: Some(high), .. }) if low <= high => ideal.clamp(low, high),
        _ => value,
    };
    let (mood, against) = match ideal - nearest {
        gap if gap > IDEAL_GAP => (Mood::Doubtful, below_ideal(gap)),
        gap if gap < -IDEAL_GAP => {
            let more = format!(
                ": {:.1} points more than an infinite cache that behaves as declared would have reached",
                -gap * 100.0
            );
            (Mood::Doubtful, more)
        }
        _ if roughly.is_some() => (Mood::Plain, String::new()),
        _ => (Mood::Good, ": as good as an infinite cache".to_owned()),
    };
    finding(
        Topic::Savings,
        mood,
        format!(
            "It served {shown} of plain GETs from its store ({} % ideal){against}.{}{offload}",
            percent(Some(ideal)),
            headline_savings(summary),
        ),
    )
}

fn below_ideal(gap: f64) -> String {
    format!(": {:.1} points less than an infinite cache would have reached", gap * 100.0)
}

fn correctness(summary: &Summary) -> Finding {
    let total = &summary.total;
    if total.errors.total == 0 {
        let text = match total.counts.completed {
            0 => "No response came, so none could be checked.".to_owned(),
            _ => format!("{}{}", completeness(summary, Mood::Good).1, checked(total)),
        };
        let (mood, _) = completeness(summary, Mood::Good);
        let is_sound = total.counts.completed > 0 && total.special.robots.kept_after_post == 0;
        let mood = if is_sound { mood } else { Mood::Doubtful };
        return failed_requests::qualified(finding(Topic::Correctness, mood, sentence(&text)), total);
    }
    let mut kinds: Vec<(&ErrorKind, &u64)> = total.errors.by_kind.iter().collect();
    kinds.sort_by_key(|(kind, number)| (Reverse(**number), **kind));
    let named: Vec<String> =
        kinds.iter().take(4).map(|(kind, n)| format!("{} {}", count(**n), kind.plural())).collect();
    let more = kinds.len().saturating_sub(4);
    let more = if more > 0 { format!(" and {more} other kinds") } else { String::new() };
    let mood = if total.errors.total as f64 > total.counts.requests as f64 * BAD_ERRORS {
        Mood::Bad
    } else {
        Mood::Doubtful
    };
    let text = format!(
        "{} of {} requests ({}) ended in an error: {}{more}.{}",
        count(total.errors.total),
        count(total.counts.requests),
        share(total.errors.total, total.counts.requests),
        named.join(", "),
        kept_after_post(total) + &changed_fields(total),
    );
    finding(Topic::Correctness, mood, text)
}

/// What was checked of a run without errors, and what could not be.
fn checked(total: &Figures) -> String {
    let special = &total.special.robots;
    let of = |counts: &BTreeMap<String, u64>, name: &str| counts.get(name).copied().unwrap_or(0);
    let objects: u64 = ["200", "203", "206"].map(|status| of(&total.by_status, status)).iter().sum();
    let incomplete = special.broken_off + special.broken_off_by_origin;
    let compared =
        objects.saturating_sub(of(&total.by_method, "HEAD") + special.unchecked_parts + incomplete);
    let mut properties = vec!["of the right object"];
    if special.unconfirmed_hits == 0 && special.kept_after_post == 0 {
        properties.push("fresh");
    }
    if special.unattributed == 0 {
        properties.push("allowed to be a hit if it was one");
    }
    // Of a run whose counts by status are lost, it is not known how many.
    let bodies = match total.by_status.is_empty() {
        true => "bodies".to_owned(),
        false => format!("the bodies of {} responses", count(compared)),
    };
    let mut text = format!(
        "nothing was wrong: {bodies} were checked byte for byte, and each response was {}.",
        series(&properties)
    );
    if special.unchecked_parts > 0 {
        let parts = several(special.unchecked_parts, "part");
        text.push_str(&format!(" The bytes of {parts} of coded bodies could not be compared."));
    }
    if special.unchecked_lengths > 0 {
        let heads = several(special.unchecked_lengths, "response");
        text.push_str(&format!(" The length in gzip that {heads} to HEAD announced could not be compared."));
    }
    if special.unattributed > 0 {
        let responses = several(special.unattributed, "response");
        text.push_str(&format!(
            " This target drops or changes X-Assay in requests, or fetches on its own, so {responses} did not show for which request they had been \
             fetched: whether Vary allowed them is not known, and joined fetches and validations look like misses."
        ));
    }
    text.push_str(&kept_after_post(total));
    if special.faults_omitted > 0 {
        let faults = several(special.faults_omitted, "fault");
        text.push_str(&format!(" Without X-Assay, origins did not inject {faults} of the workload."));
    }
    text.push_str(&changed_fields(total));
    if special.unconfirmed_hits > 0 {
        let hits = several(special.unconfirmed_hits, "hit");
        text.push_str(&format!(
            " {} needed a validation (the Expires had passed, or Vary is *); this target does not show whether an origin confirmed them.",
            capital(&hits)
        ));
    }
    text
}

/// How many hits a POST or PUT should have prevented; empty: none.
fn kept_after_post(total: &Figures) -> String {
    match total.special.robots.kept_after_post {
        0 => String::new(),
        kept => format!(
            " {} had been stored before a POST or PUT to the same URL succeeded: a cache that it passes drops what it has then, or \
             has it confirmed (RFC 9111, 4.4).",
            several(kept, "hit")
        ),
    }
}

/// How often the target changed what origins tell caches; empty: never.
fn changed_fields(total: &Figures) -> String {
    if total.changed_fields.is_empty() {
        return String::new();
    }
    let change = |(field, responses): (&String, &u64)| format!("{field} in {}", count(*responses));
    let changes: Vec<String> = total.changed_fields.iter().map(change).collect();
    format!(
        " This target changes what origins tell caches: of {} compared, {}.",
        several(total.special.robots.compared_fields, "response"),
        series(&changes)
    )
}

/// Explanation of a partial run.
pub(crate) fn partial(summary: &Summary) -> &'static str {
    if summary.missing.iter().any(Missing::is_loss) {
        "parts of the run directory are missing or damaged (the warnings name them). Numbers that need them are left out, or too small."
    } else if summary.unfinished {
        "unfinished: the run was killed, or still goes on. This is what was measured up to its last whole second."
    } else {
        "the run ended before its schedule did. The numbers are right for what ran, and say nothing about the rest."
    }
}

/// A remark as a sentence: a capital at its start, a stop at its end.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let stop = if text.is_empty() || text.ends_with(['.', '!', '?', ':']) { "" } else { "." };
    format!("{}{stop}", capital(text))
}

/// With a capital at its start.
pub(crate) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return String::new() };
    format!("{}{}", first.to_uppercase(), characters.as_str())
}

/// TLS handshakes in a sentence; none: TLS was not used.
pub(crate) fn tls(total: &Figures) -> Option<String> {
    let (full, resumed) = (total.counts.tls_full, total.counts.tls_resumed);
    if full + resumed == 0 {
        return None;
    }
    let spoken = total.by_tls.iter().map(|(agreed, handshakes)| format!("{agreed} ({})", count(*handshakes)));
    let time = |ms: Option<f64>| ms.map_or_else(|| "not known".to_owned(), crate::format::time_ms);
    let handshake = &total.handshake_ms;
    Some(format!(
        "{} handshakes, {} of them resumed; p50 {}, p99 {}; {}",
        count(full + resumed),
        count(resumed),
        time(handshake.p50),
        time(handshake.p99),
        spoken.collect::<Vec<_>>().join(", ")
    ))
}

/// Warnings beyond those that the run itself recorded.
pub(crate) fn warnings(summary: &Summary) -> Vec<String> {
    let mut warnings = Vec::new();
    let total = &summary.total;
    warnings.extend(far_from_ideal(summary));
    if total.origins.counts.refused > 0 {
        warnings.push(format!(
            "The origins got {} that {} not for them or not HTTP: see the logs of the target (proxy/ has those of one that \
             Assay started).",
            match total.origins.counts.refused {
                1 => "1 request".to_owned(),
                refused => format!("{} requests", count(refused)),
            },
            if total.origins.counts.refused == 1 { "was" } else { "were" }
        ));
    }
    warnings
}

/// One warning for all phases that are far below ideal, one for those far above.
fn far_from_ideal(summary: &Summary) -> Vec<String> {
    let (mut below, mut above) = (Vec::new(), Vec::new());
    for phase in &summary.phases {
        let ratio = &phase.figures.dhr;
        let (Some(ideal), Some(measured)) = (ratio.ideal, ratio.measured) else { continue };
        let gap = ideal - measured;
        if phase.figures.counts.basic >= ENOUGH && gap.abs() > IDEAL_GAP && !is_direct(summary) {
            let side = if gap > 0.0 { &mut below } else { &mut above };
            side.push(format!(
                "{} ({} % of {} %)",
                phase.name,
                percent(Some(measured)),
                percent(Some(ideal))
            ));
        }
    }
    let evicted = summary.counters.get("evictions").copied().unwrap_or(0.0);
    let declared = match summary.target.notes.as_slice() {
        _ if evicted > 0.0 => "its cache was full, and threw out what was requested again.",
        [] => "its description declares nothing that explains this.",
        _ => "what its description declares is under Notes.",
    };
    let say = |phases: Vec<String>, side: &str| {
        let these = if phases.len() == 1 { "phase" } else { "phases" };
        let points = IDEAL_GAP * 100.0;
        let list = phases.join(", ");
        format!("The hit ratio is more than {points:.0} points {side} ideal in {these} {list}; {declared}")
    };
    let mut warnings = Vec::new();
    if !below.is_empty() {
        warnings.push(say(below, "below"));
    }
    if !above.is_empty() {
        warnings.push(say(above, "above"));
    }
    warnings
}

/// Facts that explain the numbers without being wrong.
pub(crate) fn notes(info: &RunInfo) -> Vec<String> {
    let mut notes = Vec::new();
    if rehearsed(info.workload.scale).is_some() {
        notes.push(
            "A rehearsal scales durations and volumes of the schedule; rates, sizes and probabilities stay."
                .to_owned(),
        );
    }
    if info.workload.private_as_public {
        notes.push("Private interest was treated as public.".to_owned());
    }
    notes.extend(info.bed.iter().flat_map(crate::network::sentences));
    notes.extend(info.target.notes.iter().cloned());
    notes
}

/// Size of the working set; none: the run requested nothing.
pub(crate) fn working_set(summary: &Summary) -> Option<String> {
    let counts = &summary.total.counts;
    if counts.working_set == 0 {
        return None;
    }
    let mut text = format!("{} objects, {}", count(counts.working_set), bytes(counts.working_set_bytes));
    if let Some(planned) = &summary.workload_info.working_set {
        let frozen = match planned.frozen_ms {
            Some(frozen_ms) => format!("frozen after {}", duration_s(frozen_ms as f64 / 1000.0)),
            None => "never frozen".to_owned(),
        };
        text.push_str(&format!(" (planned: {}, {}, {frozen})", count(planned.objects), bytes(planned.bytes)));
    }
    Some(text)
}

pub(crate) fn resource_lines(figures: &Figures) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(proxy) = figures.resources.get("proxy") {
        if let (Some(user), Some(system)) = (proxy.user_cores, proxy.system_cores) {
            let switches = match (proxy.voluntary_switches_per_s, proxy.involuntary_switches_per_s) {
                (Some(waited), Some(taken)) => {
                    format!("; {} waits/s, preempted {} times/s", number(waited), number(taken))
                }
                _ => String::new(),
            };
            let text = format!("{} cores user, {} cores system{switches}", number(user), number(system));
            lines.push(("proxy CPU", text));
        }
        let mut memory = vec![format!("{} resident at most", bytes(proxy.rss_peak_bytes))];
        memory.extend(proxy.pss_peak_bytes.map(|pss| format!("{} proportional set size (PSS)", bytes(pss))));
        memory.extend(proxy.cache_peak_bytes.map(|cache| format!("{} page cache of its own", bytes(cache))));
        lines.push(("proxy memory", memory.join(", ")));
    }
    if let Some(disk) = &figures.disk {
        let mut text = format!(
            "{}: {} MB/s read, {} MB/s written, {} requests in it on average",
            disk.device,
            number(disk.read_mb_s),
            number(disk.written_mb_s),
            number(disk.queue)
        );
        if let Some(seeks) = &disk.seeks {
            text.push_str(&format!(
                "; {} % of {} requests in sequence, half of the seeks and stays up to {} MB",
                percent(Some(seeks.sequential_share)),
                count(seeks.requests),
                opt_number(seeks.p50_mb)
            ));
        }
        lines.push(("disk", text));
    }
    lines
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_verdict_claims_no_more_than_was_checked() {
        let counts =
            |counts: &[(&str, u64)]| counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let mut total = Figures {
            by_status: counts(&[("200", 90), ("206", 5), ("304", 20), ("401", 3)]),
            by_method: counts(&[("GET", 108), ("HEAD", 10)]),
            ..Figures::default()
        };
        let all = checked(&total);
        assert!(all.contains(" of 85 responses ") && all.contains("fresh and allowed to be a hit"), "{all}");
        let special = &mut total.special.robots;
        (special.unattributed, special.unchecked_lengths, special.unchecked_parts) = (7, 2, 4);
        (special.broken_off, special.broken_off_by_origin) = (10, 20);
        let less = checked(&total);
        assert!(!less.contains("allowed to be a hit"), "{less}");
        for part in [" of 51 responses ", "so 7 responses ", "2 responses to HEAD", "4 parts"] {
            assert!(less.contains(part), "{part}: {less}");
        }
    }

    #[test]
    fn remarks_become_sentences() {
        assert_eq!(sentence("the cache was never full"), "The cache was never full.");
        assert_eq!(sentence("Fine."), "Fine.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn a_rehearsal_is_named_by_its_length() {
        assert_eq!(rehearsed(Some(0.6)).unwrap(), "rehearsed at 60.0 % of its length");
        assert_eq!(rehearsed(Some(1.0 / 540.0)).unwrap(), "rehearsed at 1/540 of its length");
        assert_eq!(rehearsed(Some(2.0)).unwrap(), "stretched to 2.00 times its length");
        assert_eq!(rehearsed(Some(1.0)), None);
        assert_eq!(rehearsed(None), None);
    }
}
