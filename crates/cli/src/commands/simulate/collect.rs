//! What came out of a combination? Counts and histograms of its repetitions, merged; intervals between repetitions.

use assay_record::histogram::Histogram;
use assay_report::compare::student;
use assay_simulate::{Answered, Cell, Experiment, NodeSample, Recorder};

/// Nanoseconds of a microsecond, in which histograms count.
const NANOS: u64 = 1_000;
/// An interval leaves out so much.
const TAIL: f64 = 0.05;

/// How unequal nodes are: standard deviation over mean, averaged over the seconds; 0 is perfect balance.
#[derive(Debug, Clone, Copy, Default)]
pub struct Balance {
    pub processor: f64,
    pub disk: f64,
    pub in_flight: f64,
    seconds: u64,
}

impl Balance {
    fn look(&mut self, nodes: &[NodeSample]) {
        let of = |value: fn(&NodeSample) -> f64| spread(nodes.iter().map(value));
        self.processor += of(|node| node.processor);
        self.disk += of(|node| node.disk);
        self.in_flight += of(|node| f64::from(node.in_flight));
        self.seconds += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.processor += other.processor;
        self.disk += other.disk;
        self.in_flight += other.in_flight;
        self.seconds += other.seconds;
    }

    /// The average over all seconds.
    pub fn average(&self) -> Self {
        let seconds = self.seconds.max(1) as f64;
        let (processor, disk) = (self.processor / seconds, self.disk / seconds);
        Self { processor, disk, in_flight: self.in_flight / seconds, seconds: 1 }
    }
}

fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}

/// What one repetition told.
#[derive(Debug)]
pub struct Taken {
    answered: u64,
    failed: u64,
    bytes: u64,
    all: Histogram,
    by_service: Vec<Option<Histogram>>,
    balance: Balance,
}

impl Taken {
    pub fn new(experiment: &Experiment) -> Self {
        let by_service = experiment.services.iter().map(|_| None).collect();
        Self {
            answered: 0,
            failed: 0,
            bytes: 0,
            all: Histogram::new(),
            by_service,
            balance: Balance::default(),
        }
    }
}

impl Recorder for Taken {
    fn answered(&mut self, what: &Answered) {
        self.answered += 1;
        self.bytes += what.bytes;
        let micros = what.response_nanos / NANOS;
        self.all.record(micros);
        self.by_service[what.service].get_or_insert_with(Histogram::new).record(micros);
    }

    fn failed(&mut self) {
        self.failed += 1;
    }

    fn sampled(&mut self, nodes: &[NodeSample]) {
        self.balance.look(nodes);
    }
}

/// A combination, with all of its repetitions.
#[derive(Debug)]
pub struct Point {
    /// The first of its cells.
    pub cell: Cell,
    /// Answers a second, by repetition.
    pub per_s: Vec<f64>,
    pub failed: u64,
    pub bytes: u64,
    pub all: Histogram,
    pub by_service: Vec<Option<Histogram>>,
    pub balance: Balance,
}

impl Point {
    pub fn new(cell: Cell, first: &Taken, experiment: &Experiment) -> Self {
        let by_service = experiment.services.iter().map(|_| None).collect();
        let mut point = Self {
            cell,
            per_s: Vec::new(),
            failed: 0,
            bytes: 0,
            all: Histogram::new(),
            by_service,
            balance: Balance::default(),
        };
        point.add(first, experiment);
        point
    }

    /// True when a cell is a repetition of this one.
    pub fn is_of(&self, cell: &Cell) -> bool {
        Cell { repetition: self.cell.repetition, ..*cell } == self.cell
    }

    /// One more repetition.
    pub fn add(&mut self, taken: &Taken, experiment: &Experiment) {
        self.per_s.push(taken.answered as f64 / experiment.measure_s);
        self.failed += taken.failed;
        self.bytes += taken.bytes;
        self.all.merge(&taken.all);
        for (own, other) in self.by_service.iter_mut().zip(&taken.by_service) {
            if let Some(other) = other {
                own.get_or_insert_with(Histogram::new).merge(other);
            }
        }
        self.balance.merge(&taken.balance);
    }

    /// Answers a second, over all repetitions.
    pub fn mean_per_s(&self) -> f64 {
        self.per_s.iter().sum::<f64>() / self.per_s.len() as f64
    }

    /// Half of the width of the 95 % interval of that, between repetitions; none with a single one.
    pub fn half_width(&self) -> Option<f64> {
        let count = self.per_s.len() as f64;
        if self.per_s.len() < 2 {
            return None;
        }
        let mean = self.mean_per_s();
        let variance =
            self.per_s.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
        Some(student::quantile(TAIL, count - 1.0) * (variance / count).sqrt())
    }
}

/// The point that a gain is taken over: the first policy under the same load.
pub fn baseline<'p>(points: &'p [Point], of: &Point) -> Option<&'p Point> {
    let cell = Cell { policy: 0, ..of.cell };
    points.iter().find(|point| point.is_of(&cell))
}
