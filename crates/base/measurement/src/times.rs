//! The times of one class of xacts: recorded one by one by robots ([`TimesRecorder`]), and added up from intervals
//! ([`TimesSum`]); all of them, and once more those that Assay disturbed.

use crate::censored::Censored;
use crate::histogram::{Histogram, SparseHistogram};
use crate::interval::{Disturbance, Disturbed, Times};
use crate::own_error::{DISTURBED_US, OwnError, Unrecorded};

/// A span of time in the life of an xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanOf {
    /// `last_byte − due`, less what it was sent later, up to [`BEGUN_LATE_US`](crate::own_error::BEGUN_LATE_US).
    Response,
    /// `last_byte − sent`.
    Service,
    /// `first_byte − sent`.
    FirstByte,
}

/// The same time twice, in microseconds: as it was seen, and the least that it can have been.
pub type SeenAndLeast = [u64; 2];

/// Relation of an xact to the burst that a delay of other xacts left behind; the delay in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Burst {
    /// Held back with them, or met the burst that followed.
    Met(u64),
    /// In flight meanwhile, and met the burst only if the target happened to be busy.
    Passing(u64),
}

/// Records the times of one class of xacts.
///
/// Each xact is recorded in one place, whether it was disturbed or not: all times together are put together once for an
/// interval, not for each xact.
#[derive(Debug, Default, Clone)]
pub struct TimesRecorder {
    /// Response, service and first-byte times of those that were not disturbed.
    undisturbed: [Histogram; 3],
    /// Of the disturbed ones; none: there are none.
    disturbed: Option<Box<DisturbedSum>>,
}

impl TimesRecorder {
    /// One in which nothing was recorded, with room for undisturbed times as long as the longest in this one.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { undisturbed: self.undisturbed.each_ref().map(Histogram::emptied), disturbed: None }
    }

    /// An xact that Assay did not disturb, with its response time.
    pub fn record_response(&mut self, response_us: u64) {
        self.undisturbed[0].record(response_us);
    }

    /// The response time of an xact of which Assay's delays, before it was sent, can have been so much.
    pub fn record_response_delayed(&mut self, response_us: u64, delayed_us: u64) {
        if delayed_us < DISTURBED_US {
            return self.record_response(response_us);
        }
        let [seen, least] = &mut self.disturbed.get_or_insert_default().response;
        seen.record(response_us);
        least.record(response_us.saturating_sub(delayed_us));
    }

    /// The service time and the time to the first byte of an xact that Assay did not disturb.
    pub fn record_after_sent(&mut self, service_us: u64, ttfb_us: u64) {
        self.undisturbed[1].record(service_us);
        self.undisturbed[2].record(ttfb_us);
    }

    /// An xact that Assay disturbed.
    pub fn record_disturbed(
        &mut self,
        response: SeenAndLeast,
        service: SeenAndLeast,
        ttfb: SeenAndLeast,
        aftermath: Option<Burst>,
    ) {
        let sum = self.disturbed.get_or_insert_default();
        match aftermath {
            Some(Burst::Met(us)) => sum.aftermath.record(us),
            Some(Burst::Passing(us)) => sum.passing.record(us),
            None => {}
        }
        for (histograms, values) in
            [(&mut sum.response, response), (&mut sum.service, service), (&mut sum.ttfb, ttfb)]
        {
            histograms.iter_mut().zip(values).for_each(|(histogram, us)| histogram.record(us));
        }
    }

    /// Forgets xacts that were recorded as not disturbed, all of which are in `part`.
    pub fn take_back(&mut self, part: &TimesRecorder) {
        for (all, part) in self.undisturbed.iter_mut().zip(&part.undisturbed) {
            *all = all.without(part);
        }
    }

    /// Adds what another has recorded.
    pub fn merge(&mut self, from: &TimesRecorder) {
        self.undisturbed.iter_mut().zip(&from.undisturbed).for_each(|(into, from)| into.merge(from));
        if let Some(from) = &from.disturbed {
            self.disturbed.get_or_insert_default().merge(from);
        }
    }

    /// As an interval keeps them: all, and once more the disturbed ones.
    pub fn to_times(&self) -> Times {
        let Some(sum) = &self.disturbed else {
            let [response, service, ttfb] = self.undisturbed.each_ref().map(Histogram::to_sparse);
            return Times { response, service, ttfb, disturbed: Disturbed::default() };
        };
        let [response, service, ttfb] = &self.undisturbed;
        let all = |undisturbed: &Histogram, [seen, _]: &[Histogram; 2]| {
            let mut all = undisturbed.clone();
            all.merge(seen);
            all.to_sparse()
        };
        let disturbance =
            |[seen, least]: &[Histogram; 2]| Disturbance { seen: seen.to_sparse(), least: least.to_sparse() };
        Times {
            response: all(response, &sum.response),
            service: all(service, &sum.service),
            ttfb: all(ttfb, &sum.ttfb),
            disturbed: Disturbed {
                response: disturbance(&sum.response),
                service: disturbance(&sum.service),
                ttfb: disturbance(&sum.ttfb),
                aftermath: sum.aftermath.to_sparse(),
                passing: sum.passing.to_sparse(),
            },
        }
    }
}

/// The times of one class of xacts over any number of intervals.
#[derive(Debug, Default, Clone)]
pub struct TimesSum {
    /// Response times: from when requests were due.
    pub response: Histogram,
    /// Service times: from when requests were sent.
    pub service: Histogram,
    /// Times until the first byte.
    pub ttfb: Histogram,
    /// Of the disturbed ones; none: there are none.
    disturbed: Option<Box<DisturbedSum>>,
}

/// Of each span, the histograms of what was seen and of the least.
#[derive(Debug, Default, Clone)]
struct DisturbedSum {
    response: [Histogram; 2],
    service: [Histogram; 2],
    ttfb: [Histogram; 2],
    aftermath: Histogram,
    passing: Histogram,
}

impl DisturbedSum {
    fn merge(&mut self, from: &DisturbedSum) {
        self.aftermath.merge(&from.aftermath);
        self.passing.merge(&from.passing);
        for (histograms, from) in [
            (&mut self.response, &from.response),
            (&mut self.service, &from.service),
            (&mut self.ttfb, &from.ttfb),
        ] {
            histograms.iter_mut().zip(from).for_each(|(histogram, from)| histogram.merge(from));
        }
    }

    fn of(&self, span: SpanOf) -> &[Histogram; 2] {
        match span {
            SpanOf::Response => &self.response,
            SpanOf::Service => &self.service,
            SpanOf::FirstByte => &self.ttfb,
        }
    }
}

impl TimesSum {
    /// The times of this span.
    pub fn of(&self, span: SpanOf) -> &Histogram {
        match span {
            SpanOf::Response => &self.response,
            SpanOf::Service => &self.service,
            SpanOf::FirstByte => &self.ttfb,
        }
    }

    /// Adds the times of an interval.
    pub fn add(&mut self, times: &Times) {
        self.response.merge_sparse(&times.response);
        self.service.merge_sparse(&times.service);
        self.ttfb.merge_sparse(&times.ttfb);
        if times.disturbed.is_empty() {
            return;
        }
        let sum = self.disturbed.get_or_insert_default();
        let Disturbed { response, service, ttfb, aftermath, passing } = &times.disturbed;
        sum.aftermath.merge_sparse(aftermath);
        sum.passing.merge_sparse(passing);
        for (histograms, from) in
            [(&mut sum.response, response), (&mut sum.service, service), (&mut sum.ttfb, ttfb)]
        {
            let from: [&SparseHistogram; 2] = [&from.seen, &from.least];
            histograms.iter_mut().zip(from).for_each(|(histogram, from)| histogram.merge_sparse(from));
        }
    }

    /// Adds all of another's.
    pub fn merge(&mut self, from: &TimesSum) {
        self.response.merge(&from.response);
        self.service.merge(&from.service);
        self.ttfb.merge(&from.ttfb);
        if let Some(from) = &from.disturbed {
            self.disturbed.get_or_insert_default().merge(from);
        }
    }

    /// Adds what Assay did to open waits that these times are stated with: to those of `open`, which are none of these times yet, and
    /// to response times as they were `seen`, which can have been as short as `least`.
    pub fn disturb_open(&mut self, open: &TimesSum, seen: &Histogram, least: &Histogram) {
        if let Some(from) = &open.disturbed {
            self.disturbed.get_or_insert_default().merge(from);
        }
        if seen.count() > 0 && seen.count() == least.count() {
            let [all_seen, all_least] = &mut self.disturbed.get_or_insert_default().response;
            all_seen.merge(seen);
            all_least.merge(least);
        }
    }

    /// Effect of Assay on the times of a span; `all` are these, and perhaps open waits.
    pub fn own_error(&self, span: SpanOf, all: &Censored, unrecorded: Unrecorded) -> OwnError {
        let all = all.shortest();
        match &self.disturbed {
            Some(sum) => OwnError::new(all, sum.of(span), unrecorded)
                .aftermath(sum.aftermath.clone(), sum.passing.clone()),
            None => OwnError::undisturbed(all, unrecorded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> TimesRecorder {
        let mut recorder = TimesRecorder::default();
        recorder.record_response(1_000);
        recorder.record_after_sent(1_000, 1_000);
        recorder.record_disturbed([2_000, 500], [2_000, 1_500], [2_000, 1_600], None);
        recorder
    }

    fn sum_of(times: &Times) -> TimesSum {
        let mut sum = TimesSum::default();
        sum.add(times);
        sum
    }

    #[test]
    fn a_disturbed_xact_is_among_all_of_them_and_once_more_by_itself() {
        let times = recorded().to_times();
        for all in [&times.response, &times.service, &times.ttfb] {
            assert_eq!((all.sum_us, all.max_us, all.buckets.len()), (3_000, 2_000, 2));
        }
        assert_eq!(times.disturbed.service.seen.sum_us, 2_000);
        assert_eq!(times.disturbed.service.least.sum_us, 1_500);
    }

    #[test]
    fn recorders_and_intervals_add_up_alike() {
        let mut recorder = recorded();
        recorder.merge(&recorded());
        let together = sum_of(&recorder.to_times());
        let mut one_by_one = sum_of(&recorded().to_times());
        one_by_one.merge(&sum_of(&recorded().to_times()));
        for span in [SpanOf::Response, SpanOf::Service, SpanOf::FirstByte] {
            assert_eq!(together.of(span).to_sparse(), one_by_one.of(span).to_sparse());
            let of = |sum: &TimesSum| {
                sum.disturbed.as_ref().map(|sum| sum.of(span).each_ref().map(Histogram::to_sparse))
            };
            assert_eq!(of(&together), of(&one_by_one));
        }
    }

    #[test]
    fn bounds_are_those_of_the_disturbed_and_the_rest_together() {
        let sum = sum_of(&recorded().to_times());
        let all: Censored = sum.response.clone().into();
        let longest = sum.own_error(SpanOf::Response, &all, Unrecorded::Fixed).max().unwrap();
        assert!(longest.low_us <= 1_000.0 && longest.high_us.is_some_and(|us| us >= 2_000.0), "{longest:?}");
        let undisturbed = TimesSum { disturbed: None, ..sum };
        let longest = undisturbed.own_error(SpanOf::Response, &all, Unrecorded::Fixed).max().unwrap();
        assert!(longest.low_us >= 1_900.0 && longest.high_us.is_some_and(|us| us <= 2_001.0), "{longest:?}");
    }
}
