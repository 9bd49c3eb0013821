//! A connection of HTTP/2, for either side (RFC 9113, 3 to 6).

mod control;
mod data;
mod event;
mod receive;
mod sections;
mod send;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::error::ErrorCode;
use crate::flood;
use crate::frame::{DEFAULT_FRAME_BYTES, FrameHead, MAX_31, PREFACE, write_window_update};
use crate::hpack::{DEFAULT_TABLE_BYTES, Decoder, Encoder};
use crate::message::Section;
use crate::settings::{DEFAULT_WINDOW_BYTES, Settings};
use crate::stream::{Body, State, Stream, Streams};

pub use self::event::Event;
pub use self::send::{NotOpened, RequestHead};

/// Streams that are assumed to be allowed before the peer's settings have come, as RFC 9113, 6.5.2 recommends for a minimum.
pub const ASSUMED_STREAMS: u32 = 100;
/// Streams that were reset last, whose late frames are passed over.
const RESET_MEMORY: usize = 256;

/// Memory for header sections that a connection keeps for the next ones. Nearly all are shorter, and a connection that is idle after
/// a long one must not take a hundred times what others do.
const KEPT_BYTES: usize = 8 << 10;

/// Side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Opens streams and sends requests.
    Client,
    Server,
}

/// Limits and preferences of this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Most streams that a client may have open.
    pub max_streams: u32,
    /// Receive window of a stream, in bytes; 65,535 at least.
    pub stream_window: u32,
    /// Receive window of the connection, in bytes; 65,535 at least.
    pub connection_window: u32,
    /// Largest header section that is accepted, by the measure of RFC 9113, 6.5.2.
    pub max_section_bytes: u32,
    /// Largest dynamic table for either direction, in bytes.
    pub table_bytes: u32,
    /// Windows of streams are given back with [`Connection::release`] only, for an owner that keeps data before it uses it. The
    /// window of the connection is given back as data comes: one stream that is not read must not hold up the others.
    pub keeps_data: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_streams: 256,
            stream_window: 1 << 20,
            connection_window: 16 << 20,
            max_section_bytes: 64 << 10,
            table_bytes: DEFAULT_TABLE_BYTES,
            keeps_data: false,
        }
    }
}

/// Counts of a connection since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Streams that were opened, by either side.
    pub streams: u64,
    /// Streams that the peer reset.
    pub resets_received: u64,
    /// Streams that this side reset.
    pub resets_sent: u64,
    /// GOAWAY frames that came.
    pub goaways_received: u64,
    /// Times that a window kept data back.
    pub stalls: u64,
    /// Names and values of all header sections that were sent, in bytes.
    pub fields_sent_bytes: u64,
    /// The same as they were coded.
    pub coded_sent_bytes: u64,
    /// Names and values of all header sections that came, in bytes.
    pub fields_received_bytes: u64,
    /// The same as they were coded.
    pub coded_received_bytes: u64,
}

/// State of the reader between two calls.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// Within the preface; bytes seen.
    Preface(usize),
    /// Before or within the head of a frame.
    Head,
    /// Within the payload of a frame that is acted on as a whole.
    Payload(FrameHead),
    /// Before the length of the padding of a DATA frame.
    PadLength(FrameHead),
    /// Within payload of DATA.
    Data { stream: Stream, left: u32, padding: u32, ends: bool },
    /// Within padding, or within DATA of a stream that has ended.
    Skip(u32),
}

/// A header block that goes on in CONTINUATION frames.
#[derive(Debug, Clone, Copy)]
struct OpenBlock {
    stream: u32,
    ends: bool,
}

/// One side of a connection. See the [crate] for how it is driven.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Config,
    /// Settings of the peer.
    peer: Settings,
    has_peer_settings: bool,
    encoder: Encoder,
    decoder: Decoder,
    streams: Streams,
    /// Next stream that this side opens.
    next_id: u32,
    /// Highest stream that the peer has opened.
    highest_peer_id: u32,
    send_window: i64,
    receive_window: i64,
    /// Bytes that were received and not returned to the connection's window.
    consumed: u32,
    reading: Reading,
    /// Beginning of a frame that has not arrived in full; mostly empty.
    partial: Vec<u8>,
    open_block: Option<OpenBlock>,
    /// Frames and header blocks that came as a whole, and heads of DATA.
    frames: u64,
    /// Fragments of the open header block.
    block: Vec<u8>,
    section: Section,
    out: Vec<u8>,
    /// Bytes of `out` that the caller has written.
    written: usize,
    /// The peer was told to open no more streams, and those that are on their way are taken.
    is_retiring: bool,
    /// Highest stream that is acted on, once this side has said that it takes no others.
    refuses_above: Option<u32>,
    /// Highest stream that the peer acts on, once it has said so.
    peer_refuses_above: Option<u32>,
    /// Ids of streams that were reset by this side, the last ones.
    reset: VecDeque<u32>,
    flood: flood::Counters,
    totals: Totals,
}

impl Connection {
    /// The client's side: its preface and settings are in [`Connection::output`], and requests may follow at once.
    pub fn client(config: Config) -> Self {
        Self::new(Side::Client, config)
    }

    /// The server's side: its settings are in [`Connection::output`].
    pub fn server(config: Config) -> Self {
        Self::new(Side::Server, config)
    }

    fn new(side: Side, config: Config) -> Self {
        let least = |bytes: u32| bytes.clamp(DEFAULT_WINDOW_BYTES, MAX_31);
        let config = Config {
            stream_window: least(config.stream_window),
            connection_window: least(config.connection_window),
            ..config
        };
        let mut out = Vec::with_capacity(1024);
        if side == Side::Client {
            out.extend_from_slice(PREFACE);
        }
        Settings {
            header_table_bytes: config.table_bytes,
            enable_push: side == Side::Server,
            max_streams: if side == Side::Server { config.max_streams } else { u32::MAX },
            window_bytes: config.stream_window,
            max_frame_bytes: DEFAULT_FRAME_BYTES,
            max_section_bytes: config.max_section_bytes,
            no_old_priorities: true,
        }
        .write(&mut out);
        if config.connection_window > DEFAULT_WINDOW_BYTES {
            write_window_update(&mut out, 0, config.connection_window - DEFAULT_WINDOW_BYTES);
        }
        Self {
            side,
            config,
            peer: Settings { max_streams: ASSUMED_STREAMS, ..Settings::default() },
            has_peer_settings: false,
            encoder: Encoder::new(config.table_bytes),
            decoder: Decoder::new(config.table_bytes),
            streams: Streams::default(),
            next_id: 1,
            highest_peer_id: 0,
            send_window: DEFAULT_WINDOW_BYTES.into(),
            receive_window: config.connection_window.into(),
            consumed: 0,
            reading: if side == Side::Server { Reading::Preface(0) } else { Reading::Head },
            partial: Vec::new(),
            open_block: None,
            frames: 0,
            block: Vec::new(),
            section: Section::default(),
            out,
            written: 0,
            is_retiring: false,
            refuses_above: None,
            peer_refuses_above: None,
            reset: VecDeque::new(),
            flood: flood::Counters::default(),
            totals: Totals::default(),
        }
    }

    /// Bytes to be written to the peer, in order. [`Connection::wrote`] says how many were.
    pub fn output(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// The first `bytes` of the output are written.
    pub fn wrote(&mut self, bytes: usize) {
        self.written = (self.written + bytes).min(self.out.len());
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
            self.flood.drained();
        } else if self.written > self.out.len() / 2 {
            self.out.copy_within(self.written.., 0);
            self.out.truncate(self.out.len() - self.written);
            self.written = 0;
        }
    }

    /// Streams that are open.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Number of streams that a client may still open: what the peer's limit leaves, and none after a GOAWAY or when the numbers are used
    /// up.
    pub fn openable(&self) -> u32 {
        if self.peer_refuses_above.is_some() || self.refuses_above.is_some() || self.next_id > MAX_31 {
            return 0;
        }
        self.peer.max_streams.saturating_sub(self.streams.len() as u32)
    }

    /// No new streams will be opened on this connection: either side has sent GOAWAY, or the numbers are used up.
    pub fn is_closing(&self) -> bool {
        self.peer_refuses_above.is_some() || self.refuses_above.is_some() || self.next_id > MAX_31
    }

    /// Bytes of data that may be sent on a stream now: 0 for one that has ended.
    pub fn sendable(&self, stream: Stream) -> usize {
        let window =
            self.streams.get(stream).filter(|state| state.sends).map_or(0, |state| state.send_window);
        usize::try_from(window.min(self.send_window)).unwrap_or(0)
    }

    /// Whether a stream is open.
    pub fn is_open(&self, stream: Stream) -> bool {
        self.streams.get(stream).is_some()
    }

    /// Number of the peer's frame or header block that has begun and is incomplete; none: there is none. Nothing else can come before its
    /// rest. Settings belong to the preface. Payload of DATA is taken as it comes: such a frame is complete with its head.
    pub fn partial_frame(&self) -> Option<u64> {
        let has_begun = match self.reading {
            Reading::Head => !self.partial.is_empty() || self.open_block.is_some() || !self.has_peer_settings,
            Reading::Preface(_) | Reading::Payload(_) | Reading::PadLength(_) => true,
            Reading::Data { .. } | Reading::Skip(_) => false,
        };
        has_begun.then_some(self.frames)
    }

    /// Whether more of the peer's message may come on a stream: it is open, and the peer has not ended it.
    pub fn receives(&self, stream: Stream) -> bool {
        self.streams.get(stream).is_some_and(|state| state.receives)
    }

    /// Settings of the peer; before they have come, those that it must allow.
    pub fn peer_settings(&self) -> Settings {
        self.peer
    }

    /// Counts so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Begins a new second for the bounds on floods; see [`crate::flood`].
    pub fn refill(&mut self) {
        self.flood.refill();
    }

    /// No window that the peer must keep is below zero.
    #[cfg(test)]
    fn keeps_windows(&mut self) -> bool {
        let keeps = self.receive_window >= 0 && self.send_window >= 0;
        keeps && self.streams.states_mut().all(|state| state.receive_window >= 0)
    }

    fn new_state(&self, id: u32, is_head: bool) -> State {
        State {
            id,
            sends: true,
            receives: true,
            has_head: false,
            is_head,
            send_window: self.peer.window_bytes.into(),
            receive_window: self.config.stream_window.into(),
            consumed: 0,
            body: Body::Any,
            body_bytes: 0,
        }
    }

    /// Forgets a stream whose both sides have ended.
    fn forget_if_ended(&mut self, stream: Stream) {
        if self.streams.get(stream).is_some_and(|state| !state.sends && !state.receives) {
            self.streams.remove(stream);
            self.flood.ended();
        }
    }

    /// Writes RST_STREAM and forgets the stream; its late frames are passed over.
    fn reset_stream(&mut self, id: u32, code: ErrorCode) {
        crate::frame::write_reset(&mut self.out, id, code);
        self.totals.resets_sent += 1;
        self.flood.has_reset();
        if let Some(stream) = self.streams.find(id) {
            self.streams.remove(stream);
        }
        if self.reset.len() == RESET_MEMORY {
            self.reset.pop_front();
        }
        self.reset.push_back(id);
    }

    fn was_reset(&self, id: u32) -> bool {
        self.reset.contains(&id)
    }
}
