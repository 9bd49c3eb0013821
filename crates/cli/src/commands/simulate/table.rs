//! What does `assay simulate` show on the terminal? A table for each mix and cluster.

use std::fmt::Write;

use assay_simulate::{Experiment, Load};

use super::collect::{Point, baseline};

/// All tables.
pub fn words(experiment: &Experiment, points: &[Point]) -> String {
    let mut text = String::new();
    if !experiment.title.is_empty() {
        line(&mut text, &experiment.title);
    }
    let minutes = experiment.measure_s / 60.0;
    line(
        &mut text,
        &format!(
            "{} × {minutes:.1} simulated minutes each, seed {}; ± is the 95 % interval between repetitions",
            experiment.repetitions, experiment.seed
        ),
    );
    let mut shown: Option<(usize, usize)> = None;
    for point in points {
        let of = (point.cell.mix, point.cell.cluster);
        if shown != Some(of) {
            head(&mut text, experiment, of);
            shown = Some(of);
        }
        row(&mut text, experiment, points, point);
    }
    off(&mut text, experiment, points);
    text
}

fn line(text: &mut String, what: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{what}");
}

fn measured(experiment: &Experiment) -> bool {
    !experiment.references.is_empty()
}

fn head(text: &mut String, experiment: &Experiment, (mix, cluster): (usize, usize)) {
    let (mix, cluster) = (&experiment.mixes[mix].label, &experiment.clusters[cluster].label);
    line(text, &format!("\n{mix}, {cluster}"));
    let first = &experiment.policies[0].label;
    let gain = format!("over {first}");
    let mut titles = format!(
        "{:>10}  {:<12} {:>17} {:>10} {:>8} {:>8} {:>8} {:>7}",
        "load", "policy", "answers/s", gain, "p50 ms", "p95 ms", "p99 ms", "uneven"
    );
    if measured(experiment) {
        let _ = write!(titles, " {:>9} {:>7}", "measured", "off");
    }
    line(text, &titles);
}

fn row(text: &mut String, experiment: &Experiment, points: &[Point], point: &Point) {
    let load = match experiment.loads[point.cell.load] {
        Load::Clients(clients) => format!("{clients} clients"),
        Load::Rate(per_s) => format!("{per_s}/s"),
    };
    let policy = &experiment.policies[point.cell.policy].label;
    let mean = point.mean_per_s();
    let answers = match point.half_width() {
        Some(half) => format!("{mean:.1} ± {half:.1}"),
        None => format!("{mean:.1}"),
    };
    let gain = match baseline(points, point).map(|base| mean / base.mean_per_s() - 1.0) {
        Some(gain) if gain.is_finite() && point.cell.policy > 0 => format!("{:+.1} %", gain * 100.0),
        _ => String::new(),
    };
    let ms = |quantile| {
        point.all.quantile_us(quantile).map_or("–".into(), |us| format!("{:.1}", us as f64 / 1e3))
    };
    let uneven = point.balance.average().processor;
    let _ = write!(
        text,
        "{load:>10}  {policy:<12} {answers:>17} {gain:>10} {:>8} {:>8} {:>8} {uneven:>7.2}",
        ms(0.5),
        ms(0.95),
        ms(0.99)
    );
    if let Some(reference) = experiment.reference(&point.cell) {
        let _ = write!(text, " {reference:>9.2} {:>+6.1}%", (mean / reference - 1.0) * 100.0);
    }
    if point.failed > 0 {
        let _ = write!(text, "  {} failed", point.failed);
    }
    text.push('\n');
}

/// How far from what was measured?
fn off(text: &mut String, experiment: &Experiment, points: &[Point]) {
    let offs = points.iter().filter_map(|point| {
        let reference = experiment.reference(&point.cell)?;
        Some((point.mean_per_s() / reference - 1.0).abs())
    });
    let all: Vec<f64> = offs.collect();
    if !all.is_empty() {
        let (most, sum) = all.iter().fold((0.0_f64, 0.0), |(most, sum), off| (most.max(*off), sum + off));
        let average = sum / all.len() as f64 * 100.0;
        line(
            text,
            &format!(
                "\n{} points were measured: off by {average:.1} % on average, {:.1} % at most",
                all.len(),
                most * 100.0
            ),
        );
    }
}
