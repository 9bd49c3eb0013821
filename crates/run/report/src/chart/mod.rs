//! Charts: numbers and words, whoever draws them. One type for all of them, whoever draws it: the page of a run, that of a
//! comparison, a figure.
//!
//! A chart holds numbers and words, never colours or pixels. What the run's own charts show is in [`run`],
//! [`times`], [`classes`] and [`counters`].

mod classes;
mod counters;
mod run;
pub mod said;
mod times;

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::steps::Step;

pub use run::charts;
pub use times::{cdf, distribution};

/// Words that are mostly known beforehand.
pub type Text = Cow<'static, str>;

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
    /// Where it begins, in seconds.
    pub start: f64,
    /// Where it ends, in seconds.
    pub end: f64,
    /// Assay or the lab could have shaped it.
    pub disturbed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Its name in the page.
    pub id: Text,
    /// Heading of the page that it stands under.
    pub section: Text,
    pub title: Text,
    /// One sentence: what is seen here.
    pub about: Text,
    /// Unit of its values.
    pub unit: Text,
    /// How it is drawn.
    pub kind: Kind,
    /// The y axis is logarithmic.
    pub log: bool,
    /// What the x axis says, where it is not time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x_label: Option<Text>,
    /// Which time axis of the page it has; a run has one.
    pub axis: usize,
    pub lines: Vec<Line>,
    /// What a heat map shows; it has no lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heat: Option<Heat>,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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
    /// How many there were of each value, over time: see [`Heat`].
    Heat,
    /// Bars: names are `x_names`, one value per name and line.
    Bars,
}

/// One line of a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Line {
    /// What it is called.
    pub name: String,
    /// What colour it has, by meaning.
    pub role: &'static str,
    /// It is drawn dashed.
    pub dashed: bool,
    /// How it is broken, where many lines must be told apart without their colours: pixels drawn and left out in turn.
    #[serde(skip_serializing_if = "<[u8]>::is_empty")]
    pub dash: &'static [u8],
    /// Single events: points without a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub points: bool,
    /// Where its values lie on the x axis; none: on the axis of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<Vec<Option<f64>>>,
    /// What each bar stands for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub x_names: Vec<String>,
    /// Its values; none where there is none.
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

impl Line {
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
) -> Line {
    Line::new(name, role, steps.iter().map(|step| value(step).map(short)).collect())
}

/// Leaves out what ended after the schedule: ratios and means of a few stragglers mislead.
fn on_schedule(mut line: Line, steps: &[Step<'_>]) -> Line {
    for (value, step) in line.values.iter_mut().zip(steps) {
        if step.after_the_end {
            *value = None;
        }
    }
    line
}

/// The line, drawn dashed.
pub fn dashed(mut line: Line) -> Line {
    line.dashed = true;
    line
}

/// A chart over time.
pub fn time_chart(
    section: impl Into<Text>,
    id: impl Into<Text>,
    title: impl Into<Text>,
    unit: impl Into<Text>,
    about: impl Into<Text>,
    lines: Vec<Line>,
) -> Chart {
    Chart {
        id: id.into(),
        section: section.into(),
        title: title.into(),
        about: about.into(),
        unit: unit.into(),
        kind: Kind::Time,
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
