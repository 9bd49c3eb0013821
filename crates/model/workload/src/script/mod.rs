//! What a phase's script does now. A state machine: it gets measurements, and returns actions.
//!
//! Nothing here knows a clock. The conductor tells it, at the end of every interval of measurement, what
//! happened in it ([`Sample`]); `every` blocks whose sample has reached a goal by then run, and their sample
//! starts anew. So a goal is noticed at the end of the interval in which it was reached. [`ThermostatRun`] does
//! the same for a thermostat.

mod sample;
mod value;

use std::sync::Arc;

pub use self::sample::{ClassSums, Moments, ResponseClass, Sample, is_statistic};
pub use self::value::ScriptValue;
use self::value::{binary, extreme, unary};
use crate::model::{Goal, Script, ScriptExpr, ScriptStatement, Thermostat};

/// Action of a script or a thermostat.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptAction {
    /// Load factor from now on.
    Load(f64),
    /// Share of robots alive from now on.
    Population(f64),
    /// A line for people.
    Print(String),
    EndPhase,
}

/// The factors that are on; scripts read and change them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    pub load: f64,
    /// Share of robots alive.
    pub population: f64,
}

/// One script while its phase goes on.
#[derive(Debug)]
pub struct ScriptRun {
    variables: Vec<ScriptValue>,
    samples: Vec<Sample>,
    watchdogs: Vec<SampleBlock>,
    whole: Sample,
    factors: Factors,
    actions: Vec<ScriptAction>,
}

/// An `every` block.
#[derive(Debug)]
struct SampleBlock {
    goal: Goal,
    body: Arc<[ScriptStatement]>,
    sample: Sample,
}

/// Most blocks: a block that starts another each time it runs stops doing so here.
const MOST_WATCHDOGS: usize = 256;

impl ScriptRun {
    /// Starts a script at the beginning of its phase; returns its first actions.
    pub fn start(script: &Script, factors: Factors) -> (Self, Vec<ScriptAction>) {
        let mut this = Self {
            variables: Vec::new(),
            samples: Vec::new(),
            watchdogs: Vec::new(),
            whole: Sample::default(),
            factors,
            actions: Vec::new(),
        };
        this.run(&script.0, None);
        let actions = std::mem::take(&mut this.actions);
        (this, actions)
    }

    /// Processes the measurements of an interval; `factors` are those at its end.
    pub fn on_interval(&mut self, interval: &Sample, factors: Factors) -> Vec<ScriptAction> {
        self.factors = factors;
        self.whole.add(interval);
        self.watchdogs.iter_mut().for_each(|watchdog| watchdog.sample.add(interval));
        for index in 0..self.watchdogs.len() {
            let watchdog = &self.watchdogs[index];
            if watchdog.sample.reaches(&watchdog.goal) {
                let body = Arc::clone(&watchdog.body);
                self.run(&body, Some(index));
                self.watchdogs[index].sample = Sample::default();
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// Runs statements; `watchdog` is the block around them.
    fn run(&mut self, statements: &[ScriptStatement], watchdog: Option<usize>) {
        for statement in statements {
            match statement {
                ScriptStatement::Set { variable, value } => {
                    let value = self.value(value);
                    *slot(&mut self.variables, *variable) = value;
                }
                ScriptStatement::TakeSample { variable, whole_phase } => {
                    let taken = match watchdog.filter(|_| !whole_phase) {
                        Some(index) => self.watchdogs[index].sample.clone(),
                        None => self.whole.clone(),
                    };
                    *slot(&mut self.samples, *variable) = taken;
                }
                ScriptStatement::If { condition, then, otherwise } => {
                    let branch = if self.value(condition).is_true() { then } else { otherwise };
                    self.run(branch, watchdog);
                }
                ScriptStatement::Every { goal, body } => {
                    if self.watchdogs.len() < MOST_WATCHDOGS {
                        let (goal, body) = (goal.clone(), body.as_slice().into());
                        self.watchdogs.push(SampleBlock { goal, body, sample: Sample::default() });
                    }
                }
                ScriptStatement::Load { value, relative } => {
                    let most = self.factors.load.max(1.0);
                    self.factors.load = self.factor(value, *relative, self.factors.load, most);
                    self.actions.push(ScriptAction::Load(self.factors.load));
                }
                ScriptStatement::Population { value, relative } => {
                    self.factors.population = self.factor(value, *relative, self.factors.population, 1.0);
                    self.actions.push(ScriptAction::Population(self.factors.population));
                }
                ScriptStatement::SampleGoal(goal) => {
                    if let Some(index) = watchdog {
                        self.watchdogs[index].goal = goal.clone();
                    }
                }
                ScriptStatement::Print(parts) => {
                    let line = parts.iter().map(|part| self.value(part).to_string()).collect();
                    self.actions.push(ScriptAction::Print(line));
                }
                ScriptStatement::EndPhase => self.actions.push(ScriptAction::EndPhase),
            }
        }
    }

    /// A factor after a change; one that is no number changes nothing.
    fn factor(&self, value: &ScriptExpr, relative: bool, now: f64, most: f64) -> f64 {
        let value = self.value(value).number();
        let wanted = if relative { now * (1.0 + value) } else { value };
        if wanted.is_nan() { now } else { wanted.clamp(0.0, most) }
    }

    fn value(&self, expr: &ScriptExpr) -> ScriptValue {
        match expr {
            ScriptExpr::Number(number) => ScriptValue::Number(*number),
            ScriptExpr::Time(time) => ScriptValue::Seconds(time.as_secs_f64()),
            ScriptExpr::Text(text) => ScriptValue::Text(text.clone()),
            ScriptExpr::Variable(index) => {
                self.variables.get(usize::from(*index)).cloned().unwrap_or_default()
            }
            ScriptExpr::Statistic { sample, name } => {
                let sample = self.samples.get(usize::from(*sample));
                sample.and_then(|sample| sample.statistic(name)).unwrap_or(ScriptValue::Number(f64::NAN))
            }
            ScriptExpr::LoadFactor => ScriptValue::Number(self.factors.load),
            ScriptExpr::PopulationFactor => ScriptValue::Number(self.factors.population),
            ScriptExpr::Unary(sign, of) => unary(*sign, self.value(of)),
            ScriptExpr::Binary(sign, left, right) => binary(sign, self.value(left), self.value(right)),
            ScriptExpr::Extreme { greatest, of } => {
                extreme(*greatest, of.iter().map(|part| self.value(part)))
            }
        }
    }
}

/// The place of a variable, made when it is first used.
fn slot<T: Default + Clone>(slots: &mut Vec<T>, index: u16) -> &mut T {
    let index = usize::from(index);
    if slots.len() <= index {
        slots.resize(index + 1, T::default());
    }
    &mut slots[index]
}

/// Moves the load so that the mean response time stays within bounds.
#[derive(Debug)]
pub struct ThermostatRun {
    thermostat: Thermostat,
    sample: Sample,
}

impl ThermostatRun {
    /// At the beginning of its phase.
    pub fn new(thermostat: Thermostat) -> Self {
        Self { thermostat, sample: Sample::default() }
    }

    /// Processes the measurements of an interval; `load` is the load factor at its end. Returns the new load factor at the end of a sample
    /// whose mean response time was out of bounds. A sample without responses counts as too slow.
    pub fn on_interval(&mut self, interval: &Sample, load: f64) -> Option<f64> {
        self.sample.add(interval);
        if self.sample.duration_s < self.thermostat.sample.as_secs_f64() {
            return None;
        }
        let sample = std::mem::take(&mut self.sample);
        let rep = sample.class(ResponseClass::Rep);
        let mean_s = if rep.count > 0 { rep.time_s.sum / rep.count as f64 } else { f64::INFINITY };
        let Thermostat { step, low, high, .. } = self.thermostat;
        let moved = if high.is_some_and(|high| mean_s > high.as_secs_f64()) {
            load * (1.0 - step)
        } else if low.is_some_and(|low| mean_s < low.as_secs_f64()) {
            load * (1.0 + step)
        } else {
            return None;
        };
        let moved = moved.clamp(0.0, load.max(1.0));
        (moved != load).then_some(moved)
    }
}
