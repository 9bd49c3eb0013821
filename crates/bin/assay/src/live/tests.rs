//! The live view, drawn on a screen of letters.

use std::net::SocketAddr;

use assay_measurement::counts::RobotCounts;
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::health::{Stall, ThreadInterval};
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval, RobotLevels};
use assay_measurement::measured::Measured;
use assay_protocol::message::PhaseEvent;
use assay_record::event::{RunEvent, Stage};
use assay_record::run::{PhaseInfo, PlannedWorkingSet, TargetInfo};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use assay_report::require::RequirementStatus;

use super::*;

fn phase(name: &str, goal: &str, start_ms: u64, end_ms: u64, load: (f64, f64)) -> PhaseInfo {
    PhaseInfo {
        name: name.into(),
        goal: goal.into(),
        planned_start_ms: Some(start_ms),
        planned_end_ms: Some(end_ms),
        load,
        recurrence: (1.0, 1.0),
        ..PhaseInfo::default()
    }
}

fn histogram(values_us: impl IntoIterator<Item = u64>) -> assay_measurement::histogram::SparseHistogram {
    let mut histogram = Histogram::new();
    values_us.into_iter().for_each(|us| histogram.record(us));
    histogram.to_sparse()
}

/// What robots say of second `at`, when 400 requests a second are due.
fn second(at: u64) -> RobotInterval {
    let mut interval = RobotInterval {
        start_ms: at * 1000,
        length_ms: 1000,
        phase: if at < 3 { 0 } else { 1 },
        levels: RobotLevels { waiting: 3, in_flight: 121, connections: 412 },
        ..RobotInterval::default()
    };
    interval.times.lateness = histogram((1..=100).map(|n| n * 2));
    let due = if at < 3 { 100 + 100 * at } else { 400 };
    let counts = &mut interval.counts;
    (counts.due, counts.due_basic, counts.offered_hits) = (due, due, due / 2);
    (counts.due_basic_bytes, counts.offered_hit_bytes) = (due * 1000, due * 480);
    (counts.working_set, counts.working_set_bytes) = (due / 2, due * 520);
    (counts.ideal_basic, counts.ideal_hits) = (due, due / 2 - 2);
    (counts.ideal_basic_bytes, counts.ideal_hit_bytes) = (due * 1000, due * 470);
    (counts.sent, counts.completed, counts.basic) = (due, due - 1, due - 1);
    (counts.hits, counts.collapsed, counts.misses) = (due / 2 - 4, 2, due / 2 + 1);
    (counts.basic_bytes, counts.hit_bytes, counts.collapsed_bytes) = (due * 1000, due * 450, due * 2);
    interval.times.hit.response = histogram((1..=100).map(|n| 150 + n));
    interval.times.miss.response = histogram((1..=100).map(|n| 200_000 + n * 1000));
    interval
}

fn started() -> Vec<RunEvent> {
    let phases = vec![
        phase("warm", "3 s", 0, 3_000, (0.1, 1.0)),
        phase("fill", "400 MB of fill", 3_000, 10_000, (1.0, 1.0)),
        phase("top1", "10 s", 10_000, 20_000, (1.0, 1.0)),
        phase("cool", "2 s", 20_000, 22_000, (1.0, 0.0)),
    ];
    let target = TargetInfo { name: "varnish".into(), version: "7.1.1".into(), ..TargetInfo::default() };
    let address: SocketAddr = "127.0.0.9:8080".parse().unwrap();
    vec![
        RunEvent::Stage(Stage::Planned { run_dir: "runs/demo-varnish-20260102-030405".into() }),
        RunEvent::Stage(Stage::TargetReady { address }),
        RunEvent::Started { phases, target, started_unix_ms: 0 },
        RunEvent::Phase(PhaseEvent::Began { phase: 0, at_ms: 0 }),
    ]
}

fn state(seconds: u64) -> LiveState {
    let mut state = LiveState::new(Header {
        workload: "demo".into(),
        target: "varnish".into(),
        robots: 1000,
        origins: 2,
        seed: 7,
        rehearsal: false,
        working_set: Some(PlannedWorkingSet { objects: 2_000, bytes: 40 << 20, frozen_ms: Some(8_000) }),
    });
    started().iter().for_each(|event| state.apply(event));
    for at in 0..seconds {
        if at == 3 {
            state.apply(&RunEvent::Phase(PhaseEvent::Ended { phase: 0, at_ms: 3000, launched: Vec::new() }));
            state.apply(&RunEvent::Phase(PhaseEvent::Began { phase: 1, at_ms: 3000 }));
        }
        state.apply(&RunEvent::Measured(Measured::Robots(Box::new(second(at)))));
    }
    for (role, cpu_us) in [("proxy", 330_000), ("robots", 410_000), ("origins", 125_000)] {
        let length_ms = 1000;
        for at in 0..seconds {
            let (start_ms, cpu_us) = (at * 1000, cpu_us * (at + 1) / seconds);
            let rss_bytes = (at + 1) * cpu_us * 32;
            let role = role.into();
            let interval =
                HostInterval { start_ms, length_ms, role, cpu_us, rss_bytes, ..HostInterval::default() };
            state.apply(&RunEvent::Measured(Measured::Host(Box::new(interval))));
        }
    }
    state.now_ms = seconds * 1000;
    state
}

/// The first page as text, spaces at line ends cut.
fn drawn(state: &LiveState, width: u16, height: u16) -> String {
    shown(state, &Ui::of_a_run(true), width, height)
}

/// What was chosen to be looked at, as text.
fn shown(state: &LiveState, ui: &Ui, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, state, ui)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

/// Compares with the kept screen; `UPDATE_GOLDEN=1` keeps the new one.
fn assert_golden(name: &str, seen: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/live/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, seen).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == seen, "{name} differs; UPDATE_GOLDEN=1 keeps it. Seen:\n{seen}\nKept:\n{kept}");
}

#[test]
fn a_run_in_the_middle_fills_an_80_by_24_screen() {
    assert_golden("middle-80x24.txt", &drawn(&state(8), 80, 24));
}

#[test]
fn a_larger_screen_gives_the_curves_more_room() {
    assert_golden("middle-120x40.txt", &drawn(&state(8), 120, 40));
}

/// As a run stands of which much is required.
fn required() -> LiveState {
    let mut state = state(8);
    let one =
        |text: &str, state, seen: &str| RequirementStatus { text: text.into(), state, seen: seen.into() };
    state.requirements = std::sync::Arc::new(vec![
        one("errors == 0", RequirementState::Holding, "0"),
        one("fill.p99(hit) < 5ms", RequirementState::Held, "0.25 ms"),
        one("top1.dhr / ideal > 95%", RequirementState::Early, "nothing to measure"),
        one("p99(miss) < 250ms", RequirementState::Failing, "299 ms"),
    ]);
    state
}

#[test]
fn every_page_has_its_place_on_a_small_screen() {
    let state = required();
    for page in ["overview", "phases", "times", "machine", "checks"] {
        let mut ui = Ui::of_a_run(true);
        while ui.page().name() != page {
            ui.handle(Key::Next, &state);
        }
        assert_golden(&format!("{page}-80x24.txt"), &shown(&state, &ui, 80, 24));
        for (width, height) in [(72, 22), (119, 30), (400, 120)] {
            shown(&state, &ui, width, height);
        }
    }
}

#[test]
fn a_wide_screen_shows_more_side_by_side() {
    assert_golden("wide-160x48.txt", &drawn(&required(), 160, 48));
    let mut ui = Ui::of_a_run(true);
    ui.handle(Key::Char('2'), &LiveState::default());
    assert_golden("phases-160x24.txt", &shown(&required(), &ui, 160, 24));
}

#[test]
fn help_and_questions_lie_over_the_page() {
    let (mut ui, mut state) = (Ui::of_a_run(true), state(8));
    ui.handle(Key::Char('?'), &state);
    assert_golden("help-80x24.txt", &shown(&state, &ui, 80, 24));
    ui.handle(Key::Escape, &state);
    ui.handle(Key::Char('q'), &state);
    assert!(shown(&state, &ui, 80, 24).contains("Stop the run and report what there is?"));
    ui.handle(Key::Char('n'), &state);
    ui.handle(Key::Char('p'), &state);
    state.now_ms += 5000;
    let screen = shown(&state, &ui, 80, 24);
    assert!(screen.contains("PAUSED, the run goes on") && screen.contains("0:08 of"), "{screen}");
}

#[test]
fn what_fails_is_on_every_screen() {
    let mut state = required();
    assert!(drawn(&state, 80, 24).contains("! failing so far: p99(miss) < 250ms (299 ms)"));
    std::sync::Arc::make_mut(&mut state.requirements)[3].state = RequirementState::Failed;
    assert!(drawn(&state, 72, 22).contains("✗ failed: p99(miss) < 250ms (299 ms)"));
}

#[test]
fn seconds_that_are_over_keep_what_they_came_to_and_let_go_of_the_rest() {
    let state = state(20);
    let settled: Vec<_> = state.seconds.iter().filter_map(|second| second.settled).collect();
    assert_eq!(settled.len(), 19, "all but the one that goes on");
    assert!(
        settled.iter().all(|second| second.hit_us.1 == Some(248) || second.hit_us.1 == Some(249)),
        "{settled:?}"
    );
    let recent = state.recent();
    assert_eq!(recent.hit.count(), 500, "the last five are whole");
}

#[test]
fn before_the_start_the_stage_is_shown() {
    let mut state =
        LiveState::new(Header { workload: "demo".into(), target: "nginx".into(), ..Header::default() });
    state.apply(&RunEvent::Stage(Stage::StartingTarget { name: "nginx 1.22.1".into() }));
    assert!(drawn(&state, 80, 24).contains("starting nginx 1.22.1"));
}

#[test]
fn errors_are_named_with_the_last_example() {
    let mut state = state(5);
    let mut interval = second(5);
    interval.counts.errors.insert(ErrorKind::WrongBytes, 17);
    state.apply(&RunEvent::Measured(Measured::Robots(Box::new(interval))));
    state.apply(&RunEvent::Measured(Measured::Example(Box::new(ErrorExample {
        kind: ErrorKind::WrongBytes,
        at_ms: 5100,
        phase: "fill".into(),
        xact: "1.2.0".into(),
        request: "GET /x".into(),
        detail: "byte 7 is 0x41".into(),
    }))));
    let screen = drawn(&state, 80, 24);
    assert!(screen.contains("errors: wrong_bytes 17; last: wrong_bytes: byte 7 is 0x41"), "{screen}");
}

#[test]
fn no_screen_is_too_small_to_draw_on() {
    let state = state(8);
    for (width, height) in [(1, 1), (5, 3), (40, 10), (71, 24), (72, 22), (80, 22), (300, 100)] {
        drawn(&state, width, height);
    }
}

#[test]
fn a_schedule_of_many_phases_fits() {
    let mut state = state(1);
    state.phases = (0..50)
        .map(|n| state::PhaseState {
            info: phase(&format!("phase{n}"), "1 s", n * 1000, n * 1000 + 1000, (1.0, 1.0)),
            ..state::PhaseState::default()
        })
        .collect();
    drawn(&state, 80, 24);
}

#[test]
fn a_second_is_one_line_when_there_is_no_screen() {
    assert_eq!(
        line::line(&state(8)),
        "  0:08  fill 71 %  399/s of 400/s  response hit p50 0.20 ms p99 0.25 ms, \
         miss p50 250 ms p99 299 ms  DHR 49.6 % of ideal 49.5 %  waiting 3 unsent 0  errors 0  \
         late p99 0.20 ms"
    );
}

/// How a thread of robots did in second `at`.
fn thread(at: u64, run_delay_us: u64) -> RunEvent {
    RunEvent::Measured(Measured::Thread(Box::new(ThreadInterval {
        start_ms: at * 1000,
        length_ms: 1000,
        role: "robots".into(),
        run_delay_us,
        timer_lag: histogram((1..=100).map(|n| n * 4)),
        ..ThreadInterval::default()
    })))
}

#[test]
fn a_second_in_which_assay_stood_still_says_so_first() {
    let mut state = state(8);
    state.apply(&thread(7, 410_000));
    let length_us = 304_112;
    state.apply(&RunEvent::Measured(Measured::Stall(Box::new(Stall {
        role: "robots".into(),
        at_ms: 7_200,
        length_us,
        ..Stall::default()
    }))));
    let line = line::line(&state);
    let said = "  0:08  STALLED: robots 0 stood still for 304 ms  STARVED: robots 0 waited for a processor 41 % of the \
                time  fill 71 %  399/s";
    assert!(line.starts_with(said), "{line}");
}

#[test]
fn trouble_of_assay_itself_is_on_every_screen() {
    let mut state = state(8);
    state.apply(&thread(7, 1_000));
    assert_golden("quiet-80x24.txt", &drawn(&state, 80, 24));
    state.apply(&RunEvent::Doubt(Box::new(Doubt::serious(
        Reason::Ports,
        "75 requests found no free source port",
    ))));
    for (width, height) in [(72, 22), (80, 24), (120, 40)] {
        let screen = drawn(&state, width, height);
        assert!(
            screen.contains("DISTURBED: 75 requests found no free source port"),
            "{width}x{height}: {screen}"
        );
    }
}

#[test]
fn validations_that_no_response_showed_are_no_hits() {
    let mut state = state(8);
    let before = state.phases[1].outcomes();
    let mut origins = OriginInterval { phase: 1, ..OriginInterval::default() };
    origins.counts.validated_basic = 10;
    state.apply(&RunEvent::Measured(Measured::Origins(Box::new(origins))));
    let after = state.phases[1].outcomes();
    assert_eq!((after.hit, after.revalidated), (before.hit - 10, before.revalidated + 10));

    let mut shown = second(8);
    shown.counts = RobotCounts { revalidated: 10, ..RobotCounts::default() };
    state.apply(&RunEvent::Measured(Measured::Robots(Box::new(shown))));
    let after = state.phases[1].outcomes();
    assert_eq!((after.hit, after.revalidated), (before.hit, before.revalidated + 10));
}
