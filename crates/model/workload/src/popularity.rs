//! The object that a revisit picks of those that can be revisited. Laws, hot set and window act on serials alone.

use crate::Purpose;
use crate::model::{Bin, Popularity, PopularityLaw};
use crate::object::Object;
use assay_base::random::{Rng, hash, unit_of};

/// The serials of a world that can be revisited now: `low .. high`, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Window {
    /// The window over the first `available` serials; `frozen` is the size that the working set had when it
    /// stopped growing. None when there is nothing to revisit.
    #[inline]
    pub(crate) fn new(available: u64, frozen: Option<u64>) -> Option<Self> {
        // A world that was empty at the freeze keeps its newest object.
        let size = frozen.map_or(available, |size| size.max(1));
        (available > 0).then(|| Self { low: available.saturating_sub(size), high: available })
    }

    fn size(&self) -> u64 {
        self.high - self.low
    }

    #[inline]
    pub(crate) fn pick(&self, popularity: &Popularity, hot: &mut HotSet, world: u64, rng: &mut Rng) -> u64 {
        let (coin, unit) = (rng.unit(), rng.unit());
        if coin < popularity.hot_set_probability {
            hot.within(self, popularity.hot_set_fraction, world).draw(&popularity.law, unit)
        } else {
            self.draw(&popularity.law, unit)
        }
    }

    /// The serial that a revisit takes which picked another: itself, or, in a share of revisits, that of the
    /// smallest cachable object among its neighbours and itself.
    #[inline]
    pub(crate) fn prefer(
        &self,
        serial: u64,
        share: f64,
        rng: &mut Rng,
        object: impl FnMut(u64) -> Option<Object>,
    ) -> u64 {
        if share <= 0.0 || rng.unit() >= share {
            return serial;
        }
        let low = serial.saturating_sub(NEIGHBOURS).max(self.low);
        let high = serial.saturating_add(NEIGHBOURS).min(self.high - 1);
        smallest(low..=high, object).unwrap_or(serial)
    }

    #[inline]
    fn draw(&self, law: &PopularityLaw, unit: f64) -> u64 {
        let size = self.size();
        match law {
            PopularityLaw::Uniform => self.low + ((unit * size as f64) as u64).min(size - 1),
            PopularityLaw::Zipf { skew } => {
                let skew = *skew;
                let flattened = if skew == 1.0 { unit } else { libm::pow(unit, skew) };
                let back = libm::exp(flattened * libm::log(size as f64 + 1.0)) as u64;
                self.high - back.clamp(1, size)
            }
            PopularityLaw::Table(bins) => {
                let back = (age_at(bins, unit) * size as f64) as u64;
                self.high - 1 - back.min(size - 1)
            }
        }
    }
}

/// Neighbours on each side among which a smaller object is searched.
pub(crate) const NEIGHBOURS: u64 = 4;

/// The serial of the smallest cachable object.
pub(crate) fn smallest(
    serials: impl IntoIterator<Item = u64>,
    mut object: impl FnMut(u64) -> Option<Object>,
) -> Option<u64> {
    let sizes = serials.into_iter().filter_map(|serial| {
        let object = object(serial).filter(|object| object.cachable)?;
        Some((object.size_bytes, serial))
    });
    sizes.min().map(|(_, serial)| serial)
}

/// The age (0 newest, 1 oldest) at which so much of the weight lies below.
fn age_at(bins: &[Bin], unit: f64) -> f64 {
    let total: f64 = bins.iter().map(|bin| bin.weight.max(0.0)).sum();
    let mut left = unit * total;
    for bin in bins.iter().filter(|bin| bin.weight > 0.0) {
        if left < bin.weight {
            return bin.low + (bin.high - bin.low) * (left / bin.weight);
        }
        left -= bin.weight;
    }
    0.0
}

/// Position of the hot set of one world. The set stays until it would fall out of the window, then moves to a random position in it: a
/// function of the world and of how far the window has moved, however often this is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HotSet {
    start: u64,
    /// Moves since the window began to slide; 0: it has not.
    moves: u64,
}

impl HotSet {
    /// The hot part of a window. Windows of one world must be taken in order.
    pub(crate) fn within(&mut self, window: &Window, fraction: f64, world: u64) -> Window {
        let size = hot_size(window.size(), fraction);
        if window.low == 0 {
            let start = first_place(window.high, fraction, world);
            return Window { low: start, high: start + size };
        }
        if self.moves == 0 {
            self.start = first_place(window.size(), fraction, world);
            self.moves = 1;
        }
        while self.start < window.low {
            let room = window.size() - size + 1;
            self.start += 1 + place(world, self.moves, room);
            self.moves += 1;
        }
        Window { low: self.start, high: self.start + size }
    }
}

fn hot_size(size: u64, fraction: f64) -> u64 {
    (libm::ceil(fraction * size as f64) as u64).clamp(1, size)
}

/// While a world grows, its hot set moves when it has doubled.
fn first_place(size: u64, fraction: f64, world: u64) -> u64 {
    let doublings = size.ilog2();
    let room = (1u64 << doublings) - hot_size(1 << doublings, fraction) + 1;
    place(world, u64::MAX - u64::from(doublings), room).min(size - hot_size(size, fraction))
}

fn place(world: u64, which: u64, room: u64) -> u64 {
    ((unit_of(hash(Purpose::HotSet, &[world, which])) * room as f64) as u64).min(room - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_base::random::Rng;
    use proptest::prelude::*;

    fn popularity(law: PopularityLaw, hot_set_fraction: f64, hot_set_probability: f64) -> Popularity {
        Popularity { law, hot_set_fraction, hot_set_probability, size_preference: 0.0 }
    }

    proptest! {
        #[test]
        fn a_pick_is_always_in_the_window(
            available in 1u64..1_000_000, frozen in prop::option::of(0u64..10_000), skew in 0.0f64..3.0,
            zipf: bool, fraction in 0.0f64..=1.0, probability in 0.0f64..=1.0, seed: u64,
        ) {
            let law = if zipf { PopularityLaw::Zipf { skew } } else { PopularityLaw::Uniform };
            let window = Window::new(available, frozen).unwrap();
            let (mut hot, mut rng) = (HotSet::default(), Rng::new(seed));
            for _ in 0..20 {
                let serial = window.pick(&popularity(law.clone(), fraction, probability), &mut hot, 7, &mut rng);
                prop_assert!((window.low..window.high).contains(&serial));
            }
        }

        #[test]
        fn the_hot_set_does_not_depend_on_how_often_it_is_computed(
            frozen in 1u64..500, steps in prop::collection::vec(0u64..50, 1..60), fraction in 0.0f64..=1.0,
        ) {
            let mut often = HotSet::default();
            let mut available = frozen;
            let mut last = None;
            for step in steps {
                for _ in 0..step {
                    available += 1;
                    let window = Window::new(available, Some(frozen)).unwrap();
                    let hot = often.within(&window, fraction, 3);
                    prop_assert!(window.low <= hot.low && hot.high <= window.high);
                    if let Some(before) = last.filter(|before: &Window| before.low >= window.low) {
                        prop_assert_eq!(before, hot, "it stays put while it is within the window");
                    }
                    last = Some(hot);
                }
                let window = Window::new(available, Some(frozen)).unwrap();
                prop_assert_eq!(often.within(&window, fraction, 3), HotSet::default().within(&window, fraction, 3));
            }
        }
    }

    #[test]
    fn a_window_is_the_last_of_the_working_set() {
        assert_eq!(Window::new(0, None), None);
        assert_eq!(Window::new(10, None), Some(Window { low: 0, high: 10 }));
        assert_eq!(Window::new(10, Some(4)), Some(Window { low: 6, high: 10 }));
        assert_eq!(Window::new(3, Some(4)), Some(Window { low: 0, high: 3 }));
        assert_eq!(Window::new(3, Some(0)), Some(Window { low: 2, high: 3 }));
    }

    #[test]
    fn the_newest_is_the_most_popular_under_zipf() {
        let window = Window { low: 0, high: 100 };
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 100];
        for _ in 0..100_000 {
            counts[window.draw(&PopularityLaw::Zipf { skew: 1.0 }, rng.unit()) as usize] += 1;
        }
        // P(k) = ln((k+1)/k) / ln(101) for the k-th newest.
        let expected = 100_000.0 * libm::log(2.0) / libm::log(101.0);
        assert!((f64::from(counts[99]) - expected).abs() < 4.0 * expected.sqrt());
        assert!(counts[99] > counts[98] && counts[98] > counts[50] && counts[50] > counts[0]);
    }

    #[test]
    fn the_hot_set_gets_its_share() {
        let (window, mut hot, mut rng) = (Window { low: 50, high: 1050 }, HotSet::default(), Rng::new(5));
        let place = hot.within(&window, 0.01, 9);
        assert_eq!(place.size(), 10);
        let law = popularity(PopularityLaw::Uniform, 0.01, 0.1);
        let hits = (0..100_000)
            .filter(|_| {
                let serial = window.pick(&law, &mut hot, 9, &mut rng);
                (place.low..place.high).contains(&serial)
            })
            .count();
        let expected = 100_000.0 * (0.1 + 0.9 * 0.01);
        assert!((hits as f64 - expected).abs() < 4.0 * expected.sqrt(), "{hits}");
    }
}
