//! What is measured, and where it stands.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use assay_host::link::interface::{self, Tun};
use assay_host::link::route::{self, Network};
use assay_host::link::{Forwarder, LinkSettings, Namespace};
use assay_protocol::evaluation::{CollectorSpec, Listener};
use assay_protocol::message::Event;
use assay_spe::collector::DIRECT;

use crate::origin;

/// The argument by which this program plays the Collector.
pub const COLLECTOR: &str = "collector";

const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 2, 255, 1);
const USAGE: &str =
    "usage: replay-pace [--urls N] [--runs N] [--workers N] [--link SETTINGS] [--csv FILE] [--svg FILE]";

/// The options of the command line.
pub struct Options {
    pub urls: usize,
    pub runs: usize,
    pub workers: usize,
    pub link: String,
    pub csv: Option<PathBuf>,
    pub svg: Option<PathBuf>,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options =
            Self { urls: 150, runs: 3, workers: 4, link: "delay=20ms".into(), csv: None, svg: None };
        for pair in arguments.chunks(2) {
            let [flag, value] = pair else { return Err(USAGE.into()) };
            let number = || value.parse().map_err(|_| format!("{flag} takes a number, not {value}"));
            match flag.as_str() {
                "--urls" => options.urls = number()?,
                "--runs" => options.runs = number()?,
                "--workers" => options.workers = number()?,
                "--link" => options.link.clone_from(value),
                "--csv" => options.csv = Some(value.into()),
                "--svg" => options.svg = Some(value.into()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

/// Plays the Collector.
pub fn play_collector(spec: &str) -> ExitCode {
    let spec = serde_json::from_str(spec).expect("this program wrote it");
    match assay_spe::collector::run(&spec) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// An origin, perhaps behind a link, and two Collectors: one that replays, and one that does not.
pub struct Bed {
    replaying: Process,
    hasty: Process,
    about: String,
    _link: Option<(Namespace, Namespace, Forwarder)>,
}

impl Bed {
    pub fn start(options: &Options) -> Self {
        let link = link(&options.link);
        let (sender, told) = channel();
        let there = link.as_ref().map(|(_, there, _)| there.raw());
        std::thread::spawn(move || {
            let address = match there {
                Some(namespace) => {
                    assay_host::link::namespace::enter(namespace).expect("a namespace of our own");
                    THERE
                }
                None => Ipv4Addr::LOCALHOST,
            };
            origin::serve(SocketAddr::from((address, 0)), |address| {
                sender.send(address).expect("is waited for")
            });
        });
        let origin = told.recv().expect("the origin listens");
        let start = |replay| Process::start(&spec(origin, replay));
        let both = || (start(true), start(false));
        let ((replaying, hasty), about) = match &link {
            Some((here, ..)) => {
                let started = here.run(both).expect("a namespace of our own");
                // From now on this thread, and the clients that it starts, are there too.
                here.enter().expect("a namespace of our own");
                (started, format!("the origin is behind a link: {}", options.link))
            }
            None => (both(), "no link (that takes root): loopback, with the origin's own delays".into()),
        };
        Self { replaying, hasty, about, _link: link }
    }

    pub fn about(&self) -> &str {
        &self.about
    }

    /// Address of a listener.
    pub fn listener(&self, replay: bool, listener: usize) -> SocketAddr {
        if replay { self.replaying.listeners[listener] } else { self.hasty.listeners[listener] }
    }

    /// What the Collector says about itself.
    pub fn lateness(&self) -> String {
        let seconds = self.replaying.late_us.lock().expect("the reader does not panic");
        let mut sorted = seconds.clone();
        sorted.sort_unstable();
        match sorted.last() {
            None => "the Collector has said nothing about its lateness".into(),
            Some(most) => format!(
                "latest part written in a second, as the Collector saw it: median {} us, most {most} us",
                sorted[sorted.len() / 2]
            ),
        }
    }
}

fn spec(origin: SocketAddr, replay: bool) -> CollectorSpec {
    let listener =
        |who: &str| Listener { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), who: who.into() };
    CollectorSpec {
        lost_key: String::new(),
        listeners: vec![listener(DIRECT), listener("one"), listener("two")],
        origins: Vec::new(),
        default_origin: Some(origin),
        origin_tls: None,
        tunnels_tls: None,
        destinations: None,
        minimum_freshness_ms: 600_000,
        maximum_age_ms: 3_600_000,
        replay,
        memory_bytes: 500_000_000,
        disk: None,
        log: None,
        cpus: Vec::new(),
    }
}

/// A Collector of this program.
struct Process {
    listeners: Vec<SocketAddr>,
    late_us: std::sync::Arc<Mutex<Vec<u64>>>,
    child: Child,
    /// It ends when this does.
    stdin: Option<ChildStdin>,
}

impl Process {
    fn start(spec: &CollectorSpec) -> Self {
        let program = std::env::current_exe().expect("this program is somewhere");
        let mut child = Command::new(program)
            .args([COLLECTOR, &serde_json::to_string(spec).expect("plain data")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program runs");
        let stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let ready = lines.next().expect("the Collector starts").expect("a line");
        let Ok(Event::Ready { listening }) = serde_json::from_str(&ready) else {
            panic!("the Collector says {ready}");
        };
        let late_us: std::sync::Arc<Mutex<Vec<u64>>> = std::sync::Arc::default();
        let heard = std::sync::Arc::clone(&late_us);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Ok(Event::Collector(interval)) = serde_json::from_str(&line) {
                    let late = interval
                        .listeners
                        .iter()
                        .filter(|listener| listener.requests > 0)
                        .map(|listener| listener.late_max_us);
                    heard.lock().expect("nobody panics with it").extend(late.max());
                }
            }
        });
        Self { listeners: listening, late_us, child, stdin }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It ends with its input; if it cannot be waited for, nobody needs it any more.
        let _ = self.child.wait();
    }
}

/// Two namespaces joined by a link; none where this user may not have them.
fn link(settings: &str) -> Option<(Namespace, Namespace, Forwarder)> {
    if let Some(why) = assay_host::link::namespace::refused() {
        eprintln!("{why}");
        return None;
    }
    let settings: LinkSettings = settings.parse().expect("settings of a link");
    let [here, there] = [Namespace::new(), Namespace::new()].map(|made| made.expect("a namespace"));
    let network = |address: Ipv4Addr| {
        let [a, b, ..] = address.octets();
        Network { address: Ipv4Addr::new(a, b, 0, 0), bits: 16 }
    };
    let end = |namespace: &Namespace, own: Ipv4Addr, other: Ipv4Addr| {
        let furnish = || {
            interface::set("net/ipv6/conf/default/disable_ipv6", "1")?;
            interface::loopback_up()?;
            let tun = Tun::create("link")?;
            tun.up(own)?;
            route::own(network(own), "cubic")?;
            route::through(network(other), "link", "cubic")?;
            Ok::<_, assay_host::link::NetError>(tun.descriptor)
        };
        namespace.run(furnish).expect("a namespace of our own").expect("a link")
    };
    let ends = [end(&here, HERE, THERE), end(&there, THERE, HERE)];
    let link = Forwarder::start(ends, &settings, 1).expect("a link");
    Some((here, there, link))
}
