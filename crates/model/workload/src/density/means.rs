//! Means of an object of a content type. Sizes as they will be seen, cachability, what a page brings.

use crate::Purpose;
use crate::body::BodyTable;
use crate::distribution::Sampler;
use crate::model::{BodySource, ContentIndex, Distribution, Workload};
use crate::object::MOST_EMBEDDED;
use crate::popularity::NEIGHBOURS;
use crate::ranges::RangeTable;
use assay_base::random::Rng;

/// Averages of one content type.
#[derive(Debug)]
pub(crate) struct ContentMeans {
    /// Of an object that is requested in its own right.
    pub(crate) size: f64,
    /// Of one that is embedded in a page: pages within pages hold no links.
    pub(crate) embedded_size: f64,
    pub(crate) cachable: f64,
    /// Embedded objects of a page.
    pub(crate) embedded: f64,
    pub(crate) embedded_types: Vec<(ContentIndex, f64)>,
    /// The object that a revisit with size preference finds; none if no robot has that.
    pub(crate) smallest: Option<SmallestNeighbour>,
}

/// The smallest cachable object among some neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallestNeighbour {
    /// Chance that any of them is cachable.
    pub(crate) cachable: f64,
    /// Mean of its size, zero where none is cachable.
    pub(crate) size: f64,
}

impl ContentMeans {
    pub(crate) fn new(workload: &Workload, index: ContentIndex) -> Self {
        let content = &workload.contents[usize::from(index)];
        let embedded = content.embedded.as_ref();
        let embedded = embedded.filter(|e| e.contents.items().iter().any(|(_, share)| *share > 0.0));
        let drawn = match content.body.source {
            BodySource::Files(set) => mean_file(workload, set),
            _ => content.size_bytes.mean_count(),
        };
        let size = match embedded {
            Some(embedded) => {
                let table = BodyTable::new(workload, index);
                drawn + raised(&content.size_bytes, &embedded.count, |links| table.least_bytes(links))
            }
            None => drawn,
        };
        Self {
            size,
            embedded_size: drawn,
            cachable: content.cachable,
            embedded: embedded.map_or(0.0, |e| e.count.mean_count().min(f64::from(MOST_EMBEDDED))),
            embedded_types: content.embedded.as_ref().map_or_else(Vec::new, |e| e.contents.items().to_vec()),
            smallest: prefers(workload, index).then(|| smallest(&content.size_bytes, content.cachable)),
        }
    }

    /// Mean bytes that a request for parts brings, by many draws: there is no formula for it.
    pub(crate) fn range_bytes(&self, ranges: &RangeTable, size: &Sampler) -> f64 {
        const DRAWS: u32 = 512;
        let mut rng = Rng::of(Purpose::Range, &[]);
        let part = |parts: Vec<(u64, u64)>| parts.iter().map(|(first, last)| last - first + 1).sum::<u64>();
        let mut draw = || {
            let bytes = size.size(&mut rng);
            ranges.draw(bytes, &mut rng).map_or(0, |ranges| part(ranges.resolve(bytes))) as f64
        };
        (0..DRAWS).map(|_| draw()).sum::<f64>() / f64::from(DRAWS)
    }
}

/// The mean of a set's files, all of which are as likely.
fn mean_file(workload: &Workload, set: u16) -> f64 {
    let files = workload.files.get(usize::from(set)).map_or(&[][..], |set| set.files.as_slice());
    files.iter().map(|file| file.bytes as f64).sum::<f64>() / (files.len() as f64).max(1.0)
}

/// Mean growth of pages beyond their drawn size, because their links need room.
fn raised(size: &Distribution, count: &Distribution, least_bytes: impl Fn(u16) -> u64) -> f64 {
    // E[max(S, m)] − E[S] is the sum over k below m of the chance that S is at most k.
    let (mut sum, mut at, mut raised, mut below) = (0.0, 0u64, 0.0, 0.0);
    for links in 0..=MOST_EMBEDDED {
        let within = if links == MOST_EMBEDDED { 1.0 } else { count.chance_within(f64::from(links)) };
        let chance = (within - below).max(0.0);
        below = within;
        while at < least_bytes(links) {
            sum += size.chance_within(at as f64);
            at += 1;
        }
        raised += chance * sum;
        if below >= 1.0 {
            break;
        }
    }
    raised
}

/// True when some revisits of a type look for small objects.
fn prefers(workload: &Workload, index: ContentIndex) -> bool {
    let own = workload.contents[usize::from(index)].behaviour.popularity.as_ref();
    let of_groups = workload.robots.iter().filter_map(|group| group.popularity.as_ref());
    own.into_iter().chain(of_groups).any(|popularity| popularity.size_preference > 0.0)
}

fn smallest(size: &Distribution, cachable: f64) -> SmallestNeighbour {
    const STEPS: i32 = 4096;
    const LARGEST: f64 = 1e10;
    let looked_at = 2.0 * NEIGHBOURS as f64 + 1.0;
    let none = libm::pow(1.0 - cachable, looked_at);
    // The chance that there is one, and that it is larger.
    let larger = |bytes: f64| libm::pow(1.0 - cachable * size.chance_within(bytes), looked_at) - none;
    let place = |step: i32| libm::exp(libm::log(LARGEST) * f64::from(step) / f64::from(STEPS)) - 1.0;
    let area = |step: i32| {
        let (from, to) = (place(step), place(step + 1));
        (to - from) * (larger(from) + larger(to)) / 2.0
    };
    // Sizes are rounded up.
    let rounding = (1.0 - none) / 2.0;
    SmallestNeighbour { cachable: 1.0 - none, size: (0..STEPS).map(area).sum::<f64>() + rounding }
}
