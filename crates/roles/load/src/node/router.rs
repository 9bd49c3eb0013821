//! Destination of requests: one address, a switch's, or the node that a policy names, as if clients were the switch.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_cluster::dispatch::{Completion, Policy, Request, RequestOutcome, ServerId, ServerState};
use assay_net::upstream::UpstreamTimeouts;
use assay_record::cluster::NodeState;
use tokio::task::spawn_local;

use crate::node::clients::{HttpClient, ReceivedResponse};
use crate::node::model_clock::ModelClock;

/// A probe may take so long.
const PROBE: UpstreamTimeouts =
    UpstreamTimeouts { connect: Duration::from_secs(1), response: Duration::from_secs(1) };

pub(crate) enum RequestRouter {
    Fixed(SocketAddr),
    /// Node that a policy names.
    Policy(Rc<PolicyRouter>),
}

/// A policy, and where its servers are.
pub(crate) struct PolicyRouter {
    policy: RefCell<Box<dyn Policy>>,
    servers: Vec<SocketAddr>,
    clock: ModelClock,
    retries: u32,
}

impl PolicyRouter {
    pub(crate) fn new(
        mut policy: Box<dyn Policy>,
        servers: &[(SocketAddr, f64)],
        clock: ModelClock,
        retries: u32,
    ) -> Self {
        for (server, (_, weight)) in (0..).map(ServerId).zip(servers) {
            policy.server_up(server, *weight, clock.now());
        }
        let servers = servers.iter().map(|(address, _)| *address).collect();
        Self { policy: RefCell::new(policy), servers, clock, retries }
    }

    /// Sends a request to the node that the policy names, and to others if that fails.
    pub(crate) async fn exchange(
        self: &Rc<Self>,
        http_client: &HttpClient,
        request: &Request,
        head: &[u8],
    ) -> Option<ReceivedResponse> {
        self.probe(http_client);
        let mut tried = Vec::new();
        loop {
            let started = self.clock.now();
            let named = match tried.is_empty() {
                true => self.policy.borrow_mut().choose(request, started),
                false => self.policy.borrow_mut().choose_again(request, &tried, started),
            }?;
            // No borrow is held across an await: other requests use the policy meanwhile.
            self.policy.borrow_mut().started(named, request, started);
            let exchange = http_client.exchange(self.servers[named.index()], head).await;
            let (now, responded) =
                (self.clock.now(), exchange.as_ref().is_some_and(ReceivedResponse::is_fine));
            let end = if responded { RequestOutcome::Responded } else { RequestOutcome::Failed };
            let finish = Completion { took_nanos: now.nanos_since(started), outcome: end };
            self.policy.borrow_mut().first_byte(named, request, finish.took_nanos, now);
            self.policy.borrow_mut().finished(named, request, &finish, now);
            if responded || tried.len() >= self.retries as usize {
                return exchange;
            }
            tried.push(named);
        }
    }

    /// Probes the nodes that the policy wants to know of.
    fn probe(self: &Rc<Self>, http_client: &HttpClient) {
        let mut wanted = Vec::new();
        self.policy.borrow_mut().probes(self.clock.now(), &mut wanted);
        for server in wanted {
            self.request_state(http_client, server);
        }
    }

    pub(crate) fn probe_all(self: &Rc<Self>, http_client: &HttpClient) {
        let servers = (0..self.servers.len() as u32).map(ServerId);
        servers.for_each(|server| self.request_state(http_client, server));
    }

    fn request_state(self: &Rc<Self>, http_client: &HttpClient, server: ServerId) {
        let (own, http_client, address) =
            (Rc::clone(self), http_client.clone(), self.servers[server.index()]);
        spawn_local(async move {
            let Some(text) = http_client.state(address, PROBE).await else { return };
            let Ok(state) = serde_json::from_slice::<NodeState>(&text) else { return };
            let state = ServerState {
                processor: state.processor,
                disk: state.disk,
                network: state.network,
                in_flight: state.in_flight,
                latency_nanos: state.latency_us.map(|us| us.saturating_mul(1_000)),
            };
            own.policy.borrow_mut().reported(server, &state, own.clock.now());
        });
    }
}
