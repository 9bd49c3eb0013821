//! The thread that watches a run. One thread, which gets its events, serves requests, and sends metrics away.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_net::own_host::own_name;
use assay_record::event::{RunEvent, Stage};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::MissedTickBehavior;

use crate::serve::desk::Desk;
use crate::serve::error::ServeError;
use crate::serve::figures::{Own, families};
use crate::serve::idle;
use crate::serve::maker::Maker;
use crate::serve::otlp::{self, Stretch};
use crate::serve::push::Collector;
use crate::serve::server::{self, Clients, Source};
use crate::serve::state::{About, State};
use crate::serve::times::Family;

/// Who may watch, and how.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Where to listen; none: nowhere.
    pub serve: Option<SocketAddr>,
    /// Where to send metrics; none: nowhere.
    pub collector: Option<Collector>,
}

/// Orders to the thread.
enum Order {
    /// The report was written: documents made before are old.
    Renew,
    /// Send what is left and end.
    Stop,
}

/// A thread that watches a run. Dropped, it goes on until the process ends.
#[derive(Debug)]
pub struct Watcher {
    address: Option<SocketAddr>,
    orders: UnboundedSender<Order>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// Starts to listen at once, so that a place that is taken is known before anything else starts.
    ///
    /// `heard` is what happens. `say` is called with what the user should know, from the watcher's own thread.
    pub fn start(
        settings: Settings,
        about: About,
        heard: UnboundedReceiver<Arc<RunEvent>>,
        say: impl Fn(String) + Send + 'static,
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
        let (orders, received) = unbounded_channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Thread)?;
        let work = move || {
            idle::give_way();
            let Ok(maker) = Maker::start() else { return };
            let watch = Rc::new(Watch::new(about, maker, settings.collector, Box::new(say)));
            LocalSet::new().block_on(&runtime, watch.work(listening, heard, received));
            // Looking up a name can take longer than a caller should wait for it.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("assay-serve".into()).spawn(work);
        Ok(Self { address, orders, thread: thread.map_err(ServeError::Thread)? })
    }

    /// Where it listens, with the port that was found.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The report of the run was written: from now on that is what is shown.
    pub fn report_written(&self) {
        // The thread ends when it is told to; if it ended otherwise, nothing watches any more.
        let _ = self.orders.send(Order::Renew);
    }

    /// Sends the last metrics, and ends; takes a few seconds at most.
    pub fn finish(self) {
        let _ = self.orders.send(Order::Stop);
        // A watcher that panicked has said so, and is no reason for a run to fail.
        let _ = self.thread.join();
    }
}

/// Everything that the thread owns.
struct Watch {
    state: Rc<RefCell<State>>,
    desk: Rc<Desk>,
    clients: Clients,
    collector: Option<Collector>,
    say: Box<dyn Fn(String)>,
    complained: Cell<bool>,
    started_unix_ns: u64,
}

impl Watch {
    fn new(about: About, maker: Rc<Maker>, collector: Option<Collector>, say: Box<dyn Fn(String)>) -> Self {
        Self {
            state: Rc::new(RefCell::new(State::new(about))),
            desk: Rc::new(Desk::new(maker)),
            clients: Clients::new(),
            collector,
            say,
            complained: Cell::new(false),
            started_unix_ns: now_unix_ns(),
        }
    }

    async fn work(
        self: Rc<Self>,
        listening: Option<(std::net::TcpListener, SocketAddr)>,
        mut heard: UnboundedReceiver<Arc<RunEvent>>,
        mut received: UnboundedReceiver<Order>,
    ) {
        if let Some((listener, address)) = listening {
            match TcpListener::from_std(listener) {
                Ok(listener) => {
                    let source =
                        Source { desk: self.desk.clone(), metrics: self.metrics(), own_name: own_name() };
                    tokio::task::spawn_local(server::accept(listener, Rc::new(source), self.clients.clone()));
                }
                Err(error) => (self.say)(format!("nobody can watch at {address}: {error}")),
            }
        }
        let pushing = tokio::task::spawn_local(self.clone().push_on());
        let mut hearing = true;
        loop {
            tokio::select! {
                // What happened comes before what is to be done about it.
                biased;
                event = heard.recv(), if hearing => match event {
                    Some(event) => self.take(&event),
                    None => hearing = false,
                },
                request = received.recv() => match request {
                    Some(Order::Renew) => self.desk.ended(),
                    Some(Order::Stop) | None => break,
                },
            }
        }
        // What is on its way may be cut off: the last push contains it.
        pushing.abort();
        self.push().await;
    }

    /// Sends metrics every few seconds, for as long as it is polled. None before the run has a name: a collector would keep them as
    /// those of another one.
    async fn push_on(self: Rc<Self>) {
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

    fn take(&self, event: &RunEvent) {
        match event {
            RunEvent::Stage(Stage::Planned { run_dir }) => self.desk.found(run_dir.clone()),
            RunEvent::Finished => self.desk.ended(),
            _ => {}
        }
        self.state.borrow_mut().take(event);
    }

    /// All metrics, whenever it is called; on the watcher's thread.
    fn metrics(&self) -> impl Fn() -> Vec<Family> + use<> {
        let (state, desk, clients) = (self.state.clone(), self.desk.clone(), self.clients.clone());
        move || {
            let own = Own {
                cpu_s: (idle::cpu_time() + desk.cpu_time()).as_secs_f64(),
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
        let stretch = Stretch { start_unix_ns: self.started_unix_ns, end_unix_ns: now_unix_ns() };
        let document = otlp::document(&families, &resource, &version, stretch).to_string();
        if let Err(why) = collector.send(document.as_bytes(), &version).await
            && !self.complained.replace(true)
        {
            let (url, every) = (collector.url(), collector.interval.as_secs_f64());
            (self.say)(format!(
                "{url} does not take metrics ({why}); the run goes on without, and Assay tries again every {every} s"
            ));
        }
    }
}

/// What tells the metrics of this run from all others.
fn resource(state: &State, collector: &Collector) -> Vec<(String, String)> {
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
