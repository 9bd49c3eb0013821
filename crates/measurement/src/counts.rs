//! What is counted, on the robots' side and on the origins'. Everything here adds up by plain addition.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;

/// Counts of the robots' side. An xact belongs to the phase it was due in and to the second in which the
/// counted thing happened (due, sent, finished).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotCounts {
    // Known from the stream alone, counted when a launch comes due (a page counts its embedded objects too).
    /// Requests due.
    pub due: u64,
    /// Basic ones among them.
    pub due_basic: u64,
    /// Body bytes of those, as the origin would send them: coded, where it would code the body.
    pub due_basic_bytes: u64,
    /// Basic revisits of cachable objects: offered hits.
    pub offered_hits: u64,
    /// Body bytes of those.
    pub offered_hit_bytes: u64,
    /// Sum (wrapping) of the digests of the identities that came due; the same for every proxy.
    pub due_digest: u64,

    // What became of them.
    /// Sent at least in part.
    pub sent: u64,
    /// Due but not sent by the end of the phase.
    pub unsent: u64,
    /// Of those, the ones that Assay itself came to too late.
    pub unsent_late: u64,
    /// Embedded objects whose page failed, or whose link was not seen before the phase ended.
    pub not_reached: u64,
    /// Answered without error.
    pub completed: u64,
    /// Ended in an error.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Sent again on another connection: a reused one turned out to be closed, or one ended before a pipelined request
    /// had its turn.
    pub retries: u64,
    /// Completed pages (page and all embedded objects that were asked for).
    pub pages: u64,

    // Outcomes of completed basic xacts (plain GETs); bytes are body bytes as they were received: coded, where the body was.
    /// Completed basic xacts.
    pub basic: u64,
    /// Their bytes.
    pub basic_bytes: u64,
    /// Hits.
    pub hits: u64,
    /// Their bytes.
    pub hit_bytes: u64,
    /// Joined another's fetch.
    pub collapsed: u64,
    /// Their bytes.
    pub collapsed_bytes: u64,
    /// Confirmed by the origin, as far as the reply shows it.
    pub revalidated: u64,
    /// Their bytes.
    pub revalidated_bytes: u64,
    /// Made by the origin for this request.
    pub misses: u64,
    /// Their bytes.
    pub miss_bytes: u64,
    /// What an infinite cache with the proxy's declared behaviour would have hit, of the completed basic xacts.
    pub ideal_hits: u64,
    /// Their bytes.
    pub ideal_hit_bytes: u64,
    /// Completed basic xacts that ideal was asked about.
    pub ideal_basic: u64,
    /// Their bytes.
    pub ideal_basic_bytes: u64,

    // Traffic.
    /// Body bytes received.
    pub body_bytes_in: u64,
    /// All bytes read from sockets.
    pub wire_bytes_in: u64,
    /// All bytes written to sockets.
    pub wire_bytes_out: u64,
    /// Connections opened.
    pub connections_opened: u64,
    /// Connections closed, by either side.
    pub connections_closed: u64,
    /// Completed xacts by method (`xact::METHODS`).
    pub by_method: BTreeMap<String, u64>,
    /// Completed xacts by request type (`xact::TYPES`).
    pub by_type: BTreeMap<String, u64>,
    /// Completed xacts by status code.
    #[serde(with = "status_keys")]
    pub by_status: BTreeMap<u16, u64>,

    // Completed xacts that are no plain objects; classes of their own, and not basic (coded ones can be).
    /// Answered with parts of an object (206).
    pub parts: u64,
    /// Of those, answered with more than one part.
    pub multiparts: u64,
    /// Answered with a coded body (gzip), decoded and compared.
    pub coded: u64,
    /// Asked for parts that are not there, and told so (416).
    pub unsatisfied: u64,
    /// Answered after one redirection or more.
    pub redirected: u64,
    /// Refused: 401 or 407 to a robot that is nobody or has a wrong password, 406.
    pub refused: u64,
    /// Answered after the robot was asked who it is (401, 407) and said so.
    pub logged_in: u64,
    /// Asked whether the request's body may come, were told no (417), and were sent without asking.
    pub uninvited: u64,
    /// Met a fault on purpose that the target passed on.
    pub faults_passed: u64,
    /// Were to meet a fault on purpose, and were answered as if there were none.
    pub faults_hidden: u64,
    /// Broken off by the robot, on purpose.
    pub broken_off: u64,
    /// Broken off by the origin, on purpose.
    pub broken_off_by_origin: u64,

    // What robots do besides.
    /// Cookies that they took from replies and keep.
    pub cookies_taken: u64,
    /// Requests with cookies.
    pub cookies_sent: u64,
    /// Request bodies sent when 100 had come.
    pub invited: u64,
    /// Request bodies sent because no word had come in time.
    pub impatient: u64,
    /// Embedded objects that robots had in a cache of their own: these never come due.
    pub held: u64,
    /// Requests sent on an idle connection to an address that stands for their own.
    pub substituted: u64,

    /// Samples that could not be kept (a full xact log queue); positive makes the run invalid.
    pub dropped_samples: u64,
}

/// Counts of the origins' side, by the phase that the request says it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginCounts {
    /// Requests received.
    pub requests: u64,
    /// Answered in full.
    pub responses: u64,
    /// Answered with 304.
    pub not_modified: u64,
    /// Conditional requests that no robot had asked for: the proxy's own validations.
    pub validations: u64,
    /// Of those, answered with 304, for basic xacts: hits that were really revalidations.
    pub validated_basic: u64,
    /// Body bytes of the objects so confirmed.
    pub validated_basic_bytes: u64,
    /// Body bytes sent.
    pub body_bytes_out: u64,
    /// All bytes read from sockets.
    pub wire_bytes_in: u64,
    /// All bytes written to sockets.
    pub wire_bytes_out: u64,
    /// Connections accepted.
    pub connections_opened: u64,
    /// Connections closed.
    pub connections_closed: u64,
    /// Requests that were not HTTP, or for no object of this universe.
    pub refused: u64,
    /// Connections that ended in the middle of a request or a reply.
    pub broken: u64,

    // What a workload asks for beyond plain objects.
    /// Answered with 206: a part, or several.
    pub ranges: u64,
    /// Of those, with several parts in one body.
    pub multiparts: u64,
    /// Answered with 416: the object has none of the bytes asked for.
    pub unsatisfied: u64,
    /// Answered with 302, on purpose.
    pub redirects: u64,
    /// Answered with 401: who asks was not said, or not proven.
    pub challenges: u64,
    /// Of those, requests that named a user and did not prove it.
    pub wrong_credentials: u64,
    /// Requests whose user was proven.
    pub authenticated: u64,
    /// Cookies in replies.
    pub cookies_set: u64,
    /// Replies in a content coding.
    pub coded: u64,
    /// Answered with 406: no coding that the client accepts.
    pub unacceptable: u64,
    /// Bodies broken off on purpose, as the reply had said.
    pub broken_off: u64,
    /// Faults on purpose: an error status.
    pub fault_statuses: u64,
    /// Faults on purpose: the connection was reset.
    pub fault_resets: u64,
    /// Faults on purpose: the first byte was late.
    pub fault_slow_starts: u64,
    /// Faults on purpose: the body was sent slowly.
    pub fault_slow_bodies: u64,
    /// Requests that met a fault and were made again within ten seconds.
    pub retried: u64,
    /// Request bodies that were asked for with 100.
    pub continued: u64,
    /// Answered with 417, on purpose: the request body was not wanted.
    pub expectations_refused: u64,
    /// Request bodies that were not what the robot sends.
    pub wrong_uploads: u64,
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

macro_rules! add_fields {
    ($into:expr, $from:expr, $($field:ident),+ $(,)?) => { $($into.$field += $from.$field;)+ };
}

fn add_map<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key.clone()).or_default() += count;
    }
}

impl RobotCounts {
    /// Adds another's counts.
    pub fn merge(&mut self, from: &RobotCounts) {
        add_fields!(
            self,
            from,
            due,
            due_basic,
            due_basic_bytes,
            offered_hits,
            offered_hit_bytes,
            sent,
            unsent,
            unsent_late,
            not_reached,
            completed,
            retries,
            pages,
            basic,
            basic_bytes,
            hits,
            hit_bytes,
            collapsed,
            collapsed_bytes,
            revalidated,
            revalidated_bytes,
            misses,
            miss_bytes,
            ideal_hits,
            ideal_hit_bytes,
            ideal_basic,
            ideal_basic_bytes,
            body_bytes_in,
            wire_bytes_in,
            wire_bytes_out,
            connections_opened,
            connections_closed,
            parts,
            multiparts,
            coded,
            unsatisfied,
            redirected,
            refused,
            logged_in,
            uninvited,
            faults_passed,
            faults_hidden,
            broken_off,
            broken_off_by_origin,
            cookies_taken,
            cookies_sent,
            invited,
            impatient,
            held,
            substituted,
            dropped_samples,
        );
        self.due_digest = self.due_digest.wrapping_add(from.due_digest);
        add_map(&mut self.errors, &from.errors);
        add_map(&mut self.by_method, &from.by_method);
        add_map(&mut self.by_type, &from.by_type);
        add_map(&mut self.by_status, &from.by_status);
    }

    /// Number of xacts that ended in an error.
    pub fn error_total(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl OriginCounts {
    /// Adds another's counts.
    pub fn merge(&mut self, from: &OriginCounts) {
        add_fields!(
            self,
            from,
            requests,
            responses,
            not_modified,
            validations,
            validated_basic,
            validated_basic_bytes,
            body_bytes_out,
            wire_bytes_in,
            wire_bytes_out,
            connections_opened,
            connections_closed,
            refused,
            broken,
            ranges,
            multiparts,
            unsatisfied,
            redirects,
            challenges,
            wrong_credentials,
            authenticated,
            cookies_set,
            coded,
            unacceptable,
            broken_off,
            fault_statuses,
            fault_resets,
            fault_slow_starts,
            fault_slow_bodies,
            retried,
            continued,
            expectations_refused,
            wrong_uploads,
        );
    }
}
