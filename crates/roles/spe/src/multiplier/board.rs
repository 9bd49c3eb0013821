//! What the clients' thread, the proxies' thread and the writing thread know together.
//!
//! Counters, how much is waiting for each proxy, and how much of clients' bodies is held for them. Everything here is an
//! atomic number or a channel: no thread waits for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError};

use assay_base::clock::monotonic_ns;
use assay_protocol::evaluation::{MultiplierCounters, OpenedCounters, TargetCounters};
use assay_record::spe::{ResponseError, Verdict};

use super::message::About;

/// Most bytes of clients' bodies that are held for the proxies at once, half of them for one.
const MOST_HELD: u64 = 64 << 20;

/// What was measured of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// When the request was sent, `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    pub status: Option<u16>,
    /// How long the connection took; none: it was there already.
    pub connect_ns: Option<u64>,
    /// From sending to the first byte.
    pub first_byte_ns: Option<u64>,
    /// From the first byte to the last.
    pub transfer_ns: Option<u64>,
    /// Bytes of the head.
    pub head_bytes: u64,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Why it is not whole.
    pub error: Option<ResponseError>,
}

impl Measured {
    /// Response time as the document has it.
    pub fn response_ns(&self) -> u64 {
        [self.connect_ns, self.first_byte_ns, self.transfer_ns].into_iter().flatten().sum()
    }
}

/// What is to be written down about one response.
#[derive(Debug, Clone)]
pub struct Entry {
    pub about: Arc<About>,
    /// Whose response: 0 is the Collector's.
    pub target: u16,
    /// Place among the proxies.
    pub place: u8,
    pub measured: Measured,
    /// MD5 of the body.
    pub checksum: Option<String>,
    /// What the comparison came to.
    pub verdict: Verdict,
    /// The field that differs.
    pub header: Option<String>,
    /// What the Collector's status was.
    pub direct_status: Option<u16>,
}

#[derive(Default)]
struct TargetBoard {
    requested: AtomicU64,
    responses: AtomicU64,
    matching: AtomicU64,
    mismatches: AtomicU64,
    not_kept: AtomicU64,
    no_response: AtomicU64,
    dropped: AtomicU64,
    waiting: AtomicU64,
    response_sum_us: AtomicU64,
    body_bytes: AtomicU64,
}

/// A client's connection, and how many of its requests wait for each target.
#[derive(Debug, Clone)]
pub struct Line {
    /// The number of the connection.
    pub id: u64,
    waiting: Arc<[AtomicU64]>,
}

/// What came of tunnels that were to be opened; each is counted once.
#[derive(Default)]
pub struct OpenedBoard {
    pub opened: AtomicU64,
    /// The client did not accept the certificate.
    pub certificate_refused: AtomicU64,
    /// It named another server, or none.
    pub name_refused: AtomicU64,
    /// It did not speak TLS.
    pub not_tls: AtomicU64,
    pub no_common_parameters: AtomicU64,
    /// The handshake did not come to its end.
    pub failed: AtomicU64,
}

impl OpenedBoard {
    fn counters(&self) -> OpenedCounters {
        OpenedCounters {
            opened: self.opened.load(Relaxed),
            certificate_refused: self.certificate_refused.load(Relaxed),
            name_refused: self.name_refused.load(Relaxed),
            not_tls: self.not_tls.load(Relaxed),
            no_common_parameters: self.no_common_parameters.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }
}

/// What the writing thread is told.
#[derive(Debug)]
pub enum ToWrite {
    Entry {
        entry: Box<Entry>,
        /// When the start was.
        start_ns: u64,
    },
    End,
}

/// What all threads know.
pub struct Board {
    start_ns: AtomicU64,
    most_waiting: u64,
    targets: Vec<TargetBoard>,
    held: AtomicU64,
    /// Shared with the thread that writes.
    lost: Arc<AtomicU64>,
    entries: SyncSender<ToWrite>,
    pub clients: AtomicU64,
    /// Of these, open now.
    pub open_clients: AtomicU64,
    pub requests: AtomicU64,
    pub connects: AtomicU64,
    /// What came of those that were to be opened.
    pub opened: OpenedBoard,
    /// Requests that were refused.
    pub refused: AtomicU64,
    /// Requests that got 503, because as many were under way as may be.
    pub no_room: AtomicU64,
    /// Clients that left before they had their response.
    pub client_gone: AtomicU64,
}

pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Board {
    /// For so many proxies, of each of which so many responses may be outstanding; entries go to `entries`, and those that are
    /// not written are counted in `lost`.
    pub fn new(
        proxies: usize,
        most_waiting: u32,
        (entries, lost): (SyncSender<ToWrite>, Arc<AtomicU64>),
    ) -> Self {
        Self {
            start_ns: AtomicU64::new(monotonic_ns()),
            most_waiting: most_waiting.into(),
            targets: (0..=proxies).map(|_| TargetBoard::default()).collect(),
            held: AtomicU64::new(0),
            lost,
            entries,
            clients: AtomicU64::new(0),
            open_clients: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            connects: AtomicU64::new(0),
            opened: OpenedBoard::default(),
            refused: AtomicU64::new(0),
            no_room: AtomicU64::new(0),
            client_gone: AtomicU64::new(0),
        }
    }

    /// From now on, times count from this instant.
    pub fn start(&self, at_ns: u64) {
        self.start_ns.store(at_ns, Relaxed);
    }

    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Relaxed)
    }

    /// A connection of a client, of which nothing waits.
    pub fn line(&self, id: u64) -> Line {
        Line { id, waiting: self.targets.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Whether a proxy may get one more request of a connection; it then counts as waiting until [`Board::responded`] gets its
    /// response. As many of one connection may wait as there are places left: one that sends requests faster than a proxy responds
    /// keeps no places from others. Called by one thread alone.
    pub fn admit(&self, line: &Line, target: u16) -> bool {
        let target = usize::from(target);
        let (Some(board), Some(own)) = (self.targets.get(target), line.waiting.get(target)) else {
            return false;
        };
        let is_admitted = board.waiting.load(Relaxed) + own.load(Relaxed) < self.most_waiting;
        if is_admitted {
            count(&board.waiting);
            count(own);
        }
        is_admitted
    }

    /// A request was sent to a target.
    pub fn requested(&self, target: u16) {
        self.targets.get(usize::from(target)).into_iter().for_each(|board| count(&board.requested));
    }

    /// It was to be sent, and could not be.
    pub fn not_requested(&self, target: u16) {
        self.targets.get(usize::from(target)).into_iter().for_each(|board| {
            board.requested.fetch_sub(1, Relaxed);
        });
    }

    /// Counts a response of one that was admitted, and writes it down.
    pub fn responded(&self, line: &Line, entry: Entry) {
        let target = usize::from(entry.target);
        if let (Some(board), Some(own)) = (self.targets.get(target), line.waiting.get(target)) {
            board.waiting.fetch_sub(1, Relaxed);
            own.fetch_sub(1, Relaxed);
        }
        self.tell(entry);
    }

    /// Counts a response and writes it down. When the disk is too slow, it is lost rather than waited for.
    pub fn tell(&self, entry: Entry) {
        if let Some(board) = self.targets.get(usize::from(entry.target)) {
            let measured = &entry.measured;
            match entry.verdict {
                Verdict::Dropped => count(&board.dropped),
                _ if measured.error.is_some() => count(&board.no_response),
                _ if measured.status.is_some() => {
                    count(&board.responses);
                    if entry.verdict != Verdict::NotKept {
                        board.response_sum_us.fetch_add(measured.response_ns() / 1_000, Relaxed);
                    }
                }
                _ => {}
            }
            match entry.verdict {
                Verdict::Ok => count(&board.matching),
                Verdict::NotKept => count(&board.not_kept),
                verdict if verdict.is_mismatch() => count(&board.mismatches),
                _ => {}
            }
            board.body_bytes.fetch_add(measured.body_bytes, Relaxed);
        }
        let line = ToWrite::Entry { entry: Box::new(entry), start_ns: self.start_ns() };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.entries.try_send(line) {
            count(&self.lost);
        }
    }

    /// Nothing more is to be written. Waits until the writing thread has heard of it.
    pub fn close(&self) {
        // If it is gone, it has ended already.
        let _ = self.entries.send(ToWrite::End);
    }

    /// Room for a body that is held for the proxies, of which nothing is taken yet.
    pub fn hold(self: &Arc<Self>) -> Held {
        Held { board: Arc::clone(self), bytes: 0 }
    }

    /// The counters as they are.
    pub fn counters(&self) -> MultiplierCounters {
        let of = |board: &TargetBoard| TargetCounters {
            requested: board.requested.load(Relaxed),
            responses: board.responses.load(Relaxed),
            matching: board.matching.load(Relaxed),
            mismatches: board.mismatches.load(Relaxed),
            not_kept: board.not_kept.load(Relaxed),
            no_response: board.no_response.load(Relaxed),
            dropped: board.dropped.load(Relaxed),
            waiting: board.waiting.load(Relaxed),
            response_sum_us: board.response_sum_us.load(Relaxed),
            body_bytes: board.body_bytes.load(Relaxed),
        };
        MultiplierCounters {
            at_ms: monotonic_ns().saturating_sub(self.start_ns()) / 1_000_000,
            clients: self.clients.load(Relaxed),
            open_clients: self.open_clients.load(Relaxed),
            requests: self.requests.load(Relaxed),
            connects: self.connects.load(Relaxed),
            opened: self.opened.counters(),
            refused: self.refused.load(Relaxed),
            no_room: self.no_room.load(Relaxed),
            client_gone: self.client_gone.load(Relaxed),
            responses_lost: self.lost.load(Relaxed),
            targets: self.targets.iter().map(of).collect(),
            ..MultiplierCounters::default()
        }
    }
}

/// Room that is taken; dropped, it is given back.
pub struct Held {
    board: Arc<Board>,
    bytes: u64,
}

impl Held {
    /// Takes more of it. False: there is none, as no body may take more than it leaves to others. Called by one thread alone.
    pub fn take(&mut self, more: u64) -> bool {
        let held = self.board.held.load(Relaxed);
        let fits = self.bytes + more <= MOST_HELD.saturating_sub(held);
        if fits {
            self.board.held.fetch_add(more, Relaxed);
            self.bytes += more;
        }
        fits
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.board.held.fetch_sub(self.bytes, Relaxed);
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({})", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::mpsc::sync_channel;

    use assay_http::head::Version;

    use super::*;

    fn entry(target: u16, verdict: Verdict) -> Entry {
        let about = About {
            number: 0,
            client: IpAddr::from([127, 0, 0, 1]),
            method: "GET".into(),
            version: Version::Http11,
            url: "http://a/".into(),
            is_validation: false,
        };
        let measured = Measured { status: Some(200), first_byte_ns: Some(5_000), ..Measured::default() };
        let (place, checksum, header) = (0, None, None);
        Entry { about: about.into(), target, place, measured, checksum, verdict, header, direct_status: None }
    }

    #[test]
    fn no_more_wait_for_a_proxy_than_may_and_each_response_makes_room() {
        let (entries, _written) = sync_channel(10);
        let board = Board::new(2, 2, (entries, Arc::default()));
        let (one, other) = (board.line(0), board.line(1));
        assert!(board.admit(&one, 1) && board.admit(&other, 1) && !board.admit(&board.line(2), 1));
        assert!(board.admit(&one, 2), "the other proxy has room of its own");
        let waiting: Vec<u64> = board.counters().targets.iter().map(|target| target.waiting).collect();
        assert_eq!(waiting, [0, 2, 1]);
        board.responded(&one, entry(1, Verdict::Ok));
        assert!(board.admit(&one, 1));
        assert!(!board.admit(&one, 9), "there is no such proxy");
    }

    #[test]
    fn a_connection_has_as_many_requests_waiting_as_it_leaves_places_to_others() {
        let (entries, _written) = sync_channel(10);
        let board = Board::new(1, 100, (entries, Arc::default()));
        let admitted = |line: &Line| (0..100).take_while(|_| board.admit(line, 1)).count();
        assert_eq!([0, 1, 2].map(|id| admitted(&board.line(id))), [50, 25, 13]);
        let late = board.line(3);
        assert!(board.admit(&late, 1));
        board.responded(&late, entry(1, Verdict::Ok));
        assert_eq!(board.counters().targets[1].waiting, 88);
    }

    #[test]
    fn what_cannot_be_written_in_time_is_counted_as_lost() {
        let (entries, written) = sync_channel(1);
        let board = Board::new(1, 9, (entries, Arc::default()));
        board.tell(entry(1, Verdict::Ok));
        board.tell(entry(1, Verdict::BodyMismatch));
        let counters = board.counters();
        assert_eq!((counters.responses_lost, counters.targets[1].responses), (1, 2));
        assert_eq!((counters.targets[1].matching, counters.targets[1].mismatches), (1, 1));
        assert_eq!(counters.targets[1].response_sum_us, 10);
        drop(written);
    }

    #[test]
    fn room_for_bodies_is_bounded_and_given_back() {
        let (entries, _written) = sync_channel(1);
        let board = Arc::new(Board::new(1, 9, (entries, Arc::default())));
        let (mut first, mut second) = (board.hold(), board.hold());
        assert!(first.take(MOST_HELD / 2) && !first.take(1), "half of it is left to others");
        assert!(second.take(MOST_HELD / 4) && !second.take(1));
        drop(first);
        assert!(second.take(MOST_HELD / 4) && !second.take(1));
    }

    #[test]
    fn bodies_that_have_hardly_begun_take_hardly_any_room() {
        let (entries, _written) = sync_channel(1);
        let board = Arc::new(Board::new(1, 9, (entries, Arc::default())));
        let begun: Vec<Held> = (0..10_000).map(|_| board.hold()).collect();
        let begun = begun.into_iter().map(|mut held| held.take(1).then_some(held)).collect::<Vec<_>>();
        assert!(begun.iter().all(Option::is_some) && board.hold().take(1 << 20));
    }
}
