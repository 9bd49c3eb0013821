//! What does the live view look like? One screen, made for 80 × 24 and better when larger.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Padding, Paragraph, Row, Sparkline, Table};

use super::line::line;
use super::own::Alarm;
use super::state::{PhaseState, Ratios, Recent, Second, State};
use super::words::{clock, count, percent, quantile, rate};

const OFFERED: Color = Color::Blue;
const MEASURED: Color = Color::Cyan;
const GOOD: Color = Color::Green;
const SLOW: Color = Color::Yellow;
const BAD: Color = Color::Red;
const QUIET: Color = Color::DarkGray;

/// Lateness of requests (99th percentile) from which on it is coloured: more than Assay should ever add.
const LATE_US: u64 = 1_000;

/// Smallest screen the boxes fit on.
const SMALLEST: (u16, u16) = (72, 22);

/// Draws the whole view.
pub fn draw(frame: &mut Frame, state: &State) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = vec![Line::from(title_words(state).bold()), Line::from(line(state))];
        frame.render_widget(Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }), area);
        return;
    }
    let (alarm, own) = state.own.status(state.now_ms);
    // Where there is no room for it, it takes its line from the curves when there is something to say.
    let own_line = !own.is_empty() && (area.height >= 24 || alarm > Alarm::Quiet);
    let [title, _, names, bar, phase, rates, times, under_way, own_area, errors, footer] =
        Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::from(area.height >= 24 + u16::from(own_line))),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(5),
            Constraint::Length(6),
            Constraint::Length(6),
            Constraint::Length(u16::from(own_line)),
            Constraint::Length(1),
            Constraint::Length(1),
        ])
        .areas(area);
    draw_title(frame, title, state);
    draw_phases(frame, names, bar, state);
    draw_phase(frame, phase, state);
    draw_rates(frame, rates, state);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(times);
    let recent = state.recent();
    draw_times(frame, left, &recent);
    draw_ratios(frame, right, state);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(under_way);
    draw_outcomes(frame, left, state);
    draw_levels(frame, right, state, &recent);
    draw_own(frame, own_area, alarm, &own);
    draw_errors(frame, errors, state);
    draw_footer(frame, footer, state);
}

fn title_words(state: &State) -> String {
    let rehearsal = if state.header.rehearsal { ", rehearsal" } else { "" };
    format!("{} → {}{rehearsal}", state.header.workload, state.header.target)
}

fn draw_title(frame: &mut Frame, area: Rect, state: &State) {
    let header = &state.header;
    let left = Line::from(vec![" Assay ".reversed().bold(), " ".into(), title_words(state).bold()]);
    let plural = |n: u32| if n == 1 { "" } else { "s" };
    let right = format!(
        "{} robot{}, {} origin{}, seed {} ",
        count(header.robots.into()),
        plural(header.robots),
        count(header.origins.into()),
        plural(header.origins),
        header.seed
    );
    frame.render_widget(Paragraph::new(left), area);
    frame.render_widget(Paragraph::new(right.fg(QUIET)).alignment(Alignment::Right), area);
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

fn draw_phases(frame: &mut Frame, names: Rect, bar: Rect, state: &State) {
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

fn draw_phase(frame: &mut Frame, area: Rect, state: &State) {
    let Some(phase) = state.current() else { return };
    let words = if state.draining {
        format!(" {}", state.stage)
    } else {
        let load = ramp("load", phase.info.load);
        let recurrence = ramp("recurrence", phase.info.recurrence);
        let done = state.done(phase) * 100.0;
        format!(" {} {done:.0} %: {}{load}{recurrence}", phase.info.name, phase.info.goal)
    };
    let total = state.planned_ms().map_or(String::new(), |ms| format!(" of {}", clock(ms)));
    let right = format!("{}{total} ", clock(state.now_ms));
    frame.render_widget(Paragraph::new(words), area);
    frame.render_widget(Paragraph::new(right.bold()).alignment(Alignment::Right), area);
}

/// `, load 0.10→1.00`, or nothing for a factor that stays 1.
fn ramp(name: &str, (begin, end): (f64, f64)) -> String {
    if begin == end {
        if begin == 1.0 { String::new() } else { format!(", {name} {begin:.2}") }
    } else {
        format!(", {name} {begin:.2}→{end:.2}")
    }
}

fn boxed(title: &str) -> Block<'_> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().fg(QUIET))
        .title(Span::styled(format!(" {title} "), Style::new().add_modifier(Modifier::BOLD)))
}

fn draw_rates(frame: &mut Frame, area: Rect, state: &State) {
    let block = boxed("requests per second");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let last = state.last_second().cloned().unwrap_or_default();
    // Both curves to one scale, so that they can be compared.
    let top = state.seconds.iter().map(|s| s.offered().max(s.measured())).fold(1.0, f64::max).ceil() as u64;
    let [offered, measured, errors] =
        Layout::vertical([Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(1)]).areas(inner);
    draw_curve(frame, offered, state, ("offered", OFFERED, top), Second::offered);
    draw_curve(frame, measured, state, ("measured", MEASURED, top), Second::measured);
    let failed = last.counts.error_total();
    let words = format!(" {:<9}{:>9}", "errors", count(failed));
    let colour = if failed > 0 { BAD } else { QUIET };
    frame.render_widget(Paragraph::new(words.fg(colour)), errors);
}

fn draw_curve(
    frame: &mut Frame,
    area: Rect,
    state: &State,
    (name, colour, top): (&str, Color, u64),
    value: impl Fn(&Second) -> f64,
) {
    let [words, curve] = Layout::horizontal([Constraint::Length(20), Constraint::Fill(1)]).areas(area);
    let last = state.last_second().map(&value).unwrap_or_default();
    frame.render_widget(Paragraph::new(format!(" {name:<9}{:>9}", rate(last)).fg(colour)), words);
    let fits = usize::from(curve.width);
    let skip = state.seconds.len().saturating_sub(fits);
    let data: Vec<u64> = state.seconds.iter().skip(skip).map(|s| value(s).round() as u64).collect();
    frame.render_widget(Sparkline::default().data(&data).max(top).style(Style::new().fg(colour)), curve);
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).alignment(Alignment::Right))
}

fn head(names: [&'static str; 3]) -> Row<'static> {
    let cells = names.map(|name| Cell::from(Line::from(name).alignment(Alignment::Right)));
    Row::new([Cell::from("")].into_iter().chain(cells)).style(Style::new().fg(QUIET))
}

fn draw_times(frame: &mut Frame, area: Rect, recent: &Recent) {
    let row = |name: &'static str, colour, histogram| {
        Row::new([
            Cell::from(name),
            right(quantile(histogram, 0.5)),
            right(quantile(histogram, 0.99)),
            right(quantile(histogram, 1.0)),
        ])
        .style(Style::new().fg(colour))
    };
    let rows = [
        row(" all", Color::Reset, &recent.all),
        row(" hit", GOOD, &recent.hit),
        row(" miss", SLOW, &recent.miss),
    ];
    let widths = [Constraint::Length(6), Constraint::Fill(1), Constraint::Fill(1), Constraint::Fill(1)];
    let table = Table::new(rows, widths)
        .header(head(["p50", "p99", "max"]))
        .block(boxed("response time, last 5 s").padding(Padding::right(1)));
    frame.render_widget(table, area);
}

fn draw_ratios(frame: &mut Frame, area: Rect, state: &State) {
    let row = |name: &'static str, ratios: Ratios| {
        Row::new([
            Cell::from(name),
            right(percent(ratios.offered)),
            right(percent(ratios.ideal)),
            right(percent(ratios.measured)).style(Style::new().fg(GOOD).add_modifier(Modifier::BOLD)),
        ])
    };
    let (dhr, bhr) = state.current().map(|phase| (phase.dhr(), phase.bhr())).unwrap_or_default();
    let widths = [Constraint::Length(10), Constraint::Fill(1), Constraint::Fill(1), Constraint::Fill(1)];
    let table = Table::new([row(" documents", dhr), row(" bytes", bhr)], widths)
        .header(head(["offered", "ideal", "measured"]))
        .block(boxed("hit ratio, this phase").padding(Padding::right(1)));
    frame.render_widget(table, area);
}

fn draw_outcomes(frame: &mut Frame, area: Rect, state: &State) {
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

fn draw_levels(frame: &mut Frame, area: Rect, state: &State, recent: &Recent) {
    let block = boxed("connections and processors");
    // Two columns of names and figures; what is left of the width stands between them.
    let gap = usize::from(block.inner(area).width).saturating_sub(36).clamp(1, 12);
    let pair = |left: (&str, String), right: (&str, String)| {
        Line::from(format!(" {:<11}{:>8}{:gap$}{:<9}{:>6} ", left.0, left.1, "", right.0, right.1))
    };
    let busy = |role| state.processor(role).map_or("–".into(), |share| format!("{:.0} %", share * 100.0));
    let levels = &state.levels;
    let lateness = quantile(&recent.lateness, 0.99);
    let waiting = pair(("waiting", count(levels.waiting)), ("unsent", count(state.unsent())));
    let waits = levels.waiting > 0 || state.unsent() > 0;
    let late = recent.lateness.quantile_us(0.99).is_some_and(|us| us >= LATE_US);
    let late_line = pair(("late p99", lateness), ("origins", busy("origins")));
    let lines = vec![
        pair(("connections", count(levels.connections)), ("in flight", count(levels.in_flight))),
        if waits { waiting.style(Style::new().fg(SLOW)) } else { waiting },
        pair(("CPU: proxy", busy("proxy")), ("robots", busy("robots"))),
        if late { late_line.style(Style::new().fg(SLOW)) } else { late_line },
    ];
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Assay itself: dim while all is well, and not to be missed when not.
fn draw_own(frame: &mut Frame, area: Rect, alarm: Alarm, words: &str) {
    let style = match alarm {
        Alarm::Quiet => Style::new().fg(QUIET),
        Alarm::Look => Style::new().fg(SLOW),
        Alarm::Loud => Style::new().fg(BAD).bold().reversed(),
    };
    frame.render_widget(Paragraph::new(Span::styled(format!(" {words} "), style)), area);
}

fn draw_errors(frame: &mut Frame, area: Rect, state: &State) {
    let errors = state.errors();
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
    frame.render_widget(Paragraph::new(text), area);
}

fn draw_footer(frame: &mut Frame, area: Rect, state: &State) {
    let keys = if state.draining { "Ctrl-C quits at once " } else { "Ctrl-C stops and reports " };
    frame.render_widget(Paragraph::new(format!(" {}", state.run_dir).fg(QUIET)), area);
    frame.render_widget(Paragraph::new(keys.fg(QUIET)).alignment(Alignment::Right), area);
}
