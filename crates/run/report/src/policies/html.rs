//! The policy report as one HTML page that needs no network.

use assay_record::cluster::{ClusterPoint, ClusterResult, Origin};
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use super::charts::{MixCharts, mix_charts};
use super::{
    MixOnCluster, difference, gain, measured_gain, megabits_per_s, mixes, nodes, points_of, terminal,
};
use crate::ReportError;
use crate::chart::alt_text::alt_text;
use crate::chart::{Band, Chart};
use crate::format;
use crate::html::{ChartHead, MACROS, SCRIPT, STYLE, UPLOT, UPLOT_STYLE, embedded_json};
use assay_base::quote::visible::visible;

const TEMPLATE: &str = include_str!("../../assets/policies.html");

/// Data of the template.
#[derive(Serialize)]
struct PoliciesPage<'a> {
    name: &'a str,
    title: &'a str,
    eyebrow: String,
    /// Questions, and what is found.
    conclusions: Vec<(String, String)>,
    scenes: Vec<MixView<'a>>,
    assay_version: &'static str,
    /// Our own text, as the two that follow: not escaped.
    style: Value,
    script: Value,
    data: Value,
}

#[derive(Serialize)]
struct MixView<'a> {
    title: &'a str,
    id: String,
    loads: Vec<ChartHead<'a>>,
    times: Vec<ChartHead<'a>>,
    nodes: Vec<ChartHead<'a>>,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A time axis; seconds of the measurement.
#[derive(Serialize)]
struct SecondsAxis {
    step_s: f64,
    time: Vec<f64>,
    phases: Vec<Band>,
}

/// Data of the page's script.
#[derive(Serialize)]
struct PolicyCharts<'a> {
    axes: &'a [SecondsAxis],
    charts: Vec<&'a Chart>,
}

/// The page of a result, with another one beside it in its charts.
pub fn page(result: &ClusterResult, other: Option<&ClusterResult>) -> Result<String, ReportError> {
    let mixes = mixes(result);
    let drawn: Vec<MixCharts> =
        mixes.iter().enumerate().map(|(number, mix)| mix_charts(result, other, *mix, number)).collect();
    let axes: Vec<SecondsAxis> = mixes.iter().map(|mix| axis(result, *mix)).collect();
    let charts = PolicyCharts { axes: &axes, charts: drawn.iter().flat_map(|scene| scene.all()).collect() };
    let views =
        mixes.iter().zip(&drawn).zip(&axes).enumerate().map(|(number, ((mix, scene), axis))| MixView {
            title: &scene.title,
            id: format!("scene-{number}"),
            loads: heads(&scene.loads, axis),
            times: heads(&scene.times, axis),
            nodes: heads(&scene.nodes, axis),
            heads: titles(result),
            rows: points_of(result, *mix).map(|point| row(result, point)).collect(),
        });
    let page = PoliciesPage {
        name: &result.name,
        title: &result.title,
        eyebrow: eyebrow(result),
        conclusions: mixes
            .iter()
            .map(|mix| conclusion(result, *mix))
            .chain(beside(result, other))
            .chain(measured_nodes(result))
            .collect(),
        scenes: views.collect(),
        assay_version: env!("CARGO_PKG_VERSION"),
        style: Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}")),
        script: Value::from_safe_string(format!("{UPLOT}\n{SCRIPT}")),
        data: Value::from_safe_string(embedded_json(&charts)?),
    };
    let template = [MACROS, TEMPLATE].concat();
    let mut environment = Environment::new();
    // The name's ending turns escaping on.
    environment.add_template("policies.html", &template)?;
    Ok(visible(environment.get_template("policies.html")?.render(Serde(page))?))
}

fn axis(result: &ClusterResult, mix: MixOnCluster<'_>) -> SecondsAxis {
    let seconds = points_of(result, mix).map(|point| point.balance_by_second.len()).max().unwrap_or(0);
    SecondsAxis {
        step_s: 1.0,
        time: (0..seconds).map(|second| second as f64 + 0.5).collect(),
        phases: Vec::new(),
    }
}

fn heads<'a>(charts: &'a [Chart], axis: &SecondsAxis) -> Vec<ChartHead<'a>> {
    let view = |chart: &'a Chart| ChartHead {
        id: &chart.id,
        title: &chart.title,
        about: &chart.about,
        unit: &chart.unit,
        alt_text: alt_text(chart, &axis.time, &axis.phases),
    };
    charts.iter().map(view).collect()
}

fn eyebrow(result: &ClusterResult) -> String {
    let how = match result.origin {
        Origin::Simulated => "simulated",
        Origin::Measured => "measured",
    };
    let each = format::duration_s(result.measure_s);
    let times =
        if result.repetitions == 1 { "once".to_owned() } else { format!("{} times", result.repetitions) };
    let extends = result.extends.as_ref().map_or_else(String::new, |file| format!(" · extends {file}"));
    format!("{how} · {each} each, {times} · seed {}{extends}", result.seed)
}

/// Nodes that somebody else measured.
fn measured_nodes(result: &ClusterResult) -> Option<(String, String)> {
    let all = nodes::measured(result);
    (!all.is_empty()).then(|| ("Nodes measured elsewhere".to_owned(), all.join(". ") + "."))
}

/// Distance from the other result.
fn beside(result: &ClusterResult, other: Option<&ClusterResult>) -> Option<(String, String)> {
    let other = other?;
    let difference = difference(result, other);
    let text = match (difference.average, difference.most) {
        (Some(average), Some(most)) => format!(
            "{} points in common, off by {:.1} % on average and {:.1} % at most.",
            difference.points.len(),
            average * 100.0,
            most * 100.0
        ),
        _ => "They have no point in common.".to_owned(),
    };
    Some((format!("Against {}", other.name), text))
}

/// Conclusion on a mix on a cluster, in a sentence.
fn conclusion(result: &ClusterResult, mix: MixOnCluster<'_>) -> (String, String) {
    let gains = points_of(result, mix).filter_map(|point| Some((point, gain(result, point)?)));
    let best = gains.max_by(|one, other| one.1.mean.total_cmp(&other.1.mean));
    let first = result.points.first().map_or("", |point| &point.policy);
    let text = match best {
        Some((point, gain)) if gain.mean > 1.0 => {
            let half = gain.half_width.map_or_else(String::new, |half| format!(" ± {:.1}", half * 100.0));
            format!(
                "{} is furthest ahead of {first} with {}, by {:.1}{half} %.",
                point.policy,
                terminal::load(point),
                (gain.mean - 1.0) * 100.0
            )
        }
        Some(_) => format!("No policy is ahead of {first}."),
        None => format!("There is only {first}."),
    };
    (mix.to_string(), text)
}

fn titles(result: &ClusterResult) -> Vec<String> {
    let first = result.points.first().map_or("", |point| &point.policy);
    let over = format!("over {first}, %");
    let heads =
        ["load", "policy", "responses/s", &over, "p50 ms", "p90 ms", "p95 ms", "p99 ms", "longest ms"];
    let more = [
        "Mbit/s",
        "processors",
        "disks",
        "requests",
        "failed",
        "elsewhere",
        "off, %",
        "gain elsewhere, %",
        "gain off, points",
    ];
    heads.iter().chain(&more).map(|head| (*head).to_owned()).collect()
}

fn row(result: &ClusterResult, point: &ClusterPoint) -> Vec<String> {
    let gain = gain(result, point).map_or(String::new(), |gain| {
        let half = gain.half_width.map_or_else(String::new, |half| format!(" ± {:.1}", half * 100.0));
        format!("{:+.1}{half}", (gain.mean - 1.0) * 100.0)
    });
    let times = &point.response_us;
    let reference = point.reference_per_s;
    let off = reference
        .map_or(String::new(), |there| format!("{:+.1}", (point.mean_per_s() / there - 1.0) * 100.0));
    let mut cells = vec![terminal::load(point), point.policy.clone(), terminal::responses(point), gain];
    cells.extend([times.p50, times.p90, times.p95, times.p99, times.max].map(terminal::ms));
    cells.push(format!("{:.2}", megabits_per_s(result, point)));
    let balance = terminal::balance(point).map(|known| [known.processor, known.disk, known.in_flight]);
    let shares = balance.map(|known| known.map(|value| format!("{value:.2}")));
    cells.extend(shares.unwrap_or_else(|| [(); 3].map(|()| format::NOTHING.to_owned())));
    cells.extend([
        format::count(point.failed),
        reference.map_or(String::new(), |there| format!("{there:.1}")),
        off,
    ]);
    let measured = measured_gain(result, point);
    let percent = |part: Option<f64>| part.map_or(String::new(), |part| format!("{:+.1}", part * 100.0));
    cells.extend([measured.map(|gain| gain.measured), measured.map(|gain| gain.off())].map(percent));
    cells
}
