//! A page other than a run's report: numbers and sentences in sections, with plots and tables. Callers fill in a
//! [`Sheet`]; the crate that writes pages decides in one place how it looks.

use serde::Serialize;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sheet {
    pub title: String,
    /// Line above the heading: date and length.
    pub eyebrow: String,
    /// Sentences below the heading.
    pub lead: Vec<String>,
    /// Main figures.
    pub tiles: Vec<Tile>,
    /// Everything else, under headings.
    pub sections: Vec<Section>,
    /// Time axis of all plots over time.
    pub time: Option<TimeAxis>,
    /// Last line: source and author of the page.
    pub footer: String,
}

/// A figure with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tile {
    pub title: String,
    pub value: String,
    /// Explanation of the value.
    pub detail: String,
}

/// A heading with its plots, tables and sentences.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Section {
    /// Name in links: lower-case letters and dashes.
    pub id: &'static str,
    pub title: String,
    pub plots: Vec<Plot>,
    pub tables: Vec<Table>,
    pub words: Vec<String>,
}

impl Section {
    /// True when there is nothing under the heading.
    pub fn is_empty(&self) -> bool {
        self.plots.is_empty() && self.tables.is_empty() && self.words.is_empty()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    pub title: String,
    /// Sentence on the table; may be empty.
    pub about: String,
    /// Heading of the names of rows.
    pub first: String,
    /// Headings of the columns.
    pub heads: Vec<String>,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    /// Share of the whole in percent, which is drawn; none: no share.
    pub share: Option<f64>,
    pub cells: Vec<String>,
}

/// The time axis that plots share.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TimeAxis {
    /// Width of a step in seconds.
    pub step_s: f64,
    /// Middle of every step, in seconds since the beginning.
    pub middle_s: Vec<f64>,
    /// Named stretches: name, beginning and end in seconds.
    pub spans: Vec<(String, f64, f64)>,
}

/// Way in which the lines of a plot are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Values by the steps of the time axis.
    #[default]
    Time,
    /// Points, each line with its own x.
    Points,
    /// Lines over a number, all with the same x; they may have bands.
    Lines,
    /// The share, in percent, that was no more than x; x is logarithmic, and the same for all lines.
    Cumulative,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plot {
    /// Name in the page: lower-case letters and dashes.
    pub id: &'static str,
    pub title: String,
    /// One sentence on what the plot shows.
    pub about: String,
    /// Unit of its values.
    pub unit: String,
    pub kind: PlotKind,
    /// The values' axis is logarithmic.
    pub log: bool,
    /// Label of the x axis, where it is not time.
    pub x_label: String,
    pub lines: Vec<PlotLine>,
}

/// One line of a plot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlotLine {
    pub name: String,
    /// Colour, by meaning (`hit`, `miss`, `error`, `p50`, `all`, `offered`, `s0` to `s7` for things of one kind).
    pub role: &'static str,
    /// x of each value; empty: the time axis.
    pub x: Vec<f64>,
    /// Values; none: not known at that x.
    pub values: Vec<Option<f64>>,
    /// The lower end of a band around each of them; empty: there is no band.
    pub low: Vec<Option<f64>>,
    pub high: Vec<Option<f64>>,
}
