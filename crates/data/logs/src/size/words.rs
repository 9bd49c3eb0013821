//! What the curves say, in sentences.

use assay_base::settings::show::{bytes, count, number, several, verb};
use assay_measurement::ratios::ratio;

use crate::size::cooperation::Cooperation;
use crate::size::document::{
    Curve, ErrorSource, KeyChange, Point, PointMethod, Points, SizeDocument, SizeUnit,
};
use crate::size::input::malformed_line;
use crate::size::numbers::percent;
use crate::size::policy::Policy;
use crate::size::proof::Proof;

const GB: u64 = 1 << 30;
/// Less than so many points of hit ratio are not worth a word.
const LEAST_GAIN_POINTS: f64 = 0.05;

/// A size of a cache, or of an object.
pub(crate) fn size(value: u64, unit: SizeUnit) -> String {
    match (unit, value) {
        (SizeUnit::Bytes, _) => bytes(value),
        (SizeUnit::Objects, _) => several(value, "object"),
    }
}

/// The advice, the most important sentence first.
pub(crate) fn advice(document: &SizeDocument) -> Vec<String> {
    let unit = document.input.unit;
    let most = percent(document.infinite.dhr);
    let in_percent = |ratio: f64| (ratio * 100.0).max(0.0);
    let error = document.infinite_interval.map_or(String::new(), |(low, high)| {
        interval(&Points { points: 0.0, low: Some(in_percent(low)), high: Some(in_percent(high)) })
    });
    let infinite = match unit {
        SizeUnit::Bytes => format!(
            "An infinite cache serves {most} of the requests{error} and {} of the bytes, and holds {}.",
            percent(document.infinite.bhr),
            bytes(document.input.footprint_bytes)
        ),
        SizeUnit::Objects => {
            format!(
                "An infinite cache serves {most} of the requests{error}, and holds {}.",
                size(document.input.objects, unit)
            )
        }
    };
    let mut advice: Vec<String> = document.proof.iter().map(Proof::verdict).collect();
    let enough = document
        .curves
        .iter()
        .filter(|curve| curve.policy.online().is_some())
        .map(|curve| enough(curve, unit));
    advice.extend(document.together.as_ref().map(of_together));
    advice.extend(enough);
    advice.push(infinite);
    advice.extend(best(document));
    advice.extend(most_misses(document));
    advice.extend(suggestions(document));
    advice.extend(collapsible(document));
    advice.extend(requested_once(document));
    advice
}

/// Smallest sufficient size of a policy, and the gain of a larger one.
fn enough(curve: &Curve, unit: SizeUnit) -> String {
    let title = curve.policy.title();
    let Some((enough, at)) = curve.enough.iter().find_map(|enough| {
        let at = curve.points.iter().find(|point| Some(point.size_bytes) == enough.size_bytes)?;
        Some((enough, at))
    }) else {
        return format!(
            "No simulated size is enough for {title}: all are more than 5 points below an infinite cache."
        );
    };
    let below = match enough.below {
        Some(below) if below.points >= LEAST_GAIN_POINTS => {
            format!("{} below an infinite cache{}", points(&below), interval(&below))
        }
        Some(below) => format!("as many as with an infinite cache{}", interval(&below)),
        None => "as far below an infinite cache as is not known".into(),
    };
    let more = more(curve, at, unit).unwrap_or_default();
    let enough_for = format!(
        "{} is enough for {title}: {} of the requests, {below}{more}.",
        size(at.size_bytes, unit),
        percent(at.figures.dhr)
    );
    match enough.sure_size_bytes {
        Some(sure) if Some(sure) != enough.size_bytes => {
            let within = number(enough.within_points);
            let plural = if enough.within_points == 1.0 { "" } else { "s" };
            format!(
                "{enough_for} To be at most {within} point{plural} below with 95 % certainty, take {}.",
                size(sure, unit)
            )
        }
        _ => enough_for,
    }
}

/// A number of points.
fn points(of: &Points) -> String {
    let shown = format!("{:.1}", of.points);
    if shown == "1.0" { "1 point".into() } else { format!("{} points", shown.trim_end_matches(".0")) }
}

/// The interval of a number of points in brackets; nothing, if it is not known or too narrow to see.
fn interval(of: &Points) -> String {
    let (Some(low), Some(high)) = (of.low, of.high) else { return String::new() };
    let digits = if high - low < 0.1 { 2 } else { 1 };
    if high - low < 0.005 {
        return String::new();
    }
    // Not −0.0.
    let shown = |end: f64| format!("{:.digits$}", end + 0.0).replace("-0.0", "0.0");
    format!(" [{}, {}]", shown(low), shown(high))
}

/// Gain of the next size, where it is worth mentioning. Below a GB, the gain for each GB would be that of sizes which
/// were not simulated.
fn more(curve: &Curve, at: &Point, unit: SizeUnit) -> Option<String> {
    if at.size_bytes >= GB {
        let gain = at.next_gb.filter(|gain| gain.points >= LEAST_GAIN_POINTS)?;
        let points = number(gain.points);
        return Some(format!(
            "; each further GB adds {points} points{} up to the next size",
            interval(&gain)
        ));
    }
    let next = curve.points.iter().find(|point| point.size_bytes > at.size_bytes)?;
    let points = (next.figures.dhr? - at.figures.dhr?) * 100.0;
    (points >= LEAST_GAIN_POINTS)
        .then(|| format!("; {} would add {} points", size(next.size_bytes, unit), number(points)))
}

/// The policy that hits most where the first one has most to gain.
fn best(document: &SizeDocument) -> Option<String> {
    let (first, best) = (document.curves.first()?, document.best?);
    Some(format!(
        "At {}, {} has {} points{} more than {}.",
        size(best.size_bytes, document.input.unit),
        best.policy.title(),
        number(best.gained.points),
        interval(&best.gained),
        first.policy.title()
    ))
}

/// Sizes that a sample is too small for.
pub(crate) fn left_out(sizes: &[u64], unit: SizeUnit) -> Option<String> {
    let shown: Vec<String> = sizes.iter().map(|value| size(*value, unit)).collect();
    (!sizes.is_empty()).then(|| {
        format!(
            "Sizes that the sample is too small for were left out: {}. Their part of it cannot hold the larger objects.",
            shown.join(", ")
        )
    })
}

/// Explains intervals, and the sample.
fn errors(document: &SizeDocument) -> Vec<String> {
    let sample = document.sample.as_ref().map(|sample| {
        let reason = if sample.is_forced { ", because there are too many requests to simulate all" } else { "" };
        format!(
            "Simulated was a sample of {} objects with {} requests, {} of all{reason}. Numbers of requests and their bytes are exact, all \
             others estimated.",
            count(sample.objects),
            count(sample.requests),
            share(sample.rate)
        )
    });
    let from = match document.error_from {
        Some(ErrorSource::Sample) => {
            "In brackets: where the figure for all requests is with 95 % certainty, by how much it changes if only half of the sample \
             is simulated."
        }
        Some(ErrorSource::Time) => {
            "In brackets: where the figure is with 95 % certainty for requests of this kind, by how much it differs among 20 stretches \
             of these. A trend makes that wide, such as that of caches which are empty at first: --warm-up leaves the first requests out."
        }
        None => "There are too few requests to say how much chance has to do with the figures.",
    };
    sample.into_iter().chain([from.to_owned()]).collect()
}

/// A share in percent, with two digits that say something.
fn share(of: f64) -> String {
    let percent = of * 100.0;
    let digits = (1.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{percent:.digits$} %")
}

/// Hits of cooperating caches, and their gain.
fn of_together(together: &Cooperation) -> String {
    let served = [("a sibling", together.sibling_dhr), ("a parent", together.parent_dhr)];
    let served = served.into_iter().filter(|(_, ratio)| ratio.is_some_and(|ratio| ratio > 0.0));
    let served: String = served.map(|(who, ratio)| format!(", {} from {who}", percent(ratio))).collect();
    let gained = &together.gained;
    let gain = if gained.points >= 0.0 { "more" } else { "fewer" };
    let size = Points {
        points: gained.points.abs(),
        low: if gained.points < 0.0 { gained.high.map(|high| -high) } else { gained.low },
        high: if gained.points < 0.0 { gained.low.map(|low| -low) } else { gained.high },
    };
    format!(
        "The caches of {} serve {} of the requests with {}{served}: {}{} {gain} than without each other; one cache with the room of all, \
         {}.",
        together.name,
        percent(together.figures.dhr),
        together.policy.title(),
        points(&size),
        interval(&size),
        percent(together.as_one.dhr)
    )
}

/// The size that figures by label are shown for: of the first policy the one that is enough, else the largest.
pub(crate) fn shown_size(document: &SizeDocument) -> Option<usize> {
    let first = document.curves.first()?;
    let enough = first.enough.iter().find_map(|enough| enough.size_bytes);
    let at = enough.and_then(|size| first.points.iter().position(|point| point.size_bytes == size));
    at.or(first.points.len().checked_sub(1))
}

/// Label with the most misses.
fn most_misses(document: &SizeDocument) -> Option<String> {
    let (by, first) = (document.by?, document.curves.first()?);
    let point = first.points.get(shown_size(document)?)?;
    let most = point.by.iter().max_by_key(|share| share.figures.misses)?;
    let misses: u64 = point.by.iter().map(|share| share.figures.misses).sum();
    let requests: u64 = point.by.iter().map(|share| share.figures.requests).sum();
    let part = |own: u64, all: u64| percent(assay_measurement::ratios::ratio(own, all));
    (misses > 0 && point.by.len() > 1).then(|| {
        format!(
            "Of the misses at {} with {}, {} are of {} {}, which has {} of the requests.",
            size(point.size_bytes, document.input.unit),
            first.policy.title(),
            part(most.figures.misses, misses),
            by.title().to_lowercase(),
            most.name,
            part(most.figures.requests, requests)
        )
    })
}

/// Gain by collapsing concurrent requests.
fn collapsible(document: &SizeDocument) -> Option<String> {
    let infinite = &document.infinite;
    let share = assay_measurement::ratios::ratio(infinite.collapsible, infinite.requests)?;
    (infinite.collapsible > 0).then(|| {
        format!(
            "{} ({}) {} while the response to another one for the same object is on its way, even with an infinite cache: hits of a \
             cache that collapses requests, misses of others.",
            several(infinite.collapsible, "request"),
            percent(Some(share)),
            verb(infinite.collapsible, "comes", "come")
        )
    })
}

/// Cost of storing objects that are requested once.
fn requested_once(document: &SizeDocument) -> Option<String> {
    let input = &document.input;
    let share = assay_measurement::ratios::ratio(input.requested_once, input.objects)?;
    let held = match input.unit {
        SizeUnit::Bytes => {
            format!(" ({} of {})", bytes(input.requested_once_bytes), bytes(input.footprint_bytes))
        }
        SizeUnit::Objects => String::new(),
    };
    (share >= 0.1).then(|| {
        format!(
            "{} of the {} objects{held} are requested once: a cache that stores them never serves them. `--admission second` shows what \
             leaving them out costs.",
            percent(Some(share)),
            count(input.objects)
        )
    })
}

/// Number of parameters, fields and cookies that were not examined.
pub(crate) fn unexamined(times: u64) -> String {
    format!(
        "Parameters, fields and cookies beyond the first 64 names of each, or with names that no rule can have, were not examined {} times.",
        count(times)
    )
}

/// Gains by changes of the key, a sentence each.
pub(crate) fn suggestions(document: &SizeDocument) -> Vec<String> {
    let Some(changes) = &document.suggestions else { return Vec::new() };
    if changes.is_empty() {
        return vec![
            "No parameter, no order of parameters and no logged field or cookie costs a tenth of a point of hits.".into(),
        ];
    }
    let requests = document.input.requests;
    changes.iter().map(|change| suggestion(change, requests)).collect()
}

fn suggestion(change: &KeyChange, requests: u64) -> String {
    let points = |hits: u64| number((ratio(hits, requests).unwrap_or(0.0) * 1000.0).round() / 10.0);
    let (rule, gained, lost) = (&change.rule, change.gained_hits, change.lost_hits);
    if change.leaves_out {
        let caution = match (change.is_safe, change.different_length + lost) {
            (_, 0) => "every one has the length of what would be served".to_owned(),
            (true, different) => format!("{} have another length", count(different)),
            (false, different) => format!("but {} have another length, so it may matter", count(different)),
        };
        return format!(
            "--key '{rule}' would gain {} points in a cache without bounds ({}; {caution}).",
            points(gained),
            several(gained, "request")
        );
    }
    if gained > lost {
        let but = if lost > 0 { format!(" and {} fewer hits for it", count(lost)) } else { String::new() };
        return format!(
            "--key '{rule}' would gain {} points in a cache without bounds: {} misses are for an object whose length has changed, but not \
             for requests that are alike in this{but}.",
            points(gained - lost),
            count(gained)
        );
    }
    format!(
        "--key '{rule}' would cost {} points in a cache without bounds ({} lost, {} gained): if your cache has it in its key, leave it \
         out unless the responses differ by it with the same length.",
        points(lost - gained),
        several(lost, "hit"),
        count(gained)
    )
}

pub(crate) fn notes(document: &SizeDocument, unordered: u64, of_input: &[String]) -> Vec<String> {
    let input = &document.input;
    let mut notes = of_input.to_vec();
    notes.extend(errors(document));
    let mut note = |is_so: bool, text: String| {
        if is_so {
            notes.push(text);
        }
    };
    note(
        input.malformed > 0,
        format!("Lines or records that could not be read and were left out: {}.", count(input.malformed)),
    );
    input.malformed_lines.iter().for_each(|line| note(true, malformed_line(line)));
    note(
        unordered > 0,
        format!(
            "{} {} a time before that of the preceding request; all are taken in the order of the input.",
            several(unordered, "request"),
            verb(unordered, "has", "have")
        ),
    );
    note(
        input.size_changes > 0,
        format!(
            "{} {} in every cache, since the size of the object has changed.",
            several(input.size_changes, "request"),
            verb(input.size_changes, "is a miss", "are misses")
        ),
    );
    note(
        input.uncachable_requests > 0,
        format!(
            "{} may not be served by a cache, and {}.",
            several(input.uncachable_requests, "request"),
            verb(input.uncachable_requests, "counts as a miss", "count as misses")
        ),
    );
    if let Some(stored) = document.stored_as.as_ref().filter(|_| input.unit == SizeUnit::Bytes) {
        note(
            true,
            format!(
                "Objects take room as in {}: {} beside the body, in multiples of {}.",
                stored.proxy,
                bytes(stored.overhead_bytes),
                bytes(stored.unit_bytes)
            ),
        );
        note(
            stored.filled_percent < 100,
            format!(
                "It evicts from {} % of its size on: objects take as much more room here as it leaves free.",
                stored.filled_percent
            ),
        );
    }
    note(
        input.uncounted_requests > 0,
        format!(
            "{} {} on the caches and {} in no ratio: no plain GET, or in a phase that is not counted.",
            several(input.uncounted_requests, "request"),
            verb(input.uncounted_requests, "acts", "act"),
            verb(input.uncounted_requests, "is", "are")
        ),
    );
    note(
        document.infinite.validated > 0,
        format!(
            "Objects expire: of the misses of an infinite cache, {} found a copy that the origin confirmed, which takes no body.",
            count(document.infinite.validated)
        ),
    );
    let lru = document.curves.iter().find(|curve| curve.policy == Policy::LRU);
    let is_simulated =
        |curve: &Curve| curve.points.iter().all(|point| point.method == PointMethod::Simulated);
    note(
        lru.is_some_and(is_simulated) && document.infinite.validated > 0,
        "LRU was simulated at each size: one pass for all sizes is exact only where nothing expires.".into(),
    );
    note(
        document.curves.iter().any(|curve| curve.policy == Policy::Belady) && input.unit == SizeUnit::Bytes,
        "Belady's MIN is a bound where all objects have the same size; with several sizes, a policy may hit more.".into(),
    );
    notes
}
