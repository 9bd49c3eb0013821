//! Page of the most important figures while a run goes on.

use assay_base::settings::show::{bytes, count};
use assay_measurement::ratios::HitRatio;
use assay_report::require::RequirementState;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Padding, Paragraph, Row, Table};

use super::parts::{
    BAD, Curve, GOOD, MEASURED, OFFERED, QUIET, SLOW, boxed, draw_curves, head, of_seconds,
    requirement_lines, right,
};
use super::{machine, times};
use crate::live::own::AlarmLevel;
use crate::live::state::{LiveSecond, LiveState, PhaseState, RecentTimes};
use crate::live::words::{bounds_us, clock, percent, quantile, rate};

/// Lateness of requests (99th percentile) from which on it is coloured: more than Assay should ever add.
const LATE_US: u64 = 1_000;
/// Lines from which on there is room for curves of response times.
const TALL: u16 = 34;
/// Columns from which on they stand beside the rest.
const WIDE: u16 = 130;
/// Requirements that are listed here; the others are on their page.
const LISTED: usize = 5;

pub fn draw(frame: &mut Frame, area: Rect, state: &LiveState) {
    if area.width < WIDE {
        return draw_column(frame, area, state, area.height >= TALL);
    }
    let [left, side] = Layout::horizontal([Constraint::Fill(5), Constraint::Fill(4)]).areas(area);
    draw_column(frame, left, state, false);
    // Beside the boxes of the left: below its four lines of phases, above its two of words.
    let side = Rect { y: side.y + 4, height: side.height.saturating_sub(6), ..side };
    let listed = boxed_lines(state);
    let [curves, machines, list] =
        Layout::vertical([Constraint::Fill(3), Constraint::Fill(4), Constraint::Length(listed)]).areas(side);
    times::draw_over_time(frame, curves, state);
    machine::draw_over_time(frame, machines, state);
    draw_requirements(frame, list, state);
}

/// Lines that a box of requirements takes.
fn boxed_lines(state: &LiveState) -> u16 {
    match state.requirements.len() {
        0 => 0,
        all => all.min(LISTED) as u16 + 2,
    }
}

fn draw_column(frame: &mut Frame, area: Rect, state: &LiveState, tall: bool) {
    let (alarm, own) = state.own.status(state.now_ms);
    // Where there is no room for it, it takes its line from the curves when there is something to say.
    let own_line = !own.is_empty() && (area.height >= 22 || alarm > AlarmLevel::Quiet);
    let listed = if tall { boxed_lines(state) } else { 0 };
    let roomy = area.height >= 22 + u16::from(own_line);
    let [_, names, bar, phase, rates, curves, response, under_way, list, own_area, errors] =
        Layout::vertical([
            Constraint::Length(u16::from(roomy)),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(5),
            if tall { Constraint::Fill(1) } else { Constraint::Length(0) },
            Constraint::Length(6),
            Constraint::Length(6),
            Constraint::Length(listed),
            Constraint::Length(u16::from(own_line)),
            Constraint::Length(1),
        ])
        .areas(area);
    draw_phases(frame, names, bar, state);
    draw_phase(frame, phase, state);
    draw_rates(frame, rates, state);
    if tall {
        times::draw_over_time(frame, curves, state);
    }
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(response);
    let recent = state.recent();
    draw_times(frame, left, &recent);
    draw_ratios(frame, right, state);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(under_way);
    draw_outcomes(frame, left, state);
    draw_levels(frame, right, state, &recent);
    draw_requirements(frame, list, state);
    draw_own(frame, own_area, alarm, &own);
    draw_errors(frame, errors, state);
}

/// Columns of each phase's part of the bar: in proportion to planned time, one at least.
fn phase_widths(phases: &[PhaseState], width: u16) -> Vec<u16> {
    let length_ms = |phase: &PhaseState| match (phase.info.planned_start_ms, phase.info.planned_end_ms) {
        (Some(start), Some(end)) => end.saturating_sub(start),
        _ => 0,
    };
    let count = phases.len().max(1) as u64;
    let known_ms: u64 = phases.iter().map(length_ms).sum();
    // A phase without a planned length is drawn as long as the average of the others.
    let assumed_ms = (known_ms / count).max(1);
    let lengths: Vec<u64> =
        phases.iter().map(|phase| if length_ms(phase) > 0 { length_ms(phase) } else { assumed_ms }).collect();
    let total_ms: u64 = lengths.iter().sum();
    let mut ends = Vec::new();
    let mut sum_ms = 0;
    for length in lengths {
        sum_ms += length;
        ends.push((sum_ms as f64 / total_ms as f64 * f64::from(width)).round() as u16);
    }
    let mut before = 0;
    ends.into_iter()
        .map(|end| {
            let part = end.max(before + 1).min(width).saturating_sub(before);
            before += part;
            part
        })
        .collect()
}

fn draw_phases(frame: &mut Frame, names: Rect, bar: Rect, state: &LiveState) {
    if state.phases.is_empty() {
        frame.render_widget(Paragraph::new(format!(" {} …", state.stage)), names);
        return;
    }
    let inner = |area: Rect| Rect { x: area.x + 1, width: area.width - 2, ..area };
    let (names, bar) = (inner(names), inner(bar));
    let widths = phase_widths(&state.phases, bar.width);
    let (mut x, mut named) = (0, 0);
    for (phase, width) in state.phases.iter().zip(widths) {
        let running = phase.began_ms.is_some() && phase.ended_ms.is_none();
        let style = match (running, phase.ended_ms) {
            (true, _) => Style::new().bold(),
            (_, Some(_)) => Style::new().fg(GOOD),
            _ => Style::new().fg(QUIET),
        };
        // A name that does not fit is cut, so that phases keep their places; the last may begin a little earlier.
        let length = phase.info.name.chars().count() as u16;
        let is_last = x + width >= names.width;
        let begin = if is_last { x.min(names.width.saturating_sub(length).max(named)) } else { x };
        let room = if is_last { names.width - begin } else { width.saturating_sub(1).max(1) };
        let name: String = phase.info.name.chars().take(usize::from(room)).collect();
        named = begin + length.min(room) + 1;
        frame.render_widget(Span::styled(name, style), Rect { x: names.x + begin, width: room, ..names });
        let filled = (state.done(phase) * f64::from(width)).round() as usize;
        let colour = if running { MEASURED } else { GOOD };
        let cells = Line::from(vec![
            "█".repeat(filled).fg(colour),
            "░".repeat(usize::from(width).saturating_sub(filled)).fg(QUIET),
        ]);
        frame.render_widget(cells, Rect { x: bar.x + x, width, ..bar });
        x += width;
    }
}

fn draw_phase(frame: &mut Frame, area: Rect, state: &LiveState) {
    let Some(phase) = state.current() else { return };
    let words = if state.draining {
        format!(" {}", state.stage)
    } else {
        let load = ramp("load", phase.info.load.0, phase.info.load.1);
        let recurrence = ramp("recurrence", phase.info.recurrence.0, phase.info.recurrence.1);
        format!(" {}: {}{load}{recurrence}", state.name_and_done(phase), phase.info.goal)
    };
    let total = state.planned_ms().map_or(String::new(), |ms| {
        format!(" of {}, {} left", clock(ms), clock(ms.saturating_sub(state.now_ms)))
    });
    let right = format!("{}{total} ", clock(state.now_ms));
    frame.render_widget(Paragraph::new(words), area);
    frame.render_widget(Paragraph::new(right.bold()).alignment(Alignment::Right), area);
}

/// `, load 0.10→1.00`, or nothing for a factor that stays 1.
fn ramp(name: &str, begin: f64, end: f64) -> String {
    if begin == end {
        if begin == 1.0 { String::new() } else { format!(", {name} {begin:.2}") }
    } else {
        format!(", {name} {begin:.2}→{end:.2}")
    }
}

fn draw_rates(frame: &mut Frame, area: Rect, state: &LiveState) {
    let block = boxed("requests per second");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let last = state.last_second().cloned().unwrap_or_default();
    // Both curves to one scale, so that they can be compared.
    let top = state.seconds.iter().map(|s| s.offered().max(s.measured())).fold(1.0, f64::max).ceil() as u64;
    let [curves, errors] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(inner);
    let curve = |name, colour, value: fn(&LiveSecond) -> f64| Curve {
        name,
        last: rate(value(&last)),
        colour,
        values: of_seconds(state, |second| value(second).round() as u64),
        top: Some(top),
    };
    draw_curves(
        frame,
        curves,
        &[curve("offered", OFFERED, LiveSecond::offered), curve("measured", MEASURED, LiveSecond::measured)],
    );
    let failed = last.counts.error_total();
    let colour = if state.errors().is_empty() { QUIET } else { BAD };
    let errors_curve = Curve {
        name: "errors",
        last: count(failed),
        colour,
        values: of_seconds(state, |second| second.counts.error_total()),
        top: None,
    };
    draw_curves(frame, errors, &[errors_curve]);
}

fn draw_times(frame: &mut Frame, area: Rect, recent: &RecentTimes) {
    let row = |name: &'static str, colour, cells: [String; 3]| {
        let cells = [Cell::from(name)].into_iter().chain(cells.map(right));
        Row::new(cells).style(Style::new().fg(colour))
    };
    let of = |histogram| [0.5, 0.99, 1.0].map(|share| quantile(histogram, share));
    // Requests that timed out or were never sent are among all, as long as they had waited.
    let all = recent.all();
    let of_all = [all.quantile(0.5), all.quantile(0.99), all.max()].map(bounds_us);
    let rows = [
        row(" all", Color::Reset, of_all),
        row(" hit", GOOD, of(&recent.hit)),
        row(" miss", SLOW, of(&recent.miss)),
    ];
    let widths = [Constraint::Length(6), Constraint::Fill(1), Constraint::Fill(1), Constraint::Fill(1)];
    let table = Table::new(rows, widths)
        .header(head(&["p50", "p99", "max"]))
        .block(boxed("response time, last 5 s").padding(Padding::right(1)));
    frame.render_widget(table, area);
}

fn draw_ratios(frame: &mut Frame, area: Rect, state: &LiveState) {
    let row = |name: &'static str, ratios: HitRatio| {
        Row::new([
            Cell::from(name),
            right(percent(ratios.offered)),
            right(percent(ratios.ideal)),
            right(percent(ratios.measured)).style(Style::new().fg(GOOD).add_modifier(Modifier::BOLD)),
        ])
    };
    let (dhr, bhr) = state.current().map(|phase| (phase.dhr(), phase.bhr())).unwrap_or_default();
    let of_ideal = dhr.ideal.filter(|ideal| *ideal > 0.0).and_then(|ideal| Some(dhr.measured? / ideal));
    let share = Row::new([
        Cell::from(" of ideal").style(Style::new().fg(QUIET)),
        Cell::from(""),
        Cell::from(""),
        right(percent(of_ideal)).style(Style::new().fg(QUIET)),
    ]);
    let widths = [Constraint::Length(10), Constraint::Fill(1), Constraint::Fill(1), Constraint::Fill(1)];
    let table = Table::new([row(" documents", dhr), row(" bytes", bhr), share], widths)
        .header(head(&["offered", "ideal", "measured"]))
        .block(boxed("hit ratio, this phase").padding(Padding::right(1)));
    frame.render_widget(table, area);
}

fn draw_outcomes(frame: &mut Frame, area: Rect, state: &LiveState) {
    let outcomes = state.current().map(PhaseState::outcomes).unwrap_or_default();
    let total = outcomes.hit + outcomes.collapsed + outcomes.revalidated + outcomes.miss;
    let block = boxed("outcomes, this phase");
    let bar_room = usize::from(block.inner(area).width).saturating_sub(31);
    let line = |name: &str, number: u64, colour: Color| {
        let share = if total > 0 { number as f64 / total as f64 } else { 0.0 };
        let percent = percent((total > 0).then_some(share));
        let bar = "▆".repeat((share * bar_room as f64).round() as usize);
        Line::from(vec![
            Span::raw(format!(" {name:<11}{:>9} {percent:>8} ", count(number))),
            Span::styled(bar, Style::new().fg(colour)),
        ])
    };
    let lines = vec![
        line("hit", outcomes.hit, GOOD),
        line("collapsed", outcomes.collapsed, GOOD),
        line("revalidated", outcomes.revalidated, MEASURED),
        line("miss", outcomes.miss, SLOW),
    ];
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_levels(frame: &mut Frame, area: Rect, state: &LiveState, recent: &RecentTimes) {
    let block = boxed("connections, processors, memory");
    // Two columns of names and figures; what is left of the width stands between them.
    let gap = usize::from(block.inner(area).width).saturating_sub(36).clamp(1, 12);
    let pair = |left: (&str, String), right: (&str, String)| {
        Line::from(format!(" {:<11}{:>8}{:gap$}{:<9}{:>6} ", left.0, left.1, "", right.0, right.1))
    };
    // What they use: processors, memory; and one thing more.
    let used = |name: &str, roles: &[&str], more: String| {
        let busy = state.processors(roles).map_or("–".into(), |share| format!("{:.0} %", share * 100.0));
        let memory = state.memory(roles).map_or("–".into(), bytes);
        let gap = gap + 1;
        Line::from(format!(" {name:<6}{busy:>6}{memory:>9}{:gap$}{more}", ""))
    };
    let levels = &state.levels;
    let late = quantile(&recent.lateness, 0.99);
    let waiting = pair(("waiting", count(levels.waiting)), ("unsent", count(state.unsent())));
    let waits = levels.waiting > 0 || state.unsent() > 0;
    let is_late = recent.lateness.quantile_us(0.99).is_some_and(|us| us >= LATE_US);
    let own = used("Assay", &["robots", "origins"], format!("late {late}"));
    let lines = vec![
        pair(("connections", count(levels.connections)), ("in flight", count(levels.in_flight))),
        if waits { waiting.style(Style::new().fg(SLOW)) } else { waiting },
        used("proxy", &["proxy"], String::new()),
        if is_late { own.style(Style::new().fg(SLOW)) } else { own },
    ];
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_requirements(frame: &mut Frame, area: Rect, state: &LiveState) {
    if area.height > 2 {
        let all = state.requirements.len();
        let more =
            if all > LISTED { format!(" ({} more on their page)", all - LISTED) } else { String::new() };
        let lines = requirement_lines(state).into_iter().take(LISTED).collect::<Vec<_>>();
        frame.render_widget(Paragraph::new(lines).block(boxed(&format!("requirements{more}"))), area);
    }
}

/// Assay itself: dim while all is well, and not to be missed when not.
fn draw_own(frame: &mut Frame, area: Rect, alarm: AlarmLevel, words: &str) {
    let style = match alarm {
        AlarmLevel::Quiet => Style::new().fg(QUIET),
        AlarmLevel::Look => Style::new().fg(SLOW),
        AlarmLevel::Loud => Style::new().fg(BAD).bold().reversed(),
    };
    frame.render_widget(Paragraph::new(Span::styled(format!(" {words} "), style)), area);
}

/// Errors on the left, requirements on the right.
fn draw_errors(frame: &mut Frame, area: Rect, state: &LiveState) {
    let requirements = requirements_in_short(state);
    let errors = state.errors();
    // Errors matter more, and "no errors" needs little room.
    let quiet = errors.is_empty() && state.messages.is_empty();
    let most = if quiet { area.width.saturating_sub(11) } else { area.width / 2 };
    let room = requirements.as_ref().map_or(0, |(words, _)| words.chars().count() as u16).min(most);
    let [left, side] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(room)]).areas(area);
    let last = state.messages.back();
    let text = match (errors.is_empty(), last) {
        (true, None) => " no errors".fg(QUIET),
        (true, Some(message)) => format!(" {message}").fg(SLOW),
        (false, _) => {
            let kinds: Vec<_> = errors.iter().map(|(name, n)| format!("{name} {}", count(*n))).collect();
            let last = last.map_or(String::new(), |message| format!("; last: {message}"));
            format!(" errors: {}{last}", kinds.join(", ")).fg(BAD).bold()
        }
    };
    frame.render_widget(Paragraph::new(text), left);
    if let Some((words, colour)) = requirements {
        frame.render_widget(Paragraph::new(words.fg(colour).bold()).alignment(Alignment::Right), side);
    }
}

/// The first requirement that fails, else how many there are that do not; none: nothing is required.
fn requirements_in_short(state: &LiveState) -> Option<(String, Color)> {
    let all = &state.requirements;
    let first = |stands| all.iter().find(|one| one.state == stands);
    if let Some(one) = first(RequirementState::Failed) {
        return Some((format!("✗ failed: {} ({}) ", one.text, one.seen), BAD));
    }
    if let Some(one) = first(RequirementState::Failing) {
        return Some((format!("! failing so far: {} ({}) ", one.text, one.seen), SLOW));
    }
    let plural = if all.len() == 1 { "" } else { "s" };
    let words = format!("✓ {} requirement{plural}, none fails ", all.len());
    (!all.is_empty()).then_some((words, QUIET))
}
