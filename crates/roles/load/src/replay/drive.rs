//! Execution of a plan: each request is sent when it is due, whatever became of those before.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_net::connection::Resources;
use assay_net::pool::Pool;
use assay_net::thread_times::ThreadTimes;
use assay_net::timer::Timer;
use assay_net::upstream::Upstream;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::{Notify, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use crate::replay::ReplayError;
use crate::replay::exchange::{ExchangeContext, ExchangeResult, exchange};
use crate::replay::origin::SimulatedOrigins;
use crate::replay::own_influence::ThreadUsage;
use crate::replay::plan::Planned;
use crate::replay::results::{ReplayResults, ReplayTally, SentRequest};
use crate::replay::source::{ReadSummary, RequestSource};
use crate::replay::tls::{ClientSessionCache, ReplayTls};
use crate::replay::xacts::Xacts;

/// Requests are put on the timer so long before they are due, in nanoseconds.
const AHEAD_NS: u64 = SECOND_NS;
/// Requests that are on the timer at most: those of a log that is replayed very fast are all due soon.
const MOST_SCHEDULED: usize = 16_384;
/// Requests that are planned and not on the timer yet.
const MOST_PLANNED: usize = 4_096;
/// Time from the first planned request to the start, in nanoseconds.
const LEAD_NS: u64 = 50_000_000;
/// Longest time for requests under way after an interruption.
const DRAIN: Duration = Duration::from_secs(5);

/// Longest wait for the summary of what was read after an interruption.
const LAST_READ: Duration = Duration::from_secs(1);

/// Settings of a replay.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    pub to: SocketAddr,
    /// With whole URLs, as to a forward proxy.
    pub forward: bool,
    /// None: no TLS.
    pub tls: Option<ReplayTls>,
    /// Further header fields, lines with their ends.
    pub fields: Vec<u8>,
    /// Longest time for a response.
    pub timeout: Duration,
    /// Time for which an idle connection is kept.
    pub keep_idle: Duration,
    /// Requests under way at most; one that is due beyond that is not sent, and counted.
    pub max_in_flight: usize,
    /// Table of all requests; none: it is not written.
    pub xacts: Option<PathBuf>,
    /// Simulated origins, if the responses come from them: hits are told apart, and responses are checked against what
    /// they must be.
    pub simulated: Option<Arc<SimulatedOrigins>>,
    /// Time for which threads of the target have waited for a processor, in microseconds, added up. The caller keeps it
    /// up to date; none: they are not watched.
    pub target_waited_us: Option<Rc<Cell<u64>>>,
}

/// Event of the replay's timer.
enum ReplayTimerEvent {
    Send(Planned),
    /// There is room for more.
    Feed,
}

/// State that all tasks of a replay share; they run on one thread.
struct ReplayState {
    options: ReplayOptions,
    timer: Timer<ReplayTimerEvent>,
    /// Idle connections, each client's its own.
    pool: Pool<Box<str>>,
    /// TLS sessions that can be resumed, each client's its own.
    sessions: ClientSessionCache,
    tally: RefCell<ReplayTally>,
    xacts: RefCell<Option<Xacts>>,
    /// Requests, or rows of them, that are under way.
    open: Cell<usize>,
    /// On the timer, to be sent.
    scheduled: Cell<usize>,
    start_ns: Cell<u64>,
    made_ns: u64,
    /// Usage of threads by then.
    threads: ThreadUsage,
    /// Requests begun so far.
    begun: Cell<u64>,
    /// Someone should look whether there is room, or whether all is done.
    changed: Notify,
    /// Nothing new is to be sent.
    stopped: Cell<bool>,
}

/// Carries out a plan to its end, or until `stop` is ready, and calls `watch` with the results so far once a second.
/// Needs a local tokio runtime with everything enabled.
pub async fn drive(
    options: ReplayOptions,
    source: RequestSource,
    mut watch: impl FnMut(&ReplayResults),
    stop: impl Future<Output = ()>,
) -> Result<ReplayResults, ReplayError> {
    let xacts = options.xacts.as_deref().map(Xacts::create).transpose()?;
    let resources = Resources::new();
    resources.run_deadlines();
    let threads = ThreadUsage::now(&options);
    let shared = Rc::new(ReplayState {
        options,
        timer: Timer::new(0)?,
        pool: Pool::new(&resources),
        sessions: ClientSessionCache::default(),
        tally: RefCell::default(),
        xacts: RefCell::new(xacts),
        open: Cell::new(0),
        scheduled: Cell::new(0),
        start_ns: Cell::new(0),
        made_ns: monotonic_ns(),
        threads,
        begun: Cell::new(0),
        changed: Notify::new(),
        stopped: Cell::new(false),
    });
    let (to, planned) = channel(MOST_PLANNED);
    let (summary_sender, summary) = oneshot::channel();
    std::thread::Builder::new().name("plan".into()).spawn(move || {
        // Nobody waits any more for what was read once it took too long to end.
        let _ = summary_sender.send(source.feed(&to));
    })?;
    let interrupted = send_all(&shared, planned, &mut watch, stop).await?;
    let fault =
        || Err(ReplayError::System(std::io::Error::other("the thread that reads ended by a fault of Assay")));
    // The channel is closed: the thread sees it with the next request that it plans. There may be none: a log may go on for ever without
    // a usable line, or wait for one. The thread is left to itself then.
    let read = match interrupted {
        true => {
            tokio::time::timeout(LAST_READ, summary).await.unwrap_or_else(|_| Ok(Ok(ReadSummary::default())))
        }
        false => summary.await,
    };
    let summary = read.unwrap_or_else(|_| fault())?;
    let lost = match shared.xacts.borrow_mut().take() {
        Some(xacts) => xacts.finish()?,
        None => 0,
    };
    shared.report_progress(&mut watch);
    let mut results = shared.results(&summary);
    results.interrupted = interrupted;
    results.rows_lost = lost;
    Ok(results)
}

/// Sends until every request has its response; true: it was interrupted.
async fn send_all(
    shared: &Rc<ReplayState>,
    planned: Receiver<Planned>,
    watch: &mut impl FnMut(&ReplayResults),
    stop: impl Future<Output = ()>,
) -> Result<bool, ReplayError> {
    let dispatching = shared.timer.dispatch(|due_ns, due| match due {
        ReplayTimerEvent::Feed => shared.changed.notify_one(),
        ReplayTimerEvent::Send(planned) => {
            shared.scheduled.set(shared.scheduled.get() - 1);
            shared.launch(due_ns, planned);
        }
    });
    let feeding = shared.feed(planned);
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut interrupted = false;
    tokio::pin!(dispatching, feeding, stop);
    loop {
        tokio::select! {
            ended = &mut dispatching => ended?,
            () = &mut feeding => break,
            _ = tick.tick() => shared.report_progress(watch),
            () = &mut stop => {
                interrupted = true;
                break;
            }
        }
    }
    shared.stopped.set(interrupted);
    let drain_timer = tokio::time::sleep(DRAIN);
    tokio::pin!(drain_timer);
    while shared.open.get() > 0 || (!interrupted && shared.scheduled.get() > 0) {
        tokio::select! {
            ended = &mut dispatching => ended?,
            () = shared.changed.notified() => {}
            _ = tick.tick() => shared.report_progress(watch),
            () = &mut drain_timer, if interrupted => break,
            () = &mut stop, if !interrupted => {
                interrupted = true;
                shared.stopped.set(true);
                drain_timer.as_mut().reset(tokio::time::Instant::now() + DRAIN);
            }
        }
    }
    let left = shared.scheduled.get() as u64;
    shared.tally.borrow_mut().unsent += left;
    Ok(interrupted)
}

impl ReplayState {
    /// Puts requests on the timer as they come, a little before they are due.
    async fn feed(&self, mut planned: Receiver<Planned>) {
        let mut waiting = false;
        while let Some(next) = planned.recv().await {
            if self.start_ns.get() == 0 {
                self.start_ns.set(monotonic_ns() + LEAD_NS);
            }
            let due_ns = self.start_ns.get().saturating_add(next.due_ns);
            loop {
                let ahead_ns = due_ns.saturating_sub(monotonic_ns());
                if ahead_ns <= AHEAD_NS && self.scheduled.get() < MOST_SCHEDULED {
                    break;
                }
                if ahead_ns > AHEAD_NS && !waiting {
                    self.timer.schedule(due_ns - AHEAD_NS, ReplayTimerEvent::Feed);
                    waiting = true;
                }
                self.changed.notified().await;
                waiting &= due_ns.saturating_sub(AHEAD_NS) > monotonic_ns();
            }
            waiting = false;
            self.scheduled.set(self.scheduled.get() + 1);
            self.timer.schedule(due_ns, ReplayTimerEvent::Send(next));
        }
    }

    /// Sends what is due, in a task of its own.
    fn launch(self: &Rc<Self>, due_ns: u64, planned: Planned) {
        if self.scheduled.get() + 1 >= MOST_SCHEDULED {
            self.changed.notify_one();
        }
        let count = planned.requests.len() as u64;
        if self.stopped.get() {
            self.tally.borrow_mut().unsent += count;
            return;
        }
        // An open loop does not wait: what is due beyond the limit is counted and not sent.
        if self.open.get() >= self.options.max_in_flight {
            self.tally.borrow_mut().skipped += count;
            return;
        }
        self.open.set(self.open.get() + 1);
        let shared = Rc::clone(self);
        tokio::task::spawn_local(async move {
            shared.send(due_ns, planned).await;
            shared.open.set(shared.open.get() - 1);
            shared.changed.notify_one();
        });
    }

    /// Sends the requests of one plan, one after the other.
    async fn send(&self, due_ns: u64, planned: Planned) {
        let Planned { client, requests, keep, .. } = planned;
        let sessions = self.options.tls.as_ref().map(|tls| self.sessions.for_client(tls, &client, keep));
        let mut current: Option<(Cow<'_, str>, Box<Upstream>)> = None;
        let mut due_ns = due_ns;
        for request in &requests {
            let route = self.options.route(request);
            let key = route.key(&client, request);
            let reusable =
                current.take().filter(|(current_key, _)| *current_key == key).map(|(_, upstream)| upstream);
            let connection = reusable.or_else(|| if keep { self.pool.take(&*key) } else { None });
            let number = self.begun.replace(self.begun.get() + 1);
            if let Some(simulated) = &self.options.simulated {
                self.tally.borrow_mut().begin(simulated, request);
            }
            let (options, pool) = (&self.options, &self.pool);
            let context = ExchangeContext { route: &route, sessions: sessions.as_ref(), options, pool };
            let (result, reusable) = exchange(request, number, connection, &context).await;
            current = reusable.map(|upstream| (key, upstream));
            let next_ns = result.last_ns.unwrap_or_else(monotonic_ns);
            self.note(SentRequest { client: &client, request, due_ns, result: &result });
            due_ns = next_ns;
            if self.stopped.get() {
                break;
            }
        }
        if let Some((key, connection)) = current.filter(|_| keep) {
            self.pool.keep(key.into(), connection);
        }
    }

    fn note(&self, sent: SentRequest<'_>) {
        self.tally.borrow_mut().count(&sent);
        if let Some(xacts) = self.xacts.borrow_mut().as_mut() {
            xacts.push(&sent, self.start_ns.get());
        }
    }

    fn report_progress(&self, watch: &mut impl FnMut(&ReplayResults)) {
        self.pool.close_older_than(self.options.keep_idle);
        watch(&self.results(&ReadSummary::default()));
    }

    fn results(&self, summary: &ReadSummary) -> ReplayResults {
        let started = self.start_ns.get();
        let passed_ns = if started == 0 { 0 } else { monotonic_ns().saturating_sub(started) };
        let threads = ThreadUsage {
            passed_ns: monotonic_ns().saturating_sub(self.made_ns),
            ..ThreadUsage::now(&self.options).since(&self.threads)
        };
        let mut results = self.tally.borrow().results(passed_ns, summary, &threads);
        results.to = self.options.to.to_string();
        results.forward = self.options.forward;
        results.under_way = self.open.get() as u64;
        results.cache = self.options.simulated.as_deref().map(|from| self.tally.borrow().cache(from));
        results
    }
}

impl ThreadUsage {
    /// Usage up to now.
    fn now(options: &ReplayOptions) -> Self {
        Self {
            passed_ns: 0,
            sender: ThreadTimes::now(),
            origins: options.simulated.as_deref().and_then(SimulatedOrigins::thread_times),
            target_waited_us: options.target_waited_us.as_deref().map(Cell::get),
        }
    }

    fn since(&self, before: &Self) -> Self {
        let of = |now: Option<ThreadTimes>, before: Option<ThreadTimes>| {
            Some(now?.since(before.unwrap_or_default()))
        };
        Self {
            sender: of(self.sender, before.sender),
            origins: of(self.origins, before.origins),
            target_waited_us: self.target_waited_us,
            ..*self
        }
    }
}

impl ExchangeResult {
    /// Time from sending to the last byte, in microseconds; none: there was no whole response.
    pub(crate) fn response_us(&self) -> Option<u64> {
        Some(self.last_ns?.saturating_sub(self.sent_ns) / 1000)
    }
}
