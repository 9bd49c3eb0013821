//! The tables of an evaluation, added up as the figures need them.
//!
//! The table of responses is read once, in stretches; of each response some bytes are kept, because differences are taken
//! request by request and responses to one request can lie far apart.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_measurement::histogram::Histogram;
use assay_record::spe::{
    ExchangeRow, ResponseError, ResponseRow, SpeDir, Verdict, for_each_response, is_readable, read_exchanges,
    read_listeners,
};

use crate::ReportError;

const NONE_US: u32 = u32::MAX;
/// Last second that is charted: a year.
const LAST_SECOND: i64 = 31_557_600;

/// A response, as far as requests are compared by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResponseSample {
    pub request: u64,
    pub target: u16,
    pub place: u8,
    pub status: Option<u16>,
    response_us: u32,
}

impl ResponseSample {
    /// Response time; none: there was no whole response.
    pub(super) fn response_us(&self) -> Option<f64> {
        (self.response_us != NONE_US).then(|| f64::from(self.response_us))
    }
}

/// Sums of one target.
#[derive(Default)]
pub(super) struct TargetSums {
    pub verdicts: BTreeMap<&'static str, u64>,
    pub errors: BTreeMap<&'static str, u64>,
    pub requested: u64,
    pub dropped: u64,
    pub not_kept: ExcludedResponses,
    /// Of requests whose client left before it had its response.
    pub cancelled: ExcludedResponses,
    /// Of requests that the proxy was never sent, because their bodies were not kept or direct's response was not whole.
    pub unsent: ExcludedResponses,
    /// Of these cancelled requests, the ones that it was never sent.
    pub cancelled_unsent: ExcludedResponses,
    pub delivered: u64,
    pub body_bytes: u64,
    pub response: Histogram,
    pub connect: Histogram,
    pub first_byte: Histogram,
    pub transfer: Histogram,
    /// By the second of the request: sum of response times and how many.
    pub seconds: BTreeMap<u32, (u64, u64)>,
}

/// Responses that cannot be compared with direct's, and what of them is on both sides: figures that are relative to direct's leave
/// these requests out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExcludedResponses {
    pub count: u64,
    /// Bytes of bodies that the proxy sent for them.
    pub body_bytes: u64,
    pub direct_bytes: u64,
    /// Number of these that direct delivered.
    pub direct_delivered: u64,
}

/// Traffic of the Collector with one target.
#[derive(Debug, Clone, Default)]
pub(super) struct ListenerSums {
    pub requests: u64,
    pub bytes_out: u64,
    pub late_max_us: u64,
    /// Bytes by second.
    pub seconds: BTreeMap<u32, u64>,
}

/// Response times at the Collector itself.
#[derive(Debug, Default)]
pub(super) struct ReplayPaces {
    /// Responses fetched from the origin.
    pub fetched: Histogram,
    /// Recordings, sent to proxies.
    pub replayed: Histogram,
    /// Differences between the two for the same request of a client, whichever took longer.
    pub differences: Histogram,
}

impl ReplayPaces {
    fn from_rows(rows: &[ExchangeRow]) -> Self {
        let mut paces = Self::default();
        let mut fetched: HashMap<u64, u64> = HashMap::new();
        for row in rows.iter().filter(|row| row.source == "fetched") {
            paces.fetched.record(row.response_us);
            row.request.map(|number| fetched.entry(number).or_insert(row.response_us));
        }
        for row in
            rows.iter().filter(|row| row.listener > 0 && (row.source == "replayed" || row.source == "joined"))
        {
            paces.replayed.record(row.response_us);
            if let Some(original_us) = row.request.and_then(|number| fetched.get(&number)) {
                paces.differences.record(original_us.abs_diff(row.response_us));
            }
        }
        paces
    }
}

/// Everything that was in the tables.
pub(super) struct EvaluationData {
    pub sums: Vec<TargetSums>,
    /// None: there is no such table.
    pub listeners: Option<Vec<ListenerSums>>,
    /// None: the Collector kept no log.
    pub paces: Option<ReplayPaces>,
    /// By request, then by target.
    pub samples: Vec<ResponseSample>,
    pub tunnels: u64,
    /// Some response differs, or did not come.
    pub differs: bool,
    /// Requests, each with a target whose response could not be compared.
    not_kept: BTreeSet<(u64, u16)>,
    /// Requests, each with a proxy that was never sent it.
    unsent: BTreeSet<(u64, u16)>,
    /// Requests to which direct's response was not whole, cancelled ones among them. Not all of them are sent to proxies.
    incomplete: BTreeSet<u64>,
    /// Incomplete requests, each with a proxy that was sent it.
    incomplete_sent: BTreeSet<(u64, u16)>,
    /// Requests whose client left before it had its response: direct has no time, and those of the others are of no use alone.
    pub cancelled: BTreeSet<u64>,
    /// Tables that could not be read, a sentence each.
    pub missing: Vec<String>,
    /// Time of the last request, in microseconds.
    pub last_us: i64,
}

/// Whether a row says that a proxy was not sent a request whose body was not kept for it: the proxy has no part in that. One that was
/// dropped because the proxy is slow is missing from what it delivered.
fn is_unsent(row: &ResponseRow) -> bool {
    let has_nothing = row.status.is_none() && row.error.is_none();
    row.target > 0 && row.verdict == Verdict::NotCompared && has_nothing
}

/// Reads the tables. One that is not there is no error: what needs it is left out, and that is said.
pub(super) fn read(dir: &SpeDir, targets: usize) -> Result<EvaluationData, ReportError> {
    let mut data = EvaluationData {
        sums: (0..targets).map(|_| TargetSums::default()).collect(),
        listeners: None,
        paces: None,
        samples: Vec::new(),
        tunnels: 0,
        differs: false,
        not_kept: BTreeSet::new(),
        unsent: BTreeSet::new(),
        incomplete: BTreeSet::new(),
        incomplete_sent: BTreeSet::new(),
        cancelled: BTreeSet::new(),
        missing: Vec::new(),
        last_us: 0,
    };
    let (responses, listeners) = (dir.responses_path(), dir.listeners_path());
    if is_readable(&responses) {
        for_each_response(&responses, |row| {
            data.add_row(&row);
            Ok::<_, ReportError>(())
        })?;
        if !data.incomplete.is_empty() {
            data.reset(targets);
            for_each_response(&responses, |row| {
                data.add_row(&row);
                Ok::<_, ReportError>(())
            })?;
        }
        let are_some_left_out =
            [&data.not_kept, &data.unsent].into_iter().any(|requests| !requests.is_empty());
        if are_some_left_out || !data.incomplete.is_empty() {
            for_each_response(&responses, |row| {
                data.exclude(&row);
                Ok::<_, ReportError>(())
            })?;
        }
    } else {
        data.missing.push(
            "There is no responses.parquet: the evaluation goes on, or was cut off, and of its responses nothing is known.".into(),
        );
    }
    if is_readable(&listeners) {
        let mut sums = vec![ListenerSums::default(); targets];
        for row in read_listeners(&listeners).map_err(ReportError::from)? {
            let Some(listener) = sums.get_mut(usize::from(row.listener)) else { continue };
            listener.requests += row.requests;
            listener.bytes_out += row.bytes_out;
            listener.late_max_us = listener.late_max_us.max(row.late_max_us);
            *listener.seconds.entry(row.at_s).or_default() += row.bytes_out;
        }
        data.listeners = Some(sums);
    } else {
        data.missing.push(
            "There is no listeners.parquet: what proxies received from the Collector, and saved, is not known."
                .into(),
        );
    }
    let exchanges = dir.exchanges_path();
    if is_readable(&exchanges) {
        data.paces = Some(ReplayPaces::from_rows(&read_exchanges(&exchanges).map_err(ReportError::from)?));
    }
    data.samples.sort_unstable();
    Ok(data)
}

impl EvaluationData {
    /// Forgets what was taken, but which requests were cancelled or had no whole response: rows come in the order in which they
    /// ended, so that direct's can be the last of a request.
    fn reset(&mut self, targets: usize) {
        self.sums = (0..targets).map(|_| TargetSums::default()).collect();
        self.samples.clear();
        self.not_kept.clear();
        self.unsent.clear();
        self.tunnels = 0;
    }

    fn add_row(&mut self, row: &ResponseRow) {
        if row.method == "CONNECT" {
            self.tunnels += u64::from(row.target == 0);
            return;
        }
        let Some(sums) = self.sums.get_mut(usize::from(row.target)) else { return };
        *sums.verdicts.entry(row.verdict.name()).or_default() += 1;
        self.differs |= row.verdict.is_mismatch() || row.verdict == Verdict::NoResponse;
        if row.verdict == Verdict::Dropped {
            sums.dropped += 1;
            return;
        }
        if is_unsent(row) {
            self.unsent.insert((row.request, row.target));
            return;
        }
        if row.target == 0 && row.error.is_some() {
            self.incomplete.insert(row.request);
        } else if self.incomplete.contains(&row.request) {
            self.incomplete_sent.insert((row.request, row.target));
        }
        sums.requested += 1;
        if row.target == 0 && row.error == Some(ResponseError::ClientGone) {
            self.cancelled.insert(row.request);
        }
        let excluded = match row.verdict {
            Verdict::NotKept => {
                self.not_kept.insert((row.request, row.target));
                Some(&mut sums.not_kept)
            }
            _ if row.target > 0 && self.cancelled.contains(&row.request) => Some(&mut sums.cancelled),
            _ => None,
        };
        let is_compared = excluded.is_none();
        match excluded {
            Some(excluded) => {
                excluded.count += 1;
                excluded.body_bytes += row.body_bytes;
            }
            None => sums.body_bytes += row.body_bytes,
        }
        if let Some(error) = row.error {
            *sums.errors.entry(ResponseError::name(error)).or_default() += 1;
        }
        let response_us = row.response_us().filter(|_| is_compared && row.verdict != Verdict::NoResponse);
        let kept = response_us
            .map_or(NONE_US, |us| u32::try_from(us.max(0)).unwrap_or(NONE_US - 1).min(NONE_US - 1));
        self.samples.push(ResponseSample {
            request: row.request,
            target: row.target,
            place: row.place,
            status: row.status,
            response_us: kept,
        });
        self.last_us = self.last_us.max(row.at_us);
        if kept == NONE_US {
            return;
        }
        sums.delivered += 1;
        sums.response.record(kept.into());
        let parts = [
            (&mut sums.connect, row.connect_us),
            (&mut sums.first_byte, row.first_byte_us),
            (&mut sums.transfer, row.transfer_us),
        ];
        for (histogram, us) in parts {
            if let Some(us) = us {
                histogram.record(us.max(0).unsigned_abs());
            }
        }
        let second = row.at_us.max(0) / 1_000_000;
        if second < LAST_SECOND {
            let (sum, count) = sums.seconds.entry(second as u32).or_default();
            *sum += u64::from(kept);
            *count += 1;
        }
    }

    /// Notes the direct response where others' responses could not be compared with it.
    fn exclude(&mut self, direct: &ResponseRow) {
        if direct.target != 0 || direct.method == "CONNECT" {
            return;
        }
        let is_delivered = direct.verdict != Verdict::NoResponse && direct.response_us().is_some();
        for &(_, target) in self.not_kept.range((direct.request, 0)..=(direct.request, u16::MAX)) {
            let Some(sums) = self.sums.get_mut(usize::from(target)) else { continue };
            sums.not_kept.direct_bytes += direct.body_bytes;
            sums.not_kept.direct_delivered += u64::from(is_delivered);
        }
        let (is_cancelled, is_incomplete) =
            (self.cancelled.contains(&direct.request), self.incomplete.contains(&direct.request));
        for (target, sums) in (1..).zip(self.sums.iter_mut().skip(1)) {
            let request = (direct.request, target);
            sums.cancelled.direct_bytes += if is_cancelled { direct.body_bytes } else { 0 };
            let is_unsent = self.unsent.contains(&request);
            if !is_unsent && (!is_incomplete || self.incomplete_sent.contains(&request)) {
                continue;
            }
            let unsent = if is_cancelled { &mut sums.cancelled_unsent } else { &mut sums.unsent };
            unsent.count += 1;
            unsent.direct_bytes += direct.body_bytes;
            unsent.direct_delivered += u64::from(is_delivered);
        }
    }

    /// Samples of one request after the other.
    pub(super) fn by_request(&self) -> impl Iterator<Item = &[ResponseSample]> {
        self.samples.chunk_by(|one, other| one.request == other.request)
    }

    /// Status of the Collector's response to a request.
    pub(super) fn direct_status(&self, request: u64) -> Option<u16> {
        let first = self.samples.partition_point(|sample| sample.request < request);
        self.samples.get(first).filter(|found| found.request == request && found.target == 0)?.status
    }
}
