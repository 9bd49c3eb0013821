//! Charts: numbers and words, whoever draws them. One type for all of them, whoever draws it: the page of a run, that of a
//! comparison, a figure.
//!
//! A chart holds numbers and words, never colours or pixels. What the run's own charts show is in [`run`],
//! [`times`], [`classes`] and [`counters`].

pub mod alt_text;
mod classes;
mod counters;
mod run;
mod times;

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::steps::Step;

pub use run::charts;
pub use times::{cdf, distribution};

/// Words that are mostly known beforehand.
pub type ChartText = Cow<'static, str>;

/// Everything that the script of a run's page draws.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Charts {
    /// Phases that ran, in seconds since the start of the run.
    pub phases: Vec<Band>,
    /// Length of a step in seconds.
    pub step_s: f64,
    /// Middle of every step, in seconds.
    pub time: Vec<f64>,
    /// The charts, in the order of the page.
    pub charts: Vec<Chart>,
}

/// A phase on the time axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Band {
    pub name: String,
    /// Start, in seconds.
    pub start: f64,
    /// End, in seconds.
    pub end: f64,
    /// Assay or the lab could have shaped it.
    pub disturbed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Name in the page.
    pub id: ChartText,
    /// Heading of the page that it stands under.
    pub section: ChartText,
    pub title: ChartText,
    /// One sentence: what is seen here.
    pub about: ChartText,
    /// Unit of its values.
    pub unit: ChartText,
    pub kind: ChartKind,
    /// The y axis is logarithmic.
    pub log: bool,
    /// Label of the x axis, where it is not time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_label: Option<ChartText>,
    /// Number of the page's time axis; a run has only one.
    pub axis: usize,
    pub lines: Vec<ChartLine>,
    /// Content of a heat map, which has no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heat: Option<Heat>,
}

/// Form of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// Over time; values are in the order of the time axis.
    Time,
    /// Points; each line has its own x.
    Scatter,
    /// Over a number of any kind; all lines have the same x.
    Lines,
    /// Values by the share of requests that they suffice for; x is that share.
    Distribution,
    /// The share of requests, in percent, that took no longer than x; x is logarithmic.
    Cdf,
    /// Counts of each value, over time: see [`Heat`].
    Heat,
    /// Bars: names are `x_names`, one value per name and line.
    Bars,
}

/// One line of a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ChartLine {
    pub name: String,
    /// Colour, by meaning.
    pub role: &'static str,
    pub dashed: bool,
    /// Dash pattern, where many lines must be told apart without their colours: pixels drawn and left out in turn.
    #[serde(skip_serializing_if = "<[u8]>::is_empty")]
    pub dash: &'static [u8],
    /// Single events: points without a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub points: bool,
    /// Positions of the values on the x axis; none: those of the page's axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<Vec<Option<f64>>>,
    /// Name of each bar.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub x_names: Vec<String>,
    pub values: Vec<Option<f64>>,
    /// The lowest and the highest of several runs, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<Vec<Option<f64>>>,
    /// The highest of several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<Vec<Option<f64>>>,
}

/// Counts by time and value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heat {
    /// Ends of the rows, ascending, in the chart's unit: row *n* reaches from edge *n* to edge *n + 1*.
    pub y_edges: Vec<f64>,
    /// For each step of the time axis the counts of the rows, from the lowest on; empty rows at the end are left out.
    #[serde(serialize_with = "gaps_as_negative_numbers")]
    pub cells: Vec<Vec<u64>>,
}

/// Most cells are empty: *n* of them in a row are written as −*n*.
fn gaps_as_negative_numbers<S: Serializer>(cells: &[Vec<u64>], to: S) -> Result<S::Ok, S::Error> {
    let packed = |cells: &Vec<u64>| {
        let mut packed: Vec<i64> = Vec::new();
        for count in cells {
            match (*count, packed.last_mut()) {
                (0, Some(gap)) if *gap < 0 => *gap -= 1,
                (0, _) => packed.push(-1),
                (count, _) => packed.push(i64::try_from(count).unwrap_or(i64::MAX)),
            }
        }
        packed
    };
    to.collect_seq(cells.iter().map(packed))
}

/// Five significant digits are more than a pixel shows and keep the page small.
pub fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    if digits >= 0 {
        let scale = 10f64.powi(digits);
        (value * scale).round() / scale
    } else {
        value.round()
    }
}

impl ChartLine {
    /// A line of known values.
    pub fn new(name: impl Into<String>, role: &'static str, values: Vec<Option<f64>>) -> Self {
        Self { name: name.into(), role, values, ..Self::default() }
    }

    /// There is a value.
    pub fn is_known(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }
}

/// A value for each step.
pub fn line(
    name: impl Into<String>,
    role: &'static str,
    steps: &[Step<'_>],
    value: impl Fn(&Step<'_>) -> Option<f64>,
) -> ChartLine {
    ChartLine::new(name, role, steps.iter().map(|step| value(step).map(short)).collect())
}

/// Leaves out what ended after the schedule: ratios and means of a few stragglers mislead.
fn on_schedule(mut line: ChartLine, steps: &[Step<'_>]) -> ChartLine {
    for (value, step) in line.values.iter_mut().zip(steps) {
        if step.after_the_end {
            *value = None;
        }
    }
    line
}

/// The line, drawn dashed.
pub fn dashed(mut line: ChartLine) -> ChartLine {
    line.dashed = true;
    line
}

/// A chart over time.
pub fn time_chart(
    section: impl Into<ChartText>,
    id: impl Into<ChartText>,
    title: impl Into<ChartText>,
    unit: impl Into<ChartText>,
    about: impl Into<ChartText>,
    lines: Vec<ChartLine>,
) -> Chart {
    Chart {
        id: id.into(),
        section: section.into(),
        title: title.into(),
        about: about.into(),
        unit: unit.into(),
        kind: ChartKind::Time,
        log: false,
        x_label: None,
        axis: 0,
        lines,
        heat: None,
    }
}

/// The chart, with a logarithmic y axis.
pub fn logarithmic(mut chart: Chart) -> Chart {
    chart.log = true;
    chart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_cells_of_a_heat_map_take_no_room() {
        let heat = Heat { y_edges: vec![1.0, 2.0], cells: vec![vec![0, 0, 0, 7, 0, 1], vec![], vec![3]] };
        assert_eq!(serde_json::to_value(&heat).unwrap()["cells"].to_string(), "[[-3,7,-1,1],[],[3]]");
    }

    #[test]
    fn values_keep_five_digits() {
        assert_eq!(short(123_456.0), 123_460.0 - 4.0);
        assert_eq!(short(0.123_456_7), 0.123_46);
        assert_eq!(short(12.345_678), 12.346);
        assert_eq!(short(0.0), 0.0);
        assert_eq!(short(f64::NAN), 0.0);
    }
}
