//! Every phase, and how it went so far. A table.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::widgets::{Cell, Row, Table};

use super::parts::{BAD, GOOD, QUIET, SLOW, boxed, head, right};
use super::times;
use crate::live::state::{LiveState, PhaseState};
use crate::live::words::{clock, percent, quantile_of, rate};
use assay_base::settings::show::{bytes, count};
use assay_measurement::counts::RobotCounts;

/// Columns from which on there are more figures.
const WIDE: u16 = 118;
/// Lines from which on curves below the table say something.
const CURVES: u16 = 7;

pub fn draw(frame: &mut Frame, area: Rect, state: &LiveState, scrolled: usize) {
    let wide = area.width >= WIDE;
    let names: &[&'static str] = if wide {
        &[
            "done",
            "left",
            "offered/s",
            "measured/s",
            "DHR off.",
            "ideal",
            "measured",
            "hit p50",
            "hit p99",
            "miss p50",
            "miss p99",
            "unsent",
            "errors",
        ]
    } else {
        &["done", "left", "off./s", "meas./s", "ideal", "DHR", "hit p99", "miss p99", "errors"]
    };
    let widths: Vec<u16> = if wide {
        vec![12, 6, 6, 10, 10, 9, 8, 8, 9, 9, 9, 9, 8, 7]
    } else {
        vec![10, 5, 6, 7, 7, 7, 7, 8, 8, 6]
    };
    // What the table does not need is for how it went.
    let needed = state.phases.len().min(1000) as u16 + 3;
    let curves = area.height.saturating_sub(needed);
    let curves = if curves >= CURVES { curves } else { 0 };
    let [area, below] = Layout::vertical([Constraint::Fill(1), Constraint::Length(curves)]).areas(area);
    if curves > 0 {
        times::draw_over_time(frame, below, state);
    }
    let rows = state.phases.iter().map(|phase| row(state, phase, wide));
    let room = usize::from(area.height.saturating_sub(3));
    let first = scrolled.min(state.phases.len().saturating_sub(room));
    let table = Table::new(rows.skip(first), widths.into_iter().map(Constraint::Length))
        .column_spacing(1)
        .header(head(names))
        .block(boxed("phases").title_bottom(working_set(state)));
    frame.render_widget(table, area);
}

/// Current size of the working set, of the planned one.
fn working_set(state: &LiveState) -> String {
    let sum = |of: fn(&RobotCounts) -> u64| state.phases.iter().map(|phase| of(&phase.counts)).sum::<u64>();
    let (objects, volume) = (sum(|counts| counts.working_set), sum(|counts| counts.working_set_bytes));
    let planned = state.header.working_set.map_or(String::new(), |planned| {
        let frozen = planned.frozen_ms.map_or(String::new(), |at| format!(", frozen after {}", clock(at)));
        format!(" of {}{frozen}", bytes(planned.bytes))
    });
    format!(" working set: {} objects, {}{planned} ", count(objects), bytes(volume))
}

fn row(state: &LiveState, phase: &PhaseState, wide: bool) -> Row<'static> {
    let seconds = state.phase_seconds(phase).filter(|length| *length > 0.0);
    let per_second = |count: u64| right(seconds.map_or("–".into(), |length| rate(count as f64 / length)));
    let began = phase.began_ms.is_some();
    let done = state.share_done(phase).filter(|_| began);
    let done = done.map_or("–".into(), |done| format!("{:.0} %", done * 100.0));
    let left = match (began, phase.ended_ms) {
        (_, Some(_)) => String::new(),
        _ => state.phase_left_ms(phase).map_or("–".into(), clock),
    };
    let errors = phase.counts.error_total();
    let number = |value: u64| right(if began { count(value) } else { "–".into() });
    let (hit, miss) = (phase.hit.as_deref(), phase.miss.as_deref());
    let time = |histogram, share| right(quantile_of(histogram, share));
    let dhr = phase.dhr();
    let mut cells = vec![
        Cell::from(format!(" {}", phase.info.name)),
        right(done),
        right(left),
        per_second(phase.counts.due),
        per_second(phase.counts.completed),
    ];
    if wide {
        cells.push(right(percent(dhr.offered)));
    }
    cells.extend([right(percent(dhr.ideal)), right(percent(dhr.measured)).style(Style::new().fg(GOOD))]);
    if wide {
        cells.push(time(hit, 0.5));
    }
    cells.push(time(hit, 0.99));
    if wide {
        cells.push(time(miss, 0.5));
    }
    cells.push(time(miss, 0.99));
    if wide {
        let colour = if phase.counts.unsent > 0 { SLOW } else { QUIET };
        cells.push(number(phase.counts.unsent).style(Style::new().fg(colour)));
    }
    let colour = if errors > 0 { BAD } else { QUIET };
    cells.push(number(errors).style(Style::new().fg(colour)));
    let row = Row::new(cells);
    match (began, phase.ended_ms) {
        (true, None) => row.bold(),
        (true, Some(_)) => row,
        _ => row.style(Style::new().fg(QUIET)),
    }
}
