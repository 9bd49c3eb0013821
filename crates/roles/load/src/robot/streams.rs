//! Streams of an HTTP/2 connection, each with an xact.
//!
//! *Does not:* write to sockets or decide what is sent next; that is [`super::multiplex`].

use assay_http2::{Config, Connection as Wire, Stream, Totals};
use assay_measurement::counts::RobotCounts;

use super::response::ResponseReader;
use super::xact::XactKey;

/// Upper bound on the body bytes in transit to one connection. Robots check what they read at once, so a window is no
/// limit to what they hold.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Upper bound on the body bytes in transit on one stream.
const STREAM_WINDOW: u32 = 4 << 20;

/// An xact on its stream.
#[derive(Debug)]
pub struct StreamExchange {
    pub xact: XactKey,
    pub stream: Stream,
    pub response: ResponseReader,
    /// Body bytes of the request that the windows have not let through yet.
    pub upload: Vec<u8>,
}

/// Exchanges by the places of their streams.
#[derive(Debug, Default)]
pub struct StreamTable(Vec<Option<StreamExchange>>);

impl StreamTable {
    /// Exchange on a stream; none: its xact has ended.
    pub fn get_mut(&mut self, stream: Stream) -> Option<&mut StreamExchange> {
        self.0.get_mut(stream.place as usize)?.as_mut().filter(|exchange| exchange.stream == stream)
    }
}

/// The streams of one connection.
#[derive(Debug)]
pub struct Streams {
    /// The connection as it lies on the wire.
    pub wire: Wire,
    exchange: StreamTable,
    /// Number of xacts on the connection.
    pub load: u32,
    /// Bytes that have come are being acted on: what is sent meanwhile goes out together when that is done.
    pub is_receiving: bool,
    /// Totals of `wire` that are counted already.
    counted: Totals,
    /// Instant of the last refill of the bounds on floods.
    refilled_ns: u64,
}

impl Streams {
    /// For a connection that is being opened.
    pub fn new(now_ns: u64) -> Self {
        let config = Config {
            stream_window: STREAM_WINDOW,
            connection_window: CONNECTION_WINDOW,
            ..Config::default()
        };
        Self {
            wire: Wire::client(config),
            exchange: StreamTable::default(),
            load: 0,
            is_receiving: false,
            counted: Totals::default(),
            refilled_ns: now_ns,
        }
    }

    /// Puts an exchange on its stream.
    pub fn put(&mut self, exchange: StreamExchange) {
        let place = exchange.stream.place as usize;
        let table = &mut self.exchange.0;
        if table.len() <= place {
            // Most connections have one request at a time: no room for four at once, which a vector would begin with.
            if table.capacity() == 0 {
                table.reserve_exact(place + 1);
            }
            table.resize_with(place + 1, || None);
        }
        table[place] = Some(exchange);
        self.load += 1;
    }

    /// Exchange on a stream; none: its xact has ended.
    pub fn get_mut(&mut self, stream: Stream) -> Option<&mut StreamExchange> {
        self.exchange.get_mut(stream)
    }

    /// Borrows the wire and the exchanges apart.
    pub fn split(&mut self) -> (&mut Wire, &mut StreamTable) {
        (&mut self.wire, &mut self.exchange)
    }

    /// Takes an xact off its stream.
    pub fn take(&mut self, stream: Stream) -> Option<StreamExchange> {
        let connection_key = self.exchange.0.get_mut(stream.place as usize)?;
        let exchange = connection_key.take_if(|exchange| exchange.stream == stream)?;
        self.load -= 1;
        Some(exchange)
    }

    /// Takes all of them off.
    pub fn take_all(&mut self) -> Vec<StreamExchange> {
        self.load = 0;
        self.exchange.0.drain(..).flatten().collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &StreamExchange> {
        self.exchange.0.iter().flatten()
    }

    /// Sends more of the bodies of requests, as the windows allow.
    pub fn send_uploads(&mut self) {
        let Self { wire, exchange, .. } = self;
        for StreamExchange { stream, upload, .. } in exchange.0.iter_mut().flatten() {
            if upload.is_empty() {
                continue;
            }
            // A stream that has ended has its response already, or its failure is about to be told.
            let sent = wire.data(*stream, upload, true).unwrap_or(upload.len());
            upload.drain(..sent);
        }
    }

    /// Begins a new second for the bounds on floods, when one is over.
    pub fn refill(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.refilled_ns) >= assay_base::clock::SECOND_NS {
            self.refilled_ns = now_ns;
            self.wire.refill();
        }
    }

    /// Adds what has happened since the last time.
    pub fn count(&mut self, counts: &mut RobotCounts) {
        let (now, before) = (self.wire.totals(), self.counted);
        if now == before {
            return;
        }
        self.counted = now;
        counts.streams_opened += now.streams - before.streams;
        counts.streams_reset += now.resets_received - before.resets_received;
        counts.goaways += now.goaways_received - before.goaways_received;
        counts.flow_stalls += now.stalls - before.stalls;
        counts.field_bytes_out += now.fields_sent_bytes - before.fields_sent_bytes;
        counts.coded_field_bytes_out += now.coded_sent_bytes - before.coded_sent_bytes;
        counts.field_bytes_in += now.fields_received_bytes - before.fields_received_bytes;
        counts.coded_field_bytes_in += now.coded_received_bytes - before.coded_received_bytes;
    }
}
