//! Counters of robots and of origins. Everything here adds up.

use std::collections::BTreeMap;

use crate::counts;
use crate::declared::Metric;
use crate::error_kind::ErrorKind;

const fn by_outcome(outcome: &'static str) -> Metric {
    let help = "Completed basic requests (plain GETs) by outcome, as responses show it.";
    Metric::counter("basic_requests").with("outcome", outcome, help)
}

const fn bytes_by_outcome(outcome: &'static str) -> Metric {
    let help = "Body bytes of completed basic requests by outcome.";
    Metric::counter("basic_body").with("outcome", outcome, help)
}

const fn by_side(metric: Metric, side: &'static str, help: &'static str) -> Metric {
    metric.with("side", side, help)
}

const fn opened(side: &'static str) -> Metric {
    let help = "Connections opened by robots, and accepted by origins.";
    by_side(Metric::counter("connections_opened"), side, help)
}

const fn closed(side: &'static str) -> Metric {
    by_side(Metric::counter("connections_closed"), side, "Connections closed, by whichever end.")
}

const fn handshakes(side: &'static str, session: &'static str) -> Metric {
    let help =
        "TLS handshakes by the session that they began: a new one (full), or an earlier one (resumed).";
    Metric::counter("tls_handshakes").with("side", side, help).with("session", session, help)
}

const fn received(side: &'static str) -> Metric {
    by_side(Metric::counter("received"), side, "Bytes read from sockets, heads included.")
}

const fn sent(side: &'static str) -> Metric {
    by_side(Metric::counter("sent"), side, "Bytes written to sockets, heads included.")
}

const fn streams(side: &'static str) -> Metric {
    by_side(Metric::counter("streams_opened"), side, "Streams opened on connections of HTTP/2.")
}

const fn resets(side: &'static str) -> Metric {
    by_side(Metric::counter("streams_reset"), side, "Streams of HTTP/2 that the target reset.")
}

const fn stalls(side: &'static str) -> Metric {
    let help = "Times that a window of HTTP/2 kept data back.";
    by_side(Metric::counter("flow_stalls"), side, help)
}

const fn fields_sent(side: &'static str) -> Metric {
    let help = "Names and values of fields sent in HTTP/2, before HPACK.";
    by_side(Metric::counter("sent_fields"), side, help)
}

const fn coded_fields_sent(side: &'static str) -> Metric {
    by_side(Metric::counter("sent_coded_fields"), side, "Fields sent in HTTP/2, as HPACK coded them.")
}

counts! {
    /// Counts of the robots' side. An xact belongs to the phase it was due in and to the second in which the
    /// counted thing happened (due, sent, finished).
    pub struct RobotCounts {
        // Known from the stream alone, counted when a launch comes due.
        due: "requests due (a page counts its embedded objects when it comes due)",
            metric Metric::counter("requests_due"), json due;
        due_basic: "basic requests (plain GETs) due", metric Metric::counter("basic_requests_due");
        due_basic_bytes: "body bytes of basic requests due, as the origin would send them (coded, where it would code the body)",
            metric Metric::counter("basic_body_due");
        offered_hits: "basic requests due that are revisits of cachable objects: offered hits",
            metric Metric::counter("offered_hits");
        offered_hit_bytes: "body bytes of offered hits", metric Metric::counter("offered_hits_body");
        working_set: "objects that came due for the first time before the working set froze and may be requested again; the sum up to a moment is its size then",
            metric Metric::counter("working_set_objects"), json #[serde(default)] working_set;
        working_set_bytes: "body bytes of these objects", metric Metric::counter("working_set_body"),
            json #[serde(default)] working_set_bytes;
        due_digest: wrapping "wrapping sum of the digests of the identities that came due; the same for every proxy";

        // What became of them.
        sent: "requests sent, at least in part", metric Metric::counter("requests_sent"), json requests;
        on_reused_connection: "requests written on a connection that had carried one before, pipelined ones included; over `sent`, the connection reuse ratio",
            metric Metric::counter("requests_on_reused_connection"), json #[serde(default)] on_reused_connection;
        unsent: "requests due, but not sent by the end of their phase",
            metric Metric::counter("requests_unsent"), json unsent;
        unsent_late: "unsent requests that Assay itself handled too late: they say nothing about the target",
            metric Metric::counter("requests_unsent_late"), json #[serde(default)] unsent_late;
        not_reached: "embedded objects whose page failed or whose link was not seen before the phase ended",
            metric Metric::counter("requests_not_reached"), json not_reached;
        completed: "requests completed without error", metric Metric::counter("requests_completed"), json completed;
        retries: "requests sent again on another connection: a reused one turned out to be closed, or one ended before a pipelined request had its turn",
            metric Metric::counter("requests_retried"), json retries;
        pages: "pages completed, embedded objects included", metric Metric::counter("pages_completed"), json pages;

        // Outcomes of completed basic xacts; bytes are body bytes as they were received: coded, where the body was.
        basic: "completed basic requests (plain GETs); hit ratios are theirs", json basic;
        basic_bytes: "body bytes of completed basic requests";
        hits: "basic requests served from the store, as the response shows it", metric by_outcome("hit");
        hit_bytes: "body bytes of hits", metric bytes_by_outcome("hit");
        collapsed: "basic requests that joined another's fetch", metric by_outcome("collapsed");
        collapsed_bytes: "body bytes of those that joined another's fetch", metric bytes_by_outcome("collapsed");
        revalidated: "basic requests confirmed by the origin, as the response shows it", metric by_outcome("revalidated");
        revalidated_bytes: "body bytes of those that the origin confirmed", metric bytes_by_outcome("revalidated");
        misses: "basic requests that the origin responded to", metric by_outcome("miss");
        miss_bytes: "body bytes of misses", metric bytes_by_outcome("miss");
        unsure_outcomes: "basic requests, counted among hits, collapsed or misses, of which the error of the machines' clocks leaves open whether the response was made before the request was sent",
            metric Metric::counter("unsure_outcomes"), json unsure_outcomes;
        ideal_hits: "what an infinite cache with the target's declared behaviour would have hit of the requests that it was asked about",
            metric Metric::counter("ideal_hits");
        ideal_hit_bytes: "body bytes of ideal hits", metric Metric::counter("ideal_hits_body");
        ideal_basic: "completed basic requests that the ideal cache was asked about; over a run, all of them",
            metric Metric::counter("ideal_requests");
        ideal_basic_bytes: "body bytes of the requests that the ideal cache was asked about",
            metric Metric::counter("ideal_requests_body");

        // Traffic.
        body_bytes_in: "body bytes that robots received", metric Metric::counter("received_body");
        wire_bytes_in: "bytes read from sockets", metric received("robots");
        wire_bytes_out: "bytes written to sockets", metric sent("robots");
        connections_opened: "connections opened", metric opened("robots");
        connections_closed: "connections closed, by either side", metric closed("robots");

        // HTTP/2 only.
        streams_opened: "streams opened on connections of HTTP/2; over `connections_opened`, streams a connection",
            metric streams("robots"), json #[serde(default)] streams_opened;
        streams_reset: "streams that the target reset", metric resets("robots"), json #[serde(default)] streams_reset;
        goaways: "GOAWAY frames that the target sent", metric Metric::counter("goaways"), json #[serde(default)] goaways;
        flow_stalls: "times that a window of the target kept back the body of a request",
            metric stalls("robots"), json #[serde(default)] flow_stalls;
        field_bytes_out: "names and values of the fields of requests, before HPACK", metric fields_sent("robots");
        coded_field_bytes_out: "the same as they were coded by HPACK", metric coded_fields_sent("robots");
        field_bytes_in: "names and values of the fields of responses, after HPACK was undone";
        coded_field_bytes_in: "the same as the target coded them";
        tls_full: "TLS handshakes of robots that began a new session",
            metric handshakes("robots", "full"), json #[serde(default)] tls_full;
        tls_resumed: "TLS handshakes of robots that resumed an earlier session",
            metric handshakes("robots", "resumed"), json #[serde(default)] tls_resumed;

        // Completed xacts that are no plain objects; classes of their own, and not basic (coded ones can be).
        parts: "responses with parts of an object (206)", special "parts and codings" "206";
        multiparts: "responses with more than one part of an object", special "parts and codings" "multipart";
        incomplete_parts: "responses with less than the parts that were requested and are there, which is allowed (RFC 9110, 15.3.7)",
            special "parts and codings" "206, less than requested";
        unchecked_parts: "parts of a coded body whose bytes could not be compared: the target has coded it itself, or it is large",
            special "parts and codings" "206, not compared";
        unchecked_lengths: "responses to HEAD that announce another length in gzip than the origin's body has: the target may have coded it itself",
            special "parts and codings" "lengths, not compared";
        coded: "responses with a coded body (gzip), decoded and compared", special "parts and codings" "coded";
        unsatisfied: "requests for parts none of which the object has (416)", special "parts and codings" "416";
        redirected: "completed after one redirection or more", special "redirections and logins" "redirected";
        refused: "refused: 401 to a robot that is nobody, 401 or 407 to one with a wrong password, 406, more redirections than a robot follows",
            special "redirections and logins" "refused";
        logged_in: "completed after the robot was challenged (401, 407) and sent its credentials";
        uninvited: "requests with `Expect: 100-continue` that got 417 and were repeated without it";
        faults_passed: "met a fault on purpose that the target passed on", special "faults on purpose" "passed on";
        faults_hidden: "were to meet a fault on purpose, and completed as if there were none",
            special "faults on purpose" "hidden";
        faults_omitted: "were to meet a fault on purpose, but their responses name no request: origins inject faults only into requests with `X-Assay`",
            special "faults on purpose" "not injected";
        broken_off: "broken off by the robot, on purpose", special "broken off on purpose" "by robots";
        broken_off_by_origin: "broken off by the origin, on purpose", special "broken off on purpose" "by origins";

        reloads_from_store: "reloads that were served from the store, by a target that does not declare to pass them on",
            metric Metric::counter("reloads_from_store"), special "behaviour of the target" "reloads from the store";

        unconfirmed_hits: "hits whose `Expires` had passed, or that say `Vary: *`, from a target that does not show whether an origin has confirmed them since; if the target validated nothing in the whole run, the summary counts them as `stale` instead",
            metric Metric::counter("unconfirmed_hits"), special "behaviour of the target" "hits, confirmed or stale";

        unattributed: "completed requests whose responses name no request: the target drops or changes `X-Assay` in what it sends to origins, or fetches on its own, so that joined fetches and validations cannot be told from misses, nor variants apart",
            metric Metric::counter("unattributed"), special "behaviour of the target" "of no request";

        kept_after_post: "basic requests served from the store with a response that had been stored before a POST or PUT to its URL succeeded; counted where the target is to drop it then (RFC 9111, 4.4)",
            metric Metric::counter("hits_kept_after_post"), special "behaviour of the target" "hits, stored before a POST";

        compared_fields: "responses of which fields for caches (Cache-Control, Expires, Last-Modified) were compared with those that the origin sent, a sample of all",
            special "behaviour of the target" "fields for caches, compared";

        // What robots do besides.
        cookies_taken: "cookies that robots took from responses and keep";
        cookies_sent: "requests with cookies";
        invited: "request bodies sent when 100 had come";
        impatient: "request bodies sent because no word had come in time";
        held: "embedded objects that robots had in a cache of their own: these never come due";
        substituted: "requests sent on an idle connection to an address that stands for their own";

        joined: "requests completed whose times were joined with when the target waited for a processor: those that can have met that are among the disturbed ones";
        dropped_samples: "samples that could not be kept (a full xact log queue): the xact log has holes, and the report says so; counts and times have none";
    }
    beside {
        /// Ended in an error.
        errors: BTreeMap<ErrorKind, u64>,
        /// Completed xacts by method (`xact::METHODS`).
        by_method: BTreeMap<String, u64>,
        /// Completed xacts by request type (`xact::TYPES`).
        by_type: BTreeMap<String, u64>,
        /// TLS handshakes by version and cipher suite, as in `1.3 TLS_AES_256_GCM_SHA384`.
        by_tls: BTreeMap<String, u64>,
        /// Responses with a field for caches that is not as the origin sent it, by field; of `compared_fields`.
        changed_fields: BTreeMap<String, u64>,
        /// Completed xacts by status code.
        #[serde(with = "status_keys")]
        by_status: BTreeMap<u16, u64>,
    }
    json RobotRequests
    special RobotSpecial
}

counts! {
    /// Counts of the origins' side, by the phase that the request says it belongs to.
    pub struct OriginCounts {
        requests: "requests that origins received", metric Metric::counter("origin_requests"), json requests;
        responses: "requests responded to in full";
        not_modified: "responses of origins with 304",
            metric Metric::counter("origin_not_modified"), json not_modified;
        validations: "conditional requests that did not come from robots: the target's own validations",
            metric Metric::counter("origin_validations"), json validations;
        validated_basic: "the target's own validations whose response was a 304, for basic requests: hits that were really revalidations",
            metric Metric::counter("origin_validated_basic");
        validated_basic_bytes: "body bytes of the objects so confirmed";
        body_bytes_out: "body bytes that origins sent", metric Metric::counter("origin_sent_body"), json body_bytes;
        wire_bytes_in: "bytes read from sockets", metric received("origins");
        wire_bytes_out: "bytes written to sockets", metric sent("origins");
        connections_opened: "connections accepted", metric opened("origins");
        connections_closed: "connections closed", metric closed("origins");
        streams_opened: "streams opened on connections of HTTP/2", metric streams("origins"), json #[serde(default)] streams_opened;
        streams_reset: "streams that the target reset", metric resets("origins"), json #[serde(default)] streams_reset;
        flow_stalls: "times that a window of the target kept back the body of a response",
            metric stalls("origins"), json #[serde(default)] flow_stalls;
        field_bytes_out: "names and values of the fields of responses, before HPACK", metric fields_sent("origins");
        coded_field_bytes_out: "the same as they were coded by HPACK", metric coded_fields_sent("origins");
        field_bytes_in: "names and values of the fields of requests, after HPACK was undone";
        coded_field_bytes_in: "the same as the target coded them";
        tls_full: "TLS handshakes of origins that began a new session",
            metric handshakes("origins", "full"), json #[serde(default)] tls_full;
        tls_resumed: "TLS handshakes of origins that resumed an earlier session",
            metric handshakes("origins", "resumed"), json #[serde(default)] tls_resumed;
        tls_failed: "connections to origins that ended with an error of TLS, or in the middle of a handshake",
            metric Metric::counter("origin_tls_failed"), json #[serde(default)] tls_failed;
        refused: "requests to origins that were not HTTP, or for no object of this universe",
            metric Metric::counter("origin_refused"), json refused;
        broken: "connections that ended in the middle of a request or a response", json broken;
        written_late: "responses written half a millisecond or more after the moment up to which their delay was reported";

        // What a workload requests beyond plain objects.
        ranges: "responses with 206: a part, or several";
        multiparts: "responses with several parts in one body";
        unsatisfied: "responses with 416: the object has none of the bytes requested";
        redirects: "responses with 302, on purpose";
        challenges: "responses with 401: without credentials, or with wrong ones",
            special "redirections and logins" "challenges";
        wrong_credentials: "requests that named a user and did not prove it", special "redirections and logins" "disproven";
        authenticated: "requests whose user was proven", special "redirections and logins" "proven";
        cookies_set: "cookies in responses", special "redirections and logins" "cookies";
        coded: "responses in a content coding";
        unacceptable: "responses with 406: no coding that the client accepts";
        broken_off: "bodies broken off on purpose, as the response had said";
        fault_statuses: "faults on purpose: an error status";
        fault_resets: "faults on purpose: the connection was reset";
        fault_slow_starts: "faults on purpose: the first byte was late";
        fault_slow_bodies: "faults on purpose: the body was sent slowly";
        retried: "requests that met a fault on purpose and were made again within ten seconds",
            special "faults on purpose" "retried";
        continued: "request bodies that origins asked for with 100", special "uploads" "continued";
        expectations_refused: "responses with 417, on purpose: the request body was not wanted",
            special "uploads" "unwanted";
        wrong_uploads: "request bodies that were not what the robot sends",
            metric Metric::counter("origin_wrong_uploads");
        repeated_posts: "POST requests that robots sent once, and that came again",
            metric Metric::counter("origin_repeated_posts");
    }
    json OriginRequests
    special OriginSpecial
}

/// Status codes as texts: inside a tagged document (an event), JSON's keys are not turned into numbers.
mod status_keys {
    use std::collections::BTreeMap;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(map: &BTreeMap<u16, u64>, to: S) -> Result<S::Ok, S::Error> {
        let map: BTreeMap<String, u64> =
            map.iter().map(|(status, count)| (status.to_string(), *count)).collect();
        map.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u16, u64>, D::Error> {
        let map = BTreeMap::<String, u64>::deserialize(from)?;
        let number = |(status, count): (String, u64)| match status.parse() {
            Ok(status) => Ok((status, count)),
            Err(_) => Err(D::Error::custom(format!("{status:?} is not a status code"))),
        };
        map.into_iter().map(number).collect()
    }
}

impl RobotCounts {
    /// Number of xacts that ended in an error.
    pub fn error_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds errors of a kind, if there are any.
    pub fn add_errors(&mut self, kind: ErrorKind, errors: u64) {
        if errors > 0 {
            *self.errors.entry(kind).or_default() += errors;
        }
    }
}

impl OriginCounts {
    /// Faults on purpose of all kinds.
    pub fn faults(&self) -> u64 {
        self.fault_statuses + self.fault_resets + self.fault_slow_starts + self.fault_slow_bodies
    }
}
