//! What made-up runs say of Assay itself: threads, stalls, baselines, the network, doubts, a calibration.

use assay_base::random::Rng;
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::health::{
    Baseline, Calibration, NetworkInterval, ProcessorInterval, Stall, ThreadInterval,
};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::measured::Measured;
use assay_record::series::SeriesWriter;

use crate::synthetic::{HOSTILE, Story, drawn};

/// The health of a run of that length, a second after the other.
pub fn health(writer: &mut SeriesWriter, story: Story, length_ms: u64) {
    let mut dice = Rng::new(0x5eed << 32);
    for role in ["robots", "origins"] {
        let lag = drawn(&mut dice, 20_000, 38.0);
        let baseline = Baseline { role: role.into(), thread: 0, cpu: Some(0), length_ms: 1000, lag };
        writer.keep(&Measured::Baseline(baseline.into())).unwrap();
    }
    for start_ms in (0..length_ms).step_by(1000) {
        for role in ["robots", "origins"] {
            writer.keep(&Measured::Thread(thread(&mut dice, story, role, start_ms).into())).unwrap();
        }
        writer.keep(&Measured::Network(network(story, start_ms).into())).unwrap();
        writer.keep(&Measured::Processors(processors(&mut dice, story, start_ms))).unwrap();
    }
    stalls(story).into_iter().for_each(|stall| writer.keep(&Measured::Stall(stall.into())).unwrap());
}

/// The seconds in which robots had to share their processor.
pub fn starved(story: Story, start_ms: u64) -> bool {
    story == Story::Stalled && (46_000..52_000).contains(&start_ms)
}

/// What robots did to some of their requests.
#[derive(Clone, Copy)]
pub struct Delay {
    /// Of those of a second, so many were sent or read late.
    pub share: f64,
    /// By this much at most, in microseconds.
    pub longest_us: u64,
}

/// What robots did to the requests of the second that begins then.
pub fn delay(story: Story, start_ms: u64) -> Option<Delay> {
    let delay = |share, longest_us| Some(Delay { share, longest_us });
    match (story, start_ms / 1000) {
        (Story::Stalled, 24) => delay(0.304, 304_112),
        (Story::Stalled, _) if starved(story, start_ms) => delay(1.0, 1_200),
        (Story::Ports, _) => delay(0.012, 90_000),
        (Story::Troubled, 31) => delay(0.011, 11_200),
        _ => None,
    }
}

pub fn thread(dice: &mut Rng, story: Story, role: &str, start_ms: u64) -> ThreadInterval {
    let robots = role == "robots";
    let starved = starved(story, start_ms) && robots;
    let cpu_us = (if robots { 60_000.0 } else { 35_000.0 } * (0.8 + 0.4 * dice.unit())) as u64;
    let timer_lag = drawn(dice, 400, if starved { 900.0 } else { 46.0 });
    ThreadInterval {
        start_ms,
        length_ms: 1000,
        phase: 0,
        role: role.into(),
        thread: 0,
        cpu: Some(0),
        cpu_us,
        run_delay_us: if starved { 410_000 } else { cpu_us / 40 },
        slices: 500,
        longest_lag_us: timer_lag.max_us,
        timer_lag,
        accept_queue: if robots { 0 } else { 1 + (start_ms / 1000 % 3) as u32 },
        accept_queue_limit: if robots { 0 } else { 4096 },
    }
}

pub fn network(story: Story, start_ms: u64) -> NetworkInterval {
    let second = start_ms / 1000;
    NetworkInterval {
        start_ms,
        length_ms: 1000,
        segments_out: 9_000,
        retransmitted: u64::from(second % 17 == 3),
        listen_overflows: if starved(story, start_ms) { 4 } else { 0 },
        listen_drops: if starved(story, start_ms) { 4 } else { 0 },
        sockets: 480 + second % 7 * 10,
        time_wait: 40 * second.min(30),
        buffer_bytes: 2_000_000,
        established: Some(400 + second % 7 * 10),
        close_wait: Some(second % 3),
        ..NetworkInterval::default()
    }
}

pub fn processors(dice: &mut Rng, story: Story, start_ms: u64) -> Vec<ProcessorInterval> {
    let busy = |dice: &mut Rng, us: f64| (us * (0.9 + 0.2 * dice.unit())) as u64;
    let own = if starved(story, start_ms) { 890_000.0 } else { 120_000.0 };
    // The target has the second one to itself, unless others come.
    let targets = if starved(story, start_ms) { 240_000.0 } else { 60_000.0 };
    [(0, busy(dice, own)), (1, busy(dice, targets))]
        .map(|(cpu, busy_us)| ProcessorInterval {
            start_ms,
            length_ms: 1000,
            cpu,
            busy_us,
            steal_us: 100,
            ..ProcessorInterval::default()
        })
        .into()
}

fn stalls(story: Story) -> Vec<Stall> {
    let stall = |at_ms, length_us, cpu_us, run_delay_us| Stall {
        role: "robots".into(),
        thread: 0,
        at_ms,
        length_us,
        cpu_us,
        run_delay_us,
    };
    match story {
        Story::Stalled => vec![
            stall(24_350, 304_112, 210, 0),
            stall(46_210, 18_400, 800, 17_100),
            stall(48_905, 31_020, 1_400, 29_300),
        ],
        Story::Troubled => vec![stall(31_400, 11_200, 10_100, 300)],
        _ => Vec::new(),
    }
}

/// The reasons to doubt a story.
pub fn doubts(story: Story) -> Vec<Doubt> {
    let of = |doubt: Doubt, role: &str, phases: &[u16], at_ms| Doubt {
        role: role.into(),
        phases: phases.into(),
        at_ms,
        ..doubt
    };
    match story {
        Story::Ports => vec![
            of(
                Doubt::serious(Reason::Ports, "75 requests found no free source port"),
                "robots",
                &[3],
                Some(23_000),
            ),
            Doubt::serious(
                Reason::Late,
                "1 % of requests were sent more than 21.3 ms later than they could be",
            ),
        ],
        Story::Failed => vec![of(
            Doubt::serious(Reason::RoleFailed, "origins ended early: exit status 101"),
            "origins",
            &[],
            Some(41_000),
        )],
        Story::Stalled => vec![
            of(
                Doubt::serious(
                    Reason::Stalled,
                    "thread 0 of robots stood still for 304 ms; it neither worked nor waited for a processor: the \
                     process or the machine was stopped",
                ),
                "robots",
                &[3],
                Some(24_350),
            ),
            of(
                Doubt::serious(Reason::Stalled, "thread 0 of origins stood still for 112 ms: it was busy"),
                "origins",
                &[3],
                Some(24_400),
            ),
            of(
                Doubt::serious(
                    Reason::Starved,
                    "threads of robots were ready to run and had no processor for 41 % of the time",
                ),
                "robots",
                &[7],
                Some(48_000),
            ),
            of(
                Doubt::worth_knowing(
                    Reason::Stolen,
                    "the hypervisor took 2.4 % of the processors' time away",
                ),
                "",
                &[],
                None,
            ),
        ],
        Story::Calibrated => vec![of(
            Doubt::worth_knowing(
                Reason::Unquiet,
                "before the run, 1 % of a bare timer's deadlines on processor 0 were served more than 310 µs late",
            ),
            "origins",
            &[],
            None,
        )],
        Story::Hostile => vec![Doubt {
            role: HOSTILE.into(),
            why: HOSTILE.into(),
            advice: HOSTILE.into(),
            ..Doubt::worth_knowing(Reason::LabFailed, HOSTILE)
        }],
        _ => Vec::new(),
    }
}

/// Something serious touches that phase.
pub fn disturbed(story: Story, phase: u16) -> bool {
    doubts(story).iter().any(|doubt| doubt.serious && doubt.touches(usize::from(phase)))
}

/// What the machine was found to offer.
pub fn calibration() -> Calibration {
    Calibration {
        schema: Calibration::SCHEMA.into(),
        assay_version: "0.1.0".into(),
        key: "41aa02".into(),
        made_unix_ms: 1_769_778_309_000,
        requests_per_s: 10_400.0,
        body_bytes_per_s: 46_800_000.0,
        robots_cpu_us_per_request: 21.0,
        origins_cpu_us_per_request: 13.0,
        limit: "saturated".into(),
        limit_seen: "robots used 98 % of their processor".into(),
        steps: Vec::new(),
    }
}

/// Waits of which Assay's delays were half.
pub fn halved(waits: &SparseHistogram) -> SparseHistogram {
    let mut least = Histogram::new();
    waits.buckets.iter().for_each(|(us, count)| least.record_many(us / 2, *count));
    least.to_sparse()
}
