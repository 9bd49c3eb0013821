//! How long do answers take? Percentiles of now and of the phase, and how they went.

use assay_record::histogram::Histogram;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::widgets::{Cell, Row, Table};

use super::parts::{Curve, GOOD, MEASURED, SLOW, boxed, draw_curves, head, of_seconds, right};
use crate::live::state::{Settled, State};
use crate::live::words::{count, percent, quantile_of, time_us};

/// Draws the page.
pub fn draw(frame: &mut Frame, area: Rect, state: &State) {
    let [now, phase, curves] =
        Layout::vertical([Constraint::Length(6), Constraint::Length(6), Constraint::Fill(1)]).areas(area);
    let recent = state.recent();
    draw_table(frame, now, "response time, last 5 s", Some(&recent.hit), Some(&recent.miss));
    let current = state.current();
    let title =
        current.map_or_else(String::new, |phase| format!("response time, {} so far", phase.info.name));
    let (hit, miss) = (current.and_then(|p| p.hit.as_deref()), current.and_then(|p| p.miss.as_deref()));
    draw_table(frame, phase, &title, hit, miss);
    draw_over_time(frame, curves, state);
}

fn draw_table(frame: &mut Frame, area: Rect, title: &str, hit: Option<&Histogram>, miss: Option<&Histogram>) {
    let mut all = Histogram::new();
    hit.into_iter().chain(miss).for_each(|part| all.merge(part));
    let row = |name: &'static str, colour, histogram: Option<&Histogram>| {
        let mean = histogram.and_then(Histogram::mean_us).map(|us| us.round() as u64);
        let quantiles = [0.5, 0.9, 0.99, 0.999, 1.0].map(|share| right(quantile_of(histogram, share)));
        let values = right(count(histogram.map_or(0, Histogram::count)));
        Row::new([Cell::from(name), right(time_us(mean))].into_iter().chain(quantiles).chain([values]))
            .style(Style::new().fg(colour))
    };
    let rows = [row(" all", Color::Reset, Some(&all)), row(" hit", GOOD, hit), row(" miss", SLOW, miss)];
    let widths = [Constraint::Length(6)].into_iter().chain([Constraint::Fill(1); 7]);
    let table = Table::new(rows, widths)
        .header(head(&["mean", "p50", "p90", "p99", "p99.9", "max", "answers"]))
        .block(boxed(title));
    frame.render_widget(table, area);
}

/// How percentiles and the hit ratio went over the last minutes.
pub fn draw_over_time(frame: &mut Frame, area: Rect, state: &State) {
    let block = boxed("response time and hit ratio, second by second");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let last = state.seconds.iter().rev().find_map(|second| second.settled).unwrap_or_default();
    let curve = |name, colour, value: fn(&Settled) -> Option<u64>| Curve {
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
