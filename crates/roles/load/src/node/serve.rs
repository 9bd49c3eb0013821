//! Responses of a node: files and programs of its cluster file, files of any size by name, and its state.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_cluster::dispatch::ServerId;
use assay_cluster::dispatch::node::Work;
use assay_cluster::simulate::{Service, document_at, document_of};
use assay_http::date::{DATE_BYTES, DateCache};
use assay_http::field::write_decimal;
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use assay_http::status::reason;
use assay_net::HEALTH_PATH;
use assay_net::connection::Resources;
use assay_net::exchange::{self, AfterResponse, ClientLimits, Exchange, Handler, Refusal, Request};
use assay_net::listen::accept;
use assay_protocol::clock::RunClock;
use assay_record::cluster::{NodeState, NodeUse};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::node::real::RealNode;
use crate::node::virtual_nodes::VirtualNodes;
use crate::node::webstone::size_by_name;

/// Limit of each step of a client.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The head of a longer response does not wait for its last byte.
const SHORT_BYTES: u64 = 16 * 1024;
/// Field with the cost of a request, where that is different for each: microseconds of processor and of disk.
pub(crate) const WORK_FIELD: &str = "X-Assay-Work";
/// The path that probes request.
pub(crate) const STATE_PATH: &str = "/assay/state";
/// Text that bodies repeat.
const TEXT: &[u8] = b"Assay serves what is requested, as often as it is requested.\r\n";
const POOL_BYTES: usize = 64 * 1024;

/// Executor of a node's work.
#[derive(Debug)]
pub(crate) enum Machine {
    /// The model, in real time.
    Virtual(Rc<VirtualNodes>),
    Real(Rc<RealNode>),
}

#[derive(Debug)]
pub(crate) struct NodeServer {
    pub(crate) id: ServerId,
    pub(crate) services: Rc<Vec<Service>>,
    pub(crate) machine: Machine,
    /// False while it has failed: it takes no connection and drops those that it has.
    pub(crate) up: watch::Receiver<bool>,
}

/// Resources that all connections of a thread share.
pub(crate) struct ServerResources {
    pub(crate) resources: Rc<Resources>,
    pool: Box<[u8]>,
    dates: RefCell<DateCache>,
    clock: RunClock,
}

impl ServerResources {
    pub(crate) fn new() -> Self {
        let pool = TEXT.iter().copied().cycle().take(POOL_BYTES).collect();
        let dates = RefCell::new(DateCache::default());
        Self { resources: Resources::new(), pool, dates, clock: RunClock::provisional() }
    }

    fn date(&self) -> [u8; DATE_BYTES] {
        *self.dates.borrow_mut().at(self.clock.unix_s(monotonic_ns()))
    }
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq)]
enum NodeResponse {
    Work { work: Work, bytes: u64 },
    State,
    Health,
    Nothing,
}

struct NodeConnection {
    exchange: Exchange,
    server: Rc<NodeServer>,
    shared: Rc<ServerResources>,
}

/// Accepts connections and serves them, for ever.
pub(crate) async fn serve(listener: TcpListener, server: Rc<NodeServer>, shared: Rc<ServerResources>) {
    loop {
        let (stream, _) = accept(&listener).await;
        if *server.up.borrow() {
            let limits = ClientLimits::new(TIMEOUT, TIMEOUT);
            let exchange = Exchange::new(stream, &shared.resources, limits);
            let client = NodeConnection { exchange, server: Rc::clone(&server), shared: Rc::clone(&shared) };
            spawn_local(client.while_up());
        }
    }
}

impl NodeConnection {
    /// Serves the connection, until it ends or the node fails.
    async fn while_up(mut self) {
        let mut up = self.server.up.clone();
        let failed = async {
            // Whoever could fail it is gone: it will not.
            if up.wait_for(|up| !up).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // A connection that breaks is its client's affair.
            _ = exchange::serve(&mut self) => {}
            () = failed => {}
        }
    }
}

impl Handler for NodeConnection {
    type Transport = TcpStream;

    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        let (response, is_head) = (self.server.classify(head), head.method == "HEAD");
        // The body of a request is not used.
        while let Ok(Some(_)) = self.exchange.next_part().await {}
        if !self.exchange.is_body_read() {
            self.exchange.close_after_response();
        }
        self.send_response(&response, is_head).await.map(|()| AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, _: bool) -> io::Result<()> {
        self.exchange.send_text(refusal.status(), b"", "", false).await
    }
}

/// The path of a request target, whether it names a host or not.
fn path_of(target: &str) -> &str {
    let Some((_, rest)) = target.split_once("://") else { return target };
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// `1200-300`: microseconds of processor and of disk.
fn work_of(field: &[u8]) -> Option<(f64, f64)> {
    let (processor, disk) = std::str::from_utf8(field).ok()?.split_once('-')?;
    let seconds = |text: &str| Some(text.parse::<u32>().ok()? as f64 / 1e6);
    Some((seconds(processor)?, seconds(disk)?))
}

/// Field with the state in ORCA's form, so that switches that know ORCA learn it too.
fn load_metrics(state: &NodeState) -> String {
    let NodeState { processor, disk, network, in_flight, latency_us, .. } = state;
    let latency = latency_us.map_or(String::new(), |us| format!(", named_metrics.latency_ns={}", us * 1_000));
    format!(
        "endpoint-load-metrics: TEXT cpu_utilization={processor:.6}, named_metrics.disk={disk:.6}, \
         named_metrics.network={network:.6}, named_metrics.in_flight={in_flight}{latency}\r\n"
    )
}

impl NodeServer {
    fn classify(&self, head: &RequestHead<'_>) -> NodeResponse {
        match path_of(head.target) {
            STATE_PATH => NodeResponse::State,
            HEALTH_PATH => NodeResponse::Health,
            path => self.work(path, head.header(WORK_FIELD)),
        }
    }

    fn work(&self, path: &str, cost: Option<&[u8]>) -> NodeResponse {
        let Some((place, number)) = document_at(&self.services, path) else {
            // A file that no service describes has its size in its name, and costs no more than its way.
            return match size_by_name(path) {
                Some(bytes) => NodeResponse::Work { work: Work::default(), bytes },
                None => NodeResponse::Nothing,
            };
        };
        let service = &self.services[place];
        let (processor_s, disk_s) = cost.and_then(work_of).unwrap_or((service.processor_s, service.disk_s));
        let document = (service.documents > 0).then(|| (document_of(place, number), service.bytes));
        NodeResponse::Work { work: Work { processor_s, disk_s, document }, bytes: service.bytes }
    }

    /// Utilisation since the last sample; a virtual node is sampled together with all others.
    pub(crate) fn sample(&self) -> NodeUse {
        match &self.machine {
            Machine::Virtual(_) => NodeUse::default(),
            Machine::Real(node) => node.sample(),
        }
    }

    fn state(&self) -> NodeState {
        let state = match &self.machine {
            Machine::Virtual(virtual_nodes) => virtual_nodes.report(self.id),
            Machine::Real(node) => node.report(),
        };
        let used = match &self.machine {
            Machine::Virtual(virtual_nodes) => virtual_nodes.used(self.id),
            Machine::Real(node) => node.used(),
        };
        NodeState {
            processor: state.processor,
            disk: state.disk,
            network: state.network,
            in_flight: state.in_flight,
            latency_us: state.latency_nanos.map(|nanos| nanos / 1_000),
            used: Some(used),
        }
    }
}

impl NodeConnection {
    async fn send_response(&mut self, response: &NodeResponse, is_head: bool) -> io::Result<()> {
        let (status, lines, kind, body) = match *response {
            NodeResponse::Work { work, bytes } => match self.do_work(work, bytes, is_head).await? {
                true => return Ok(()),
                false => (503, String::new(), "text/plain", b"every worker is busy\n".to_vec()),
            },
            NodeResponse::State => {
                let state = self.server.state();
                // Numbers are always JSON.
                let text = serde_json::to_vec(&state).unwrap_or_default();
                (200, load_metrics(&state), "application/json", text)
            }
            NodeResponse::Health => (200, String::new(), "text/plain", b"ok".to_vec()),
            NodeResponse::Nothing => (404, String::new(), "text/plain", b"no service is there\n".to_vec()),
        };
        let head = self.head(status, kind, lines.as_bytes(), body.len() as u64);
        let body: &[u8] = if is_head { &[] } else { &body };
        self.exchange.write(&[&head, body]).await
    }

    /// Works, and sends the result. False: the node accepts no more requests, and nothing was sent.
    async fn do_work(&mut self, work: Work, bytes: u64, is_head: bool) -> io::Result<bool> {
        let head = self.head(200, "text/html", b"", bytes);
        let server = Rc::clone(&self.server);
        let body_bytes = if is_head { 0 } else { bytes };
        match &server.machine {
            Machine::Virtual(virtual_nodes) => {
                let Ok(waits) = virtual_nodes.arrive(server.id, work, bytes) else { return Ok(false) };
                if waits.worked.await.is_err() {
                    // The node has failed, and drops all its connections.
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if bytes > SHORT_BYTES {
                    self.exchange.write(&[&head]).await?;
                    let _ = waits.left.await;
                    self.send(&[], body_bytes).await?;
                } else {
                    let _ = waits.left.await;
                    self.send(&head, body_bytes).await?;
                }
            }
            Machine::Real(node) => {
                if !node.work(work, bytes).await {
                    return Ok(false);
                }
                self.send(&head, body_bytes).await?;
                node.sent(body_bytes);
            }
        }
        Ok(true)
    }

    /// Sends a head, if it was not sent before, and `bytes` of body.
    async fn send(&mut self, head: &[u8], bytes: u64) -> io::Result<()> {
        let shared = Rc::clone(&self.shared);
        let (mut head, mut left) = (head, bytes);
        while left > 0 || !head.is_empty() {
            let count = left.min(shared.pool.len() as u64) as usize;
            self.exchange.write(&[head, &shared.pool[..count]]).await?;
            head = &[];
            left -= count as u64;
        }
        Ok(())
    }

    fn head(&mut self, status: u16, kind: &str, lines: &[u8], bytes: u64) -> Vec<u8> {
        let mut head = Vec::with_capacity(192);
        head.extend_from_slice(b"HTTP/1.1 ");
        write_decimal(&mut head, u64::from(status));
        head.push(b' ');
        head.extend_from_slice(reason(status).as_bytes());
        head.extend_from_slice(b"\r\nDate: ");
        head.extend_from_slice(&self.shared.date());
        head.extend_from_slice(b"\r\nServer: assay-node\r\nContent-Type: ");
        head.extend_from_slice(kind.as_bytes());
        head.extend_from_slice(b"\r\nX-Node: ");
        write_decimal(&mut head, u64::from(self.server.id.0));
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(lines);
        self.exchange.append_framing(&mut head, BodyFraming::Length(bytes));
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_may_name_a_host_and_a_cost_is_two_numbers() {
        assert_eq!(path_of("/file500.html"), "/file500.html");
        assert_eq!(path_of("http://a:8/file5k.html?x=/y"), "/file5k.html?x=/y");
        assert_eq!(path_of("http://a"), "/");
        assert_eq!(work_of(b"1500-20"), Some((0.0015, 0.00002)));
        for wrong in ["", "5", "-", "5-", "a-b", "99999999999-1"] {
            assert_eq!(work_of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
