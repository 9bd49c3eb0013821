//! What the clients' thread, the proxies' thread and the writing thread know together.
//!
//! Counters, how much is waiting for each proxy, and how much of clients' bodies is held for them. Everything here is an
//! atomic number or a channel: no thread waits for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, TrySendError};

use assay_plane::clock::monotonic_ns;
use assay_record::spe::{ResponseError, Verdict};
use assay_role::evaluation::{MultiplierCounters, OpenedCounters, TargetCounters};

use super::message::About;

/// Most bytes of clients' bodies that are held for the proxies at once.
const MOST_HELD: u64 = 64 << 20;

/// What was measured of one response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// When the request was sent, `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// Status.
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
    /// About the request.
    pub about: Arc<About>,
    /// Whose response: 0 is the Collector's.
    pub target: u16,
    /// Place among the proxies.
    pub place: u8,
    /// What was measured.
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

/// What came of tunnels that were to be opened; each is counted once.
#[derive(Default)]
pub struct OpenedBoard {
    /// Opened.
    pub opened: AtomicU64,
    /// The client did not accept the certificate.
    pub certificate_refused: AtomicU64,
    /// It named another server, or none.
    pub name_refused: AtomicU64,
    /// It did not speak TLS.
    pub not_tls: AtomicU64,
    /// Nothing in common.
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
    /// Write this.
    Entry {
        /// What.
        entry: Box<Entry>,
        /// When the start was.
        start_ns: u64,
    },
    /// That was all.
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
    /// Connections of clients.
    pub clients: AtomicU64,
    /// Of these, open now.
    pub open_clients: AtomicU64,
    /// Requests.
    pub requests: AtomicU64,
    /// Tunnels.
    pub connects: AtomicU64,
    /// What came of those that were to be opened.
    pub opened: OpenedBoard,
    /// Requests that were refused.
    pub refused: AtomicU64,
    /// Clients that left before they had their response.
    pub client_gone: AtomicU64,
}

/// Adds one.
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
            client_gone: AtomicU64::new(0),
        }
    }

    /// From now on, times count from this instant.
    pub fn start(&self, at_ns: u64) {
        self.start_ns.store(at_ns, Relaxed);
    }

    /// When it started.
    pub fn start_ns(&self) -> u64 {
        self.start_ns.load(Relaxed)
    }

    /// Whether a proxy may get one more request; it then counts as waiting until [`Board::tell`] gets its response.
    pub fn admit(&self, target: u16) -> bool {
        let Some(board) = self.targets.get(usize::from(target)) else { return false };
        if board.waiting.fetch_add(1, Relaxed) < self.most_waiting {
            return true;
        }
        board.waiting.fetch_sub(1, Relaxed);
        false
    }

    /// A request was sent to a target.
    pub fn requested(&self, target: u16) {
        self.targets.get(usize::from(target)).into_iter().for_each(|board| count(&board.requested));
    }

    /// Counts a response of one that was admitted, and writes it down.
    pub fn responded(&self, entry: Entry) {
        if let Some(board) = self.targets.get(usize::from(entry.target)) {
            board.waiting.fetch_sub(1, Relaxed);
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

    /// Room for a body that is held for the proxies; none: too much is held already.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Option<Held> {
        if self.held.fetch_add(bytes, Relaxed) + bytes <= MOST_HELD {
            return Some(Held { board: Arc::clone(self), bytes });
        }
        self.held.fetch_sub(bytes, Relaxed);
        None
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
        assert!(board.admit(1) && board.admit(1) && !board.admit(1));
        assert!(board.admit(2), "the other proxy has room of its own");
        let waiting: Vec<u64> = board.counters().targets.iter().map(|target| target.waiting).collect();
        assert_eq!(waiting, [0, 2, 1]);
        board.responded(entry(1, Verdict::Ok));
        assert!(board.admit(1));
        assert!(!board.admit(9), "there is no such proxy");
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
        let first = board.hold(MOST_HELD).unwrap();
        assert!(board.hold(1).is_none());
        drop(first);
        assert!(board.hold(1).is_some());
    }
}
