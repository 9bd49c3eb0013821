//! Heat maps, drawn. Darker is more; the scale of darkness is logarithmic, for one in a thousand must be seen.

use super::panel::{FigureLayout, NORMAL, PlotArea, SMALL};
use super::scale::drawable;
use super::shape::{Anchor, Colour, Drawing, INK, Shape};
use super::text_width::text_width;
use crate::chart::{Chart, Heat};

/// More columns than this are put together: a printed column of a paper shows no more.
const MOST_COLUMNS: usize = 160;
/// Shades between white and the darkest.
const SHADES: f64 = 12.0;
const DARKEST: Colour = Colour(0x08, 0x30, 0x6b);

/// Ends of the rows that have something in them.
pub(super) fn edges(heat: &Heat) -> Vec<f64> {
    let rows = heat.cells.iter().map(Vec::len).max().unwrap_or(0);
    let first = heat.cells.iter().filter_map(|column| column.iter().position(|count| *count > 0)).min();
    let first = first.unwrap_or(0);
    heat.y_edges.iter().copied().take(rows + 1).skip(first).filter_map(drawable).collect()
}

fn most(columns: &[Vec<u64>]) -> u64 {
    columns.iter().flatten().copied().max().unwrap_or(0)
}

fn columns(heat: &Heat) -> (usize, Vec<Vec<u64>>) {
    let together = heat.cells.len().div_ceil(MOST_COLUMNS).max(1);
    let add = |cells: &[Vec<u64>]| {
        let mut sum = vec![0u64; cells.iter().map(Vec::len).max().unwrap_or(0)];
        for cell in cells {
            sum.iter_mut().zip(cell).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        }
        sum
    };
    (together, heat.cells.chunks(together).map(add).collect())
}

fn shade(count: u64, most: u64) -> Option<Colour> {
    if count == 0 {
        return None;
    }
    let share = if most <= 1 { 1.0 } else { (count as f64).ln_1p() / (most as f64).ln_1p() };
    Some(DARKEST.with_opacity(((share * SHADES).ceil() / SHADES).max(0.08)))
}

/// The cells; neighbours above each other with the same shade are one.
pub(super) fn draw(drawing: &mut Drawing, sheet: &FigureLayout<'_>, heat: &Heat, plot: &PlotArea) {
    let (together, columns) = columns(heat);
    let most = most(&columns);
    let step = match sheet.time {
        [first, second, ..] => second - first,
        [only] => only * 2.0,
        [] => return,
    };
    for (index, column) in columns.iter().enumerate() {
        let Some(middle) = sheet.time.get(index * together) else { break };
        let start = middle - step / 2.0;
        let (Some(left), Some(right)) = (plot.x(start.max(0.0)), plot.x(start + step * together as f64))
        else {
            continue;
        };
        let mut row = 0;
        while row < column.len() {
            let colour = shade(column[row], most);
            let same = column[row..].iter().take_while(|count| shade(**count, most) == colour).count();
            let edge = |n: usize| heat.y_edges.get(n).and_then(|value| plot.y(*value));
            if let (Some(colour), Some(low), Some(high)) = (colour, edge(row), edge(row + same)) {
                let (width, height) = (right - left, low - high);
                drawing.shapes.push(Shape::Rect { x: left, y: high, width, height, colour });
            }
            row += same;
        }
    }
}

/// Legend of the shades.
pub(super) fn legend(drawing: &mut Drawing, sheet: &FigureLayout<'_>, chart: &Chart, top: f64) -> f64 {
    let Some(heat) = &chart.heat else { return 0.0 };
    let most = most(&columns(heat).1);
    if most == 0 {
        return 0.0;
    }
    let y = top + NORMAL;
    let mut x = sheet.left;
    for power in 0..=most.ilog10() {
        let count = 10u64.pow(power);
        let text = if power < 4 { count.to_string() } else { format!("1e{power}") };
        if let Some(colour) = shade(count, most) {
            drawing.shapes.push(Shape::Rect { x, y: y - 6.0, width: 7.0, height: 6.0, colour });
        }
        drawing.text((x + 9.0, y), SMALL, Anchor::Start, INK, &text);
        x += 9.0 + text_width(&text, SMALL) + 7.0;
    }
    drawing.text((x, y), SMALL, Anchor::Start, INK, "requests");
    NORMAL + 4.0
}

/// All cells, for the table beside the figure: time, from, to, count.
pub(super) fn cells(time: &[f64], heat: &Heat) -> Vec<[f64; 4]> {
    let mut cells = Vec::new();
    for (column, at) in heat.cells.iter().zip(time) {
        for ((row, edges), count) in heat.y_edges.windows(2).enumerate().zip(column) {
            if *count > 0 && row < column.len() {
                cells.push([*at, edges[0], edges[1], *count as f64]);
            }
        }
    }
    cells
}
