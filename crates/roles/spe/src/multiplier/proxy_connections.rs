//! Requests to the proxies, and their responses.
//!
//! A thread of its own, so that nothing that a proxy does costs clients anything. Each connection of a client has a task for each
//! proxy: one connection, kept if the proxy keeps it, and one outstanding request on it. The requests queued for tasks are
//! bounded by [`SharedState::admit`], before they come here.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_http::head::ResponseHead;
use assay_net::body::BodyReader;
use assay_net::connection::Resources;
use assay_net::tls::client::{TlsClient, TlsServerName};
use assay_net::upstream::{Upstream, UpstreamError, UpstreamTimeouts};
use assay_record::spe::{ResponseError, Verdict};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::measurement;
use super::measurement::Measurement;
use super::message::ProxyMessage;
use super::shared_state::{ClientLoad, ResponseEntry, SharedState};
use crate::connect_errors;
use crate::number;
use crate::validate::{BodyDigester, Comparison, ResponseSample, Rules, compare};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that a response may have beyond twice those of the Collector's.
const EXCESS_MAX_BYTES: u64 = 1 << 20;
/// Bytes that a response may have while the Collector's is unknown.
const RESPONSE_MAX_BYTES: u64 = 1 << 30;
/// Time for outstanding responses at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The Collector's response, with which the others are compared.
#[derive(Debug)]
pub struct CollectorResponse {
    pub status: Option<u16>,
    /// `None` if the response is incomplete.
    pub sample: Option<ResponseSample>,
    pub took_ns: u64,
}

/// Receives the Collector's response once it is complete.
pub type CollectorResponseReceiver = watch::Receiver<Option<Arc<CollectorResponse>>>;

/// A request for some of the proxies.
pub struct ProxyDispatch {
    pub load: ClientLoad,
    pub message: Arc<ProxyMessage>,
    /// Proxies to send it to, in this order: position, and index of the proxy. All of them were admitted.
    pub order: Vec<(u8, u8)>,
    pub direct: CollectorResponseReceiver,
}

pub enum ProxyCommand {
    Request(ProxyDispatch),
    /// A client has closed its connection: those to proxies are closed too, after all responses.
    Left(u64),
    End,
}

/// A request for one proxy.
struct ProxyRequest {
    load: ClientLoad,
    message: Arc<ProxyMessage>,
    position: u8,
    direct: CollectorResponseReceiver,
}

pub struct Proxies {
    /// Addresses, with TLS; `None`: in the clear.
    pub destinations: Vec<(SocketAddr, Option<(TlsClient, TlsServerName)>)>,
    /// Limit of each step of a response.
    pub step_timeout: Duration,
    pub state: Arc<SharedState>,
    pub rules: Arc<Rules>,
    /// Key of the Collector's marks.
    pub lost_key: String,
    pub resources: Rc<Resources>,
}

/// Executes commands until the end, and then waits a while for outstanding responses.
pub async fn run(proxies: Proxies, mut commands: UnboundedReceiver<ProxyCommand>) {
    let proxies = Rc::new(proxies);
    let mut clients: HashMap<u64, Vec<Option<UnboundedSender<ProxyRequest>>>> = HashMap::new();
    let mut tasks = JoinSet::new();
    loop {
        let next = tokio::select! {
            biased;
            next = commands.recv() => next,
            Some(_) = tasks.join_next() => continue,
        };
        match next {
            Some(ProxyCommand::Request(dispatch)) => {
                let ProxyDispatch { load, message, order, direct } = dispatch;
                let senders =
                    clients.entry(load.id).or_insert_with(|| vec![None; proxies.destinations.len()]);
                for (position, index) in order {
                    let (load, message) = (load.clone(), Arc::clone(&message));
                    let request = ProxyRequest { load, message, position, direct: direct.clone() };
                    let sender = senders[usize::from(index)].get_or_insert_with(|| {
                        let (sender, requests) = unbounded_channel();
                        tasks.spawn_local(serve_connection(Rc::clone(&proxies), index, requests));
                        sender
                    });
                    // The task ends only after its sender.
                    let _ = sender.send(request);
                }
            }
            Some(ProxyCommand::Left(client)) => drop(clients.remove(&client)),
            Some(ProxyCommand::End) | None => break,
        }
    }
    drop(clients);
    let all = async { while tasks.join_next().await.is_some() {} };
    // Requests still without a response are dropped.
    let _ = timeout(DRAIN_TIMEOUT.min(proxies.step_timeout + Duration::from_secs(1)), all).await;
}

/// Sends one proxy the requests of one client's connection.
async fn serve_connection(proxies: Rc<Proxies>, index: u8, mut requests: UnboundedReceiver<ProxyRequest>) {
    let mut connection: Option<Box<Upstream>> = None;
    loop {
        let next = match &mut connection {
            None => requests.recv().await,
            Some(open) => tokio::select! {
                biased;
                next = requests.recv() => next,
                // Unexpected bytes or an end make an idle connection useless.
                _ = open.connection.stream.readable() => {
                    if !open.is_quiet() {
                        connection = None;
                    }
                    continue;
                }
            },
        };
        let Some(request) = next else { return };
        proxies.response(index, &mut connection, request).await;
    }
}

/// Whether the Collector had to send a replacement for the client's response.
fn is_lost(sample: &ResponseSample, number: u64, key: &str) -> bool {
    matches!(ResponseHead::parse(&sample.head), Ok(Some((head, _))) if number::is_lost(head.headers(), number, key))
}

struct ProxyOutcome {
    is_sent: bool,
    measurement: Measurement,
    sample: Option<ResponseSample>,
    /// Set if it can be reused.
    connection: Option<Box<Upstream>>,
}

impl Proxies {
    /// Sends the request, measures, waits for the Collector's response, compares, and records the result.
    async fn response(&self, index: u8, connection: &mut Option<Box<Upstream>>, request: ProxyRequest) {
        let ProxyRequest { load, message, position, mut direct } = request;
        let target = u16::from(index) + 1;
        self.state.requested(target);
        let open = connection.take().and_then(|mut open| open.is_quiet().then_some(open));
        let was_open = open.is_some();
        let mut outcome = self.request(index, open, &message, &direct).await;
        let was_reset =
            outcome.measurement.error == Some(ResponseError::Reset) && outcome.measurement.status.is_none();
        if was_open && was_reset {
            // The proxy closed an idle connection just as it was reused: not its fault.
            outcome = self.request(index, None, &message, &direct).await;
        }
        *connection = outcome.connection;
        let expected = direct.wait_for(Option::is_some).await.map_or(None, |expected| expected.clone());
        if !outcome.is_sent {
            self.state.not_requested(target);
        }
        let comparison = match (&outcome.sample, expected.as_ref().and_then(|direct| direct.sample.as_ref()))
        {
            _ if !outcome.is_sent => Comparison { verdict: Verdict::Dropped, header: None },
            (None, _) => Comparison { verdict: Verdict::NoResponse, header: None },
            (Some(_), None) => Comparison { verdict: Verdict::NotCompared, header: None },
            (Some(sample), Some(direct)) => match compare(&self.rules, direct, sample) {
                comparison
                    if comparison.verdict.is_mismatch()
                        && is_lost(sample, message.summary.number, &self.lost_key) =>
                {
                    Comparison { verdict: Verdict::NotKept, header: None }
                }
                comparison => comparison,
            },
        };
        let entry = ResponseEntry {
            summary: Arc::clone(&message.summary),
            target,
            position,
            measurement: outcome.measurement,
            checksum: outcome.sample.map(|sample| sample.body.checksum()),
            verdict: comparison.verdict,
            header: comparison.header,
            direct_status: expected.and_then(|direct| direct.status),
        };
        self.state.responded(&load, entry);
    }

    async fn request(
        &self,
        index: u8,
        open: Option<Box<Upstream>>,
        message: &ProxyMessage,
        direct: &CollectorResponseReceiver,
    ) -> ProxyOutcome {
        let mut measurement = Measurement { sent_ns: monotonic_ns(), ..Measurement::default() };
        let proxy = match open {
            Some(open) => Ok(open),
            None => self.connect(index, &mut measurement).await,
        };
        let responded = match proxy {
            Ok(proxy) => self.exchange(proxy, message, direct, &mut measurement).await,
            Err(error) if connect_errors::is_local(&error) => {
                measurement.connect_ns = None;
                return ProxyOutcome { is_sent: false, measurement, sample: None, connection: None };
            }
            Err(error) => Err(error.into()),
        };
        let (sample, connection) = match responded {
            Ok((sample, connection)) => (Some(sample), connection),
            Err(error) => {
                measurement.error = Some(error);
                (None, None)
            }
        };
        ProxyOutcome { is_sent: true, measurement, sample, connection }
    }

    fn timeouts(&self) -> UpstreamTimeouts {
        UpstreamTimeouts { connect: CONNECT_TIMEOUT.min(self.step_timeout), response: self.step_timeout }
    }

    async fn connect(
        &self,
        index: u8,
        measurement: &mut Measurement,
    ) -> Result<Box<Upstream>, UpstreamError> {
        let (address, tls) = &self.destinations[usize::from(index)];
        let session = tls.as_ref().map(|(client, name)| client.connect(name, true)).transpose();
        let session = session.map_err(|error| UpstreamError::Tls(*address, error))?;
        measurement::connect(*address, session, self.timeouts(), &self.resources, measurement).await
    }

    async fn exchange(
        &self,
        mut proxy: Box<Upstream>,
        message: &ProxyMessage,
        direct: &CollectorResponseReceiver,
        measurement: &mut Measurement,
    ) -> Result<(ResponseSample, Option<Box<Upstream>>), ResponseError> {
        let timeouts = self.timeouts();
        measurement.sent_ns = monotonic_ns();
        let sent = proxy.send(&[&message.head, &message.body], timeouts).await;
        if matches!(sent, Err(UpstreamError::TimedOut(_))) {
            return Err(ResponseError::TimedOut);
        }
        // A proxy may have responded early, and closed before it took the whole body.
        let method = message.summary.method.as_str();
        let received = proxy.final_head(self.step_timeout, |received| {
            let head = &received.head;
            let digester = BodyDigester::new(head, &self.rules);
            (head.status, head.body(method), head.persists(method), digester, received.bytes.to_vec())
        });
        let (status, framing, persists, mut digester, head_bytes) = received.await?;
        let first_ns = proxy.first_byte_ns.unwrap_or_else(monotonic_ns);
        measurement.status = Some(status);
        measurement.first_byte_ns = Some(first_ns.saturating_sub(measurement.sent_ns));
        measurement.head_bytes = head_bytes.len() as u64;
        let mut body = BodyReader::new(framing);
        let mut last_ns = first_ns;
        loop {
            let Some(chunk) = body.next(&mut proxy.connection, self.step_timeout).await? else { break };
            last_ns = monotonic_ns();
            measurement.body_bytes += chunk.len() as u64;
            measurement.transfer_ns = Some(last_ns.saturating_sub(first_ns));
            self.check_limits(measurement, last_ns, direct)?;
            digester.push(&chunk);
        }
        measurement.transfer_ns = Some(last_ns.saturating_sub(first_ns));
        if !proxy.connection.input.unread().is_empty() {
            return Err(ResponseError::ExtraBytes);
        }
        let is_bodiless = method == "HEAD" || status == 304;
        let sample = ResponseSample { status, is_bodiless, body: digester.finish(), head: head_bytes };
        let keep = persists && message.persists && sent.is_ok();
        Ok((sample, keep.then_some(proxy)))
    }

    /// Fails a response without end.
    fn check_limits(
        &self,
        measurement: &Measurement,
        now_ns: u64,
        direct: &CollectorResponseReceiver,
    ) -> Result<(), ResponseError> {
        let Some(direct) = direct.borrow().clone() else {
            return if measurement.body_bytes > RESPONSE_MAX_BYTES {
                Err(ResponseError::TooLong)
            } else {
                Ok(())
            };
        };
        let most_bytes = direct.sample.as_ref().map_or(RESPONSE_MAX_BYTES, |sample| {
            2 * sample.body.bytes.max(sample.body.decoded_bytes) + EXCESS_MAX_BYTES
        });
        if measurement.body_bytes > most_bytes {
            return Err(ResponseError::TooLong);
        }
        let max_time = self.step_timeout + 4 * Duration::from_nanos(direct.took_ns);
        if u128::from(now_ns.saturating_sub(measurement.sent_ns)) > max_time.as_nanos() {
            return Err(ResponseError::TimedOut);
        }
        Ok(())
    }
}
