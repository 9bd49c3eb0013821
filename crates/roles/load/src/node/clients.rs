//! Clients that send the next request as soon as they have a response: a closed loop without a pause, as WebStone's.
//!
//! Request *n* of client *c* is the simulation's ([`RequestStream`]). What a cluster file says of switch and network (the time of
//! each request at the switch, the way there and back) can be waited for at the client: then a live switch, which takes
//! next to no time, stands in the same surroundings as the simulated one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_base::random::Rng;
use assay_cluster::dispatch::{Moment, PolicyConfig, Request};
use assay_cluster::simulate::{
    ClientId, OfferedLoad, PAUSE_AFTER_FAILURE_S, RequestStream, Service, ServiceTimeLaw, SimulatedRequest,
    Switch, SwitchSpec, path_of,
};
use assay_measurement::own_error::MOST_WAITING;
use assay_net::body::{BodyError, BodyReader};
use assay_net::connection::Resources;
use assay_net::pool::Pool;
use assay_net::thread_times::ThreadTimes;
use assay_net::upstream::{ReceivedHead, UpstreamError, UpstreamTimeouts};
use assay_record::cluster::Tally;
use assay_workload::Purpose;
use thiserror::Error;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::spawn_local;

use crate::node::NodeError;
use crate::node::model_clock::{ModelClock, ModelTimer};
use crate::node::router::{PolicyRouter, RequestRouter};
use crate::node::serve::{STATE_PATH, WORK_FIELD};

/// Largest response to a request for a node's state that is read.
const STATE_BYTES: u64 = 4096;
/// Upper bound on the kinds of failure that are counted separately.
const MOST_FAILURE_KINDS: usize = 16;

/// Target of the clients' requests.
pub enum ClientsTarget {
    /// A switch, or a single server.
    One(SocketAddr),
    /// Nodes with their weights: clients follow the policy themselves.
    Nodes {
        servers: Vec<(SocketAddr, f64)>,
        /// Policy that chooses the node of each request.
        policy: PolicyConfig,
        /// Others that are tried after the first.
        retries: u32,
        /// All nodes report their state at this interval; none: only when the policy probes them.
        reports_every_s: Option<f64>,
    },
}

/// Clients of one machine of several: every `of`-th, from number `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientShare {
    /// The first of them, from 0.
    pub first: u32,
    /// Number of machines.
    pub of: u32,
}

impl ClientShare {
    pub const ALL: Self = Self { first: 0, of: 1 };
}

pub struct ClientsSpec {
    /// The services that can be requested.
    pub services: Vec<Service>,
    /// Frequency of each service.
    pub weights: Vec<f64>,
    /// Seed of the choice of documents.
    pub seed: u64,
    /// The number of clients in a closed loop, or the rate of requests.
    pub load: OfferedLoad,
    /// Clients of this machine, in a closed loop.
    pub share: ClientShare,
    pub target: ClientsTarget,
    /// `Host` of requests; none: the address.
    pub host: Option<String>,
    /// Connections are used again.
    pub keep_alive: bool,
    /// Time before anything is counted.
    pub warm_up_s: f64,
    /// Time in which all is.
    pub measure_s: f64,
    /// The switch and network that each request waits for; none: there are real ones.
    pub surroundings: Option<SwitchSpec>,
    /// Responses must have the size of their service, where that is not 0.
    pub check_sizes: bool,
    /// Longest time for a request.
    pub timeout: Duration,
    /// The clock; counting begins `warm_up_s` after its beginning.
    pub clock: ModelClock,
}

/// Results of the clients.
#[derive(Debug, Default)]
pub struct ClientsOutcome {
    pub tally: Tally,
    /// Connections that were opened while all was counted.
    pub connections: u64,
    pub failures: BTreeMap<String, u64>,
    /// Time for which the thread of all clients was ready to run and waited for a processor, as a share of the time in which all was
    /// counted; none: the system does not tell.
    pub waiting_share: Option<f64>,
}

impl ClientsOutcome {
    /// Clients waited so long that response times are unknown.
    pub fn leaves_unknown(&self) -> bool {
        self.waiting_share.is_some_and(|share| share > MOST_WAITING)
    }
}

/// One request and its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceivedResponse {
    status: u16,
    bytes: u64,
}

impl ReceivedResponse {
    pub(crate) fn is_fine(&self) -> bool {
        self.status == 200
    }
}

/// Failure of one request.
#[derive(Debug, Error)]
enum ClientError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Body(#[from] BodyError),
}

/// Sends requests and parses responses.
#[derive(Clone)]
pub(crate) struct HttpClient(Rc<HttpClientInner>);

struct HttpClientInner {
    pool: Pool,
    keep_alive: bool,
    timeout: UpstreamTimeouts,
    failures: RefCell<BTreeMap<String, u64>>,
}

/// Runs clients for the whole of warm-up and measurement, on a runtime of the calling thread.
pub fn run(spec: ClientsSpec) -> Result<ClientsOutcome, NodeError> {
    runtime()?.block_on(run_clients(spec))
}

/// Runs clients like [`run`]; `None` if `stop` completes first.
pub fn run_unless(
    spec: ClientsSpec,
    stop: impl Future<Output = ()>,
) -> Result<Option<ClientsOutcome>, NodeError> {
    let runtime = runtime()?;
    runtime.block_on(async {
        tokio::select! {
            outcome = run_clients(spec) => outcome.map(Some),
            () = stop => Ok(None),
        }
    })
}

fn runtime() -> Result<LocalRuntime, NodeError> {
    Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .map_err(NodeError::start("the clients' runtime"))
}

/// State that all clients share.
struct ClientPool {
    http_client: HttpClient,
    router: RequestRouter,
    stream: RequestStream,
    services: Vec<Service>,
    host: String,
    surroundings: Option<(SwitchSpec, RefCell<Switch>)>,
    check_sizes: bool,
    clock: ModelClock,
    timer: ModelTimer,
    from: Moment,
    until: Moment,
    tally: RefCell<Tally>,
}

async fn run_clients(spec: ClientsSpec) -> Result<ClientsOutcome, NodeError> {
    let timeout = UpstreamTimeouts { connect: spec.timeout, response: spec.timeout };
    let resources = Resources::new();
    resources.run_deadlines();
    let http_client = HttpClient::new(&resources, timeout, spec.keep_alive);
    let mut reports = None;
    let (router, named) = match spec.target {
        ClientsTarget::One(address) => (RequestRouter::Fixed(address), address.to_string()),
        ClientsTarget::Nodes { servers, policy, retries, reports_every_s } => {
            reports = reports_every_s;
            let own = PolicyRouter::new(policy.build(spec.seed), &servers, spec.clock, retries);
            (RequestRouter::Policy(Rc::new(own)), "cluster".to_owned())
        }
    };
    let from = Moment::from_secs(spec.warm_up_s);
    let surroundings = spec
        .surroundings
        .map(|switch| (switch, RefCell::new(Switch::new(switch.processors, switch.per_request_s))));
    let client_pool = Rc::new(ClientPool {
        http_client,
        router,
        stream: RequestStream::new(&spec.services, &spec.weights, spec.seed),
        services: spec.services,
        host: spec.host.unwrap_or(named),
        surroundings,
        check_sizes: spec.check_sizes,
        clock: spec.clock,
        timer: ModelTimer::new(spec.clock).map_err(NodeError::start("a timer"))?,
        from,
        until: from.plus_secs(spec.measure_s),
        tally: RefCell::default(),
    });
    match spec.load {
        OfferedLoad::Clients(clients) => {
            for client in (spec.share.first..clients).step_by(spec.share.of.max(1) as usize) {
                spawn_local(Rc::clone(&client_pool).client(ClientId(client)));
            }
        }
        OfferedLoad::Rate(per_s) => drop(spawn_local(Rc::clone(&client_pool).offer(per_s, spec.seed))),
    }
    if let (Some(every_s), RequestRouter::Policy(_)) = (reports, &client_pool.router) {
        spawn_local(Rc::clone(&client_pool).report(every_s));
    }
    let ending = async {
        client_pool.timer.until(client_pool.from).await;
        // Connections and failures of the warm-up do not count.
        client_pool.http_client.0.pool.take_opened();
        client_pool.http_client.0.failures.borrow_mut().clear();
        let (began_ns, before) = (monotonic_ns(), ThreadTimes::now());
        client_pool.timer.until(client_pool.until).await;
        let passed_ns = monotonic_ns().saturating_sub(began_ns).max(1);
        let waited = |now: ThreadTimes| Some(now.since(before?).waited_ns as f64 / passed_ns as f64);
        ThreadTimes::now().and_then(waited)
    };
    let waiting_share = tokio::select! {
        // It ends only when the timer does not work.
        ended = client_pool.timer.run() => {
            ended.map_err(NodeError::start("a timer"))?;
            None
        }
        waiting_share = ending => waiting_share,
    };
    let inner = &client_pool.http_client.0;
    Ok(ClientsOutcome {
        tally: client_pool.tally.take(),
        connections: inner.pool.take_opened(),
        failures: inner.failures.take(),
        waiting_share,
    })
}

impl ClientPool {
    /// Runs a client until counting ends.
    async fn client(self: Rc<Self>, client: ClientId) {
        for number in 0.. {
            let requested = self.stream.request(Some(client), number);
            if !self.request(&requested, self.clock.now()).await {
                self.timer.until(self.clock.now().plus_secs(PAUSE_AFTER_FAILURE_S)).await;
            }
            if self.clock.now() >= self.until {
                return;
            }
        }
    }

    /// Requests at random moments, whatever becomes of them: those of the simulation.
    async fn offer(self: Rc<Self>, per_s: f64, seed: u64) {
        let mut arrivals = Rng::of(Purpose::Arrival, &[seed]);
        let mut due = Moment::START;
        for number in 0.. {
            due = due.plus_secs(arrivals.exponential() / per_s);
            self.timer.until(due).await;
            let (client_pool, requested) = (Rc::clone(&self), self.stream.request(None, number));
            spawn_local(async move { client_pool.request(&requested, due).await });
        }
    }

    /// Sends a request that is due, and waits for its end. False: it failed.
    async fn request(&self, requested: &SimulatedRequest, due: Moment) -> bool {
        if let Some((switch, processors)) = &self.surroundings {
            let read = processors.borrow_mut().read(due.plus_secs(switch.network_s / 2.0));
            self.timer.until(read).await;
        }
        let exchange = self.exchange(requested).await;
        let response = exchange.filter(|exchange| self.check_response(requested, exchange));
        if let (Some((switch, processors)), Some(response)) = (&self.surroundings, &response) {
            let now = self.clock.now();
            let work_s = response.bytes as f64 * switch.per_byte_s;
            let passed_on = if work_s > 0.0 { processors.borrow_mut().work(now, work_s) } else { now };
            self.timer.until(passed_on.plus_secs(switch.network_s / 2.0)).await;
        }
        let now = self.clock.now();
        if (self.from..self.until).contains(&now) {
            let mut tally = self.tally.borrow_mut();
            match response {
                Some(response) => {
                    tally.responded(requested.service as usize, now.nanos_since(due) / 1_000, response.bytes)
                }
                None => tally.failed(),
            }
        }
        response.is_some()
    }

    async fn exchange(&self, requested: &SimulatedRequest) -> Option<ReceivedResponse> {
        let head = self.head(requested);
        match &self.router {
            RequestRouter::Fixed(address) => self.http_client.exchange(*address, head.as_bytes()).await,
            RequestRouter::Policy(own) => {
                let request = Request { class: requested.class, document: requested.document };
                own.exchange(&self.http_client, &request, head.as_bytes()).await
            }
        }
    }

    fn head(&self, requested: &SimulatedRequest) -> String {
        let service = &self.services[requested.service as usize];
        let (path, host) = (path_of(service, requested.number), &self.host);
        let connection = if self.http_client.0.keep_alive { "" } else { "Connection: close\r\n" };
        let cost = match service.law {
            ServiceTimeLaw::Constant => String::new(),
            ServiceTimeLaw::Exponential => {
                let micros = |seconds: f64| (seconds * 1e6).round() as u64;
                format!(
                    "{WORK_FIELD}: {}-{}\r\n",
                    micros(requested.work.processor_s),
                    micros(requested.work.disk_s)
                )
            }
        };
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: assay\r\n{connection}{cost}\r\n")
    }

    /// Whether the response is the requested document.
    fn check_response(&self, requested: &SimulatedRequest, response: &ReceivedResponse) -> bool {
        if !response.is_fine() {
            self.http_client.count_failure(format!("status {}", response.status));
            return false;
        }
        let wrong = self.check_sizes && requested.bytes > 0 && response.bytes != requested.bytes;
        if wrong {
            let name = &self.services[requested.service as usize].path;
            self.http_client
                .count_failure(format!("{name}: {} bytes instead of {}", response.bytes, requested.bytes));
        }
        !wrong
    }

    /// Probes all nodes at an interval, for ever.
    async fn report(self: Rc<Self>, every_s: f64) {
        let RequestRouter::Policy(own) = &self.router else { return };
        let mut next = self.clock.now();
        loop {
            next = next.plus_secs(every_s);
            self.timer.until(next).await;
            own.probe_all(&self.http_client);
        }
    }
}

impl HttpClient {
    pub(crate) fn new(resources: &Rc<Resources>, timeout: UpstreamTimeouts, keep_alive: bool) -> Self {
        let (pool, failures) = (Pool::new(resources), RefCell::default());
        Self(Rc::new(HttpClientInner { pool, keep_alive, timeout, failures }))
    }

    /// Requests the state of a node, as text; none if there is no response.
    pub(crate) async fn state(&self, node: SocketAddr, timeout: UpstreamTimeouts) -> Option<Vec<u8>> {
        let head = format!("GET {STATE_PATH} HTTP/1.1\r\nHost: {node}\r\n\r\n");
        self.fetch(node, head.as_bytes(), timeout, STATE_BYTES).await
    }

    /// Counts a failure under its kind.
    fn count_failure(&self, kind: String) {
        let mut failures = self.0.failures.borrow_mut();
        let full = failures.len() >= MOST_FAILURE_KINDS && !failures.contains_key(&kind);
        *failures.entry(if full { "others".into() } else { kind }).or_default() += 1;
    }

    /// Sends a request and reads the whole response; none if there was none.
    pub(crate) async fn exchange(&self, address: SocketAddr, head: &[u8]) -> Option<ReceivedResponse> {
        let mut bytes = 0;
        match self.send(address, head, self.0.timeout, |chunk| bytes += chunk.len() as u64).await {
            Ok(status) => Some(ReceivedResponse { status, bytes }),
            Err(error) => {
                self.count_failure(error.to_string());
                None
            }
        }
    }

    /// Fetches a small body; none if it could not be had or is too large.
    async fn fetch(
        &self,
        address: SocketAddr,
        head: &[u8],
        timeout: UpstreamTimeouts,
        most: u64,
    ) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        let take = |chunk: &[u8]| {
            if (all.len() + chunk.len()) as u64 <= most {
                all.extend_from_slice(chunk);
            }
        };
        (self.send(address, head, timeout, take).await.ok()? == 200).then_some(all)
    }

    /// Sends a GET and reads the response; the connection is kept, if it may be. Gives the status, or what went wrong.
    async fn send(
        &self,
        address: SocketAddr,
        request: &[u8],
        timeout: UpstreamTimeouts,
        mut take: impl FnMut(&[u8]),
    ) -> Result<u16, ClientError> {
        let pool = &self.0.pool;
        let facts = |received: ReceivedHead<'_>| {
            let head = received.head;
            (head.status, head.body("GET"), head.persists("GET"))
        };
        let requested = pool.exchange(address, request, timeout, |_| (), facts).await;
        let (mut upstream, (status, framing, persists)) = requested?;
        let mut body = BodyReader::new(framing);
        while let Some(chunk) = body.next(&mut upstream.connection, timeout.response).await? {
            take(&chunk);
        }
        if persists && self.0.keep_alive {
            pool.put_back(upstream);
        }
        Ok(status)
    }
}
