//! The charts of a comparison as figures for a paper, and its numbers as CSV.

use std::path::{Path, PathBuf};

use crate::ReportError;
use crate::chart::Chart;
use crate::figure::{self, Figure, FigureSet};
use assay_base::quote::csv::quoted;

use super::chart_group::ChartGroup;
use super::document::{Comparison, Contrast, MetricRow, MetricTable, Values};

/// Columns of `metrics.csv`: a row for each metric, stretch of the schedule and subject.
const METRICS: &str = "workload,condition,scope,metric,subject,runs,mean,deviation,lower_bound";
/// Columns of `differences.csv`: a row for each metric, stretch and pair of subjects.
const DIFFERENCES: &str = "workload,condition,scope,metric,subject,base,pairs,difference,difference_low,difference_high,\
                           ratio,ratio_low,ratio_high,effect_size,p,p_adjusted,verdict";

/// Draws every chart into a directory: `NAME.svg` and `NAME.csv` of each, and `figures.csv`, a list of all. Where there
/// is more than one workload or condition, names begin with them. Gives back the names.
pub fn write_figures(comparison: &Comparison, out: &Path) -> Result<Vec<String>, ReportError> {
    let several = comparison.chart_groups.len() > 1;
    let set = |panel: &ChartGroup| {
        let named = |chart: &Chart| {
            let mut figure = Figure::alone(chart.clone());
            figure.name = name(&figure.name, several.then_some(panel.title.as_str()));
            figure
        };
        panel.charts.iter().chain(&panel.phases).map(named).collect::<Vec<Figure>>()
    };
    let sets: Vec<FigureSet<'_>> = comparison
        .chart_groups
        .iter()
        .map(|panel| FigureSet { figures: set(panel), time: &panel.axis.time, bands: &panel.axis.phases })
        .collect();
    figure::write_sets(&sets, out)
}

/// The identity of a chart on the page ends in the number of its panel, which says nothing outside of it.
fn name(id: &str, panel: Option<&str>) -> String {
    let kind = id.rsplit_once('-').map_or(id, |(kind, _)| kind);
    match panel {
        Some(title) => format!("{title}-{kind}"),
        None => kind.to_owned(),
    }
}

/// Writes `metrics.csv` and `differences.csv` into a directory; gives back their paths.
pub fn write_csv(comparison: &Comparison, out: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let cannot = |path: &Path| {
        let path = path.to_owned();
        move |cause| ReportError::Export { path, cause }
    };
    std::fs::create_dir_all(out).map_err(cannot(out))?;
    let (mut metrics, mut differences) = (format!("{METRICS}\n"), format!("{DIFFERENCES}\n"));
    for table in &comparison.tables {
        for row in &table.rows {
            for (subject, values) in comparison.subjects.iter().zip(&row.values) {
                metrics.push_str(&metric(table, row, &subject.label, values));
            }
            row.contrasts.iter().for_each(|contrast| differences.push_str(&difference(table, row, contrast)));
        }
    }
    [("metrics.csv", metrics), ("differences.csv", differences)]
        .into_iter()
        .map(|(name, text)| {
            let path = out.join(name);
            std::fs::write(&path, text).map_err(cannot(&path))?;
            Ok(path)
        })
        .collect()
}

fn metric(table: &MetricTable, row: &MetricRow, subject: &str, values: &Values) -> String {
    line(&[
        quoted(&table.workload),
        quoted(&table.condition),
        quoted(&table.scope),
        quoted(&row.metric),
        quoted(subject),
        values.runs.len().to_string(),
        number(values.mean),
        number(values.deviation),
        values.at_least.to_string(),
    ])
}

fn difference(table: &MetricTable, row: &MetricRow, contrast: &Contrast) -> String {
    let ends = |interval: Option<(f64, f64)>| {
        (number(interval.map(|ends| ends.0)), number(interval.map(|ends| ends.1)))
    };
    let (low, high) = ends(contrast.interval);
    let (ratio_low, ratio_high) = ends(contrast.ratio_interval);
    line(&[
        quoted(&table.workload),
        quoted(&table.condition),
        quoted(&table.scope),
        quoted(&row.metric),
        quoted(&contrast.subject),
        quoted(&contrast.base),
        contrast.pairs.to_string(),
        number(contrast.difference),
        low,
        high,
        number(contrast.ratio),
        ratio_low,
        ratio_high,
        number(contrast.effect_size),
        number(contrast.p),
        number(contrast.p_adjusted),
        quoted(contrast.verdict.label()),
    ])
}

/// Every digit; nothing stands for what is not known.
fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn line(cells: &[String]) -> String {
    format!("{}\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::document::{Direction, MetricGroup};
    use super::*;

    #[test]
    fn files_are_named_after_what_they_show_and_not_after_their_place_on_the_page() {
        assert_eq!(name("rate-0", None), "rate");
        assert_eq!(name("against-origin-3", Some("image, tls")), "image, tls-against-origin");
    }

    #[test]
    fn what_is_not_known_is_an_empty_cell_and_every_row_has_all_columns() {
        let row = MetricRow {
            metric: "dhr".into(),
            title: String::new(),
            group: MetricGroup::Speed,
            better: Direction::More,
            worth_mentioning: None,
            headline: true,
            values: Vec::new(),
            contrasts: Vec::new(),
        };
        let table = MetricTable {
            workload: "a, b".into(),
            condition: String::new(),
            scope: String::new(),
            phases: Vec::new(),
            judged: true,
            tests: 0,
            rows: Vec::new(),
            errors: Default::default(),
        };
        let text = difference(&table, &row, &Contrast { interval: Some((-1.5, 2.0)), ..Contrast::default() });
        assert!(text.starts_with("\"a, b\",,,dhr,,,0,,-1.5,2,"), "{text}");
        let columns = |text: &str| text.replace("\"a, b\"", "a").matches(',').count();
        assert_eq!(columns(&text), columns(DIFFERENCES));
        assert_eq!(columns(&metric(&table, &row, "x", &Values::default())), columns(METRICS));
    }
}
