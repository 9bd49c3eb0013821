//! Everything that is measured in a run, as one list of kinds.
//!
//! A line of `measured!` declares a kind. [`Measured`] is one measurement of any kind: what a role or the lab reports, a line
//! of the run directory's journal, and what everybody who watches a run is told. [`Series`] is all of them, sorted by kind.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::adapted::Adapted;
use crate::error_kind::ErrorExample;
use crate::health::{Baseline, LinkInterval, NetworkInterval, ProcessorInterval, Stall, ThreadInterval};
use crate::interval::{HostInterval, OriginInterval, RobotInterval};
use crate::machine::{BlockInterval, DiskInterval, InterfaceInterval, MachineInterval};

/// One reading of the target's own counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxySample {
    /// Cache that they belong to, where several work together; else empty.
    #[serde(default)]
    pub cache: String,
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// Values by name, in the target's words; cumulative unless the target means otherwise.
    pub counters: BTreeMap<String, f64>,
}

/// Transport of measurements of a kind: one by one, or all of an instant together.
trait Batch<T>: Sized {
    /// The measurements in it.
    fn into_items(self) -> impl Iterator<Item = T>;

    /// All measurements of a kind as they are told; nothing is told of nothing.
    fn of(items: Vec<T>) -> impl Iterator<Item = Self>;
}

impl<T> Batch<T> for Box<T> {
    fn into_items(self) -> impl Iterator<Item = T> {
        std::iter::once(*self)
    }

    fn of(items: Vec<T>) -> impl Iterator<Item = Self> {
        items.into_iter().map(Box::new)
    }
}

impl<T> Batch<T> for Vec<T> {
    fn into_items(self) -> impl Iterator<Item = T> {
        self.into_iter()
    }

    fn of(items: Vec<T>) -> impl Iterator<Item = Self> {
        Some(items).filter(|items| !items.is_empty()).into_iter()
    }
}

/// A kind per line: its variant, whether it is told one by one (`Box`) or several at once (`Vec`), and its list in [`Series`].
macro_rules! measured {
    ($(#[doc = $about:literal] $variant:ident($batch:ident<$item:ty>) in $list:ident,)+) => {
        /// One thing that was measured.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Measured {
            $(#[doc = $about] $variant($batch<$item>),)+
        }

        /// Everything that was measured, each kind in the order in which it came.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Series {
            $(#[doc = $about] pub $list: Vec<$item>,)+
        }

        impl Series {
            /// Adds one thing that was measured.
            pub fn take(&mut self, measured: Measured) {
                match measured {
                    $(Measured::$variant(batch) => self.$list.extend(batch.into_items()),)+
                }
            }

            /// Everything in it, kind by kind.
            pub fn into_measured(self) -> impl Iterator<Item = Measured> {
                std::iter::empty()$(.chain($batch::of(self.$list).map(Measured::$variant)))+
            }
        }
    };
}

measured! {
    /// Delays of timers on a worker's processor before the run.
    Baseline(Box<Baseline>) in baselines,
    /// An interval of the robots.
    Robots(Box<RobotInterval>) in robots,
    /// An interval of the origins.
    Origins(Box<OriginInterval>) in origins,
    /// Resources that a role's processes, or the machine, used in an interval.
    Host(Box<HostInterval>) in host,
    /// A reading of the target's own counters.
    Proxy(Box<ProxySample>) in proxy,
    /// One of the first errors of its kind, for people to look at.
    Example(Box<ErrorExample>) in examples,
    /// A worker thread of robots or origins in an interval.
    Thread(Box<ThreadInterval>) in threads,
    /// A worker thread stood still.
    Stall(Box<Stall>) in stalls,
    /// Counters of the network stack in an interval.
    Network(Box<NetworkInterval>) in network,
    /// A decision on adaptive load.
    Adapted(Box<Adapted>) in adapted,
    /// The machine as a whole in an interval.
    Machine(Box<MachineInterval>) in machine,
    /// Traffic of a direction of a link in an interval.
    Link(Box<LinkInterval>) in links,
    /// Use of each processor of this machine in an interval.
    Processors(Vec<ProcessorInterval>) in processors,
    /// Use of each of its disks in an interval.
    Disks(Vec<DiskInterval>) in disks,
    /// Traffic of each of its network interfaces in an interval.
    Interfaces(Vec<InterfaceInterval>) in interfaces,
    /// Requests of each kind that went to the traced disk in an interval.
    Blocks(Vec<BlockInterval>) in blocks,
}

impl Series {
    /// Readings of the target's counters: where it is several caches, those of all added up, from when all have spoken.
    pub fn proxy_together(&self) -> Cow<'_, [ProxySample]> {
        let caches: BTreeSet<&str> = self.proxy.iter().map(|sample| sample.cache.as_str()).collect();
        if caches.len() < 2 {
            return Cow::Borrowed(&self.proxy);
        }
        let mut last: BTreeMap<&str, &BTreeMap<String, f64>> = BTreeMap::new();
        let mut all: Vec<ProxySample> = Vec::new();
        for sample in &self.proxy {
            last.insert(&sample.cache, &sample.counters);
            if last.len() < caches.len() {
                continue;
            }
            let mut sum = ProxySample { at_ms: sample.at_ms, ..ProxySample::default() };
            for (name, value) in last.values().copied().flatten() {
                *sum.counters.entry(name.clone()).or_default() += value;
            }
            // Of several at one instant, the last knows most.
            all.pop_if(|before| before.at_ms == sum.at_ms);
            all.push(sum);
        }
        Cow::Owned(all)
    }
}
