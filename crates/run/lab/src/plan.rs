//! Plan of a run: everything the command line resolved, before the machine is checked.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_measurement::health::Calibration;
use assay_proxy::spec::Chosen;
use assay_record::run::RunVerdict;
use assay_workload::model::Workload;
use assay_workload::overrides::Overrides;
use assay_workload::{Timeline, UniverseOptions};

use crate::caches::lines::MOST_JOINED;
use crate::cgroup::Limits;
use crate::conformance::ConformPlan;
use crate::description::Description;
use crate::error::LabError;
use crate::mode::Mode;
use crate::network::NetworkPlan;
use crate::remote::RemoteMachines;
use crate::tls::TlsPlan;
use crate::topology::Topology;
use crate::watched_processes::WatchPlan;

/// The longest that threads may poll before a deadline.
pub const MOST_SPIN: Duration = Duration::from_millis(1);

/// Target of the workload.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetChoice {
    /// Nothing: robots speak to the origins.
    Direct,
    /// The built-in caching proxy.
    Builtin(Mode),
    /// A real proxy that the lab starts and stops.
    Described(Box<Description>, Mode),
    /// Several caches that work together.
    Topology(Box<Topology>),
    /// A proxy that already runs, and is left running.
    Running {
        address: SocketAddr,
        /// Mode in which it is addressed.
        mode: Mode,
    },
}

impl TargetChoice {
    /// Name for `run.json` and for a run directory's default name.
    pub fn name(&self) -> String {
        match self {
            TargetChoice::Direct => "direct".into(),
            TargetChoice::Builtin(_) => "builtin".into(),
            TargetChoice::Described(description, _) => description.name.clone(),
            TargetChoice::Topology(topology) => topology.name.clone(),
            TargetChoice::Running { address, .. } => address.to_string(),
        }
    }

    /// Mode in which it is addressed; none: directly.
    pub fn mode(&self) -> Option<Mode> {
        match self {
            TargetChoice::Direct => None,
            TargetChoice::Builtin(mode)
            | TargetChoice::Described(_, mode)
            | TargetChoice::Running { mode, .. } => Some(*mode),
            TargetChoice::Topology(topology) => Some(topology.mode),
        }
    }

    /// The lab starts it, and so can hold it to limits and see what it uses.
    pub fn is_started(&self) -> bool {
        !matches!(self, TargetChoice::Direct | TargetChoice::Running { .. })
    }

    /// A cache of it writes an access log that is read after the run.
    pub fn writes_access_log(&self) -> bool {
        match self {
            TargetChoice::Direct | TargetChoice::Builtin(_) | TargetChoice::Running { .. } => false,
            TargetChoice::Described(description, _) => description.access_log.is_some(),
            TargetChoice::Topology(topology) => {
                let mut described = topology.caches.iter().map(|cache| cache.description.as_ref());
                described.any(|description| description.is_none_or(|known| known.access_log.is_some()))
            }
        }
    }

    /// `direct`, `reverse` or `forward`.
    pub fn mode_name(&self) -> &'static str {
        self.mode().map_or("direct", Mode::name)
    }
}

/// Part of a run that takes place here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunPart {
    #[default]
    Whole,
    /// Some robots. Origins are elsewhere: [`RunPlan::origin_listen`] says where, if robots have to know.
    Robots { first: u32, last: u32 },
    /// Some origins. [`RunPlan::origin_listen`] has an address for each.
    Origins {
        first: u16,
        last: u16,
        /// Time for which they stay after the schedule's end.
        linger: Duration,
    },
}

/// One run, as the command line resolved it.
#[derive(Debug, Clone)]
pub struct RunPlan {
    /// The program that is started as `EXE role robots|origins|proxy SPEC.json`: `assay` itself.
    pub exe: PathBuf,
    /// Version of Assay, for the record.
    pub assay_version: String,
    /// The command line, as typed, for the record.
    pub command: Vec<String>,
    /// The compiled workload, already scaled if this is a rehearsal.
    pub workload: Workload,
    /// Source files: name as given, and the whole text.
    pub sources: Vec<(String, String)>,
    /// Factor of a rehearsal; none: not a rehearsal.
    pub scale: Option<f64>,
    /// Length, rate and number of robots in place of the workload's own.
    pub overrides: Overrides,
    /// The workload as text, a line each.
    pub explained: Vec<String>,
    /// Digest of the first requests of every robot.
    pub stream_digest: String,
    /// Requests per robot that the digest covers.
    pub stream_digest_requests: u64,
    /// Seed of the universe and its streams.
    pub seed: u64,
    /// Tag in every path.
    pub world: u32,
    /// Treat private interest as public.
    pub private_as_public: bool,
    /// The run directory; must not exist, or be empty.
    pub run_dir: PathBuf,
    /// Number of the try, from 1, of a run that is repeated while it is undecided.
    pub tries: u32,
    /// Target under test.
    pub target: TargetChoice,
    /// The user says that a public target address is theirs (`--i-own-this-target`).
    pub own_target: bool,
    /// Memory for the proxy's cache, written into its configuration as given.
    pub memory_bytes: u64,
    /// Disk for the proxy's cache, written into its configuration as given.
    pub disk_bytes: u64,
    /// Limits of all processes of a proxy that the lab starts.
    pub limits: Limits,
    /// Settings of a described proxy, by name; those that are not named keep their defaults.
    pub settings: BTreeMap<String, String>,
    /// Worker threads of robots; 0: one for each processor they may use.
    pub threads: u32,
    /// An xact without a complete response after this long is an error.
    pub timeout: Duration,
    /// Legs that speak TLS, and how.
    pub tls: TlsPlan,
    /// Part of the run that takes place here.
    pub part: RunPart,
    /// Time at which the schedule begins, in seconds of Unix time; none: as soon as everybody is ready.
    pub start_at: Option<u64>,
    /// Record every xact in Parquet.
    pub xact_log: bool,
    /// Trace requests to the disk that the proxy's files are on.
    pub trace_disk: bool,
    /// Processes of a target that already runs, which are watched; none: only what goes over the network.
    pub watched: Option<WatchPlan>,
    /// Source addresses of robots, used in turn for the workload's robot addresses; empty: loopback addresses
    /// are chosen (the system chooses for a target that is not on loopback).
    pub robot_sources: Vec<IpAddr>,
    /// Addresses at which origins listen, one for each origin of the workload; none: loopback addresses are chosen.
    pub origin_listen: Option<Vec<SocketAddr>>,
    /// The network that roles live in.
    pub network: NetworkPlan,
    /// Pin processes to processors where there are at least two.
    pub pin: bool,
    /// Processors of robots, in place of those that would be chosen; empty: chosen.
    pub robot_cpus: Vec<u32>,
    /// Processors of origins; empty: chosen.
    pub origin_cpus: Vec<u32>,
    /// Processors of a proxy that the lab starts; empty: chosen.
    pub proxy_cpus: Vec<u32>,
    /// Time for which robots and origins poll before a deadline instead of sleeping up to it.
    pub spin: Duration,
    /// Robots and origins run with real-time priority.
    pub realtime: bool,
    /// Capacity of this machine for this workload, where that was found before.
    pub calibration: Option<Calibration>,
    /// Directory in which the private work directory of a real proxy is made; none: the system's temporary directory.
    pub temp_dir: Option<PathBuf>,
    /// Requirements, as written.
    pub requirements: Vec<String>,
    /// More warnings for the record (of the compiler, say); they come after the run's own.
    pub warnings: Vec<String>,
    /// Cases of conformance that are tried beside the load.
    pub conform: Option<ConformPlan>,
    /// The machines on which roles are started; none: this one.
    pub remote: Option<Arc<dyn RemoteMachines>>,
}

impl RunPlan {
    /// Options with which its universe is read.
    pub fn options(&self) -> UniverseOptions {
        UniverseOptions { private_as_public: self.private_as_public }
    }

    /// Schedule in time.
    pub fn timeline(&self) -> Result<Timeline, LabError> {
        Timeline::with(&self.workload, self.options(), &[]).map_err(LabError::plan)
    }

    /// Whether another coordinator began it, on machines that go on with it.
    pub fn is_resumed(&self) -> bool {
        self.remote.as_ref().is_some_and(|remote| remote.is_resumed())
    }

    /// Whether roles live in networks that the lab makes.
    pub fn needs_network(&self) -> bool {
        let is_linked =
            matches!(&self.target, TargetChoice::Topology(topology) if !topology.links.is_empty());
        self.network.is_wanted() || is_linked
    }

    /// Whether robots keep a log of every request: where it is configured, and where logs of caches are checked against
    /// it, unless there would be more than `expected` can be held.
    pub fn records_xacts(&self, expected: f64) -> bool {
        let is_topology = matches!(self.target, TargetChoice::Topology(_)) && self.part == RunPart::Whole;
        self.xact_log || (is_topology && expected <= MOST_JOINED as f64)
    }

    /// Settings of the built-in proxy.
    pub(crate) fn chosen(&self) -> Chosen {
        let is_builtin = matches!(self.target, TargetChoice::Builtin(_));
        // What is wrong was refused before anything was started.
        if is_builtin { chosen(&self.settings).unwrap_or_default() } else { Chosen::default() }
    }

    /// Gives the target its settings; what is wrong with them, where it has none of that name or value. Whoever makes a
    /// plan does this, so that all later uses of the plan have them; a run does it once more.
    pub fn apply_settings(&mut self) -> Result<(), LabError> {
        if self.settings.is_empty() {
            return Ok(());
        }
        match &mut self.target {
            TargetChoice::Described(description, _) => Ok(description.set(&self.settings)?),
            // Each of its caches has its own already.
            TargetChoice::Topology(_) => Ok(()),
            TargetChoice::Builtin(_) => chosen(&self.settings).map(|_| ()),
            target => Err(LabError::plan(format!(
                "settings were given ({}), and only a proxy that Assay starts has any; the target is {}",
                self.settings.keys().cloned().collect::<Vec<_>>().join(", "),
                target.name()
            ))),
        }
    }
}

/// Reads the settings of the built-in proxy.
fn chosen(settings: &BTreeMap<String, String>) -> Result<Chosen, LabError> {
    let mut chosen = Chosen::default();
    for (name, value) in settings {
        chosen.set(name, value).map_err(LabError::plan)?;
    }
    Ok(chosen)
}

/// Result of a run that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The run directory, complete.
    pub run_dir: PathBuf,
    /// Whether its numbers can be trusted.
    pub verdict: RunVerdict,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn settings_of_the_built_in_proxy_are_known_by_name_and_value() {
        let with = |name: &str, value: &str| RunPlan {
            settings: BTreeMap::from([(name.to_owned(), value.to_owned())]),
            ..testing::plan()
        };
        let mut links = with("prefetch", "links");
        assert!(links.apply_settings().is_ok());
        assert!(links.chosen().prefetch.is_some_and(|prefetch| prefetch.links));
        assert_eq!([with("prefetch", "none").chosen(), testing::plan().chosen()], [Chosen::default(); 2]);
        assert_eq!(with("policy", "sieve").chosen().storing.policy.name(), "sieve");
        for (name, value, said) in [
            ("prefetch", "much", "one of none, embedded, links"),
            ("policy", "belady", "w-tinylfu"),
            ("admission", "some", "one of all, second, tinylfu, or a size"),
            ("prefetsch", "links", "it has prefetch, policy, admission"),
        ] {
            let error = with(name, value).apply_settings().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
