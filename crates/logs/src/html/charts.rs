//! Charts of the page, drawn here: they need no script.

use std::fmt::Write as _;

use minijinja::Value;
use serde::Serialize;

use crate::document::{Document, Figures, Response, Step};
use crate::terminal::{count, date, ms};

const WIDTH: f64 = 1100.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 26.0;
const TOP: f64 = 10.0;

#[derive(Serialize)]
pub(super) struct Chart {
    title: &'static str,
    about: &'static str,
    legend: Vec<Legend>,
    /// Made of numbers and words of our own only.
    svg: Value,
}

#[derive(Serialize)]
struct Legend {
    name: String,
    colour: &'static str,
}

/// Name, colour, and how many requests of some figures are of that part.
type Part<'a> = (&'static str, &'static str, &'a dyn Fn(&Figures) -> u64);
/// Name, colour, and which of the times it is.
type Percentile = (&'static str, &'static str, fn(&Response) -> f64);

const COLOURS: [&str; 8] = ["c-hit", "c-s0", "c-s3", "c-miss", "c-s5", "c-error", "c-s7", "c-s6"];

/// Requests by outcome, and response times, over time.
pub(super) fn over_time(document: &Document) -> Vec<Chart> {
    let Some(every_ms) = document.every_ms.filter(|_| document.time.len() > 2) else { return Vec::new() };
    let mut charts = vec![requests(document, every_ms)];
    charts.extend(times(document, every_ms));
    charts
}

fn requests(document: &Document, every_ms: f64) -> Chart {
    let fetched = |f: &Figures| f.requests - f.local_hits - f.sibling_hits - f.parent_hits - f.errors;
    let parts: [Part<'_>; 5] = [
        ("local hits", "c-hit", &|f| f.local_hits),
        ("sibling hits", "c-s0", &|f| f.sibling_hits),
        ("parent hits", "c-s3", &|f| f.parent_hits),
        ("everything else", "c-miss", &fetched),
        ("errors", "c-error", &|f| f.errors),
    ];
    let steps = &document.time;
    let seconds = every_ms / 1e3;
    let rate = |requests: u64| requests as f64 / seconds;
    let most = nice(steps.iter().map(|step| rate(step.figures.requests)).fold(0.0, f64::max));
    let mut svg = begin(&|share| count((most * share).round() as u64), &time_labels(steps, every_ms));
    let slots = slots(steps, every_ms);
    let width = ((WIDTH - LEFT) / slots as f64).max(0.5);
    for step in steps {
        let x = LEFT + slot(steps, step, every_ms) * width;
        let mut y = HEIGHT - BOTTOM;
        for (_, colour, of) in &parts {
            let height = rate(of(&step.figures)) / most * (HEIGHT - BOTTOM - TOP);
            if height > 0.0 {
                y -= height;
                let _ = write!(
                    svg,
                    r#"<rect x="{x:.2}" y="{y:.2}" width="{:.2}" height="{height:.2}" fill="var(--{colour})"/>"#,
                    (width * 0.92).max(0.4)
                );
            }
        }
    }
    let seen = parts.iter().filter(|(_, _, of)| of(&document.all) > 0);
    Chart {
        title: "Requests per second",
        about: "By what became of them, one on top of the other.",
        legend: seen.map(|(name, colour, _)| Legend { name: (*name).into(), colour }).collect(),
        svg: Value::from_safe_string(svg + "</svg>"),
    }
}

fn times(document: &Document, every_ms: f64) -> Option<Chart> {
    document.all.response?;
    let steps = &document.time;
    let lines: [Percentile; 3] =
        [("median", "c-p50", |r| r.p50_ms), ("95 %", "c-p90", |r| r.p95_ms), ("99 %", "c-p99", |r| r.p99_ms)];
    let all = steps.iter().filter_map(|step| step.figures.response.as_ref());
    let most = nice(all.map(|response| response.p99_ms).fold(0.0, f64::max));
    let mut svg = begin(&|share| ms(most * share), &time_labels(steps, every_ms));
    let width = (WIDTH - LEFT) / slots(steps, every_ms) as f64;
    for (_, colour, of) in &lines {
        let mut path = String::new();
        for step in steps {
            let Some(response) = &step.figures.response else { continue };
            let x = LEFT + (slot(steps, step, every_ms) + 0.5) * width;
            let y = HEIGHT - BOTTOM - of(response) / most * (HEIGHT - BOTTOM - TOP);
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
        }
        let _ = write!(svg, r#"<path d="{path}" fill="none" stroke="var(--{colour})" stroke-width="1.6"/>"#);
    }
    Some(Chart {
        title: "Response time",
        about: "Percentiles of each step.",
        legend: lines.iter().map(|(name, colour, _)| Legend { name: (*name).into(), colour }).collect(),
        svg: Value::from_safe_string(svg + "</svg>"),
    })
}

/// The share of requests of each class that took no longer than a time.
pub(super) fn response(document: &Document) -> Option<Chart> {
    let classes: Vec<_> = document.by_class.iter().filter(|class| !class.distribution.is_empty()).collect();
    let longest =
        classes.iter().filter_map(|class| class.distribution.last()).map(|(ms, _)| *ms).fold(0.0, f64::max);
    if classes.is_empty() || longest <= 0.0 {
        return None;
    }
    // From 10 µs to the longest, in decades.
    let shortest: f64 = 0.01;
    let decades = (longest / shortest).log10().ceil().max(1.0);
    let at = |ms: f64| LEFT + (ms.max(shortest) / shortest).log10() / decades * (WIDTH - LEFT - 10.0);
    let labels: Vec<(f64, String)> = (0..=decades as i32)
        .map(|decade| shortest * 10f64.powi(decade))
        .map(|value| (at(value), ms(value)))
        .collect();
    let mut svg = begin(&|share| format!("{:.0} %", share * 100.0), &labels);
    let mut legend = Vec::new();
    for (class, colour) in classes.iter().zip(COLOURS.iter().cycle()) {
        let total: u64 = class.distribution.iter().map(|(_, count)| count).sum();
        let mut below = 0;
        let mut path = String::new();
        for (ms, count) in &class.distribution {
            let height = |below: u64| HEIGHT - BOTTOM - below as f64 / total as f64 * (HEIGHT - BOTTOM - TOP);
            let start = if path.is_empty() { "M" } else { "L" };
            let _ = write!(path, "{start}{:.1} {:.1}", at(*ms), height(below));
            below += count;
            let _ = write!(path, "L{:.1} {:.1}", at(*ms), height(below));
        }
        let _ = write!(svg, r#"<path d="{path}" fill="none" stroke="var(--{colour})" stroke-width="1.6"/>"#);
        legend.push(Legend { name: class.name.clone(), colour });
    }
    Some(Chart {
        title: "Response time by outcome",
        about: "The share of requests that took no longer than this; the time is logarithmic.",
        legend,
        svg: Value::from_safe_string(svg + "</svg>"),
    })
}

/// The frame: four lines across with their values, and labels below.
fn begin(value: &dyn Fn(f64) -> String, below: &[(f64, String)]) -> String {
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">"#);
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1}" y2="{y:.1}"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
            LEFT - 8.0,
            y + 4.0,
            value(share)
        );
    }
    for (x, text) in below {
        let _ = write!(svg, r#"<text x="{x:.1}" y="{}" text-anchor="middle">{text}</text>"#, HEIGHT - 8.0);
    }
    svg
}

/// Where a step stands, counted in steps from the first.
fn slot(steps: &[Step], step: &Step, every_ms: f64) -> f64 {
    let first = steps.first().map_or(0.0, |first| first.from_unix_ms);
    (step.from_unix_ms - first) / every_ms
}

fn slots(steps: &[Step], every_ms: f64) -> usize {
    steps.last().map_or(1, |last| slot(steps, last, every_ms) as usize + 1)
}

fn time_labels(steps: &[Step], every_ms: f64) -> Vec<(f64, String)> {
    let (Some(first), slots) = (steps.first(), slots(steps, every_ms)) else { return Vec::new() };
    let labels = 6;
    (0..labels)
        .map(|number| (number as f64 + 0.5) / labels as f64)
        .map(|share| {
            let at = first.from_unix_ms + share * slots as f64 * every_ms;
            let text = date(at);
            // Within two days, the time of day is enough.
            let short = if slots as f64 * every_ms < 172_800e3 { &text[11..] } else { &text[..16] };
            (LEFT + share * (WIDTH - LEFT), short.to_owned())
        })
        .collect()
}

/// The next 1, 2, 4 or 8 of a power of ten.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.max(1e-3).log10().floor());
    [1.0, 2.0, 4.0, 8.0]
        .into_iter()
        .map(|step| step * power)
        .find(|step| *step >= value)
        .unwrap_or(10.0 * power)
}
