//! A workload with another length, rate or number of robots than its author gave it, for a first look. What robots request, and in
//! which proportions, stays.

use std::time::Duration;

use crate::model::{HttpVersion, Pace, Phase, RobotAddress, RobotGroup, Weighted, Workload};
use crate::timeline::{ScheduleError, Timeline};

/// The most requests that one robot may have under way at a time by itself.
pub const MOST_STREAMS: u32 = 1_000;

/// Settings that replace those of the workload; none: as in the workload.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Overrides {
    /// Length of the one phase of constant full load that takes the place of the schedule.
    pub duration: Option<Duration>,
    /// Requests per second of all robots together, where the schedule's load is highest.
    pub rate: Option<f64>,
    /// Robots of all kinds together.
    pub robots: Option<u32>,
    /// Version of HTTP that all robots speak.
    pub robot_http: Option<HttpVersion>,
    /// Version of HTTP that all origins speak.
    pub origin_http: Option<HttpVersion>,
    /// Requests that each best-effort robot has under way at a time over HTTP/2.
    pub streams: Option<u32>,
    /// Requests of all robots say how urgent they are.
    pub priorities: bool,
}

/// Overrides that the workload does not allow.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OverrideError {
    /// Some kind of robot would be left out.
    #[error("{robots} robots are too few for {kinds} kinds of robots, each of which must have one")]
    TooFewRobots {
        /// Robots that were requested.
        robots: u32,
        /// Kinds of robots in the workload.
        kinds: usize,
    },
    /// No robot sends when it has a response, so that none can have several requests under way at a time by itself.
    #[error(
        "several streams at a time are for robots that send when they have a response (best-effort robots), over HTTP/2; this \
         workload has none of them: leave streams out (--streams)"
    )]
    NoStreams,
    /// Robots would have several requests under way at a time, and do not speak HTTP/2.
    #[error(
        "several streams at a time need HTTP/2, and the best-effort robots of this workload do not speak it: let them \
         (--robot-http 2), or leave streams out (--streams)"
    )]
    NoHttp2,
    /// No factor makes the load of a workload with these robots a given rate.
    #[error(transparent)]
    NoRate(#[from] RateError),
    /// The schedule that the rate is for cannot be run.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// A load that cannot be multiplied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// Robots wait for responses.
    #[error(
        "its robots of kind {kind} send when they have a response, so that they have no rate to multiply"
    )]
    Closed { kind: String },
    /// A thermostat or a script sets the load.
    #[error("its phase {phase} sets the load as it goes")]
    Adaptive { phase: String },
    /// No phase has a load above 0.
    #[error("its robots never send anything, so that their rate cannot be raised")]
    Idle,
}

impl Overrides {
    /// True when the workload stays as it is.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Changes the workload: first its robots, then its schedule, and last its rate, so that the rate is that of the whole.
    pub fn apply(&self, workload: &mut Workload) -> Result<(), OverrideError> {
        if let Some(robots) = self.robots {
            set_robots(workload, robots)?;
        }
        if let Some(version) = self.robot_http {
            workload.robots.iter_mut().for_each(|group| group.http_versions = Weighted::one(version));
        }
        if let Some(streams) = self.streams {
            set_streams(workload, streams)?;
        }
        workload.robots.iter_mut().for_each(|group| group.priorities |= self.priorities);
        if let Some(version) = self.origin_http {
            workload.servers.iter_mut().for_each(|server| server.http_versions = Weighted::one(version));
        }
        if let Some(duration) = self.duration {
            workload.schedule.phases = vec![Phase::default_phase(duration)];
        }
        self.rate.map_or(Ok(()), |rate| set_rate(workload, rate))
    }
}

/// Multiplies the load of every phase; an error where robots have no rate, or where phases set it as they go.
pub fn multiply_rate(workload: &mut Workload, factor: f64) -> Result<(), RateError> {
    if factor == 1.0 {
        return Ok(());
    }
    if let Some(group) = workload.robots.iter().find(|group| group.pace.is_closed()) {
        return Err(RateError::Closed { kind: group.kind.clone() });
    }
    let adapts = |phase: &Phase| phase.thermostat.is_some() || phase.script.is_some();
    if let Some(phase) = workload.schedule.phases.iter().find(|phase| adapts(phase)) {
        return Err(RateError::Adaptive { phase: phase.name.clone() });
    }
    for phase in &mut workload.schedule.phases {
        phase.load.begin *= factor;
        phase.load.end *= factor;
    }
    Ok(())
}

fn set_streams(workload: &mut Workload, streams: u32) -> Result<(), OverrideError> {
    let speaks_http2 = |group: &RobotGroup| {
        group.http_versions.items().iter().any(|(version, _)| *version == HttpVersion::Http2)
    };
    let mut fitting: Vec<&mut RobotGroup> =
        workload.robots.iter_mut().filter(|group| group.pace.is_closed() && speaks_http2(group)).collect();
    if fitting.is_empty() && streams > 1 {
        let is_closed = workload.robots.iter().any(|group| group.pace.is_closed());
        return Err(if is_closed { OverrideError::NoHttp2 } else { OverrideError::NoStreams });
    }
    fitting.iter_mut().for_each(|group| group.streams = streams);
    Ok(())
}

/// Robots that wait for responses get a rate first: the same for each.
fn set_rate(workload: &mut Workload, rate: f64) -> Result<(), OverrideError> {
    let living = || workload.robots.iter().filter(|group| group.count() > 0);
    if living().all(|group| group.pace.is_closed()) {
        for group in &mut workload.robots {
            group.pace = Pace::Rate { per_second: 1.0 };
            group.launch_window = None;
        }
    }
    let timeline = Timeline::new(workload)?;
    let rates = timeline.phases().iter().filter_map(|phase| phase.expected);
    let highest = rates.map(|expected| expected.peak_request_rate).fold(0.0, f64::max);
    // Where some robots have no rate there is no highest one either, and the factor is refused below.
    let factor = if highest > 0.0 { rate / highest } else { 2.0 };
    multiply_rate(workload, factor)?;
    if highest > 0.0 {
        return Ok(());
    }
    Err(RateError::Idle.into())
}

/// Each kind keeps its share of the robots, one at least, and each address its share of the kind.
fn set_robots(workload: &mut Workload, robots: u32) -> Result<(), OverrideError> {
    let before: u64 = workload.robots.iter().map(|group| u64::from(group.count())).sum();
    let mut living: Vec<&mut RobotGroup> =
        workload.robots.iter_mut().filter(|group| group.count() > 0).collect();
    let kinds = living.len();
    if (robots as usize) < kinds {
        return Err(OverrideError::TooFewRobots { robots, kinds });
    }
    // One for each kind, and the others by their shares, rounded so that they add up.
    let more = u64::from(robots) - kinds as u64;
    let mut seen = 0;
    for group in &mut living {
        let count = u64::from(group.count());
        let share = |upto: u64| u128::from(more) * u128::from(upto) / u128::from(before);
        let wanted = 1 + share(seen + count) - share(seen);
        seen += count;
        // No more than all robots, which fit.
        resize(group, u32::try_from(wanted).unwrap_or(u32::MAX));
    }
    Ok(())
}

fn resize(group: &mut RobotGroup, robots: u32) {
    let before = u128::from(group.count().max(1));
    let share = |upto: u128| (u128::from(robots) * upto / before) as u32;
    let mut seen = 0;
    let resized = group.addresses.iter().map(|address| {
        let from = share(seen);
        seen += u128::from(address.count);
        RobotAddress { host: address.host.clone(), count: share(seen) - from }
    });
    group.addresses = resized.filter(|address| address.count > 0).collect();
}
