//! Times that robots measure, declared once for all that record them, add them up, keep them and report them.

use serde::{Deserialize, Serialize};

use crate::histogram::SparseHistogram;
use crate::interval::Times;
use crate::outcome::Outcome;

macro_rules! robot_times {
    (
        classes { $($(#[$class_doc:meta])* $class:ident,)+ }
        values { $($(#[$value_doc:meta])* $value:ident,)+ }
    ) => {
        /// Times that robots measure: `C` holds the times of one class of xacts, `H` those of one kind.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct RobotTimes<C, H> {
            $($(#[$class_doc])* pub $class: C,)+
            $($(#[$value_doc])* pub $value: H,)+
        }

        impl<C, H> RobotTimes<C, H> {
            /// Each class of xacts by its name.
            pub fn classes(&self) -> impl Iterator<Item = (&'static str, &C)> {
                [$((stringify!($class), &self.$class)),+].into_iter()
            }

            /// Each kind of times that is not told apart by class, by its name.
            pub fn values(&self) -> impl Iterator<Item = (&'static str, &H)> {
                [$((stringify!($value), &self.$value)),+].into_iter()
            }

            pub fn class_mut(&mut self, name: &str) -> Option<&mut C> {
                $(if name == stringify!($class) { return Some(&mut self.$class); })+
                None
            }

            pub fn value_mut(&mut self, name: &str) -> Option<&mut H> {
                $(if name == stringify!($value) { return Some(&mut self.$value); })+
                None
            }

            /// The same times in another form.
            pub fn map<D, I>(&self, class: impl Fn(&C) -> D, value: impl Fn(&H) -> I) -> RobotTimes<D, I> {
                RobotTimes { $($class: class(&self.$class),)+ $($value: value(&self.$value),)+ }
            }

            /// Adds times in another form to these.
            pub fn add<D, I>(
                &mut self,
                other: &RobotTimes<D, I>,
                class: impl Fn(&mut C, &D),
                value: impl Fn(&mut H, &I),
            ) {
                $(class(&mut self.$class, &other.$class);)+
                $(value(&mut self.$value, &other.$value);)+
            }
        }
    };
}

robot_times! {
    classes {
        /// Xacts whose outcome is hit, basic or not.
        hit,
        /// Xacts whose outcome is miss, basic or not.
        miss,
        /// All other xacts that completed: collapsed, revalidated, and those of which nothing tells the outcome.
        other,
        /// Open waits of xacts that timed out: how long they had waited when they were given up. One that was never sent
        /// is in `response` alone; one that got a part of its response is in `ttfb` with the time of its first byte.
        timed_out,
    }
    values {
        /// `sent − max(due, ready)` of every xact sent: what Assay itself added.
        lateness,
        /// Open waits of what was never sent: phase end − due.
        unsent_wait,
        /// The same waits, as short as they can have been without Assay's delays of the requests before them.
        unsent_least,
        /// Time that responses lay unread: from the kernel's receipt of their last bytes until the robot had read them.
        /// Only where the kernel tells when it received something. The first 0.1 ms of it is in none of the times of
        /// classes.
        unread,
        /// Duration of TLS handshakes: from the connection until data could be sent, the robot's own share of the work
        /// included.
        handshake,
    }
}

impl<C, H> RobotTimes<C, H> {
    /// Class of a completed xact with this outcome.
    #[inline]
    pub fn outcome_mut(&mut self, outcome: Option<Outcome>) -> &mut C {
        match outcome {
            Some(Outcome::Hit) => &mut self.hit,
            Some(Outcome::Miss) => &mut self.miss,
            Some(Outcome::Collapsed | Outcome::Revalidated) | None => &mut self.other,
        }
    }

    /// Classes of the xacts that completed: together, they are all of them.
    pub fn completed(&self) -> [&C; 3] {
        [&self.hit, &self.miss, &self.other]
    }
}

/// Class under which tables keep times that are not told apart by class.
const ALL: &str = "all";

impl RobotTimes<Times, SparseHistogram> {
    /// All histograms, each with the metric and the class under which tables keep it.
    pub fn histograms(&self) -> impl Iterator<Item = (&'static str, &'static str, &SparseHistogram)> {
        let classes = self.classes().flat_map(|(class, times)| {
            times.histograms().into_iter().map(move |(metric, histogram)| (metric, class, histogram))
        });
        classes.chain(self.values().map(|(metric, histogram)| (metric, ALL, histogram)))
    }

    /// The histogram that tables keep under this metric and class.
    pub fn histogram_mut(&mut self, metric: &str, class: &str) -> Option<&mut SparseHistogram> {
        match class {
            ALL => self.value_mut(metric),
            class => self.class_mut(class)?.histogram_mut(metric),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_histogram_is_found_under_the_metric_and_class_that_it_is_kept_under() {
        let mut times = RobotTimes::<Times, SparseHistogram>::default();
        let names: Vec<_> = times.histograms().map(|(metric, class, _)| (metric, class)).collect();
        assert_eq!(names.len(), 4 * 11 + 5);
        for (number, (metric, class)) in names.iter().enumerate() {
            let histogram = times.histogram_mut(metric, class).expect("is there");
            assert_eq!(*histogram, SparseHistogram::default(), "{metric} of {class} is one of its own");
            histogram.sum_us = number as u64 + 1;
        }
        let numbers: Vec<u64> = times.histograms().map(|(.., histogram)| histogram.sum_us).collect();
        assert_eq!(numbers, (1..=names.len() as u64).collect::<Vec<_>>());
        assert!(
            times.histogram_mut("lateness", "hit").is_none() && times.histogram_mut("ttfb", ALL).is_none()
        );
    }
}
