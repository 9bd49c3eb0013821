//! Robots against the small server of these tests.

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use assay_cache::behaviour::CacheBehaviour;
use assay_load::spec::{Target, Timing};
use assay_workload::model::Workload;
use assay_workload::{Universe, UniverseOptions};

use crate::harness::{Reported, SEED, Setting, perform, start_soon};
use crate::server::{Manner, Server};

/// Everything that a run left.
pub struct Run {
    reported: Reported,
    /// The server that got the requests.
    pub server: Server,
}

impl Deref for Run {
    type Target = Reported;

    fn deref(&self) -> &Reported {
        &self.reported
    }
}

/// What to do differently from the usual.
pub struct Options {
    pub manner: Manner,
    pub threads: u32,
    /// Longer than any test takes that does not wait for it.
    pub timeout_ms: u64,
    /// They are told to stop when the server has had so many requests.
    pub stop_after: Option<usize>,
    pub target: fn(SocketAddr) -> Target,
    pub xact_log: Option<PathBuf>,
    pub sources: Vec<IpAddr>,
    pub timing: Timing,
    pub reloads_reach_origin: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            manner: Manner::Right,
            threads: 2,
            timeout_ms: 60_000,
            stop_after: None,
            target: |proxy| Target::Reverse { proxy },
            xact_log: None,
            sources: Vec::new(),
            timing: Timing::default(),
            reloads_reach_origin: true,
        }
    }
}

/// Runs a workload's robots against a server, from Ready to Done.
pub fn run(workload: &Workload, options: Options) -> Run {
    let universe = Universe::new(Arc::new(workload.clone()), SEED, 1, UniverseOptions::default());
    let clock = start_soon();
    let server = Server::start(Arc::new(universe.expect("is valid")), clock, options.manner);
    let until_stop = options.stop_after.map(|requests| -> Box<dyn FnOnce() + Send> {
        let seen = Arc::clone(&server.seen);
        Box::new(move || {
            while seen.lock().expect("nobody panicked").len() < requests {
                std::thread::yield_now();
            }
        })
    });
    let behaviour = CacheBehaviour {
        validation_updates: true,
        reloads_reach_origin: options.reloads_reach_origin,
        ..CacheBehaviour::default()
    };
    let setting = Setting {
        threads: options.threads,
        timeout_ms: options.timeout_ms,
        timing: options.timing,
        behaviour,
        sources: options.sources,
        xact_log: options.xact_log,
        until_stop,
        ..Setting::to((options.target)(server.address))
    };
    Run { reported: perform(workload, clock, setting), server }
}
