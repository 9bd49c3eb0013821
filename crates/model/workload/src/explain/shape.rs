//! The shapes of a workload's random variables. Small histograms of what is really drawn.

use serde::Serialize;

use crate::distribution::Sampler;
use crate::model::{BodySource, Distribution, Pace, Workload};
use assay_base::random::Rng;

/// Draws behind a histogram: enough that a bar of 1 % is off by less than a sixth of itself.
const DRAWS: usize = 4096;
/// Bars of a histogram.
const BARS: usize = 24;
/// The range of a histogram leaves out this share of draws at each end, so that one giant does not flatten the rest.
const CUT: f64 = 0.005;
/// From this ratio of its ends on, a range of positive values is divided by ratio and not by difference.
const WIDE: f64 = 20.0;

/// Unit of a random variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes, rounded up.
    Bytes,
    /// Seconds.
    Seconds,
    /// A whole number, rounded up.
    Count,
}

/// One random variable of a workload and the histogram of its draws.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// Agent and property.
    pub name: String,
    pub unit: Unit,
    /// Lower end of the first bar.
    pub low: f64,
    /// Upper end of the last bar.
    pub high: f64,
    /// Each bar is as many times its lower end as all others are of theirs; otherwise all are equally wide.
    pub logarithmic: bool,
    /// Share of draws in each bar; what is left to one is beyond the ends, up to half a percent on each side.
    pub shares: Vec<f64>,
    /// Mean of the draws that count: what the workload's law says.
    pub mean: f64,
    /// Half of the draws are below.
    pub median: f64,
    /// One draw in a hundred is above.
    pub p99: f64,
}

impl Shape {
    /// Draws the histogram; none where there is nothing to draw: all values are alike.
    pub fn of(name: impl Into<String>, unit: Unit, law: &Distribution) -> Option<Self> {
        let mut draws = draw(unit, law);
        draws.sort_by(f64::total_cmp);
        let at = |share: f64| draws[((DRAWS - 1) as f64 * share) as usize];
        let (low, high) = (at(CUT), at(1.0 - CUT));
        if low >= high {
            return None;
        }
        let logarithmic = low > 0.0 && high / low >= WIDE;
        let place = |value: f64| match logarithmic {
            true => libm::log(value / low) / libm::log(high / low),
            false => (value - low) / (high - low),
        };
        let mut shares = vec![0.0; BARS];
        for value in draws.iter().filter(|value| (low..=high).contains(*value)) {
            let bar = ((place(*value) * BARS as f64) as usize).min(BARS - 1);
            shares[bar] += 1.0 / DRAWS as f64;
        }
        let mean = match unit {
            Unit::Bytes | Unit::Count => law.mean_count(),
            Unit::Seconds => law.mean(),
        };
        let (median, p99) = (at(0.5), at(0.99));
        Some(Self { name: name.into(), unit, low, high, logarithmic, shares, mean, median, p99 })
    }

    /// The bars as one line of block characters; a bar with any draw at all shows.
    pub fn bars(&self) -> String {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let block = |share: &f64| BLOCKS[(libm::ceil(share / most * 8.0) as usize).min(8)];
        self.shares.iter().map(block).collect()
    }
}

/// Draws as they are used: whole where they count things.
fn draw(unit: Unit, law: &Distribution) -> Vec<f64> {
    let sampler = Sampler::new(law);
    // Any seed will do: it is the law that is shown, not the objects of a run.
    let mut rng = Rng::new(1);
    (0..DRAWS)
        .map(|_| match unit {
            Unit::Bytes => sampler.size(&mut rng) as f64,
            Unit::Count => sampler.count(&mut rng) as f64,
            Unit::Seconds => sampler.sample(&mut rng),
        })
        .collect()
}

/// Every random variable of a workload that really varies, in the order in which `explain` speaks of them.
pub fn shapes(workload: &Workload) -> Vec<Shape> {
    let mut all = Vec::new();
    let mut add = |name: String, unit: Unit, law: Option<&Distribution>| {
        all.extend(law.and_then(|law| Shape::of(name, unit, law)));
    };
    for group in workload.robots.iter().filter(|group| group.count() > 0) {
        let who = format!("robots {:?}", group.kind);
        match &group.pace {
            Pace::Think(law) => add(format!("{who}: think time"), Unit::Seconds, Some(law)),
            Pace::Renewal(law) => add(format!("{who}: time between requests"), Unit::Seconds, Some(law)),
            Pace::BestEffort | Pace::Rate { .. } => {}
        }
        let uses = group.connection_use_limit.as_ref();
        add(format!("{who}: requests of a connection"), Unit::Count, uses);
        add(format!("{who}: pipeline depth"), Unit::Count, group.pipeline_depth.as_ref());
        add(format!("{who}: lifetime of a request"), Unit::Seconds, group.lifetime_s.as_ref());
        add(format!("{who}: idle period"), Unit::Seconds, group.session.as_ref().map(|s| &s.idle_s));
    }
    for server in &workload.servers {
        let who = format!("origins {:?}", server.kind);
        add(format!("{who}: think time"), Unit::Seconds, server.think_s.as_ref());
        let uses = server.connection_use_limit.as_ref();
        add(format!("{who}: requests of a connection"), Unit::Count, uses);
    }
    for content in &workload.contents {
        let what = format!("content {:?}", content.kind);
        // Sizes of files are those of the files.
        let drawn = !matches!(content.body.source, BodySource::Files(_));
        add(format!("{what}: size"), Unit::Bytes, drawn.then_some(&content.size_bytes));
        let cycle = content.life_cycle.as_ref().map(|cycle| &cycle.length_s);
        add(format!("{what}: time between modifications"), Unit::Seconds, cycle);
        let embedded = content.embedded.as_ref().map(|embedded| &embedded.count);
        add(format!("{what}: embedded objects"), Unit::Count, embedded);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(unit: Unit, law: Distribution) -> Option<Shape> {
        Shape::of("x", unit, &law)
    }

    #[test]
    fn what_never_varies_has_no_histogram() {
        assert_eq!(shape(Unit::Bytes, Distribution::Constant(7.0)), None);
        assert_eq!(shape(Unit::Bytes, Distribution::Constant(f64::NAN)), None);
    }

    #[test]
    fn bars_hold_all_but_the_ends() {
        for law in [
            Distribution::Exponential { mean: 1e4 },
            Distribution::Uniform { low: -3.0, high: 5.0 },
            Distribution::LogNormal { mean: 4.0, deviation: 40.0 },
            Distribution::Zipf { n: 1000.0 },
        ] {
            let shape = shape(Unit::Seconds, law).unwrap();
            let all: f64 = shape.shares.iter().sum();
            assert!((0.985..=1.000_001).contains(&all), "{shape:?}");
            assert_eq!(shape.shares.len(), BARS);
            assert!(shape.low <= shape.median && shape.median <= shape.p99);
            assert_eq!(shape.bars().chars().count(), BARS);
        }
    }

    #[test]
    fn equally_likely_values_have_bars_of_one_height() {
        let shape = shape(Unit::Seconds, Distribution::Uniform { low: 10.0, high: 20.0 }).unwrap();
        let (least, most) = shape.shares.iter().fold((1.0f64, 0.0f64), |(l, m), s| (l.min(*s), m.max(*s)));
        assert!(most < 2.0 * least && !shape.logarithmic, "{shape:?}");
    }

    #[test]
    fn values_of_many_magnitudes_are_shown_by_ratio() {
        let law = Distribution::LogNormal { mean: 1e4, deviation: 1e5 };
        let shape = shape(Unit::Bytes, law).unwrap();
        assert!(shape.logarithmic);
        let middle = shape.shares[8..16].iter().sum::<f64>();
        assert!(middle > 0.4, "the bell of the logarithm is in the middle: {shape:?}");
    }

    #[test]
    fn a_bar_with_any_draw_shows() {
        let law = Distribution::Exponential { mean: 1.0 };
        let shape = shape(Unit::Seconds, law).unwrap();
        let drawn = shape.shares.iter().filter(|share| **share > 0.0).count();
        assert_eq!(shape.bars().chars().filter(|bar| *bar != ' ').count(), drawn);
    }
}
