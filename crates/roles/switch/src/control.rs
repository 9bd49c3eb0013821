//! The control thread: knows the state of servers, the listening sockets and the configuration in force, and directs the workers.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_cluster::dispatch::ServerId;
use assay_net::listen::{listen_reuse_port, listen_std};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep, sleep_until};

use crate::check::{CheckTarget, is_healthy};
use crate::config::{Config, ServerSpec};
use crate::health::{ActiveHealth, PassiveHealth};
use crate::messages::{ControlMessage, ReportSender, WorkerConfig, WorkerReport};
use crate::metrics;
use crate::slow_start::{next_change, weight_after};
use crate::switch::SwitchError;
use crate::tally::SwitchSnapshot;
use crate::tls::TlsContext;
use crate::worker::{WorkerStart, run_worker};

/// Addresses at which a switch listens, with the ports that the system assigned.
pub struct ListenAddresses {
    pub addresses: Vec<SocketAddr>,
    /// Address at which counters are served.
    pub metrics: Option<SocketAddr>,
}

/// Requests to the control thread of a running switch.
pub enum ControlRequest {
    Snapshot(SyncSender<SwitchSnapshot>),
    /// Replaces the configuration; the response is the addresses at which the switch then listens.
    Reload(Box<(Config, TlsContext)>, SyncSender<Result<ListenAddresses, SwitchError>>),
    /// Stops after the last response.
    Stop,
    End,
}

/// Sockets that listen at one address, one for each worker.
pub struct BoundListeners {
    pub configured: SocketAddr,
    /// Address with the port that the system assigned.
    pub actual: SocketAddr,
    pub sockets: Vec<TcpListener>,
}

/// Binds one socket for each worker. Several share the port (`SO_REUSEPORT`), so that the kernel distributes connections.
pub fn bind(address: SocketAddr, workers: usize) -> Result<BoundListeners, SwitchError> {
    let listen_error = |cause| SwitchError::Listen { address, cause };
    let open = if workers == 1 { listen_std } else { listen_reuse_port };
    let first = open(address).map_err(listen_error)?;
    let actual = first.local_addr().map_err(listen_error)?;
    let mut sockets = vec![first];
    for _ in 1..workers {
        sockets.push(open(actual).map_err(listen_error)?);
    }
    Ok(BoundListeners { configured: address, actual, sockets })
}

/// Hands the one socket of an address to the runtime of this thread.
fn register(bound: BoundListeners) -> Result<(SocketAddr, tokio::net::TcpListener), SwitchError> {
    let cannot = |cause| SwitchError::Listen { address: bound.configured, cause };
    let socket = bound.sockets.into_iter().next().ok_or_else(|| cannot(io::ErrorKind::NotFound.into()))?;
    Ok((bound.actual, tokio::net::TcpListener::from_std(socket).map_err(cannot)?))
}

/// State of a server, as the control thread keeps it.
struct MonitoredServer {
    id: ServerId,
    spec: ServerSpec,
    active: Option<ActiveHealth>,
    passive: Option<PassiveHealth>,
    /// `None` while the server gets no requests.
    up_since_ns: Option<u64>,
    /// Weight that workers know; `None` while the server gets no requests.
    published_weight: Option<f64>,
    check_task: Option<AbortHandle>,
}

impl MonitoredServer {
    fn is_available(&self) -> bool {
        !self.spec.drains
            && self.active.as_ref().is_none_or(ActiveHealth::is_up)
            && self.passive.as_ref().is_none_or(PassiveHealth::is_admitted)
    }

    /// Current weight; `None` while the server must not get requests.
    fn current_weight(&mut self, now_ns: u64) -> Option<f64> {
        if !self.is_available() {
            self.up_since_ns = None;
            return None;
        }
        let since_ns = *self.up_since_ns.get_or_insert(now_ns);
        let up = Duration::from_nanos(now_ns.saturating_sub(since_ns));
        Some(weight_after(self.spec.weight, up, self.spec.slow_start))
    }

    /// Next instant at which the weight changes by time alone: the end of an ejection, or the next step of a slow start.
    fn next_change_ns(&self, now_ns: u64) -> Option<u64> {
        let back_ns = self.passive.as_ref().and_then(PassiveHealth::returns_ns);
        let grows_ns = self.up_since_ns.and_then(|since_ns| {
            let up = Duration::from_nanos(now_ns.saturating_sub(since_ns));
            next_change(up, self.spec.slow_start).map(|wait| now_ns + wait.as_nanos() as u64)
        });
        back_ns.into_iter().chain(grows_ns).min()
    }
}

impl Drop for MonitoredServer {
    fn drop(&mut self) {
        if let Some(check_task) = &self.check_task {
            check_task.abort();
        }
    }
}

type Workers = Vec<UnboundedSender<ControlMessage>>;

struct CheckResult {
    server: ServerId,
    is_healthy: bool,
}

pub struct Controller {
    config: Arc<Config>,
    tls_context: Arc<TlsContext>,
    servers: Vec<MonitoredServer>,
    next_id: u32,
    workers: Workers,
    /// Configured address → address with the port that the system assigned.
    listening: HashMap<SocketAddr, SocketAddr>,
    check_results: UnboundedSender<CheckResult>,
    metrics: Option<(SocketAddr, AbortHandle)>,
    /// End of the time that running requests have to finish; `None` unless the switch is stopping.
    stop_deadline: Option<Instant>,
}

impl Controller {
    /// Runs until the switch has ended.
    pub fn run(
        config: Config,
        tls_context: TlsContext,
        bound: Vec<BoundListeners>,
        metrics: Option<BoundListeners>,
        requests: UnboundedReceiver<ControlRequest>,
        ready: SyncSender<()>,
    ) -> Result<(), SwitchError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SwitchError::Start)?;
        LocalSet::new()
            .block_on(&runtime, Self::run_loop(config, tls_context, bound, metrics, requests, ready))
    }

    async fn run_loop(
        config: Config,
        tls_context: TlsContext,
        bound: Vec<BoundListeners>,
        metrics: Option<BoundListeners>,
        mut requests: UnboundedReceiver<ControlRequest>,
        ready: SyncSender<()>,
    ) -> Result<(), SwitchError> {
        let (check_results, mut results) = unbounded_channel();
        let (report_sender, mut reports) = unbounded_channel();
        let (ended_sender, mut ended) = unbounded_channel();
        let listening = bound.iter().map(|bound| (bound.configured, bound.actual)).collect();
        let mut controller = Self {
            config: Arc::new(config),
            tls_context: Arc::new(tls_context),
            servers: Vec::new(),
            next_id: 0,
            workers: Vec::new(),
            listening,
            check_results,
            metrics: None,
            stop_deadline: None,
        };
        // No slow start for the servers of the first configuration: all of them are equally cold.
        controller.update_servers(0);
        let sockets = sockets_by_worker(bound, controller.config.workers);
        let threads = controller.start_workers(sockets, &report_sender, &ended_sender)?;
        drop((report_sender, ended_sender));
        if let Some(bound) = metrics {
            let (address, listener) = register(bound)?;
            controller.serve_metrics(address, listener);
        }
        // The caller may have gone.
        let _ = ready.send(());
        let mut running = controller.workers.len();
        while running > 0 {
            let wake = controller.next_wake();
            tokio::select! {
                request = requests.recv() => controller.handle_request(request).await,
                Some(CheckResult { server, is_healthy }) = results.recv() => controller.on_check_result(server, is_healthy),
                Some(WorkerReport::Failed(server)) = reports.recv() => controller.on_failure(server),
                end = ended.recv() => running = if end.is_some() { running - 1 } else { 0 },
                () = wake => controller.on_timer(),
            }
        }
        drop(controller);
        for thread in threads {
            let ended = thread.join().map_err(|_| SwitchError::WorkerPanicked)?;
            ended.map_err(SwitchError::Start)?;
        }
        Ok(())
    }

    fn start_workers(
        &mut self,
        sockets: Vec<Vec<TcpListener>>,
        reports: &ReportSender,
        ended: &UnboundedSender<()>,
    ) -> Result<Vec<JoinHandle<io::Result<()>>>, SwitchError> {
        let config = self.worker_config();
        let mut threads = Vec::new();
        for (worker, listeners) in sockets.into_iter().enumerate() {
            let (sender, messages) = unbounded_channel();
            let start =
                WorkerStart { worker, config: config.clone(), listeners, messages, reports: reports.clone() };
            let ended = ended.clone();
            let work = move || {
                let result = run_worker(start);
                // The receiver is gone when the switch was told to end.
                let _ = ended.send(());
                result
            };
            let thread = std::thread::Builder::new().name(format!("worker-{worker}")).spawn(work);
            threads.push(thread.map_err(SwitchError::Start)?);
            self.workers.push(sender);
        }
        Ok(threads)
    }

    async fn handle_request(&mut self, request: Option<ControlRequest>) {
        match request {
            Some(ControlRequest::Snapshot(out)) => send_snapshot(self.workers.clone(), out),
            Some(ControlRequest::Reload(config, out)) => {
                let taken = self.reload(config.0, config.1).await;
                // The caller may have gone.
                let _ = out.send(taken);
            }
            Some(ControlRequest::Stop) if self.stop_deadline.is_none() => {
                self.stop_deadline = Some(Instant::now() + self.config.timeouts.stop);
                self.broadcast(|| ControlMessage::Stop);
            }
            Some(ControlRequest::Stop) => {}
            Some(ControlRequest::End) | None => self.broadcast(|| ControlMessage::End),
        }
    }

    fn broadcast(&self, message: impl Fn() -> ControlMessage) {
        for worker in &self.workers {
            // The end of a worker is noticed on its own channel.
            let _ = worker.send(message());
        }
    }

    fn worker_config(&self) -> WorkerConfig {
        let actual = |configured: SocketAddr| self.listening.get(&configured).copied();
        let listen = self.config.addresses().filter_map(actual);
        let tls_addresses =
            self.config.tls.iter().flat_map(|tls| tls.listen.iter().copied()).filter_map(actual);
        let weights = self
            .servers
            .iter()
            .filter_map(|server| server.published_weight.map(|weight| (server.id, weight)));
        WorkerConfig {
            config: Arc::clone(&self.config),
            server_ids: Arc::new(self.servers.iter().map(|server| server.id).collect()),
            listen: Arc::new(listen.collect()),
            tls_addresses: Arc::new(tls_addresses.collect()),
            tls_context: Arc::clone(&self.tls_context),
            weights: Arc::new(weights.collect()),
        }
    }

    /// Replaces the servers by those of the configuration. Servers known by name and address keep their state; new ones count as
    /// up since `up_since_ns`.
    fn update_servers(&mut self, up_since_ns: u64) {
        let mut former = std::mem::take(&mut self.servers);
        let config = Arc::clone(&self.config);
        let tls_context = Arc::clone(&self.tls_context);
        for (index, spec) in config.servers.iter().enumerate() {
            let former_index = former.iter().position(|server| is_same_server(&server.spec, spec));
            let mut server = match former_index {
                Some(index) => former.swap_remove(index),
                None => {
                    self.next_id += 1;
                    let id = ServerId(self.next_id - 1);
                    let spec = spec.clone();
                    MonitoredServer {
                        id,
                        spec,
                        active: None,
                        passive: None,
                        up_since_ns: Some(up_since_ns),
                        published_weight: None,
                        check_task: None,
                    }
                }
            };
            if server.active.is_none() || server.spec.check != spec.check {
                server.active = spec.check.as_ref().map(|check| ActiveHealth::new(check.rules));
            }
            server.passive = match (server.passive.take(), config.passive) {
                (Some(passive), Some(rules)) if passive.rules() == rules => Some(passive),
                (_, rules) => rules.map(PassiveHealth::new),
            };
            server.spec = spec.clone();
            if let Some(check_task) = server.check_task.take() {
                check_task.abort();
            }
            server.published_weight = server.current_weight(monotonic_ns());
            server.check_task = spec.check.clone().map(|check| {
                let (check_results, server) = (self.check_results.clone(), server.id);
                let (address, speaks_http2) = (spec.address, spec.speaks_http2);
                let tls = tls_context.servers.get(index).cloned().flatten();
                let check_again = async move {
                    let target = CheckTarget { address, tls: tls.as_ref(), speaks_http2 };
                    while check_results
                        .send(CheckResult { server, is_healthy: is_healthy(target, &check).await })
                        .is_ok()
                    {
                        sleep(check.interval).await;
                    }
                };
                spawn_local(check_again).abort_handle()
            });
            self.servers.push(server);
        }
    }

    async fn reload(
        &mut self,
        config: Config,
        tls_context: TlsContext,
    ) -> Result<ListenAddresses, SwitchError> {
        if self.stop_deadline.is_some() {
            return Err(SwitchError::Ended);
        }
        if config.workers != self.config.workers {
            return Err(SwitchError::Workers(self.config.workers, config.workers));
        }
        let mut bound = Vec::new();
        for configured in config.addresses().filter(|configured| !self.listening.contains_key(configured)) {
            bound.push(bind(configured, config.workers)?);
        }
        let is_unchanged = self.config.metrics == config.metrics;
        let metrics = match config.metrics {
            Some(address) if !is_unchanged => Some(register(bind(address, 1)?)?),
            _ => None,
        };
        // Nothing can fail from here on: a reload happens as a whole or not at all.
        (self.config, self.tls_context) = (Arc::new(config), Arc::new(tls_context));
        self.listening.retain(|configured, _| self.config.addresses().any(|address| address == *configured));
        self.listening.extend(bound.iter().map(|bound| (bound.configured, bound.actual)));
        if !is_unchanged {
            self.metrics = self.metrics.take().and_then(|(_, serving)| {
                serving.abort();
                None
            });
            if let Some((address, listener)) = metrics {
                self.serve_metrics(address, listener);
            }
        }
        self.update_servers(monotonic_ns());
        let worker_config = self.worker_config();
        let sockets = sockets_by_worker(bound, self.workers.len());
        let mut receivers = Vec::new();
        for (worker, own) in self.workers.iter().zip(sockets) {
            let (sender, receiver) = oneshot::channel();
            if worker.send(ControlMessage::Reload(worker_config.clone(), own, sender)).is_ok() {
                receivers.push(receiver);
            }
        }
        for receiver in receivers {
            let _ = receiver.await;
        }
        let metrics = self.metrics.as_ref().map(|(address, _)| *address);
        Ok(ListenAddresses { addresses: worker_config.listen.to_vec(), metrics })
    }

    fn on_check_result(&mut self, id: ServerId, is_healthy: bool) {
        if let Some(server) = self.servers.iter_mut().find(|server| server.id == id)
            && let Some(active) = &mut server.active
            && active.on_probe(is_healthy)
        {
            self.publish_weights();
        }
    }

    fn on_failure(&mut self, id: ServerId) {
        if let Some(server) = self.servers.iter_mut().find(|server| server.id == id)
            && let Some(passive) = &mut server.passive
            && passive.on_failure(monotonic_ns())
        {
            self.publish_weights();
        }
    }

    fn on_timer(&mut self) {
        if self.stop_deadline.is_some_and(|at| at <= Instant::now()) {
            self.broadcast(|| ControlMessage::End);
        }
        let now_ns = monotonic_ns();
        for passive in self.servers.iter_mut().filter_map(|server| server.passive.as_mut()) {
            passive.on_time(now_ns);
        }
        self.publish_weights();
    }

    /// Broadcasts each weight that differs from what the workers know.
    fn publish_weights(&mut self) {
        let now_ns = monotonic_ns();
        let mut changed = Vec::new();
        for server in &mut self.servers {
            let weight = server.current_weight(now_ns);
            if weight != server.published_weight {
                server.published_weight = weight;
                changed.push((server.id, weight));
            }
        }
        for (server, weight) in changed {
            self.broadcast(|| ControlMessage::Availability(server, weight));
        }
    }

    /// Sleeps until the next change that time causes, a second at most.
    fn next_wake(&self) -> impl Future<Output = ()> + use<> {
        let now_ns = monotonic_ns();
        let next_change_ns = self.servers.iter().filter_map(|server| server.next_change_ns(now_ns)).min();
        let wait_ns = next_change_ns.map_or(SECOND_NS, |at_ns| at_ns.saturating_sub(now_ns)).min(SECOND_NS);
        let now = Instant::now();
        let wake = now + Duration::from_nanos(wait_ns);
        // After the stop deadline, workers have been told to end, and their ends arrive on a channel.
        sleep_until(self.stop_deadline.filter(|at| *at > now).map_or(wake, |at| at.min(wake)))
    }

    fn serve_metrics(&mut self, address: SocketAddr, listener: tokio::net::TcpListener) {
        let workers = self.workers.clone();
        let serving = spawn_local(metrics::serve(listener, move || collect_snapshot(workers.clone())));
        self.metrics = Some((address, serving.abort_handle()));
    }
}

/// Whether a server keeps its identity, and so its connections, over a reload. A change of TLS or of the version of HTTP needs
/// new connections.
fn is_same_server(former: &ServerSpec, spec: &ServerSpec) -> bool {
    let (was, is) = ((former.speaks_http2, &former.tls), (spec.speaks_http2, &spec.tls));
    former.name == spec.name && former.address == spec.address && was == is
}

/// Sum of the counters of all workers.
async fn collect_snapshot(workers: Workers) -> SwitchSnapshot {
    let mut receivers = Vec::new();
    for worker in &workers {
        let (sender, receiver) = oneshot::channel();
        if worker.send(ControlMessage::Snapshot(sender)).is_ok() {
            receivers.push(receiver);
        }
    }
    let mut all = SwitchSnapshot::default();
    for receiver in receivers {
        if let Ok(one) = receiver.await {
            all.merge(one);
        }
    }
    all
}

/// Responds once all workers have reported.
fn send_snapshot(workers: Workers, out: SyncSender<SwitchSnapshot>) {
    spawn_local(async move {
        let _ = out.send(collect_snapshot(workers).await);
    });
}

/// Transposes sockets by address into sockets by worker.
fn sockets_by_worker(bound: Vec<BoundListeners>, workers: usize) -> Vec<Vec<TcpListener>> {
    let mut all: Vec<Vec<TcpListener>> = std::iter::repeat_with(Vec::new).take(workers).collect();
    for BoundListeners { sockets, .. } in bound {
        for (own, socket) in all.iter_mut().zip(sockets) {
            own.push(socket);
        }
    }
    all
}
