//! A run that is told of, and what watches it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use assay_measurement::counts::RobotCounts;
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{RobotInterval, Times};
use assay_measurement::measured::Measured;
use assay_measurement::robot_times::RobotTimes;
use assay_protocol::message::PhaseEvent;
use assay_record::dir::RunDir;
use assay_record::event::{RunEvent, Stage};
use assay_record::run::{PhaseInfo, RunInfo, TargetInfo};
use assay_report::serve::{RunIdentity, WatchSettings, Watcher};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A run that is watched.
pub struct Watched {
    pub watcher: Watcher,
    tell: UnboundedSender<Arc<RunEvent>>,
    /// What the user was told.
    pub said: Arc<Mutex<Vec<String>>>,
    place: tempfile::TempDir,
}

pub fn watch(settings: WatchSettings) -> Watched {
    let (tell, heard) = unbounded_channel();
    let said = Arc::new(Mutex::new(Vec::new()));
    let about =
        RunIdentity { workload: "demo".into(), target: "builtin".into(), seed: 7, version: "1.2.3".into() };
    let say = {
        let said = said.clone();
        move |words| said.lock().unwrap().push(words)
    };
    let watcher = Watcher::start(settings, about, heard, say).unwrap();
    Watched { watcher, tell, said, place: tempfile::tempdir().unwrap() }
}

/// One that is served on loopback.
pub fn serve() -> Watched {
    serve_on("127.0.0.1")
}

/// One that is served on a host.
pub fn serve_on(host: &str) -> Watched {
    watch(WatchSettings { serve: Some(SocketAddr::new(host.parse().unwrap(), 0)), collector: None })
}

impl Watched {
    pub fn address(&self) -> SocketAddr {
        self.watcher.address().unwrap()
    }

    pub fn run_dir(&self) -> PathBuf {
        self.place.path().join("run")
    }

    pub fn tell(&self, event: RunEvent) {
        self.tell.send(Arc::new(event)).unwrap();
    }

    /// Makes the run directory, and tells of it and of the start.
    pub fn begin(&self) {
        let dir = RunDir::create(&self.run_dir()).unwrap();
        let phases = vec![PhaseInfo { name: "top".into(), load: (1.0, 1.0), ..PhaseInfo::default() }];
        dir.write_info(&RunInfo { phases: phases.clone(), ..RunInfo::default() }).unwrap();
        std::fs::write(dir.journal_path(), "").unwrap();
        self.tell(RunEvent::Stage(Stage::Planned { run_dir: self.run_dir() }));
        self.tell(RunEvent::Started { phases, target: TargetInfo::default(), started_unix_ms: 1 });
        self.tell(RunEvent::Phase(PhaseEvent::Began { phase: 0, at_ms: 0 }));
    }

    /// Tells of a second with this many requests, half of them hits.
    pub fn second(&self, requests: u64) {
        let (mut hit, mut miss) = (Histogram::new(), Histogram::new());
        (0..requests / 2).for_each(|n| hit.record(200 + n));
        (0..requests - requests / 2).for_each(|n| miss.record(100_000 + n));
        let counts = RobotCounts {
            due: requests,
            sent: requests,
            completed: requests,
            by_status: BTreeMap::from([(200, requests)]),
            ..RobotCounts::default()
        };
        let times = |histogram: Histogram| Times { response: histogram.to_sparse(), ..Times::default() };
        let interval = RobotInterval {
            length_ms: 1000,
            counts,
            times: RobotTimes { hit: times(hit), miss: times(miss), ..RobotTimes::default() },
            ..RobotInterval::default()
        };
        self.tell(RunEvent::Measured(Measured::Robots(interval.into())));
    }
}
