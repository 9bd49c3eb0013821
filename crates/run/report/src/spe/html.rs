//! The evaluation as one HTML page that needs no network.

use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use super::document::{Conclusion, Evaluation, MismatchExample};
use super::views;
use crate::ReportError;
use crate::chart::alt_text::alt_text;
use crate::compare::views::subject_style;
use crate::format::{self, count};
use crate::html::{ChartHead, MACROS, SCRIPT, STYLE, UPLOT, UPLOT_STYLE, embedded_json};
use crate::page::{Fact, RowView, TableView, fact};
use assay_base::quote::visible::visible;

const TEMPLATE: &str = include_str!("../../assets/spe.html");

/// Data of the template.
#[derive(Serialize)]
struct EvaluationPage<'a> {
    title: String,
    eyebrow: String,
    conclusions: &'a [Conclusion],
    warnings: &'a [String],
    partial: bool,
    subjects: Vec<TargetView<'a>>,
    tables: Vec<TableView>,
    groups: Vec<MismatchView<'a>>,
    charts: Vec<ChartHead<'a>>,
    setup: Vec<Fact>,
    version: &'a str,
    /// Our own text, as the two that follow: not escaped.
    style: Value,
    script: Value,
    data: Value,
}

#[derive(Serialize)]
struct TargetView<'a> {
    label: &'a str,
    colour: &'static str,
    what: String,
}

#[derive(Serialize)]
struct MismatchView<'a> {
    name: String,
    target: &'a str,
    count: String,
    share: String,
    examples: Vec<ExampleView<'a>>,
}

#[derive(Serialize)]
struct ExampleView<'a> {
    method: &'a str,
    url: &'a str,
    detail: String,
}

pub(super) fn render(evaluation: &Evaluation) -> Result<String, ReportError> {
    let template = [MACROS, TEMPLATE].concat();
    let mut environment = Environment::new();
    // The name's ending turns escaping on.
    environment.add_template("spe.html", &template)?;
    let drawn = &evaluation.charts;
    let charts = drawn.charts.iter().map(|chart| ChartHead {
        id: &chart.id,
        title: &chart.title,
        about: &chart.about,
        unit: &chart.unit,
        alt_text: alt_text(chart, &drawn.time, &drawn.phases),
    });
    let labels: Vec<&str> = evaluation.targets.iter().skip(1).map(|target| target.label.as_str()).collect();
    let page = EvaluationPage {
        title: labels.join(", "),
        eyebrow: eyebrow(evaluation),
        conclusions: &evaluation.verdict,
        warnings: &evaluation.warnings,
        partial: evaluation.partial,
        subjects: subjects(evaluation),
        tables: views::tables(evaluation).into_iter().map(table).collect(),
        groups: evaluation.differing.iter().map(group).collect(),
        charts: charts.collect(),
        setup: setup(evaluation),
        version: &evaluation.version,
        style: Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}")),
        script: Value::from_safe_string(format!("{UPLOT}\n{SCRIPT}")),
        data: Value::from_safe_string(embedded_json(drawn)?),
    };
    Ok(visible(environment.get_template("spe.html")?.render(Serde(page))?))
}

fn eyebrow(evaluation: &Evaluation) -> String {
    let mut parts = Vec::new();
    if let Ok(started) = u64::try_from(evaluation.started_unix_ms)
        && started > 0
    {
        parts.push(format::date(started));
    }
    parts.extend(evaluation.duration_s.map(format::duration_s));
    parts.push(format!("{} requests", count(evaluation.requests)));
    parts.join(" · ")
}

fn subjects(evaluation: &Evaluation) -> Vec<TargetView<'_>> {
    let what = |target: &super::document::TargetFigures| {
        let parts = [target.software.clone(), target.address.clone()];
        let name = parts.into_iter().flatten().collect::<Vec<_>>().join(" at ");
        if target.tls { format!("{name}, over TLS") } else { name }
    };
    let targets = evaluation.targets.iter().enumerate();
    targets
        .map(|(place, target)| TargetView {
            label: &target.label,
            colour: subject_style(place).colour,
            what: if place == 0 {
                "the Collector's response, which clients got".to_owned()
            } else {
                what(target)
            },
        })
        .collect()
}

fn table(table: views::TargetTable) -> TableView {
    let row = |(name, cells)| RowView { name, cells, ..RowView::default() };
    TableView {
        id: table.id,
        title: table.title,
        about: table.about,
        first: table.first,
        groups: Vec::new(),
        heads: table.heads,
        rows: table.rows.into_iter().map(row).collect(),
    }
}

fn group(group: &super::document::MismatchGroup) -> MismatchView<'_> {
    MismatchView {
        name: views::name_of(group),
        target: &group.target,
        count: count(group.count),
        share: format::percent(Some(group.share)),
        examples: group.examples.iter().map(example).collect(),
    }
}

fn example(example: &MismatchExample) -> ExampleView<'_> {
    let status =
        |status: Option<u16>| status.map_or_else(|| "no response".to_owned(), |status| status.to_string());
    let detail = format!(
        "request {}, {} after the start; the Collector: {}, the proxy: {}",
        count(example.request),
        format::duration_s(example.at_us.max(0) as f64 / 1e6),
        status(example.direct_status),
        status(example.status)
    );
    ExampleView { method: &example.method, url: &example.url, detail }
}

fn setup(evaluation: &Evaluation) -> Vec<Fact> {
    let collector = &evaluation.collector;
    let seconds = |ms: u64| format::duration_s(ms as f64 / 1000.0);
    let mut facts = vec![
        fact("Directory", evaluation.evaluation.clone()),
        fact(
            "Clients speak to",
            if evaluation.forward { "a forward proxy" } else { "a server (reverse proxy)" },
        ),
        fact("Proxies get requests", evaluation.when.clone()),
        fact("Order of proxies", format!("{}, seed {}", evaluation.turns, evaluation.seed)),
        fact("Responses are replayed at their pace", if collector.replay { "yes" } else { "no" }),
        fact("Minimum freshness", seconds(collector.minimum_freshness_ms)),
        fact("Age of a recording at most", seconds(collector.maximum_age_ms)),
        fact("Clients' connections", count(evaluation.totals.clients)),
        fact("Tunnels", count(evaluation.tunnels)),
        fact("Requests sent to origins", count(evaluation.totals.origin_requests)),
        fact("Of these, failed", count(evaluation.totals.origin_errors)),
        fact("Not made, because nothing may be requested there", count(evaluation.totals.not_allowed)),
        fact("Recordings that the Collector could not keep for all", count(evaluation.totals.not_kept)),
        fact("Responses that the Collector broke off", count(evaluation.totals.given_up)),
        fact("Recordings thrown away", count(evaluation.totals.evictions)),
        fact("Clients that left early", count(evaluation.totals.client_gone)),
        fact("Requests refused for want of room (503)", count(evaluation.totals.no_room)),
        fact("Clients that took too long", count(evaluation.totals.slow_clients)),
        fact("Connections of clients ended for others", count(evaluation.totals.dismissed_clients)),
        fact("Connections of proxies ended for others", count(evaluation.totals.dismissed_connections)),
        fact("Memory at most", format::bytes(evaluation.totals.peak_memory_bytes)),
    ];
    for target in &evaluation.targets {
        let settings = target.settings.iter().map(|(name, value)| format!("{name} = {value}"));
        let settings: Vec<String> = settings.collect();
        if !settings.is_empty() {
            facts.push(fact(&format!("Settings of {}", target.label), settings.join(", ")));
        }
    }
    facts
}
