//! All stories, and one of its own that takes an hour.

use assay_base::random::Rng;
use assay_measurement::health::{Stall, ThreadInterval};
use assay_measurement::measured::Measured;
use assay_record::dir::RunDir;
use assay_record::series::SeriesWriter;

use crate::own::{network, processors, thread};
use crate::synthetic::{Run, Story, drawn, host, info, origins, robots};

impl Story {
    pub const ALL: [Story; 11] = [
        Story::Good,
        Story::Troubled,
        Story::Interrupted,
        Story::Killed,
        Story::Ports,
        Story::Failed,
        Story::Stalled,
        Story::Calibrated,
        Story::Direct,
        Story::Nothing,
        Story::Hostile,
    ];
}

/// An hour in which threads stood still every second; few requests, for the page does not grow with them.
pub fn hour() -> Run {
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&tmp.path().join("run")).unwrap();
    let mut writer = SeriesWriter::create(&dir).unwrap();
    let mut dice = Rng::new(1);
    for second in 0..3600 {
        let robots = robots(&mut dice, Story::Good, 0, second * 1000, 1000, 20, false);
        writer.keep(&Measured::Robots(robots.clone().into())).unwrap();
        writer.keep(&Measured::Origins(origins(&mut dice, Story::Good, &robots).into())).unwrap();
        for role in ["robots", "origins", "proxy", "host"] {
            writer
                .keep(&Measured::Host(
                    host(role, second * 1000, 1000, 400_000 + dice.next_u64() % 100_000, 0).into(),
                ))
                .unwrap();
        }
    }
    busy_hour(&mut writer);
    let mut info = info(Story::Direct);
    (info.phases[0].start_ms, info.phases[0].end_ms) = (Some(0), Some(3_600_000));
    // Left as a journal: it is the page that is looked at.
    info.finished = false;
    dir.write_info(&info).unwrap();
    Run { _tmp: tmp, dir }
}

/// An hour of eight threads that all stand still every second.
fn busy_hour(writer: &mut SeriesWriter) {
    let mut dice = Rng::new(3);
    for start_ms in (0..3_600_000).step_by(1000) {
        for number in 0..8 {
            let role = if number < 4 { "robots" } else { "origins" };
            let lag = drawn(&mut dice, 3, 900.0);
            let interval = thread(&mut dice, Story::Good, role, start_ms);
            writer
                .keep(&Measured::Thread(
                    ThreadInterval { thread: number % 4, timer_lag: lag, ..interval }.into(),
                ))
                .unwrap();
            let (thread, length_us) = (number % 4, 10_000 + dice.next_u64() % 90_000);
            let stall = Stall { role: role.into(), thread, at_ms: start_ms, length_us, ..Stall::default() };
            writer.keep(&Measured::Stall(stall.into())).unwrap();
        }
        writer.keep(&Measured::Network(network(Story::Stalled, start_ms).into())).unwrap();
        writer.keep(&Measured::Processors(processors(&mut dice, Story::Good, start_ms))).unwrap();
    }
}
