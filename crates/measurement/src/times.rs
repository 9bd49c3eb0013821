//! The times of one class of xacts, added up: all of them, and once more those that Assay disturbed.

use crate::censored::Censored;
use crate::histogram::{Histogram, SparseHistogram};
use crate::interval::{Disturbance, Disturbed, Times};
use crate::own_error::OwnError;

/// Which span of time in the life of an xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanOf {
    /// `last_byte − due`.
    Response,
    /// `last_byte − sent`.
    Service,
    /// `first_byte − sent`.
    FirstByte,
}

/// The same time twice, in microseconds: as it was seen, and the least that it can have been.
pub type SeenAndLeast = [u64; 2];

/// Histograms of one class of xacts.
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
}

impl DisturbedSum {
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

    /// Records once more an xact that was recorded and is a disturbed one.
    #[cold]
    pub fn record_disturbed(
        &mut self,
        response: SeenAndLeast,
        service: SeenAndLeast,
        ttfb: SeenAndLeast,
        aftermath_us: u64,
    ) {
        let sum = self.disturbed.get_or_insert_default();
        if aftermath_us > 0 {
            sum.aftermath.record(aftermath_us);
        }
        for (histograms, values) in
            [(&mut sum.response, response), (&mut sum.service, service), (&mut sum.ttfb, ttfb)]
        {
            histograms.iter_mut().zip(values).for_each(|(histogram, us)| histogram.record(us));
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
        let Disturbed { response, service, ttfb, aftermath } = &times.disturbed;
        sum.aftermath.merge_sparse(aftermath);
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
        let Some(from) = &from.disturbed else { return };
        let sum = self.disturbed.get_or_insert_default();
        sum.aftermath.merge(&from.aftermath);
        for (histograms, from) in [
            (&mut sum.response, &from.response),
            (&mut sum.service, &from.service),
            (&mut sum.ttfb, &from.ttfb),
        ] {
            histograms.iter_mut().zip(from).for_each(|(histogram, from)| histogram.merge(from));
        }
    }

    /// As an interval keeps them.
    pub fn to_times(&self) -> Times {
        let disturbance =
            |[seen, least]: &[Histogram; 2]| Disturbance { seen: seen.to_sparse(), least: least.to_sparse() };
        let disturbed = self.disturbed.as_ref().map(|sum| Disturbed {
            response: disturbance(&sum.response),
            service: disturbance(&sum.service),
            ttfb: disturbance(&sum.ttfb),
            aftermath: sum.aftermath.to_sparse(),
        });
        Times {
            response: self.response.to_sparse(),
            service: self.service.to_sparse(),
            ttfb: self.ttfb.to_sparse(),
            disturbed: disturbed.unwrap_or_default(),
        }
    }

    /// What Assay can have done to the times of a span; `all` are these, and perhaps open waits, which it did not disturb.
    pub fn own_error(&self, span: SpanOf, all: &Censored) -> OwnError {
        match &self.disturbed {
            Some(sum) => OwnError::new(all.shortest(), sum.of(span)).aftermath(sum.aftermath.clone()),
            None => OwnError::undisturbed(all.shortest()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum() -> TimesSum {
        let mut sum = TimesSum::default();
        for us in [1_000, 2_000] {
            for times in [&mut sum.response, &mut sum.service, &mut sum.ttfb] {
                times.record(us);
            }
        }
        sum.record_disturbed([2_000, 500], [2_000, 1_500], [2_000, 1_600], 0);
        sum
    }

    #[test]
    fn what_was_added_up_is_read_back_and_adds_up_again() {
        let times = sum().to_times();
        let mut again = TimesSum::default();
        again.add(&times);
        assert_eq!(again.to_times(), times);
        again.merge(&sum());
        assert_eq!(again.response.count(), 4);
        assert_eq!(again.to_times().disturbed.service.least.sum_us, 3_000);
    }

    #[test]
    fn bounds_are_those_of_the_disturbed_and_the_rest_together() {
        let sum = sum();
        let all: Censored = sum.response.clone().into();
        let longest = sum.own_error(SpanOf::Response, &all).max().unwrap();
        assert!(longest.low_us <= 1_000.0 && longest.high_us.is_some_and(|us| us >= 2_000.0), "{longest:?}");
        let undisturbed = TimesSum { disturbed: None, ..sum };
        let longest = undisturbed.own_error(SpanOf::Response, &all).max().unwrap();
        assert!(longest.low_us >= 1_900.0 && longest.high_us.is_some_and(|us| us <= 2_001.0), "{longest:?}");
    }
}
