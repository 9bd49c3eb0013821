//! Requests to the proxies, and the response of each.
//!
//! In a thread of its own, so that whatever a proxy does costs no client anything. Each connection of a client has a *lane*
//! to each proxy: one connection, kept if the proxy keeps it, and one request outstanding on it. What waits in lanes is
//! bounded by [`Board::admit`], before it comes here.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_http::head::ResponseHead;
use assay_net::body::BodyReader;
use assay_net::connection::Resources;
use assay_net::tls::client::{Client, Name};
use assay_net::upstream::{Patience, Upstream, UpstreamError};
use assay_record::spe::{ResponseError, Verdict};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::board::{Board, Entry, Line, Measured};
use super::message::Message;
use super::response;
use crate::number;
use crate::reasons;
use crate::validate::{Digester, Finding, Rules, Sample, compare};

/// A connection is there by then, or there is nobody.
const CONNECT: Duration = Duration::from_secs(10);
/// A response may have so many bytes more than twice the Collector's.
const MORE_BYTES: u64 = 1 << 20;
/// How many a response may have while nothing is known of the Collector's.
const MOST_BYTES: u64 = 1 << 30;
/// How long responses that are still due are waited for at the end.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// The Collector's response, which the others are held against.
#[derive(Debug)]
pub struct Direct {
    pub status: Option<u16>,
    /// What is compared; none: it is not whole.
    pub sample: Option<Sample>,
    /// How long it took.
    pub took_ns: u64,
}

/// Hears of the Collector's response once it is complete.
pub type Awaited = watch::Receiver<Option<Arc<Direct>>>;

/// A request that some proxies are to get.
pub struct Question {
    /// The connection that it came in on.
    pub line: Line,
    pub message: Arc<Message>,
    /// The proxies to send it to, in this order: places, and proxies by index. All of them were admitted.
    pub order: Vec<(u8, u8)>,
    /// What they are held against.
    pub direct: Awaited,
}

/// What the thread is told.
pub enum ToProxies {
    ClientRequest(Question),
    /// A client has closed its connection: those to proxies are closed too, after all responses.
    Left(u64),
    End,
}

/// One request, as a lane gets it.
struct Requested {
    line: Line,
    message: Arc<Message>,
    place: u8,
    direct: Awaited,
}

/// All proxies under test.
pub struct Proxies {
    /// Where they are, and how each is spoken to over TLS; none: in the clear.
    pub destinations: Vec<(SocketAddr, Option<(Client, Name)>)>,
    /// How long each step of a response may take.
    pub patience: Duration,
    /// Where responses are counted.
    pub board: Arc<Board>,
    /// What is a difference.
    pub rules: Arc<Rules>,
    /// What the Collector makes its marks with.
    pub lost_key: String,
    pub resources: Rc<Resources>,
}

/// Sends the requests that it is told to until there are no more, and then waits a while for outstanding responses.
pub async fn run(proxies: Proxies, mut told: UnboundedReceiver<ToProxies>) {
    let proxies = Rc::new(proxies);
    let mut clients: HashMap<u64, Vec<Option<UnboundedSender<Requested>>>> = HashMap::new();
    let mut lanes = JoinSet::new();
    loop {
        let next = tokio::select! {
            biased;
            next = told.recv() => next,
            Some(_) = lanes.join_next() => continue,
        };
        match next {
            Some(ToProxies::ClientRequest(question)) => {
                let Question { line, message, order, direct } = question;
                let senders =
                    clients.entry(line.id).or_insert_with(|| vec![None; proxies.destinations.len()]);
                for (place, index) in order {
                    let (line, message) = (line.clone(), Arc::clone(&message));
                    let requested = Requested { line, message, place, direct: direct.clone() };
                    let sender = senders[usize::from(index)].get_or_insert_with(|| {
                        let (sender, questions) = unbounded_channel();
                        lanes.spawn_local(lane(Rc::clone(&proxies), index, questions));
                        sender
                    });
                    // A lane ends only after its sender.
                    let _ = sender.send(requested);
                }
            }
            Some(ToProxies::Left(client)) => drop(clients.remove(&client)),
            Some(ToProxies::End) | None => break,
        }
    }
    drop(clients);
    let all = async { while lanes.join_next().await.is_some() {} };
    // Requests without a response by then are dropped.
    let _ = timeout(LAST_PATIENCE.min(proxies.patience + Duration::from_secs(1)), all).await;
}

/// Sends one proxy the requests of one client's connection.
async fn lane(proxies: Rc<Proxies>, index: u8, mut questions: UnboundedReceiver<Requested>) {
    let mut connection: Option<Box<Upstream>> = None;
    loop {
        let next = match &mut connection {
            None => questions.recv().await,
            Some(open) => tokio::select! {
                biased;
                next = questions.recv() => next,
                // Nothing may come on an idle connection: bytes or an end make it useless.
                _ = open.connection.stream.readable() => {
                    if !open.is_quiet() {
                        connection = None;
                    }
                    continue;
                }
            },
        };
        let Some(requested) = next else { return };
        proxies.response(index, &mut connection, requested).await;
    }
}

/// True where the Collector had to say something else than it said to the client.
fn is_lost(sample: &Sample, number: u64, key: &str) -> bool {
    matches!(ResponseHead::parse(&sample.head), Ok(Some((head, _))) if number::is_lost(head.headers(), number, key))
}

/// The result of one request.
struct Outcome {
    is_sent: bool,
    measured: Measured,
    sample: Option<Sample>,
    /// The connection, if it can be used again.
    connection: Option<Box<Upstream>>,
}

impl Proxies {
    /// Sends the request, measures, waits for the Collector's response, compares, and reports.
    async fn response(&self, index: u8, connection: &mut Option<Box<Upstream>>, requested: Requested) {
        let Requested { line, message, place, mut direct } = requested;
        let target = u16::from(index) + 1;
        self.board.requested(target);
        let open = connection.take().and_then(|mut open| open.is_quiet().then_some(open));
        let was_open = open.is_some();
        let mut outcome = self.request(index, open, &message, &direct).await;
        let never_read =
            outcome.measured.error == Some(ResponseError::Reset) && outcome.measured.status.is_none();
        if was_open && never_read {
            // It was closed just when it was to be used; that is nobody's fault.
            outcome = self.request(index, None, &message, &direct).await;
        }
        *connection = outcome.connection;
        let told = direct.wait_for(Option::is_some).await.map_or(None, |told| told.clone());
        if !outcome.is_sent {
            self.board.not_requested(target);
        }
        let found = match (&outcome.sample, told.as_ref().and_then(|direct| direct.sample.as_ref())) {
            _ if !outcome.is_sent => Finding { verdict: Verdict::Dropped, header: None },
            (None, _) => Finding { verdict: Verdict::NoResponse, header: None },
            (Some(_), None) => Finding { verdict: Verdict::NotCompared, header: None },
            (Some(sample), Some(direct)) => match compare(&self.rules, direct, sample) {
                found
                    if found.verdict.is_mismatch()
                        && is_lost(sample, message.about.number, &self.lost_key) =>
                {
                    Finding { verdict: Verdict::NotKept, header: None }
                }
                found => found,
            },
        };
        let entry = Entry {
            about: Arc::clone(&message.about),
            target,
            place,
            measured: outcome.measured,
            checksum: outcome.sample.map(|sample| sample.body.checksum()),
            verdict: found.verdict,
            header: found.header,
            direct_status: told.and_then(|direct| direct.status),
        };
        self.board.responded(&line, entry);
    }

    async fn request(
        &self,
        index: u8,
        open: Option<Box<Upstream>>,
        message: &Message,
        direct: &Awaited,
    ) -> Outcome {
        let mut measured = Measured { sent_ns: monotonic_ns(), ..Measured::default() };
        let proxy = match open {
            Some(open) => Ok(open),
            None => self.connect(index, &mut measured).await,
        };
        let responded = match proxy {
            Ok(proxy) => self.exchange(proxy, message, direct, &mut measured).await,
            Err(error) if reasons::is_own(&error) => {
                measured.connect_ns = None;
                return Outcome { is_sent: false, measured, sample: None, connection: None };
            }
            Err(error) => Err(error.into()),
        };
        let (sample, connection) = match responded {
            Ok((sample, connection)) => (Some(sample), connection),
            Err(error) => {
                measured.error = Some(error);
                (None, None)
            }
        };
        Outcome { is_sent: true, measured, sample, connection }
    }

    fn patience(&self) -> Patience {
        Patience { connect: CONNECT.min(self.patience), response: self.patience }
    }

    async fn connect(&self, index: u8, measured: &mut Measured) -> Result<Box<Upstream>, UpstreamError> {
        let (address, tls) = &self.destinations[usize::from(index)];
        let session = tls.as_ref().map(|(client, name)| client.connect(name, true)).transpose();
        let session = session.map_err(|error| UpstreamError::Tls(*address, error))?;
        response::connect(*address, session, self.patience(), &self.resources, measured).await
    }

    async fn exchange(
        &self,
        mut proxy: Box<Upstream>,
        message: &Message,
        direct: &Awaited,
        measured: &mut Measured,
    ) -> Result<(Sample, Option<Box<Upstream>>), ResponseError> {
        let patience = self.patience();
        measured.sent_ns = monotonic_ns();
        let sent = proxy.send(&[&message.head, &message.body], patience).await;
        if matches!(sent, Err(UpstreamError::TimedOut(_))) {
            return Err(ResponseError::TimedOut);
        }
        // One that does not want all of the body may have said so before it closed.
        let method = message.about.method.as_str();
        let received = proxy.final_head(self.patience, |received| {
            let head = &received.head;
            let digester = Digester::new(head, &self.rules);
            (head.status, head.body(method), head.persists(method), digester, received.bytes.to_vec())
        });
        let (status, framing, persists, mut digester, head_bytes) = received.await?;
        let first_ns = proxy.first_byte_ns.unwrap_or_else(monotonic_ns);
        measured.status = Some(status);
        measured.first_byte_ns = Some(first_ns.saturating_sub(measured.sent_ns));
        measured.head_bytes = head_bytes.len() as u64;
        let mut body = BodyReader::new(framing);
        let mut last_ns = first_ns;
        loop {
            let Some(chunk) = body.next(&mut proxy.connection, self.patience).await? else { break };
            last_ns = monotonic_ns();
            measured.body_bytes += chunk.len() as u64;
            measured.transfer_ns = Some(last_ns.saturating_sub(first_ns));
            self.is_enough(measured, last_ns, direct)?;
            digester.push(&chunk);
        }
        measured.transfer_ns = Some(last_ns.saturating_sub(first_ns));
        let is_bodiless = method == "HEAD" || status == 304;
        let sample = Sample { status, is_bodiless, body: digester.finish(), head: head_bytes };
        let keep = persists && message.persists && sent.is_ok() && proxy.connection.input.unread().is_empty();
        Ok((sample, keep.then_some(proxy)))
    }

    /// An error for a response that goes on and on.
    fn is_enough(&self, measured: &Measured, now_ns: u64, direct: &Awaited) -> Result<(), ResponseError> {
        let Some(direct) = direct.borrow().clone() else {
            return if measured.body_bytes > MOST_BYTES { Err(ResponseError::TooLong) } else { Ok(()) };
        };
        let most_bytes = direct
            .sample
            .as_ref()
            .map_or(MOST_BYTES, |sample| 2 * sample.body.bytes.max(sample.body.decoded_bytes) + MORE_BYTES);
        if measured.body_bytes > most_bytes {
            return Err(ResponseError::TooLong);
        }
        let most = self.patience + 4 * Duration::from_nanos(direct.took_ns);
        if u128::from(now_ns.saturating_sub(measured.sent_ns)) > most.as_nanos() {
            return Err(ResponseError::TimedOut);
        }
        Ok(())
    }
}
