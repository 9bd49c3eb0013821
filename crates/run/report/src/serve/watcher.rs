//! The thread that watches a run. One thread, which gets its events, serves requests, and sends metrics away.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::allowed_hosts::host_name;
use assay_record::event::{RunEvent, Stage};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::MissedTickBehavior;

use crate::serve::error::ServeError;
use crate::serve::idle;
use crate::serve::metrics::{WatcherStats, families};
use crate::serve::otlp::{self, TimeRange};
use crate::serve::push::OtlpCollector;
use crate::serve::renderer::Renderer;
use crate::serve::report_cache::ReportCache;
use crate::serve::server::{self, Clients, ReportSources};
use crate::serve::state::{LiveState, RunIdentity};
use crate::serve::times::Family;

/// Ways to watch a run.
#[derive(Debug, Clone, Default)]
pub struct WatchSettings {
    /// Address to listen on; none: do not listen.
    pub serve: Option<SocketAddr>,
    /// Collector to push metrics to; none: do not push.
    pub collector: Option<OtlpCollector>,
}

/// Command to the thread.
enum WatcherCommand {
    /// The report was written: documents made before are old.
    Renew,
    /// Send what is left and end.
    Stop,
}

/// A thread that watches a run. Dropped, it goes on until the process ends.
#[derive(Debug)]
pub struct Watcher {
    address: Option<SocketAddr>,
    commands: UnboundedSender<WatcherCommand>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// Starts to listen at once, so that a place that is taken is known before anything else starts.
    ///
    /// `events` are those of the run. `warn` is called with messages for the user, on the watcher's own thread.
    pub fn start(
        settings: WatchSettings,
        about: RunIdentity,
        events: UnboundedReceiver<Arc<RunEvent>>,
        warn: impl Fn(String) + Send + 'static,
    ) -> Result<Self, ServeError> {
        let listen = |address: SocketAddr| {
            let failed = |cause| ServeError::Listen { address, cause };
            let listener = std::net::TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            Ok((listener, bound))
        };
        let listening = settings.serve.map(listen).transpose()?;
        let address = listening.as_ref().map(|(_, address)| *address);
        let (commands, received) = unbounded_channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Thread)?;
        let work = move || {
            idle::run_when_idle();
            let Ok(renderer) = Renderer::start() else { return };
            let watcher = Rc::new(WatcherThread::new(about, renderer, settings.collector, Box::new(warn)));
            LocalSet::new().block_on(&runtime, watcher.run(listening, events, received));
            // Looking up a name can take longer than a caller should wait for it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("assay-serve".into()).spawn(work);
        Ok(Self { address, commands, thread: thread.map_err(ServeError::Thread)? })
    }

    /// Address on which it listens, with the port that the system chose.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The report of the run was written: from now on that is what is shown.
    pub fn report_written(&self) {
        // The thread ends when it is told to; if it ended otherwise, nothing watches any more.
        let _ = self.commands.send(WatcherCommand::Renew);
    }

    /// Sends the last metrics, and ends; takes a few seconds at most.
    pub fn finish(self) {
        let _ = self.commands.send(WatcherCommand::Stop);
        // A watcher that panicked has said so, and is no reason for a run to fail.
        let _ = self.thread.join();
    }
}

/// Everything that the thread owns.
struct WatcherThread {
    state: Rc<RefCell<LiveState>>,
    reports: Rc<ReportCache>,
    clients: Clients,
    collector: Option<OtlpCollector>,
    warn: Box<dyn Fn(String)>,
    has_warned: Cell<bool>,
    started_unix_ns: u64,
}

impl WatcherThread {
    fn new(
        about: RunIdentity,
        renderer: Rc<Renderer>,
        collector: Option<OtlpCollector>,
        warn: Box<dyn Fn(String)>,
    ) -> Self {
        Self {
            state: Rc::new(RefCell::new(LiveState::new(about))),
            reports: Rc::new(ReportCache::new(renderer)),
            clients: Clients::new(),
            collector,
            warn,
            has_warned: Cell::new(false),
            started_unix_ns: now_unix_ns(),
        }
    }

    async fn run(
        self: Rc<Self>,
        listening: Option<(std::net::TcpListener, SocketAddr)>,
        mut events: UnboundedReceiver<Arc<RunEvent>>,
        mut received: UnboundedReceiver<WatcherCommand>,
    ) {
        if let Some((listener, address)) = listening {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    let source = ReportSources {
                        reports: self.reports.clone(),
                        metrics: self.metrics(),
                        own_name: host_name(),
                    };
                    tokio::task::spawn_local(server::accept(listener, Rc::new(source), self.clients.clone()));
                }
                Err(error) => (self.warn)(format!("nobody can watch at {address}: {error}")),
            }
        }
        let pushing = tokio::task::spawn_local(self.clone().push_periodically());
        let mut is_open = true;
        loop {
            tokio::select! {
                // What happened comes before what is to be done about it.
                biased;
                event = events.recv(), if is_open => match event {
                    Some(event) => self.apply(&event),
                    None => is_open = false,
                },
                request = received.recv() => match request {
                    Some(WatcherCommand::Renew) => self.reports.run_ended(),
                    Some(WatcherCommand::Stop) | None => break,
                },
            }
        }
        // What is on its way may be cut off: the last push contains it.
        pushing.abort();
        self.push().await;
    }

    /// Sends metrics every few seconds, for as long as it is polled. None before the run has a name: a collector would keep them as
    /// those of another one.
    async fn push_periodically(self: Rc<Self>) {
        let Some(collector) = &self.collector else { return };
        let mut interval = tokio::time::interval(collector.interval);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            if self.state.borrow().run_dir.is_some() {
                self.push().await;
            }
        }
    }

    fn apply(&self, event: &RunEvent) {
        match event {
            RunEvent::Stage(Stage::Planned { run_dir }) => self.reports.set_run_dir(run_dir.clone()),
            RunEvent::Finished => self.reports.run_ended(),
            _ => {}
        }
        self.state.borrow_mut().apply(event);
    }

    /// All metrics, whenever it is called; on the watcher's thread.
    fn metrics(&self) -> impl Fn() -> Vec<Family> + use<> {
        let (state, reports, clients) = (self.state.clone(), self.reports.clone(), self.clients.clone());
        move || {
            let own = WatcherStats {
                cpu_s: (idle::cpu_time() + reports.cpu_time()).as_secs_f64(),
                dismissed_clients: clients.dismissed(),
                slow_clients: clients.slow(),
            };
            families(&state.borrow(), now_unix_ns() / 1_000_000, own)
        }
    }

    /// Sends metrics as they are now, if there is anywhere to send them to.
    async fn push(&self) {
        let Some(collector) = &self.collector else { return };
        let families = self.metrics()();
        let (resource, version) = {
            let state = self.state.borrow();
            (resource(&state, collector), state.about.version.clone())
        };
        let stretch = TimeRange { start_unix_ns: self.started_unix_ns, end_unix_ns: now_unix_ns() };
        let document = otlp::document(&families, &resource, &version, stretch).to_string();
        if let Err(error) = collector.send(document.as_bytes(), &version).await
            && !self.has_warned.replace(true)
        {
            let (url, every) = (collector.url(), collector.interval.as_secs_f64());
            (self.warn)(format!(
                "{url} does not take metrics ({error}); the run goes on without, and Assay tries again every {every} s"
            ));
        }
    }
}

/// Attributes that identify the metrics of this run.
fn resource(state: &LiveState, collector: &OtlpCollector) -> Vec<(String, String)> {
    let run = state.run_dir.as_ref().and_then(|dir| dir.file_name());
    let own = [
        ("service.name", "assay".to_owned()),
        ("service.version", state.about.version.clone()),
        ("service.instance.id", run.map_or_else(String::new, |name| name.to_string_lossy().into_owned())),
        ("assay.workload", state.about.workload.clone()),
        ("assay.target", state.target.name.clone()),
        ("assay.seed", state.about.seed.to_string()),
    ];
    let given = &collector.resource;
    let own = own.into_iter().filter(|(name, _)| !given.iter().any(|(other, _)| other == name));
    own.map(|(name, value)| (name.to_owned(), value)).chain(given.iter().cloned()).collect()
}

fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
