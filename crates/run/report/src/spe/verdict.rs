//! Verdict of an evaluation, as text.

use super::document::{Conclusion, Evaluation, TargetDifference, TargetFigures};
use super::views::{interval, signed_ms};
use crate::document::Mood;
use crate::format::{self, count, time_ms};
use assay_measurement::own_error::MOST_WAITING;
use assay_record::spe::Waits;

/// Settings that say how long a response stays fresh that does not say so itself.
const LIFETIMES: [&str; 2] = ["ttl", "max-age"];
/// Replays later than this are worth a look, in microseconds: the pace of a response is told to within a millisecond.
const LATE_US: u64 = 1_000;
/// A proxy that delivers a smaller share of the responses has not done the work that it could save bytes by.
const LEAST_DELIVERED: f64 = 0.95;
/// So many requests may go with one failed fetch before the failures are worth a look.
const MOST_FAILED_PARTS: u64 = 100;

/// Questions, and what the evaluation says on them.
pub(super) fn conclusions(evaluation: &Evaluation) -> Vec<Conclusion> {
    let conclusion = |question: &str, (mood, text)| Conclusion { question: question.to_owned(), mood, text };
    let mut all = Vec::new();
    all.extend(
        not_compared(evaluation)
            .map(|text| conclusion("What could Assay not compare?", (Mood::Doubtful, text))),
    );
    all.push(conclusion("What was evaluated?", (Mood::Plain, subject(evaluation))));
    if evaluation.requests > 0 && evaluation.targets.len() > 1 {
        all.extend(speed(evaluation).map(|text| conclusion("Which was the fastest?", (Mood::Plain, text))));
        all.extend(savings(evaluation).map(|text| conclusion("What did they save?", (Mood::Plain, text))));
        all.push(conclusion("Was anything wrong?", wrong(evaluation)));
    }
    all.push(conclusion("Can it be trusted?", trust(evaluation)));
    all
}

fn proxies(evaluation: &Evaluation) -> impl Iterator<Item = &TargetFigures> {
    evaluation.targets.iter().skip(1)
}

/// Responses that Assay's own limits have left out, which is stated before anything about proxies.
fn not_compared(evaluation: &Evaluation) -> Option<String> {
    let left_out = proxies(evaluation).filter(|target| target.not_kept > 0);
    let named: Vec<String> = left_out
        .map(|target| {
            let of = format::share(target.not_kept, target.requests);
            format!("{} of {} ({of})", count(target.not_kept), target.label)
        })
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "Responses: {}. The Collector had no room to keep what the client got until the proxy requested it; that is Assay's \
             bound, not the proxies' doing, and these responses are in no figure below.",
            named.join(", ")
        )
    })
}

fn subject(evaluation: &Evaluation) -> String {
    let number = evaluation.targets.len().saturating_sub(1);
    let names: Vec<&str> = proxies(evaluation).map(|target| target.label.as_str()).collect();
    let noun = if number == 1 { "proxy" } else { "proxies" };
    let how = match evaluation.when.as_str() {
        "after" => ", each sent the request when the client's response was complete",
        "at_once" => ", each sent the request as soon as it came",
        _ => "",
    };
    let lasted = evaluation.duration_s.map_or_else(String::new, |s| format!(" in {}", format::duration_s(s)));
    format!(
        "{number} {noun} ({}) on the same {} requests{lasted}{how}, as {} proxies.{}",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        count(evaluation.requests),
        if evaluation.forward { "forward" } else { "reverse" },
        lifetimes(proxies(evaluation)).map_or_else(String::new, |text| format!(" {text}"))
    )
}

/// Freshness lifetimes that proxies started by Assay gave to responses without an explicit one: savings depend on
/// them.
fn lifetimes<'a>(proxies: impl Iterator<Item = &'a TargetFigures>) -> Option<String> {
    let named: Vec<(&str, &str)> = proxies
        .filter_map(|target| {
            let lifetime = LIFETIMES.iter().find_map(|name| target.settings.get(*name))?;
            Some((target.label.as_str(), lifetime.as_str()))
        })
        .collect();
    let (_, first) = *named.first()?;
    if named.iter().all(|(_, lifetime)| *lifetime == first) {
        return Some(format!("Responses that do not say when they expire stayed fresh for {first}."));
    }
    let each: Vec<String> = named.iter().map(|(label, lifetime)| format!("{lifetime} in {label}")).collect();
    Some(format!(
        "Not on equal terms: responses that do not say when they expire stayed fresh for {}.",
        each.join(", ")
    ))
}

/// The lowest mean, and whether it can be told from the next.
fn speed(evaluation: &Evaluation) -> Option<String> {
    let mut ranked: Vec<(&TargetFigures, f64)> =
        proxies(evaluation).filter_map(|target| Some((target, target.response_ms.mean?.value))).collect();
    ranked.sort_by(|one, other| one.1.total_cmp(&other.1));
    let (best, mean) = *ranked.first()?;
    let direct = evaluation.targets.first().and_then(|direct| direct.response_ms.mean);
    let against = direct.map_or_else(String::new, |direct| {
        format!(", where the way without a proxy took {}", time_ms(direct.value))
    });
    let mut text = format!("{}, with {} on average{against}", best.label, time_ms(mean));
    if let Some(median) = best.response_ms.p50 {
        text.push_str(&format!("; its median is {}", time_ms(median.value)));
    }
    text.push('.');
    let Some((next, _)) = ranked.get(1) else { return Some(text) };
    if let Some((difference, sign)) = difference_between(evaluation, &best.label, &next.label)
        && let Some(estimate) = difference.mean_ms
    {
        let told =
            matches!((estimate.low, estimate.high), (Some(low), Some(high)) if low > 0.0 || high < 0.0);
        let lead = estimate.value * sign;
        text.push_str(&match (estimate.low.is_some(), told) {
            (true, true) => format!(
                " Request by request it leads {} by {} ms {}.",
                next.label,
                format::number(lead.abs()),
                interval(&super::document::IntervalEstimate {
                    value: lead,
                    low: estimate.low.zip(estimate.high).map(|(low, high)| if sign > 0.0 {
                        low
                    } else {
                        -high
                    }),
                    high: estimate.low.zip(estimate.high).map(|(low, high)| if sign > 0.0 {
                        high
                    } else {
                        -low
                    }),
                })
            ),
            (true, false) => format!(
                " From {} it cannot be told: the difference by request is {}, and its interval holds 0.",
                next.label,
                signed_ms(Some(&estimate))
            ),
            (false, _) => " Too few requests were seen to tell that from chance.".to_owned(),
        });
    }
    Some(text)
}

/// The comparison of two targets, and the sign that makes it positive when the second is slower.
fn difference_between<'a>(
    evaluation: &'a Evaluation,
    one: &str,
    other: &str,
) -> Option<(&'a TargetDifference, f64)> {
    evaluation.differences.iter().find_map(|difference| {
        if difference.base == one && difference.target == other {
            Some((difference, 1.0))
        } else if difference.base == other && difference.target == one {
            Some((difference, -1.0))
        } else {
            None
        }
    })
}

fn savings(evaluation: &Evaluation) -> Option<String> {
    let (whole, scant): (Vec<_>, Vec<_>) = proxies(evaluation)
        .filter(|target| target.bandwidth_saved.is_some())
        .partition(|target| !is_scant(target));
    let mut text = Vec::new();
    text.extend(savings_of(&whole, "bytes", |target| target.bandwidth_saved));
    text.extend(savings_of(&whole, "requests", |target| target.requests_saved));
    if !scant.is_empty() {
        let delivered = |target: &&TargetFigures| target.delivered_ratio.map(|share| share.value);
        let named = scant.iter().map(|target| {
            format!("{} ({} % of the responses)", target.label, format::percent(delivered(target)))
        });
        let named: Vec<String> = named.collect();
        text.push(format!(
            "Responses that do not come save nothing: {} delivered too few to tell.",
            named.join(", ")
        ));
    }
    (!text.is_empty()).then(|| text.join(" "))
}

/// Savings of targets, the largest first: bytes or requests.
fn savings_of(
    targets: &[&TargetFigures],
    what: &str,
    share: impl Fn(&TargetFigures) -> Option<f64>,
) -> Option<String> {
    let saved = targets.iter().filter_map(|target| Some((target.label.as_str(), share(target)?)));
    let mut saved: Vec<(&str, f64)> = saved.collect();
    saved.sort_by(|one, other| other.1.total_cmp(&one.1));
    let named = saved.iter().map(|(label, share)| match *share < 0.0 {
        true => format!("{label} fetched {} % more than was requested", format::percent(Some(-share))),
        false => format!("{label} {} %", format::percent(Some(*share))),
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty())
        .then(|| format!("Of the {what} that the way without a proxy takes: {}.", named.join(", ")))
}

/// So few of its responses came that its bytes say nothing of its cache.
fn is_scant(target: &TargetFigures) -> bool {
    target.delivered_ratio.is_some_and(|share| share.value < LEAST_DELIVERED)
}

fn wrong(evaluation: &Evaluation) -> (Mood, String) {
    let mut parts = Vec::new();
    let mut mood = Mood::Good;
    for (index, target) in evaluation.targets.iter().enumerate().skip(1) {
        let mismatches = target.compared
            - (target.matching.map_or(0.0, |share| share.value) * target.compared as f64).round() as u64;
        let missing = target.verdicts.get("NO_RESPONSE").copied().unwrap_or(0);
        let mut said = Vec::new();
        if mismatches > 0 {
            let of = format::share(mismatches, target.compared);
            said.push(format!("{} responses ({of}) were not the Collector's", count(mismatches)));
            mood = Mood::Bad;
        }
        if missing > 0 {
            said.push(format!("{} did not come", count(missing)));
            mood = Mood::Bad;
        }
        if target.dropped > 0 {
            said.push(format!(
                "{} requests were not put to it because too much was waiting",
                count(target.dropped)
            ));
            if mood == Mood::Good {
                mood = Mood::Doubtful;
            }
        }
        let waiting = evaluation.totals.waiting.get(index).copied().unwrap_or(0);
        if waiting > 0 {
            said.push(format!("{} had no response when it ended", count(waiting)));
            mood = match (is_scant(target), mood) {
                (true, _) => Mood::Bad,
                (false, Mood::Good) => Mood::Doubtful,
                (false, mood) => mood,
            };
        }
        if !said.is_empty() {
            parts.push(format!("{}: {}", target.label, said.join(", ")));
        }
    }
    let is_all = proxies(evaluation).all(|target| target.not_kept == 0);
    match parts.is_empty() {
        true if is_all => (mood, "No: every response of every proxy was that of the Collector.".to_owned()),
        true => (mood, "No: every response that could be compared was the Collector's.".to_owned()),
        false => (mood, format!("{}.", parts.join("; "))),
    }
}

fn trust(evaluation: &Evaluation) -> (Mood, String) {
    let mut doubts = Vec::new();
    if evaluation.partial {
        doubts.push("something is missing, see the warnings".to_owned());
    }
    let failed = evaluation.totals.origin_errors;
    if failed.saturating_mul(MOST_FAILED_PARTS) > evaluation.requests {
        doubts.push(format!("{} fetches from origins failed, see the warnings", count(failed)));
    }
    let not_kept: u64 = proxies(evaluation).map(|target| target.not_kept).sum();
    if not_kept > 0 {
        doubts.push(format!("Assay could not compare {} responses, see above", count(not_kept)));
    }
    if evaluation.totals.given_up > 0 {
        let broken = count(evaluation.totals.given_up);
        doubts.push(format!("the Collector itself broke off {broken} responses, see the warnings"));
    }
    doubts.extend(waits(
        &evaluation.totals.waits,
        evaluation.targets.iter().map(|target| target.label.as_str()),
    ));
    let late = evaluation.targets.iter().filter_map(|target| target.replay_late_max_us).max().unwrap_or(0);
    if evaluation.collector.replay && late > LATE_US {
        doubts.push(format!("a replayed chunk was written {} late", time_ms(late as f64 / 1000.0)));
    }
    let effects = evaluation.places.iter().filter_map(|place| Some((place.place, place.effect_ms?)));
    let told = effects.filter(|(_, effect)| {
        effect.low.is_some_and(|low| low > 0.0) || effect.high.is_some_and(|high| high < 0.0)
    });
    let worst = told.max_by(|one, other| one.1.value.abs().total_cmp(&other.1.value.abs()));
    if let Some((place, effect)) = worst {
        doubts.push(format!(
            "being sent the request at place {} alone makes {}",
            u32::from(place) + 1,
            signed_ms(Some(&effect))
        ));
    }
    match doubts.is_empty() {
        true => (Mood::Good, "Nothing speaks against it.".to_owned()),
        false => (Mood::Doubtful, format!("With care: {}.", doubts.join("; "))),
    }
}

/// Processor waits by owner, if they leave response times unknown.
fn waits<'a>(waits: &Waits, labels: impl Iterator<Item = &'a str>) -> Option<String> {
    if waits.share() <= MOST_WAITING {
        return None;
    }
    let targets = labels.zip(&waits.targets_us).filter(|(_, us)| **us > 0);
    let named = std::iter::once(("Assay", &waits.own_us))
        .chain(targets)
        .map(|(whose, us)| format!("{} % {whose}", format::percent(Some(waits.share_of(*us)))));
    Some(format!(
        "response times are not known, since threads waited for a processor for much of the time ({})",
        named.collect::<Vec<_>>().join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_without_processors_is_not_trusted() {
        let said = |own_us, target_us| {
            let waited = Waits { passed_us: 10_000_000, own_us, targets_us: vec![0, target_us] };
            waits(&waited, ["direct", "nginx"].into_iter())
        };
        assert_eq!(said(1_000_000, 1_500_000), None);
        assert!(said(2_600_000, 0).is_some_and(|text| text.ends_with("(26.0 % Assay)")));
        assert!(said(100_000, 4_600_000).is_some_and(|text| text.ends_with("(1.0 % Assay, 46.0 % nginx)")));
    }

    #[test]
    fn proxies_that_keep_silent_responses_for_different_times_are_not_on_equal_terms() {
        let target = |label: &str, setting: Option<(&str, &str)>| TargetFigures {
            label: label.to_owned(),
            settings: setting.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..TargetFigures::default()
        };
        let said = |targets: &[TargetFigures]| lifetimes(targets.iter());
        let (nginx, running) = (target("nginx", Some(("ttl", "1d"))), target("running", None));
        let haproxy = |lifetime| target("haproxy", Some(("max-age", lifetime)));
        assert_eq!(said(std::slice::from_ref(&running)), None);
        assert!(said(&[nginx.clone(), haproxy("1d"), running]).is_some_and(|text| text.ends_with("for 1d.")));
        let differ = said(&[nginx, haproxy("10d")]);
        assert!(differ.is_some_and(|text| text.starts_with("Not on equal terms") && text.contains("10d in haproxy")));
    }
}
