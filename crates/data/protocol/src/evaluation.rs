//! What the Collector and the Multiplier report while they run.

use assay_measurement::series;
use serde::{Deserialize, Serialize};

/// What the Collector says once a second: counters since its start, and what each listener did in that second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectorInterval {
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// Since the start.
    pub counters: CollectorCounters,
    /// A row for each listener at which something happened.
    pub listeners: Vec<ListenerRow>,
}

series! {
    /// Counters of the Collector, since its start.
    #[derive(Copy, Eq)]
    pub struct CollectorCounters {
        requests: u64 = "requests, tunnels among them, at all listeners";
        connects: u64 = "tunnels";
        refused: u64 = "requests that could not be understood, or were too large";
        dismissed_connections: u64 = "connections of proxies that were ended to make room for others of the same proxy";
        client_gone: u64 = "connections that ended while a response was being sent";
        origin_requests: u64 = "requests sent to origins";
        confirmations: u64 = "of these, those that validated a recording";
        origin_errors: u64 = "of these, those that failed, or whose response broke off";
        not_allowed: u64 = "fetches from origins and tunnels that were not made, because nothing may be requested at their addresses";
        given_up: u64 = "responses that were broken off, because the response of a client would have had to wait for them";
        not_kept: u64 = "recordings that could not be kept until every listener had requested them";
        repeated: u64 = "requests sent to origins once more because of that";
        evictions: u64 = "recordings thrown away to make room";
        recordings: u64 = "recordings held now, in memory or on disk";
        origin_bytes: u64 = "bytes of bodies that came from origins";
        memory_bytes: u64 = "bytes that recordings take in memory now, overhead included";
        peak_recordings_bytes: u64 = "the most that they took in memory";
        disk_bytes: u64 = "bytes of recordings on disk now";
        peak_memory_bytes: u64 = "most resident memory of the process so far, in bytes";
    }
}

/// Counters of the Multiplier, since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MultiplierCounters {
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// Connections of clients.
    pub clients: u64,
    /// Of these, open now.
    pub open_clients: u64,
    /// Requests of clients.
    pub requests: u64,
    /// Tunnels among them.
    pub connects: u64,
    /// What came of those that were to be opened.
    pub opened: OpenedCounters,
    /// Requests that could not be understood.
    pub refused: u64,
    /// Requests that got 503, because as many were under way as may be, or as many tunnels. They are not among those refused.
    pub no_room: u64,
    /// Clients that took too long with a request or a response; their connections were ended.
    pub slow_clients: u64,
    /// Connections of clients that were ended to make room for others.
    pub dismissed_clients: u64,
    /// Requests whose client left before it had its response.
    pub client_gone: u64,
    /// Responses that could not be written down in time.
    pub responses_lost: u64,
    /// Most resident memory of the process so far, in bytes.
    pub peak_memory_bytes: u64,
    /// Each target, `direct` first.
    pub targets: Vec<TargetCounters>,
}

/// What came of the tunnels that the Multiplier was to open, since the start: each is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenedCounters {
    /// Opened: the client has accepted the certificate.
    pub opened: u64,
    /// The client did not accept the certificate: it does not trust the authority, or knows the server's own certificate.
    pub certificate_refused: u64,
    /// The client named another server (SNI) than that of the tunnel, or none.
    pub name_refused: u64,
    /// The client did not speak TLS.
    pub not_tls: u64,
    /// No version, cipher suite or application protocol in common.
    pub no_common_parameters: u64,
    /// The handshake failed in another way: the client has left, or did not end it in time.
    pub failed: u64,
}

/// What one target did, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetCounters {
    /// Requests sent to it.
    pub requested: u64,
    /// Whole responses.
    pub responses: u64,
    /// Of these, the same as the Collector's.
    pub matching: u64,
    /// Of these, others than the Collector's.
    pub mismatches: u64,
    /// Of these, not compared: the Collector had not kept what the client got.
    pub not_kept: u64,
    /// Requests without a whole response.
    pub no_response: u64,
    /// Requests that were not sent: too many were waiting.
    pub dropped: u64,
    /// Waiting or under way now.
    pub waiting: u64,
    /// Sum of the response times of whole responses but those of `not_kept`, in microseconds.
    pub response_sum_us: u64,
    /// Bytes of bodies that it sent.
    pub body_bytes: u64,
}

series! {
    /// A request at a listener of the Collector, and its response.
    #[derive(Eq)]
    pub struct ExchangeRow {
        at_us: u64 = "when the request came, in microseconds since the start";
        listener: u16 = "whose listener: index into `targets` of spe.json; 0: the Multiplier's";
        request: Option<u64> = "number of the client's request that it belongs to; null: the proxy sent none";
        client: String = "address that it came from";
        method: String = "method of the request";
        url: String = "URL of the request";
        status: Option<u16> = "status of the response; null: there was none";
        source: String = "`fetched` from the origin for this request, `replayed` from a recording, `joined` one that was under way, or \
                        the Collector's `own` message";
        response_us: u64 = "from the request to the end of the response, in microseconds";
        body_bytes: u64 = "bytes of the response's body";
        content_type: String = "content type of the response; empty: it has none";
    }
}

series! {
    /// One second at one listener of the Collector.
    #[derive(Copy, Eq)]
    pub struct ListenerRow {
        at_s: u32 = "the second, since the start";
        listener: u16 = "whose listener: index into `targets` of spe.json; 0: the Multiplier's";
        requests: u64 = "requests that came in";
        fetches: u64 = "of these, those that made the Collector fetch from an origin";
        replays: u64 = "served from a recording";
        joined: u64 = "joined a fetch that was under way";
        validations: u64 = "answered 304";
        bytes_in: u64 = "bytes of request bodies";
        bytes_out: u64 = "bytes of bodies sent to that listener";
        late_max_us: u64 = "how late the latest chunk of a replay was written, in microseconds";
    }
}
