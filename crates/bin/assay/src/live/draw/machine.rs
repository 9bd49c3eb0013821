//! Page of resources: processors and memory over time, connections, Assay's own timers.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::parts::{BAD, Curve, GOOD, MEASURED, OFFERED, QUIET, SLOW, boxed, draw_curves};
use crate::live::own::AlarmLevel;
use crate::live::state::LiveState;
use crate::live::words::quantile;
use assay_base::settings::show::{bytes, count};

pub fn draw(frame: &mut Frame, area: Rect, state: &LiveState) {
    let [curves, levels] = Layout::vertical([Constraint::Fill(1), Constraint::Length(7)]).areas(area);
    draw_over_time(frame, curves, state);
    let block = boxed("connections, and Assay itself");
    let recent = state.recent();
    let levels_now = &state.levels;
    let (alarm, own) = state.own.status(state.now_ms);
    let colour = match alarm {
        AlarmLevel::Quiet => Color::Reset,
        AlarmLevel::Look => SLOW,
        AlarmLevel::Loud => BAD,
    };
    let lines = vec![
        Line::from(format!(
            " {} connections, {} requests in flight, {} waiting for a connection",
            count(levels_now.connections),
            count(levels_now.in_flight),
            count(levels_now.waiting)
        )),
        Line::from(format!(" {} requests unsent when their phase ended", count(state.unsent()))),
        Line::from(format!(
            " lateness in the last 5 s: p50 {}, p99 {}, max {}",
            quantile(&recent.lateness, 0.5),
            quantile(&recent.lateness, 0.99),
            quantile(&recent.lateness, 1.0)
        )),
        Line::from(format!(" {own}")).fg(colour),
    ];
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), levels);
}

/// Usage of processes over the last minutes.
pub fn draw_over_time(frame: &mut Frame, area: Rect, state: &LiveState) {
    let block = boxed("processors (100 % is one) and memory");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let processors = |name: &'static str, roles: &'static [&'static str], colour| Curve {
        name,
        last: state.processors(roles).map_or("–".into(), |share| format!("{:.0} %", share * 100.0)),
        colour,
        values: state.history(roles, |used| (used.processors * 1000.0) as u64),
        top: None,
    };
    let memory = |name: &'static str, roles: &'static [&'static str], colour| Curve {
        name,
        last: state.memory(roles).map_or("–".into(), bytes),
        colour,
        values: state.history(roles, |used| used.memory_bytes),
        top: None,
    };
    let mut curves = vec![
        processors("proxy", &["proxy"], SLOW),
        processors("Assay", &["robots", "origins"], MEASURED),
        memory("proxy", &["proxy"], SLOW),
        memory("Assay", &["robots", "origins"], MEASURED),
        processors("machine", &["host"], OFFERED),
        processors("robots", &["robots"], GOOD),
        processors("origins", &["origins"], QUIET),
    ];
    curves.truncate(usize::from(inner.height));
    draw_curves(frame, inner, &curves);
}
