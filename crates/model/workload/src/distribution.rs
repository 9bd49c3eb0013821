//! Random variables. Sampling and moments of [`Distribution`].

use std::f64::consts::{PI, SQRT_2};

use crate::model::Distribution;
use assay_base::random::Rng;

/// The largest count a draw may give (that of PGL).
const MAX_COUNT: f64 = 2_147_483_646.0;
/// The largest size a draw may give: a tebibyte.
const MAX_SIZE: f64 = 1_099_511_627_776.0;

/// A distribution made ready for many draws: logarithms and sums are taken once.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampler {
    law: SamplerLaw,
}

#[derive(Debug, Clone, PartialEq)]
enum SamplerLaw {
    Constant(f64),
    Uniform {
        low: f64,
        width: f64,
    },
    Exponential {
        mean: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Zipf {
        log_n1: f64,
        n: f64,
    },
    /// Cumulative weights with their bars.
    Table(Vec<(f64, f64, f64)>),
}

impl Sampler {
    /// Takes what never changes out of the draws. Values that make no sense (not finite) become zero.
    pub fn new(distribution: &Distribution) -> Self {
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        let law = match distribution {
            Distribution::Constant(x) => SamplerLaw::Constant(finite(*x)),
            Distribution::Uniform { low, high } => {
                SamplerLaw::Uniform { low: finite(*low), width: finite(high - low) }
            }
            Distribution::Exponential { mean } => SamplerLaw::Exponential { mean: finite(*mean) },
            Distribution::Normal { mean, deviation } => {
                SamplerLaw::Normal { mean: finite(*mean), deviation: finite(*deviation) }
            }
            Distribution::LogNormal { mean, deviation } => log_normal(finite(*mean), finite(*deviation)),
            Distribution::Zipf { n } => zipf(finite(*n)),
            // A pure draw has no memory, so a sequence stays at its first value.
            Distribution::Sequence { first } => SamplerLaw::Constant(finite(*first)),
            Distribution::Table(_) => table(distribution),
        };
        Self { law }
    }

    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> f64 {
        match &self.law {
            SamplerLaw::Constant(x) => *x,
            SamplerLaw::Uniform { low, width } => low + width * rng.unit(),
            SamplerLaw::Exponential { mean } => mean * rng.exponential(),
            SamplerLaw::Normal { mean, deviation } => {
                let sum: f64 = (0..12).map(|_| rng.unit()).sum();
                mean + deviation * (sum - 6.0)
            }
            SamplerLaw::LogNormal { mu, sigma } => {
                // Box and Muller; the sum of twelve would cut the tail that makes the variable what it is.
                let radius = libm::sqrt(2.0 * rng.exponential());
                libm::exp(mu + sigma * radius * libm::cos(2.0 * PI * rng.unit()))
            }
            SamplerLaw::Zipf { log_n1, n } => libm::floor(libm::exp(log_n1 * rng.unit())).clamp(1.0, *n),
            SamplerLaw::Table(bars) => sample_table(bars, rng.unit()),
        }
    }

    /// A draw as a count: rounded up, without its sign.
    #[inline]
    pub fn count(&self, rng: &mut Rng) -> u64 {
        round_up(libm::fabs(self.sample(rng)).min(MAX_COUNT))
    }

    /// A draw as a size in bytes: rounded up, without its sign.
    #[inline]
    pub fn size(&self, rng: &mut Rng) -> u64 {
        round_up(libm::fabs(self.sample(rng)).min(MAX_SIZE))
    }
}

/// The ceiling of what is not negative and not large; `libm::ceil` takes several times as long.
#[inline]
fn round_up(value: f64) -> u64 {
    let whole = value as u64;
    whole + u64::from((whole as f64) < value)
}

fn log_normal(mean: f64, deviation: f64) -> SamplerLaw {
    if mean <= 0.0 {
        return SamplerLaw::Constant(0.0);
    }
    let ratio = deviation / mean;
    let variance = libm::log1p(ratio * ratio);
    SamplerLaw::LogNormal { mu: libm::log(mean) - variance / 2.0, sigma: libm::sqrt(variance) }
}

fn zipf(n: f64) -> SamplerLaw {
    // Below 2 the formula can only give 1: `zipf(13%)` is a depth of one.
    if n < 1.0 {
        SamplerLaw::Constant(1.0)
    } else {
        SamplerLaw::Zipf { log_n1: libm::log(n + 1.0), n: libm::floor(n) }
    }
}

fn table(distribution: &Distribution) -> SamplerLaw {
    let mut sum = 0.0;
    let bars: Vec<_> = bars(distribution)
        .map(|(low, high, weight)| {
            sum += weight;
            (sum, low, high)
        })
        .collect();
    if bars.is_empty() { SamplerLaw::Constant(0.0) } else { SamplerLaw::Table(bars) }
}

fn sample_table(bars: &[(f64, f64, f64)], unit: f64) -> f64 {
    let Some(last) = bars.last() else { return 0.0 };
    let at = unit * last.0;
    let index = bars.partition_point(|bar| bar.0 <= at).min(bars.len() - 1);
    let before = if index == 0 { 0.0 } else { bars[index - 1].0 };
    let (end, low, high) = bars[index];
    low + (high - low) * ((at - before) / (end - before)).clamp(0.0, 1.0)
}

/// The bars of a table that can be drawn: (low, high, weight).
fn bars(distribution: &Distribution) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
    let bins = match distribution {
        Distribution::Table(bins) => bins.as_slice(),
        _ => &[],
    };
    bins.iter()
        .filter(|b| b.weight > 0.0 && b.weight.is_finite() && b.low.is_finite() && b.high.is_finite())
        .map(|b| (b.low, b.high, b.weight))
}

impl Distribution {
    /// Makes it ready for many draws.
    pub fn sampler(&self) -> Sampler {
        Sampler::new(self)
    }

    /// One draw. For many, make a [`Sampler`].
    pub fn sample(&self, rng: &mut Rng) -> f64 {
        self.sampler().sample(rng)
    }

    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(x) | Self::Sequence { first: x } => *x,
            Self::Uniform { low, high } => (low + high) / 2.0,
            Self::Exponential { mean } | Self::Normal { mean, .. } | Self::LogNormal { mean, .. } => *mean,
            Self::Zipf { n } => zipf_moment(*n, 1),
            Self::Table(_) => table_moment(self, |low, high| (low + high) / 2.0),
        }
    }

    pub fn deviation(&self) -> f64 {
        match self {
            Self::Constant(_) | Self::Sequence { .. } => 0.0,
            Self::Uniform { low, high } => libm::fabs(high - low) / libm::sqrt(12.0),
            Self::Exponential { mean } => libm::fabs(*mean),
            Self::Normal { deviation, .. } | Self::LogNormal { deviation, .. } => libm::fabs(*deviation),
            Self::Zipf { n } => {
                let mean = zipf_moment(*n, 1);
                libm::sqrt((zipf_moment(*n, 2) - mean * mean).max(0.0))
            }
            Self::Table(_) => {
                let mean = self.mean();
                let square = table_moment(self, |low, high| (low * low + low * high + high * high) / 3.0);
                libm::sqrt((square - mean * mean).max(0.0))
            }
        }
    }

    /// The chance that a draw is at most `bound`, its sign aside. For whole bounds, that of a draw as a count
    /// or size.
    pub fn chance_within(&self, bound: f64) -> f64 {
        if bound.is_nan() || bound < 0.0 {
            return 0.0;
        }
        let certain = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::Constant(x) | Self::Sequence { first: x } => certain(libm::fabs(*x) <= bound),
            Self::Uniform { low, high } => part_within(*low, *high, bound),
            Self::Exponential { mean } if *mean != 0.0 => -libm::expm1(-bound / libm::fabs(*mean)),
            Self::Exponential { .. } => 1.0,
            Self::Normal { mean, deviation } if *deviation != 0.0 => {
                let below = |x: f64| libm::erfc((mean - x) / libm::fabs(*deviation) / SQRT_2) / 2.0;
                below(bound) - below(-bound)
            }
            Self::Normal { mean, .. } => certain(libm::fabs(*mean) <= bound),
            Self::LogNormal { mean, deviation } => match log_normal(*mean, *deviation) {
                SamplerLaw::LogNormal { mu, sigma } if sigma > 0.0 && bound > 0.0 => {
                    libm::erfc((mu - libm::log(bound)) / sigma / SQRT_2) / 2.0
                }
                SamplerLaw::LogNormal { sigma, .. } if sigma > 0.0 => 0.0,
                SamplerLaw::LogNormal { .. } => certain(*mean <= bound),
                _ => 1.0,
            },
            Self::Zipf { n } if *n < 1.0 || bound >= libm::floor(*n) => certain(bound >= 1.0),
            Self::Zipf { n } => libm::log(libm::floor(bound) + 1.0) / libm::log(n + 1.0),
            Self::Table(_) => {
                let (sum, all) = bars(self).fold((0.0, 0.0), |(sum, all), (low, high, weight)| {
                    (sum + weight * part_within(low, high, bound), all + weight)
                });
                if all > 0.0 { sum / all } else { 1.0 }
            }
        }
    }

    /// The mean of the draws as counts or sizes, which are rounded up and lose their sign.
    pub fn mean_count(&self) -> f64 {
        match self {
            Self::Constant(x) | Self::Sequence { first: x } => libm::ceil(libm::fabs(*x)),
            Self::Uniform { low, high } => ceiling_mean(*low, *high),
            Self::Exponential { mean } if *mean != 0.0 => 1.0 / -libm::expm1(-1.0 / libm::fabs(*mean)),
            Self::Exponential { .. } => 0.0,
            Self::Normal { mean, deviation } if *deviation != 0.0 => {
                let above = |x: f64| libm::erfc(x / libm::fabs(*deviation) / SQRT_2) / 2.0;
                ceiling_of(folded_mean(*mean, *deviation), |k| above(k - mean) + above(k + mean))
            }
            Self::Normal { mean, .. } => libm::ceil(libm::fabs(*mean)),
            Self::LogNormal { mean, deviation } => match log_normal(*mean, *deviation) {
                SamplerLaw::LogNormal { mu, sigma } if sigma > 0.0 => {
                    ceiling_of(*mean, |k| libm::erfc((libm::log(k) - mu) / sigma / SQRT_2) / 2.0)
                }
                SamplerLaw::LogNormal { .. } => libm::ceil(*mean),
                _ => 0.0,
            },
            Self::Zipf { .. } => self.mean(),
            Self::Table(_) => table_moment(self, ceiling_mean),
        }
    }
}

/// Above this, sums over all values of a Zipf variable are replaced by integrals.
const ZIPF_SUM_LIMIT: f64 = 1e6;

/// E[k^power] for P(k) = ln((k+1)/k) / ln(n+1).
fn zipf_moment(n: f64, power: i32) -> f64 {
    if n.is_nan() || n < 1.0 {
        return 1.0;
    }
    // The largest value takes what is left when n is not an integer.
    let (last, log_n1) = (libm::floor(n), libm::log(n + 1.0));
    let raise = |k: f64| if power == 1 { k } else { k * k };
    if last > ZIPF_SUM_LIMIT {
        let integral = if power == 1 { n } else { n * n / 2.0 };
        return integral / log_n1;
    }
    let below: f64 = (1..last as u64).map(|k| raise(k as f64) * libm::log1p(1.0 / k as f64)).sum();
    (below + raise(last) * (log_n1 - libm::log(last))) / log_n1
}

fn table_moment(distribution: &Distribution, of_bar: impl Fn(f64, f64) -> f64) -> f64 {
    let (sum, weight) = bars(distribution)
        .fold((0.0, 0.0), |(sum, total), (low, high, w)| (sum + w * of_bar(low, high), total + w));
    if weight > 0.0 { sum / weight } else { 0.0 }
}

/// The mean of ceil(|x|) for x uniform between the two, or the value itself when they are equal.
fn ceiling_mean(low: f64, high: f64) -> f64 {
    if low == high {
        return libm::ceil(libm::fabs(low));
    }
    let integral = |x: f64| {
        let whole = libm::floor(libm::fabs(x));
        let area = whole * (whole + 1.0) / 2.0 + (libm::fabs(x) - whole) * (whole + 1.0);
        libm::copysign(area, x)
    };
    (integral(high) - integral(low)) / (high - low)
}

/// The part of an interval that is at most `bound`, signs aside; a point counts as a whole.
fn part_within(low: f64, high: f64, bound: f64) -> f64 {
    if low == high {
        return f64::from(u8::from(libm::fabs(low) <= bound));
    }
    let (low, high) = (low.min(high), low.max(high));
    ((high.min(bound) - low.max(-bound)) / (high - low)).clamp(0.0, 1.0)
}

/// Above this mean, rounding up adds a half.
const SMALL_MEAN: f64 = 100.0;

/// The mean of a positive variable rounded up: the sum of its chances to exceed 0, 1, 2, …
fn ceiling_of(mean: f64, exceeds: impl Fn(f64) -> f64) -> f64 {
    if mean > SMALL_MEAN {
        return mean + 0.5;
    }
    (0..100_000).map(|k| exceeds(f64::from(k))).take_while(|chance| *chance > 1e-12).sum()
}

/// The mean of |x| for a normal variable.
fn folded_mean(mean: f64, deviation: f64) -> f64 {
    let ratio = mean / deviation;
    libm::fabs(deviation) * libm::sqrt(2.0 / PI) * libm::exp(-ratio * ratio / 2.0)
        + mean * libm::erf(ratio / SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;
    use crate::model::Bin;
    use assay_base::random::Rng;
    use proptest::prelude::*;

    fn examples() -> Vec<Distribution> {
        vec![
            Distribution::Constant(3.5),
            Distribution::Uniform { low: 2.0, high: 9.0 },
            Distribution::Exponential { mean: 9000.0 },
            Distribution::Normal { mean: 0.3, deviation: 0.1 },
            Distribution::LogNormal { mean: 300.0, deviation: 300.0 },
            Distribution::Zipf { n: 13.0 },
            Distribution::Zipf { n: 64.0 },
            Distribution::Zipf { n: 2.5 },
            Distribution::Table(vec![
                Bin { low: 5.0, high: 5.0, weight: 1.0 },
                Bin { low: 10.0, high: 20.0, weight: 3.0 },
            ]),
        ]
    }

    #[test]
    fn samples_have_the_stated_moments() {
        for distribution in examples() {
            let (mut rng, sampler) = (Rng::of(Purpose::Other, &[42]), distribution.sampler());
            let n = 200_000;
            let draws: Vec<f64> = (0..n).map(|_| sampler.sample(&mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            let square = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
            let tolerance = 4.0 * distribution.deviation() / f64::from(n).sqrt() + 1e-9;
            assert!((mean - distribution.mean()).abs() < tolerance, "{distribution:?}: {mean}");
            assert!(
                (square.sqrt() - distribution.deviation()).abs() <= 0.05 * distribution.deviation() + 1e-9
            );
        }
    }

    #[test]
    fn the_mean_of_counts_is_that_of_rounded_draws() {
        for distribution in examples() {
            let (mut rng, sampler) = (Rng::of(Purpose::Other, &[43]), distribution.sampler());
            let n = 200_000;
            let mean = (0..n).map(|_| sampler.count(&mut rng) as f64).sum::<f64>() / f64::from(n);
            let tolerance = 4.0 * distribution.deviation() / f64::from(n).sqrt() + 0.02;
            assert!((mean - distribution.mean_count()).abs() < tolerance, "{distribution:?}: {mean}");
        }
    }

    #[test]
    fn a_zipf_below_one_is_always_one() {
        let sampler = Distribution::Zipf { n: 0.13 }.sampler();
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| sampler.count(&mut rng) == 1));
        assert_eq!(Distribution::Zipf { n: 0.13 }.mean(), 1.0);
    }

    #[test]
    fn an_empty_table_draws_zero() {
        assert_eq!(Distribution::Table(vec![]).sample(&mut Rng::new(1)), 0.0);
        assert_eq!(Distribution::Table(vec![]).mean(), 0.0);
    }

    proptest! {
        #[test]
        fn nothing_draws_nonsense(a in any::<f64>(), b in any::<f64>(), w in any::<f64>(), seed: u64) {
            let all = [
                Distribution::Constant(a), Distribution::Uniform { low: a, high: b },
                Distribution::Exponential { mean: a }, Distribution::Normal { mean: a, deviation: b },
                Distribution::LogNormal { mean: a, deviation: b }, Distribution::Zipf { n: a },
                Distribution::Sequence { first: a },
                Distribution::Table(vec![Bin { low: a, high: b, weight: w }]),
            ];
            for distribution in all {
                let mut rng = Rng::new(seed);
                prop_assert!(distribution.sampler().count(&mut rng) <= MAX_COUNT as u64);
                prop_assert!(distribution.sampler().size(&mut rng) <= MAX_SIZE as u64);
            }
        }

        #[test]
        fn chances_grow_with_the_bound(a in -1e6f64..1e6, b in 0.0f64..1e6, low in 0.0f64..1e6, step in 0.0f64..1e6) {
            let all = [
                Distribution::Constant(a), Distribution::Uniform { low: a, high: b },
                Distribution::Exponential { mean: a }, Distribution::Normal { mean: a, deviation: b },
                Distribution::LogNormal { mean: a, deviation: b }, Distribution::Zipf { n: b },
                Distribution::Table(vec![Bin { low: a, high: b, weight: 1.0 }, Bin { low: b, high: b, weight: 2.0 }]),
            ];
            for law in all {
                let (below, above) = (law.chance_within(low), law.chance_within(low + step));
                prop_assert!((0.0..=1.0).contains(&below) && below <= above && above <= 1.0, "{law:?}: {below} {above}");
                prop_assert!(law.chance_within(1e300) > 0.999_999, "{law:?}");
            }
        }

        #[test]
        fn zipf_draws_are_between_one_and_n(n in 0.0f64..1e9, seed: u64) {
            let draw = Distribution::Zipf { n }.sample(&mut Rng::new(seed));
            prop_assert!(draw >= 1.0 && draw <= n.max(1.0));
        }
    }
}
