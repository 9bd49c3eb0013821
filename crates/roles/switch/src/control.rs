//! The thread that steers the workers. One thread, which knows how servers are, what is listened at, and which configuration
//! is in force.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_cluster::dispatch::ServerId;
use assay_net::listen::{listen_alone, listen_beside_others};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep, sleep_until};

use crate::check::is_well;
use crate::config::{Config, ServerSpec};
use crate::health::{Active, Passive};
use crate::metrics;
use crate::plan::{News, NewsSender, Plan, Word};
use crate::secure::Secure;
use crate::slow_start::{next_change, weight_after};
use crate::switch::SwitchError;
use crate::tally::Snapshot;
use crate::worker::{Start, work};

/// Where a switch listens, with the ports that the system gave.
pub struct Listening {
    pub addresses: Vec<SocketAddr>,
    /// For those who look at its counters.
    pub metrics: Option<SocketAddr>,
}

/// Orders to a running switch.
pub enum Order {
    Snapshot(SyncSender<Snapshot>),
    /// Take on another configuration; the result is where it listens then.
    Reload(Box<(Config, Secure)>, SyncSender<Result<Listening, SwitchError>>),
    /// Stop after all responses.
    Stop,
    End,
}

/// Sockets at one address, a worker each; and the address itself, with the port that the system gave.
pub type Bound = (SocketAddr, Vec<TcpListener>);

/// Binds sockets for so many workers.
pub fn listeners(address: SocketAddr, workers: usize) -> Result<Bound, SwitchError> {
    let failed = |cause| SwitchError::Listen { address, cause };
    let open = if workers == 1 { listen_alone } else { listen_beside_others };
    let first = open(address).map_err(failed)?;
    let actual = first.local_addr().map_err(failed)?;
    let mut all = vec![first];
    for _ in 1..workers {
        all.push(open(actual).map_err(failed)?);
    }
    Ok((actual, all))
}

/// A server, as the thread that steers sees it.
struct Kept {
    id: ServerId,
    spec: ServerSpec,
    active: Option<Active>,
    passive: Option<Passive>,
    /// Since when it gets requests; none while it gets none.
    up_since_ns: Option<u64>,
    /// What workers were told.
    told: Option<f64>,
    checking: Option<AbortHandle>,
}

impl Kept {
    fn is_available(&self) -> bool {
        !self.spec.drains
            && self.active.as_ref().is_none_or(Active::is_up)
            && self.passive.as_ref().is_none_or(Passive::is_in)
    }

    /// Its weight now; none: it must not get requests.
    fn weigh(&mut self, now_ns: u64) -> Option<f64> {
        if !self.is_available() {
            self.up_since_ns = None;
            return None;
        }
        let since_ns = *self.up_since_ns.get_or_insert(now_ns);
        let up = Duration::from_nanos(now_ns.saturating_sub(since_ns));
        Some(weight_after(self.spec.weight, up, self.spec.slow_start))
    }

    /// When time alone changes something.
    fn next_ns(&self, now_ns: u64) -> Option<u64> {
        let back_ns = self.passive.as_ref().and_then(Passive::back_ns);
        let grows_ns = self.up_since_ns.and_then(|since_ns| {
            let up = Duration::from_nanos(now_ns.saturating_sub(since_ns));
            next_change(up, self.spec.slow_start).map(|wait| now_ns + wait.as_nanos() as u64)
        });
        back_ns.into_iter().chain(grows_ns).min()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(checking) = &self.checking {
            checking.abort();
        }
    }
}

/// Channels to all workers.
type Workers = Vec<UnboundedSender<Word>>;

/// The result of a health check.
type Verdict = (ServerId, bool);

/// The thread that steers.
pub struct Control {
    config: Arc<Config>,
    secure: Arc<Secure>,
    servers: Vec<Kept>,
    next_id: u32,
    workers: Workers,
    /// What is listened at: as configured, and as it is.
    listening: HashMap<SocketAddr, SocketAddr>,
    verdicts: UnboundedSender<Verdict>,
    metrics: Option<(SocketAddr, AbortHandle)>,
    /// When running requests are waited for no longer; none: it is not to stop.
    give_up: Option<Instant>,
}

impl Control {
    /// Steers until the switch has ended.
    pub fn run(
        (config, secure): (Config, Secure),
        bound: Vec<(SocketAddr, Bound)>,
        metrics: Option<Bound>,
        requested: UnboundedReceiver<Order>,
        ready: SyncSender<()>,
    ) -> Result<(), SwitchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| SwitchError::Start(cause.to_string()))?;
        LocalSet::new().block_on(&runtime, Self::steer((config, secure), bound, metrics, requested, ready))
    }

    async fn steer(
        (config, secure): (Config, Secure),
        bound: Vec<(SocketAddr, Bound)>,
        metrics: Option<Bound>,
        mut requested: UnboundedReceiver<Order>,
        ready: SyncSender<()>,
    ) -> Result<(), SwitchError> {
        let (verdicts, mut judged) = unbounded_channel();
        let (news_sender, mut news) = unbounded_channel();
        let (ended_sender, mut ended) = unbounded_channel();
        let listening = bound.iter().map(|(wanted, (actual, _))| (*wanted, *actual)).collect();
        let mut control = Self {
            config: Arc::new(config),
            secure: Arc::new(secure),
            servers: Vec::new(),
            next_id: 0,
            workers: Vec::new(),
            listening,
            verdicts,
            metrics: None,
            give_up: None,
        };
        // Servers that are there from the beginning have all their weight: all of them are equally cold.
        control.take_servers(0);
        let sockets = by_worker(bound.into_iter().map(|(_, (_, all))| all), control.config.workers);
        let threads = control.start_workers(sockets, &news_sender, &ended_sender)?;
        drop((news_sender, ended_sender));
        if let Some((address, mut sockets)) = metrics {
            control.show_metrics(address, sockets.pop());
        }
        // Whoever started it may have gone.
        let _ = ready.send(());
        let mut running = control.workers.len();
        while running > 0 {
            let wake = control.next_wake();
            tokio::select! {
                order = requested.recv() => control.obey(order).await,
                Some((server, is_well)) = judged.recv() => control.judge(server, is_well),
                Some(News::Failed(server)) = news.recv() => control.failed(server),
                end = ended.recv() => running = if end.is_some() { running - 1 } else { 0 },
                () = wake => control.time_has_passed(),
            }
        }
        drop(control);
        for thread in threads {
            let ended = thread
                .join()
                .map_err(|_| SwitchError::Start("a worker panicked: this is a bug of Assay".into()))?;
            ended.map_err(|error| SwitchError::Start(error.to_string()))?;
        }
        Ok(())
    }

    fn start_workers(
        &mut self,
        sockets: Vec<Vec<TcpListener>>,
        news: &NewsSender,
        ended: &UnboundedSender<()>,
    ) -> Result<Vec<JoinHandle<io::Result<()>>>, SwitchError> {
        let plan = self.plan();
        let mut threads = Vec::new();
        for (worker, listeners) in sockets.into_iter().enumerate() {
            let (words, told) = unbounded_channel();
            let start = Start { worker, plan: plan.clone(), listeners, words: told, news: news.clone() };
            let ended = ended.clone();
            let work = move || {
                let result = work(start);
                // The receiver is gone when the switch was told to end.
                let _ = ended.send(());
                result
            };
            let thread = std::thread::Builder::new().name(format!("worker-{worker}")).spawn(work);
            threads.push(thread.map_err(|error| SwitchError::Start(error.to_string()))?);
            self.workers.push(words);
        }
        Ok(threads)
    }

    async fn obey(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Snapshot(out)) => send_snapshot(self.workers.clone(), out),
            Some(Order::Reload(config, out)) => {
                let taken = self.reload(config.0, config.1).await;
                // The caller may have gone.
                let _ = out.send(taken);
            }
            Some(Order::Stop) if self.give_up.is_none() => {
                self.give_up = Some(Instant::now() + self.config.timeouts.stop);
                self.tell(|| Word::Stop);
            }
            Some(Order::Stop) => {}
            Some(Order::End) | None => self.tell(|| Word::End),
        }
    }

    fn tell(&self, word: impl Fn() -> Word) {
        for worker in &self.workers {
            // One that has ended is heard of elsewhere.
            let _ = worker.send(word());
        }
    }

    fn plan(&self) -> Plan {
        let actual = |wanted: SocketAddr| self.listening.get(&wanted).copied();
        let listen = self.config.addresses().filter_map(actual);
        let secured = self.config.tls.iter().flat_map(|tls| tls.listen.iter().copied()).filter_map(actual);
        let standings = self.servers.iter().filter_map(|kept| kept.told.map(|weight| (kept.id, weight)));
        Plan {
            config: Arc::clone(&self.config),
            numbers: Arc::new(self.servers.iter().map(|kept| kept.id).collect()),
            listen: Arc::new(listen.collect()),
            secured: Arc::new(secured.collect()),
            secure: Arc::clone(&self.secure),
            standings: Arc::new(standings.collect()),
        }
    }

    /// Makes the servers those of the configuration. Ones that were there, by name and address, stay the same; new ones have
    /// been up since `up_since_ns`.
    fn take_servers(&mut self, up_since_ns: u64) {
        let mut former = std::mem::take(&mut self.servers);
        let config = Arc::clone(&self.config);
        let secure = Arc::clone(&self.secure);
        for (place, spec) in config.servers.iter().enumerate() {
            let known = former.iter().position(|kept| is_same(&kept.spec, spec));
            let mut kept = match known {
                Some(place) => former.swap_remove(place),
                None => {
                    self.next_id += 1;
                    let id = ServerId(self.next_id - 1);
                    let spec = spec.clone();
                    Kept {
                        id,
                        spec,
                        active: None,
                        passive: None,
                        up_since_ns: Some(up_since_ns),
                        told: None,
                        checking: None,
                    }
                }
            };
            if kept.active.is_none() || kept.spec.check != spec.check {
                kept.active = spec.check.as_ref().map(|check| Active::new(check.rules));
            }
            kept.passive = match (kept.passive.take(), config.passive) {
                (Some(passive), Some(rules)) if passive.rules() == rules => Some(passive),
                (_, rules) => rules.map(Passive::new),
            };
            kept.spec = spec.clone();
            if let Some(checking) = kept.checking.take() {
                checking.abort();
            }
            kept.told = kept.weigh(monotonic_ns());
            kept.checking = spec.check.clone().map(|check| {
                let (verdicts, id, address) = (self.verdicts.clone(), kept.id, spec.address);
                let speaks_http2 = spec.speaks_http2;
                let tls = secure.servers.get(place).cloned().flatten();
                let check_again = async move {
                    let server = (address, tls.as_ref(), speaks_http2);
                    while verdicts.send((id, is_well(server, &check).await)).is_ok() {
                        sleep(check.interval).await;
                    }
                };
                spawn_local(check_again).abort_handle()
            });
            self.servers.push(kept);
        }
    }

    async fn reload(&mut self, config: Config, secure: Secure) -> Result<Listening, SwitchError> {
        if self.give_up.is_some() {
            return Err(SwitchError::Ended);
        }
        if config.workers != self.config.workers {
            return Err(SwitchError::Workers(self.config.workers, config.workers));
        }
        let mut bound = Vec::new();
        for wanted in config.addresses().filter(|wanted| !self.listening.contains_key(wanted)) {
            bound.push((wanted, listeners(wanted, config.workers)?));
        }
        let is_shown = self.config.metrics == config.metrics;
        let metrics = match config.metrics {
            Some(address) if !is_shown => Some(listeners(address, 1)?),
            _ => None,
        };
        // From here on nothing can fail.
        (self.config, self.secure) = (Arc::new(config), Arc::new(secure));
        self.listening.retain(|wanted, _| self.config.addresses().any(|address| address == *wanted));
        self.listening.extend(bound.iter().map(|(wanted, (actual, _))| (*wanted, *actual)));
        if !is_shown {
            self.metrics = self.metrics.take().and_then(|(_, showing)| {
                showing.abort();
                None
            });
            if let Some((address, mut sockets)) = metrics {
                self.show_metrics(address, sockets.pop());
            }
        }
        self.take_servers(monotonic_ns());
        let plan = self.plan();
        let sockets = by_worker(bound.into_iter().map(|(_, (_, all))| all), self.workers.len());
        let mut done = Vec::new();
        for (worker, own) in self.workers.iter().zip(sockets) {
            let (sender, receiver) = oneshot::channel();
            if worker.send(Word::Plan(plan.clone(), own, sender)).is_ok() {
                done.push(receiver);
            }
        }
        for receiver in done {
            let _ = receiver.await;
        }
        let metrics = self.metrics.as_ref().map(|(address, _)| *address);
        Ok(Listening { addresses: plan.listen.to_vec(), metrics })
    }

    fn judge(&mut self, server: ServerId, is_well: bool) {
        if let Some(kept) = self.servers.iter_mut().find(|kept| kept.id == server)
            && let Some(active) = &mut kept.active
            && active.responded(is_well)
        {
            self.tell_standings();
        }
    }

    fn failed(&mut self, server: ServerId) {
        if let Some(kept) = self.servers.iter_mut().find(|kept| kept.id == server)
            && let Some(passive) = &mut kept.passive
            && passive.failed(monotonic_ns())
        {
            self.tell_standings();
        }
    }

    fn time_has_passed(&mut self) {
        if self.give_up.is_some_and(|at| at <= Instant::now()) {
            self.tell(|| Word::End);
        }
        let now_ns = monotonic_ns();
        for passive in self.servers.iter_mut().filter_map(|kept| kept.passive.as_mut()) {
            passive.passed(now_ns);
        }
        self.tell_standings();
    }

    /// Tells workers of each server whose weight is another than they know.
    fn tell_standings(&mut self) {
        let now_ns = monotonic_ns();
        let mut changed = Vec::new();
        for kept in &mut self.servers {
            let weight = kept.weigh(now_ns);
            if weight != kept.told {
                kept.told = weight;
                changed.push((kept.id, weight));
            }
        }
        for (server, weight) in changed {
            self.tell(|| Word::Standing(server, weight));
        }
    }

    /// Waits until time changes something.
    fn next_wake(&self) -> impl Future<Output = ()> + use<> {
        let now_ns = monotonic_ns();
        let next_ns = self.servers.iter().filter_map(|kept| kept.next_ns(now_ns)).min();
        let wait_ns = next_ns.map_or(SECOND_NS, |at_ns| at_ns.saturating_sub(now_ns)).min(SECOND_NS);
        let now = Instant::now();
        let wake = now + Duration::from_nanos(wait_ns);
        // Once it has given up, workers have been told, and their ends are heard of.
        sleep_until(self.give_up.filter(|at| *at > now).map_or(wake, |at| at.min(wake)))
    }

    fn show_metrics(&mut self, address: SocketAddr, socket: Option<TcpListener>) {
        let Some(listener) = socket.and_then(|socket| tokio::net::TcpListener::from_std(socket).ok()) else {
            return;
        };
        let workers = self.workers.clone();
        let showing = spawn_local(metrics::serve(listener, move || gather(workers.clone())));
        self.metrics = Some((address, showing.abort_handle()));
    }
}

/// Whether a server stays the same over a reload. One that speaks TLS or HTTP in another way gets new connections.
fn is_same(former: &ServerSpec, spec: &ServerSpec) -> bool {
    let (was, is) = ((former.speaks_http2, &former.tls), (spec.speaks_http2, &spec.tls));
    former.name == spec.name && former.address == spec.address && was == is
}

/// What all workers have done.
async fn gather(workers: Workers) -> Snapshot {
    let mut awaited = Vec::new();
    for worker in &workers {
        let (sender, receiver) = oneshot::channel();
        if worker.send(Word::Snapshot(sender)).is_ok() {
            awaited.push(receiver);
        }
    }
    let mut all = Snapshot::default();
    for receiver in awaited {
        if let Ok(one) = receiver.await {
            all.merge(one);
        }
    }
    all
}

/// Completes when all workers have reported.
fn send_snapshot(workers: Workers, out: SyncSender<Snapshot>) {
    spawn_local(async move {
        let _ = out.send(gather(workers).await);
    });
}

/// From sockets by address to sockets by worker.
fn by_worker(bound: impl Iterator<Item = Vec<TcpListener>>, workers: usize) -> Vec<Vec<TcpListener>> {
    let mut all: Vec<Vec<TcpListener>> = std::iter::repeat_with(Vec::new).take(workers).collect();
    for sockets in bound {
        for (own, socket) in all.iter_mut().zip(sockets) {
            own.push(socket);
        }
    }
    all
}
