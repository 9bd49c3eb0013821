//! Replayed responses, held against those that were fetched, as a proxy sees them. Prints tables 11.1 and 11.2 of the
//! document beside what is measured here, and draws its figure 11.7.
//!
//! `scripts/replay-pace.sh [--urls N] [--runs N] [--link delay=20ms] [--csv FILE] [--svg FILE]`. It wants a quiet machine,
//! and root for the link (without, everything runs over loopback, with the origin's own delays alone). A missed target is
//! said and is no error: it may be the machine's.
//!
//! Every response is paired with its own repetition: however much the origin's delays vary, what one request met is in the
//! recording. Where something is fetched again, it is not, and the difference is large.

mod bed;
mod client;
mod figure;
mod origin;

use std::process::ExitCode;

use bed::{Bed, Options};
use client::Fetched;

/// How a data set is requested.
#[derive(Clone, Copy)]
struct Experiment {
    name: &'static str,
    /// Prefix of its paths: which of them may be cached.
    kind: &'static str,
    replay: bool,
    /// The listener of the second request.
    second_listener: usize,
    document: &'static str,
    /// Most that the mean absolute difference between a miss and a hit may be, in milliseconds.
    target_ms: Option<f64>,
}

impl Experiment {
    /// The one that the targets are about.
    fn is_main(&self) -> bool {
        self.target_ms.is_some()
    }
}

const EXPERIMENTS: [Experiment; 4] = [
    Experiment {
        name: "cacheable, another proxy",
        kind: "c",
        replay: true,
        second_listener: 1,
        document: "7.44",
        target_ms: Some(0.5),
    },
    Experiment {
        name: "two thirds uncacheable, another proxy",
        kind: "m",
        replay: true,
        second_listener: 1,
        document: "366.12",
        target_ms: None,
    },
    Experiment {
        name: "two thirds uncacheable, the same proxy again",
        kind: "m",
        replay: true,
        second_listener: 0,
        document: "",
        target_ms: None,
    },
    Experiment {
        name: "cacheable, replay switched off",
        kind: "c",
        replay: false,
        second_listener: 1,
        document: "503.3",
        target_ms: None,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, spec] = &arguments[..]
        && role == bed::COLLECTOR
    {
        return bed::play_collector(spec);
    }
    let options = match Options::parse(&arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let bed = Bed::start(&options);
    println!("{}", bed.about());
    println!(
        "{} URLs, {} runs; milliseconds, mean ± standard error of the runs\n",
        options.urls, options.runs
    );
    println!(
        "{:<46} {:>10} {:>16} {:>16} {:>10}",
        "mean absolute difference", "document", "mean", "median", "target"
    );
    let mut pages = Vec::new();
    for experiment in EXPERIMENTS {
        let runs: Vec<Passes> =
            (0..options.runs).map(|run| Passes::of(&bed, &options, experiment, run)).collect();
        print_row(experiment.name, experiment.document, experiment.target_ms, &runs, Passes::miss_and_hit);
        if experiment.is_main() {
            print_row("  two replayed hits of one object", "6.60", Some(0.3), &runs, Passes::two_hits);
            pages = runs.into_iter().flat_map(|run| run.missed.into_iter().zip(run.hit)).collect();
        }
    }
    println!("\n{}", bed.lateness());
    print_arrivals(&pages);
    if let Err(error) = figure::write(&options, &pages) {
        eprintln!("the figure could not be written: {error}");
    }
    ExitCode::SUCCESS
}

/// Three passes over the URLs.
struct Passes {
    missed: Vec<Fetched>,
    hit: Vec<Fetched>,
    again: Vec<Fetched>,
}

impl Passes {
    fn of(bed: &Bed, options: &Options, experiment: Experiment, run: usize) -> Self {
        let name = format!("{}{}", u8::from(experiment.replay), experiment.second_listener);
        let paths: Vec<String> =
            (0..options.urls).map(|n| format!("/{}/{name}-{run}/{n}", experiment.kind)).collect();
        let pass =
            |listener| client::fetch_all(bed.listener(experiment.replay, listener), &paths, options.workers);
        let (missed, hit) = (pass(0), pass(experiment.second_listener));
        let again = if experiment.is_main() { pass(2) } else { Vec::new() };
        Self { missed, hit, again }
    }

    fn miss_and_hit(&self) -> Vec<f64> {
        differences(&self.missed, &self.hit)
    }

    fn two_hits(&self) -> Vec<f64> {
        differences(&self.hit, &self.again)
    }
}

fn differences(one: &[Fetched], other: &[Fetched]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| (one.total_ms() - other.total_ms()).abs()).collect()
}

fn print_row(
    name: &str,
    document: &str,
    target_ms: Option<f64>,
    runs: &[Passes],
    of: impl Fn(&Passes) -> Vec<f64>,
) {
    let all: Vec<Vec<f64>> = runs.iter().map(of).collect();
    let means: Vec<f64> = all.iter().map(|values| mean(values)).collect();
    let medians: Vec<f64> = all.iter().map(|values| quantile(values, 0.5)).collect();
    let verdict = match target_ms {
        None => String::new(),
        Some(target) if mean(&means) < target => format!("< {target}: pass"),
        Some(target) => format!("< {target}: FAIL"),
    };
    println!("{name:<46} {document:>10} {:>16} {:>16} {verdict:>10}", spread(&means), spread(&medians));
}

/// Figure 11.7 in numbers: when each part of each page came, fetched and replayed.
fn print_arrivals(pages: &[(Fetched, Fetched)]) {
    let mut differences: Vec<f64> =
        pages.iter().flat_map(|(missed, hit)| missed.arrivals_against(hit)).map(f64::abs).collect();
    differences.sort_by(f64::total_cmp);
    let within = differences.iter().filter(|ms| **ms <= 1.0).count();
    println!(
        "figure 11.7: {} arrivals of parts, fetched against replayed: p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms; \
         {:.2} % within 1 ms{}",
        differences.len(),
        quantile(&differences, 0.5),
        quantile(&differences, 0.99),
        differences.last().copied().unwrap_or(f64::NAN),
        100.0 * within as f64 / differences.len().max(1) as f64,
        if quantile(&differences, 0.99) <= 1.0 { ": pass (99 of 100)" } else { ": FAIL" },
    );
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (q * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// Mean and standard error.
fn spread(values: &[f64]) -> String {
    let (mean, n) = (mean(values), values.len() as f64);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    format!("{mean:.3} ± {:.3}", (variance / n).sqrt())
}
