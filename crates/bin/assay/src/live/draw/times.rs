//! Response times. Percentiles of now and of the phase, and how they went.

use assay_base::settings::show::count;
use assay_measurement::censored::Censored;
use assay_measurement::histogram::Histogram;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::widgets::{Cell, Row, Table};

use super::parts::{Curve, GOOD, MEASURED, SLOW, boxed, draw_curves, head, of_seconds, right};
use crate::live::state::{LiveState, PhaseState, SecondFigures};
use crate::live::words::{bounds_us, percent, quantile_of, time_us};

pub fn draw(frame: &mut Frame, area: Rect, state: &LiveState) {
    let [now, phase, curves] =
        Layout::vertical([Constraint::Length(6), Constraint::Length(6), Constraint::Fill(1)]).areas(area);
    let recent = state.recent();
    let (hit, miss) = (Some(&recent.hit), Some(&recent.miss));
    draw_table(frame, now, "response time, last 5 s", &recent.all(), hit, miss);
    let current = state.current();
    let title =
        current.map_or_else(String::new, |phase| format!("response time, {} so far", phase.info.name));
    let (hit, miss) = (current.and_then(|p| p.hit.as_deref()), current.and_then(|p| p.miss.as_deref()));
    let all = current.map_or_else(|| Histogram::new().into(), PhaseState::all);
    draw_table(frame, phase, &title, &all, hit, miss);
    draw_over_time(frame, curves, state);
}

/// Requests that timed out or were never sent are in `all`, as long as they had waited.
fn draw_table(
    frame: &mut Frame,
    area: Rect,
    title: &str,
    all: &Censored,
    hit: Option<&Histogram>,
    miss: Option<&Histogram>,
) {
    const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
    let line = |name: &'static str, colour, cells: [String; 6], values: u64| {
        let cells = cells.into_iter().chain([count(values)]).map(right);
        Row::new([Cell::from(name)].into_iter().chain(cells)).style(Style::new().fg(colour))
    };
    let row = |name: &'static str, colour, histogram: Option<&Histogram>| {
        let mean = histogram.and_then(Histogram::mean_us).map(|us| us.round() as u64);
        let [p50, p90, p99, p999] = SHARES.map(|share| quantile_of(histogram, share));
        let cells = [time_us(mean), p50, p90, p99, p999, quantile_of(histogram, 1.0)];
        line(name, colour, cells, histogram.map_or(0, Histogram::count))
    };
    let [p50, p90, p99, p999] = SHARES.map(|share| bounds_us(all.quantile(share)));
    let cells = [bounds_us(all.mean()), p50, p90, p99, p999, bounds_us(all.max())];
    let of_all = line(" all", Color::Reset, cells, all.count());
    let rows = [of_all, row(" hit", GOOD, hit), row(" miss", SLOW, miss)];
    let widths = [Constraint::Length(6)].into_iter().chain([Constraint::Fill(1); 7]);
    let table = Table::new(rows, widths)
        .header(head(&["mean", "p50", "p90", "p99", "p99.9", "max", "requests"]))
        .block(boxed(title));
    frame.render_widget(table, area);
}

/// Percentiles and hit ratio over the last minutes.
pub fn draw_over_time(frame: &mut Frame, area: Rect, state: &LiveState) {
    let block = boxed("response time and hit ratio, second by second");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let last = state.seconds.iter().rev().find_map(|second| second.settled).unwrap_or_default();
    let curve = |name, colour, value: fn(&SecondFigures) -> Option<u64>| Curve {
        name,
        last: time_us(value(&last)),
        colour,
        values: of_seconds(state, |second| second.settled.as_ref().and_then(value).unwrap_or(0)),
        top: None,
    };
    let mut curves = vec![
        curve("hit p50", GOOD, |settled| settled.hit_us.0),
        curve("hit p99", GOOD, |settled| settled.hit_us.1),
        curve("miss p50", SLOW, |settled| settled.miss_us.0),
        curve("miss p99", SLOW, |settled| settled.miss_us.1),
        Curve {
            name: "DHR",
            last: percent(last.dhr),
            colour: MEASURED,
            values: of_seconds(state, |second| {
                second.settled.and_then(|settled| settled.dhr).map_or(0, |ratio| (ratio * 1000.0) as u64)
            }),
            top: Some(1000),
        },
    ];
    // Where there is little room, what is worst is kept.
    if inner.height < 5 {
        curves.remove(2);
        curves.remove(0);
    }
    curves.truncate(usize::from(inner.height));
    draw_curves(frame, inner, &curves);
}
