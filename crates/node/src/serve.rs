//! What does a node answer? Files and programs of its cluster file, files of any size by name, and how it is.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Duration;

use assay_dispatch::node::Work;
use assay_http::date::{DATE_BYTES, DateCache};
use assay_http::field::write_decimal;
use assay_http::head::{HeadError, RequestHead, Version};
use assay_plane::body::BodyReader;
use assay_plane::clock::RunClock;
use assay_plane::clock::monotonic_ns;
use assay_plane::wire::{self, Input, Scratch};
use assay_record::cluster::{NodeState, NodeUse};
use assay_simulate::{Service, document_at, document_of};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::house::House;
use crate::real::RealNode;
use crate::webstone::size_by_name;

/// A client may take so long for each step.
const PATIENCE: Duration = Duration::from_secs(60);
/// The head of a longer answer does not wait for its last byte.
const SHORT_BYTES: u64 = 16 * 1024;
/// When no descriptor is left for a new connection, others have to end first.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(20);
/// The field that says what a request costs, where that is different for each: microseconds of processor and of disk.
pub(crate) const WORK_FIELD: &str = "X-Assay-Work";
/// Probes ask for this.
pub(crate) const STATE_PATH: &str = "/assay/state";
const HEALTH_PATH: &str = "/assay/health";
/// What bodies are made of.
const TEXT: &[u8] = b"Assay serves what is asked for, as often as it is asked for it.\r\n";
const POOL_BYTES: usize = 64 * 1024;

/// Who does the work.
#[derive(Debug)]
pub(crate) enum Machine {
    /// The model, in real time.
    Virtual(Rc<House>),
    /// This machine.
    Real(Rc<RealNode>),
}

/// A node that answers.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) number: usize,
    pub(crate) services: Rc<Vec<Service>>,
    pub(crate) machine: Machine,
    /// False while it has failed: it takes no connection and drops those that it has.
    pub(crate) up: watch::Receiver<bool>,
}

/// What all connections of a thread share.
pub(crate) struct Shared {
    pub(crate) scratch: Scratch,
    pool: Box<[u8]>,
    dates: RefCell<DateCache>,
    clock: RunClock,
}

impl Shared {
    pub(crate) fn new() -> Self {
        let pool = TEXT.iter().copied().cycle().take(POOL_BYTES).collect();
        let dates = RefCell::new(DateCache::default());
        Self { scratch: Scratch::new(), pool, dates, clock: RunClock::provisional() }
    }

    fn date(&self) -> [u8; DATE_BYTES] {
        *self.dates.borrow_mut().at(self.clock.unix_s(monotonic_ns()))
    }
}

/// What a request is answered with.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Work { work: Work, bytes: u64 },
    State,
    Health,
    Nothing,
}

/// A request, taken from its head.
struct Asked {
    wanted: Wanted,
    head_only: bool,
    version: Version,
    persists: bool,
}

/// Accepts and answers, for ever.
pub(crate) async fn serve(listener: TcpListener, server: Rc<Server>, shared: Rc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if stream.set_nodelay(true).is_ok() && *server.up.borrow() {
                    spawn_local(while_up(stream, Rc::clone(&server), Rc::clone(&shared)));
                }
            }
            // The connection is gone, or no descriptor is left.
            Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
        }
    }
}

/// A connection, until it ends or the node fails.
async fn while_up(stream: TcpStream, server: Rc<Server>, shared: Rc<Shared>) {
    let mut up = server.up.clone();
    let failed = async {
        // Whoever could fail it is gone: it will not.
        if up.wait_for(|up| !up).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        // A connection that breaks is its client's affair.
        _ = connection(stream, &server, &shared) => {}
        () = failed => {}
    }
}

async fn connection(mut stream: TcpStream, server: &Server, shared: &Shared) -> io::Result<()> {
    let mut input = Input::default();
    loop {
        let asked = match RequestHead::parse(input.unread()) {
            Err(error) => return refuse(&mut stream, error).await,
            Ok(None) => match input.fill(&mut stream, &shared.scratch, PATIENCE).await? {
                0 => return Ok(()),
                _ => continue,
            },
            Ok(Some((head, length))) => {
                let asked = server.understand(&head);
                let body = head.body();
                input.consume(length);
                let mut body = BodyReader::new(body);
                while let Ok(Some(_)) = body.next(&mut stream, &mut input, &shared.scratch, PATIENCE).await {}
                asked
            }
        };
        server.answer(&mut stream, shared, &asked).await?;
        if !asked.persists {
            return Ok(());
        }
    }
}

async fn refuse(stream: &mut TcpStream, error: HeadError) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 {} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", error.status());
    wire::write_all(stream, &mut [IoSlice::new(head.as_bytes())], PATIENCE).await
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

/// The state as ORCA says it, in a field: so switches that know ORCA learn it too.
fn load_metrics(state: &NodeState) -> String {
    let NodeState { processor, disk, network, in_flight, latency_us } = state;
    let latency = latency_us.map_or(String::new(), |us| format!(", named_metrics.latency_ns={}", us * 1_000));
    format!(
        "endpoint-load-metrics: TEXT cpu_utilization={processor:.6}, named_metrics.disk={disk:.6}, \
         named_metrics.network={network:.6}, named_metrics.in_flight={in_flight}{latency}\r\n"
    )
}

impl Server {
    fn understand(&self, head: &RequestHead<'_>) -> Asked {
        let wanted = match path_of(head.target) {
            STATE_PATH => Wanted::State,
            HEALTH_PATH => Wanted::Health,
            path => self.work(path, head.header(WORK_FIELD)),
        };
        let (head_only, version) = (head.method == "HEAD", head.facts.version);
        Asked { wanted, head_only, version, persists: head.persists() }
    }

    fn work(&self, path: &str, cost: Option<&[u8]>) -> Wanted {
        let Some((place, number)) = document_at(&self.services, path) else {
            // A file that no service describes has its size in its name, and costs no more than its way.
            return match size_by_name(path) {
                Some(bytes) => Wanted::Work { work: Work::default(), bytes },
                None => Wanted::Nothing,
            };
        };
        let service = &self.services[place];
        let (processor_s, disk_s) = cost.and_then(work_of).unwrap_or((service.processor_s, service.disk_s));
        let document = (service.documents > 0).then(|| (document_of(place, number), service.bytes));
        Wanted::Work { work: Work { processor_s, disk_s, document }, bytes: service.bytes }
    }

    async fn answer(&self, stream: &mut TcpStream, shared: &Shared, asked: &Asked) -> io::Result<()> {
        let small = |status, kind, body: Vec<u8>| (status, kind, body);
        let mut load = String::new();
        let (status, kind, body) = match asked.wanted {
            Wanted::Work { work, bytes } => match self.worked(stream, shared, asked, work, bytes).await? {
                true => return Ok(()),
                false => small("503 Service Unavailable", "text/plain", b"every worker is busy\n".to_vec()),
            },
            Wanted::State => {
                let state = self.state();
                load = load_metrics(&state);
                // Numbers are always JSON.
                let text = serde_json::to_vec(&state).unwrap_or_default();
                small("200 OK", "application/json", text)
            }
            Wanted::Health => small("200 OK", "text/plain", b"ok".to_vec()),
            Wanted::Nothing => small("404 Not Found", "text/plain", b"no service is there\n".to_vec()),
        };
        let mut head = self.head(shared, asked, status, kind, body.len() as u64);
        if !load.is_empty() {
            // Before the empty line.
            head.truncate(head.len() - 2);
            head.extend_from_slice(load.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        let body: &[u8] = if asked.head_only { &[] } else { &body };
        wire::write_all(stream, &mut [IoSlice::new(&head), IoSlice::new(body)], PATIENCE).await
    }

    /// Works, and sends what comes of it. False: it takes no more, and nothing was sent.
    async fn worked(
        &self,
        stream: &mut TcpStream,
        shared: &Shared,
        asked: &Asked,
        work: Work,
        bytes: u64,
    ) -> io::Result<bool> {
        let head = self.head(shared, asked, "200 OK", "text/html", bytes);
        match &self.machine {
            Machine::Virtual(house) => {
                let Ok(waits) = house.arrive(self.number, work, bytes) else { return Ok(false) };
                if waits.worked.await.is_err() {
                    // The node has failed, and drops all its connections.
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if bytes > SHORT_BYTES {
                    wire::write_all(stream, &mut [IoSlice::new(&head)], PATIENCE).await?;
                    let _ = waits.left.await;
                    self.send(stream, shared, &[], asked, bytes).await?;
                } else {
                    let _ = waits.left.await;
                    self.send(stream, shared, &head, asked, bytes).await?;
                }
            }
            Machine::Real(node) => {
                if !node.work(work, bytes).await {
                    return Ok(false);
                }
                self.send(stream, shared, &head, asked, bytes).await?;
            }
        }
        Ok(true)
    }

    /// A head, if it was not sent before, and so many bytes.
    async fn send(
        &self,
        stream: &mut TcpStream,
        shared: &Shared,
        head: &[u8],
        asked: &Asked,
        bytes: u64,
    ) -> io::Result<()> {
        let mut left = if asked.head_only { 0 } else { bytes };
        let mut head = head;
        while left > 0 || !head.is_empty() {
            let count = left.min(shared.pool.len() as u64) as usize;
            let mut slices = [IoSlice::new(head), IoSlice::new(&shared.pool[..count])];
            wire::write_all(stream, &mut slices, PATIENCE).await?;
            head = &[];
            left -= count as u64;
        }
        Ok(())
    }

    fn head(&self, shared: &Shared, asked: &Asked, status: &str, kind: &str, bytes: u64) -> Vec<u8> {
        let mut head = Vec::with_capacity(192);
        head.extend_from_slice(b"HTTP/1.1 ");
        head.extend_from_slice(status.as_bytes());
        head.extend_from_slice(b"\r\nDate: ");
        head.extend_from_slice(&shared.date());
        head.extend_from_slice(b"\r\nServer: assay-node\r\nContent-Type: ");
        head.extend_from_slice(kind.as_bytes());
        head.extend_from_slice(b"\r\nX-Node: ");
        write_decimal(&mut head, self.number as u64);
        head.extend_from_slice(b"\r\nContent-Length: ");
        write_decimal(&mut head, bytes);
        if !asked.persists {
            head.extend_from_slice(b"\r\nConnection: close");
        } else if asked.version == Version::Http10 {
            head.extend_from_slice(b"\r\nConnection: keep-alive");
        }
        head.extend_from_slice(b"\r\n\r\n");
        head
    }

    /// How it is, since somebody looked last; a virtual one is looked at together with all others.
    pub(crate) fn sample(&self) -> NodeUse {
        match &self.machine {
            Machine::Virtual(_) => NodeUse::default(),
            Machine::Real(node) => node.sample(),
        }
    }

    fn state(&self) -> NodeState {
        let state = match &self.machine {
            Machine::Virtual(house) => house.report(self.number),
            Machine::Real(node) => node.report(),
        };
        NodeState {
            processor: state.processor,
            disk: state.disk,
            network: state.network,
            in_flight: state.in_flight,
            latency_us: state.latency_nanos.map(|nanos| nanos / 1_000),
        }
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
