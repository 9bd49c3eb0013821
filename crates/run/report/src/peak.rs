//! Result of a search for the highest rate: in a terminal ([`terminal_text`]) and as a page ([`sheet`]).

use assay_record::peak::{Between, Check, Peak, Step, StepOutcome};
use assay_record::sheet::{Plot, PlotKind, PlotLine, Row, Section, Sheet, Table, Tile};

use crate::format::{self, number, percent};

const OUTCOMES: [(StepOutcome, &str, &str); 3] = [
    (StepOutcome::Kept, "kept", "hit"),
    (StepOutcome::Broken, "broken", "error"),
    (StepOutcome::Undecided, "undecided", "offered"),
];
/// Columns of every step; those of the promise, the result of the step and its reason follow.
const COLUMNS: [&str; 6] = ["offered/s", "completed/s", "errors %", "mean", "median", "99 %"];
/// Rates within this ratio are the same, but for chance.
const SAME: f64 = 1.005;

/// Steps by rate; those of one rate in the order in which they were tried.
fn by_rate(peak: &Peak) -> Vec<&Step> {
    let mut steps: Vec<&Step> = peak.steps.iter().collect();
    steps.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    steps
}

fn headline(peak: &Peak) -> String {
    let promise = peak.promise.join(", ");
    match (peak.peak_per_s, peak.broken_per_s) {
        (Some(kept), Some(broken)) => format!(
            "{} keeps {promise} up to {} requests/s; at {} it does not",
            peak.target,
            number(kept),
            number(broken)
        ),
        (Some(kept), None) => {
            let above = match highest_tried(peak).filter(|tried| *tried > kept * SAME) {
                None => ", the highest that was tried".to_owned(),
                Some(tried) => format!("; whether it does at more, up to {}, is undecided", number(tried)),
            };
            format!("{} keeps {promise} at {} requests/s{above}", peak.target, number(kept))
        }
        (None, _) if peak.steps.is_empty() => {
            format!("whether {} keeps {promise} is not known: no rate was tried", peak.target)
        }
        (None, _) => format!("{} does not keep {promise} at any rate that was tried", peak.target),
    }
}

fn highest_tried(peak: &Peak) -> Option<f64> {
    peak.steps.iter().map(|step| step.offered_per_s).reduce(f64::max)
}

fn certainty(peak: &Peak) -> String {
    let range = peak.low_per_s.zip(peak.high_per_s).map(|(low, high)| {
        format!("the limit lies between {} and {} with a probability of 95 %", number(low), number(high))
    });
    let range = if peak.is_own_limit { None } else { range };
    match (range, peak.is_confirmed) {
        _ if peak.is_own_limit => "how much more is not known".into(),
        (Some(range), true) => range,
        (Some(range), false) => format!("{range}, which is not close enough: take it as a first reading"),
        (None, _) => "not confirmed: take it as a first reading".into(),
    }
}

fn cells(step: &Step) -> Vec<String> {
    let ms = |value: Option<f64>| value.map_or_else(|| format::NOTHING.to_owned(), format::time_ms);
    vec![
        number(step.offered_per_s),
        number(step.completed_per_s),
        percent(Some(step.error_share)),
        ms(step.mean_ms),
        ms(step.p50_ms),
        ms(step.p99_ms),
    ]
}

/// Result of a part of the promise in a step.
fn part(check: Option<&Check>) -> String {
    let Some(check) = check else { return format::NOTHING.to_owned() };
    let mark = match check.outcome {
        StepOutcome::Kept => "✓",
        StepOutcome::Broken => "✗",
        StepOutcome::Undecided => "?",
    };
    format!("{} {mark}", check.seen)
}

/// A step as the table of all shows it, without why.
fn row(peak: &Peak, step: &Step) -> Vec<String> {
    let parts = (0..peak.promise.len()).map(|index| part(step.checks.get(index)));
    cells(step).into_iter().chain(parts).chain([step.outcome.name().to_owned()]).collect()
}

fn heads(peak: &Peak) -> Vec<String> {
    let parts = peak.promise.iter().cloned();
    COLUMNS.map(str::to_owned).into_iter().chain(parts).chain(["step".to_owned()]).collect()
}

/// The limit did not stay where it was.
fn shift_text(peak: &Peak) -> Option<String> {
    let words = |range: Between| match (range.low, range.high) {
        (Some(low), Some(high)) => format!("between {} and {}", number(low), number(high)),
        (Some(low), None) => format!("above {}", number(low)),
        (None, Some(high)) => format!("below {}", number(high)),
        (None, None) => format::NOTHING.to_owned(),
    };
    peak.shift.map(|shift| {
        format!(
            "The limit moved while it was looked for: {} by the first {} steps, {} by the rest, and what is told here is of the rest. \
             The target's state or the machine's speed has changed; look again, on a machine with nothing else to do.",
            words(shift.early),
            shift.results_before,
            words(shift.late)
        )
    })
}

/// The result for a terminal.
pub fn terminal_text(peak: &Peak) -> String {
    let mut text = format!("{}.\n{}; {}.\n", headline(peak), peak.ended, certainty(peak));
    if let Some(shift_text) = shift_text(peak) {
        text += &format!("{shift_text}\n");
    }
    if !peak.suspects.is_empty() {
        text += "\nUsed up first\n";
        for suspect in &peak.suspects {
            let mark = if suspect.is_full { '*' } else { ' ' };
            text += &format!("  {mark} {:<12} {}\n", suspect.name, suspect.seen);
        }
    }
    text += "\nSaturation curve\n";
    let rows: Vec<Vec<String>> =
        std::iter::once(heads(peak)).chain(by_rate(peak).into_iter().map(|step| row(peak, step))).collect();
    let letters = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
    let width = |column| rows.iter().map(|row| letters(row, column)).max().unwrap_or(0) + 2;
    let widths: Vec<usize> = (0..heads(peak).len()).map(width).collect();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            text += &format!("{cell:>width$}");
        }
        text.push('\n');
    }
    text
}

/// The result for a page.
pub fn sheet(peak: &Peak) -> Sheet {
    let rate = |rate: Option<f64>| {
        rate.map_or_else(|| format::NOTHING.to_owned(), |rate| format!("{}/s", number(rate)))
    };
    let used = peak.suspects.first();
    let tiles = vec![
        Tile { title: "Highest rate".into(), value: rate(peak.peak_per_s), detail: certainty(peak) },
        Tile {
            title: "Broken at".into(),
            value: rate(peak.broken_per_s),
            detail: "the lowest rate above that".into(),
        },
        Tile {
            title: "Used up first".into(),
            value: used.map_or_else(|| format::NOTHING.to_owned(), |suspect| suspect.name.clone()),
            detail: used.map(|suspect| suspect.seen.clone()).unwrap_or_default(),
        },
    ];
    Sheet {
        title: headline(peak),
        eyebrow: format!("{} → {} · {} steps", peak.workload, peak.target, peak.steps.len()),
        lead: [
            Some(format!("How it ended: {}.", peak.ended)),
            shift_text(peak),
            Some(format!(
                "The cache was warmed for {}, then each rate was held for {} after it had settled (longer near the limit), on one \
                 stream of requests.",
                format::duration_s(peak.warm_s),
                format::duration_s(peak.step_s)
            )),
        ]
        .into_iter()
        .flatten()
        .collect(),
        tiles,
        sections: vec![curve(peak), suspects(peak), steps(peak)],
        time: None,
        footer: "this page is one file and loads nothing from the network".into(),
    }
}

fn curve(peak: &Peak) -> Section {
    let points = |id, title: &str, about: &str, unit: &str, log, lines| Plot {
        id,
        title: title.into(),
        about: about.into(),
        unit: unit.into(),
        kind: PlotKind::Points,
        log,
        x_label: "requests offered per second".into(),
        lines,
    };
    let line = |name: &str, role, steps: &[&Step], of: &dyn Fn(&Step) -> Option<f64>| PlotLine {
        name: name.into(),
        role,
        x: steps.iter().map(|step| step.offered_per_s).collect(),
        values: steps.iter().map(|step| of(step)).collect(),
        ..PlotLine::default()
    };
    let all = by_rate(peak);
    let achieved = OUTCOMES.iter().filter_map(|(outcome, name, role)| {
        let steps: Vec<&Step> = all.iter().filter(|step| step.outcome == *outcome).copied().collect();
        (!steps.is_empty()).then(|| line(name, role, &steps, &|step| Some(step.completed_per_s)))
    });
    let times = vec![
        line("mean", "all", &all, &|step| step.mean_ms),
        line("median", "p50", &all, &|step| step.p50_ms),
        line("99 %", "p99", &all, &|step| step.p99_ms),
    ];
    let errors = vec![line("errors", "error", &all, &|step| Some(step.error_share * 100.0))];
    let parts = peak.promise.iter().enumerate().map(|(index, text)| {
        let (unit, lines) = promised(&all, index);
        let about = "What was promised, at each rate that was tried, and its limit. Where a value lies, whatever Assay and this \
                     machine did, is in the table of steps.";
        Plot { log: unit == "ms", ..points(PROMISED[index.min(PROMISED.len() - 1)], text, about, unit, false, lines) }
    });
    Section {
        id: "curve",
        title: "Saturation curve".into(),
        plots: parts.take(PROMISED.len()).chain([
            points(
                "achieved",
                "Requests offered and responses",
                "A target that keeps up responds to every request; beyond its limit, to fewer.",
                "responses/s",
                false,
                achieved.collect(),
            ),
            points(
                "response",
                "Response time by load",
                "From when a request was due to the last byte of its response, at each rate that was tried.",
                "ms",
                true,
                times,
            ),
            points("errors", "Errors by load", "Of all requests that ended.", "%", false, errors),
        ])
        .collect(),
        ..Section::default()
    }
}

/// Names of the charts of the parts of a promise; hardly anybody promises more.
const PROMISED: [&str; 6] = ["promise-1", "promise-2", "promise-3", "promise-4", "promise-5", "promise-6"];

/// A part of the promise by load: its unit, its values by what became of them, and its limit.
fn promised(steps: &[&Step], index: usize) -> (&'static str, Vec<PlotLine>) {
    let of = |step: &Step| step.checks.get(index).cloned();
    let unit = steps.iter().find_map(|step| of(step)).map(|check| check.unit).unwrap_or_default();
    let (unit, factor) = match unit.as_str() {
        "ms" => ("ms", 1.0),
        "ratio" => ("%", 100.0),
        "per_second" => ("/s", 1.0),
        _ => ("requests", 1.0),
    };
    let line = |name: &str, role, value: &dyn Fn(&Check) -> Option<f64>| PlotLine {
        name: name.to_owned(),
        role,
        x: steps.iter().map(|step| step.offered_per_s).collect(),
        values: steps
            .iter()
            .map(|step| of(step).and_then(|check| value(&check)).map(|value| value * factor))
            .collect(),
        ..PlotLine::default()
    };
    let outcomes = OUTCOMES.iter().map(|(outcome, name, role)| {
        line(name, role, &|check| check.value.filter(|_| check.outcome == *outcome))
    });
    let lines = outcomes.chain([line("limit", "all", &|check| Some(check.limit))]);
    (unit, lines.filter(|line| line.values.iter().any(Option::is_some)).collect())
}

fn suspects(peak: &Peak) -> Section {
    let rows = peak.suspects.iter().map(|suspect| Row {
        name: suspect.name.clone(),
        share: suspect.used.map(|used| (used * 100.0).clamp(0.0, 100.0).round()),
        cells: vec![
            percent(suspect.used),
            if suspect.is_full { "yes" } else { "no" }.into(),
            suspect.seen.clone(),
        ],
    });
    Section {
        id: "limit",
        title: "What was used up".into(),
        tables: vec![Table {
            title: "At the lowest rate that was not kept".into(),
            about: "The most likely first.".into(),
            first: "what".into(),
            heads: ["used, %", "full", "seen"].map(Into::into).into(),
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}

fn steps(peak: &Peak) -> Section {
    let rows = peak.steps.iter().enumerate().map(|(number, step)| Row {
        name: (number + 1).to_string(),
        share: None,
        cells: row(peak, step).into_iter().chain([step.why.clone()]).collect(),
    });
    Section {
        id: "steps",
        title: "Everything that was tried".into(),
        tables: vec![Table {
            title: "Steps in order".into(),
            about: "✓ kept, ✗ broken, ? undecided: it can have been either, because of what Assay or this machine did. A step \
                    that was undecided was repeated.".into(),
            first: "number".into(),
            heads: heads(peak).into_iter().chain(["why".to_owned()]).collect(),
            rows: rows.collect(),
        }],
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use assay_record::peak::{Shift, Suspect};

    use super::*;

    fn peak() -> Peak {
        let step = |rate: f64, outcome| Step {
            rate_per_s: rate,
            offered_per_s: rate,
            completed_per_s: rate.min(1000.0),
            p99_ms: Some(rate / 40.0),
            checks: vec![Check {
                seen: format!("{} ms", rate / 40.0),
                outcome,
                value: Some(rate / 40.0),
                limit: 50.0,
                unit: "ms".into(),
                ..Check::default()
            }],
            outcome,
            ..Step::default()
        };
        Peak {
            target: "squid".into(),
            promise: vec!["p99 < 50ms".into()],
            peak_per_s: Some(980.0),
            broken_per_s: Some(1003.0),
            low_per_s: Some(970.0),
            high_per_s: Some(999.0),
            is_confirmed: true,
            ended: "it was settled".into(),
            steps: vec![step(2000.0, StepOutcome::Broken), step(980.0, StepOutcome::Kept)],
            suspects: vec![Suspect {
                name: "processor".into(),
                used: Some(0.97),
                is_full: true,
                seen: "used 0.97 of 1".into(),
            }],
            ..Peak::default()
        }
    }

    #[test]
    fn the_words_say_the_rate_how_sure_it_is_and_what_was_used_up() {
        let text = terminal_text(&peak());
        for part in [
            "squid keeps p99 < 50ms up to 980 requests/s",
            "between 970 and 999 with",
            "* processor",
            "24.5 ms",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            terminal_text(&Peak { is_confirmed: false, ..peak() })
                .contains("999 with a probability of 95 %, which is not")
        );
        let none = Peak { peak_per_s: None, low_per_s: None, is_confirmed: false, ..peak() };
        assert!(
            terminal_text(&none).contains("at any rate") && terminal_text(&none).contains("not confirmed")
        );
        let early = Between { low: Some(970.0), high: Some(990.0) };
        let late = Between { low: None, high: Some(920.0) };
        let shift = Some(Shift { results_before: 9, early, late });
        let text = terminal_text(&Peak { shift, ..peak() });
        assert!(text.contains("between 970 and 990 by the first 9 steps, below 920 by"), "{text}");
        assert!(!terminal_text(&peak()).contains("moved"));
        let own =
            terminal_text(&Peak { is_own_limit: true, high_per_s: None, is_confirmed: false, ..peak() });
        assert!(own.contains("how much more is not known") && !own.contains("95 %"), "{own}");
        assert!(terminal_text(&Peak { steps: Vec::new(), ..none }).contains("no rate was tried"));
    }

    #[test]
    fn a_rate_is_the_highest_that_was_tried_only_if_no_higher_one_was() {
        let mut none_broken = Peak { broken_per_s: None, ..peak() };
        let open = terminal_text(&none_broken);
        assert!(
            open.contains("at 980 requests/s; whether it does at more, up to 2,000, is undecided"),
            "{open}"
        );
        none_broken.steps.retain(|step| step.outcome == StepOutcome::Kept);
        assert!(terminal_text(&none_broken).contains("at 980 requests/s, the highest that was tried"));
    }

    #[test]
    fn what_was_promised_is_in_the_tables_and_plotted_with_its_limit() {
        let text = terminal_text(&peak());
        assert!(
            text.contains("p99 < 50ms") && text.contains("24.5 ms ✓") && text.contains("50 ms ✗"),
            "{text}"
        );
        let curve = curve(&peak());
        let plot = &curve.plots[0];
        assert_eq!((plot.id, plot.title.as_str(), plot.unit.as_str()), ("promise-1", "p99 < 50ms", "ms"));
        let lines: Vec<_> = plot.lines.iter().map(|line| (line.name.as_str(), line.values.clone())).collect();
        assert_eq!(
            lines,
            [
                ("kept", vec![Some(24.5), None]),
                ("broken", vec![None, Some(50.0)]),
                ("limit", vec![Some(50.0), Some(50.0)]),
            ]
        );
    }

    #[test]
    fn the_page_has_the_curve_and_every_step() {
        let page = crate::sheet::page(&sheet(&peak())).unwrap();
        for part in
            ["chart-promise-1", "chart-achieved", "chart-response", "used 0.97 of 1", "Steps in order"]
        {
            assert!(page.contains(part), "{part}");
        }
    }
}
