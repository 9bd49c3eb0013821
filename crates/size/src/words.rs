//! What the curves say, in sentences.

use assay_settings::show::{bytes, count, number};

use crate::document::{Curve, Document, Unit};
use crate::policy::Policy;

/// A size of a cache, or of an object.
pub(crate) fn size(value: u64, unit: Unit) -> String {
    match (unit, value) {
        (Unit::Bytes, _) => bytes(value),
        (Unit::Objects, 1) => "1 object".into(),
        (Unit::Objects, _) => format!("{} objects", count(value)),
    }
}

/// A ratio in percent.
pub(crate) fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("?".into(), |ratio| format!("{:.1} %", ratio * 100.0))
}

/// The advice, the most important sentence first.
pub(crate) fn advice(document: &Document) -> Vec<String> {
    let unit = document.input.unit;
    let most = percent(document.infinite.dhr);
    let infinite = match unit {
        Unit::Bytes => format!(
            "An infinite cache serves {most} of the requests and {} of the bytes, and holds {}.",
            percent(document.infinite.bhr),
            bytes(document.input.footprint_bytes)
        ),
        Unit::Objects => {
            format!(
                "An infinite cache serves {most} of the requests, and holds {}.",
                size(document.input.objects, unit)
            )
        }
    };
    let mut advice: Vec<String> = document
        .curves
        .iter()
        .filter(|curve| curve.policy != Policy::Belady)
        .map(|curve| enough(curve, unit))
        .collect();
    advice.push(infinite);
    advice.extend(best(document));
    advice.extend(requested_once(document));
    advice
}

/// Which size of a policy is enough, and what more would bring.
fn enough(curve: &Curve, unit: Unit) -> String {
    let title = curve.policy.title();
    let Some((within, at)) = curve.enough.iter().find_map(|enough| {
        let at = curve.points.iter().find(|point| Some(point.size_bytes) == enough.size_bytes)?;
        Some((enough.within_points, at))
    }) else {
        return format!(
            "No simulated size is enough for {title}: all are more than 5 points below an infinite cache."
        );
    };
    let points = if within == 1.0 { "1 point".into() } else { format!("{within} points") };
    let more = match at.next_gb_points.filter(|points| *points >= 0.05) {
        Some(points) => format!("; each further GB adds {} points up to the next size", number(points)),
        None => String::new(),
    };
    format!(
        "{} is enough for {title}: {} of the requests, at most {points} below an infinite cache{more}.",
        size(at.size_bytes, unit),
        percent(at.figures.dhr)
    )
}

/// The policy that hits most where the first one has most to gain; none: there is only one, or the first is the best.
fn best(document: &Document) -> Option<String> {
    let first = document.curves.first()?;
    let real = || document.curves.iter().filter(|curve| curve.policy != Policy::Belady);
    let gain = |curve: &Curve, at: usize| {
        Some((curve.points.get(at)?.figures.dhr? - first.points.get(at)?.figures.dhr?) * 100.0)
    };
    let gains = real().flat_map(|curve| (0..first.points.len()).map(move |at| (curve, at)));
    let gains = gains.filter_map(|(curve, at)| Some((gain(curve, at)?, curve, at)));
    let (points, curve, at) =
        gains.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(points, ..)| *points >= 0.1)?;
    Some(format!(
        "At {}, {} has {} points more than {}.",
        size(first.points[at].size_bytes, document.input.unit),
        curve.policy.title(),
        number(points),
        first.policy.title()
    ))
}

fn requested_once(document: &Document) -> Option<String> {
    let input = &document.input;
    let share = assay_measurement::ratios::ratio(input.requested_once, input.objects)?;
    (share >= 0.1).then(|| {
        format!(
            "{} of the {} objects are requested once: a cache that stores them never serves them.",
            percent(Some(share)),
            count(input.objects)
        )
    })
}

/// What a reader should know.
pub(crate) fn notes(document: &Document, unordered: u64, of_input: &[String]) -> Vec<String> {
    let input = &document.input;
    let mut notes = of_input.to_vec();
    let mut note = |is_so: bool, text: String| {
        if is_so {
            notes.push(text);
        }
    };
    note(
        input.unit == Unit::Objects,
        "The input has no sizes: caches are measured in objects, and there is no byte hit ratio.".into(),
    );
    note(
        input.malformed > 0,
        format!("Lines or records that could not be read and were left out: {}.", count(input.malformed)),
    );
    note(
        unordered > 0,
        format!(
            "{} requests have a time before that of the request before them; all are taken in the order of the input.",
            count(unordered)
        ),
    );
    note(
        input.size_changes > 0,
        format!(
            "{} requests are for an object whose size has changed: they are misses in every cache.",
            count(input.size_changes)
        ),
    );
    note(
        input.uncachable_requests > 0,
        format!(
            "{} requests may not be served by a cache, and count as misses.",
            count(input.uncachable_requests)
        ),
    );
    note(
        document.curves.iter().any(|curve| curve.policy == Policy::Belady) && input.unit == Unit::Bytes,
        "Belady's MIN is a bound where all objects have the same size; with several sizes, a policy may hit more.".into(),
    );
    notes
}
