//! A page that is no run's report. Numbers and words in sections, with plots and tables. Whoever has them fills in a
//! [`Sheet`]; how it looks is decided by the crate that makes pages, once for all.

use serde::Serialize;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sheet {
    pub title: String,
    /// What stands above the heading: when it was, how long.
    pub eyebrow: String,
    /// What stands below it, a sentence each.
    pub lead: Vec<String>,
    /// The figures that count.
    pub tiles: Vec<Tile>,
    /// The rest, under headings.
    pub sections: Vec<Section>,
    /// The time axis of all its plots over time.
    pub time: Option<TimeAxis>,
    /// What it was made of and by whom, for its last line.
    pub footer: String,
}

/// A figure with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tile {
    pub title: String,
    pub value: String,
    /// What belongs to it.
    pub detail: String,
}

/// A heading and what stands under it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Section {
    /// Its name in links: lower-case letters and dashes.
    pub id: &'static str,
    pub title: String,
    pub plots: Vec<Plot>,
    pub tables: Vec<Table>,
    /// What is said, a sentence each.
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
    /// A sentence on it; may be empty.
    pub about: String,
    /// What its rows are.
    pub first: String,
    /// What its columns are.
    pub heads: Vec<String>,
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    /// Its share of the whole in percent, which is drawn; none: it has none.
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
    /// Named stretches of it: name, beginning and end in seconds.
    pub spans: Vec<(String, f64, f64)>,
}

/// How lines are drawn.
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

/// Something that is drawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plot {
    /// Its name in the page: lower-case letters and dashes.
    pub id: &'static str,
    pub title: String,
    /// One sentence: what is seen here.
    pub about: String,
    /// Unit of its values.
    pub unit: String,
    /// How lines are drawn.
    pub kind: PlotKind,
    /// The values' axis is logarithmic.
    pub log: bool,
    /// What x is, where it is not time.
    pub x_label: String,
    pub lines: Vec<PlotLine>,
}

/// One line of a plot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlotLine {
    pub name: String,
    /// What colour it has, by meaning (`hit`, `miss`, `error`, `p50`, `all`, `offered`, `s0` to `s7` for things of one kind).
    pub role: &'static str,
    /// Where its values are; empty: on the time axis.
    pub x: Vec<f64>,
    /// Its values; none: not known there.
    pub values: Vec<Option<f64>>,
    /// The lower end of a band around each of them; empty: there is no band.
    pub low: Vec<Option<f64>>,
    pub high: Vec<Option<f64>>,
}
