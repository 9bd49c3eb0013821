//! The result as numbers and words for a page.

use assay_record::sheet::{Plot, PlotKind, PlotLine, Row, Section, Sheet, Table, Tile};

use crate::document::{Curve, Document, Figures, Unit};
use crate::terminal::input;
use crate::words::{percent, size};

const COLOURS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// What the page of a simulation says.
pub fn sheet(document: &Document) -> Sheet {
    let has_bytes = document.input.unit == Unit::Bytes;
    let mut plots = vec![plot(document, "documents", "Document hit ratio", |figures| figures.dhr)];
    let mut tables = vec![table(document, "Document hit ratio", |figures| figures.dhr)];
    if has_bytes {
        plots.push(plot(document, "bytes", "Byte hit ratio", |figures| figures.bhr));
        tables.push(table(document, "Byte hit ratio", |figures| figures.bhr));
    }
    let section =
        |id, title: &str, plots, tables, words| Section { id, title: title.into(), plots, tables, words };
    let mut sections = vec![
        section("advice", "What follows", Vec::new(), Vec::new(), document.advice.clone()),
        section("proof", "Predicted and measured", Vec::new(), proven(document), Vec::new()),
        section("curves", "Hit ratio by size", plots, tables, Vec::new()),
        section("notes", "Notes", Vec::new(), Vec::new(), document.notes.clone()),
    ];
    sections.retain(|section| !section.is_empty());
    Sheet {
        title: "How large the cache must be".into(),
        eyebrow: document.input.format.clone(),
        lead: vec![input(document)],
        tiles: tiles(document),
        sections,
        time: None,
        footer:
            "from simulations of these requests; this page is one file and loads nothing from the network"
                .into(),
    }
}

/// The table of predictions, if there are any.
fn proven(document: &Document) -> Vec<Table> {
    let Some(proof) = &document.proof else { return Vec::new() };
    let (heads, rows) = proof.table();
    let rows = proof.cells.iter().zip(rows).map(|(cell, cells)| Row {
        name: format!("{}, {}", cell.proxy, size(cell.size_bytes, Unit::Bytes)),
        share: None,
        cells,
    });
    let about = "A positive difference: the proxy hit more than was predicted.";
    vec![Table {
        title: "Hit ratios".into(),
        about: about.into(),
        first: "proxy and size".into(),
        heads: heads.into_iter().map(Into::into).collect(),
        rows: rows.collect(),
    }]
}

fn tiles(document: &Document) -> Vec<Tile> {
    let infinite = Tile {
        title: "Infinite cache".into(),
        value: percent(document.infinite.dhr),
        detail: format!(
            "of the requests, with {}",
            size(document.input.footprint_bytes, document.input.unit)
        ),
    };
    let enough = document.curves.iter().filter_map(|curve| {
        let enough = curve.enough.iter().find(|enough| enough.size_bytes.is_some())?;
        Some(Tile {
            title: format!("Enough for {}", curve.policy.title()),
            value: size(enough.size_bytes?, document.input.unit),
            detail: format!("at most {} points below an infinite cache", enough.within_points),
        })
    });
    [infinite].into_iter().chain(enough).collect()
}

fn plot(document: &Document, id: &'static str, title: &str, of: fn(&Figures) -> Option<f64>) -> Plot {
    let (divisor, unit) = match document.input.unit {
        Unit::Bytes => ((1u64 << 20) as f64, "MB"),
        Unit::Objects => (1.0, "objects"),
    };
    let line = |(curve, role): (&Curve, &&'static str)| PlotLine {
        name: curve.policy.title().into(),
        role,
        x: curve.points.iter().map(|point| point.size_bytes as f64 / divisor).collect(),
        values: curve.points.iter().map(|point| of(&point.figures).map(|ratio| ratio * 100.0)).collect(),
    };
    Plot {
        id,
        title: title.into(),
        about: format!("Of caches of each size; an infinite one has {}.", percent(of(&document.infinite))),
        unit: "%".into(),
        kind: PlotKind::Points,
        x_label: format!("size of the cache ({unit})"),
        lines: document.curves.iter().zip(COLOURS.iter().cycle()).map(line).collect(),
        ..Plot::default()
    }
}

fn table(document: &Document, title: &str, of: fn(&Figures) -> Option<f64>) -> Table {
    let points = document.curves.first().map(|curve| curve.points.as_slice()).unwrap_or_default();
    let rows = points.iter().enumerate().map(|(at, point)| Row {
        name: size(point.size_bytes, document.input.unit),
        share: None,
        cells: document
            .curves
            .iter()
            .map(|curve| percent(curve.points.get(at).and_then(|p| of(&p.figures))))
            .collect(),
    });
    Table {
        title: title.into(),
        about: String::new(),
        first: "size".into(),
        heads: document.curves.iter().map(|curve| curve.policy.title().into()).collect(),
        rows: rows.collect(),
    }
}
